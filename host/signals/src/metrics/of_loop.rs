//! What a loop saw and did, as metrics.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::cloud::{CloudError, DeleteStatus, GroupId, InstanceId};
use plimsoll_core::ledger::{FailureCause, IntentState};
use plimsoll_core::observation::{GroupView, Observation};
use plimsoll_core::plan::{GroupReason, IgnoreReason, Limit, NodeOutcome, NodeReason, Plan, PodOutcome, Warning};
use plimsoll_core::readiness::is_startup_taint;
use plimsoll_core::{Action, Memory, Outcome, Phase, Settings};
use plimsoll_driver::{Timings, Write};
use plimsoll_model::symbol::known;
use plimsoll_plugins::provider::{State, Status};

use super::families;
use super::family::Family;
use super::registry::Metrics;

/// Kinds of failed loops, by the Go autoscaler's names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ErrorType {
    /// A cloud could not be read or written.
    CloudProvider,
    /// The API server could not be read or written.
    ApiCall,
    /// Something that should not be.
    Internal,
}

impl ErrorType {
    const fn name(self) -> &'static str {
        match self {
            Self::CloudProvider => "cloudProviderError",
            Self::ApiCall => "apiCallError",
            Self::Internal => "internalError",
        }
    }
}

/// All kinds that the Go autoscaler has; each is there from the start.
const ERROR_TYPES: [&str; 7] = [
    ErrorType::CloudProvider.name(),
    ErrorType::ApiCall.name(),
    ErrorType::Internal.name(),
    "transientError",
    "configurationError",
    "nodeGroupDoesNotExistError",
    "unexpectedScaleDownStateError",
];

/// Reasons of failures that are there from the start.
const FAILURES: [&str; 3] = ["cloudProviderError", "apiCallError", "timeout"];

/// Which accelerator the nodes of a group have, as the labels tell it; empty texts: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gpu {
    resource: String,
    name: String,
    drivers: String,
}

/// What is left of an observation for the counters of its writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    gpus: BTreeMap<GroupId, Gpu>,
    /// Machines whose nodes are not ready.
    unready: BTreeSet<InstanceId>,
}

impl Metrics {
    /// Series that are there before anything happened.
    pub(crate) fn begin(&self, settings: &Settings) {
        self.set(&families::BUILD, &[env!("CARGO_PKG_VERSION")], 1.0);
        for kind in ERROR_TYPES {
            self.add(&families::ERRORS, &[kind], 0.0);
        }
        self.add(&families::SCALED_UP, &["", "", ""], 0.0);
        for reason in FAILURES {
            self.add(&families::FAILED_SCALE_UPS, &[reason, "", "", ""], 0.0);
            self.add(&families::FAILED_CREATIONS, &[reason], 0.0);
        }
        for reason in ["empty", "underutilized", "unready"] {
            self.add(&families::SCALED_DOWN, &[reason, "", "", ""], 0.0);
        }
        for result in ["succeeded", "failed"] {
            self.add(&families::EVICTED_PODS, &[result], 0.0);
        }
        for direction in ["up", "down"] {
            for reason in ["CpuResourceLimit", "MemoryResourceLimit"] {
                self.add(&families::SKIPPED_SCALE_EVENTS, &[direction, reason], 0.0);
            }
        }
        for (family, bounds) in
            [(&families::CPU_LIMITS, settings.cores_total), (&families::MEMORY_LIMITS, settings.memory_total)]
        {
            self.set(family, &["minimum"], float(bounds.min));
            self.set(family, &["maximum"], float(bounds.max));
        }
        self.set(&families::SKIPPED_PODS, &["filter-out-pod-list-processor"], 0.0);
    }

