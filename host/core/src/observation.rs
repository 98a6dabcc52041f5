//! Everything that one loop sees, at one time: the cluster and the cloud, joined.

use std::collections::BTreeMap;

use plimsoll_model::{Cluster, Node, Symbol, Template, Time};
use rustc_hash::FxHashMap;

use crate::cloud::{self, CloudError, GroupId, InstanceState, NodeMatch, PriceBook};
use crate::ledger::GroupReading;
use crate::plan::Warning;
use crate::readiness::{Readiness, State};
use crate::settings::Settings;
use crate::templates::{self, TemplateProblem};
use crate::utilization::Accelerators;

/// Index of a node in the cluster.
pub type NodeIndex = usize;
/// Index of a group in the observation.
pub type GroupIndex = usize;

/// What is known of the cloud when a loop begins.
#[derive(Clone, Copy, Debug)]
pub struct CloudView<'a> {
    /// The provider's last good snapshot.
    pub snapshot: &'a cloud::Snapshot,
    /// What the provider can do.
    pub capabilities: &'a cloud::Capabilities,
    /// The provider's templates by group.
    pub templates: &'a BTreeMap<GroupId, Result<Vec<cloud::NodeTemplate>, CloudError>>,
    /// Templates that were made elsewhere and take precedence, such as those of a file.
    pub fixed_templates: &'a BTreeMap<GroupId, Template>,
    /// Prices, if the provider knows any.
    pub prices: Option<&'a PriceBook>,
}

/// The part of an observation that adds names and pod specs to the cluster. It is made first; then the cluster can be
/// read, shared or copied while the loop runs.
#[derive(Clone, Debug)]
pub struct Prepared {
    at: Time,
    readiness: Vec<State>,
    membership: Vec<Option<Membership>>,
    /// In the order of group ids.
    groups: Vec<(Vec<NodeIndex>, Result<Template, TemplateProblem>)>,
    warnings: Vec<Warning>,
}

/// Joins cluster and cloud, and makes each group's template.
///
/// `remembered` are templates of groups that had a good node in an earlier loop; those of this loop are added to it.
pub fn prepare(
    at: Time,
    cluster: &mut Cluster,
    cloud: CloudView<'_>,
    settings: &Settings,
    remembered: &mut BTreeMap<GroupId, Template>,
) -> Prepared {
    let readiness = Readiness::new(cluster, settings);
    let readiness: Vec<State> = cluster.nodes.iter().map(|node| readiness.of(node)).collect();
    let order = in_order(cloud.snapshot);
    let (membership, nodes) = join(cluster, &order);
    let staying = templates::Staying::default();
    let sources = templates::Sources {
        at,
        provided: cloud.templates,
        fixed: cloud.fixed_templates,
        readiness: &readiness,
        staying: &staying,
    };
    let mut warnings = Vec::new();
    let template = |(group, nodes): (&cloud::Group, Vec<NodeIndex>)| {
        warnings.extend(templates::broken_promise(group, &nodes, &sources, cluster, settings));
        let template = templates::of_group(group, &nodes, &sources, cluster, settings, remembered);
        (nodes, template)
    };
    let groups = order.into_iter().zip(nodes).map(template).collect();
    Prepared { at, readiness, membership, groups, warnings }
}

fn in_order(snapshot: &cloud::Snapshot) -> Vec<&cloud::Group> {
    let mut order: Vec<&cloud::Group> = snapshot.groups.iter().collect();
    order.sort_by(|a, b| a.id.cmp(&b.id));
    order
}

/// A group with its nodes and template.
#[derive(Clone, Debug)]
pub struct GroupView<'a> {
    /// What the provider says.
    pub cloud: &'a cloud::Group,
    /// Its nodes.
    pub nodes: Vec<NodeIndex>,
    /// The node that it would create next.
    pub template: Result<Template, TemplateProblem>,
    /// Price of that node, in millionths per hour.
    pub price_micros_per_hour: Option<u64>,
    /// Nodes that are registered but not ready yet, within the time that they may take.
    pub starting: Vec<NodeIndex>,
}

/// Where a node belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The group.
    pub group: GroupIndex,
    /// The machine, as index into the group's instances.
    pub instance: usize,
}

/// Everything that one loop sees.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// Now.
    pub at: Time,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The groups, sorted by id.
    pub groups: Vec<GroupView<'a>>,
    /// By node index: where the node belongs; none: no group has it.
    pub membership: Vec<Option<Membership>>,
    /// By node index: readiness.
    pub readiness: Vec<State>,
    /// Nodes by name.
    pub node_by_name: FxHashMap<Symbol, NodeIndex>,
    /// How accelerators are recognised.
    pub accelerators: Accelerators,
    /// What is known of the provider.
    pub capabilities: &'a cloud::Capabilities,
    /// Prices.
    pub prices: Option<&'a PriceBook>,
    /// What is odd about what was seen.
    pub warnings: Vec<Warning>,
    /// Nodes whose machine registered as another node too.
    pub twins: FxHashMap<NodeIndex, NodeIndex>,
}

