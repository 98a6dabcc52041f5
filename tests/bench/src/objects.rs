//! Objects as `kubectl get -o json` gives them, no larger than they must be.

use std::io::{self, Write};

use serde_json::{Value, json};

/// Writes objects as one JSON List, one after the other.
pub(crate) struct List<W: Write> {
    out: W,
    first: bool,
}

impl<W: Write> List<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(br#"{"apiVersion":"v1","kind":"List","items":["#)?;
        Ok(Self { out, first: true })
    }

    pub(crate) fn add(&mut self, object: &Value) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut self.out, object).map_err(io::Error::from)
    }

    pub(crate) fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

/// A pod. Amounts are thousandths of a core and bytes.
pub(crate) fn pod(name: &str, owner: Option<&str>, cpu: u64, memory: u64) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": memory.to_string()}}}
        ]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        ]},
    });
    if let Some(owner) = owner {
        let reference =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true});
        set(&mut pod, "/metadata", "ownerReferences", json!([reference]));
        set(&mut pod, "/metadata", "labels", json!({"app": owner}));
    }
    pod
}

/// The same pod, running on a node.
pub(crate) fn on(mut pod: Value, node: &str) -> Value {
    set(&mut pod, "/spec", "nodeName", json!(node));
    set(&mut pod, "", "status", json!({"phase": "Running"}));
    pod
}

/// A ReplicaSet.
pub(crate) fn replica_set(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}},
    })
}

/// A ready node that holds 100 pods.
pub(crate) fn node(name: &str, labels: &[(&str, &str)], cpu: u64, memory: u64) -> Value {
    let mut of_node: serde_json::Map<String, Value> =
        labels.iter().map(|&(key, value)| (key.to_owned(), json!(value))).collect();
    of_node.insert("kubernetes.io/hostname".to_owned(), json!(name));
    let amounts = json!({"cpu": format!("{cpu}m"), "memory": memory.to_string(), "pods": "100"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": of_node},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    })
}

/// A node group.
pub(crate) fn group(name: &str, max: usize, template: &Value, nodes: &[String]) -> Value {
    json!({
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"minSize": 0, "maxSize": max, "targetSize": nodes.len(), "nodes": nodes, "template": template},
    })
}

/// Sets a field of an object that a JSON pointer finds.
pub(crate) fn set(object: &mut Value, pointer: &str, field: &str, value: Value) {
    if let Some(found) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        found.insert(field.to_owned(), value);
    }
}
