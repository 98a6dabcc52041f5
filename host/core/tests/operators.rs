//! What operators of other autoscalers reported as wrong, as small clusters with the right answer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::cloud::{ErrorClass, NodeTemplate, ScaleFailure};
use plimsoll_core::memory::Backoff;
use plimsoll_core::ranking::{GrowthOption, RankRequest, Verdict};
use support::{Scene, WEB, all, empty_group, group_of, node};

const ZONE: &str = "topology.kubernetes.io/zone";

fn growth(pairs: &[(&str, u32)]) -> BTreeMap<String, u32> {
    pairs.iter().map(|&(group, nodes)| (group.to_owned(), nodes)).collect()
}

/// A node of a zone.
fn zoned(name: &str, zone: &str, cpu: &str) -> String {
    node(name, cpu, "64Gi", &format!("{ZONE}: {zone}"))
}

/// A group of a zone, with a template and the nodes that it has.
fn zonal_group(name: &str, zone: &str, cpu: &str, nodes: &[&str]) -> String {
    format!(
        "---\n{{apiVersion: plimsoll.dev/v1alpha1, kind: NodeGroup, metadata: {{name: {name}}}, spec: {{minSize: 0, maxSize: 40, \
         nodes: [{}], template: {{apiVersion: v1, kind: Node, metadata: {{name: t, labels: {{{ZONE}: {zone}}}}}, status: \
         {{allocatable: {{cpu: '{cpu}', memory: 64Gi, pods: '110'}}}}}}}}}}\n",
        nodes.join(", ")
    )
}

/// A pod of application `app`, on a node or pending.
fn app(name: &str, app: &str, cpu: &str, on: Option<&str>, spec: &str) -> String {
    let place = on.map(|node| format!("nodeName: {node}, ")).unwrap_or_default();
    let status = match on {
        Some(_) => "{phase: Running}",
        None => "{conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}",
    };
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: {name}, labels: {{app: {app}}}, ownerReferences: \
         [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}}]}}, spec: {{{place}{spec}containers: \
         [{{name: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}, status: {status}}}\n"
    )
}

fn spread(app: &str, key: &str, more: &str) -> String {
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, {more}labelSelector: \
         {{matchLabels: {{app: {app}}}}}}}], "
    )
}

#[test]
fn zonal_spread_does_not_explode() {
    // S02: fifty pods of one core, ten to a node, in three zones: six nodes, in one decision.
    let wanted = spread("web", ZONE, "");
    let pods = all((0..50).map(|index| app(&format!("p{index:02}"), "web", "1", None, &wanted)));
    let groups = all(["a", "b", "c"].map(|zone| zonal_group(&format!("g{zone}"), zone, "10", &[])));
    let mut scene = Scene::new(&(pods + &groups));
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("ga", 2), ("gb", 2), ("gc", 2)]));
    assert_eq!(told.counts(), BTreeMap::from([("new", 50)]));
    assert_eq!(scene.turn().growth(), growth(&[]));
}

#[test]
fn a_volume_zone_does_not_distort_the_spread() {
    // S03: the volume is in zone a, which has one pod as zone c; zone b has two. The pod may go to a.
    let nodes = all(["a", "b", "c"].map(|zone| zoned(&format!("n{zone}"), zone, "2")));
    let running = all([("d1", "na"), ("d2", "nb"), ("d3", "nb"), ("d4", "nc")]
        .map(|(name, on)| app(name, "db", if on == "nb" { "1" } else { "2" }, Some(on), "")));
    let volume = format!(
        "---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: pv, labels: {{{ZONE}: a}}}}, spec: {{capacity: \
         {{storage: 1Gi}}, accessModes: [ReadWriteOnce], claimRef: {{namespace: shop, name: data}}, csi: {{driver: d, \
         volumeHandle: h}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {ZONE}, operator: In, \
         values: [a]}}]}}]}}}}}}}}\n---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{namespace: shop, name: data, annotations: {{pv.kubernetes.io/bind-completed: 'yes'}}}}, \
         spec: {{volumeName: pv, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}, status: {{phase: \
         Bound}}}}\n"
    );
    let wanted =
        spread("db", ZONE, "minDomains: 3, ") + "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], ";
    let groups = all(["a", "b", "c"].map(|zone| zonal_group(&format!("g{zone}"), zone, "2", &[&format!("n{zone}")])));
    let told = Scene::new(&(nodes + &running + &volume + &app("p", "db", "1", None, &wanted) + &groups)).turn();
    assert_eq!(told.growth(), growth(&[("ga", 1)]), "{:?}", told.plan.not_helped);
}

