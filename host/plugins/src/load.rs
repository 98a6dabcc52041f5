//! From bytes to a plug-in that is ready to be called: checked first, then compiled, linked, and bound once.

use std::fmt;
use std::sync::Arc;

use wasmparser::{Chunk, Encoding, Parser, Payload};
use wasmtime::Engine;
use wit_parser::decoding::{DecodedWasm, decode};

use crate::abi::v0::{self, LinkedExpander, LinkedProvider};
use crate::call::Call;
use crate::config::Entry;
use crate::engine::PluginHost;
use crate::limits::Limits;
use crate::manifest::{Manifest, ManifestError};
use crate::mismatch::{Mismatch, Shape, compare};
use crate::plugin::{Kind, Linked, Origin, Plugin, Source, sha256};
use crate::report::Report;
use crate::settings;

/// Largest component that is looked at.
pub const MOST_BYTES: usize = 64 << 20;

/// What is wrong with a file.
#[derive(Clone, PartialEq, Debug)]
pub enum Problem {
    /// It cannot be read.
    Unreadable(String),
    /// There is nothing in it.
    Empty,
    /// It is very large.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// It is text.
    Text {
        /// How it begins.
        begins: String,
    },
    /// It is something else, not WebAssembly.
    NotWasm {
        /// What it seems to be, or how it begins.
        found: String,
    },
    /// It is machine code.
    Precompiled,
    /// It is a core module.
    CoreModule,
    /// It holds a contract and no code.
    WitPackage,
    /// It ends in the middle.
    Truncated {
        /// Where.
        bytes: usize,
    },
    /// It is broken.
    Malformed(String),
    /// Its manifest cannot be used.
    Manifest(String),
    /// Its settings are wrong.
    Settings(Vec<String>),
    /// It does not fit the contract.
    Mismatch(Box<Report>),
    /// It was refused when an instance was made.
    Bind(String),
    /// The host failed.
    Host(String),
}

/// Why a plug-in cannot be used.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadError {
    /// Name under which it should be used.
    pub plugin: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What is wrong.
    pub problem: Problem,
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, origin, problem } = self;
        if let Problem::Mismatch(report) = problem {
            return f.write_str(&report.refusal());
        }
        let file = match origin {
            Origin::BuiltIn => "it".to_owned(),
            Origin::File(path) => path.display().to_string(),
        };
        write!(f, "plugin {plugin:?} cannot be used: ")?;
        match problem {
            Problem::Unreadable(reason) => write!(f, "{file} cannot be read: {reason}"),
            Problem::Empty => write!(f, "{file} is empty; expected a WebAssembly component"),
            Problem::TooLarge { bytes } => {
                write!(f, "{file} is {} MiB large; at most {} MiB are loaded", bytes >> 20, MOST_BYTES >> 20)
            }
            Problem::Text { begins } => {
                write!(f, "{file} is a text file that begins with {begins:?}; expected a WebAssembly component (.wasm)")
            }
            Problem::NotWasm { found } => write!(f, "{file} is {found}; expected a WebAssembly component (.wasm)"),
            Problem::Precompiled => write!(
                f,
                "{file} is compiled machine code (.cwasm), which could do anything; give the .wasm component that it \
                 was made from, the host compiles it itself"
            ),
            Problem::CoreModule => write!(
                f,
                "{file} is a core WebAssembly module, not a component; convert it with: plimsoll plugin componentize \
                 {file} -o {plugin}.component.wasm"
            ),
            Problem::WitPackage => {
                write!(f, "{file} holds a WIT package, a contract without code; expected a WebAssembly component")
            }
            Problem::Truncated { bytes } => {
                write!(f, "{file} ends in the middle, after {bytes} bytes; it was probably not copied to the end")
            }
            Problem::Malformed(reason) => write!(f, "{file} is a broken WebAssembly component: {reason}"),
            Problem::Manifest(reason) => f.write_str(reason),
            Problem::Settings(problems) => f.write_str(&problems.join("; ")),
            Problem::Bind(reason) => write!(f, "no instance of it can be made: {reason}"),
            Problem::Host(reason) => write!(f, "the host failed: {reason}"),
            Problem::Mismatch(_) => Ok(()),
        }
    }
}

/// A component that was looked at.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// What an operator wants to know.
    pub report: Report,
    /// What it says about itself.
    pub manifest: Manifest,
}

