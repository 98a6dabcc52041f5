//! The clusters that are timed, and what a correct answer is.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::objects::{List, group, node, on, pod, replica_set, set};

/// A cluster to time the loop on.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// Flags of `simulate`.
    pub(crate) flags: &'static [&'static str],
    /// Milliseconds that the median of the loop should not exceed, and MiB that the process should not.
    pub(crate) target_ms: f64,
    pub(crate) target_mib: Option<f64>,
    /// What the Go autoscaler takes for one loop on such a machine, in words.
    pub(crate) peer: &'static str,
    pub(crate) write: fn(&mut List<&mut dyn Write>) -> io::Result<()>,
    /// What is wrong with an answer.
    pub(crate) check: fn(&Answer) -> Result<String, String>,
}

const FLAGS: &[&str] = &[];

/// All of them.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "equal-50000",
        flags: FLAGS,
        target_ms: 50.0,
        target_mib: None,
        peer: "26 s",
        write: |list| equal(list, 1000),
        check: |answer| answer.helped(50_000, 1000),
    },
    Scene {
        name: "equal-25000",
        flags: FLAGS,
        target_ms: 50.0,
        target_mib: None,
        peer: "",
        write: |list| equal(list, 500),
        check: |answer| answer.helped(25_000, 500),
    },
    Scene {
        name: "equal-100000",
        flags: &["--max-nodes-per-scaleup=2000"],
        target_ms: 100.0,
        target_mib: None,
        peer: "",
        write: |list| equal(list, 2000),
        check: |answer| answer.helped(100_000, 2000),
    },
    Scene {
        name: "shapes-2000",
        flags: &["--max-nodes-per-scaleup=5000"],
        target_ms: 300.0,
        target_mib: None,
        peer: "23.5 s",
        write: shapes,
        check: |answer| answer.helped(50_000, 1501),
    },
    Scene {
        name: "groups-300",
        flags: FLAGS,
        target_ms: 300.0,
        target_mib: None,
        peer: "66 s, one group of 300 grown",
        write: groups,
        check: |answer| answer.helped(20_000, 10_000),
    },
    Scene {
        name: "host-anti-affinity",
        flags: &["--max-nodes-per-scaleup=5000"],
        target_ms: 300.0,
        target_mib: None,
        peer: "60.6 s, cut off, 3,117 helped",
        write: |list| zones(list, anti_affinity()),
        check: |answer| answer.placed(5000),
    },
    Scene {
        name: "zonal-spread",
        flags: FLAGS,
        target_ms: 300.0,
        target_mib: None,
        peer: "0.7 s, one node added",
        write: |list| zones(list, spread()),
        check: |answer| answer.helped(5000, 252),
    },
    Scene {
        name: "zonal-affinity",
        flags: FLAGS,
        target_ms: 300.0,
        target_mib: None,
        peer: "75 s, 250 nodes",
        write: |list| zones(list, affinity()),
        check: |answer| answer.helped(5000, 250),
    },
    Scene {
        name: "scale-down-2000",
        flags: &["--max-scale-down-parallelism=2000", "--max-drain-parallelism=2000"],
        target_ms: 300.0,
        target_mib: None,
        peer: "34.5 s",
        write: |list| scale_down(list, 2000),
        check: |answer| answer.removed(1200),
    },
    Scene {
        name: "devices-up",
        flags: FLAGS,
        target_ms: 500.0,
        target_mib: None,
        peer: "35 s",
        write: |list| devices(list, 0, 4000),
        check: |answer| answer.helped(4000, 500),
    },
    Scene {
        name: "devices-down",
        flags: &["--max-scale-down-parallelism=2000", "--max-drain-parallelism=2000"],
        target_ms: 300.0,
        target_mib: None,
        peer: "17 s",
        write: |list| devices(list, 800, 0),
        check: |answer| answer.removed(480),
    },
    Scene {
        name: "steady-3000",
        flags: FLAGS,
        target_ms: 15.0,
        target_mib: Some(250.0),
        peer: "2.2 s, 1.9 GB",
        write: |list| steady(list, 3000, 30),
        check: Answer::nothing,
    },
    Scene {
        name: "steady-6000",
        flags: FLAGS,
        target_ms: 30.0,
        target_mib: None,
        peer: "",
        write: |list| steady(list, 6000, 30),
        check: Answer::nothing,
    },
    Scene {
        name: "steady-15000x100",
        flags: FLAGS,
        target_ms: 300.0,
        target_mib: Some(2048.0),
        peer: "",
        write: |list| steady(list, 15_000, 100),
        check: Answer::nothing,
    },
];

