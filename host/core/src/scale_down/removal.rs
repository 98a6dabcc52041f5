//! A node on its way out, from loop to loop: taint, settle, check again, evict, wait, delete. When anything changes in
//! between, the taint is taken off again.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Pod, Time};

use crate::cloud::{CloudError, DeleteOutcome, DeleteStatus, GroupId, InstanceId, InstanceState};
use crate::control_loop::{Action, Eviction, Loop, Pending};
use crate::drain::Fate;
use crate::guard;
use crate::memory::{Removal, Stage};
use crate::observation::NodeIndex;
use crate::plan::{NodeReason, PodIndex, Warning};

/// A deletion that the cloud accepted is expected to be visible by then.
const DELETE_PATIENCE: Duration = Duration::from_secs(300);

/// A deletion that the cloud cannot take just now is asked for again for so long.
const RETRY_PATIENCE: Duration = Duration::from_secs(900);

/// What the pods of a node on its way out say.
struct Occupancy {
    /// Pods that must leave and were not told yet.
    staying: Vec<PodIndex>,
    /// Pods that were told and are not gone.
    leaving: Vec<PodIndex>,
    /// DaemonSet pods that go with the others, but that nobody waits for.
    along: Vec<PodIndex>,
    /// What forbids the removal after all.
    objection: Option<String>,
}

impl Occupancy {
    fn is_empty(&self) -> bool {
        self.staying.is_empty() && self.leaving.is_empty()
    }
}

