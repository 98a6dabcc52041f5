//! Files as people have them: what is read, what is warned about, and what every refusal says.

use plimsoll_model::group::Membership;
use plimsoll_model::read::{Input, Reader};

fn read(files: &[(&str, &str)]) -> Result<Input, String> {
    let mut reader = Reader::default();
    for (name, text) in files {
        reader.add(name, text.as_bytes()).map_err(|error| error.to_string())?;
    }
    reader.finish().map_err(|error| error.to_string())
}

fn warnings(input: &Input) -> Vec<String> {
    input.warnings.iter().map(ToString::to_string).collect()
}

/// Nodes and pods by name.
fn names(input: &Input) -> (Vec<String>, Vec<String>) {
    let cluster = &input.cluster;
    (
        cluster.nodes.iter().map(|node| cluster.text(node.name).to_owned()).collect(),
        cluster.pods.iter().map(|pod| cluster.pod_name(pod)).collect(),
    )
}

#[test]
fn formats() {
    for (name, text, nodes, pods) in [
        ("one object", r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}"#, &["n"][..], &[][..]),
        (
            "a list of anything, kind last, as kubectl prints it",
            r#"{"apiVersion": "v1", "items": [
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
            ], "kind": "List", "metadata": {"resourceVersion": ""}}"#,
            &["n"],
            &["shop/p"],
        ),
        (
            "a typed list, whose items do not say their kind",
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"p"}},{"metadata":{"name":"q"}}]}"#,
            &[],
            &["default/p", "default/q"],
        ),
        ("a typed list without items", r#"{"kind":"PodList","apiVersion":"v1","items":null}"#, &[], &[]),
        (
            "a list in a list",
            r#"{"kind":"List","apiVersion":"v1","items":[{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"}}]}]}"#,
            &["n"],
            &[],
        ),
        (
            "several objects after one another",
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}",
            &["n"],
            &["default/p"],
        ),
        (
            "documents of YAML",
            "# the cluster\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n---\nkind: Pod\napiVersion: v1\nmetadata:\n  name: p\n...\n",
            &["n"],
            &["default/p"],
        ),
        (
            "a list as YAML, kind last",
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\nkind: List\n",
            &["n"],
            &["default/p"],
        ),
        (
            "a typed list as YAML",
            "apiVersion: v1\nitems:\n- metadata: {name: p}\n- metadata: {name: q}\nkind: PodList\n",
            &[],
            &["default/p", "default/q"],
        ),
        ("a typed list without items as YAML", "apiVersion: v1\nitems: null\nkind: PodList\n", &[], &[]),
        ("a typed list with no items as YAML", "apiVersion: v1\nitems: []\nkind: PodList\n", &[], &[]),
        (
            "a list in a list as YAML",
            "kind: List\napiVersion: v1\nitems:\n- kind: NodeList\n  apiVersion: v1\n  items:\n  - metadata: {name: n}\n",
            &["n"],
            &[],
        ),
        ("YAML in braces", "{apiVersion: v1, kind: Node, metadata: {name: n}}", &["n"], &[]),
        (
            "JSON between YAML",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}\n---\n",
            &["n"],
            &["default/p"],
        ),
        (
            "a byte order mark and Windows lines",
            "\u{feff}apiVersion: v1\r\nkind: Node\r\nmetadata:\r\n  name: n\r\n",
            &["n"],
            &[],
        ),
        ("directives", "%YAML 1.2\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n", &["n"], &[]),
    ] {
        let input = read(&[("file", text)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (found_nodes, found_pods) = names(&input);
        assert_eq!(found_nodes, nodes, "{name}");
        assert_eq!(found_pods, pods, "{name}");
    }
}

#[test]
fn json_and_yaml_mean_the_same() {
    let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"1","on":"no"}},
        "spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":1.5,"memory":"1Gi"}}}]}}"#;
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {a: '1', on: no}\nspec:\n  containers:\n  - name: c\n    resources:\n      requests: {cpu: 1.5, memory: 1Gi}\n";
    let specs = [json, yaml].map(|text| {
        let cluster = read(&[("file", text)]).unwrap().cluster;
        let spec = &cluster.specs[cluster.pods[0].spec];
        let labels: Vec<_> =
            spec.labels.iter().map(|(k, v)| (cluster.text(k).to_owned(), cluster.text(v).to_owned())).collect();
        (spec.requests.clone(), labels)
    });
    assert_eq!(specs[0], specs[1]);
    assert_eq!(specs[0].0.cpu_milli, 1500);
}

