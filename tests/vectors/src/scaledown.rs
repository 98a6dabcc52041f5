//! `scaledown`: two loops over the same cluster; the answer is the second one's.
//!
//! Nodes that are unneeded, that are held and that go must be the peer's, or more nodes go and every pod that moves has a
//! place by the oracle.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use plimsoll_core::plan::{NodeOutcome, NodeReason};
use plimsoll_model::Time;
use serde::Deserialize;

use crate::case::Case;
use crate::scene::{Scene, Turn};
use crate::{Difference, Outcome, audit};

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    unneeded: BTreeSet<String>,
    unremovable: BTreeMap<String, String>,
    blocked_by: BTreeMap<String, String>,
    empty_to_delete: BTreeSet<String>,
    drain_to_delete: BTreeSet<String>,
}

/// Our answer: like the peer's, but with every reason.
#[derive(Debug, Default)]
struct Ours {
    unneeded: BTreeSet<String>,
    reasons: BTreeMap<String, Vec<(String, String)>>,
    empty: BTreeSet<String>,
    drain: BTreeSet<String>,
}

/// What the notes say where another order of the nodes gives another answer.
const ORDERED: &str = "depends on the order of cluster.nodes";

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut scene = Scene::new(case)?;
    let first = Time::parse(&case.first_loop).with_context(|| format!("firstLoop: {:?}", case.first_loop))?;
    scene.turn(first);
    // The answers are from before the cut to what may go at a time.
    scene.settings.max_scale_down_parallelism = u32::MAX;
    scene.settings.max_drain_parallelism = u32::MAX;
    let turn = scene.turn(case.at()?);
    let ours = told(&scene, &turn);
    let mut differences = Vec::new();
    if let Err(error) = audit::removals(&scene, &turn.plan, &turn.plan.scale_down) {
        differences.push(Difference::new("a move is invalid", format!("{error:#}")));
    }
    let answers = if case.expect_any_of.is_empty() { std::slice::from_ref(&case.expect) } else { &case.expect_any_of };
    let mut best: Option<Vec<Difference>> = None;
    let mut remark = None;
    for answer in answers {
        let answer: Answer = serde_json::from_value(answer.clone()).context("expect")?;
        let found = compare(&answer, &ours);
        if !found.is_empty() && goes_further(&answer, &ours) {
            remark = Some("more nodes go");
            best = Some(vec![]);
        } else if !found.is_empty() && case.note.contains(ORDERED) && goes_as_far(&answer, &ours) {
            remark = Some("as many nodes, but others, where the order decides");
            best = Some(vec![]);
        } else if best.as_ref().is_none_or(|best| found.len() < best.len()) {
            best = Some(found);
        }
    }
    differences.extend(best.unwrap_or_default());
    Ok(match Outcome::of_all(&differences) {
        Outcome::Passed { nodes, .. } => Outcome::Passed { remark, nodes },
        failed @ Outcome::Failed { .. } => failed,
    })
}

fn told(scene: &Scene, turn: &Turn) -> Ours {
    let cluster = &scene.cluster;
    let name = |node: usize| cluster.nodes.get(node).map_or("", |node| cluster.text(node.name)).to_owned();
    let mut ours = Ours::default();
    for verdict in &turn.plan.nodes {
        let has = |wanted: fn(&NodeReason) -> bool| verdict.reasons.iter().any(wanted);
        let found_removable = match verdict.outcome {
            NodeOutcome::Removable => !has(|reason| matches!(reason, NodeReason::BeingDeleted)),
            NodeOutcome::Unneeded => true,
            // Its other pods have places, but it waits for one that ends by itself.
            NodeOutcome::Blocked => has(|reason| matches!(reason, NodeReason::OnCompletion(_))),
            NodeOutcome::Needed => false,
        };
        if found_removable {
            ours.unneeded.insert(name(verdict.node));
        }
        let words = |reason: &NodeReason| match reason {
            NodeReason::Pod(pod, blocker) => {
                let pod = cluster.pods.get(*pod).map(|pod| cluster.pod_name(pod)).unwrap_or_default();
                (reason.code().to_owned(), format!("{} {pod}", blocker.code()))
            }
            reason => (reason.code().to_owned(), String::new()),
        };
        ours.reasons.insert(name(verdict.node), verdict.reasons.iter().map(words).collect());
    }
    for removal in &turn.plan.scale_down {
        let set = if removal.drain { &mut ours.drain } else { &mut ours.empty };
        set.insert(name(removal.node));
    }
    ours
}

