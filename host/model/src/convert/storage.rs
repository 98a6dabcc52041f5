//! Claims, volumes, classes and what CSI drivers report.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::storage::v1 as storage;

use crate::storage::{
    BindingMode, Claim, CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, StorageClass, VolumeAttachment,
    VolumeMode, VolumePhase,
};
use crate::symbol::{Symbol, Symbols, known};

use super::Converter;
use super::amounts::units;
use super::error::{ConvertError, Within};
use super::metadata::{self, annotation};
use super::selectors::{label_selector, node_selector};
use super::volumes::plugin;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const OLDER_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

impl Converter<'_> {
    /// A PersistentVolumeClaim.
    ///
    /// # Errors
    ///
    /// If the size that it asks for cannot be read.
    pub fn claim(&mut self, claim: &core::PersistentVolumeClaim) -> Result<Claim, ConvertError> {
        let bare = core::PersistentVolumeClaimSpec::default();
        let spec = claim.spec.as_ref().unwrap_or(&bare);
        let symbols = &mut *self.symbols;
        let older_class = annotation(&claim.metadata, OLDER_CLASS);
        let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let size = units(requests.and_then(|requests| requests.get("storage")));
        let size = size.key("storage").field("requests").field("resources").field("spec")?;
        let owner = metadata::controller(&claim.metadata);
        Ok(Claim {
            volume: intern_filled(spec.volume_name.as_deref(), symbols),
            bind_completed: annotation(&claim.metadata, BIND_COMPLETED).is_some(),
            class: older_class.or(spec.storage_class_name.as_deref()).map(|class| symbols.intern(class)),
            access_modes: sorted(spec.access_modes.as_ref(), symbols),
            request_bytes: size,
            mode: volume_mode(spec.volume_mode.as_deref()),
            selector: spec.selector.as_ref().map(|selector| label_selector(selector, symbols)),
            attributes_class: intern_filled(spec.volume_attributes_class_name.as_deref(), symbols),
            phase: volume_phase(claim.status.as_ref().and_then(|status| status.phase.as_deref())),
            deleting: claim.metadata.deletion_timestamp.is_some(),
            selected_node: intern_filled(annotation(&claim.metadata, SELECTED_NODE), symbols),
            owner_pod: owner.map(|owner| (symbols.intern(&owner.name), symbols.intern(&owner.uid))),
            uid: symbols.intern(metadata::uid(&claim.metadata)),
        })
    }

    /// A PersistentVolume.
    ///
    /// # Errors
    ///
    /// If its size cannot be read.
    pub fn persistent_volume(&mut self, volume: &core::PersistentVolume) -> Result<PersistentVolume, ConvertError> {
        let bare = core::PersistentVolumeSpec::default();
        let spec = volume.spec.as_ref().unwrap_or(&bare);
        let symbols = &mut *self.symbols;
        let class = annotation(&volume.metadata, OLDER_CLASS).or(spec.storage_class_name.as_deref());
        let size = units(spec.capacity.as_ref().and_then(|capacity| capacity.get("storage")));
        let affinity = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        let in_tree = in_tree(&volume.metadata, spec);
        Ok(PersistentVolume {
            labels: metadata::labels(volume.metadata.labels.as_ref(), symbols),
            node_affinity: affinity.map(|selector| node_selector(selector, symbols)),
            csi: spec.csi.as_ref().map(|csi| (symbols.intern(&csi.driver), symbols.intern(&csi.volume_handle))),
            in_tree: in_tree.map(|(plugin, handle)| (symbols.intern(plugin), symbols.intern(&handle))),
            capacity_bytes: size.key("storage").field("capacity").field("spec")?.unwrap_or(0),
            class: class.map_or(known::EMPTY, |class| symbols.intern(class)),
            access_modes: sorted(spec.access_modes.as_ref(), symbols),
            mode: volume_mode(spec.volume_mode.as_deref()),
            attributes_class: intern_filled(spec.volume_attributes_class_name.as_deref(), symbols),
            phase: volume_phase(volume.status.as_ref().and_then(|status| status.phase.as_deref())),
            deleting: volume.metadata.deletion_timestamp.is_some(),
            claim: spec.claim_ref.as_ref().map(|claim| {
                let mut text = |text: &Option<String>| symbols.intern(text.as_deref().unwrap_or(""));
                (text(&claim.namespace), text(&claim.name), text(&claim.uid))
            }),
        })
    }

    /// A StorageClass.
    pub fn storage_class(&mut self, class: &storage::StorageClass) -> StorageClass {
        let symbols = &mut *self.symbols;
        let mut term = |term: &core::TopologySelectorTerm| {
            let expressions = term.match_label_expressions.iter().flatten();
            expressions
                .map(|expression| {
                    let values = expression.values.iter().map(|value| symbols.intern(value)).collect();
                    (symbols.intern(&expression.key), values)
                })
                .collect()
        };
        StorageClass {
            allowed_topologies: class.allowed_topologies.iter().flatten().map(&mut term).collect(),
            provisioner: symbols.intern(&class.provisioner),
            binding_mode: match class.volume_binding_mode.as_deref() {
                Some("Immediate") => Some(BindingMode::Immediate),
                Some("WaitForFirstConsumer") => Some(BindingMode::WaitForFirstConsumer),
                _ => None,
            },
        }
    }

    /// A CSINode.
    pub fn csi_node(&mut self, node: &storage::CSINode) -> CsiNode {
        let symbols = &mut *self.symbols;
        let driver = |driver: &storage::CSINodeDriver| {
            (symbols.intern(&driver.name), driver.allocatable.as_ref().and_then(|allocatable| allocatable.count))
        };
        let drivers = node.spec.drivers.iter().map(driver).collect();
        let migrated = annotation(&node.metadata, MIGRATED_PLUGINS).unwrap_or("").split(',');
        CsiNode {
            drivers,
            migrated_plugins: migrated.filter(|name| !name.is_empty()).map(|name| symbols.intern(name)).collect(),
        }
    }

    /// A CSIDriver.
    pub fn csi_driver(&mut self, driver: &storage::CSIDriver) -> CsiDriver {
        CsiDriver {
            storage_capacity: driver.spec.storage_capacity.unwrap_or(false),
            prevent_scheduling_if_missing: driver.spec.prevent_pod_scheduling_if_missing.unwrap_or(false),
        }
    }

    /// A CSIStorageCapacity.
    ///
    /// # Errors
    ///
    /// If a size cannot be read.
    pub fn storage_capacity(
        &mut self,
        capacity: &storage::CSIStorageCapacity,
    ) -> Result<CsiStorageCapacity, ConvertError> {
        Ok(CsiStorageCapacity {
            class: self.symbols.intern(&capacity.storage_class_name),
            topology: capacity.node_topology.as_ref().map(|selector| label_selector(selector, self.symbols)),
            capacity_bytes: units(capacity.capacity.as_ref()).field("capacity")?,
            maximum_volume_bytes: units(capacity.maximum_volume_size.as_ref()).field("maximumVolumeSize")?,
        })
    }

    /// A VolumeAttachment.
    pub fn attachment(&mut self, attachment: &storage::VolumeAttachment) -> VolumeAttachment {
        let spec = &attachment.spec;
        VolumeAttachment {
            attacher: self.symbols.intern(&spec.attacher),
            node: self.symbols.intern(&spec.node_name),
            volume: intern_filled(spec.source.persistent_volume_name.as_deref(), self.symbols),
        }
    }
}

