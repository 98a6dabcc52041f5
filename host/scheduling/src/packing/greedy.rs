//! Packing on the snapshot itself, entry after entry: first onto the nodes that were opened, then onto new ones.

use rustc_hash::FxHashMap;

use super::{Bin, Limits, Packed, Step, Target};
use crate::predicates::Verdict;
use crate::snapshot::base::{ClassId, Count, NodeId};
use crate::snapshot::search::Seating;
use crate::snapshot::{Candidates, Run, Snapshot};
use crate::table::Id;

/// When existing nodes are tried for pods with hard spread constraints: they may open as new nodes come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reuse {
    /// Before a node is added, as the peer does where the constraint is on the host name.
    First,
    /// When no node can be added.
    Last,
    /// Never.
    Not,
}

/// At least so many new nodes are needed for all pods: for each entry by itself, and for each resource by itself. Pods that
/// may use existing nodes are left aside.
pub(super) fn least_nodes(snapshot: &mut Snapshot<'_>, bins: &[Bin], pods: &[Count]) -> u32 {
    let pods: Vec<Count> = pods.iter().copied().filter(|&(class, _)| !may_reuse(snapshot, class)).collect();
    let mut rooms = vec![0; pods.len()];
    let mut rows: Vec<i64> = Vec::new();
    for bin in bins {
        let row = snapshot.base.shape_row(bin.shape);
        rows.resize(row.len(), 0);
        rows.iter_mut().zip(row).for_each(|(most, left)| *most = *left.max(most));
        snapshot.fork();
        let node = snapshot.add_copy(bin.shape);
        for (most, &(class, _)) in rooms.iter_mut().zip(&pods) {
            *most = snapshot.room_if_prepared(class, node).max(*most);
        }
        snapshot.revert();
    }
    // A class whose refusals may lapse can fit better later than it does now.
    let lasting = pods.iter().zip(&rooms).filter(|((class, _), room)| **room > 0 && !snapshot.is_shifting(*class));
    let alone = lasting.map(|((_, count), room)| count.div_ceil(*room)).max();
    let mut asked = vec![0_i128; rows.len()];
    for &(class, count) in &pods {
        for &(dim, amount) in &snapshot.base.class(class).demand {
            asked.get_mut(dim.index()).into_iter().for_each(|sum| *sum += i128::from(amount) * i128::from(count));
        }
    }
    let together = asked.iter().zip(&rows).filter(|(_, offered)| **offered > 0).map(|(&asked, &offered)| {
        u32::try_from((asked + i128::from(offered) - 1) / i128::from(offered)).unwrap_or(u32::MAX)
    });
    alone.into_iter().chain(together).max().unwrap_or(0)
}

/// Whether pods of the class may fill existing nodes that open while new ones are added.
pub(super) fn may_reuse(snapshot: &Snapshot<'_>, class: ClassId) -> bool {
    !snapshot.base.spec(class).spread.is_empty()
}

/// One way through a packing.
pub(super) struct Greedy<'a, 's, 'c> {
    snapshot: &'s mut Snapshot<'c>,
    bins: &'a [Bin],
    pods: &'a [Count],
    limits: Limits<'a>,
    existing: &'a FxHashMap<ClassId, Vec<NodeId>>,
    /// New nodes have this number or a greater one.
    first: NodeId,
    /// Template of each new node.
    opened: Vec<usize>,
    /// How many new nodes of each template.
    opened_of: Vec<u32>,
    /// How many of each entry are to be placed still.
    left: Vec<u32>,
    steps: Vec<Step>,
    order_matters: bool,
    reuse: Reuse,
}

impl<'a, 's, 'c> Greedy<'a, 's, 'c> {
    pub(super) fn new(
        snapshot: &'s mut Snapshot<'c>,
        bins: &'a [Bin],
        pods: &'a [Count],
        limits: Limits<'a>,
        existing: &'a FxHashMap<ClassId, Vec<NodeId>>,
        reuse: Reuse,
    ) -> Self {
        Self {
            first: NodeId::new(snapshot.len()),
            snapshot,
            bins,
            pods,
            limits,
            existing,
            opened: Vec::new(),
            opened_of: vec![0; bins.len()],
            left: pods.iter().map(|&(_, count)| count).collect(),
            steps: Vec::new(),
            order_matters: false,
            reuse,
        }
    }

    /// Packs the entries in this order. What is left of some is tried again as long as that places anything: pods placed
    /// later may be those that it needs near it.
    pub(super) fn pack(mut self, order: &[usize]) -> Packed {
        self.snapshot.fork();
        loop {
            let before = self.steps.len();
            order.iter().for_each(|&entry| self.serve(entry));
            if self.steps.len() == before || self.left.iter().all(|&left| left == 0) {
                break;
            }
        }
        self.snapshot.revert();
        Packed::from_steps(self.steps, &self.opened, self.pods.len(), self.order_matters)
    }

