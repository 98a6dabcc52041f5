//! Bring-up: both signatures, permissions, endpoints.

use plimsoll_guest::{Provider, Severity};
use plimsoll_tests_clouds::alicloud::{Group, Scenario};
use plimsoll_tests_clouds::{Cloud, Fault, Rule};
use rstest::rstest;

use crate::bench::{Bench, SEEDS, Signing, scenario, setup};

#[rstest]
#[case(Signing::V3)]
#[case(Signing::V1)]
fn both_signatures_bring_it_up(#[case] signing: Signing) {
    for seed in SEEDS {
        let groups = vec![Group::new("asg-1", 0, 10).desiring(2).running(2)];
        let mut bench = Bench::with(scenario(groups, seed), setup(&["0:10:asg-1"]), signing);
        let findings = bench.provider.self_test();
        assert!(findings.is_empty(), "seed {seed}: {findings:?}");
        assert_eq!(bench.group("asg-1").instances.len(), 2);
    }
}

/// The policy that the documentation prints.
fn documented() -> Vec<String> {
    let text = include_str!("../../../../docs/providers/alicloud.md");
    let block = text.split("```json").find(|block| block.contains("\"Action\"")).unwrap();
    let policy: serde_json::Value = serde_json::from_str(block.split("```").next().unwrap()).unwrap();
    let actions =
        policy["Statement"].as_array().unwrap().iter().flat_map(|one| one["Action"].as_array().unwrap().clone());
    actions.map(|action| action.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_documented_policy_is_enough() {
    let mut start = Scenario::with_groups(vec![Group::new("asg-1", 0, 10).desiring(2).running(2)]);
    start.keys[0].allow = documented();
    let mut bench = Bench::with(start, setup(&["0:10:asg-1"]), Signing::V3);
    let findings = bench.provider.self_test();
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_missing_permission_is_told_by_its_name() {
    let all = documented();
    assert!(all.len() >= 11, "{all:?}");
    for missing in &all {
        let mut start = Scenario::with_groups(vec![Group::new("asg-1", 0, 10).desiring(2).running(2)]);
        start.keys[0].allow = all.iter().filter(|action| *action != missing).cloned().collect();
        let mut bench = Bench::with(start, setup(&["0:10:asg-1"]), Signing::V3);
        let findings = bench.provider.self_test();
        let texts: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert!(matches!(&texts[..], [one] if one.contains(missing.as_str())), "{missing}: {texts:?}");
        let optional = [
            "ecs:DescribeInstances",
            "ecs:DescribeLaunchTemplateVersions",
            "vpc:DescribeVSwitches",
            "ecs:DescribePrice",
        ]
        .contains(&missing.as_str());
        assert_eq!(findings[0].severity == Severity::Warning, optional, "{missing}");
    }
}

#[test]
fn the_endpoint_lookup_may_fail_at_any_time() {
    for seed in SEEDS {
        let groups = vec![Group::new("asg-1", 0, 10).desiring(2).running(2)];
        let mut with_lookup = setup(&["0:10:asg-1"]);
        with_lookup.config = Some(r#"{"region": "cn-hangzhou", "endpoints": {"lookup": "location"}}"#.into());
        let mut bench = Bench::with(scenario(groups, seed), with_lookup, Signing::V3);
        let down = || {
            let mut rule = Rule::new("down", Fault::Refused);
            rule.host = Some("location".into());
            rule
        };
        if seed.is_multiple_of(2) {
            bench.world.borrow_mut().faults().add(down());
        }
        assert_eq!(bench.group("asg-1").instances.len(), 2, "seed {seed}");
        if !seed.is_multiple_of(2) {
            assert!(bench.calls("DescribeEndpoints") > 0);
            bench.world.borrow_mut().faults().add(down());
        }
        bench.advance(3601);
        assert_eq!(bench.group("asg-1").instances.len(), 2, "seed {seed}: the last good answer holds");
        bench.restart();
        assert_eq!(bench.group("asg-1").instances.len(), 2, "seed {seed}: also after a restart");
    }
}
