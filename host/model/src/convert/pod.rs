//! Pods.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::cluster::SpecId;
use crate::pod::{
    ClaimReference, Deletion, DrainTraits, OwnerKind, Phase, Pod, PodSpec, RestartPolicy, SafeToEvict, Scheduling,
};
use crate::selector::{NodeSelector, NodeSelectorTerm};
use crate::symbol::{Symbol, Symbols, known};
use crate::time::go_duration_nanos;

use super::Converter;
use super::error::ConvertError;
use super::metadata::{self, annotation};
use super::pod_rules::{self, LabelKeys};
use super::{requests, selectors, volumes};

/// Annotations that the autoscaler reads on pods.
mod key {
    pub(super) const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    pub(super) const SAFE_LOCAL_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
    pub(super) const SCALE_UP_DELAY: &str = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay";
    pub(super) const DAEMON_SET_POD: &str = "cluster-autoscaler.kubernetes.io/daemonset-pod";
    pub(super) const DAEMON_SET_EVICTION: &str = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";
    pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
    pub(super) const SOURCE: &str = "kubernetes.io/config.source";
}

impl Converter<'_> {
    /// A pod as the API server has it: defaulted, so that nothing of its spec is filled in here.
    ///
    /// # Errors
    ///
    /// If it has no name, or an amount or a host port cannot be read.
    pub fn pod(&mut self, pod: &core::Pod) -> Result<Pod, ConvertError> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        self.convert_pod(pod, node.is_some_and(|node| !node.is_empty()))
    }

    /// A pod that stands for one on a node, whether or not it names the node.
    pub(super) fn pod_on_a_node(&mut self, pod: &core::Pod) -> Result<Pod, ConvertError> {
        self.convert_pod(pod, true)
    }

    fn convert_pod(&mut self, pod: &core::Pod, on_a_node: bool) -> Result<Pod, ConvertError> {
        let name = metadata::name(&pod.metadata)?;
        let bare = core::PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&bare);
        let status = pod.status.as_ref();
        let owner = metadata::owner(&pod.metadata, self.symbols);
        let node = spec.node_name.as_deref().filter(|node| !node.is_empty());

        let namespace = metadata::namespace(&pod.metadata, self.symbols);
        let mut wanted = self.pod_spec(&Subject {
            metadata: &pod.metadata,
            namespace,
            name,
            spec,
            status,
            label_keys: LabelKeys::Merged,
        })?;
        if on_a_node && owner.is_some_and(|owner| owner.kind == OwnerKind::DaemonSet) {
            wanted.node_affinity = wanted.node_affinity.and_then(without_node_name);
        }
        let held_requests = status.map(|status| requests::held(spec, status, self.symbols)).transpose()?.flatten();
        let mut held_claims = wanted.claims.clone();
        if on_a_node {
            wanted.claims = volumes::fresh_claims(spec, &wanted.claims, self.symbols);
            let for_resources = volumes::claim_for_resources(status, self.symbols);
            held_claims = held_claims.into_iter().chain(for_resources).collect();
        }
        let (wanted, held) = self.intern_pair(wanted, held_requests, held_claims);

        Ok(Pod {
            name: name.into(),
            uid: metadata::uid(&pod.metadata).into(),
            spec: wanted,
            held,
            node: node.map(|node| self.symbols.intern(node)),
            nominated_node: self.nominated_node(status),
            scheduler: self.scheduler(spec),
            owner,
            phase: phase(status, node.is_some()),
            scheduling: scheduling(spec, status, node.is_some()),
            created_at: pod.metadata.creation_timestamp.as_ref().map(metadata::time),
            deletion: pod.metadata.deletion_timestamp.as_ref().map(|at| Deletion {
                at: metadata::time(at),
                grace_seconds: pod.metadata.deletion_grace_period_seconds,
            }),
            termination_grace_seconds: spec.termination_grace_period_seconds,
            restart_policy: match spec.restart_policy.as_deref() {
                Some("OnFailure") => RestartPolicy::OnFailure,
                Some("Never") => RestartPolicy::Never,
                _ => RestartPolicy::Always,
            },
            drain: drain_traits(&pod.metadata, spec, self.symbols),
            scale_up_delay_ms: annotation(&pod.metadata, key::SCALE_UP_DELAY)
                .and_then(go_duration_nanos)
                .map(|nanos| nanos / 1_000_000),
        })
    }

    /// The part of a pod that scheduling looks at.
    pub(super) fn pod_spec(&mut self, subject: &Subject<'_>) -> Result<PodSpec, ConvertError> {
        let &Subject { metadata, namespace, name, spec, status, label_keys } = subject;
        let symbols = &mut *self.symbols;
        let labels = metadata::labels(metadata.labels.as_ref(), symbols);
        let affinity = spec.affinity.as_ref();
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
        let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let far = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
        let on_nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let on_nodes = on_nodes.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
        let claims = volumes::claims(spec, status, name, metadata::uid(metadata), symbols);
        let requests = requests::requested(spec, symbols)?;
        Ok(PodSpec {
            namespace,
            node_name: None,
            node_selector: metadata::labels(spec.node_selector.as_ref(), symbols),
            node_affinity: on_nodes.map(|selector| selectors::node_selector(selector, symbols)),
            tolerations: spec
                .tolerations
                .iter()
                .flatten()
                .map(|toleration| pod_rules::toleration(toleration, symbols))
                .collect(),
            of_containers: requests::of_containers_alone(spec, &requests, symbols)?,
            requests,
            host_ports: pod_rules::host_ports(spec, symbols)?,
            spread: pod_rules::spread(spec, &labels, symbols),
            affinity: pod_rules::affinity_terms(near, namespace, &labels, label_keys, symbols),
            anti_affinity: pod_rules::affinity_terms(far, namespace, &labels, label_keys, symbols),
            volumes: volumes::volumes(spec, name, metadata::uid(metadata), symbols),
            claims: match label_keys {
                LabelKeys::Merged => claims,
                LabelKeys::ToMerge => volumes::fresh_claims(spec, &claims, symbols),
            },
            features: pod_rules::features(spec, symbols),
            priority: spec.priority,
            labels,
        })
    }

    /// Numbers a spec, and the same spec with other requests or claims if they differ.
    fn intern_pair(
        &mut self,
        wanted: PodSpec,
        requests: Option<crate::Resources>,
        claims: Box<[ClaimReference]>,
    ) -> (SpecId, SpecId) {
        let requests = requests.filter(|requests| *requests != wanted.requests);
        let differs = requests.is_some() || claims != wanted.claims;
        let held = differs.then(|| {
            let requests = requests.unwrap_or_else(|| wanted.requests.clone());
            self.specs.intern(PodSpec { requests, claims, ..wanted.clone() })
        });
        let wanted = self.specs.intern(wanted);
        (wanted, held.unwrap_or(wanted))
    }

    fn nominated_node(&mut self, status: Option<&core::PodStatus>) -> Option<Symbol> {
        let node = status?.nominated_node_name.as_deref().filter(|node| !node.is_empty())?;
        Some(self.symbols.intern(node))
    }

    fn scheduler(&mut self, spec: &core::PodSpec) -> Symbol {
        match spec.scheduler_name.as_deref() {
            None | Some("") => known::DEFAULT_SCHEDULER,
            Some(name) => self.symbols.intern(name),
        }
    }
}

