//! What a pod demands of nodes and of other pods: ports, tolerations, spreading, affinity, declared features.

use k8s_openapi::api::core::v1 as core;

use crate::labels::Labels;
use crate::pod::{HostPort, NodeInclusion, PodAffinityTerm, SpreadConstraint};
use crate::selector::{LabelSelector, Operator, Requirement};
use crate::symbol::{Symbol, Symbols, known};
use crate::taint::{TaintEffect, Toleration, TolerationOperator};

use super::error::{ConvertError, Flaw, Within};
use super::requests::is_sidecar;
use super::selectors::{equals, label_selector};

/// Host ports of regular containers and sidecars (kube-scheduler `GetHostPorts`). Pods of the host's network have their
/// ports copied into `hostPort` by the API server; nothing else of them counts.
pub(super) fn host_ports(spec: &core::PodSpec, symbols: &mut Symbols) -> Result<Box<[HostPort]>, ConvertError> {
    let mut found = Vec::new();
    let sidecars = spec.init_containers.iter().flatten().enumerate().filter(|(_, container)| is_sidecar(container));
    let regular = spec.containers.iter().enumerate().map(|container| ("containers", container));
    for (list, (index, container)) in regular.chain(sidecars.map(|container| ("initContainers", container))) {
        for (at, port) in container.ports.iter().flatten().enumerate() {
            let converted = host_port(port, symbols).field("hostPort").index(at).field("ports");
            found.extend(converted.index(index).field(list).field("spec")?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found.into())
}

fn host_port(port: &core::ContainerPort, symbols: &mut Symbols) -> Result<Option<HostPort>, ConvertError> {
    let number = match port.host_port {
        None | Some(0) => return Ok(None),
        Some(number) => u16::try_from(number).map_err(|_| Flaw::Port(number))?,
    };
    let text = |text: Option<&String>, otherwise, symbols: &mut Symbols| match text.map_or("", String::as_str) {
        "" => otherwise,
        text => symbols.intern(text),
    };
    Ok(Some(HostPort {
        address: text(port.host_ip.as_ref(), known::ANY_ADDRESS, symbols),
        protocol: text(port.protocol.as_ref(), known::TCP, symbols),
        port: number,
    }))
}

/// An effect by its word.
pub(super) fn taint_effect(text: &str) -> Option<TaintEffect> {
    [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute]
        .into_iter()
        .find(|effect| effect.name() == text)
}

pub(super) fn toleration(toleration: &core::Toleration, symbols: &mut Symbols) -> Toleration {
    let operator = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => TolerationOperator::Equal,
        Some("Exists") => TolerationOperator::Exists,
        Some("Lt") => TolerationOperator::Lt,
        Some("Gt") => TolerationOperator::Gt,
        Some(_) => TolerationOperator::Unknown,
    };
    let (operator, effect) = match toleration.effect.as_deref() {
        None | Some("") => (operator, None),
        Some(text) => match taint_effect(text) {
            Some(effect) => (operator, Some(effect)),
            // No taint has such an effect.
            None => (TolerationOperator::Unknown, None),
        },
    };
    let mut text = |text: Option<&String>| symbols.intern(text.map_or("", String::as_str));
    Toleration { key: text(toleration.key.as_ref()), operator, value: text(toleration.value.as_ref()), effect }
}

/// The constraints that keep a pod from nodes; soft ones are left out. `matchLabelKeys` are merged in, which does no harm
/// where the API server did so already (kube-scheduler PodTopologySpread).
pub(super) fn spread(spec: &core::PodSpec, labels: &Labels, symbols: &mut Symbols) -> Box<[SpreadConstraint]> {
    let constraints = spec.topology_spread_constraints.iter().flatten();
    let hard = constraints.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule");
    hard.map(|constraint| {
        let selector = constraint.label_selector.as_ref().map(|selector| label_selector(selector, symbols));
        let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
        SpreadConstraint {
            max_skew: constraint.max_skew,
            topology_key: symbols.intern(&constraint.topology_key),
            selector: merge_keys(selector, keys, labels, symbols, equals),
            min_domains: constraint.min_domains.unwrap_or(1),
            node_affinity_policy: inclusion(constraint.node_affinity_policy.as_deref(), NodeInclusion::Honor),
            node_taints_policy: inclusion(constraint.node_taints_policy.as_deref(), NodeInclusion::Ignore),
        }
    })
    .collect()
}

fn inclusion(policy: Option<&str>, otherwise: NodeInclusion) -> NodeInclusion {
    match policy {
        Some("Honor") => NodeInclusion::Honor,
        Some("Ignore") => NodeInclusion::Ignore,
        _ => otherwise,
    }
}

/// The selector with a requirement more for each of the keys that the pod has a label for. An absent selector stays absent:
/// it matches nothing either way.
fn merge_keys(
    selector: Option<LabelSelector>,
    keys: &[String],
    labels: &Labels,
    symbols: &mut Symbols,
    requirement: fn(Symbol, Symbol) -> Requirement,
) -> Option<LabelSelector> {
    let Some(LabelSelector::All(all)) = &selector else { return selector };
    let mut merged = all.to_vec();
    for key in keys {
        let key = symbols.intern(key);
        let wanted = labels.get(key).map(|value| requirement(key, value));
        merged.extend(wanted.filter(|wanted| !all.contains(wanted)));
    }
    Some(LabelSelector::All(merged.into()))
}

/// Whether the keys that terms of pod affinity name are merged into their selectors. The API server has done so for every
/// pod that it has; for pods that are made from a template here, nobody else does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LabelKeys {
    Merged,
    ToMerge,
}

