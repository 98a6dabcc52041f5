//! Node groups as people write them in files: `plimsoll.dev/v1alpha1 NodeGroup`.

use rustc_hash::FxHashSet;

use crate::cluster::Cluster;
use crate::labels::Labels;
use crate::symbol::Symbol;
use crate::template::Template;

/// How a group in a file says which nodes are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// By node name.
    Names(Vec<Symbol>),
    /// By labels.
    Selector(Labels),
    /// By `spec.providerID`.
    ProviderIds(Vec<String>),
    /// It has none.
    Nothing,
}

/// A `NodeGroup` object.
#[derive(Clone, Debug)]
pub struct NodeGroup {
    /// `metadata.name`.
    pub name: String,
    /// Least size.
    pub min_size: u32,
    /// Greatest size.
    pub max_size: u32,
    /// Size that the cloud works towards; absent: the number of its nodes.
    pub target_size: Option<u32>,
    /// Its nodes.
    pub members: Membership,
    /// What a fresh node looks like; absent: made from one of its nodes.
    pub template: Option<Template>,
    /// Price of one node, in millionths of the currency per hour.
    pub price_micros_per_hour: Option<u64>,
    /// Per-group options by the peer's flag names, as text.
    pub options: Vec<(String, String)>,
    /// For the priority expander; higher wins.
    pub priority: Option<i32>,
}

impl NodeGroup {
    /// The nodes of a cluster that are in this group: their places in [`Cluster::nodes`], ascending.
    pub fn nodes_in(&self, cluster: &Cluster) -> Vec<usize> {
        let nodes = cluster.nodes.iter().enumerate();
        match &self.members {
            Membership::Names(names) => {
                let names: FxHashSet<_> = names.iter().copied().collect();
                nodes.filter(|(_, node)| names.contains(&node.name)).map(|(at, _)| at).collect()
            }
            Membership::Selector(labels) => {
                nodes.filter(|(_, node)| node.labels.contains(labels)).map(|(at, _)| at).collect()
            }
            Membership::ProviderIds(ids) => {
                let ids: FxHashSet<_> = ids.iter().map(String::as_str).collect();
                nodes.filter(|(_, node)| ids.contains(&*node.provider_id)).map(|(at, _)| at).collect()
            }
            Membership::Nothing => Vec::new(),
        }
    }
}
