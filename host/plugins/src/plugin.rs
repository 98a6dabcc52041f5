//! A plug-in as it is found, and as it is once loaded.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use plimsoll_grants::Kind;
use sha2::{Digest as _, Sha256};

use crate::abi::v0::{LinkedExpander, LinkedProvider};
use crate::manifest::Manifest;
use crate::report::Report;

/// Where a plug-in comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It is part of the host.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// A plug-in as it is found.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name under which it is used, in configuration and messages.
    pub name: Arc<str>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it must be; none: what it says it is.
    pub kind: Option<Kind>,
    /// The component.
    pub bytes: Cow<'static, [u8]>,
}

/// Digest in hex.
pub fn sha256(bytes: &[u8]) -> String {
    use fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[derive(Clone)]
pub(crate) enum Linked {
    Provider(LinkedProvider),
    Expander(LinkedExpander),
}

/// A plug-in that was checked, compiled, linked, and bound once. Clones are cheap.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    pub(crate) kind: Kind,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) report: Arc<Report>,
    pub(crate) linked: Linked,
}

impl Plugin {
    /// Name under which it is used.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Where it came from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// Digest of its bytes, in hex.
    pub fn sha256(&self) -> &str {
        &self.report.sha256
    }
    /// What it says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
    /// What an operator wants to know before trusting it.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, origin, kind, .. } = self;
        f.debug_struct("Plugin").field("name", name).field("origin", origin).field("kind", kind).finish_non_exhaustive()
    }
}