    /// The state that a loop saw and what it thinks of it.
    pub(crate) fn saw(&self, plan: &Plan, observation: &Observation<'_>, settings: &Settings) -> Counted {
        let healthy = !plan.warnings.iter().any(|warning| matches!(warning, Warning::Unhealthy(_)));
        self.set(&families::SAFE_TO_AUTOSCALE, &[], flag(healthy));
        self.nodes(observation, settings);
        self.groups(observation, settings);
        self.pods(plan, observation);
        self.unneeded(plan);
        let gpus: BTreeMap<GroupId, Gpu> =
            observation.groups.iter().map(|group| (group.cloud.id.clone(), gpu(group, observation))).collect();
        self.count_plan(plan, &gpus);
        let unready = observation.membership.iter().zip(&observation.readiness).filter_map(|(membership, state)| {
            let membership = membership.filter(|_| !state.ready)?;
            let group = observation.groups.get(membership.group)?;
            group.cloud.instances.get(membership.instance).map(|instance| instance.id.clone())
        });
        Counted { unready: unready.collect(), gpus }
    }

    fn nodes(&self, observation: &Observation<'_>, settings: &Settings) {
        let cluster = observation.cluster;
        let (mut ready, mut unready, mut starting) = (0, 0, 0);
        let (mut cores, mut bytes) = (0_i64, 0_i64);
        // Its own kinds are always told.
        let mut taints: BTreeMap<&str, u32> = OWN_TAINTS.iter().map(|kind| (*kind, 0)).collect();
        for (node, state) in cluster.nodes.iter().zip(&observation.readiness) {
            let young =
                node.created_at.is_some_and(|made| observation.at.since(made) <= settings.max_node_startup_time);
            *match (state.ready, young) {
                (true, _) => &mut ready,
                (false, true) => &mut starting,
                (false, false) => &mut unready,
            } += 1;
            if node.taint(known::TO_BE_DELETED).is_none() {
                cores = cores.saturating_add(node.capacity.cpu_milli / 1000);
                bytes = bytes.saturating_add(node.capacity.memory_bytes);
            }
            for taint in &node.taints {
                *taints.entry(taint_kind(cluster.text(taint.key), settings)).or_default() += 1;
            }
        }
        let (mut unregistered, mut long) = (0, 0);
        for group in &observation.groups {
            let members: BTreeSet<usize> = group
                .nodes
                .iter()
                .filter_map(|&node| observation.membership.get(node).copied().flatten())
                .map(|membership| membership.instance)
                .collect();
            for (index, instance) in group.cloud.instances.iter().enumerate() {
                if members.contains(&index) || instance.placeholder {
                    continue;
                }
                let patience = group.cloud.options.provision_time.unwrap_or(settings.max_node_provision_time);
                let late = instance.created_at.is_some_and(|made| observation.at.since(made) > patience);
                *if late { &mut long } else { &mut unregistered } += 1;
            }
        }
        for (state, count) in [
            ("ready", ready),
            ("unready", unready),
            ("notStarted", starting),
            ("suspended", 0),
            ("unregistered", unregistered),
            ("longUnregistered", long),
        ] {
            self.set(&families::NODES, &[state], f64::from(count));
        }
        self.set(&families::CPU_CURRENT, &[], float(cores));
        self.set(&families::MEMORY_CURRENT, &[], float(bytes));
        self.clear(&families::NODE_TAINTS);
        for (kind, count) in taints {
            self.set(&families::NODE_TAINTS, &[kind], f64::from(count));
        }
    }

    fn groups(&self, observation: &Observation<'_>, settings: &Settings) {
        let made = observation.groups.iter().filter(|group| group.cloud.autoprovisioned).count();
        self.set(&families::NODE_GROUPS, &["autoscaled"], size(observation.groups.len() - made));
        self.set(&families::NODE_GROUPS, &["autoprovisioned"], size(made));
        let most: u64 = observation.groups.iter().map(|group| u64::from(group.cloud.max_size)).sum();
        let most = settings.max_nodes_total.map_or(most, |limit| most.min(u64::from(limit)));
        self.set(&families::MAX_NODES, &[], most as f64);
        for family in
            [&families::GROUP_MIN, &families::GROUP_MAX, &families::GROUP_TARGET, &families::GROUP_HEALTHINESS]
        {
            self.clear(family);
        }
        for group in &observation.groups {
            let name = [group.cloud.id.as_str()];
            self.set(&families::GROUP_MIN, &name, f64::from(group.cloud.min_size));
            self.set(&families::GROUP_MAX, &name, f64::from(group.cloud.max_size));
            self.set(&families::GROUP_TARGET, &name, f64::from(group.cloud.target_size));
            let healthy = plimsoll_core::health::of_group(group, 0, observation, settings).is_ok();
            self.set(&families::GROUP_HEALTHINESS, &name, flag(healthy));
        }
    }