#[test]
fn node_groups() {
    let input = read(&[
        (
            "nodes.yaml",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {pool: a}}\nspec: {providerID: x://1}\n",
        ),
        (
            "groups.yaml",
            r#"
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: a}
spec:
  minSize: 1
  maxSize: 100
  targetSize: 3
  nodes: [n1]
  template:
    metadata: {labels: {pool: a}}
    status: {allocatable: {cpu: 4, memory: 16Gi, pods: 110}}
  templatePods:
  - metadata: {name: proxy, annotations: {kubernetes.io/config.mirror: x}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}
  pricePerHour: "0.40"
  options: {scale-down-utilization-threshold: 0.6, zero-or-max-node-scaling: true, scale-down-unneeded-time: 5m}
  priority: 10
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: b}
spec: {maxSize: 5, nodeSelector: {pool: b}, template: {status: {capacity: {pods: "1"}}}, pricePerHour: 2}
---
{"apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "c"},
 "spec": {"maxSize": 5, "providerIDs": ["x://2"], "template": {"status": {"capacity": {"pods": "1"}}}}}
"#,
        ),
    ])
    .unwrap();
    let [a, b, c] = &input.node_groups[..] else { panic!("three groups") };
    assert_eq!((a.name.as_str(), a.min_size, a.max_size, a.target_size), ("a", 1, 100, Some(3)));
    assert_eq!((a.price_micros_per_hour, a.priority), (Some(400_000), Some(10)));
    let options: Vec<_> = a.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        options,
        [
            ("scale-down-unneeded-time", "5m"),
            ("scale-down-utilization-threshold", "0.6"),
            ("zero-or-max-node-scaling", "true")
        ]
    );
    let template = a.template.as_ref().unwrap();
    assert_eq!((template.node.allocatable.cpu_milli, template.node.allocatable.pods), (4000, 110));
    assert_eq!((&*template.pods[0].name, template.pods[0].daemon_set), ("default/proxy", false));
    assert_eq!(a.nodes_in(&input.cluster), [0]);
    assert!(matches!(&b.members, Membership::Selector(labels) if labels.len() == 1));
    assert_eq!((b.min_size, b.target_size, b.price_micros_per_hour), (0, None, Some(2_000_000)));
    assert_eq!(b.nodes_in(&input.cluster), [] as [usize; 0]);
    assert!(matches!(&c.members, Membership::ProviderIds(ids) if ids == &["x://2"]));
    assert_eq!(warnings(&input), ["groups.yaml:25: nodeGroup \"c\": 1 node not in the input, such as \"x://2\""]);
}

