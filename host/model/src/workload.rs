//! Objects that stand behind pods: controllers, budgets, DaemonSets.

use serde::{Deserialize, Serialize};

use crate::cluster::SpecId;
use crate::pod::OwnerKind;
use crate::selector::LabelSelector;
use crate::symbol::Symbol;

/// A controller other than a DaemonSet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Controller {
    /// Kind.
    pub kind: OwnerKind,
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// `spec.replicas`, which the API server always fills in; none for kinds without it.
    pub replicas: Option<i64>,
}

/// A DaemonSet, as far as fresh nodes need it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DaemonSet {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// UID; empty if the input has none.
    pub uid: Symbol,
    /// Its pod, from the template (not defaulted by the API server), with the tolerations that the DaemonSet controller
    /// adds.
    pub spec: SpecId,
    /// Whether its pod template is marked `system-node-critical`.
    pub node_critical: bool,
}

/// A PodDisruptionBudget.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PodDisruptionBudget {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// Pods that it protects; none matches nothing, empty matches all of the namespace.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: i32,
}
