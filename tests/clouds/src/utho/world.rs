//! Pools and workers, and how they change with time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::chance::Chance;
use crate::clock::UnixMs;
use crate::fake::Context;
use crate::journal::{Cause, Happening};

use super::settings::Switches;

/// A replacement starts so long after its predecessor went.
const REPLACEMENT: Duration = Duration::from_secs(60);

/// Everything that the cloud holds.
#[derive(Clone, Debug, Serialize)]
pub struct World {
    /// Number of the cluster.
    pub cluster: String,
    /// Data centre.
    pub region: String,
    /// Pools by id.
    pub pools: BTreeMap<String, Pool>,
    /// Plans by id.
    pub plans: BTreeMap<String, Plan>,
    /// Workers that are gone and whose nodes may outlive them, with the pool they were in and when they went.
    pub gone: Vec<(Worker, String, UnixMs)>,
    /// The account may have so many workers.
    pub quota: Option<u32>,
    /// Nothing more can be paid.
    pub in_arrears: bool,
    /// So many of the next workers fail instead of coming up.
    pub failing: u32,
    next_id: u32,
}

/// A kind of machine.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Processors.
    pub cores: u32,
    /// Memory.
    pub memory_mib: u32,
    /// Disk.
    pub disk_gb: u32,
    /// How many more there are; none: enough.
    pub stock: Option<u32>,
}

/// A node pool.
#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    /// Label; at first the id.
    pub label: String,
    /// Id of its plan.
    pub plan: String,
    /// Size that it works towards.
    pub count: u32,
    /// Earlier counts, and since when they held.
    pub history: Vec<(UnixMs, u32)>,
    /// Scaled automatically.
    pub auto_scale: bool,
    /// Least size.
    pub min: u32,
    /// Greatest size.
    pub max: u32,
    /// Workers by id.
    pub workers: BTreeMap<String, Worker>,
    /// When replacements start.
    pub replacements: Vec<UnixMs>,
}

/// A machine of a pool.
#[derive(Clone, Debug, Serialize)]
pub struct Worker {
    /// Id.
    pub id: String,
    /// Address in the cluster's network.
    pub private_ip: String,
    /// Where it is in its life.
    pub state: State,
    /// When it came up.
    pub started: Option<UnixMs>,
}

/// Where a worker is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// On its way, up at this time.
    Pending(UnixMs),
    /// On its way, and failed at this time.
    Failing(UnixMs),
    /// Up.
    Active,
    /// Will not come up.
    Failed,
    /// On its way out, gone at this time.
    Deleting(UnixMs),
}

impl Worker {
    /// It is not on its way out.
    pub fn stays(&self) -> bool {
        !matches!(self.state, State::Deleting(_))
    }

    fn due(&self) -> Option<UnixMs> {
        match self.state {
            State::Pending(at) | State::Failing(at) | State::Deleting(at) => Some(at),
            State::Active | State::Failed => None,
        }
    }
}

impl Pool {
    /// Workers that are not on their way out.
    pub fn staying(&self) -> u32 {
        u32::try_from(self.workers.values().filter(|worker| worker.stays()).count()).unwrap_or(u32::MAX)
    }

    /// The count that reads show.
    pub fn shown_count(&self, now: UnixMs, lag: Duration) -> u32 {
        let visible = self.history.iter().rev().find(|(since, _)| *since + lag <= now);
        visible.or(self.history.first()).map_or(self.count, |(_, count)| *count)
    }

    fn set_count(&mut self, count: u32, now: UnixMs) {
        self.count = count;
        self.history.push((now, count));
    }
}

impl World {
    /// A cluster without pools.
    pub fn new(cluster: &str) -> Self {
        let plan = |cores, memory_mib, disk_gb| Plan { cores, memory_mib, disk_gb, stock: None };
        Self {
            cluster: cluster.to_owned(),
            region: "inmumbaizone2".to_owned(),
            pools: BTreeMap::new(),
            plans: [("10045", plan(2, 4096, 80)), ("10046", plan(4, 8192, 160)), ("10215", plan(8, 16384, 320))]
                .map(|(id, plan)| (id.to_owned(), plan))
                .into(),
            gone: vec![],
            quota: None,
            in_arrears: false,
            failing: 0,
            next_id: 1_300_100,
        }
    }

