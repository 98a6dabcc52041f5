//! What we asked the cloud for and what became of it.
//!
//! *Upcoming* capacity is read from here: machines that an open intent still waits for. It is never inferred from a
//! target that is larger than the number of nodes, so a person who raises a target, or a cloud that forgot a request,
//! does not make the loop wait for machines that nobody promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_model::Time;
use serde::{Deserialize, Serialize};

use crate::cloud::{CloudError, GroupId, InstanceId, SizeOutcome};

/// Number of an intent, unique over the life of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct IntentId(u64);

impl IntentId {
    /// Key that makes the cloud carry the intent out at most once, however often it is asked.
    pub fn idempotency_key(self) -> String {
        format!("plimsoll-{:016x}", self.0)
    }
}

/// Where an intent is in its life.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum IntentState {
    /// Handed to the driver, no answer yet. After a restart this reads as [`IntentState::Unknown`].
    Asked,
    /// The cloud took it, wholly or in part.
    Accepted,
    /// The call ended without a clear answer; the next read settles it.
    Unknown,
}

/// A wish for more machines that is not settled yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Increase {
    /// Its number.
    pub id: IntentId,
    /// The group.
    pub group: GroupId,
    /// How many machines are still to come.
    pub outstanding: u32,
    /// The group's target before, as far as was known.
    pub target_before: u32,
    /// When it was asked, in milliseconds since the epoch.
    pub asked_at_ms: i64,
    /// When it counts as failed, in milliseconds since the epoch.
    pub deadline_ms: i64,
    /// State.
    pub state: IntentState,
}

/// Machines of one group that the ledger has already accounted for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    /// Machines that became nodes, or were there before the first intent.
    arrived: BTreeSet<InstanceId>,
    /// Machines whose failure was counted.
    failed: BTreeSet<InstanceId>,
    /// Failures without a machine that were counted.
    failures: BTreeSet<String>,
    /// Machines that had arrived and are not seen at present, with when they were last seen, in milliseconds since the
    /// epoch. When they are seen again, nobody has arrived.
    #[serde(default)]
    missed: BTreeMap<InstanceId, i64>,
}

/// A machine that is not seen for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(3600);

impl Known {
    /// Takes note of the machines that are nodes now; returns how many of them were not there before.
    fn see(&mut self, registered: BTreeSet<InstanceId>, at: Time) -> u32 {
        let missing = self.arrived.difference(&registered).map(|id| (id.clone(), at.millis()));
        self.missed.extend(missing.collect::<Vec<_>>());
        let fresh = registered.difference(&self.arrived).filter(|&id| self.missed.remove(id).is_none()).count();
        self.missed.retain(|_, since| at.since(Time::from_millis(*since)) <= FORGET_AFTER);
        self.arrived = registered;
        u32::try_from(fresh).unwrap_or(u32::MAX)
    }
}

/// What a read of one group says to the ledger.
#[derive(Clone, Debug)]
pub struct GroupReading<'a> {
    /// The group.
    pub group: &'a GroupId,
    /// Its target.
    pub target_size: u32,
    /// When the cloud was in this state.
    pub observed_at: Time,
    /// Machines that are nodes now.
    pub registered: BTreeSet<InstanceId>,
    /// Machines that failed, with the error.
    pub failed: Vec<(InstanceId, CloudError)>,
    /// Failures without a machine: stable id, count, error.
    pub failures: Vec<(String, u32, CloudError)>,
}

/// What settling found out about a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The group.
    pub group: GroupId,
    /// How many machines that were asked for will not come; none if somebody else had asked for them.
    pub missing: u32,
    /// Why.
    pub cause: FailureCause,
}

/// Why machines will not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FailureCause {
    /// The cloud said so.
    Cloud(CloudError),
    /// They did not become nodes in time; how long was waited.
    TimedOut(Duration),
    /// The cloud never took the request whose answer was lost.
    NeverAccepted,
}

/// All unsettled intents.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    next: u64,
    increases: Vec<Increase>,
    known: BTreeMap<GroupId, Known>,
}

impl Ledger {
    /// An empty ledger that gives out numbers above this one: where an earlier ledger was lost, its keys must not come
    /// again, or the cloud would take a new wish for an old one.
    pub fn numbered_above(number: u64) -> Self {
        Self { next: number, ..Self::default() }
    }

    /// A number for a new intent.
    pub fn new_intent(&mut self) -> IntentId {
        self.next += 1;
        IntentId(self.next)
    }

    /// Writes down a wish before it is sent.
    pub fn ask(&mut self, id: IntentId, group: &GroupId, delta: u32, target_before: u32, at: Time, patience: Duration) {
        self.increases.push(Increase {
            id,
            group: group.clone(),
            outstanding: delta,
            target_before,
            asked_at_ms: at.millis(),
            deadline_ms: (at + patience).millis(),
            state: IntentState::Asked,
        });
    }

