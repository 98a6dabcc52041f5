//! The cloud as the loop sees it: groups, machines, templates, prices, and what a write did.
//!
//! These are the host's own records. The contract's records (`wit/`) are converted to and from them in `plugins/abi`;
//! the simulated cloud and node groups read from files make them directly.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Time;
use serde::{Deserialize, Serialize};

/// Name of a node group: unique within one provider, stable over time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(Arc<str>);

/// Name of a machine as the cloud knows it: unique within one provider.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(Arc<str>);

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}
name!(GroupId);
name!(InstanceId);

/// Open door for growth: what is not known is ignored, never refused.
pub type Attributes = Vec<(String, String)>;

/// What kind of failure it was; decides the reaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The cloud has no machines left: try elsewhere, back off here.
    OutOfResources,
    /// A limit that only a human or time lifts.
    Quota,
    /// Balance or arrears.
    Billing,
    /// Credentials or permissions.
    Auth,
    /// The group or the plug-in is set up wrongly.
    Config,
    /// Asked too often; says nothing about the group.
    Throttled,
    /// Another activity runs, or the expected target was stale.
    Conflict,
    /// Network, server error, or an answer that could not be decoded.
    Transient,
    /// The named thing does not exist.
    NotFound,
    /// This provider cannot do that.
    Unsupported,
    /// The machine exists but did not become a node.
    Bootstrap,
    /// Anything else; see the code.
    Other,
}

impl ErrorClass {
    /// Whether it says nothing of the thing itself and passes by itself: the cloud is busy or cannot be reached.
    pub fn passes(self) -> bool {
        matches!(self, Self::Conflict | Self::Throttled | Self::Transient)
    }
}

/// What a failure is about, so that back-off is neither too wide nor too narrow.
#[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorScope {
    /// The whole provider.
    Provider,
    /// One region.
    Region(String),
    /// One zone.
    Zone(String),
    /// One machine type.
    InstanceType(String),
    /// One node group.
    Group(GroupId),
    /// One machine.
    Instance(InstanceId),
}

/// A failure that the provider reports, or that a call to it met (trap, time-out: class transient, outcome unknown).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{}{message}", if code.is_empty() { String::new() } else { format!("{code}: ") })]
pub struct CloudError {
    /// Kind of failure.
    pub class: ErrorClass,
    /// What it is about.
    pub scope: ErrorScope,
    /// The cloud's own code, verbatim; empty if it gave none.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Do not try again before this much time has passed.
    pub retry_after: Option<Duration>,
    /// The request may have been carried out although no good answer arrived.
    pub outcome_unknown: bool,
    /// The cloud's id of the failed request, for its support desk.
    pub request_id: Option<String>,
}

impl CloudError {
    /// A failure of which the cloud itself said nothing: no code, no wait, and what was asked for did not happen.
    pub fn new(class: ErrorClass, scope: ErrorScope, message: String) -> Self {
        Self { class, scope, code: String::new(), message, retry_after: None, outcome_unknown: false, request_id: None }
    }
}

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Severity {
    /// For the author.
    Debug,
    /// Normal.
    Info,
    /// An operator should look.
    Warning,
    /// Something does not work.
    Error,
}

/// A finding that is no failure of the call that reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// Stable code.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// What it is about.
    pub scope: ErrorScope,
}

/// What a provider can do beyond reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Features {
    /// Sizes can be increased.
    pub increase: bool,
    /// Increases can be all or nothing.
    pub atomic_increase: bool,
    /// Targets can be lowered without deleting a machine.
    pub decrease_target: bool,
    /// Machines can be deleted.
    pub delete: bool,
    /// Machines can be deleted without waiting.
    pub force_delete: bool,
    /// A group may shrink to zero.
    pub scale_to_zero: bool,
    /// Templates are known for empty groups.
    pub scale_from_zero: bool,
    /// Groups are found by rules.
    pub discovery: bool,
    /// Machines carry creation errors.
    pub instance_errors: bool,
    /// Groups list their activities.
    pub activities: bool,
    /// The cloud itself checks the expected target.
    pub conditional_size: bool,
    /// The cloud itself honours idempotency keys.
    pub idempotent_writes: bool,
    /// `refresh` needs to see the nodes of the cluster.
    pub needs_node_hints: bool,
}

