//! A node on its way out, from loop to loop: taint, settle, check again, evict, wait, delete. When anything changes in
//! between, the taint is taken off again.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::Time;

use crate::cloud::{CloudError, DeleteOutcome, DeleteStatus, GroupId, InstanceId};
use crate::control_loop::{Action, Loop};
use crate::drain::Fate;
use crate::guard;
use crate::memory::{Removal, Stage};
use crate::observation::NodeIndex;
use crate::plan::{PodIndex, Warning};

/// A deletion that the cloud accepted is expected to be visible by then.
const DELETE_PATIENCE: Duration = Duration::from_secs(300);

/// A deletion that the cloud cannot take just now is asked for again for so long.
const RETRY_PATIENCE: Duration = Duration::from_secs(900);

/// What the pods of a node on its way out say.
struct Occupancy {
    /// Pods that must leave and were not told yet.
    staying: Vec<PodIndex>,
    /// Pods that were told and are not gone.
    leaving: usize,
    /// What forbids the removal after all.
    objection: Option<String>,
}

/// Whether a node on its way out is ready to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Advance {
    /// Something else comes first.
    Waits,
    /// Nothing is on it any more.
    Deletable,
}

impl Loop<'_> {
    /// Takes every removal one step further. Machines of one group are deleted in one request: a cloud that is busy with
    /// a first one would refuse the others.
    pub(crate) fn advance_removals(&mut self) {
        self.take_off_old_marks();
        let mut ready: BTreeMap<GroupId, Vec<(NodeIndex, String, InstanceId)>> = BTreeMap::new();
        let removals: Vec<(String, Removal)> =
            self.memory.removals.iter().map(|(name, removal)| (name.clone(), removal.clone())).collect();
        for (name, removal) in removals {
            let symbol = self.observation.cluster.symbols.find(&name);
            let Some(&node) = symbol.and_then(|symbol| self.observation.node_by_name.get(&symbol)) else {
                self.memory.removals.remove(&name);
                continue;
            };
            if self.advance(node, &name, &removal) == Advance::Deletable {
                ready.entry(removal.group).or_default().push((node, name, removal.instance));
            }
        }
        for (group, nodes) in ready {
            self.delete(&group, nodes);
        }
        self.delete_strays();
    }

    fn advance(&mut self, node: NodeIndex, name: &str, removal: &Removal) -> Advance {
        let now = self.at();
        let since = |millis: i64| now.since(Time::from_millis(millis));
        match removal.stage {
            // The process ended between the decision and the answer: the taint is written again, which changes nothing
            // if it is there.
            Stage::Tainting => {
                let cordon = self.settings.cordon_node_before_terminating;
                self.queue.push_back(Action::Taint { node, cordon });
            }
            Stage::Settling(tainted) if since(tainted) < self.settings.node_delete_delay_after_taint => {}
            Stage::Settling(_) => {
                let pods = self.occupancy(node);
                match pods.objection {
                    Some(objection) => self.give_up(node, name, objection),
                    None if !removal.drain && !pods.staying.is_empty() => {
                        self.give_up(node, name, "pods came to it in the meantime".to_owned());
                    }
                    None if pods.staying.is_empty() && pods.leaving == 0 => return Advance::Deletable,
                    None => {
                        self.set_stage(name, Stage::Draining(now.millis()));
                        self.queue.push_back(Action::Evict { node, pods: pods.staying });
                    }
                }
            }
            Stage::Draining(begun) => {
                let pods = self.occupancy(node);
                let patience = self.settings.max_graceful_termination + self.settings.max_pod_eviction_time;
                if pods.staying.is_empty() && pods.leaving == 0 {
                    return Advance::Deletable;
                } else if since(begun) > patience {
                    self.give_up(node, name, format!("pods did not leave within {}s", patience.as_secs()));
                } else if !pods.staying.is_empty() {
                    self.queue.push_back(Action::Evict { node, pods: pods.staying });
                }
            }
            Stage::Deleting(asked) if since(asked) > DELETE_PATIENCE => {
                self.memory.removals.remove(name);
                let reason = "the cloud accepted its deletion, but it is still there".to_owned();
                self.plan.warnings.push(Warning::RemovalFailed { node: name.to_owned(), reason });
            }
            Stage::Deleting(_) => {}
        }
        Advance::Waits
    }

    fn occupancy(&self, node: NodeIndex) -> Occupancy {
        let rules = self.drain_rules();
        let cluster = self.observation.cluster;
        let mut occupancy = Occupancy { staying: vec![], leaving: 0, objection: None };
        for &index in self.pods_on.get(node) {
            let Some(pod) = cluster.pods.get(index) else { continue };
            // Budgets are the eviction API's business now: it refuses, and the eviction is tried again.
            match rules.fate(pod, None) {
                Fate::Ignored | Fate::DaemonSet => {}
                _ if pod.deletion.is_some() => occupancy.leaving += 1,
                Fate::Moves => occupancy.staying.push(index),
                Fate::Completes => {
                    occupancy.objection = Some(format!("{} must end by itself first", cluster.pod_name(pod)));
                }
                // Without budgets at hand a protected system pod looks unprotected; it was judged before the taint.
                Fate::Blocks(crate::drain::Blocker::UnmovableKubeSystemPod) if self.is_protected(index) => {
                    occupancy.staying.push(index);
                }
                Fate::Blocks(blocker) => {
                    occupancy.objection = Some(blocker.describe(&cluster.pod_name(pod), cluster));
                }
            }
        }
        occupancy
    }

    fn is_protected(&self, pod: PodIndex) -> bool {
        self.observation.cluster.pods.get(pod).is_some_and(|pod| self.budgets.of(pod).next().is_some())
    }

    fn set_stage(&mut self, name: &str, stage: Stage) {
        if let Some(removal) = self.memory.removals.get_mut(name) {
            removal.stage = stage;
        }
    }

    /// Asks for the deletion of machines of one group, as many as the guard lets pass.
    fn delete(&mut self, group: &GroupId, nodes: Vec<(NodeIndex, String, InstanceId)>) {
        let Some(index) = self.group_index(group) else { return };
        let (Some(view), Some(state)) = (self.view(index), self.groups.get(index)) else { return };
        let mut cloud = view.cloud.clone();
        cloud.target_size = state.target;
        let mut instances: Vec<InstanceId> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (node, name, instance) in nodes {
            instances.push(instance);
            if let Err(rule) = guard::delete(&cloud, &instances, self.at()) {
                instances.pop();
                self.plan.warnings.push(Warning::Guarded { group: cloud.id.clone(), rule: rule.clone() });
                self.give_up(node, &name, rule.to_string());
                continue;
            }
            names.push(name);
        }
        let count = u32::try_from(instances.len()).unwrap_or(u32::MAX);
        let Some(state) = self.groups.get_mut(index).filter(|_| count > 0) else { return };
        let expected_target = state.target;
        // What comes later in this loop must count on these being gone.
        state.target = state.target.saturating_sub(count);
        let intent = self.memory.ledger.new_intent();
        let reason = match names.as_slice() {
            [name] => format!("node {name} is not needed"),
            names => format!("nodes {} are not needed", names.join(", ")),
        };
        let (group, min_size) = (cloud.id, cloud.min_size);
        self.queue.push_back(Action::Delete { intent, group, instances, expected_target, min_size, reason });
    }

    pub(crate) fn deleted(
        &mut self,
        group: &GroupId,
        instances: &[InstanceId],
        result: Result<DeleteOutcome, CloudError>,
    ) {
        self.strays_deleted(group, instances, &result);
        let now = self.at().millis();
        let names: Vec<(String, InstanceId)> = self
            .memory
            .removals
            .iter()
            .filter(|(_, removal)| removal.group == *group && instances.contains(&removal.instance))
            .map(|(name, removal)| (name.clone(), removal.instance.clone()))
            .collect();
        for (name, instance) in names {
            let failure = match &result {
                Ok(outcome) => match outcome.results.iter().find(|(id, _)| *id == instance).map(|(_, status)| status) {
                    Some(DeleteStatus::Accepted | DeleteStatus::AlreadyGone) => None,
                    Some(DeleteStatus::Failed(error)) => Some((error.to_string(), error.class.passes())),
                    Some(DeleteStatus::Skipped(why)) => Some((why.clone(), true)),
                    None => Some(("the cloud said nothing of this machine".to_owned(), false)),
                },
                // It may be on its way out; the next read tells. Until then nothing lands on it.
                Err(error) if error.outcome_unknown => None,
                Err(error) => Some((error.to_string(), error.class.passes())),
            };
            match failure {
                None => self.set_stage(&name, Stage::Deleting(now)),
                Some((reason, passes)) => self.not_deleted(group, &name, reason, passes),
            }
        }
    }

    /// The cloud was not asked to delete these machines: they stay where they are on their way out.
    pub(crate) fn deletion_not_sent(&mut self, group: &GroupId, instances: &[InstanceId], why: &str) {
        let count = u32::try_from(instances.len()).unwrap_or(u32::MAX);
        if let Some(state) = self.group_index(group).and_then(|index| self.groups.get_mut(index)) {
            state.target += count;
        }
        for instance in instances {
            if let Some(stray) = self.memory.strays.get_mut(instance) {
                stray.asked_ms = None;
            }
        }
        let names: Vec<String> = instances.iter().map(ToString::to_string).collect();
        self.plan.warnings.push(Warning::RemovalFailed { node: names.join(", "), reason: why.to_owned() });
    }

    /// The mark was not written: a removal that was chosen in this loop is not begun, one from before waits.
    pub(crate) fn taint_not_sent(&mut self, node: NodeIndex, why: String) {
        let cluster = self.observation.cluster;
        let Some(name) = cluster.nodes.get(node).map(|node| cluster.text(node.name).to_owned()) else { return };
        if self.plan.scale_down.iter().any(|removal| removal.node == node) {
            self.memory.removals.remove(&name);
        }
        self.plan.warnings.push(Warning::RemovalFailed { node: name, reason: why });
    }

    /// A machine that was not deleted: asked for again in the next loop if what is in the way passes, else given up.
    fn not_deleted(&mut self, group: &GroupId, name: &str, reason: String, passes: bool) {
        if let Some(index) = self.group_index(group)
            && let Some(state) = self.groups.get_mut(index)
        {
            state.target += 1;
        }
        let begun = match self.memory.removals.get(name).map(|removal| &removal.stage) {
            Some(Stage::Settling(begun) | Stage::Draining(begun)) => Some(Time::from_millis(*begun)),
            _ => None,
        };
        if passes && begun.is_some_and(|begun| self.at().since(begun) < RETRY_PATIENCE) {
            return;
        }
        let symbol = self.observation.cluster.symbols.find(name);
        let node = symbol.and_then(|symbol| self.observation.node_by_name.get(&symbol).copied());
        if let Some(node) = node {
            self.give_up(node, name, reason);
        }
    }

    pub(crate) fn tainted(&mut self, node: NodeIndex, result: Result<(), String>) {
        let cluster = self.observation.cluster;
        let Some(name) = cluster.nodes.get(node).map(|node| cluster.text(node.name).to_owned()) else { return };
        match result {
            Ok(()) => {
                let now = self.at().millis();
                self.set_stage(&name, Stage::Settling(now));
            }
            Err(reason) => self.give_up(node, &name, format!("the taint could not be written: {reason}")),
        }
    }

    /// Gives a removal up: the node takes pods again.
    fn give_up(&mut self, node: NodeIndex, name: &str, reason: String) {
        self.memory.removals.remove(name);
        self.memory.unneeded_since_ms.remove(name);
        self.memory.last_scale_down_failure_ms = Some(self.at().millis());
        self.queue.push_back(Action::Untaint { node });
        self.plan.warnings.push(Warning::RemovalFailed { node: name.to_owned(), reason });
    }
}