    /// Writes down machines that somebody asked for before we looked: a file's target above its nodes.
    pub fn assume(&mut self, group: &GroupId, count: u32, target: u32, at: Time, patience: Duration) {
        let id = self.new_intent();
        self.ask(id, group, count, target.saturating_sub(count), at, patience);
        if let Some(intent) = self.increases.last_mut() {
            intent.state = IntentState::Accepted;
        }
    }

    /// Writes down the answer to a wish. A failure that cannot have had an effect closes the intent; one that may have
    /// had leaves it to the next read.
    pub fn answered(&mut self, id: IntentId, answer: &Result<SizeOutcome, CloudError>) {
        match answer {
            Ok(outcome) => {
                if let Some(intent) = self.increases.iter_mut().find(|intent| intent.id == id) {
                    intent.outstanding = intent.outstanding.min(outcome.accepted);
                    intent.state = IntentState::Accepted;
                }
                self.increases.retain(|intent| intent.outstanding > 0);
            }
            Err(error) if error.outcome_unknown => {
                if let Some(intent) = self.increases.iter_mut().find(|intent| intent.id == id) {
                    intent.state = IntentState::Unknown;
                }
            }
            Err(_) => self.increases.retain(|intent| intent.id != id),
        }
    }

    /// Machines that a group still owes us.
    pub fn outstanding(&self, group: &GroupId) -> u32 {
        let of_group = self.increases.iter().filter(|intent| intent.group == *group);
        of_group.map(|intent| intent.outstanding).sum()
    }

    /// All open wishes.
    pub fn increases(&self) -> &[Increase] {
        &self.increases
    }

    /// Compares open wishes with what a good read of their group says: new nodes and failures are credited to the
    /// oldest wish first, lost answers are cleared up, and wishes past their deadline fail.
    pub fn settle(&mut self, reading: GroupReading<'_>, at: Time) -> Vec<Failure> {
        let mut failures = Vec::new();
        let first_look = !self.known.contains_key(reading.group);
        let known = self.known.entry(reading.group.clone()).or_default();
        let arrived = known.see(reading.registered, at);
        let mut lost: Vec<(u32, CloudError)> = vec![];
        let mut still_failed = BTreeSet::new();
        for (id, error) in &reading.failed {
            if !known.failed.contains(id) {
                lost.push((1, error.clone()));
            }
            still_failed.insert(id.clone());
        }
        known.failed = still_failed;
        for (id, missing, error) in &reading.failures {
            if known.failures.insert(id.clone()) && !first_look {
                lost.push((*missing, error.clone()));
            }
        }
        known.failures.retain(|id| reading.failures.iter().any(|(listed, ..)| listed == id));

        if !first_look {
            self.credit(reading.group, arrived);
        }
        for (missing, error) in lost {
            let missing = self.credit(reading.group, missing);
            failures.push(Failure { group: reading.group.clone(), missing, cause: FailureCause::Cloud(error) });
        }
        for intent in self.increases.iter_mut().filter(|intent| intent.group == *reading.group) {
            // A read from before the request says nothing of it.
            let later = reading.observed_at.millis() > intent.asked_at_ms;
            if intent.state != IntentState::Accepted && later {
                let taken = reading.target_size.saturating_sub(intent.target_before).min(intent.outstanding);
                let missing = intent.outstanding - taken;
                intent.outstanding = taken;
                intent.state = IntentState::Accepted;
                if missing > 0 {
                    let cause = FailureCause::NeverAccepted;
                    failures.push(Failure { group: reading.group.clone(), missing, cause });
                }
            }
            if intent.outstanding > 0 && intent.deadline_ms < at.millis() {
                let waited = at.since(Time::from_millis(intent.asked_at_ms));
                let missing = std::mem::take(&mut intent.outstanding);
                failures.push(Failure { group: reading.group.clone(), missing, cause: FailureCause::TimedOut(waited) });
            }
        }
        self.increases.retain(|intent| intent.outstanding > 0);
        failures
    }