    /// Adds a pool whose workers are up already.
    pub fn add_pool(&mut self, id: &str, plan: &str, limits: (u32, u32), count: u32, named: Naming) {
        let mut pool = Pool {
            label: id.to_owned(),
            plan: plan.to_owned(),
            count,
            history: vec![(UnixMs(0), count)],
            auto_scale: true,
            min: limits.0,
            max: limits.1,
            workers: BTreeMap::new(),
            replacements: vec![],
        };
        for _ in 0..count {
            let worker = self.new_worker(State::Active, Some(UnixMs(0)), named);
            pool.workers.insert(worker.id.clone(), worker);
        }
        self.pools.insert(id.to_owned(), pool);
    }

    fn new_worker(&mut self, state: State, started: Option<UnixMs>, named: Naming) -> Worker {
        self.next_id += 1;
        let number = self.next_id;
        let id = if named.numeric { number.to_string() } else { format!("wrk-{number:x}") };
        let host = number % 65_000;
        Worker { id, private_ip: format!("10.210.{}.{}", host / 250, host % 250 + 1), state, started }
    }

    /// Changes a count, and makes or kills workers to fit. The machines that go are the cloud's choice.
    pub fn resize(&mut self, id: &str, count: u32, cause: Cause, named: Naming, context: &mut Context<'_>) {
        let now = context.now;
        let Some(pool) = self.pools.get_mut(id) else { return };
        pool.set_count(count, now);
        context.event(Happening::Changed, id, id, cause, format!("count {count}"));
        let victim_cause = if cause == Cause::Asked { Cause::Chosen } else { cause };
        while self.pools.get(id).is_some_and(|pool| pool.staying() > count) {
            let staying =
                |pool: &Pool| pool.workers.values().filter(|worker| worker.stays()).map(|one| one.id.clone()).collect();
            let candidates: Vec<String> = self.pools.get(id).map(staying).unwrap_or_default();
            let Some(victim) = context.chance.pick(&candidates).cloned() else { break };
            self.kill(id, &victim, victim_cause, context);
        }
        self.fill(id, cause, named, context);
    }

    /// Makes as many workers as are missing and in stock.
    fn fill(&mut self, id: &str, cause: Cause, named: Naming, context: &mut Context<'_>) {
        while let Some(pool) = self.pools.get(id) {
            let coming = u32::try_from(pool.replacements.len()).unwrap_or(u32::MAX);
            let plan = pool.plan.clone();
            if pool.staying().saturating_add(coming) >= pool.count || !self.take_stock(&plan) {
                return;
            }
            self.create(id, cause, named, context);
        }
    }

    fn take_stock(&mut self, plan: &str) -> bool {
        match self.plans.get_mut(plan).and_then(|plan| plan.stock.as_mut()) {
            Some(0) => false,
            Some(stock) => {
                *stock -= 1;
                true
            }
            None => true,
        }
    }

    fn create(&mut self, id: &str, cause: Cause, named: Naming, context: &mut Context<'_>) {
        let up = context.now + boot(context.chance);
        let fails = self.failing > 0;
        self.failing = self.failing.saturating_sub(1);
        let worker = self.new_worker(if fails { State::Failing(up) } else { State::Pending(up) }, None, named);
        context.event(Happening::Created, id, &worker.id, cause, "");
        if let Some(pool) = self.pools.get_mut(id) {
            pool.workers.insert(worker.id.clone(), worker);
        }
    }

    /// Sends a worker on its way out.
    pub fn kill(&mut self, id: &str, worker: &str, cause: Cause, context: &mut Context<'_>) {
        let gone_at = context.now + context.chance.between(Duration::from_secs(10), Duration::from_secs(30));
        let Some(worker) = self.pools.get_mut(id).and_then(|pool| pool.workers.get_mut(worker)) else { return };
        if worker.stays() {
            worker.state = State::Deleting(gone_at);
            context.event(Happening::Leaving, id, &worker.id, cause, "");
        }
    }

