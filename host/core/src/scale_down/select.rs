//! Which of the nodes that are not needed go now, and what the others wait for.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_model::Time;
use rustc_hash::FxHashMap;

use super::candidates::FirstLook;
use super::search::Unneeded;
use crate::cloud::{Instance, InstanceState};
use crate::control_loop::{Action, Loop};
use crate::memory::{LastTimes, Removal, Stage};
use crate::observation::{GroupIndex, Membership, NodeIndex};
use crate::plan::{NodeOutcome, NodeReason, NodeVerdict, PodIndex, ScaleDown};

impl Loop<'_> {
    /// Decides which nodes go, and says of every node why it stays.
    pub(crate) fn scale_down(&mut self) {
        self.take_back_failed();
        let planned = self.planned_pods();
        let mut candidates = Vec::new();
        for node in 0..self.observation.cluster.nodes.len() {
            let pods = self.pods_on.get(node);
            let pods = match planned.get(&node) {
                Some(planned) => Cow::Owned([pods, planned].concat()),
                None => Cow::Borrowed(pods),
            };
            match self.first_look(node, &pods) {
                Some(FirstLook::Stays(verdict)) => self.plan.nodes.push(verdict),
                Some(FirstLook::Candidate(candidate)) => candidates.push(candidate),
                None => {}
            }
        }
        let (unneeded, blocked) = self.find_unneeded(candidates);
        self.plan.nodes.extend(blocked);
        self.remember_unneeded(&unneeded);
        self.count_out_removals();
        self.choose(unneeded);
        self.plan.nodes.sort_by_key(|verdict| verdict.node);
    }

    /// Pending pods that this plan puts on nodes that are there.
    fn planned_pods(&self) -> FxHashMap<NodeIndex, Vec<PodIndex>> {
        let nodes = self.observation.cluster.nodes.len();
        let mut planned: FxHashMap<NodeIndex, Vec<PodIndex>> = FxHashMap::default();
        for pending in self.pending.iter().chain(&self.passive).filter(|pending| !pending.evicted) {
            let mut pods = pending.pods.iter().copied();
            for &(node, count) in &pending.placed {
                let these = pods.by_ref().take(usize::try_from(count).unwrap_or(usize::MAX));
                match node.index() < nodes {
                    true => planned.entry(node.index()).or_default().extend(these),
                    false => these.for_each(drop),
                }
            }
        }
        planned
    }

    /// Starts and stops the clocks of idle nodes.
    fn remember_unneeded(&mut self, unneeded: &[Unneeded]) {
        let cluster = self.observation.cluster;
        let now = self.at().millis();
        let mut since = std::collections::BTreeMap::new();
        for node in unneeded {
            let Some(object) = cluster.nodes.get(node.candidate.node) else { continue };
            let name = cluster.text(object.name);
            let known = self.memory.unneeded_since_ms.get(name).copied().or_else(|| self.marked_since_ms(object));
            since.insert(name.to_owned(), known.unwrap_or(now));
        }
        self.memory.unneeded_since_ms = since;
    }

    /// Which of the unneeded nodes go now; the others say what they wait for.
    fn choose(&mut self, mut unneeded: Vec<Unneeded>) {
        unneeded.sort_by_key(|node| (!node.candidate.moving.is_empty(), node.risky));
        let mut chosen: Vec<(Unneeded, Membership, Vec<NodeReason>)> = Vec::new();
        for node in unneeded {
            let membership = self.observation.membership.get(node.candidate.node).copied().flatten();
            let Some(membership) = membership else { continue };
            let mut reasons = self.cooldowns(membership.group);
            reasons.extend(self.waits(node.candidate.node));
            reasons.extend(node.candidate.completing.iter().map(|&pod| NodeReason::OnCompletion(pod)));
            reasons.extend(self.lower_bounds(node.candidate.node, membership.group));
            if reasons.is_empty() {
                self.count_out(node.candidate.node, membership.group, 1);
            }
            chosen.push((node, membership, reasons));
        }
        self.hold_parts_of_groups(&mut chosen);
        self.hold_to_budgets(&mut chosen);
        for (node, membership, reasons) in chosen {
            if reasons.is_empty() {
                self.remove(node, membership.group, membership.instance);
                continue;
            }
            let outcome =
                if node.candidate.completing.is_empty() { NodeOutcome::Unneeded } else { NodeOutcome::Blocked };
            self.plan.nodes.push(NodeVerdict { node: node.candidate.node, outcome, reasons });
        }
    }

    /// Lower bounds that a node's removal would break: of its group, and of the cluster.
    fn lower_bounds(&self, node: NodeIndex, group: GroupIndex) -> Vec<NodeReason> {
        let (Some(view), Some(state)) = (self.view(group), self.groups.get(group)) else { return vec![] };
        let mut reasons = Vec::new();
        if state.target.saturating_sub(state.leaving) <= view.cloud.min_size {
            reasons.push(NodeReason::GroupMinSize(view.cloud.min_size));
        }
        let weight = self.observation.cluster.nodes.get(node).map(|node| self.limits.weigh(node)).unwrap_or_default();
        reasons.extend(self.limits.removal_breaks(&weight).map(NodeReason::Limit));
        reasons
    }

    /// Takes a node out of what is counted for lower bounds, or back in (-1).
    fn count_out(&mut self, node: NodeIndex, group: GroupIndex, nodes: i64) {
        let weight = self.observation.cluster.nodes.get(node).map(|node| self.limits.weigh(node)).unwrap_or_default();
        self.limits.count(&weight, -nodes);
        if let Some(state) = self.groups.get_mut(group) {
            state.leaving = if nodes > 0 { state.leaving + 1 } else { state.leaving.saturating_sub(1) };
        }
    }

    /// Nodes whose removal is under way count no more for lower bounds, although the cluster has them until they are gone,
    /// and the target of their group until their deletion was asked for.
    fn count_out_removals(&mut self) {
        let cluster = self.observation.cluster;
        for (name, removal) in &self.memory.removals {
            let node = cluster.symbols.find(name).and_then(|name| self.observation.node_by_name.get(&name));
            let Some(object) = node.and_then(|&node| cluster.nodes.get(node)) else { continue };
            let weight = self.limits.weigh(object);
            self.limits.count(&weight, -1);
            let group = self.observation.groups.binary_search_by(|group| group.cloud.id.cmp(&removal.group));
            let Ok(group) = group else { continue };
            let in_target = self.is_in_target(group, removal);
            if let Some(state) = self.groups.get_mut(group).filter(|_| in_target) {
                state.leaving += 1;
            }
        }
    }

    /// Whether the target of a group still has the machine of a node on its way out: it was not asked to go, or the cloud
    /// does not show that it heard.
    fn is_in_target(&self, group: GroupIndex, removal: &Removal) -> bool {
        let Stage::Deleting(asked) = removal.stage else { return true };
        let instances = self.view(group).map_or(&[][..], |view| &view.cloud.instances);
        let stays = |it: &Instance| it.id == removal.instance && it.state == InstanceState::Running;
        asked < self.at().millis() && instances.iter().any(stays)
    }

    /// Groups that have all of their nodes or none: where some stay, all do.
    fn hold_parts_of_groups(&mut self, chosen: &mut [(Unneeded, Membership, Vec<NodeReason>)]) {
        for group in 0..self.groups.len() {
            let Some(view) = self.view(group).filter(|_| self.is_all_or_nothing(group)) else { continue };
            let mine = |(_, membership, reasons): &&(Unneeded, Membership, Vec<NodeReason>)| {
                membership.group == group && reasons.is_empty()
            };
            let going = chosen.iter().filter(mine).count();
            if going == view.nodes.len() || u32::try_from(going).is_ok_and(|going| going == view.cloud.target_size) {
                continue;
            }
            for (node, membership, reasons) in chosen.iter_mut() {
                if membership.group == group && reasons.is_empty() {
                    reasons.push(NodeReason::AllOrNothing);
                    self.count_out(node.candidate.node, group, -1);
                }
            }
        }
    }

    /// Holds what may not go at the same time as the others. Groups that have all of their nodes or none come first; one of
    /// them may go although it is larger than what is allowed at a time, as it could never go otherwise.
    fn hold_to_budgets(&mut self, chosen: &mut [(Unneeded, Membership, Vec<NodeReason>)]) {
        let going = |drain: fn(&Removal) -> bool| {
            let count = self.memory.removals.values().filter(|&removal| drain(removal)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let mut budget = self.settings.max_scale_down_parallelism.saturating_sub(going(|_| true));
        let mut drains = self.settings.max_drain_parallelism.saturating_sub(going(|removal| removal.drain));
        let mut overflowed = false;
        let mut held: Vec<(NodeIndex, GroupIndex)> = Vec::new();
        let mut order: Vec<(bool, GroupIndex, Vec<usize>)> = Vec::new();
        for (at, (_, membership, reasons)) in chosen.iter().enumerate() {
            if !reasons.is_empty() {
                continue;
            }
            let whole = self.is_all_or_nothing(membership.group);
            match order.iter_mut().find(|(_, group, _)| whole && *group == membership.group) {
                Some((_, _, members)) => members.push(at),
                None => order.push((whole, membership.group, vec![at])),
            }
        }
        order.sort_by_key(|&(whole, ..)| !whole);
        for (whole, _, members) in order {
            let drain = |&&at: &&usize| chosen.get(at).is_some_and(|(node, ..)| !node.candidate.moving.is_empty());
            let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
            let draining = u32::try_from(members.iter().filter(drain).count()).unwrap_or(u32::MAX);
            let fits = count <= budget && draining <= drains;
            let may_overflow = whole && !overflowed && budget > 0 && (draining == 0 || drains > 0);
            if fits || may_overflow {
                overflowed |= !fits;
                budget = budget.saturating_sub(count);
                drains = drains.saturating_sub(draining);
                continue;
            }
            let reason = if count > budget {
                NodeReason::Budget("max-scale-down-parallelism", self.settings.max_scale_down_parallelism)
            } else {
                NodeReason::Budget("max-drain-parallelism", self.settings.max_drain_parallelism)
            };
            for at in members {
                if let Some((node, membership, reasons)) = chosen.get_mut(at) {
                    reasons.push(reason.clone());
                    held.push((node.candidate.node, membership.group));
                }
            }
        }
        for (node, group) in held {
            self.count_out(node, group, -1);
        }
    }

    /// Begins the removal of a node.
    fn remove(&mut self, node: Unneeded, group: GroupIndex, instance: usize) {
        let Some(view) = self.view(group) else { return };
        let Some(instance) = view.cloud.instances.get(instance) else { return };
        let index = node.candidate.node;
        let drain = !node.candidate.moving.is_empty();
        let cluster = self.observation.cluster;
        if let Some(object) = cluster.nodes.get(index) {
            let removal = Removal {
                group: view.cloud.id.clone(),
                instance: instance.id.clone(),
                drain,
                cordoned_before: object.unschedulable,
                stage: Stage::Tainting,
            };
            self.memory.removals.insert(cluster.text(object.name).to_owned(), removal);
        }
        self.queue.push_back(Action::Taint { node: index, cordon: self.settings.cordon_node_before_terminating });
        let now = Some(self.at().millis());
        self.memory.last_scale_down_ms = now;
        self.memory.last_of_group.entry(view.cloud.id.clone()).or_default().scale_down_ms = now;
        self.plan.nodes.push(NodeVerdict { node: index, outcome: NodeOutcome::Removable, reasons: vec![] });
        let group = view.cloud.id.clone();
        self.plan.scale_down.push(ScaleDown { node: index, group, drain, moves: node.moves });
    }

    /// Why no node of a group goes now, and mostly none at all.
    fn cooldowns(&self, group: GroupIndex) -> Vec<NodeReason> {
        if !self.settings.scale_down_enabled {
            return vec![NodeReason::Cooldown("scale-down-enabled is off", None)];
        }
        if self.settings.waits_elapsed {
            return vec![];
        }
        let memory = &*self.memory;
        let all = LastTimes {
            scale_up_ms: memory.last_scale_up_ms,
            scale_down_ms: memory.last_scale_down_ms,
            scale_down_failure_ms: memory.last_scale_down_failure_ms,
        };
        let own = self.view(group).and_then(|view| memory.last_of_group.get(&view.cloud.id)).copied();
        let last = if self.settings.scale_down_delay_type_local { own.unwrap_or_default() } else { all };
        let mut reasons = Vec::new();
        let mut wait = |flag, last: Option<i64>, span: Duration| {
            let until = last.map(|last| Time::from_millis(last) + span);
            if let Some(until) = until.filter(|until| *until > self.at()) {
                reasons.push(NodeReason::Cooldown(flag, Some(until)));
            }
        };
        wait("scale-down-delay-after-add", last.scale_up_ms, self.settings.scale_down_delay_after_add);
        wait("scale-down-delay-after-delete", last.scale_down_ms, self.settings.scale_down_delay_after_delete);
        wait(
            "scale-down-delay-after-failure",
            last.scale_down_failure_ms,
            self.settings.scale_down_delay_after_failure,
        );
        reasons
    }

    /// What a node still has to wait for.
    fn waits(&self, node: NodeIndex) -> Option<NodeReason> {
        if self.settings.waits_elapsed {
            return None;
        }
        let cluster = self.observation.cluster;
        let name = cluster.nodes.get(node).map(|node| cluster.text(node.name))?;
        let since = Time::from_millis(*self.memory.unneeded_since_ms.get(name)?);
        let idle = self.at().since(since);
        let options = self.observation.group_of(node).map(|view| &view.cloud.options);
        let ready = self.observation.readiness.get(node).is_none_or(|state| state.ready);
        let own = options.and_then(|options| if ready { options.unneeded_time } else { options.unready_time });
        let default =
            if ready { self.settings.scale_down_unneeded_time } else { self.settings.scale_down_unready_time };
        let must = own.unwrap_or(default);
        // As in the peer, a node that has waited exactly as long still waits.
        let waits = !must.is_zero() && idle <= must;
        let reason = if ready { NodeReason::NotUnneededLongEnough } else { NodeReason::NotUnreadyLongEnough };
        waits.then_some(reason(idle, must))
    }
}
