//! What a seed draws: settings, pools, workloads, and what happens when.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use plimsoll_core::Settings;
use plimsoll_sim::cloud::Stock;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Event {
    /// A workload gets another number of replicas.
    Scale { workload: usize, replicas: u32 },
    /// A pool's stock changes.
    Stock { pool: usize, stock: Stock },
    /// Machines of a pool take so long to boot from now on.
    Boot { pool: usize, takes: Duration },
    /// So many of a pool's next machines never become nodes.
    Deaf { pool: usize, count: u32 },
    /// So many of a pool's next machines run, but become nodes only after a while.
    Late { pool: usize, count: u32, after: Duration },
    /// A machine of a pool registers a second time under another name; that node is gone again after a while.
    Twin { pool: usize, lasts: Duration },
    /// A machine of a pool is lost, and the cloud makes another.
    Lose { pool: usize },
    /// Somebody raises a target.
    RaiseByHand { pool: usize, count: u32 },
    /// Somebody deletes a machine.
    DeleteByHand { pool: usize },
    /// Somebody marks a node as being deleted, and does nothing more.
    MarkByHand { pool: usize },
    /// A node stops to answer for a while.
    Silent { pool: usize, lasts: Duration },
    /// Reads of the cloud fail in this way for a while.
    Reads { fault: ReadFault, lasts: Duration },
    /// Writes to the cloud fail in this way for a while.
    Writes { fault: WriteFault, lasts: Duration },
    /// Writes to the API server fail in this way for a while.
    Api { fault: ApiFault, lasts: Duration },
    /// Evictions are refused for a while.
    Evictions { lasts: Duration },
    /// The process is killed after so many more of its steps, of any kind or of one.
    Kill { moment: Option<Moment>, steps: u32 },
    /// The lease is lost for a while.
    Lease { lasts: Duration },
    /// The process's clock jumps by so many seconds, for a while.
    Clock { by: i64, lasts: Duration },
    /// The provider's component is replaced.
    Replace,
    /// The provider's component is taken away for a while.
    Remove { lasts: Duration },
    /// Pods of a workload arrive just before the next node is marked.
    Meanwhile { workload: usize, more: u32 },
    /// A pod of a workload is bound to the next node that is marked, at that moment or while its pods leave.
    Squeeze { workload: usize, at: Moment },
}

/// A step of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// The cloud is about to be asked something.
    BeforeRead,
    /// The cloud has answered, and the answer is on its way.
    AfterRead,
    /// An order is about to reach the cloud.
    BeforeOrder,
    /// The cloud has carried out an order, and its answer is on its way.
    AfterOrder,
    /// A mark is about to be written.
    BeforeMark,
    /// A mark is written.
    AfterMark,
    /// A mark is about to be taken off.
    BeforeUnmark,
    /// A mark is taken off.
    AfterUnmark,
    /// An eviction is about to be asked for.
    BeforeEviction,
    /// An eviction was asked for.
    AfterEviction,
    /// The memory is about to be saved.
    BeforeSave,
    /// The memory is saved.
    AfterSave,
}

impl Moment {
    /// The steps that change something, and saving.
    pub(crate) const AROUND_WRITES: [Self; 10] = [
        Self::BeforeOrder,
        Self::AfterOrder,
        Self::BeforeMark,
        Self::AfterMark,
        Self::BeforeUnmark,
        Self::AfterUnmark,
        Self::BeforeEviction,
        Self::AfterEviction,
        Self::BeforeSave,
        Self::AfterSave,
    ];
}

/// How a write to the API server goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ApiFault {
    /// Refused: the object was modified.
    Conflict,
    /// Every second one is.
    Flickers,
    /// It takes effect, but the answer is an error.
    LostAfter,
}

impl ApiFault {
    pub(crate) const ALL: [Self; 3] = [Self::Conflict, Self::Flickers, Self::LostAfter];
}

/// How a read goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadFault {
    /// Status 503.
    Fails,
    /// No answer at all.
    Silence,
    /// An earlier answer.
    Stale,
    /// An answer that is no JSON.
    Garbage,
    /// JSON, but of another kind.
    Wrong,
    /// Some groups cannot be told: an error of their own.
    Broken,
    /// Machines are missing, and it says so.
    Incomplete,
    /// A lie: every target is 0, and there is no machine.
    Zero,
    /// An answer that is larger than what the component can hold: it traps.
    TooLarge,
}

/// How a write goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteFault {
    /// Status 503, nothing happens.
    Fails,
    /// Too many requests.
    Throttled,
    /// No answer, nothing happened.
    LostBefore,
    /// No answer, but it happened.
    LostAfter,
    /// It happened, and the component traps over the answer.
    TooLarge,
}

/// A pool.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PoolPlan {
    pub(crate) name: String,
    pub(crate) zone: &'static str,
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) cpu: i64,
    pub(crate) memory_gib: i64,
    pub(crate) gpu: bool,
    pub(crate) boot: Duration,
}

