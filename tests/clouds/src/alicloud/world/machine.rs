//! Machines, and what a group sees of them.

use serde::Serialize;

use crate::clock::UnixMs;
use crate::nodes::Script;

/// State of a machine within its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum State {
    /// It starts.
    Pending,
    /// It waits for a hook.
    #[serde(rename = "Pending:Wait")]
    PendingWait,
    /// It works.
    InService,
    /// It is set aside.
    Standby,
    /// It is kept from being chosen.
    Protected,
    /// It is kept, stopped.
    Stopped,
    /// It goes.
    Removing,
    /// It goes when a hook lets it.
    #[serde(rename = "Removing:Wait")]
    RemovingWait,
}

impl State {
    /// As answers have it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::PendingWait => "Pending:Wait",
            Self::InService => "InService",
            Self::Standby => "Standby",
            Self::Protected => "Protected",
            Self::Stopped => "Stopped",
            Self::Removing => "Removing",
            Self::RemovingWait => "Removing:Wait",
        }
    }

    /// It is on its way out.
    pub fn leaves(self) -> bool {
        matches!(self, Self::Removing | Self::RemovingWait)
    }

    /// It is on its way in.
    pub fn comes(self) -> bool {
        matches!(self, Self::Pending | Self::PendingWait)
    }
}

/// Who made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Creation {
    /// The group.
    AutoCreated,
    /// A human, who handed it over.
    Attached,
}

/// What happens to it next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Next {
    /// It has started.
    Boot,
    /// The hook lets it in.
    HookEnds,
    /// It is gone, or stopped if its group keeps it.
    Leave,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Machine {
    /// Identifier.
    pub id: String,
    /// Group; empty once it has left the group and runs on.
    pub group: String,
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Subnet.
    pub vswitch: String,
    /// Address.
    pub ip: String,
    /// State within the group.
    pub state: State,
    /// `Healthy`, or not.
    pub healthy: bool,
    /// Who made it.
    pub creation: Creation,
    /// Made by a human, and the group may release it.
    pub entrusted: bool,
    /// Paid for in advance: never released.
    pub prepaid: bool,
    /// A spot machine.
    pub spot: bool,
    /// What it adds to a weighted group.
    pub weight: u32,
    /// Scaling configuration or launch template that it was made from.
    pub source: String,
    /// Activity that made it.
    pub activity: String,
    /// When it came to be.
    pub created: UnixMs,
    /// When it first ran.
    pub started: Option<UnixMs>,
    /// When it ended.
    pub gone: Option<UnixMs>,
    /// What happens next, and when.
    pub due: Option<(UnixMs, Next)>,
    /// On leaving it is stopped and kept.
    pub kept: bool,
    /// How it becomes a node. Kept here as the machine may outlive its group.
    pub script: Script,
}

impl Machine {
    /// The group may release it.
    pub fn releasable(&self) -> bool {
        !self.prepaid && (self.creation == Creation::AutoCreated || self.entrusted)
    }
}
