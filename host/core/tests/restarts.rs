//! What an autoscaler finds when it starts: numbers that cannot be true yet, marks of a drain that died, machines that
//! somebody else asked for. Cases that operators of other autoscalers reported as wrong.

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

use plimsoll_core::cloud::{ErrorClass, Instance, InstanceState};
use support::{Scene, WEB, all, empty_group, error, group_of, node, pod};

const HARD_TAINT: &str = "{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule, value: '1799997600'}";

fn growth(pairs: &[(&str, u32)]) -> BTreeMap<String, u32> {
    pairs.iter().map(|&(group, nodes)| (group.to_owned(), nodes)).collect()
}

/// A node that a process before this one marked, and perhaps cordoned.
fn marked(name: &str, cpu: &str, cordoned: bool, ready: bool) -> String {
    let mut taints = vec![HARD_TAINT];
    if !ready {
        taints.push("{key: node.kubernetes.io/not-ready, effect: NoSchedule}");
    }
    let spec = format!("spec: {{unschedulable: {cordoned}, taints: [{}]}}, status: {{", taints.join(", "));
    let ready = if ready { "status: 'True'" } else { "status: 'False'" };
    node(name, cpu, "16Gi", "").replace("status: {", &spec).replace("status: 'True'", ready)
}

#[test]
fn marks_of_a_drain_that_died_do_not_hide_the_room_of_their_nodes() {
    // S23: two nodes with the mark of a removal that nobody pursues; the ready one has room for both pods.
    let scene = |cordoned: bool| {
        let nodes = marked("n1", "4", true, false) + &marked("n2", "4", cordoned, true);
        let pods = pod("busy", "2", Some("n2"), "") + &pod("p", "1", None, "") + &pod("q", "1", None, "") + WEB;
        Scene::new(&(nodes + &pods + &group_of("g", 0, 40, &["n1", "n2"])))
    };
    for cordoned in [false, true] {
        let mut scene = scene(cordoned);
        scene.settings.cordon_node_before_terminating = true;
        let told = scene.turn();
        assert_eq!(told.growth(), growth(&[]), "{:?}", told.plan.pods);
        assert_eq!(scene.done, ["untaint n1", "untaint n2"]);
        assert_eq!((told.pod("shop/p"), told.pod("shop/q")), ("existing n2".to_owned(), "existing n2".to_owned()));
    }
    // A cordon that is not ours stays, and the room behind it is none.
    let mut scene = scene(true);
    scene.settings.cordon_node_before_terminating = false;
    assert_eq!(scene.turn().counts(), BTreeMap::from([("not helped", 2)]));
}

#[test]
fn a_mark_on_a_machine_that_goes_still_hides_its_room() {
    let nodes = marked("n2", "4", false, true);
    let mut scene = Scene::new(&(nodes + &pod("p", "1", None, "") + WEB + &group_of("g", 0, 40, &["n2"])));
    scene.snapshot.groups[0].instances[0].state = InstanceState::Deleting;
    let told = scene.turn();
    assert_eq!(told.growth(), growth(&[("g", 1)]));
    assert_eq!(scene.done, ["increase g +1"]);
}

/// Machines that the cloud lists, but cannot make.
fn sold_out(count: usize) -> impl Iterator<Item = Instance> {
    (0..count).map(|index| {
        let name = format!("placeholder-{index}");
        let mut machine = Instance::new(&*name, support::by_name(&name), InstanceState::Creating);
        machine.error = Some(error(ErrorClass::OutOfResources, false));
        machine.placeholder = true;
        machine
    })
}