/// Looks at a component without compiling or running any of it. With an entry, wishes are compared with grants.
///
/// A component that does not fit the contract is a report with problems, not an error.
///
/// # Errors
/// If it is not a component that can be read.
pub fn inspect(source: &Source, grants: Option<(&str, &Entry)>) -> Result<Inspected, LoadError> {
    look(source, grants).map_err(|problem| LoadError {
        plugin: source.name.to_string(),
        origin: source.origin.clone(),
        problem,
    })
}

fn look(source: &Source, grants: Option<(&str, &Entry)>) -> Result<Inspected, Problem> {
    let bytes: &[u8] = &source.bytes;
    sniff(bytes)?;
    let manifest = Manifest::find(bytes).map_err(|error| match error {
        ManifestError::Binary(reason) => Problem::Malformed(reason),
        error => Problem::Manifest(error.to_string()),
    })?;
    let has_manifest = manifest.is_some();
    let manifest = manifest.unwrap_or_default();
    let shape = match decode(bytes) {
        Ok(DecodedWasm::Component(resolve, world)) => Shape::new(resolve, world),
        Ok(DecodedWasm::WitPackage(..)) => return Err(Problem::WitPackage),
        Err(error) => return Err(Problem::Malformed(format!("{error:#}"))),
    };
    let kind = source.kind.or(manifest.kind).or_else(|| shape.kind());
    let Mismatch { problems, mut warnings, fix } = match kind {
        Some(kind) => {
            let contract = v0::contract(kind).map_err(Problem::Host)?;
            let contract: Vec<_> = contract.into_iter().map(|(resolve, world)| Shape::new(resolve, world)).collect();
            compare(&shape, kind, &contract)
        }
        None => {
            let exports: Vec<_> = shape.exports.iter().map(ToString::to_string).collect();
            let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
            let package = v0::PACKAGE;
            Mismatch {
                problems: vec![format!(
                    "it exports neither {package}/provider nor {package}/ranking; it exports {exports}"
                )],
                warnings: vec![],
                fix: Some(format!("build it for one of the worlds {package}/cloud-provider and {package}/expander")),
            }
        }
    };
    warnings.extend(manifest.warnings());
    if !has_manifest {
        warnings.push("it has no manifest, so it does not say what it wishes for".to_owned());
    }
    let limits = grants.map_or_else(Limits::default, |(_, entry)| Limits::of(entry));
    let listed = |names: &[crate::mismatch::Named]| {
        names.iter().filter(|named| named.interface != "types").map(ToString::to_string).collect()
    };
    let mut report = Report {
        name: source.name.to_string(),
        version: manifest.version.clone(),
        kind,
        contract: shape.contract().map(|(major, minor)| format!("{major}.{minor}")),
        size_bytes: bytes.len(),
        sha256: sha256(bytes),
        hosts: vec![],
        credentials: vec![],
        unasked_hosts: vec![],
        imports: listed(&shape.imports),
        exports: listed(&shape.exports),
        memory_mib: limits.memory_bytes >> 20,
        read_seconds: limits.read.as_secs(),
        write_seconds: limits.write.as_secs(),
        grants_file: grants.map(|(file, _)| file.to_owned()),
        warnings,
        problems,
        fix,
    };
    report.wishes(&manifest, grants.map(|(_, entry)| entry));
    Ok(Inspected { report, manifest })
}

/// Files that are no component, recognised by how they begin and end.
fn sniff(bytes: &[u8]) -> Result<(), Problem> {
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    if bytes.len() > MOST_BYTES {
        return Err(Problem::TooLarge { bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX) });
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(Problem::Precompiled);
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(foreign(bytes));
    }
    whole(bytes)
}

fn foreign(bytes: &[u8]) -> Problem {
    let known: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "a gzip archive"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (b"\x7fELF", "a native program"),
        (b"BC\xc0\xde", "LLVM bitcode"),
    ];
    if let Some((_, what)) = known.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Problem::NotWasm { found: (*what).to_owned() };
    }
    let head = bytes.get(..64.min(bytes.len())).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let readable = text.chars().filter(|c| !c.is_control() || c.is_whitespace()).count();
    if readable == text.chars().count() && !text.contains('\u{fffd}') {
        let begins = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Problem::Text { begins: begins.chars().take(40).collect() };
    }
    let begins: String = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Problem::NotWasm { found: format!("no WebAssembly; it begins with the bytes {begins}") }
}

