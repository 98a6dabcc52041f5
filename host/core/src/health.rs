//! Whether the cluster as a whole is well enough to act on (the peer's gate).

use std::fmt;

use plimsoll_model::symbol::known;

use crate::observation::{GroupView, Observation};
use crate::settings::Settings;

/// Too many nodes are not ready.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unhealthy {
    /// Nodes that are not ready, although they had time to become so.
    pub unready: usize,
    /// All nodes.
    pub nodes: usize,
}

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unready, nodes } = self;
        write!(
            f,
            "{unready} of {nodes} nodes are not ready: more than ok-total-unready-count and max-total-unready-percentage \
             allow, so nothing is done"
        )
    }
}

/// Whether a group has so many nodes ready as it should have, apart from those that are waited for and those that are
/// known not to come. Source: the peer's health of node groups.
///
/// # Errors
///
/// If it has not: the nodes that it should have, and those that are ready.
#[allow(clippy::cast_precision_loss, reason = "node counts are small")]
pub fn of_group(
    group: &GroupView<'_>,
    not_coming: u32,
    observation: &Observation<'_>,
    settings: &Settings,
) -> Result<(), (u32, u32)> {
    let is_ready = |&&node: &&usize| observation.readiness.get(node).is_none_or(|state| state.ready);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let ready = count(group.nodes.iter().filter(is_ready).count());
    let wanted = group.cloud.target_size.saturating_sub(not_coming);
    let missing = wanted.saturating_sub(ready);
    let share = settings.max_total_unready_percentage / 100.0;
    let too_many = missing > settings.ok_total_unready_count && f64::from(missing) > share * group.nodes.len() as f64;
    if too_many || (group.nodes.is_empty() && missing > 0) { Err((wanted, ready)) } else { Ok(()) }
}

/// Looks at all nodes. Those that are still starting, or on their way out, do not count as unready. Source: the peer's
/// cluster state.
///
/// # Errors
///
/// If the cluster is not well.
#[allow(clippy::cast_precision_loss, reason = "node counts are small")]
pub fn check(observation: &Observation<'_>, settings: &Settings) -> Result<(), Unhealthy> {
    let nodes = &observation.cluster.nodes;
    let unready = nodes.iter().zip(&observation.readiness).filter(|(node, state)| {
        let starting = node.created_at.is_some_and(|at| observation.at.since(at) <= settings.max_node_startup_time);
        !state.ready && !starting && node.taint(known::TO_BE_DELETED).is_none()
    });
    let unready = unready.count();
    let share = settings.max_total_unready_percentage / 100.0;
    let tolerated = usize::try_from(settings.ok_total_unready_count).unwrap_or(usize::MAX);
    if unready > tolerated && unready as f64 > share * nodes.len() as f64 {
        return Err(Unhealthy { unready, nodes: nodes.len() });
    }
    Ok(())
}
