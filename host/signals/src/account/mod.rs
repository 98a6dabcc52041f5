//! One loop as data, with names in the place of positions: what it saw, what it decided, and every reason.
//!
//! `/api/v1` serves it, `plimsoll explain` shows it, the log and the traces take their fields from it. [`make`] builds it
//! from a plan and its observation; [`find`] answers questions about one pod, node or group.

mod find;
mod groups;
mod make;
mod ways_out;

use serde::{Deserialize, Serialize};

pub use find::{GroupDetail, NodeDetail, PodDetail, Unhelped, Unknown};
pub use make::{Bounds, account};

/// How many of what a loop saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Nodes.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Pods without a node that are considered.
    pub pending: usize,
    /// Node groups.
    pub groups: usize,
}

/// A group that grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    /// The group.
    pub group: String,
    /// Target before.
    pub from: u32,
    /// Target after.
    pub to: u32,
    /// Number of pods that the new nodes are for.
    pub pods: usize,
    /// The expander that decided; none: there was one option, or a draw.
    pub expander: Option<String>,
    /// Its score.
    pub score: Option<f64>,
    /// Its words.
    pub reason: Option<String>,
    /// What it was chosen over.
    pub against: Vec<Rival>,
}

/// An option that was not chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rival {
    /// Its group.
    pub group: String,
    /// Nodes that it would have added.
    pub nodes: u32,
    /// Its score, if the deciding expander gave one.
    pub score: Option<f64>,
}

/// A node that goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The node.
    pub node: String,
    /// Its group.
    pub group: String,
    /// Whether pods move.
    pub drain: bool,
    /// Where its pods go: pod and place.
    pub moves: Vec<(String, String)>,
}

/// Why a group does not help pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupReason {
    /// The group.
    pub group: String,
    /// The predicate, or the part of the loop, that speaks.
    pub plugin: String,
    /// The reason in words.
    pub message: String,
}

/// Pods that nothing can tell apart, and that nothing helps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Class {
    /// How many there are.
    pub pods: usize,
    /// One of them, as `namespace/name`.
    pub example: String,
    /// What makes them, such as `ReplicaSet cart`; empty: nothing.
    pub owner: String,
    /// One reason for each group.
    pub reasons: Vec<GroupReason>,
    /// Why the nodes that are there do not take them, with the number of nodes.
    pub existing: Vec<(String, u32)>,
    /// What would help, as far as it can be told for sure.
    pub ways_out: Vec<String>,
}

/// A pod without a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// As `namespace/name`.
    pub pod: String,
    /// `fits-existing`, `fits-upcoming`, `scale-up`, `not-helped` or `ignored`.
    pub outcome: String,
    /// Where it goes: a node, or `GROUP#N` for a node to come.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on: Option<String>,
    /// Why it is ignored.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ignored: Option<String>,
    /// Its class, as position in the list of classes, if nothing helps it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class: Option<usize>,
    /// When it was made, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<String>,
}

/// A reason for a node to stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReason {
    /// The Go autoscaler's name of it, where it has one.
    pub code: String,
    /// The reason in words.
    pub message: String,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Its group; none: no group has it.
    pub group: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// `needed`, `unneeded`, `removable` or `blocked`; none: nobody looked.
    pub outcome: Option<String>,
    /// All reasons to stay, not only the first.
    pub reasons: Vec<NodeReason>,
    /// Pods on it.
    pub pods: usize,
}

/// A node group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name.
    pub group: String,
    /// Least size.
    pub min: u32,
    /// Greatest size.
    pub max: u32,
    /// Size that the cloud works towards.
    pub target: u32,
    /// Nodes that are there.
    pub nodes: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// Nodes that are on their way, as the ledger says.
    pub upcoming: u32,
    /// Why it cannot grow now; none: it can.
    pub closed: Option<String>,
    /// What its next node has, such as `cpu 8, memory 32Gi, pods 110`; or why nobody knows.
    pub template: Result<String, String>,
    /// Price of its next node for an hour, in millionths of the currency.
    pub price_micros_per_hour: Option<u64>,
}

/// Everything that one loop saw and decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The time of the loop, as RFC 3339.
    pub at: String,
    /// How many of what there are.
    pub totals: Totals,
    /// Groups that grow.
    pub scale_up: Vec<Growth>,
    /// Nodes that go.
    pub scale_down: Vec<Removal>,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// The groups, by name.
    pub groups: Vec<Group>,
    /// Classes of pods that nothing helps.
    pub classes: Vec<Class>,
    /// Pods without a node, by name.
    pub pods: Vec<Pod>,
    /// The nodes, by name.
    pub nodes: Vec<Node>,
    /// Pods with a node, by name, with their node.
    pub running: Vec<(String, String)>,
    /// How many pods, nodes and classes are not in the lists, since there are too many.
    pub left_out: LeftOut,
}

/// What is not in the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Pods without a node.
    pub pods: usize,
    /// Pods with a node.
    pub running: usize,
    /// Nodes.
    pub nodes: usize,
    /// Classes.
    pub classes: usize,
}