/// Whether the top level is a component, and all there.
fn whole(bytes: &[u8]) -> Result<(), Problem> {
    let truncated = || Problem::Truncated { bytes: bytes.len() };
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    let mut first = true;
    while !rest.is_empty() {
        let (consumed, payload) = match parser.parse(rest, false) {
            Ok(Chunk::Parsed { consumed, payload }) => (consumed, payload),
            Ok(Chunk::NeedMoreData(_)) => return Err(truncated()),
            Err(error) => return Err(Problem::Malformed(error.to_string())),
        };
        let nested = match payload {
            Payload::Version { encoding: Encoding::Module, .. } if first => return Err(Problem::CoreModule),
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                usize::try_from(unchecked_range.end - unchecked_range.start).unwrap_or(usize::MAX)
            }
            _ => 0,
        };
        first = false;
        rest = rest.get(consumed.saturating_add(nested)..).ok_or_else(truncated)?;
    }
    if first { Err(truncated()) } else { Ok(()) }
}

impl PluginHost {
    /// Checks, compiles, links, and makes one instance that is thrown away, so that everything that can be wrong is
    /// found now. Compilation runs on a thread for blocking work.
    ///
    /// # Errors
    /// If the plug-in cannot be used, with the reason in plain words.
    pub async fn load(&self, source: Source, entry: Option<(&str, &Entry)>) -> Result<Plugin, LoadError> {
        let (name, origin) = (source.name.clone(), source.origin.clone());
        let fail = |problem| LoadError { plugin: name.to_string(), origin: origin.clone(), problem };
        let host = self.clone();
        let limits = entry.map_or_else(Limits::default, |(_, entry)| Limits::of(entry));
        let entry = entry.map(|(file, entry)| (file.to_owned(), entry.clone()));
        let prepared = tokio::task::spawn_blocking(move || {
            host.prepare(&source, entry.as_ref().map(|(file, entry)| (file.as_str(), entry)))
        });
        let plugin = prepared.await.map_err(|error| fail(Problem::Host(error.to_string())))?.map_err(fail)?;
        self.bind(&plugin, limits).await.map_err(|reason| fail(Problem::Bind(reason)))?;
        Ok(plugin)
    }

    fn prepare(&self, source: &Source, entry: Option<(&str, &Entry)>) -> Result<Plugin, Problem> {
        let Inspected { mut report, manifest } = look(source, entry)?;
        let Some(kind) = report.kind.filter(|_| report.is_usable()) else {
            return Err(Problem::Mismatch(Box::new(report)));
        };
        if let Some((_, entry)) = entry {
            settings::resolve(manifest.settings_schema.as_ref(), &entry.settings).map_err(Problem::Settings)?;
        }
        let component = self.compile(&source.bytes).map_err(|error| Problem::Malformed(format!("{error:#}")))?;
        let linked = match kind {
            Kind::CloudProvider => LinkedProvider::link(self.provider_linker(), &component).map(Linked::Provider),
            Kind::Expander => LinkedExpander::link(self.expander_linker(), &component).map(Linked::Expander),
        };
        // Only what the comparison has no words for comes this far.
        let linked = linked.map_err(|error| {
            report.problems.push(format!("{error:#}"));
            Problem::Mismatch(Box::new(report.clone()))
        })?;
        Ok(Plugin {
            name: source.name.clone(),
            origin: source.origin.clone(),
            kind,
            manifest: Arc::new(manifest),
            report: Arc::new(report),
            linked,
        })
    }

    /// Makes an instance that can reach nothing, and throws it away.
    async fn bind(&self, plugin: &Plugin, limits: Limits) -> Result<(), String> {
        let sandbox = self.inert(&plugin.name, limits);
        let mut store = self.store(&sandbox, 0);
        let budget = sandbox.limits.read;
        let bound = match &plugin.linked {
            Linked::Provider(linked) => {
                self.bounded(&sandbox, &mut store, Call::Start, budget, async |store| {
                    linked.instantiate(store).await.map(drop)
                })
                .await
            }
            Linked::Expander(linked) => {
                self.bounded(&sandbox, &mut store, Call::Start, budget, async |store| linked.bind(store).await).await
            }
        };
        bound.map_err(|error| error.to_string())
    }
}