/// Pods without owners, 50 to a node, in one empty group.
fn equal(list: &mut List<&mut dyn Write>, nodes: usize) -> io::Result<()> {
    for index in 0..nodes * 50 {
        list.add(&pod(&format!("p{index}"), None, 200, 200_000))?;
    }
    list.add(&group("g", nodes * 2, &node("t", &[], 10_000, 10_000_000), &[]))
}

/// 2,000 shapes with 25 pods each.
fn shapes(list: &mut List<&mut dyn Write>) -> io::Result<()> {
    for shape in 0..2000_u64 {
        let owner = format!("s{shape}");
        list.add(&replica_set(&owner, 25))?;
        for index in 0..25 {
            let name = format!("{owner}-{index}");
            list.add(&pod(&name, Some(&owner), 100 + shape % 400, 50_000 + 37 * shape))?;
        }
    }
    list.add(&group("g", 5000, &node("t", &[], 10_000, 10_000_000), &[]))
}

/// 300 groups of different machines, 200 shapes with 100 pods each.
fn groups(list: &mut List<&mut dyn Write>) -> io::Result<()> {
    for index in 0..300_u64 {
        let template = node("t", &[], 4000 + 1000 * (index % 29), 8_000_000 + 1_000_000 * (index % 53));
        list.add(&group(&format!("g{index:03}"), 1000, &template, &[]))?;
    }
    for shape in 0..200_u64 {
        let owner = format!("s{shape}");
        list.add(&replica_set(&owner, 100))?;
        for index in 0..100 {
            list.add(&pod(&format!("{owner}-{index}"), Some(&owner), 100 + 10 * shape, 100_000 + 10_000 * shape))?;
        }
    }
    Ok(())
}

const ZONE: &str = "topology.kubernetes.io/zone";

/// Three groups in three zones, 333 nodes each, full of pods of one application; 5,000 pods of another are pending.
fn zones(list: &mut List<&mut dyn Write>, constraint: (&str, Value)) -> io::Result<()> {
    for zone in ["a", "b", "c"] {
        let labels = [(ZONE, zone)];
        let names: Vec<String> = (0..333).map(|index| format!("n-{zone}-{index}")).collect();
        for name in &names {
            list.add(&node(name, &labels, 10_000, 10_000_000))?;
            for index in 0..10 {
                list.add(&on(pod(&format!("{name}-old-{index}"), Some("old"), 990, 100), name))?;
            }
        }
        list.add(&group(&format!("g-{zone}"), 5000, &node("t", &labels, 10_000, 10_000_000), &names))?;
    }
    list.add(&replica_set("old", 9990))?;
    list.add(&replica_set("new", 5000))?;
    let (field, value) = constraint;
    for index in 0..5000 {
        let mut object = pod(&format!("new-{index}"), Some("new"), 500, 1000);
        set(&mut object, "/spec", field, value.clone());
        list.add(&object)?;
    }
    Ok(())
}

fn anti_affinity() -> (&'static str, Value) {
    let term = json!({"labelSelector": {"matchLabels": {"app": "new"}}, "topologyKey": "kubernetes.io/hostname"});
    ("affinity", json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))
}

fn spread() -> (&'static str, Value) {
    let constraint = json!({
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "new"}},
    });
    ("topologySpreadConstraints", json!([constraint]))
}

fn affinity() -> (&'static str, Value) {
    let term = json!({"labelSelector": {"matchLabels": {"app": "old"}}, "topologyKey": ZONE});
    ("affinity", json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))
}

/// Nodes that are 40 % used, by pods that may be moved.
fn scale_down(list: &mut List<&mut dyn Write>, nodes: usize) -> io::Result<()> {
    let names: Vec<String> = (0..nodes).map(|index| format!("n{index}")).collect();
    for name in &names {
        list.add(&node(name, &[], 10_000, 10_000))?;
        for index in 0..40 {
            let mut object = on(pod(&format!("{name}-{index}"), None, 100, 100), name);
            let annotation = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"});
            set(&mut object, "/metadata", "annotations", annotation);
            list.add(&object)?;
        }
    }
    list.add(&group("g", nodes, &node("t", &[], 10_000, 10_000), &names))
}

