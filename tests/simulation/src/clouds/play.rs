//! Plays a scenario in front of the fake of a cloud.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_core::cloud::{GroupId, NodeTemplate};
use plimsoll_core::observation::CloudView;
use plimsoll_core::templates::fresh_node;
use plimsoll_core::{Memory, Observation, Plan};
use plimsoll_driver::{Api, Clouds, Driver, lock};
use plimsoll_model::pod::OwnerKind;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, Pod, Time};
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::NetworkGrants;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Nobody;
use plimsoll_plugins::plugin::{Kind, Plugin};
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::restart::RestartPolicy;
use plimsoll_plugins::{HostOptions, Library, Origin, PluginHost, Provider, Source};
use plimsoll_recording::Recorder;
use plimsoll_sim::World;
use plimsoll_tests_clouds::utho::TOKEN;

use super::events::Event;
use super::scenario::{GroupPlan, Scenario, Vendor};
use super::sky::{CLUSTER, Sky, Watch};
use crate::end;
use crate::faults::{Faults, Order};
use crate::orders::Protected;
use crate::scenario::{SETTLING, is_of};
use crate::server::{Disk, Server};
use crate::stage::{BEGIN_MILLIS, Components, LONGEST_PAUSE, Report, SCAN, check_reasons};
use crate::violation::{Invariant, Violation};

/// From a registered node to a ready one.
const WARM_UP: Duration = Duration::from_secs(10);
/// A machine that is no node after so long should be gone.
const LONG_UNREGISTERED: Duration = Duration::from_secs(3600);

/// Plays a scenario to its end, or to the first invariant that is broken. `tell` gets every line of what happens, `recorder`
/// every loop.
///
/// # Errors
///
/// If the components or the fake cannot be set up, which is no finding.
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
        let found = stage.watch.faults.lock().violation();
        Ok(found.map_or(Ok(stage.report), Err))
    })
}

/// The cluster as the loop sees it; what the provider says of new nodes is kept for those that come.
struct Kubernetes {
    server: Server,
    shapes: Mutex<BTreeMap<GroupId, NodeTemplate>>,
}

impl Api for Kubernetes {
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        self.server.with(look)
    }

    fn follow(&self, clouds: CloudView<'_>) {
        let mut shapes = lock(&self.shapes);
        for (group, templates) in clouds.templates {
            if let Some(template) = templates.as_ref().ok().and_then(|all| all.first()) {
                shapes.insert(group.clone(), template.clone());
            }
        }
    }

    fn fence(&self) -> Result<(), String> {
        self.server.fence()
    }

    async fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        self.server.taint(node, cordon).await
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        self.server.untaint(node, uncordon).await
    }

    async fn evict(&self, cluster: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        self.server.evict(cluster, pod, grace).await
    }
}

