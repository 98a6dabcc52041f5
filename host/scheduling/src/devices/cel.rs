//! Selectors of devices: Common Expression Language with Kubernetes' quantities and versions.
//!
//! An expression sees one variable, `device`, with `driver`, `allowMultipleAllocations`, `attributes["domain"].name` and
//! `capacity["domain"].name`. A domain that the device has nothing of is empty; a name that it does not have is an error.

mod domains;
mod quantities;
#[cfg(test)]
mod tests;
mod versions;

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelInt, CelMap, CelString};
use cel::common::value::Val;
use cel::{Context, Env, Program, Value};
use plimsoll_model::devices::{Attribute, Device};
use plimsoll_model::{Symbol, Symbols};
use rustc_hash::FxHashMap;

use domains::{Domains, Entries};
use quantities::Amount;
use versions::Version;

/// What an expression says of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// True.
    Yes,
    /// False.
    No,
    /// It says nothing, and why.
    Error(Arc<str>),
}

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Names are declared once, all of them here; should a library take one of them, expressions with it fail.
    let _ = env.add_extension(cel::extensions::strings);
    let _ = env.add_extension(cel::extensions::lists);
    let _ = quantities::declare(&mut env);
    let _ = versions::declare(&mut env);
    Arc::new(env)
});

/// An expression, ready to be asked.
pub(crate) struct Expression {
    program: Result<Program, Arc<str>>,
    /// Names that occur in the expression, by which it tells devices apart; none: it may look at all of them.
    words: Option<Vec<Box<str>>>,
    /// What it said of devices that look alike to it.
    answers: FxHashMap<Look, Answer>,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expression").field("words", &self.words).finish_non_exhaustive()
    }
}

/// What an expression sees of a device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Look {
    driver: Symbol,
    shareable: bool,
    attributes: Vec<(Symbol, Attribute)>,
    capacity: Vec<(Symbol, plimsoll_model::Quantity)>,
}

impl Expression {
    /// Compiles an expression.
    pub(crate) fn new(text: &str) -> Self {
        let program = ENVIRONMENT.compile(text).map_err(|errors| Arc::from(errors.to_string()));
        let program = program.and_then(|program| match unknown_name(&program) {
            None => Ok(program),
            Some(name) => Err(format!("undeclared reference to '{name}', or not supported").into()),
        });
        Self { program, words: words(text), answers: FxHashMap::default() }
    }

    /// What it says of a device. Devices that look alike to it are evaluated once.
    pub(crate) fn ask(&mut self, driver: Symbol, device: &Device, symbols: &Symbols) -> Answer {
        let program = match &self.program {
            Ok(program) => program,
            Err(error) => return Answer::Error(error.clone()),
        };
        let sees = |name: &Symbol| match &self.words {
            None => true,
            Some(words) => {
                let text = symbols.text(*name);
                let id = text.rsplit_once('/').map_or(text, |(_, id)| id);
                words.iter().any(|word| **word == *id)
            }
        };
        let look = Look {
            driver,
            shareable: device.shareable,
            attributes: device.attributes.iter().filter(|(name, _)| sees(name)).copied().collect(),
            capacity: device
                .capacity
                .iter()
                .filter(|(name, _)| sees(name))
                .map(|(name, capacity)| (*name, capacity.value))
                .collect(),
        };
        if let Some(answer) = self.answers.get(&look) {
            return answer.clone();
        }
        let answer = evaluate(program, &look, symbols);
        self.answers.insert(look, answer.clone());
        answer
    }
}

/// A variable or function that does not exist; the real compiler refuses such an expression before it is ever asked.
fn unknown_name(program: &Program) -> Option<String> {
    let references = program.references();
    let bound = |name: &str| name == "device" || name.starts_with('@') || program_binds(program, name);
    let variable = references.variables().into_iter().find(|name| !bound(name) && !is_type(name));
    variable.map(str::to_owned)
}

/// Names of types are values too.
fn is_type(name: &str) -> bool {
    matches!(
        name,
        "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" | "null_type" | "type" | "optional"
    )
}

/// Whether a macro binds the name, as in `list.exists(name, …)`.
fn program_binds(program: &Program, name: &str) -> bool {
    format!("{:?}", program.expression()).contains(&format!("iter_var: \"{name}\""))
}

/// Identifiers of an expression and words in its texts. None if it may look at names that it does not spell out.
fn words(text: &str) -> Option<Vec<Box<str>>> {
    // Whoever walks through maps, counts or joins, or asks for domains as such, may see anything.
    const WALKS: [&str; 12] = [
        ".all(",
        ".exists",
        ".map(",
        ".filter(",
        ".transform",
        "size(",
        "string(",
        "+",
        "in device",
        "[?",
        "attributes.",
        "capacity.",
    ];
    // Whole maps may be compared with each other.
    let whole = text.split("==").count() > 1 && text.contains('{');
    if whole || WALKS.iter().any(|walk| text.contains(walk)) || text.contains('\\') {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let parts = text.split(|c: char| !is_part(c)).flat_map(|part| {
        // A name may follow a dot or have dots itself.
        let dotted = part.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| part.get(at + 1..).unwrap_or(""));
        std::iter::once(part).chain(dotted).chain(part.split('.'))
    });
    let mut words: Vec<Box<str>> = parts.filter(|word| !word.is_empty()).map(Box::from).collect();
    words.sort_unstable();
    words.dedup();
    Some(words)
}

fn evaluate(program: &Program, look: &Look, symbols: &Symbols) -> Answer {
    let driver = symbols.text(look.driver);
    let attributes = look.attributes.iter().filter_map(|&(name, value)| {
        let value: Box<dyn Val> = match value {
            Attribute::Int(number) => Box::new(CelInt::from(number)),
            Attribute::Bool(yes) => Box::new(CelBool::from(yes)),
            Attribute::Text(text) => Box::new(CelString::from(symbols.text(text).to_owned())),
            Attribute::Version(version) => Box::new(Version::of(symbols.text(version))?),
            Attribute::Other => return None,
        };
        Some((symbols.text(name), value))
    });
    let capacity = look.capacity.iter().map(|&(name, amount)| {
        let value: Box<dyn Val> = Box::new(Amount(amount));
        (symbols.text(name), value)
    });
    let fields: [(&str, Box<dyn Val>); 4] = [
        ("driver", Box::new(CelString::from(driver.to_owned()))),
        ("allowMultipleAllocations", Box::new(CelBool::from(look.shareable))),
        ("attributes", Box::new(Domains::new(driver, attributes))),
        ("capacity", Box::new(Domains::new(driver, capacity))),
    ];
    let device: Entries = fields.into_iter().map(|(name, value)| (name.to_owned().into(), value)).collect();
    let mut context = Context::with_env(ENVIRONMENT.clone());
    context.add_variable_as_val("device", Box::new(CelMap::from(device)));
    match program.execute(&context) {
        Ok(Value::Bool(true)) => Answer::Yes,
        Ok(Value::Bool(false)) => Answer::No,
        Ok(other) => Answer::Error(format!("the expression gives {}, expected a bool", other.type_of()).into()),
        Err(error) => Answer::Error(error.to_string().into()),
    }
}