/// Required terms of pod affinity or anti-affinity.
pub(super) fn affinity_terms(
    terms: Option<&Vec<core::PodAffinityTerm>>,
    namespace: Symbol,
    labels: &Labels,
    keys: LabelKeys,
    symbols: &mut Symbols,
) -> Box<[PodAffinityTerm]> {
    let convert = |term: &core::PodAffinityTerm| {
        let mut selector = term.label_selector.as_ref().map(|selector| label_selector(selector, symbols));
        if keys == LabelKeys::ToMerge {
            let same = term.match_label_keys.as_deref().unwrap_or_default();
            let other = term.mismatch_label_keys.as_deref().unwrap_or_default();
            selector = merge_keys(selector, same, labels, symbols, equals);
            selector = merge_keys(selector, other, labels, symbols, differs);
        }
        let mut namespaces: Vec<_> = term.namespaces.iter().flatten().map(|name| symbols.intern(name)).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace);
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        PodAffinityTerm {
            selector,
            namespaces: namespaces.into(),
            namespace_selector: term.namespace_selector.as_ref().map(|selector| label_selector(selector, symbols)),
            topology_key: symbols.intern(&term.topology_key),
        }
    };
    terms.into_iter().flatten().map(convert).collect()
}

fn differs(key: Symbol, value: Symbol) -> Requirement {
    Requirement { key, operator: Operator::NotIn([value].into()) }
}

/// Features that a node must declare to run the pod (component-helpers `nodedeclaredfeatures`, 1.37), sorted by symbol.
pub(super) fn features(spec: &core::PodSpec, symbols: &mut Symbols) -> Box<[Symbol]> {
    let containers = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let restarts_all = containers()
        .flat_map(|container| container.restart_policy_rules.iter().flatten())
        .any(|rule| rule.action == "RestartAllContainers");
    let host_network_in_user_namespace = spec.host_network == Some(true) && spec.host_users == Some(false);
    let ephemeral = spec.ephemeral_containers.iter().flatten().flat_map(|container| container.volume_mounts.iter());
    let binds_with_options = containers()
        .flat_map(|container| container.volume_mounts.iter())
        .chain(ephemeral)
        .flatten()
        .any(|mount| mount.bind_mount_options.as_ref().is_some_and(|options| !options.is_empty()));
    let mut needed: Vec<_> = [
        (restarts_all, "RestartAllContainersOnContainerExits"),
        (host_network_in_user_namespace, "UserNamespacesHostNetworkSupport"),
        (binds_with_options, "VolumeBindMountOptions"),
    ]
    .into_iter()
    .filter(|(is_needed, _)| *is_needed)
    .map(|(_, name)| symbols.intern(name))
    .collect();
    needed.sort_unstable();
    needed.into()
}
