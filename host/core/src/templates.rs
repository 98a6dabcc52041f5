//! The node that each group would create next (the peer's rules).
//!
//! From a good node of the group, else from one that it had earlier, else from the provider, else from a bad node. A
//! template that a file gives takes precedence over all of these.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::convert::{ConvertError, TaintParts, TemplateParts};
use plimsoll_model::devices::{Reach, ResourceSlice};
use plimsoll_model::pod::OwnerKind;
use plimsoll_model::symbol::known;
use plimsoll_model::template::TemplatePod;
use plimsoll_model::workload::DaemonSet;
use plimsoll_model::{Cluster, Node, Symbol, Taint, Template, Time};
use plimsoll_scheduling::{Gates, runs_daemon_pod};
use rustc_hash::FxHashMap;

use crate::cloud::{self, CloudError, ErrorClass, GroupId};
use crate::drift;
use crate::observation::NodeIndex;
use crate::plan::Warning;
use crate::readiness::{State, is_startup_taint};
use crate::settings::Settings;

/// Why nobody knows what a group would create.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateProblem {
    /// It has no node, and the provider says nothing.
    #[error("it has no node, and the provider gives no template")]
    Unknown,
    /// The provider failed to tell.
    #[error("the provider gives no template: {0}")]
    Provider(CloudError),
    /// The provider's template cannot be read.
    #[error("the provider's template cannot be used: {0}")]
    Unusable(String),
}

/// Where templates come from, apart from the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) at: Time,
    pub(crate) provided: &'a BTreeMap<GroupId, Result<Vec<cloud::NodeTemplate>, CloudError>>,
    pub(crate) fixed: &'a BTreeMap<GroupId, Template>,
    pub(crate) readiness: &'a [State],
    pub(crate) staying: &'a Staying,
}

/// Pods that come with a node by the node's name, found once for all groups: mirror pods and those of DaemonSets.
#[derive(Debug, Default)]
pub(crate) struct Staying(OnceCell<FxHashMap<Symbol, Vec<usize>>>);

impl Staying {
    fn on<'c>(&self, name: Symbol, cluster: &'c Cluster) -> impl Iterator<Item = &'c plimsoll_model::Pod> {
        let by_node = self.0.get_or_init(|| {
            let mut by_node: FxHashMap<Symbol, Vec<usize>> = FxHashMap::default();
            for (index, pod) in cluster.pods.iter().enumerate() {
                let comes_with_nodes = pod.drain.mirror || pod.is_daemon_set_pod();
                if let Some(node) =
                    pod.node.filter(|_| comes_with_nodes && pod.deletion.is_none() && !pod.is_terminal())
                {
                    by_node.entry(node).or_default().push(index);
                }
            }
            by_node
        });
        by_node.get(&name).into_iter().flatten().filter_map(|&index| cluster.pods.get(index))
    }
}

/// A node must have been ready this long before others are modelled on it.
const SETTLED: Duration = Duration::from_secs(60);

/// The template of one group. A good node's template is remembered for the time when the group is empty.
pub(crate) fn of_group(
    group: &cloud::Group,
    nodes: &[NodeIndex],
    sources: &Sources<'_>,
    cluster: &mut Cluster,
    settings: &Settings,
    remembered: &mut BTreeMap<GroupId, Template>,
) -> Result<Template, TemplateProblem> {
    if let Some(template) = sources.fixed.get(&group.id) {
        let mut template = template.clone();
        template.node = with_deprecated_labels(sanitized(&template.node, &group.id, cluster, settings), cluster);
        let missing = daemon_set_pods(&template.node, &template.pods, cluster, |_| true);
        template.pods.extend(missing);
        return Ok(template);
    }
    let good = nodes.iter().copied().find(|&index| is_good(index, sources, cluster));
    if let Some(template) = good.and_then(|index| from_node(index, &group.id, sources, cluster, settings)) {
        remembered.insert(group.id.clone(), template.clone());
        return Ok(template);
    }
    if let Some(template) = remembered.get(&group.id) {
        return Ok(template.clone());
    }
    let problem = match provided(&group.id, sources, cluster, settings) {
        Ok(node) => {
            let node = with_deprecated_labels(node, cluster);
            let pods = daemon_set_pods(&node, &[], cluster, |_| true);
            return Ok(Template { pods, ..Template::of(node) });
        }
        Err(problem) => problem,
    };
    let bad = nodes.first().and_then(|&index| from_node(index, &group.id, sources, cluster, settings));
    bad.ok_or(problem)
}

