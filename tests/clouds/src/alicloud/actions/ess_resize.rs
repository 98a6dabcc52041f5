//! `ScaleWithAdjustment` and `ModifyScalingGroup`: other sizes.

use serde_json::{Value, json};

use super::ess_read::GROUP_ID;
use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, optional, required};
use crate::alicloud::world::{Group, GroupState, Origin};
use crate::journal::Cause;

/// `ScaleWithAdjustment`.
pub(super) const SCALE: Action = Action {
    name: "ScaleWithAdjustment",
    permission: "ess:ScaleWithAdjustment",
    signed: true,
    host_is_ess: true,
    writes: true,
    parameters: &[
        GROUP_ID,
        required(
            "AdjustmentType",
            Kind::OneOf(&["QuantityChangeInCapacity", "PercentChangeInCapacity", "TotalCapacity"]),
        ),
        required("AdjustmentValue", Kind::Number(-1000, Bound::Is(10_000))),
        optional("MinAdjustmentMagnitude", Kind::Number(1, Bound::Is(1000))),
        optional("SyncActivity", Kind::Flag),
        optional("ParallelTask", Kind::Flag),
        optional("ActivityMetadata", Kind::Text),
        optional("ExecutionMode", Kind::OneOf(&["None", "PlanOnly"])),
        optional("ClientToken", Kind::Text),
    ],
    handler: scale,
};

/// A group as a write needs it: switched on.
pub(super) fn active(work: &Work<'_, '_>) -> Result<Group, ApiError> {
    let world = &work.cloud.kept.world;
    let id = work.group_id(world)?;
    let group = world.groups.get(&id).cloned().unwrap_or_default();
    if group.state != GroupState::Active || group.suspended {
        let text = format!("The current status of the scaling group {id} does not support this action.");
        return Err(ApiError::bad("IncorrectScalingGroupStatus", text));
    }
    token_length(work)?;
    Ok(group)
}

fn token_length(work: &Work<'_, '_>) -> Result<(), ApiError> {
    match work.parameters.text("ClientToken") {
        Some(token) if token.len() > 64 || !token.is_ascii() => {
            Err(ApiError::bad("InvalidParameter.ClientToken", "a client token has at most 64 ASCII characters"))
        }
        _ => Ok(()),
    }
}

/// Another activity runs.
pub(super) fn in_progress(id: &str) -> ApiError {
    ApiError::bad(
        "ScalingActivityInProgress",
        format!("You cannot do this while a scaling activity of {id} is in progress."),
    )
}

/// Size that is asked for, before bounds.
fn asked(work: &Work<'_, '_>, base: i64) -> Result<i64, ApiError> {
    let value = work.parameters.number("AdjustmentValue").unwrap_or_default();
    let (least, most) = match work.parameters.text("AdjustmentType") {
        Some("TotalCapacity") => (0, 2000),
        Some("PercentChangeInCapacity") => (-100, 10_000),
        _ => (-1000, 1000),
    };
    if !(least..=most).contains(&value) {
        let text = format!("AdjustmentValue is {value}, expected a number from {least} to {most}");
        return Err(ApiError::bad("InvalidParameter.AdjustmentValue", text));
    }
    Ok(match work.parameters.text("AdjustmentType") {
        Some("TotalCapacity") => value,
        Some("PercentChangeInCapacity") => {
            let change = base * value / 100;
            let least = work.parameters.number("MinAdjustmentMagnitude").unwrap_or(0);
            base + if change.abs() < least { least * value.signum() } else { change }
        }
        _ => base + value,
    })
}

fn scale(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let group = active(work)?;
    let world = &work.cloud.kept.world;
    let sync = work.parameters.flag("SyncActivity");
    if sync == Some(true) && group.desired.is_none() {
        work.context.violation("SyncActivity for a group without desired capacity, where it means nothing");
    }
    let only_wish = group.desired.is_some() && sync != Some(true);
    let may_overlap = group.parallel || (only_wish && world.probes.capacity_change_during_activity);
    if world.busy(&group.id) && !may_overlap {
        return Err(in_progress(&group.id));
    }
    let have = world.total(&group.id) + world.coming(&group.id);
    let base = group.desired.unwrap_or(have);
    let goal = asked(work, i64::from(base))?;
    let goal = within(&group, goal, work.cloud.kept.world.probes.beyond_bounds_is_refused)?;
    if goal == base {
        return Err(ApiError::bad("IncorrectCapacity.NoChange", "To adjust capacity, the capacity must change."));
    }
    if work.parameters.text("ExecutionMode") == Some("PlanOnly") {
        return Ok(plan(work, &group, goal.saturating_sub(base)));
    }
    order(work, &group, base, goal, only_wish, have)
}

