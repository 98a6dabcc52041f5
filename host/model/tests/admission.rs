//! What the API server would refuse or fill in, in files that people write.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use plimsoll_model::Resources;
use plimsoll_model::read::{Input, Reader};

fn read(text: &str) -> Result<Input, String> {
    let mut reader = Reader::default();
    reader.add("f", text.as_bytes()).map_err(|error| error.to_string())?;
    reader.finish().map_err(|error| error.to_string())
}

/// A pod whose spec is written in lines of their own.
fn pod(spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n{spec}")
}

/// A pod of one container with these resources.
fn asking(resources: &str) -> String {
    pod(&format!("  containers:\n  - name: c\n    resources:\n      {resources}\n"))
}

fn node(status: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\nstatus:\n  {status}\n")
}

fn object(version: &str, kind: &str, rest: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{rest}\n")
}

#[test]
fn impossible_amounts_are_refused() {
    let request = "f:8: Pod p: spec.containers[0].resources.requests";
    for (name, text, expected) in [
        (
            "a negative request",
            asking("requests: {cpu: '-1'}"),
            format!("{request}.cpu: -1 is negative; expected an amount of 0 or more"),
        ),
        (
            "more memory than can be counted",
            asking("requests: {memory: 8Ei}"),
            format!("{request}.memory: 8Ei is more than can be counted; expected less than 8Ei, or 8Pi of cpu"),
        ),
        (
            "more cpu than can be counted",
            asking("requests: {cpu: '1e16'}"),
            format!("{request}.cpu: 1e16 is more than can be counted; expected less than 8Ei, or 8Pi of cpu"),
        ),
        (
            "half a device",
            asking("requests: {example.com/gpu: 500m}"),
            format!(
                "{request}[\"example.com/gpu\"]: 500m is not a whole number; expected one, as nobody can have a part of this \
                 resource"
            ),
        ),
        (
            "a request above its limit",
            asking("requests: {cpu: 2}\n      limits: {cpu: 1500m}"),
            format!("{request}.cpu: 2 is above the limit 1500m; expected a request that is not"),
        ),
        (
            "a negative limit",
            asking("limits: {cpu: -100m}"),
            "f:8: Pod p: spec.containers[0].resources.limits.cpu: -100m is negative; expected an amount of 0 or more".into(),
        ),
        (
            "too much together",
            pod("  containers:\n  - {name: a, resources: {requests: {memory: 5E}}}\n  - {name: b, resources: {requests: {memory: 5E}}}\n"),
            "f:1: Pod p: its containers together ask for more than can be counted; expected less than 8Ei, or 8Pi of cpu".into(),
        ),
        (
            "a negative overhead",
            pod("  overhead: {cpu: -1m}\n"),
            "f:5: Pod p: spec.overhead.cpu: -1m is negative; expected an amount of 0 or more".into(),
        ),
        (
            "negative allocatable",
            node("allocatable: {memory: -1Gi}"),
            "f:5: Node n: status.allocatable.memory: -1Gi is negative; expected an amount of 0 or more".into(),
        ),
        (
            "capacity beyond count",
            node("capacity: {memory: 1000E}"),
            "f:5: Node n: status.capacity.memory: 1000E is more than can be counted; expected less than 8Ei, or 8Pi of cpu"
                .into(),
        ),
        (
            "negative replicas",
            object("apps/v1", "ReplicaSet", "spec: {replicas: -1}"),
            "f:4: ReplicaSet x: spec.replicas: -1 is too low; expected 0 or more".into(),
        ),
        (
            "a negative volume limit",
            object("storage.k8s.io/v1", "CSINode", "spec: {drivers: [{name: d, nodeID: x, allocatable: {count: -5}}]}"),
            "f:4: CSINode x: spec.drivers[0].allocatable.count: -5 is too low; expected 0 or more".into(),
        ),
        (
            "a pool of no slices",
            object(
                "resource.k8s.io/v1",
                "ResourceSlice",
                "spec:\n  driver: d\n  nodeName: n\n  pool: {name: p, generation: 1, resourceSliceCount: 0}",
            ),
            "f:7: ResourceSlice x: spec.pool.resourceSliceCount: 0 is too low; expected 1 or more".into(),
        ),
    ] {
        match read(&text) {
            Ok(_) => panic!("{name}: was accepted"),
            Err(error) => assert_eq!(error, expected, "{name}"),
        }
    }
}