/// What is wrong with what a file or the provider says of a group's next node, whether or not anybody needs it now: it
/// cannot be used, or the newest good node of the group is another.
pub(crate) fn broken_promise(
    group: &cloud::Group,
    nodes: &[NodeIndex],
    sources: &Sources<'_>,
    cluster: &mut Cluster,
    settings: &Settings,
) -> Option<Warning> {
    let promised = match sources.fixed.get(&group.id) {
        Some(template) => sanitized(&template.node, &group.id, cluster, settings),
        None => match provided(&group.id, sources, cluster, settings) {
            Ok(node) => node,
            Err(TemplateProblem::Unknown) => return None,
            // Providers need not give any.
            Err(TemplateProblem::Provider(error)) if error.class == ErrorClass::Unsupported => return None,
            Err(problem) => return Some(Warning::Template { group: group.id.clone(), problem }),
        },
    };
    let good = nodes.iter().copied().filter(|&index| is_good(index, sources, cluster));
    let newest =
        good.max_by_key(|&index| (cluster.nodes.get(index).and_then(|node| node.created_at), Reverse(index)))?;
    let came = cluster.nodes.get(newest)?.clone();
    let node = cluster.text(came.name).to_owned();
    let came = sanitized(&came, &group.id, cluster, settings);
    let differences = drift::between(&promised, &came, cluster);
    (!differences.is_empty()).then(|| Warning::Drift { group: group.id.clone(), node, differences })
}

/// Whether a node is one to model others on.
fn is_good(index: NodeIndex, sources: &Sources<'_>, cluster: &Cluster) -> bool {
    let settled = sources
        .readiness
        .get(index)
        .is_some_and(|state| state.ready && state.since.is_none_or(|since| sources.at.since(since) > SETTLED));
    let node = cluster.nodes.get(index);
    settled && node.is_some_and(|node| !node.unschedulable && node.taint(known::TO_BE_DELETED).is_none())
}

fn from_node(
    index: NodeIndex,
    group: &GroupId,
    sources: &Sources<'_>,
    cluster: &mut Cluster,
    settings: &Settings,
) -> Option<Template> {
    let name = cluster.nodes.get(index)?.name;
    let model = cluster.nodes.get(index)?.clone();
    let node = sanitized(&model, group, cluster, settings);
    let mut pods = Vec::new();
    let mut present = Vec::new();
    for pod in sources.staying.on(name, cluster) {
        let daemon_set = pod.is_daemon_set_pod();
        if let Some(owner) = pod.owner.filter(|owner| owner.kind == OwnerKind::DaemonSet) {
            present.push((cluster.specs[pod.spec].namespace, owner.name));
        }
        // Pods with claims of their own get others on every node.
        let spec = if cluster.specs[pod.held].claims.is_empty() { pod.held } else { pod.spec };
        let owner = pod.owner.filter(|owner| owner.kind == OwnerKind::DaemonSet).map(|owner| owner.name);
        pods.push(TemplatePod { name: cluster.pod_name(pod).into(), spec, daemon_set, owner });
    }
    let missing: Vec<TemplatePod> = daemon_set_pods(&node, &[], cluster, |daemon_set| {
        let wanted = settings.force_ds || daemon_set.node_critical;
        wanted && !present.contains(&(daemon_set.namespace, daemon_set.name))
    });
    pods.extend(missing);
    let on_the_node = |slice: &&Arc<ResourceSlice>| slice.nodes == Reach::Node(name);
    let slices = cluster.devices.slices.iter().filter(on_the_node).cloned().collect();
    Some(Template { node, pods, slices })
}

/// A node as the provider describes it, with the labels that every node has.
///
/// # Errors
///
/// If an amount or a taint's effect cannot be read.
pub fn fresh_node(provided: &cloud::NodeTemplate, name: &str, cluster: &mut Cluster) -> Result<Node, ConvertError> {
    let mut labels = provided.labels.clone();
    for (key, value) in [
        ("kubernetes.io/arch", provided.arch.as_str()),
        ("kubernetes.io/os", &provided.os),
        ("node.kubernetes.io/instance-type", &provided.instance_type),
        ("topology.kubernetes.io/region", &provided.region),
        ("topology.kubernetes.io/zone", provided.zone.as_deref().unwrap_or("")),
    ] {
        if !value.is_empty() && !labels.iter().any(|(present, _)| present == key) {
            labels.push((key.to_owned(), value.to_owned()));
        }
    }
    let taint = |taint: &'_ cloud::TaintText| (taint.key.clone(), taint.value.clone(), taint.effect.name());
    let taints: Vec<(String, String, &str)> = provided.taints.iter().map(taint).collect();
    let taints: Vec<TaintParts<'_>> =
        taints.iter().map(|(key, value, effect)| TaintParts { key, value, effect }).collect();
    let (capacity, allocatable) = (&provided.capacity, &provided.allocatable);
    let parts = TemplateParts { name, labels: &labels, taints: &taints, capacity, allocatable };
    cluster.converter().template_node(&parts)
}

