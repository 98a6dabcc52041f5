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

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    #[test]
    fn cordoned_nodes_take_only_pods_that_tolerate_the_cordon() {
        let refused = "NodeUnschedulable: node(s) were unschedulable";
        for (name, cordoned, tolerations, expected) in [
            ("a plain pod on a cordoned node", true, "[]", refused),
            ("a plain pod on another node", false, "[]", ""),
            ("the taint by key and effect", true, "[{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]", ""),
            ("everything", true, "[{operator: Exists}]", ""),
            ("another effect", true, "[{key: node.kubernetes.io/unschedulable, effect: NoExecute}]", refused),
            ("another key", true, "[{key: other, operator: Exists}]", refused),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", &format!("{{spec: {{unschedulable: {cordoned}}}}}"));
            let pod = scene.pod(&format!("{{spec: {{tolerations: {tolerations}}}}}"));
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }
}
