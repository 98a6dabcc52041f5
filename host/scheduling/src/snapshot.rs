//! A cluster in which pods can be moved about at no cost, and every move undone.

pub(crate) mod base;
pub(crate) mod classes;
pub(crate) mod free;
pub(crate) mod kinds;
pub(crate) mod search;
pub(crate) mod topology;

use std::hash::{Hash, Hasher};

use plimsoll_model::storage::CsiNode;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, Resources, SpecId, Template};

use crate::facts::Gates;
use crate::oracle::CLOSED;
use crate::predicates::{RULES, Rule, Tracker, Verdict};
use crate::refusal::{self, Phase, Reason, Refusal};
use crate::table::{Id, Table, ids};

use base::{Base, ClassId, Count, Life, NodeId, Runs, ShapeId};
use classes::{Class, Inquiry};
use kinds::KindId;
pub use search::{Candidates, Run};

ids! {
    /// The engine's part of a dynamic predicate, in the scheduler's order.
    TrackerId;
}

/// Nodes with pods on them, and the answer to the question which of them take which pods.
///
/// Equal pods are one class; nothing here costs more for there being more of them. Strings, specs and storage are those
/// of the cluster that it was made from. Questions take the snapshot by `&mut` because counters that they need are built
/// when first asked for.
///
/// # Panics
///
/// Methods panic when they are given a number that another snapshot gave, or that of a node that was undone.
pub struct Snapshot<'c> {
    pub(crate) base: Base<'c>,
    trackers: Table<TrackerId, Box<dyn Tracker>>,
    /// Trackers that moves matter to, as a bit mask.
    awake: u32,
    /// Raised when classes that were prepared before must be prepared again.
    generation: u32,
    /// What was done since the first mark, the latest last.
    log: Vec<Change>,
    /// Lengths of the log at each fork.
    marks: Vec<usize>,
    pub(crate) skip_cordoned: bool,
}

/// One change, as its inverse needs it.
#[derive(Clone, Copy, Debug)]
enum Change {
    Moved { class: ClassId, node: NodeId, delta: i64 },
    Added,
    Lived { node: NodeId, before: Life },
}

impl<'c> Snapshot<'c> {
    /// All nodes of the cluster, without pods; [`NodeId`]s are positions in [`Cluster::nodes`].
    pub fn new(cluster: &'c Cluster) -> Self {
        Self::with_gates(cluster, Gates::default())
    }

    /// The same with other feature gates than the default.
    pub fn with_gates(cluster: &'c Cluster, gates: Gates) -> Self {
        let trackers = RULES.iter().filter_map(|rule| match rule {
            Rule::Static(_) => None,
            Rule::Dynamic(rule) => Some(rule.tracker()),
        });
        let mut snapshot = Self {
            base: Base::new(cluster, gates),
            trackers: trackers.collect(),
            awake: 0,
            generation: 1,
            log: Vec::new(),
            marks: Vec::new(),
            skip_cordoned: false,
        };
        for node in &cluster.nodes {
            snapshot.base.push_listed(node);
        }
        snapshot
    }

    /// The class of pods with a spec.
    pub fn class(&mut self, spec: SpecId) -> ClassId {
        self.class_of(spec, false)
    }

    /// The class of pods with a spec that are being deleted: they hold what they hold, but spreading does not count them.
    pub fn terminating_class(&mut self, spec: SpecId) -> ClassId {
        self.class_of(spec, true)
    }

    fn class_of(&mut self, spec: SpecId, terminating: bool) -> ClassId {
        let (class, new) = self.base.intern(spec, terminating);
        if new {
            let mut stale = false;
            for (id, tracker) in self.trackers.ids().zip(self.trackers.rows_mut()) {
                stale |= tracker.meet(&self.base, class);
                self.awake |= u32::from(tracker.is_awake()) << id.index();
            }
            self.generation += u32::from(stale);
        }
        class
    }

    /// A spec that stands for all pods of a class.
    pub fn spec(&self, class: ClassId) -> SpecId {
        self.base.class(class).spec
    }

    /// How many nodes there are, with those that were removed.
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether there has never been a node.
    pub fn is_empty(&self) -> bool {
        self.base.len() == 0
    }

