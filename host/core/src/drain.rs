//! Which pods of a node move, which wait, and which hold the node (the peer's drain rules, in its order).
//!
//! Unlike the peer this looks at every pod and reports every blocker, not only the first.

use plimsoll_model::pod::{Owner, OwnerKind, Phase, RestartPolicy, SafeToEvict};
use plimsoll_model::symbol::known;
use plimsoll_model::workload::PodDisruptionBudget;
use plimsoll_model::{Cluster, Pod, Symbol, Time};
use rustc_hash::FxHashMap;
use std::time::Duration;

use crate::settings::Settings;

/// Why a pod holds its node. Names are the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Blocker {
    /// Its controller does not exist.
    ControllerNotFound,
    /// Its controller has fewer replicas than `min-replica-count`.
    MinReplicasReached,
    /// No controller would make it again.
    NotReplicated,
    /// A system pod without a PodDisruptionBudget.
    UnmovableKubeSystemPod,
    /// Annotation `safe-to-evict: "false"`.
    NotSafeToEvictAnnotation,
    /// It would lose data on the node's own disk; the volume's name.
    LocalStorageRequested(Symbol),
    /// A budget allows no disruption; its name.
    NotEnoughPdb(Symbol),
}

impl Blocker {
    /// The peer's name of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ControllerNotFound => "ControllerNotFound",
            Self::MinReplicasReached => "MinReplicasReached",
            Self::NotReplicated => "NotReplicated",
            Self::UnmovableKubeSystemPod => "UnmovableKubeSystemPod",
            Self::NotSafeToEvictAnnotation => "NotSafeToEvictAnnotation",
            Self::LocalStorageRequested(_) => "LocalStorageRequested",
            Self::NotEnoughPdb(_) => "NotEnoughPdb",
        }
    }

    /// The reason in words; `pod` is `namespace/name`.
    pub fn describe(&self, pod: &str, cluster: &Cluster) -> String {
        match *self {
            Self::ControllerNotFound => format!("{pod}: its controller does not exist"),
            Self::MinReplicasReached => format!("{pod}: its controller has fewer replicas than min-replica-count"),
            Self::NotReplicated => format!("{pod}: no controller would make it again"),
            Self::UnmovableKubeSystemPod => format!("{pod}: system pod without a PodDisruptionBudget"),
            Self::NotSafeToEvictAnnotation => format!("{pod}: annotation safe-to-evict is \"false\""),
            Self::LocalStorageRequested(volume) => format!("{pod}: local volume {}", cluster.text(volume)),
            Self::NotEnoughPdb(budget) => {
                format!("{pod}: PodDisruptionBudget {} allows no disruption now", cluster.text(budget))
            }
        }
    }
}

/// What the drain rules say of one pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Neither moved nor waited for: mirror pods, and pods that should be gone by now.
    Ignored,
    /// Evicted with the node, but not placed elsewhere.
    DaemonSet,
    /// Must find another place and is evicted.
    Moves,
    /// The node waits until it ends by itself.
    Completes,
    /// Holds the node.
    Blocks(Blocker),
}

/// What is left of each PodDisruptionBudget during one loop.
#[derive(Clone, Debug)]
pub struct Budgets<'c> {
    cluster: &'c Cluster,
    by_namespace: FxHashMap<Symbol, Vec<usize>>,
    left: Vec<i32>,
}

impl<'c> Budgets<'c> {
    /// All budgets as the API server last told them.
    pub fn new(cluster: &'c Cluster) -> Self {
        let mut by_namespace: FxHashMap<Symbol, Vec<usize>> = FxHashMap::default();
        for (index, budget) in cluster.disruption_budgets.iter().enumerate() {
            by_namespace.entry(budget.namespace).or_default().push(index);
        }
        let left = cluster.disruption_budgets.iter().map(|budget| budget.disruptions_allowed).collect();
        Self { cluster, by_namespace, left }
    }

    /// Budgets that protect a pod, with what is left of them.
    pub fn of<'a>(&'a self, pod: &Pod) -> impl Iterator<Item = (usize, &'c PodDisruptionBudget, i32)> + 'a {
        let spec = &self.cluster.specs[pod.spec];
        let labels = &spec.labels;
        self.by_namespace.get(&spec.namespace).into_iter().flatten().filter_map(move |&index| {
            let budget = self.cluster.disruption_budgets.get(index)?;
            let selected =
                budget.selector.as_ref().is_some_and(|selector| selector.matches(labels, &self.cluster.symbols));
            selected.then_some((index, budget, *self.left.get(index)?))
        })
    }

    /// Takes one disruption from every budget that protects the pod.
    pub fn take(&mut self, pod: &Pod) {
        let hit: Vec<usize> = self.of(pod).map(|(index, ..)| index).collect();
        for index in hit {
            if let Some(left) = self.left.get_mut(index) {
                *left -= 1;
            }
        }
    }

    /// Whether all these pods could be evicted at once.
    pub fn allow_together<'p>(&self, pods: impl Iterator<Item = &'p Pod>) -> bool {
        let mut wanted: FxHashMap<usize, (i32, i32)> = FxHashMap::default();
        for pod in pods {
            for (index, _, left) in self.of(pod) {
                let entry = wanted.entry(index).or_insert((0, left));
                entry.0 += 1;
            }
        }
        wanted.values().all(|&(wanted, left)| wanted <= left)
    }
}

/// Which controllers exist, by kind, namespace and name, with their replicas.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    replicas: FxHashMap<(OwnerKind, Symbol, Symbol), Option<i64>>,
}

