//! Reading groups, instances, configurations and activities.

use serde_json::Value;

use super::page::page;
use super::show;
use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, Parameter, optional, required};
use crate::alicloud::world::{Group, World};

const PAGE_NUMBER: Parameter = optional("PageNumber", Kind::Number(1, Bound::Is(i64::MAX)));
const PAGE_SIZE: Parameter = optional("PageSize", Kind::Number(1, Bound::Is(50)));

const fn read(
    name: &'static str,
    permission: &'static str,
    parameters: &'static [Parameter],
    handler: super::super::action::Handler,
) -> Action {
    Action { name, permission, signed: true, host_is_ess: true, writes: false, parameters, handler }
}

/// `DescribeScalingGroups`.
pub(super) const GROUPS: Action = read(
    "DescribeScalingGroups",
    "ess:DescribeScalingGroups",
    &[
        optional("ScalingGroupId", Kind::List(Bound::GroupIds)).newer("ScalingGroupIds"),
        optional("ScalingGroupName", Kind::Text),
        optional("GroupType", Kind::OneOf(&["ECS", "ECI"])),
        optional("Tag", Kind::Records(20, &["Key", "Value"])).newer("Tags"),
        PAGE_NUMBER,
        PAGE_SIZE,
    ],
    groups,
);

fn groups(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let world = work.cloud.kept.seen(work.context.now, work.context.stale_for());
    let wanted = work.parameters.list("ScalingGroupId");
    let fits = |group: &&Group| {
        let named = work.parameters.text("ScalingGroupName").is_none_or(|name| group.name.contains(name));
        let kind = work.parameters.text("GroupType").is_none_or(|kind| kind == "ECS");
        (wanted.is_empty() || wanted.contains(&group.id)) && named && kind && tagged(group, work)
    };
    let found = world.groups.values().filter(fits).map(|group| show::group(world, group)).collect();
    Ok(work.page("ScalingGroups", found))
}

fn tagged(group: &Group, work: &Work<'_, '_>) -> bool {
    work.parameters.records("Tag").iter().all(|tag| {
        let value = tag.get("Key").and_then(|key| group.tags.get(key));
        value.is_some_and(|value| tag.get("Value").is_none_or(|wanted| wanted == value))
    })
}

impl Work<'_, '_> {
    /// One page, as the request asks for it.
    pub(super) fn page(&self, name: &str, entries: Vec<Value>) -> Value {
        let (number, size) = (self.parameters.number("PageNumber"), self.parameters.number("PageSize"));
        page(name, entries, number, size, self.context.twists)
    }

    /// The group that the request names.
    pub(super) fn group_id(&self, world: &World) -> Result<String, ApiError> {
        let id = self.parameters.text("ScalingGroupId").unwrap_or_default();
        let missing = || {
            ApiError::missing(
                "InvalidScalingGroupId.NotFound",
                format!("The specified scaling group {id} does not exist."),
            )
        };
        world.groups.get(id).map(|group| group.id.clone()).ok_or_else(missing)
    }
}

/// `DescribeScalingInstances`.
pub(super) const INSTANCES: Action = read(
    "DescribeScalingInstances",
    "ess:DescribeScalingInstances",
    &[
        optional("ScalingGroupId", Kind::Text),
        optional("ScalingConfigurationId", Kind::Text),
        optional("HealthStatus", Kind::OneOf(&["Healthy", "Unhealthy"])),
        optional("LifecycleState", Kind::Text),
        optional("LifecycleStates", Kind::List(Bound::Is(10))),
        optional("CreationType", Kind::OneOf(&["AutoCreated", "Attached", "Managed"])),
        optional("CreationTypes", Kind::List(Bound::Is(3))),
        optional("ScalingActivityId", Kind::Text),
        optional("InstanceId", Kind::List(Bound::Is(20))).newer("InstanceIds"),
        PAGE_NUMBER,
        optional("PageSize", Kind::Number(1, Bound::InstancePage)),
    ],
    instances,
);

