//! Whether a node is ready, as the peer sees it.

use plimsoll_model::node::ConditionStatus;
use plimsoll_model::{Cluster, Node, Symbol, Time};

use crate::settings::Settings;

/// Names that readiness looks at, in the symbols of one cluster. None: no object has the name.
#[derive(Clone, Debug)]
pub struct Readiness {
    ready: Option<Symbol>,
    disk_pressure: Option<Symbol>,
    network_unavailable: Option<Symbol>,
    not_ready_taints: Vec<Symbol>,
}

/// What readiness says of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Whether it is ready.
    pub ready: bool,
    /// When that last changed, if known.
    pub since: Option<Time>,
}

impl Readiness {
    /// For the nodes of one cluster. Nodes with a startup taint are not ready.
    pub fn new(cluster: &Cluster, settings: &Settings) -> Self {
        let find = |name: &str| cluster.symbols.find(name);
        let fixed = ["not-ready", "disk-pressure", "network-unavailable"];
        let mut taints: Vec<Symbol> =
            fixed.iter().filter_map(|name| find(&format!("node.kubernetes.io/{name}"))).collect();
        for node in &cluster.nodes {
            for taint in &node.taints {
                if !taints.contains(&taint.key) && is_startup_taint(cluster.text(taint.key), settings) {
                    taints.push(taint.key);
                }
            }
        }
        Self {
            ready: find("Ready"),
            disk_pressure: find("DiskPressure"),
            network_unavailable: find("NetworkUnavailable"),
            not_ready_taints: taints,
        }
    }

    /// State of a node. A node that says nothing of being ready counts as ready: kubelets always say it, so its absence
    /// means a hand-written object.
    pub fn of(&self, node: &Node) -> State {
        let mut state = State { ready: true, since: None };
        let bad = [
            (self.ready, [ConditionStatus::False, ConditionStatus::Unknown].as_slice()),
            (self.disk_pressure, [ConditionStatus::True].as_slice()),
            (self.network_unavailable, [ConditionStatus::True].as_slice()),
        ];
        for (kind, bad) in bad {
            let Some(condition) = kind.and_then(|kind| node.condition(kind)) else { continue };
            state.ready &= !bad.contains(&condition.status);
            state.since = state.since.max(condition.since);
        }
        state.ready &= !node.taints.iter().any(|taint| self.not_ready_taints.contains(&taint.key));
        state
    }
}

/// Whether a taint goes away once its node is ready: by flag or by a prefix that the peer reserves for it.
pub fn is_startup_taint(key: &str, settings: &Settings) -> bool {
    const PREFIXES: [&str; 2] =
        ["startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || settings.startup_taint_prefixes.iter().any(|prefix| key.starts_with(prefix.as_str()))
        || settings.startup_taints.iter().any(|taint| taint == key)
}