/// A pod, or a pod that would be made from a template.
pub(super) struct Subject<'a> {
    pub(super) metadata: &'a meta::ObjectMeta,
    pub(super) namespace: Symbol,
    pub(super) name: &'a str,
    pub(super) spec: &'a core::PodSpec,
    pub(super) status: Option<&'a core::PodStatus>,
    pub(super) label_keys: LabelKeys,
}

/// A selector without the node name that the DaemonSet controller puts into each of its pods, so that all pods of a
/// DaemonSet have the same spec. A term that consists of nothing else allows every other node too.
fn without_node_name(selector: NodeSelector) -> Option<NodeSelector> {
    let names_node = |term: &NodeSelectorTerm| term.fields.iter().any(|field| field.key == known::METADATA_NAME);
    if selector.terms.iter().any(|term| term.valid && term.expressions.is_empty() && names_node(term)) {
        return None;
    }
    let strip = |term: &NodeSelectorTerm| NodeSelectorTerm {
        fields: term.fields.iter().filter(|field| field.key != known::METADATA_NAME).cloned().collect(),
        ..term.clone()
    };
    Some(NodeSelector { terms: selector.terms.iter().map(strip).collect() })
}

fn phase(status: Option<&core::PodStatus>, has_node: bool) -> Phase {
    match status.and_then(|status| status.phase.as_deref()) {
        Some("Pending") => Phase::Pending,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some("Running" | "Unknown") => Phase::Running,
        _ if has_node => Phase::Running,
        _ => Phase::Pending,
    }
}

fn scheduling(spec: &core::PodSpec, status: Option<&core::PodStatus>, has_node: bool) -> Scheduling {
    if has_node {
        return Scheduling::Done;
    }
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let scheduled = { conditions }.find(|condition| condition.type_ == "PodScheduled");
    let Some(scheduled) = scheduled else {
        let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
        return if gated { Scheduling::Gated } else { Scheduling::Unseen };
    };
    match (scheduled.status.as_str(), scheduled.reason.as_deref().unwrap_or("")) {
        ("True", _) => Scheduling::Done,
        ("False", "Unschedulable") => Scheduling::Unschedulable,
        ("False", "SchedulingGated") => Scheduling::Gated,
        ("False", "") => Scheduling::Unseen,
        _ => Scheduling::Refused,
    }
}

fn drain_traits(metadata: &meta::ObjectMeta, spec: &core::PodSpec, symbols: &mut Symbols) -> DrainTraits {
    let annotation = |key| annotation(metadata, key);
    // The rules tell a DaemonSet's pod by the kind of its controller, of whatever API group.
    let foreign_daemon_set = metadata::controller(metadata).is_some_and(|owner| owner.kind == "DaemonSet");
    DrainTraits {
        mirror: annotation(key::MIRROR).is_some(),
        static_pod: annotation(key::SOURCE).is_some_and(|source| source != "api"),
        daemon_set_annotation: annotation(key::DAEMON_SET_POD) == Some("true") || foreign_daemon_set,
        safe_to_evict: match annotation(key::SAFE_TO_EVICT) {
            Some("true") => SafeToEvict::Yes,
            Some("false") => SafeToEvict::No,
            Some("on-completion") => SafeToEvict::OnCompletion,
            _ => SafeToEvict::Unset,
        },
        local_storage: volumes::local_storage(spec, annotation(key::SAFE_LOCAL_VOLUMES), symbols),
        daemon_set_eviction: annotation(key::DAEMON_SET_EVICTION).map(|value| value == "true"),
    }
}
