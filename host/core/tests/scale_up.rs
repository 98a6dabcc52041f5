//! Growing: what fits, what is asked for, and why not more.

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

use plimsoll_core::Memory;
use plimsoll_core::cloud::ErrorClass;
use plimsoll_core::ranking::{RankingFailure, Verdict};
use support::{Scene, all, empty_group, group_of, node, pod};

fn growth(pairs: &[(&str, u32)]) -> BTreeMap<String, u32> {
    pairs.iter().map(|&(group, nodes)| (group.to_owned(), nodes)).collect()
}

fn pending(count: usize, cpu: &str) -> String {
    all((0..count).map(|index| pod(&format!("p{index:03}"), cpu, None, "")))
}

#[test]
fn pending_pods_make_a_group_grow() {
    let mut scene = Scene::new(&(pending(10, "1") + &empty_group("a", 10, "4", "16Gi", "")));
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("a", 3)]));
    assert_eq!(told.counts(), BTreeMap::from([("new", 10)]));
    assert_eq!(told.pod("shop/p000"), "new a#0");
    assert_eq!(scene.done, ["increase a +3"]);
    // Nothing new: what was asked for is on its way, and a second loop asks for nothing.
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[]));
    assert_eq!(told.counts(), BTreeMap::from([("upcoming", 10)]));
}

#[test]
fn room_that_is_there_is_used_first() {
    let yaml = pending(5, "1") + &node("n1", "3", "16Gi", "") + &group_of("a", 0, 5, &["n1"]);
    let told = Scene::new(&yaml).turn();
    assert_eq!(told.counts(), BTreeMap::from([("existing", 3), ("new", 2)]));
    assert_eq!(told.growth(), growth(&[("a", 1)]), "like n1, a fresh node has room for three");
}

#[test]
fn machines_on_their_way_are_counted_on() {
    // S01: 16 cores, three nodes promised, pods of 12, 6, 12, 6, in any order.
    let sizes = ["12", "6", "12", "6"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let pods = all(order.iter().map(|&index| pod(&format!("p{index}"), sizes[index], None, "")));
        let group = empty_group("g", 10, "16", "64Gi", "");
        let promised = group.replace("minSize: 0", "minSize: 0, targetSize: 3");
        let told = Scene::new(&(pods.clone() + &promised)).turn();
        assert_eq!(told.growth(), growth(&[]), "{order:?}");
        assert_eq!(told.counts(), BTreeMap::from([("upcoming", 4)]));
        let told = Scene::new(&(pods + &group)).turn();
        assert_eq!(told.growth(), growth(&[("g", 3)]), "{order:?}");
    }
}

#[test]
fn the_reasons_are_the_real_ones() {
    // S25: one group at its maximum fits, the other has other labels.
    let yaml = node("n1", "2", "8Gi", "pool: x")
        + &pod("full", "2", Some("n1"), "")
        + &group_of("g", 0, 1, &["n1"])
        + &empty_group("h", 9, "4", "16Gi", "pool: y")
        + &pod("p", "1", None, "nodeSelector: {pool: x}, ");
    let told = Scene::new(&yaml).turn();
    assert_eq!(told.growth(), growth(&[]));
    let reasons = told.reasons("shop/p");
    assert_eq!(reasons["g"], "at max size 1");
    assert!(reasons["h"].contains("node affinity/selector"), "{reasons:?}");
}

#[test]
fn a_pod_that_is_too_large_hears_the_numbers() {
    let told = Scene::new(&(pending(1, "9") + &empty_group("a", 3, "8", "16Gi", ""))).turn();
    assert_eq!(told.reasons("shop/p000")["a"], "insufficient cpu (asks 9, a new node has 8)");
}

#[test]
fn a_host_port_that_a_daemon_set_takes() {
    // S07: growing would not help, however often one tries.
    let daemon_set = "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: kube-system, name: proxy}, spec: \
                      {selector: {}, template: {spec: {containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]}}}}\n";
    let port = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: p}, spec: {containers: [{name: c, \
                ports: [{containerPort: 80, hostPort: 8080}]}]}, status: {conditions: [{type: PodScheduled, status: 'False', \
                reason: Unschedulable}]}}\n";
    let mut scene = Scene::new(&(daemon_set.to_owned() + port + &empty_group("g", 40, "4", "16Gi", "")));
    for _ in 0..20 {
        let told = scene.turn();
        assert_eq!(told.growth(), growth(&[]));
        assert!(told.reasons("shop/p")["g"].contains("8080"));
    }
}

