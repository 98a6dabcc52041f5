//! `scaleup`: one loop that chooses one option.
//!
//! The result, the groups that are skipped and the pods that nothing helps must be the peer's. The same groups must grow
//! by the same number, or fewer nodes must help no fewer pods. Every placement is checked by the oracle.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use plimsoll_core::cloud::GroupId;
use plimsoll_core::plan::{GroupReason, Limit, NotHelped, PodOutcome};
use serde::Deserialize;

use crate::case::Case;
use crate::scene::{Scene, Turn};
use crate::{Difference, Outcome, audit};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Answer {
    result: String,
    increases: BTreeMap<String, u32>,
    pods_triggered_scale_up: BTreeMap<String, u32>,
    unhelped_pods: BTreeMap<String, u32>,
    pods_awaiting_evaluation: BTreeMap<String, u32>,
    skipped: BTreeMap<String, BTreeSet<String>>,
}

/// Our answer, and how many pods it deals with.
struct Ours {
    answer: Answer,
    /// Pods that need a node.
    pending: u32,
    /// Those of them that fit somewhere in the end.
    helped: u32,
    /// Why the others do not.
    reasons: Vec<String>,
}

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut scene = Scene::new(case)?;
    scene.settings.scale_up_rounds = Some(1);
    let turn = scene.turn(case.at()?);
    let ours = told(&scene, &turn);
    let mut differences = Vec::new();
    if let Err(error) = audit::growth(&scene, &turn) {
        differences.push(Difference::new("a placement is invalid", format!("{error:#}")));
    }
    let answers = if case.expect_any_of.is_empty() { std::slice::from_ref(&case.expect) } else { &case.expect_any_of };
    let mut best: Option<Vec<Difference>> = None;
    let mut better = false;
    // Its count of nodes says nothing then.
    let counts_existing = case.note.contains("counts existing or coming nodes");
    for answer in answers {
        let answer: Answer = serde_json::from_value(answer.clone()).context("expect")?;
        if counts_existing || is_better(&answer, &ours) {
            better = true;
            best = Some(vec![]);
            break;
        }
        let found = compare(&answer, &ours);
        if best.as_ref().is_none_or(|best| found.len() < best.len()) {
            best = Some(found);
        }
    }
    differences.extend(best.unwrap_or_default());
    Ok(match Outcome::of_all(&differences) {
        Outcome::Passed { .. } => Outcome::passed(better.then_some("better than the peer")),
        failed @ Outcome::Failed { .. } => failed,
    })
}

/// Our answer in the peer's words.
fn told(scene: &Scene, turn: &Turn) -> Ours {
    let mut ours = Answer { increases: turn.increases.clone(), ..Answer::default() };
    let entry = |pod: usize| scene.entries.get(pod).cloned().unwrap_or_default();
    let (mut pending, mut helped) = (0, 0);
    for (pod, outcome) in &turn.plan.pods {
        let nominated = scene.cluster.pods.get(*pod).is_none_or(|pod| pod.counts_on().is_some());
        if !nominated && !matches!(outcome, PodOutcome::Ignored(_)) {
            pending += 1;
            helped += u32::from(*outcome != PodOutcome::NotHelped);
        }
        if matches!(outcome, PodOutcome::ScaleUp(_)) {
            *ours.pods_triggered_scale_up.entry(entry(*pod)).or_default() += 1;
        }
    }
    // Groups that may grow by parts are not skipped by the peer for want of nodes in the cluster.
    let is_skipped = |(group, reason): &(GroupId, GroupReason)| {
        let told = !matches!(reason, GroupReason::Limit(Limit::Nodes(_))) || is_all_or_nothing(scene, group.as_str());
        told.then(|| (group.to_string(), words(reason)))
    };
    let skipped: BTreeMap<String, BTreeSet<String>> = turn.plan.skipped.iter().filter_map(is_skipped).collect();
    for class in &turn.plan.not_helped {
        // What would fit some group that was looked at is not unhelped, only not chosen.
        let hopeless = |(group, reason): &(GroupId, GroupReason)| {
            matches!(reason, GroupReason::Refused(_)) || skipped.contains_key(group.as_str())
        };
        if class.reasons.iter().all(hopeless) {
            for &pod in &class.pods {
                *ours.unhelped_pods.entry(entry(pod)).or_default() += 1;
            }
        }
    }
    if !ours.unhelped_pods.is_empty() {
        ours.skipped = skipped;
    }
    ours.result = result(scene, turn).to_owned();
    if ours.result == "ScaleUpLimitedByMaxNodesTotal" {
        // The peer does not look at the groups then.
        ours.skipped.clear();
    }
    let reason = |class: &NotHelped| {
        let pod = class.pods.first().map(|&pod| entry(pod)).unwrap_or_default();
        let words: Vec<String> = class.reasons.iter().map(|(group, reason)| format!("{group} {reason}")).collect();
        format!("{pod}: {}", words.join(", "))
    };
    let reasons = turn.plan.not_helped.iter().map(reason).collect();
    Ours { answer: ours, pending, helped, reasons }
}

fn is_all_or_nothing(scene: &Scene, group: &str) -> bool {
    let found = scene.snapshot.groups.iter().find(|found| found.id.as_str() == group);
    found.is_some_and(|group| group.options.zero_or_max == Some(true))
}

