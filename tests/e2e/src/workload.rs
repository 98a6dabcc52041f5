//! Workloads of tests, as the objects that a user applies.

use serde_json::{Value, json};

/// A Deployment in the default namespace whose pods have the label `app=NAME` and ask for so much.
pub fn deployment(name: &str, replicas: u32, cpu: &str, memory: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container(cpu, memory)]},
            },
        },
    })
}

/// The only container of a pod.
pub fn container(cpu: &str, memory: &str) -> Value {
    json!({"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

/// Puts a value into an object's tree; a missing parent is made.
pub fn put(object: &mut Value, path: &[&str], value: Value) {
    let mut place = object;
    for key in path {
        if !place.is_object() {
            *place = json!({});
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry((*key).to_owned()).or_insert(Value::Null);
    }
    *place = value;
}
