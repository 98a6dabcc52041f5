//! Nodes.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::resources::Resources;
use crate::symbol::Symbol;
use crate::taint::Taint;
use crate::time::Time;

/// State of a node condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// A node condition, such as `Ready` or `MemoryPressure`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// Type.
    pub kind: Symbol,
    /// Status.
    pub status: ConditionStatus,
    /// Reason.
    pub reason: Symbol,
    /// `lastTransitionTime`.
    pub since: Option<Time>,
}

/// One node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Name.
    pub name: Symbol,
    /// UID; empty if the input has none.
    pub uid: Box<str>,
    /// Labels.
    pub labels: Labels,
    /// Taints.
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`: what pods may use.
    pub allocatable: Resources,
    /// `spec.providerID`.
    pub provider_id: Box<str>,
    /// First address of type InternalIP.
    pub internal_ip: Option<Box<str>>,
    /// When it was made.
    pub created_at: Option<Time>,
    /// Conditions.
    pub conditions: Box<[Condition]>,
    /// Features that it declares, sorted.
    pub features: Box<[Symbol]>,
    /// Annotation `cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"`.
    pub scale_down_disabled: bool,
    /// Some annotation with prefix `delay-deletion.cluster-autoscaler.kubernetes.io/`.
    pub deletion_delayed: bool,
}

impl Node {
    /// An empty node with a name, for tests and as a base to build on.
    pub fn bare(name: Symbol) -> Self {
        Self {
            name,
            uid: Box::default(),
            labels: Labels::default(),
            taints: Box::default(),
            unschedulable: false,
            capacity: Resources::default(),
            allocatable: Resources::default(),
            provider_id: Box::default(),
            internal_ip: None,
            created_at: None,
            conditions: Box::default(),
            features: Box::default(),
            scale_down_disabled: false,
            deletion_delayed: false,
        }
    }

    /// A condition by its type.
    #[inline]
    pub fn condition(&self, kind: Symbol) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The taint with this key.
    #[inline]
    pub fn taint(&self, key: Symbol) -> Option<&Taint> {
        self.taints.iter().find(|taint| taint.key == key)
    }
}
