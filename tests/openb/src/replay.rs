//! The trace on the simulated cloud: pods come and go at their times, and the real loop with the real components decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_core::Settings;
use plimsoll_driver::{Clouds, Driver, lock, simulated};
use plimsoll_model::convert::Kind as ObjectKind;
use plimsoll_model::{SpecId, Symbol, Time};
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Nobody;
use plimsoll_plugins::provider::Setup;
use plimsoll_plugins::{HostOptions, Library, PluginHost};
use plimsoll_provider_simulated::wire;
use plimsoll_sim::World;
use plimsoll_sim::cloud::{MachineState, Pool};
use plimsoll_sim::events::What;
use plimsoll_sim::workload::Workload;

use crate::objects::{GPU, MODEL_LABEL, PODS_PER_NODE, group_name, pod};
use crate::trace::{Shape, Task};

/// Pause between loops while anything is under way, as `scan-interval` has it.
const SCAN: Duration = Duration::from_secs(10);
/// From the request for a machine to its node, and from its node to a ready one.
const BOOT: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_secs(10);
/// The trace begins then.
const BEGIN_MILLIS: i64 = 1_767_200_400_000;

/// What a run came to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Hours of machines, from the request until they are gone.
    pub node_hours: f64,
    /// Pods that got a node.
    pub served: usize,
    /// Pods that never got one.
    pub unserved: usize,
    /// From a pod's making to its binding, in seconds, sorted.
    pub waits: Vec<u64>,
    /// Evictions.
    pub evictions: usize,
    /// Machines that were asked for.
    pub machines: usize,
    /// Most machines at a time.
    pub most: usize,
    /// Loops.
    pub loops: usize,
}

impl Outcome {
    /// The wait that so many of a hundred pods do not exceed, in seconds.
    pub fn wait(&self, percent: usize) -> u64 {
        let at = (self.waits.len() * percent / 100).min(self.waits.len().saturating_sub(1));
        self.waits.get(at).copied().unwrap_or(0)
    }

    /// The mean wait, in seconds.
    #[allow(clippy::cast_precision_loss, reason = "seconds of some months")]
    pub fn mean_wait(&self) -> f64 {
        self.waits.iter().sum::<u64>() as f64 / self.waits.len().max(1) as f64
    }
}

/// Plays the trace under these settings.
///
/// # Errors
///
/// If the components or the trace's objects cannot be made.
pub fn play(shapes: &[(Shape, u32)], tasks: &[Task], settings: &Settings) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let mut stage = Stage::set_up(shapes, tasks, settings).await?;
        stage.play().await;
        Ok(stage.outcome)
    })
}

/// A pod comes or goes.
struct Event {
    at: Time,
    task: usize,
    comes: bool,
}

struct Stage<'t> {
    tasks: &'t [Task],
    specs: Vec<SpecId>,
    namespace: Symbol,
    events: Vec<Event>,
    next: usize,
    world: Arc<Mutex<World>>,
    clock: Arc<VirtualClock>,
    driver: Driver,
    /// When pods that have no node yet were made.
    waiting: BTreeMap<String, Time>,
    counted_until: Time,
    outcome: Outcome,
}

impl<'t> Stage<'t> {
    async fn set_up(shapes: &[(Shape, u32)], tasks: &'t [Task], settings: &Settings) -> anyhow::Result<Self> {
        let begun = Time::from_millis(BEGIN_MILLIS);
        let clock = Arc::new(VirtualClock::new(begun));
        let mut world = World::new(begun);
        for (shape, count) in shapes {
            let mut pool = Pool::new(&group_name(shape), 0, *count, template(shape));
            (pool.boot, pool.warm_up) = (BOOT, WARM_UP);
            world.pools.push(pool);
        }
        let mut specs = Vec::with_capacity(tasks.len());
        for task in tasks {
            ObjectKind::Pod.import_value(pod(task), &mut world.cluster).context("a pod cannot be made")?;
            let pod = world.cluster.pods.pop().context("the pod was not read")?;
            specs.push(pod.spec);
        }
        let namespace = world.cluster.symbols.intern("openb");
        let served = |task: &Task| shapes.iter().any(|(shape, _)| task.fits(shape));
        let mut events = Vec::new();
        for (index, task) in tasks.iter().enumerate().filter(|(_, task)| served(task)) {
            let Some((begin, end)) = task.span.filter(|(begin, end)| begin < end) else { continue };
            events.push(Event { at: begun + Duration::from_secs(begin), task: index, comes: true });
            events.push(Event { at: begun + Duration::from_secs(end), task: index, comes: false });
        }
        events.sort_by_key(|event| (event.at, event.comes));
        let world = Arc::new(Mutex::new(world));
        let driver = driver(&world, &clock, settings).await?;
        let (waiting, outcome) = (BTreeMap::new(), Outcome::default());
        Ok(Self {
            tasks,
            specs,
            namespace,
            events,
            next: 0,
            world,
            clock,
            driver,
            waiting,
            counted_until: begun,
            outcome,
        })
    }

    async fn play(&mut self) {
        let mut now = self.counted_until;
        while self.next < self.events.len() || self.is_busy() {
            self.move_on(now);
            self.outcome.loops += 1;
            let turned = self.driver.turn(now, &*self.world, &mut (), |plan, _, _| !plan.scale_up.is_empty()).await;
            let quiet = !turned.seen && self.driver.memory.removals.is_empty();
            now = self.next_look(now, quiet);
        }
        self.outcome.waits.sort_unstable();
        self.outcome.unserved = self.waiting.len();
        self.outcome.machines = lock(&self.world).pools.iter().map(|pool| pool.machines_made()).sum();
    }

