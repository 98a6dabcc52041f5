//! Devices and claims to them (Dynamic Resource Allocation with structured parameters), as far as scheduling looks at them.
//!
//! Drivers offer devices in [`ResourceSlice`]s, several of which make a pool. A [`ResourceClaim`] asks for devices of
//! [`DeviceClass`]es; the scheduler picks them when the first pod with the claim gets its node.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::selector::NodeSelector;
use crate::symbol::Symbol;
use crate::time::Time;

/// All objects of `resource.k8s.io`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Devices {
    /// DeviceClasses by name.
    pub classes: FxHashMap<Symbol, DeviceClass>,
    /// ResourceSlices, in the order of arrival.
    #[serde(with = "shared")]
    pub slices: Vec<Arc<ResourceSlice>>,
    /// ResourceClaims by namespace and name.
    pub claims: FxHashMap<(Symbol, Symbol), ResourceClaim>,
    /// What ResourceClaimTemplates make claims of, by namespace and name.
    pub templates: FxHashMap<(Symbol, Symbol), ClaimSpecId>,
    /// What claims ask for.
    pub specs: ClaimSpecs,
}

impl Devices {
    /// Whether every number of a spec stands for one. What was read from elsewhere may have others.
    pub fn is_sound(&self) -> bool {
        let count = self.specs.specs.len();
        let claims = self.claims.values().map(|claim| claim.spec);
        claims.chain(self.templates.values().copied()).all(|spec| (spec.0 as usize) < count)
    }
}

/// Number of a [`ClaimSpec`] in [`ClaimSpecs`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimSpecId(u32);

/// Every claim spec, once. Only grows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClaimSpecs {
    specs: IndexSet<ClaimSpec, FxBuildHasher>,
}

impl ClaimSpecs {
    /// The number of a spec, given if it is new.
    pub fn intern(&mut self, spec: ClaimSpec) -> ClaimSpecId {
        let (index, _) = self.specs.insert_full(spec);
        ClaimSpecId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// As the list of all specs, in the order of their numbers.
impl Serialize for ClaimSpecs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.specs)
    }
}

impl<'de> Deserialize<'de> for ClaimSpecs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let specs = Vec::<ClaimSpec>::deserialize(deserializer)?;
        Ok(Self { specs: specs.into_iter().collect() })
    }
}

/// Slices that several holders share are written out for each.
pub(crate) mod shared {
    use super::{Arc, Deserialize, ResourceSlice};

    pub(crate) fn serialize<S: serde::Serializer>(of: &[Arc<ResourceSlice>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(of.iter().map(AsRef::as_ref))
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Arc<ResourceSlice>>, D::Error> {
        Ok(Vec::<ResourceSlice>::deserialize(from)?.into_iter().map(Arc::new).collect())
    }
}

impl std::ops::Index<ClaimSpecId> for ClaimSpecs {
    type Output = ClaimSpec;
    /// # Panics
    ///
    /// If the number is of another table and out of range.
    #[allow(clippy::indexing_slicing, reason = "an index operator may panic, and says so")]
    fn index(&self, id: ClaimSpecId) -> &ClaimSpec {
        &self.specs[id.0 as usize]
    }
}

/// What a claim asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ClaimSpec {
    /// `spec.devices.requests`.
    pub requests: Box<[ClaimRequest]>,
    /// `spec.devices.constraints`.
    pub constraints: Box<[Constraint]>,
}

/// One request of a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimRequest {
    /// Its name.
    pub name: Symbol,
    /// What will do.
    pub choice: Choice,
}

/// What a request takes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Choice {
    /// `exactly`.
    Exactly(DeviceRequest),
    /// `firstAvailable`: the first of these that can be had.
    FirstAvailable(Box<[DeviceRequest]>),
    /// Neither: something that only a newer Kubernetes knows.
    Unknown,
}

/// Which devices, and how many.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// Name of the request, or of the sub-request.
    pub name: Symbol,
    /// `deviceClassName`.
    pub class: Symbol,
    /// All of these hold.
    pub selectors: Box<[DeviceSelector]>,
    /// How many.
    pub count: DeviceCount,
    /// Whether devices in use will do, and stay usable for others (`adminAccess`).
    pub admin: bool,
    /// Device taints that it puts up with.
    pub tolerations: Box<[DeviceToleration]>,
    /// Amounts of each device, by name of the capacity, sorted.
    pub capacity: Box<[(Symbol, Quantity)]>,
    /// Whether it wants attributes that are derived from others, which this scheduler does not know.
    pub derives_attributes: bool,
}

/// How many devices a request takes (`allocationMode`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum DeviceCount {
    /// So many.
    Exactly(i64),
    /// All that match, at least one.
    All,
    /// A word that is not known.
    Unknown(Symbol),
}

/// Which devices will do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum DeviceSelector {
    /// An expression in the Common Expression Language.
    Cel(Symbol),
    /// Something that only a newer Kubernetes knows.
    Unknown,
}

/// What holds between the devices of a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Constraint {
    /// Requests that it is about, as `request` or `request/sub-request`; empty: all.
    pub requests: Box<[Symbol]>,
    /// What they have to do with each other.
    pub rule: ConstraintRule,
}

/// How devices have to do with each other. Names of attributes have their domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ConstraintRule {
    /// All have the same value of this attribute.
    Match(Symbol),
    /// No two have the same value of this attribute.
    Distinct(Symbol),
    /// Something that only a newer Kubernetes knows.
    Unknown,
}

/// A taint of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DeviceTaint {
    /// Key.
    pub key: Symbol,
    /// Value; may be empty.
    pub value: Symbol,
    /// Effect.
    pub effect: DeviceTaintEffect,
}

