//! Gives back new nodes that turned out unneeded.
//!
//! Options are chosen one after the other, each as if it were the last. A later one often leaves room for what an
//! earlier one made a node for. Before anything is asked of the cloud, every new node is tried once, emptiest first: if
//! its pods fit on the others, it is dropped.

use plimsoll_scheduling::{Candidates, ClassId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::control_loop::Loop;

impl Loop<'_> {
    /// Drops new nodes, not yet asked for, whose pods fit elsewhere. Returns how many.
    pub(crate) fn trim(&mut self) -> usize {
        // With one choice there is nothing to gain: its own packing left no such node.
        let mut groups = self.decisions.iter().map(|&(group, _)| group);
        let first = groups.next();
        if groups.all(|group| Some(group) == first) && !self.attempts.has_stepped() {
            return 0;
        }
        let mut dropped = 0;
        // Classes that found no room on any node. Trimming only ever takes room away.
        let mut hopeless: FxHashSet<ClassId> = FxHashSet::default();
        let mut pods_on = self.pending_by_node();
        // Nodes with pods of a spread class that would not be let in again, as long as no node is dropped.
        let mut before: FxHashMap<ClassId, usize> = FxHashMap::default();
        let mut candidates: Vec<(u32, NodeId)> = Vec::new();
        for (group, state) in self.groups.iter().enumerate() {
            if self.is_all_or_nothing(group) {
                continue;
            }
            for &node in state.new.iter().skip(usize::try_from(state.asked).unwrap_or(usize::MAX)) {
                let pods = pods_on.get(&node).into_iter().flatten().map(|&(_, count)| count).sum();
                candidates.push((pods, node));
            }
        }
        candidates.sort_unstable();
        // The fullest first: what is nearly empty may still go itself.
        let mut others: Vec<NodeId> = candidates.iter().rev().map(|&(_, node)| node).collect();
        for &(_, node) in &candidates {
            let pods = pods_on.get(&node).cloned().unwrap_or_default();
            if pods.iter().any(|(class, _)| hopeless.contains(class)) {
                continue;
            }
            others.retain(|&other| other != node);
            let spread: Vec<ClassId> =
                pods.iter().map(|&(class, _)| class).filter(|&class| self.snapshot.is_shifting(class)).collect();
            for &class in &spread {
                before.entry(class).or_insert_with(|| self.misplaced(class, &[]));
            }
            self.snapshot.fork();
            for &(class, count) in &pods {
                self.snapshot.unplace(class, node, count);
            }
            self.snapshot.remove_node(node);
            let mut moves = Vec::new();
            let mut homeless = None;
            let fits = pods.iter().all(|&(class, count)| {
                let runs = self.snapshot.pack(class, count, Candidates::Of(&others));
                let placed: u32 = runs.iter().map(|run| run.count).sum();
                // Told only of the first: the others meet what it took.
                homeless = (placed == 0 && moves.is_empty()).then_some(class);
                moves.extend(runs.into_iter().map(|run| (class, run.node, run.count)));
                placed == count
            });
            // Where pods are spread, those that stay must not be too many any more for where they are.
            let unsettled =
                fits && spread.iter().any(|class| Some(&self.misplaced(*class, &moves)) > before.get(class));
            if unsettled {
                self.snapshot.revert();
                others.insert(0, node);
                continue;
            }
            if !fits {
                self.snapshot.revert();
                others.insert(0, node);
                let mut lasting =
                    |class: &ClassId| !self.snapshot.is_shifting(*class) && !self.snapshot.fits(*class, node);
                hopeless.extend(homeless.filter(|class| lasting(class)));
                continue;
            }
            self.snapshot.commit();
            before.clear();
            dropped += 1;
            self.forget(node);
            for (class, node, count) in moves {
                self.assign(class, node, count);
                pods_on.entry(node).or_default().push((class, count));
            }
        }
        dropped
    }

    /// Gives pods with spread constraints their places anew, now that all new nodes are known: each node that came after
    /// they were placed is one more domain to spread over. Where not all of them find a place that way, they stay.
    pub(crate) fn spread_again(&mut self) {
        let new: Vec<NodeId> = self.groups.iter().flat_map(|group| group.new.iter().copied()).collect();
        let is_new: FxHashSet<NodeId> = new.iter().copied().collect();
        for index in 0..self.pending.len() {
            let Some(pending) = self.pending.get(index) else { continue };
            let (class, spec) = (pending.class, pending.spec);
            if self.observation.cluster.specs[spec].spread.is_empty() {
                continue;
            }
            let (moved, kept): (Vec<_>, Vec<_>) = pending.placed.iter().partition(|(node, _)| is_new.contains(node));
            let count: u32 = moved.iter().map(|&(_, count)| count).sum();
            if count == 0 {
                continue;
            }
            self.snapshot.fork();
            for &(node, count) in &moved {
                self.snapshot.unplace(class, node, count);
            }
            let runs = self.snapshot.pack(class, count, Candidates::Of(&new));
            if runs.iter().map(|run| run.count).sum::<u32>() < count {
                self.snapshot.revert();
                continue;
            }
            self.snapshot.commit();
            if let Some(pending) = self.pending.get_mut(index) {
                pending.placed = kept.into_iter().chain(runs.into_iter().map(|run| (run.node, run.count))).collect();
            }
            self.settle_everywhere(index);
        }
        self.drop_empty();
    }

    /// Drops new nodes, not yet asked for, that have no pod (any more).
    pub(crate) fn drop_empty(&mut self) {
        let pods_on = self.pending_by_node();
        for group in 0..self.groups.len() {
            let Some(state) = self.groups.get(group).filter(|_| !self.is_all_or_nothing(group)) else { continue };
            let unasked = state.new.iter().skip(usize::try_from(state.asked).unwrap_or(usize::MAX));
            let empty: Vec<NodeId> = unasked.copied().filter(|node| !pods_on.contains_key(node)).collect();
            for node in empty {
                self.snapshot.remove_node(node);
                self.forget(node);
            }
        }
    }

    /// Where a class is still unevenly spread, gives all of its pending pods their places anew, on whatever node there is or
    /// will be. Where not all of them find a place that way, they stay.
    fn settle_everywhere(&mut self, index: usize) {
        let Some(class) = self.pending.get(index).map(|pending| pending.class) else { return };
        if self.misplaced(class, &[]) == 0 {
            return;
        }
        let Some(placed) = self.pending.get(index).map(|pending| pending.placed.clone()) else { return };
        let existing = (0..self.observation.cluster.nodes.len()).map(NodeId::new);
        let coming = self.groups.iter().flat_map(|group| group.upcoming.iter().chain(&group.new).copied());
        let nodes: Vec<NodeId> = existing.chain(coming).collect();
        let count: u32 = placed.iter().map(|&(_, count)| count).sum();
        self.snapshot.fork();
        for &(node, count) in &placed {
            self.snapshot.unplace(class, node, count);
        }
        let runs = self.snapshot.pack(class, count, Candidates::Of(&nodes));
        if runs.iter().map(|run| run.count).sum::<u32>() < count {
            self.snapshot.revert();
            return;
        }
        self.snapshot.commit();
        if let Some(pending) = self.pending.get_mut(index) {
            pending.placed = runs.into_iter().map(|run| (run.node, run.count)).collect();
        }
    }

    /// Nodes on which pods of a class are, but would not be let in again, given moves that are not written down yet.
    pub(crate) fn misplaced(&mut self, class: ClassId, moves: &[(ClassId, NodeId, u32)]) -> usize {
        let written = self.pending.iter().filter(|pending| pending.class == class).flat_map(|pending| &pending.placed);
        let moved = moves.iter().filter(|(moved, ..)| *moved == class).map(|(_, node, _)| node);
        let nodes: FxHashSet<NodeId> = written.map(|(node, _)| node).chain(moved).copied().collect();
        let refused = |node: &NodeId| {
            // Its node may be the one that goes.
            if !self.snapshot.pods_on(*node).iter().any(|&(on, _)| on == class) {
                return false;
            }
            self.snapshot.unplace(class, *node, 1);
            let fits = self.snapshot.fits(class, *node);
            self.snapshot.place(class, *node, 1);
            !fits
        };
        { nodes }.iter().map(refused).filter(|refused| *refused).count()
    }

    /// Pending pods by the node that they are placed on.
    pub(crate) fn pending_by_node(&self) -> FxHashMap<NodeId, Vec<(ClassId, u32)>> {
        let mut pods_on: FxHashMap<NodeId, Vec<(ClassId, u32)>> = FxHashMap::default();
        for pending in &self.pending {
            for &(node, count) in &pending.placed {
                pods_on.entry(node).or_default().push((pending.class, count));
            }
        }
        pods_on
    }

    /// Takes a new node out of the books: its pods are pending again.
    pub(crate) fn forget(&mut self, node: NodeId) {
        for pending in &mut self.pending {
            pending.placed.retain(|&(at, _)| at != node);
        }
        for state in &mut self.groups {
            let before = state.new.len();
            state.new.retain(|&new| new != node);
            if state.new.len() < before {
                self.limits.count(&state.weight, -1);
            }
        }
    }
}
