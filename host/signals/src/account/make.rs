//! An account from a plan and what it was made from.

use std::collections::BTreeMap;

use plimsoll_core::observation::Observation;
use plimsoll_core::plan::{self, NotHelped, Place, Plan, PodIndex, PodOutcome};
use plimsoll_model::pod::OwnerKind;

use super::{Account, Class, GroupReason, Growth, LeftOut, Node, NodeReason, Pod, Removal, Rival, Totals};
use super::{groups, ways_out};

/// Most entries of each list. The lists are kept in memory and sent over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Pods without a node.
    pub pods: usize,
    /// Pods with a node: all of them or none, as those that are there say little about those that are not.
    pub running: usize,
    /// Nodes.
    pub nodes: usize,
    /// Classes of pods that nothing helps.
    pub classes: usize,
    /// Warnings.
    pub warnings: usize,
}

impl Bounds {
    /// For a process that runs for long.
    pub const SERVED: Self = Self { pods: 20_000, running: 20_000, nodes: 10_000, classes: 2_000, warnings: 500 };
    /// For one answer about files.
    pub const WHOLE: Self =
        Self { pods: usize::MAX, running: usize::MAX, nodes: usize::MAX, classes: usize::MAX, warnings: usize::MAX };
}

/// The account of a loop. `troubles` are warnings from elsewhere.
pub fn account(plan: &Plan, observation: &Observation<'_>, troubles: &[String], bounds: Bounds) -> Account {
    let cluster = observation.cluster;
    let name = |index: PodIndex| cluster.pods.get(index).map(|pod| cluster.pod_name(pod)).unwrap_or_default();
    let class_of: BTreeMap<PodIndex, usize> = plan
        .not_helped
        .iter()
        .take(bounds.classes)
        .enumerate()
        .flat_map(|(class, helpless)| helpless.pods.iter().map(move |&pod| (pod, class)))
        .collect();
    let mut pods: Vec<Pod> = plan
        .pods
        .iter()
        .take(bounds.pods)
        .map(|(index, outcome)| {
            let since = cluster.pods.get(*index).and_then(|pod| pod.created_at).map(|at| at.to_string());
            Pod { since, class: class_of.get(index).copied(), ..pod(name(*index), outcome, observation) }
        })
        .collect();
    pods.sort_by(|a, b| a.pod.cmp(&b.pod));
    let running = cluster.pods.iter().filter(|pod| pod.node.is_some() && !pod.is_terminal());
    let running_count = running.clone().count();
    let mut on: BTreeMap<_, usize> = BTreeMap::new();
    running.clone().filter_map(|pod| pod.node).for_each(|node| *on.entry(node).or_default() += 1);
    let mut running: Vec<(String, String)> = match running_count <= bounds.running {
        true => running.filter_map(|pod| Some((cluster.pod_name(pod), cluster.text(pod.node?).to_owned()))).collect(),
        false => vec![],
    };
    running.sort();
    let nodes = nodes(plan, observation, &on, bounds.nodes);
    let left_out = LeftOut {
        pods: plan.pods.len() - pods.len(),
        running: running_count - running.len(),
        nodes: cluster.nodes.len() - nodes.len(),
        classes: plan.not_helped.len().saturating_sub(bounds.classes),
    };
    let pending = plan.pods.iter().filter(|(_, outcome)| !matches!(outcome, PodOutcome::Ignored(_))).count();
    let totals =
        Totals { nodes: cluster.nodes.len(), pods: cluster.pods.len(), pending, groups: observation.groups.len() };
    let warnings = troubles.iter().cloned().chain(plan.warnings.iter().map(ToString::to_string));
    Account {
        at: observation.at.to_string(),
        totals,
        scale_up: plan.scale_up.iter().map(growth).collect(),
        scale_down: plan.scale_down.iter().map(|removal| self::removal(removal, observation)).collect(),
        warnings: warnings.take(bounds.warnings).collect(),
        groups: groups::all(plan, observation),
        classes: plan.not_helped.iter().take(bounds.classes).map(|found| class(found, observation)).collect(),
        pods,
        nodes,
        running,
        left_out,
    }
}

