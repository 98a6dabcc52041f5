//! A second attempt, where the first one took the last nodes of a group for pods that could have gone elsewhere.
//!
//! Options are chosen one after the other, and an expander knows nothing of what comes after. A group that is full in the
//! end may be so because of pods that fit other groups too, while others fit nowhere else and are left without help. Then
//! everything is chosen once more, those others first, and the better of the two answers counts. Nothing has been asked of
//! the cloud yet at that time.

use std::cmp::Reverse;

use plimsoll_scheduling::NodeId;
use rustc_hash::FxHashMap;

use crate::control_loop::{Loop, Turn};
use crate::observation::GroupIndex;
use crate::plan::{Because, GroupReason};

/// How often everything was chosen.
#[derive(Debug, Default)]
pub(crate) enum Attempts {
    /// Not yet.
    #[default]
    None,
    /// Once, or that is under way.
    First(Start),
    /// Twice, or that is under way; with what came of the first time.
    Second(Start, Answer),
    /// It is decided which one counts.
    Over,
}

/// How things were before anything was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// By class: how many places it had.
    placed: Vec<usize>,
    /// By group: why it was closed.
    closed: Vec<Option<GroupReason>>,
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Nodes to come, in the order of their groups.
    nodes: Vec<(GroupIndex, NodeId)>,
    /// By class: places that it got.
    placed: Vec<Vec<(NodeId, u32)>>,
    closed: Vec<Option<GroupReason>>,
    decisions: Vec<(GroupIndex, Because)>,
    rounds: u32,
    worth: Worth,
}

/// The greater the better: pods that find a place, those of high priority first; then, the fewer nodes the better.
type Worth = (Vec<(Reverse<i32>, u32)>, Reverse<usize>);

impl Loop<'_> {
    /// Remembers how things are before the first choice of this loop.
    pub(crate) fn begin_attempt(&mut self) {
        if matches!(self.attempts, Attempts::None) {
            let start = Start {
                placed: self.pending.iter().map(|pending| pending.placed.len()).collect(),
                closed: self.groups.iter().map(|state| state.closed.clone()).collect(),
            };
            self.attempts = Attempts::First(start);
            self.snapshot.fork();
        }
    }

    /// Whether everything is chosen once more. If not, the better answer is in place.
    pub(crate) fn tries_again(&mut self) -> bool {
        match std::mem::replace(&mut self.attempts, Attempts::Over) {
            Attempts::First(start) => {
                let squeezed = self.squeezed();
                if squeezed.is_empty() {
                    self.snapshot.commit();
                    return false;
                }
                let answer = self.take_answer(&start);
                for index in squeezed {
                    if let Some(pending) = self.pending.get_mut(index) {
                        pending.first = true;
                    }
                }
                self.turn = Turn::Scarce;
                self.attempts = Attempts::Second(start, answer);
                true
            }
            Attempts::Second(start, first) => {
                if self.worth() <= first.worth {
                    self.take_answer(&start);
                    self.put_answer(first);
                }
                self.snapshot.commit();
                false
            }
            Attempts::None | Attempts::Over => false,
        }
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

    fn worth(&self) -> Worth {
        let mut helped: Vec<(Reverse<i32>, u32)> = Vec::new();
        for pending in &self.pending {
            let priority = Reverse(self.observation.cluster.specs[pending.spec].priority.unwrap_or(0));
            let count: u32 = pending.placed.iter().map(|&(_, count)| count).sum();
            match helped.iter_mut().find(|(of, _)| *of == priority) {
                Some((_, sum)) => *sum += count,
                None => helped.push((priority, count)),
            }
        }
        helped.sort_unstable();
        (helped, Reverse(self.groups.iter().map(|state| state.new.len()).sum()))
    }

    /// Takes everything back that was chosen, and tells what it was.
    fn take_answer(&mut self, start: &Start) -> Answer {
        let worth = self.worth();
        let nodes: Vec<(GroupIndex, NodeId)> = { self.groups.iter().enumerate() }
            .flat_map(|(group, state)| state.new.iter().map(move |&node| (group, node)))
            .collect();
        let placed = self.pending.iter_mut().zip(&start.placed);
        let placed =
            placed.map(|(pending, &before)| pending.placed.split_off(before.min(pending.placed.len()))).collect();
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
        Answer { nodes, placed, closed, decisions, rounds, worth }
    }

    /// Puts an answer in place that was taken back.
    fn put_answer(&mut self, answer: Answer) {
        let mut now: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for (group, before) in answer.nodes {
            let Some(state) = self.groups.get_mut(group) else { continue };
            let Some(shape) = state.shape else { continue };
            let node = self.snapshot.add_copy(shape);
            now.insert(before, node);
            state.new.push(node);
            self.limits.count(&state.weight, 1);
        }
        for (pending, placed) in self.pending.iter_mut().zip(answer.placed) {
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
