//! What a seed draws: a cloud, its groups, workloads, and what happens when.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use plimsoll_core::Settings;

use super::events::{Event, draw_event};
use crate::scenario::{SETTLING, WorkloadPlan, minutes, settings, workloads};

/// Whose cloud it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vendor {
    AliCloud,
    Utho,
}

impl Vendor {
    /// The component's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AliCloud => "alicloud",
            Self::Utho => "utho",
        }
    }
}

/// A kind of machine that both the fake and the checks know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Type or plan.
    pub(crate) name: &'static str,
    pub(crate) cpu: i64,
    pub(crate) memory_mib: i64,
}

const ALICLOUD: [Shape; 2] = [
    Shape { name: "ecs.g7.xlarge", cpu: 4, memory_mib: 16 << 10 },
    Shape { name: "ecs.g7.2xlarge", cpu: 8, memory_mib: 32 << 10 },
];
const UTHO: [Shape; 3] = [
    Shape { name: "10045", cpu: 2, memory_mib: 4 << 10 },
    Shape { name: "10046", cpu: 4, memory_mib: 8 << 10 },
    Shape { name: "10215", cpu: 8, memory_mib: 16 << 10 },
];

/// A group or pool.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GroupPlan {
    pub(crate) id: String,
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// At the beginning.
    pub(crate) size: u32,
    pub(crate) shape: Shape,
    /// AliCloud: it has a desired capacity.
    pub(crate) desires: bool,
    /// AliCloud: after so many failures in a row it is suspended.
    pub(crate) suspends_after: Option<u32>,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) vendor: Vendor,
    pub(crate) settings: Settings,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) workloads: Vec<WorkloadPlan>,
    /// In order of time since the beginning, with the number in the whole draw.
    pub(crate) events: Vec<(usize, Duration, Event)>,
    /// When the last fault has ended.
    pub(crate) quiet_from: Duration,
    pub(crate) length: Duration,
}

impl Scenario {
    /// The run of a seed, if the seed is one of those that play a cloud: one in ten for each.
    pub fn draw(seed: u64, hours: u64) -> Option<Self> {
        let vendor = match seed % 10 {
            3 => Vendor::AliCloud,
            7 => Vendor::Utho,
            _ => return None,
        };
        let mut rng = Rng::with_seed(seed);
        let groups = groups(&mut rng, vendor);
        let mut workloads = workloads(&mut rng, &[]);
        for workload in &mut workloads {
            // Zones have names of their own here, and sizes are smaller.
            workload.zone = None;
            workload.replicas = workload.replicas.min(12);
        }
        let settings = settings(&mut rng, seed);
        let length = minutes(60 * hours.max(8));
        let quiet_from = length - SETTLING - minutes(60);
        let last = quiet_from - minutes(60);
        let mut events: Vec<(Duration, Event)> = (0..rng.usize(4..30))
            .map(|_| {
                let at = Duration::from_secs(rng.u64(0..last.as_secs()));
                (at, draw_event(&mut rng, groups.len(), workloads.len()))
            })
            .collect();
        for workload in 0..workloads.len() {
            for _ in 0..rng.usize(3..10) {
                let replicas = if rng.bool() { 0 } else { rng.u32(0..16) };
                let at = Duration::from_secs(rng.u64(0..last.as_secs()));
                events.push((at, Event::Scale { workload, replicas }));
            }
        }
        events.sort_by_key(|(at, _)| *at);
        let events = events.into_iter().enumerate().map(|(number, (at, event))| (number, at, event)).collect();
        Some(Self { seed, vendor, settings, groups, workloads, events, quiet_from, length })
    }

    /// Numbers of what happens in this run.
    pub fn numbers(&self) -> Vec<usize> {
        self.events.iter().map(|(number, ..)| *number).collect()
    }

    /// The same run with only these happenings.
    #[must_use]
    pub fn only(&self, numbers: &[usize]) -> Self {
        let mut kept = self.clone();
        kept.events.retain(|(number, ..)| numbers.contains(number));
        kept
    }
}

fn groups(rng: &mut Rng, vendor: Vendor) -> Vec<GroupPlan> {
    (0..rng.usize(1..4))
        .map(|index| {
            let (id, shapes, least) = match vendor {
                Vendor::AliCloud => (format!("asg-{index}"), &ALICLOUD[..], 0),
                // A pool of Utho cannot be empty.
                Vendor::Utho => (format!("pool-{index}"), &UTHO[..], 1),
            };
            let min = least + if rng.u8(0..4) == 0 { rng.u32(1..3) } else { 0 };
            GroupPlan {
                id,
                min,
                max: min + rng.u32(2..10),
                size: min,
                shape: crate::scenario::pick(rng, shapes),
                desires: rng.bool(),
                suspends_after: (rng.u8(0..4) == 0).then_some(5),
            }
        })
        .collect()
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  in front of the fake of {}", self.vendor.name())?;
        for GroupPlan { id, min, max, size, shape, desires, suspends_after } in &self.groups {
            let Shape { name, cpu, memory_mib } = shape;
            writeln!(
                f,
                "  {id}: {size} in {min} to {max} of {name} ({cpu} cores, {memory_mib} MiB) desires={desires} \
                 suspends-after={suspends_after:?}"
            )?;
        }
        for WorkloadPlan { name, cpu_milli, memory_mib, hold, replicas, .. } in &self.workloads {
            writeln!(f, "  {name}: {replicas} x {cpu_milli}m {memory_mib}Mi {hold:?}")?;
        }
        for (number, at, event) in &self.events {
            let minutes = at.as_secs() / 60;
            writeln!(f, "  {number:3}  {}h{:02}m{:02}s  {event:?}", minutes / 60, minutes % 60, at.as_secs() % 60)?;
        }
        Ok(())
    }
}
