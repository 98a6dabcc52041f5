//! From types, disks, tags and zones to templates.

use std::collections::BTreeMap;

use plimsoll_guest::{Accelerator, KeyValue, NodeTemplate, PluginError, Quantity};

use super::tags::{self, Told};
use super::{InstanceType, Source};
use crate::fingerprint::Fingerprint;
use crate::groups::ScalingGroup;
use crate::settings::{PodDisk, Settings, TemplateSettings};

/// Label that names the model of a node's GPUs.
pub(crate) const GPU_LABEL: &str = "aliyun.accelerator/nvidia_name";
const GPU_RESOURCE: &str = "nvidia.com/gpu";
const KI_PER_GI: u64 = 1 << 20;

/// One template for each zone; one without a zone if none is known.
///
/// # Errors
/// Class `config`: the cloud does not know any of the types.
pub(super) fn templates(
    settings: &Settings,
    region: &str,
    known: &BTreeMap<String, InstanceType>,
    group: &ScalingGroup,
    source: &Source,
    zones: &[String],
) -> Result<Vec<NodeTemplate>, PluginError> {
    let shape = least(known, source).ok_or_else(|| {
        let message = format!(
            "failed to find the specific instance type by Id: {} (scaling group {}); the region does not have it",
            source.types.join(", "),
            group.id
        );
        PluginError::config(message).with_code("unknown-instance-type").for_group(&group.id)
    })?;
    let mut told = tags::read(&source.tags, settings.template.legacy_tag_labels);
    let by_group = tags::read(group.tags.as_deref().unwrap_or_default(), false);
    // The group's word counts more: it stands later, and later wins.
    told.labels.extend(by_group.labels);
    told.taints.extend(by_group.taints);
    told.resources.extend(by_group.resources);
    let zones: Vec<Option<&str>> =
        if zones.is_empty() { vec![None] } else { zones.iter().map(|zone| Some(zone.as_str())).collect() };
    let one = |zone| template(&settings.template, region, source, &shape, &told, zone);
    Ok(zones.into_iter().map(one).collect())
}

/// What every type of a group has at least.
#[derive(Clone, PartialEq, Debug)]
struct Shape {
    cores: u32,
    memory_ki: u64,
    gpus: u32,
    gpu_model: String,
    arch: &'static str,
    /// Types that the cloud may take.
    types: Vec<String>,
}

/// The element-wise least of the types that the cloud knows; those with another architecture than the first cannot run
/// the same image, and are no alternatives.
fn least(known: &BTreeMap<String, InstanceType>, source: &Source) -> Option<Shape> {
    let mut shapes = source.types.iter().filter_map(|name| known.get(name).map(|kind| shape(name, kind)));
    let by_numbers = || {
        let (cores, memory_gib) = source.shape?;
        let kind = InstanceType { cores, memory_gib, arch: "amd64", gpus: 0, gpu_model: String::new() };
        Some(Shape { types: vec![], ..shape("", &kind) })
    };
    let Some(first) = shapes.next() else { return by_numbers() };
    Some(shapes.fold(first, |least, next| {
        if next.arch != least.arch {
            return least;
        }
        let same_model = least.gpu_model == next.gpu_model;
        Shape {
            cores: least.cores.min(next.cores),
            memory_ki: least.memory_ki.min(next.memory_ki),
            gpus: least.gpus.min(next.gpus),
            gpu_model: if same_model { least.gpu_model } else { String::new() },
            arch: least.arch,
            types: [least.types, next.types].concat(),
        }
    }))
}

fn shape(name: &str, kind: &InstanceType) -> Shape {
    Shape {
        cores: kind.cores,
        memory_ki: (kind.memory_gib * KI_PER_GI as f64) as u64,
        gpus: kind.gpus,
        gpu_model: kind.gpu_model.clone(),
        arch: kind.arch,
        types: vec![name.to_owned()],
    }
}

