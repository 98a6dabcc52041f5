//! Kubernetes objects and node groups from rows of the trace.

use serde_json::{Map, Value, json};

use crate::trace::{Shape, Task};

/// Node label that tells the model of the GPUs.
pub const MODEL_LABEL: &str = "openb.plimsoll.dev/gpu-model";
/// Resource that GPUs are asked for by.
pub const GPU: &str = "nvidia.com/gpu";
/// Pods on a node at most, the usual setting.
pub const PODS_PER_NODE: u32 = 110;

/// A `v1 List` of all pods, pending, and of a node group for each shape, empty, that may grow to as many machines as the
/// trace has of it.
pub fn list(shapes: &[(Shape, u32)], tasks: &[Task]) -> Value {
    let groups = shapes.iter().map(|(shape, count)| group(shape, *count));
    let items: Vec<_> = groups.chain(tasks.iter().map(pod)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// A name that tells the shape: `c32-m128-v100m16x4` has 32 cores, 128 GiB and four GPUs.
pub fn group_name(shape: &Shape) -> String {
    let whole = |amount: u64, unit: u64, suffix: &str| match amount % unit {
        0 => (amount / unit).to_string(),
        _ => format!("{amount}{suffix}"),
    };
    let cores = whole(shape.cpu_milli, 1000, "milli");
    let memory = whole(shape.memory_mib, 1024, "mi");
    match shape.gpus {
        0 => format!("c{cores}-m{memory}"),
        gpus => format!("c{cores}-m{memory}-{}x{gpus}", shape.model.to_lowercase()),
    }
}

fn group(shape: &Shape, count: u32) -> Value {
    let name = group_name(shape);
    let mut labels = json!({
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": name,
    });
    let mut amounts = json!({
        "cpu": format!("{}m", shape.cpu_milli),
        "memory": format!("{}Mi", shape.memory_mib),
        "pods": PODS_PER_NODE.to_string(),
    });
    if shape.gpus > 0 {
        insert(&mut labels, MODEL_LABEL, json!(shape.model));
        insert(&mut amounts, GPU, json!(shape.gpus.to_string()));
    }
    json!({
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {
            "minSize": 0,
            "maxSize": count,
            "targetSize": 0,
            "template": {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"capacity": amounts, "allocatable": amounts},
            },
        },
    })
}

/// A pending pod.
pub fn pod(task: &Task) -> Value {
    let mut requests = json!({
        "cpu": format!("{}m", task.cpu_milli),
        "memory": format!("{}Mi", task.memory_mib),
    });
    let mut limits = Value::Object(Map::new());
    if task.gpus > 0 {
        insert(&mut requests, GPU, json!(task.gpus.to_string()));
        insert(&mut limits, GPU, json!(task.gpus.to_string()));
    }
    let mut spec = json!({"containers": [{"name": "task", "resources": {"requests": requests, "limits": limits}}]});
    if !task.models.is_empty() {
        let term = json!({"matchExpressions": [{"key": MODEL_LABEL, "operator": "In", "values": task.models}]});
        let required = json!({"nodeSelectorTerms": [term]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        insert(&mut spec, "affinity", affinity);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": task.name, "namespace": "openb"},
        "spec": spec,
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    })
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::pod::Scheduling;
    use plimsoll_model::read::Reader;

    use super::*;

    fn shape(cpu_milli: u64, memory_mib: u64, gpus: u64, model: &str) -> Shape {
        Shape { cpu_milli, memory_mib, gpus, model: model.to_owned() }
    }

    #[test]
    fn names_tell_shapes() {
        for (shape, name) in [
            (shape(32_000, 131_072, 4, "V100M16"), "c32-m128-v100m16x4"),
            (shape(96_000, 393_216, 0, ""), "c96-m384"),
            (shape(1_500, 1_000, 1, "T4"), "c1500milli-m1000mi-t4x1"),
        ] {
            assert_eq!(group_name(&shape), name);
        }
    }

    #[test]
    fn the_reader_of_the_simulator_takes_it_all() {
        let shapes = [(shape(8_000, 32_768, 2, "T4"), 3), (shape(4_000, 8_192, 0, ""), 7)];
        let task = |name: &str, gpus, models: &[&str]| Task {
            name: name.to_owned(),
            cpu_milli: 1_500,
            memory_mib: 1_024,
            gpus,
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            span: None,
        };
        let tasks = [task("plain", 0, &[]), task("any", 1, &[]), task("picky", 2, &["P100", "T4"])];
        let mut reader = Reader::default();
        reader.add("openb.json", list(&shapes, &tasks).to_string().as_bytes()).unwrap();
        let input = reader.finish().unwrap();
        assert_eq!(input.warnings, []);

        // Sorted by name.
        let [without, with_gpus] = &input.node_groups[..] else { panic!("two groups") };
        assert_eq!(
            (with_gpus.name.as_str(), with_gpus.min_size, with_gpus.max_size, with_gpus.target_size),
            ("c8-m32-t4x2", 0, 3, Some(0))
        );
        let symbols = &input.cluster.symbols;
        let (gpu, model) = (symbols.find(GPU).unwrap(), symbols.find(MODEL_LABEL).unwrap());
        let node = &with_gpus.template.as_ref().unwrap().node;
        assert_eq!(
            (node.allocatable.cpu_milli, node.allocatable.memory_bytes, node.allocatable.pods),
            (8_000, 32 << 30, 110)
        );
        assert_eq!((node.allocatable.scalar(gpu), node.labels.get(model)), (2, symbols.find("T4")));
        assert_eq!(node.capacity, node.allocatable);
        let plain_node = &without.template.as_ref().unwrap().node;
        assert_eq!((plain_node.allocatable.scalar(gpu), plain_node.labels.get(model)), (0, None));

        let fits = |pod: usize, node: &plimsoll_model::Node| {
            let spec = &input.cluster.specs[input.cluster.pods[pod].spec];
            let free = node.allocatable.minus(&spec.requests);
            let affinity = spec.node_affinity.as_ref();
            free.cpu_milli >= 0
                && free.scalars.iter().all(|&(_, amount)| amount >= 0)
                && affinity.is_none_or(|affinity| affinity.matches(&node.labels, Some(node.name), symbols))
        };
        let found: Vec<_> = (0..3).map(|pod| (fits(pod, node), fits(pod, plain_node))).collect();
        assert_eq!(found, [(true, false), (true, false), (true, true)], "any, picky, plain");
        assert!(input.cluster.pods.iter().all(|pod| pod.scheduling == Scheduling::Unschedulable && pod.node.is_none()));
    }
}