impl<'a> Observation<'a> {
    /// From what [`prepare`] found, over the same cluster (or a copy made after it) and the same cloud.
    pub fn new(prepared: Prepared, cluster: &'a Cluster, cloud: CloudView<'a>, settings: &Settings) -> Self {
        let Prepared { at, readiness, membership, groups: prepared, warnings } = prepared;
        let mut groups = Vec::with_capacity(prepared.len());
        for (group, (nodes, template)) in in_order(cloud.snapshot).into_iter().zip(prepared) {
            let startup = group.options.startup_time.unwrap_or(settings.max_node_startup_time);
            let is_starting = |&&index: &&NodeIndex| {
                let ready = readiness.get(index).is_none_or(|state| state.ready);
                let made = cluster.nodes.get(index).and_then(|node| node.created_at);
                !ready && made.is_some_and(|made| made + startup > at)
            };
            let starting = nodes.iter().filter(is_starting).copied().collect();
            let price_micros_per_hour = price(group, cloud, at);
            groups.push(GroupView { cloud: group, nodes, template, price_micros_per_hour, starting });
        }
        let node_by_name = cluster.nodes.iter().enumerate().map(|(index, node)| (node.name, index)).collect();
        let accelerators = Accelerators::new(cluster, cloud.capabilities.accelerator_label.as_deref());
        Observation {
            at,
            cluster,
            groups,
            membership,
            readiness,
            node_by_name,
            accelerators,
            capabilities: cloud.capabilities,
            prices: cloud.prices.filter(|book| is_valid(book, at)),
            warnings,
            twins: twins(cluster),
        }
    }

    /// The group of a node.
    pub fn group_of(&self, node: NodeIndex) -> Option<&GroupView<'a>> {
        let membership = (*self.membership.get(node)?)?;
        self.groups.get(membership.group)
    }

    /// What this observation says to the ledger about a group.
    pub fn reading(&self, group: &GroupView<'a>) -> GroupReading<'a> {
        let registered = group.nodes.iter().filter_map(|&node| {
            let membership = (*self.membership.get(node)?)?;
            group.cloud.instances.get(membership.instance).map(|instance| instance.id.clone())
        });
        let failed = group.cloud.instances.iter().filter_map(|instance| {
            let hopeless = matches!(instance.state, InstanceState::Failed | InstanceState::Creating);
            let error = instance.error.clone().filter(|_| hopeless)?;
            Some((instance.id.clone(), error))
        });
        let failures = group.cloud.failures.iter().map(|f| (f.id.clone(), f.missing, f.error.clone()));
        GroupReading {
            group: &group.cloud.id,
            target_size: group.cloud.target_size,
            observed_at: group.cloud.observed_at,
            registered: registered.collect(),
            failed: failed.collect(),
            failures: failures.collect(),
        }
    }
}

/// Nodes of one machine. Whoever deletes it for the sake of one deletes the others with it.
fn twins(cluster: &Cluster) -> FxHashMap<NodeIndex, NodeIndex> {
    let mut first: FxHashMap<&str, NodeIndex> = FxHashMap::default();
    let mut twins = FxHashMap::default();
    for (index, node) in cluster.nodes.iter().enumerate().filter(|(_, node)| !node.provider_id.is_empty()) {
        let other = *first.entry(&node.provider_id).or_insert(index);
        if other != index {
            twins.insert(index, other);
            twins.insert(other, index);
        }
    }
    twins
}

fn is_valid(book: &PriceBook, at: Time) -> bool {
    book.valid_until.is_none_or(|until| until >= at)
}

/// Price of the node that a group would create: of its very template, else of any of the group.
fn price(group: &cloud::Group, cloud: CloudView<'_>, at: Time) -> Option<u64> {
    let book = cloud.prices.filter(|book| is_valid(book, at))?;
    let template = cloud.templates.get(&group.id).and_then(|templates| templates.as_ref().ok()?.first());
    let mine = || book.templates.iter().filter(|price| price.group == group.id);
    let exact = mine().find(|price| template.is_some_and(|template| template.key == price.template_key));
    exact.or_else(|| mine().next()).map(|price| price.micros_per_hour)
}

/// Which node is which machine. A node that two machines claim goes to the first.
fn join(cluster: &Cluster, groups: &[&cloud::Group]) -> (Vec<Option<Membership>>, Vec<Vec<NodeIndex>>) {
    let mut by_provider_id: FxHashMap<&str, NodeIndex> = FxHashMap::default();
    let mut by_ip: FxHashMap<&str, NodeIndex> = FxHashMap::default();
    let mut by_name: FxHashMap<Symbol, NodeIndex> = FxHashMap::default();
    for (index, node) in cluster.nodes.iter().enumerate() {
        if !node.provider_id.is_empty() {
            by_provider_id.entry(&node.provider_id).or_insert(index);
        }
        if let Some(ip) = &node.internal_ip {
            by_ip.entry(ip).or_insert(index);
        }
        by_name.entry(node.name).or_insert(index);
    }
    let by_label = |key: &str, value: &str| {
        let (key, value) = (cluster.symbols.find(key)?, cluster.symbols.find(value)?);
        cluster.nodes.iter().position(|node: &Node| node.labels.get(key) == Some(value))
    };
    let find = |wanted: &NodeMatch| match wanted {
        NodeMatch::ProviderId(id) => by_provider_id.get(id.as_str()).copied(),
        NodeMatch::NodeName(name) => cluster.symbols.find(name).and_then(|name| by_name.get(&name).copied()),
        NodeMatch::InternalIp(ip) => by_ip.get(ip.as_str()).copied(),
        NodeMatch::Label(key, value) => by_label(key, value),
    };
    let mut membership = vec![None; cluster.nodes.len()];
    let mut nodes = Vec::with_capacity(groups.len());
    for (group, cloud) in groups.iter().enumerate() {
        let mut own = Vec::new();
        for (instance, machine) in cloud.instances.iter().enumerate() {
            let Some(node) = machine.matches.iter().find_map(find) else { continue };
            if let Some(slot @ None) = membership.get_mut(node) {
                *slot = Some(Membership { group, instance });
                own.push(node);
            }
        }
        nodes.push(own);
    }
    (membership, nodes)
}