struct Stage<'s> {
    scenario: &'s Scenario,
    next: usize,
    begun: Time,
    clock: Arc<VirtualClock>,
    watch: Watch,
    cluster: Kubernetes,
    disk: Disk,
    host: PluginHost,
    plugin: Plugin,
    options: ProviderOptions,
    driver: Driver,
    /// What is over at a time.
    healing: Vec<(Time, Event)>,
    /// When each machine was first seen.
    seen: BTreeMap<String, Time>,
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
        let name = scenario.vendor.name();
        let (_, bytes) = plimsoll_bundled::PROVIDERS
            .iter()
            .find(|(known, _)| *known == name)
            .with_context(|| format!("the provider {name} is not embedded"))?;
        let kind = Some(Kind::CloudProvider);
        let source = Source { name: name.into(), origin: Origin::BuiltIn, kind, bytes: (*bytes).into() };
        let plugin = host.load(source, None).await.context("the provider cannot be loaded")?;
        let embedded = LibraryOptions { embedded: plimsoll_bundled::EXPANDERS.to_vec(), ..LibraryOptions::default() };
        let library = Library::open(&host, &scenario.settings.expander, embedded).await;

        let faults = Faults::default();
        faults.lock().begin(begun);
        let protected: Protected =
            Arc::new(scenario.workloads.iter().map(|workload| (workload.name.clone(), workload.hold)).collect());
        let watch = Watch {
            sky: Arc::new(Mutex::new(Sky::over(scenario, begun)?)),
            world: Arc::new(Mutex::new(end::cluster(&scenario.workloads, World::new(begun))?)),
            faults: faults.clone(),
            protected,
            most: Arc::new(scenario.groups.iter().map(|group| (group.id.clone(), group.max)).collect()),
        };
        let server = Server { world: watch.world.clone(), faults: faults.clone() };
        let driver = Driver::new(scenario.settings.clone(), Clouds::new(vec![]), library);
        let options = provider_options(scenario, &watch, &clock)?;
        let mut stage = Self {
            scenario,
            next: 0,
            begun,
            clock,
            watch,
            cluster: Kubernetes { server, shapes: Mutex::default() },
            disk: Disk { faults, ..Disk::default() },
            host,
            plugin,
            options,
            driver,
            healing: vec![],
            seen: BTreeMap::new(),
            calm: false,
            shrunk: None,
            tell,
            report: Report::default(),
        };
        stage.driver.clouds = Clouds::new(vec![stage.provider()?]);
        Ok(stage)
    }

    fn provider(&self) -> anyhow::Result<Provider> {
        Provider::spawn(&self.host, &self.plugin, self.options.clone()).context("the provider cannot be started")
    }

    fn say(&self, at: Time, text: &str) {
        if let Some(say) = self.tell {
            say(&format!("{}  {text}", end::clock(at.since(self.begun))));
        }
    }

    fn found(&self) -> bool {
        self.watch.faults.lock().violation().is_some()
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
            self.check_end(now);
        }
        Ok(())
    }

    /// When the next loop is: not later than shortly after something is due.
    fn next_look(&self, now: Time, pause: Duration) -> Time {
        let event = self.scenario.events.get(self.next).map(|(_, at, _)| self.begun + *at);
        let due = lock(&self.watch.world).next_due();
        let healing = self.healing.iter().map(|(at, _)| *at).min();
        let quiet = (!self.calm).then_some(self.begun + self.scenario.quiet_from);
        let soonest = [event, due, healing, quiet].into_iter().flatten().min();
        let wanted = now + pause;
        soonest.map_or(wanted, |soonest| wanted.min(soonest)).max(now + SCAN)
    }

    /// Lets everything happen that is due by now; says whether anything did.
    fn move_on(&mut self, now: Time) -> anyhow::Result<bool> {
        let mut moved = false;
        while let Some((number, at, event)) = self.scenario.events.get(self.next).cloned() {
            let at = self.begun + at;
            if at > now {
                break;
            }
            self.next += 1;
            self.advance(at);
            self.say(at, &format!("event {number}: {event:?}"));
            self.happen(at, &event)?;
            moved = true;
        }
        let over: Vec<_> = self.healing.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, event) in over {
            lock(&self.watch.sky).heal(&event, self.scenario)?;
        }
        if !self.calm && now >= self.begun + self.scenario.quiet_from {
            self.calm = true;
            self.healing.clear();
            self.watch.faults.lock().calm();
            lock(&self.watch.sky).calm(self.scenario)?;
        }
        self.advance(now);
        let happened = lock(&self.watch.world).take_happened();
        for happened in &happened {
            self.say(happened.at, &format!("{:?}", happened.what));
        }
        Ok(moved || !happened.is_empty())
    }

    /// Time passes in the cloud and in the cluster, and nodes come and go with their machines.
    fn advance(&mut self, now: Time) {
        self.watch.faults.lock().at(now);
        self.clock.set(now);
        lock(&self.watch.world).advance_to(now);
        self.watch.advance(now);
        let (nodes, sizes) = {
            let sky = lock(&self.watch.sky);
            (sky.nodes(), sky.sizes())
        };
        for machine in sizes.iter().flat_map(|size| &size.machines) {
            self.seen.entry(machine.clone()).or_insert(now);
        }
        let mut world = lock(&self.watch.world);
        let there: Vec<String> =
            world.cluster.nodes.iter().map(|node| world.cluster.text(node.name).to_owned()).collect();
        for name in there.iter().filter(|name| nodes.iter().all(|node| node.name != **name)) {
            world.leave(name, "");
        }
        let shapes = lock(&self.cluster.shapes);
        for node in nodes.iter().filter(|node| !there.contains(&node.name)) {
            let Some(shape) = shapes.get(&GroupId::from(node.group.as_str())) else { continue };
            if let Ok(made) = self.node(&mut world, node, shape) {
                world.join(made, &node.group, WARM_UP);
            }
        }
        world.settle();
    }

    /// A node as its machine registers it.
    fn node(
        &self,
        world: &mut World,
        node: &plimsoll_tests_clouds::Node,
        shape: &NodeTemplate,
    ) -> anyhow::Result<Node> {
        let mut shape = shape.clone();
        shape.labels.push(("kubernetes.io/hostname".to_owned(), node.name.clone()));
        if self.scenario.vendor == Vendor::Utho {
            shape.labels.push(("node_id".to_owned(), node.machine.clone()));
            shape.labels.push(("cluster_id".to_owned(), CLUSTER.to_owned()));
        }
        let mut made = fresh_node(&shape, &node.name, &mut world.cluster).context("the template cannot be read")?;
        made.uid = node.name.as_str().into();
        made.created_at = Some(world.now());
        made.provider_id = node.provider_id.as_deref().unwrap_or_default().into();
        Ok(made)
    }

    fn happen(&mut self, now: Time, event: &Event) -> anyhow::Result<()> {
        lock(&self.watch.sky).happen(event, self.scenario)?;
        match event {
            Event::Scale { workload, replicas } => {
                let mut world = lock(&self.watch.world);
                let name = world.workloads.get(*workload).map(|workload| workload.name.clone());
                world.scale(&name.unwrap_or_default(), *replicas);
            }
            Event::Quota { lasts, .. } | Event::Ill { lasts, .. } => self.healing.push((now + *lasts, event.clone())),
            Event::Api { fault, lasts } => self.watch.faults.lock().set_api(*fault, *lasts),
            Event::Evictions { lasts } => self.watch.faults.lock().set_evictions(*lasts),
            Event::Kill { moment, steps } => self.watch.faults.lock().kill_in(*moment, *steps),
            Event::Lease { lasts } => self.watch.faults.lock().set_lease(*lasts),
            Event::Replace => {
                let provider = self.provider()?;
                self.driver.clouds.replace(provider);
            }
            Event::Trouble { .. } | Event::Stock { .. } | Event::Raise { .. } | Event::TakeAway { .. } => {}
        }
        Ok(())
    }

    /// One loop; says whether it did anything.
    async fn turn(&mut self, now: Time) -> anyhow::Result<bool> {
        {
            let mut state = self.watch.faults.lock();
            state.calls = Default::default();
            state.orders.clear();
        }
        self.report.loops += 1;
        let (faults, tell, begun) = (self.watch.faults.clone(), self.tell, self.begun);
        let look = |plan: &Plan, observation: &Observation<'_>, _: &Memory| {
            check_reasons(plan, observation, &faults);
            if let Some(say) = tell {
                end::tell(say, plan, observation, now.since(begun));
            }
        };
        let turn = self.driver.turn(now, &self.cluster, &mut self.disk, look);
        let turned = tokio::select! {
            biased;
            () = self.watch.faults.killed() => None,
            turned = turn => Some(turned),
        };
        match &turned {
            Some(turned) => {
                for trouble in
                    turned.troubles.iter().cloned().chain(turned.plan.warnings.iter().map(ToString::to_string))
                {
                    self.say(now, &format!("warning: {trouble}"));
                }
            }
            None => self.start_again(now)?,
        }
        let (calls, orders) = {
            let mut state = self.watch.faults.lock();
            (state.calls, std::mem::take(&mut state.orders))
        };
        self.check_calls(calls);
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
            self.watch.faults.found(Invariant::ComesToRest, format!("still {calls:?}"));
        }
        Ok(acted || turned.is_none())
    }

    /// The process was killed: another one starts with what is on the disk. What the host kept for the plug-in is lost.
    fn start_again(&mut self, now: Time) -> anyhow::Result<()> {
        self.say(now, "the process is killed and starts again");
        self.report.kills += 1;
        self.driver.memory = self.disk.restore()?;
        self.options = provider_options(self.scenario, &self.watch, &self.clock)?;
        self.driver.clouds = Clouds::new(vec![self.provider()?]);
        Ok(())
    }

    /// A read takes some requests for each group, and more when they are repeated; a write takes some more.
    fn check_calls(&self, calls: crate::faults::Calls) {
        let groups = u32::try_from(self.scenario.groups.len()).unwrap_or(u32::MAX);
        let nodes = u32::try_from(lock(&self.watch.world).cluster.nodes.len()).unwrap_or(u32::MAX);
        if calls.reads > 24 + 12 * groups + 4 * nodes || calls.orders > 4 * groups + nodes + 4 {
            self.watch.faults.found(Invariant::CallsBounded, format!("{calls:?} with {groups} groups, {nodes} nodes"));
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
            let seen = format!("a node is asked for {ago}s after another was deleted");
            self.watch.faults.found(Invariant::NoFlapping, seen);
        }
        if orders.contains(&Order::Delete) {
            self.shrunk = Some(now);
        }
    }

    /// What must be true once everything is calm.
    fn check_end(&self, now: Time) {
        let (sizes, nodes, manners) = {
            let sky = lock(&self.watch.sky);
            (sky.sizes(), sky.nodes(), sky.bad_manners())
        };
        if let Some(first) = manners.first() {
            let seen = format!("{first} ({} such requests)", manners.len());
            self.watch.faults.found(Invariant::GoodManners, seen);
        }
        let world = lock(&self.watch.world);
        for (plan, size) in self.scenario.groups.iter().filter_map(|plan| {
            let size = sizes.iter().find(|size| size.id == plan.id)?;
            Some((plan, size))
        }) {
            for machine in &size.machines {
                let node = nodes.iter().find(|node| node.machine == *machine).map(|node| node.name.as_str());
                self.check_machine(now, &world, plan, size.target, machine, node);
            }
        }
        self.check_pods(&world, &sizes);
    }

    fn check_machine(
        &self,
        now: Time,
        world: &World,
        plan: &GroupPlan,
        target: u32,
        machine: &str,
        node: Option<&str>,
    ) {
        let faults = &self.watch.faults;
        let cluster = &world.cluster;
        let name = node.and_then(|node| cluster.symbols.find(node));
        let Some(node) = cluster.nodes.iter().find(|node| Some(node.name) == name) else {
            let age = self.seen.get(machine).map_or(Duration::ZERO, |since| now.since(*since));
            if age > LONG_UNREGISTERED && target > plan.min {
                let seen = format!("{machine} of {} is no node after {}s", plan.id, age.as_secs());
                faults.found(Invariant::IdleNodesGo, seen);
            }
            return;
        };
        if node.taint(known::TO_BE_DELETED).is_some() || node.unschedulable {
            faults.found(Invariant::NoMarkLeft, format!("{machine} is still marked"));
        }
        let is_agent = |pod: &&plimsoll_model::Pod| pod.owner.is_some_and(|owner| owner.kind == OwnerKind::DaemonSet);
        let empty = cluster.pods.iter().filter(|pod| pod.node == name).all(|pod| is_agent(&pod));
        if empty && target > plan.min {
            let seen = format!("{machine} is empty, and {} has {target} of at least {}", plan.id, plan.min);
            faults.found(Invariant::IdleNodesGo, seen);
        }
    }

    fn check_pods(&self, world: &World, sizes: &[super::sky::Size]) {
        let most = self.scenario.settings.max_nodes_total;
        if most.is_some_and(|most| world.cluster.nodes.len() >= most as usize) {
            return;
        }
        for workload in &self.scenario.workloads {
            let of = |name: &str| is_of(name, &workload.name);
            let waits = |pod: &&plimsoll_model::Pod| pod.node.is_none() && pod.deletion.is_none() && of(&pod.name);
            let count = world.cluster.pods.iter().filter(waits).count();
            let fits = |plan: &&GroupPlan| {
                workload.cpu_milli + end::AGENT_CPU_MILLI <= plan.shape.cpu * 1000
                    && workload.memory_mib + end::AGENT_MEMORY_MIB <= plan.shape.memory_mib
                    && sizes.iter().any(|size| size.id == plan.id && size.target < plan.max)
            };
            if let (Some(plan), true) = (self.scenario.groups.iter().find(fits), count > 0) {
                let seen = format!("{count} pods of {} still wait, although {} could grow", workload.name, plan.id);
                self.watch.faults.found(Invariant::PodsAreHelped, seen);
            }
        }
    }
}