/// What holds pods of a workload on their node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// Nothing.
    Free,
    /// Nobody makes them again.
    Bare,
    /// They keep data on the node.
    LocalStorage,
    /// An annotation.
    NotSafeToEvict,
    /// A budget that lets one at a time go.
    Budget,
}

impl Hold {
    /// Whether such a pod must end by itself.
    pub(crate) fn protects(self) -> bool {
        matches!(self, Self::Bare | Self::LocalStorage | Self::NotSafeToEvict)
    }
}

/// A workload.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct WorkloadPlan {
    pub(crate) name: String,
    pub(crate) cpu_milli: i64,
    pub(crate) memory_mib: i64,
    pub(crate) gpu: bool,
    /// Only in this zone.
    pub(crate) zone: Option<&'static str>,
    pub(crate) hold: Hold,
    /// At the beginning.
    pub(crate) replicas: u32,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) settings: Settings,
    pub(crate) pools: Vec<PoolPlan>,
    pub(crate) workloads: Vec<WorkloadPlan>,
    /// In order of time since the beginning. The number is that of the whole draw, so that a shrunk run can name it.
    pub(crate) events: Vec<(usize, Duration, Event)>,
    /// When the last fault has ended.
    pub(crate) quiet_from: Duration,
    pub(crate) length: Duration,
}

const ZONES: [&str; 3] = ["a", "b", "c"];
/// How long after the last fault everything must be as it should be.
pub(crate) const SETTLING: Duration = Duration::from_secs(3 * 3600);

pub(crate) fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

impl Scenario {
    /// The run of a seed.
    pub fn draw(seed: u64, hours: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let pools = pools(&mut rng);
        let workloads = workloads(&mut rng, &pools);
        let settings = settings(&mut rng, seed);
        let length = minutes(60 * hours.max(8));
        let quiet_from = length - SETTLING - minutes(60);
        let count = rng.usize(4..40);
        let last = quiet_from - minutes(60);
        let mut events: Vec<(Duration, Event)> = (0..count)
            .map(|_| {
                let at = Duration::from_secs(rng.u64(0..last.as_secs()));
                (at, event(&mut rng, &pools, &workloads))
            })
            .collect();
        for (index, _) in workloads.iter().enumerate() {
            for _ in 0..rng.usize(3..16) {
                let replicas = if rng.bool() { 0 } else { rng.u32(0..25) };
                let at = Duration::from_secs(rng.u64(0..last.as_secs()));
                events.push((at, Event::Scale { workload: index, replicas }));
            }
        }
        events.sort_by_key(|(at, _)| *at);
        let events = events.into_iter().enumerate().map(|(number, (at, event))| (number, at, event)).collect();
        Self { seed, settings, pools, workloads, events, quiet_from, length }
    }

    /// Numbers of what happens in this run.
    pub fn numbers(&self) -> Vec<usize> {
        self.events.iter().map(|(number, ..)| *number).collect()
    }

    /// The same run with only these happenings.
    pub fn only(&self, numbers: &[usize]) -> Self {
        let mut kept = self.clone();
        kept.events.retain(|(number, ..)| numbers.contains(number));
        kept
    }
}

#[allow(clippy::indexing_slicing, reason = "the index is drawn from what there is, and there is something")]
pub(crate) fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(0..of.len())]
}

fn pools(rng: &mut Rng) -> Vec<PoolPlan> {
    let count = rng.usize(1..5);
    let shapes = [(2, 8), (4, 16), (8, 32), (8, 64), (16, 64)];
    (0..count)
        .map(|index| {
            let (cpu, memory_gib) = pick(rng, &shapes);
            let min = if rng.u8(0..4) == 0 { rng.u32(1..3) } else { 0 };
            PoolPlan {
                name: format!("pool-{index}"),
                zone: pick(rng, &ZONES),
                min,
                max: min + rng.u32(1..12),
                cpu,
                memory_gib,
                gpu: rng.u8(0..6) == 0,
                boot: Duration::from_secs(rng.u64(20..300)),
            }
        })
        .collect()
}

pub(crate) fn workloads(rng: &mut Rng, pools: &[PoolPlan]) -> Vec<WorkloadPlan> {
    let count = rng.usize(1..7);
    (0..count)
        .map(|index| {
            let hold = match rng.u8(0..14) {
                0 => Hold::Bare,
                1 => Hold::LocalStorage,
                2 => Hold::NotSafeToEvict,
                3 | 4 => Hold::Budget,
                _ => Hold::Free,
            };
            WorkloadPlan {
                name: format!("work-{index}"),
                cpu_milli: 100 * rng.i64(1..30),
                memory_mib: 128 * rng.i64(1..40),
                gpu: pools.iter().any(|pool| pool.gpu) && rng.u8(0..5) == 0,
                zone: (rng.u8(0..6) == 0).then(|| pick(rng, &ZONES)),
                hold,
                replicas: rng.u32(0..20),
            }
        })
        .collect()
}

