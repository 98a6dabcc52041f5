//! ECS: types, machines, launch templates. Prices are beside it.

use serde_json::{Value, json};

use crate::alicloud::action::{Action, Handler, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, Parameter, optional, required};
use crate::alicloud::world::{InstanceType, LaunchTemplate, Machine, State};

const fn read(
    name: &'static str,
    permission: &'static str,
    parameters: &'static [Parameter],
    handler: Handler,
) -> Action {
    Action { name, permission, signed: true, host_is_ess: false, writes: false, parameters, handler }
}

/// Its operations.
pub const ACTIONS: &[Action] = &[
    read(
        "DescribeInstanceTypes",
        "ecs:DescribeInstanceTypes",
        &[
            optional("InstanceTypes", Kind::List(Bound::Is(10))),
            optional("InstanceTypeFamily", Kind::Text),
            optional("CpuArchitecture", Kind::OneOf(&["X86", "ARM"])),
            optional("NextToken", Kind::Text),
            optional("MaxResults", Kind::Number(1, Bound::Is(100))),
        ],
        types,
    ),
    read(
        "DescribeInstances",
        "ecs:DescribeInstances",
        &[
            optional("InstanceIds", Kind::Text),
            optional("Status", Kind::OneOf(&["Pending", "Running", "Starting", "Stopping", "Stopped"])),
            optional("NextToken", Kind::Text),
            optional("MaxResults", Kind::Number(1, Bound::Is(100))),
            optional("PageNumber", Kind::Number(1, Bound::Is(i64::MAX))),
            optional("PageSize", Kind::Number(1, Bound::Is(100))),
        ],
        instances,
    ),
    read(
        "DescribeLaunchTemplateVersions",
        "ecs:DescribeLaunchTemplateVersions",
        &[
            required("LaunchTemplateId", Kind::Text),
            optional("LaunchTemplateVersion", Kind::List(Bound::Is(50))),
            optional("DefaultVersion", Kind::Flag),
            optional("DetailFlag", Kind::Flag),
            optional("PageNumber", Kind::Number(1, Bound::Is(i64::MAX))),
            optional("PageSize", Kind::Number(1, Bound::Is(50))),
        ],
        launch_templates,
    ),
    super::price::PRICE,
];

/// So many of the entries, from where the token says, and the token for the rest.
fn by_token(work: &Work<'_, '_>, entries: Vec<Value>, least: usize) -> Result<(Vec<Value>, String), ApiError> {
    let most = work.parameters.number("MaxResults").and_then(|most| usize::try_from(most).ok()).unwrap_or(least);
    let from = match work.parameters.text("NextToken") {
        None => 0,
        Some(token) => {
            let position = token.strip_prefix("caeba0bbb2be03f84eb48b699f0a").and_then(|rest| rest.parse().ok());
            position.ok_or_else(|| ApiError::bad("InvalidParameter.NextToken", "the token is not one of ours"))?
        }
    };
    let next = from + most;
    let token = if next < entries.len() { format!("caeba0bbb2be03f84eb48b699f0a{next}") } else { String::new() };
    Ok((entries.into_iter().skip(from).take(most).collect(), token))
}

fn types(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let wanted = work.parameters.list("InstanceTypes");
    let fits = |kind: &&InstanceType| {
        (wanted.is_empty() || wanted.contains(&kind.name))
            && work.parameters.text("InstanceTypeFamily").is_none_or(|family| family == kind.family())
            && work.parameters.text("CpuArchitecture").is_none_or(|architecture| architecture == kind.architecture)
    };
    let shown = work.cloud.kept.world.types.values().filter(fits).map(show_type).collect();
    let (shown, token) = by_token(work, shown, 100)?;
    Ok(json!({"NextToken": token, "InstanceTypes": shown}))
}

fn show_type(kind: &InstanceType) -> Value {
    json!({
        "InstanceTypeId": kind.name,
        "InstanceTypeFamily": kind.family(),
        "InstanceFamilyLevel": "EnterpriseLevel",
        "InstanceCategory": "General-purpose",
        "CpuCoreCount": kind.cpu,
        "CpuArchitecture": kind.architecture,
        "MemorySize": kind.memory_gib,
        "GPUAmount": kind.gpu,
        "GPUSpec": kind.gpu_name,
        "GPUMemorySize": if kind.gpu > 0 { 24.0 } else { 0.0 },
        "LocalStorageAmount": 0,
        "LocalStorageCapacity": 0,
        "LocalStorageCategory": "",
        "EniQuantity": 4,
        "EniTotalQuantity": 8,
        "EniPrivateIpAddressQuantity": 15,
        "NvmeSupport": "required",
        "BaselineCredit": 0,
        "InitialCredit": 0,
    })
}

