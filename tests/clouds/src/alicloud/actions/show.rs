//! Groups, machines and activities as ESS tells of them. Lists are plain here; the older API wraps them later.

use serde_json::{Value, json};

use crate::alicloud::quirks::Quirks;
use crate::alicloud::world::{
    Activity, Configuration, Creation, Direction, Group, GroupState, Machine, MultiAz, Source, State, World,
};

/// A group.
pub(super) fn group(world: &World, group: &Group) -> Value {
    let members = world.members(&group.id);
    let (launch_template, version, overrides) = match &group.source {
        Some(Source::LaunchTemplate { id, version, overrides }) => {
            (id.as_str(), version.as_str(), overrides.as_slice())
        }
        _ => ("", "", Default::default()),
    };
    let configuration = if let Some(Source::Configuration(id)) = &group.source { id.as_str() } else { "" };
    let overrides: Vec<Value> = overrides
        .iter()
        .map(|choice| json!({"InstanceType": choice.instance_type, "WeightedCapacity": choice.weight}))
        .collect();
    let state = match group.state {
        GroupState::Active => "Active",
        GroupState::Inactive => "Inactive",
        GroupState::Deleting => "Deleting",
    };
    let mut shown = json!({
        "ScalingGroupId": group.id,
        "ScalingGroupName": group.name,
        "RegionId": world.region,
        "GroupType": "ECS",
        "VpcId": "vpc-bp1fake",
        "VSwitchId": group.vswitches.first(),
        "VSwitchIds": group.vswitches,
        "MinSize": group.min,
        "MaxSize": group.max,
        "EnableDesiredCapacity": group.desired.is_some(),
        "TotalCapacity": world.total(&group.id),
        "TotalInstanceCount": members.len(),
        "LifecycleState": state,
        "SystemSuspended": group.suspended,
        "SuspendedProcesses": group.suspended_processes,
        "ActiveScalingConfigurationId": configuration,
        "LaunchTemplateId": launch_template,
        "LaunchTemplateVersion": version,
        "LaunchTemplateOverrides": overrides,
        "ScalingPolicy": if group.recycles { "recycle" } else { "release" },
        "MultiAZPolicy": if group.multi_az == MultiAz::Balance { "BALANCE" } else { "PRIORITY" },
        "RemovalPolicies": group.removal_policies,
        "DefaultCooldown": group.cooldown_s,
        "HealthCheckType": "ECS",
        "GroupDeletionProtection": false,
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": if group.spot { 0 } else { 100 },
        "SpotInstanceRemedy": false,
        "CompensateWithOnDemand": true,
        "AllocationStrategy": "priority",
        "Tags": tags(world, group),
        "CreationTime": group.created.minutes(),
        "ModificationTime": group.modified.minutes(),
    });
    if let Some(fields) = shown.as_object_mut() {
        for (name, state) in CAPACITIES {
            fields.insert((*name).to_owned(), json!(world.capacity(&group.id, *state)));
        }
        fields.insert("InitCapacity".to_owned(), json!(0));
        if let Some(desired) = group.desired {
            fields.insert("DesiredCapacity".to_owned(), json!(desired));
        }
        if group.weighted {
            fields.insert("Weighted".to_owned(), json!(true));
        }
    }
    shown
}

const CAPACITIES: &[(&str, State)] = &[
    ("ActiveCapacity", State::InService),
    ("PendingCapacity", State::Pending),
    ("PendingWaitCapacity", State::PendingWait),
    ("ProtectedCapacity", State::Protected),
    ("StandbyCapacity", State::Standby),
    ("StoppedCapacity", State::Stopped),
    ("RemovingCapacity", State::Removing),
    ("RemovingWaitCapacity", State::RemovingWait),
];

fn tags(world: &World, group: &Group) -> Vec<Value> {
    let tag = |(key, value): (&String, &String)| {
        if world.probes.tag_key_names {
            json!({"TagKey": key, "TagValue": value})
        } else {
            json!({"Key": key, "Value": value})
        }
    };
    group.tags.iter().map(tag).collect()
}

/// A machine.
pub(super) fn instance(world: &World, machine: &Machine) -> Value {
    let from_template = world.launch_templates.iter().any(|template| template.id == machine.source);
    let (configuration, template) =
        if from_template { ("", machine.source.as_str()) } else { (machine.source.as_str(), "") };
    json!({
        "InstanceId": machine.id,
        "ScalingGroupId": machine.group,
        "ScalingConfigurationId": configuration,
        "ScalingActivityId": machine.activity,
        "LifecycleState": machine.state.text(),
        "HealthStatus": if machine.healthy { "Healthy" } else { "Unhealthy" },
        "WarmupState": "NoNeedWarmup",
        "CreationType": if machine.creation == Creation::Attached { "Attached" } else { "AutoCreated" },
        "Entrusted": machine.entrusted,
        "ZoneId": machine.zone,
        "PrivateIpAddress": machine.ip,
        "SpotStrategy": if machine.spot { "SpotAsPriceGo" } else { "NoSpot" },
        "WeightedCapacity": machine.weight,
        "LoadBalancerWeight": 50,
        "LaunchTemplateId": template,
        "LaunchTemplateVersion": "",
        "CreationTime": machine.created.minutes(),
        "CreatedTime": machine.created.seconds(),
    })
}