    /// A worker was deleted by name; the pool follows by the switch.
    pub fn delete(&mut self, id: &str, worker: &str, cause: Cause, switches: &Switches, context: &mut Context<'_>) {
        self.kill(id, worker, cause, context);
        let now = context.now;
        let Some(pool) = self.pools.get_mut(id) else { return };
        // What a human takes away behind the pool's back always comes back.
        if switches.delete_recreates || cause == Cause::Human {
            pool.replacements.push(now + REPLACEMENT);
        } else {
            pool.set_count(pool.count.saturating_sub(1), now);
        }
    }

    /// Removes a pool and all its workers.
    pub fn remove_pool(&mut self, id: &str, cause: Cause, context: &mut Context<'_>) {
        let Some(pool) = self.pools.remove(id) else { return };
        let cause = if cause == Cause::Asked { Cause::Chosen } else { cause };
        for worker in pool.workers.into_values() {
            context.event(Happening::Leaving, id, &worker.id, cause, "the pool was removed");
            self.gone.push((worker, id.to_owned(), context.now));
        }
        context.event(Happening::Gone, id, id, cause, "pool");
    }

    /// Lets everything happen that is due, in the order of time.
    pub fn run(&mut self, named: Naming, context: &mut Context<'_>) {
        let end = context.now;
        while let Some((at, pool, worker)) = self.next_due().filter(|(at, ..)| *at <= end) {
            context.now = at;
            match worker {
                Some(worker) => self.turn(&pool, &worker, context),
                None => {
                    if let Some(pool) = self.pools.get_mut(&pool) {
                        pool.replacements.retain(|due| *due > at);
                    }
                    self.fill(&pool, Cause::Cloud, named, context);
                }
            }
        }
        context.now = end;
        // What was out of stock may be there again.
        for pool in self.pools.keys().cloned().collect::<Vec<_>>() {
            self.fill(&pool, Cause::Cloud, named, context);
        }
    }

    fn next_due(&self) -> Option<(UnixMs, String, Option<String>)> {
        let workers = |pool: &str, one: &Pool| {
            let due = |worker: &Worker| Some((worker.due()?, pool.to_owned(), Some(worker.id.clone())));
            one.workers.values().filter_map(due).collect::<Vec<_>>()
        };
        let of_pool = |(id, pool): (&String, &Pool)| {
            let replacements = pool.replacements.iter().map(|at| (*at, id.clone(), None));
            replacements.chain(workers(id, pool)).min()
        };
        self.pools.iter().filter_map(of_pool).min()
    }

    fn turn(&mut self, id: &str, worker: &str, context: &mut Context<'_>) {
        let Some(pool) = self.pools.get_mut(id) else { return };
        let Some(one) = pool.workers.get_mut(worker) else { return };
        match one.state {
            State::Pending(at) => {
                (one.state, one.started) = (State::Active, Some(at));
                context.event(Happening::Started, id, worker, Cause::Cloud, "");
            }
            State::Failing(_) => {
                one.state = State::Failed;
                context.event(Happening::Changed, id, worker, Cause::Cloud, "failed");
            }
            State::Deleting(at) => {
                context.event(Happening::Gone, id, worker, Cause::Cloud, "");
                if let Some(worker) = pool.workers.remove(worker) {
                    self.gone.push((worker, id.to_owned(), at));
                }
            }
            State::Active | State::Failed => {}
        }
    }

    /// All workers that are not on their way out.
    pub fn staying(&self) -> u32 {
        self.pools.values().map(Pool::staying).sum()
    }
}

/// How new workers are named.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// By numbers.
    pub numeric: bool,
}

fn boot(chance: &mut Chance) -> Duration {
    chance.between(Duration::from_secs(60), Duration::from_secs(180))
}
