//! Why a pod does not fit a node, in Kubernetes' words and with the numbers behind them.

use std::fmt;

/// When in the scheduler's cycle a pod was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Before any node was looked at: the pod fits nowhere.
    PreFilter,
    /// The pod names its nodes, and this one is not among them.
    NodeSet,
    /// By a filter on this node.
    Filter,
    /// After all filters: the pod would be let in, but could not be bound.
    Reserve,
}

/// The first refusal in the scheduler's order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The predicate, by its Kubernetes name; several names with commas between them when they narrowed the nodes
    /// together; empty when the sets of nodes of two predicates have nothing in common.
    pub predicate: &'static str,
    /// When it happened.
    pub phase: Phase,
    /// What was wrong. Empty in phase [`Phase::NodeSet`].
    pub reasons: Vec<Reason>,
}

/// One thing that was wrong. `Display` gives Kubernetes' text; the fields say more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The node is cordoned and the pod does not tolerate that.
    Cordoned,
    /// The pod asks for another node by name.
    OtherNode,
    /// A taint that the pod does not tolerate.
    UntoleratedTaint {
        /// As `key=value:effect`.
        taint: Box<str>,
    },
    /// Node selector or required node affinity.
    NodeAffinity,
    /// Required node affinity names nodes, but none of them in all entries.
    AffinityTermsConflict,
    /// Two predicates narrowed the nodes to sets without a common one.
    DisjointNodeSets {
        /// Their names, with spaces between.
        predicates: &'static str,
    },
    /// A host port is taken.
    HostPort {
        /// As `address:port/protocol`.
        port: Box<str>,
    },
    /// The node's pod limit.
    TooManyPods {
        /// Allocatable pods of the node.
        limit: i64,
    },
    /// A resource is short.
    Insufficient {
        /// Its name.
        resource: Box<str>,
        /// What the pod asks for, in base units (cpu in thousandths of a core).
        asked: i64,
        /// What is left on the node; negative if it is over-committed.
        free: i64,
        /// What the node offers altogether.
        allocatable: i64,
    },
    /// A disk named in the pod is in use on the node.
    DiskInUse,
    /// A claim that only one pod may use is in use somewhere.
    ClaimInUse {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// A claim does not exist.
    ClaimMissing {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// A claim lost its volume.
    ClaimLost {
        /// Name of the claim.
        claim: Box<str>,
        /// Name of the lost volume; may be empty.
        volume: Box<str>,
    },
    /// A claim is being deleted.
    ClaimDeleted {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// The claim of an ephemeral volume was not made yet.
    ClaimAwaited {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// The claim of an ephemeral volume belongs to something else.
    ClaimOfOther {
        /// `namespace/name` of the claim.
        claim: Box<str>,
        /// `namespace/name` of the pod.
        pod: Box<str>,
    },
    /// A claim without a volume, whose class binds at once: the volume must come first.
    UnboundImmediateClaim,
    /// The volume of a bound claim does not exist, as node filter.
    BoundVolumeMissing,
    /// The volume of a bound claim cannot be reached from the node.
    VolumeAffinity,
    /// No volume for a claim, and none can be made for this node.
    NoVolume,
    /// The storage that could make a volume for this node is too full.
    NotEnoughStorage,
    /// Limit of volumes of one driver.
    TooManyVolumes {
        /// CSI driver.
        driver: Box<str>,
        /// What the node allows.
        limit: i64,
        /// Volumes attached already.
        attached: i64,
        /// Volumes that the pod adds.
        more: i64,
    },
    /// The CSI driver is not on the node, and says that pods must not come then.
    DriverMissing {
        /// CSI driver.
        driver: Box<str>,
    },
    /// The volume's zone labels rule the node out.
    VolumeZone,
    /// The volume of a bound claim does not exist, for the whole cluster.
    VolumeMissing {
        /// Name of the volume.
        volume: Box<str>,
    },
    /// A claim with neither volume nor class.
    ClaimWithoutClass,
    /// A claim's class does not exist.
    ClassMissing {
        /// Name of the class.
        class: Box<str>,
    },
    /// A class without a binding mode.
    ClassWithoutMode {
        /// Name of the class.
        class: Box<str>,
    },
    /// A claim without a volume, as VolumeZone words it.
    ClaimWithoutVolume,
    /// The node lacks the label that a spread constraint counts by.
    SpreadLabelMissing {
        /// Label key.
        key: Box<str>,
    },
    /// One more pod would make a domain too full.
    SpreadSkew {
        /// Label key.
        key: Box<str>,
        /// Matching pods in the node's domain.
        matching: i64,
        /// Fewest matching pods of any domain.
        fewest: i64,
        /// Greatest allowed difference.
        max_skew: i64,
    },
    /// Required pod affinity.
    PodAffinity,
    /// Required pod anti-affinity.
    PodAntiAffinity,
    /// Required pod anti-affinity of a pod that runs already.
    ExistingAntiAffinity,
    /// A selector of the pod cannot be read.
    InvalidSelector {
        /// What Kubernetes reports it under.
        place: &'static str,
        /// Why.
        why: Box<str>,
    },
    /// The node does not declare a feature that the pod needs.
    MissingFeature {
        /// Name of the feature.
        feature: Box<str>,
    },
    /// A resource claim does not exist.
    DeviceClaimMissing {
        /// `namespace/name` of the claim.
        claim: Box<str>,
    },
    /// A resource claim is being deleted.
    DeviceClaimDeleted {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// A resource claim was not made from its template yet.
    DeviceClaimAwaited {
        /// `namespace/name` of the pod.
        pod: Box<str>,
    },
    /// A resource claim that was made for another pod.
    DeviceClaimOfOther {
        /// `namespace/name` of the claim.
        claim: Box<str>,
        /// `namespace/name` of the pod.
        pod: Box<str>,
    },
    /// A resource claim has devices that cannot be used on the node, or not at all.
    DevicesElsewhere {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// The devices that the claims ask for cannot be had.
    NoDevices,
    /// The same, and some pool contradicts itself.
    InvalidPools,
    /// Something about a claim or a class is wrong, so that devices cannot even be looked for.
    DeviceFault {
        /// What.
        why: Box<str>,
    },
    /// No way to give the claims their devices was found in the time that is allowed, and it is not known whether there is
    /// one.
    DeviceSearchTooLong,
    /// A resource claim has as many consumers as it can have.
    DeviceClaimFull {
        /// Name of the claim.
        claim: Box<str>,
    },
    /// The node is being taken away. Not a reason of the scheduler: see `Snapshot::close`.
    Closed,
}

impl Reason {
    /// When a filter's reason takes effect.
    pub(crate) fn phase(&self) -> Phase {
        if matches!(self, Self::DeviceClaimFull { .. }) { Phase::Reserve } else { Phase::Filter }
    }
}

/// A refusal by a filter, if there are reasons.
pub(crate) fn by_filter(predicate: &'static str, reasons: Vec<Reason>) -> Option<Refusal> {
    let phase = reasons.first()?.phase();
    Some(Refusal { predicate, phase, reasons })
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cordoned => "node(s) were unschedulable",
            Self::OtherNode => "node(s) didn't match the requested node name",
            Self::UntoleratedTaint { .. } => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::AffinityTermsConflict => "pod affinity terms conflict",
            Self::DisjointNodeSets { predicates } => {
                return write!(f, "node(s) didn't satisfy plugin(s) [{predicates}] simultaneously");
            }
            Self::HostPort { .. } => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods { .. } => "Too many pods",
            Self::Insufficient { resource, .. } => return write!(f, "Insufficient {resource}"),
            Self::DiskInUse => "node(s) had no available disk",
            Self::ClaimInUse { .. } => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
            Self::ClaimMissing { claim } => return write!(f, "persistentvolumeclaim {claim:?} not found"),
            Self::ClaimLost { claim, volume } => {
                return write!(f, "persistentvolumeclaim {claim:?} bound to non-existent persistentvolume {volume:?}");
            }
            Self::ClaimDeleted { claim } => return write!(f, "persistentvolumeclaim {claim:?} is being deleted"),
            Self::ClaimAwaited { claim } => {
                return write!(
                    f,
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {claim:?}"
                );
            }
            Self::ClaimOfOther { claim, pod } => {
                return write!(f, "PVC {claim} was not created for pod {pod} (pod is not owner)");
            }
            Self::UnboundImmediateClaim => "pod has unbound immediate PersistentVolumeClaims",
            Self::BoundVolumeMissing => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Self::VolumeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::NoVolume => "node(s) didn't find available persistent volumes to bind",
            Self::NotEnoughStorage => "node(s) did not have enough free storage",
            Self::TooManyVolumes { .. } => "node(s) exceed max volume count",
            Self::DriverMissing { driver } => return write!(f, "node(s) did not have the CSI driver {driver}"),
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::VolumeMissing { volume } => return write!(f, "persistentvolume {volume:?} not found"),
            Self::ClaimWithoutClass => "PersistentVolumeClaim had no pv name and storageClass name",
            Self::ClassMissing { class } => return write!(f, "storageclass.storage.k8s.io {class:?} not found"),
            Self::ClassWithoutMode { class } => {
                return write!(f, "VolumeBindingMode not set for StorageClass {class:?}");
            }
            Self::ClaimWithoutVolume => "PersistentVolume had no name",
            Self::SpreadLabelMissing { .. } => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::SpreadSkew { .. } => "node(s) didn't match pod topology spread constraints",
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::InvalidSelector { place, why } => return write!(f, "{place}: {why}"),
            Self::MissingFeature { .. } => "node(s) didn't match Pod's required features",
            Self::DeviceClaimMissing { claim } => return write!(f, "claim {claim} not found"),
            Self::DeviceClaimDeleted { claim } => return write!(f, "resourceclaim {claim:?} is being deleted"),
            Self::DeviceClaimAwaited { pod } => return write!(f, "pod {pod:?}: ResourceClaim not created yet"),
            Self::DeviceClaimOfOther { claim, pod } => {
                return write!(f, "ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)");
            }
            Self::DevicesElsewhere { .. } => "resourceclaim not available on the node",
            Self::NoDevices => "cannot allocate all claims",
            Self::InvalidPools => "invalid resource pools were encountered",
            Self::DeviceFault { why } => return write!(f, "running \"DynamicResources\" filter plugin: {why}"),
            Self::DeviceSearchTooLong => "the search for devices took too many steps",
            Self::DeviceClaimFull { claim } => {
                return write!(f, "resourceclaim {claim:?} has no room for another consumer");
            }
            Self::Closed => "node(s) are being removed",
        })
    }
}