/// What a taint does to claims that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum DeviceTaintEffect {
    /// The device is not picked.
    NoSchedule,
    /// The device is not picked, and pods with it are evicted.
    NoExecute,
    /// Nothing, or nothing that this scheduler knows.
    Other(Symbol),
}

/// What a request puts up with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DeviceToleration {
    /// Key; empty matches every key if the operator is `Exists`.
    pub key: Symbol,
    /// Value to compare with; none: any value (operator `Exists`).
    pub value: Option<Symbol>,
    /// Effect as Kubernetes writes it; empty matches every effect.
    pub effect: Symbol,
    /// False: the operator is not known, so that it tolerates nothing.
    pub known: bool,
}

/// A DeviceClass.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceClass {
    /// All of these hold for its devices.
    pub selectors: Box<[DeviceSelector]>,
    /// `spec.extendedResourceName`: requests for this resource may be met by its devices.
    pub extended_resource: Option<Symbol>,
    /// When it was made.
    pub created_at: Option<Time>,
}

/// A ResourceClaim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResourceClaim {
    /// What it asks for.
    pub spec: ClaimSpecId,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Name and UID of the pod that owns it, if one does.
    pub owner_pod: Option<(Symbol, Symbol)>,
    /// What it was given, if it was.
    pub allocation: Option<Allocation>,
    /// UIDs of the consumers that it is reserved for.
    pub reserved_for: Box<[Symbol]>,
}

/// What a claim was given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Allocation {
    /// Nodes on which the devices can be used; none: all.
    pub nodes: Option<NodeSelector>,
    /// The devices.
    pub devices: Box<[AllocatedDevice]>,
}

/// A device that a claim was given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// Which.
    pub device: DeviceName,
    /// Whether with admin access, which leaves the device to others.
    pub admin: bool,
    /// Whether only a share of it.
    pub shared: bool,
    /// How much of the device the share takes, by name of the capacity.
    pub consumed: Box<[(Symbol, Quantity)]>,
    /// Whether a condition says that it cannot be made ready (`bindingFailureConditions`).
    pub failed: bool,
}

/// What tells a device from all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct DeviceName {
    /// Driver.
    pub driver: Symbol,
    /// Pool of the driver.
    pub pool: Symbol,
    /// Device of the pool.
    pub device: Symbol,
}

/// A ResourceSlice: devices of one pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResourceSlice {
    /// Name of the object.
    pub name: Symbol,
    /// Driver.
    pub driver: Symbol,
    /// Pool.
    pub pool: Symbol,
    /// Generation of the pool; only slices of the greatest count.
    pub generation: i64,
    /// How many slices of this generation make the pool.
    pub slices_in_pool: i64,
    /// Where its devices can be used.
    pub nodes: Reach,
    /// The devices.
    pub devices: Box<[Device]>,
    /// What devices of the pool share, by name.
    pub counters: Box<[CounterSet]>,
}

/// Nodes on which devices can be used.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Reach {
    /// The node of this name.
    Node(Symbol),
    /// All.
    All,
    /// Those that match.
    Selector(NodeSelector),
    /// Each device says it by itself (slices only).
    EachDevice,
    /// Nothing is said, or something that only a newer Kubernetes knows.
    Unknown,
}

/// Amounts that devices of a pool share.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct CounterSet {
    /// Name.
    pub name: Symbol,
    /// Amounts by name.
    pub counters: Box<[(Symbol, Quantity)]>,
}

/// One device.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Device {
    /// Name within the pool.
    pub name: Symbol,
    /// Attributes by name as written, with or without domain.
    pub attributes: Box<[(Symbol, Attribute)]>,
    /// Capacities by name as written, with or without domain.
    pub capacity: Box<[(Symbol, Capacity)]>,
    /// Where it can be used, if its slice leaves that to the devices.
    pub nodes: Reach,
    /// What it takes from the counters of its pool: set by set.
    pub consumes: Box<[CounterSet]>,
    /// Taints.
    pub taints: Box<[DeviceTaint]>,
    /// Whether several claims may have a share of it.
    pub shareable: bool,
    /// Whether a claim that has it can be used on one node alone.
    pub binds_to_node: bool,
    /// Whether it must be made ready before a pod is bound (`bindingConditions`); the scheduler looks at such devices last.
    pub binding_conditions: bool,
}

/// Value of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Attribute {
    /// A whole number.
    Int(i64),
    /// Yes or no.
    Bool(bool),
    /// Text.
    Text(Symbol),
    /// A version as in semver 2.0.0.
    Version(Symbol),
    /// A list, or something that only a newer Kubernetes knows.
    Other,
}

/// How much there is of something in a device.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Capacity {
    /// Altogether.
    pub value: Quantity,
    /// How requests for a share are made to fit.
    pub policy: Option<SharePolicy>,
}

/// How requests for a share are made to fit (`requestPolicy`).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SharePolicy {
    /// What a request takes that does not say; none: all there is.
    pub default: Option<Quantity>,
    /// Requests are rounded up to the next of these, ascending.
    pub values: Box<[Quantity]>,
    /// Requests are rounded up into this range.
    pub range: Option<ShareRange>,
}

/// Amounts from `least` up to `most`, in steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ShareRange {
    /// The least amount.
    pub least: Quantity,
    /// The greatest amount.
    pub most: Option<Quantity>,
    /// Distance of the amounts between, beginning at the least.
    pub step: Option<Quantity>,
}

/// Prefix of the resource name that stands for a device class without a resource name of its own.
pub const IMPLICIT_RESOURCE: &str = "deviceclass.resource.kubernetes.io/";
