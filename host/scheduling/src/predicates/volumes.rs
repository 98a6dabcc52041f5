//! What the volume predicates have in common: which claims a pod has, and what became of them.

use plimsoll_model::pod::Volume;
use plimsoll_model::storage::{BindingMode, Claim, StorageClass};
use plimsoll_model::symbol::known;
use plimsoll_model::{PodSpec, Symbol};

use crate::facts::Facts;

/// Names of the claims that the pod refers to by `persistentVolumeClaim`; not those of ephemeral volumes.
pub(crate) fn claims(pod: &PodSpec) -> impl Iterator<Item = Symbol> {
    pod.volumes.iter().filter_map(|volume| match volume {
        Volume::Claim(name) => Some(*name),
        Volume::Ephemeral { .. } | Volume::Disk(_) | Volume::InlineCsi(_) => None,
    })
}

/// Names of all claims of the pod, those of ephemeral volumes too.
pub(crate) fn all_claims(pod: &PodSpec) -> impl Iterator<Item = Symbol> {
    pod.volumes.iter().filter_map(|volume| match volume {
        Volume::Claim(name) | Volume::Ephemeral { claim: name, .. } => Some(*name),
        Volume::Disk(_) | Volume::InlineCsi(_) => None,
    })
}

/// Whether a claim has its volume for good.
pub(crate) fn is_bound(claim: &Claim) -> bool {
    claim.volume.is_some() && claim.bind_completed
}

/// The class of a claim; the empty symbol if it has none.
pub(crate) fn class(claim: &Claim) -> Symbol {
    claim.class.unwrap_or(known::EMPTY)
}

/// The class of a claim whose volume is to be found or made once its pod has a node; none for other claims.
pub(crate) fn delayed_class<'c>(facts: &Facts<'c>, claim: &Claim) -> Option<&'c StorageClass> {
    let class = facts.cluster.storage.classes.get(&class(claim))?;
    (claim.volume.is_none() && class.binding_mode == Some(BindingMode::WaitForFirstConsumer)).then_some(class)
}
