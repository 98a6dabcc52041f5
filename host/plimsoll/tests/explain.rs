//! `plimsoll explain` and `plimsoll dump` on files: what the guide shows is what they print.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: a, topology.kubernetes.io/zone: z1}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {pool: a, topology.kubernetes.io/zone: z1}}
spec: {taints: [{key: team, value: ml, effect: NoSchedule}]}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata:
  {namespace: shop, name: cart-7d9, creationTimestamp: "2026-11-30T18:00:00Z",
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart, uid: u1, controller: true}]}
spec: {containers: [{name: c, resources: {requests: {cpu: "9"}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  {namespace: shop, name: cart-8d9, creationTimestamp: "2026-11-30T18:00:00Z",
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart, uid: u1, controller: true}]}
spec: {containers: [{name: c, resources: {requests: {cpu: "9"}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  {namespace: kube-system, name: metrics-server,
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: ms, uid: u2, controller: true}]}
spec:
  {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 100m}}}], volumes: [{name: buf, emptyDir: {}}]}
"#;

const GROUPS: &str = r#"
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: workers-a}
spec: {minSize: 0, maxSize: 5, nodeSelector: {pool: a}, pricePerHour: "0.4"}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: big}
spec:
  maxSize: 3
  template:
    metadata: {labels: {pool: big}}
    spec: {taints: [{key: team, value: ml, effect: NoSchedule}]}
    status: {capacity: {cpu: "16", memory: 64Gi, pods: "110"}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: mid}
spec:
  maxSize: 3
  template:
    metadata: {labels: {pool: mid}}
    status: {capacity: {cpu: "8", memory: 64Gi, pods: "110"}, allocatable: {cpu: 7500m, memory: 60Gi, pods: "110"}}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cluster.yaml"), CLUSTER).unwrap();
    std::fs::write(folder.path().join("groups.yaml"), GROUPS).unwrap();
    folder
}

fn plimsoll(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(arguments).current_dir(folder).output().unwrap()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = plimsoll(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = plimsoll(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_guide_shows_what_is_printed() {
    let folder = folder();
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signals.md")).unwrap();
    let block = guide.split("```\n").nth(1).unwrap();
    let mut shown = 0;
    for example in block.split("$ plimsoll ").skip(1) {
        let (command, expected) = example.split_once('\n').unwrap();
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--at=2026-11-30T19:29:00Z");
        assert_eq!(printed(folder.path(), &arguments).trim_end(), expected.trim_end(), "{command}");
        shown += 1;
    }
    assert_eq!(shown, 3);
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let folder = folder();
    for (arguments, expected) in [
        (&["explain", "pod", "shop/cart-7d8"][..], "did you mean shop/cart-7d9?"),
        (&["explain", "group", "worker"], "did you mean workers-a?"),
        (&["explain", "node", "elsewhere"], "there was no node \"elsewhere\""),
    ] {
        let told = refused(folder.path(), &[arguments, &["cluster.yaml", "groups.yaml"]].concat());
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

#[test]
fn nobody_answers() {
    let folder = folder();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told = refused(folder.path(), &["explain", "pod", "shop/cart-7d9", &format!("--address=127.0.0.1:{port}")]);
    assert!(told.contains("no autoscaler answers there") && told.contains("port-forward"), "{told}");
    let told = refused(folder.path(), &["explain", "pod", "p", "cluster.yaml", "--address=127.0.0.1:1"]);
    assert!(told.contains("one of them answers"), "{told}");
}

#[test]
fn everything_is_in_the_json() {
    let folder = folder();
    let text = printed(folder.path(), &["explain", "pod", "cart-7d9", "cluster.yaml", "groups.yaml", "--output=json"]);
    let detail: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(detail["helpless"]["reasons"].as_array().unwrap().len(), 3);
    assert_eq!(detail["helpless"]["existing"][0], serde_json::json!(["insufficient cpu", 1]));
}

#[test]
fn an_anonymous_dump_is_decided_about_alike() {
    let folder = folder();
    let dump = folder.path().join("dump.json");
    let dump = dump.to_str().unwrap();
    printed(folder.path(), &["dump", "cluster.yaml", "groups.yaml", "--anonymize", "--anonymize-key=k", "-o", dump]);
    let text = std::fs::read_to_string(dump).unwrap();
    for name in ["workers-a", "shop", "cart", "metrics-server", "n1", "\"ml\"", "z1", "buf"] {
        assert!(!text.contains(name), "{name} is left in {text}");
    }
    let plan = |files: &[&str]| {
        let text =
            printed(folder.path(), &[&["simulate"], files, &["--output=json", "--at=2026-11-30T19:29:00Z"]].concat());
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let (before, after) = (plan(&["cluster.yaml", "groups.yaml"]), plan(&[dump]));
    let outcomes = |plan: &Value, list: &str| {
        let found = plan[list].as_array().unwrap().iter().map(|one| one["outcome"].clone());
        found.collect::<Vec<_>>()
    };
    for list in ["pods", "nodes"] {
        assert_eq!(outcomes(&before, list), outcomes(&after, list));
        assert!(!outcomes(&before, list).is_empty());
    }
    assert_eq!(before["scaleDown"].as_array().unwrap().len(), 1);
    assert_eq!(after["scaleDown"].as_array().unwrap().len(), 1);
}
