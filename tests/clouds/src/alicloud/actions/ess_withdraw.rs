//! `RemoveInstances`, `DetachInstances`, `SetInstancesProtection`: named machines.

use serde_json::{Value, json};

use super::ess_read::GROUP_ID;
use super::ess_resize::{active, in_progress};
use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, Parameter, optional, required};
use crate::alicloud::world::{Direction, Failure, Group, Origin, State};
use crate::journal::Cause;

const INSTANCE_IDS: Parameter = required("InstanceId", Kind::List(Bound::Is(20))).newer("InstanceIds");

const fn write(
    name: &'static str,
    permission: &'static str,
    parameters: &'static [Parameter],
    handler: super::super::action::Handler,
) -> Action {
    Action { name, permission, signed: true, host_is_ess: true, writes: true, parameters, handler }
}

/// `RemoveInstances`.
pub(super) const REMOVE: Action = write(
    "RemoveInstances",
    "ess:RemoveInstances",
    &[
        GROUP_ID,
        INSTANCE_IDS,
        optional("RemovePolicy", Kind::OneOf(&["recycle", "release"])),
        optional("DecreaseDesiredCapacity", Kind::Flag),
        optional("IgnoreInvalidInstance", Kind::Flag),
        optional("StopInstanceTimeout", Kind::Number(30, Bound::Is(240))),
        optional("ClientToken", Kind::Text),
    ],
    remove,
);

/// Named machines, sorted into those that can be taken and the others.
struct Named {
    good: Vec<String>,
    bad: Vec<String>,
}

fn named(work: &mut Work<'_, '_>, group: &Group) -> Result<Named, ApiError> {
    let world = &work.cloud.kept.world;
    let mut named = Named { good: vec![], bad: vec![] };
    for id in work.parameters.list("InstanceId") {
        let takes = world.machines.get(id).is_some_and(|machine| {
            let kept = machine.state == State::Protected && !world.probes.protected_can_be_removed;
            machine.group == group.id && !machine.state.leaves() && !kept
        });
        if named.good.contains(id) || named.bad.contains(id) {
            let text = format!("{id} is named twice");
            work.context.violation(text.as_str());
            return Err(ApiError::bad("InvalidParameter.InstanceId", text));
        }
        if takes { named.good.push(id.clone()) } else { named.bad.push(id.clone()) }
    }
    let ignore = work.parameters.flag("IgnoreInvalidInstance") == Some(true);
    if let Some(bad) = named.bad.first().filter(|_| !ignore) {
        let text = format!("The instance {bad} is not in the scaling group {} or cannot be removed.", group.id);
        return Err(ApiError::missing("InvalidInstanceId.NotFound", text));
    }
    Ok(named)
}

/// Weight of these machines, if the group can do without them.
fn can_go(work: &Work<'_, '_>, group: &Group, named: &Named) -> Result<u32, ApiError> {
    let world = &work.cloud.kept.world;
    let weight = named.good.iter().filter_map(|id| world.machines.get(id)).map(|machine| world.weight(machine)).sum();
    let total = world.total(&group.id);
    if weight > 0 && total < group.min.saturating_add(weight) {
        let text =
            format!("{} would have {} instances, MinSize is {}", group.id, total.saturating_sub(weight), group.min);
        return Err(ApiError::bad("IncorrectCapacity.MinSize", text));
    }
    Ok(weight)
}

fn ready(work: &Work<'_, '_>) -> Result<Group, ApiError> {
    let group = active(work)?;
    let world = &work.cloud.kept.world;
    let may_overlap = group.parallel || (group.desired.is_some() && world.probes.remove_during_activity);
    if world.busy(&group.id) && !may_overlap { Err(in_progress(&group.id)) } else { Ok(group) }
}

fn lower_desired(work: &mut Work<'_, '_>, group: &Group, by: u32) {
    if work.parameters.flag("DecreaseDesiredCapacity") == Some(false) {
        return;
    }
    if let Some(found) = work.cloud.kept.world.groups.get_mut(&group.id) {
        found.desired = found.desired.map(|desired| desired.saturating_sub(by).max(found.min));
    }
}

fn remove(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let group = ready(work)?;
    let named = named(work, &group)?;
    let weight = can_go(work, &group, &named)?;
    lower_desired(work, &group, weight);
    let recycle = work.parameters.text("RemovePolicy") == Some("recycle");
    work.context.changed(format!("{} loses {}", group.id, named.good.join(", ")));
    let origin = Origin::request("A user requests to remove instances.", None);
    let world = &mut work.cloud.kept.world;
    let id = world.scale_in(&group.id, &named.good, recycle, Cause::Asked, origin, work.context);
    if let Some(bad) = named.bad.first()
        && let Some(activity) = world.activities.iter_mut().find(|activity| activity.id == id)
    {
        let text = format!("{bad} and {} others are not in the group", named.bad.len() - 1);
        activity.failure = Some(Failure::new("InvalidInstanceId.NotFound", text));
        if activity.status == crate::alicloud::world::Status::Successful {
            activity.status = crate::alicloud::world::Status::Warning;
        }
    }
    Ok(json!({"ScalingActivityId": id}))
}

/// `DetachInstances`.
pub(super) const DETACH: Action = write(
    "DetachInstances",
    "ess:DetachInstances",
    &[
        GROUP_ID,
        INSTANCE_IDS,
        optional("DetachOption", Kind::OneOf(&["Both"])),
        optional("DecreaseDesiredCapacity", Kind::Flag),
        optional("IgnoreInvalidInstance", Kind::Flag),
        optional("ClientToken", Kind::Text),
    ],
    detach,
);

fn detach(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let group = ready(work)?;
    let named = named(work, &group)?;
    let weight = can_go(work, &group, &named)?;
    lower_desired(work, &group, weight);
    work.context.changed(format!("{} gives away {}", group.id, named.good.join(", ")));
    let world = &mut work.cloud.kept.world;
    for id in &named.good {
        world.detach(id, Cause::Asked, work.context);
    }
    let origin = Origin::request("A user requests to detach instances.", None);
    let id = world.scale_in(&group.id, &[], false, Cause::Asked, origin, work.context);
    if let Some(activity) = world.activities.iter_mut().find(|activity| activity.id == id) {
        activity.direction = Direction::In;
        activity.members = named.good;
    }
    Ok(json!({"ScalingActivityId": id}))
}

/// `SetInstancesProtection`.
pub(super) const PROTECT: Action = write(
    "SetInstancesProtection",
    "ess:SetInstancesProtection",
    &[GROUP_ID, INSTANCE_IDS, required("ProtectedFromScaleIn", Kind::Flag)],
    protect,
);

fn protect(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let group = active(work)?;
    let named = named(work, &group)?;
    let on = work.parameters.flag("ProtectedFromScaleIn") == Some(true);
    for id in &named.good {
        if let Some(machine) = work.cloud.kept.world.machines.get_mut(id) {
            machine.state = match (on, machine.state) {
                (true, State::InService) => State::Protected,
                (false, State::Protected) => State::InService,
                (_, state) => state,
            };
        }
    }
    work.context.changed(format!("{}: protection of {} is {on}", group.id, named.good.join(", ")));
    Ok(json!({}))
}
