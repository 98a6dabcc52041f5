//! Several complete answers, of which the best counts.
//!
//! Options are chosen one after the other, and an expander knows nothing of what comes after. So the answer may be worse
//! than it has to be: a group is full because of pods that fit other groups too, while others fit nowhere else and are left
//! without help; or like groups were packed together to spread pods over zones, and one zone ran out of nodes. Then
//! everything is chosen once more in another [`Way`], and the best of the answers counts. Nothing has been asked of the
//! cloud yet at that time.

use plimsoll_model::Symbol;
use plimsoll_model::symbol::known;
use plimsoll_scheduling::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::control_loop::room::{Helped, Order};
use crate::control_loop::{Loop, Turn};
use crate::observation::GroupIndex;
use crate::plan::{Because, GroupReason};

/// How an answer comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Way {
    /// Options are packed for as many pods as possible, and what is placed stays where it is.
    #[default]
    AtOnce,
    /// The same, but pods that others would take the last nodes from come first.
    SqueezedFirst,
    /// As the peer goes on from loop to loop: an option is about the pods that come first, and once its nodes are there all
    /// pods look for their places anew.
    StepByStep,
    /// As [`Way::AtOnce`], but pods that ask for much come first to the room that is there already, even if fewer find some.
    LargestFirst,
    /// Both.
    LargestStepByStep,
}

impl Way {
    fn steps(self) -> bool {
        matches!(self, Self::StepByStep | Self::LargestStepByStep)
    }

    /// Orders in which pods come to the room that is there.
    fn orders(self) -> &'static [Order] {
        match self {
            Self::AtOnce | Self::SqueezedFirst | Self::StepByStep => Order::ALL,
            Self::LargestFirst | Self::LargestStepByStep => Order::LARGEST,
        }
    }
}

/// What came of the ways that were tried.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// How things were at first; none before and after.
    start: Option<Start>,
    /// The best answer, but for that in place.
    best: Option<Answer>,
    way: Way,
    over: bool,
}

/// Places of the pods of each class.
type Placed = Vec<Vec<(NodeId, u32)>>;

/// How things were before anything was chosen.
#[derive(Clone, Debug)]
struct Start {
    /// By class.
    placed: Placed,
    /// By class that no group grows for.
    passive: Placed,
    /// By group: why it was closed.
    closed: Vec<Option<GroupReason>>,
}

/// What came of an attempt.
#[derive(Debug)]
struct Answer {
    /// Nodes to come, in the order of their groups.
    nodes: Vec<(GroupIndex, NodeId)>,
    placed: Placed,
    passive: Placed,
    closed: Vec<Option<GroupReason>>,
    decisions: Vec<(GroupIndex, Because)>,
    rounds: u32,
    worth: Worth,
}

/// The greater the better: pods that find a place again when all of them look for one anew, as in the next loop, those of
/// high priority first; then pods that have a place. Then, the fewer nodes the better, but pods that are to be spread may cost
/// one more node for each domain more that they are spread over.
type Worth = (Helped, Helped, i64, usize);

/// Going step by step packs everything for every group in each step, which must not take long: no more classes times
/// groups than this, and no more pods.
const MOST_PAIRS: usize = 4_096;
const MOST_PODS: usize = 5_000;

/// More steps are no good sign.
const MOST_STEPS: u32 = 60;

impl Attempts {
    /// Whether the answer in place came about step by step.
    pub(crate) fn has_stepped(&self) -> bool {
        self.way.steps()
    }
}

