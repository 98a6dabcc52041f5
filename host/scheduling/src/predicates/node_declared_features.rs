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

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    #[test]
    fn every_needed_feature_is_declared() {
        for (name, declared, needed, fits) in [
            ("nothing needed", vec![], vec![], true),
            ("declared", vec!["A", "B"], vec!["B"], true),
            ("not declared", vec!["A"], vec!["B"], false),
            ("one of two", vec!["A"], vec!["A", "B"], false),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            let symbols = &mut scene.cluster.symbols;
            let declared = declared.iter().map(|feature| symbols.intern(feature)).collect();
            scene.cluster.nodes[0].features = declared;
            let pod = scene.pod_with("{}", |cluster, spec| {
                spec.features = needed.iter().map(|feature| cluster.symbols.intern(feature)).collect();
            });
            let expected = if fits { "" } else { "NodeDeclaredFeatures: node(s) didn't match Pod's required features" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }
}