#[test]
fn an_option_that_fails_leads_to_the_next_in_the_same_loop() {
    let groups = empty_group("good", 10, "4", "4Gi", "") + &empty_group("spare", 10, "4", "40Gi", "");
    let mut scene = Scene::new(&(pending(8, "1") + &groups));
    scene.increases.insert("good".into(), vec![Err(ErrorClass::OutOfResources)]);
    let told = scene.turn();
    assert_eq!(scene.done, ["increase good +2", "increase spare +2"]);
    assert_eq!(told.growth(), growth(&[("spare", 2)]));
    assert_eq!(told.plan.warnings.len(), 1);
    assert!(scene.memory.backed_off(&"good".into(), scene.now).is_some());
}

#[test]
fn a_partial_answer_leaves_the_rest_to_others() {
    let groups = empty_group("good", 10, "4", "4Gi", "") + &empty_group("spare", 10, "4", "40Gi", "");
    let mut scene = Scene::new(&(pending(12, "1") + &groups));
    scene.increases.insert("good".into(), vec![Ok(1)]);
    let told = scene.turn();
    assert_eq!(scene.done, ["increase good +3", "increase spare +2"]);
    assert_eq!(told.growth(), growth(&[("good", 1), ("spare", 2)]));
    assert_eq!(told.counts(), BTreeMap::from([("new", 12)]));
}

#[test]
fn a_lost_answer_is_waited_for_and_not_repeated() {
    let groups = empty_group("a", 10, "4", "4Gi", "") + &empty_group("b", 10, "4", "40Gi", "");
    let mut scene = Scene::new(&(pending(4, "1") + &groups));
    scene.increases.insert("a".into(), vec![Err(ErrorClass::Transient)]);
    let told = scene.turn();
    assert_eq!(scene.done, ["increase a +1"], "nobody else is asked while it may have been done");
    assert_eq!(told.counts(), BTreeMap::from([("new", 4)]));
    // A read from before the request says nothing of it.
    scene.done.clear();
    scene.turn();
    assert_eq!(scene.done, [""; 0]);
    // The next read says that the target did not move: it was never done.
    scene.now = scene.now + Duration::from_secs(10);
    scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
    let told = scene.turn();
    assert_eq!(scene.done, ["increase b +1"], "a is left alone for a while");
    assert_eq!(told.growth(), growth(&[("b", 1)]));
}

#[test]
fn limits_of_the_cluster_hold() {
    for (name, nodes, cores, expected, limit) in
        [("max-nodes-total", Some(2), 1000, 2, "max-nodes-total 2"), ("cores-total", None, 10, 2, "cores-total 10")]
    {
        let mut scene = Scene::new(&(pending(20, "1") + &empty_group("a", 10, "4", "16Gi", "")));
        scene.settings.max_nodes_total = nodes;
        scene.settings.cores_total.max = cores;
        let told = scene.turn();
        assert_eq!(told.growth(), growth(&[("a", expected)]), "{name}");
        assert_eq!(told.counts()["not helped"], 12, "{name}");
        assert!(told.reasons("shop/p019")["a"].contains(limit), "{name}: {:?}", told.reasons("shop/p019"));
    }
}

#[test]
fn several_groups_grow_in_one_loop() {
    let mut scene = Scene::new(&all([
        pod("gpu", "1", None, "nodeSelector: {kind: gpu}, "),
        pod("disk", "1", None, "nodeSelector: {kind: disk}, "),
        empty_group("gpus", 3, "4", "16Gi", "kind: gpu"),
        empty_group("disks", 3, "4", "16Gi", "kind: disk"),
    ]));
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("disks", 1), ("gpus", 1)]));
    assert_eq!(told.plan.rounds, 2);
}

