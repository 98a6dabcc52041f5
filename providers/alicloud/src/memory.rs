//! What is kept from call to call. Nothing depends on it: without it the cloud is asked once more.

use std::collections::BTreeMap;

use plimsoll_guest::{NodeGroup, state};
use serde::{Deserialize, Serialize};

use crate::groups::ScalingGroup;
use crate::spec::GroupSpec;
use crate::template::InstanceType;

/// How long after a change of ours activities are read in any case.
pub(crate) const WATCHED_FOR_MS: u64 = 15 * 60_000;
/// Most changes that are remembered.
const MOST_CHANGES: usize = 64;
const CHANGES_KEY: &str = "changes";

/// Caches, and the last good state.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Last good state of each group.
    pub(crate) groups: BTreeMap<String, Known>,
    /// Machine types; they never change.
    pub(crate) types: BTreeMap<String, InstanceType>,
    /// Zones of vSwitches; they never change.
    pub(crate) zones: BTreeMap<String, String>,
    /// Whether a machine is a subscription, and when that was read.
    pub(crate) prepaid: BTreeMap<String, (bool, u64)>,
    /// What we asked for lately.
    pub(crate) changes: Changes,
}

/// A group as it was read last.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Sizes that the operator allows.
    pub(crate) spec: GroupSpec,
    /// The cloud's view.
    pub(crate) group: ScalingGroup,
    /// What the host was told.
    pub(crate) told: NodeGroup,
    /// Whether an activity was running.
    pub(crate) busy: bool,
}

/// A growth that we asked for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Change {
    /// Group.
    pub(crate) group: String,
    /// When, in milliseconds.
    pub(crate) at_ms: u64,
    /// How many machines.
    pub(crate) machines: u32,
    /// The activity that carries it out; empty if ESS starts one later.
    pub(crate) activity: String,
}

/// Changes of the last while, also those of an earlier instance of the plug-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Changes(Vec<Change>);

impl Default for Changes {
    fn default() -> Self {
        Self(state::get_json(CHANGES_KEY).unwrap_or_default())
    }
}

impl Changes {
    /// Remembers one.
    pub(crate) fn add(&mut self, change: Change) {
        let oldest = change.at_ms.saturating_sub(WATCHED_FOR_MS);
        self.0.retain(|known| known.at_ms >= oldest);
        if self.0.len() >= MOST_CHANGES {
            self.0.remove(0);
        }
        self.0.push(change);
        // Without it activities are still recognised by their mark.
        let _ = state::set_json(CHANGES_KEY, &self.0);
    }

    /// Whether a group was changed lately.
    pub(crate) fn touched(&self, group: &str, now_ms: u64) -> bool {
        self.of(group, now_ms).next().is_some()
    }

    /// Recent changes of a group, oldest first.
    pub(crate) fn of(&self, group: &str, now_ms: u64) -> impl Iterator<Item = &Change> {
        let recent = move |change: &&Change| now_ms.saturating_sub(change.at_ms) <= WATCHED_FOR_MS;
        self.0.iter().filter(recent).filter(move |change| change.group == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(group: &str, at_ms: u64) -> Change {
        Change { group: group.into(), at_ms, machines: 1, activity: String::new() }
    }

    #[test]
    fn changes_outlive_the_instance_but_not_a_quarter_of_an_hour() {
        let mut changes = Changes::default();
        changes.add(change("a", 1_000_000));
        let later = Changes::default();
        assert!(later.touched("a", 1_000_000 + WATCHED_FOR_MS) && !later.touched("b", 1_000_000));
        assert!(!later.touched("a", 1_000_001 + WATCHED_FOR_MS));
        for at in 0..500 {
            changes.add(change("b", 1_000_000 + at));
        }
        assert_eq!(Changes::default().0.len(), MOST_CHANGES);
    }
}
