//! Scaling groups and what they make machines from.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::clock::UnixMs;
use crate::nodes::Script;

/// State of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum GroupState {
    /// It scales.
    #[default]
    Active,
    /// It was never switched on, or it was switched off.
    Inactive,
    /// It is on its way out.
    Deleting,
}

/// Where new machines go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MultiAz {
    /// In the order of the vSwitches.
    #[default]
    Priority,
    /// To the zone with the fewest.
    Balance,
}

/// What new machines are made from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A scaling configuration.
    Configuration(String),
    /// A launch template.
    LaunchTemplate {
        /// Identifier.
        id: String,
        /// `Default`, `Latest` or a number.
        version: String,
        /// Types instead of the template's, best first.
        #[serde(default)]
        overrides: Vec<TypeChoice>,
    },
}

/// A type of machine and how much it counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeChoice {
    /// Name of the type.
    pub instance_type: String,
    /// What one such machine adds to the capacity of a weighted group.
    #[serde(default = "one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

/// A scaling group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Group {
    /// Identifier.
    pub id: String,
    /// Name.
    pub name: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Least capacity.
    pub min: u32,
    /// Most capacity.
    pub max: u32,
    /// Desired capacity, for groups that have one.
    pub desired: Option<u32>,
    /// State.
    pub state: GroupState,
    /// Switched off by the cloud after many failures.
    pub suspended: bool,
    /// Processes that a human has suspended: `ScaleOut`, `ScaleIn`, …
    pub suspended_processes: BTreeSet<String>,
    /// Stopped machines are kept and used again; else they are released.
    pub recycles: bool,
    /// Where new machines go.
    pub multi_az: MultiAz,
    /// Whom the cloud removes first.
    pub removal_policies: Vec<String>,
    /// Subnets.
    pub vswitches: Vec<String>,
    /// Capacity is a sum of weights.
    pub weighted: bool,
    /// What new machines are made from; none: nothing can be made.
    pub source: Option<Source>,
    /// Several activities may run at once.
    pub parallel: bool,
    /// Activities never end.
    pub never_ends: bool,
    /// New machines wait so long for a hook.
    pub hook_ms: Option<u64>,
    /// New machines are spot machines.
    pub spot: bool,
    /// Every creation fails with this code and text.
    pub broken: Option<(String, String)>,
    /// After so many failures in a row the cloud suspends the group.
    pub suspends_after: Option<u32>,
    /// Rest after an activity, in seconds.
    pub cooldown_s: u32,
    /// How its machines become nodes.
    pub script: Script,
    /// Machines at the beginning.
    pub running: u32,
    /// Failures in a row.
    #[serde(skip_deserializing)]
    pub failures: u32,
    /// When it next compares what it has with what it should have.
    #[serde(skip_deserializing)]
    pub reconcile_at: Option<UnixMs>,
    /// When it came to be.
    #[serde(skip_deserializing)]
    pub created: UnixMs,
    /// When its settings changed.
    #[serde(skip_deserializing)]
    pub modified: UnixMs,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            tags: BTreeMap::new(),
            min: 0,
            max: 100,
            desired: None,
            state: GroupState::Active,
            suspended: false,
            suspended_processes: BTreeSet::new(),
            recycles: false,
            multi_az: MultiAz::Priority,
            removal_policies: vec!["OldestScalingConfiguration".to_owned(), "OldestInstance".to_owned()],
            vswitches: vec!["vsw-a".to_owned()],
            weighted: false,
            source: Some(Source::Configuration("asc-1".to_owned())),
            parallel: false,
            never_ends: false,
            hook_ms: None,
            spot: false,
            broken: None,
            suspends_after: None,
            cooldown_s: 300,
            script: Script::default(),
            running: 0,
            failures: 0,
            reconcile_at: None,
            created: UnixMs::default(),
            modified: UnixMs::default(),
        }
    }
}

impl Group {
    /// A group with an identifier and bounds.
    pub fn new(id: &str, min: u32, max: u32) -> Self {
        Self { id: id.to_owned(), name: format!("{id}-name"), min, max, ..Self::default() }
    }

    /// The same with a desired capacity.
    #[must_use]
    pub fn desiring(mut self, desired: u32) -> Self {
        self.desired = Some(desired);
        self
    }

    /// The same with so many machines at the beginning.
    #[must_use]
    pub fn running(mut self, running: u32) -> Self {
        self.running = running;
        self
    }
}
