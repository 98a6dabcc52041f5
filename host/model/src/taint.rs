//! Taints and tolerations.

use serde::{Deserialize, Serialize};

use crate::symbol::{Symbol, known};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New pods are not placed.
    NoSchedule,
    /// New pods are placed elsewhere if possible; filters ignore it.
    PreferNoSchedule,
    /// New pods are not placed and running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The word that Kubernetes uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A node taint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Taint {
    /// Key.
    pub key: Symbol,
    /// Value; may be empty.
    pub value: Symbol,
    /// Effect.
    pub effect: TaintEffect,
}

/// How a toleration compares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Values are equal.
    Equal,
    /// Any value.
    Exists,
    /// The taint's number is less than the toleration's. Behind a feature gate that is off through Kubernetes 1.37.
    Lt,
    /// The taint's number is greater than the toleration's. Behind the same gate.
    Gt,
    /// A word that this version of Kubernetes does not know: tolerates nothing.
    Unknown,
}

/// What a pod puts up with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Toleration {
    /// Key; empty matches every key.
    pub key: Symbol,
    /// How to compare.
    pub operator: TolerationOperator,
    /// Value to compare with.
    pub value: Symbol,
    /// Effect; none matches every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether this tolerates the taint, numeric operators being off (Kubernetes `Toleration.ToleratesTaint`).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key == known::EMPTY || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Lt | TolerationOperator::Gt | TolerationOperator::Unknown => false,
            }
    }
}
