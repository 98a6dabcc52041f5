//! What the groups refer to: configurations, launch templates, types, subnets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::group::TypeChoice;

/// A scaling configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Configuration {
    /// Identifier.
    pub id: String,
    /// Group that it belongs to.
    pub group: String,
    /// Types, best first.
    pub types: Vec<TypeChoice>,
    /// Image.
    pub image: String,
    /// Category of the system disk.
    pub system_disk: String,
    /// Size of the system disk in GiB.
    pub system_disk_gib: u32,
    /// Data disks: category and size in GiB.
    pub data_disks: Vec<(String, u32)>,
    /// Tags of its machines.
    pub tags: BTreeMap<String, String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            id: "asc-1".to_owned(),
            group: String::new(),
            types: vec![TypeChoice { instance_type: "ecs.g7.xlarge".to_owned(), weight: 1 }],
            image: "aliyun_3_x64_20G_alibase_20240528.vhd".to_owned(),
            system_disk: "cloud_essd".to_owned(),
            system_disk_gib: 40,
            data_disks: vec![],
            tags: BTreeMap::new(),
        }
    }
}

/// One version of a launch template.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchTemplate {
    /// Identifier.
    pub id: String,
    /// Version.
    pub version: u32,
    /// The version that `Default` means.
    #[serde(default)]
    pub default: bool,
    /// Type.
    pub instance_type: String,
    /// Size of the system disk in GiB.
    pub system_disk_gib: u32,
    /// Data disks: category and size in GiB.
    #[serde(default)]
    pub data_disks: Vec<(String, u32)>,
    /// Tags of its machines.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A type of machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceType {
    /// Name.
    pub name: String,
    /// Cores.
    pub cpu: u32,
    /// Memory in GiB; may be a fraction.
    pub memory_gib: f64,
    /// `X86` or `ARM`.
    pub architecture: String,
    /// GPUs.
    pub gpu: u32,
    /// Name of the GPU.
    pub gpu_name: String,
    /// Price for an hour, without disks; none: made up from its parts.
    pub price_per_hour: Option<f64>,
}

impl Default for InstanceType {
    fn default() -> Self {
        Self {
            name: "ecs.g7.xlarge".to_owned(),
            cpu: 4,
            memory_gib: 16.0,
            architecture: "X86".to_owned(),
            gpu: 0,
            gpu_name: String::new(),
            price_per_hour: None,
        }
    }
}

impl InstanceType {
    /// Family: the name without its size.
    pub fn family(&self) -> String {
        self.name.rsplit_once('.').map_or(self.name.as_str(), |(family, _)| family).to_owned()
    }
}

/// A subnet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VSwitch {
    /// Identifier.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Addresses that are free.
    #[serde(default = "plenty")]
    pub free: u32,
}

fn plenty() -> u32 {
    4000
}