/// What the host must know about a provider.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// Short name, such as `alicloud`.
    pub provider_name: String,
    /// Version of the plug-in.
    pub plugin_version: String,
    /// What works.
    pub features: Features,
    /// A node whose provider id starts with none of these is not ours. Empty: any may be.
    pub provider_id_prefixes: Vec<String>,
    /// Labels to put into node hints.
    pub wanted_node_labels: Vec<String>,
    /// Most machines in one delete call.
    pub max_delete_batch: u32,
    /// Do not refresh more often than this.
    pub min_refresh_interval: Duration,
    /// Label that names a node's accelerator model.
    pub accelerator_label: Option<String>,
    /// Accelerator models that this provider has.
    pub accelerator_models: Vec<String>,
    /// Room for growth.
    pub attributes: Attributes,
}

/// A node of the cluster, for providers that need to see them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeHint {
    /// Node name.
    pub name: String,
    /// `spec.providerID`.
    pub provider_id: String,
    /// First address of type InternalIP.
    pub internal_ip: Option<String>,
    /// The labels that the provider asked for.
    pub labels: Attributes,
}

/// How a Kubernetes node is recognised. Any one matching entry is enough.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NodeMatch {
    /// `spec.providerID`, byte for byte.
    ProviderId(String),
    /// Node name.
    NodeName(String),
    /// A label with its value.
    Label(String, String),
    /// An address of type InternalIP.
    InternalIp(String),
}

/// Where a machine is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum InstanceState {
    /// On its way.
    Creating,
    /// Up.
    Running,
    /// On its way out.
    Deleting,
    /// Will not come up.
    Failed,
    /// The cloud said something that the provider does not know.
    Unknown,
}

/// A machine of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Its name in the cloud.
    pub id: InstanceId,
    /// How its node is recognised.
    pub matches: Vec<NodeMatch>,
    /// Where it is in its life.
    pub state: InstanceState,
    /// Why it failed, or why it is late.
    pub error: Option<CloudError>,
    /// When it was asked for.
    pub created_at: Option<Time>,
    /// Zone.
    pub zone: Option<String>,
    /// Machine type.
    pub instance_type: Option<String>,
    /// Whether the cloud may take it back at any time.
    pub spot: bool,
    /// Why it may not be deleted; none: it may.
    pub protected: Option<String>,
    /// Wished for, no machine yet.
    pub placeholder: bool,
    /// Room for growth.
    pub attributes: Attributes,
}

impl Instance {
    /// A machine of which nothing more is known than how its node is recognised and where it is in its life.
    pub fn new(id: impl Into<InstanceId>, recognised: NodeMatch, state: InstanceState) -> Self {
        Self {
            id: id.into(),
            matches: vec![recognised],
            state,
            error: None,
            created_at: None,
            zone: None,
            instance_type: None,
            spot: false,
            protected: None,
            placeholder: false,
            attributes: vec![],
        }
    }
}

/// Per-group settings; none means the host's own default.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupOptions {
    /// `scale-down-utilization-threshold`, 0 to 1.
    pub utilization_threshold: Option<f64>,
    /// `scale-down-gpu-utilization-threshold`, 0 to 1.
    pub gpu_utilization_threshold: Option<f64>,
    /// `scale-down-unneeded-time`.
    pub unneeded_time: Option<Duration>,
    /// `scale-down-unready-time`.
    pub unready_time: Option<Duration>,
    /// `max-node-provision-time`.
    pub provision_time: Option<Duration>,
    /// `max-node-startup-time`.
    pub startup_time: Option<Duration>,
    /// The group is either empty or full.
    pub zero_or_max: Option<bool>,
    /// `ignore-daemonsets-utilization`.
    pub ignore_daemon_sets_utilization: Option<bool>,
    /// For the priority expander; higher wins.
    pub priority: Option<i32>,
    /// Room for growth.
    pub attributes: Attributes,
}

