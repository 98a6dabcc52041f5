//! What every tracker may look at: nodes with what is on them, pod classes, domains.

use std::sync::Arc;

use plimsoll_model::devices::ResourceSlice;
use plimsoll_model::storage::CsiNode;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, PodSpec, Resources, SpecId, Symbol, Template};
use smallvec::SmallVec;

use super::classes::{Class, Classes};
use super::free::{Dim, Free};
use super::kinds::{KindId, Kinds};
use super::topology::{Column, DomainId, KeyId, Topology};
use crate::facts::{Facts, Gates};
use crate::table::{Id, Table, ids};

ids! {
    /// A node of a [`Snapshot`](crate::Snapshot). Numbers are given in the order of arrival; those of the cluster's nodes
    /// are their positions in it. The number of a node that was undone is given again.
    pub NodeId;
    /// A pod class of a [`Snapshot`](crate::Snapshot): pods that no predicate can tell apart.
    pub ClassId;
    /// A template that a [`Snapshot`](crate::Snapshot) can make nodes of.
    pub ShapeId;
}

impl NodeId {
    /// The `index`-th node.
    pub fn new(index: usize) -> Self {
        Self::at(index)
    }

    /// Position in the order of arrival.
    pub fn index(self) -> usize {
        Id::index(self)
    }
}

/// Equal pods: a class and how many.
pub type Count = (ClassId, u32);

/// Pods of a node by class.
pub(crate) type Runs = SmallVec<[Count; 4]>;

/// Whether a node takes pods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Life {
    /// It does.
    Open,
    /// It is about to go: takes no pods, but is still there for topology, with the taint of such nodes.
    Closed,
    /// It is gone.
    Removed,
}

/// Where a node comes from.
#[derive(Clone, Debug)]
enum Source<'c> {
    Listed(&'c Node),
    /// A node of the cluster as it will be.
    Changed(Arc<Node>),
    Copy(ShapeId),
}

/// A template, ready to be copied.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The node with a name that stands for any fresh one.
    pub(crate) node: Node,
    kind: KindId,
    row: Box<[i64]>,
    /// Pods that each copy starts with.
    pub(crate) runs: Runs,
    /// CSI drivers that each copy has, with their limits.
    csi_node: Option<CsiNode>,
    /// Devices that each copy has.
    pub(crate) slices: Vec<Arc<ResourceSlice>>,
}

/// More than any pods ask for, and far from an overflow.
const PLENTY: i64 = i64::MAX / 4;

/// Name and host name of a template while it is not a node yet. Copies get the names that their numbers stand for.
const UNBORN: Symbol = Symbol::nameless(0);

/// What every tracker may look at.
#[derive(Debug)]
pub(crate) struct Base<'c> {
    pub(crate) facts: Facts<'c>,
    pub(crate) classes: Classes,
    pub(crate) topology: Topology,
    pub(crate) free: Free,
    kinds: Kinds,
    pub(crate) shapes: Table<ShapeId, Shape>,
    source: Table<NodeId, Source<'c>>,
    pub(crate) kind: Table<NodeId, KindId>,
    pub(crate) life: Table<NodeId, Life>,
    pub(crate) cordoned: Table<NodeId, bool>,
    pub(crate) runs: Table<NodeId, Runs>,
}

impl<'c> Base<'c> {
    pub(crate) fn new(cluster: &'c Cluster, gates: Gates) -> Self {
        let facts = Facts::new(cluster, gates);
        let asked = cluster.specs.iter().flat_map(|(_, spec)| spec.requests.scalars.iter());
        let mut scalars: Vec<Symbol> = asked.filter(|(_, amount)| *amount > 0).map(|(name, _)| *name).collect();
        scalars.sort_unstable();
        scalars.dedup();
        Self {
            classes: Classes::new(&facts),
            kinds: Kinds::new(&facts),
            facts,
            topology: Topology::default(),
            free: Free::new(scalars.into()),
            shapes: Table::default(),
            source: Table::default(),
            kind: Table::default(),
            life: Table::default(),
            cordoned: Table::default(),
            runs: Table::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.life.len()
    }

    pub(crate) fn spec(&self, class: ClassId) -> &'c PodSpec {
        &self.facts.cluster.specs[self.classes.table[class].spec]
    }

    pub(crate) fn class(&self, class: ClassId) -> &Class {
        &self.classes.table[class]
    }

    /// The node; of a copy, its shape's, which differs in name and host name only.
    pub(crate) fn node(&self, node: NodeId) -> &Node {
        match &self.source[node] {
            Source::Listed(node) => node,
            Source::Changed(node) => node,
            Source::Copy(shape) => &self.shapes[*shape].node,
        }
    }

    pub(crate) fn shape_of(&self, node: NodeId) -> Option<ShapeId> {
        match self.source[node] {
            Source::Listed(_) | Source::Changed(_) => None,
            Source::Copy(shape) => Some(shape),
        }
    }

