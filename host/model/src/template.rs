//! The node that a group would create next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::SpecId;
use crate::devices::ResourceSlice;
use crate::node::Node;
use crate::symbol::Symbol;

/// A node that does not exist yet, with the pods that it will start with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Template {
    /// The node. Its name and its host-name label stand for names yet to come: each copy gets its own.
    pub node: Node,
    /// DaemonSet pods and static pods of a fresh node: spec and label for people.
    pub pods: Vec<TemplatePod>,
    /// Devices of a fresh node. Each node gets its own, in pools of its own.
    #[serde(with = "crate::devices::shared")]
    pub slices: Vec<Arc<ResourceSlice>>,
}

impl Template {
    /// A template without pods and devices.
    pub fn of(node: Node) -> Self {
        Self { node, pods: Vec::new(), slices: Vec::new() }
    }
}

/// A pod that every fresh node of a template starts with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TemplatePod {
    /// Its name for people, such as `kube-system/node-agent`.
    pub name: Box<str>,
    /// What it asks for.
    pub spec: SpecId,
    /// Whether it stands for a DaemonSet pod (otherwise a static pod).
    pub daemon_set: bool,
    /// Name of the DaemonSet that makes it, if it names one. The namespace is the spec's.
    pub owner: Option<Symbol>,
}
