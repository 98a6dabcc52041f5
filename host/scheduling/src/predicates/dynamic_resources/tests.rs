//! Named cases.

mod between_pods;

use plimsoll_model::convert::Kind;

use crate::testing::Scene;

const GPU: &str = "{metadata: {name: gpu}, spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}}";

const SHORT: &str = "DynamicResources: cannot allocate all claims";

fn slice(name: &str, reach: &str, pool: &str, parts: &str) -> String {
    format!(
        "{{metadata: {{name: {name}}}, spec: {{driver: gpu.example.com, {reach}, pool: {{name: {pool}, generation: 1, \
         resourceSliceCount: 1}}, {parts}}}}}"
    )
}

/// Node n1 with devices, and a class for them.
fn scene(parts: &str) -> Scene {
    let mut scene = Scene::new();
    scene.node("n1", "{}");
    scene.add(Kind::DeviceClass, GPU);
    scene.add(Kind::ResourceSlice, &slice("s1", "nodeName: n1", "p1", parts));
    scene
}

/// A claim that a pod called `owner` owns.
fn own(scene: &mut Scene, name: &str, owner: &str, devices: &str, status: &str) {
    let owners = format!("[{{apiVersion: v1, kind: Pod, name: {owner}, uid: {owner}, controller: true}}]");
    scene.add(
        Kind::ResourceClaim,
        &format!(
            "{{metadata: {{name: {name}, namespace: default, ownerReferences: {owners}}}, spec: {{devices: {devices}}}, \
             status: {status}}}"
        ),
    );
}

/// A pod with a claim of its own.
fn with_claim(claim: &str) -> String {
    format!(
        "{{metadata: {{uid: pod}}, spec: {{resourceClaims: [{{name: c, resourceClaimTemplateName: t}}]}}, \
         status: {{resourceClaimStatuses: [{{name: c, resourceClaimName: {claim}}}]}}}}"
    )
}

fn verdict(parts: &str, devices: &str) -> String {
    let mut scene = scene(parts);
    own(&mut scene, "c", "pod", devices, "{}");
    let pod = scene.pod(&with_claim("c"));
    scene.verdict(pod)
}

const TWO: &str = "devices: [{name: a, attributes: {model: {string: big}, root: {int: 1}, new: {bool: true}}, capacity: {memory: {value: 40Gi}}}, \
                   {name: b, attributes: {model: {string: small}, root: {int: 2}, pci/slot: {int: 1}}, capacity: {memory: {value: 16Gi}}}]";

fn exactly(parts: &str) -> String {
    format!("{{requests: [{{name: r, exactly: {{deviceClassName: gpu, {parts}}}}}]}}")
}

#[test]
fn requests_are_met_by_devices() {
    for (name, devices, expected) in [
        ("one", exactly("count: 1"), ""),
        ("as many as there are", exactly("count: 2"), ""),
        ("too many", exactly("count: 3"), SHORT),
        ("all", exactly("allocationMode: All"), ""),
        (
            "all of none",
            exactly("allocationMode: All, selectors: [{cel: {expression: 'false'}}]"),
            SHORT,
        ),
        (
            "more than a claim can have",
            exactly("count: 33"),
            "DynamicResources: running \"DynamicResources\" filter plugin: number of requested devices 33 exceeds the \
             claim limit of 32",
        ),
        (
            "an unknown mode",
            exactly("allocationMode: Half"),
            "DynamicResources: running \"DynamicResources\" filter plugin: request r: unsupported count mode Half",
        ),
        (
            "an unknown class",
            "{requests: [{name: r, exactly: {deviceClassName: x}}]}".to_owned(),
            "DynamicResources: running \"DynamicResources\" filter plugin: request r: could not retrieve device class x: \
             DeviceClass \"x\" not found",
        ),
        (
            "the second alternative",
            "{requests: [{name: r, firstAvailable: [{name: x, deviceClassName: gpu, count: 3}, {name: y, deviceClassName: gpu}]}]}"
                .to_owned(),
            "",
        ),
        (
            "two requests that want the same device",
            "{requests: [{name: r, exactly: {deviceClassName: gpu}}, {name: s, exactly: {deviceClassName: gpu, count: 2}}]}"
                .to_owned(),
            SHORT,
        ),
        (
            "the first must leave the second what it needs",
            "{requests: [{name: r, exactly: {deviceClassName: gpu}}, {name: s, exactly: {deviceClassName: gpu, selectors: \
             [{cel: {expression: 'device.attributes[\"gpu.example.com\"].model == \"big\"'}}]}}]}"
                .to_owned(),
            "",
        ),
    ] {
        assert_eq!(verdict(TWO, &devices), expected, "{name}");
    }
}

