//! The node that a group would create next.
//!
//! ```text
//!  scaling configuration ─┐
//!  launch template ───────┴─► source: types, disks, tags ─► shapes of the types ─┐
//!                             vSwitches ─► zones ─────────────────────────────────┴─► one template per zone
//! ```

mod build;
mod source;
mod tags;
mod types;
mod zones;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, GroupTemplates, NodeTemplate, PluginError};

use crate::api::Api;
use crate::groups::{self, ScalingGroup};
use crate::memory::Memory;
use crate::settings::Settings;

pub(crate) use self::build::GPU_LABEL;
pub(crate) use self::source::Source;
pub(crate) use self::types::InstanceType;

/// Templates are made anew after this time, as a configuration can be changed without its group showing it.
const LIFETIME_MS: u64 = 3_600_000;

/// Name of what a group's templates would be now. Changes within an hour of any change of the configuration.
pub(crate) fn version(settings: &Settings, group: &ScalingGroup, now_ms: u64) -> String {
    let print = group.template_fingerprint();
    // Not all groups at once.
    let age = (now_ms + print.number() % LIFETIME_MS) / LIFETIME_MS;
    let template = &settings.template;
    print
        .with_number(age)
        .with_number(template.max_pods.into())
        .with_number(
            u64::from(template.legacy_tag_labels) * 2
                + u64::from(template.disk == crate::settings::PodDisk::LargestData),
        )
        .with_number(template.reserved_cpu_milli)
        .with_number(template.reserved_memory_mib)
        .name()
}

/// A group's templates, and what they were made of.
pub(crate) struct Made {
    pub(crate) version: String,
    pub(crate) source: Source,
    pub(crate) templates: Vec<NodeTemplate>,
}

/// Templates of one group.
///
/// # Errors
/// The configuration, or no type of it, can be read.
pub(crate) fn make<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    id: &str,
    deadline: Deadline,
) -> Result<Made, PluginError> {
    let group = match memory.groups.get(id) {
        Some(known) => known.group.clone(),
        None => groups::one(api, id, deadline)?,
    };
    let version = version(settings, &group, api.now_ms());
    let source = source::read(api, &group, deadline)?;
    let templates = from_source(api, settings, memory, &group, &source, deadline)?;
    Ok(Made { version, source, templates })
}

/// Templates of a group whose source is known.
///
/// # Errors
/// No type of it can be read.
pub(crate) fn from_source<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    group: &ScalingGroup,
    source: &Source,
    deadline: Deadline,
) -> Result<Vec<NodeTemplate>, PluginError> {
    types::learn(api, memory, &source.types, deadline)?;
    let zones = zones::of(api, memory, group, deadline);
    build::templates(settings, api.region(), &memory.types, group, source, &zones)
}

/// Templates of some groups, each with its own trouble.
pub(crate) fn all<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    groups: Vec<String>,
    deadline: Deadline,
) -> Vec<GroupTemplates> {
    let one = |id: String| match make(api, settings, memory, &id, deadline) {
        Ok(made) => GroupTemplates::of(id, made.version, made.templates),
        Err(error) => GroupTemplates::failed(id, error),
    };
    groups.into_iter().map(one).collect()
}