    fn pods(&self, plan: &Plan, observation: &Observation<'_>) {
        let (mut unschedulable, mut unprocessed) = (0, 0);
        let mut classes: BTreeSet<_> = BTreeSet::new();
        let mut namespaces: BTreeSet<_> = BTreeSet::new();
        for (index, outcome) in &plan.pods {
            match outcome {
                PodOutcome::Ignored(IgnoreReason::NotUnschedulable) => unprocessed += 1,
                PodOutcome::Ignored(IgnoreReason::Ended | IgnoreReason::Deleting) => {}
                _ => unschedulable += 1,
            }
            if let (PodOutcome::ScaleUp(_) | PodOutcome::NotHelped, Some(pod)) =
                (outcome, observation.cluster.pods.get(*index))
            {
                classes.insert(pod.spec);
                namespaces.insert(observation.cluster.specs[pod.spec].namespace);
            }
        }
        self.set(&families::UNSCHEDULABLE_PODS, &["unschedulable"], size(unschedulable));
        self.set(&families::UNSCHEDULABLE_PODS, &["scheduler_unprocessed"], size(unprocessed));
        self.set(&families::NOT_HELPED, &[], size(plan.not_helped.iter().map(|class| class.pods.len()).sum()));
        if classes.is_empty() {
            return;
        }
        let namespaces = match namespaces.len() {
            count @ 0..=5 => count.to_string(),
            6..=10 => "6-10".to_owned(),
            _ => "11+".to_owned(),
        };
        let open = |group: &&GroupView<'_>| plan.skipped.iter().all(|(id, _)| *id != group.cloud.id);
        for group in observation.groups.iter().filter(open) {
            let Ok(template) = &group.template else { continue };
            let machine = observation.cluster.symbols.find("node.kubernetes.io/instance-type");
            let machine = machine.and_then(|key| template.node.labels.get(key));
            let machine = machine.map_or("", |value| observation.cluster.text(value));
            let cores = (template.node.capacity.cpu_milli / 1000).to_string();
            let labels = [machine, &cores, &namespaces];
            self.observe(&families::BINPACKING_HETEROGENEITY, &labels, size(classes.len()));
        }
    }

    fn unneeded(&self, plan: &Plan) {
        let unneeded = |outcome| matches!(outcome, NodeOutcome::Unneeded | NodeOutcome::Removable);
        let count = plan.nodes.iter().filter(|verdict| unneeded(verdict.outcome)).count();
        self.set(&families::UNNEEDED_NODES, &[], size(count));
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for verdict in &plan.nodes {
            let codes: BTreeSet<&str> = verdict.reasons.iter().map(NodeReason::code).collect();
            codes.into_iter().for_each(|code| *reasons.entry(code).or_default() += 1);
        }
        self.set(&families::IN_COOLDOWN, &[], flag(reasons.contains_key("InCooldown")));
        self.clear(&families::UNREMOVABLE_NODES);
        for (reason, count) in reasons {
            self.set(&families::UNREMOVABLE_NODES, &[reason], size(count));
        }
    }

