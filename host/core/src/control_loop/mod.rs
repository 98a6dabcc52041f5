//! One loop, as a state machine.
//!
//! ```text
//!  begin: settle the ledger, put pods on nodes, place what already fits
//!    │
//!    ▼
//!  removals under way ──► Step::Act(…) one after the other
//!    │
//!    ▼
//!  options per group ──► Step::Rank(…) along the chain ──► choose, put the new nodes into the snapshot ─┐
//!    ▲                                                                                               │ repeat until
//!    │ (what a failed increase leaves unhelped)                                                      │ nothing is helped
//!    └────────────── Step::Act(Increase) for each group that grows ◄── trim what turned out unneeded ◄┘
//!    │
//!    ▼
//!  scale-down: utilization, drain rules, re-placement, waits, budgets ──► Step::Act(Taint)
//!    │
//!    ▼
//!  Step::Done
//! ```
//!
//! The driver calls [`Loop::next`], does what it says, and answers with [`Loop::ranked`] or [`Loop::acted`].

use plimsoll_model::{SpecId, Time};
use plimsoll_scheduling::{Candidates, ClassId, NodeId, ShapeId, Snapshot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cloud::GroupId;
use crate::drain::{Budgets, Controllers, DrainRules};
use crate::health;
use crate::limits::{Limits, Weight};
use crate::memory::Memory;
use crate::observation::{GroupIndex, GroupView, NodeIndex, Observation};
use crate::plan::{
    Because, GroupReason, NodeOutcome, NodeReason, NodeVerdict, Place, Plan, PodIndex, PodOutcome, Warning,
};
use crate::priorities::Priorities;
use crate::ranking::{RankRequest, Ranking};
use crate::scale_up::again::Attempts;
use crate::scale_up::choice::{Choice, Next};
use crate::scale_up::options::Growth;
use crate::settings::Settings;
use crate::similar::Likeness;
use crate::templates::INSTANCE_TYPE_BEFORE;

mod action;
mod answers;
mod pending;
mod phase;
pub(crate) mod pods_on;
mod report;
pub(crate) mod room;

pub use action::{Action, Eviction, Outcome};
pub use phase::Phase;
use pods_on::PodsOn;

/// What the driver is to do next.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Put the question to the expander of this name and answer with [`Loop::ranked`].
    Rank {
        /// Name in the chain.
        expander: String,
        /// The question.
        request: RankRequest,
    },
    /// Carry this out and answer with [`Loop::acted`].
    Act(Action),
    /// The loop is over.
    Done,
}

/// Pods of one class that need a node.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) class: ClassId,
    pub(crate) spec: SpecId,
    /// In the order in which they are served.
    pub(crate) pods: Vec<PodIndex>,
    /// Where the first of them go.
    pub(crate) placed: Vec<(NodeId, u32)>,
    /// Whether they run now, on a node that is being drained.
    pub(crate) evicted: bool,
    /// Whether they ask for a resource that some groups do not have, such as GPUs.
    pub(crate) scarce: bool,
    /// Whether they come first, since others would take the last nodes that fit them.
    pub(crate) first: bool,
}

impl Pending {
    pub(crate) fn left(&self) -> u32 {
        let placed: u32 = self.placed.iter().map(|&(_, count)| count).sum();
        u32::try_from(self.pods.len()).unwrap_or(u32::MAX).saturating_sub(placed)
    }

    /// Pods that found no place.
    pub(crate) fn unplaced(&self) -> impl Iterator<Item = PodIndex> {
        let placed: u32 = self.placed.iter().map(|&(_, count)| count).sum();
        self.pods.iter().copied().skip(usize::try_from(placed).unwrap_or(usize::MAX))
    }

    /// These pods need no place after all; the places that they had are free again.
    pub(crate) fn leave_out(&mut self, out: &[PodIndex], snapshot: &mut Snapshot<'_>) {
        let mut pods = std::mem::take(&mut self.pods).into_iter();
        for (node, count) in &mut self.placed {
            let here: Vec<PodIndex> = pods.by_ref().take(usize::try_from(*count).unwrap_or(usize::MAX)).collect();
            let before = self.pods.len();
            self.pods.extend(here.iter().copied().filter(|pod| !out.contains(pod)));
            let gone = u32::try_from(here.len() - (self.pods.len() - before)).unwrap_or(u32::MAX);
            if gone > 0 {
                snapshot.unplace(self.class, *node, gone);
                *count -= gone;
            }
        }
        self.placed.retain(|&(_, count)| count > 0);
        self.pods.extend(pods.filter(|pod| !out.contains(pod)));
    }

