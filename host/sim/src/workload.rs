//! Controllers that keep pods alive.

use std::time::Duration;

use plimsoll_model::pod::{DrainTraits, OwnerKind};
use plimsoll_model::{SpecId, Symbol};

/// A Deployment with its one ReplicaSet.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Namespace.
    pub namespace: Symbol,
    /// Name; also the ReplicaSet's.
    pub name: String,
    /// Wished replicas.
    pub replicas: u32,
    /// What each pod asks for.
    pub spec: SpecId,
    /// For the drain rules.
    pub drain: DrainTraits,
    /// What stands behind the pods; none: bare pods that nobody makes again.
    pub owner: Option<OwnerKind>,
    /// How long a pod takes to end.
    pub grace: Duration,
    /// Pods made so far; part of the next pod's name.
    pub(crate) made: u32,
}

impl Workload {
    /// A Deployment with no replicas yet.
    pub fn deployment(namespace: Symbol, name: &str, spec: SpecId) -> Self {
        Self {
            namespace,
            name: name.to_owned(),
            replicas: 0,
            spec,
            drain: DrainTraits::default(),
            owner: Some(OwnerKind::ReplicaSet),
            grace: Duration::from_secs(5),
            made: 0,
        }
    }
}
