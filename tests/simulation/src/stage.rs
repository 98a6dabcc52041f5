//! Plays a scenario.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_core::plan::{NodeOutcome, PodOutcome};
use plimsoll_core::{Memory, Observation, Plan};
use plimsoll_driver::{Clouds, Driver, lock, simulated};
use plimsoll_model::Time;
use plimsoll_plugins::cache::CompileCache;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::egress::{Grant, NetworkGrants, Transport};
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Nobody;
use plimsoll_plugins::plugin::Plugin;
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::restart::RestartPolicy;
use plimsoll_plugins::{HostOptions, Library, PluginHost, Provider};
use plimsoll_provider_simulated::wire;
use plimsoll_recording::Recorder;
use plimsoll_sim::World;
use plimsoll_sim::cloud::{Pool, Stock};
use plimsoll_sim::events::What;

use crate::cloud;
use crate::end;
use crate::faults::{Calls, Faults, Order};
use crate::orders::Protected;
use crate::scenario::{Event, SETTLING, Scenario};
use crate::server::{Disk, Server};
use crate::violation::{Invariant, Violation};

pub(crate) const SCAN: Duration = Duration::from_secs(10);
/// Longest pause while nothing happens: shorter than a read stays fresh.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(240);
/// Every run begins then.
pub(crate) const BEGIN_MILLIS: i64 = 1_767_200_400_000;

/// What all runs share: compiled components.
#[derive(Clone, Debug)]
pub struct Components {
    pub(crate) cache: CompileCache,
}

impl Components {
    /// Compiled components are kept in this folder.
    ///
    /// # Errors
    ///
    /// If the folder cannot be used.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let cache = CompileCache::open(folder).context("the folder for compiled components cannot be used")?;
        Ok(Self { cache })
    }
}

/// What a run that broke nothing did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Loops.
    pub loops: u64,
    /// Orders for more machines that the cloud took.
    pub increases: u64,
    /// Orders for a lower target that the cloud took.
    pub decreases: u64,
    /// Orders to delete machines that the cloud took.
    pub deletions: u64,
    /// How often the process was killed.
    pub kills: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.loops += other.loops;
        self.increases += other.increases;
        self.decreases += other.decreases;
        self.deletions += other.deletions;
        self.kills += other.kills;
    }
}

/// Plays a scenario to its end, or to the first invariant that is broken. `tell` gets every line of what happens, `recorder`
/// every loop.
///
/// # Errors
///
/// If the components cannot be set up, which is no finding.
pub(crate) fn play(
    components: &Components,
    scenario: &Scenario,
    tell: Option<fn(&str)>,
    recorder: Option<Recorder>,
) -> anyhow::Result<Result<Report, Violation>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let mut stage = Stage::set_up(components, scenario, tell).await?;
        stage.driver.recorder = recorder;
        stage.play().await?;
        let found = stage.faults.lock().violation();
        Ok(found.map_or(Ok(stage.report), Err))
    })
}

struct Stage<'s> {
    scenario: &'s Scenario,
    next: usize,
    begun: Time,
    world: Arc<Mutex<World>>,
    clock: Arc<VirtualClock>,
    faults: Faults,
    server: Server,
    disk: Disk,
    host: PluginHost,
    plugin: Plugin,
    transport: Arc<dyn Transport>,
    driver: Driver,
    /// How many seconds the process's clock is ahead, and until when.
    ahead: Option<(i64, Time)>,
    /// Nodes that answer again at a time.
    waking: Vec<(Time, usize)>,
    /// Second nodes of machines, and when they are gone again.
    twins: Vec<(Time, usize, String)>,
    /// When the provider's component is back, if it was taken away.
    back: Option<Time>,
    rng: fastrand::Rng,
    calm: bool,
    shrunk: Option<Time>,
    tell: Option<fn(&str)>,
    report: Report,
}

