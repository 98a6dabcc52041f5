//! Devices, claims and classes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use plimsoll_model::Cluster;
use plimsoll_model::convert::{Kind, TemplateObjects};
use plimsoll_model::devices::{Attribute, Choice, ConstraintRule, DeviceCount, DeviceTaintEffect, Reach};
use serde_json::{Value, json};

fn import(kind: Kind, object: Value) -> Cluster {
    let mut cluster = Cluster::default();
    kind.import_value(object, &mut cluster).unwrap();
    cluster
}

fn slice(spec: Value) -> Value {
    let mut all =
        json!({"driver": "gpu.example.com", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"metadata": {"name": "s"}, "spec": all})
}

#[test]
fn slices_say_where_their_devices_are() {
    let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]});
    for (name, spec, expected) in [
        ("a node", json!({"nodeName": "n1"}), "Node"),
        ("all", json!({"allNodes": true}), "All"),
        ("some", json!({"nodeSelector": selector}), "Selector"),
        ("each device", json!({"perDeviceNodeSelection": true}), "EachDevice"),
        ("nothing", json!({}), "Unknown"),
        ("not all", json!({"allNodes": false}), "Unknown"),
    ] {
        let cluster = import(Kind::ResourceSlice, slice(spec));
        let found = format!("{:?}", cluster.devices.slices[0].nodes);
        assert!(found.starts_with(expected), "{name}: {found}");
    }
}

#[test]
fn devices_with_all_their_parts() {
    let device = json!({
        "name": "d",
        "attributes": {"a": {"int": 1}, "b": {"bool": true}, "c": {"string": "x"}, "d": {"version": "1.0.0"}, "e": {"ints": [1]}},
        "capacity": {"memory": {"value": 2, "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": 1}}}},
        "consumesCounters": [{"counterSet": "set", "counters": {"slots": {"value": 3}}}],
        "taints": [{"key": "k", "effect": "NoExecute"}, {"key": "k", "value": "v", "effect": "None"}],
        "allowMultipleAllocations": true,
        "bindsToNode": true,
        "bindingConditions": ["ready"],
    });
    let cluster = import(Kind::ResourceSlice, slice(json!({"nodeName": "n1", "devices": [device]})));
    let device = &cluster.devices.slices[0].devices[0];
    let attributes: Vec<Attribute> = device.attributes.iter().map(|(_, value)| *value).collect();
    let [.., Attribute::Text(text), Attribute::Version(version), Attribute::Other] = attributes[..] else {
        panic!("{attributes:?}")
    };
    assert_eq!(attributes[..2], [Attribute::Int(1), Attribute::Bool(true)]);
    assert_eq!((cluster.text(text), cluster.text(version)), ("x", "1.0.0"));
    let (_, memory) = &device.capacity[0];
    let policy = memory.policy.as_ref().unwrap();
    assert_eq!((memory.value.units(), policy.default.unwrap().units()), (2, 1));
    assert_eq!(policy.range.unwrap().step.unwrap().units(), 1);
    assert_eq!(device.consumes[0].counters[0].1.units(), 3);
    assert_eq!(device.taints[0].effect, DeviceTaintEffect::NoExecute);
    assert!(matches!(device.taints[1].effect, DeviceTaintEffect::Other(_)));
    assert!(device.shareable && device.binds_to_node && device.binding_conditions);
}

