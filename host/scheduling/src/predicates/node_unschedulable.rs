//! NodeUnschedulable: cordoned nodes.

use plimsoll_model::symbol::known;
use plimsoll_model::{Node, PodSpec, Taint, TaintEffect};

use super::{Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// A cordoned node takes only pods that tolerate the taint of cordoned nodes, whether the node carries it or not.
pub(crate) struct NodeUnschedulable;

/// The taint that stands for the cordon.
const CORDON: Taint = Taint { key: known::UNSCHEDULABLE, value: known::EMPTY, effect: TaintEffect::NoSchedule };

impl Predicate for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }
}

impl StaticRule for NodeUnschedulable {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let refused = node.unschedulable && !facts.tolerated(&pod.tolerations, &CORDON);
        Vec::from_iter(refused.then_some(Reason::Cordoned))
    }
}