    /// What the plan itself says went wrong or was left out.
    fn count_plan(&self, plan: &Plan, gpus: &BTreeMap<GroupId, Gpu>) {
        for warning in &plan.warnings {
            match warning {
                Warning::Failure(failure) => {
                    let reason = match &failure.cause {
                        FailureCause::Cloud(error) => code(error),
                        FailureCause::TimedOut(_) => "timeout",
                        FailureCause::NeverAccepted => "cloudProviderError",
                    };
                    self.add(&families::FAILED_CREATIONS, &[reason], f64::from(failure.missing));
                    self.failed_scale_up(reason, gpus.get(&failure.group));
                }
                Warning::IncreaseFailed { group, error, .. } => self.failed_scale_up(code(error), gpus.get(group)),
                Warning::Guarded { .. } => self.add(&families::GUARDED, &[], 1.0),
                _ => {}
            }
        }
        let limit = |limit: &Limit| match limit {
            Limit::Cores(_) => Some("CpuResourceLimit"),
            Limit::Memory(_) => Some("MemoryResourceLimit"),
            Limit::Nodes(_) | Limit::Gpu(..) => None,
        };
        let closed = plan.not_helped.iter().flat_map(|class| &class.reasons).chain(&plan.skipped);
        let up: BTreeSet<&str> = closed
            .filter_map(|(_, reason)| match reason {
                GroupReason::Limit(reached) => limit(reached),
                _ => None,
            })
            .collect();
        let down: BTreeSet<&str> = plan
            .nodes
            .iter()
            .flat_map(|verdict| &verdict.reasons)
            .filter_map(|reason| match reason {
                NodeReason::Limit(reached) => limit(reached),
                _ => None,
            })
            .collect();
        for (direction, reasons) in [("up", up), ("down", down)] {
            for reason in reasons {
                self.add(&families::SKIPPED_SCALE_EVENTS, &[direction, reason], 1.0);
            }
        }
    }

    fn failed_scale_up(&self, reason: &str, gpu: Option<&Gpu>) {
        let Gpu { resource, name, drivers } = gpu.cloned().unwrap_or_default();
        self.add(&families::FAILED_SCALE_UPS, &[reason, &resource, &name, &drivers], 1.0);
        if !resource.is_empty() {
            self.add(&families::FAILED_GPU_SCALE_UPS, &[reason, &resource, &name], 1.0);
        }
    }

    /// What a loop wrote.
    pub(crate) fn wrote(&self, writes: &[Write], memory: &Memory, counted: &Counted) {
        for write in writes {
            let (kind, result) = (write.action.name(), if failure(write).is_none() { "ok" } else { "failed" });
            self.add(&families::WRITES, &[kind, result], 1.0);
            self.observe(&families::WRITE_DURATION, &[kind], write.took.as_secs_f64());
            for evicted in &write.evicted {
                let result = if evicted.result.is_ok() { "succeeded" } else { "failed" };
                self.add(&families::EVICTED_PODS, &[result], 1.0);
            }
            match (&write.action, &write.outcome) {
                (Action::Increase { group, delta, .. }, Outcome::Size(Ok(outcome))) => {
                    let Gpu { resource, name, drivers } = counted.gpus.get(group).cloned().unwrap_or_default();
                    let accepted = f64::from(outcome.accepted.min(*delta));
                    self.add(&families::SCALED_UP, &[&resource, &name, &drivers], accepted);
                    if !resource.is_empty() {
                        self.add(&families::SCALED_UP_GPU, &[&resource, &name], accepted);
                    }
                }
                (Action::Delete { group, .. }, Outcome::Delete(Ok(outcome))) => {
                    let gone = outcome.results.iter().filter(|(_, status)| matches!(status, DeleteStatus::Accepted));
                    for (instance, _) in gone {
                        self.deleted(group, instance, memory, counted);
                    }
                }
                _ => {}
            }
        }
    }