#[test]
fn a_group_whose_machines_cannot_be_made_is_left_alone_whoever_asked_for_them() {
    // S15: least size 30; somebody raised the target to 35; one node is there, the other machines are sold out.
    let objects = node("n1", "4", "16Gi", "")
        + &pod("busy", "4", Some("n1"), "")
        + &pod("p", "1", None, "")
        + WEB
        + &group_of("g", 30, 60, &["n1"])
        + &empty_group("h", 40, "4", "16Gi", "");
    // Seen at the start, or in the midst of a life.
    for first_look in [true, false] {
        let mut scene = Scene::new(&objects);
        if !first_look {
            scene.snapshot.groups[1].max_size = 0;
            scene.snapshot.groups[0].max_size = 1;
            scene.turn();
            assert!(scene.memory.backed_off(&"g".into(), scene.now).is_none());
            scene.snapshot.groups[1].max_size = 40;
            scene.snapshot.groups[0].max_size = 60;
        }
        scene.snapshot.groups[0].target_size = 35;
        scene.snapshot.groups[0].instances.extend(sold_out(34));
        let told = scene.turn();
        assert_eq!(told.plan.upcoming, []);
        assert!(scene.memory.backed_off(&"g".into(), scene.now).is_some(), "first look: {first_look}");
        assert_eq!(told.growth(), growth(&[("h", 1)]));
        assert_eq!(scene.done, ["increase h +1"], "the target of g stays");
        assert_eq!(told.plan.warnings, []);
        // The same machines are no news: the wait ends.
        scene.now = scene.now + scene.settings.initial_node_group_backoff + Duration::from_secs(1);
        scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
        scene.turn();
        assert!(scene.memory.backed_off(&"g".into(), scene.now).is_none());
    }
}

#[test]
fn nothing_is_written_from_a_read_that_is_not_known_to_be_good() {
    // S20: 200 nodes, full; pods that need four more. The first read after the start is none.
    let names: Vec<String> = (0..200).map(|index| format!("n{index:03}")).collect();
    let nodes = all(names.iter().map(|name| node(name, "4", "16Gi", "")));
    let busy = all(names.iter().map(|name| pod(&format!("on-{name}"), "4", Some(name), "")));
    let pending = all((0..4).map(|index| pod(&format!("p{index}"), "3", None, "")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let objects = nodes + &busy + &pending + WEB + &group_of("g", 0, 1000, &names);
    let mut scene = Scene::new(&objects);
    let good = scene.snapshot.clone();
    let now = scene.now;
    for (name, expected) in [
        ("throttled", "OutOfResources"),
        ("too small", "write refused by the guard: target 7 would be below the 200 nodes that are there"),
        ("nothing", "write refused by the guard: target 4 would be below the 200 nodes that are there"),
        ("stale", "write refused by the guard: no write on a read that is 600s old"),
    ] {
        scene.snapshot = good.clone();
        let group = &mut scene.snapshot.groups[0];
        match name {
            "throttled" => group.error = Some(error(ErrorClass::Throttled, false)),
            "too small" => group.target_size = 3,
            "nothing" => group.target_size = 0,
            _ => group.observed_at = plimsoll_model::Time::from_millis(now.millis() - 600_000),
        }
        let told = scene.turn();
        assert_eq!(scene.done, Vec::<String>::new(), "{name}");
        assert_eq!(told.growth(), growth(&[]), "{name}");
        let warnings: Vec<String> = told.plan.warnings.iter().map(ToString::to_string).collect();
        match name {
            "throttled" => assert!(warnings.is_empty(), "{name}: {warnings:?}"),
            _ => assert!(warnings.iter().any(|warning| warning.contains(expected)), "{name}: {warnings:?}"),
        }
        assert!(!told.reasons("shop/p0")["g"].is_empty(), "{name}");
    }
    scene.snapshot = good;
    let told = scene.turn();
    assert_eq!(scene.done, ["increase g +4"]);
    assert_eq!((told.plan.scale_up[0].from, told.plan.scale_up[0].to), (200, 204));
}

#[test]
fn the_mark_of_a_deletion_that_never_came_is_taken_off_at_once() {
    let mut scene = Scene::new(&(marked("n1", "4", false, true) + &group_of("g", 0, 40, &["n1"]) + WEB));
    let asked = scene.now.millis() - 301_000;
    let removal = plimsoll_core::memory::Removal {
        group: "g".into(),
        instance: scene.snapshot.groups[0].instances[0].id.clone(),
        drain: false,
        cordoned_before: false,
        stage: plimsoll_core::memory::Stage::Deleting(asked),
    };
    scene.memory.removals.insert("n1".to_owned(), removal);
    scene.turn();
    assert_eq!(scene.done, ["untaint n1"]);
    assert!(scene.memory.removals.is_empty());
}