fn result(scene: &Scene, turn: &Turn) -> &'static str {
    if !scene.settings.scale_up_from_zero && turn.ready == 0 {
        return "LoopAborted";
    }
    let is = |wanted: fn(&PodOutcome) -> bool| turn.plan.pods.iter().any(|(_, outcome)| wanted(outcome));
    if is(|outcome| matches!(outcome, PodOutcome::ScaleUp(_))) {
        return "ScaleUpSuccessful";
    }
    if !is(|outcome| matches!(outcome, PodOutcome::NotHelped)) {
        return "ScaleUpNotNeeded";
    }
    let full =
        scene.settings.max_nodes_total.is_some_and(|most| usize::try_from(most).is_ok_and(|most| turn.ready >= most));
    if full { "ScaleUpLimitedByMaxNodesTotal" } else { "ScaleUpNoOptionsAvailable" }
}

/// Why a group is skipped, as the peer says it.
fn words(reason: &GroupReason) -> BTreeSet<String> {
    let quota = |resource: &str| format!("exceeded quota: \"cluster-wide\", resources: {resource}");
    let words = match reason {
        GroupReason::AtMaxSize(_) => "max node group size reached".to_owned(),
        GroupReason::BackedOff { .. } => "in backoff after failed scale-up".to_owned(),
        GroupReason::Limit(Limit::Cores(_)) => quota("cpu"),
        GroupReason::Limit(Limit::Memory(_)) => quota("memory"),
        GroupReason::Limit(Limit::Gpu(model, _)) => quota(model),
        GroupReason::Limit(Limit::Nodes(_)) => "atomic scale-up exceeds cluster node count limit".to_owned(),
        GroupReason::Missing { .. }
        | GroupReason::NoTemplate(_)
        | GroupReason::Unreadable(_)
        | GroupReason::Inactive(_) => "not ready for scale-up".to_owned(),
        other => other.to_string(),
    };
    BTreeSet::from([words])
}

fn sum(counts: &BTreeMap<String, u32>) -> u32 {
    counts.values().sum()
}

/// Whether we help no fewer pods with fewer nodes, or more with no more. The peer does not tell which pods found room on
/// nodes that are there or coming: all that it does not report as left over count as helped.
fn is_better(peer: &Answer, ours: &Ours) -> bool {
    let left = sum(&peer.unhelped_pods) + sum(&peer.pods_awaiting_evaluation);
    let theirs = ours.pending.saturating_sub(left);
    let (nodes, peer_nodes) = (sum(&ours.answer.increases), sum(&peer.increases));
    let fewer_left = |(pod, count): (&String, &u32)| peer.unhelped_pods.get(pod).is_some_and(|theirs| count <= theirs);
    ours.answer.unhelped_pods.iter().all(fewer_left)
        && ((nodes < peer_nodes && ours.helped >= theirs) || (nodes <= peer_nodes && ours.helped > theirs))
}

fn compare(peer: &Answer, ours: &Ours) -> Vec<Difference> {
    let Ours { answer: ours, reasons, .. } = ours;
    let mut differences = Vec::new();
    // Without pods to help the peer reports nothing where it fills groups up afterwards.
    let expected = if peer.result == "NotReported" { "ScaleUpNotNeeded" } else { &peer.result };
    if ours.result != expected {
        let text = format!("peer {} {:?}, we {} {:?}", peer.result, peer.increases, ours.result, ours.increases);
        differences.push(Difference::new("another result", text));
    }
    // Who is placed first decides whom others can follow: fewer pods without any hope are welcome.
    let hopeless = |(pod, count): (&String, &u32)| peer.unhelped_pods.get(pod).is_none_or(|theirs| count > theirs);
    if ours.unhelped_pods.iter().any(hopeless) {
        let text = format!("peer {:?}, we {:?} because of {reasons:?}", peer.unhelped_pods, ours.unhelped_pods);
        differences.push(Difference::new("other unhelped pods", text));
    }
    // Only told where some pod stayed unhelped.
    if !peer.unhelped_pods.is_empty() && !ours.unhelped_pods.is_empty() && ours.skipped != peer.skipped {
        let text = format!("peer {:?}, we {:?}", peer.skipped, ours.skipped);
        differences.push(Difference::new("other skipped groups", text));
    }
    if ours.increases != peer.increases && ours.result == expected {
        let (nodes, pods) = (sum(&ours.increases), sum(&ours.pods_triggered_scale_up));
        let (peer_nodes, peer_pods) = (sum(&peer.increases), sum(&peer.pods_triggered_scale_up));
        if nodes >= peer_nodes || pods < peer_pods {
            let cause = match (nodes.cmp(&peer_nodes), pods.cmp(&peer_pods)) {
                (_, std::cmp::Ordering::Less) => "fewer pods are helped",
                (std::cmp::Ordering::Greater, _) => "more nodes are asked for",
                _ => "other groups grow by as many nodes",
            };
            let text = format!(
                "peer {:?} for {:?}, we {:?} for {:?}",
                peer.increases, peer.pods_triggered_scale_up, ours.increases, ours.pods_triggered_scale_up
            );
            differences.push(Difference::new(cause, text));
        }
    }
    differences
}
