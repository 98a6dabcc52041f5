//! NodeName: pods that ask for one node by name.

use plimsoll_model::{Node, PodSpec};

use super::{Admission, Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// A pod that names a node goes there or nowhere.
pub(crate) struct NodeName;

impl Predicate for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn admit(&self, _facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        pod.node_name.map_or(Admission::Anywhere, |name| Admission::Only(vec![name]))
    }
}

impl StaticRule for NodeName {
    fn refuse(&self, _facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let refused = pod.node_name.is_some_and(|name| name != node.name);
        Vec::from_iter(refused.then_some(Reason::OtherNode))
    }

    fn reads_identity(&self, _facts: &Facts<'_>, pod: &PodSpec) -> bool {
        pod.node_name.is_some()
    }
}