#[test]
fn words_that_no_field_knows_are_refused() {
    let term = |rest: &str| {
        pod(&format!(
            "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms: \
             [{rest}]\n"
        ))
    };
    let spread =
        |rest: &str| pod(&format!("  topologySpreadConstraints:\n  - {{topologyKey: zone, maxSkew: 1, {rest}}}\n"));
    let tolerating = |rest: &str| pod(&format!("  tolerations: [{{{rest}}}]\n"));
    let near = |rest: &str| {
        pod(&format!("  affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{{rest}}}]}}}}\n"))
    };
    for (name, text, expected) in [
        (
            "whenUnsatisfiable",
            spread("whenUnsatisfiable: doNotSchedule"),
            "whenUnsatisfiable: \"doNotSchedule\" is not known here; expected DoNotSchedule or ScheduleAnyway",
        ),
        (
            "no whenUnsatisfiable",
            spread("labelSelector: {}"),
            "whenUnsatisfiable: \"\" is not known here; expected DoNotSchedule or ScheduleAnyway",
        ),
        (
            "a policy",
            spread("whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honour"),
            "nodeTaintsPolicy: \"Honour\" is not known here; expected Honor or Ignore",
        ),
        (
            "minDomains",
            spread("whenUnsatisfiable: DoNotSchedule, minDomains: 0"),
            "minDomains: 0 is too low; expected 1 or more",
        ),
        (
            "a selector's operator",
            spread("whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: Is}]}"),
            "operator: \"Is\" is not known here; expected In, NotIn, Exists or DoesNotExist",
        ),
        (
            "an operator without its values",
            spread("whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: In}]}"),
            "values: In takes one value or more, found none",
        ),
        (
            "the value of a label",
            spread("whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: '{x}'}}"),
            "a: \"{x}\" is not the value of a label; expected at most 63 letters, digits, dashes, dots or underscores",
        ),
        (
            "a node selector's operator",
            term("{matchExpressions: [{key: a, operator: Equals, values: [b]}]}"),
            "operator: \"Equals\" is not known here; expected In, NotIn, Exists, DoesNotExist, Gt or Lt",
        ),
        (
            "a bound that is no number",
            term("{matchExpressions: [{key: a, operator: Gt, values: [many]}]}"),
            "values: Gt takes exactly one whole number, found \"many\"",
        ),
        (
            "two names of nodes",
            term("{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}"),
            "values: In takes exactly one value, found \"a, b\"",
        ),
        (
            "the effect of a toleration",
            tolerating("key: a, operator: Exists, effect: NoRun"),
            "effect: \"NoRun\" is not known here; expected NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (
            "the operator of a toleration",
            tolerating("key: a, operator: exists"),
            "operator: \"exists\" is not known here; expected Equal, Exists, Lt or Gt",
        ),
        (
            "a toleration of nothing",
            tolerating("operator: Equal, value: x"),
            "key: it is missing or empty; expected a text",
        ),
        (
            "a toleration that exists and has a value",
            tolerating("key: a, operator: Exists, value: x"),
            "value: Exists takes no value, found \"x\"",
        ),
        (
            "a term without a topology",
            near("labelSelector: {}"),
            "topologyKey: it is missing or empty; expected a text",
        ),
        (
            "a restart policy",
            pod("  restartPolicy: Sometimes\n"),
            "restartPolicy: \"Sometimes\" is not known here; expected Always, OnFailure or Never",
        ),
        (
            "a protocol",
            pod("  containers: [{name: c, ports: [{hostPort: 80, containerPort: 80, protocol: tcp}]}]\n"),
            "protocol: \"tcp\" is not known here; expected TCP, UDP or SCTP",
        ),
        (
            "a phase",
            pod("  containers: []\nstatus: {phase: Done}\n"),
            "phase: \"Done\" is not known here; expected Pending, Running, Succeeded, Failed or Unknown",
        ),
        (
            "a condition of a node",
            node("conditions: [{type: Ready, status: 'yes'}]"),
            "status: \"yes\" is not known here; expected True, False or Unknown",
        ),
        (
            "an access mode",
            object("v1", "PersistentVolumeClaim", "spec: {accessModes: [RWO]}"),
            "spec.accessModes[0]: \"RWO\" is not known here; expected ReadWriteOnce, ReadOnlyMany, ReadWriteMany or \
             ReadWriteOncePod",
        ),
        (
            "a binding mode",
            object("storage.k8s.io/v1", "StorageClass", "provisioner: p\nvolumeBindingMode: Later"),
            "volumeBindingMode: \"Later\" is not known here; expected Immediate or WaitForFirstConsumer",
        ),
        (
            "a budget's selector",
            object(
                "policy/v1",
                "PodDisruptionBudget",
                "spec: {selector: {matchExpressions: [{key: a, operator: Has}]}}",
            ),
            "operator: \"Has\" is not known here; expected In, NotIn, Exists or DoesNotExist",
        ),
        (
            "a pod of a DaemonSet",
            object("apps/v1", "DaemonSet", "spec: {template: {spec: {restartPolicy: always}}}"),
            "spec.template.spec.restartPolicy: \"always\" is not known here; expected Always, OnFailure or Never",
        ),
    ] {
        match read(&text) {
            Ok(_) => panic!("{name}: was accepted"),
            Err(error) => assert!(error.ends_with(expected), "{name}: {error}"),
        }
    }
}