impl<'s> Stage<'s> {
    async fn set_up(components: &Components, scenario: &'s Scenario, tell: Option<fn(&str)>) -> anyhow::Result<Self> {
        let begun = Time::from_millis(BEGIN_MILLIS);
        let clock = Arc::new(VirtualClock::new(begun));
        let mut options = HostOptions::deterministic(clock.clone(), scenario.seed, Arc::new(Nobody));
        options.cache = Some(components.cache.clone());
        let host = PluginHost::new(options).context("no plug-in host")?;
        let source = simulated::source(plimsoll_bundled::SIMULATED_PROVIDER);
        let plugin = host.load(source, None).await.context("the provider cannot be loaded")?;
        let embedded = LibraryOptions { embedded: plimsoll_bundled::EXPANDERS.to_vec(), ..LibraryOptions::default() };
        let library = Library::open(&host, &scenario.settings.expander, embedded).await;

        let world = Arc::new(Mutex::new(end::world(scenario, begun)?));
        let faults = Faults::default();
        faults.lock().begin(begun);
        let machines: Vec<String> = {
            let world = lock(&world);
            world.pools.iter().flat_map(|pool| &pool.machines).map(|machine| machine.id.clone()).collect()
        };
        faults.lock().books.begin_with(machines.into_iter());
        let protected: Protected =
            Arc::new(scenario.workloads.iter().map(|workload| (workload.name.clone(), workload.hold)).collect());
        let transport: Arc<dyn Transport> = Arc::new(cloud::transport(world.clone(), faults.clone(), protected));
        let server = Server { world: world.clone(), faults: faults.clone() };
        let disk = Disk { faults: faults.clone(), ..Disk::default() };
        let driver = Driver::new(scenario.settings.clone(), Clouds::new(vec![]), library);
        let mut stage = Self {
            scenario,
            next: 0,
            begun,
            world,
            clock,
            faults,
            server,
            disk,
            host,
            plugin,
            transport,
            driver,
            ahead: None,
            waking: vec![],
            twins: vec![],
            back: None,
            rng: fastrand::Rng::with_seed(scenario.seed),
            calm: false,
            shrunk: None,
            tell,
            report: Report::default(),
        };
        stage.driver.clouds = Clouds::new(vec![stage.provider()?]);
        Ok(stage)
    }

    /// A fresh instance of the provider.
    fn provider(&self) -> anyhow::Result<Provider> {
        let config = serde_json::json!({"endpoint": wire::ENDPOINT, "accelerator-label": end::GPU_LABEL});
        let setup = Setup { cloud_config: Some(config.to_string()), ..Setup::default() };
        let mut options = ProviderOptions::new(setup, self.transport.clone());
        options.restarts = RestartPolicy::immediate();
        options.limits.memory_bytes = cloud::COMPONENT_BYTES;
        let grant = Grant::parse(wire::ENDPOINT, false).context("the grant is wrong")?;
        options.grants = NetworkGrants { hosts: vec![grant], ..NetworkGrants::default() };
        Provider::spawn(&self.host, &self.plugin, options).context("the provider cannot be started")
    }

    fn found(&self) -> bool {
        self.faults.lock().violation().is_some()
    }

    async fn play(&mut self) -> anyhow::Result<()> {
        let end = self.begun + self.scenario.length;
        let mut now = self.begun;
        let mut pause = SCAN;
        while now < end && !self.found() {
            let moved = self.move_on(now)?;
            let acted = self.turn(now).await?;
            let busy = moved || acted || !self.driver.memory.removals.is_empty();
            pause = if busy { SCAN } else { (pause * 2).min(LONGEST_PAUSE) };
            now = self.next_look(now, pause);
        }
        if !self.found() {
            end::check(self.scenario, &lock(&self.world), &self.faults);
        }
        Ok(())
    }

    /// When the next loop is: not later than shortly after something is due.
    fn next_look(&self, now: Time, pause: Duration) -> Time {
        let event = self.scenario.events.get(self.next).map(|(_, at, _)| self.begun + *at);
        let due = lock(&self.world).next_due();
        let quiet = (!self.calm).then_some(self.begun + self.scenario.quiet_from);
        let soonest = [event, due, quiet].into_iter().flatten().min();
        let wanted = now + pause;
        soonest.map_or(wanted, |soonest| wanted.min(soonest)).max(now + SCAN)
    }

