//! Node groups of a file as the snapshot of a cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::Settings;
use plimsoll_core::cloud::{
    Capabilities, CloudError, Group, GroupId, GroupOptions, Instance, InstanceState, NodeMatch, NodeTemplate,
    PriceBook, Snapshot, TemplatePrice, UnitPrice,
};
use plimsoll_core::ledger::Ledger;
use plimsoll_model::group::NodeGroup;
use plimsoll_model::time::go_duration_nanos;
use plimsoll_model::{Cluster, Template, Time};
use plimsoll_signals::state::Cloud;

/// A cloud that consists of what a file says.
pub(crate) struct FileCloud {
    pub(crate) snapshot: Snapshot,
    /// Templates as providers told them, if a running process has written them down.
    pub(crate) provided: BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>,
    pub(crate) templates: BTreeMap<GroupId, Template>,
    pub(crate) prices: Option<PriceBook>,
    pub(crate) capabilities: Capabilities,
}

/// Prices of a core and a GiB for an hour, in millionths, for what a pod would cost on a node that fits it exactly. A
/// file prices nodes only; the ratio between the two is that of the big clouds' list prices.
const CORE_MICROS_PER_HOUR: u64 = 30_000;
const GIB_MICROS_PER_HOUR: u64 = 4_000;

impl FileCloud {
    /// From the groups of a file. Nodes that a group's target promises beyond those that it lists count as on their way:
    /// the file does not say since when, so they are written into the ledger as asked for now.
    pub(crate) fn new(
        groups: Vec<NodeGroup>,
        cluster: &Cluster,
        at: Time,
        settings: &Settings,
        ledger: &mut Ledger,
    ) -> Result<Self, String> {
        let mut snapshot = Snapshot { groups: vec![], complete: true };
        let mut templates = BTreeMap::new();
        let mut prices = Vec::new();
        for group in groups {
            let nodes = group.nodes_in(cluster);
            let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
            let target = group.target_size.unwrap_or(count);
            let id = GroupId::from(group.name.as_str());
            let mut made = Group::sized(id.clone(), group.min_size, group.max_size, target);
            made.observed_at = at;
            made.options = options(&group)?;
            made.instances = nodes.iter().filter_map(|&node| instance(node, cluster)).collect();
            ledger.assume(&id, target.saturating_sub(count), target, at, settings.max_node_provision_time);
            if let Some(micros_per_hour) = group.price_micros_per_hour {
                prices.push(TemplatePrice { group: id.clone(), template_key: String::new(), micros_per_hour });
            }
            if let Some(template) = group.template {
                templates.insert(id, template);
            }
            snapshot.groups.push(made);
        }
        let unit = |name: &str, micros_per_hour| UnitPrice {
            resource_name: name.to_owned(),
            micros_per_hour,
            selector: vec![],
        };
        let prices = (!prices.is_empty()).then(|| PriceBook {
            currency: String::new(),
            valid_until: None,
            templates: prices,
            units: vec![unit("cpu", CORE_MICROS_PER_HOUR), unit("memory", GIB_MICROS_PER_HOUR)],
        });
        let (provided, capabilities) = (BTreeMap::new(), Capabilities::default());
        Ok(Self { snapshot, provided, templates, prices, capabilities })
    }

    /// The same, with what a running process knew of the clouds. A group is in one of them.
    pub(crate) fn upon(mut self, known: Cloud) -> Result<Self, String> {
        let twice =
            self.snapshot.groups.iter().find(|own| known.snapshot.groups.iter().any(|group| group.id == own.id));
        if let Some(group) = twice {
            return Err(format!(
                "node group {:?} is in the LoopState and in a NodeGroup; take one of them out",
                group.name
            ));
        }
        self.snapshot.complete &= known.snapshot.complete || known.snapshot.groups.is_empty();
        self.snapshot.groups.extend(known.snapshot.groups);
        self.provided.extend(known.templates);
        self.capabilities = known.capabilities;
        self.prices = match (self.prices, known.prices) {
            (Some(mut own), Some(book)) => {
                own.templates.extend(book.templates);
                Some(own)
            }
            (own, book) => own.or(book),
        };
        Ok(self)
    }
}

fn instance(node: usize, cluster: &Cluster) -> Option<Instance> {
    let name = cluster.text(cluster.nodes.get(node)?.name);
    Some(Instance::new(name, NodeMatch::NodeName(name.to_owned()), InstanceState::Running))
}

/// Options by the flags' names. The reader has checked names and values; what it let through that cannot be read here is
/// an error all the same.
fn options(group: &NodeGroup) -> Result<GroupOptions, String> {
    let mut options = GroupOptions { priority: group.priority, ..GroupOptions::default() };
    for (name, text) in &group.options {
        let wrong =
            || format!("node group {:?}: option {name} has the value {text:?}, which cannot be read", group.name);
        let share = || text.parse::<f64>().map(Some).map_err(|_| wrong());
        let switch = || text.parse::<bool>().map(Some).map_err(|_| wrong());
        let span = || {
            let nanos = go_duration_nanos(text).and_then(|nanos| u64::try_from(nanos).ok());
            nanos.map(|nanos| Some(Duration::from_nanos(nanos))).ok_or_else(wrong)
        };
        match name.as_str() {
            "scale-down-utilization-threshold" => options.utilization_threshold = share()?,
            "scale-down-gpu-utilization-threshold" => options.gpu_utilization_threshold = share()?,
            "scale-down-unneeded-time" => options.unneeded_time = span()?,
            "scale-down-unready-time" => options.unready_time = span()?,
            "max-node-provision-time" => options.provision_time = span()?,
            "max-node-startup-time" => options.startup_time = span()?,
            "zero-or-max-node-scaling" => options.zero_or_max = switch()?,
            "ignore-daemonsets-utilization" => options.ignore_daemon_sets_utilization = switch()?,
            _ => return Err(format!("node group {:?}: there is no option {name:?}", group.name)),
        }
    }
    Ok(options)
}