/// Three nodes with a small pod each, which must spread over the hosts.
fn three_hosts(taints: &str, min: u32) -> String {
    let wanted = spread("web", "kubernetes.io/hostname", &format!("nodeTaintsPolicy: {taints}, "));
    all(["n1", "n2", "n3"].map(|name| node(name, "4", "16Gi", "")))
        + &all(["n1", "n2", "n3"].map(|on| app(&format!("on-{on}"), "web", "200m", Some(on), &wanted)))
        + &group_of("g", min, 5, &["n1", "n2", "n3"])
        + WEB
}

#[test]
fn a_node_that_is_being_drained_still_counts_for_the_spread() {
    // S05: tainted n3 would keep a count of 0, so that n1 or n2 would come to a skew of 2.
    let told = Scene::new(&three_hosts("Ignore", 0)).turn();
    assert_eq!(told.going(), Vec::<String>::new());
}

#[test]
fn unless_the_spread_looks_at_taints() {
    // S06: with nodeTaintsPolicy Honor one of the nodes can go.
    let mut scene = Scene::new(&three_hosts("Honor", 2));
    scene.settings.max_drain_parallelism = 5;
    assert_eq!(scene.turn().going().len(), 1);
}

#[test]
fn attach_limits_of_volumes_are_counted() {
    // S26: 25 volumes a node, one pod a volume: sixty pods need three nodes more, however small they are.
    let limits = "---\n{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: \
                  n1, topologyKeys: [], allocatable: {count: 25}}]}}\n";
    let mounted = |index: usize| {
        format!(
            "---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: pv{index}}}, spec: {{capacity: {{storage: 1Gi}}, \
             accessModes: [ReadWriteOnce], claimRef: {{namespace: shop, name: c{index}}}, csi: {{driver: d, volumeHandle: \
             h{index}}}}}}}\n---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{namespace: shop, name: c{index}, annotations: {{pv.kubernetes.io/bind-completed: 'yes'}}}}, \
             spec: {{volumeName: pv{index}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}, status: \
             {{phase: Bound}}}}\n"
        )
    };
    let with_volume = |index: usize, on: Option<&str>| {
        let volume = format!("volumes: [{{name: v, persistentVolumeClaim: {{claimName: c{index}}}}}], ");
        mounted(index) + &app(&format!("p{index:02}"), "web", "100m", on, &volume)
    };
    let pods = all((0..85).map(|index| with_volume(index, (index < 25).then_some("n1"))));
    let mut scene = Scene::new(&(node("n1", "64", "64Gi", "") + limits + &pods + &group_of("g", 1, 40, &["n1"])));
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("g", 3)]), "{:?}", told.counts());
}

#[test]
fn a_stock_out_leaves_no_wish_behind() {
    // S12: two nodes were accepted; the cloud then says that they will not come. Their pods get others in the same loop, and
    // the wish is taken back, so that nobody pays for machines that come when stock returns.
    let pods = all((0..2).map(|index| app(&format!("p{index}"), "web", "3", None, "")));
    let groups = empty_group("od", 40, "5", "16Gi", "") + &empty_group("spot", 40, "4", "16Gi", "");
    let mut scene = Scene::new(&(pods.clone() + &groups));
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("spot", 2)]), "it wastes less");
    let spot = scene.snapshot.groups.iter_mut().find(|group| group.id.as_str() == "spot").unwrap();
    spot.target_size = 2;
    spot.failures = vec![ScaleFailure {
        id: "activity-1".into(),
        at: scene.now,
        missing: 2,
        error: support::error(ErrorClass::OutOfResources, false),
        zone: None,
        instance_type: None,
    }];
    scene.done.clear();
    let told = scene.turn();
    assert_eq!(scene.done, ["decrease spot -2", "increase od +2"]);
    assert_eq!(told.growth(), growth(&[("od", 2)]));
    assert!(scene.memory.backed_off(&"spot".into(), scene.now).is_some());
    assert!(scene.memory.withdrawals.is_empty());

    // A pod that comes when the back-off of five minutes is over gets a machine of the group that wastes less, as before.
    let pods = pods + &app("p2", "web", "3", None, "");
    for (seconds, grows) in [(290, "od"), (310, "spot")] {
        let mut later = Scene::new(&(pods.clone() + &groups));
        later.now = scene.now + Duration::from_secs(seconds);
        later.memory = scene.memory.clone();
        for group in &mut later.snapshot.groups {
            group.target_size = if group.id.as_str() == "od" { 2 } else { 0 };
            group.observed_at = later.now;
        }
        assert_eq!(later.turn().growth(), growth(&[(grows, 1)]), "{seconds} s after the stock-out");
    }
}

