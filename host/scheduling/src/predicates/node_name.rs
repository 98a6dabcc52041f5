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

#[cfg(test)]
mod tests {
    use crate::Phase;
    use crate::testing::Scene;

    #[test]
    fn a_pod_that_names_a_node_goes_there_or_nowhere() {
        for (name, wish, expected) in [
            ("no wish", None, vec!["n1", "n2"]),
            ("a node that is there", Some("n2"), vec!["n2"]),
            ("a node that is not", Some("n3"), vec![]),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            scene.node("n2", "{}");
            let pod = scene.pod_with("{}", |cluster, spec| {
                spec.node_name = wish.map(|wish| cluster.symbols.intern(wish));
            });
            assert_eq!(scene.fitting(pod), expected, "{name}");
            if wish.is_some() {
                let refusal = scene.refusals(pod).remove(0).unwrap();
                assert_eq!((refusal.predicate, refusal.phase), ("NodeName", Phase::NodeSet), "{name}");
            }
        }
    }
}