fn compare(peer: &Answer, ours: &Ours) -> Vec<Difference> {
    let mut differences = Vec::new();
    // What the peer's search does not reach appears nowhere in its answer.
    let is_told = |node: &&String| peer.unneeded.contains(*node) || peer.unremovable.contains_key(*node);
    let unneeded: BTreeSet<&String> = ours.unneeded.iter().filter(is_told).collect();
    if unneeded != peer.unneeded.iter().collect() {
        let text = format!("peer {:?}, we {:?} {:?}", peer.unneeded, ours.unneeded, ours.reasons);
        differences.push(Difference::new("other unneeded nodes", text));
    }
    // What an unneeded node waits for may be told otherwise: we tell everything.
    for (node, reason) in peer.unremovable.iter().filter(|(node, _)| !peer.unneeded.contains(*node)) {
        let reasons = ours.reasons.get(node).map(Vec::as_slice).unwrap_or_default();
        let pod = peer.blocked_by.get(node).map(String::as_str).unwrap_or_default();
        // Which budget is spent first hangs on the nodes before this one.
        let any_pod = pod.is_empty() || pod.starts_with("NotEnoughPdb");
        let told = reasons.iter().any(|(code, detail)| code == reason && (any_pod || detail == pod));
        if !told {
            let text = format!("{node}: peer {reason} {pod}, we {reasons:?}");
            differences.push(Difference::new("another reason of a node that stays", text));
        }
    }
    let (empty, drain) = (&ours.empty, &ours.drain);
    if (empty, drain) != (&peer.empty_to_delete, &peer.drain_to_delete) {
        let text = format!(
            "peer empty {:?} drained {:?}, we empty {empty:?} drained {drain:?}",
            peer.empty_to_delete, peer.drain_to_delete
        );
        differences.push(Difference::new("other nodes go", text));
    }
    differences
}

/// Whether more nodes go than the peer lets go, and none that a rule of the peer's holds.
fn goes_further(peer: &Answer, ours: &Ours) -> bool {
    let going = |empty: &BTreeSet<String>, drain: &BTreeSet<String>| -> BTreeSet<String> {
        empty.union(drain).cloned().collect()
    };
    let theirs = going(&peer.empty_to_delete, &peer.drain_to_delete);
    let these = going(&ours.empty, &ours.drain);
    // What only hangs on which other nodes go.
    let relative =
        ["NoPlaceToMovePods", "NodeGroupMinSizeReached", "MinimalResourceLimitExceeded", "AtomicScaleDownFailed"];
    let allowed = |node: &String| {
        let reason = peer.unremovable.get(node);
        reason.is_none_or(|reason| relative.contains(&reason.as_str()))
    };
    these.len() > theirs.len() && these.difference(&theirs).all(allowed)
}

/// Whether as many nodes are unneeded and as many go, and none that a rule of the peer's holds.
fn goes_as_far(peer: &Answer, ours: &Ours) -> bool {
    let theirs = peer.empty_to_delete.len() + peer.drain_to_delete.len();
    let by_a_rule = |node: &String| {
        let reason = peer.unremovable.get(node);
        !peer.unneeded.contains(node) && reason.is_some_and(|reason| reason != "NoPlaceToMovePods")
    };
    ours.unneeded.len() >= peer.unneeded.len()
        && ours.empty.len() + ours.drain.len() >= theirs
        && !ours.unneeded.iter().any(by_a_rule)
}