#[test]
fn a_wish_is_taken_back_until_the_cloud_takes_it() {
    let mut scene = Scene::new(&empty_group("spot", 40, "4", "16Gi", ""));
    scene.snapshot.groups[0].target_size = 2;
    scene.memory.withdrawals.insert("spot".into(), 5);
    scene.decreases = vec![ErrorClass::Conflict];
    scene.turn();
    assert_eq!(scene.done, ["decrease spot -2"]);
    scene.turn();
    assert_eq!(scene.done, ["decrease spot -2", "decrease spot -2"], "the cloud was busy");
    scene.turn();
    assert_eq!(scene.done.len(), 2, "once it is done it is done");
}

#[test]
fn nothing_is_done_while_most_of_the_cluster_is_gone() {
    let names: Vec<String> = (0..6).map(|index| format!("n{index}")).collect();
    let bad = |name: &String| node(name, "4", "16Gi", "").replace("status: 'True'", "status: 'Unknown'");
    let nodes = |unready: usize| {
        all(names
            .iter()
            .enumerate()
            .map(|(at, name)| if at < unready { bad(name) } else { node(name, "4", "16Gi", "") }))
    };
    let rest =
        app("p", "web", "3", None, "nodeSelector: {kind: new}, ") + &empty_group("g", 5, "4", "16Gi", "kind: new");
    for (unready, grows) in [(0, true), (3, true), (4, false), (6, false)] {
        let mut scene = Scene::new(&(nodes(unready) + &rest));
        let told = scene.turn();
        assert_eq!(told.growth().len(), usize::from(grows), "{unready} unready");
        if !grows {
            assert!(scene.done.is_empty());
            assert_eq!(told.reasons("shop/p")["g"], "nothing grows while too many nodes are not ready");
            assert!(told.plan.warnings[0].to_string().starts_with(&format!("{unready} of 6 nodes are not ready")));
        }
    }
    let mut scene = Scene::new(&(nodes(4) + &rest));
    scene.settings.ok_total_unready_count = 4;
    assert_eq!(scene.turn().growth(), growth(&[("g", 1)]));
}

#[test]
fn pods_that_no_capacity_would_help_are_left_alone() {
    // S28: the scheduler says that a quota, and not the nodes, is what the pod waits for.
    let busy = node("n1", "4", "16Gi", "") + &app("busy", "web", "4", Some("n1"), "");
    let waiting = app("p", "web", "4", None, "");
    let gated = waiting.replace("reason: Unschedulable", "reason: SchedulingGated");
    let group = group_of("gpu", 0, 5, &["n1"]);
    assert_eq!(Scene::new(&(busy.clone() + &gated + &group)).turn().growth(), growth(&[]));
    assert_eq!(Scene::new(&(busy + &waiting + &group)).turn().growth(), growth(&[("gpu", 1)]));
}