    /// Puts as many of those that are left as possible on these nodes, in their order.
    pub(crate) fn take_room(&mut self, snapshot: &mut Snapshot<'_>, nodes: &[NodeId]) {
        let left = self.left();
        if left > 0 && !nodes.is_empty() {
            let runs = snapshot.pack(self.class, left, Candidates::Of(nodes));
            self.placed.extend(runs.into_iter().map(|run| (run.node, run.count)));
        }
    }
}

/// A group during the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupState {
    /// Target as we know it now, increases of this loop included.
    pub(crate) target: u32,
    /// Nodes that are on their way already, in the snapshot.
    pub(crate) upcoming: Vec<NodeId>,
    /// Nodes that this loop adds, in the snapshot.
    pub(crate) new: Vec<NodeId>,
    /// How many of those the cloud was asked for.
    pub(crate) asked: u32,
    /// What its nodes are made of; none without a template.
    pub(crate) shape: Option<ShapeId>,
    /// Why it cannot grow.
    pub(crate) closed: Option<GroupReason>,
    /// What one of its nodes counts for the limits.
    pub(crate) weight: Weight,
    /// Nodes that go in this loop.
    pub(crate) leaving: u32,
}

/// What is being waited for.
#[derive(Debug)]
enum Waiting {
    Nothing,
    Ranking(Choice, Vec<Growth>),
    Acting(Action),
}

/// Which pods options are looked for.
///
/// Nodes with resources that not every group has, such as GPUs, are made for pods that ask for these. The others use
/// what those nodes have left, and get nodes of their own only for the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Pods that ask for a resource that some groups do not have.
    Scarce,
    /// All pods.
    Everybody,
}

/// How often options are looked for again, because trimming made room in a group that was full.
const MOST_PASSES: u32 = 4;

/// One loop.
pub struct Loop<'a> {
    pub(crate) observation: &'a Observation<'a>,
    pub(crate) settings: &'a Settings,
    pub(crate) memory: &'a mut Memory,
    pub(crate) snapshot: Snapshot<'a>,
    pub(crate) limits: Limits<'a>,
    pub(crate) controllers: Controllers,
    pub(crate) budgets: Budgets<'a>,
    /// Priorities of groups, if the chain asks for them and there are any.
    pub(crate) priorities: Option<Priorities>,
    pub(crate) groups: Vec<GroupState>,
    /// By class, in the order in which they are served.
    pub(crate) pending: Vec<Pending>,
    /// Pods that no group grows for, on the nodes that have room for them. They take it before the others look for nodes.
    pub(crate) passive: Vec<Pending>,
    /// Pods by the node that they are on.
    pub(crate) pods_on: PodsOn,
    /// Pods that are on no node, by number.
    unplaced: Vec<PodIndex>,
    /// Decisions in order: group and why.
    pub(crate) decisions: Vec<(GroupIndex, Because)>,
    pub(crate) outcomes: FxHashMap<PodIndex, PodOutcome>,
    pub(crate) plan: Plan,
    /// Actions that are to be carried out in the present phase.
    pub(crate) queue: std::collections::VecDeque<Action>,
    pub(crate) turn: Turn,
    /// Which groups grow together where like groups are packed together: a label that merely repeats another does not keep
    /// them apart.
    pub(crate) likeness: Likeness,
    /// Classes that a fresh node of a group would have taken before anything was chosen. Only filled where the number of
    /// choices is limited: else whoever fits is helped.
    pub(crate) fitted: FxHashSet<(GroupIndex, ClassId)>,
    pub(crate) attempts: Attempts,
    /// Whether those that ask for little came first to the room that was there, so that more pods found some.
    pub(crate) crowded: bool,
    passes: u32,
    phase: Phase,
    waiting: Waiting,
}

impl<'a> Loop<'a> {
    /// A loop over an observation. Nothing happens before [`Loop::next`].
    pub fn new(observation: &'a Observation<'a>, settings: &'a Settings, memory: &'a mut Memory) -> Self {
        let cluster = observation.cluster;
        Self {
            observation,
            settings,
            memory,
            snapshot: Snapshot::new(cluster),
            limits: Limits::new(cluster, settings, &observation.accelerators),
            controllers: Controllers::new(cluster),
            budgets: Budgets::new(cluster),
            priorities: None,
            groups: vec![],
            pending: vec![],
            passive: vec![],
            pods_on: PodsOn::default(),
            unplaced: vec![],
            decisions: vec![],
            outcomes: FxHashMap::default(),
            plan: Plan::default(),
            queue: std::collections::VecDeque::new(),
            turn: Turn::Scarce,
            likeness: likeness(settings),
            fitted: FxHashSet::default(),
            attempts: Attempts::default(),
            crowded: false,
            passes: 0,
            phase: Phase::Begin,
            waiting: Waiting::Nothing,
        }
    }

    /// What to do next. While an answer is due, the same step again.
    #[allow(clippy::should_implement_trait, reason = "a loop is no iterator: it needs answers between its steps")]
    pub fn next(&mut self) -> Step {
        self.next_told(&mut |_| ())
    }