    fn left(&self, entry: usize) -> u32 {
        self.left.get(entry).copied().unwrap_or(0)
    }

    fn serve(&mut self, entry: usize) {
        let Some(&(class, _)) = self.pods.get(entry) else { return };
        if self.left(entry) == 0 {
            return;
        }
        match self.snapshot.is_shifting(class) {
            true => self.serve_shifting(entry, class),
            false => self.serve_lasting(entry, class),
        }
    }

    /// For classes whose refusals last: each node is looked at once.
    fn serve_lasting(&mut self, entry: usize, class: ClassId) {
        let runs = self.snapshot.pack(class, self.left(entry), Candidates::From(self.first));
        self.note(entry, &runs);
        let mut useless = vec![false; self.bins.len()];
        while self.left(entry) > 0 {
            let Some(node) = self.open(class, Some(&mut useless)) else { break };
            let count = self.snapshot.room_if_prepared(class, node).min(self.left(entry));
            self.snapshot.place(class, node, count);
            self.note(entry, &[Run { node, count }]);
        }
    }

    /// For classes to which nodes open and close as pods are placed.
    fn serve_shifting(&mut self, entry: usize, class: ClassId) {
        self.order_matters = true;
        let mut seating = Seating::of(self.snapshot, class);
        for index in self.first.index()..self.snapshot.len() {
            seating.offer(self.snapshot, NodeId::new(index));
        }
        let mut may_reuse = self.reuse != Reuse::Not && may_reuse(self.snapshot, class);
        loop {
            let runs = seating.seat(self.snapshot, self.left(entry));
            self.note(entry, &runs);
            if self.left(entry) == 0 {
                break;
            }
            if may_reuse && self.reuse == Reuse::First {
                may_reuse = false;
                self.offer_existing(class, &mut seating);
                continue;
            }
            if let Some(node) = self.open(class, None) {
                // At once, lest something that came with the node lets the pod go elsewhere and leaves the node empty.
                self.snapshot.place(class, node, 1);
                self.note(entry, &[Run { node, count: 1 }]);
                seating.offer(self.snapshot, node);
            } else if std::mem::take(&mut may_reuse) {
                self.offer_existing(class, &mut seating);
            } else {
                break;
            }
        }
    }

    fn offer_existing(&self, class: ClassId, seating: &mut Seating) {
        let nodes = self.existing.get(&class).into_iter().flatten();
        nodes.for_each(|&node| seating.offer(self.snapshot, node));
    }

    /// Adds a node that takes a pod of the class: of the smallest group that has one. `useless` marks templates that will
    /// never do.
    fn open(&mut self, class: ClassId, mut useless: Option<&mut Vec<bool>>) -> Option<NodeId> {
        let total = u32::try_from(self.opened.len()).unwrap_or(u32::MAX);
        let opened_of = |bin: usize, opened_of: &[u32]| opened_of.get(bin).copied().unwrap_or(0);
        let mut bins: Vec<usize> = (0..self.bins.len()).collect();
        bins.sort_by_key(|&index| {
            self.bins.get(index).map(|bin| bin.size.saturating_add(opened_of(index, &self.opened_of)))
        });
        for index in bins {
            let Some(bin) = self.bins.get(index) else { continue };
            let known_useless = useless.as_ref().is_some_and(|useless| useless.get(index).copied().unwrap_or(false));
            if known_useless || opened_of(index, &self.opened_of) >= bin.most {
                continue;
            }
            if !self.limits.allow(total) {
                return None;
            }
            self.snapshot.fork();
            let node = self.snapshot.add_copy(bin.shape);
            if self.snapshot.is_candidate(node) && self.snapshot.verdict(class, node) == Verdict::Fits {
                self.snapshot.commit();
                self.opened.push(index);
                self.opened_of.get_mut(index).into_iter().for_each(|opened| *opened += 1);
                return Some(node);
            }
            self.snapshot.revert();
            if let Some(useless) = useless.as_deref_mut().and_then(|useless| useless.get_mut(index)) {
                *useless = true;
            }
        }
        None
    }

    /// Keeps the books of pods that were placed.
    fn note(&mut self, entry: usize, runs: &[Run]) {
        for &Run { node, count } in runs {
            let target = match node.index().checked_sub(self.first.index()) {
                Some(index) => Target::New(u32::try_from(index).unwrap_or(u32::MAX)),
                None => Target::Existing(node),
            };
            self.left.get_mut(entry).into_iter().for_each(|left| *left -= count);
            match self.steps.last_mut() {
                Some(step) if step.target == target && step.entry == entry => step.count += count,
                _ => self.steps.push(Step { target, entry, count }),
            }
        }
    }
}
