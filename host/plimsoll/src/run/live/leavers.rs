//! Node objects whose machines are gone: the cloud's controller deletes them, or this program where it is asked to.

use plimsoll_core::memory::Stage;
use plimsoll_core::{Memory, Observation};
use plimsoll_kubernetes::Live;

/// Nodes on their way out whose machines the cloud does not have any more.
pub(super) fn without_machine(observation: &Observation<'_>, memory: &Memory) -> Vec<String> {
    let cluster = observation.cluster;
    let mut names = Vec::new();
    for (name, removal) in &memory.removals {
        let node = cluster.symbols.find(name).and_then(|symbol| observation.node_by_name.get(&symbol));
        let has_no_machine = node.is_some_and(|node| observation.membership.get(*node).is_none_or(Option::is_none));
        let group = observation.groups.iter().find(|view| view.cloud.id == removal.group);
        let is_well_read = group.is_some_and(|view| view.cloud.error.is_none());
        if matches!(removal.stage, Stage::Deleting(_)) && has_no_machine && is_well_read {
            names.push(name.clone());
        }
    }
    names
}

/// Deletes their objects.
pub(super) async fn delete(live: &Live, names: &[String]) {
    for name in names {
        match live.delete_node(name).await {
            Ok(()) => tracing::info!(node = name, "its object is deleted, as its machine is gone"),
            Err(error) => tracing::warn!(node = name, "its object is not deleted: {error}"),
        }
    }
}
