//! Removing nodes: which, when, and what holds them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod support;

use std::time::Duration;

use plimsoll_core::cloud::ErrorClass;
use plimsoll_core::memory::Stage;
use support::{Scene, WEB, all, group_of, node, pod};

fn three_nodes() -> String {
    all(["n1", "n2", "n3"].map(|name| node(name, "4", "16Gi", ""))) + &group_of("g", 0, 5, &["n1", "n2", "n3"]) + WEB
}

#[test]
fn empty_and_movable_nodes_go() {
    let yaml = three_nodes() + &pod("a", "1", Some("n2"), "") + &pod("b", "3", Some("n3"), "");
    let told = Scene::new(&yaml).turn();
    assert_eq!(told.going(), ["n1", "n2"]);
    assert_eq!(told.node("n1"), "removable");
    assert_eq!(told.node("n3"), "needed NotUnderutilized");
    let drained = told.plan.scale_down.iter().find(|removal| removal.drain).unwrap();
    assert_eq!(drained.moves.len(), 1);
    assert_eq!(drained.moves[0].1.name(&told.cluster), "n3");
}

#[test]
fn removals_are_summed() {
    // S10: one of two half-empty nodes can move to the third, not both.
    let yaml = all([("n1", "1500m"), ("n2", "1500m"), ("n3", "2200m"), ("n4", "3500m")]
        .map(|(name, cpu)| node(name, "4", "16Gi", "") + &pod(&format!("on-{name}"), cpu, Some(name), "")))
        + &group_of("g", 0, 5, &["n1", "n2", "n3", "n4"])
        + WEB;
    let mut scene = Scene::new(&yaml);
    scene.settings.max_drain_parallelism = 5;
    let told = scene.turn();
    assert_eq!(told.going().len(), 1, "{:?}", told.going());
}

#[test]
fn nodes_on_their_way_out_count_for_lower_bounds() {
    let names = ["n1", "n2", "n3", "n4"];
    for (name, min_size, cores) in [("the minimum of the group", 2, 0), ("cores-total", 0, 8)] {
        let yaml = all(names.map(|name| node(name, "4", "16Gi", ""))) + &group_of("g", min_size, 5, &names) + WEB;
        let mut scene = Scene::new(&yaml);
        scene.settings.cores_total.min = cores;
        assert_eq!(scene.turn().going().len(), 2, "{name}");
        // They settle, or pods of theirs take their time to leave: the cloud was not asked for anything yet.
        let told = scene.turn();
        assert_eq!(told.going(), [""; 0], "{name}");
    }
}

#[test]
fn every_blocker_is_told() {
    let local = "volumes: [{name: scratch, emptyDir: {}}], ";
    let bare = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: bare}, spec: {nodeName: n1, containers: \
                [{name: c}]}, status: {phase: Running}}\n";
    let kept = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: kept, annotations: \
                {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}, ownerReferences: [{apiVersion: apps/v1, kind: \
                ReplicaSet, name: web, uid: web, controller: true}]}, spec: {nodeName: n1, containers: [{name: c}]}, status: \
                {phase: Running}}\n";
    let yaml = three_nodes() + bare + kept + &pod("local", "100m", Some("n1"), local);
    let told = Scene::new(&yaml).turn();
    let why = told.why("n1");
    assert_eq!(told.node("n1"), "blocked BlockedByPod BlockedByPod BlockedByPod");
    assert!(why.iter().any(|reason| reason.contains("shop/bare: no controller")), "{why:?}");
    assert!(why.iter().any(|reason| reason.contains("shop/kept: annotation safe-to-evict")), "{why:?}");
    assert!(why.iter().any(|reason| reason.contains("shop/local: local volume scratch")), "{why:?}");
    assert_eq!(told.going(), ["n2", "n3"]);
}

#[test]
fn a_budget_holds_its_pods() {
    let budget = "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: shop, name: all}, spec: \
                  {selector: {}, minAvailable: 1}, status: {disruptionsAllowed: 0}}\n";
    let yaml = three_nodes() + budget + &pod("a", "1", Some("n1"), "");
    let told = Scene::new(&yaml).turn();
    assert!(told.why("n1")[0].contains("PodDisruptionBudget all allows no disruption"), "{:?}", told.why("n1"));
    assert_eq!(told.going(), ["n2", "n3"]);
}

