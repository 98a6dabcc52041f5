//! The simulated kube-scheduler: the oracle's verdict on every node, and the emptiest node that passes.

use std::cmp::Reverse;

use plimsoll_model::pod::{Phase, Scheduling};
use plimsoll_model::{Pod, Resources};
use plimsoll_scheduling::oracle;
use plimsoll_scheduling::{Gates, Refusal};

use crate::events::What;
use crate::world::World;

impl World {
    /// Binds pods without a node where they fit; marks the others unschedulable. By priority, then in order of arrival.
    pub(crate) fn schedule(&mut self) {
        let cluster = &self.cluster;
        let waits = |pod: &Pod| pod.node.is_none() && pod.deletion.is_none() && pod.scheduling != Scheduling::Gated;
        let mut waiting: Vec<usize> =
            cluster.pods.iter().enumerate().filter(|(_, pod)| waits(pod)).map(|(index, _)| index).collect();
        if waiting.is_empty() {
            return;
        }
        let priority = |&index: &usize| cluster.pods.get(index).and_then(|pod| cluster.specs[pod.spec].priority);
        waiting.sort_by_key(|index| Reverse(priority(index).unwrap_or(0)));

        let mut oracle = oracle::World::new(cluster, Gates::default());
        let mut free: Vec<Resources> = cluster.nodes.iter().map(|node| node.allocatable.clone()).collect();
        for pod in &cluster.pods {
            let at = pod.node.and_then(|name| cluster.nodes.iter().position(|node| node.name == name));
            if let Some(node) = at {
                put(&mut oracle, &mut free, node, pod, cluster);
            }
        }
        let mut bindings: Vec<(usize, Option<usize>)> = Vec::with_capacity(waiting.len());
        // Pods that cannot be told apart from one that fitted nowhere need no second look, as nothing leaves in between.
        let mut hopeless = Vec::new();
        for index in waiting {
            let Some(pod) = cluster.pods.get(index) else { continue };
            if hopeless.contains(&pod.spec) {
                bindings.push((index, None));
                continue;
            }
            let spec = &cluster.specs[pod.spec];
            let fits = |node: &usize| -> bool {
                let refusal: Option<Refusal> = oracle.refusal(spec, *node);
                refusal.is_none()
            };
            let best = (0..cluster.nodes.len()).filter(fits).max_by_key(|&node| score(node, &free, cluster));
            if let Some(node) = best {
                put(&mut oracle, &mut free, node, pod, cluster);
            } else if spec.affinity.is_empty() && spec.spread.is_empty() {
                hopeless.push(pod.spec);
            }
            bindings.push((index, best));
        }
        let mut bound: std::collections::BTreeMap<String, u32> = std::collections::BTreeMap::new();
        for (index, node) in bindings {
            let name = node.and_then(|node| self.cluster.nodes.get(node)).map(|node| node.name);
            let Some(pod) = self.cluster.pods.get_mut(index) else { continue };
            pod.scheduling = if name.is_some() { Scheduling::Done } else { Scheduling::Unschedulable };
            pod.node = name;
            if name.is_some() {
                pod.phase = Phase::Running;
                let owner = pod.owner.map(|owner| self.cluster.symbols.text(owner.name).to_owned());
                *bound.entry(owner.unwrap_or_else(|| pod.name.to_string())).or_default() += 1;
            }
        }
        for (workload, count) in bound {
            self.tell(What::Bound(workload, count));
        }
    }
}

fn put(
    oracle: &mut oracle::World<'_>,
    free: &mut [Resources],
    node: usize,
    pod: &Pod,
    cluster: &plimsoll_model::Cluster,
) {
    let terminating = pod.deletion.is_some();
    if let Some(place) = oracle.places.get_mut(node) {
        place.pods.push(oracle::Resident { spec: pod.held, terminating });
    }
    if let Some(free) = free.get_mut(node) {
        *free = free.minus(&cluster.specs[pod.held].requests);
    }
}

/// The scheduler's default preference, as far as it matters here: nodes without soft taints, then the emptiest share of
/// cpu and memory, then the first.
fn score(node: usize, free: &[Resources], cluster: &plimsoll_model::Cluster) -> (bool, i64, Reverse<usize>) {
    let Some((object, free)) = cluster.nodes.get(node).zip(free.get(node)) else { return (false, 0, Reverse(node)) };
    let soft = object.taints.iter().any(|taint| taint.effect == plimsoll_model::TaintEffect::PreferNoSchedule);
    let share = |free: i64, all: i64| if all > 0 { free.saturating_mul(1000) / all } else { 0 };
    let cpu = share(free.cpu_milli, object.allocatable.cpu_milli);
    let memory = share(free.memory_bytes >> 10, object.allocatable.memory_bytes >> 10);
    (!soft, cpu + memory, Reverse(node))
}