    /// Lets everything happen that is due by now; says whether anything did.
    fn move_on(&mut self, now: Time) -> anyhow::Result<bool> {
        let mut moved = false;
        while let Some(&(number, at, event)) = self.scenario.events.get(self.next) {
            let at = self.begun + at;
            if at > now {
                break;
            }
            self.next += 1;
            lock(&self.world).advance_to(at);
            self.faults.lock().at(at);
            if let Some(say) = self.tell {
                say(&format!("{}  event {number}: {event:?}", end::clock(at.since(self.begun))));
            }
            self.happen(at, event)?;
            moved = true;
        }
        if !self.calm && now >= self.begun + self.scenario.quiet_from {
            self.calm_down();
        }
        let world = self.world.clone();
        let mut world = lock(&world);
        for (_, pool) in self.waking.extract_if(.., |(at, _)| *at <= now) {
            world.set_ready(pool, true);
        }
        for (_, pool, name) in self.twins.extract_if(.., |(at, ..)| *at <= now) {
            let group = world.pools.get(pool).map(|pool| pool.id.clone()).unwrap_or_default();
            world.leave(&name, &group);
        }
        if self.back.take_if(|at| *at <= now).is_some() {
            self.driver.clouds.replace(self.provider()?);
        }
        if self.ahead.take_if(|(_, until)| *until <= now).is_some() {
            let mut state = self.faults.lock();
            state.clock_is_off = false;
            state.books.muddle_all();
        }
        world.advance_to(now);
        self.faults.lock().at(now);
        self.clock.set(now);
        let happened = world.take_happened();
        for gone in &happened {
            if let What::NodeGone { node, .. } = &gone.what {
                let mut state = self.faults.lock();
                if let Some((invariant, seen)) = state.books.check_gone(node) {
                    state.found(invariant, seen);
                }
            }
        }
        if let Some(say) = self.tell {
            for happened in &happened {
                say(&format!("{}  {:?}", end::clock(happened.at.since(self.begun)), happened.what));
            }
        }
        Ok(moved || !happened.is_empty())
    }

    fn calm_down(&mut self) {
        self.calm = true;
        self.faults.lock().calm();
        self.ahead = None;
        if let Some(back) = &mut self.back {
            *back = (*back).min(self.begun + self.scenario.quiet_from);
        }
        for (at, ..) in &mut self.twins {
            *at = (*at).min(self.begun + self.scenario.quiet_from);
        }
        let mut world = lock(&self.world);
        for (index, plan) in self.scenario.pools.iter().enumerate() {
            world.set_ready(index, true);
            if let Some(pool) = world.pools.get_mut(index) {
                pool.stock = Stock::Plenty;
                pool.deaf = 0;
                pool.late.0 = 0;
                pool.boot = plan.boot;
            }
        }
    }

    fn happen(&mut self, now: Time, event: Event) -> anyhow::Result<()> {
        let mut world = lock(&self.world);
        let mut state = self.faults.lock();
        match event {
            Event::Scale { workload, replicas } => {
                let name = world.workloads.get(workload).map(|workload| workload.name.clone());
                world.scale(&name.unwrap_or_default(), replicas);
            }
            Event::Stock { pool, stock } => {
                if let Some(pool) = world.pools.get_mut(pool) {
                    pool.stock = stock;
                }
            }
            Event::Boot { pool, takes } => {
                if let Some(pool) = world.pools.get_mut(pool) {
                    pool.boot = takes;
                }
            }
            Event::Deaf { pool, count } => {
                if let Some(pool) = world.pools.get_mut(pool) {
                    pool.deaf = count;
                }
            }
            Event::Late { pool, count, after } => {
                if let Some(pool) = world.pools.get_mut(pool) {
                    pool.late = (count, after);
                }
            }
            Event::Twin { pool, lasts } => {
                let twin = world.register_again(pool);
                state.books.taken(twin.clone());
                self.twins.extend(twin.map(|name| (now + lasts, pool, name)));
            }
            Event::Lose { pool } => {
                state.books.muddle(&format!("pool-{pool}"));
                state.books.taken(world.lose_machine(pool));
            }
            Event::RaiseByHand { pool, count } => {
                state.books.muddle(&format!("pool-{pool}"));
                world.raise_by_hand(pool, count);
            }
            Event::DeleteByHand { pool } => {
                state.books.muddle(&format!("pool-{pool}"));
                state.books.taken(world.delete_by_hand(pool));
            }
            Event::MarkByHand { pool } => world.mark_by_hand(pool),
            Event::Silent { pool, lasts } => {
                world.set_ready(pool, false);
                self.waking.push((now + lasts, pool));
            }
            Event::Reads { fault, lasts } => state.set_reads(fault, lasts),
            Event::Writes { fault, lasts } => state.set_writes(fault, lasts),
            Event::Api { fault, lasts } => state.set_api(fault, lasts),
            Event::Evictions { lasts } => state.set_evictions(lasts),
            Event::Kill { moment, steps } => state.kill_in(moment, steps),
            Event::Lease { lasts } => state.set_lease(lasts),
            Event::Clock { by, lasts } => {
                self.ahead = Some((by, now + lasts));
                state.clock_is_off = true;
                state.books.muddle_all();
            }
            Event::Replace => {
                drop((world, state));
                if self.back.is_none() {
                    let provider = self.provider()?;
                    self.driver.clouds.replace(provider);
                }
            }
            Event::Remove { lasts } => {
                self.driver.clouds = Clouds::new(vec![]);
                self.back = Some(now + lasts);
            }
            Event::Meanwhile { workload, more } => state.meanwhile = Some((workload, more)),
            Event::Squeeze { workload, at } => state.squeeze = Some((workload, at)),
        }
        Ok(())
    }