/// The node that the provider says the group would create.
fn provided(
    group: &GroupId,
    sources: &Sources<'_>,
    cluster: &mut Cluster,
    settings: &Settings,
) -> Result<Node, TemplateProblem> {
    let templates = sources.provided.get(group).ok_or(TemplateProblem::Unknown)?;
    let templates = templates.as_ref().map_err(|error| TemplateProblem::Provider(error.clone()))?;
    let template = templates.first().ok_or(TemplateProblem::Unknown)?;
    let node = fresh_node(template, group.as_str(), cluster);
    let node = node.map_err(|error| TemplateProblem::Unusable(error.to_string()))?;
    Ok(sanitized(&node, group, cluster, settings))
}

/// A node as its successors will be: without what belongs to this one machine or to the moment.
fn sanitized(model: &Node, group: &GroupId, cluster: &mut Cluster, settings: &Settings) -> Node {
    let name = cluster.symbols.intern(&format!("template-node-for-{group}"));
    let passing = |taint: &&Taint| {
        let key = cluster.symbols.text(taint.key);
        !(taint.key == known::TO_BE_DELETED
            || taint.key == known::DELETION_CANDIDATE
            || CONDITION_TAINTS.contains(&key)
            || is_startup_taint(key, settings)
            || key.starts_with(STATUS_TAINT_PREFIX)
            || settings.status_taints.iter().any(|status| status == key))
    };
    Node {
        name,
        uid: Box::default(),
        labels: model.labels.with(known::HOSTNAME, name).with(known::TEMPLATE_NODE, known::TRUE),
        taints: model.taints.iter().filter(passing).copied().collect(),
        unschedulable: model.unschedulable && !settings.scale_from_unschedulable,
        provider_id: Box::default(),
        internal_ip: None,
        created_at: None,
        conditions: Box::default(),
        ..model.clone()
    }
}

/// Labels that pods may still select by, with those that replaced them. Nodes carry both; what a cloud says of a node to
/// come may have the new ones only.
const DEPRECATED_LABELS: &[(&str, &str)] = &[
    (INSTANCE_TYPE_BEFORE, "node.kubernetes.io/instance-type"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];
/// The one of them that tells groups apart.
pub(crate) const INSTANCE_TYPE_BEFORE: &str = "beta.kubernetes.io/instance-type";

fn with_deprecated_labels(mut node: Node, cluster: &mut Cluster) -> Node {
    for (before, now) in DEPRECATED_LABELS {
        let (before, now) = (cluster.symbols.intern(before), cluster.symbols.intern(now));
        if let (None, Some(value)) = (node.labels.get(before), node.labels.get(now)) {
            node.labels = node.labels.with(before, value);
        }
    }
    node
}

/// Taints that tell of a passing condition of one node.
const CONDITION_TAINTS: &[&str] = &[
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination",
    "NodeWithImpairedVolumes",
];
const STATUS_TAINT_PREFIX: &str = "status-taint.cluster-autoscaler.kubernetes.io/";

/// Pods of the DaemonSets that would run on a node and are wanted.
fn daemon_set_pods(
    node: &Node,
    present: &[TemplatePod],
    cluster: &Cluster,
    wanted: impl Fn(&DaemonSet) -> bool,
) -> Vec<TemplatePod> {
    let runs = |daemon_set: &&DaemonSet| {
        wanted(daemon_set) && runs_daemon_pod(cluster, Gates::default(), daemon_set.spec, node)
    };
    let pod = |daemon_set: &DaemonSet| TemplatePod {
        name: format!("{}/{}", cluster.text(daemon_set.namespace), cluster.text(daemon_set.name)).into(),
        spec: daemon_set.spec,
        daemon_set: true,
        owner: Some(daemon_set.name),
    };
    let namespace = |pod: &TemplatePod| cluster.specs[pod.spec].namespace;
    let known = |pod: &TemplatePod| {
        let same = |other: &TemplatePod| {
            other.spec == pod.spec || (other.owner == pod.owner && namespace(other) == namespace(pod))
        };
        present.iter().any(same)
    };
    cluster.daemon_sets.iter().filter(runs).map(pod).filter(|pod| !known(pod)).collect()
}
