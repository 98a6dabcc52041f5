//! What one loop leaves to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Template, Time};
use serde::{Deserialize, Serialize};

use crate::cloud::{GroupId, InstanceId};
use crate::ledger::Ledger;
use crate::settings::Settings;

/// A group that is left alone for a while after a failure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backoff {
    /// How long this time.
    pub duration: Duration,
    /// Until when, in milliseconds since the epoch.
    pub until_ms: i64,
    /// When the last failure was, in milliseconds since the epoch.
    pub failed_at_ms: i64,
    /// What happened, for people.
    pub reason: String,
}

/// How far the removal of a node is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// Chosen; the taint is being written.
    Tainting,
    /// Tainted at this time (milliseconds since the epoch); it settles before the last check.
    Settling(i64),
    /// Evictions are under way since this time (milliseconds since the epoch).
    Draining(i64),
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

/// What one loop leaves to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Open intents.
    pub ledger: Ledger,
    /// Groups that are left alone for a while.
    pub backoff: BTreeMap<GroupId, Backoff>,
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
    /// Templates made from real nodes of groups that may be empty now. Not kept over a restart: they refer to the
    /// cluster in memory.
    #[serde(skip)]
    pub templates: BTreeMap<GroupId, Template>,
}

impl Memory {
    /// The back-off that holds a group now, if one does.
    pub fn backed_off(&self, group: &GroupId, at: Time) -> Option<&Backoff> {
        self.backoff.get(group).filter(|backoff| at.millis() <= backoff.until_ms)
    }

    /// Writes down a failed scale-up of a group. The wait doubles when the group fails again after it ran out, up to the
    /// cap, and starts small after a long time without failure (the peer's rule).
    pub fn back_off(&mut self, group: &GroupId, at: Time, reason: String, settings: &Settings) {
        let initial = settings.initial_node_group_backoff;
        let duration = match self.backoff.get(group) {
            Some(old) if at.since(Time::from_millis(old.failed_at_ms)) > settings.node_group_backoff_reset => initial,
            Some(old) if old.until_ms < at.millis() => (old.duration * 2).min(settings.max_node_group_backoff),
            Some(old) => old.duration,
            None => initial,
        };
        let backoff = Backoff { duration, until_ms: (at + duration).millis(), failed_at_ms: at.millis(), reason };
        self.backoff.insert(group.clone(), backoff);
    }

    /// Forgets what is too old to matter.
    pub fn forget(&mut self, at: Time, settings: &Settings) {
        self.backoff.retain(|_, backoff| {
            at.since(Time::from_millis(backoff.failed_at_ms)) <= settings.node_group_backoff_reset
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_follows_the_peer() {
        // Appendix B.2 of the behavioural reference: 5, 30, 180 minutes.
        let settings = Settings::default();
        let group = GroupId::from("a");
        let mut memory = Memory::default();
        let minute = |m: i64| Time::from_millis(m * 60_000);
        let mut fail = |at: i64| {
            memory.back_off(&group, minute(at), String::new(), &settings);
            memory.backoff[&group].until_ms / 60_000 - at
        };
        assert_eq!(fail(0), 5);
        assert_eq!(fail(3), 5, "failure while backed off: the same again");
        assert_eq!(fail(9), 10);
        assert_eq!(fail(20), 20);
        assert_eq!(fail(41), 30, "the cap");
        assert_eq!(fail(72), 30);
        assert_eq!(fail(72 + 181), 5, "forgotten");
    }
}