const DRIVER: &str = "gpu.example.com";

/// The devices of a node: as many as a whole device each for its pods.
fn slice(node: &str, devices: usize) -> Value {
    let device = |index: usize| json!({"name": format!("d{index}"), "attributes": {"uuid": {"string": format!("{node}-{index}")}}});
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {
            "driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": (0..devices).map(device).collect::<Vec<_>>(),
        },
    })
}

/// Pods with a claim for one device each: on nodes of ten devices with four pods, and pending, for nodes with eight.
fn devices(list: &mut List<&mut dyn Write>, nodes: usize, pending: usize) -> io::Result<()> {
    let selector = json!({"cel": {"expression": format!("device.driver == \"{DRIVER}\"")}});
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    list.add(&json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector]},
    }))?;
    list.add(&json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default"}, "spec": {"spec": {"devices": {"requests": requests}}},
    }))?;
    let claims = json!([{"name": "d", "resourceClaimTemplateName": "one"}]);
    for index in 0..pending {
        let uid = format!("p{index}");
        let mut object = pod(&uid, None, 100, 100);
        set(&mut object, "/spec", "resourceClaims", claims.clone());
        let status = json!([{"name": "d", "resourceClaimName": format!("{uid}-d")}]);
        set(&mut object, "/status", "resourceClaimStatuses", status);
        list.add(&object)?;
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": true});
        list.add(&json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": format!("{uid}-d"), "namespace": "default", "ownerReferences": [owner]},
            "spec": {"devices": {"requests": requests}},
        }))?;
    }
    let names: Vec<String> = (0..nodes).map(|index| format!("n{index}")).collect();
    for name in &names {
        list.add(&node(name, &[], 10_000, 10_000_000))?;
        list.add(&slice(name, 10))?;
        for index in 0..4 {
            let uid = format!("{name}-{index}");
            let claim = format!("{uid}-d");
            let mut object = on(pod(&uid, None, 100, 100), name);
            set(&mut object, "/spec", "resourceClaims", claims.clone());
            set(&mut object, "/status", "resourceClaimStatuses", json!([{"name": "d", "resourceClaimName": claim}]));
            let annotation = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"});
            set(&mut object, "/metadata", "annotations", annotation);
            list.add(&object)?;
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": true});
            let result = json!({"request": "r", "driver": DRIVER, "pool": name, "device": format!("d{index}")});
            list.add(&json!({
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {"name": claim, "namespace": "default", "ownerReferences": [owner]},
                "spec": {"devices": {"requests": requests}},
                "status": {
                    "allocation": {"devices": {"results": [result]}},
                    "reservedFor": [{"resource": "pods", "name": uid, "uid": uid}],
                },
            }))?;
        }
    }
    let mut of_group = group("g", 2000, &node("t", &[], 10_000, 10_000_000), &names);
    set(&mut of_group, "/spec", "templateResourceSlices", json!([slice("t", 8)]));
    list.add(&of_group)
}

/// Nodes that are 90 % used; nothing to do.
fn steady(list: &mut List<&mut dyn Write>, nodes: usize, pods: usize) -> io::Result<()> {
    let (groups, kinds) = (10, 200);
    let cpu = 9000 / u64::try_from(pods).unwrap_or(1);
    for number in 0..groups {
        let names: Vec<String> = (0..nodes / groups).map(|index| format!("n{number}-{index}")).collect();
        for (at, name) in names.iter().enumerate() {
            list.add(&node(name, &[], 10_000, 10_000_000))?;
            for index in 0..pods {
                let owner = format!("s{}", (at * pods + index) % kinds);
                list.add(&on(pod(&format!("{name}-{index}"), Some(&owner), cpu, 1000), name))?;
            }
        }
        list.add(&group(&format!("g{number}"), nodes, &node("t", &[], 10_000, 10_000_000), &names))?;
    }
    for kind in 0..kinds {
        list.add(&replica_set(&format!("s{kind}"), nodes * pods / kinds))?;
    }
    Ok(())
}
