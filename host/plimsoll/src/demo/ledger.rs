//! The demo's figures: how many pods were helped, how long they waited, what it cost.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_sim::World;

/// Figures over the whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    last: Option<Time>,
    /// Pods that wait, by UID, since when.
    waiting: BTreeMap<String, Time>,
    /// Pods that got a node after the scheduler had found none.
    pub(crate) helped: usize,
    /// The longest wait.
    pub(crate) longest_wait: Duration,
    /// Milliseconds times nodes that were there.
    node_millis: u128,
    /// Milliseconds times the fewest nodes that could have held the pods.
    bound_millis: u128,
}

impl Figures {
    /// Takes note of the world as it is now. To be called at every step.
    pub(crate) fn look(&mut self, world: &World) {
        let now = world.now();
        let span = self.last.map_or(0, |last| now.since(last).as_millis());
        self.last = Some(now);
        self.node_millis += span * world.cluster.nodes.len() as u128;
        self.bound_millis += span * u128::from(fewest_nodes(world));
        let mut waiting = BTreeMap::new();
        for pod in world.cluster.pods.iter().filter(|pod| pod.deletion.is_none()) {
            let uid = pod.uid.to_string();
            if pod.node.is_none() {
                let since = self.waiting.get(&uid).copied().unwrap_or(now);
                waiting.insert(uid, since);
            } else if let Some(since) = self.waiting.get(&uid) {
                self.helped += 1;
                self.longest_wait = self.longest_wait.max(now.since(*since));
            }
        }
        self.waiting = waiting;
    }

    /// Hours of nodes that were there, and the fewest that could have done.
    pub(crate) fn node_hours(&self) -> (f64, f64) {
        let hours = |millis: u128| millis as f64 / 3_600_000.0;
        (hours(self.node_millis), hours(self.bound_millis))
    }
}

/// The fewest nodes that could hold all pods that want to run: for each resource, its sum over what the largest machine
/// offers; the greatest of these. Pods of DaemonSets do not count, as they come with the nodes.
fn fewest_nodes(world: &World) -> u64 {
    let cluster = &world.cluster;
    let mut wanted = plimsoll_model::Resources::default();
    for pod in cluster.pods.iter().filter(|pod| pod.deletion.is_none() && !pod.is_daemon_set_pod()) {
        wanted = wanted.plus(&cluster.specs[pod.spec].requests);
    }
    let largest = |resource: &str, milli: bool| {
        let amounts = world.pools.iter().filter_map(|pool| {
            let quantity: plimsoll_model::Quantity = pool.template.capacity.get(resource)?.parse().ok()?;
            Some(if milli { quantity.milli() } else { quantity.units() })
        });
        amounts.max().unwrap_or(0)
    };
    let need = |sum: i64, each: i64| {
        if each > 0 { u64::try_from(sum.div_euclid(each) + i64::from(sum % each != 0)).unwrap_or(0) } else { 0 }
    };
    let scalar = |&(name, sum): &(plimsoll_model::Symbol, i64)| need(sum, largest(cluster.text(name), false));
    let plain = [
        need(wanted.cpu_milli, largest("cpu", true)),
        need(wanted.memory_bytes, largest("memory", false)),
        need(wanted.pods, largest("pods", false)),
    ];
    plain.into_iter().chain(wanted.scalars.iter().map(scalar)).max().unwrap_or(0)
}
