//! Claims, volumes, classes and what CSI drivers report.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::storage::v1 as storage;

use super::super::error::Within;
use super::amounts::{amount, amounts};
use super::selectors::{label_selector, node_selector};
use super::{Admit, Checked, at_least, each, each_of, optional_word, word};

const ACCESS_MODES: &[&str] = &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
const VOLUME_MODES: &[&str] = &["Filesystem", "Block"];
const BINDING_MODES: &[&str] = &["Immediate", "WaitForFirstConsumer"];
const CLAIM_PHASES: &[&str] = &["Pending", "Bound", "Lost"];
const VOLUME_PHASES: &[&str] = &["Pending", "Available", "Bound", "Released", "Failed"];

impl Admit for core::PersistentVolumeClaim {
    fn admit(&mut self) -> Checked {
        if let Some(spec) = &self.spec {
            let resources = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            amounts(resources).field("requests").field("resources").field("spec")?;
            each_of(spec.access_modes.as_ref(), |mode| word(mode, ACCESS_MODES)).field("accessModes").field("spec")?;
            optional_word(spec.volume_mode.as_deref(), VOLUME_MODES).field("volumeMode").field("spec")?;
            label_selector(spec.selector.as_ref()).field("selector").field("spec")?;
        }
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        optional_word(phase, CLAIM_PHASES).field("phase").field("status")
    }
}

impl Admit for core::PersistentVolume {
    fn admit(&mut self) -> Checked {
        if let Some(spec) = &self.spec {
            amounts(spec.capacity.as_ref()).field("capacity").field("spec")?;
            each_of(spec.access_modes.as_ref(), |mode| word(mode, ACCESS_MODES)).field("accessModes").field("spec")?;
            optional_word(spec.volume_mode.as_deref(), VOLUME_MODES).field("volumeMode").field("spec")?;
            let affinity = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
            node_selector(affinity).field("required").field("nodeAffinity").field("spec")?;
        }
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        optional_word(phase, VOLUME_PHASES).field("phase").field("status")
    }
}

impl Admit for storage::StorageClass {
    fn admit(&mut self) -> Checked {
        optional_word(self.volume_binding_mode.as_deref(), BINDING_MODES).field("volumeBindingMode")
    }
}

impl Admit for storage::CSINode {
    fn admit(&mut self) -> Checked {
        let driver = |driver: &storage::CSINodeDriver| {
            let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            at_least(0, count).field("count").field("allocatable")
        };
        each(&self.spec.drivers, driver).field("drivers").field("spec")
    }
}

impl Admit for storage::CSIDriver {
    fn admit(&mut self) -> Checked {
        Ok(())
    }
}

impl Admit for storage::CSIStorageCapacity {
    fn admit(&mut self) -> Checked {
        self.capacity.as_ref().map_or(Ok(()), amount).field("capacity")?;
        self.maximum_volume_size.as_ref().map_or(Ok(()), amount).field("maximumVolumeSize")?;
        label_selector(self.node_topology.as_ref()).field("nodeTopology")
    }
}

impl Admit for storage::VolumeAttachment {
    fn admit(&mut self) -> Checked {
        Ok(())
    }
}
