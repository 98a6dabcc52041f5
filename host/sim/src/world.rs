//! The world: what is there, and how it moves on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use plimsoll_model::convert::{ConvertError, TaintParts, TemplateParts};
use plimsoll_model::node::{Condition, ConditionStatus};
use plimsoll_model::pod::{Deletion, Owner, OwnerKind, Phase, RestartPolicy, Scheduling};
use plimsoll_model::symbol::known;
use plimsoll_model::workload::{Controller, PodDisruptionBudget};
use plimsoll_model::{Cluster, Node, Pod, SpecId, Symbol, Taint, TaintEffect, Time};

use plimsoll_provider_simulated::wire;

use crate::cloud::{Machine, MachineState, Pool, Stock};
use crate::events::{Happened, What};
use crate::workload::Workload;

/// Something that is due.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// A machine of a pool registers, or fails if there is no stock.
    Boots(usize, String),
    /// A machine that runs already becomes a node.
    Joins(usize, String),
    /// A node turns ready: its group, its name.
    Ready(String, String),
    /// A machine that is being deleted is gone.
    Gone(usize, String),
    /// A pod that is being deleted is gone, by UID.
    Ends(String),
}

/// A cluster and a cloud at one moment.
#[derive(Debug)]
pub struct World {
    /// What the API server has.
    pub cluster: Cluster,
    /// The cloud's pools.
    pub pools: Vec<Pool>,
    /// Workloads with their wished replicas.
    pub workloads: Vec<Workload>,
    now: Time,
    due: BinaryHeap<Reverse<(Time, u64, Due)>>,
    counter: u64,
    happened: Vec<Happened>,
    names: Names,
    /// By budget: how many of its pods must stay.
    min_available: Vec<i32>,
}

/// Symbols that the world writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    ready: Symbol,
    not_ready_taint: Symbol,
}

/// Name of the second node of a machine that registered twice.
pub(crate) fn twin_of(machine: &str) -> String {
    format!("{machine}-again")
}

/// How long the cloud takes to delete a machine.
const DELETION: Duration = Duration::from_secs(20);

impl World {
    /// An empty world at a moment.
    pub fn new(now: Time) -> Self {
        let mut cluster = Cluster::default();
        let names = Names {
            ready: cluster.symbols.intern("Ready"),
            not_ready_taint: cluster.symbols.intern("node.kubernetes.io/not-ready"),
        };
        Self {
            cluster,
            pools: vec![],
            workloads: vec![],
            now,
            due: BinaryHeap::new(),
            counter: 0,
            happened: vec![],
            names,
            min_available: vec![],
        }
    }