/// Cut a size to the group's bounds, or refuse it.
fn within(group: &Group, goal: i64, refuse: bool) -> Result<u32, ApiError> {
    let (min, max) = (i64::from(group.min), i64::from(group.max));
    match goal {
        goal if refuse && goal > max => {
            Err(ApiError::bad("IncorrectCapacity.MaxSize", format!("the capacity would be {goal}, MaxSize is {max}")))
        }
        goal if refuse && goal < min => {
            Err(ApiError::bad("IncorrectCapacity.MinSize", format!("the capacity would be {goal}, MinSize is {min}")))
        }
        goal => Ok(u32::try_from(goal.clamp(min, max)).unwrap_or_default()),
    }
}

fn plan(work: &Work<'_, '_>, group: &Group, wanted: u32) -> Value {
    let amounts = work.cloud.kept.world.plan(&group.id, wanted);
    let amount = |(zone, kind, amount): &(String, String, u32)| json!({"Amount": amount, "InstanceChargeType": "PostPaid", "InstanceType": kind, "SpotStrategy": "NoSpot", "ZoneId": zone});
    let amounts: Vec<Value> = amounts.iter().map(amount).collect();
    json!({"PlanResult": {"ResourceAllocations": amounts}})
}

fn order(
    work: &mut Work<'_, '_>,
    group: &Group,
    base: u32,
    goal: u32,
    only_wish: bool,
    have: u32,
) -> Result<Value, ApiError> {
    let relative = work.parameters.text("AdjustmentType") != Some("TotalCapacity");
    let now = work.context.now;
    let world = &mut work.cloud.kept.world;
    let moves = world.probes.quantity_moves_desired || !relative;
    if group.desired.is_some() && (moves || only_wish) {
        if let Some(found) = world.groups.get_mut(&group.id) {
            found.desired = Some(goal);
            found.modified = now;
        }
        work.context.changed(format!("{} desires {goal} instead of {base}", group.id));
    }
    if only_wish {
        return Ok(json!({"ScalingActivityId": "", "ActivityType": "CapacityChange"}));
    }
    // What is there may differ from the wish; the activity closes the gap to the new wish.
    let (from, to) = if group.desired.is_some() && moves { (have, goal) } else { (base, goal) };
    let cause = format!(
        "A user requests to execute scaling activity, changing the total capacity from \"{from}\" to \"{to}\"."
    );
    let origin = Origin::request(&cause, work.parameters.text("ActivityMetadata"));
    let (kind, activity) = if to > from {
        work.context.changed(format!("{} gets {} more", group.id, to - from));
        ("ScaleOut", world.scale_out(&group.id, to - from, origin, work.context))
    } else if to < from {
        let victims = world.victims(&group.id, from - to);
        work.context.changed(format!("{} loses {} of the cloud's choice", group.id, victims.len()));
        ("ScaleIn", world.scale_in(&group.id, &victims, group.recycles, Cause::Chosen, origin, work.context))
    } else {
        return Ok(json!({"ScalingActivityId": "", "ActivityType": "CapacityChange"}));
    };
    Ok(json!({"ScalingActivityId": activity, "ActivityType": kind}))
}

/// `ModifyScalingGroup`, as far as sizes go.
pub(super) const MODIFY: Action = Action {
    name: "ModifyScalingGroup",
    permission: "ess:ModifyScalingGroup",
    signed: true,
    host_is_ess: true,
    writes: true,
    parameters: &[
        GROUP_ID,
        optional("DesiredCapacity", Kind::Number(0, Bound::Is(2000))),
        optional("MinSize", Kind::Number(0, Bound::Is(2000))),
        optional("MaxSize", Kind::Number(0, Bound::Is(2000))),
    ],
    handler: modify,
};

fn modify(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let world = &work.cloud.kept.world;
    let id = work.group_id(world)?;
    let group = world.groups.get(&id).cloned().unwrap_or_default();
    if group.state == GroupState::Deleting {
        return Err(ApiError::bad("IncorrectScalingGroupStatus", format!("the scaling group {id} is being deleted")));
    }
    let number = |name: &str| work.parameters.number(name).and_then(|number| u32::try_from(number).ok());
    let (min, max) = (number("MinSize").unwrap_or(group.min), number("MaxSize").unwrap_or(group.max));
    let desired = number("DesiredCapacity");
    if min > max {
        return Err(ApiError::bad("InvalidParameter.Conflict", format!("MinSize {min} is above MaxSize {max}")));
    }
    if desired.is_some() && group.desired.is_none() {
        let text = format!("the scaling group {id} has no desired capacity");
        return Err(ApiError::bad("UnsupportedOperation", text));
    }
    if let Some(desired) = desired.filter(|desired| !(min..=max).contains(desired)) {
        let text = format!("DesiredCapacity {desired} is not within MinSize {min} and MaxSize {max}");
        return Err(ApiError::bad("InvalidParameter.Conflict", text));
    }
    let now = work.context.now;
    if let Some(found) = work.cloud.kept.world.groups.get_mut(&id) {
        (found.min, found.max) = (min, max);
        found.desired = desired.or(found.desired);
        found.modified = now;
    }
    work.context.changed(format!("{id} has bounds {min} and {max} and desires {:?}", desired.or(group.desired)));
    Ok(json!({}))
}
