//! A plain evaluator, straight from the rules: no caches, no counters. Slow, and so simple that it can be believed.
//!
//! Tests hold the [engine](crate::Snapshot) to it; simulated schedulers use it where speed does not matter.

use std::sync::Arc;

use plimsoll_model::devices::ResourceSlice;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, PodSpec, SpecId, Symbol, Template};

use crate::facts::{Facts, Gates, TO_BE_DELETED};
use crate::predicates::{self, RULES, Rule};
use crate::refusal::{self, Phase, Reason, Refusal};

/// A pod that is on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resident {
    /// What it holds.
    pub spec: SpecId,
    /// Whether it is being deleted: it holds what it holds, but spreading does not count it.
    pub terminating: bool,
}

/// A node with the pods on it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: Vec<Resident>,
    /// Whether it is about to be removed: nothing may come, and it carries the taint of such nodes.
    pub closed: bool,
    /// Devices of its own, for a node that a template was copied to; none: those of the cluster's slices.
    pub slices: Option<Vec<Arc<ResourceSlice>>>,
}

impl Place {
    /// An empty place.
    pub fn new(node: Node) -> Self {
        Self { node, pods: Vec::new(), closed: false, slices: None }
    }

    /// A copy of a template under a name of its own, with the pods that it starts with.
    pub fn copy_of(template: &Template, name: Symbol) -> Self {
        let labels = template.node.labels.with(known::HOSTNAME, name);
        let pods = template.pods.iter().map(|pod| Resident { spec: pod.spec, terminating: false });
        Self {
            node: Node { name, labels, ..template.node.clone() },
            pods: pods.collect(),
            closed: false,
            slices: Some(template.slices.clone()),
        }
    }

    /// Taints of the node, with the one that a closed node gets.
    pub(crate) fn taints(&self) -> impl Iterator<Item = &plimsoll_model::Taint> {
        self.node.taints.iter().chain(self.closed.then_some(&TO_BE_DELETED))
    }
}

/// Nodes with their pods. Strings, specs and storage are the cluster's.
#[derive(Debug)]
pub struct World<'c> {
    pub(crate) facts: Facts<'c>,
    /// The nodes, in any order.
    pub places: Vec<Place>,
}

impl<'c> World<'c> {
    /// A world without nodes.
    pub fn empty(cluster: &'c Cluster, gates: Gates) -> Self {
        Self { facts: Facts::new(cluster, gates), places: Vec::new() }
    }

    /// All nodes of the cluster, in its order, without pods.
    pub fn new(cluster: &'c Cluster, gates: Gates) -> Self {
        let places = cluster.nodes.iter().cloned().map(Place::new).collect();
        Self { places, ..Self::empty(cluster, gates) }
    }

    pub(crate) fn spec(&self, id: SpecId) -> &'c PodSpec {
        &self.facts.cluster.specs[id]
    }

    /// Why a pod does not fit the `node`-th place: the first refusal in the scheduler's order; none if it fits. A place
    /// that does not exist refuses like a closed one.
    pub fn refusal(&self, pod: &PodSpec, node: usize) -> Option<Refusal> {
        let closed = || Refusal { predicate: CLOSED, phase: Phase::Filter, reasons: vec![Reason::Closed] };
        let Some(place) = self.places.get(node).filter(|place| !place.closed) else {
            return Some(closed());
        };
        let set = match predicates::admit(&self.facts, pod) {
            Ok(set) => set,
            Err(refusal) => return Some(refusal),
        };
        if let Some(set) = set.filter(|set| !set.names.contains(&place.node.name)) {
            return Some(Refusal { predicate: set.predicates, phase: Phase::NodeSet, reasons: Vec::new() });
        }
        RULES.iter().find_map(|rule| {
            let reasons = match rule {
                Rule::Static(rule) => rule.refuse(&self.facts, pod, &place.node),
                Rule::Dynamic(rule) => rule.refuse(self, pod, place),
            };
            refusal::by_filter(rule.name(), reasons)
        })
    }

    /// Whether a pod fits the `node`-th place.
    pub fn fits(&self, pod: &PodSpec, node: usize) -> bool {
        self.refusal(pod, node).is_none()
    }
}

/// What [`Refusal::predicate`] says of a node that is about to be removed. No predicate of the scheduler.
pub const CLOSED: &str = "Closed";