    /// The virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// What happened since the last call.
    pub fn take_happened(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.happened)
    }

    /// Tells those who watch.
    pub fn tell(&mut self, what: What) {
        self.happened.push(Happened { at: self.now, what });
    }

    /// Moves the clock on. Everything that is due on the way happens in its order; controllers and the scheduler act
    /// after each.
    pub fn advance_to(&mut self, until: Time) {
        while let Some(at) = self.next_due().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            while self.next_due() == Some(at)
                && let Some(Reverse((.., due))) = self.due.pop()
            {
                self.happen(due);
            }
            self.settle();
        }
        self.now = self.now.max(until);
        self.settle();
    }

    /// Moves the clock on without letting anything happen: for those who move the cluster themselves.
    pub fn tick(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Lets controllers and the scheduler act on what is there now.
    pub fn settle(&mut self) {
        self.fulfil();
        self.reconcile();
        self.allow_disruptions();
        self.schedule();
    }

    /// Clouds get what they wished for, if there are machines again.
    fn fulfil(&mut self) {
        for index in 0..self.pools.len() {
            let has_some = |pool: &&mut Pool| pool.stock == Stock::Plenty && !pool.wishes.is_empty();
            if self.pools.get_mut(index).filter(has_some).is_some() {
                self.fill(index);
            }
        }
    }

    fn later(&mut self, after: Duration, due: Due) {
        self.counter += 1;
        self.due.push(Reverse((self.now + after, self.counter, due)));
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Boots(pool, id) => self.register(pool, &id),
            Due::Joins(pool, id) => self.join_late(pool, &id),
            Due::Ready(group, node) => self.turn_ready(&group, &node),
            Due::Gone(pool, id) => self.remove_machine(pool, &id),
            Due::Ends(uid) => self.cluster.pods.retain(|pod| *pod.uid != *uid),
        }
    }

    /// Adds machines to a pool until as many as its target are on their way or up.
    pub(crate) fn fill(&mut self, pool: usize) {
        let now = self.now;
        let mut booting = Vec::new();
        if let Some(pool) = self.pools.get_mut(pool).filter(|pool| pool.stock == Stock::Unfulfilled) {
            pool.wish_for_the_rest(now);
        }
        if let Some(pool) = self.pools.get_mut(pool).filter(|pool| pool.stock != Stock::Unfulfilled) {
            while pool.alive() < pool.target {
                pool.made += 1;
                let id = format!("{}-{:03}", pool.id, pool.made);
                let machine = Machine { id: id.clone(), state: MachineState::Booting, asked_at: now, since: now };
                pool.machines.push(machine);
                booting.push((pool.boot, id));
            }
            pool.wishes.clear();
        }
        for (boot, id) in booting {
            self.later(boot, Due::Boots(pool, id));
        }
    }

    /// Starts a pool with machines that are nodes already.
    ///
    /// # Errors
    ///
    /// If the pool's template cannot be read.
    pub fn start_with(&mut self, pool: usize, count: u32) -> Result<(), ConvertError> {
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.target = count;
        }
        self.check_template(pool)?;
        self.fill(pool);
        let ids: Vec<String> =
            self.pools.get(pool).map(|p| p.machines.iter().map(|m| m.id.clone()).collect()).unwrap_or_default();
        self.due.retain(|Reverse((.., due))| !matches!(due, Due::Boots(of, _) if *of == pool));
        let group = self.pools.get(pool).map(|pool| pool.id.clone()).unwrap_or_default();
        for id in ids {
            self.register(pool, &id);
            self.turn_ready(&group, &id);
        }
        self.due.retain(|Reverse((.., due))| !matches!(due, Due::Ready(of, _) if *of == group));
        Ok(())
    }

    fn check_template(&mut self, pool: usize) -> Result<(), ConvertError> {
        match self.pools.get(pool).map(|pool| pool.template.clone()) {
            Some(template) => self.node("check", &template).map(drop),
            None => Ok(()),
        }
    }

    fn register(&mut self, pool: usize, id: &str) {
        let now = self.now;
        let Some(of) = self.pools.get_mut(pool) else { return };
        let group = of.id.clone();
        let sold_out = of.stock == Stock::SoldOutLate;
        let template = of.template.clone();
        let warm_up = of.warm_up;
        let Some(machine) = of.machines.iter_mut().find(|m| m.id == id && m.state == MachineState::Booting) else {
            return;
        };
        machine.since = now;
        if sold_out {
            machine.state = MachineState::Failed;
            self.tell(What::MachineFailed { group, why: "out of stock".to_owned() });
            return;
        }
        machine.state = MachineState::Up;
        if of.deaf > 0 {
            of.deaf -= 1;
            return;
        }
        let (late, after) = of.late;
        if late > 0 {
            of.late = (late - 1, after);
            self.later(after, Due::Joins(pool, id.to_owned()));
            return;
        }
        // The template was checked when the pool was made.
        if let Ok(node) = self.node(id, &template) {
            self.join(node, &group, warm_up);
        }
    }

    fn join_late(&mut self, pool: usize, id: &str) {
        let Some(of) = self.pools.get(pool) else { return };
        let runs = of.machines.iter().any(|machine| machine.id == id && machine.state == MachineState::Up);
        let (group, template, warm_up) = (of.id.clone(), of.template.clone(), of.warm_up);
        if let (true, Ok(node)) = (runs, self.node(id, &template)) {
            self.join(node, &group, warm_up);
        }
    }

    /// A node registers, and turns ready after a while. Its DaemonSet pods start.
    pub fn join(&mut self, mut node: Node, group: &str, warm_up: Duration) {
        let not_ready = Taint { key: self.names.not_ready_taint, value: known::EMPTY, effect: TaintEffect::NoSchedule };
        node.taints = node.taints.iter().copied().chain([not_ready]).collect();
        node.conditions = [self.condition(ConditionStatus::False)].into();
        let name = node.name;
        self.cluster.nodes.push(node);
        self.start_daemon_set_pods(name);
        let node = self.cluster.text(name).to_owned();
        self.tell(What::NodeRegistered { group: group.to_owned(), node: node.clone() });
        self.later(warm_up, Due::Ready(group.to_owned(), node));
    }

    fn condition(&self, status: ConditionStatus) -> Condition {
        Condition { kind: self.names.ready, status, reason: known::EMPTY, since: Some(self.now) }
    }

    /// Writes the Ready condition of a node, and the taint that goes with it.
    pub(crate) fn turn(&mut self, name: &str, status: ConditionStatus) -> bool {
        let condition = self.condition(status);
        let not_ready = Taint { key: self.names.not_ready_taint, value: known::EMPTY, effect: TaintEffect::NoSchedule };
        let Some(node) = self.node_mut(name) else { return false };
        node.conditions = [condition].into();
        let others = node.taints.iter().copied().filter(|taint| taint.key != not_ready.key);
        node.taints = others.chain((status != ConditionStatus::True).then_some(not_ready)).collect();
        true
    }

    fn turn_ready(&mut self, group: &str, name: &str) {
        if !self.turn(name, ConditionStatus::True) {
            return;
        }
        self.tell(What::NodeReady { group: group.to_owned(), node: name.to_owned() });
    }

    pub(crate) fn node(&mut self, name: &str, template: &wire::Template) -> Result<Node, ConvertError> {
        let effect = |taint: &wire::Taint| match taint.effect {
            wire::TaintEffect::NoSchedule => "NoSchedule",
            wire::TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            wire::TaintEffect::NoExecute => "NoExecute",
        };
        let taints: Vec<TaintParts<'_>> = template
            .taints
            .iter()
            .map(|taint| TaintParts { key: &taint.key, value: &taint.value, effect: effect(taint) })
            .collect();
        let pairs = |map: &BTreeMap<String, String>| -> Vec<(String, String)> { map.clone().into_iter().collect() };
        let mut labels = pairs(&template.labels);
        for (key, value) in [
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/arch", &template.arch),
            ("kubernetes.io/os", &template.os),
            ("node.kubernetes.io/instance-type", &template.instance_type),
            ("topology.kubernetes.io/region", &template.region),
            ("topology.kubernetes.io/zone", template.zone.as_deref().unwrap_or_default()),
        ] {
            if !value.is_empty() {
                labels.push((key.to_owned(), value.to_owned()));
            }
        }
        let parts = TemplateParts {
            name,
            labels: &labels,
            taints: &taints,
            capacity: &pairs(&template.capacity),
            allocatable: &pairs(&template.allocatable),
        };
        let mut node = self.cluster.converter().template_node(&parts)?;
        node.provider_id = format!("sim://{name}").into();
        node.uid = name.into();
        node.created_at = Some(self.now);
        Ok(node)
    }

    /// Begins the deletion of a machine. Its node stays until the machine is gone.
    pub(crate) fn begin_deletion(&mut self, pool: usize, id: &str) {
        let now = self.now;
        if let Some(machine) = self.pools.get_mut(pool).and_then(|p| p.machines.iter_mut().find(|m| m.id == id)) {
            machine.state = MachineState::Deleting;
            machine.since = now;
        }
        self.later(DELETION, Due::Gone(pool, id.to_owned()));
    }

    pub(crate) fn remove_machine(&mut self, pool: usize, id: &str) {
        let Some(of) = self.pools.get_mut(pool) else { return };
        let group = of.id.clone();
        of.machines.retain(|machine| machine.id != id);
        self.leave(id, &group);
        self.leave(&twin_of(id), &group);
    }

    /// A node is gone with its machine.
    pub fn leave(&mut self, node: &str, group: &str) {
        let Some(name) = self.cluster.symbols.find(node) else { return };
        let before = self.cluster.nodes.len();
        self.cluster.nodes.retain(|node| node.name != name);
        // Whatever still ran there is lost; controllers make it again.
        self.cluster.pods.retain(|pod| pod.node != Some(name));
        if self.cluster.nodes.len() < before {
            self.tell(What::NodeGone { group: group.to_owned(), node: node.to_owned() });
        }
    }

    fn node_mut(&mut self, name: &str) -> Option<&mut Node> {
        let name = self.cluster.symbols.find(name)?;
        self.cluster.nodes.iter_mut().find(|node| node.name == name)
    }

    /// Marks a node as being deleted, as the autoscaler writes it.
    ///
    /// # Errors
    ///
    /// If there is no such node.
    pub fn taint(&mut self, node: &str, cordon: bool) -> Result<(), String> {
        let value = self.cluster.symbols.intern(&self.now.seconds().to_string());
        let node = self.node_mut(node).ok_or_else(|| format!("node {node:?} does not exist"))?;
        let taint = Taint { key: known::TO_BE_DELETED, value, effect: TaintEffect::NoSchedule };
        let others = node.taints.iter().copied().filter(|taint| taint.key != known::TO_BE_DELETED);
        node.taints = others.chain([taint]).collect();
        node.unschedulable |= cordon;
        Ok(())
    }

    /// Takes the mark off again, and the cordon if asked to.
    ///
    /// # Errors
    ///
    /// If there is no such node.
    pub fn untaint(&mut self, node: &str, uncordon: bool) -> Result<(), String> {
        let node = self.node_mut(node).ok_or_else(|| format!("node {node:?} does not exist"))?;
        node.taints = node.taints.iter().copied().filter(|taint| taint.key != known::TO_BE_DELETED).collect();
        node.unschedulable &= !uncordon;
        Ok(())
    }

    /// Evicts a pod, if its budgets allow it, with so much time to end.
    ///
    /// # Errors
    ///
    /// If there is no such pod, or a budget is spent.
    pub fn evict(&mut self, uid: &str, grace: Duration) -> Result<(), String> {
        let Some(index) = self.cluster.pods.iter().position(|pod| *pod.uid == *uid) else {
            return Ok(());
        };
        let Some(pod) = self.cluster.pods.get(index) else { return Ok(()) };
        let name = self.cluster.pod_name(pod);
        let spec = self.cluster.specs[pod.spec].clone();
        let symbols = &self.cluster.symbols;
        let protects = |budget: &&mut PodDisruptionBudget| {
            let selected = budget.selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels, symbols));
            budget.namespace == spec.namespace && selected
        };
        let mut budgets: Vec<_> = self.cluster.disruption_budgets.iter_mut().filter(protects).collect();
        if let Some(spent) = budgets.iter().find(|budget| budget.disruptions_allowed < 1) {
            let why = format!("PodDisruptionBudget {} allows no disruption", symbols.text(spent.name));
            self.tell(What::EvictionRefused(name, why.clone()));
            return Err(why);
        }
        for budget in &mut budgets {
            budget.disruptions_allowed -= 1;
        }
        self.delete_pod(index, Some(grace));
        self.tell(What::Evicted(name));
        Ok(())
    }

    /// Begins the deletion of a pod, with so much time to end if somebody says so; a pod without a node goes at once.
    fn delete_pod(&mut self, index: usize, within: Option<Duration>) {
        let now = self.now;
        let Some(pod) = self.cluster.pods.get_mut(index) else { return };
        if pod.node.is_none() {
            self.cluster.pods.swap_remove(index);
            return;
        }
        let own = Duration::from_secs(u64::try_from(pod.termination_grace_seconds.unwrap_or(30)).unwrap_or(0));
        let span = within.unwrap_or(own);
        let grace_seconds = i64::try_from(span.as_secs()).ok();
        pod.deletion = Some(Deletion { at: now + span, grace_seconds });
        let uid = pod.uid.to_string();
        self.later(span, Due::Ends(uid));
    }

    /// Changes the wished replicas of a workload.
    pub fn scale(&mut self, workload: &str, replicas: u32) {
        let Some(found) = self.workloads.iter_mut().find(|candidate| candidate.name == workload) else { return };
        let before = std::mem::replace(&mut found.replicas, replicas);
        self.tell(What::Scaled(workload.to_owned(), before, replicas));
    }

    /// A workload ends: its pods are deleted, and nobody makes them again.
    pub fn end(&mut self, workload: &str) {
        self.scale(workload, 0);
        self.reconcile();
        self.workloads.retain(|candidate| candidate.name != workload);
    }

    /// One more pod of a workload starts straight on a node, as when the scheduler bound it at that very moment.
    pub fn squeeze_in(&mut self, workload: &str, node: &str) {
        let Some(index) = self.workloads.iter().position(|candidate| candidate.name == workload) else { return };
        let Some(name) = self.cluster.symbols.find(node) else { return };
        let replicas = self.workloads.get(index).map_or(0, |found| found.replicas);
        self.scale(workload, replicas.saturating_add(1));
        self.make_pod(index);
        if let Some(pod) = self.cluster.pods.last_mut() {
            pod.node = Some(name);
            pod.phase = Phase::Running;
            pod.scheduling = Scheduling::Done;
        }
        self.tell(What::Bound(workload.to_owned(), 1));
    }

    /// Makes and deletes pods until every workload has what it wishes.
    fn reconcile(&mut self) {
        for index in 0..self.workloads.len() {
            let Some(workload) = self.workloads.get(index).cloned() else { continue };
            let name = self.cluster.symbols.intern(&workload.name);
            let owned = |pod: &Pod| {
                pod.deletion.is_none()
                    && pod.spec == workload.spec
                    && (workload.owner.is_none() || pod.owner.is_some_and(|owner| owner.name == name))
            };
            let mine: Vec<usize> =
                self.cluster.pods.iter().enumerate().filter(|(_, pod)| owned(pod)).map(|(index, _)| index).collect();
            let wished = usize::try_from(workload.replicas).unwrap_or(usize::MAX);
            if mine.len() < wished {
                for _ in mine.len()..wished {
                    self.make_pod(index);
                }
            } else {
                let mut surplus = mine;
                // Pods without a node go first, then the youngest.
                surplus.sort_by_key(|&index| {
                    let pod = self.cluster.pods.get(index);
                    (
                        pod.is_some_and(|pod| pod.node.is_some()),
                        Reverse(pod.and_then(|pod| pod.created_at)),
                        Reverse(index),
                    )
                });
                surplus.truncate(surplus.len() - wished);
                surplus.sort_unstable_by_key(|&index| Reverse(index));
                for index in surplus {
                    self.delete_pod(index, None);
                }
            }
        }
    }

    fn make_pod(&mut self, workload: usize) {
        let Some(found) = self.workloads.get_mut(workload) else { return };
        found.made += 1;
        let workload = found.clone();
        let name = format!("{}-{}", workload.name, workload.made);
        let uid = format!("{}/{name}", self.cluster.symbols.text(workload.namespace));
        let owner_name = self.cluster.symbols.intern(&workload.name);
        let owner = workload.owner.map(|kind| Owner { kind, name: owner_name, uid: owner_name });
        if let Some(owner) = owner {
            self.know_controller(&owner, workload.namespace);
        }
        let mut pod = self.pod(name, uid, workload.spec, owner);
        pod.drain = workload.drain;
        pod.termination_grace_seconds = i64::try_from(workload.grace.as_secs()).ok();
        self.cluster.pods.push(pod);
    }

    fn pod(&self, name: String, uid: String, spec: SpecId, owner: Option<Owner>) -> Pod {
        Pod {
            name: name.into(),
            uid: uid.into(),
            spec,
            held: spec,
            node: None,
            nominated_node: None,
            scheduler: known::DEFAULT_SCHEDULER,
            owner,
            phase: Phase::Pending,
            scheduling: Scheduling::Unseen,
            created_at: Some(self.now),
            deletion: None,
            termination_grace_seconds: None,
            restart_policy: RestartPolicy::Always,
            drain: plimsoll_model::pod::DrainTraits::default(),
            scale_up_delay_ms: None,
        }
    }

    fn know_controller(&mut self, owner: &Owner, namespace: Symbol) {
        let known = |controller: &Controller| {
            controller.kind == owner.kind && controller.namespace == namespace && controller.name == owner.name
        };
        if !self.cluster.controllers.iter().any(known) {
            let controller = Controller { kind: owner.kind, namespace, name: owner.name, replicas: Some(1) };
            self.cluster.controllers.push(controller);
        }
    }

    /// The DaemonSet controller binds its pods itself.
    fn start_daemon_set_pods(&mut self, node: Symbol) {
        for index in 0..self.cluster.daemon_sets.len() {
            let Some(daemon_set) = self.cluster.daemon_sets.get(index) else { continue };
            let (namespace, name, spec) = (daemon_set.namespace, daemon_set.name, daemon_set.spec);
            let text = format!("{}-{}", self.cluster.text(name), self.cluster.text(node));
            let uid = format!("{}/{text}", self.cluster.text(namespace));
            let owner = Owner { kind: OwnerKind::DaemonSet, name, uid: name };
            let mut pod = self.pod(text, uid, spec, Some(owner));
            pod.node = Some(node);
            pod.phase = Phase::Running;
            pod.scheduling = Scheduling::Done;
            self.cluster.pods.push(pod);
        }
    }

    /// Adds a PodDisruptionBudget that keeps so many of its pods running.
    pub fn protect(&mut self, budget: PodDisruptionBudget, min_available: i32) {
        self.cluster.disruption_budgets.push(budget);
        self.min_available.push(min_available);
    }

    /// The disruption controller: how many of the protected pods may be missing right now.
    fn allow_disruptions(&mut self) {
        let (specs, symbols) = (&self.cluster.specs, &self.cluster.symbols);
        for (budget, min_available) in self.cluster.disruption_budgets.iter_mut().zip(&self.min_available) {
            let protected = |pod: &&Pod| {
                let spec = &specs[pod.spec];
                let selected = budget.selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels, symbols));
                pod.node.is_some() && pod.deletion.is_none() && spec.namespace == budget.namespace && selected
            };
            let healthy = i32::try_from(self.cluster.pods.iter().filter(protected).count()).unwrap_or(i32::MAX);
            budget.disruptions_allowed = (healthy - min_available).max(0);
        }
    }
}
