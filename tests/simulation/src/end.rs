//! The world of a scenario, and what must be true of it once everything is calm. The checks here are plain arithmetic on what
//! the scenario says; they use nothing of the core.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_core::plan::{NodeOutcome, Place};
use plimsoll_core::{Observation, Plan};
use plimsoll_model::convert::Kind;
use plimsoll_model::pod::{OwnerKind, SafeToEvict};
use plimsoll_model::selector::{LabelSelector, Operator, Requirement};
use plimsoll_model::symbol::known;
use plimsoll_model::workload::{DaemonSet, PodDisruptionBudget};
use plimsoll_model::{SpecId, Time};
use plimsoll_provider_simulated::wire;
use plimsoll_sim::World;
use plimsoll_sim::cloud::{MachineState, Pool};
use plimsoll_sim::workload::Workload;

use crate::faults::Faults;
use crate::scenario::{Hold, PoolPlan, Scenario, WorkloadPlan, is_of};
use crate::violation::Invariant;

/// Label of a node with a GPU.
pub(crate) const GPU_LABEL: &str = "sim.plimsoll.dev/gpu";
const GPU: &str = "nvidia.com/gpu";
pub(crate) const AGENT_CPU_MILLI: i64 = 100;
pub(crate) const AGENT_MEMORY_MIB: i64 = 128;
/// A machine that is no node after so long should be gone.
const LONG_UNREGISTERED: Duration = Duration::from_secs(3600);

/// The world that a scenario begins with.
///
/// # Errors
///
/// If an object of it cannot be made.
pub(crate) fn world(scenario: &Scenario, begun: Time) -> anyhow::Result<World> {
    let mut world = World::new(begun);
    for plan in &scenario.pools {
        let mut pool = Pool::new(&plan.name, plan.min, plan.max, template(plan));
        pool.boot = plan.boot;
        pool.micros_per_hour = u64::try_from(plan.cpu * 30_000 + plan.memory_gib * 4_000).unwrap_or(0);
        world.pools.push(pool);
    }
    agent(&mut world)?;
    for (index, plan) in scenario.pools.iter().enumerate() {
        world.start_with(index, plan.min)?;
    }
    start(&scenario.workloads, &mut world)?;
    Ok(world)
}

/// A world without a cloud of its own, with these workloads and the DaemonSet.
///
/// # Errors
///
/// If an object of it cannot be made.
pub(crate) fn cluster(workloads: &[WorkloadPlan], mut world: World) -> anyhow::Result<World> {
    agent(&mut world)?;
    start(workloads, &mut world)?;
    Ok(world)
}

fn start(workloads: &[WorkloadPlan], world: &mut World) -> anyhow::Result<()> {
    for plan in workloads {
        let spec = pod_spec(world, plan)?;
        let namespace = world.cluster.symbols.intern("default");
        let mut workload = Workload::deployment(namespace, &plan.name, spec);
        match plan.hold {
            Hold::Free => {}
            Hold::Bare => workload.owner = None,
            Hold::LocalStorage => workload.drain.local_storage = Some(world.cluster.symbols.intern("data")),
            Hold::NotSafeToEvict => workload.drain.safe_to_evict = SafeToEvict::No,
            Hold::Budget => budget(world, &plan.name),
        }
        world.workloads.push(workload);
        world.scale(&plan.name, plan.replicas);
    }
    world.settle();
    world.take_happened();
    Ok(())
}

fn template(plan: &PoolPlan) -> wire::Template {
    let mut capacity: BTreeMap<String, String> = [
        ("cpu".to_owned(), plan.cpu.to_string()),
        ("memory".to_owned(), format!("{}Gi", plan.memory_gib)),
        ("pods".to_owned(), "110".to_owned()),
    ]
    .into();
    let mut template = wire::Template {
        key: format!("{}-1", plan.name),
        instance_type: format!("c{}m{}", plan.cpu, plan.memory_gib),
        region: "sim".to_owned(),
        zone: Some(plan.zone.to_owned()),
        ..wire::Template::default()
    };
    if plan.gpu {
        capacity.insert(GPU.to_owned(), "1".to_owned());
        template.labels = [(GPU_LABEL.to_owned(), "nvidia-t4".to_owned())].into();
        let taint = wire::Taint { key: GPU.to_owned(), value: "present".to_owned(), ..wire::Taint::default() };
        template.taints = vec![taint];
    }
    template.capacity = capacity;
    template
}