fn intern_filled(text: Option<&str>, symbols: &mut Symbols) -> Option<Symbol> {
    text.filter(|text| !text.is_empty()).map(|text| symbols.intern(text))
}

fn sorted(texts: Option<&Vec<String>>, symbols: &mut Symbols) -> Box<[Symbol]> {
    let mut found: Vec<_> = texts.into_iter().flatten().map(|text| symbols.intern(text)).collect();
    found.sort_unstable();
    found.into()
}

fn volume_mode(mode: Option<&str>) -> VolumeMode {
    match mode {
        Some("Block") => VolumeMode::Block,
        _ => VolumeMode::Filesystem,
    }
}

fn volume_phase(phase: Option<&str>) -> VolumePhase {
    match phase {
        None | Some("") => VolumePhase::Unset,
        Some("Pending") => VolumePhase::Pending,
        Some("Available") => VolumePhase::Available,
        Some("Bound") => VolumePhase::Bound,
        Some("Lost") => VolumePhase::Lost,
        Some(_) => VolumePhase::Gone,
    }
}

/// In-tree plug-in and the handle that the CSI driver which has taken it over knows the volume by.
fn in_tree(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: &core::PersistentVolumeSpec,
) -> Option<(&'static str, String)> {
    let label = |key| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", String::as_str);
    Some(if let Some(disk) = &spec.gce_persistent_disk {
        let zone = match label("failure-domain.beta.kubernetes.io/zone") {
            "" => label("topology.kubernetes.io/zone"),
            zone => zone,
        };
        (plugin::GCE_PD, gce_handle(zone, &disk.pd_name))
    } else if let Some(disk) = &spec.aws_elastic_block_store {
        (plugin::AWS_EBS, ebs_handle(&disk.volume_id).to_owned())
    } else if let Some(disk) = &spec.azure_disk {
        (plugin::AZURE_DISK, disk.disk_uri.clone())
    } else if let Some(share) = &spec.azure_file {
        (plugin::AZURE_FILE, share.share_name.clone())
    } else if let Some(disk) = &spec.cinder {
        (plugin::CINDER, disk.volume_id.clone())
    } else if let Some(disk) = &spec.portworx_volume {
        (plugin::PORTWORX, disk.volume_id.clone())
    } else {
        (plugin::VSPHERE, spec.vsphere_volume.as_ref()?.volume_path.clone())
    })
}

/// Zones of a disk that is in several are joined by two underscores; such a disk belongs to their region.
fn gce_handle(zones: &str, disk: &str) -> String {
    let (place, name) = match zones.split_once("__") {
        None if zones.is_empty() => ("zones", "UNSPECIFIED"),
        None => ("zones", zones),
        Some((first, _)) => ("regions", first.rsplit_once('-').map_or(first, |(region, _)| region)),
    };
    format!("projects/UNSPECIFIED/{place}/{name}/disks/{disk}")
}

/// `aws://zone/vol-1` and `vol-1` are the same volume.
fn ebs_handle(id: &str) -> &str {
    match id.strip_prefix("aws://") {
        Some(rest) => rest.trim_end_matches('/').rsplit_once('/').map_or(rest, |(_, volume)| volume),
        None => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_migrated_volumes() {
        for (zones, handle) in [
            ("", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
            ("europe-west1-b", "projects/UNSPECIFIED/zones/europe-west1-b/disks/d"),
            ("europe-west1-b__europe-west1-c", "projects/UNSPECIFIED/regions/europe-west1/disks/d"),
        ] {
            assert_eq!(gce_handle(zones, "d"), handle, "{zones:?}");
        }
        for id in ["vol-1", "aws://eu-west-1a/vol-1", "aws:///vol-1", "aws://eu-west-1a/vol-1/"] {
            assert_eq!(ebs_handle(id), "vol-1", "{id}");
        }
    }
}
