//! Pods, and the pods that DaemonSets make.

use k8s_openapi::api::core::v1 as core;

use super::super::amounts::{ResourceList, is_overcommitted, is_pod_level};
use super::super::error::{Flaw, Within};
use super::amounts::{amounts, requirements};
use super::node::EFFECTS;
use super::selectors::{label_selector, node_selector};
use super::{Admit, Checked, at_least, each, each_of, filled, optional_word, word};

const RESTARTS: &[&str] = &["Always", "OnFailure", "Never"];
const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const PHASES: &[&str] = &["Pending", "Running", "Succeeded", "Failed", "Unknown"];
pub(super) const STATUSES: &[&str] = &["True", "False", "Unknown"];
const TOLERATION_OPERATORS: &[&str] = &["Equal", "Exists", "Lt", "Gt"];
const UNSATISFIABLE: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const INCLUSIONS: &[&str] = &["Honor", "Ignore"];

impl Admit for core::Pod {
    fn admit(&mut self) -> Checked {
        if let Some(spec) = &mut self.spec {
            fill_in_requests(spec);
            pod_spec(spec).field("spec")?;
        }
        self.status.as_ref().map_or(Ok(()), status).field("status")
    }
}

/// What is limited and not asked for is asked for (`SetDefaults_Pod`).
fn fill_in_requests(spec: &mut core::PodSpec) {
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        let Some(resources) = &mut container.resources else { continue };
        for (name, limit) in resources.limits.iter().flatten() {
            let requests = resources.requests.get_or_insert_default();
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    let containers = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let asks = |name: &str, container: &core::Container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        requests.is_some_and(|requests| requests.contains_key(name))
    };
    let limits = spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let missing = limits.into_iter().flatten().filter(|(name, _)| {
        is_pod_level(name) && !(is_overcommitted(name) && containers().any(|container| asks(name, container)))
    });
    let missing: ResourceList = missing.map(|(name, limit)| (name.clone(), limit.clone())).collect();
    if let Some(resources) = spec.resources.as_mut().filter(|_| !missing.is_empty()) {
        let requests = resources.requests.get_or_insert_default();
        for (name, limit) in missing {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The spec of a pod or of a template of pods.
pub(super) fn pod_spec(spec: &core::PodSpec) -> Checked {
    each(&spec.containers, container).field("containers")?;
    each_of(spec.init_containers.as_ref(), container).field("initContainers")?;
    spec.resources.as_ref().map_or(Ok(()), resources).field("resources")?;
    amounts(spec.overhead.as_ref()).field("overhead")?;
    optional_word(spec.restart_policy.as_deref(), RESTARTS).field("restartPolicy")?;
    at_least(0, spec.termination_grace_period_seconds).field("terminationGracePeriodSeconds")?;
    each_of(spec.tolerations.as_ref(), toleration).field("tolerations")?;
    each_of(spec.topology_spread_constraints.as_ref(), spread).field("topologySpreadConstraints")?;
    spec.affinity.as_ref().map_or(Ok(()), affinity).field("affinity")
}

fn container(container: &core::Container) -> Checked {
    container.resources.as_ref().map_or(Ok(()), resources).field("resources")?;
    optional_word(container.restart_policy.as_deref(), RESTARTS).field("restartPolicy")?;
    each_of(container.ports.as_ref(), |port| optional_word(port.protocol.as_deref(), PROTOCOLS).field("protocol"))
        .field("ports")
}

fn resources(resources: &core::ResourceRequirements) -> Checked {
    requirements(resources.requests.as_ref(), resources.limits.as_ref())
}

fn toleration(toleration: &core::Toleration) -> Checked {
    optional_word(toleration.effect.as_deref(), EFFECTS).field("effect")?;
    let operator = toleration.operator.as_deref().filter(|operator| !operator.is_empty()).unwrap_or("Equal");
    word(operator, TOLERATION_OPERATORS).field("operator")?;
    let value = toleration.value.as_deref().unwrap_or("");
    let wrong = |expected| {
        let flaw = Flaw::Values { operator: operator.to_owned(), found: value.to_owned(), expected };
        Err(flaw.into()).field("value")
    };
    match operator {
        "Exists" if !value.is_empty() => wrong("no value"),
        "Lt" | "Gt" if value.parse::<i64>().is_err() => wrong("a whole number"),
        "Exists" => Ok(()),
        _ => filled(toleration.key.as_deref().unwrap_or("")).field("key"),
    }
}

fn spread(constraint: &core::TopologySpreadConstraint) -> Checked {
    at_least(1, Some(constraint.max_skew)).field("maxSkew")?;
    at_least(1, constraint.min_domains).field("minDomains")?;
    filled(&constraint.topology_key).field("topologyKey")?;
    word(&constraint.when_unsatisfiable, UNSATISFIABLE).field("whenUnsatisfiable")?;
    optional_word(constraint.node_affinity_policy.as_deref(), INCLUSIONS).field("nodeAffinityPolicy")?;
    optional_word(constraint.node_taints_policy.as_deref(), INCLUSIONS).field("nodeTaintsPolicy")?;
    label_selector(constraint.label_selector.as_ref()).field("labelSelector")
}

fn affinity(affinity: &core::Affinity) -> Checked {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let on_nodes = affinity.node_affinity.as_ref();
    let on_nodes = on_nodes.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
    node_selector(on_nodes).field(REQUIRED).field("nodeAffinity")?;
    let near = affinity.pod_affinity.as_ref();
    let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    each_of(near, affinity_term).field(REQUIRED).field("podAffinity")?;
    let far = affinity.pod_anti_affinity.as_ref();
    let far = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
    each_of(far, affinity_term).field(REQUIRED).field("podAntiAffinity")
}

fn affinity_term(term: &core::PodAffinityTerm) -> Checked {
    filled(&term.topology_key).field("topologyKey")?;
    label_selector(term.label_selector.as_ref()).field("labelSelector")?;
    label_selector(term.namespace_selector.as_ref()).field("namespaceSelector")
}

fn status(status: &core::PodStatus) -> Checked {
    optional_word(status.phase.as_deref(), PHASES).field("phase")?;
    each_of(status.conditions.as_ref(), |condition| word(&condition.status, STATUSES).field("status"))
        .field("conditions")?;
    amounts(status.allocated_resources.as_ref()).field("allocatedResources")?;
    status.resources.as_ref().map_or(Ok(()), resources).field("resources")?;
    let of_container = |status: &core::ContainerStatus| {
        amounts(status.allocated_resources.as_ref()).field("allocatedResources")?;
        status.resources.as_ref().map_or(Ok(()), resources).field("resources")
    };
    each_of(status.container_statuses.as_ref(), of_container).field("containerStatuses")?;
    each_of(status.init_container_statuses.as_ref(), of_container).field("initContainerStatuses")
}
