//! How many nodes of a template, or of several like ones together, do these pods need?
//!
//! Packing is tried in several ways on a fork of the snapshot, the peer's first, and the best is kept: most pods placed,
//! then fewest nodes. So it is never worse than the peer (kube-scheduler's order of filters, the peer's order of pods,
//! first fit) and often better.
//!
//! | file | |
//! |---|---|
//! | `order` | which pods come first |
//! | `plain` | pods that only resources keep apart: arithmetic on runs of equal nodes |
//! | `greedy` | all others: on the snapshot itself |
//! | `search` | which ways are tried |

mod greedy;
mod order;
mod plain;
mod search;

use rustc_hash::FxHashMap;

use crate::predicates::Verdict;
use crate::snapshot::Snapshot;
use crate::snapshot::base::{ClassId, Count, NodeId, ShapeId};
use greedy::Greedy;
use search::Search;

/// A template that nodes may be made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The template.
    pub shape: ShapeId,
    /// How many nodes at most.
    pub most: u32,
    /// How many nodes its group has already. Where several templates would do, that of the smallest group is taken.
    pub size: u32,
}

/// How hard to look for a better packing than the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// One or two ways, the peer's first; enough to compare options.
    #[default]
    Quick,
    /// Many ways; for the option that was chosen, or where there are few.
    Thorough,
}

/// What counts when two packings are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Aim {
    /// As many pods as possible, whichever they are; then as few nodes as possible.
    #[default]
    MostPods,
    /// All pods that the peer's way places, so that an option is about the pods that it would be about there; then as few
    /// nodes as possible.
    PeersPods,
}

/// What holds for all templates together.
#[derive(Clone, Copy, Default)]
pub struct Limits<'a> {
    /// How many nodes at most; none: no limit.
    pub nodes: Option<u32>,
    /// Asked before each node is added; false: no more nodes. For time limits.
    pub proceed: Option<&'a dyn Fn() -> bool>,
    /// How hard to look.
    pub effort: Effort,
    /// What for.
    pub aim: Aim,
}

impl Limits<'_> {
    fn allow(&self, nodes: u32) -> bool {
        self.nodes.is_none_or(|most| nodes < most) && self.proceed.is_none_or(|proceed| proceed())
    }
}

/// Equal new nodes with equal pods on each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRun {
    /// Position of their template among the bins.
    pub bin: usize,
    /// How many nodes.
    pub nodes: u32,
    /// Pods on each of them: position in the list of pods, and how many. Sorted, each position once.
    pub pods: Vec<(usize, u32)>,
}

/// Where pods were placed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// A new node, by its position in the order of creation.
    New(u32),
    /// A node that was there before.
    Existing(NodeId),
}

/// One step of a packing: equal pods on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where.
    pub target: Target,
    /// Which: position in the list of pods.
    pub entry: usize,
    /// How many.
    pub count: u32,
}

/// What a packing came to. Every pod fits its node when the steps are taken in order, each new node being added just
/// before the first step onto it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    /// New nodes in the order of creation. Each has at least one pod.
    pub nodes: Vec<NodeRun>,
    /// Pods that found places on nodes that were there before, because others were placed.
    pub existing: Vec<Step>,
    /// How many of each entry of the list of pods were placed.
    pub placed: Vec<u32>,
    /// The steps, where their order matters.
    order: Option<Vec<Step>>,
}

impl Packed {
    /// How many new nodes.
    pub fn node_count(&self) -> u32 {
        self.nodes.iter().map(|run| run.nodes).sum()
    }

    /// How many new nodes of one template.
    pub fn nodes_of(&self, bin: usize) -> u32 {
        self.nodes.iter().filter(|run| run.bin == bin).map(|run| run.nodes).sum()
    }

    /// How many pods were placed.
    pub fn pod_count(&self) -> u64 {
        self.placed.iter().map(|&placed| u64::from(placed)).sum()
    }

    /// Template of each new node, in the order of creation.
    pub fn bins(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().flat_map(|run| std::iter::repeat_n(run.bin, usize::try_from(run.nodes).unwrap_or(0)))
    }

    /// All steps in order.
    pub fn steps(&self) -> Vec<Step> {
        if let Some(order) = &self.order {
            return order.clone();
        }
        let mut steps = Vec::new();
        let mut node = 0;
        for run in &self.nodes {
            for _ in 0..run.nodes {
                let pods = run.pods.iter().map(|&(entry, count)| Step { target: Target::New(node), entry, count });
                steps.extend(pods);
                node += 1;
            }
        }
        steps.extend(&self.existing);
        steps
    }

    /// Does in the snapshot what was found: adds the new nodes and places the pods. Gives the new nodes.
    pub fn apply(&self, snapshot: &mut Snapshot<'_>, bins: &[Bin], pods: &[Count]) -> Vec<NodeId> {
        let shapes = self.bins().filter_map(|bin| bins.get(bin));
        let nodes: Vec<NodeId> = shapes.map(|bin| snapshot.add_copy(bin.shape)).collect();
        let on_new = self.nodes.iter().scan(0, |first, run| {
            let start = *first;
            *first += usize::try_from(run.nodes).unwrap_or(0);
            Some((nodes.get(start..*first).unwrap_or(&[]), &run.pods))
        });
        for (nodes, on_each) in on_new {
            for (node, &(entry, count)) in nodes.iter().flat_map(|node| on_each.iter().map(move |pods| (node, pods))) {
                pods.get(entry).into_iter().for_each(|&(class, _)| snapshot.place(class, *node, count));
            }
        }
        for step in &self.existing {
            if let (Target::Existing(node), Some(&(class, _))) = (step.target, pods.get(step.entry)) {
                snapshot.place(class, node, step.count);
            }
        }
        nodes
    }