#[test]
fn sizes_and_budgets_limit_how_many_go() {
    let group = |min: u32| {
        all(["n1", "n2", "n3"].map(|name| node(name, "4", "16Gi", ""))) + &group_of("g", min, 5, &["n1", "n2", "n3"])
    };
    let told = Scene::new(&group(2)).turn();
    assert_eq!(told.going(), ["n1"]);
    assert_eq!(told.node("n2"), "unneeded NodeGroupMinSizeReached");
    let told = Scene::new(&group(3)).turn();
    assert!(told.going().is_empty());
    assert_eq!(told.node("n1"), "blocked NodeGroupMinSizeReached");
    let mut scene = Scene::new(&group(0));
    scene.settings.max_scale_down_parallelism = 2;
    let told = scene.turn();
    assert_eq!(told.going(), ["n1", "n2"]);
    assert_eq!(told.node("n3"), "unneeded ScaleDownBudget");
}

#[test]
fn nodes_without_a_group_stay() {
    let told = Scene::new(&(three_nodes() + &node("own", "4", "16Gi", ""))).turn();
    assert_eq!(told.node("own"), "blocked NotAutoscaled");
}

#[test]
fn idle_nodes_wait_their_time() {
    let mut scene = Scene::new(&three_nodes());
    scene.settings.waits_elapsed = false;
    let told = scene.turn();
    assert!(told.going().is_empty());
    assert_eq!(told.node("n1"), "unneeded NotUnneededLongEnough");
    let later = |scene: &mut Scene, seconds: u64| {
        scene.now = scene.now + Duration::from_secs(seconds);
        scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
    };
    later(&mut scene, 600);
    assert!(scene.turn().going().is_empty(), "exactly as long is not long enough");
    later(&mut scene, 1);
    assert_eq!(scene.turn().going(), ["n1", "n2", "n3"]);
}

#[test]
fn growth_holds_removal_for_a_while() {
    let mut scene = Scene::new(&three_nodes());
    scene.settings.waits_elapsed = false;
    scene.settings.scale_down_unneeded_time = Duration::ZERO;
    scene.memory.last_scale_up_ms = Some(scene.now.millis() - 60_000);
    let told = scene.turn();
    assert!(told.going().is_empty());
    assert!(told.why("n1")[0].contains("scale-down-delay-after-add"), "{:?}", told.why("n1"));
}

#[test]
fn a_node_goes_step_by_step() {
    let yaml = three_nodes() + &pod("a", "1", Some("n2"), "") + &pod("b", "3", Some("n3"), "");
    let mut scene = Scene::new(&yaml);
    scene.settings.max_scale_down_parallelism = 2;
    scene.turn();
    assert_eq!(scene.done, ["taint n1", "taint n2"]);
    // Before the taint has settled nothing happens.
    scene.done.clear();
    scene.now = scene.now + Duration::from_secs(2);
    scene.turn();
    assert!(scene.done.is_empty(), "{:?}", scene.done);
    scene.now = scene.now + Duration::from_secs(10);
    scene.turn();
    assert_eq!(scene.done, ["evict shop/a", "delete n1"]);
    assert!(matches!(scene.memory.removals["n1"].stage, Stage::Deleting(_)));
    // The pod left, the empty node is gone.
    scene.done.clear();
    let gone = scene.cluster.symbols.find("n1").unwrap();
    scene.cluster.nodes.retain(|node| node.name != gone);
    scene.cluster.pods.retain(|pod| &*pod.name != "a");
    let group = &mut scene.snapshot.groups[0];
    group.instances.retain(|instance| instance.id.as_str() != "n1");
    group.target_size = 2;
    scene.turn();
    assert_eq!(scene.done, ["delete n2"]);
    assert!(!scene.memory.removals.contains_key("n1"));
}

#[test]
fn machines_of_a_group_go_in_one_request_and_a_busy_cloud_is_asked_again() {
    let mut scene = Scene::new(&three_nodes());
    scene.turn();
    scene.done.clear();
    scene.deletes = vec![ErrorClass::Conflict];
    scene.now = scene.now + Duration::from_secs(10);
    scene.turn();
    assert_eq!(scene.done, ["delete n1 n2 n3"]);
    assert!(matches!(scene.memory.removals["n1"].stage, Stage::Settling(_)), "it stays on its way out");
    scene.done.clear();
    scene.turn();
    assert_eq!(scene.done, ["delete n1 n2 n3"]);
    assert!(matches!(scene.memory.removals["n1"].stage, Stage::Deleting(_)));
}

#[test]
fn a_cloud_that_will_never_delete_is_not_asked_for_ever() {
    for (name, class, wait) in [("busy for too long", ErrorClass::Conflict, 1000), ("refused", ErrorClass::Auth, 10)] {
        let mut scene = Scene::new(&three_nodes());
        scene.settings.max_scale_down_parallelism = 1;
        scene.turn();
        scene.done.clear();
        scene.deletes = vec![class];
        scene.now = scene.now + Duration::from_secs(wait);
        scene.snapshot.groups[0].observed_at = scene.now;
        scene.turn();
        assert_eq!(scene.done[..2], ["delete n1", "untaint n1"], "{name}");
    }
}