#[test]
fn claims_ask_and_hold() {
    let cluster = import(
        Kind::ResourceClaim,
        json!({
            "metadata": {"name": "c", "namespace": "ns", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]},
            "spec": {"devices": {
                "requests": [
                    {"name": "one", "exactly": {"deviceClassName": "gpu", "adminAccess": true}},
                    {"name": "two", "firstAvailable": [
                        {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"},
                        {"name": "three", "deviceClassName": "gpu", "count": 3, "capacity": {"requests": {"memory": 1}}}]},
                    {"name": "new"},
                ],
                "constraints": [{"requests": ["one"], "matchAttribute": "d/a"}, {"distinctAttribute": "d/b"}, {}],
            }},
            "status": {
                "allocation": {"devices": {"results": [
                    {"request": "one", "driver": "d", "pool": "p", "device": "x", "shareID": "s",
                     "consumedCapacity": {"memory": "1Gi"}, "bindingFailureConditions": ["broken"]},
                    {"request": "one", "driver": "d", "pool": "p", "device": "y", "adminAccess": true}]}},
                "devices": [{"driver": "d", "pool": "p", "device": "x", "shareID": "s", "conditions": [
                    {"type": "broken", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}],
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            },
        }),
    );
    let find = |text| cluster.symbols.find(text).unwrap();
    let claim = &cluster.devices.claims[&(find("ns"), find("c"))];
    assert_eq!(claim.owner_pod, Some((find("p"), find("u"))));
    assert_eq!(*claim.reserved_for, [find("u")]);
    let spec = &cluster.devices.specs[claim.spec];
    let [one, two, new] = &spec.requests[..] else { panic!("three requests") };
    assert!(
        matches!(&one.choice, Choice::Exactly(request) if request.admin && request.count == DeviceCount::Exactly(1))
    );
    let Choice::FirstAvailable(choices) = &two.choice else { panic!("alternatives") };
    assert_eq!((choices[0].count, choices[1].count), (DeviceCount::All, DeviceCount::Exactly(3)));
    assert_eq!(choices[1].capacity[0].1.units(), 1);
    assert_eq!(new.choice, Choice::Unknown);
    let rules: Vec<_> = spec.constraints.iter().map(|constraint| constraint.rule).collect();
    assert_eq!(
        rules,
        [ConstraintRule::Match(find("d/a")), ConstraintRule::Distinct(find("d/b")), ConstraintRule::Unknown]
    );
    let [x, y] = &claim.allocation.as_ref().unwrap().devices[..] else { panic!("two devices") };
    assert!(x.shared && x.failed && !x.admin && y.admin && !y.failed);
    assert_eq!(x.consumed[0].1.units(), 1 << 30);
}

#[test]
fn older_versions_are_read_too() {
    let mut cluster = Cluster::default();
    for text in [
        r#"{"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": "d",
            "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "x", "basic": {"attributes": {"a": {"int": 1}}}}]}}"#,
        r#"{"apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourceSlice", "metadata": {"name": "t"}, "spec": {"driver": "d",
            "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "x", "attributes": {"a": {"int": 1}}}]}}"#,
    ] {
        Kind::ResourceSlice.admit_text(text, &mut cluster).unwrap();
    }
    let [old, newer] = &cluster.devices.slices[..] else { panic!("two slices") };
    assert_eq!(old.devices, newer.devices);
    assert_eq!(old.devices[0].attributes[0].1, Attribute::Int(1));
}

#[test]
fn templates_bring_devices_of_their_own() {
    let mut cluster = Cluster::default();
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}, "status": {"allocation": {}}});
    let objects = |reach: Value| TemplateObjects {
        node: json!({"metadata": {"name": "t"}}),
        resource_slices: vec![slice(reach)],
        resource_claims: vec![claim.clone()],
        ..TemplateObjects::default()
    };
    let template = cluster.template_from_values("x", objects(json!({"nodeName": "t"}))).unwrap();
    assert_eq!(template.slices[0].nodes, Reach::Node(template.node.name));
    assert!(cluster.devices.slices.is_empty());
    assert!(cluster.devices.claims.values().all(|claim| claim.allocation.is_none()));
    assert_eq!(cluster.devices.claims.len(), 1);
    let bad = cluster.template_from_values("x", objects(json!({"allNodes": true}))).unwrap_err();
    assert_eq!(
        bad.to_string(),
        "templateResourceSlices[0].spec.nodeName: the devices of a template's slice are on its own node; give the template's \
         name as nodeName"
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let slice = slice(json!({"devices": [{"name": "d", "capacity": {"memory": {"value": "much"}}}]}));
    let error = Kind::ResourceSlice.import_value(slice, &mut Cluster::default()).unwrap_err();
    assert_eq!(error.path().to_string(), "spec.devices[0].capacity.memory.value");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "much"}}}}]}}});
    let error = Kind::ResourceClaim.import_value(claim, &mut Cluster::default()).unwrap_err();
    assert_eq!(error.path().to_string(), "spec.devices.requests[0].exactly.capacity.requests.memory");
}