    /// One loop, sometimes followed by another that sees the same; says whether it did anything.
    async fn turn(&mut self, now: Time) -> anyhow::Result<bool> {
        let undisturbed = self.faults.lock().none();
        let (acted, first) = self.one_turn(now).await?;
        // Groups that shrank have room that they had not.
        if undisturbed
            && first.deletions == 0
            && self.rng.u8(0..8) == 0
            && self.faults.lock().none()
            && !self.has_news()
            && !self.found()
        {
            let (_, calls) = self.one_turn(now).await?;
            if calls.orders > 0 || calls.marks > 0 {
                self.faults.found(Invariant::SecondLoopIsIdle, format!("{calls:?}"));
            }
        }
        Ok(acted)
    }

    /// Whether the cloud has something to tell that it did not before the loop: what it was asked for will not come.
    fn has_news(&self) -> bool {
        lock(&self.world).pools.iter().any(|pool| pool.unfulfilled() > 0)
    }

    async fn one_turn(&mut self, now: Time) -> anyhow::Result<(bool, Calls)> {
        {
            let mut state = self.faults.lock();
            state.calls = Default::default();
            state.orders.clear();
        }
        self.report.loops += 1;
        let ahead = self.ahead.map_or(0, |(ahead, _)| ahead);
        let (faults, tell, begun) = (self.faults.clone(), self.tell, self.begun);
        let look = |plan: &Plan, observation: &Observation<'_>, _: &Memory| {
            check_reasons(plan, observation, &faults);
            if let Some(say) = tell {
                end::tell(say, plan, observation, now.since(begun));
            }
        };
        let turn = self.driver.turn(Time::from_millis(now.millis() + 1000 * ahead), &self.server, &mut self.disk, look);
        let ended = tokio::select! {
            biased;
            () = self.faults.killed() => false,
            turned = turn => {
                if let Some(say) = self.tell {
                    for trouble in turned.troubles.iter().cloned().chain(turned.plan.warnings.iter().map(ToString::to_string)) {
                        say(&format!("{}  warning: {trouble}", end::clock(now.since(self.begun))));
                    }
                }
                true
            }
        };
        if !ended {
            self.start_again(now)?;
        }
        let (calls, orders) = {
            let mut state = self.faults.lock();
            (state.calls, std::mem::take(&mut state.orders))
        };
        self.check_calls(calls);
        self.check_counted();
        self.check_wishes(now);
        self.check_flapping(now, &orders);
        for order in &orders {
            match order {
                Order::Increase => self.report.increases += 1,
                Order::Decrease => self.report.decreases += 1,
                Order::Delete => self.report.deletions += 1,
            }
        }
        let acted = calls.orders > 0 || calls.api > 0;
        if acted && self.calm && now.since(self.begun) > self.scenario.quiet_from + SETTLING {
            self.faults.found(Invariant::ComesToRest, format!("still {calls:?}"));
        }
        Ok((acted || !ended, calls))
    }

    /// The process was killed: another one starts with what is on the disk.
    fn start_again(&mut self, now: Time) -> anyhow::Result<()> {
        if let Some(say) = self.tell {
            say(&format!("{}  the process is killed and starts again", end::clock(now.since(self.begun))));
        }
        self.report.kills += 1;
        self.driver.memory = self.disk.restore()?;
        let here = self.back.is_none().then(|| self.provider()).transpose()?;
        self.driver.clouds = Clouds::new(here.into_iter().collect());
        Ok(())
    }

    /// What was asked for and is on its way is counted on.
    fn check_counted(&self) {
        let world = lock(&self.world);
        let mut state = self.faults.lock();
        if state.clock_is_off {
            return;
        }
        let counted = |pool: &Pool| self.driver.memory.ledger.outstanding(&pool.id.as_str().into());
        let found = world.pools.iter().find_map(|pool| state.books.check_counted(&world, pool, counted(pool)));
        if let Some((invariant, seen)) = found {
            state.found(invariant, seen);
        }
    }

    /// What the cloud cannot make is not left with it.
    fn check_wishes(&self, now: Time) {
        let world = lock(&self.world);
        let mut state = self.faults.lock();
        let undisturbed = state.none() && self.back.is_none();
        let found: Vec<_> =
            world.pools.iter().filter_map(|pool| state.books.check_wishes(pool, now, undisturbed)).collect();
        for (invariant, seen) in found {
            state.found(invariant, seen);
        }
    }

    fn check_calls(&self, calls: Calls) {
        let world = lock(&self.world);
        let size = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (pools, nodes, pods) =
            (size(world.pools.len()), size(world.cluster.nodes.len()), size(world.cluster.pods.len()));
        if calls.reads > 6 || calls.orders > 4 * pools + 4 || calls.api > 4 * nodes + pods + 8 {
            self.faults
                .found(Invariant::CallsBounded, format!("{calls:?} with {pools} pools, {nodes} nodes, {pods} pods"));
        }
    }

    fn check_flapping(&mut self, now: Time, orders: &[Order]) {
        if !self.calm || now.since(self.begun) < self.scenario.quiet_from + Duration::from_secs(3600) {
            return;
        }
        if orders.contains(&Order::Increase)
            && let Some(shrunk) = self.shrunk
        {
            let ago = now.since(shrunk).as_secs();
            self.faults.found(Invariant::NoFlapping, format!("a node is asked for {ago}s after another was deleted"));
        }
        if orders.contains(&Order::Delete) {
            self.shrunk = Some(now);
        }
    }
}