/// A group without nodes, whose nodes have seven devices each in a pool of so many slices.
fn device_group(slices_in_pool: u32) -> String {
    let devices: Vec<String> = (0..7).map(|index| format!("{{name: d{index}}}")).collect();
    format!(
        "---\n{{apiVersion: plimsoll.dev/v1alpha1, kind: NodeGroup, metadata: {{name: g}}, spec: {{maxSize: 40, template: \
         {{metadata: {{name: t}}, status: {{allocatable: {{cpu: '64', memory: 64Gi, pods: '110'}}}}}}, templateResourceSlices: \
         [{{metadata: {{name: s}}, spec: {{driver: d, nodeName: t, pool: {{name: t, generation: 1, resourceSliceCount: \
         {slices_in_pool}}}, devices: [{}]}}}}]}}}}\n",
        devices.join(", ")
    )
}

/// A pending pod with a claim of its own for one device.
fn with_device(name: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: {name}, uid: {name}, ownerReferences: \
         [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}}]}}, spec: {{resourceClaims: [{{name: \
         d, resourceClaimTemplateName: one}}], containers: [{{name: c, resources: {{requests: {{cpu: 100m}}}}}}]}}, status: \
         {{resourceClaimStatuses: [{{name: d, resourceClaimName: {name}-d}}], conditions: [{{type: PodScheduled, status: \
         'False', reason: Unschedulable}}]}}}}\n---\n{{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: \
         {{namespace: shop, name: {name}-d, ownerReferences: [{{apiVersion: v1, kind: Pod, name: {name}, uid: {name}, \
         controller: true}}]}}, spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}}}\n"
    )
}

const DEVICE_CLASS: &str = "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: \
                            [{cel: {expression: \"device.driver == 'd'\"}}]}}\n---\n{apiVersion: resource.k8s.io/v1, kind: \
                            ResourceClaimTemplate, metadata: {namespace: shop, name: one}, spec: {spec: {devices: {requests: \
                            [{name: r, exactly: {deviceClassName: gpu}}]}}}}\n";

#[test]
fn devices_come_from_zero() {
    // S30: ten pods with a device each, seven devices a node: two nodes.
    let pods = all((0..10).map(|index| with_device(&format!("p{index}"))));
    let told = Scene::new(&(pods + DEVICE_CLASS + &device_group(1))).turn();
    assert_eq!(told.growth(), growth(&[("g", 2)]), "{:?}", told.plan.not_helped);
    assert_eq!(told.counts(), BTreeMap::from([("new", 10)]));
}

#[test]
fn a_pool_of_no_slices_is_refused_by_name() {
    // S30: such a pool is never complete, so its devices would be ignored without a word.
    let error = plimsoll_model::read::Reader::default().add("f", device_group(0).as_bytes()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "nodeGroup \"g\": spec.templateResourceSlices[0].spec.pool.resourceSliceCount: 0 is too low; expected 1 or more"
        ),
        "{error}"
    );
}

#[test]
fn groups_that_failed_promise_nothing() {
    // S13: two groups want a node that never came and are left alone; the third is tried.
    let groups = all(["a", "b", "c"].map(|name| empty_group(name, 5, "4", "16Gi", "")));
    let mut scene = Scene::new(&(app("p", "web", "1", None, "") + &groups));
    let until_ms = scene.now.millis() + 60_000;
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        scene.snapshot.groups[at].target_size = 1;
        let backoff = Backoff {
            duration: std::time::Duration::from_secs(300),
            until_ms,
            failed_at_ms: scene.now.millis(),
            reason: "sold out".into(),
        };
        scene.memory.backoff.insert(name.into(), backoff);
    }
    let told = scene.turn();
    assert_eq!(told.plan.upcoming, []);
    assert_eq!(told.growth(), growth(&[("c", 1)]));
}

#[test]
fn below_the_minimum() {
    // S18: least size 6, greatest 10, wanted 2; pods that need two nodes more, or none.
    let nodes = all(["n1", "n2"].map(|name| node(name, "4", "16Gi", "")))
        + &all(["n1", "n2"].map(|on| app(&format!("on-{on}"), "web", "4", Some(on), "")));
    let pods = all(["p", "q"].map(|name| app(name, "web", "3", None, "")));
    for (name, pods, enforced, added) in
        [("with pods", &*pods, true, 4), ("without pods", "", true, 4), ("not enforced", "", false, 0)]
    {
        let mut scene = Scene::new(&(nodes.clone() + pods + &group_of("g", 6, 10, &["n1", "n2"])));
        scene.settings.enforce_node_group_min_size = enforced;
        let told = scene.turn();
        let asked: u32 =
            scene.done.iter().filter_map(|done| done.strip_prefix("increase g +")?.parse::<u32>().ok()).sum();
        assert_eq!(asked, added, "{name}: {:?}", told.growth());
    }
}

