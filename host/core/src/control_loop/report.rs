//! The end of a loop: what became of every pod, and why not better.

use std::collections::BTreeMap;

use plimsoll_scheduling::{ClassId, NodeId};
use rustc_hash::FxHashMap;

use super::Loop;
use crate::cloud::GroupId;
use crate::plan::{GroupReason, NotHelped, Place, PodIndex, PodOutcome, ScaleUp};

/// Most pairs of class and node that are looked at for reasons: a few milliseconds.
const MOST_LOOKS: usize = 20_000;

impl Loop<'_> {
    pub(super) fn report(&mut self) {
        self.tell_pods();
        self.tell_growth();
        self.tell_unhelped();
        self.plan.upcoming = self
            .groups
            .iter()
            .zip(&self.observation.groups)
            .filter(|(state, _)| !state.upcoming.is_empty())
            .map(|(state, view)| (view.cloud.id.clone(), u32::try_from(state.upcoming.len()).unwrap_or(u32::MAX)))
            .collect();
        self.plan.pods = self.outcomes.drain().collect();
        self.plan.pods.sort_by_key(|&(pod, _)| pod);
    }

    /// Groups that are closed before anything was chosen, if somebody needs a node.
    pub(super) fn tell_skipped(&mut self) {
        if self.pending.iter().all(|pending| pending.left() == 0) {
            return;
        }
        let groups = self.groups.iter().zip(&self.observation.groups);
        let closed = groups.filter_map(|(state, view)| Some((view.cloud.id.clone(), state.closed.clone()?)));
        self.plan.skipped = closed.collect();
    }

    /// Finds out which classes a fresh node of each open group takes.
    pub(super) fn try_fresh_nodes(&mut self) {
        for (group, state) in self.groups.iter().enumerate() {
            let Some(shape) = state.shape.filter(|_| state.closed.is_none()) else { continue };
            self.snapshot.fork();
            let node = self.snapshot.add_copy(shape);
            for pending in self.pending.iter().filter(|pending| pending.left() > 0) {
                if self.snapshot.fits(pending.class, node) {
                    self.fitted.insert((group, pending.class));
                }
            }
            self.snapshot.revert();
        }
    }

    fn tell_pods(&mut self) {
        let existing = self.observation.cluster.nodes.len();
        let coming = self.places();
        let pending = std::mem::take(&mut self.pending);
        let passive = std::mem::take(&mut self.passive);
        let active = pending.iter().filter(|class| !class.evicted).map(|class| (class, true));
        for (class, active) in active.chain(passive.iter().map(|class| (class, false))) {
            let mut pods = class.pods.iter().copied();
            for &(node, count) in &class.placed {
                let (place, new) = coming.get(&node).cloned().unwrap_or((Place::Node(node.index()), false));
                for pod in pods.by_ref().take(usize::try_from(count).unwrap_or(usize::MAX)) {
                    let outcome = if node.index() < existing {
                        PodOutcome::FitsExisting(place.clone())
                    } else if new {
                        PodOutcome::ScaleUp(place.clone())
                    } else {
                        PodOutcome::FitsUpcoming(place.clone())
                    };
                    self.outcomes.insert(pod, outcome);
                }
            }
            // Of the others it is known already why they are left alone.
            for pod in pods.filter(|_| active) {
                self.outcomes.insert(pod, PodOutcome::NotHelped);
            }
        }
        self.pending = pending;
        self.passive = passive;
    }

    /// Where each node to come is, for people, and whether this loop adds it.
    fn places(&self) -> FxHashMap<NodeId, (Place, bool)> {
        let mut places = FxHashMap::default();
        for (state, view) in self.groups.iter().zip(&self.observation.groups) {
            let upcoming = state.upcoming.iter().map(|&node| (node, false));
            for (number, (node, new)) in (0..).zip(upcoming.chain(state.new.iter().map(|&node| (node, true)))) {
                places.insert(node, (Place::New(view.cloud.id.clone(), number), new));
            }
        }
        places
    }

    fn tell_growth(&mut self) {
        for index in 0..self.decisions.len() {
            let Some((group, because)) = self.decisions.get(index).cloned() else { continue };
            let (Some(state), Some(view)) = (self.groups.get(group), self.view(group)) else { continue };
            let told = self.plan.scale_up.iter().any(|told| told.group == view.cloud.id);
            if told || state.asked == 0 {
                continue;
            }
            let first = u32::try_from(state.upcoming.len()).unwrap_or(u32::MAX);
            let mut pods: Vec<PodIndex> = Vec::new();
            for (&pod, outcome) in &self.outcomes {
                match outcome {
                    PodOutcome::ScaleUp(Place::New(on, number)) if *on == view.cloud.id && *number >= first => {
                        pods.push(pod);
                    }
                    _ => {}
                }
            }
            pods.sort_unstable();
            let from = view.cloud.target_size;
            let to = from.saturating_add(state.asked);
            self.plan.scale_up.push(ScaleUp { group: view.cloud.id.clone(), from, to, pods, because });
        }
    }

    /// One reason per group for every class that is not helped: what a fresh node would refuse, or why there is none.
    fn tell_unhelped(&mut self) {
        let unhelped: Vec<usize> = (0..self.pending.len())
            .filter(|&index| self.pending.get(index).is_some_and(|class| class.left() > 0 && !class.evicted))
            .collect();
        if unhelped.is_empty() {
            return;
        }
        let mut reasons: Vec<Vec<(GroupId, GroupReason)>> = vec![vec![]; unhelped.len()];
        let mut sole: Vec<Vec<GroupId>> = vec![vec![]; unhelped.len()];
        for group in 0..self.groups.len() {
            let Some(view) = self.view(group) else { continue };
            let closed = self.groups.get(group).and_then(|state| state.closed.clone());
            self.snapshot.fork();
            let shape = self.groups.get(group).and_then(|state| state.shape);
            let fresh: Option<NodeId> = shape.map(|shape| self.snapshot.add_copy(shape));
            for ((slot, sole), &class) in reasons.iter_mut().zip(&mut sole).zip(&unhelped) {
                let Some(class) = self.pending.get(class).map(|pending| pending.class) else { continue };
                let refusals = fresh.map(|node| self.snapshot.refusals(class, node, 2));
                let fitted = self.fitted.contains(&(group, class));
                let in_the_way = refusals.as_ref().map(Vec::len).map(|count| match fitted {
                    true => usize::from(closed.is_some()),
                    false => count + usize::from(closed.is_some()),
                });
                if in_the_way.is_some_and(|count| count <= 1) {
                    sole.push(view.cloud.id.clone());
                }
                let refusal = refusals.and_then(|refusals| refusals.into_iter().next());
                let reason = match (refusal.filter(|_| !fitted), &closed) {
                    // What the template refuses stays true when the group can grow again.
                    (Some(refusal), _) => GroupReason::Refused(refusal),
                    (None, Some(closed)) => closed.clone(),
                    (None, None) => GroupReason::NoRoundLeft,
                };
                slot.push((view.cloud.id.clone(), reason));
            }
            self.snapshot.revert();
        }
        let mut looks_left = MOST_LOOKS;
        for ((reasons, sole), class) in reasons.into_iter().zip(sole).zip(unhelped) {
            let Some(pending) = self.pending.get(class) else { continue };
            let placed = pending.pods.len() - usize::try_from(pending.left()).unwrap_or(0);
            let pods = pending.pods.iter().skip(placed).copied().collect();
            let (spec, class) = (pending.spec, pending.class);
            let existing = self.refusals_of_existing(class, &mut looks_left);
            self.plan.not_helped.push(NotHelped { spec, pods, reasons, sole, existing });
        }
    }

    /// Why the nodes that are there do not take a class, most frequent first; nothing when too many looks were made already.
    fn refusals_of_existing(&mut self, class: ClassId, looks_left: &mut usize) -> Vec<(String, u32)> {
        let nodes = self.observation.cluster.nodes.len();
        if nodes > *looks_left {
            return vec![];
        }
        *looks_left -= nodes;
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for node in (0..nodes).map(NodeId::new) {
            let Some(refusal) = self.snapshot.refusal(class, node) else { continue };
            *counts.entry(crate::words::in_short(&refusal)).or_default() += 1;
        }
        let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        counts
    }
}