/// Every pending pod and every idle node that stays has a reason.
pub(crate) fn check_reasons(plan: &Plan, observation: &Observation<'_>, faults: &Faults) {
    let cluster = observation.cluster;
    let pending = cluster.pods.iter().enumerate().filter(|(_, pod)| pod.node.is_none() && pod.deletion.is_none());
    for (index, pod) in pending {
        let outcome = plan.pods.iter().find(|(of, _)| *of == index).map(|(_, outcome)| outcome);
        let explained = match outcome {
            None => false,
            Some(PodOutcome::NotHelped) => {
                let of_class = plan.not_helped.iter().find(|class| class.pods.contains(&index));
                of_class.is_some_and(|class| class.reasons.len() == observation.groups.len())
            }
            Some(_) => true,
        };
        if !explained {
            let seen = format!("{} has the outcome {outcome:?} without a reason for each group", cluster.pod_name(pod));
            faults.found(Invariant::EverythingHasAReason, seen);
        }
    }
    for (index, node) in cluster.nodes.iter().enumerate() {
        let verdict = plan.nodes.iter().find(|verdict| verdict.node == index);
        let explained = verdict.is_some_and(|verdict| {
            !matches!(verdict.outcome, NodeOutcome::Blocked | NodeOutcome::Unneeded) || !verdict.reasons.is_empty()
        });
        if !explained {
            let seen = format!("node {} has the verdict {verdict:?}", cluster.text(node.name));
            faults.found(Invariant::EverythingHasAReason, seen);
        }
    }
}
