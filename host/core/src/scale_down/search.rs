//! Where the pods of idle nodes would go: removals are tried one after the other, each on top of those before it.

use plimsoll_scheduling::{Candidates, ClassId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::candidates::Candidate;
use crate::control_loop::Loop;
use crate::drain::Fate;
use crate::observation::NodeIndex;
use crate::plan::{NodeOutcome, NodeReason, NodeVerdict, Place, PodIndex};

/// A node that could go: its pods have other places.
pub(crate) struct Unneeded {
    pub(crate) candidate: Candidate,
    /// Where its pods are in the end, when all nodes that could go are gone.
    pub(crate) moves: Vec<(PodIndex, Place)>,
    /// Its pods cannot all be evicted at once under their budgets.
    pub(crate) risky: bool,
}

/// Nodes that could go, and why the others could not.
pub(crate) type Found = (Vec<Unneeded>, Vec<NodeVerdict>);

/// With more candidates than this the search is not repeated with another order of places.
const MOST_SEARCHED_TWICE: usize = 200;

/// Where pods of nodes that are gone are now.
#[derive(Default)]
struct Moved {
    places: FxHashMap<PodIndex, NodeIndex>,
    /// The same by node.
    on: FxHashMap<NodeIndex, Vec<PodIndex>>,
}

impl Moved {
    /// A node goes, and all pods that were or came there have these new places.
    fn away_from(&mut self, node: NodeIndex, moves: Vec<(PodIndex, NodeIndex)>) {
        self.on.remove(&node);
        for (pod, place) in moves {
            self.places.insert(pod, place);
            self.on.entry(place).or_default().push(pod);
        }
    }
}

/// A pod that must leave.
struct Leaving {
    pod: PodIndex,
    /// What it asks for elsewhere.
    class: ClassId,
    /// What it holds where it is.
    held: ClassId,
}

impl Loop<'_> {
    /// Which candidates could go: empty ones are looked at first, then those that were unneeded before, then in the order of
    /// the nodes. Nothing of the search stays in the snapshot.
    pub(crate) fn find_unneeded(&mut self, mut candidates: Vec<Candidate>) -> Found {
        let cluster = self.observation.cluster;
        let name = |node: NodeIndex| cluster.nodes.get(node).map_or("", |node| cluster.text(node.name));
        candidates.sort_by_key(|candidate| {
            let before = self.memory.unneeded_since_ms.contains_key(name(candidate.node));
            (!candidate.moving.is_empty(), !candidate.completing.is_empty(), !before, candidate.node)
        });
        let nodes = self.destinations();
        let found = self.search(&candidates, nodes.clone());
        let all_homeless =
            |reasons: &[NodeReason]| reasons.iter().all(|reason| matches!(reason, NodeReason::NoPlaceToMovePod(_)));
        let homeless = found.1.iter().any(|verdict| all_homeless(&verdict.reasons));
        if !homeless || candidates.len() > MOST_SEARCHED_TWICE {
            return found;
        }
        // What stays anyway is a better place than what may go itself; not always, so both are tried.
        let may_go: FxHashSet<usize> = candidates.iter().map(|candidate| candidate.node).collect();
        let (last, first): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| may_go.contains(&node.index()));
        let again = self.search(&candidates, first.into_iter().chain(last.into_iter().rev()).collect());
        if again.0.len() > found.0.len() { again } else { found }
    }

    /// Simulates the removal of one candidate after the other; pods go to the first of these places that takes them.
    fn search(&mut self, candidates: &[Candidate], mut places: Vec<NodeId>) -> Found {
        let cluster = self.observation.cluster;
        let budgets = self.budgets.clone();
        self.snapshot.fork();
        let mut unneeded = Vec::new();
        let mut blocked = Vec::new();
        let mut moved = Moved::default();
        for candidate in candidates.iter().cloned() {
            if let Some(reasons) = self.spent_budgets(&candidate) {
                blocked.push(NodeVerdict { node: candidate.node, outcome: NodeOutcome::Blocked, reasons });
                continue;
            }
            match self.try_removal(&candidate, &moved, &places) {
                Ok(moves) => {
                    places.retain(|place| place.index() != candidate.node);
                    moved.away_from(candidate.node, moves);
                    let pods = candidate.moving.iter().filter_map(|&index| cluster.pods.get(index));
                    let risky = !self.budgets.allow_together(pods.clone());
                    pods.for_each(|pod| self.budgets.take(pod));
                    unneeded.push(Unneeded { candidate, moves: vec![], risky });
                }
                Err(stuck) => {
                    let reasons = stuck.into_iter().map(NodeReason::NoPlaceToMovePod).collect();
                    blocked.push(NodeVerdict { node: candidate.node, outcome: NodeOutcome::Blocked, reasons });
                }
            }
        }
        self.snapshot.revert();
        self.budgets = budgets;
        for node in &mut unneeded {
            let ends = |&pod: &PodIndex| Some((pod, Place::Node(*moved.places.get(&pod)?)));
            node.moves = node.candidate.moving.iter().filter_map(ends).collect();
            node.moves.sort();
        }
        (unneeded, blocked)
    }

    /// Nodes that pods may move to, in their order: all that have started. What is marked as going is no place, even where
    /// the mark is about to be taken off.
    fn destinations(&self) -> Vec<NodeId> {
        let groups = &self.observation.groups;
        let starting: FxHashSet<NodeIndex> = groups.iter().flat_map(|group| group.starting.iter().copied()).collect();
        let nodes = 0..self.observation.cluster.nodes.len();
        let is_place = |node: &NodeIndex| !starting.contains(node) && !self.is_old_mark(*node);
        nodes.filter(is_place).map(NodeId::new).collect()
    }

    /// Pods whose budgets the removals before this one have used up.
    fn spent_budgets(&self, candidate: &Candidate) -> Option<Vec<NodeReason>> {
        let rules = self.drain_rules();
        let held = |&index: &PodIndex| match rules.fate(self.observation.cluster.pods.get(index)?, Some(&self.budgets))
        {
            Fate::Blocks(blocker) => Some(NodeReason::Pod(index, blocker)),
            _ => None,
        };
        let reasons: Vec<NodeReason> = candidate.moving.iter().filter_map(held).collect();
        (!reasons.is_empty()).then_some(reasons)
    }

    /// Takes a node away if all that is on it, and all that came to it, has another place; says where.
    fn try_removal(
        &mut self,
        candidate: &Candidate,
        moved: &Moved,
        places: &[NodeId],
    ) -> Result<Vec<(PodIndex, NodeIndex)>, Vec<PodIndex>> {
        let here = NodeId::new(candidate.node);
        let leaving = self.leaving(candidate, moved);
        self.snapshot.fork();
        for pod in &leaving {
            self.snapshot.unplace(pod.held, here, 1);
        }
        self.snapshot.close(here);
        let mut moves = Vec::new();
        let mut stuck = Vec::new();
        for run in leaving.chunk_by(|a, b| a.class == b.class) {
            let Some(class) = run.first().map(|pod| pod.class) else { continue };
            let count = u32::try_from(run.len()).unwrap_or(u32::MAX);
            let mut pods = run.iter().map(|pod| pod.pod);
            for placed in self.snapshot.pack(class, count, Candidates::Of(places)) {
                let these = pods.by_ref().take(usize::try_from(placed.count).unwrap_or(usize::MAX));
                moves.extend(these.map(|pod| (pod, placed.node.index())));
            }
            stuck.extend(pods);
        }
        if !stuck.is_empty() {
            self.snapshot.revert();
            return Err(stuck);
        }
        self.snapshot.commit();
        Ok(moves)
    }

    /// Pods that must leave a node, the largest first, as when pods are placed.
    fn leaving(&mut self, candidate: &Candidate, moved: &Moved) -> Vec<Leaving> {
        let cluster = self.observation.cluster;
        let mut leaving = Vec::new();
        for &index in &candidate.moving {
            if let Some(pod) = cluster.pods.get(index) {
                let held = match pod.deletion {
                    Some(_) => self.snapshot.terminating_class(pod.held),
                    None => self.snapshot.class(pod.held),
                };
                leaving.push(Leaving { pod: index, class: self.snapshot.class(pod.spec), held });
            }
        }
        for &index in moved.on.get(&candidate.node).into_iter().flatten() {
            if let Some(pod) = cluster.pods.get(index) {
                let class = self.snapshot.class(pod.spec);
                leaving.push(Leaving { pod: index, class, held: class });
            }
        }
        let size = |leaving: &Leaving| {
            let requests = cluster.pods.get(leaving.pod).map(|pod| &cluster.specs[pod.spec].requests);
            requests.map(|requests| (requests.cpu_milli, requests.memory_bytes)).unwrap_or_default()
        };
        leaving.sort_by(|a, b| size(b).cmp(&size(a)).then(a.class.cmp(&b.class)).then(a.pod.cmp(&b.pod)));
        leaving
    }
}