    /// All nodes that are there, closed ones too.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> {
        self.base.life.iter().filter(|(_, life)| **life != Life::Removed).map(|(node, _)| node)
    }

    /// The node. Of a copy it has neither its own name nor its own host-name label: these are unlike all others.
    pub fn node(&self, node: NodeId) -> &Node {
        self.base.node(node)
    }

    /// The shape that a node is a copy of; none for nodes of the cluster.
    pub fn shape_of(&self, node: NodeId) -> Option<ShapeId> {
        self.base.shape_of(node)
    }

    /// Whether pods may come to the node: it was neither closed nor removed.
    pub fn is_open(&self, node: NodeId) -> bool {
        self.base.life[node] == Life::Open
    }

    /// What the pods on a node ask for.
    pub fn requested(&self, node: NodeId) -> Resources {
        self.base.requested(node)
    }

    /// What is left on a node; negative where it is over-committed.
    pub fn free(&self, node: NodeId) -> Resources {
        self.base.node(node).allocatable.minus(&self.base.requested(node))
    }

    /// The pods on a node by class, in no particular order.
    pub fn pods_on(&self, node: NodeId) -> &[Count] {
        &self.base.runs[node]
    }

    /// Puts pods on a node, without asking whether they fit.
    pub fn place(&mut self, class: ClassId, node: NodeId, count: u32) {
        if count > 0 {
            self.change_count(class, node, i64::from(count));
        }
    }

    /// Takes pods from a node; at most as many as are there.
    pub fn unplace(&mut self, class: ClassId, node: NodeId, count: u32) {
        let there = self.base.runs[node].iter().find(|run| run.0 == class).map_or(0, |run| run.1);
        let count = there.min(count);
        if count > 0 {
            self.change_count(class, node, -i64::from(count));
        }
    }

    fn change_count(&mut self, class: ClassId, node: NodeId, delta: i64) {
        self.record(Change::Moved { class, node, delta });
        self.shift(class, node, delta);
    }

    fn shift(&mut self, class: ClassId, node: NodeId, delta: i64) {
        self.base.shift(class, node, delta);
        let mut awake = self.awake;
        while awake != 0 {
            let tracker = TrackerId::at(awake.trailing_zeros() as usize);
            self.trackers[tracker].moved(&self.base, class, node, delta);
            awake &= awake - 1;
        }
    }

    /// Keeps a template to make nodes of. Its copies have no CSINode, and so no limits on volumes, as in the peer with its
    /// defaults.
    pub fn shape(&mut self, template: &Template) -> ShapeId {
        self.shape_with_drivers(template, None)
    }

    /// Keeps a template to make nodes of, with the CSI drivers that each copy has. Limits hold for drivers that some node
    /// of the cluster limits too.
    pub fn shape_with_drivers(&mut self, template: &Template, drivers: Option<&CsiNode>) -> ShapeId {
        let mut pods = Runs::new();
        for pod in &template.pods {
            let class = self.class(pod.spec);
            match pods.iter_mut().find(|run| run.0 == class) {
                Some((_, count)) => *count += 1,
                None => pods.push((class, 1)),
            }
        }
        // Devices of a template may be such as no node has had so far.
        self.generation += u32::from(!template.slices.is_empty());
        self.base.add_shape(template, pods, drivers.cloned())
    }

    /// A fresh node with a name and host name of its own, and the pods of its template on it.
    pub fn add_copy(&mut self, shape: ShapeId) -> NodeId {
        self.record(Change::Added);
        let node = self.base.push_copy(shape);
        if self.awake != 0 {
            self.trackers.rows_mut().for_each(|tracker| tracker.node_added(&self.base, node));
        }
        node
    }

    /// Takes a node away with the pods on it. Its number stays taken.
    pub fn remove_node(&mut self, node: NodeId) {
        while let Some(&(class, count)) = self.base.runs[node].last() {
            self.unplace(class, node, count);
        }
        self.set_life(node, Life::Removed);
    }

    /// Keeps further pods from a node that is about to go. Its topology domains stay, as they do while a node is drained:
    /// it has the taint of such nodes, so that constraints that honour taints may look past it.
    pub fn close(&mut self, node: NodeId) {
        if self.base.life[node] == Life::Open {
            self.set_life(node, Life::Closed);
        }
    }

    /// Sees a node of the cluster as if the mark of nodes that are about to go had been taken off, and if so told the cordon
    /// too. For fresh snapshots: before any pod is placed or asked about. Copies are left as they are.
    pub fn unmark(&mut self, node: NodeId, uncordon: bool) {
        if self.base.shape_of(node).is_none() {
            self.base.unmark(node, known::TO_BE_DELETED, uncordon);
        }
    }

    fn set_life(&mut self, node: NodeId, life: Life) {
        let before = std::mem::replace(&mut self.base.life[node], life);
        if before != life {
            self.record(Change::Lived { node, before });
            self.trackers.rows_mut().for_each(|tracker| tracker.node_changed(&self.base, node));
        }
    }

    fn record(&mut self, change: Change) {
        let Some(&mark) = self.marks.last() else { return };
        if let Change::Moved { class, node, delta } = change
            && self.log.len() > mark
            && let Some(Change::Moved { class: last_class, node: last_node, delta: last_delta }) = self.log.last_mut()
            && (*last_class, *last_node) == (class, node)
        {
            *last_delta += delta;
            if *last_delta == 0 {
                self.log.pop();
            }
        } else {
            self.log.push(change);
        }
    }

    /// Remembers the present state. Forks nest.
    pub fn fork(&mut self) {
        self.marks.push(self.log.len());
    }

    /// Keeps what was done since the last fork.
    pub fn commit(&mut self) {
        self.marks.pop();
        if self.marks.is_empty() {
            self.log.clear();
        }
    }

    /// Undoes what was done since the last fork. Costs as much as that did. Without a fork nothing happens.
    pub fn revert(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Change::Moved { class, node, delta }) => self.shift(class, node, -delta),
                Some(Change::Lived { node, before }) => {
                    self.base.life[node] = before;
                    self.trackers.rows_mut().for_each(|tracker| tracker.node_changed(&self.base, node));
                }
                Some(Change::Added) => {
                    let Some(node) = self.base.life.ids().next_back() else { break };
                    self.base.life[node] = Life::Removed;
                    if self.awake != 0 {
                        self.trackers.rows_mut().for_each(|tracker| tracker.node_undone(&self.base, node));
                    }
                    self.base.pop();
                }
                None => break,
            }
        }
    }

    /// Whether searches over several nodes pass over cordoned ones, even for pods that tolerate the cordon, as the
    /// peer's do. Questions about one node are not affected. Off at first.
    pub fn set_cordon_policy(&mut self, skip_cordoned: bool) {
        self.skip_cordoned = skip_cordoned;
    }

    /// Builds what questions about a class need.
    pub(crate) fn prepare(&mut self, class: ClassId) {
        let generation = self.generation;
        if self.base.class(class).inquiry.as_ref().is_some_and(|inquiry| inquiry.generation == generation) {
            return;
        }
        let spec = self.base.spec(class);
        let facts = &self.base.facts;
        let inquiry = &mut self.base.classes.table[class].inquiry;
        if inquiry.is_none() {
            *inquiry = Some(Box::new(Inquiry::new(facts, spec)));
        }
        let mut checks = 0;
        for (id, tracker) in self.trackers.ids().zip(self.trackers.rows_mut()) {
            checks |= u32::from(tracker.prepare(&mut self.base, class)) << id.index();
            self.awake |= u32::from(tracker.is_awake()) << id.index();
        }
        if let Some(inquiry) = &mut self.base.classes.table[class].inquiry {
            inquiry.checks = checks;
            inquiry.generation = generation;
        }
    }

    /// Whether the static rules accept a node for a prepared class.
    pub(crate) fn statically_fits(&mut self, class: ClassId, node: NodeId) -> bool {
        self.static_verdict(class, self.base.kind[node], |base| base.node(node))
    }

    /// Whether the static rules accept copies of a shape for a prepared class, and searches look at them.
    pub(crate) fn shape_statically_fits(&mut self, class: ClassId, shape: ShapeId) -> bool {
        let node = &self.base.shapes[shape].node;
        !(self.skip_cordoned && node.unschedulable)
            && self.static_verdict(class, self.base.shape_kind(shape), |base| &base.shapes[shape].node)
    }

    fn static_verdict(
        &mut self,
        class: ClassId,
        kind: KindId,
        node: impl for<'b> Fn(&'b Base<'c>) -> &'b Node,
    ) -> bool {
        let Some(inquiry) = &self.base.class(class).inquiry else { return false };
        if let Some(Some(known)) = inquiry.verdicts.get(kind.index()) {
            return *known;
        }
        let listed = node(&self.base);
        let in_set = match &inquiry.admission {
            Err(_) => return false,
            Ok(None) => true,
            Ok(Some(set)) => set.names.contains(&listed.name),
        };
        let fits = in_set && Class::statically_fits(&self.base.facts, self.base.spec(class), listed);
        if !inquiry.by_identity
            && let Some(inquiry) = &mut self.base.classes.table[class].inquiry
        {
            if inquiry.verdicts.len() <= kind.index() {
                inquiry.verdicts.resize(kind.index() + 1, None);
            }
            if let Some(verdict) = inquiry.verdicts.get_mut(kind.index()) {
                *verdict = Some(fits);
            }
        }
        fits
    }

    /// Whether anything but resources and static rules may refuse a prepared class.
    pub(crate) fn has_checks(&self, class: ClassId) -> bool {
        self.checks(class) != 0
    }

    fn checks(&self, class: ClassId) -> u32 {
        self.base.class(class).inquiry.as_ref().map_or(0, |inquiry| inquiry.checks)
    }

    fn asked(&self, class: ClassId) -> impl Iterator<Item = &dyn Tracker> {
        let mut checks = self.checks(class);
        std::iter::from_fn(move || {
            let tracker = (checks != 0).then(|| TrackerId::at(checks.trailing_zeros() as usize))?;
            checks &= checks - 1;
            Some(&*self.trackers[tracker])
        })
    }

    /// Whether one more pod of a prepared class fits, and if not, whether it might later.
    pub(crate) fn verdict(&mut self, class: ClassId, node: NodeId) -> Verdict {
        let fits = self.base.life[node] == Life::Open
            && self.base.free.fits(node, &self.base.class(class).demand)
            && self.statically_fits(class, node);
        if !fits {
            return Verdict::Never;
        }
        let mut verdict = Verdict::Fits;
        for tracker in self.asked(class) {
            match tracker.verdict(&self.base, class, node) {
                Verdict::Fits => {}
                Verdict::Never => return Verdict::Never,
                Verdict::NotNow(key) => verdict = Verdict::NotNow(key),
            }
        }
        verdict
    }

    /// Whether one more pod of a class fits a node: the scheduler's filters for that one node.
    pub fn fits(&mut self, class: ClassId, node: NodeId) -> bool {
        self.prepare(class);
        self.verdict(class, node) == Verdict::Fits
    }

    /// How many more pods of a class fit a node one after another.
    pub fn room(&mut self, class: ClassId, node: NodeId) -> u32 {
        self.prepare(class);
        self.room_if_prepared(class, node)
    }

    pub(crate) fn room_if_prepared(&mut self, class: ClassId, node: NodeId) -> u32 {
        if self.verdict(class, node) != Verdict::Fits {
            return 0;
        }
        let by_resources = self.base.free.room(node, &self.base.class(class).demand);
        let rooms = self.asked(class).map(|tracker| tracker.room(&self.base, class, node));
        rooms.fold(by_resources, u32::min)
    }

    /// Why one more pod of a class does not fit a node: the first refusal in the scheduler's order.
    pub fn refusal(&mut self, class: ClassId, node: NodeId) -> Option<Refusal> {
        self.refusals(class, node, 1).pop()
    }

    /// What stands in the way of one more pod of a class on a node, in the scheduler's order and at most so much of it: the
    /// scheduler stops at the first, and a person who removes that wants to know of the next. Empty if the pod fits.
    pub fn refusals(&mut self, class: ClassId, node: NodeId, most: usize) -> Vec<Refusal> {
        self.prepare(class);
        if self.base.life[node] != Life::Open {
            return vec![Refusal { predicate: CLOSED, phase: Phase::Filter, reasons: vec![Reason::Closed] }];
        }
        if self.verdict(class, node) == Verdict::Fits {
            return vec![];
        }
        let listed = self.base.node(node);
        match self.base.class(class).inquiry.as_ref().map(|inquiry| &inquiry.admission) {
            Some(Err(refusal)) => return vec![refusal.clone()],
            Some(Ok(Some(set))) if !set.names.contains(&listed.name) => {
                return vec![Refusal { predicate: set.predicates, phase: Phase::NodeSet, reasons: Vec::new() }];
            }
            _ => {}
        }
        let mut trackers = self.trackers.ids();
        let refusals = RULES.iter().filter_map(|rule| {
            let reasons = match rule {
                Rule::Static(rule) => rule.refuse(&self.base.facts, self.base.spec(class), listed),
                Rule::Dynamic(_) => {
                    let tracker = trackers.next()?;
                    self.trackers[tracker].reasons(&self.base, class, node)
                }
            };
            refusal::by_filter(rule.name(), reasons)
        });
        refusals.take(most).collect()
    }

    /// A hash of everything that is counted, to compare two snapshots of one cluster that were asked the same questions
    /// in the same order. How they came to their states does not matter.
    pub fn digest(&self) -> u64 {
        let mut state = rustc_hash::FxHasher::default();
        for node in self.base.life.ids() {
            let life = self.base.life[node];
            life.hash(&mut state);
            if life != Life::Removed {
                self.base.free.row(node).hash(&mut state);
                let mut runs = self.base.runs[node].to_vec();
                runs.sort_unstable();
                runs.hash(&mut state);
            }
        }
        for class in self.base.classes.table.ids() {
            self.base.sites(class).for_each(|site| site.hash(&mut state));
        }
        for tracker in self.trackers.ids() {
            self.trackers[tracker].digest(&self.base, &mut state);
        }
        state.finish()
    }
}