fn template(
    settings: &TemplateSettings,
    region: &str,
    source: &Source,
    shape: &Shape,
    told: &Told,
    zone: Option<&str>,
) -> NodeTemplate {
    let mut capacity = BTreeMap::from([
        ("cpu".to_owned(), shape.cores.to_string()),
        ("memory".to_owned(), format!("{}Ki", shape.memory_ki)),
        ("pods".to_owned(), settings.max_pods.to_string()),
    ]);
    let disk_ki =
        u64::from(disk_gib(settings.disk, source)) * KI_PER_GI * u64::from(100 - settings.disk_reserve_percent) / 100;
    if disk_ki > 0 {
        capacity.insert("ephemeral-storage".to_owned(), format!("{disk_ki}Ki"));
    }
    if shape.gpus > 0 {
        capacity.insert(GPU_RESOURCE.to_owned(), shape.gpus.to_string());
    }
    capacity.extend(told.resources.iter().map(|one| (one.name.clone(), one.amount.clone())));
    let labels = labels(region, shape, told, zone);
    let accelerator = (shape.gpus > 0).then(|| Accelerator {
        model: labels.get(GPU_LABEL).cloned().unwrap_or_else(|| shape.gpu_model.replace(' ', "-")),
        resource_name: GPU_RESOURCE.to_owned(),
        count: shape.gpus,
        dra_driver: None,
    });
    let allocatable = if settings.reserved_cpu_milli == 0 && settings.reserved_memory_mib == 0 {
        vec![]
    } else {
        quantities(reserved(settings, shape, capacity.clone()))
    };
    let mut template = NodeTemplate {
        arch: shape.arch.to_owned(),
        region: region.to_owned(),
        zone: zone.map(str::to_owned),
        allocatable,
        labels: labels.into_iter().map(KeyValue::from).collect(),
        taints: told.taints.clone(),
        accelerator,
        spot: source.spot,
        attributes: vec![KeyValue::new("alternatives", shape.types.join(","))],
        ..NodeTemplate::new("", shape.types.first().cloned().unwrap_or_default(), quantities(capacity))
    };
    template.key = key(&template);
    template
}

fn labels(region: &str, shape: &Shape, told: &Told, zone: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/arch".to_owned(), shape.arch.to_owned()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("topology.kubernetes.io/region".to_owned(), region.to_owned()),
    ]);
    if let Some(zone) = zone {
        labels.insert("topology.kubernetes.io/zone".to_owned(), zone.to_owned());
    }
    // With several types nobody knows which one it will be.
    if let [only] = shape.types.as_slice() {
        labels.insert("node.kubernetes.io/instance-type".to_owned(), only.clone());
    }
    labels.extend(told.labels.iter().cloned());
    labels
}

fn disk_gib(which: PodDisk, source: &Source) -> u32 {
    let largest = source.data_disks_gib.iter().copied().max();
    match which {
        PodDisk::LargestData => largest.unwrap_or(source.system_disk_gib),
        PodDisk::System => source.system_disk_gib,
    }
}

fn reserved(
    settings: &TemplateSettings,
    shape: &Shape,
    mut capacity: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let cpu_milli = (u64::from(shape.cores) * 1000).saturating_sub(settings.reserved_cpu_milli);
    let memory_ki = shape.memory_ki.saturating_sub(settings.reserved_memory_mib * 1024);
    capacity.insert("cpu".to_owned(), format!("{cpu_milli}m"));
    capacity.insert("memory".to_owned(), format!("{memory_ki}Ki"));
    capacity
}

fn quantities(map: BTreeMap<String, String>) -> Vec<Quantity> {
    map.into_iter().map(|(name, amount)| Quantity { name, amount }).collect()
}

fn key(template: &NodeTemplate) -> String {
    let print = Fingerprint::new().with(&template.instance_type).with(template.zone.as_deref().unwrap_or_default());
    let print = print.with_number(template.spot.into());
    let amounts = template.capacity.iter().chain(&template.allocatable);
    let print = amounts.fold(print, |print, one| print.with(&one.name).with(&one.amount));
    let print = template.labels.iter().fold(print, |print, label| print.with(&label.key).with(&label.value));
    let taints = template.taints.iter();
    taints.fold(print, |print, taint| print.with(&taint.key).with(&taint.value).with_number(taint.effect as u64)).name()
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
