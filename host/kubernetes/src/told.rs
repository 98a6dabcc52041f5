//! What a loop did, as the peer's events tell it.

use std::collections::BTreeMap;

use plimsoll_core::ledger::FailureCause;
use plimsoll_core::memory::{Removal, Stage};
use plimsoll_core::plan::{GroupReason, Limit, NotHelped, PodIndex, ScaleDown, ScaleUp, Warning};
use plimsoll_core::{Memory, Observation, Plan};

use crate::events::{About, Event, Tone};

/// What was under way before a loop.
#[derive(Clone, Debug, Default)]
pub struct Before(BTreeMap<String, Removal>);

impl Before {
    /// What a memory holds.
    pub fn of(memory: &Memory) -> Self {
        Self(memory.removals.clone())
    }
}

/// The events of a loop. `status` is the status ConfigMap, if one is written.
pub fn events(
    plan: &Plan,
    observation: &Observation<'_>,
    before: &Before,
    after: &Memory,
    status: Option<&About>,
) -> Vec<Event> {
    let mut told = Told { observation, status, events: vec![] };
    for growth in &plan.scale_up {
        told.growth(growth);
    }
    for class in &plan.not_helped {
        told.not_helped(class);
    }
    for removal in &plan.scale_down {
        told.removal(removal);
    }
    told.deletions(before, after);
    for warning in &plan.warnings {
        told.warning(warning, before);
    }
    told.events
}

struct Told<'a> {
    observation: &'a Observation<'a>,
    status: Option<&'a About>,
    events: Vec<Event>,
}