#[test]
fn oddities_are_warned_about() {
    let group = |name: &str, spec: &str| {
        format!("apiVersion: plimsoll.dev/v1alpha1\nkind: NodeGroup\nmetadata: {{name: {name}}}\nspec: {spec}\n")
    };
    for (name, text, expected) in [
        ("nothing but a comment", "# to come\n---\n".to_owned(), &["f: no objects in this file"][..]),
        ("an empty list", r#"{"apiVersion":"v1","kind":"List","items":[]}"#.to_owned(), &["f: no objects in this file"]),
        (
            "unknown kinds, each once",
            "apiVersion: example.com/v1\nkind: Thing\n---\napiVersion: example.com/v1\nkind: Thing\n---\napiVersion: v1\nkind: Binding\n".to_owned(),
            &["f:1: 2 objects of kind Thing (example.com/v1) not used", "f:7: 1 object of kind Binding (v1) not used"],
        ),
        ("an unknown kind with items of its own", "apiVersion: v1\nkind: Thing\nitems: [a, {b: c}]\n".to_owned(), &["f:1: 1 object of kind Thing (v1) not used"]),
        (
            "an unknown kind that holds whole objects",
            "apiVersion: v1\nkind: Thing\nitems: [{apiVersion: v1, kind: Node, metadata: {name: n}}]\n".to_owned(),
            &["f:1: 1 object of kind Thing (v1) not used"],
        ),
        (
            "an unknown kind with items before it",
            "apiVersion: v1\nitems: [a, {b: c}]\nkind: Thing\n".to_owned(),
            &["f:1: 1 object of kind Thing (v1) not used"],
        ),
        ("known kinds that do not matter", "apiVersion: apps/v1\nkind: Deployment\n".to_owned(), &[]),
        (
            "pods without requests",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: q}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: r}\nstatus: {phase: Succeeded}\n".to_owned(),
            &["f:1: 2 pods without requests, such as default/p; they need only a free pod slot"],
        ),
        (
            "a group of unknown nodes",
            group("a", "{maxSize: 1, nodes: [x, y], template: {status: {capacity: {pods: '1'}}}}"),
            &["f:1: nodeGroup \"a\": 2 nodes not in the input, such as \"x\""],
        ),
        (
            "a group that nothing is known about",
            group("a", "{maxSize: 1}"),
            &["f:1: nodeGroup \"a\" has neither a template nor a node in the input, so it cannot grow; add a template"],
        ),
        (
            "a template that no pod fits on",
            group("a", "\n  maxSize: 1\n  template: {status: {capacity: {cpu: 4}}}"),
            &["f:6: nodeGroup \"a\": nodes of its template take no pods; add pods: \"110\" to its allocatable"],
        ),
    ] {
        let input = read(&[("f", &text)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(warnings(&input), expected, "{name}");
    }
}

/// One file, and exactly what is said about it.
#[test]
fn refusals() {
    let pod = |rest: &str| {
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n \"metadata\": {{\"name\": \"p\", \"namespace\": \"shop\"}},\n {rest}}}"
        )
    };
    let group = |spec: &str| {
        format!("apiVersion: plimsoll.dev/v1alpha1\nkind: NodeGroup\nmetadata: {{name: workers-a}}\nspec:\n{spec}")
    };
    for (name, text, expected) in [
        ("empty", String::new(), "f:1: the file is empty; expected what kubectl get -o json or -o yaml prints (did that command fail?)"),
        ("blank", " \n\n".to_owned(), "f:1: the file is empty; expected what kubectl get -o json or -o yaml prints (did that command fail?)"),
        (
            "prose",
            "hello world\nhow are you\n".to_owned(),
            "f:1: this is neither JSON nor YAML of Kubernetes objects: it starts with \"hello world\"; expected apiVersion and kind",
        ),
        (
            "a table",
            "NAME   STATUS   AGE\nn1     Ready    5d\n".to_owned(),
            "f:1: this is neither JSON nor YAML of Kubernetes objects: it starts with \"NAME   STATUS   AGE\"; expected apiVersion and kind",
        ),
        (
            "broken JSON",
            "{\"apiVersion\": \"v1\",\n \"kind\": \"Pod\" \"metadata\": {}}".to_owned(),
            "f:2:16: this is not JSON: expected `,` or `}`; correct it, or fetch the objects again",
        ),
        (
            "broken JSON after an object",
            "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}\n{\"kind\": nul}".to_owned(),
            "f:2:13: this is not JSON: expected true, false or null; correct it, or fetch the objects again",
        ),
        (
            "JSON that was cut off",
            "{\"apiVersion\": \"v1\",\n \"items\": [{\"kind\": \"Pod\",".to_owned(),
            "f:2:26: the JSON ends in the middle of an object; the file was cut off, fetch the objects again",
        ),
        (
            "a list of values",
            "[1, 2]".to_owned(),
            "f:1: this is neither JSON nor YAML of Kubernetes objects: it starts with \"[1, 2]\"; expected apiVersion and kind",
        ),
        (
            "a bare list of objects",
            "[{\"apiVersion\": \"v1\"}]".to_owned(),
            "f:1: expected an object with apiVersion and kind, found a list",
        ),
        (
            "a value in a list",
            "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n \"x\"]}".to_owned(),
            "f:2: expected an object with apiVersion and kind, found \"x\"",
        ),
        (
            "items that are no list",
            "{\"apiVersion\": \"v1\", \"kind\": \"List\",\n \"items\": {}}".to_owned(),
            "f:2: expected an object with apiVersion and kind, found an object",
        ),
        (
            "a kind that is no text",
            "{\"apiVersion\": \"v1\",\n \"kind\": 5}".to_owned(),
            "f:2: expected a text, found the number 5",
        ),
        (
            "no kind",
            "{\"metadata\": {\"name\": \"x\"}}".to_owned(),
            "f:1: the object does not say its apiVersion and kind; expected for instance apiVersion: v1 and kind: Pod",
        ),
        (
            "no kind in a list",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n}\n- metadata: {name: x}\n".to_owned(),
            "f:7: the object does not say its apiVersion and kind; expected for instance apiVersion: v1 and kind: Pod",
        ),
        (
            "no API version",
            "kind: Pod\nmetadata: {name: x}\n".to_owned(),
            "f:1: Pod x: the object does not say its apiVersion and kind; expected for instance apiVersion: v1 and kind: Pod",
        ),
        (
            "a value in a list of YAML",
            "apiVersion: v1\nkind: List\nitems:\n- x\n".to_owned(),
            "f:4: expected an object with apiVersion and kind, found \"x\"",
        ),
        (
            "lists without end",
            "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[".repeat(9) + &"]}".repeat(9),
            "f:1: lists are nested more than 8 deep; put the objects into one list",
        ),
        (
            "lists without end in YAML",
            "{apiVersion: v1, kind: List, items: [".repeat(9) + &"]}".repeat(9),
            "f:1: lists are nested more than 8 deep; put the objects into one list",
        ),
        (
            "a quantity",
            pod("\"spec\": {\"containers\": [{\"name\": \"c\", \"resources\": {\"requests\": {\n  \"memory\": \"1Gi\",\n  \"cpu\":\n   \"1.5.0\"}}}]}"),
            "f:6: Pod shop/p: spec.containers[0].resources.requests.cpu: \"1.5.0\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            "a quantity in a list of YAML",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n  status:\n    allocatable:\n      cpu: \"4\"\n      memory: 16gb\n".to_owned(),
            "f:11: Node n1: status.allocatable.memory: \"16gb\" is not a quantity: \"gb\" is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3",
        ),
        (
            "a field of another shape",
            pod("\"spec\": {\n \"containers\": {}}"),
            "f:4: Pod shop/p: spec.containers: expected a list, found an object",
        ),
        (
            "a label that is no text",
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    a: b\n    spot: true\n".to_owned(),
            "f:7: Node n1: metadata.labels.spot: expected a text, found true",
        ),
        (
            "a time",
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  creationTimestamp: \"yesterday\"\n".to_owned(),
            "f:5: Node n1: metadata.creationTimestamp: expected a time such as 2026-01-31T12:00:00Z, found \"yesterday\"",
        ),
        ("no name", "apiVersion: v1\nkind: Node\nmetadata: {}\n".to_owned(), "f:3: Node without a name: metadata.name: the object has no name; give it one"),
        (
            "a taint",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec:\n  taints:\n  - key: a\n    effect: noSchedule\n".to_owned(),
            "f:7: Node n1: spec.taints[0].effect: \"noSchedule\" is not a taint effect; expected NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (
            "the second document",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n# here\napiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus:\n  capacity: {cpu: x}\n".to_owned(),
            "f:10: Node n2: status.capacity.cpu: \"x\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            "broken YAML",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1\nspec: {}\n".to_owned(),
            "f:4:5: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'; correct it, or fetch the objects again",
        ),
        (
            "a key twice",
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  name: n2\n".to_owned(),
            "f:5:3: \"name\" is there twice; keep one of them",
        ),
        (
            "tabs",
            "apiVersion: v1\nkind: Node\nmetadata:\n\tname: n1\n".to_owned(),
            "f:4:2: this is not YAML: tabs disallowed within this context (block indentation); correct it, or fetch the objects again",
        ),
        (
            "a node twice",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n".to_owned(),
            "f:5: Node n1: it is already in f:1; remove one of the two",
        ),
        (
            "a pod twice",
            format!("{}\n{}", pod("\"spec\": {}"), pod("\"spec\": {}")),
            "f:4: Pod shop/p: it is already in f:1; remove one of the two",
        ),
        (
            "a pod twice, once without its namespace",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n".to_owned(),
            "f:5: Pod default/p: it is already in f:1; remove one of the two",
        ),
        (
            "a group twice",
            format!("{}---\n{}", group("  maxSize: 1\n"), group("  maxSize: 1\n")),
            "f:7: nodeGroup \"workers-a\": it is already in f:1; remove one of the two",
        ),
        (
            "sizes in the wrong order",
            group("  minSize: 5\n  maxSize: 3\n"),
            "f:6: nodeGroup \"workers-a\": maxSize 3 is below minSize 5; set maxSize to 5 or more",
        ),
        (
            "a negative size",
            group("  minSize: -1\n  maxSize: 3\n"),
            "f:5: nodeGroup \"workers-a\": minSize -1 is not a size; set it to a whole number from 0 to 1000000",
        ),
        (
            "a size that is no number",
            group("  maxSize: many\n"),
            "f:5: nodeGroup \"workers-a\": spec.maxSize: expected a whole number, found the text \"many\"",
        ),
        ("no size", group("  minSize: 0\n"), "f:5: nodeGroup \"workers-a\": spec: maxSize is missing"),
        (
            "an unknown field",
            group("  maxSize: 3\n  maxsize: 3\n"),
            "f:6: nodeGroup \"workers-a\": spec.maxsize: \"maxsize\" is not a field here; expected one of minSize, maxSize, targetSize, nodes, nodeSelector, providerIDs, template, templatePods, templateResourceSlices, templateResourceClaims, pricePerHour, options, priority",
        ),
        (
            "two ways to name nodes",
            group("  maxSize: 3\n  nodes: [a]\n  nodeSelector: {a: b}\n"),
            "f:7: nodeGroup \"workers-a\": it has nodes and nodeSelector; keep one of them",
        ),
        (
            "pods without a template",
            group("  maxSize: 3\n  templatePods: [{metadata: {name: p}}]\n"),
            "f:6: nodeGroup \"workers-a\": templatePods belong to a template, and there is none; add a template or remove them",
        ),
        (
            "a price",
            group("  maxSize: 3\n  pricePerHour: $3\n"),
            "f:6: nodeGroup \"workers-a\": spec.pricePerHour: \"$3\" is not a price; expected an amount of 0 or more such as \"0.40\"",
        ),
        (
            "a negative price",
            group("  maxSize: 3\n  pricePerHour: -1\n"),
            "f:6: nodeGroup \"workers-a\": spec.pricePerHour: \"-1\" is not a price; expected an amount of 0 or more such as \"0.40\"",
        ),
        (
            "a misspelt option",
            group("  maxSize: 3\n  options:\n    scale-down-unneeded-time: 5m\n    scale-down-utilisation-threshold: 0.5\n"),
            "f:8: nodeGroup \"workers-a\": \"scale-down-utilisation-threshold\" is not an option of a group; did you mean scale-down-utilization-threshold?",
        ),
        (
            "an option of something else",
            group("  maxSize: 3\n  options: {expander: random}\n"),
            "f:6: nodeGroup \"workers-a\": \"expander\" is not an option of a group; expected one of scale-down-utilization-threshold, scale-down-gpu-utilization-threshold, scale-down-unneeded-time, scale-down-unready-time, max-node-provision-time, max-node-startup-time, zero-or-max-node-scaling, ignore-daemonsets-utilization",
        ),
        (
            "a value of an option",
            group("  maxSize: 3\n  options: {scale-down-unneeded-time: 10}\n"),
            "f:6: nodeGroup \"workers-a\": spec.options.scale-down-unneeded-time: \"10\" is no value of this option; expected a duration such as 10m or 1h30m",
        ),
        (
            "a list for an option",
            group("  maxSize: 3\n  options: {scale-down-unneeded-time: [10m]}\n"),
            "f:6: nodeGroup \"workers-a\": spec.options.scale-down-unneeded-time: expected a text, a number, true or false",
        ),
        (
            "an amount in a template",
            group("  maxSize: 3\n  template:\n    status:\n      allocatable: {pods: 110}\n      capacity:\n        memory: 16 Gi\n"),
            "f:10: nodeGroup \"workers-a\": spec.template.status.capacity.memory: \"16 Gi\" is not a quantity: \" Gi\" is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3",
        ),
        (
            "a pod of a template",
            group("  maxSize: 3\n  template: {}\n  templatePods:\n  - metadata: {name: p}\n  - metadata: {name: q}\n    spec: {containers: 5}\n"),
            "f:10: nodeGroup \"workers-a\": spec.templatePods[1].spec.containers: expected a list, found the number 5",
        ),
        (
            "a template that is no node",
            group("  maxSize: 3\n  template: {kind: Machine}\n"),
            "f:6: nodeGroup \"workers-a\": spec.template: expected Node, found the text \"Machine\"",
        ),
        (
            "our own kinds",
            "apiVersion: plimsoll.dev/v1\nkind: NodeGroup\nmetadata: {name: a}\n".to_owned(),
            "f:1: nodeGroup \"a\": plimsoll.dev/v1 NodeGroup is not known; expected plimsoll.dev/v1alpha1 NodeGroup",
        ),
        (
            "a node in two groups",
            format!(
                "apiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{pool: a}}}}\n---\n{}---\n{}",
                group("  maxSize: 3\n  nodes: [n1]\n"),
                group("  maxSize: 3\n  nodeSelector: {pool: a}\n").replace("workers-a", "workers-b")
            ),
            "f:12: nodeGroup \"workers-b\": node n1 is in nodeGroup \"workers-a\" (f:5) too; leave it in one of them",
        ),
    ] {
        match read(&[("f", &text)]) {
            Ok(_) => panic!("{name}: was accepted"),
            Err(error) => assert_eq!(error, expected, "{name}"),
        }
    }
}

