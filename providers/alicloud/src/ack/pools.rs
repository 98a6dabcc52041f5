//! Pools and their nodes as ACK tells them.

use plimsoll_guest::http::{Method, Transport};
use plimsoll_guest::{Deadline, Deletability, GroupStatus, Instance, InstanceState, PluginError};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, Pages, Product};
use crate::fingerprint::Fingerprint;
use crate::groups::ScalingGroup;
use crate::template::Source;
use crate::{ids, time};

/// Nodes on one page.
const PAGE_SIZE: u32 = 50;
const TAG_PREFIX: &str = "k8s.io/cluster-autoscaler/node-template/";

/// A node pool.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pool {
    pub(crate) id: String,
    pub(crate) name: String,
    state: String,
    /// The wish, if the pool has one.
    pub(crate) desired: Option<u32>,
    /// Nodes that there are, those that failed included.
    pub(crate) total: u32,
    /// Whether ACK scales it by itself.
    pub(crate) scales_itself: bool,
    /// Its id, tags and vSwitches in the form that templates are made from.
    pub(crate) group: ScalingGroup,
    pub(crate) source: Source,
}

impl Pool {
    fn read(value: &Value) -> Option<Self> {
        let null = Value::Null;
        let part = |name: &str| value.get(name).unwrap_or(&null);
        let (info, scaling, status) = (part("nodepool_info"), part("scaling_group"), part("status"));
        let id = Some(info.text("nodepool_id")).filter(|id| !id.is_empty())?;
        let group = ScalingGroup {
            id: id.clone(),
            vswitches: scaling.texts("vswitch_ids", "vswitch_id"),
            tags: Some(node_tags(part("kubernetes_config"))),
            ..ScalingGroup::default()
        };
        let tag = |tag: &Value| (tag.text("key"), tag.text("value"));
        let source = Source {
            types: scaling.texts("instance_types", "instance_type"),
            shape: None,
            system_disk_gib: scaling.count("system_disk_size").unwrap_or(0),
            system_disk_category: scaling.text("system_disk_category"),
            data_disks_gib: scaling
                .list("data_disks", "data_disk")
                .iter()
                .filter_map(|disk| disk.count("size"))
                .collect(),
            tags: scaling.list("tags", "tag").iter().map(tag).collect(),
            spot: !matches!(scaling.text("spot_strategy").as_str(), "" | "NoSpot"),
        };
        Some(Self {
            name: Some(info.text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
            state: status.text("state"),
            desired: scaling.count("desired_size"),
            total: status.count("total_nodes").unwrap_or(0),
            scales_itself: part("auto_scaling").truth("enable").unwrap_or(false),
            group,
            source,
            id,
        })
    }

    /// Whether it takes orders.
    pub(crate) fn status(&self) -> GroupStatus {
        if self.state == "deleting" { GroupStatus::Deleting } else { GroupStatus::Active }
    }

    /// Whether ACK is at work on it.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state.as_str(), "scaling" | "removing" | "updating" | "initial")
    }

    /// Name of what templates are made of.
    pub(crate) fn source_fingerprint(&self) -> Fingerprint {
        let source = &self.source;
        let print = source.types.iter().fold(self.group.template_fingerprint(), |print, kind| print.with(kind));
        let disks = source.data_disks_gib.iter().fold(print, |print, size| print.with_number((*size).into()));
        let print = disks.with_number(source.system_disk_gib.into()).with_number(source.spot.into());
        source.tags.iter().fold(print, |print, (key, value)| print.with(key).with(value))
    }
}

/// Labels and taints of the pool, as the tags that say the same.
fn node_tags(config: &Value) -> Vec<(String, String)> {
    let label = |one: &Value| (format!("{TAG_PREFIX}label/{}", one.text("key")), one.text("value"));
    let taint = |one: &Value| {
        let effect = format!("{}:{}", one.text("value"), one.text("effect"));
        (format!("{TAG_PREFIX}taint/{}", one.text("key")), effect)
    };
    let labels = config.list("labels", "label").iter().map(label);
    labels.chain(config.list("taints", "taint").iter().map(taint)).collect()
}

fn path(cluster: &str, rest: &str) -> String {
    format!("/clusters/{cluster}{rest}")
}

/// Asks for all pools.
pub(crate) fn question(cluster: &str) -> Call {
    Call::read(Product::Cs, "DescribeClusterNodePools").at(Method::Get, path(cluster, "/nodepools"))
}

