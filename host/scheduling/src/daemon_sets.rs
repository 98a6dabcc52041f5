//! Which DaemonSets a fresh node gets a pod of.

use plimsoll_model::{Cluster, Node, SpecId};

use crate::facts::{Facts, Gates};
use crate::predicates::{StaticRule, node_affinity, node_name, taint_toleration};

/// Whether the DaemonSet controller puts a pod with this spec on a node: node name, node selector and affinity, and taints
/// decide; resources do not. The spec must have the tolerations that the controller adds
/// ([`DaemonSet::spec`](plimsoll_model::workload::DaemonSet::spec) has them).
///
/// Kubernetes `daemon.NodeShouldRunDaemonPod`.
pub fn runs_daemon_pod(cluster: &Cluster, gates: Gates, spec: SpecId, node: &Node) -> bool {
    let facts = Facts::without_storage(cluster, gates);
    let rules: [&dyn StaticRule; 3] =
        [&node_name::NodeName, &node_affinity::NodeAffinity, &taint_toleration::TaintToleration];
    rules.iter().all(|rule| rule.refuse(&facts, &cluster.specs[spec], node).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn what_decides_and_what_does_not() {
        for (name, spec, node, expected) in [
            ("nothing asked for", "", "{}", true),
            ("another kind of node", "nodeSelector: {disk: ssd}", "{metadata: {labels: {disk: hdd}}}", false),
            ("the right kind of node", "nodeSelector: {disk: ssd}", "{metadata: {labels: {disk: ssd}}}", true),
            ("a taint", "", "{spec: {taints: [{key: a, effect: NoSchedule}]}}", false),
            (
                "a tolerated taint",
                "tolerations: [{operator: Exists}]",
                "{spec: {taints: [{key: a, effect: NoExecute}]}}",
                true,
            ),
            ("a soft taint", "", "{spec: {taints: [{key: a, effect: PreferNoSchedule}]}}", true),
            ("no room", "containers: [{name: c, resources: {requests: {cpu: \"999\"}}}]", "{}", true),
            ("a cordon", "", "{spec: {unschedulable: true}}", true),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", node);
            let spec = scene.pod(&format!("{{spec: {{{spec}}}}}"));
            let runs = runs_daemon_pod(&scene.cluster, Gates::default(), spec, &scene.cluster.nodes[0]);
            assert_eq!(runs, expected, "{name}");
        }
    }
}