#[test]
fn rules_between_devices() {
    let two = |rule: &str| {
        format!("{{requests: [{{name: r, exactly: {{deviceClassName: gpu, count: 2}}}}], constraints: [{{{rule}}}]}}")
    };
    let fault = "DynamicResources: running \"DynamicResources\" filter plugin: ";
    for (name, devices, expected) in [
        ("the same value", two("matchAttribute: gpu.example.com/root"), SHORT.to_owned()),
        ("different values", two("distinctAttribute: gpu.example.com/root"), String::new()),
        ("an attribute that one lacks", two("distinctAttribute: pci/slot"), SHORT.to_owned()),
        ("a rule for another request", two("requests: [s], matchAttribute: gpu.example.com/root"), String::new()),
        ("no rule", two(""), format!("{fault}empty constraint (unsupported constraint type?)")),
        (
            "all, against a rule",
            "{requests: [{name: r, exactly: {deviceClassName: gpu, allocationMode: All}}], constraints: [{matchAttribute: \
             gpu.example.com/root}]}"
                .to_owned(),
            format!("{fault}a constraint keeps a claim from having all devices"),
        ),
    ] {
        assert_eq!(verdict(TWO, &devices), expected, "{name}");
    }
}

#[test]
fn taints_of_devices() {
    let tainted = "devices: [{name: a, taints: [{key: k, value: v, effect: NoSchedule}]}]";
    for (name, devices, tolerations, fits) in [
        ("not tolerated", tainted, "", false),
        ("by key", tainted, "{key: k, operator: Exists}", true),
        ("by value", tainted, "{key: k, value: v, effect: NoSchedule}", true),
        ("another value", tainted, "{key: k, value: w}", false),
        ("another effect", tainted, "{operator: Exists, effect: NoExecute}", false),
        ("an unknown operator", tainted, "{key: k, operator: Like}", false),
        ("an effect of no consequence", "devices: [{name: a, taints: [{key: k, effect: None}]}]", "", true),
    ] {
        let found = verdict(devices, &exactly(&format!("tolerations: [{tolerations}]")));
        assert_eq!(found, if fits { "" } else { SHORT }, "{name}");
    }
}

#[test]
fn devices_in_parts() {
    let shared = |policy: &str| {
        format!("devices: [{{name: a, allowMultipleAllocations: true, capacity: {{bw: {{value: 10, {policy}}}}}}}]")
    };
    let held = |amount: &str| {
        format!(
            "{{allocation: {{devices: {{results: [{{request: r, driver: gpu.example.com, pool: p1, device: a, shareID: s, \
             consumedCapacity: {{bw: {amount}}}}}]}}}}}}"
        )
    };
    let range = "requestPolicy: {default: 2, validRange: {min: 2, step: 2, max: 6}}";
    let asks = |amount: &str| exactly(&format!("capacity: {{requests: {{bw: {amount}}}}}"));
    for (name, policy, taken, devices, fits) in [
        ("enough left", "", "6", asks("4"), true),
        ("too little left", "", "6", asks("5"), false),
        ("all, if it does not say", "", "1", exactly("count: 1"), false),
        ("the default", range, "8", exactly("count: 1"), true),
        ("rounded up", range, "6", asks("3"), true),
        ("rounded up too far", range, "7", asks("3"), false),
        ("beyond the range", range, "0", asks("7"), false),
        ("up to the next value", "requestPolicy: {validValues: [1, 5]}", "5", asks("2"), true),
        ("beyond all values", "requestPolicy: {validValues: [1, 5]}", "0", asks("6"), false),
        ("of something else", "", "0", exactly("capacity: {requests: {io: 1}}"), false),
        ("with the driver's name", "", "6", exactly("capacity: {requests: {gpu.example.com/bw: 4}}"), true),
    ] {
        let mut scene = scene(&shared(policy));
        own(&mut scene, "other", "other", &exactly("count: 1"), &held(taken));
        own(&mut scene, "c", "pod", &devices, "{}");
        let pod = scene.pod(&with_claim("c"));
        assert_eq!(scene.verdict(pod), if fits { "" } else { SHORT }, "{name}");
    }
}

