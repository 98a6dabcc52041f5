//! What groups would create, and what it costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Failure, is_false};

/// Whose templates are asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TemplatesQuery {
    /// The groups; the answer has one entry for each.
    pub groups: Vec<String>,
}

/// Templates by group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Templates {
    /// One entry for each group asked for.
    pub groups: Vec<GroupTemplates>,
}

/// The templates of one group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupTemplates {
    /// The group.
    pub group: String,
    /// The version that these belong to.
    #[serde(default)]
    pub version: String,
    /// The templates.
    #[serde(default)]
    pub templates: Vec<Template>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New pods are not placed.
    #[default]
    NoSchedule,
    /// New pods are placed elsewhere if possible.
    PreferNoSchedule,
    /// New pods are not placed and running ones are evicted.
    NoExecute,
}

/// A node taint.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

/// Accelerators of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Accelerator {
    /// Model, such as `nvidia-l4`.
    pub model: String,
    /// Resource under which pods ask for it.
    pub resource_name: String,
    /// Devices per node.
    pub count: u32,
    /// Name of the dynamic resource allocation driver, if that is how pods get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra_driver: Option<String>,
}

/// A node that a group would create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Template {
    /// Stable name: equal for equal content.
    pub key: String,
    /// Units of group size that one such node counts.
    pub weight: u32,
    /// Machine type.
    pub instance_type: String,
    /// CPU architecture.
    pub arch: String,
    /// Operating system.
    pub os: String,
    /// Region.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Zone; none if the cloud chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What the machine has: resource name and quantity text.
    pub capacity: BTreeMap<String, String>,
    /// What pods may use; empty: all of the capacity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// Node labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Node annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Taints that stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Taints that go away once the node is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub startup_taints: Vec<Taint>,
    /// Accelerators, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Accelerator>,
    /// Most volumes per CSI driver.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub csi_limits: BTreeMap<String, String>,
    /// ResourceSlice objects as JSON text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_slices: Vec<String>,
    /// Whether the cloud may take the machine back at any time.
    #[serde(skip_serializing_if = "is_false")]
    pub spot: bool,
    /// Anything else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl Default for Template {
    /// A Linux machine on amd64 of weight 1 with nothing in it.
    fn default() -> Self {
        Self {
            key: String::new(),
            weight: 1,
            instance_type: String::new(),
            arch: "amd64".to_owned(),
            os: "linux".to_owned(),
            region: String::new(),
            zone: None,
            capacity: BTreeMap::new(),
            allocatable: BTreeMap::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: vec![],
            startup_taints: vec![],
            accelerator: None,
            csi_limits: BTreeMap::new(),
            resource_slices: vec![],
            spot: false,
            attributes: BTreeMap::new(),
        }
    }
}

/// All prices, in millionths of the currency per hour.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prices {
    /// ISO 4217 code.
    pub currency: String,
    /// Not to be used after this time, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until_ms: Option<u64>,
    /// Prices of nodes.
    #[serde(default)]
    pub templates: Vec<TemplatePrice>,
    /// Prices of resources.
    #[serde(default)]
    pub units: Vec<UnitPrice>,
}

/// Price of one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TemplatePrice {
    /// The group.
    pub group: String,
    /// The template's key.
    pub template_key: String,
    /// Millionths of the currency per hour.
    pub micros_per_hour: u64,
}

/// Price of one core, GiB or device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnitPrice {
    /// Resource name.
    pub resource_name: String,
    /// Millionths of the currency per unit and hour.
    pub micros_per_hour: u64,
    /// Only for nodes with these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
}