#[test]
fn rounds_can_be_limited() {
    let mut scene = Scene::new(&all([
        pod("gpu", "1", None, "nodeSelector: {kind: gpu}, "),
        pod("disk", "1", None, "nodeSelector: {kind: disk}, "),
        empty_group("gpus", 3, "4", "16Gi", "kind: gpu"),
        empty_group("disks", 3, "4", "16Gi", "kind: disk"),
    ]));
    scene.settings.scale_up_rounds = Some(1);
    let told = scene.turn();
    assert_eq!(told.plan.scale_up.len(), 1);
    assert_eq!(told.plan.not_helped.len(), 1);
    let reasons: Vec<String> = told.plan.not_helped[0].reasons.iter().map(|(_, reason)| reason.to_string()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("scale-up-rounds")), "{reasons:?}");
}

#[test]
fn a_failing_expander_is_passed_over() {
    let groups = empty_group("a", 10, "4", "16Gi", "") + &empty_group("b", 10, "8", "16Gi", "");
    let mut scene = Scene::new(&(pending(4, "1") + &groups));
    scene.settings.expander = vec!["broken".into(), "good".into()];
    let told = scene.turn_with(|name, request| {
        if name == "broken" {
            return Err(RankingFailure::Failed { name: name.into(), reason: "trap".into() });
        }
        let option = request.options.iter().position(|option| option.group.as_str() == "b").unwrap();
        Ok(vec![Verdict { index: u32::try_from(option).unwrap(), score: 1.0, reason: Some("b is best".into()) }])
    });
    assert_eq!(told.growth(), growth(&[("b", 1)]));
    assert_eq!(told.plan.warnings.len(), 1);
    assert_eq!(told.plan.scale_up[0].because.reason.as_deref(), Some("b is best"));
}

#[test]
fn the_digest_tells_what_an_expander_needs() {
    let mut scene = Scene::new(
        &(pending(6, "1") + &empty_group("a", 9, "4", "16Gi", "team: x") + &empty_group("b", 9, "8", "16Gi", "")),
    );
    scene.turn();
    let (name, request) = &scene.asked[0];
    assert_eq!(name, "least-waste");
    let option = request.options.iter().find(|option| option.group.as_str() == "a").unwrap();
    assert_eq!((option.node_count, option.max_size, option.target_size), (2, 9, 0));
    assert_eq!(option.pods, [(0, 6)]);
    assert_eq!(option.usage.wanted.cpu_milli, 6000);
    assert_eq!(option.usage.offered.cpu_milli, 8000);
    assert_eq!(option.usage.wasted_cpu_micro, 250_000);
    assert_eq!(option.shape.capacity.cpu_milli, 4000);
    assert!(option.shape.labels.contains(&("team".into(), "x".into())));
    assert_eq!(request.pod_classes[0].label, "shop/web");
    assert_eq!(request.pod_classes[0].pending, 6);
}

#[test]
fn pods_that_are_not_considered_say_why() {
    let gated = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: gated}, spec: {schedulingGates: [{name: wait}], \
                 containers: [{name: c}]}, status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}}\n";
    let cheap = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: cheap}, spec: {priority: -20, \
                 containers: [{name: c}]}, status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}}\n";
    let told = Scene::new(&(gated.to_owned() + cheap + &empty_group("a", 9, "4", "16Gi", ""))).turn();
    assert!(told.pod("shop/gated").starts_with("ignored: scheduling gates"), "{}", told.pod("shop/gated"));
    assert!(told.pod("shop/cheap").starts_with("ignored: its priority"), "{}", told.pod("shop/cheap"));
    assert_eq!(told.growth(), growth(&[]));
}

#[test]
fn an_unreadable_group_gets_no_write_and_stops_nobody() {
    // S16.
    let groups = empty_group("broken", 10, "4", "4Gi", "") + &empty_group("fine", 10, "4", "40Gi", "");
    let mut scene = Scene::new(&(pending(4, "1") + &groups));
    let broken = scene.snapshot.groups.iter_mut().find(|group| group.id.as_str() == "broken").unwrap();
    broken.error = Some(support::error(ErrorClass::Throttled, false));
    let told = scene.turn();
    assert_eq!(scene.done, ["increase fine +1"]);
    assert_eq!(told.growth(), growth(&[("fine", 1)]));
}

