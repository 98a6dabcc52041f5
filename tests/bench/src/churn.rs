//! `churn`: times whole loops, from the read of the cloud to the decision, in a large cluster in which some hundred pods come
//! and go between two of them.
//!
//! Everything is the real thing but the network: the driver, the core, the provider's component with its JSON, the expander.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use fastrand::Rng;
use plimsoll_core::plan::PodOutcome;
use plimsoll_core::{Plan, Settings};
use plimsoll_driver::{Clouds, Driver, lock, simulated};
use plimsoll_model::convert::Kind as ObjectKind;
use plimsoll_model::pod::{Phase, Scheduling};
use plimsoll_model::{Pod, Time};
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Nobody;
use plimsoll_plugins::provider::Setup;
use plimsoll_plugins::{HostOptions, Library, PluginHost};
use plimsoll_provider_simulated::wire;
use plimsoll_sim::World;
use plimsoll_sim::cloud::Pool;

/// Times whole loops in a large cluster with ordinary churn.
#[derive(Parser)]
struct Arguments {
    /// Node groups.
    #[arg(long, default_value_t = 50)]
    groups: u32,
    /// Nodes in each.
    #[arg(long, default_value_t = 100)]
    nodes: u32,
    /// Pods on each.
    #[arg(long, default_value_t = 30)]
    pods: usize,
    /// Pods that go, and as many that come, between two loops.
    #[arg(long, default_value_t = 300)]
    churn: usize,
    /// Loops.
    #[arg(long, default_value_t = 41)]
    loops: usize,
    /// Milliseconds that the median should not exceed, and MiB that the process should not.
    #[arg(long, default_value_t = 150.0)]
    target_ms: f64,
    #[arg(long, default_value_t = 1024.0)]
    target_mib: f64,
}

const SCAN: Duration = Duration::from_secs(10);
const BEGIN_MILLIS: i64 = 1_767_200_400_000;
/// Kinds of pods; those of one kind differ in nothing that a scheduler looks at.
const KINDS: usize = 300;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&arguments))
}