#[test]
fn templates_of_groups_are_checked_too() {
    let group = |spec: &str| {
        format!(
            "apiVersion: plimsoll.dev/v1alpha1\nkind: NodeGroup\nmetadata: {{name: g}}\nspec:\n  maxSize: 3\n  template: \
             {{status: {{allocatable: {{cpu: 4, pods: 10}}}}}}\n  {spec}\n"
        )
    };
    for (spec, expected) in [
        (
            "templatePods: [{metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: -1}}}]}}]",
            "f:7: nodeGroup \"g\": spec.templatePods[0].spec.containers[0].resources.requests.cpu: -1 is negative; expected an \
             amount of 0 or more",
        ),
        (
            "templateResourceSlices: [{metadata: {name: s}, spec: {driver: d, nodeName: t, pool: {name: p, generation: 1}}}]",
            "f:7: nodeGroup \"g\": spec.templateResourceSlices[0].spec.pool.resourceSliceCount: 0 is too low; expected 1 or more",
        ),
    ] {
        assert_eq!(read(&group(spec)).unwrap_err(), expected);
    }
    let negative = group("").replace("cpu: 4", "cpu: -4");
    assert_eq!(
        read(&negative).unwrap_err(),
        "f:6: nodeGroup \"g\": spec.template.status.allocatable.cpu: -4 is negative; expected an amount of 0 or more"
    );
}

#[test]
fn node_groups_have_one_name_and_each_key_once() {
    let json = |metadata: &str, spec: &str| {
        format!(
            "{{\"apiVersion\": \"plimsoll.dev/v1alpha1\", \"kind\": \"NodeGroup\",\n \"metadata\": {metadata},\n \"spec\": {spec}}}"
        )
    };
    for (text, expected) in [
        (
            json("{\"name\": \"g\"}", "{\"maxSize\": 3,\n  \"minSize\": 1,\n  \"maxSize\": 30}"),
            "f:5: nodeGroup \"g\": \"maxSize\" is there twice; keep one of them",
        ),
        (
            json(
                "{\"name\": \"g\"}",
                "{\"maxSize\": 3, \"template\": {\"status\":\n {\"allocatable\": {\"cpu\": 1,\n \"cpu\": 2}}}}",
            ),
            "f:5: nodeGroup \"g\": \"cpu\" is there twice; keep one of them",
        ),
        (
            json("{\"name\": \"\"}", "{\"maxSize\": 3}"),
            "f:2: nodeGroup \"\": metadata.name: it is empty; give the group a name",
        ),
        (
            "apiVersion: plimsoll.dev/v1alpha1\nkind: NodeGroup\nmetadata:\n  name: ''\nspec: {maxSize: 3}\n"
                .to_owned(),
            "f:4: nodeGroup \"\": metadata.name: it is empty; give the group a name",
        ),
    ] {
        assert_eq!(read(&text).unwrap_err(), expected);
    }
}

