//! What is neither a node nor on its way to be one: machines that failed or never registered, and marks of removals that
//! nobody pursues. Machines go; marks are taken off.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_model::symbol::known;
use rustc_hash::FxHashSet;

use crate::cloud::{CloudError, DeleteOutcome, DeleteStatus, GroupId, Instance, InstanceId, InstanceState};
use crate::control_loop::{Action, Loop};
use crate::guard;
use crate::memory::Stray;
use crate::observation::{GroupView, NodeIndex};
use crate::plan::Warning;

/// A machine that was to be deleted and is still there is asked for again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(300);

impl Loop<'_> {
    /// Deletes machines that failed, and those that did not become nodes in time. Groups that could not be read wholly are
    /// left alone: a node that is not listed, or a machine that is not, says nothing.
    pub(crate) fn delete_strays(&mut self) {
        let observation = self.observation;
        let mut strays: BTreeMap<InstanceId, Stray> = BTreeMap::new();
        for (group, view) in observation.groups.iter().enumerate() {
            let unknown = view.cloud.error.is_some() || !view.cloud.instances_complete;
            if unknown {
                let here = |stray: &&Stray| stray.group == view.cloud.id;
                let kept = self.memory.strays.iter().filter(|(_, stray)| here(stray));
                strays.extend(kept.map(|(id, stray)| (id.clone(), stray.clone())));
                continue;
            }
            let mut overdue = Vec::new();
            for instance in self.without_node(view) {
                let stray = self.stray(view, instance);
                if self.is_overdue(view, instance, &stray) {
                    overdue.push(instance);
                }
                strays.insert(instance.id.clone(), stray);
            }
            self.ask_for_strays(group, view, overdue, &mut strays);
        }
        self.memory.strays = strays;
    }

    /// Machines of a group that are no nodes, although they are not on their way out.
    pub(crate) fn without_node<'v>(&self, view: &'v GroupView<'_>) -> Vec<&'v Instance> {
        let member = |&node: &usize| self.observation.membership.get(node).copied().flatten();
        let registered: FxHashSet<usize> = view.nodes.iter().filter_map(member).map(|member| member.instance).collect();
        let is_stray = |(index, instance): &(usize, &Instance)| {
            !registered.contains(index) && !instance.placeholder && instance.state != InstanceState::Deleting
        };
        view.cloud.instances.iter().enumerate().filter(is_stray).map(|(_, instance)| instance).collect()
    }

    /// What is known of a machine without a node. A clock that was ahead does not make it wait longer.
    fn stray(&self, view: &GroupView<'_>, instance: &Instance) -> Stray {
        let now = self.at().millis();
        let known = self.memory.strays.get(&instance.id).filter(|stray| stray.group == view.cloud.id);
        let since_ms = known.map_or(now, |stray| stray.since_ms.min(now));
        let asked_ms = known.and_then(|stray| stray.asked_ms).map(|asked| asked.min(now));
        Stray { group: view.cloud.id.clone(), since_ms, asked_ms }
    }

    fn is_overdue(&self, view: &GroupView<'_>, instance: &Instance, stray: &Stray) -> bool {
        let at = self.at();
        let patience = view.cloud.options.provision_time.unwrap_or(self.settings.max_node_provision_time);
        let late = at.since(Time::from_millis(stray.since_ms)) > patience;
        let asked = stray.asked_ms.is_some_and(|asked| at.since(Time::from_millis(asked)) <= ASK_AGAIN);
        (late || instance.state == InstanceState::Failed) && instance.protected.is_none() && !asked
    }

    fn ask_for_strays(
        &mut self,
        group: usize,
        view: &GroupView<'_>,
        overdue: Vec<&Instance>,
        strays: &mut BTreeMap<InstanceId, Stray>,
    ) {
        let Some(state) = self.groups.get(group).filter(|_| self.observation.capabilities.features.delete) else {
            return;
        };
        let mut cloud = view.cloud.clone();
        cloud.target_size = state.target;
        let expected_target = state.target;
        let mut instances: Vec<InstanceId> = Vec::new();
        for instance in overdue {
            instances.push(instance.id.clone());
            // A failed machine is no loss to the group.
            let least = cloud.min_size;
            if instance.state == InstanceState::Failed || self.settings.force_delete_unregistered_nodes {
                cloud.min_size = 0;
            }
            let refused = guard::delete(&cloud, &instances, self.at());
            cloud.min_size = least;
            if let Err(rule) = refused {
                instances.pop();
                if !matches!(rule, guard::Rule::BelowMin { .. }) {
                    self.plan.warnings.push(Warning::Guarded { group: cloud.id.clone(), rule });
                }
            }
        }
        if instances.is_empty() {
            return;
        }
        let now = self.at().millis();
        for id in &instances {
            if let Some(stray) = strays.get_mut(id) {
                stray.asked_ms = Some(now);
            }
        }
        let intent = self.memory.ledger.new_intent();
        let names: Vec<&str> = instances.iter().map(InstanceId::as_str).collect();
        let reason = format!("{} did not become a node", names.join(", "));
        let min_size = if self.settings.force_delete_unregistered_nodes { 0 } else { cloud.min_size };
        self.queue.push_back(Action::Delete { intent, group: cloud.id, instances, expected_target, min_size, reason });
    }

    /// What became of a request for machines that are no nodes. One that failed is made again after a while.
    pub(crate) fn strays_deleted(
        &mut self,
        group: &GroupId,
        instances: &[InstanceId],
        result: &Result<DeleteOutcome, CloudError>,
    ) {
        if !instances.iter().any(|id| self.memory.strays.contains_key(id)) {
            return;
        }
        let reason = match result {
            Ok(outcome) => {
                if let Some(state) = self.group_index(group).and_then(|index| self.groups.get_mut(index)) {
                    state.target = outcome.target_size;
                }
                outcome.results.iter().find_map(|(_, status)| match status {
                    DeleteStatus::Failed(error) => Some(error.to_string()),
                    DeleteStatus::Skipped(why) => Some(why.clone()),
                    DeleteStatus::Accepted | DeleteStatus::AlreadyGone => None,
                })
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            self.plan.warnings.push(Warning::StrayStays { group: group.clone(), machines: instances.to_vec(), reason });
        }
    }

    /// Takes off marks of removals that nobody pursues.
    pub(crate) fn take_off_old_marks(&mut self) {
        let uncordon = self.settings.cordon_node_before_terminating;
        self.queue.extend(self.old_marks().into_iter().map(|node| Action::Untaint { node, uncordon }));
    }

    /// Nodes with marks of removals that nobody pursues, in order: a process before this one began them, or the last try to
    /// take them off failed. Only where the cloud says that the machine is to stay.
    pub(crate) fn old_marks(&self) -> Vec<NodeIndex> {
        (0..self.observation.cluster.nodes.len()).filter(|&node| self.is_old_mark(node)).collect()
    }

    /// Whether a node is one of [`Loop::old_marks`].
    pub(crate) fn is_old_mark(&self, index: NodeIndex) -> bool {
        let cluster = self.observation.cluster;
        let Some(node) = cluster.nodes.get(index) else { return false };
        if node.taint(known::TO_BE_DELETED).is_none() || self.memory.removals.contains_key(cluster.text(node.name)) {
            return false;
        }
        let member = self.observation.membership.get(index).copied().flatten();
        let of_group = member.and_then(|member| Some((self.view(member.group)?, member.instance)));
        of_group.is_some_and(|(view, instance)| {
            let instance = view.cloud.instances.get(instance);
            view.cloud.error.is_none() && instance.is_some_and(|it| it.state == InstanceState::Running)
        })
    }
}