/// Time to end of a pod that does not say how long it needs.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

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
                    None if pods.is_empty() => {
                        self.evict(node, &pods.along);
                        return self.emptied(node, name);
                    }
                    None => {
                        self.set_stage(name, Stage::Draining(now.millis()));
                        self.evict(node, &pods.along);
                        self.evict_next(node, &pods);
                    }
                }
            }
            Stage::Draining(begun) => {
                let pods = self.occupancy(node);
                let patience = self.drain_patience();
                if let Some(objection) = pods.objection {
                    self.give_up(node, name, objection);
                } else if pods.is_empty() {
                    return self.emptied(node, name);
                } else if since(begun) > patience {
                    self.give_up(node, name, format!("pods did not leave within {}s", patience.as_secs()));
                } else {
                    self.evict_next(node, &pods);
                }
            }
            Stage::Held(begun) => {
                let pods = self.occupancy(node);
                match pods.objection {
                    Some(objection) => self.give_up(node, name, objection),
                    None if !pods.is_empty() => {
                        self.give_up(node, name, "pods came to it in the meantime".to_owned());
                    }
                    None if !self.is_held(node) || since(begun) > self.settings.node_deletion_delay_timeout => {
                        return Advance::Deletable;
                    }
                    None => {}
                }
            }
            Stage::Deleting(asked) if since(asked) > DELETE_PATIENCE => {
                self.memory.removals.remove(name);
                if self.is_old_mark(node) {
                    let uncordon = self.settings.cordon_node_before_terminating && !removal.cordoned_before;
                    self.queue.push_back(Action::Untaint { node, uncordon });
                }
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
        let mut occupancy = Occupancy { staying: vec![], leaving: vec![], along: vec![], objection: None };
        let occupied = self.memory.removals.get(cluster.nodes.get(node).map_or("", |node| cluster.text(node.name)));
        let occupied = occupied.is_some_and(|removal| removal.drain);
        if let Some(&twin) = self.observation.twins.get(&node) {
            occupancy.objection = Some(NodeReason::Twin(twin).describe(cluster));
        }
        if occupied && self.lost_place(node) {
            occupancy.objection = Some("its pods have no other place any more".to_owned());
        }
        for &index in self.pods_on.get(node) {
            let Some(pod) = cluster.pods.get(index) else { continue };
            // Budgets are the eviction API's business now: it refuses, and the eviction is tried again.
            match rules.fate(pod, None) {
                Fate::Ignored => {}
                Fate::DaemonSet if !self.is_evicted_along(pod, occupied) => {}
                // In groups by priority they are evicted like the others.
                Fate::DaemonSet if self.settings.drain_priorities.is_empty() || !occupied => {
                    if pod.deletion.is_none() {
                        occupancy.along.push(index);
                    }
                }
                _ if pod.deletion.is_some() => occupancy.leaving.push(index),
                Fate::DaemonSet => occupancy.staying.push(index),
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

    /// Whether pods of a node on its way out found no place in this loop: somebody else took it. A new node for them would be
    /// no better than the one that they are on.
    fn lost_place(&self, node: NodeIndex) -> bool {
        let here = self.pods_on.get(node);
        let lost = |pending: &Pending| pending.unplaced().any(|pod| here.contains(&pod));
        self.pending.iter().filter(|pending| pending.evicted).any(lost)
    }

    /// Whether a DaemonSet pod is evicted: its own annotation says so, else the flag.
    fn is_evicted_along(&self, pod: &Pod, occupied: bool) -> bool {
        let by_flag = match occupied {
            true => self.settings.daemon_set_eviction_for_occupied_nodes,
            false => self.settings.daemon_set_eviction_for_empty_nodes,
        };
        pod.drain.daemon_set_eviction.unwrap_or(by_flag)
    }

    /// What comes when nothing is on a node any more: annotations may hold its deletion for a while.
    fn emptied(&mut self, node: NodeIndex, name: &str) -> Advance {
        if self.is_held(node) && !self.settings.node_deletion_delay_timeout.is_zero() {
            self.set_stage(name, Stage::Held(self.at().millis()));
            return Advance::Waits;
        }
        Advance::Deletable
    }

    fn is_held(&self, node: NodeIndex) -> bool {
        self.observation.cluster.nodes.get(node).is_some_and(|node| node.deletion_delayed)
    }

    /// Evicts pods of a node, each with the time that it may take to end.
    fn evict(&mut self, node: NodeIndex, pods: &[PodIndex]) {
        let pods: Vec<Eviction> = pods.iter().map(|&pod| Eviction { pod, grace: self.grace(pod) }).collect();
        if !pods.is_empty() {
            self.queue.push_back(Action::Evict { node, pods });
        }
    }

    /// Evicts the pods whose turn it is: with `drain-priority-config` those of the lowest group that is not gone yet.
    fn evict_next(&mut self, node: NodeIndex, pods: &Occupancy) {
        let lowest = pods.staying.iter().chain(&pods.leaving).map(|&pod| self.drain_group(pod)).min();
        let turn: Vec<PodIndex> =
            pods.staying.iter().copied().filter(|&pod| Some(self.drain_group(pod)) == lowest).collect();
        self.evict(node, &turn);
    }

    /// The group in which a pod is evicted: the one with the greatest priority that is not above its own, else the lowest.
    fn drain_group(&self, pod: PodIndex) -> usize {
        let cluster = self.observation.cluster;
        let priority = cluster.pods.get(pod).and_then(|pod| cluster.specs[pod.spec].priority).unwrap_or(0);
        self.settings.drain_priorities.iter().rposition(|&(group, _)| group <= priority).unwrap_or(0)
    }

    /// How long a pod may take to end: as long as it asks for, up to the cap.
    fn grace(&self, pod: PodIndex) -> Duration {
        let cap = self.settings.drain_priorities.get(self.drain_group(pod)).map(|&(_, cap)| cap);
        let cap = cap.unwrap_or(self.settings.max_graceful_termination);
        let asked = self.observation.cluster.pods.get(pod).and_then(|pod| pod.termination_grace_seconds);
        let asked = asked.map_or(DEFAULT_GRACE, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        if cap.is_zero() { asked } else { asked.min(cap) }
    }

    /// How long the pods of a node may take to leave it.
    fn drain_patience(&self) -> Duration {
        let settings = self.settings;
        if settings.drain_priorities.is_empty() {
            return settings.max_graceful_termination + settings.max_pod_eviction_time;
        }
        let waits =
            settings.drain_priorities.iter().map(|&(_, cap)| cap + DEFAULT_GRACE + settings.max_pod_eviction_time);
        waits.sum()
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
            // Somebody asked already: a process before this one, whose answer nobody heard.
            let listed = cloud.instances.iter().find(|listed| listed.id == instance);
            if listed.is_some_and(|listed| listed.state == InstanceState::Deleting) {
                self.set_stage(&name, Stage::Deleting(self.at().millis()));
                continue;
            }
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
            Some(Stage::Settling(begun) | Stage::Draining(begun) | Stage::Held(begun)) => {
                Some(Time::from_millis(*begun))
            }
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
        let staying = self.pods_on.get(node);
        for pending in self.pending.iter_mut().filter(|pending| pending.evicted) {
            pending.leave_out(staying, &mut self.snapshot);
        }
        let removal = self.memory.removals.remove(name);
        self.memory.unneeded_since_ms.remove(name);
        let now = Some(self.at().millis());
        self.memory.last_scale_down_failure_ms = now;
        if let Some(removal) = &removal {
            self.memory.last_of_group.entry(removal.group.clone()).or_default().scale_down_failure_ms = now;
        }
        let cordoned_before = removal.is_some_and(|removal| removal.cordoned_before);
        let uncordon = self.settings.cordon_node_before_terminating && !cordoned_before;
        self.queue.push_back(Action::Untaint { node, uncordon });
        self.plan.warnings.push(Warning::RemovalFailed { node: name.to_owned(), reason });
    }
}
