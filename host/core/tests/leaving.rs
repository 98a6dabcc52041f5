//! Nodes on their way out: in which order pods leave, what holds the last step, and how candidates are marked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod support;

use std::time::Duration;

use plimsoll_core::memory::Stage;
use plimsoll_model::symbol::known;
use plimsoll_model::{Taint, TaintEffect};
use support::{Scene, WEB, all, group_of, node, pod};

/// Two nodes; the second has room for what is on the first.
fn two_nodes() -> String {
    all(["n1", "n2"].map(|name| node(name, "4", "16Gi", "")))
        + &group_of("g", 0, 5, &["n1", "n2"])
        + WEB
        + &pod("b", "2200m", Some("n2"), "")
}

fn daemon_set_pod(name: &str, on: &str, annotation: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: {name}, annotations: {{{annotation}}}, \
         ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent, controller: true}}]}}, spec: \
         {{nodeName: {on}, containers: [{{name: c}}]}}, status: {{phase: Running}}}}\n"
    )
}

const AGENT: &str = "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: agent}, spec: {selector: \
                     {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: \
                     c}]}}}}\n";

fn later(scene: &mut Scene, seconds: u64) {
    scene.now = scene.now + Duration::from_secs(seconds);
    scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
    scene.done.clear();
}

/// Lets everything that was evicted end.
fn end(scene: &mut Scene, names: &[&str]) {
    scene.cluster.pods.retain(|pod| !names.contains(&&*pod.name));
}

#[test]
fn pods_get_the_time_that_they_ask_for_up_to_the_cap() {
    for (name, asks, cap, expected) in [
        ("the default", "", 600, 30),
        ("their own", "terminationGracePeriodSeconds: 90, ", 600, 90),
        ("the cap", "terminationGracePeriodSeconds: 900, ", 600, 600),
        ("no cap", "terminationGracePeriodSeconds: 900, ", 0, 900),
    ] {
        let mut scene = Scene::new(&(two_nodes() + &pod("a", "1", Some("n1"), asks)));
        scene.settings.max_graceful_termination = Duration::from_secs(cap);
        assert_eq!(scene.turn().going(), ["n1"]);
        later(&mut scene, 6);
        scene.turn();
        assert_eq!(scene.done, ["evict shop/a"], "{name}");
        assert_eq!(scene.graces, [expected], "{name}");
    }
}

#[test]
fn pods_leave_in_groups_by_priority() {
    let yaml = two_nodes()
        + &pod("low", "100m", Some("n1"), "priority: -5, ")
        + &pod("middle", "100m", Some("n1"), "priority: 10, terminationGracePeriodSeconds: 60, ")
        + &pod("high", "100m", Some("n1"), "priority: 2000, ");
    let mut scene = Scene::new(&yaml);
    scene.settings.drain_priorities =
        [(0, 20), (100, 40), (1000, 0)].map(|(priority, cap)| (priority, Duration::from_secs(cap))).into();
    assert_eq!(scene.turn().going(), ["n1"]);
    later(&mut scene, 6);
    scene.turn();
    assert_eq!(scene.done, ["evict shop/low shop/middle"], "priorities below the lowest group belong to it");
    assert_eq!(scene.graces, [20, 20]);
    end(&mut scene, &["low"]);
    later(&mut scene, 10);
    scene.turn();
    assert_eq!(scene.done, ["evict shop/middle"], "the next group waits for the last pod of this one");
    end(&mut scene, &["middle"]);
    later(&mut scene, 10);
    scene.turn();
    assert_eq!(scene.done, ["evict shop/high"]);
    assert_eq!(scene.graces.last(), Some(&30), "a group without a cap");
    end(&mut scene, &["high"]);
    later(&mut scene, 10);
    scene.turn();
    assert_eq!(scene.done, ["delete n1"]);
}

#[test]
fn daemon_set_pods_go_along_by_flag_and_annotation() {
    let own = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";
    for (name, occupied, (for_empty, for_occupied), annotation, expected) in [
        ("occupied, the default", true, (false, true), String::new(), &["evict shop/agent-1", "evict shop/a"][..]),
        ("occupied, off", true, (false, false), String::new(), &["evict shop/a"]),
        (
            "occupied, off but for this one",
            true,
            (false, false),
            format!("{own}: 'true'"),
            &["evict shop/agent-1", "evict shop/a"],
        ),
        ("occupied, on but for this one", true, (false, true), format!("{own}: 'no'"), &["evict shop/a"]),
        ("empty, the default", false, (false, true), String::new(), &["delete n1"]),
        ("empty, on", false, (true, true), String::new(), &["evict shop/agent-1", "delete n1"]),
    ] {
        let mut yaml = two_nodes() + AGENT + &daemon_set_pod("agent-1", "n1", &annotation);
        if occupied {
            yaml += &pod("a", "1", Some("n1"), "");
        }
        let mut scene = Scene::new(&yaml);
        scene.settings.daemon_set_eviction_for_empty_nodes = for_empty;
        scene.settings.daemon_set_eviction_for_occupied_nodes = for_occupied;
        assert_eq!(scene.turn().going(), ["n1"], "{name}");
        later(&mut scene, 6);
        scene.turn();
        assert_eq!(scene.done, expected, "{name}");
    }
}

