//! Finding nodes for many equal pods: first fit in a given order, exact for every predicate.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Snapshot;
use super::base::{ClassId, NodeId};
use super::free::Free;
use super::topology::{DomainId, KeyId};
use crate::predicates::Verdict;

/// Equal pods on one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// The node.
    pub node: NodeId,
    /// How many pods.
    pub count: u32,
}

/// Which nodes to try, and in which order.
#[derive(Clone, Copy, Debug)]
pub enum Candidates<'a> {
    /// All, in the order of their numbers.
    All,
    /// Those with this number or a greater one, in the order of their numbers.
    From(NodeId),
    /// These, in this order. Each at most once.
    Of(&'a [NodeId]),
}

impl Snapshot<'_> {
    /// Places up to `count` pods of a class one after another, each on the first candidate that takes it, and gives what
    /// went where (one run per node, in the order of the first placement). The result is that of asking for every single
    /// pod; the cost is not.
    pub fn pack(&mut self, class: ClassId, count: u32, candidates: Candidates<'_>) -> Vec<Run> {
        self.prepare(class);
        let keys = self.shifting_keys(class);
        if keys.is_empty() {
            return match candidates {
                Candidates::All => self.pack_range(class, count, NodeId::new(0)),
                Candidates::From(first) => self.pack_range(class, count, first),
                Candidates::Of(nodes) => self.pack_list(class, count, nodes),
            };
        }
        let mut seating = Seating::new(self, class, keys);
        match candidates {
            Candidates::All => self.base.life.ids().for_each(|node| seating.offer(self, node)),
            Candidates::From(first) => {
                self.base.life.ids().skip(first.index()).for_each(|node| seating.offer(self, node));
            }
            Candidates::Of(nodes) => nodes.iter().for_each(|&node| seating.offer(self, node)),
        }
        merged(seating.seat(self, count))
    }

    fn shifting_keys(&self, class: ClassId) -> Vec<KeyId> {
        let mut keys = Vec::new();
        self.asked(class).for_each(|tracker| tracker.shifting_keys(class, &mut keys));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether a search over several nodes looks at this one at all.
    pub(crate) fn is_candidate(&self, node: NodeId) -> bool {
        !(self.skip_cordoned && self.base.cordoned[node])
    }

    /// Whether a class fits on a node may hang on what happens elsewhere, so that a refusal need not last.
    pub fn is_shifting(&mut self, class: ClassId) -> bool {
        self.prepare(class);
        !self.shifting_keys(class).is_empty()
    }

    fn pack_list(&mut self, class: ClassId, count: u32, nodes: &[NodeId]) -> Vec<Run> {
        let mut left = count;
        let mut runs = Vec::new();
        for &node in nodes {
            if left == 0 {
                break;
            }
            if self.is_candidate(node) {
                self.fill(class, node, &mut left, &mut runs);
            }
        }
        runs
    }

    fn pack_range(&mut self, class: ClassId, count: u32, first: NodeId) -> Vec<Run> {
        let mut left = count;
        let mut runs = Vec::new();
        let mut node = first;
        let mut found_in_block = false;
        while left > 0 {
            let next = self.base.free.skip(node, &self.base.class(class).demand);
            found_in_block &= next == node;
            node = next;
            if node.index() >= self.base.len() {
                break;
            }
            if self.is_candidate(node) {
                found_in_block |= self.fill(class, node, &mut left, &mut runs);
            }
            if Free::ends_block(node) {
                if !found_in_block {
                    self.base.free.tighten(node);
                }
                found_in_block = false;
            }
            node = NodeId::new(node.index() + 1);
        }
        runs
    }

    /// Places as many as fit on a node. True if its resources would take more, or took some.
    fn fill(&mut self, class: ClassId, node: NodeId, left: &mut u32, runs: &mut Vec<Run>) -> bool {
        if !self.base.free.fits(node, &self.base.class(class).demand) {
            return false;
        }
        let count = self.room_if_prepared(class, node).min(*left);
        if count > 0 {
            self.place(class, node, count);
            *left -= count;
            runs.push(Run { node, count });
        }
        true
    }
}

/// One run per node, in the order of the first placement.
fn merged(runs: Vec<Run>) -> Vec<Run> {
    let mut merged: Vec<Run> = Vec::new();
    let mut run_of = FxHashMap::default();
    for run in runs {
        let next = merged.len();
        let at = *run_of.entry(run.node).or_insert(next);
        match merged.get_mut(at) {
            Some(earlier) => earlier.count += run.count,
            None => merged.push(run),
        }
    }
    merged
}