fn requests(text: &str) -> Resources {
    let input = read(text).unwrap();
    input.cluster.specs[input.cluster.pods[0].spec].requests.clone()
}

#[test]
fn what_is_limited_is_asked_for() {
    let gpus = |text: &str| {
        let input = read(text).unwrap();
        let gpu = input.cluster.symbols.find("nvidia.com/gpu").unwrap();
        input.cluster.specs[input.cluster.pods[0].spec].requests.scalar(gpu)
    };
    assert_eq!(gpus(&asking("limits: {nvidia.com/gpu: 2}")), 2);
    assert_eq!(
        gpus(&pod("  initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 3}}}]\n  containers: []\n")),
        3
    );
    let mixed = requests(&asking("{requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi}}"));
    assert_eq!((mixed.cpu_milli, mixed.memory_bytes), (1000, 1 << 30), "only what is not asked for");
}

#[test]
fn a_pod_asks_for_its_own_limit_if_no_container_asks() {
    let whole = |containers: &str| {
        let pod =
            requests(&pod(&format!("  resources: {{limits: {{cpu: 4, memory: 8Gi}}}}\n  containers: {containers}\n")));
        (pod.cpu_milli, pod.memory_bytes)
    };
    assert_eq!(whole("[{name: c}]"), (4000, 8 << 30));
    assert_eq!(whole("[{name: c, resources: {requests: {cpu: 500m}}}]"), (500, 8 << 30));
}

#[test]
fn daemon_sets_stay_as_they_are() {
    // The API server fills in their pods only when it makes them, and templates are made without it.
    let set = object(
        "apps/v1",
        "DaemonSet",
        "spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}}",
    );
    let cluster = read(&set).unwrap().cluster;
    assert_eq!(cluster.specs[cluster.daemon_sets[0].spec].requests.cpu_milli, 0);
}

/// A LimitRange of the namespace `default`.
const RANGE: &str = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: r}\nspec: {limits: [{type: Container, default: {cpu: 1, \
                     memory: 2Gi}, defaultRequest: {cpu: 250m}}, {type: Pod, max: {cpu: 9}}]}\n";

#[test]
fn what_a_namespace_gives_its_containers() {
    let two = pod("  containers: [{name: a}, {name: b, resources: {requests: {cpu: 2}}}]\n");
    for (name, files, expected) in [
        ("defaults, wherever they are", format!("{two}---\n{RANGE}"), (2250, 4 << 30)),
        ("before it", format!("{RANGE}---\n{two}"), (2250, 4 << 30)),
        ("of another namespace", format!("{two}---\n{}", RANGE.replace("name: r", "name: r, namespace: x")), (2000, 0)),
        (
            "a pod that was made before it",
            format!("{}---\n{RANGE}", two.replace("name: p}", "name: p, uid: u}")),
            (2000, 0),
        ),
    ] {
        let found = requests(&files);
        assert_eq!((found.cpu_milli, found.memory_bytes), expected, "{name}");
    }
    assert_eq!(read(&format!("{}---\n{RANGE}", asking("{}"))).unwrap().warnings, [], "it asks for something now");
}

#[test]
fn what_a_runtime_class_adds() {
    let class = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: vm}\nhandler: vm\noverhead: {podFixed: {cpu: \
                 250m, memory: 120Mi}}\nscheduling: {nodeSelector: {vm: here}}\n";
    let of_class = pod("  runtimeClassName: vm\n  containers: [{name: c, resources: {requests: {cpu: 1}}}]\n");
    let both = format!("{of_class}---\n{class}");
    let found = requests(&both);
    assert_eq!((found.cpu_milli, found.memory_bytes), (1250, 120 << 20));
    let cluster = read(&both).unwrap().cluster;
    assert_eq!(cluster.specs[cluster.pods[0].spec].node_selector.len(), 1);
    let own = of_class.replace("  runtimeClassName", "  overhead: {cpu: 100m}\n  runtimeClassName");
    assert_eq!(requests(&format!("{own}---\n{class}")).cpu_milli, 1100, "it has its overhead already");
    let warnings: Vec<String> = read(&of_class).unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["f:1: runtimeClass \"vm\" is not in the input; the overhead of 1 pod, such as default/p, is not counted"]
    );
}
