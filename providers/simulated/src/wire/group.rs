//! Groups and machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Failure, is_false};

/// Which state is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateQuery {
    /// Revision that the asker holds; if nothing changed since, the answer has no groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Only these groups; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The state of the cloud.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Name of this state; equal states have equal names.
    pub revision: String,
    /// When it was so, in milliseconds since the Unix epoch, by the cloud's clock.
    pub observed_at_ms: u64,
    /// The groups; none: nothing changed since the revision in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<Group>>,
    /// When the next read is worth while, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_refresh_ms: Option<u32>,
}

/// Whether a group takes orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[serde(rename_all = "kebab-case")]
pub enum TemplateChoice {
    /// There is exactly one.
    #[default]
    Single,
    /// The cloud picks any of them.
    AnyOf,
    /// There is one for each zone.
    OnePerZone,
}

/// A set of like machines.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Group {
    /// Its id.
    pub id: String,
    /// Name for people; empty: the id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Least size.
    pub min: u32,
    /// Greatest size.
    pub max: u32,
    /// Size that the cloud works towards.
    pub target: u32,
    /// Whether it takes orders.
    #[serde(default)]
    pub status: GroupStatus,
    /// Its machines.
    pub instances: Vec<Instance>,
    /// There may be more machines than listed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub instances_incomplete: bool,
    /// Changes whenever the templates would.
    #[serde(default)]
    pub template_version: String,
    /// How several templates are meant.
    #[serde(default)]
    pub template_choice: TemplateChoice,
    /// Its settings.
    #[serde(default)]
    pub options: GroupOptions,
    /// Sizes change all or nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub atomic: bool,
    /// What the cloud does or did to it lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<Activity>,
    /// What did not work lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ScaleFailure>,
    /// It could not be read now; the rest is the last good state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Settings of one group; what is left out is the autoscaler's own choice.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct GroupOptions {
    /// Utilization below which a node is unneeded, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_threshold_milli: Option<u32>,
    /// The same for nodes with accelerators, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator_utilization_threshold_milli: Option<u32>,
    /// How long a node must be unneeded, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unneeded_ms: Option<u64>,
    /// How long an unready node must be unneeded, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_ms: Option<u64>,
    /// How long a machine may take to become a node, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provision_ms: Option<u64>,
    /// How long a node may take to become ready, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<u64>,
    /// The group is either empty or full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_or_max: Option<bool>,
    /// Whether utilization leaves DaemonSet pods out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_daemon_sets_utilization: Option<bool>,
    /// For the priority expander; higher wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Anything else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// On its way.
    Creating,
    /// Up.
    Running,
    /// On its way out.
    Deleting,
    /// Will not come up.
    Failed,
    /// Something that this provider does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Instance {
    /// Its name in the cloud.
    pub id: String,
    /// Where it is in its life.
    pub state: InstanceState,
    /// `spec.providerID` of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Name of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// When it was asked for, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at_ms: Option<u64>,
    /// Zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Machine type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Why it failed, or why it is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Whether the cloud may take it back at any time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spot: bool,
    /// Why it may not be deleted; none: it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<String>,
    /// Wished for, no machine yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub placeholder: bool,
}

/// How an activity ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActivityState {
    /// It has not.
    #[default]
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
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Activity {
    /// Its name in the cloud.
    pub id: String,
    /// How it ended.
    pub state: ActivityState,
    /// When it began, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    /// Key of the order that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Machines that were wished for and did not come.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScaleFailure {
    /// Stable name, so that it is counted once.
    pub id: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// How many machines are missing.
    pub missing: u32,
    /// Why.
    pub error: Failure,
    /// Zone, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Machine type, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
}
