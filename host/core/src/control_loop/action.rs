//! Writes that the loop wants, and what became of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cloud::{CloudError, DeleteOutcome, GroupId, InstanceId, SizeOutcome};
use crate::ledger::IntentId;
use crate::observation::NodeIndex;
use crate::plan::PodIndex;

/// A write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Ask the cloud for more machines.
    Increase {
        /// The intent; its key makes the write happen at most once.
        intent: IntentId,
        /// The group.
        group: GroupId,
        /// How many more.
        delta: u32,
        /// The target that the cloud should have now.
        expected_target: u32,
        /// Why, for audit trails.
        reason: String,
    },
    /// Ask the cloud to wish for fewer machines, none of which is there.
    DecreaseTarget {
        /// The intent; its key makes the write happen at most once.
        intent: IntentId,
        /// The group.
        group: GroupId,
        /// How many fewer.
        delta: u32,
        /// The target that the cloud should have now.
        expected_target: u32,
        /// Why, for audit trails.
        reason: String,
    },
    /// Ask the cloud to delete machines.
    Delete {
        /// The intent; its key makes the write happen at most once.
        intent: IntentId,
        /// The group.
        group: GroupId,
        /// The machines.
        instances: Vec<InstanceId>,
        /// The target that the cloud should have now.
        expected_target: u32,
        /// Never below this.
        min_size: u32,
        /// Why, for audit trails.
        reason: String,
    },
    /// Mark a node as being deleted, so that nothing new lands there.
    Taint {
        /// The node.
        node: NodeIndex,
        /// Whether to cordon it too.
        cordon: bool,
    },
    /// Take the mark off again.
    Untaint {
        /// The node.
        node: NodeIndex,
        /// Whether to let pods in again: not where the node was cordoned before it was marked.
        uncordon: bool,
    },
    /// Evict pods of a node.
    Evict {
        /// The node.
        node: NodeIndex,
        /// The pods.
        pods: Vec<Eviction>,
    },
}

/// A pod that is told to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Eviction {
    /// The pod.
    pub pod: PodIndex,
    /// How long it may take to end.
    pub grace: Duration,
}

impl Action {
    /// What it is called, as in metrics and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Increase { .. } => "increase-size",
            Self::DecreaseTarget { .. } => "decrease-target",
            Self::Delete { .. } => "delete-instances",
            Self::Taint { .. } => "taint",
            Self::Untaint { .. } => "untaint",
            Self::Evict { .. } => "evict",
        }
    }

    /// The group that it is about, if it is a write to a cloud.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Increase { group, .. } | Self::DecreaseTarget { group, .. } | Self::Delete { group, .. } => {
                Some(group.as_str())
            }
            Self::Taint { .. } | Self::Untaint { .. } | Self::Evict { .. } => None,
        }
    }
}

/// What became of an action.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// Of [`Action::Increase`] and [`Action::DecreaseTarget`].
    Size(Result<SizeOutcome, CloudError>),
    /// Of [`Action::Delete`].
    Delete(Result<DeleteOutcome, CloudError>),
    /// Of a write to the API server; the error in words.
    Api(Result<(), String>),
    /// Of any action: it never left this process, which may not write just now; why, in words. Nobody is to blame for it
    /// but this process, so no group rests and no removal counts as failed.
    NotSent(String),
}