#[test]
fn the_order_of_pods_does_not_matter() {
    let sizes = ["500m", "1500m", "2", "700m", "3", "250m"];
    let groups = empty_group("a", 20, "4", "16Gi", "") + &empty_group("b", 20, "8", "24Gi", "");
    let one = |index: usize| pod(&format!("p{index:03}"), sizes[index % sizes.len()], None, "");
    let told = |order: Vec<usize>| Scene::new(&(all(order.into_iter().map(one)) + &groups)).turn();
    let forwards = told((0..60).collect());
    for order in [(0..60).rev().collect(), (0..60).map(|index| index * 7 % 60).collect::<Vec<_>>()] {
        let other = told(order);
        assert_eq!(other.growth(), forwards.growth());
        for index in 0..60 {
            let name = format!("shop/p{index:03}");
            assert_eq!(other.pod(&name), forwards.pod(&name));
        }
    }
}

#[test]
fn a_group_of_all_or_nothing_grows_whole() {
    let yaml = pending(3, "1") + &empty_group("a", 4, "4", "16Gi", "");
    let mut scene = Scene::new(&yaml);
    scene.snapshot.groups[0].options.zero_or_max = Some(true);
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("a", 4)]));
    assert_eq!(told.counts(), BTreeMap::from([("new", 3)]));

    let mut scene = Scene::new(&yaml);
    scene.snapshot.groups[0].options.zero_or_max = Some(true);
    scene.settings.max_nodes_total = Some(3);
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[]), "three nodes would do, but four must come");
    assert_eq!(told.reasons("shop/p000")["a"], "cluster limit reached: max-nodes-total 3");
}

#[test]
fn a_group_whose_nodes_are_missing_is_left_alone() {
    let wanting = empty_group("a", 9, "4", "16Gi", "").replace("minSize: 0", "minSize: 0, targetSize: 3");
    let mut scene = Scene::new(&(pending(1, "1") + &wanting));
    // Nobody remembers having asked for them.
    scene.memory = Memory::default();
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[]));
    assert_eq!(told.reasons("shop/p000")["a"], "only 0 of its 3 nodes are ready, so it is left alone until more are");
    assert_eq!(told.plan.skipped.len(), 1);
}

#[test]
fn pods_that_no_group_grows_for_take_the_room_that_is_there() {
    let daemon = pod("agent", "2", None, "").replace("kind: ReplicaSet", "kind: DaemonSet");
    let yaml = daemon + &pod("web", "2", None, "") + &node("n1", "3", "16Gi", "") + &group_of("a", 0, 5, &["n1"]);
    let told = Scene::new(&yaml).turn();
    assert_eq!(told.pod("shop/agent"), "existing n1");
    assert_eq!(told.pod("shop/web"), "new a#0");
    let told = Scene::new(&yaml.replace("cpu: '3'", "cpu: '1'")).turn();
    assert_eq!(told.pod("shop/agent"), "ignored: it belongs to a DaemonSet", "there is no room, and no node is made");
}

#[test]
fn pods_of_bypassed_schedulers_count_before_they_are_looked_at() {
    let unseen = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: early}, spec: {schedulerName: own, \
                  containers: [{name: c}]}, status: {phase: Pending}}\n";
    for (bypassed, expected) in
        [(vec![], "ignored: the scheduler has not marked it unschedulable"), (vec!["own".to_owned()], "new a#0")]
    {
        let mut scene = Scene::new(&(unseen.to_owned() + &empty_group("a", 4, "4", "16Gi", "")));
        scene.settings.waits_elapsed = false;
        scene.settings.bypassed_schedulers = bypassed;
        assert_eq!(scene.turn().pod("shop/early"), expected);
    }
}

#[test]
fn one_choice_is_shared_by_like_groups() {
    let yaml = pending(6, "3") + &empty_group("a", 9, "4", "16Gi", "") + &empty_group("b", 2, "4", "16Gi", "");
    let mut scene = Scene::new(&yaml);
    scene.settings.balance_similar_node_groups = true;
    scene.settings.scale_up_rounds = Some(1);
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("a", 4), ("b", 2)]), "b is full with two");
    assert_eq!(told.counts(), BTreeMap::from([("new", 6)]));
}

#[test]
fn labels_that_were_replaced_still_select() {
    let wish = "nodeSelector: {beta.kubernetes.io/instance-type: big}, ";
    let group = empty_group("a", 4, "4", "16Gi", "node.kubernetes.io/instance-type: big");
    let told = Scene::new(&(pod("p", "1", None, wish) + &group)).turn();
    assert_eq!(told.growth(), growth(&[("a", 1)]));
}