#[test]
fn bytes_that_are_no_text() {
    for (name, bytes, expected) in [
        (
            "garbage",
            &b"\x00\x01\x02\xff\xfe garbage"[..],
            "f:1: the file is not text: byte 3 is not UTF-8; expected JSON or YAML",
        ),
        (
            "one bad byte",
            b"{\"kind\":\n\"P\x80d\"}",
            "f:2: the file is not text: byte 11 is not UTF-8; expected JSON or YAML",
        ),
        ("UTF-16", b"\xff\xfe{\x00}\x00", "f:1: the file is UTF-16 text; save it as UTF-8 and try again"),
        ("gzip", b"\x1f\x8b\x08\x00", "f:1: the file is compressed with gzip; unpack it and try again"),
    ] {
        let error = Reader::default().add("f", bytes).unwrap_err();
        assert_eq!(error.to_string(), expected, "{name}");
    }
}

#[test]
fn errors_name_the_other_file() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    let error = read(&[("a.yaml", node), ("b.yaml", &format!("# again\n{node}"))]).unwrap_err();
    assert_eq!(error, "b.yaml:2: Node n1: it is already in a.yaml:1; remove one of the two");
}

#[test]
fn the_same_name_in_another_kind_or_namespace_is_another_object() {
    let object = |kind: &str, metadata: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {metadata}\n---\n");
    let text = object("Pod", "{name: a}")
        + &object("Pod", "{name: a, namespace: b}")
        + &object("Node", "{name: a}")
        + &object("Namespace", "{name: a}");
    assert_eq!(names(&read(&[("f", &text)]).unwrap()).1, ["b/a", "default/a"]);
}