#[test]
fn counters_that_devices_share() {
    let mut scene = Scene::new();
    scene.node("n1", "{}");
    scene.add(Kind::DeviceClass, GPU);
    let slices =
        |parts: &str| slice("s", "nodeName: n1", "p1", parts).replace("resourceSliceCount: 1", "resourceSliceCount: 2");
    let takes =
        |slots: u32| format!("consumesCounters: [{{counterSet: set, counters: {{slots: {{value: {slots}}}}}}}]");
    let devices =
        format!("devices: [{{name: full, {}}}, {{name: half, {}}}, {{name: rest, {}}}]", takes(4), takes(2), takes(2));
    scene.add(Kind::ResourceSlice, &slices("sharedCounters: [{name: set, counters: {slots: {value: 4}}}]"));
    scene.add(Kind::ResourceSlice, &slices(&devices).replace("name: s}", "name: t}"));
    for (count, fits) in [(1, true), (2, true), (3, false)] {
        let name = format!("c{count}");
        own(&mut scene, &name, "pod", &exactly(&format!("count: {count}")), "{}");
        let pod = scene.pod(&with_claim(&name));
        assert_eq!(scene.verdict(pod), if fits { "" } else { SHORT }, "{count} devices");
    }
    let held = "{allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: p1, device: half}]}}}";
    own(&mut scene, "other", "other", &exactly("count: 1"), held);
    let pod = scene.pod(&with_claim("c2"));
    assert_eq!(scene.verdict(pod), SHORT, "half of them is gone");
}

#[test]
fn pools_that_are_not_in_order() {
    let all = exactly("allocationMode: All");
    let fault = "DynamicResources: running \"DynamicResources\" filter plugin: request r: asks for all devices, but resource \
                 pool gpu.example.com/p1 is currently ";
    let twice = "devices: [{name: a}, {name: a}]";
    for (name, change, devices, expected) in [
        ("incomplete", ("resourceSliceCount: 1", "resourceSliceCount: 2"), exactly("count: 1"), SHORT.to_owned()),
        (
            "all of an incomplete one",
            ("resourceSliceCount: 1", "resourceSliceCount: 2"),
            all.clone(),
            format!("{fault}being updated"),
        ),
        (
            "a name twice",
            ("devices: [{name: a}]", twice),
            exactly("count: 1"),
            "DynamicResources: invalid resource pools were encountered".to_owned(),
        ),
        ("all of one with a name twice", ("devices: [{name: a}]", twice), all, format!("{fault}invalid")),
    ] {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        scene.add(Kind::DeviceClass, GPU);
        let object = slice("s", "nodeName: n1", "p1", "devices: [{name: a}]").replace(change.0, change.1);
        scene.add(Kind::ResourceSlice, &object);
        own(&mut scene, "c", "pod", &devices, "{}");
        let pod = scene.pod(&with_claim("c"));
        assert_eq!(scene.verdict(pod), expected, "{name}");
    }
}

#[test]
fn an_older_generation_does_not_count() {
    let mut scene = scene("devices: [{name: a}, {name: b}]");
    let newer = slice("s2", "nodeName: n1", "p1", "devices: [{name: a}]").replace("generation: 1", "generation: 2");
    scene.add(Kind::ResourceSlice, &newer);
    own(&mut scene, "one", "pod", &exactly("count: 1"), "{}");
    own(&mut scene, "two", "pod", &exactly("count: 2"), "{}");
    let (one, two) = (scene.pod(&with_claim("one")), scene.pod(&with_claim("two")));
    assert_eq!(scene.verdict(one), "");
    assert_eq!(scene.verdict(two), SHORT);
}

