//! Kinds of nodes: nodes that no static rule can tell apart, names and host-name labels aside.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::HashTable;
use plimsoll_model::selector::{LabelSelector, NodeSelector};
use plimsoll_model::symbol::known;
use plimsoll_model::{Node, Symbol, Taint};
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::facts::Facts;
use crate::predicates::volume_zone;
use crate::table::{Id, ids};

ids! {
    /// A kind of node.
    pub(crate) KindId;
}

/// All kinds.
#[derive(Debug)]
pub(crate) struct Kinds {
    by_content: HashTable<(KindId, Look)>,
    /// Label keys that some rule reads.
    keys: FxHashSet<Symbol>,
}

/// What makes a kind.
#[derive(Debug)]
struct Look {
    labels: Box<[(Symbol, Symbol)]>,
    taints: Box<[Taint]>,
    unschedulable: bool,
    features: Box<[Symbol]>,
}

impl Look {
    /// A hash, and whether a look is the same, straight from a node: most nodes are of a known kind.
    fn hash(
        labels: impl Iterator<Item = (Symbol, Symbol)>,
        taints: &[Taint],
        cordoned: bool,
        features: &[Symbol],
    ) -> u64 {
        let mut hasher = FxBuildHasher.build_hasher();
        labels.for_each(|pair| pair.hash(&mut hasher));
        (taints, cordoned, features).hash(&mut hasher);
        hasher.finish()
    }
}

impl Kinds {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let mut keys: FxHashSet<Symbol> = volume_zone::KEYS.iter().map(|(key, _)| *key).collect();
        let add_selector = |keys: &mut FxHashSet<Symbol>, selector: &NodeSelector| {
            keys.extend(selector.terms.iter().flat_map(|term| &term.expressions).map(|requirement| requirement.key));
        };
        for (_, spec) in facts.cluster.specs.iter() {
            keys.extend(spec.node_selector.iter().map(|(key, _)| key));
            spec.node_affinity.iter().for_each(|affinity| add_selector(&mut keys, affinity));
        }
        let storage = &facts.cluster.storage;
        for affinity in storage.volumes.values().filter_map(|volume| volume.node_affinity.as_ref()) {
            add_selector(&mut keys, affinity);
        }
        let topologies = storage.classes.values().flat_map(|class| &class.allowed_topologies);
        keys.extend(topologies.flatten().map(|(key, _)| *key));
        for topology in storage.capacities.iter().filter_map(|capacity| capacity.topology.as_ref()) {
            if let LabelSelector::All(requirements) = topology {
                keys.extend(requirements.iter().map(|requirement| requirement.key));
            }
        }
        keys.remove(&known::HOSTNAME);
        Self { by_content: HashTable::new(), keys }
    }

    /// The kind of a node.
    pub(crate) fn intern(&mut self, node: &Node) -> KindId {
        let labels = || node.labels.iter().filter(|(key, _)| self.keys.contains(key));
        let hash = Look::hash(labels(), &node.taints, node.unschedulable, &node.features);
        let same = |(_, look): &(KindId, Look)| {
            look.labels.iter().copied().eq(labels())
                && look.taints == node.taints
                && look.unschedulable == node.unschedulable
                && look.features == node.features
        };
        if let Some((kind, _)) = self.by_content.find(hash, same) {
            return *kind;
        }
        let look = Look {
            labels: labels().collect(),
            taints: node.taints.clone(),
            unschedulable: node.unschedulable,
            features: node.features.clone(),
        };
        let kind = KindId::at(self.by_content.len());
        self.by_content.insert_unique(hash, (kind, look), |(_, look)| {
            Look::hash(look.labels.iter().copied(), &look.taints, look.unschedulable, &look.features)
        });
        kind
    }
}