    /// Slices that the node brings itself, if it is a copy.
    pub(crate) fn own_slices(&self, node: NodeId) -> Option<&[Arc<ResourceSlice>]> {
        match self.source[node] {
            Source::Listed(_) | Source::Changed(_) => None,
            Source::Copy(shape) => Some(&self.shapes[shape].slices),
        }
    }

    /// The node as selectors see it: with a name and host name of its own.
    pub(crate) fn named_node(&self, node: NodeId) -> std::borrow::Cow<'_, Node> {
        match &self.source[node] {
            Source::Listed(node) => std::borrow::Cow::Borrowed(*node),
            Source::Changed(node) => std::borrow::Cow::Borrowed(&**node),
            Source::Copy(shape) => {
                let shape = &self.shapes[*shape].node;
                let name = fresh_name(node);
                let labels = shape.labels.with(known::HOSTNAME, name);
                std::borrow::Cow::Owned(Node { name, labels, ..shape.clone() })
            }
        }
    }

    /// CSI drivers of the node.
    pub(crate) fn csi_node(&self, node: NodeId) -> Option<&CsiNode> {
        match &self.source[node] {
            Source::Listed(node) => self.facts.cluster.storage.csi_nodes.get(&node.name),
            Source::Changed(node) => self.facts.cluster.storage.csi_nodes.get(&node.name),
            Source::Copy(shape) => self.shapes[*shape].csi_node.as_ref(),
        }
    }

    /// A label of the node.
    pub(crate) fn label(&self, node: NodeId, key: Symbol) -> Option<Symbol> {
        match self.source[node] {
            Source::Copy(_) if key == known::HOSTNAME => Some(fresh_name(node)),
            _ => self.node(node).labels.get(key),
        }
    }

    /// The column of a topology key, made if it is new.
    pub(crate) fn key(&mut self, key: Symbol) -> KeyId {
        if let Some(found) = self.topology.find(key) {
            return found;
        }
        let mut column = Column::new(key);
        self.life.ids().for_each(|node| column.push(self.label(node, key)));
        self.topology.insert(column)
    }

    pub(crate) fn domain(&self, key: KeyId, node: NodeId) -> DomainId {
        self.topology.domain(key, node)
    }

    /// Adds a node of the cluster.
    pub(crate) fn push_listed(&mut self, node: &'c Node) -> NodeId {
        let kind = self.kinds.intern(node);
        let row = self.row(&node.allocatable);
        let id = self.source.push(Source::Listed(node));
        self.kind.push(kind);
        self.cordoned.push(node.unschedulable);
        self.free.push(&row);
        self.runs.push(Runs::new());
        self.finish_push(id);
        id
    }

    /// Lets go of marks on a node of the cluster: taints with this key and, if so told, the cordon.
    pub(crate) fn unmark(&mut self, node: NodeId, key: Symbol, uncordon: bool) {
        let mut changed = self.node(node).clone();
        changed.taints = changed.taints.iter().copied().filter(|taint| taint.key != key).collect();
        changed.unschedulable &= !uncordon;
        self.kind[node] = self.kinds.intern(&changed);
        self.cordoned[node] = changed.unschedulable;
        self.source[node] = Source::Changed(Arc::new(changed));
    }

    /// Adds a copy of a shape with the pods that it starts with.
    pub(crate) fn push_copy(&mut self, shape: ShapeId) -> NodeId {
        let template = &self.shapes[shape];
        let node = self.source.push(Source::Copy(shape));
        self.kind.push(template.kind);
        self.cordoned.push(template.node.unschedulable);
        self.free.push(&template.row);
        self.runs.push(template.runs.clone());
        self.finish_push(node);
        for index in 0..self.runs[node].len() {
            let Some(&(class, _)) = self.runs[node].get(index) else { break };
            self.settle(class, node);
        }
        node
    }

    fn finish_push(&mut self, node: NodeId) {
        self.life.push(Life::Open);
        for key in self.topology.columns.ids() {
            let value = self.label(node, self.topology.columns[key].key);
            self.topology.columns[key].push(value);
        }
    }

    /// Takes the last node away, with all that is on it.
    pub(crate) fn pop(&mut self) {
        for (class, _) in self.runs.pop().into_iter().flatten() {
            self.classes.table[class].live_sites -= 1;
        }
        self.source.pop();
        self.kind.pop();
        self.life.pop();
        self.cordoned.pop();
        self.free.pop();
        self.topology.columns.rows_mut().for_each(Column::pop);
    }

    /// Keeps a template to make copies of. `pods` are what each copy starts with.
    pub(crate) fn add_shape(&mut self, template: &Template, pods: Runs, csi_node: Option<CsiNode>) -> ShapeId {
        let mut node = template.node.clone();
        node.name = UNBORN;
        node.labels = node.labels.with(known::HOSTNAME, UNBORN);
        let kind = self.kinds.intern(&node);
        let mut row = self.row(&node.allocatable);
        for (class, count) in &pods {
            for &(dim, amount) in &self.classes.table[*class].demand {
                if let Some(left) = row.get_mut(dim.index()) {
                    *left = left.wrapping_sub(amount.wrapping_mul(i64::from(*count)));
                }
            }
        }
        self.shapes.push(Shape { node, kind, row: row.into(), runs: pods, csi_node, slices: template.slices.clone() })
    }

    /// What is left on a fresh copy of a shape.
    pub(crate) fn shape_row(&self, shape: ShapeId) -> &[i64] {
        &self.shapes[shape].row
    }

    pub(crate) fn shape_kind(&self, shape: ShapeId) -> KindId {
        self.shapes[shape].kind
    }

    fn row(&self, resources: &Resources) -> Vec<i64> {
        let native = [resources.cpu_milli, resources.memory_bytes, resources.ephemeral_storage_bytes, resources.pods];
        let scalars = self.free.scalars.iter().map(|&name| self.offered(name, resources));
        native.into_iter().chain(scalars).collect()
    }

    /// How much of a scalar resource counts as offered. What a node leaves to devices is not counted here.
    fn offered(&self, name: Symbol, allocatable: &Resources) -> i64 {
        match self.facts.is_left_to_devices(name, allocatable) {
            true => PLENTY,
            false => allocatable.scalar(name),
        }
    }

    /// What the pods on a node ask for.
    pub(crate) fn requested(&self, node: NodeId) -> Resources {
        let offered = &self.node(node).allocatable;
        let taken = |dim, offered: i64| offered.wrapping_sub(self.free.get(node, dim));
        let scalars = self.free.scalars.iter().enumerate().map(|(index, &name)| {
            let offered = self.offered(name, offered);
            (name, taken(Dim::scalar(index), offered))
        });
        Resources {
            cpu_milli: taken(Dim::CPU, offered.cpu_milli),
            memory_bytes: taken(Dim::MEMORY, offered.memory_bytes),
            ephemeral_storage_bytes: taken(Dim::STORAGE, offered.ephemeral_storage_bytes),
            pods: taken(Dim::PODS, offered.pods),
            scalars: Box::default(),
        }
        .with_scalars(scalars.filter(|(_, taken)| *taken != 0))
    }

    /// `delta` pods of a class come to a node, or leave it if negative.
    pub(crate) fn shift(&mut self, class: ClassId, node: NodeId, delta: i64) {
        self.free.take(node, &self.classes.table[class].demand, delta);
        let runs = &mut self.runs[node];
        let Some(at) = runs.iter().position(|run| run.0 == class) else {
            runs.push((class, u32::try_from(delta).unwrap_or(0)));
            self.settle(class, node);
            return;
        };
        let Some((_, count)) = runs.get_mut(at) else { return };
        *count = u32::try_from(i64::from(*count).saturating_add(delta)).unwrap_or(0);
        if *count == 0 {
            runs.swap_remove(at);
            self.classes.table[class].live_sites -= 1;
        }
    }

    fn settle(&mut self, class: ClassId, node: NodeId) {
        let runs = &self.runs;
        let class_row = &mut self.classes.table[class];
        class_row.live_sites += 1;
        class_row.sites.push(node);
        // Sites that are no longer any are swept out when they are the greater part.
        if class_row.sites.len() >= 16 && class_row.sites.len() >= 4 * class_row.live_sites {
            class_row.sites.sort_unstable();
            class_row.sites.dedup();
            class_row.sites.retain(|&site| runs.get(site).is_some_and(|runs| runs.iter().any(|run| run.0 == class)));
        }
    }

    /// Nodes that a class is on, with how many of it, each once.
    pub(crate) fn sites(&self, class: ClassId) -> impl Iterator<Item = (NodeId, i64)> {
        let mut sites = self.classes.table[class].sites.clone();
        sites.sort_unstable();
        sites.dedup();
        sites.into_iter().filter_map(move |node| {
            let run = self.runs.get(node)?.iter().find(|run| run.0 == class)?;
            Some((node, i64::from(run.1)))
        })
    }

    /// The class of a spec, and whether it is new.
    pub(crate) fn intern(&mut self, spec: SpecId, terminating: bool) -> (ClassId, bool) {
        self.classes.intern(&self.facts, &self.free.scalars, spec, terminating)
    }
}

/// Name of a copy, and value of its host-name label.
pub(crate) fn fresh_name(node: NodeId) -> Symbol {
    // The first two are taken: by templates, and by label values that nobody mentions.
    Symbol::nameless(u32::try_from(node.index() + 2).unwrap_or(2))
}