impl Loop<'_> {
    /// Whether one option is chosen, and then the others are looked for anew: the peer's way.
    pub(crate) fn goes_step_by_step(&self) -> bool {
        self.settings.scale_up_rounds == Some(1) || self.attempts.has_stepped()
    }

    /// Remembers how things are before the first choice of this loop.
    pub(crate) fn begin_attempt(&mut self) {
        if self.attempts.start.is_none() && !self.attempts.over {
            self.attempts.start = Some(Start {
                placed: self.pending.iter().map(|pending| pending.placed.clone()).collect(),
                passive: self.passive.iter().map(|pending| pending.placed.clone()).collect(),
                closed: self.groups.iter().map(|state| state.closed.clone()).collect(),
            });
            self.snapshot.fork();
        }
    }

    /// Where everything looks for its place anew after each step: does that. Returns whether one more step may be taken.
    pub(crate) fn settle_step(&mut self) -> bool {
        if !self.attempts.has_stepped() || self.plan.rounds == 0 {
            return true;
        }
        self.take_places_back();
        self.place_what_fits(self.attempts.way.orders());
        self.plan.rounds < MOST_STEPS
    }

    /// Whether everything is chosen once more. If not, the best answer is in place.
    pub(crate) fn tries_again(&mut self) -> bool {
        let Some(start) = self.attempts.start.take() else { return false };
        let next = self.next_way();
        if next.is_none() && self.attempts.best.is_none() {
            self.end_attempts();
            return false;
        }
        let worth = self.worth();
        let better = self.attempts.best.as_ref().is_none_or(|best| worth > best.worth);
        let Some(next) = next else {
            if let Some(best) = self.attempts.best.take().filter(|_| !better) {
                self.take_answer(&start, worth);
                self.put_answer(best);
            }
            self.end_attempts();
            return false;
        };
        let answer = self.take_answer(&start, worth);
        if better {
            self.attempts.best = Some(answer);
        }
        self.attempts.start = Some(start);
        self.attempts.way = next;
        self.turn = if next.steps() { Turn::Everybody } else { Turn::Scarce };
        if next.orders() != Order::ALL {
            self.take_places_back();
            self.place_what_fits(next.orders());
        }
        true
    }

    fn end_attempts(&mut self) {
        self.snapshot.commit();
        self.attempts = Attempts { over: true, ..Attempts::default() };
    }

    /// How else an answer may come about, if there is hope for a better one.
    fn next_way(&mut self) -> Option<Way> {
        let squeezed = if self.attempts.way == Way::AtOnce { self.squeezed() } else { vec![] };
        for (index, pending) in self.pending.iter_mut().enumerate() {
            pending.first = squeezed.contains(&index);
        }
        if !squeezed.is_empty() {
            return Some(Way::SqueezedFirst);
        }
        let others: &[Way] = match self.attempts.way {
            Way::AtOnce | Way::SqueezedFirst => &[Way::StepByStep, Way::LargestFirst],
            Way::StepByStep => &[Way::LargestFirst],
            Way::LargestFirst => &[Way::LargestStepByStep],
            Way::LargestStepByStep => &[],
        };
        if others.is_empty() || !self.may_choose_again() {
            return None;
        }
        let open = |way: &&Way| self.crowded || way.orders() == Order::ALL;
        others.iter().find(open).copied()
    }

    /// Whether another sequence of choices may come to something else, and does not take too long.
    fn may_choose_again(&mut self) -> bool {
        if !self.is_small() || self.decisions.is_empty() {
            return false;
        }
        self.plan.rounds > 1
            || self.crowded
            || self.pending.iter().any(|pending| pending.left() > 0 || self.snapshot.is_shifting(pending.class))
    }

    /// Whether all pods may be placed several times.
    fn is_small(&self) -> bool {
        let pods: usize = self.pending.iter().map(|pending| pending.pods.len()).sum();
        self.pending.len() * self.groups.len() <= MOST_PAIRS && pods <= MOST_PODS
    }

    /// Classes with pods that a group could help if others had not taken its last nodes in this loop.
    fn squeezed(&mut self) -> Vec<usize> {
        let left: Vec<usize> = (0..self.pending.len())
            .filter(|&index| self.pending.get(index).is_some_and(|pending| pending.left() > 0 && !pending.first))
            .collect();
        let mut squeezed = Vec::new();
        if left.is_empty() || !self.groups.iter().any(|state| !state.new.is_empty()) {
            return squeezed;
        }
        for group in 0..self.groups.len() {
            let Some(state) = self.groups.get(group) else { continue };
            let full = match state.closed {
                Some(GroupReason::AtMaxSize(_)) => !state.new.is_empty(),
                Some(GroupReason::Limit(_)) => true,
                _ => false,
            };
            let Some(shape) = state.shape.filter(|_| full) else { continue };
            self.snapshot.fork();
            let node = self.snapshot.add_copy(shape);
            for &index in &left {
                let Some(class) = self.pending.get(index).map(|pending| pending.class) else { continue };
                if !squeezed.contains(&index) && self.snapshot.fits(class, node) {
                    squeezed.push(index);
                }
            }
            self.snapshot.revert();
        }
        squeezed
    }

    /// What the answer in place is worth. All pods look for their places anew; if they all find one and are no less evenly
    /// spread, those are their places.
    fn worth(&mut self) -> Worth {
        let sure = match self.is_small() {
            true => {
                let uneven = self.uneven();
                self.place_anew(Order::ALL, |this| this.uneven() > uneven)
            }
            false => self.helped(),
        };
        self.drop_empty();
        let nodes: usize = self.groups.iter().map(|state| state.new.len()).sum();
        let domains = self.domains();
        let surplus = i64::try_from(domains).unwrap_or(0).saturating_sub(i64::try_from(nodes).unwrap_or(i64::MAX));
        (sure, self.helped(), surplus, domains)
    }

    /// How many domains pods are in that are to be spread over these; hosts do not count.
    fn domains(&self) -> usize {
        let specs = &self.observation.cluster.specs;
        let mut domains: FxHashSet<(Symbol, Symbol)> = FxHashSet::default();
        for pending in &self.pending {
            let keys = specs[pending.spec].spread.iter().map(|constraint| constraint.topology_key);
            for key in keys.filter(|&key| key != known::HOSTNAME) {
                let nodes = pending.placed.iter().filter_map(|&(node, _)| self.snapshot.node(node).labels.get(key));
                domains.extend(nodes.map(|value| (key, value)));
            }
        }
        domains.len()
    }

    /// Nodes on which pods are that would not be let in again, since they are not evenly spread.
    fn uneven(&mut self) -> usize {
        let specs = &self.observation.cluster.specs;
        let classes: Vec<_> = self.pending.iter().map(|pending| (pending.class, pending.spec)).collect();
        let spread = classes.into_iter().filter(|&(_, spec)| !specs[spec].spread.is_empty());
        { spread }.map(|(class, _)| self.misplaced(class, &[])).sum()
    }

    /// Takes everything back that was chosen, and tells what it was.
    fn take_answer(&mut self, start: &Start, worth: Worth) -> Answer {
        let nodes: Vec<(GroupIndex, NodeId)> = { self.groups.iter().enumerate() }
            .flat_map(|(group, state)| state.new.iter().map(move |&node| (group, node)))
            .collect();
        let restored = |pending: &mut [crate::control_loop::Pending], before: &Placed| -> Placed {
            let pairs = pending.iter_mut().zip(before);
            pairs.map(|(pending, before)| std::mem::replace(&mut pending.placed, before.clone())).collect()
        };
        let placed = restored(&mut self.pending, &start.placed);
        let passive = restored(&mut self.passive, &start.passive);
        let closed = self.groups.iter_mut().zip(&start.closed);
        let closed = closed.map(|(state, before)| std::mem::replace(&mut state.closed, before.clone())).collect();
        let decisions = std::mem::take(&mut self.decisions);
        let rounds = std::mem::take(&mut self.plan.rounds);
        for &(_, node) in &nodes {
            self.forget(node);
        }
        self.snapshot.revert();
        self.snapshot.fork();
        self.start_passes();
        self.fitted.clear();
        Answer { nodes, placed, passive, closed, decisions, rounds, worth }
    }

    /// Puts an answer in place that was taken back.
    fn put_answer(&mut self, answer: Answer) {
        self.take_places_back();
        let mut now: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for (group, before) in answer.nodes {
            let Some(state) = self.groups.get_mut(group) else { continue };
            let Some(shape) = state.shape else { continue };
            let node = self.snapshot.add_copy(shape);
            now.insert(before, node);
            state.new.push(node);
            self.limits.count(&state.weight, 1);
        }
        let passive = self.passive.iter_mut().zip(answer.passive);
        for (pending, placed) in self.pending.iter_mut().zip(answer.placed).chain(passive) {
            for (node, count) in placed {
                let node = now.get(&node).copied().unwrap_or(node);
                self.snapshot.place(pending.class, node, count);
                pending.placed.push((node, count));
            }
        }
        for (state, closed) in self.groups.iter_mut().zip(answer.closed) {
            state.closed = closed;
        }
        self.decisions = answer.decisions;
        self.plan.rounds = answer.rounds;
    }
}