impl Controllers {
    /// All controllers of the cluster, DaemonSets too.
    pub fn new(cluster: &Cluster) -> Self {
        let others = cluster.controllers.iter().map(|c| ((c.kind, c.namespace, c.name), c.replicas));
        let daemon_sets = cluster.daemon_sets.iter().map(|d| ((OwnerKind::DaemonSet, d.namespace, d.name), None));
        Self { replicas: others.chain(daemon_sets).collect() }
    }

    /// Whether there is such a controller, with its replicas if it names any.
    fn find(&self, owner: &Owner, namespace: Symbol) -> Option<Option<i64>> {
        self.replicas.get(&(owner.kind, namespace, owner.name)).copied()
    }
}

/// The drain rules with what they look at.
#[derive(Clone, Copy, Debug)]
pub struct DrainRules<'a> {
    /// Settings.
    pub settings: &'a Settings,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Controllers; none: rule ReplicaCount is left out, as in the peer's check of empty nodes.
    pub controllers: Option<&'a Controllers>,
    /// Now.
    pub at: Time,
}

/// Grace period of a pod that names none, and the peer's allowance on top of it.
const DEFAULT_GRACE_SECONDS: i64 = 30;
const LONG_TERMINATING_EXTRA: Duration = Duration::from_secs(30);

impl DrainRules<'_> {
    /// Whether a pod should have been gone for a while.
    pub fn is_long_terminating(&self, pod: &Pod) -> bool {
        pod.deletion.is_some_and(|deletion| {
            let grace = pod.termination_grace_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
            let span = Duration::from_secs(u64::try_from(grace).unwrap_or(0)) + LONG_TERMINATING_EXTRA;
            deletion.at + span < self.at
        })
    }

    /// What happens to a pod when its node goes. Source: the peer's drainability rules, in their order.
    pub fn fate(&self, pod: &Pod, budgets: Option<&Budgets<'_>>) -> Fate {
        let kind = pod.owner.map(|owner| owner.kind);
        if pod.drain.mirror || self.is_long_terminating(pod) {
            return Fate::Ignored;
        }
        if let Some(blocker) = self.replica_count(pod) {
            return Fate::Blocks(blocker);
        }
        if pod.is_daemon_set_pod() {
            return Fate::DaemonSet;
        }
        if pod.drain.safe_to_evict == SafeToEvict::Yes || ended_for_good(pod) {
            return Fate::Moves;
        }
        if pod.drain.safe_to_evict == SafeToEvict::OnCompletion {
            return Fate::Completes;
        }
        if !kind.is_some_and(|kind| self.makes_again(kind)) {
            return Fate::Blocks(Blocker::NotReplicated);
        }
        let spec = &self.cluster.specs[pod.spec];
        if self.settings.skip_nodes_with_system_pods && spec.namespace == known::KUBE_SYSTEM {
            let protected = budgets.is_some_and(|budgets| budgets.of(pod).next().is_some());
            if !protected {
                let old = pod.created_at.is_some_and(|created| {
                    self.at.since(created) > self.settings.blocking_system_pod_disruption_timeout
                });
                return if old { Fate::Moves } else { Fate::Blocks(Blocker::UnmovableKubeSystemPod) };
            }
        }
        if pod.drain.safe_to_evict == SafeToEvict::No {
            return Fate::Blocks(Blocker::NotSafeToEvictAnnotation);
        }
        if let Some(volume) = pod.drain.local_storage.filter(|_| self.settings.skip_nodes_with_local_storage) {
            return Fate::Blocks(Blocker::LocalStorageRequested(volume));
        }
        let spent = budgets.and_then(|budgets| budgets.of(pod).find(|&(_, _, left)| left < 1));
        if let Some((_, budget, _)) = spent {
            return Fate::Blocks(Blocker::NotEnoughPdb(budget.name));
        }
        Fate::Moves
    }

    fn replica_count(&self, pod: &Pod) -> Option<Blocker> {
        let controllers = self.controllers.filter(|_| self.settings.skip_nodes_with_custom_controller_pods)?;
        let owner = pod.owner?;
        let found = controllers.find(&owner, self.cluster.specs[pod.spec].namespace);
        let replicas = match owner.kind {
            OwnerKind::ReplicationController => found.map(|replicas| replicas.unwrap_or(i64::MAX)),
            OwnerKind::DaemonSet => found.map(|_| i64::MAX),
            // A pod that only says that it is a DaemonSet's.
            _ if pod.is_daemon_set_pod() => return None,
            OwnerKind::ReplicaSet => found.map(|replicas| replicas.unwrap_or(i64::MAX)),
            OwnerKind::Job | OwnerKind::StatefulSet => found.map(|_| i64::MAX),
            OwnerKind::Node | OwnerKind::Other(_) => return None,
        };
        match replicas {
            None => Some(Blocker::ControllerNotFound),
            Some(replicas) if replicas < self.settings.min_replica_count => Some(Blocker::MinReplicasReached),
            Some(_) => None,
        }
    }

    /// Whether a controller of this kind replaces a pod. StatefulSets of other API groups count, as in the peer, which
    /// looks at the name of the kind alone here.
    fn makes_again(&self, kind: OwnerKind) -> bool {
        let known = match kind {
            OwnerKind::ReplicationController | OwnerKind::Job | OwnerKind::ReplicaSet | OwnerKind::StatefulSet => true,
            OwnerKind::Other(name) => self.cluster.text(name) == "StatefulSet",
            OwnerKind::DaemonSet | OwnerKind::Node => false,
        };
        known || !self.settings.skip_nodes_with_custom_controller_pods
    }
}

fn ended_for_good(pod: &Pod) -> bool {
    match pod.phase {
        Phase::Failed => true,
        Phase::Succeeded => matches!(pod.restart_policy, RestartPolicy::Never | RestartPolicy::OnFailure),
        Phase::Pending | Phase::Running => false,
    }
}
