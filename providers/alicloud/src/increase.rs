//! More machines: a difference, sent once.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, Increase, PluginError, SizeOutcome};

use crate::api::{Api, Call, Lenient, Product};
use crate::capacity::{self, Sizes};
use crate::fingerprint::client_token;
use crate::groups::{self, Lifecycle, ScalingGroup};
use crate::memory::{Change, Memory};
use crate::spec::GroupSpec;
use crate::{activities, instances};

/// A group with its sizes, read now.
///
/// # Errors
/// It could not be read: nothing may be computed from an older reading.
pub(crate) fn measure<T: Transport>(
    api: &mut Api<T>,
    id: &str,
    deadline: Deadline,
) -> Result<(ScalingGroup, Sizes), PluginError> {
    let group = groups::one(api, id, deadline)?;
    let members = if group.weighted { listed(api, id, deadline)? } else { vec![] };
    let sizes = capacity::sizes(&group, &members);
    Ok((group, sizes))
}

/// All machines of a group, read now.
///
/// # Errors
/// They could not all be read.
pub(crate) fn listed<T: Transport>(
    api: &mut Api<T>,
    id: &str,
    deadline: Deadline,
) -> Result<Vec<instances::Member>, PluginError> {
    let listing = instances::list(api, &[id], deadline).pop();
    match listing {
        Some(Ok(listing)) if listing.complete => Ok(listing.members),
        Some(Err(error)) => Err(error),
        _ => Err(PluginError::conflict(format!(
            "the machines of scaling group {id} change while they are listed; read again"
        ))
        .with_code("incomplete-listing")
        .for_group(id)),
    }
}

/// Refuses what ESS would refuse, with clearer words.
///
/// # Errors
/// Class `config` or `not-found`.
pub(crate) fn check_status(group: &ScalingGroup, growing: bool) -> Result<(), PluginError> {
    let refused = |error: PluginError, code: &str| Err(error.with_code(code).for_group(&group.id));
    let id = &group.id;
    match group.lifecycle {
        Lifecycle::Inactive => refused(
            PluginError::config(format!("scaling group {id} is not enabled; enable it in ESS")),
            "IncorrectScalingGroupStatus",
        ),
        Lifecycle::Deleting => refused(
            PluginError::not_found(format!("scaling group {id} is being deleted")),
            "IncorrectScalingGroupStatus",
        ),
        Lifecycle::Active if growing && group.scale_out_suspended() => {
            let message = format!("scale-out of scaling group {id} is suspended; resume it in ESS");
            refused(PluginError::config(message), "suspended")
        }
        Lifecycle::Active => Ok(()),
    }
}

/// Asks for machines.
///
/// # Errors
/// Nothing was accepted.
pub(crate) fn increase<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    spec: &GroupSpec,
    call: &Increase,
) -> Result<SizeOutcome, PluginError> {
    let deadline = call.options.deadline();
    if call.atomic {
        return Err(PluginError::unsupported("an atomic increase").for_group(&call.group));
    }
    let (group, sizes) = measure(api, &call.group, deadline)?;
    check_status(&group, true)?;
    if sizes.target != call.expected_target {
        return done_before(api, call, sizes.target, deadline);
    }
    if call.delta == 0 {
        return Ok(SizeOutcome::accepted(0, sizes.target));
    }
    let target = sizes.target.saturating_add(call.delta);
    let max = spec.max.min(sizes.greatest);
    if target > max {
        let message = format!("size increase is too large - desired:{target} max:{max} (scaling group {})", call.group);
        return Err(PluginError::quota(message).with_code("above-maximum").for_group(&call.group));
    }
    if call.options.dry_run {
        return Ok(SizeOutcome { confirmed: false, ..SizeOutcome::accepted(call.delta, target) });
    }
    send(api, memory, call, &group, sizes, deadline)
}

