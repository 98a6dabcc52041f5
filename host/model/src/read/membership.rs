//! Which node is in which group.

use rustc_hash::FxHashMap;

use crate::cluster::Cluster;
use crate::group::{Membership, NodeGroup};

use super::error::{ObjectName, Place, Problem, ReadError};
use super::node_group::KIND;
use super::warning::Warning;

/// Refuses nodes in two groups, and points at groups that are about nothing.
pub(super) fn check(
    cluster: &Cluster,
    groups: &[(NodeGroup, Place)],
    warnings: &mut Vec<Warning>,
) -> Result<(), Box<ReadError>> {
    let mut owner: FxHashMap<usize, &(NodeGroup, Place)> = FxHashMap::default();
    for claimed in groups {
        let (group, place) = claimed;
        let nodes = group.nodes_in(cluster);
        for &node in &nodes {
            if let Some((other, first)) = owner.insert(node, claimed) {
                let node = cluster.nodes.get(node).map_or("", |node| cluster.text(node.name)).to_owned();
                let problem = Problem::TwoGroups { node, other: other.name.clone(), first: first.clone() };
                let object = ObjectName { kind: KIND.to_owned(), namespace: None, name: Some(group.name.clone()) };
                return Err(Box::new(ReadError { object: Some(object), ..*ReadError::at(place.clone(), problem) }));
            }
        }
        warnings.extend(unknown_nodes(cluster, group, &nodes, place));
        if nodes.is_empty() && group.template.is_none() {
            warnings.push(Warning::NoModel { group: group.name.clone(), place: place.clone() });
        }
    }
    Ok(())
}

fn unknown_nodes(cluster: &Cluster, group: &NodeGroup, found: &[usize], place: &Place) -> Option<Warning> {
    let found = || found.iter().filter_map(|&node| cluster.nodes.get(node));
    let missing: Vec<&str> = match &group.members {
        Membership::Names(names) => {
            let found: rustc_hash::FxHashSet<_> = found().map(|node| node.name).collect();
            names.iter().filter(|name| !found.contains(name)).map(|&name| cluster.text(name)).collect()
        }
        Membership::ProviderIds(ids) => {
            let found: rustc_hash::FxHashSet<_> = found().map(|node| &*node.provider_id).collect();
            ids.iter().map(String::as_str).filter(|id| !found.contains(id)).collect()
        }
        Membership::Selector(_) | Membership::Nothing => Vec::new(),
    };
    let first = missing.first()?;
    Some(Warning::UnknownNodes {
        group: group.name.clone(),
        count: missing.len(),
        first: (*first).to_owned(),
        place: place.clone(),
    })
}
