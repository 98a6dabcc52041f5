//! From chosen nodes to requests, and back when a request fails.

use crate::cloud::{CloudError, GroupId, Instance, InstanceState, SizeOutcome};
use crate::control_loop::{Action, Loop};
use crate::guard;
use crate::observation::GroupView;
use crate::plan::{GroupReason, Warning};

impl Loop<'_> {
    /// Queues one increase for each group that has new nodes which the cloud was not asked for, in the order in which
    /// they were chosen.
    pub(crate) fn ask_for_increases(&mut self) {
        let mut order: Vec<usize> = Vec::new();
        for &(group, _) in &self.decisions {
            if !order.contains(&group) {
                order.push(group);
            }
        }
        let pods_on = self.pending_by_node();
        for group in order {
            let (Some(state), Some(view)) = (self.groups.get(group), self.view(group)) else { continue };
            let planned = u32::try_from(state.new.len()).unwrap_or(u32::MAX);
            let delta = planned.saturating_sub(state.asked);
            if delta > 0 {
                let pods: u32 = state
                    .new
                    .iter()
                    .skip(usize::try_from(state.asked).unwrap_or(usize::MAX))
                    .flat_map(|node| pods_on.get(node).into_iter().flatten())
                    .map(|&(_, count)| count)
                    .sum();
                self.queue_increase(group, delta, format!("{pods} pending pods"), view.nodes.len());
            }
        }
    }

    fn queue_increase(&mut self, group: usize, delta: u32, reason: String, registered: usize) {
        let (Some(state), Some(view)) = (self.groups.get_mut(group), self.observation.groups.get(group)) else {
            return;
        };
        let mut cloud = view.cloud.clone();
        cloud.target_size = state.target;
        let registered = u32::try_from(registered).unwrap_or(u32::MAX);
        if let Err(rule) = guard::increase(&cloud, registered, delta, self.observation.at) {
            self.plan.warnings.push(Warning::Guarded { group: cloud.id, rule: rule.clone() });
            state.closed = Some(GroupReason::Guarded(rule));
            return;
        }
        let intent = self.memory.ledger.new_intent();
        let expected_target = state.target;
        self.queue.push_back(Action::Increase { intent, group: cloud.id, delta, expected_target, reason });
    }

    /// Takes a wish back that the cloud cannot fulfil, lest it does so when nobody needs the machines any more. Only where
    /// the cloud can lower a target without a machine having to go; tried in each loop until it is done.
    pub(crate) fn withdraw(&mut self, view: &GroupView<'_>) {
        let cloud = &view.cloud;
        let Some(&missing) = self.memory.withdrawals.get(&cloud.id) else { return };
        // A failed machine is deleted, which lowers the target too.
        let is_alive = |instance: &&Instance| instance.state != InstanceState::Deleting;
        let alive = u32::try_from(cloud.instances.iter().filter(is_alive).count()).unwrap_or(u32::MAX);
        // What is still asked for may come.
        let expected = alive.saturating_add(self.memory.ledger.outstanding(&cloud.id)).max(cloud.min_size);
        let delta = missing.min(cloud.target_size.saturating_sub(expected));
        let can = self.observation.capabilities.features.decrease_target;
        if !can || delta == 0 {
            self.memory.withdrawals.remove(&cloud.id);
            return;
        }
        if guard::decrease(cloud, alive, delta, self.observation.at).is_err() {
            return;
        }
        let intent = self.memory.ledger.new_intent();
        self.queue.push_back(Action::DecreaseTarget {
            intent,
            group: cloud.id.clone(),
            delta,
            expected_target: cloud.target_size,
            reason: format!("{delta} nodes will not come"),
        });
    }

    /// What became of a wish that was taken back.
    pub(crate) fn decreased(&mut self, group: &GroupId, delta: u32, result: Result<SizeOutcome, CloudError>) {
        match result {
            Ok(_) => {
                self.memory.withdrawals.remove(group);
                if let Some(state) = self.group_index(group).and_then(|index| self.groups.get_mut(index)) {
                    state.target = state.target.saturating_sub(delta);
                }
            }
            // The cloud is busy, or the answer was lost: the next loop looks again.
            Err(error) if error.outcome_unknown || error.class.passes() => {}
            Err(error) => {
                self.memory.withdrawals.remove(group);
                self.plan.warnings.push(Warning::DecreaseFailed { group: group.clone(), delta, error });
            }
        }
    }

    /// Takes back new nodes that no cloud gave: their pods are pending again. Returns whether there were any.
    pub(crate) fn take_back_failed(&mut self) -> bool {
        let mut any = false;
        let pods_on = self.pending_by_node();
        for group in 0..self.groups.len() {
            let Some(state) = self.groups.get(group) else { continue };
            let kept = usize::try_from(state.asked).unwrap_or(usize::MAX);
            let lost: Vec<_> = state.new.iter().skip(kept).copied().collect();
            for node in lost {
                for &(class, count) in pods_on.get(&node).into_iter().flatten() {
                    self.snapshot.unplace(class, node, count);
                }
                self.snapshot.remove_node(node);
                self.forget(node);
                any = true;
            }
        }
        any
    }

    /// With `enforce-node-group-min-size`, grows groups that are below their least size.
    pub(crate) fn fill_to_min_sizes(&mut self) {
        if !self.settings.enforce_node_group_min_size {
            return;
        }
        for group in 0..self.groups.len() {
            let (Some(state), Some(view)) = (self.groups.get(group), self.view(group)) else { continue };
            let missing = view.cloud.min_size.saturating_sub(state.target);
            let (room, _) = self.limits.room(&state.weight);
            let delta = missing.min(room);
            if delta == 0 || state.closed.is_some() {
                continue;
            }
            let Some(shape) = state.shape else { continue };
            for _ in 0..delta {
                let node = self.snapshot.add_copy(shape);
                if let Some(state) = self.groups.get_mut(group) {
                    state.new.push(node);
                    self.limits.count(&state.weight, 1);
                }
            }
            self.queue_increase(group, delta, "group below its minimum size".to_owned(), view.nodes.len());
        }
    }
}