fn import(world: &mut World, object: serde_json::Value) -> anyhow::Result<SpecId> {
    Kind::Pod.import_value(object, &mut world.cluster).context("a pod cannot be made")?;
    let pod = world.cluster.pods.pop().context("the pod was not read")?;
    Ok(pod.spec)
}

fn pod_spec(world: &mut World, plan: &WorkloadPlan) -> anyhow::Result<SpecId> {
    let mut requests = serde_json::json!({
        "cpu": format!("{}m", plan.cpu_milli), "memory": format!("{}Mi", plan.memory_mib),
    });
    let mut spec = serde_json::json!({});
    if let (true, Some(requests)) = (plan.gpu, requests.as_object_mut()) {
        requests.insert(GPU.to_owned(), "1".into());
        spec = serde_json::json!({"tolerations": [{"key": GPU, "operator": "Exists"}]});
    }
    let containers = serde_json::json!([{"name": "main", "resources": {"requests": requests}}]);
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("containers".to_owned(), containers);
        if let Some(zone) = plan.zone {
            spec.insert("nodeSelector".to_owned(), serde_json::json!({"topology.kubernetes.io/zone": zone}));
        }
    }
    let metadata = serde_json::json!({"name": plan.name, "namespace": "default", "labels": {"app": plan.name}});
    import(world, serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// A DaemonSet on every node.
fn agent(world: &mut World) -> anyhow::Result<()> {
    let requests = serde_json::json!({"cpu": format!("{AGENT_CPU_MILLI}m"), "memory": format!("{AGENT_MEMORY_MIB}Mi")});
    let spec = import(
        world,
        serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent", "namespace": "kube-system"},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "resources": {"requests": requests}}],
            },
        }),
    )?;
    let (namespace, name) = (world.cluster.symbols.intern("kube-system"), world.cluster.symbols.intern("agent"));
    world.cluster.daemon_sets.push(DaemonSet { namespace, name, uid: name, spec, node_critical: false });
    Ok(())
}

fn budget(world: &mut World, app: &str) {
    let symbols = &mut world.cluster.symbols;
    let (namespace, key, value) = (symbols.intern("default"), symbols.intern("app"), symbols.intern(app));
    let selector = LabelSelector::All([Requirement { key, operator: Operator::In([value].into()) }].into());
    let budget = PodDisruptionBudget { namespace, name: value, selector: Some(selector), disruptions_allowed: 0 };
    world.protect(budget, 1);
}

/// What must be true once everything is calm.
pub(crate) fn check(scenario: &Scenario, world: &World, faults: &Faults) {
    check_pods(scenario, world, faults);
    for pool in &world.pools {
        check_pool(pool, world, faults);
    }
    for (plan, pool) in scenario.pools.iter().zip(&world.pools) {
        check_halves(scenario, plan, pool, world, faults);
    }
}

/// Two nodes of a pool that use little, whose pods may move and would fit on one of them: one should have gone.
fn check_halves(scenario: &Scenario, plan: &PoolPlan, pool: &Pool, world: &World, faults: &Faults) {
    if plan.gpu || pool.target <= pool.min {
        return;
    }
    let cluster = &world.cluster;
    let half = |used: i64, all: i64| 2 * used < all;
    let (all_cpu, all_memory) = (plan.cpu * 1000, plan.memory_gib * 1024);
    let mut seen: Option<(&str, i64, i64)> = None;
    for machine in pool.machines.iter().filter(|machine| machine.state == MachineState::Up) {
        let Some(name) = cluster.symbols.find(&machine.id) else { continue };
        let Some(node) = cluster.nodes.iter().find(|node| node.name == name) else { continue };
        let here = cluster.pods.iter().filter(|pod| pod.node == Some(name));
        let of = |pod: &plimsoll_model::Pod| scenario.workloads.iter().find(|plan| is_of(&pod.name, &plan.name));
        let workloads: Vec<&WorkloadPlan> = here.filter_map(of).collect();
        let cpu = AGENT_CPU_MILLI + workloads.iter().map(|plan| plan.cpu_milli).sum::<i64>();
        let memory = AGENT_MEMORY_MIB + workloads.iter().map(|plan| plan.memory_mib).sum::<i64>();
        let movable = workloads.iter().all(|plan| plan.hold == Hold::Free) && node.taints.is_empty();
        if !movable || !half(cpu, all_cpu) || !half(memory, all_memory) {
            continue;
        }
        match seen {
            Some((other, cpu_there, memory_there)) => {
                let fits = cpu + cpu_there <= all_cpu && memory + memory_there <= all_memory;
                if fits {
                    let seen = format!("the pods of {other} and {} would fit on one of them", machine.id);
                    faults.found(Invariant::IdleNodesGo, seen);
                }
            }
            None => seen = Some((&machine.id, cpu, memory)),
        }
    }
}

