//! Machines go by name, twenty at a time, and each gets its own answer.

use std::collections::BTreeMap;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, Delete, DeleteOutcome, DeleteResult, DeleteStatus, PluginError};

use crate::api::{Api, Call, Lenient, Product};
use crate::fingerprint::client_token;
use crate::groups::ScalingGroup;
use crate::increase::{check_status, measure};
use crate::instances::{self, Listing, Member, State};
use crate::memory::Memory;
use crate::spec::GroupSpec;
use crate::{charge, ids};

/// Most machines in one request.
pub(crate) const BATCH: usize = 20;

/// Deletes machines. A stale target is no obstacle: the least size is checked against what is read now, and the wish is
/// lowered by a difference.
///
/// # Errors
/// Nothing was tried.
pub(crate) fn delete<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    spec: &GroupSpec,
    call: &Delete,
) -> Result<DeleteOutcome, PluginError> {
    let deadline = call.options.deadline();
    let (group, sizes) = measure(api, &call.group, deadline)?;
    check_status(&group, false)?;
    let region = api.region().to_owned();
    let asked: Vec<(&String, Option<String>)> = call.ids.iter().map(|id| (id, ids::instance_of(id, &region))).collect();
    let mut known: Vec<String> = asked.iter().filter_map(|(_, id)| id.clone()).collect();
    known.sort_unstable();
    known.dedup();
    let members = instances::by_ids(api, &call.group, &known, deadline)?;
    let listing = Listing { members, complete: true };
    // Without an answer such machines are kept.
    let _ = charge::read(api, memory, std::iter::once(&listing), deadline);
    let members: BTreeMap<&str, &Member> = listing.members.iter().map(|member| (member.id.as_str(), member)).collect();

    let mut statuses: BTreeMap<String, DeleteStatus> = BTreeMap::new();
    let mut going = vec![];
    let room = room(&group, sizes.target, call.min_size.max(spec.min).max(sizes.least));
    for id in &known {
        match judge(memory, &call.group, id, members.get(id.as_str()).copied()) {
            Verdict::Told(status) => {
                statuses.insert(id.clone(), status);
            }
            Verdict::Goes if going.len() >= room => {
                let message =
                    format!("the group would fall below its least size with {} machines fewer", going.len() + 1);
                let error = PluginError::conflict(message).with_code("below-minimum").for_instance(id);
                statuses.insert(id.clone(), DeleteStatus::Failed(error));
            }
            Verdict::Goes => going.push(id.clone()),
        }
    }
    let (accepted, activity) = remove(api, call, &going, &mut statuses, deadline);
    let result = |(id, instance): (&String, Option<String>)| {
        let status = instance.and_then(|instance| statuses.get(&instance).cloned());
        let foreign = || DeleteStatus::Failed(foreign(id, &call.group));
        DeleteResult { id: id.clone(), status: status.unwrap_or_else(foreign) }
    };
    let results = asked.into_iter().map(result).collect();
    Ok(DeleteOutcome { activity, ..DeleteOutcome::new(sizes.target.saturating_sub(accepted), results) })
}

/// How many machines may go: by the target, and by what ESS counts itself.
fn room(group: &ScalingGroup, target: u32, least: u32) -> usize {
    let by_target = target.saturating_sub(least);
    let by_ess = match group.total_capacity {
        Some(total) if !group.weighted => total.saturating_sub(group.min),
        _ => by_target,
    };
    by_target.min(by_ess) as usize
}

enum Verdict {
    Goes,
    Told(DeleteStatus),
}

fn judge(memory: &Memory, group: &str, id: &str, member: Option<&Member>) -> Verdict {
    let Some(member) = member else {
        let elsewhere = memory.groups.iter().find(|(other, known)| {
            other.as_str() != group && known.told.instances.iter().any(|instance| instance.id == id)
        });
        return Verdict::Told(match elsewhere {
            Some(_) => DeleteStatus::Failed(foreign(id, group)),
            None => DeleteStatus::AlreadyGone,
        });
    };
    let prepaid = memory.prepaid.get(id).map(|(prepaid, _)| *prepaid);
    match (member.state, member.held(prepaid)) {
        // It will go, and its place in the target went before.
        (State::Going, _) => Verdict::Told(DeleteStatus::Accepted),
        (_, Some(why)) => {
            let message = format!("{id} stays: {why}");
            Verdict::Told(DeleteStatus::Failed(
                PluginError::config(message).with_code("not-deletable").for_instance(id),
            ))
        }
        (_, None) => Verdict::Goes,
    }
}

fn foreign(id: &str, group: &str) -> PluginError {
    PluginError::config(format!("{id} belongs to a different asg than {group}"))
        .with_code("other-group")
        .for_instance(id)
}

/// Sends the batches until one fails. Returns how many machines were accepted, and the last activity.
fn remove<T: Transport>(
    api: &mut Api<T>,
    call: &Delete,
    going: &[String],
    statuses: &mut BTreeMap<String, DeleteStatus>,
    deadline: Deadline,
) -> (u32, Option<String>) {
    let mut accepted = 0;
    let mut activity = None;
    let mut refused: Option<PluginError> = None;
    for batch in going.chunks(BATCH) {
        let answer = match &refused {
            Some(_) => None,
            None if call.options.dry_run => Some(Ok(serde_json::Value::Null)),
            None => Some(api.ask(&request(call, batch), deadline)),
        };
        let mut status = |status: &dyn Fn(&String) -> DeleteStatus| {
            statuses.extend(batch.iter().map(|id| (id.clone(), status(id))));
        };
        match answer {
            Some(Ok(value)) => {
                accepted += u32::try_from(batch.len()).unwrap_or(u32::MAX);
                activity = Some(value.text("ScalingActivityId")).filter(|id| !id.is_empty()).or(activity);
                status(&|_| DeleteStatus::Accepted);
            }
            Some(Err(error)) => {
                status(&|id| DeleteStatus::Failed(error.clone().for_instance(id)));
                refused = Some(error);
            }
            None => {
                let why = refused.as_ref().map(PluginError::summary).unwrap_or_default();
                status(&|_| DeleteStatus::Skipped(format!("an earlier batch of the same call failed: {why}")));
            }
        }
    }
    (accepted, activity)
}

fn request(call: &Delete, batch: &[String]) -> Call {
    let ids: Vec<&str> = batch.iter().map(String::as_str).collect();
    let token = client_token(&call.options.idempotency_key, &[&[call.group.as_str()], ids.as_slice()].concat());
    Call::write(Product::Ess, "RemoveInstances")
        .group(&call.group)
        .each("InstanceId", batch)
        .with("RemovePolicy", "release")
        .with("DecreaseDesiredCapacity", "true")
        .with("IgnoreInvalidInstance", "true")
        .with("ClientToken", token)
}