#[test]
fn annotations_hold_the_deletion_for_a_while() {
    let mut scene = Scene::new(&two_nodes());
    let n1 = |scene: &mut Scene, delayed| {
        let name = scene.cluster.symbols.find("n1").unwrap();
        scene.cluster.nodes.iter_mut().find(|node| node.name == name).unwrap().deletion_delayed = delayed;
    };
    n1(&mut scene, true);
    assert_eq!(scene.turn().going(), ["n1"]);
    later(&mut scene, 6);
    scene.turn();
    assert_eq!(scene.done, [""; 0]);
    assert!(matches!(scene.memory.removals["n1"].stage, Stage::Held(_)));
    let mut taken_off = Scene { memory: scene.memory.clone(), now: scene.now, ..Scene::new(&two_nodes()) };
    later(&mut taken_off, 1);
    taken_off.turn();
    assert_eq!(taken_off.done, ["delete n1"], "the annotation was taken off");
    later(&mut scene, 120);
    scene.turn();
    assert_eq!(scene.done, [""; 0], "exactly as long is not too long");
    later(&mut scene, 1);
    scene.turn();
    assert_eq!(scene.done, ["delete n1"], "nobody waits for ever");
}

#[test]
fn a_protected_pod_that_comes_during_a_drain_saves_the_node() {
    let kept = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: kept, annotations: \
                {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}, ownerReferences: [{apiVersion: apps/v1, kind: \
                ReplicaSet, name: web, uid: web, controller: true}]}, spec: {nodeName: n2, containers: [{name: c}]}, \
                status: {phase: Running}}\n";
    let mut scene = Scene::new(&(two_nodes() + &pod("a", "1", Some("n1"), "") + kept));
    assert_eq!(scene.turn().going(), ["n1"]);
    later(&mut scene, 6);
    scene.turn();
    assert_eq!(scene.done, ["evict shop/a"]);
    end(&mut scene, &["a"]);
    let n1 = scene.cluster.symbols.find("n1");
    scene.cluster.pods.iter_mut().find(|pod| &*pod.name == "kept").unwrap().node = n1;
    later(&mut scene, 1);
    scene.turn();
    assert_eq!(scene.done, ["untaint n1"]);
}

/// Nodes that have the soft taint, with its value.
fn mark(scene: &mut Scene, names: &[&str], seconds: i64) {
    let value = scene.cluster.symbols.intern(&seconds.to_string());
    for name in names {
        let name = scene.cluster.symbols.find(name).unwrap();
        let node = scene.cluster.nodes.iter_mut().find(|node| node.name == name).unwrap();
        node.taints = [Taint { key: known::DELETION_CANDIDATE, value, effect: TaintEffect::PreferNoSchedule }].into();
    }
}

/// n1 to n4 are idle, n5 and n6 are used; nothing goes yet.
fn some_idle() -> Scene {
    let names = ["n1", "n2", "n3", "n4", "n5", "n6"];
    let yaml = all(names.map(|name| node(name, "4", "16Gi", "")))
        + &node("own", "4", "16Gi", "")
        + &group_of("g", 0, 9, &names)
        + WEB
        + &pod("b", "3", Some("n5"), "")
        + &pod("c", "3", Some("n6"), "");
    let mut scene = Scene::new(&yaml);
    scene.settings.waits_elapsed = false;
    scene
}

#[test]
fn a_mark_says_since_when_after_a_restart_without_memory() {
    for (name, ttl, age, expected) in [
        ("by default it says nothing", 0, 700, &[][..]),
        ("not too old", 3600, 700, &["n1"]),
        ("too old", 600, 700, &[]),
        ("from the future", 3600, -700, &[]),
    ] {
        let mut scene = some_idle();
        let now = scene.now.millis() / 1000;
        mark(&mut scene, &["n1"], now - age);
        scene.settings.node_deletion_candidate_ttl = Duration::from_secs(ttl);
        assert_eq!(scene.turn().going(), expected, "{name}");
    }
    let mut scene = some_idle();
    scene.turn();
    let now = scene.now.millis() / 1000;
    mark(&mut scene, &["n1"], now - 700);
    scene.memory.unneeded_since_ms.clear();
    scene.settings.node_deletion_candidate_ttl = Duration::from_secs(3600);
    assert_eq!(scene.turn().going(), [""; 0], "the memory knows better");
}

#[test]
fn somebody_elses_cordon_stays() {
    for (name, cordoned, flag, expected) in
        [("ours", false, true, true), ("somebody else's", true, true, false), ("none of ours", false, false, false)]
    {
        let mut scene = Scene::new(&two_nodes());
        scene.settings.cordon_node_before_terminating = flag;
        scene.settings.max_scale_down_parallelism = 1;
        let n1 = scene.cluster.symbols.find("n1").unwrap();
        scene.cluster.nodes.iter_mut().find(|node| node.name == n1).unwrap().unschedulable = cordoned;
        assert_eq!(scene.turn().going(), ["n1"], "{name}");
        scene.cluster.pods[0].node = Some(n1);
        later(&mut scene, 6);
        scene.turn();
        assert_eq!(scene.done[0], "untaint n1", "{name}");
        assert_eq!(scene.uncordoned, [expected], "{name}");
    }
}

#[test]
fn a_drain_whose_pods_lost_their_place_is_given_up() {
    let mut scene = Scene::new(&(two_nodes() + &pod("a", "1", Some("n1"), "")));
    assert_eq!(scene.turn().going(), ["n1"]);
    // Somebody else takes the room that was meant for them. No node is bought so that another can go.
    let mut other = scene.cluster.pods.iter().find(|pod| &*pod.name == "a").unwrap().clone();
    (other.name, other.uid, other.node) = ("c".into(), "c".into(), scene.cluster.symbols.find("n2"));
    scene.cluster.pods.push(other);
    later(&mut scene, 6);
    scene.turn();
    assert_eq!(scene.done, ["untaint n1"]);
    assert!(scene.memory.removals.is_empty());
}
