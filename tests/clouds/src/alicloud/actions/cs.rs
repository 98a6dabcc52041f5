//! ACK node pools: a view of scaling groups with desired capacity, over a REST-like API.
//!
//! A pool is a group with the tag `ack.aliyun.com` = its cluster; the pool's identifier is `np-` and the group's.

use serde_json::{Value, json};

use super::cs_nodes;
use crate::alicloud::AliCloud;
use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::front::Front;
use crate::alicloud::wire::Incoming;
use crate::alicloud::world::{Group, State, World};
use crate::fake::Context;

const CLUSTER_TAG: &str = "ack.aliyun.com";

const fn action(name: &'static str, permission: &'static str, writes: bool) -> Action {
    const fn nothing(_: &mut Work<'_, '_>) -> Result<Value, ApiError> {
        Ok(Value::Null)
    }
    Action { name, permission, signed: true, host_is_ess: false, writes, parameters: &[], handler: nothing }
}

const LIST: Action = action("DescribeClusterNodePools", "cs:DescribeClusterNodePools", false);
const DETAIL: Action = action("DescribeClusterNodePoolDetail", "cs:DescribeClusterNodePoolDetail", false);
const MODIFY: Action = action("ModifyClusterNodePool", "cs:ModifyClusterNodePool", true);

const NODES: Action = action("DescribeClusterNodes", "cs:DescribeClusterNodes", false);
const REMOVE: Action = action("RemoveNodePoolNodes", "cs:RemoveNodePoolNodes", true);

/// Handle a request to the container service.
pub(in crate::alicloud) fn serve(
    cloud: &mut AliCloud,
    incoming: &Incoming,
    context: &mut Context<'_>,
) -> Result<Value, ApiError> {
    let path: Vec<&str> = incoming.path.trim_start_matches('/').split('/').collect();
    let (action, cluster, pool) = match (incoming.method.as_str(), path.as_slice()) {
        ("GET", ["clusters", cluster, "nodepools"]) => (&LIST, *cluster, ""),
        ("GET", ["clusters", cluster, "nodepools", pool]) => (&DETAIL, *cluster, *pool),
        ("PUT", ["clusters", cluster, "nodepools", pool]) => (&MODIFY, *cluster, *pool),
        ("GET", ["clusters", cluster, "nodes"]) => (&NODES, *cluster, ""),
        ("DELETE", ["clusters", cluster, "nodepools", pool, "nodes"]) => (&REMOVE, *cluster, *pool),
        (method, _) => {
            let text = format!("nothing is at {method} {}", incoming.path);
            return Err(ApiError::missing("InvalidAction.NotFound", text));
        }
    };
    action.name.clone_into(&mut context.call.action);
    if incoming.version() != "2015-12-15" {
        return Err(ApiError::missing("NoSuchVersion", format!("the version is {:?}", incoming.version())));
    }
    let probes = cloud.kept.world.probes.clone();
    let caller = Front { incoming, action, now: context.now, probes: &probes }.pass(&mut cloud.account)?;
    context.call.caller = caller.key;
    if action.writes {
        cloud.kept.writing(context.now);
        return match action.name {
            "RemoveNodePoolNodes" => cs_nodes::remove(&mut cloud.kept.world, incoming, cluster, pool, context),
            _ => resize(cloud, incoming, cluster, pool, context),
        };
    }
    let world = cloud.kept.seen(context.now, context.stale_for());
    if action.name == "DescribeClusterNodes" {
        return cs_nodes::list(world, incoming, cluster);
    }
    if pool.is_empty() {
        let pools = world.groups.values().filter(|group| belongs(group, cluster));
        return Ok(json!({"nodepools": pools.map(|group| show(world, group)).collect::<Vec<Value>>()}));
    }
    find(world, cluster, pool).map(|group| show(world, group))
}

pub(super) fn belongs(group: &Group, cluster: &str) -> bool {
    group.tags.get(CLUSTER_TAG).is_some_and(|owner| owner == cluster)
}

pub(super) fn find<'a>(world: &'a World, cluster: &str, pool: &str) -> Result<&'a Group, ApiError> {
    let group = pool.strip_prefix("np-").and_then(|group| world.groups.get(group));
    let missing = || ApiError::missing("ErrorNodePoolNotFound", format!("the node pool {pool} does not exist"));
    group.filter(|group| belongs(group, cluster)).ok_or_else(missing)
}

fn show(world: &World, group: &Group) -> Value {
    let count = |state: State| world.capacity(&group.id, state);
    json!({
        "nodepool_info": {"nodepool_id": format!("np-{}", group.id), "name": group.name, "region_id": world.region, "type": "ess"},
        "auto_scaling": {"enable": false, "min_instances": group.min, "max_instances": group.max},
        "scaling_group": {
            "scaling_group_id": group.id, "desired_size": group.desired, "vswitch_ids": group.vswitches,
            "instance_types": world.choices(group).map(|(_, types)| types.into_iter().map(|choice| choice.instance_type).collect::<Vec<_>>()),
        },
        "status": {
            "state": if world.busy(&group.id) { "scaling" } else { "active" },
            "total_nodes": world.total(&group.id),
            "healthy_nodes": count(State::InService),
            "serving_nodes": count(State::InService),
            "initial_nodes": count(State::Pending),
            "removing_nodes": count(State::Removing),
            "failed_nodes": 0,
            "offline_nodes": 0,
        },
    })
}

fn resize(
    cloud: &mut AliCloud,
    incoming: &Incoming,
    cluster: &str,
    pool: &str,
    context: &mut Context<'_>,
) -> Result<Value, ApiError> {
    let body: Value = serde_json::from_slice(&incoming.body).unwrap_or_default();
    let desired = body.pointer("/scaling_group/desired_size").and_then(Value::as_u64);
    let Some(desired) = desired.and_then(|desired| u32::try_from(desired).ok()) else {
        context.violation("a change of a node pool without scaling_group.desired_size");
        return Err(ApiError::bad("InvalidParameter", "scaling_group.desired_size is missing or no number"));
    };
    let world = &mut cloud.kept.world;
    let group = find(world, cluster, pool)?.clone();
    if world.busy(&group.id) && !group.parallel {
        return Err(ApiError::bad("ScalingActivityInProgress", format!("the node pool {pool} is scaling")));
    }
    if !(group.min..=group.max).contains(&desired) {
        let text = format!("desired_size {desired} is not within {} and {}", group.min, group.max);
        return Err(ApiError::bad("InvalidParameter.DesiredSize", text));
    }
    if let Some(found) = world.groups.get_mut(&group.id) {
        found.desired = Some(desired);
        found.modified = context.now;
    }
    context.changed(format!("{pool} desires {desired} instead of {:?}", group.desired));
    world.run(context);
    Ok(json!({"nodepool_id": pool, "task_id": format!("T-{}", context.chance.token(22))}))
}