#[test]
fn devices_that_several_nodes_can_use() {
    for (name, reach, parts, expected) in [
        ("all nodes", "allNodes: true", "devices: [{name: a}]", vec!["n1", "n2"]),
        (
            "some",
            "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: Exists}]}]}",
            "devices: [{name: a}]",
            vec!["n2"],
        ),
        ("each by itself", "perDeviceNodeSelection: true", "devices: [{name: a, nodeName: n1}]", vec!["n1"]),
        ("nobody says", "allNodes: false", "devices: [{name: a}]", vec![]),
    ] {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        scene.node("n2", "{metadata: {labels: {rack: r}}}");
        scene.add(Kind::DeviceClass, GPU);
        scene.add(Kind::ResourceSlice, &slice("s", reach, "wide", parts));
        own(&mut scene, "c", "pod", &exactly("count: 1"), "{}");
        own(&mut scene, "d", "pod", &exactly("count: 1"), "{}");
        let pod = scene.pod(&with_claim("c"));
        assert_eq!(scene.fitting(pod), expected, "{name}");
        if let Some(node) = expected.first() {
            // The only device goes to a pod on one of these nodes.
            scene.resident(node, "{metadata: {name: other, uid: pod}}");
            let mut snapshot = scene.snapshot();
            let class = snapshot.class(pod);
            snapshot.place(class, crate::NodeId::new(0), u32::from(*node == "n1"));
            snapshot.place(class, crate::NodeId::new(1), u32::from(*node == "n2"));
            assert!(
                !snapshot.fits(class, crate::NodeId::new(0)) && !snapshot.fits(class, crate::NodeId::new(1)),
                "{name}"
            );
        }
    }
}

#[test]
fn claims_in_every_state() {
    let everywhere = "DynamicResources (everywhere): ";
    let on = |node: &str, consumers: usize| {
        let reserved: Vec<String> =
            (0..consumers).map(|index| format!("{{resource: pods, name: x, uid: x{index}}}")).collect();
        format!(
            "{{allocation: {{nodeSelector: {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: \
             [{node}]}}]}}]}}}}, reservedFor: [{}]}}",
            reserved.join(", ")
        )
    };
    for (name, claim, expected) in [
        ("none", None, format!("{everywhere}claim default/c not found")),
        (
            "another pod's",
            Some(("other", String::from("{}"))),
            format!("{everywhere}ResourceClaim default/c was not created for Pod default/pod (Pod is not owner)"),
        ),
        ("with devices here", Some(("pod", on("n1", 0))), String::new()),
        (
            "with devices elsewhere",
            Some(("pod", on("n2", 0))),
            "DynamicResources: resourceclaim not available on the node".into(),
        ),
        ("with room for a consumer", Some(("pod", on("n1", 255))), String::new()),
        (
            "without room for a consumer",
            Some(("pod", on("n1", 256))),
            "DynamicResources: resourceclaim \"c\" has no room for another consumer".into(),
        ),
    ] {
        let mut scene = scene("devices: [{name: a}]");
        if let Some((owner, status)) = claim {
            own(&mut scene, "c", owner, &exactly("count: 1"), &status);
        }
        let pod = scene.pod(&with_claim("c"));
        assert_eq!(scene.verdict(pod), expected, "{name}");
    }
    let mut scene = scene("devices: [{name: a}]");
    let awaited = scene.pod("{spec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}]}}");
    assert_eq!(scene.verdict(awaited), format!("{everywhere}pod \"default/pod\": ResourceClaim not created yet"));
    let unneeded = scene.pod(
        "{spec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}]}, status: {resourceClaimStatuses: [{name: c}]}}",
    );
    assert_eq!(scene.verdict(unneeded), "");
}