/// The target is not what the host believes. It may be our own doing: an answer that was lost.
fn done_before<T: Transport>(
    api: &mut Api<T>,
    call: &Increase,
    target: u32,
    deadline: Deadline,
) -> Result<SizeOutcome, PluginError> {
    let stale = || PluginError::stale_target(&call.group, call.expected_target, target);
    let deeds = activities::of(api, &call.group, deadline).map_err(|_| stale())?;
    let deed =
        deeds.into_iter().find(|deed| deed.key.as_deref() == Some(&call.options.idempotency_key)).ok_or_else(stale)?;
    Ok(SizeOutcome { activity: Some(deed.id), ..SizeOutcome::accepted(call.delta, target) })
}

fn send<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    call: &Increase,
    group: &ScalingGroup,
    sizes: Sizes,
    deadline: Deadline,
) -> Result<SizeOutcome, PluginError> {
    let units = call.delta.saturating_mul(sizes.unit);
    let request = Call::write(Product::Ess, "ScaleWithAdjustment")
        .group(&call.group)
        .with("AdjustmentType", "QuantityChangeInCapacity")
        .with("AdjustmentValue", units)
        // Only a group with a stored wish knows the difference between the wish and its fulfilment.
        .with("SyncActivity", if group.desired.is_some() { "true" } else { "" })
        .with("ActivityMetadata", activities::metadata(&call.options.idempotency_key))
        .with("ClientToken", client_token(&call.options.idempotency_key, &[&call.group]));
    let target = sizes.target.saturating_add(call.delta);
    match api.ask(&request, deadline) {
        Ok(answer) => {
            let activity = answer.text("ScalingActivityId");
            let started = !activity.is_empty() && answer.text("ActivityType") != "CapacityChange";
            let at_ms = api.now_ms();
            let remembered = if started { activity.clone() } else { String::new() };
            memory.changes.add(Change { group: call.group.clone(), at_ms, machines: call.delta, activity: remembered });
            let activity = Some(activity).filter(|id| !id.is_empty());
            raise_wish(api, group, units, deadline)?;
            Ok(SizeOutcome { activity, confirmed: started, ..SizeOutcome::accepted(call.delta, target) })
        }
        Err(error) => recover(api, memory, call, error, target, deadline),
    }
}

/// Whether a difference moves the stored wish is not promised. Where it did not, ESS would take the new machines for too
/// many; so the wish is set to what it should be. If the reading is an old one, that changes nothing.
fn raise_wish<T: Transport>(
    api: &mut Api<T>,
    before: &ScalingGroup,
    units: u32,
    deadline: Deadline,
) -> Result<(), PluginError> {
    let Some(desired) = before.desired else { return Ok(()) };
    // The growth was accepted and is under way, whatever becomes of this.
    let accepted = |error: PluginError| error.with_unknown_outcome();
    let now = groups::one(api, &before.id, deadline).map_err(accepted)?;
    if now.desired != Some(desired) {
        return Ok(());
    }
    let wish = Call::write(Product::Ess, "ModifyScalingGroup")
        .group(&before.id)
        .with("DesiredCapacity", desired.saturating_add(units));
    api.ask(&wish, deadline).map_err(accepted).map(drop)
}

/// Some refusals mean that all is well, or look otherwise in the light of a fresh reading.
fn recover<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    call: &Increase,
    error: PluginError,
    target: u32,
    deadline: Deadline,
) -> Result<SizeOutcome, PluginError> {
    if error.outcome_unknown {
        // It may have been done: its activities are worth reading.
        let (group, at_ms) = (call.group.clone(), api.now_ms());
        memory.changes.add(Change { group, at_ms, machines: call.delta, activity: "unknown".to_owned() });
    }
    match error.code.as_str() {
        "IncorrectCapacity.NoChange" => match measure(api, &call.group, deadline) {
            Ok((_, sizes)) if sizes.target == target => Ok(SizeOutcome::accepted(call.delta, target)),
            _ => Err(error),
        },
        "IncorrectScalingGroupStatus" => match groups::one(api, &call.group, deadline) {
            Ok(group) => Err(check_status(&group, true).err().unwrap_or(error)),
            Err(_) => Err(error),
        },
        _ => Err(error),
    }
}