async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begun = Time::from_millis(BEGIN_MILLIS);
    let mut cluster = Churn::new(arguments, begun)?;
    let mut driver = driver(&cluster.world, begun).await?;
    let mut spans: Vec<f64> = Vec::new();
    let mut now = begun;
    let (mut pending, mut unplaced, mut grown) = (0, 0, 0);
    for _ in 0..arguments.loops.max(2) {
        now = now + SCAN;
        cluster.churn(arguments.churn, now);
        let started = Instant::now();
        let turned = driver.turn(now, &*cluster.world, &mut (), |plan, _, _| count(plan)).await;
        spans.push(started.elapsed().as_secs_f64() * 1000.0);
        anyhow::ensure!(turned.troubles.is_empty(), "{}", turned.troubles.join("; "));
        let (waiting, left) = turned.seen;
        (pending, unplaced) = (pending + waiting, unplaced + left);
        grown += turned.plan.scale_up.len();
    }
    let first = spans.remove(0);
    spans.sort_by(f64::total_cmp);
    let median = spans.get(spans.len() / 2).copied().unwrap_or_default();
    let most = spans.last().copied().unwrap_or_default();
    let (nodes, pods) = {
        let world = lock(&cluster.world);
        (world.cluster.nodes.len(), world.cluster.pods.len())
    };
    let mib = peak_mib();
    let correct = pending > 0 && grown > 0 && unplaced == 0;
    let over = median > arguments.target_ms || mib > arguments.target_mib;
    let remark = match (correct, over) {
        (false, _) => "  WRONG",
        (true, true) => "  over target",
        (true, false) => "",
    };
    writeln!(
        std::io::stdout().lock(),
        "churn-{nodes}: {nodes} nodes, {pods} pods, {} groups, {} pods come and go in each loop; median {median:.1} ms, \
         longest {most:.1} ms, first {first:.1} ms, {mib:.0} MiB; {pending} pods waited, {grown} times a group grew{remark}",
        arguments.groups,
        arguments.churn
    )?;
    Ok(if correct { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Pods that wait for a node, and those of them that find none.
fn count(plan: &Plan) -> (usize, usize) {
    let left = plan.pods.iter().filter(|(_, outcome)| *outcome == PodOutcome::NotHelped).count();
    (plan.pods.len(), left)
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

struct Churn {
    world: Arc<Mutex<World>>,
    rng: Rng,
    /// A pod of each kind, to make others of; the last is as large as a node.
    kinds: Vec<Pod>,
    made: usize,
}

impl Churn {
    fn new(arguments: &Arguments, begun: Time) -> anyhow::Result<Self> {
        let mut world = World::new(begun);
        for index in 0..arguments.groups {
            let capacity = [("cpu", "16"), ("memory", "64Gi"), ("pods", "110")];
            let name = format!("group-{index:02}");
            let template = wire::Template {
                key: name.clone(),
                instance_type: format!("type-{}", index % 7),
                region: "bench".to_owned(),
                zone: Some(format!("zone-{}", index % 3)),
                capacity: capacity.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                ..wire::Template::default()
            };
            world.pools.push(Pool::new(&name, 0, arguments.nodes * 2, template));
        }
        for index in 0..world.pools.len() {
            world.start_with(index, arguments.nodes)?;
        }
        let mut kinds = Vec::new();
        for kind in 0..=KINDS {
            let milli = if kind == KINDS { 15_000 } else { 100 + 5 * (kind % 60) };
            kinds.push(pod(&mut world, kind, milli)?);
        }
        let mut churn = Self { world: Arc::new(Mutex::new(world)), rng: Rng::with_seed(7), kinds, made: 0 };
        let world = churn.world.clone();
        let mut world = lock(&world);
        let names: Vec<_> = world.cluster.nodes.iter().map(|node| node.name).collect();
        for name in names {
            for _ in 0..arguments.pods {
                let kind = churn.rng.usize(0..KINDS);
                let mut pod = churn.pod(kind, begun);
                (pod.node, pod.phase, pod.scheduling) = (Some(name), Phase::Running, Scheduling::Done);
                world.cluster.pods.push(pod);
            }
        }
        drop(world);
        Ok(churn)
    }

    fn pod(&mut self, kind: usize, now: Time) -> Pod {
        self.made += 1;
        let name = format!("pod-{}", self.made);
        let like = self.kinds.get(kind).or(self.kinds.first()).cloned();
        // There is a pod of each kind.
        let mut pod = like.unwrap_or_else(|| unreachable!("no kind of pod"));
        (pod.uid, pod.name, pod.created_at) = (name.as_str().into(), name.as_str().into(), Some(now));
        pod
    }

    /// Those who waited get the places of those who go; others come and wait. Now and then one comes that needs a node of
    /// its own.
    fn churn(&mut self, count: usize, now: Time) {
        let world = self.world.clone();
        let mut world = lock(&world);
        let mut free = Vec::new();
        for _ in 0..count {
            let at = self.rng.usize(0..world.cluster.pods.len());
            if world.cluster.pods.get(at).is_some_and(|pod| pod.node.is_some()) {
                free.extend(world.cluster.pods.swap_remove(at).node);
            }
        }
        let large = self.kinds.last().map(|pod| pod.spec);
        let waiting = world.cluster.pods.iter_mut().rev().filter(|pod| pod.node.is_none() && Some(pod.spec) != large);
        for (pod, node) in waiting.zip(free) {
            (pod.node, pod.phase, pod.scheduling) = (Some(node), Phase::Running, Scheduling::Done);
        }
        let large = self.rng.usize(0..10) == 0;
        for index in 0..count {
            let kind = if large && index == 0 { KINDS } else { self.rng.usize(0..KINDS) };
            let pod = self.pod(kind, now);
            world.cluster.pods.push(pod);
        }
        world.tick(now);
    }
}

/// A pending pod of a ReplicaSet.
fn pod(world: &mut World, kind: usize, milli: usize) -> anyhow::Result<Pod> {
    let owner = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("set-{kind}"), "uid": format!("set-{kind}"),
        "controller": true,
    });
    let requests = serde_json::json!({"cpu": format!("{milli}m"), "memory": format!("{}Mi", milli * 2)});
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("kind-{kind}"), "namespace": "default", "uid": format!("kind-{kind}"),
            "labels": {"app": format!("set-{kind}")}, "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    });
    ObjectKind::Pod.import_value(object, &mut world.cluster).context("a pod cannot be made")?;
    let set = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": format!("set-{kind}"), "namespace": "default", "uid": format!("set-{kind}")},
        "spec": {"replicas": 500, "selector": {"matchLabels": {"app": format!("set-{kind}")}}},
    });
    ObjectKind::ReplicaSet.import_value(set, &mut world.cluster).context("a ReplicaSet cannot be made")?;
    world.cluster.pods.pop().context("the pod was not read")
}

async fn driver(world: &Arc<Mutex<World>>, begun: Time) -> anyhow::Result<Driver> {
    let settings = Settings::default();
    let options = HostOptions::deterministic(Arc::new(VirtualClock::new(begun)), settings.seed, Arc::new(Nobody));
    let host = PluginHost::new(options).context("no plug-in host")?;
    let config = serde_json::json!({"endpoint": wire::ENDPOINT});
    let setup = Setup { cloud_config: Some(config.to_string()), ..Setup::default() };
    let network = simulated::transport(world.clone());
    let provider = simulated::provider(&host, plimsoll_bundled::SIMULATED_PROVIDER, network, setup).await?;
    let embedded = LibraryOptions { embedded: plimsoll_bundled::EXPANDERS.to_vec(), ..LibraryOptions::default() };
    let library = Library::open(&host, &settings.expander, embedded).await;
    Ok(Driver::new(settings, Clouds::new(vec![provider]), library))
}