#[test]
fn a_pod_that_lands_between_plan_and_check_saves_the_node() {
    // S09.
    let mut scene = Scene::new(&(three_nodes() + &pod("b", "3", Some("n3"), "")));
    scene.settings.max_scale_down_parallelism = 1;
    scene.turn();
    assert_eq!(scene.done, ["taint n1"]);
    scene.done.clear();
    let n1 = scene.cluster.symbols.find("n1");
    scene.cluster.pods[0].node = n1;
    scene.now = scene.now + Duration::from_secs(10);
    let told = scene.turn();
    assert_eq!(scene.done[0], "untaint n1");
    assert!(!scene.done.iter().any(|action| action.starts_with("delete")));
    assert!(told.plan.warnings.iter().any(|warning| warning.to_string().contains("pods came to it")));
}

#[test]
fn what_the_guard_forbids_is_not_sent() {
    let mut scene = Scene::new(&three_nodes());
    scene.settings.max_scale_down_parallelism = 1;
    scene.turn();
    scene.done.clear();
    // The group cannot be read any more: nothing is deleted on the strength of an old read.
    scene.snapshot.groups[0].error = Some(support::error(plimsoll_core::cloud::ErrorClass::Throttled, false));
    scene.now = scene.now + Duration::from_secs(10);
    scene.turn();
    assert_eq!(scene.done, ["untaint n1"]);
}

#[test]
fn drains_make_room_first() {
    // A node is being drained; its pods need places, and growth counts them.
    let yaml = all([node("n1", "4", "16Gi", ""), node("n2", "4", "16Gi", "")])
        + &group_of("g", 0, 5, &["n1", "n2"])
        + WEB
        + &pod("a", "1", Some("n1"), "")
        + &pod("b", "3", Some("n2"), "");
    let mut scene = Scene::new(&yaml);
    let told = scene.turn();
    assert_eq!(told.going(), ["n1"]);
    // Meanwhile a pending pod would take the place that the drained pod counts on.
    let reader = {
        let mut reader = plimsoll_model::read::Reader::default();
        reader.add("scene.yaml", (yaml + &pod("c", "1", None, "")).as_bytes()).unwrap();
        reader.finish().unwrap()
    };
    scene.cluster = reader.cluster;
    scene.memory.templates.clear();
    scene.now = scene.now + Duration::from_secs(1);
    let told = scene.turn();
    assert_eq!(told.growth().values().sum::<u32>(), 1, "one of the two needs a new node");
}

#[test]
fn groups_of_all_or_nothing_go_whole() {
    let mut scene = Scene::new(&(three_nodes() + &pod("b", "3", Some("n3"), "")));
    scene.snapshot.groups[0].options.zero_or_max = Some(true);
    let told = scene.turn();
    assert_eq!(told.going(), [""; 0]);
    assert_eq!(told.node("n1"), "unneeded AtomicScaleDownFailed");

    let mut scene = Scene::new(&three_nodes());
    scene.snapshot.groups[0].options.zero_or_max = Some(true);
    scene.settings.max_scale_down_parallelism = 2;
    assert_eq!(scene.turn().going(), ["n1", "n2", "n3"], "more than may go at a time, as it could never go otherwise");
}

#[test]
fn pods_move_on_with_the_node_that_they_came_to() {
    // n2 takes the pod of n1, and goes with both.
    let yaml = three_nodes()
        + &pod("a", "900m", Some("n1"), "")
        + &pod("b", "900m", Some("n2"), "")
        + &pod("c", "2100m", Some("n3"), "");
    let mut scene = Scene::new(&yaml);
    scene.settings.max_drain_parallelism = 5;
    let told = scene.turn();
    assert_eq!(told.going(), ["n1", "n2"]);
    for (_, place) in told.plan.scale_down.iter().flat_map(|removal| &removal.moves) {
        assert_eq!(place.name(&told.cluster), "n3");
    }
}

#[test]
fn a_budget_that_one_node_spends_holds_the_next() {
    let budget = "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: shop, name: all}, spec: \
                  {selector: {}, minAvailable: 1}, status: {disruptionsAllowed: 1}}\n";
    let yaml = three_nodes()
        + &pod("a", "900m", Some("n1"), "")
        + &pod("b", "900m", Some("n2"), "")
        + &pod("c", "2100m", Some("n3"), "")
        + budget;
    let mut scene = Scene::new(&yaml);
    scene.settings.max_drain_parallelism = 5;
    let told = scene.turn();
    assert_eq!(told.going(), ["n1"]);
    assert_eq!(told.node("n2"), "blocked BlockedByPod");
}