    /// [`Loop::next`], telling which part of the loop is about to run: whoever has a clock can measure the parts.
    pub fn next_told(&mut self, entering: &mut dyn FnMut(Phase)) -> Step {
        loop {
            entering(self.phase);
            match &self.waiting {
                Waiting::Acting(action) => return Step::Act(action.clone()),
                Waiting::Ranking(choice, _) => match choice.next() {
                    Next::Ask(expander, request) => return Step::Rank { expander, request },
                    decided => {
                        let Waiting::Ranking(_, growths) = std::mem::replace(&mut self.waiting, Waiting::Nothing)
                        else {
                            continue;
                        };
                        self.decide(decided, growths);
                    }
                },
                Waiting::Nothing => {}
            }
            if let Some(action) = self.queue.pop_front() {
                self.send(action);
                continue;
            }
            match self.phase {
                Phase::Begin => {
                    self.begin();
                    self.phase = if self.may_act() { Phase::Removals } else { Phase::Report };
                }
                Phase::Removals => {
                    self.advance_removals();
                    self.phase = Phase::Options;
                }
                Phase::Options => self.look_for_options(),
                Phase::Increases => {
                    // Everything was asked for. What failed may have left pods without help.
                    self.phase = if self.take_back_failed() { Phase::Options } else { Phase::MinSizes };
                }
                Phase::MinSizes => {
                    self.fill_to_min_sizes();
                    self.phase = Phase::ScaleDown;
                }
                Phase::ScaleDown => {
                    self.scale_down();
                    self.phase = Phase::Taints;
                }
                Phase::Taints => self.phase = Phase::Report,
                Phase::Report => {
                    self.report();
                    self.memory.played = true;
                    self.phase = Phase::Done;
                }
                Phase::Done => return Step::Done,
            }
        }
    }

    /// Answers [`Step::Rank`].
    pub fn ranked(&mut self, ranking: Ranking) {
        if let Waiting::Ranking(choice, _) = &mut self.waiting
            && let Some(warning) = choice.answered(ranking)
            && !self.plan.warnings.contains(&warning)
        {
            self.plan.warnings.push(warning);
        }
    }

    /// What must outlive the process, as it is at this step.
    pub fn memory(&self) -> &Memory {
        self.memory
    }

    /// The plan; complete once [`Step::Done`] was returned.
    pub fn into_plan(self) -> Plan {
        self.plan
    }

    /// Now.
    pub(crate) fn at(&self) -> Time {
        self.observation.at
    }