fn instances(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let world = work.cloud.kept.seen(work.context.now, work.context.stale_for());
    let parameters = work.parameters;
    let group = parameters.text("ScalingGroupId").unwrap_or_default();
    let ids = parameters.list("InstanceId");
    let is = |name: &str, value: &Value| parameters.text(name).is_none_or(|wanted| Some(wanted) == value.as_str());
    let among = |name: &str, value: &Value| {
        let list = parameters.list(name);
        list.is_empty() || list.iter().any(|wanted| Some(wanted.as_str()) == value.as_str())
    };
    let mut shown = Vec::new();
    let mut members: Vec<_> = world.machines.values().filter(|machine| !machine.group.is_empty()).collect();
    members.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    for machine in members {
        let value = show::instance(world, machine);
        let field = |name: &str| value.get(name).unwrap_or(&Value::Null);
        let fits = (group.is_empty() || machine.group == group)
            && (ids.is_empty() || ids.contains(&machine.id))
            && ["ScalingConfigurationId", "HealthStatus", "LifecycleState", "CreationType", "ScalingActivityId"]
                .iter()
                .all(|name| is(name, field(name)))
            && among("LifecycleStates", field("LifecycleState"))
            && among("CreationTypes", field("CreationType"));
        if fits {
            shown.push(value);
        }
    }
    let spot =
        shown.iter().filter(|value| value.get("SpotStrategy").is_some_and(|strategy| strategy != "NoSpot")).count();
    let mut body = work.page("ScalingInstances", shown);
    if let Some(fields) = body.as_object_mut() {
        fields.insert("TotalSpotCount".to_owned(), spot.into());
    }
    Ok(body)
}

/// `DescribeScalingConfigurations`.
pub(super) const CONFIGURATIONS: Action = read(
    "DescribeScalingConfigurations",
    "ess:DescribeScalingConfigurations",
    &[
        optional("ScalingGroupId", Kind::Text),
        optional("ScalingConfigurationId", Kind::List(Bound::Is(10))).newer("ScalingConfigurationIds"),
        optional("ScalingConfigurationName", Kind::List(Bound::Is(10))).newer("ScalingConfigurationNames"),
        PAGE_NUMBER,
        PAGE_SIZE,
    ],
    configurations,
);

fn configurations(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let world = work.cloud.kept.seen(work.context.now, work.context.stale_for());
    let wanted = work.parameters.list("ScalingConfigurationId");
    let mut shown = Vec::new();
    for configuration in world.configurations.values() {
        let user = |group: &&Group| world.choices(group).is_some_and(|(source, _)| source == configuration.id);
        let users = world.groups.values().filter(user).map(|group| group.id.as_str());
        let owners: Vec<&str> =
            if configuration.group.is_empty() { users.collect() } else { vec![&configuration.group] };
        let asked = work.parameters.text("ScalingGroupId");
        let owner =
            asked.map_or_else(|| owners.first().copied(), |asked| owners.iter().copied().find(|owner| *owner == asked));
        if (wanted.is_empty() || wanted.contains(&configuration.id)) && (asked.is_none() || owner.is_some()) {
            shown.push(show::configuration(configuration, owner.unwrap_or_default(), work.parameters.newer));
        }
    }
    Ok(work.page("ScalingConfigurations", shown))
}

/// `DescribeScalingActivities`.
pub(super) const ACTIVITIES: Action = read(
    "DescribeScalingActivities",
    "ess:DescribeScalingActivities",
    &[
        optional("ScalingGroupId", Kind::Text),
        optional("ScalingActivityId", Kind::List(Bound::Is(20))).newer("ScalingActivityIds"),
        optional("StatusCode", Kind::OneOf(&["InProgress", "Successful", "Warning", "Failed", "Rejected"])),
        optional("InstanceRefreshTaskId", Kind::Text),
        PAGE_NUMBER,
        PAGE_SIZE,
    ],
    activities,
);

fn activities(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let world = work.cloud.kept.seen(work.context.now, work.context.stale_for());
    let parameters = work.parameters;
    let ids = parameters.list("ScalingActivityId");
    if ids.is_empty() && parameters.text("ScalingGroupId").is_none() {
        let text = "one of ScalingGroupId and ScalingActivityId.N is mandatory";
        return Err(ApiError::bad("MissingParameter", text));
    }
    let fits = |activity: &&crate::alicloud::world::Activity| {
        (ids.is_empty() || ids.contains(&activity.id))
            && parameters.text("ScalingGroupId").is_none_or(|group| group == activity.group)
            && parameters.text("StatusCode").is_none_or(|status| status == activity.status.text())
    };
    let quirks = work.cloud.quirks;
    let mut shown: Vec<Value> =
        world.activities.iter().filter(fits).map(|activity| show::activity(world, activity, quirks)).collect();
    if world.probes.newest_activity_first {
        shown.reverse();
    }
    Ok(work.page("ScalingActivities", shown))
}

/// A write to a group, which must be named.
pub(super) const GROUP_ID: Parameter = required("ScalingGroupId", Kind::Text);