fn growth(growth: &plan::ScaleUp) -> Growth {
    let because = &growth.because;
    let rival = |rival: &plan::Rival| Rival { group: rival.group.to_string(), nodes: rival.nodes, score: rival.score };
    Growth {
        group: growth.group.to_string(),
        from: growth.from,
        to: growth.to,
        pods: growth.pods.len(),
        expander: because.expander.clone(),
        score: because.score,
        reason: because.reason.clone(),
        against: because.against.iter().map(rival).collect(),
    }
}

fn removal(removal: &plan::ScaleDown, observation: &Observation<'_>) -> Removal {
    let cluster = observation.cluster;
    let moved = |(index, to): &(PodIndex, Place)| {
        let pod = cluster.pods.get(*index).map(|pod| cluster.pod_name(pod)).unwrap_or_default();
        (pod, to.name(cluster))
    };
    Removal {
        node: Place::Node(removal.node).name(cluster),
        group: removal.group.to_string(),
        drain: removal.drain,
        moves: removal.moves.iter().map(moved).collect(),
    }
}

fn pod(pod: String, outcome: &PodOutcome, observation: &Observation<'_>) -> Pod {
    let place = |place: &Place| Some(place.name(observation.cluster));
    let (outcome, on, ignored) = match outcome {
        PodOutcome::FitsExisting(on) => ("fits-existing", place(on), None),
        PodOutcome::FitsUpcoming(on) => ("fits-upcoming", place(on), None),
        PodOutcome::ScaleUp(on) => ("scale-up", place(on), None),
        PodOutcome::NotHelped => ("not-helped", None, None),
        PodOutcome::Ignored(reason) => ("ignored", None, Some(reason.to_string())),
    };
    Pod { pod, outcome: outcome.to_owned(), on, ignored, class: None, since: None }
}

fn class(helpless: &NotHelped, observation: &Observation<'_>) -> Class {
    let cluster = observation.cluster;
    let example = helpless.pods.first().and_then(|&pod| cluster.pods.get(pod));
    let owner = example.and_then(|pod| pod.owner).map(|owner| {
        let kind = match owner.kind {
            OwnerKind::ReplicaSet => "ReplicaSet",
            OwnerKind::StatefulSet => "StatefulSet",
            OwnerKind::DaemonSet => "DaemonSet",
            OwnerKind::Job => "Job",
            OwnerKind::ReplicationController => "ReplicationController",
            OwnerKind::Node => "Node",
            OwnerKind::Other(kind) => cluster.text(kind),
        };
        format!("{kind} {}", cluster.text(owner.name))
    });
    let reasons = helpless.reasons.iter().map(|(group, reason)| GroupReason {
        group: group.to_string(),
        plugin: reason.plugin().to_owned(),
        message: reason.to_string(),
    });
    Class {
        pods: helpless.pods.len(),
        example: example.map(|pod| cluster.pod_name(pod)).unwrap_or_default(),
        owner: owner.unwrap_or_default(),
        reasons: reasons.collect(),
        existing: helpless.existing.clone(),
        ways_out: ways_out::of(helpless, observation),
    }
}

fn nodes(
    plan: &Plan,
    observation: &Observation<'_>,
    pods_on: &BTreeMap<plimsoll_model::Symbol, usize>,
    most: usize,
) -> Vec<Node> {
    let cluster = observation.cluster;
    let mut verdicts: Vec<Option<&plan::NodeVerdict>> = vec![None; cluster.nodes.len()];
    for verdict in &plan.nodes {
        if let Some(slot) = verdicts.get_mut(verdict.node) {
            *slot = Some(verdict);
        }
    }
    let describe =
        |reason: &plan::NodeReason| NodeReason { code: reason.code().to_owned(), message: reason.describe(cluster) };
    let mut nodes: Vec<Node> = cluster
        .nodes
        .iter()
        .enumerate()
        .zip(verdicts)
        .take(most)
        .map(|((index, node), verdict)| Node {
            node: cluster.text(node.name).to_owned(),
            group: observation.group_of(index).map(|group| group.cloud.id.to_string()),
            ready: observation.readiness.get(index).is_none_or(|state| state.ready),
            outcome: verdict.map(|verdict| verdict.outcome.name().to_owned()),
            reasons: verdict.map(|verdict| verdict.reasons.iter().map(describe).collect()).unwrap_or_default(),
            pods: pods_on.get(&node.name).copied().unwrap_or_default(),
        })
        .collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    nodes
}