    fn is_busy(&self) -> bool {
        !self.driver.memory.removals.is_empty() || lock(&self.world).pools.iter().any(|pool| !pool.machines.is_empty())
    }

    /// When the next loop is. While nothing changes, none decides anything else before one of its waits is over.
    fn next_look(&self, now: Time, quiet: bool) -> Time {
        let soon = now + SCAN;
        if !quiet {
            return soon;
        }
        let (memory, settings) = (&self.driver.memory, &self.driver.settings);
        let after = |since: i64, wait: Duration| Time::from_millis(since) + wait + SCAN;
        let idle = memory.unneeded_since_ms.values().map(|since| after(*since, settings.scale_down_unneeded_time));
        let cooled = memory.last_scale_up_ms.map(|since| after(since, settings.scale_down_delay_after_add));
        let deadlines = memory.ledger.increases().iter().map(|intent| after(intent.deadline_ms, SCAN));
        let backoffs = memory.backoff.values().map(|backoff| after(backoff.until_ms, SCAN));
        let due = lock(&self.world).next_due();
        let event = self.events.get(self.next).map(|event| event.at);
        let all = idle.chain(cooled).chain(deadlines).chain(backoffs).chain(due).chain(event);
        all.filter(|at| *at > now).min().map_or(soon, |at| at.max(soon))
    }

    /// Lets everything happen that is due by now.
    fn move_on(&mut self, now: Time) {
        let world = self.world.clone();
        let mut world = lock(&world);
        loop {
            let due = [world.next_due(), self.events.get(self.next).map(|event| event.at)];
            let Some(at) = due.into_iter().flatten().min().filter(|at| *at <= now) else { break };
            self.count(&world, at);
            while let Some(event) = self.events.get(self.next).filter(|event| event.at <= at) {
                let (task, comes) = (event.task, event.comes);
                self.next += 1;
                self.happen(&mut world, task, comes, at);
            }
            world.advance_to(at);
            self.note(&mut world);
        }
        self.count(&world, now);
        world.advance_to(now);
        self.note(&mut world);
        self.clock.set(now);
    }

    fn happen(&mut self, world: &mut World, task: usize, comes: bool, at: Time) {
        let (Some(of), Some(&spec)) = (self.tasks.get(task), self.specs.get(task)) else { return };
        if comes {
            world.workloads.push(Workload::deployment(self.namespace, &of.name, spec));
            world.scale(&of.name, 1);
            self.waiting.insert(of.name.clone(), at);
        } else {
            world.end(&of.name);
        }
    }

    /// Adds up what machines were there since the last look.
    #[allow(clippy::cast_precision_loss, reason = "seconds of some months")]
    fn count(&mut self, world: &World, until: Time) {
        let alive = |pool: &Pool| pool.machines.iter().filter(|it| it.state != MachineState::Failed).count();
        let machines: usize = world.pools.iter().map(alive).sum();
        self.outcome.node_hours += machines as f64 * until.since(self.counted_until).as_secs_f64() / 3600.0;
        self.outcome.most = self.outcome.most.max(machines);
        self.counted_until = self.counted_until.max(until);
    }

    fn note(&mut self, world: &mut World) {
        for happened in world.take_happened() {
            match happened.what {
                What::Bound(workload, _) => {
                    if let Some(made) = self.waiting.remove(&workload) {
                        self.outcome.waits.push(happened.at.since(made).as_secs());
                        self.outcome.served += 1;
                    }
                }
                What::Evicted(_) => self.outcome.evictions += 1,
                _ => {}
            }
        }
    }
}

fn template(shape: &Shape) -> wire::Template {
    let name = group_name(shape);
    let mut capacity: BTreeMap<String, String> = [
        ("cpu".to_owned(), format!("{}m", shape.cpu_milli)),
        ("memory".to_owned(), format!("{}Mi", shape.memory_mib)),
        ("pods".to_owned(), PODS_PER_NODE.to_string()),
    ]
    .into();
    let mut template = wire::Template {
        key: name.clone(),
        instance_type: name,
        region: "openb".to_owned(),
        ..wire::Template::default()
    };
    if shape.gpus > 0 {
        capacity.insert(GPU.to_owned(), shape.gpus.to_string());
        template.labels = [(MODEL_LABEL.to_owned(), shape.model.clone())].into();
    }
    template.capacity = capacity;
    template
}

async fn driver(world: &Arc<Mutex<World>>, clock: &Arc<VirtualClock>, settings: &Settings) -> anyhow::Result<Driver> {
    let options = HostOptions::deterministic(clock.clone(), settings.seed, Arc::new(Nobody));
    let host = PluginHost::new(options).context("no plug-in host")?;
    let config = serde_json::json!({"endpoint": wire::ENDPOINT, "accelerator-label": MODEL_LABEL});
    let setup = Setup { cloud_config: Some(config.to_string()), ..Setup::default() };
    let network = simulated::transport(world.clone());
    let provider = simulated::provider(&host, plimsoll_bundled::SIMULATED_PROVIDER, network, setup).await?;
    let embedded = LibraryOptions { embedded: plimsoll_bundled::EXPANDERS.to_vec(), ..LibraryOptions::default() };
    let library = Library::open(&host, &settings.expander, embedded).await;
    Ok(Driver::new(settings.clone(), Clouds::new(vec![provider]), library))
}