/// An activity.
pub(super) fn activity(world: &World, activity: &Activity, quirks: Quirks) -> Value {
    let count = activity.members.len();
    let (created, destroyed) = match activity.direction {
        Direction::Out => (activity.members.as_slice(), Default::default()),
        Direction::In => (Default::default(), activity.members.as_slice()),
    };
    let verb = if activity.direction == Direction::Out { "Add" } else { "Remove" };
    let capacity = |number: u32| if quirks.capacities_as_numbers { json!(number) } else { json!(number.to_string()) };
    let total = if activity.end.is_some() { activity.total_after } else { world.total(&activity.group) };
    let mut shown = json!({
        "ScalingActivityId": activity.id,
        "ScalingGroupId": activity.group,
        "StatusCode": activity.status.text(),
        "StatusMessage": format!("{count} of {} ECS instances", activity.wanted),
        "Description": format!("{verb} \"{}\" ECS instance", activity.wanted),
        "Cause": activity.cause,
        "Progress": if activity.end.is_some() { 100 } else { 50 },
        "CreatedCapacity": created.len(),
        "CreatedInstances": created,
        "DestroyedCapacity": destroyed.len(),
        "DestroyedInstances": destroyed,
        "TotalCapacity": capacity(total),
        "AutoCreatedCapacity": capacity(total),
        "AttachedCapacity": capacity(0),
        "ScalingInstanceNumber": activity.wanted,
        "TriggerSourceType": activity.trigger,
        "TriggerSourceId": "1234567890123456",
        "ActivityMetadata": activity.metadata.clone().unwrap_or_default(),
        "StartTime": activity.start.minutes(),
        "EndTime": activity.end.map(crate::UnixMs::minutes).unwrap_or_default(),
    });
    if let (Some(failure), Some(fields)) = (&activity.failure, shown.as_object_mut()) {
        let (code, message) = (&failure.code, &failure.message);
        let detail = format!("[Fail to create Instances into scaling group(code:\"{code}\",msg:\"{message}\")]");
        fields.insert("Detail".to_owned(), json!(detail));
        if !quirks.code_in_detail_only {
            fields.insert("ErrorCode".to_owned(), json!(code));
            fields.insert("ErrorMessage".to_owned(), json!(message));
            let messages = json!([{"Code": code, "Message": message, "Description": detail, "FailedInstanceIds": []}]);
            fields.insert("ErrorMessages".to_owned(), messages);
        }
    }
    shown
}

/// A scaling configuration.
pub(super) fn configuration(configuration: &Configuration, group: &str, newer: bool) -> Value {
    let types: Vec<&str> = configuration.types.iter().map(|choice| choice.instance_type.as_str()).collect();
    let weights: Vec<u32> =
        configuration.types.iter().map(|choice| choice.weight).filter(|weight| *weight != 1).collect();
    let disk = |(category, size): &(String, u32)| json!({"Category": category, "Size": size, "Device": "/dev/xvdb"});
    let disks: Vec<Value> = configuration.data_disks.iter().map(disk).collect();
    let tags: Vec<Value> = configuration.tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    let mut shown = json!({
        "ScalingConfigurationId": configuration.id,
        "ScalingGroupId": group,
        "LifecycleState": "Active",
        "InstanceType": types.first(),
        "InstanceTypes": types,
        "InstancePatternInfos": [],
        "WeightedCapacities": weights,
        "Cpu": 0,
        "Memory": 0,
        "ImageId": configuration.image,
        "ZoneId": "",
        "SecurityGroupId": "sg-bp1fake",
        "SystemDiskCategory": configuration.system_disk,
        "SystemDiskSize": configuration.system_disk_gib,
        "DataDisks": disks,
        "SpotStrategy": "NoSpot",
        "RamRoleName": "",
        "HttpTokens": "optional",
        "UserData": "IyEvYmluL3No",
        "Tags": tags,
        "CreationTime": "2024-05-01T06:45Z",
    });
    if let Some(fields) = shown.as_object_mut() {
        if newer {
            fields.insert("SpotPriceLimits".to_owned(), json!([]));
        } else {
            fields.insert("SpotPriceLimit".to_owned(), json!({"SpotPriceModel": []}));
        }
    }
    shown
}
