//! NodeDeclaredFeatures: features that a node must declare.

use plimsoll_model::{Node, PodSpec};

use super::{Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// Every feature that the pod needs is declared by the node.
pub(crate) struct NodeDeclaredFeatures;

impl Predicate for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatures"
    }
}

impl StaticRule for NodeDeclaredFeatures {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let missing = pod.features.iter().find(|feature| !node.features.contains(feature));
        Vec::from_iter(missing.map(|&feature| Reason::MissingFeature { feature: facts.text(feature) }))
    }
}