/// Whether a group takes orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum GroupStatus {
    /// It does.
    #[default]
    Active,
    /// Someone suspended it.
    Suspended,
    /// It is being deleted.
    Deleting,
}

/// How several templates of a group are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum TemplateChoice {
    /// There is exactly one.
    #[default]
    Single,
    /// The cloud picks any of them.
    AnyOf,
    /// There is one for each zone.
    OnePerZone,
}

/// How an activity ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ActivityState {
    /// It has not.
    Running,
    /// As wished.
    Succeeded,
    /// With fewer machines than wished.
    Partial,
    /// With none.
    Failed,
    /// It never began.
    Rejected,
}

/// Something that the cloud does to a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Activity {
    /// Its name in the cloud.
    pub id: String,
    /// How it ended.
    pub state: ActivityState,
    /// When it began.
    pub started_at: Option<Time>,
    /// The key, if one of our own writes caused it.
    pub idempotency_key: Option<String>,
}

/// Machines that were wished for and did not come, without a machine to show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScaleFailure {
    /// Stable name, so that it is counted once.
    pub id: String,
    /// When.
    pub at: Time,
    /// How many machines are missing.
    pub missing: u32,
    /// Why.
    pub error: CloudError,
    /// Zone, if known.
    pub zone: Option<String>,
    /// Machine type, if known.
    pub instance_type: Option<String>,
}

/// A set of like machines that the cloud scales as one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Its id.
    pub id: GroupId,
    /// Name for people.
    pub name: String,
    /// Least size.
    pub min_size: u32,
    /// Greatest size.
    pub max_size: u32,
    /// Size that the cloud works towards.
    pub target_size: u32,
    /// Whether it takes orders.
    pub status: GroupStatus,
    /// Its machines.
    pub instances: Vec<Instance>,
    /// False: there may be more machines than listed.
    pub instances_complete: bool,
    /// Changes whenever the templates would.
    pub template_version: String,
    /// How several templates are meant.
    pub template_choice: TemplateChoice,
    /// Its settings.
    pub options: GroupOptions,
    /// Sizes change all or nothing.
    pub atomic: bool,
    /// Whether the autoscaler made it.
    pub autoprovisioned: bool,
    /// What the cloud does or did to it lately.
    pub activities: Vec<Activity>,
    /// What did not work lately.
    pub failures: Vec<ScaleFailure>,
    /// It could not be read now; the rest is the last good state.
    pub error: Option<CloudError>,
    /// When this was true.
    pub observed_at: Time,
    /// Room for growth.
    pub attributes: Attributes,
}

impl Group {
    /// An active group with sizes and nothing else, to build on.
    pub fn sized(id: impl Into<GroupId>, min_size: u32, max_size: u32, target_size: u32) -> Self {
        let id = id.into();
        Self {
            name: id.as_str().to_owned(),
            id,
            min_size,
            max_size,
            target_size,
            status: GroupStatus::Active,
            instances: vec![],
            instances_complete: true,
            template_version: String::new(),
            template_choice: TemplateChoice::Single,
            options: GroupOptions::default(),
            atomic: false,
            autoprovisioned: false,
            activities: vec![],
            failures: vec![],
            error: None,
            observed_at: Time::default(),
            attributes: vec![],
        }
    }
}

/// The state of the cloud at one time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The groups.
    pub groups: Vec<Group>,
    /// False: groups that are not listed are unknown, not gone.
    pub complete: bool,
}

/// What a provider read.
#[derive(Clone, PartialEq, Debug)]
pub struct Refresh {
    /// Name of this state; equal states have equal names.
    pub revision: String,
    /// When it was read.
    pub observed_at: Time,
    /// The state; none: nothing changed since the revision that the host named.
    pub snapshot: Option<Snapshot>,
    /// Findings for people.
    pub diagnostics: Vec<Diagnostic>,
    /// When the next read is worth while.
    pub next_refresh: Option<Duration>,
}

/// A taint in text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaintText {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
    /// Effect.
    pub effect: plimsoll_model::TaintEffect,
}

