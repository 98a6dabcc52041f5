//! What a loop decided, in words: one line for each thing, so that two plans can be compared and read.

use plimsoll_core::plan::{Because, IgnoreReason, NodeOutcome, PodIndex, PodOutcome};
use plimsoll_core::{Observation, Plan};
use plimsoll_model::Cluster;

/// All decisions of a plan, each as a line: what grows, what goes, what becomes of every pod and node, and why.
pub fn decisions(plan: &Plan, observation: &Observation<'_>) -> Vec<String> {
    let cluster = observation.cluster;
    let mut lines = Vec::new();
    for growth in &plan.scale_up {
        let pods = names(&growth.pods, cluster);
        let because = because(&growth.because);
        lines.push(format!("up: {} {} -> {} for {pods}; {because}", growth.group, growth.from, growth.to));
    }
    for removal in &plan.scale_down {
        let node = node_name(removal.node, cluster);
        let how = if removal.drain { "drained" } else { "empty" };
        let moves =
            removal.moves.iter().map(|(pod, place)| format!("{} to {}", name(*pod, cluster), place.name(cluster)));
        let moves: Vec<String> = moves.collect();
        lines.push(format!("down: {node} of {}, {how}{}{}", removal.group, sep(&moves), moves.join(", ")));
    }
    for (pod, outcome) in &plan.pods {
        lines.push(format!("pod: {} {}", name(*pod, cluster), outcome_text(outcome, cluster)));
    }
    for class in &plan.not_helped {
        let reasons: Vec<String> = class.reasons.iter().map(|(group, reason)| format!("{group}: {reason}")).collect();
        lines.push(format!("not helped: {}; {}", names(&class.pods, cluster), reasons.join(" · ")));
    }
    for verdict in &plan.nodes {
        // Most nodes are needed, and why changes with every pod; what matters is that they are.
        let reasons: Vec<String> = verdict.reasons.iter().map(|reason| reason.describe(cluster)).collect();
        let reasons = if verdict.outcome == NodeOutcome::Needed { vec![] } else { reasons };
        let node = node_name(verdict.node, cluster);
        lines.push(format!("node: {node} {}{}{}", verdict.outcome.name(), sep(&reasons), reasons.join(" · ")));
    }
    lines.extend(plan.skipped.iter().map(|(group, reason)| format!("skipped: {group}: {reason}")));
    lines.extend(plan.upcoming.iter().map(|(group, count)| format!("upcoming: {group} {count}")));
    lines.extend(plan.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

fn sep(what: &[String]) -> &'static str {
    if what.is_empty() { "" } else { "; " }
}

fn node_name(node: usize, cluster: &Cluster) -> &str {
    cluster.nodes.get(node).map_or("?", |node| cluster.text(node.name))
}

fn name(pod: PodIndex, cluster: &Cluster) -> String {
    cluster.pods.get(pod).map(|pod| cluster.pod_name(pod)).unwrap_or_default()
}

fn names(pods: &[PodIndex], cluster: &Cluster) -> String {
    let mut names: Vec<String> = pods.iter().map(|&pod| name(pod, cluster)).collect();
    names.sort_unstable();
    format!("{} pods ({})", names.len(), names.join(", "))
}

fn because(because: &Because) -> String {
    let Some(expander) = &because.expander else { return "only group that helps".to_owned() };
    let score = because.score.map(|score| format!(" {score}")).unwrap_or_default();
    let reason = because.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let rivals: Vec<String> = because.against.iter().map(|rival| format!("{} +{}", rival.group, rival.nodes)).collect();
    let before = if rivals.is_empty() { String::new() } else { format!(" before {}", rivals.join(", ")) };
    format!("{expander}{score}{reason}{before}")
}

fn outcome_text(outcome: &PodOutcome, cluster: &Cluster) -> String {
    match outcome {
        PodOutcome::FitsExisting(place) => format!("fits {}", place.name(cluster)),
        PodOutcome::FitsUpcoming(place) => format!("fits {}, which is on its way", place.name(cluster)),
        PodOutcome::ScaleUp(place) => format!("gets {}", place.name(cluster)),
        PodOutcome::NotHelped => "is not helped".to_owned(),
        PodOutcome::Ignored(reason) => ignored(*reason),
    }
}

fn ignored(reason: IgnoreReason) -> String {
    format!("is left alone: {reason}")
}