    fn deleted(&self, group: &GroupId, instance: &InstanceId, memory: &Memory, counted: &Counted) {
        let Some(removal) = memory.removals.values().find(|removal| removal.instance == *instance) else {
            return self.add(&families::OLD_UNREGISTERED_REMOVED, &[], 1.0);
        };
        let reason = match removal.drain {
            _ if counted.unready.contains(instance) => "unready",
            true => "underutilized",
            false => "empty",
        };
        let Gpu { resource, name, drivers } = counted.gpus.get(group).cloned().unwrap_or_default();
        self.add(&families::SCALED_DOWN, &[reason, &resource, &name, &drivers], 1.0);
        if !resource.is_empty() {
            self.add(&families::SCALED_DOWN_GPU, &[reason, &resource, &name], 1.0);
        }
    }

    /// What a loop leaves to the next.
    pub(crate) fn remembers(&self, memory: &Memory, at: plimsoll_model::Time) {
        self.set(&families::PENDING_DELETIONS, &[], size(memory.removals.len()));
        let mut states = BTreeMap::from([("asked", 0), ("accepted", 0), ("unknown", 0)]);
        let mut outstanding = 0;
        for intent in memory.ledger.increases() {
            let state = match intent.state {
                IntentState::Asked => "asked",
                IntentState::Accepted => "accepted",
                IntentState::Unknown => "unknown",
            };
            *states.entry(state).or_default() += 1;
            outstanding += intent.outstanding;
        }
        for (state, count) in states {
            self.set(&families::LEDGER, &[state], size(count));
        }
        self.set(&families::LEDGER_OUTSTANDING, &[], f64::from(outstanding));
        self.clear(&families::GROUP_BACKOFF);
        let held = memory.backoff.keys().filter_map(|group| Some((group, memory.backed_off(group, at)?)));
        let held: Vec<_> = held.collect();
        self.set(&families::BACKED_OFF, &[], size(held.len()));
        for (group, _) in held {
            self.set(&families::GROUP_BACKOFF, &[group.as_str(), "unknown"], 1.0);
        }
    }

    /// How long a loop took.
    pub(crate) fn took(&self, timings: &Timings) {
        let of = |wanted: &[Phase]| {
            let parts = timings.phases.iter().filter(|(phase, _)| wanted.contains(phase));
            parts.map(|&(_, took)| took).sum::<std::time::Duration>()
        };
        let growth = of(&[Phase::Options, Phase::Increases, Phase::MinSizes]);
        for (function, took) in [
            ("cloudProviderRefresh", timings.refresh),
            ("updateClusterState", timings.observe),
            ("filterOutSchedulable", of(&[Phase::Begin])),
            ("scaleUp", growth),
            ("scaleUp:estimate", of(&[Phase::Options]).saturating_sub(timings.rank)),
            ("findUnneeded", of(&[Phase::ScaleDown])),
            ("scaleDown", of(&[Phase::ScaleDown, Phase::Taints])),
            ("scaleDown:nodeDeletion", of(&[Phase::Removals])),
            ("main", timings.whole),
        ] {
            self.function(function, took);
        }
        let own = [("refresh", timings.refresh), ("observe", timings.observe), ("rank", timings.rank)];
        let phases = timings.phases.iter().map(|&(phase, took)| (phase.name(), took));
        for (phase, took) in own.into_iter().chain([("act", timings.act), ("whole", timings.whole)]).chain(phases) {
            self.observe(&families::PHASES, &[phase], took.as_secs_f64());
        }
    }

    /// Time of a part under the Go autoscaler's name of it.
    pub(crate) fn function(&self, function: &str, took: std::time::Duration) {
        for family in [&families::DURATION, &families::DURATION_QUANTILE] {
            self.observe(family, &[function], took.as_secs_f64());
        }
    }

    /// How the providers are doing.
    pub(crate) fn providers(&self, all: &[(String, Status)]) {
        self.clear(&families::PLUGIN_MEMORY);
        self.clear(&families::PLUGIN_UP);
        for (name, status) in all {
            self.set(&families::PLUGIN_MEMORY, &[name], size(status.memory_bytes));
            self.set(&families::PLUGIN_UP, &[name], flag(status.state == State::Serving));
        }
    }

