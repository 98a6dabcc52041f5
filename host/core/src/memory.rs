//! What one loop leaves to the next.

use std::collections::BTreeMap;

use plimsoll_model::Template;
use serde::{Deserialize, Serialize};

use crate::backoff::Wider;
use crate::cloud::{GroupId, InstanceId};
use crate::ledger::Ledger;

pub use crate::backoff::Backoff;

/// How far the removal of a node is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// Chosen; the taint is being written.
    Tainting,
    /// Tainted at this time (milliseconds since the epoch); it settles before the last check.
    Settling(i64),
    /// Evictions are under way since this time (milliseconds since the epoch).
    Draining(i64),
    /// Nothing is on it any more; annotations hold its deletion since this time (milliseconds since the epoch).
    Held(i64),
    /// The cloud was asked to delete it at this time (milliseconds since the epoch).
    Deleting(i64),
}

/// A node on its way out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Removal {
    /// Its group.
    pub group: GroupId,
    /// Its machine.
    pub instance: InstanceId,
    /// Whether pods have to move.
    pub drain: bool,
    /// Whether somebody else had cordoned it before: then it stays cordoned if it stays.
    #[serde(default)]
    pub cordoned_before: bool,
    /// Stage.
    pub stage: Stage,
}

/// A machine that is no node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stray {
    /// Its group.
    pub group: GroupId,
    /// Since when it is seen without a node, in milliseconds since the epoch.
    pub since_ms: i64,
    /// When the cloud was last asked to delete it, in milliseconds since the epoch.
    pub asked_ms: Option<i64>,
}

/// When something last happened to a group, in milliseconds since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LastTimes {
    /// It grew.
    pub scale_up_ms: Option<i64>,
    /// The removal of one of its nodes began.
    pub scale_down_ms: Option<i64>,
    /// The removal of one of its nodes failed.
    pub scale_down_failure_ms: Option<i64>,
}

/// What one loop leaves to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Open intents.
    pub ledger: Ledger,
    /// Groups that are left alone for a while.
    pub backoff: BTreeMap<GroupId, Backoff>,
    /// Zones, machine types and the like that are left alone for a while.
    #[serde(default)]
    pub wider_backoff: Vec<Wider>,
    /// How often in a row a group failed in a way that should pass.
    #[serde(default)]
    pub passing_failures: BTreeMap<GroupId, u32>,
    /// Since when nodes are unneeded, by node name, in milliseconds since the epoch.
    pub unneeded_since_ms: BTreeMap<String, i64>,
    /// Nodes on their way out, by node name.
    pub removals: BTreeMap<String, Removal>,
    /// Machines that are no nodes, by their name in the cloud.
    #[serde(default)]
    pub strays: BTreeMap<InstanceId, Stray>,
    /// Machines that the cloud said will not come, but still has in its target; to be taken back.
    #[serde(default)]
    pub withdrawals: BTreeMap<GroupId, u32>,
    /// When a scale-up was last carried out, in milliseconds since the epoch.
    pub last_scale_up_ms: Option<i64>,
    /// When a removal was last begun, in milliseconds since the epoch.
    pub last_scale_down_ms: Option<i64>,
    /// When a removal last failed, in milliseconds since the epoch.
    pub last_scale_down_failure_ms: Option<i64>,
    /// The same by group.
    #[serde(default)]
    pub last_of_group: BTreeMap<GroupId, LastTimes>,
    /// Whether a loop was played with this memory: what it does not know, nobody does.
    #[serde(default)]
    pub played: bool,
    /// Templates made from real nodes of groups that may be empty now. Not kept over a restart: they refer to the
    /// cluster in memory.
    #[serde(skip)]
    pub templates: BTreeMap<GroupId, Template>,
}