    pub(crate) fn drain_rules(&self) -> DrainRules<'_> {
        DrainRules {
            settings: self.settings,
            cluster: self.observation.cluster,
            controllers: Some(&self.controllers),
            at: self.at(),
        }
    }

    pub(crate) fn node_name(&self, node: NodeIndex) -> String {
        let cluster = self.observation.cluster;
        cluster.nodes.get(node).map(|node| cluster.text(node.name)).unwrap_or_default().to_owned()
    }

    pub(crate) fn view(&self, group: GroupIndex) -> Option<&'a GroupView<'a>> {
        self.observation.groups.get(group)
    }

    pub(crate) fn group_index(&self, id: &GroupId) -> Option<GroupIndex> {
        self.observation.groups.binary_search_by(|group| group.cloud.id.cmp(id)).ok()
    }

    /// A failure may be about more than the group that met it: others in the same zone, say, are not asked in vain.
    fn close_held_groups(&mut self) {
        let (at, cluster) = (self.at(), self.observation.cluster);
        for (state, view) in self.groups.iter_mut().zip(&self.observation.groups) {
            if state.closed.is_none()
                && let Some((until, reason)) = self.memory.held(view, cluster, at)
            {
                state.closed = Some(GroupReason::BackedOff { until, reason });
            }
        }
    }

    /// Where a node of the snapshot is, for people: an existing node, or the n-th to come of its group.
    pub(crate) fn place(&self, node: NodeId) -> Place {
        if node.index() < self.observation.cluster.nodes.len() {
            return Place::Node(node.index());
        }
        for (state, view) in self.groups.iter().zip(&self.observation.groups) {
            let coming = state.upcoming.iter().chain(&state.new);
            if let Some(position) = coming.into_iter().position(|&candidate| candidate == node) {
                return Place::New(view.cloud.id.clone(), u32::try_from(position).unwrap_or(u32::MAX));
            }
        }
        Place::Node(node.index())
    }

    /// Whether anything may be done in this cluster. If not, every group and every node says why.
    fn may_act(&mut self) -> bool {
        if let Err(unhealthy) = health::check(self.observation, self.settings) {
            self.plan.warnings.push(Warning::Unhealthy(unhealthy));
        } else if self.settings.scale_up_from_zero || self.observation.readiness.iter().any(|state| state.ready) {
            return true;
        }
        for group in &mut self.groups {
            group.closed.get_or_insert(GroupReason::Unhealthy);
        }
        let blocked = |node| {
            let reasons = vec![NodeReason::ClusterUnhealthy];
            NodeVerdict { node, outcome: NodeOutcome::Blocked, reasons }
        };
        self.plan.nodes = (0..self.observation.cluster.nodes.len()).map(blocked).collect();
        false
    }

    /// Looks for a way to help pending pods: asks the expanders, or goes on to the increases if there is none.
    fn look_for_options(&mut self) {
        // With one round there is no second turn for the others.
        if self.settings.scale_up_rounds == Some(1) {
            self.turn = Turn::Everybody;
        }
        let mut rounds = self.settings.scale_up_rounds.is_none_or(|most| self.plan.rounds < most);
        if self.settings.scale_up_rounds.is_none() {
            self.begin_attempt();
            rounds = self.settle_step();
        }
        if self.settings.scale_up_rounds.is_some() && self.plan.rounds == 0 && self.passes == 0 {
            self.try_fresh_nodes();
        } else if self.attempts.has_stepped() && self.shares_afterwards() {
            self.fitted.clear();
            self.try_fresh_nodes();
        }
        if self.plan.rounds > 0 && !self.goes_step_by_step() {
            self.use_room();
        }
        let mut growths = if rounds { self.options() } else { vec![] };
        if rounds && growths.is_empty() && self.turn == Turn::Scarce {
            self.on_to_everybody();
            growths = self.options();
        }
        if self.plan.rounds == 0 && self.passes == 0 {
            self.tell_skipped();
        }
        if !growths.is_empty() {
            let request = self.question(&growths);
            self.waiting = Waiting::Ranking(Choice::new(request, &self.settings.expander), growths);
            return;
        }
        let dropped = self.trim();
        let unhelped = self.pending.iter().any(|pending| pending.left() > 0);
        if rounds && dropped > 0 && unhelped && self.passes < MOST_PASSES {
            self.passes += 1;
            if !self.goes_step_by_step() {
                self.turn = Turn::Scarce;
            }
            self.reopen_full_groups();
            return;
        }
        self.spread_again();
        if self.tries_again() {
            return;
        }
        self.ask_for_increases();
        self.phase = Phase::Increases;
    }

    /// Pods that need nothing scarce use what is left on the nodes that were made for the others.
    fn on_to_everybody(&mut self) {
        self.turn = Turn::Everybody;
        let new: Vec<NodeId> = self.groups.iter().flat_map(|group| group.new.iter().copied()).collect();
        for pending in self.pending.iter_mut().filter(|pending| !pending.scarce && !pending.first) {
            pending.take_room(&mut self.snapshot, &new);
        }
    }

    /// Everything is chosen from the start.
    pub(crate) fn start_passes(&mut self) {
        self.passes = 0;
    }

    /// Groups that were closed for want of room may have some again.
    fn reopen_full_groups(&mut self) {
        for state in &mut self.groups {
            if matches!(state.closed, Some(GroupReason::AtMaxSize(_) | GroupReason::Limit(_))) {
                state.closed = None;
            }
        }
    }

    fn decide(&mut self, decided: Next, growths: Vec<Growth>) {
        match decided {
            Next::Won(index, because) => {
                if let Some(growth) = growths.into_iter().nth(index) {
                    self.grow(growth, because);
                    self.plan.rounds += 1;
                }
            }
            // Together with the other pods they may still be wanted.
            Next::Nothing | Next::Ask(..) if self.turn == Turn::Scarce => self.on_to_everybody(),
            // No expander wants any of these; asking again would change nothing.
            Next::Nothing | Next::Ask(..) => {
                for growth in growths {
                    if let Some(state) = self.groups.get_mut(growth.group) {
                        state.closed.get_or_insert(GroupReason::NotChosen);
                    }
                }
            }
        }
    }

    /// Writes an intent down and hands the action to the driver.
    fn send(&mut self, action: Action) {
        if let Action::Increase { intent, group, delta, expected_target, .. } = &action {
            let options = self.group_index(group).and_then(|index| self.view(index)).map(|view| &view.cloud.options);
            let patience = options.and_then(|o| o.provision_time).unwrap_or(self.settings.max_node_provision_time);
            let at = self.observation.at;
            self.memory.ledger.ask(*intent, group, *delta, *expected_target, at, patience);
        }
        self.waiting = Waiting::Acting(action);
    }
}

fn likeness(settings: &Settings) -> Likeness {
    let mut likeness = settings.likeness.clone();
    likeness.ignored_labels.push(INSTANCE_TYPE_BEFORE.to_owned());
    likeness
}