#[test]
fn admin_access_takes_nothing() {
    let mut scene = scene("devices: [{name: a}]");
    let result = |admin: bool| {
        format!(
            "{{allocation: {{devices: {{results: [{{request: r, driver: gpu.example.com, pool: p1, device: a, adminAccess: {admin}}}]}}}}}}"
        )
    };
    own(&mut scene, "admin", "other", &exactly("adminAccess: true"), &result(true));
    own(&mut scene, "c", "pod", &exactly("count: 1"), "{}");
    own(&mut scene, "watch", "pod", &exactly("adminAccess: true"), "{}");
    let (plain, watch) = (scene.pod(&with_claim("c")), scene.pod(&with_claim("watch")));
    assert_eq!(scene.verdict(plain), "", "others look at it only");
    own(&mut scene, "taken", "another", &exactly("count: 1"), &result(false));
    assert_eq!(scene.verdict(plain), SHORT);
    assert_eq!(scene.verdict(watch), "", "devices in use will do");
}

#[test]
fn pods_that_share_a_claim_share_its_place() {
    let mut scene = scene("devices: [{name: a}]");
    scene.node("n2", "{}");
    scene.add(Kind::ResourceSlice, &slice("s2", "nodeName: n2", "p2", "devices: [{name: a}]"));
    scene.add(
        Kind::ResourceClaim,
        &format!("{{metadata: {{name: c, namespace: default}}, spec: {{devices: {}}}}}", exactly("count: 1")),
    );
    let pod = scene.pod("{spec: {resourceClaims: [{name: c, resourceClaimName: c}]}}");
    assert_eq!(scene.fitting(pod), ["n1", "n2"]);
    scene.resident("n2", "{spec: {resourceClaims: [{name: c, resourceClaimName: c}]}}");
    assert_eq!(scene.fitting(pod), ["n2"]);
}

#[test]
fn resources_that_stand_for_devices() {
    let asks = |resource: &str, amount: u32| {
        format!("{{spec: {{containers: [{{name: c, resources: {{requests: {{{resource}: {amount}}}}}}}]}}}}")
    };
    let implicit = "deviceclass.resource.kubernetes.io/gpu";
    for (name, own, resource, amount, expected) in [
        ("enough devices", "", "example.com/gpu", 2, ""),
        ("too few devices", "", "example.com/gpu", 3, SHORT),
        ("by the name of the class", "", implicit, 2, ""),
        ("the node has the resource itself", "example.com/gpu: 4,", "example.com/gpu", 3, ""),
        (
            "the node has too little itself",
            "example.com/gpu: 1,",
            "example.com/gpu",
            2,
            "NodeResourcesFit: Insufficient example.com/gpu",
        ),
        ("the node has none itself", "example.com/gpu: 0,", "example.com/gpu", 2, ""),
        ("no class stands behind it", "", "example.com/other", 1, "NodeResourcesFit: Insufficient example.com/other"),
    ] {
        let mut scene = Scene::new();
        scene.node("n1", &format!("{{status: {{allocatable: {{{own} cpu: 1}}}}}}"));
        scene.add(Kind::DeviceClass, GPU);
        scene.add(Kind::ResourceSlice, &slice("s", "nodeName: n1", "p1", "devices: [{name: a}, {name: b}]"));
        let pod = scene.pod(&asks(resource, amount));
        assert_eq!(scene.verdict(pod), expected, "{name}");
    }
    let mut scene = scene("devices: [{name: a}, {name: b}]");
    scene.resident("n1", &asks("example.com/gpu", 1));
    let (one, two) = (scene.pod(&asks("example.com/gpu", 1)), scene.pod(&asks("example.com/gpu", 2)));
    assert_eq!(scene.verdict(one), "");
    assert_eq!(scene.verdict(two), SHORT, "one is used up");
}

#[test]
fn a_pod_that_can_have_no_device_keeps_none_from_others() {
    let mut scene = scene("devices: [{name: a}]");
    own(&mut scene, "big", "pod", &exactly("count: 5"), "{}");
    own(&mut scene, "c", "pod", &exactly("count: 1"), "{}");
    scene.resident("n1", &with_claim("big"));
    let pod = scene.pod(&with_claim("c"));
    assert_eq!(scene.verdict(pod), "");
}
