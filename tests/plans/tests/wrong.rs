//! Wrong plans are noticed.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

use plimsoll_model::read::{Input, Reader};
use plimsoll_tests_plans::{Plan, Summary, check};
use serde_json::json;

const INPUT: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '2', memory: 4Gi, pods: '10'}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: x}
spec: {containers: [{name: c, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: x}
spec: {containers: [{name: c, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: g}
spec:
  maxSize: 1
  targetSize: 0
  template: {apiVersion: v1, kind: Node, metadata: {name: t}, status: {allocatable: {cpu: '2', memory: 4Gi, pods: '10'}}}
";

fn input() -> Input {
    let mut reader = Reader::default();
    reader.add("input.yaml", INPUT.as_bytes()).unwrap();
    reader.finish().unwrap()
}

fn growth(to: u32) -> serde_json::Value {
    json!({"group": "g", "from": 0, "to": to, "pods": ["x/b"]})
}

fn placed(pod: &str, outcome: &str, on: &str) -> serde_json::Value {
    json!({"pod": pod, "outcome": outcome, "on": on})
}

fn verdict(scale_up: serde_json::Value, pods: serde_json::Value) -> Result<Summary, String> {
    let plan: Plan = serde_json::from_value(json!({"scaleUp": scale_up, "pods": pods})).unwrap();
    check(&input(), &plan).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_right_plan_is_summed_up() {
    let pods = json!([placed("x/a", "fits-existing", "n1"), placed("x/b", "scale-up", "g#0")]);
    assert_eq!(verdict(json!([growth(1)]), pods), Ok(Summary { helped: 1, nodes: 1, left_over: 0 }));
}

#[test]
fn wrong_plans() {
    let on_n1 = placed("x/a", "fits-existing", "n1");
    for (name, scale_up, pods, why) in [
        ("two on one node", json!([]), json!([on_n1, placed("x/b", "fits-existing", "n1")]), "does not fit"),
        ("a node that was not asked for", json!([growth(1)]), json!([placed("x/b", "scale-up", "g#1")]), "nowhere"),
        ("more than the group may have", json!([growth(2)]), json!([]), "greatest size is 1"),
        ("a pod that is not there", json!([]), json!([placed("x/c", "fits-existing", "n1")]), "not in the input"),
        (
            "nothing without a reason",
            json!([]),
            json!([{"pod": "x/a", "outcome": "not-helped", "reasons": []}]),
            "no reason",
        ),
    ] {
        let error = verdict(scale_up, pods).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
    }
}
