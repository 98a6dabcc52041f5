//! The node that a group would create next.

use crate::cluster::SpecId;
use crate::node::Node;

/// A node that does not exist yet, with the pods that it will start with.
#[derive(Clone, Debug)]
pub struct Template {
    /// The node. Its name and its host-name label stand for names yet to come: each copy gets its own.
    pub node: Node,
    /// DaemonSet pods and static pods of a fresh node: spec and label for people.
    pub pods: Vec<TemplatePod>,
}

/// A pod that every fresh node of a template starts with.
#[derive(Clone, Debug)]
pub struct TemplatePod {
    /// Its name for people, such as `kube-system/node-agent`.
    pub name: Box<str>,
    /// What it asks for.
    pub spec: SpecId,
    /// Whether it stands for a DaemonSet pod (otherwise a static pod).
    pub daemon_set: bool,
}
