//! Changes of a pool. ACK takes an absolute size and knows no token, so the size is read in the same call, and nothing is
//! sent unless it is the expected one.

use std::collections::BTreeMap;

use plimsoll_guest::http::{Method, Transport};
use plimsoll_guest::{
    Deadline, Decrease, Delete, DeleteOutcome, DeleteResult, Increase, InstanceState, PluginError, SizeOutcome,
};
use serde_json::json;

use super::pools::{self, Pool, PoolNode};
use crate::api::{Api, Call, Lenient, Product};
use crate::ids;
use crate::spec::GroupSpec;

fn expected<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    group: &str,
    target: u32,
    deadline: Deadline,
) -> Result<(Pool, u32), PluginError> {
    let pool = pools::one(api, cluster, group, deadline)?;
    let Some(desired) = pool.desired else {
        let message = format!("node pool {group} has no desired size; switch it on for the pool in ACK");
        return Err(PluginError::config(message).with_code("no-desired-size").for_group(group));
    };
    if pool.scales_itself {
        let message = format!("node pool {group} is scaled by ACK itself; switch auto scaling off for the pool");
        return Err(PluginError::config(message).with_code("scales-itself").for_group(group));
    }
    if desired != target {
        return Err(PluginError::stale_target(group, target, desired));
    }
    Ok((pool, desired))
}

fn resize(cluster: &str, group: &str, size: u32) -> Call {
    Call::write(Product::Cs, "ModifyClusterNodePool")
        .at(Method::Put, format!("/clusters/{cluster}/nodepools/{group}"))
        .about(group)
        .json(&json!({"scaling_group": {"desired_size": size}}))
}

/// Raises the desired size.
///
/// # Errors
/// Nothing was accepted.
pub(crate) fn increase<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    spec: &GroupSpec,
    call: &Increase,
) -> Result<SizeOutcome, PluginError> {
    let deadline = call.options.deadline();
    if call.atomic {
        return Err(PluginError::unsupported("an atomic increase").for_group(&call.group));
    }
    let (_, desired) = expected(api, cluster, &call.group, call.expected_target, deadline)?;
    let size = desired.saturating_add(call.delta);
    if size > spec.max {
        let message =
            format!("size increase is too large - desired:{size} max:{} (node pool {})", spec.max, call.group);
        return Err(PluginError::quota(message).with_code("above-maximum").for_group(&call.group));
    }
    let mut outcome = SizeOutcome::accepted(call.delta, size);
    if !call.options.dry_run && call.delta > 0 {
        let answer = api.ask(&resize(cluster, &call.group, size), deadline)?;
        outcome.activity = Some(answer.text("task_id")).filter(|id| !id.is_empty());
    }
    Ok(outcome)
}

/// Lowers the desired size as far as no node has to go.
///
/// # Errors
/// Class `conflict` if a node would have to go, or if ACK is at work.
pub(crate) fn decrease<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    call: &Decrease,
) -> Result<SizeOutcome, PluginError> {
    let deadline = call.options.deadline();
    // Nodes first, the pool's state after them: work that begins in between is seen.
    let nodes = pools::nodes(api, cluster, &call.group, deadline)?;
    let (pool, desired) = expected(api, cluster, &call.group, call.expected_target, deadline)?;
    let conflict =
        |code: &str, message: String| Err(PluginError::conflict(message).with_code(code).for_group(&call.group));
    let live = u32::try_from(nodes.iter().filter(|node| node.counts()).count()).unwrap_or(u32::MAX).max(pool.total);
    let size = desired.saturating_sub(call.delta);
    if call.delta > desired || size < live {
        return conflict(
            "below-existing",
            format!("node pool {} has {live} nodes, more than the wished {size}", call.group),
        );
    }
    if pool.is_busy() {
        return conflict(
            "ScalingActivityInProgress",
            format!("node pool {} is being scaled; try again when that has ended", call.group),
        );
    }
    if !call.options.dry_run {
        api.ask(&resize(cluster, &call.group, size), deadline)?;
    }
    Ok(SizeOutcome::accepted(call.delta, size))
}

/// Removes nodes and releases their machines.
///
/// # Errors
/// Nothing was tried.
pub(crate) fn delete<T: Transport>(
    api: &mut Api<T>,
    cluster: &str,
    spec: &GroupSpec,
    call: &Delete,
) -> Result<DeleteOutcome, PluginError> {
    let deadline = call.options.deadline();
    let pool = pools::one(api, cluster, &call.group, deadline)?;
    let nodes = pools::nodes(api, cluster, &call.group, deadline)?;
    let nodes: BTreeMap<&str, &PoolNode> = nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let target = pool.desired.unwrap_or(pool.total);
    let mut room = target.saturating_sub(call.min_size.max(spec.min));
    let (mut going, mut results) = (vec![], vec![]);
    for id in &call.ids {
        let node = ids::instance_of(id, api.region()).and_then(|id| nodes.get(id.as_str()).copied());
        let failed = |code: &str, why: String| {
            DeleteResult::failed(id, PluginError::conflict(why).with_code(code).for_instance(id))
        };
        results.push(match node {
            None => DeleteResult::already_gone(id),
            Some(node) if node.state == InstanceState::Deleting => DeleteResult::accepted(id),
            Some(node) => match node.held() {
                Some(why) => failed("not-deletable", format!("{id} stays: {why}")),
                None if room == 0 => failed("below-minimum", "the group would fall below its least size".to_owned()),
                None => {
                    room -= 1;
                    going.push(node);
                    DeleteResult::accepted(id)
                }
            },
        });
    }
    let mut outcome =
        DeleteOutcome::new(target.saturating_sub(u32::try_from(going.len()).unwrap_or(u32::MAX)), results);
    if !going.is_empty() && !call.options.dry_run {
        let instances: Vec<&str> = going.iter().map(|node| node.id.as_str()).collect();
        let names: Vec<&str> = going.iter().map(|node| node.node_name()).filter(|name| !name.is_empty()).collect();
        let request = Call::write(Product::Cs, "RemoveNodePoolNodes")
            .at(Method::Delete, format!("/clusters/{cluster}/nodepools/{}/nodes", call.group))
            .about(&call.group)
            .with("release_node", "true")
            .with("drain_node", "false")
            .with("instance_ids", json!(instances))
            .with("nodes", if names.len() == instances.len() { json!(names).to_string() } else { String::new() });
        match api.ask(&request, deadline) {
            Ok(answer) => outcome.activity = Some(answer.text("task_id")).filter(|id| !id.is_empty()),
            Err(error) => refuse(&mut outcome, &going, target, api.region(), &error),
        }
    }
    Ok(outcome)
}

/// The one request failed for all of its nodes.
fn refuse(outcome: &mut DeleteOutcome, going: &[&PoolNode], target: u32, region: &str, error: &PluginError) {
    outcome.target_size = target;
    for result in &mut outcome.results {
        let tried = ids::instance_of(&result.id, region).is_some_and(|id| going.iter().any(|node| node.id == id));
        if tried {
            *result = DeleteResult::failed(&result.id, error.clone().for_instance(&result.id));
        }
    }
}
