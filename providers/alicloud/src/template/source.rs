//! What a group's machines are made from: a scaling configuration, or a launch template.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, PluginError};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, Product};
use crate::groups::{self, ScalingGroup};

/// Types, disks and tags.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Source {
    /// Machine types in order of preference.
    pub(crate) types: Vec<String>,
    /// Cores and memory in GiB, where they are given instead of types.
    pub(crate) shape: Option<(u32, f64)>,
    /// System disk, in GiB.
    pub(crate) system_disk_gib: u32,
    /// Category of the system disk, such as `cloud_essd`.
    pub(crate) system_disk_category: String,
    /// Data disks, in GiB.
    pub(crate) data_disks_gib: Vec<u32>,
    /// Tags of the machines.
    pub(crate) tags: Vec<(String, String)>,
    /// Whether machines may be taken back.
    pub(crate) spot: bool,
}

/// Reads it.
///
/// # Errors
/// It cannot be read, or names no machine.
pub(super) fn read<T: Transport>(
    api: &mut Api<T>,
    group: &ScalingGroup,
    deadline: Deadline,
) -> Result<Source, PluginError> {
    let source = match &group.launch_template {
        Some((template, version)) => {
            let call = launch_template(group, template, version);
            let answer = api.ask(&call, deadline)?;
            let found = answer.list("LaunchTemplateVersionSets", "LaunchTemplateVersionSet").first();
            let data = found.and_then(|set| set.get("LaunchTemplateData"));
            from_launch_template(group, data.ok_or_else(|| missing(group, "version of launch template", template))?)
        }
        None => {
            let call = Call::read(Product::Ess, "DescribeScalingConfigurations")
                .group(&group.id)
                .each("ScalingConfigurationId", Some(&group.configuration).filter(|id| !id.is_empty()))
                .with("PageSize", 50);
            let answer = api.ask(&call, deadline)?;
            let listed = answer.list("ScalingConfigurations", "ScalingConfiguration");
            let active = listed.iter().find(|one| one.text("ScalingConfigurationId") == group.configuration);
            // Without a known id only one that is in use will do.
            let active = active.or_else(|| listed.iter().find(|one| one.text("LifecycleState") == "Active"));
            from_configuration(active.ok_or_else(|| missing(group, "ScalingConfiguration", &group.configuration))?)
        }
    };
    if source.types.is_empty() && source.shape.is_none() {
        let message = format!(
            "scaling group {} names no instance type, neither in its configuration nor in its launch template",
            group.id
        );
        return Err(PluginError::config(message).with_code("no-instance-type").for_group(&group.id));
    }
    Ok(source)
}

fn missing(group: &ScalingGroup, what: &str, id: &str) -> PluginError {
    let message =
        format!("unable to get first {what} for {}: {id:?} is not listed; give the group an active one", group.id);
    PluginError::config(message).with_code("no-configuration").for_group(&group.id)
}

fn launch_template(group: &ScalingGroup, template: &str, version: &str) -> Call {
    let call =
        Call::read(Product::Ecs, "DescribeLaunchTemplateVersions").about(&group.id).with("LaunchTemplateId", template);
    match version {
        "" | "Default" => call.with("DefaultVersion", "true"),
        // Newest first.
        "Latest" => call.with("PageSize", 1),
        number => call.with("LaunchTemplateVersion.1", number),
    }
}

fn from_configuration(value: &Value) -> Source {
    let mut types = value.texts("InstanceTypes", "InstanceType");
    if types.is_empty() {
        types.extend(Some(value.text("InstanceType")).filter(|kind| !kind.is_empty()));
    }
    let shape = (value.count("Cpu").unwrap_or(0), value.decimal("Memory").unwrap_or(0.0));
    Source {
        types,
        shape: Some(shape).filter(|(cores, memory)| *cores > 0 && *memory > 0.0),
        system_disk_gib: value.count("SystemDiskSize").unwrap_or(0),
        system_disk_category: value.text("SystemDiskCategory"),
        data_disks_gib: sizes(value.list("DataDisks", "DataDisk")),
        tags: groups::tags(value),
        spot: is_spot(&value.text("SpotStrategy")),
    }
}

fn from_launch_template(group: &ScalingGroup, value: &Value) -> Source {
    let mut types: Vec<_> = group.overrides.iter().map(|(kind, _)| kind.clone()).collect();
    if types.is_empty() {
        types.extend(Some(value.text("InstanceType")).filter(|kind| !kind.is_empty()));
    }
    Source {
        types,
        shape: None,
        system_disk_gib: value.count("SystemDisk.Size").unwrap_or(0),
        system_disk_category: value.text("SystemDisk.Category"),
        data_disks_gib: sizes(value.list("DataDisks", "DataDisk")),
        tags: instance_tags(value),
        spot: is_spot(&value.text("SpotStrategy")),
    }
}

fn instance_tags(value: &Value) -> Vec<(String, String)> {
    let named = value.list("Tags", "InstanceTag").iter().map(|tag| (tag.text("Key"), tag.text("Value")));
    groups::tags(value).into_iter().chain(named).collect()
}

fn sizes(disks: &[Value]) -> Vec<u32> {
    disks.iter().filter_map(|disk| disk.count("Size")).collect()
}

fn is_spot(strategy: &str) -> bool {
    !strategy.is_empty() && strategy != "NoSpot"
}