#[test]
fn priorities_that_overlap_are_told_and_the_highest_counts() {
    // S21: every group has priority 10, spot groups have 50 too.
    let priorities = |patterns: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: kube-system, name: \
             cluster-autoscaler-priority-expander}}, data: {{priorities: \"{patterns}\"}}}}\n"
        )
    };
    let groups = ["spot-a", "od-b"].map(|name| empty_group(name, 5, "4", "16Gi", ""));
    let by_priority = |seed: usize| {
        move |expander: &str, request: &RankRequest| {
            // The tie-breaker after it would take any.
            let score = |(at, option): (usize, &GrowthOption)| match expander {
                "priority" => f64::from(option.priority.unwrap()),
                _ => ((at + seed) % 2) as f64,
            };
            let verdict =
                |(at, option)| Verdict { index: u32::try_from(at).unwrap(), score: score((at, option)), reason: None };
            Ok(request.options.iter().enumerate().map(verdict).collect())
        }
    };
    for (name, patterns, expected) in [
        (
            "overlapping",
            "10: ['.*-a', '.*-b']\\n50: ['spot.*']\\n",
            &["spot-a matches 2 priorities: 50, 10; the highest counts"][..],
        ),
        ("the lowest for whatever is left", "10: ['.*']\\n50: ['spot.*']\\n", &[]),
    ] {
        for seed in 0..100 {
            let mut groups = groups.to_vec();
            groups.rotate_left(seed / 2 % 2);
            let mut scene = Scene::new(&(app("p", "web", "1", None, "") + &priorities(patterns) + &all(groups)));
            scene.settings.expander = vec!["priority".into(), "random".into()];
            let told = scene.turn_with(by_priority(seed));
            assert_eq!(told.growth(), growth(&[("spot-a", 1)]), "{name}, seed {seed}");
            let warnings: Vec<String> = told.plan.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(warnings, expected, "{name}");
        }
    }
}

#[test]
fn a_node_that_is_not_what_its_template_says_is_told_of() {
    let came = zoned("n1", "b", "3900m").replace(
        "status: {",
        "spec: {taints: [{key: dedicated, effect: NoSchedule}, {key: node.kubernetes.io/memory-pressure, effect: NoSchedule}]}, \
         status: {",
    );
    let mut scene = Scene::new(&(came + &zonal_group("g", "a", "4", &["n1"])));
    let warnings: Vec<String> = scene.turn().plan.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [format!(
            "g: node n1 is not what the template says: cpu 3.9 instead of 4, label {ZONE}=b instead of a, taint \
             dedicated:NoSchedule"
        )]
    );
    let mut scene = Scene::new(&(zoned("n1", "a", "4") + &zonal_group("g", "a", "4", &["n1"])));
    assert_eq!(scene.turn().plan.warnings, []);
}

#[test]
fn a_bad_template_of_the_provider_does_not_vanish() {
    let mut scene = Scene::new(&(node("n1", "4", "16Gi", "") + &group_of("g", 0, 5, &["n1"])));
    let template = NodeTemplate { allocatable: vec![("cpu".into(), "many".into())], ..NodeTemplate::default() };
    scene.provided.insert("g".into(), Ok(vec![template]));
    let warnings: Vec<String> = scene.turn().plan.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "g: the provider's template cannot be used: allocatable.cpu: \"many\" is not a quantity; expected a number such as \
          250m, 1.5 or 4Gi"
        ]
    );
    scene.provided.insert("g".into(), Err(support::error(ErrorClass::Unsupported, false)));
    assert_eq!(scene.turn().plan.warnings, [], "a provider need not give templates");
    scene.provided.insert("g".into(), Err(support::error(ErrorClass::Auth, false)));
    assert_eq!(scene.turn().plan.warnings.len(), 1);
}