fn instances(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let wanted: Option<Vec<String>> = match work.parameters.text("InstanceIds") {
        None => None,
        Some(text) => Some(serde_json::from_str(text).map_err(|_| {
            work.context.violation("InstanceIds is not a JSON list");
            ApiError::bad("InvalidInstanceIds.Malformed", "InstanceIds is not a JSON list of texts")
        })?),
    };
    if let Some(many) = wanted.as_ref().filter(|wanted| wanted.len() > 100) {
        let text = format!("{} instances are named, at most 100 are allowed", many.len());
        return Err(ApiError::bad("InvalidInstanceIds.Malformed", text));
    }
    let world = work.cloud.kept.seen(work.context.now, work.context.stale_for());
    let fits = |machine: &&Machine| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(&machine.id))
            && work.parameters.text("Status").is_none_or(|status| status == power(machine))
    };
    let shown: Vec<Value> =
        world.machines.values().filter(fits).map(|machine| show_machine(machine, &world.region)).collect();
    if work.parameters.text("PageNumber").is_some() || work.parameters.text("PageSize").is_some() {
        return Ok(work.page("Instances", shown));
    }
    let total = shown.len();
    let (shown, token) = by_token(work, shown, 10)?;
    Ok(json!({"NextToken": token, "TotalCount": total, "Instances": shown}))
}

fn power(machine: &Machine) -> &'static str {
    match machine.state {
        State::Pending => "Starting",
        State::Stopped => "Stopped",
        State::Removing => "Stopping",
        _ => "Running",
    }
}

fn show_machine(machine: &Machine, region: &str) -> Value {
    json!({
        "InstanceId": machine.id,
        "InstanceType": machine.instance_type,
        "RegionId": region,
        "ZoneId": machine.zone,
        "Status": power(machine),
        "InstanceChargeType": if machine.prepaid { "PrePaid" } else { "PostPaid" },
        "SpotStrategy": if machine.spot { "SpotAsPriceGo" } else { "NoSpot" },
        "CreationTime": machine.created.minutes(),
        "HostName": format!("iZ{}", machine.id.trim_start_matches("i-")),
        "VpcAttributes": {
            "VSwitchId": machine.vswitch, "VpcId": "vpc-bp1fake", "PrivateIpAddress": {"IpAddress": [machine.ip]},
        },
    })
}

fn launch_templates(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let id = work.parameters.text("LaunchTemplateId").unwrap_or_default();
    let wanted = work.parameters.list("LaunchTemplateVersion");
    let only_default = work.parameters.flag("DefaultVersion") == Some(true);
    let versions = work.cloud.kept.world.launch_templates.iter().filter(|template| template.id == id);
    let mut versions: Vec<&LaunchTemplate> = versions.collect();
    if versions.is_empty() {
        let text = format!("The specified launch template {id} does not exist.");
        return Err(ApiError::missing("InvalidLaunchTemplate.NotFound", text));
    }
    versions.retain(|template| {
        (wanted.is_empty() || wanted.contains(&template.version.to_string())) && (!only_default || template.default)
    });
    versions.sort_by_key(|template| std::cmp::Reverse(template.version));
    Ok(work.page("LaunchTemplateVersionSets", versions.into_iter().map(show_template).collect()))
}

fn show_template(template: &LaunchTemplate) -> Value {
    let disk = |(category, size): &(String, u32)| json!({"Category": category, "Size": size});
    let disks: Vec<Value> = template.data_disks.iter().map(disk).collect();
    let tags: Vec<Value> = template.tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    json!({
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": format!("{}-name", template.id),
        "VersionNumber": template.version,
        "DefaultVersion": template.default,
        "CreateTime": "2024-05-01T06:40:00Z",
        "LaunchTemplateData": {
            "InstanceType": template.instance_type,
            "ImageId": "aliyun_3_x64_20G_alibase_20240528.vhd",
            "InstanceChargeType": "PostPaid",
            "SpotStrategy": "NoSpot",
            "SystemDisk.Category": "cloud_essd",
            "SystemDisk.Size": template.system_disk_gib,
            "DataDisks": disks,
            "Tags": {"InstanceTag": tags},
        },
    })
}
