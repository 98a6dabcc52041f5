//! What a plug-in says about itself, in its custom section `autoscaler:plugin`: a wish list, which grants nothing.
//!
//! The section is read without running or compiling anything. Rust's `#[link_section]` puts it into the core module
//! inside the component, tools put it on top; if there are both, the top one wins.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::Value;
use wasmparser::{Parser, Payload};

use crate::plugin::Kind;

/// Name of the custom section.
pub const SECTION: &str = "autoscaler:plugin";
/// Largest section that is read.
const MOST_BYTES: usize = 256 << 10;

/// A credential that a plug-in wishes for.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct CredentialWish {
    /// The slot that its requests name.
    pub slot: String,
    /// How requests are signed, such as `bearer`.
    pub kind: String,
    /// Hosts that it is for.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Limits that a plug-in thinks it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct LimitWish {
    /// Memory in MiB.
    #[serde(rename = "memory-mib")]
    pub memory_mib: Option<u32>,
    /// Longest call in seconds.
    #[serde(rename = "call-seconds")]
    pub call_seconds: Option<u32>,
}

/// The manifest. Everything may be missing.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// What it is.
    pub kind: Option<Kind>,
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The version of the contract that it was built for, such as `0.1`.
    pub api: Option<String>,
    /// Hosts that it wishes to talk to, as in a grant.
    pub hosts: Vec<String>,
    /// Credentials that it wishes to use.
    pub credentials: Vec<CredentialWish>,
    /// Limits that it thinks it needs.
    pub limits: LimitWish,
    /// Optional abilities that it has.
    pub optional: Vec<String>,
    /// Node labels that an expander wishes to see.
    pub labels: Vec<String>,
    /// JSON Schema of its settings.
    #[serde(rename = "settings-schema")]
    pub settings_schema: Option<Value>,
    /// Fields that this host does not know.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// Why a manifest cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not what it should be.
    #[error("its manifest (custom section {SECTION}) cannot be read: {0}")]
    Unreadable(String),
    /// Two parts of the component bring different ones.
    #[error("two parts of it bring different manifests (custom section {SECTION}); put one on top of the component")]
    Ambiguous,
    /// It is very long.
    #[error("its manifest (custom section {SECTION}) is {0} bytes long; at most {MOST_BYTES} are read")]
    TooLarge(usize),
    /// The binary itself is broken.
    #[error("{0}")]
    Binary(String),
}

impl Manifest {
    /// Finds and reads the manifest of a component or module. None: it has none.
    ///
    /// # Errors
    /// If it is there and cannot be used, or if the binary is broken.
    pub fn find(wasm: &[u8]) -> Result<Option<Self>, ManifestError> {
        let mut depth = 0_usize;
        let mut on_top = None;
        let mut inside: Option<&[u8]> = None;
        let mut ambiguous = false;
        let walked = Parser::new(0).parse_all(wasm).try_for_each(|payload| {
            match payload {
                Err(error) => return ControlFlow::Break(ManifestError::Binary(error.to_string())),
                Ok(Payload::Version { .. }) => depth += 1,
                Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
                Ok(Payload::CustomSection(section)) if section.name() == SECTION => {
                    let data = section.data();
                    if depth <= 1 {
                        on_top = Some(data);
                    } else {
                        ambiguous |= inside.is_some_and(|other| other != data);
                        inside = Some(data);
                    }
                }
                Ok(_) => {}
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(error) = walked {
            return Err(error);
        }
        if on_top.is_none() && ambiguous {
            return Err(ManifestError::Ambiguous);
        }
        on_top.or(inside).map(Self::parse).transpose()
    }

    fn parse(section: &[u8]) -> Result<Self, ManifestError> {
        if section.len() > MOST_BYTES {
            return Err(ManifestError::TooLarge(section.len()));
        }
        serde_json::from_slice(section).map_err(|error| ManifestError::Unreadable(error.to_string()))
    }

    /// What the operator should know about it.
    pub fn warnings(&self) -> Vec<String> {
        let unknown =
            |name| format!("its manifest has a field {name:?} that this host does not know; it has no effect");
        self.unknown.keys().map(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(top: &str, inside: &[&str]) -> Vec<u8> {
        let escape = |text: &str| text.escape_default().to_string();
        let custom = |text: &str| format!("(@custom \"{SECTION}\" \"{}\")", escape(text));
        let modules: String = inside.iter().map(|text| format!("(core module {})", custom(text))).collect();
        let top = if top.is_empty() { String::new() } else { custom(top) };
        wat::parse_str(format!("(component {modules} {top})")).unwrap()
    }

    #[rstest::rstest]
    #[case::none("", &[], None)]
    #[case::nested("", &[r#"{"name":"a"}"#], Some("a"))]
    #[case::top(r#"{"name":"t"}"#, &[], Some("t"))]
    #[case::top_wins(r#"{"name":"t"}"#, &[r#"{"name":"a"}"#, r#"{"name":"b"}"#], Some("t"))]
    #[case::twice_the_same("", &[r#"{"name":"a"}"#, r#"{"name":"a"}"#], Some("a"))]
    fn finds(#[case] top: &str, #[case] inside: &[&str], #[case] name: Option<&str>) {
        let manifest = Manifest::find(&component(top, inside)).unwrap();
        assert_eq!(manifest.and_then(|manifest| manifest.name).as_deref(), name);
    }

    #[rstest::rstest]
    #[case::differ(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#], "two parts of it bring different manifests")]
    #[case::no_json(&["name: a"], "cannot be read: expected ident at line 1 column 2")]
    #[case::wrong_type(&[r#"{"hosts":"https://a"}"#], "expected a sequence")]
    #[case::unknown_kind(&[r#"{"kind":"driver"}"#], "unknown variant `driver`, expected `cloud-provider` or `expander`")]
    fn refuses(#[case] inside: &[&str], #[case] expected: &str) {
        let error = Manifest::find(&component("", inside)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_huge_manifest_is_not_read() {
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(MOST_BYTES));
        let error = Manifest::find(&component(&long, &[])).unwrap_err();
        assert_eq!(error, ManifestError::TooLarge(long.len()));
    }

    #[test]
    fn unknown_fields_are_named() {
        let manifest = Manifest::find(&component(r#"{"name":"a","colour":1}"#, &[])).unwrap().unwrap();
        let expected = r#"its manifest has a field "colour" that this host does not know; it has no effect"#;
        assert_eq!(manifest.warnings(), [expected]);
    }
}
