//! Everything that exists in the region: groups, machines, activities, stock.

mod activity;
mod catalogue;
mod create;
mod group;
mod machine;
mod remove;
mod run;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use activity::{Activity, Direction, Failure, Status};
pub use catalogue::{Configuration, InstanceType, LaunchTemplate, VSwitch};
pub use create::Origin;
pub use group::{Group, GroupState, MultiAz, Source, TypeChoice};
pub use machine::{Creation, Machine, Next, State};

use super::probes::Probes;
use crate::chance::Chance;
use crate::clock::UnixMs;

/// How long things take, each from the first to the second number of milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// From a request to machines that can be listed.
    pub accept_ms: (u64, u64),
    /// From a machine's creation to its start.
    pub boot_ms: (u64, u64),
    /// From the removal of a machine to its end.
    pub leave_ms: (u64, u64),
    /// From a difference between have and should to an activity against it.
    pub reconcile_ms: (u64, u64),
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            accept_ms: (1_000, 5_000),
            boot_ms: (20_000, 90_000),
            leave_ms: (10_000, 60_000),
            reconcile_ms: (30_000, 60_000),
        }
    }
}

impl Timing {
    fn draw(bounds: (u64, u64), chance: &mut Chance) -> Duration {
        chance.between(Duration::from_millis(bounds.0), Duration::from_millis(bounds.1))
    }
}

/// The region.
#[derive(Clone, Debug, Serialize)]
pub struct World {
    /// Its name.
    pub region: String,
    /// Groups.
    pub groups: BTreeMap<String, Group>,
    /// Machines that exist.
    pub machines: BTreeMap<String, Machine>,
    /// Machines that are gone.
    pub past: Vec<Machine>,
    /// Activities, oldest first.
    pub activities: Vec<Activity>,
    /// Scaling configurations.
    pub configurations: BTreeMap<String, Configuration>,
    /// Versions of launch templates.
    pub launch_templates: Vec<LaunchTemplate>,
    /// Subnets.
    pub vswitches: BTreeMap<String, VSwitch>,
    /// Types.
    pub types: BTreeMap<String, InstanceType>,
    /// Machines in stock, by `zone/type`. What is not here is without end.
    pub stock: BTreeMap<String, u32>,
    /// Machines that the account may have, by type. What is not here is without end.
    pub quota: BTreeMap<String, u32>,
    /// Code of the account's trouble with money.
    pub billing: Option<String>,
    /// How long things take.
    pub timing: Timing,
    /// Open choices.
    pub probes: Probes,
    /// How far time has come.
    pub clock: UnixMs,
    next_ip: u32,
}

impl World {
    /// An empty region.
    pub fn new(region: &str, clock: UnixMs) -> Self {
        Self {
            region: region.to_owned(),
            groups: BTreeMap::new(),
            machines: BTreeMap::new(),
            past: vec![],
            activities: vec![],
            configurations: BTreeMap::new(),
            launch_templates: vec![],
            vswitches: BTreeMap::new(),
            types: BTreeMap::new(),
            stock: BTreeMap::new(),
            quota: BTreeMap::new(),
            billing: None,
            timing: Timing::default(),
            probes: Probes::default(),
            clock,
            next_ip: 0,
        }
    }

    /// Machines of a group, oldest first.
    pub fn members(&self, group: &str) -> Vec<&Machine> {
        let mut members: Vec<&Machine> = self.machines.values().filter(|machine| machine.group == group).collect();
        members.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        members
    }

    /// What a machine adds to its group's capacity.
    pub fn weight(&self, machine: &Machine) -> u32 {
        if self.groups.get(&machine.group).is_some_and(|group| group.weighted) { machine.weight } else { 1 }
    }

    /// Capacity of a group in one state.
    pub fn capacity(&self, group: &str, state: State) -> u32 {
        self.members(group)
            .into_iter()
            .filter(|machine| machine.state == state)
            .map(|machine| self.weight(machine))
            .sum()
    }

    /// `TotalCapacity`: all that is not on its way out.
    pub fn total(&self, group: &str) -> u32 {
        let all = self.probes.protected_and_standby_count;
        let counts = |machine: &&Machine| match machine.state {
            State::Protected | State::Standby => all,
            state => !state.leaves(),
        };
        self.members(group).into_iter().filter(counts).map(|machine| self.weight(machine)).sum()
    }

    /// Capacity that accepted activities will still try to make.
    pub fn coming(&self, group: &str) -> u32 {
        let waits = |activity: &&Activity| activity.group == group && activity.creates_at.is_some();
        self.activities.iter().filter(waits).map(|activity| activity.wanted).sum()
    }

    /// Whether an activity runs.
    pub fn busy(&self, group: &str) -> bool {
        self.activities.iter().any(|activity| activity.group == group && activity.status == Status::InProgress)
    }

    /// Identifier of what a group makes machines from, and the types it can use.
    pub fn choices(&self, group: &Group) -> Option<(String, Vec<TypeChoice>)> {
        match group.source.as_ref()? {
            Source::Configuration(id) => {
                let configuration = self.configurations.get(id)?;
                Some((id.clone(), configuration.types.clone()))
            }
            Source::LaunchTemplate { id, version, overrides } => {
                let template = self.launch_template(id, version)?;
                let own = vec![TypeChoice { instance_type: template.instance_type.clone(), weight: 1 }];
                Some((id.clone(), if overrides.is_empty() { own } else { overrides.clone() }))
            }
        }
    }

    /// A version of a launch template; `version` is a number, `Default` or `Latest`.
    pub fn launch_template(&self, id: &str, version: &str) -> Option<&LaunchTemplate> {
        let mut versions = self.launch_templates.iter().filter(|template| template.id == id);
        match version {
            "Latest" => versions.max_by_key(|template| template.version),
            "Default" => versions.find(|template| template.default),
            number => versions.find(|template| template.version.to_string() == number),
        }
    }
}
