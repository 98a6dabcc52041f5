//! A look at every order that reaches the cloud.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Response;
use plimsoll_driver::lock;
use plimsoll_model::symbol::known;
use plimsoll_model::{Node, Pod};
use plimsoll_provider_simulated::wire::{
    Call, DecreaseOrder, DeleteAnswer, DeleteOrder, DeleteStatus, IncreaseOrder, SizeAnswer,
};
use plimsoll_sim::World;
use plimsoll_sim::cloud::{MachineState, Pool};

use crate::books::Finding;
use crate::faults::{Faults, State};
use crate::scenario::{Hold, is_of};
use crate::violation::Invariant;

/// Which pods must not lose their node: names of their workloads.
pub(crate) type Protected = Arc<Vec<(String, Hold)>>;

/// Checks an order before the cloud gets it.
pub(crate) fn look_at(call: &Call, world: &Mutex<World>, faults: &Faults, protected: &[(String, Hold)]) {
    let world = lock(world);
    let mut state = faults.lock();
    let (group, key, text) = match call {
        Call::Increase(group, order) => (group, &order.key, format!("{group} +{}", order.delta)),
        Call::DecreaseTarget(group, order) => (group, &order.key, format!("{group} -{}", order.delta)),
        Call::DeleteInstances(group, order) => (group, &order.key, format!("{group} without {:?}", order.ids)),
        _ => return,
    };
    let (now, off) = (state.now(), state.clock_is_off);
    let Some(pool) = world.pools.iter().find(|pool| pool.id == *group) else { return };
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(state.books.check_told(group, now, off));
    findings.extend(state.books.check_key(key, text));
    match call {
        Call::Increase(_, order) => findings.extend(increase(&world, &state, pool, order)),
        Call::DecreaseTarget(_, order) => findings.extend(decrease(pool, order)),
        Call::DeleteInstances(_, order) => findings.extend(deletion(&world, &state, protected, pool, order)),
        _ => {}
    }
    for (invariant, seen) in findings {
        state.found(invariant, seen);
    }
}

fn increase(world: &World, state: &State, pool: &Pool, order: &IncreaseOrder) -> Vec<Finding> {
    let mut findings = Vec::new();
    let target = order.expected_target.saturating_add(order.delta);
    if target > pool.max {
        let seen = format!("{}: asked for {target}, above its maximum {}", pool.id, pool.max);
        findings.push((Invariant::TargetsInBounds, seen));
    }
    // What the cloud would refuse does not count.
    if order.expected_target == pool.target && !state.clock_is_off {
        findings.extend(state.books.check_need(world, pool, order.delta));
    }
    findings
}

fn decrease(pool: &Pool, order: &DecreaseOrder) -> Option<Finding> {
    let target = order.expected_target.saturating_sub(order.delta);
    let alive = pool.alive();
    let seen = format!("{}: asked for {target}, below the {alive} that are there", pool.id);
    (order.expected_target == pool.target && target < alive).then_some((Invariant::TargetsInBounds, seen))
}

fn deletion(
    world: &World,
    state: &State,
    protected: &[(String, Hold)],
    pool: &Pool,
    order: &DeleteOrder,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counted = 0;
    for id in &order.ids {
        findings.extend(state.books.check_deletion(id, state.now()));
        let Some(machine) = pool.machines.iter().find(|machine| machine.id == *id) else { continue };
        counted += u32::from(matches!(machine.state, MachineState::Up | MachineState::Booting));
        if machine.state == MachineState::Up {
            findings.extend(node_of(world, pool, id, protected));
        }
    }
    let least = pool.min.min(order.expected_target);
    if order.expected_target == pool.target && pool.target.saturating_sub(counted) < least {
        let seen = format!("{}: {counted} of {} are to go, and {} are to stay", pool.id, pool.target, pool.min);
        findings.push((Invariant::TargetsInBounds, seen));
    }
    findings
}

/// What is wrong with the deletion of a machine that runs, for its nodes.
fn node_of(world: &World, pool: &Pool, id: &str, protected: &[(String, Hold)]) -> Vec<Finding> {
    let cluster = &world.cluster;
    let name = cluster.symbols.find(id);
    let provider_id = format!("sim://{id}");
    let nodes: Vec<&Node> = cluster.nodes.iter().filter(|node| *node.provider_id == *provider_id).collect();
    let mut findings = Vec::new();
    for node in nodes {
        if Some(node.name) == name && node.taint(known::TO_BE_DELETED).is_none() {
            let seen = format!("{}: {id} is deleted without a mark", pool.id);
            findings.push((Invariant::DeletesOnlyMarked, seen));
        }
        let here = cluster.pods.iter().filter(|pod| pod.node == Some(node.name) && pod.deletion.is_none());
        findings.extend(here.filter_map(|pod| held(pod, protected)).map(|(pod, hold)| {
            let seen = format!("{id} is deleted with {pod} on {} ({hold:?})", cluster.text(node.name));
            (Invariant::ProtectedPodsStay, seen)
        }));
    }
    findings
}

/// The name of a pod that must not lose its node, and why.
pub(crate) fn held<'a>(pod: &'a Pod, protected: &[(String, Hold)]) -> Option<(&'a str, Hold)> {
    let holds = |(workload, hold): &&(String, Hold)| hold.protects() && is_of(&pod.name, workload);
    protected.iter().find(holds).map(|(_, hold)| (&*pod.name, *hold))
}

/// How many machines an answer to an increase promises.
pub(crate) fn promised(answer: &Response<Bytes>) -> usize {
    let answer = serde_json::from_slice::<SizeAnswer>(answer.body()).ok();
    answer.and_then(|answer| usize::try_from(answer.accepted).ok()).unwrap_or(0)
}

/// Machines that an answer speaks of, and whether their deletion was accepted; nothing if it is about something else.
pub(crate) fn deletions(answer: &Response<Bytes>) -> Vec<(String, bool)> {
    let answer = serde_json::from_slice::<DeleteAnswer>(answer.body()).ok();
    let results = answer.into_iter().flat_map(|answer| answer.results);
    results.map(|result| (result.id, matches!(result.status, DeleteStatus::Accepted))).collect()
}