    /// Takes arrived or lost machines off the oldest wishes; returns how many were taken off.
    fn credit(&mut self, group: &GroupId, count: u32) -> u32 {
        let mut left = count;
        for intent in self.increases.iter_mut().filter(|intent| intent.group == *group) {
            let taken = intent.outstanding.min(left);
            intent.outstanding -= taken;
            left -= taken;
        }
        count - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::{ErrorClass, ErrorScope};

    fn reading<'a>(group: &'a GroupId, target: u32, nodes: &[&str]) -> GroupReading<'a> {
        GroupReading {
            group,
            target_size: target,
            observed_at: Time::from_millis(1),
            registered: nodes.iter().map(|&name| InstanceId::from(name)).collect(),
            failed: vec![],
            failures: vec![],
        }
    }

    fn error(unknown: bool) -> CloudError {
        CloudError {
            class: ErrorClass::OutOfResources,
            scope: ErrorScope::Provider,
            code: "SoldOut".into(),
            message: "no machines".into(),
            retry_after: None,
            outcome_unknown: unknown,
            request_id: None,
        }
    }

    fn asked(delta: u32) -> (Ledger, GroupId, IntentId) {
        let group = GroupId::from("a");
        let mut ledger = Ledger::default();
        ledger.settle(reading(&group, 1, &["i0"]), Time::from_millis(0));
        let id = ledger.new_intent();
        ledger.ask(id, &group, delta, 1, Time::from_millis(0), Duration::from_secs(60));
        (ledger, group, id)
    }

    fn accepted(target_size: u32, accepted: u32) -> Result<SizeOutcome, CloudError> {
        Ok(SizeOutcome { target_size, accepted, activity: None, confirmed: true, shortfall: None })
    }

    #[test]
    fn new_nodes_settle_the_wish() {
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &accepted(3, 2));
        assert_eq!(ledger.outstanding(&group), 2);
        assert_eq!(ledger.settle(reading(&group, 3, &["i0", "i1"]), Time::from_millis(1)), []);
        assert_eq!(ledger.outstanding(&group), 1);
        ledger.settle(reading(&group, 3, &["i0", "i1", "i2"]), Time::from_millis(2));
        assert_eq!(ledger.outstanding(&group), 0);
        assert!(ledger.increases().is_empty());
    }

    #[test]
    fn a_refused_wish_is_closed_and_a_partial_one_shrinks() {
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &Err(error(false)));
        assert_eq!(ledger.outstanding(&group), 0);
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &accepted(2, 1));
        assert_eq!(ledger.outstanding(&group), 1);
    }

    #[test]
    fn a_lost_answer_is_settled_by_the_next_read() {
        for (target, left, failed) in [(1, 0, 1), (2, 1, 1), (3, 2, 0)] {
            let (mut ledger, group, id) = asked(2);
            ledger.answered(id, &Err(error(true)));
            assert_eq!(ledger.outstanding(&group), 2, "until then it counts as coming");
            let failures = ledger.settle(reading(&group, target, &["i0"]), Time::from_millis(1));
            assert_eq!(ledger.outstanding(&group), left, "target {target}");
            assert_eq!(failures.len(), failed, "target {target}");
        }
    }

    #[test]
    fn a_read_from_before_the_request_says_nothing_of_a_lost_answer() {
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &Err(error(true)));
        let old = GroupReading { observed_at: Time::from_millis(0), ..reading(&group, 1, &["i0"]) };
        assert_eq!(ledger.settle(old, Time::from_millis(10)), []);
        assert_eq!(ledger.outstanding(&group), 2);
        assert_eq!(ledger.settle(reading(&group, 1, &["i0"]), Time::from_millis(20)).len(), 1);
        assert_eq!(ledger.outstanding(&group), 0);
    }

    #[test]
    fn nodes_that_were_out_of_sight_do_not_arrive_again() {
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &accepted(3, 2));
        ledger.settle(reading(&group, 3, &[]), Time::from_millis(1));
        ledger.settle(reading(&group, 3, &["i0"]), Time::from_millis(2));
        assert_eq!(ledger.outstanding(&group), 2);
        ledger.settle(reading(&group, 3, &["i0", "i1"]), Time::from_millis(3));
        assert_eq!(ledger.outstanding(&group), 1);
    }

    #[test]
    fn machines_that_fail_or_never_register_are_not_waited_for() {
        let (mut ledger, group, id) = asked(2);
        ledger.answered(id, &accepted(3, 2));
        let mut bad = reading(&group, 3, &["i0"]);
        bad.failed.push((InstanceId::from("i1"), error(false)));
        let failures = ledger.settle(bad.clone(), Time::from_millis(1));
        assert_eq!(failures.len(), 1);
        assert_eq!(ledger.outstanding(&group), 1);
        assert_eq!(ledger.settle(bad.clone(), Time::from_millis(2)), [], "a failure counts once");
        let failures = ledger.settle(bad.clone(), Time::from_millis(61_000));
        assert!(matches!(failures.as_slice(), [Failure { missing: 1, cause: FailureCause::TimedOut(_), .. }]));
        assert_eq!(ledger.outstanding(&group), 0);
    }

    #[test]
    fn targets_raised_by_others_are_not_waited_for() {
        let group = GroupId::from("a");
        let mut ledger = Ledger::default();
        ledger.settle(reading(&group, 9, &["i0"]), Time::from_millis(0));
        assert_eq!(ledger.outstanding(&group), 0);
    }
}