pub(crate) fn settings(rng: &mut Rng, seed: u64) -> Settings {
    const CHAINS: [&[&str]; 5] =
        [&["least-waste"], &["most-pods"], &["least-nodes"], &["random"], &["price", "least-waste"]];
    let defaults = Settings::default();
    Settings {
        expander: pick(rng, &CHAINS).iter().map(|&name| name.to_owned()).collect(),
        scale_down_unneeded_time: minutes(rng.u64(1..15)),
        scale_down_unready_time: minutes(rng.u64(5..30)),
        scale_down_delay_after_add: minutes(rng.u64(0..12)),
        scale_down_delay_after_failure: minutes(rng.u64(0..5)),
        max_drain_parallelism: rng.u32(1..6),
        balance_similar_node_groups: rng.bool(),
        cordon_node_before_terminating: rng.bool(),
        enforce_node_group_min_size: rng.bool(),
        max_nodes_total: (rng.u8(0..4) == 0).then(|| rng.u32(4..20)),
        seed,
        ..defaults
    }
}

fn event(rng: &mut Rng, pools: &[PoolPlan], workloads: &[WorkloadPlan]) -> Event {
    let pool = rng.usize(0..pools.len());
    let workload = rng.usize(0..workloads.len());
    let lasts = Duration::from_secs(rng.u64(10..2400));
    match rng.u8(0..35) {
        0 => Event::Stock { pool, stock: Stock::SoldOut },
        1 => Event::Stock { pool, stock: Stock::SoldOutLate },
        2 => Event::Stock { pool, stock: Stock::Left(rng.u32(0..4)) },
        3 => Event::Stock { pool, stock: Stock::Plenty },
        4 => Event::Boot { pool, takes: Duration::from_secs(rng.u64(10..1800)) },
        5 => Event::Deaf { pool, count: rng.u32(1..4) },
        6 => Event::Lose { pool },
        7 => Event::RaiseByHand { pool, count: rng.u32(1..4) },
        8 => Event::DeleteByHand { pool },
        9 => Event::Silent { pool, lasts },
        10..=12 => {
            let faults = [
                ReadFault::Fails,
                ReadFault::Silence,
                ReadFault::Stale,
                ReadFault::Garbage,
                ReadFault::Wrong,
                ReadFault::Broken,
                ReadFault::Incomplete,
                ReadFault::Zero,
                ReadFault::TooLarge,
            ];
            Event::Reads { fault: pick(rng, &faults), lasts }
        }
        13..=15 => {
            let faults = [
                WriteFault::Fails,
                WriteFault::Throttled,
                WriteFault::LostBefore,
                WriteFault::LostAfter,
                WriteFault::LostAfter,
                WriteFault::TooLarge,
            ];
            Event::Writes { fault: pick(rng, &faults), lasts }
        }
        16 => Event::Api { fault: pick(rng, &ApiFault::ALL), lasts },
        17 => Event::Evictions { lasts },
        18 => Event::Kill { moment: None, steps: rng.u32(0..30) },
        19..=22 => Event::Kill { moment: Some(pick(rng, &Moment::AROUND_WRITES)), steps: rng.u32(0..3) },
        23 => Event::Lease { lasts },
        24 => match rng.u8(0..4) {
            0 => Event::Clock { by: rng.i64(1..7200), lasts },
            1 => Event::Clock { by: -rng.i64(1..7200), lasts },
            2 => Event::Replace,
            _ => Event::Remove { lasts },
        },
        25 => Event::Late { pool, count: rng.u32(1..4), after: Duration::from_secs(rng.u64(30..3600)) },
        26 => Event::Twin { pool, lasts },
        27 => Event::MarkByHand { pool },
        28..=30 => {
            let moments = [Moment::BeforeMark, Moment::AfterMark, Moment::BeforeEviction, Moment::AfterEviction];
            Event::Squeeze { workload, at: pick(rng, &moments) }
        }
        31 => Event::Stock { pool, stock: Stock::Unfulfilled },
        _ => Event::Meanwhile { workload, more: rng.u32(1..4) },
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pool in &self.pools {
            let gpu = if pool.gpu { ", 1 GPU" } else { "" };
            writeln!(
                f,
                "  {} zone {}: {} to {} of {} cores, {} GiB{gpu}, boot {}s",
                pool.name,
                pool.zone,
                pool.min,
                pool.max,
                pool.cpu,
                pool.memory_gib,
                pool.boot.as_secs()
            )?;
        }
        for workload in &self.workloads {
            let WorkloadPlan { name, cpu_milli, memory_mib, gpu, zone, hold, replicas } = workload;
            writeln!(f, "  {name}: {replicas} x {cpu_milli}m {memory_mib}Mi gpu={gpu} zone={zone:?} {hold:?}")?;
        }
        for (number, at, event) in &self.events {
            let minutes = at.as_secs() / 60;
            writeln!(f, "  {number:3}  {}h{:02}m{:02}s  {event:?}", minutes / 60, minutes % 60, at.as_secs() % 60)?;
        }
        Ok(())
    }
}

/// Whether a pod is one of a workload's, by its name.
pub(crate) fn is_of(pod: &str, workload: &str) -> bool {
    pod.strip_prefix(workload).is_some_and(|rest| rest.starts_with('-'))
}
