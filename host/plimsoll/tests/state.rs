//! `plimsoll simulate` with the state of a running process decides as that process does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::path::Path;
use std::process::Command;

use plimsoll_core::Memory;
use plimsoll_core::cloud::{Group, Instance, InstanceState, NodeMatch, Snapshot};
use plimsoll_model::Time;
use plimsoll_signals::state::{Cloud, LoopState};
use serde_json::{Value, json};

const AT: &str = "2026-01-31T12:00:00Z";

/// Three idle nodes of one group: unneeded for two hours, for half an hour, and not for long enough to be known.
fn dump(folder: &Path, more: Vec<Value>) -> String {
    let names = ["n1", "n2", "n3"];
    let node = |name: &&str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let mut items: Vec<Value> = names.iter().map(node).collect();
    let at = Time::parse(AT).unwrap();
    let mut memory = Memory::default();
    for (name, minutes) in [("n1", 120), ("n2", 30)] {
        memory.unneeded_since_ms.insert(name.to_owned(), at.millis() - minutes * 60_000);
    }
    let mut group = Group::sized("workers", 0, 9, 3);
    group.observed_at = at;
    let instance = |name: &&str| Instance::new(*name, NodeMatch::NodeName((*name).to_owned()), InstanceState::Running);
    group.instances = names.iter().map(instance).collect();
    let cloud = Cloud { snapshot: Snapshot { groups: vec![group], complete: true }, ..Cloud::default() };
    let flags = vec!["--scale-down-unneeded-time=1h".to_owned()];
    items.push(serde_json::to_value(LoopState::new(AT.to_owned(), flags, memory, cloud)).unwrap());
    items.extend(more);
    let path = folder.join("dump.json");
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn simulate(arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args([&["simulate", "--output=json"], arguments].concat())
        .output()
        .unwrap();
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        _ => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn going(plan: &Value) -> Vec<&str> {
    plan["scaleDown"].as_array().unwrap().iter().map(|removal| removal["node"].as_str().unwrap()).collect()
}

#[test]
fn time_flags_and_memory_are_those_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump(folder.path(), vec![]);
    let plan = simulate(&[&dump]).unwrap();
    assert_eq!(going(&plan), ["n1"], "{plan:#}");
    assert_eq!(plan["at"], AT);
    let kept = plan["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n2").unwrap();
    assert_eq!(kept["reasons"][0]["message"], "unneeded for 1800s of 3600s", "{kept}");
    // The command line wins.
    let plan = simulate(&[&dump, "--scale-down-unneeded-time=10m"]).unwrap();
    assert_eq!(going(&plan), ["n1", "n2"], "{plan:#}");
    let plan = simulate(&[&dump, "--at=2026-01-31T12:31:00Z"]).unwrap();
    assert_eq!(going(&plan), ["n1", "n2"], "{plan:#}");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let group = json!({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "workers"}, "spec": {"maxSize": 3}});
    let told = simulate(&[&dump(folder.path(), vec![group])]).unwrap_err();
    assert!(told.contains("\"workers\" is in the LoopState and in a NodeGroup"), "{told}");
    let odd =
        json!({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LoopState", "metadata": {"name": "p"}, "spec": {}});
    let told = simulate(&[&dump(folder.path(), vec![odd.clone()])]).unwrap_err();
    assert!(told.contains("LoopState"), "{told}");
    let path = folder.path().join("odd.json");
    std::fs::write(&path, odd.to_string()).unwrap();
    let told = simulate(&[path.to_str().unwrap()]).unwrap_err();
    assert!(told.contains("missing field") && told.contains("plimsoll dump"), "{told}");
}