fn check_pods(scenario: &Scenario, world: &World, faults: &Faults) {
    let full = scenario.settings.max_nodes_total.is_some_and(|most| world.cluster.nodes.len() >= most as usize);
    for workload in &scenario.workloads {
        let of = |name: &str| is_of(name, &workload.name);
        let pending =
            world.cluster.pods.iter().filter(|pod| pod.node.is_none() && pod.deletion.is_none() && of(&pod.name));
        let count = pending.count();
        let helper =
            scenario.pools.iter().zip(&world.pools).find(|(plan, pool)| pool.target < pool.max && fits(workload, plan));
        if let (Some((plan, pool)), true, false) = (helper, count > 0, full) {
            let seen = format!(
                "{count} pods of {} still wait, although {} could grow ({} of {})",
                workload.name, plan.name, pool.target, pool.max
            );
            faults.found(Invariant::PodsAreHelped, seen);
        }
    }
}

/// Whether a pod fits on a new node of a pool.
fn fits(workload: &WorkloadPlan, pool: &PoolPlan) -> bool {
    workload.cpu_milli + AGENT_CPU_MILLI <= pool.cpu * 1000
        && workload.memory_mib + AGENT_MEMORY_MIB <= pool.memory_gib * 1024
        && (pool.gpu || !workload.gpu)
        && (workload.gpu || !pool.gpu)
        && workload.zone.is_none_or(|zone| zone == pool.zone)
}

fn check_pool(pool: &Pool, world: &World, faults: &Faults) {
    let cluster = &world.cluster;
    for machine in &pool.machines {
        let name = cluster.symbols.find(&machine.id);
        let node = cluster.nodes.iter().find(|node| Some(node.name) == name);
        let age = world.now().since(machine.asked_at);
        let Some(node) = node else {
            if age > LONG_UNREGISTERED && pool.target > pool.min {
                let seen = format!("{} is no node after {}s ({:?})", machine.id, age.as_secs(), machine.state);
                faults.found(Invariant::IdleNodesGo, seen);
            }
            continue;
        };
        if machine.state != MachineState::Up {
            continue;
        }
        if node.taint(known::TO_BE_DELETED).is_some() || node.unschedulable {
            faults.found(Invariant::NoMarkLeft, format!("{} is still marked", machine.id));
        }
        let is_agent = |pod: &&plimsoll_model::Pod| pod.owner.is_some_and(|owner| owner.kind == OwnerKind::DaemonSet);
        let empty = cluster.pods.iter().filter(|pod| pod.node == name).all(|pod| is_agent(&pod));
        if empty && pool.target > pool.min {
            let seen = format!("{} is empty, and {} has {} of at least {}", machine.id, pool.id, pool.target, pool.min);
            faults.found(Invariant::IdleNodesGo, seen);
        }
    }
}

/// `H:MM:SS`.
pub(crate) fn clock(at: Duration) -> String {
    let seconds = at.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// What a loop decided, for somebody who looks for a cause.
pub(crate) fn tell(say: fn(&str), plan: &Plan, observation: &Observation<'_>, at: Duration) {
    let at = clock(at);
    for growth in &plan.scale_up {
        say(&format!("{at}  UP {} {} -> {} for {} pods", growth.group, growth.from, growth.to, growth.pods.len()));
    }
    for removal in &plan.scale_down {
        say(&format!("{at}  DOWN {}", Place::Node(removal.node).name(observation.cluster)));
    }
    for class in &plan.not_helped {
        let reasons: Vec<String> = class.reasons.iter().map(|(group, reason)| format!("{group}: {reason}")).collect();
        say(&format!("{at}  {} pods are not helped: {}", class.pods.len(), reasons.join(" · ")));
    }
    for verdict in &plan.nodes {
        if matches!(verdict.outcome, NodeOutcome::Blocked | NodeOutcome::Unneeded) {
            let name = Place::Node(verdict.node).name(observation.cluster);
            let reasons: Vec<String> =
                verdict.reasons.iter().map(|reason| reason.describe(observation.cluster)).collect();
            say(&format!("{at}  {name} stays ({:?}): {}", verdict.outcome, reasons.join(" · ")));
        }
    }
}