    fn better_than(&self, other: &Packed) -> bool {
        let merit = |packed: &Packed| (packed.pod_count(), std::cmp::Reverse(packed.node_count()));
        merit(self) > merit(other)
    }

    /// Whether it places at least as many pods of each entry, with no more nodes.
    fn covers(&self, other: &Packed) -> bool {
        self.placed.iter().zip(&other.placed).all(|(ours, theirs)| ours >= theirs)
            && self.node_count() <= other.node_count()
    }

    fn steps_taken(&self) -> usize {
        let on_new: usize = self.nodes.iter().map(|run| run.pods.len()).sum();
        self.order.as_ref().map_or(on_new, Vec::len)
            + self.existing.len()
            + usize::try_from(self.node_count()).unwrap_or(0)
    }

    /// From steps in order.
    fn from_steps(steps: Vec<Step>, bins: &[usize], entries: usize, order_matters: bool) -> Self {
        let mut on_new: Vec<Vec<(usize, u32)>> = vec![Vec::new(); bins.len()];
        let mut placed = vec![0; entries];
        let mut existing = Vec::new();
        for &step in &steps {
            placed.get_mut(step.entry).into_iter().for_each(|placed| *placed += step.count);
            match step.target {
                Target::Existing(_) => existing.push(step),
                Target::New(node) => {
                    let Some(pods) = on_new.get_mut(usize::try_from(node).unwrap_or(usize::MAX)) else { continue };
                    match pods.iter_mut().find(|(entry, _)| *entry == step.entry) {
                        Some((_, count)) => *count += step.count,
                        None => pods.push((step.entry, step.count)),
                    }
                }
            }
        }
        let mut nodes: Vec<NodeRun> = Vec::new();
        for (&bin, mut pods) in bins.iter().zip(on_new) {
            pods.sort_unstable();
            match nodes.last_mut() {
                Some(run) if run.bin == bin && run.pods == pods => run.nodes += 1,
                _ => nodes.push(NodeRun { bin, nodes: 1, pods }),
            }
        }
        Self { nodes, existing, placed, order: order_matters.then_some(steps) }
    }
}

/// Packs pods onto new nodes of the given templates: as many pods as possible, on as few nodes as can be found. The
/// snapshot is left as it was.
///
/// `pods` are classes with counts, in the order in which equal ones should be tried; a class may occur more than once.
/// Cordoned templates take no pods, as in the peer. Pods with hard spread constraints may also end on existing nodes that
/// new ones open for them.
pub fn estimate(snapshot: &mut Snapshot<'_>, bins: &[Bin], pods: &[Count], limits: Limits<'_>) -> Packed {
    Packer::default().estimate(snapshot, bins, pods, limits)
}

/// Packs several times over the same existing nodes, and remembers which of these may matter to which pods.
///
/// What it remembers holds while pods are only added to the snapshot. Make a new one after pods or nodes were taken away
/// or nodes were added.
#[derive(Debug, Default)]
pub struct Packer {
    existing: FxHashMap<ClassId, Vec<NodeId>>,
}

impl Packer {
    /// As [`estimate`].
    pub fn estimate(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        bins: &[Bin],
        pods: &[Count],
        limits: Limits<'_>,
    ) -> Packed {
        let cordon_policy = snapshot.skip_cordoned;
        snapshot.set_cordon_policy(true);
        pods.iter().for_each(|&(class, _)| snapshot.prepare(class));
        let plan = plain::Plan::new(snapshot, bins, pods, limits);
        let best = match plan {
            Some(plan) => plan.best(),
            None => self.greedy(snapshot, bins, pods, limits),
        };
        snapshot.set_cordon_policy(cordon_policy);
        best
    }

    /// Tries orders of the pods until no better packing is possible or the effort is spent.
    fn greedy(&mut self, snapshot: &mut Snapshot<'_>, bins: &[Bin], pods: &[Count], limits: Limits<'_>) -> Packed {
        let peer = order::peer(snapshot, bins, pods);
        let least_nodes = greedy::least_nodes(snapshot, bins, pods);
        let mut reuse = false;
        for &(class, _) in pods {
            if !greedy::may_reuse(snapshot, class) {
                continue;
            }
            // Nodes that refuse a class for good now will do so as long as pods are only added.
            let found = self.existing.entry(class).or_insert_with(|| {
                let nodes = (0..snapshot.len()).map(NodeId::new);
                nodes.filter(|&node| snapshot.verdict(class, node) != Verdict::Never).collect()
            });
            reuse |= !found.is_empty();
        }
        let backwards = peer.iter().rev().copied().collect();
        let by_size = order::by_size(snapshot, bins, pods);
        let mut search = Search::new(limits, vec![peer, backwards, by_size], reuse);
        while let Some((order, reuse)) = search.next() {
            let packed = Greedy::new(snapshot, bins, pods, limits, &self.existing, reuse).pack(&order);
            let perfect = pods.iter().zip(&packed.placed).all(|((_, count), placed)| placed == count)
                && packed.node_count() <= least_nodes;
            let work = 2 * packed.steps_taken() + 10 * pods.len();
            search.learn(order, packed, work);
            if perfect {
                break;
            }
        }
        search.best()
    }
}