/// Texts that are small and mean something enormous, or that a careless parser follows down until its stack ends.
#[test]
fn bombs_are_refused_at_once() {
    let pod =
        "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\"}, \"spec\": {\"containers\": ";
    let aliases: String = (1..12)
        .map(|level| format!("x{level}: &x{level} [{}]\n", [&*format!("*x{}", level - 1); 9].join(", ")))
        .collect();
    let cut_off = "the JSON ends in the middle of an object; the file was cut off, fetch the objects again";
    let unbounded = "the YAML is nested more than 48 deep, or repeats too much by aliases; write it out plainly";
    let recursion = "this is not YAML: it is nested too deep; correct it, or fetch the objects again";
    for (name, text, expected) in [
        ("deep JSON", format!("{pod}{}", "[".repeat(1_000_000)), cut_off),
        (
            "deep JSON, closed",
            format!("{pod}{}{}}}}}", "[".repeat(1_000_000), "]".repeat(1_000_000)),
            "Pod p: spec.containers[0][0]: expected Container, found a list",
        ),
        ("deep objects", format!("{pod}{}", "{\"a\":".repeat(1_000_000)), cut_off),
        ("deep YAML", format!("apiVersion: v1\nkind: Pod\nspec: {}", "[".repeat(1_000_000)), recursion),
        (
            "deep YAML, closed",
            format!("apiVersion: v1\nkind: Pod\nspec: {}{}", "[".repeat(100_000), "]".repeat(100_000)),
            recursion,
        ),
        (
            "deep YAML by indentation",
            format!(
                "apiVersion: v1\nkind: Pod\nspec:\n{}",
                (1..2000).map(|depth| " ".repeat(depth) + "a:\n").collect::<String>()
            ),
            unbounded,
        ),
        (
            "aliases of aliases",
            format!("apiVersion: v1\nkind: Thing\nx0: &x0 [a, a, a, a, a, a, a, a, a]\n{aliases}"),
            unbounded,
        ),
    ] {
        let error = read(&[("f", &text)]).expect_err(name);
        assert_eq!(error.split_once(": ").map(|(_, problem)| problem), Some(expected), "{name}");
    }
    let harmless = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"Thing\", \"x\": {}{}}}",
        "[".repeat(1_000_000),
        "]".repeat(1_000_000)
    );
    assert!(read(&[("f", &harmless)]).is_ok(), "what nobody looks at is skimmed, however deep it is");
}

#[test]
fn terminal_pods_are_kept() {
    let input = read(&[("f", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {phase: Succeeded}\n")]).unwrap();
    assert!(input.cluster.pods[0].is_terminal());
}
