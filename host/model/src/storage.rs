//! Volumes, claims and classes, as far as predicates look at them.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::selector::{LabelSelector, NodeSelector};
use crate::symbol::Symbol;

/// All storage objects.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Storage {
    /// PersistentVolumeClaims by namespace and name.
    pub claims: FxHashMap<(Symbol, Symbol), Claim>,
    /// PersistentVolumes by name.
    pub volumes: FxHashMap<Symbol, PersistentVolume>,
    /// StorageClasses by name.
    pub classes: FxHashMap<Symbol, StorageClass>,
    /// CSINodes by node name.
    pub csi_nodes: FxHashMap<Symbol, CsiNode>,
    /// CSIDrivers by name.
    pub csi_drivers: FxHashMap<Symbol, CsiDriver>,
    /// CSIStorageCapacities.
    pub capacities: Vec<CsiStorageCapacity>,
    /// VolumeAttachments.
    pub attachments: Vec<VolumeAttachment>,
}

/// Whether a volume is a file system or a raw device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum VolumeMode {
    /// A file system.
    #[default]
    Filesystem,
    /// A raw device.
    Block,
}

/// Phase of a claim or volume.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum VolumePhase {
    /// None given.
    #[default]
    Unset,
    /// Pending.
    Pending,
    /// Available.
    Available,
    /// Bound.
    Bound,
    /// Lost.
    Lost,
    /// Released or failed.
    Gone,
}

/// A PersistentVolumeClaim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Name of the bound or wished volume; none if empty.
    pub volume: Option<Symbol>,
    /// Annotation `pv.kubernetes.io/bind-completed` is there.
    pub bind_completed: bool,
    /// `spec.storageClassName` or the older annotation; none if absent, the empty symbol if set to "".
    pub class: Option<Symbol>,
    /// Access modes, sorted.
    pub access_modes: Box<[Symbol]>,
    /// Requested bytes.
    pub request_bytes: Option<i64>,
    /// Volume mode.
    pub mode: VolumeMode,
    /// Which volumes will do.
    pub selector: Option<LabelSelector>,
    /// `spec.volumeAttributesClassName`.
    pub attributes_class: Option<Symbol>,
    /// Phase.
    pub phase: VolumePhase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Annotation `volume.kubernetes.io/selected-node`.
    pub selected_node: Option<Symbol>,
    /// Name and UID of the pod that owns it, if one does.
    pub owner_pod: Option<(Symbol, Symbol)>,
    /// UID.
    pub uid: Symbol,
}

/// A PersistentVolume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PersistentVolume {
    /// Labels.
    pub labels: Labels,
    /// Required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// CSI driver and volume handle.
    pub csi: Option<(Symbol, Symbol)>,
    /// In-tree plug-in and handle, for volumes that are not CSI.
    pub in_tree: Option<(Symbol, Symbol)>,
    /// Bytes.
    pub capacity_bytes: i64,
    /// Class; the empty symbol if none.
    pub class: Symbol,
    /// Access modes, sorted.
    pub access_modes: Box<[Symbol]>,
    /// Volume mode.
    pub mode: VolumeMode,
    /// `spec.volumeAttributesClassName`.
    pub attributes_class: Option<Symbol>,
    /// Phase.
    pub phase: VolumePhase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// `spec.claimRef`: namespace, name, UID (empty if none).
    pub claim: Option<(Symbol, Symbol, Symbol)>,
}

/// When a claim of a class is bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum BindingMode {
    /// At once.
    Immediate,
    /// When a pod needs it.
    WaitForFirstConsumer,
}

/// A StorageClass.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StorageClass {
    /// Provisioner.
    pub provisioner: Symbol,
    /// Binding mode; none if absent.
    pub binding_mode: Option<BindingMode>,
    /// `allowedTopologies`: terms of (key, values).
    pub allowed_topologies: Vec<Vec<(Symbol, Box<[Symbol]>)>>,
}

/// A CSINode.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CsiNode {
    /// Drivers with their volume limits.
    pub drivers: Vec<(Symbol, Option<i32>)>,
    /// In-tree plug-ins that are migrated, from the annotation `storage.alpha.kubernetes.io/migrated-plugins`.
    pub migrated_plugins: Box<[Symbol]>,
}

/// A CSIDriver.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CsiDriver {
    /// `spec.storageCapacity`.
    pub storage_capacity: bool,
    /// `spec.preventPodSchedulingIfMissing`.
    pub prevent_scheduling_if_missing: bool,
}

/// A CSIStorageCapacity.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CsiStorageCapacity {
    /// Class.
    pub class: Symbol,
    /// Which nodes; none matches nothing.
    pub topology: Option<LabelSelector>,
    /// Bytes that are left.
    pub capacity_bytes: Option<i64>,
    /// Largest volume, in bytes.
    pub maximum_volume_bytes: Option<i64>,
}

/// A VolumeAttachment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// CSI driver.
    pub attacher: Symbol,
    /// Node name.
    pub node: Symbol,
    /// PersistentVolume name.
    pub volume: Option<Symbol>,
}
