//! Who rests after a failure: the group, or whatever the error is about.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod support;

use std::time::Duration;

use plimsoll_core::cloud::{ErrorClass, ErrorScope, GroupId, InstanceState};
use support::{Scene, WEB, all, empty_group, group_of, node, pod};

/// Four groups that are the better the smaller their number; two in each zone, two of each machine type.
fn four_groups() -> String {
    let group = |name: &str, memory: &str, zone: &str, kind: &str| {
        let labels = format!("topology.kubernetes.io/zone: {zone}, node.kubernetes.io/instance-type: {kind}");
        empty_group(name, 10, "4", memory, &labels)
    };
    group("g1", "4Gi", "a", "small")
        + &group("g2", "8Gi", "a", "large")
        + &group("g3", "16Gi", "b", "small")
        + &group("g4", "32Gi", "b", "large")
        + WEB
}

#[test]
fn an_error_holds_what_it_is_about() {
    for (name, class, scope, expected) in [
        ("a group", ErrorClass::OutOfResources, ErrorScope::Group("g1".into()), &["g1", "g2"][..]),
        ("nothing in particular", ErrorClass::OutOfResources, ErrorScope::Provider, &["g1", "g2"]),
        ("its zone", ErrorClass::OutOfResources, ErrorScope::Zone("a".into()), &["g1", "g3"]),
        ("its machine type", ErrorClass::Quota, ErrorScope::InstanceType("small".into()), &["g1", "g2"]),
        ("money", ErrorClass::Billing, ErrorScope::Provider, &["g1"]),
        ("rights to one type", ErrorClass::Auth, ErrorScope::InstanceType("small".into()), &["g1", "g2"]),
    ] {
        let mut scene = Scene::new(&(four_groups() + &pod("p", "1", None, "")));
        scene.increases.insert("g1".into(), vec![Err(class)]);
        scene.scope = Some(scope);
        scene.turn();
        let asked: Vec<String> = expected.iter().map(|group| format!("increase {group} +1")).collect();
        assert_eq!(scene.done, asked, "{name}");
    }
}

#[test]
fn the_preferred_group_comes_back_when_its_zone_has_rested() {
    let mut scene = Scene::new(&(four_groups() + &pod("p", "1", None, "")));
    scene.increases.insert("g1".into(), vec![Err(ErrorClass::OutOfResources)]);
    scene.scope = Some(ErrorScope::Zone("a".into()));
    scene.turn();
    assert_eq!(scene.done, ["increase g1 +1", "increase g3 +1"]);
    let again = |scene: &mut Scene, seconds| {
        scene.now = scene.now + Duration::from_secs(seconds);
        scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
        scene.memory.ledger = plimsoll_core::ledger::Ledger::default();
        scene.done.clear();
        scene.turn();
        scene.done.clone()
    };
    assert_eq!(again(&mut scene, 60), ["increase g3 +1"], "the whole zone rests");
    assert_eq!(again(&mut scene, 300), ["increase g1 +1"], "five minutes later it is asked again");
}

#[test]
fn a_group_with_machines_elsewhere_is_not_held_by_one_zone_until_it_fails_again() {
    // g1 has a machine in zone b too.
    let labels = "topology.kubernetes.io/zone: a, node.kubernetes.io/instance-type: small";
    let yaml = node("n1", "4", "16Gi", labels)
        + &group_of("g1", 1, 10, &["n1"])
        + &pod("full", "4", Some("n1"), "")
        + WEB
        + &pod("p", "1", None, "");
    let mut scene = Scene::new(&yaml);
    let mut other = scene.snapshot.groups[0].instances[0].clone();
    (other.id, other.zone, other.state) = ("elsewhere".into(), Some("b".to_owned()), InstanceState::Running);
    other.matches.clear();
    scene.snapshot.groups[0].instances.push(other);
    scene.scope = Some(ErrorScope::Zone("a".into()));
    scene.increases.insert("g1".into(), vec![Err(ErrorClass::OutOfResources); 2]);
    let group = GroupId::from("g1");
    scene.turn();
    assert!(scene.memory.backed_off(&group, scene.now).is_none(), "the next machine may come elsewhere");
    scene.turn();
    assert_eq!(scene.done, ["increase g1 +1", "increase g1 +1"]);
    assert!(scene.memory.backed_off(&group, scene.now).is_some());
    scene.done.clear();
    scene.turn();
    assert_eq!(scene.done, [""; 0]);
}

#[test]
fn a_busy_cloud_is_asked_again_at_once() {
    let mut scene = Scene::new(&(four_groups() + &pod("p", "1", None, "")));
    for group in ["g1", "g2", "g3", "g4"] {
        scene.increases.insert(group.into(), vec![Err(ErrorClass::Conflict)]);
    }
    scene.turn();
    assert_eq!(scene.done.len(), 4, "each once: {:?}", scene.done);
    scene.done.clear();
    scene.turn();
    assert_eq!(scene.done, ["increase g1 +1"]);
}

#[test]
fn waits_after_growth_hold_only_the_group_that_grew_if_wanted() {
    for (local, expected) in [(false, &[][..]), (true, &["n2"])] {
        let yaml = all(["n1", "n2"].map(|name| node(name, "4", "16Gi", "")))
            + &group_of("g1", 0, 5, &["n1"])
            + &group_of("g2", 0, 5, &["n2"])
            + WEB;
        let mut scene = Scene::new(&yaml);
        scene.settings.waits_elapsed = false;
        scene.settings.scale_down_unneeded_time = Duration::ZERO;
        scene.settings.scale_down_delay_type_local = local;
        let now = scene.now.millis();
        scene.memory.last_scale_up_ms = Some(now - 60_000);
        scene.memory.last_of_group.entry("g1".into()).or_default().scale_up_ms = Some(now - 60_000);
        assert_eq!(scene.turn().going(), expected, "local: {local}");
    }
}

#[test]
fn pods_of_other_schedulers_are_none_of_our_business_if_wanted() {
    let mut scene =
        Scene::new(&(four_groups() + &pod("p", "1", None, "") + &pod("q", "1", None, "schedulerName: batch, ")));
    scene.settings.allowed_schedulers = vec!["batch".to_owned()];
    let told = scene.turn();
    assert!(told.pod("shop/p").contains("allowed-scheduler-names"), "{}", told.pod("shop/p"));
    assert_eq!(told.pod("shop/q"), "new g1#0");
}