/// Accelerators of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Accelerator {
    /// Model, such as `nvidia-l4`.
    pub model: String,
    /// Resource under which pods ask for it.
    pub resource_name: String,
    /// Devices per node.
    pub count: u32,
    /// Name of the dynamic resource allocation driver, if that is how pods get it.
    pub dra_driver: Option<String>,
}

/// A node that a group would create next, as the provider tells it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodeTemplate {
    /// Stable name: equal for equal content.
    pub key: String,
    /// Units of group size that one such node counts, normally 1.
    pub weight: u32,
    /// Machine type.
    pub instance_type: String,
    /// CPU architecture as in the label `kubernetes.io/arch`.
    pub arch: String,
    /// Operating system as in the label `kubernetes.io/os`.
    pub os: String,
    /// Region.
    pub region: String,
    /// Zone; none if the cloud chooses.
    pub zone: Option<String>,
    /// What the machine has: resource name and quantity text.
    pub capacity: Attributes,
    /// What pods may use; empty: all of the capacity.
    pub allocatable: Attributes,
    /// Node labels.
    pub labels: Attributes,
    /// Node annotations.
    pub annotations: Attributes,
    /// Taints that stay.
    pub taints: Vec<TaintText>,
    /// Taints that go away once the node is ready.
    pub startup_taints: Vec<TaintText>,
    /// Accelerators, if any.
    pub accelerator: Option<Accelerator>,
    /// Most volumes per CSI driver.
    pub csi_limits: Attributes,
    /// ResourceSlice objects as JSON.
    pub resource_slices: Vec<String>,
    /// Whether the cloud may take the machine back at any time.
    pub spot: bool,
    /// Room for growth.
    pub attributes: Attributes,
}

/// The templates of one group.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupTemplates {
    /// The group.
    pub group: GroupId,
    /// The version that these belong to.
    pub version: String,
    /// The templates, or why there are none.
    pub templates: Result<Vec<NodeTemplate>, CloudError>,
}

/// Price of one node, in millionths of the currency per hour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TemplatePrice {
    /// The group.
    pub group: GroupId,
    /// The template's key.
    pub template_key: String,
    /// Millionths of the currency per hour.
    pub micros_per_hour: u64,
}

/// Price of one unit of a resource, in millionths of the currency per hour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnitPrice {
    /// Resource name; one unit is a core, a GiB, or a device.
    pub resource_name: String,
    /// Millionths of the currency per unit and hour.
    pub micros_per_hour: u64,
    /// Only for nodes with these labels.
    pub selector: Attributes,
}

/// All prices.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PriceBook {
    /// ISO 4217 code.
    pub currency: String,
    /// Do not use after this time.
    pub valid_until: Option<Time>,
    /// Prices of nodes.
    pub templates: Vec<TemplatePrice>,
    /// Prices of resources.
    pub units: Vec<UnitPrice>,
}

/// What every write carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteOptions {
    /// Same key, same effect at most once, also after a crash, a time-out or a restart.
    pub idempotency_key: String,
    /// How long the host waits from the start of the call.
    pub deadline: Duration,
    /// Check only and change nothing.
    pub dry_run: bool,
    /// Why the host does this; for audit trails of the cloud.
    pub reason: String,
}

/// What a change of size did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SizeOutcome {
    /// Target after the call, as far as is known.
    pub target_size: u32,
    /// How much of the wished change was accepted.
    pub accepted: u32,
    /// The cloud's activity that carries it out.
    pub activity: Option<String>,
    /// False: accepted, but not visible yet.
    pub confirmed: bool,
    /// Why less was accepted than wished.
    pub shortfall: Option<CloudError>,
}

/// What happened to one machine of a delete call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DeleteStatus {
    /// It will go.
    Accepted,
    /// It was gone before.
    AlreadyGone,
    /// It stays, because of this failure.
    Failed(CloudError),
    /// It was not tried, for this reason.
    Skipped(String),
}

/// What a delete call did: one result for each machine asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeleteOutcome {
    /// Target after the call, as far as is known.
    pub target_size: u32,
    /// Results by machine.
    pub results: Vec<(InstanceId, DeleteStatus)>,
    /// The cloud's activity that carries it out.
    pub activity: Option<String>,
}
