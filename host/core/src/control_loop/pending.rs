//! The beginning of a loop: settle, put pods on nodes, find out who needs one, place what already fits.

use std::time::Duration;

use plimsoll_model::pod::Scheduling;
use plimsoll_model::symbol::known;
use plimsoll_model::{Pod, SpecId, Template};
use plimsoll_scheduling::{ClassId, NodeId};
use rustc_hash::FxHashMap;

use super::pods_on::{NodesByName, PodsOn};
use super::room::Order;
use super::{GroupState, Loop, Pending};
use crate::drain::Fate;
use crate::health;
use crate::ledger::FailureCause;
use crate::observation::NodeIndex;
use crate::plan::{GroupReason, IgnoreReason, PodIndex, PodOutcome, Warning};
use crate::priorities::Priorities;
use crate::settings::Settings;

impl Loop<'_> {
    pub(super) fn begin(&mut self) {
        self.memory.forget(self.observation.at, self.settings);
        self.plan.warnings.extend(self.observation.warnings.iter().cloned());
        self.settle();
        self.read_priorities();
        self.look_past_old_marks();
        self.put_pods_on_nodes();
        self.open_groups();
        self.gather_pending();
        self.crowded = self.place_what_fits(Order::ALL) != Order::Largest;
    }

    fn read_priorities(&mut self) {
        if self.settings.expander.iter().any(|name| name == "priority") {
            match Priorities::find(self.observation.cluster, &self.settings.namespace) {
                Ok(priorities) => {
                    self.priorities = priorities;
                    self.tell_overlaps();
                }
                Err(error) => self.plan.warnings.push(Warning::Priorities(error)),
            }
        }
    }

    /// A group that patterns of several priorities match has the highest of these, which the operator may not have meant.
    fn tell_overlaps(&mut self) {
        let Some(priorities) = &self.priorities else { return };
        for view in &self.observation.groups {
            let matching = priorities.all_of(view.cloud.id.as_str());
            if matching.len() > 1 {
                self.plan.warnings.push(Warning::OverlappingPriorities { group: view.cloud.id.clone(), matching });
            }
        }
    }

    /// Marks of removals that nobody pursues are about to be taken off. Their nodes have the room that they have.
    fn look_past_old_marks(&mut self) {
        for node in self.old_marks() {
            self.snapshot.unmark(NodeId::new(node), self.settings.cordon_node_before_terminating);
        }
    }

    /// What did our writes do? Groups that could not be read are left as they are.
    fn settle(&mut self) {
        let at = self.at();
        for view in &self.observation.groups {
            if view.cloud.error.is_some() {
                continue;
            }
            let reading = self.observation.reading(view);
            for failure in self.memory.ledger.settle(reading, at) {
                let own_words = match &failure.cause {
                    FailureCause::Cloud(error) => {
                        self.memory.back_off_for(&failure.group, error, at, self.settings);
                        None
                    }
                    FailureCause::TimedOut(after) => {
                        Some(format!("nodes did not register within {}s", after.as_secs()))
                    }
                    FailureCause::NeverAccepted => Some("the request was never accepted".to_owned()),
                };
                // Whoever had asked for them: machines of this group cannot be made now.
                if let Some(reason) = own_words {
                    self.memory.back_off(&failure.group, at, reason, self.settings);
                }
                if failure.missing == 0 {
                    continue;
                }
                *self.memory.withdrawals.entry(failure.group.clone()).or_default() += failure.missing;
                self.plan.warnings.push(Warning::Failure(failure));
            }
            self.withdraw(view);
        }
    }

    /// Looks at every pod once: puts it on its node, or remembers that it has none.
    fn put_pods_on_nodes(&mut self) {
        let cluster = self.observation.cluster;
        let nodes = NodesByName::new(cluster);
        let mut placed: Vec<(NodeIndex, PodIndex, Option<ClassId>)> = Vec::with_capacity(cluster.pods.len());
        for (index, pod) in cluster.pods.iter().enumerate() {
            if pod.node.is_none() {
                self.unplaced.push(index);
            }
            if pod.is_terminal() || self.is_expendable(pod) {
                continue;
            }
            let Some(node) = pod.counts_on().and_then(|name| nodes.get(name)) else { continue };
            if pod.node.is_none() && pod.deletion.is_some() {
                continue;
            }
            let class = match pod.deletion {
                Some(_) => self.snapshot.terminating_class(pod.held),
                None => self.snapshot.class(pod.held),
            };
            placed.push((node, index, Some(class)));
        }
        let (pods_on, mut classes) = PodsOn::new(cluster.nodes.len(), &placed);
        for node in 0..cluster.nodes.len() {
            let on_node = classes.get_mut(pods_on.range(node)).unwrap_or_default();
            on_node.sort_unstable();
            for run in on_node.chunk_by(|a, b| a == b) {
                if let Some(&Some(class)) = run.first() {
                    self.snapshot.place(class, NodeId::new(node), u32::try_from(run.len()).unwrap_or(u32::MAX));
                }
            }
        }
        self.pods_on = pods_on;
    }

    /// Groups with their templates, limits and the nodes that are on their way.
    fn open_groups(&mut self) {
        let at = self.at();
        let cluster = self.observation.cluster;
        for node in &cluster.nodes {
            let weight = self.limits.weigh(node);
            self.limits.count(&weight, 1);
        }
        for view in &self.observation.groups {
            let mut state = GroupState { target: view.cloud.target_size, ..GroupState::default() };
            match &view.template {
                Ok(template) => {
                    state.weight = self.limits.weigh(&template.node);
                    // A fresh node will have the CSI drivers that the group's nodes have.
                    let mut nodes = view.nodes.iter().filter_map(|&node| cluster.nodes.get(node));
                    let drivers = nodes.find_map(|node| cluster.storage.csi_nodes.get(&node.name));
                    let shape = self.snapshot.shape_with_drivers(template, drivers);
                    state.shape = Some(shape);
                    // A node that is not ready yet is represented by a copy of what it will be.
                    for &node in &view.starting {
                        self.snapshot.remove_node(NodeId::new(node));
                        let weight = cluster.nodes.get(node).map(|node| self.limits.weigh(node)).unwrap_or_default();
                        self.limits.count(&weight, -1);
                    }
                    let starting = u32::try_from(view.starting.len()).unwrap_or(u32::MAX);
                    let outstanding = self.memory.ledger.outstanding(&view.cloud.id);
                    for _ in 0..starting.saturating_add(outstanding) {
                        state.upcoming.push(self.snapshot.add_copy(shape));
                        self.limits.count(&state.weight, 1);
                    }
                }
                Err(problem) => state.closed = Some(GroupReason::NoTemplate(problem.clone())),
            }
            if let Some((until, reason)) = self.memory.held(view, cluster, at) {
                state.closed = Some(GroupReason::BackedOff { until, reason });
            }
            let id = &view.cloud.id;
            let strays = u32::try_from(self.without_node(view).len()).unwrap_or(u32::MAX);
            let withdrawn = self.memory.withdrawals.get(id).copied().unwrap_or(0);
            let not_coming = self.memory.ledger.outstanding(id).saturating_add(withdrawn).max(strays);
            if let Err((wanted, ready)) = health::of_group(view, not_coming, self.observation, self.settings) {
                state.closed = Some(GroupReason::Missing { wanted, ready });
            }
            if state.target >= view.cloud.max_size {
                state.closed = Some(GroupReason::AtMaxSize(view.cloud.max_size));
            }
            match view.cloud.status {
                crate::cloud::GroupStatus::Active => {}
                crate::cloud::GroupStatus::Suspended => state.closed = Some(GroupReason::Inactive("suspended")),
                crate::cloud::GroupStatus::Deleting => state.closed = Some(GroupReason::Inactive("being deleted")),
            }
            if let Some(error) = &view.cloud.error {
                state.closed = Some(GroupReason::Unreadable(error.clone()));
            }
            self.groups.push(state);
        }
        let removed: Vec<NodeIndex> = self.nodes_being_removed();
        for node in removed {
            self.snapshot.close(NodeId::new(node));
        }
    }

    /// Nodes on their way out, by us or by somebody who left the taint.
    fn nodes_being_removed(&self) -> Vec<NodeIndex> {
        let cluster = self.observation.cluster;
        let going = |&(index, node): &(usize, &plimsoll_model::Node)| {
            let marked = node.taint(known::TO_BE_DELETED).is_some() && !self.is_old_mark(index);
            marked || self.memory.removals.contains_key(cluster.text(node.name))
        };
        cluster.nodes.iter().enumerate().filter(going).map(|(index, _)| index).collect()
    }

    pub(crate) fn is_expendable(&self, pod: &Pod) -> bool {
        let priority = self.observation.cluster.specs[pod.spec].priority;
        priority.is_some_and(|priority| priority < self.settings.expendable_pods_priority_cutoff)
    }

    fn gather_pending(&mut self) {
        let observation = self.observation;
        let cluster = observation.cluster;
        let mut wanting: Vec<(PodIndex, bool)> = Vec::new();
        let mut passive: Vec<(PodIndex, bool)> = Vec::new();
        for index in std::mem::take(&mut self.unplaced) {
            let Some(pod) = cluster.pods.get(index) else { continue };
            if let Some(reason) = self.ignore(pod) {
                self.outcomes.insert(index, PodOutcome::Ignored(reason));
                // They are no reason to grow, but the scheduler binds them where there is room.
                if matches!(reason, IgnoreReason::Young(_) | IgnoreReason::DaemonSet) {
                    passive.push((index, false));
                }
                continue;
            }
            let nominated = pod.nominated_node.and_then(|name| observation.node_by_name.get(&name));
            if let Some(&node) = nominated {
                let place = self.place(NodeId::new(node));
                self.outcomes.insert(index, PodOutcome::FitsExisting(place));
                continue;
            }
            wanting.push((index, false));
        }
        // Pods of nodes that are being drained will need a place too.
        let rules = self.drain_rules();
        for (name, removal) in &self.memory.removals {
            let node = cluster.symbols.find(name).and_then(|name| observation.node_by_name.get(&name));
            let Some(&node) = node.filter(|_| removal.drain) else { continue };
            for &index in self.pods_on.get(node) {
                let moves = |pod: &Pod| pod.deletion.is_none() && rules.fate(pod, None) == Fate::Moves;
                if cluster.pods.get(index).is_some_and(moves) {
                    wanting.push((index, true));
                }
            }
        }
        self.pending = self.classes_of(wanting);
        self.passive = self.classes_of(passive);
    }

    /// Groups pods by class, in an order that does not depend on the order of the input: by priority, then by how large
    /// a share of the cluster's largest node they ask for, then by name.
    fn classes_of(&mut self, pods: Vec<(PodIndex, bool)>) -> Vec<Pending> {
        let cluster = self.observation.cluster;
        let mut classes: FxHashMap<(ClassId, bool), Pending> = FxHashMap::default();
        for (index, evicted) in pods {
            let Some(pod) = cluster.pods.get(index) else { continue };
            let class = self.snapshot.class(pod.spec);
            let scarce = self.asks_for_scarce(pod.spec);
            let new = || Pending { class, spec: pod.spec, pods: vec![], placed: vec![], evicted, scarce, first: false };
            classes.entry((class, evicted)).or_insert_with(new).pods.push(index);
        }
        let name = |&index: &PodIndex| {
            let pod = cluster.pods.get(index);
            pod.map(|pod| (cluster.text(cluster.specs[pod.spec].namespace), &*pod.name))
        };
        let mut classes: Vec<Pending> = classes.into_values().collect();
        for class in &mut classes {
            class.pods.sort_by(|a, b| name(a).cmp(&name(b)));
        }
        let largest = |of: fn(&plimsoll_model::Resources) -> i64| {
            let nodes = cluster.nodes.iter().map(|node| of(&node.allocatable));
            let templates = self.observation.groups.iter().filter_map(|group| group.template.as_ref().ok());
            nodes.chain(templates.map(|template| of(&template.node.allocatable))).max().unwrap_or(1).max(1)
        };
        let (cpu, memory) = (largest(|r| r.cpu_milli), largest(|r| r.memory_bytes));
        let share = |pending: &Pending| {
            let requests = &cluster.specs[pending.spec].requests;
            let scalars = requests.scalars.len();
            let share = requests.cpu_milli as f64 / cpu as f64 + requests.memory_bytes as f64 / memory as f64;
            (scalars, share)
        };
        let priority = |pending: &Pending| cluster.specs[pending.spec].priority.unwrap_or(0);
        classes.sort_by(|a, b| {
            let (scalars_a, share_a) = share(a);
            let (scalars_b, share_b) = share(b);
            (priority(b).cmp(&priority(a)))
                .then(scalars_b.cmp(&scalars_a))
                .then(share_b.total_cmp(&share_a))
                .then_with(|| a.pods.first().and_then(name).cmp(&b.pods.first().and_then(name)))
        });
        classes
    }

    /// Whether pods ask for a resource that not every group has.
    fn asks_for_scarce(&self, spec: SpecId) -> bool {
        let scalars = &self.observation.cluster.specs[spec].requests.scalars;
        let mut templates = self.observation.groups.iter().filter_map(|group| group.template.as_ref().ok());
        let lacks = |template: &Template| {
            scalars.iter().any(|&(name, asked)| asked > 0 && template.node.allocatable.scalar(name) == 0)
        };
        !scalars.is_empty() && templates.any(lacks)
    }

    fn ignore(&self, pod: &Pod) -> Option<IgnoreReason> {
        if pod.is_terminal() {
            return Some(IgnoreReason::Ended);
        }
        if pod.deletion.is_some() {
            return Some(IgnoreReason::Deleting);
        }
        if !self.settings.allowed_schedulers.is_empty() && !self.is_of(pod, &self.settings.allowed_schedulers) {
            return Some(IgnoreReason::OtherScheduler);
        }
        match pod.scheduling {
            Scheduling::Gated => return Some(IgnoreReason::Gated),
            // A file has no history: whoever has not been looked at yet counts as looked at.
            Scheduling::Unseen
                if !self.settings.waits_elapsed && pod.nominated_node.is_none() && !self.is_bypassed(pod) =>
            {
                return Some(IgnoreReason::NotUnschedulable);
            }
            Scheduling::Refused => return Some(IgnoreReason::NotUnschedulable),
            Scheduling::Unseen | Scheduling::Unschedulable | Scheduling::Done => {}
        }
        if self.is_expendable(pod) {
            return Some(IgnoreReason::Expendable);
        }
        if pod.is_daemon_set_pod() {
            return Some(IgnoreReason::DaemonSet);
        }
        let delay = young_delay(pod, self.settings);
        let young = !self.settings.waits_elapsed
            && !delay.is_zero()
            && pod.created_at.is_some_and(|created| self.at().since(created) <= delay);
        young.then_some(IgnoreReason::Young(delay))
    }

    fn is_bypassed(&self, pod: &Pod) -> bool {
        self.is_of(pod, &self.settings.bypassed_schedulers)
    }

    /// Whether a pod is of one of these schedulers.
    fn is_of(&self, pod: &Pod, schedulers: &[String]) -> bool {
        let scheduler = self.observation.cluster.text(pod.scheduler);
        schedulers.iter().any(|name| name == scheduler)
    }
}

/// How old a pod must be before it counts: the flag, or a longer delay of its own.
fn young_delay(pod: &Pod, settings: &Settings) -> Duration {
    let own = pod.scale_up_delay_ms.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
    own.filter(|own| *own >= settings.new_pod_scale_up_delay).unwrap_or(settings.new_pod_scale_up_delay)
}