/// A search that can be taken up again: first fit for a class whose verdicts shift as pods are placed.
///
/// Nodes that are refused for good are dropped at once. The others are kept by their domains under the keys with few
/// domains: what refuses one node of such a group by one of these keys refuses the whole group, so a step costs as much
/// as there are groups. Refusals by keys with many domains (host names) are remembered until the trackers say that some
/// may have lapsed.
#[derive(Debug)]
pub(crate) struct Seating {
    class: ClassId,
    /// Keys whose domains group the nodes.
    coarse: Vec<KeyId>,
    /// The other shifting keys.
    fine: Vec<KeyId>,
    groups: Vec<Group>,
    by_domains: FxHashMap<SmallVec<[DomainId; 2]>, usize>,
    offered: u32,
    epoch: Option<u64>,
}

#[derive(Debug, Default)]
struct Group {
    /// Nodes that may take a pod, with their places in the order of the candidates.
    nodes: Vec<(u32, NodeId)>,
    /// Those before this one have been refused in the present epoch.
    at: usize,
}

/// A key with at most so many domains groups the nodes.
const COARSE_DOMAINS: usize = 32;

impl Seating {
    /// A search for a class over no nodes yet.
    pub(crate) fn of(snapshot: &mut Snapshot<'_>, class: ClassId) -> Self {
        snapshot.prepare(class);
        let keys = snapshot.shifting_keys(class);
        Self::new(snapshot, class, keys)
    }

    fn new(snapshot: &Snapshot<'_>, class: ClassId, keys: Vec<KeyId>) -> Self {
        let few = |key: &KeyId| snapshot.base.topology.columns[*key].domains() <= COARSE_DOMAINS;
        let (coarse, fine) = keys.into_iter().partition(few);
        Self { class, coarse, fine, groups: Vec::new(), by_domains: FxHashMap::default(), offered: 0, epoch: None }
    }

    /// Adds the next candidate.
    pub(crate) fn offer(&mut self, snapshot: &Snapshot<'_>, node: NodeId) {
        if !snapshot.is_candidate(node) {
            return;
        }
        let domains = self.coarse.iter().map(|&key| snapshot.base.domain(key, node)).collect();
        let next = self.groups.len();
        let group = *self.by_domains.entry(domains).or_insert(next);
        if group == next {
            self.groups.push(Group::default());
        }
        if let Some(group) = self.groups.get_mut(group) {
            group.nodes.push((self.offered, node));
        }
        self.offered += 1;
    }

    /// Places up to `count` pods, each on the first candidate that takes it, and gives them in the order of placement: a
    /// run per stretch on one node.
    pub(crate) fn seat(&mut self, snapshot: &mut Snapshot<'_>, count: u32) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for _ in 0..count {
            self.look_again_if_lapsed(snapshot);
            let firsts = self.groups.iter_mut().filter_map(|group| group.first(snapshot, self.class, &self.coarse));
            let Some((_, node)) = firsts.min() else { break };
            snapshot.place(self.class, node, 1);
            match runs.last_mut() {
                Some(run) if run.node == node => run.count += 1,
                _ => runs.push(Run { node, count: 1 }),
            }
        }
        runs
    }

    fn look_again_if_lapsed(&mut self, snapshot: &Snapshot<'_>) {
        let epochs = snapshot.asked(self.class).map(|tracker| tracker.epoch(self.class, &self.fine));
        let epoch = Some(epochs.fold(0, u64::wrapping_add));
        if self.epoch != epoch {
            self.groups.iter_mut().for_each(|group| group.at = 0);
            self.epoch = epoch;
        }
    }
}

impl Group {
    /// The first node of the group that takes a pod now.
    fn first(&mut self, snapshot: &mut Snapshot<'_>, class: ClassId, coarse: &[KeyId]) -> Option<(u32, NodeId)> {
        // Nodes that are refused for good are squeezed out: those that stay move up.
        let mut kept = self.at;
        let mut found = None;
        let mut next = self.at;
        while let Some(&(place, node)) = self.nodes.get(next) {
            match snapshot.verdict(class, node) {
                Verdict::Fits => {
                    found = Some((place, node));
                    break;
                }
                Verdict::Never => next += 1,
                Verdict::NotNow(Some(key)) if coarse.contains(&key) => break,
                Verdict::NotNow(_) => {
                    if let Some(slot) = self.nodes.get_mut(kept) {
                        *slot = (place, node);
                    }
                    kept += 1;
                    next += 1;
                }
            }
        }
        if kept < next {
            self.nodes.drain(kept..next);
        }
        self.at = kept;
        found
    }
}
