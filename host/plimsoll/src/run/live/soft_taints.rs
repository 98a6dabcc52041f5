//! Nodes that are not needed are marked softly, so that new pods rather go elsewhere.

use plimsoll_core::Observation;
use plimsoll_core::plan::{NodeOutcome, NodeReason, Plan};
use plimsoll_kubernetes::Live;
use tokio::time::Instant;

use super::options::SoftTaints;

/// Which nodes of groups are to have the mark.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    needed: Vec<String>,
    unneeded: Vec<String>,
}

/// What a loop thinks of the nodes that belong to groups.
pub(super) fn wishes(plan: &Plan, observation: &Observation<'_>) -> Wishes {
    let mut wishes = Wishes::default();
    for verdict in &plan.nodes {
        let in_group = observation.membership.get(verdict.node).is_some_and(Option::is_some);
        let Some(node) = observation.cluster.nodes.get(verdict.node).filter(|_| in_group) else { continue };
        if verdict.reasons.contains(&NodeReason::BeingDeleted) {
            continue;
        }
        let unneeded = matches!(verdict.outcome, NodeOutcome::Unneeded | NodeOutcome::Removable);
        let list = if unneeded { &mut wishes.unneeded } else { &mut wishes.needed };
        list.push(observation.cluster.text(node.name).to_owned());
    }
    wishes
}

/// Takes marks off first, then puts them on: so many, and no longer than that (the peer's rule).
pub(super) async fn mark(live: &Live, wishes: &Wishes, limits: SoftTaints) {
    let begun = Instant::now();
    let mut written = 0;
    let off = wishes.needed.iter().map(|node| (node, false));
    for (node, candidate) in off.chain(wishes.unneeded.iter().map(|node| (node, true))) {
        if !live.wants_soft_mark(node, candidate) {
            continue;
        }
        if written >= limits.most || begun.elapsed() >= limits.within {
            return;
        }
        written += 1;
        if let Err(error) = live.mark_softly(node, candidate).await {
            tracing::warn!(node, "its soft taint is not changed: {error}");
        }
    }
}
