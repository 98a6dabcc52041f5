//! What the driver answers, and what follows from it.

use super::{Action, Loop, Outcome, Waiting};
use crate::cloud::{CloudError, ErrorClass, ErrorScope, GroupId, SizeOutcome};
use crate::ledger::IntentId;
use crate::plan::{GroupReason, Warning};

impl Loop<'_> {
    /// Answers [`Step::Act`].
    pub fn acted(&mut self, outcome: Outcome) {
        let Waiting::Acting(action) = std::mem::replace(&mut self.waiting, Waiting::Nothing) else { return };
        match (action, outcome) {
            (action, Outcome::NotSent(why)) => self.not_sent(action, why),
            (Action::Increase { intent, group, delta, .. }, Outcome::Size(result)) => {
                self.increased(intent, &group, delta, result);
            }
            (Action::Increase { intent, group, delta, .. }, _) => {
                self.increased(intent, &group, delta, Err(mismatched()));
            }
            (Action::DecreaseTarget { group, delta, .. }, Outcome::Size(result)) => {
                self.decreased(&group, delta, result)
            }
            (Action::DecreaseTarget { group, delta, .. }, _) => self.decreased(&group, delta, Err(mismatched())),
            (Action::Delete { group, instances, .. }, Outcome::Delete(result)) => {
                self.deleted(&group, &instances, result);
            }
            (Action::Delete { group, instances, .. }, _) => self.deleted(&group, &instances, Err(mismatched())),
            (Action::Taint { node, .. }, outcome) => self.tainted(node, api(outcome)),
            (Action::Untaint { node, .. } | Action::Evict { node, .. }, outcome) => {
                // Tried again in the next loop, from what is then seen.
                if let Err(reason) = api(outcome) {
                    let node = self.node_name(node);
                    self.plan.warnings.push(Warning::RemovalFailed { node, reason });
                }
            }
        }
    }

    /// An action that this process kept to itself. It is looked at anew in the next loop, here or in the next leader.
    fn not_sent(&mut self, action: Action, why: String) {
        match action {
            Action::Increase { intent, group, delta, .. } => {
                let error = not_sent(&why);
                self.memory.ledger.answered(intent, &Err(error.clone()));
                if let Some(state) = self.group_index(&group).and_then(|index| self.groups.get_mut(index)) {
                    state.closed = Some(GroupReason::Failed(error.clone()));
                }
                self.plan.warnings.push(Warning::IncreaseFailed { group, delta, accepted: 0, error });
            }
            Action::DecreaseTarget { group, delta, .. } => self.decreased(&group, delta, Err(not_sent(&why))),
            Action::Delete { group, instances, .. } => self.deletion_not_sent(&group, &instances, &why),
            Action::Taint { node, .. } => self.taint_not_sent(node, why),
            Action::Untaint { .. } | Action::Evict { .. } => {
                self.plan.warnings.push(Warning::RemovalFailed { node: String::new(), reason: why });
            }
        }
    }

    fn increased(&mut self, intent: IntentId, group: &GroupId, delta: u32, result: Result<SizeOutcome, CloudError>) {
        let at = self.at();
        self.memory.ledger.answered(intent, &result);
        let (accepted, error) = match result {
            Ok(outcome) => (outcome.accepted.min(delta), outcome.shortfall),
            // It may have been carried out: the pods wait for it until the next read tells.
            Err(error) if error.outcome_unknown => (delta, Some(error)),
            Err(error) => (0, Some(error)),
        };
        if accepted > 0 {
            self.memory.last_scale_up_ms = Some(at.millis());
            self.memory.last_of_group.entry(group.clone()).or_default().scale_up_ms = Some(at.millis());
        }
        let Some(index) = self.group_index(group) else { return };
        let missing = delta - accepted;
        if let Some(state) = self.groups.get_mut(index) {
            state.target += accepted;
            state.asked += accepted;
        }
        if missing == 0 && error.is_none() {
            self.memory.succeeded(group);
            return;
        }
        let error = error.unwrap_or_else(|| short(group));
        self.plan.warnings.push(Warning::IncreaseFailed {
            group: group.clone(),
            delta,
            accepted,
            error: error.clone(),
        });
        if missing > 0 {
            self.memory.back_off_for(group, &error, at, self.settings);
            self.close_held_groups();
            if let Some(state) = self.groups.get_mut(index) {
                state.closed = Some(GroupReason::Failed(error));
            }
        }
    }
}

fn api(outcome: Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Api(result) => result,
        Outcome::Size(_) | Outcome::Delete(_) | Outcome::NotSent(_) => {
            Err("the driver answered another question".to_owned())
        }
    }
}

/// The cloud was not asked at all, and may be asked again.
fn not_sent(why: &str) -> CloudError {
    CloudError { class: ErrorClass::Conflict, ..own_error(why, false) }
}

fn mismatched() -> CloudError {
    own_error("the driver answered another question", true)
}

fn short(group: &GroupId) -> CloudError {
    own_error(&format!("{group} accepted fewer machines than asked for and did not say why"), false)
}

fn own_error(message: &str, outcome_unknown: bool) -> CloudError {
    CloudError {
        class: ErrorClass::Other,
        scope: ErrorScope::Provider,
        code: String::new(),
        message: message.to_owned(),
        retry_after: None,
        outcome_unknown,
        request_id: None,
    }
}