impl Told<'_> {
    /// On the status ConfigMap, where the same reason is told of many groups and nodes.
    fn on_status(&mut self, tone: Tone, reason: &'static str, message: String) {
        if let Some(about) = self.status.cloned() {
            self.events.push(Event { about, tone, reason, message, by_message: true });
        }
    }

    fn on_node(&mut self, node: &str, tone: Tone, reason: &'static str, message: String) {
        self.events.push(Event { about: About::node(node), tone, reason, message, by_message: false });
    }

    fn on_pods(&mut self, pods: &[PodIndex], reason: &'static str, message: &str) {
        let cluster = self.observation.cluster;
        for pod in pods.iter().filter_map(|pod| cluster.pods.get(*pod)) {
            let namespace = cluster.text(cluster.specs[pod.spec].namespace);
            let about = About::pod(namespace, &pod.name, &pod.uid);
            let message = message.to_owned();
            self.events.push(Event { about, tone: Tone::Normal, reason, message, by_message: false });
        }
    }

    fn growth(&mut self, growth: &ScaleUp) {
        let ScaleUp { group, from, to, pods, .. } = growth;
        let max = self.observation.groups.iter().find(|view| view.cloud.id == *group);
        let max = max.map_or(0, |view| view.cloud.max_size);
        let size = format!("size to {to} instead of {from} (max: {max})");
        self.on_status(Tone::Normal, "ScaledUpGroup", format!("Scale-up: setting group {group} {size}"));
        let size = format!("size set to {to} instead of {from} (max: {max})");
        self.on_status(Tone::Normal, "ScaledUpGroup", format!("Scale-up: group {group} {size}"));
        let message = format!("pod triggered scale-up: [{{{group} {from}->{to} (max: {max})}}]");
        self.on_pods(pods, "TriggeredScaleUp", &message);
    }

    fn not_helped(&mut self, class: &NotHelped) {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (_, reason) in &class.reasons {
            *counts.entry(in_the_peers_words(reason)).or_default() += 1;
        }
        let reasons: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let message = format!("pod didn't trigger scale-up: {}", reasons.join(", "));
        self.on_pods(&class.pods, "NotTriggerScaleUp", &message);
    }

    fn removal(&mut self, removal: &ScaleDown) {
        let cluster = self.observation.cluster;
        let node = cluster.nodes.get(removal.node).map_or("", |node| cluster.text(node.name));
        if removal.drain {
            let pods: Vec<String> = { removal.moves.iter() }
                .filter_map(|(pod, _)| Some(cluster.pod_name(cluster.pods.get(*pod)?)))
                .collect();
            let message = format!("Scale-down: removing node {node}, pods to reschedule: {}", pods.join(","));
            self.on_status(Tone::Normal, "ScaleDown", message);
        } else {
            self.on_status(Tone::Normal, "ScaleDownEmpty", format!("Scale-down: removing empty node {node:?}"));
        }
    }

    /// Nodes whose machines the cloud agreed to delete in this loop.
    fn deletions(&mut self, before: &Before, after: &Memory) {
        let was_asked = |name: &str| before.0.get(name).is_some_and(|old| matches!(old.stage, Stage::Deleting(_)));
        for (node, removal) in &after.removals {
            if !matches!(removal.stage, Stage::Deleting(_)) || was_asked(node) {
                continue;
            }
            self.on_node(node, Tone::Normal, "ScaleDown", "nodes removed by cluster autoscaler".to_owned());
            let (reason, message) = match removal.drain {
                true => ("ScaleDown", format!("Scale-down: node {node} removed with drain")),
                false => ("ScaleDownEmpty", format!("Scale-down: empty node {node} removed")),
            };
            self.on_status(Tone::Normal, reason, message);
        }
    }

    fn warning(&mut self, warning: &Warning, before: &Before) {
        match warning {
            Warning::Unhealthy(_) => {
                self.on_status(Tone::Warning, "ClusterUnhealthy", "Cluster is unhealthy".to_owned());
            }
            Warning::IncreaseFailed { group, error, .. } => {
                let message = format!("Scale-up failed for group {group}: {error}");
                self.on_status(Tone::Warning, "FailedToScaleUpGroup", message);
            }
            Warning::DecreaseFailed { group, error, .. } => {
                let message =
                    format!("Failed to decrease target size for group {group} after scale-up timeout: {error}");
                self.on_status(Tone::Warning, "FailedToRevertScaleUp", message);
            }
            Warning::Failure(failure) => {
                let (group, missing) = (&failure.group, failure.missing);
                match &failure.cause {
                    FailureCause::TimedOut(after) => {
                        let message = format!("Nodes added to group {group} failed to register within {after:?}");
                        self.on_status(Tone::Warning, "ScaleUpTimedOut", message);
                    }
                    FailureCause::Cloud(error) => {
                        let (code, text) = (&error.code, &error.message);
                        let message = format!(
                            "Failed adding {missing} nodes to group {group} due to {:?}.{code}; source errors: {text}",
                            error.class
                        );
                        self.on_status(Tone::Warning, "ScaleUpFailed", message);
                    }
                    FailureCause::NeverAccepted => {
                        let message = format!("Scale-up failed for group {group}: the request was never accepted");
                        self.on_status(Tone::Warning, "FailedToScaleUpGroup", message);
                    }
                }
            }
            Warning::StrayStays { machines, reason, .. } => {
                for machine in machines {
                    let message = format!("Failed to remove node {machine}: {reason}");
                    self.on_status(Tone::Warning, "DeleteUnregisteredFailed", message);
                }
            }
            Warning::RemovalFailed { node, reason } if !node.is_empty() => {
                let drain = before.0.get(node).is_some_and(|removal| removal.drain);
                let what = if drain { "failed to drain and delete node" } else { "failed to delete empty node" };
                self.on_node(node, Tone::Warning, "ScaleDownFailed", format!("{what}: {reason}"));
            }
            Warning::Expander(_)
            | Warning::Priorities(_)
            | Warning::OverlappingPriorities { .. }
            | Warning::Template { .. }
            | Warning::Drift { .. }
            | Warning::Guarded { .. }
            | Warning::RemovalFailed { .. } => {}
        }
    }
}

/// Why a group does not help, in the peer's words where it has some.
fn in_the_peers_words(reason: &GroupReason) -> String {
    match reason {
        GroupReason::Refused(refusal) if refusal.reasons.is_empty() => {
            "node(s) didn't satisfy plugin(s) [NodeAffinity]".to_owned()
        }
        GroupReason::Refused(refusal) => {
            let words: Vec<String> = refusal.reasons.iter().map(ToString::to_string).collect();
            words.join(", ")
        }
        GroupReason::AtMaxSize(_) => "max node group size reached".to_owned(),
        GroupReason::BackedOff { .. } | GroupReason::Failed(_) => "in backoff after failed scale-up".to_owned(),
        GroupReason::Missing { .. } | GroupReason::Unreadable(_) | GroupReason::Inactive(_) => {
            "not ready for scale-up".to_owned()
        }
        GroupReason::Limit(Limit::Nodes(_)) => "max total nodes in cluster reached".to_owned(),
        GroupReason::Limit(Limit::Cores(_)) => "max cluster cpu limit reached".to_owned(),
        GroupReason::Limit(Limit::Memory(_)) => "max cluster memory limit reached".to_owned(),
        GroupReason::Limit(Limit::Gpu(model, _)) => format!("max cluster {model} limit reached"),
        other => other.to_string(),
    }
}