/// What an operator would write for this cloud.
fn provider_options(scenario: &Scenario, watch: &Watch, clock: &Arc<VirtualClock>) -> anyhow::Result<ProviderOptions> {
    let grants = match scenario.vendor {
        Vendor::AliCloud => {
            "plugins: {alicloud: {hosts: ['https://*.aliyuncs.com'], credentials: {api: {kind: alicloud-v3, hosts: \
             ['*.aliyuncs.com'], ram-role: {}}}}}"
        }
        Vendor::Utho => {
            "plugins: {utho: {hosts: ['https://api.utho.com'], credentials: {api: {kind: bearer, env: TOKEN, hosts: \
             [api.utho.com]}}}}"
        }
    };
    let network = Arc::new(watch.transport());
    let entry =
        PluginConfig::parse("plugins.yaml", grants).context("the grants are wrong")?.entry(scenario.vendor.name());
    let broker = Broker::new(clock.clone(), Environment::of([("TOKEN", TOKEN)]), network.clone());
    let node_groups = match scenario.vendor {
        Vendor::AliCloud => {
            scenario.groups.iter().map(|group| format!("{}:{}:{}", group.min, group.max, group.id)).collect()
        }
        // Its pools tell their limits themselves.
        Vendor::Utho => vec![],
    };
    let cloud_config = Some(lock(&watch.sky).cloud_config().to_string());
    let mut options = ProviderOptions::new(Setup { cloud_config, node_groups, ..Setup::default() }, network);
    options.restarts = RestartPolicy::immediate();
    options.grants =
        NetworkGrants::brokered(&entry, "plugins.yaml", vec![], &broker).map_err(|why| anyhow::anyhow!("{why}"))?;
    Ok(options)
}
