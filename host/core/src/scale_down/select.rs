//! Where the pods of idle nodes would go, and which nodes go now.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_scheduling::{Candidates, ClassId, NodeId};
use rustc_hash::FxHashMap;

use super::candidates::{Candidate, FirstLook};
use crate::control_loop::{Action, Loop};
use crate::memory::{Removal, Stage};
use crate::observation::NodeIndex;
use crate::plan::{NodeOutcome, NodeReason, NodeVerdict, Place, PodIndex, ScaleDown};

/// A node that could go: its pods have other places.
struct Unneeded {
    candidate: Candidate,
    moves: Vec<(PodIndex, Place)>,
    /// Its pods cannot all be evicted at once under their budgets.
    risky: bool,
}

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
        self.choose(unneeded);
        self.plan.nodes.sort_by_key(|verdict| verdict.node);
    }

    /// Pending pods that this plan puts on nodes that are there.
    fn planned_pods(&self) -> FxHashMap<NodeIndex, Vec<PodIndex>> {
        let nodes = self.observation.cluster.nodes.len();
        let mut planned: FxHashMap<NodeIndex, Vec<PodIndex>> = FxHashMap::default();
        for pending in self.pending.iter().filter(|pending| !pending.evicted) {
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

    /// Simulates the removal of one candidate after the other, each on top of those before it: empty ones first, then
    /// those that were unneeded before, then in the order of the nodes.
    fn find_unneeded(&mut self, mut candidates: Vec<Candidate>) -> (Vec<Unneeded>, Vec<NodeVerdict>) {
        let cluster = self.observation.cluster;
        let name = |node: NodeIndex| cluster.nodes.get(node).map_or("", |node| cluster.text(node.name));
        candidates.sort_by_key(|candidate| {
            let before = self.memory.unneeded_since_ms.contains_key(name(candidate.node));
            (!candidate.moving.is_empty(), !candidate.completing.is_empty(), !before, candidate.node)
        });
        // Places, best first: nodes that stay anyway, then the candidates that are looked at last.
        let mut staying = vec![true; cluster.nodes.len()];
        for candidate in &candidates {
            if let Some(stays) = staying.get_mut(candidate.node) {
                *stays = false;
            }
        }
        let starting: Vec<NodeIndex> =
            self.observation.groups.iter().flat_map(|group| group.starting.clone()).collect();
        let stays =
            (0..cluster.nodes.len()).filter(|node| staying.get(*node) == Some(&true) && !starting.contains(node));
        let mut places: Vec<NodeId> =
            stays.chain(candidates.iter().rev().map(|candidate| candidate.node)).map(NodeId::new).collect();

        let mut unneeded = Vec::new();
        let mut blocked = Vec::new();
        for candidate in candidates {
            let here = NodeId::new(candidate.node);
            let mut moving: Vec<(ClassId, ClassId, PodIndex)> = Vec::new();
            for &index in &candidate.moving {
                if let Some(pod) = cluster.pods.get(index) {
                    let held = match pod.deletion {
                        Some(_) => self.snapshot.terminating_class(pod.held),
                        None => self.snapshot.class(pod.held),
                    };
                    moving.push((self.snapshot.class(pod.spec), held, index));
                }
            }
            // The largest first, as when pods are placed.
            let size = |&(_, _, index): &(ClassId, ClassId, PodIndex)| {
                let requests = cluster.pods.get(index).map(|pod| &cluster.specs[pod.spec].requests);
                requests.map(|requests| (requests.cpu_milli, requests.memory_bytes)).unwrap_or_default()
            };
            moving.sort_by(|a, b| size(b).cmp(&size(a)).then(a.0.cmp(&b.0)).then(a.2.cmp(&b.2)));
            self.snapshot.fork();
            for &(_, held, _) in &moving {
                self.snapshot.unplace(held, here, 1);
            }
            self.snapshot.close(here);
            let mut moves = Vec::new();
            let mut stuck = Vec::new();
            for run in moving.chunk_by(|a, b| a.0 == b.0) {
                let Some(&(class, ..)) = run.first() else { continue };
                let count = u32::try_from(run.len()).unwrap_or(u32::MAX);
                let mut pods = run.iter().map(|&(_, _, index)| index);
                for placed in self.snapshot.pack(class, count, Candidates::Of(&places)) {
                    let place = Place::Node(placed.node.index());
                    let these = pods.by_ref().take(usize::try_from(placed.count).unwrap_or(usize::MAX));
                    moves.extend(these.map(|index| (index, place.clone())));
                }
                stuck.extend(pods);
            }
            if stuck.is_empty() {
                self.snapshot.commit();
                places.retain(|&place| place != here);
                let pods = candidate.moving.iter().filter_map(|&index| cluster.pods.get(index));
                let risky = !self.budgets.allow_together(pods.clone());
                pods.for_each(|pod| self.budgets.take(pod));
                moves.sort();
                unneeded.push(Unneeded { candidate, moves, risky });
            } else {
                self.snapshot.revert();
                let reasons = stuck.into_iter().map(NodeReason::NoPlaceToMovePod).collect();
                blocked.push(NodeVerdict { node: candidate.node, outcome: NodeOutcome::Blocked, reasons });
            }
        }
        (unneeded, blocked)
    }

    /// Starts and stops the clocks of idle nodes.
    fn remember_unneeded(&mut self, unneeded: &[Unneeded]) {
        let cluster = self.observation.cluster;
        let now = self.at().millis();
        let mut since = std::collections::BTreeMap::new();
        for node in unneeded {
            let Some(object) = cluster.nodes.get(node.candidate.node) else { continue };
            let name = cluster.text(object.name);
            since.insert(name.to_owned(), self.memory.unneeded_since_ms.get(name).copied().unwrap_or(now));
        }
        self.memory.unneeded_since_ms = since;
    }

    /// Which of the unneeded nodes go now; the others say what they wait for.
    fn choose(&mut self, mut unneeded: Vec<Unneeded>) {
        unneeded.sort_by_key(|node| (!node.candidate.moving.is_empty(), node.risky));
        let cooldowns = self.cooldowns();
        let going = |drain: fn(&Removal) -> bool| {
            let count = self.memory.removals.values().filter(|&removal| drain(removal)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let mut budget = self.settings.max_scale_down_parallelism.saturating_sub(going(|_| true));
        let mut drains = self.settings.max_drain_parallelism.saturating_sub(going(|removal| removal.drain));
        for node in unneeded {
            let drain = !node.candidate.moving.is_empty();
            let mut reasons: Vec<NodeReason> = cooldowns.clone();
            reasons.extend(self.waits(node.candidate.node));
            reasons.extend(node.candidate.completing.iter().map(|&pod| NodeReason::OnCompletion(pod)));
            let membership = self.observation.membership.get(node.candidate.node).copied().flatten();
            let Some(membership) = membership else { continue };
            let Some(view) = self.view(membership.group) else { continue };
            let Some(state) = self.groups.get(membership.group) else { continue };
            if state.target.saturating_sub(state.leaving) <= view.cloud.min_size {
                reasons.push(NodeReason::GroupMinSize(view.cloud.min_size));
            }
            let weight = self.observation.cluster.nodes.get(node.candidate.node).map(|node| self.limits.weigh(node));
            let weight = weight.unwrap_or_default();
            reasons.extend(self.limits.removal_breaks(&weight).map(NodeReason::Limit));
            if reasons.is_empty() && budget == 0 {
                let most = self.settings.max_scale_down_parallelism;
                reasons.push(NodeReason::Budget("max-scale-down-parallelism", most));
            }
            if reasons.is_empty() && drain && drains == 0 {
                reasons.push(NodeReason::Budget("max-drain-parallelism", self.settings.max_drain_parallelism));
            }
            if reasons.is_empty() {
                budget -= 1;
                drains -= u32::from(drain);
                self.limits.count(&weight, -1);
                self.remove(node, membership.group, membership.instance);
            } else {
                let outcome =
                    if node.candidate.completing.is_empty() { NodeOutcome::Unneeded } else { NodeOutcome::Blocked };
                self.plan.nodes.push(NodeVerdict { node: node.candidate.node, outcome, reasons });
            }
        }
    }

    /// Begins the removal of a node.
    fn remove(&mut self, node: Unneeded, group: usize, instance: usize) {
        let Some(view) = self.view(group) else { return };
        let Some(instance) = view.cloud.instances.get(instance) else { return };
        let index = node.candidate.node;
        let drain = !node.candidate.moving.is_empty();
        if let Some(state) = self.groups.get_mut(group) {
            state.leaving += 1;
        }
        let cluster = self.observation.cluster;
        if let Some(object) = cluster.nodes.get(index) {
            let removal =
                Removal { group: view.cloud.id.clone(), instance: instance.id.clone(), drain, stage: Stage::Tainting };
            self.memory.removals.insert(cluster.text(object.name).to_owned(), removal);
        }
        self.queue.push_back(Action::Taint { node: index, cordon: self.settings.cordon_node_before_terminating });
        self.memory.last_scale_down_ms = Some(self.at().millis());
        self.plan.nodes.push(NodeVerdict { node: index, outcome: NodeOutcome::Removable, reasons: vec![] });
        let group = view.cloud.id.clone();
        self.plan.scale_down.push(ScaleDown { node: index, group, drain, moves: node.moves });
    }

    /// Why no node at all goes now.
    fn cooldowns(&self) -> Vec<NodeReason> {
        if !self.settings.scale_down_enabled {
            return vec![NodeReason::Cooldown("scale-down-enabled is off", None)];
        }
        if self.settings.waits_elapsed {
            return vec![];
        }
        let mut reasons = Vec::new();
        let mut wait = |flag, last: Option<i64>, span: Duration| {
            let until = last.map(|last| Time::from_millis(last) + span);
            if let Some(until) = until.filter(|until| *until > self.at()) {
                reasons.push(NodeReason::Cooldown(flag, Some(until)));
            }
        };
        wait("scale-down-delay-after-add", self.memory.last_scale_up_ms, self.settings.scale_down_delay_after_add);
        wait(
            "scale-down-delay-after-delete",
            self.memory.last_scale_down_ms,
            self.settings.scale_down_delay_after_delete,
        );
        wait(
            "scale-down-delay-after-failure",
            self.memory.last_scale_down_failure_ms,
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
