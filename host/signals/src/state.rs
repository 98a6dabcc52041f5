//! The state of a loop as an object of a file: what `plimsoll simulate` needs besides the objects of the API server to decide
//! as the process did.

use std::collections::BTreeMap;

use plimsoll_core::Memory;
use plimsoll_core::cloud::{Capabilities, CloudError, GroupId, NodeTemplate, PriceBook, Snapshot};
use plimsoll_core::observation::CloudView;
use serde::{Deserialize, Serialize};

/// API version of the object.
pub const API_VERSION: &str = "plimsoll.dev/v1alpha1";
/// Kind of the object.
pub const KIND: &str = "LoopState";

/// The state of a loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopState {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name.
    pub metadata: Metadata,
    /// What it says.
    pub spec: Spec,
}

/// Name of a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metadata {
    /// `plimsoll`.
    pub name: String,
}

/// What a loop knew when it began.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// The time that it decided by, as RFC 3339.
    pub at: String,
    /// Flags that decisions hang on, as on the command line.
    pub flags: Vec<String>,
    /// What the loops before had left.
    pub memory: Memory,
    /// What was known of the clouds.
    pub cloud: Cloud,
}

/// What was known of the clouds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cloud {
    /// The groups with their machines.
    pub snapshot: Snapshot,
    /// What the providers can do.
    pub capabilities: Capabilities,
    /// What the providers say of each group's next node.
    pub templates: BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>,
    /// Prices.
    pub prices: Option<PriceBook>,
}

impl Cloud {
    /// A copy of what is known.
    pub fn of(view: CloudView<'_>) -> Self {
        Self {
            snapshot: view.snapshot.clone(),
            capabilities: view.capabilities.clone(),
            templates: view.templates.clone(),
            prices: view.prices.cloned(),
        }
    }
}

impl LoopState {
    /// The state of a loop.
    pub fn new(at: String, flags: Vec<String>, memory: Memory, cloud: Cloud) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: Metadata { name: "plimsoll".to_owned() },
            spec: Spec { at, flags, memory, cloud },
        }
    }

    /// Whether an object is one.
    pub fn is(object: &serde_json::Value) -> bool {
        let text = |field: &str| object.get(field).and_then(serde_json::Value::as_str);
        text("apiVersion") == Some(API_VERSION) && text("kind") == Some(KIND)
    }
}
