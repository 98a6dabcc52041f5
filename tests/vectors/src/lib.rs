//! Golden cases: answers that the Go Cluster Autoscaler gave, and what ours must be beside them.
//!
//! One module per kind of case. `cases/` holds those that are free to look at; the answers of one program are no
//! specification, and `EXCEPTIONS.md` lists where it is wrong.

mod audit;
mod case;
mod converge;
mod dra;
mod drain;
mod estimate;
mod expanders;
mod options;
mod predicates;
mod rounds;
mod scaledown;
mod scaleup;
mod scene;
mod similar;
mod utilization;

pub use case::{Case, read_cases};
pub use rounds::compare as compare_rounds;

/// What came of a case.
#[derive(Debug)]
pub enum Outcome {
    /// It agrees, as far as its kind asks for that.
    Passed {
        /// Something worth counting over all cases.
        remark: Option<&'static str>,
        /// Nodes that we ask for, and how many are said to be enough: to be compared over all cases.
        nodes: Option<(u32, u32)>,
    },
    /// It does not.
    Failed {
        /// The first way in which it differs, for counting over all cases.
        cause: &'static str,
        /// Both answers, on one line.
        difference: String,
        /// As of a case that passed.
        nodes: Option<(u32, u32)>,
    },
}

impl Outcome {
    fn of(differences: &[String]) -> Self {
        match differences {
            [] => Self::passed(None),
            _ => Self::Failed { cause: "other verdicts", difference: differences.join("; "), nodes: None },
        }
    }

    fn of_all(differences: &[Difference]) -> Self {
        let Some(first) = differences.first() else { return Self::passed(None) };
        let texts: Vec<String> =
            differences.iter().map(|difference| format!("{}: {}", difference.cause, difference.text)).collect();
        Self::Failed { cause: first.cause, difference: texts.join("; "), nodes: None }
    }

    fn passed(remark: Option<&'static str>) -> Self {
        Self::Passed { remark, nodes: None }
    }
}

/// One way in which two answers differ.
#[derive(Debug)]
struct Difference {
    cause: &'static str,
    text: String,
}

impl Difference {
    fn new(cause: &'static str, text: String) -> Self {
        Self { cause, text }
    }
}

const EXCEPTIONS: &str = include_str!("../EXCEPTIONS.md");

/// Whether a case is listed as one in which the peer is wrong: a line of `EXCEPTIONS.md` that starts with its id.
fn is_exception(id: &str) -> bool {
    let ids = EXCEPTIONS.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
    ids.into_iter().any(|listed| listed == id)
}

/// Runs one case.
///
/// # Errors
///
/// If the case cannot be read or is of an unknown kind.
pub fn run_case(case: &Case) -> anyhow::Result<Outcome> {
    let run = match case.kind.as_str() {
        "predicates" => predicates::run,
        "estimate" | "dra-estimate" => estimate::run,
        "dra" => dra::run,
        "drain" => drain::run,
        "utilization" => utilization::run,
        "similar" => similar::run,
        "scaleup" => scaleup::run,
        "scaledown" => scaledown::run,
        "converge" => converge::run,
        kind => anyhow::bail!(
            "case {} is of kind {kind:?}; known kinds are predicates, dra, estimate, dra-estimate, drain, utilization, \
             similar, scaleup, scaledown and converge",
            case.id
        ),
    };
    let outcome = run(case).map_err(|error| error.context(format!("case {}", case.id)))?;
    Ok(match outcome {
        Outcome::Failed { .. } if is_exception(&case.id) => {
            Outcome::passed(Some("differ and are listed as exceptions"))
        }
        outcome => outcome,
    })
}