    /// A loop in which something of this kind failed.
    pub(crate) fn error(&self, kind: ErrorType) {
        self.add(&families::ERRORS, &[kind.name()], 1.0);
    }

    /// A part of the loop ran at this time, in seconds since the epoch.
    pub(crate) fn active(&self, activity: &str, at: plimsoll_model::Time) {
        let family: &Family = &families::LAST_ACTIVITY;
        self.set(family, &[activity], float(at.millis() / 1000));
    }
}

/// Why a write failed, if it did, and whose failure it is.
pub(crate) fn failure(write: &Write) -> Option<(ErrorType, String)> {
    let cloud = |error: &CloudError| Some((ErrorType::CloudProvider, error.to_string()));
    match &write.outcome {
        Outcome::Size(Err(error)) | Outcome::Delete(Err(error)) => cloud(error),
        Outcome::Size(Ok(outcome)) => outcome.shortfall.as_ref().and_then(cloud),
        Outcome::Delete(Ok(outcome)) => outcome.results.iter().find_map(|(_, status)| match status {
            DeleteStatus::Failed(error) => cloud(error),
            DeleteStatus::Accepted | DeleteStatus::AlreadyGone | DeleteStatus::Skipped(_) => None,
        }),
        Outcome::Api(Err(why)) | Outcome::NotSent(why) => Some((ErrorType::ApiCall, why.clone())),
        Outcome::Api(Ok(())) => None,
    }
}

/// The cloud's own code where it gave one, as the Go autoscaler has it.
fn code(error: &CloudError) -> &str {
    if error.code.is_empty() { "cloudProviderError" } else { &error.code }
}

/// The accelerator of a group's next node, in the Go autoscaler's words.
fn gpu(group: &GroupView<'_>, observation: &Observation<'_>) -> Gpu {
    let Ok(template) = &group.template else { return Gpu::default() };
    let cluster = observation.cluster;
    let drivers: BTreeSet<&str> = template.slices.iter().map(|slice| cluster.text(slice.driver)).collect();
    let drivers: Vec<&str> = drivers.into_iter().collect();
    let resource = observation.accelerators.resource_of(&template.node.allocatable);
    let model = observation.accelerators.label.and_then(|label| template.node.labels.get(label));
    let (resource, name) = match (resource, model) {
        (None, None) => (String::new(), ""),
        (None, Some(_)) => (drivers.first().map_or_else(String::new, |driver| format!("dra_{driver}")), "missing-gpu"),
        (Some((resource, _)), None) => (cluster.text(resource).to_owned(), "generic"),
        (Some((resource, _)), Some(model)) => {
            let model = cluster.text(model);
            let listed = observation.capabilities.accelerator_models.iter().any(|known| known == model);
            (cluster.text(resource).to_owned(), if listed { model } else { "not-listed" })
        }
    };
    Gpu { resource, name: name.to_owned(), drivers: drivers.join(",") }
}

/// Taints that the autoscaler writes itself.
const OWN_TAINTS: [&str; 2] = ["ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"];

/// Taint keys that have a kind of their own.
const OWN_KINDS: [&str; 12] = [
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
];

fn taint_kind<'k>(key: &'k str, settings: &Settings) -> &'k str {
    if let Some(known) = OWN_KINDS.iter().find(|known| **known == key) {
        known
    } else if key.starts_with("ignore-taint.cluster-autoscaler.kubernetes.io/") {
        "ignore-taint.cluster-autoscaler.kubernetes.io/"
    } else if is_startup_taint(key, settings) {
        "startup-taint"
    } else if settings.status_taints.iter().any(|taint| taint == key)
        || key.starts_with("status-taint.cluster-autoscaler.kubernetes.io/")
    {
        "status-taint"
    } else {
        "other"
    }
}

fn flag(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[allow(clippy::cast_precision_loss, reason = "a metric is a float; counts are far below 2^53")]
fn size(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "a metric is a float; amounts are below 2^53 or need not be exact")]
fn float(amount: i64) -> f64 {
    amount as f64
}
