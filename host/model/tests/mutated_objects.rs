//! Objects with something else in some place: they are read or refused in words of the file, and nothing panics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use plimsoll_model::read::Reader;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One object of each kind that has much in it.
fn objects() -> Vec<Value> {
    let selector =
        json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]});
    let amounts = json!({"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1"});
    let term = json!({"topologyKey": "zone", "labelSelector": selector, "namespaces": ["x"]});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let on_nodes = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["5"]}],
         "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}});
    let pod_spec = json!({
        "containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts},
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": 1}}}],
        "overhead": {"cpu": "10m"}, "priority": 5, "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector, "matchLabelKeys": ["a"]}],
        "affinity": {"nodeAffinity": on_nodes, "podAffinity": required, "podAntiAffinity": required},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}, {"name": "e", "ephemeral": {}}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "claim"}],
    });
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "d", "nodeName": "t", "pool": {"name": "t", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}]}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    vec![
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": pod_spec, "status": {"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
            "spec": {"selector": selector, "template": {"spec": pod_spec}}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"selector": selector}, "status": {"disruptionsAllowed": 1}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "claim"}, "spec": {
            "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 2,
                "capacity": {"requests": {"m": "1Gi"}}}}], "constraints": [{"matchAttribute": "d/a"}]}}}),
        json!({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "g"}, "spec": {
            "minSize": 0, "maxSize": 5, "targetSize": 1, "nodes": ["n"], "template": node, "templateResourceSlices": [slice],
            "pricePerHour": "0.4", "options": {"scale-down-unneeded-time": "5m"}}}),
        node,
        slice,
    ]
}

/// What is put in place of something.
fn replacement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "-?[0-9]{1,40}(\\.[0-9]{1,3})?(m|k|Ki|Ei|e[0-9]{1,3})?".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}, [], null])),
        Just(json!({"a": {"b": -1}})),
    ]
}

fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value at a place, counted from the root; false: the tree is smaller.
fn replace(tree: &mut Value, at: &mut usize, by: &Value) -> bool {
    if *at == 0 {
        tree.clone_from(by);
        return true;
    }
    *at -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, at, by)),
        Value::Object(fields) => fields.values_mut().any(|field| replace(field, at, by)),
        _ => false,
    }
}

/// Reads a text and looks at what is said about it.
fn read(text: &str) {
    let mut reader = Reader::default();
    let outcome = reader.add("f", text.as_bytes()).and_then(|()| reader.finish().map(drop));
    let Err(error) = outcome else { return };
    let message = error.to_string();
    assert!(message.starts_with("f:"), "{message}");
    for word in ["invalid type", "invalid value", "untagged", "struct ", "missing field", "unknown field"] {
        assert!(!message.contains(word) || text.contains(word), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn something_else_in_some_place(which: prop::sample::Index, places in prop::collection::vec((any::<prop::sample::Index>(), replacement()), 1..4)) {
        let mut object = which.get(&objects()).clone();
        for (place, by) in &places {
            let mut at = place.index(count(&object));
            replace(&mut object, &mut at, by);
        }
        read(&object.to_string());
        read(&serde_json::to_string_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": [object]})).unwrap());
        read(&format!("---\n{}", serde_saphyr::to_string(&object).unwrap_or_default()));
    }

    #[test]
    fn texts_that_were_cut_off_or_changed(which: prop::sample::Index, cut: prop::sample::Index, put in "\\PC{0,3}") {
        let text = which.get(&objects()).to_string();
        let at = (0..text.len()).filter(|at| text.is_char_boundary(*at)).nth(cut.index(text.len())).unwrap_or(0);
        read(&text[..at]);
        read(&format!("{}{put}{}", &text[..at], &text[at..]));
    }

    #[test]
    fn any_text(text in "\\PC{0,200}", bytes: Vec<u8>) {
        read(&text);
        drop(Reader::default().add("f", &bytes));
    }
}

#[test]
fn the_objects_themselves_are_read() {
    for object in objects() {
        Reader::default().add("f", object.to_string().as_bytes()).unwrap();
    }
}