/// All pools.
///
/// # Errors
/// They cannot be read.
pub(super) fn list<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    deadline: Deadline,
) -> Result<Vec<Pool>, PluginError> {
    let call = question(cluster);
    let answer = api.ask(&call, deadline)?;
    let list = entries(&answer, "nodepools").ok_or_else(|| call.incomplete("list of node pools"))?;
    Ok(list.iter().filter_map(Pool::read).collect())
}

/// A list of an answer, which may be `null` where it is empty; none if there is no list at all.
fn entries<'a>(answer: &'a Value, name: &str) -> Option<&'a [Value]> {
    match answer.get(name)? {
        Value::Null => Some(&[]),
        list => list.as_array().map(Vec::as_slice),
    }
}

/// One pool, now.
///
/// # Errors
/// It cannot be read, or does not exist.
pub(super) fn one<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    id: &str,
    deadline: Deadline,
) -> Result<Pool, PluginError> {
    let pool = list(api, cluster, deadline)?.into_iter().find(|pool| pool.id == id);
    pool.ok_or_else(|| {
        PluginError::not_found(format!("node pool {id} does not exist in cluster {cluster}"))
            .with_code("ErrorNodePoolNotFound")
            .for_group(id)
    })
}

/// A node of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PoolNode {
    pub(crate) id: String,
    node_name: String,
    pub(crate) state: InstanceState,
    trouble: String,
    created_ms: Option<u64>,
    instance_type: String,
    spot: bool,
    prepaid: bool,
}

impl PoolNode {
    fn read(value: &Value) -> Option<Self> {
        let id = Some(value.text("instance_id")).filter(|id| !id.is_empty())?;
        let trouble = value.text("error_message");
        let state = match value.text("state").to_ascii_lowercase().as_str() {
            "pending" | "initial" | "starting" | "creating" => InstanceState::Creating,
            "running" | "serving" => InstanceState::Running,
            "removing" | "stopping" | "stopped" | "deleting" => InstanceState::Deleting,
            "failed" => InstanceState::Failed,
            _ => InstanceState::Unknown,
        };
        Some(Self {
            node_name: value.text("node_name"),
            state,
            trouble,
            created_ms: time::parse_ms(&value.text("creation_time")),
            instance_type: value.text("instance_type"),
            spot: !matches!(value.text("spot_strategy").as_str(), "" | "NoSpot"),
            prepaid: value.text("instance_charge_type").eq_ignore_ascii_case("PrePaid"),
            id,
        })
    }

    /// Whether it is part of the pool's size.
    pub(crate) fn counts(&self) -> bool {
        self.state != InstanceState::Deleting
    }

    /// Why ACK would not release it; none if it would.
    pub(crate) fn held(&self) -> Option<&'static str> {
        self.prepaid.then_some("it is a subscription (prepaid), which is never released")
    }

    /// The contract's record.
    pub(crate) fn instance<T: Transport>(&self, api: &Api<T>) -> Instance {
        let code = self.trouble.split([':', ' ', ',']).next().unwrap_or_default();
        let error = (self.state == InstanceState::Failed || !self.trouble.is_empty())
            .then(|| api.failure(code, &self.trouble, "").for_instance(&self.id));
        Instance {
            matches: ids::matches(api.region(), &self.id),
            error,
            created_at: self.created_ms,
            instance_type: Some(self.instance_type.clone()).filter(|kind| !kind.is_empty()),
            spot: self.spot,
            deletable: self.held().map_or(Deletability::Yes, |why| Deletability::No(why.to_owned())),
            ..Instance::new(self.id.clone(), self.state)
        }
    }

    /// Its name in the cluster, for the call that removes it.
    pub(crate) fn node_name(&self) -> &str {
        &self.node_name
    }
}

/// All nodes of a pool.
///
/// # Errors
/// They cannot all be read.
pub(super) fn nodes<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    pool: &str,
    deadline: Deadline,
) -> Result<Vec<PoolNode>, PluginError> {
    let question = |page: u32| {
        Call::read(Product::Cs, "DescribeClusterNodes")
            .at(Method::Get, path(cluster, "/nodes"))
            .about(pool)
            .with("nodepool_id", pool)
            .with("pageNumber", page)
            .with("pageSize", PAGE_SIZE)
    };
    let mut pages = Pages::new();
    let mut next = Some(1);
    while let Some(number) = next {
        let call = question(number);
        let answer = api.ask(&call, deadline)?;
        let list = entries(&answer, "nodes").ok_or_else(|| call.incomplete("list of nodes"))?;
        let found = list.iter().filter_map(PoolNode::read);
        let total = answer.get("page").and_then(|page| page.count("total_count"));
        pages.add(total, found.map(|node| (node.id.clone(), node)));
        next = pages.missing().next();
    }
    Ok(pages.into_entries())
}
