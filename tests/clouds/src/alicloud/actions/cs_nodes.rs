//! Nodes of ACK node pools: their list, and the removal of named ones.

use serde_json::{Value, json};

use super::cs::{belongs, find};
use crate::alicloud::error::ApiError;
use crate::alicloud::wire::Incoming;
use crate::alicloud::world::{Machine, Origin, State, World};
use crate::clock::UnixMs;
use crate::fake::Context;
use crate::journal::Cause;

/// Most nodes on a page.
const LONGEST_PAGE: usize = 100;
/// Nodes on a page, unless another number is asked for.
const PAGE: usize = 10;
/// How far the service's clock on the wall is ahead.
const EAST: std::time::Duration = std::time::Duration::from_secs(8 * 3600);

fn number(incoming: &Incoming, name: &str, unsaid: usize) -> Result<usize, ApiError> {
    let Some(text) = incoming.parameter(name) else { return Ok(unsaid) };
    let bad = || ApiError::bad("InvalidParameter", format!("{name} is {text:?}, expected a number from 1"));
    text.parse().ok().filter(|number| *number > 0).ok_or_else(bad)
}

/// `DescribeClusterNodes`.
pub(super) fn list(world: &World, incoming: &Incoming, cluster: &str) -> Result<Value, ApiError> {
    let (page, size) = (number(incoming, "pageNumber", 1)?, number(incoming, "pageSize", PAGE)?);
    if size > LONGEST_PAGE {
        return Err(ApiError::bad("InvalidParameter", format!("pageSize is {size}, at most {LONGEST_PAGE}")));
    }
    let only = incoming.parameter("nodepool_id").filter(|pool| !pool.is_empty());
    let only = only.map(|pool| find(world, cluster, pool)).transpose()?;
    let of_cluster = |machine: &&Machine| match only {
        Some(group) => machine.group == group.id,
        None => world.groups.get(&machine.group).is_some_and(|group| belongs(group, cluster)),
    };
    let nodes: Vec<Value> = world.machines.values().filter(of_cluster).map(|machine| show(world, machine)).collect();
    let total = nodes.len();
    let nodes: Vec<Value> = nodes.into_iter().skip((page - 1).saturating_mul(size)).take(size).collect();
    Ok(json!({"nodes": nodes, "page": {"page_number": page, "page_size": size, "total_count": total}}))
}

fn show(world: &World, machine: &Machine) -> Value {
    let state = match machine.state {
        state if state.comes() => "initial",
        state if state.leaves() => "removing",
        State::Stopped => "stopped",
        _ => "running",
    };
    json!({
        "instance_id": machine.id,
        "node_name": format!("{}.{}", world.region, machine.ip),
        "nodepool_id": format!("np-{}", machine.group),
        "state": state,
        "node_status": if state == "running" { "Ready" } else { "Unknown" },
        "error_message": "",
        "instance_type": machine.instance_type,
        "instance_charge_type": if machine.prepaid { "PrePaid" } else { "PostPaid" },
        "spot_strategy": if machine.spot { "SpotAsPriceGo" } else { "NoSpot" },
        "creation_time": eastern(machine.created),
        "source": "ess",
        "is_aliyun_node": true,
    })
}

/// `2024-06-01T16:30:00+08:00`.
fn eastern(moment: UnixMs) -> String {
    (moment + EAST).seconds().replace('Z', "+08:00")
}

/// `RemoveNodePoolNodes`: these and no others, and the pool's wish falls with them.
pub(super) fn remove(
    world: &mut World,
    incoming: &Incoming,
    cluster: &str,
    pool: &str,
    context: &mut Context<'_>,
) -> Result<Value, ApiError> {
    let group = find(world, cluster, pool)?.clone();
    if incoming.parameter("release_node") != Some("true") {
        context.violation("nodes are taken out of a pool and their machines stay, to be paid for");
    }
    let ids: Option<Vec<String>> = incoming.parameter("instance_ids").and_then(|text| serde_json::from_str(text).ok());
    let Some(ids) = ids.filter(|ids| !ids.is_empty()) else {
        return Err(ApiError::bad("InvalidParameter", "instance_ids is not a JSON list of machines"));
    };
    if world.busy(&group.id) && !group.parallel {
        return Err(ApiError::bad("ScalingActivityInProgress", format!("the node pool {pool} is scaling")));
    }
    let goes = |id: &String| {
        world.machines.get(id).is_some_and(|machine| machine.group == group.id && !machine.state.leaves())
    };
    if let Some(bad) = ids.iter().find(|id| !goes(id)) {
        return Err(ApiError::missing("ErrorNodeNotFound", format!("{bad} is no node of the pool {pool}")));
    }
    let fewer = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    if world.total(&group.id) < group.min.saturating_add(fewer) {
        let text = format!("the node pool {pool} keeps at least {} nodes", group.min);
        return Err(ApiError::bad("IncorrectCapacity.MinSize", text));
    }
    if let Some(found) = world.groups.get_mut(&group.id) {
        found.desired = found.desired.map(|desired| desired.saturating_sub(fewer).max(found.min));
    }
    context.changed(format!("{pool} loses {}", ids.join(", ")));
    let origin = Origin::request("A user requests to remove nodes from the node pool.", None);
    world.scale_in(&group.id, &ids, false, Cause::Asked, origin, context);
    world.run(context);
    Ok(json!({"task_id": format!("T-{}", context.chance.token(22))}))
}
