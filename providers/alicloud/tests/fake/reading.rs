//! Refresh: completeness, number of calls, and one group's trouble.

use std::collections::BTreeSet;

use plimsoll_guest::{ErrorClass, InstanceState, Provider, RefreshRequest};
use plimsoll_tests_clouds::alicloud::{Group, Order};
use plimsoll_tests_clouds::{Cloud, Fault, Rule, Twist};
use rstest::rstest;

use crate::bench::{Bench, SEEDS, step};

#[rstest]
#[case(0, 100)]
#[case(15, 100)]
#[case(50, 100)]
#[case(51, 100)]
#[case(500, 4)]
#[case(1500, 2)]
fn everything_is_read_in_few_calls(#[case] size: u32, #[case] seeds: u64) {
    for seed in 0..seeds {
        let group = Group::new("asg-1", 0, 2000).running(size);
        let group = if seed % 4 < 2 { group.desiring(size) } else { group };
        let mut bench = Bench::new(vec![group], &["0:2000:asg-1"], seed);
        let found = bench.group("asg-1");
        let ids: BTreeSet<_> = found.instances.iter().map(|instance| instance.id.clone()).collect();
        assert_eq!(
            (ids.len(), found.target_size, found.instances_complete),
            (size as usize, size, true),
            "seed {seed}"
        );
        assert!(bench.all_calls() <= size.div_ceil(50) as usize + 2, "{} calls for {size}", bench.all_calls());
        bench.clean("reading");
    }
}

#[test]
fn an_unchanged_state_is_not_told_twice() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 9).desiring(2).running(2)], &["0:9:asg-1"], seed);
        let first = bench.answer().unwrap();
        let again = RefreshRequest { previous_revision: Some(first.revision.clone()), ..RefreshRequest::everything() };
        let second = bench.provider.refresh(again.clone()).unwrap();
        assert_eq!((second.revision, second.snapshot), (first.revision, None));
        bench.increase("asg-1", 1, 2, "k").unwrap();
        assert!(bench.provider.refresh(again).unwrap().snapshot.is_some());
    }
}

#[test]
fn one_groups_trouble_is_its_own() {
    for seed in SEEDS {
        let ids = ["asg-1", "asg-2", "asg-3", "asg-4", "asg-5"];
        let groups = ids.map(|id| Group::new(id, 0, 9).desiring(3).running(3)).to_vec();
        let specs = ids.map(|id| format!("0:9:{id}"));
        let specs: Vec<_> = specs.iter().map(String::as_str).collect();
        let mut bench = Bench::new(groups, &specs, seed);
        assert_eq!(bench.refresh().len(), 5);
        bench.human(&Order::DeleteGroup { group: "asg-2".into() });
        let broken = Fault::Error { status: 400, code: "InternalError".into(), message: "no".into() };
        bench
            .world
            .borrow_mut()
            .faults()
            .add(Rule::new("broken", broken).on("DescribeScalingInstances").about("asg-4"));
        let answer = bench.answer().unwrap();
        let snapshot = answer.snapshot.unwrap();
        let found: Vec<_> = snapshot
            .groups
            .iter()
            .map(|group| (group.id.as_str(), group.instances.len(), group.error.is_some()))
            .collect();
        let expected = [("asg-1", 3, false), ("asg-3", 3, false), ("asg-4", 3, true), ("asg-5", 3, false)];
        assert_eq!(found, expected, "seed {seed}");
        assert!(snapshot.complete);
        assert!(
            answer.diagnostics.iter().any(|finding| finding.code == "group-gone" && finding.message.contains("asg-2"))
        );
        // A fresh plug-in knows no last good state, and says that there may be more.
        bench.restart();
        let snapshot = bench.answer().unwrap().snapshot.unwrap();
        assert_eq!((snapshot.groups.len(), snapshot.complete), (3, false));
    }
}

#[test]
fn in_a_throttled_minute_nothing_more_is_asked() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 9).desiring(3).running(3)], &["0:9:asg-1"], seed);
        bench.group("asg-1");
        bench.advance(70);
        bench
            .world
            .borrow_mut()
            .faults()
            .add(Rule::new("hot", Fault::ThrottledMinute).on("DescribeScalingInstances").times(1));
        let before = bench.calls("DescribeScalingInstances");
        for second in 0..4 {
            let group = bench.answer().unwrap().snapshot.unwrap().groups.remove(0);
            let error = group.error.unwrap();
            assert_eq!((error.class, group.instances.len()), (ErrorClass::Throttled, 3), "seed {seed}");
            assert!(error.retry_after_ms.is_some_and(|wait| wait <= 62_000), "{error:?}");
            if second == 1 {
                // Also not by a plug-in that has just started.
                bench.restart();
                assert!(
                    bench
                        .answer()
                        .unwrap()
                        .snapshot
                        .is_some_and(|snapshot| !snapshot.complete && snapshot.groups.is_empty())
                );
                break;
            }
            bench.advance(5);
        }
        assert!(bench.calls("DescribeScalingInstances") - before <= 2, "seed {seed}");
        bench.advance(65);
        bench.world.borrow_mut().faults().remove("hot");
        assert_eq!(bench.group("asg-1").instances.len(), 3);
    }
}

#[test]
fn pages_that_change_under_the_reader_lose_nothing() {
    for seed in SEEDS {
        for twist in
            [Twist::DuplicateAcrossPages, Twist::MissingAcrossPages, Twist::WrongTotal(7), Twist::WrongTotal(-60)]
        {
            let mut bench =
                Bench::new(vec![Group::new("asg-1", 0, 200).desiring(120).running(120)], &["0:200:asg-1"], seed);
            bench
                .world
                .borrow_mut()
                .faults()
                .add(Rule::new("twist", Fault::Twist { twist }).on("DescribeScalingInstances"));
            let group = bench.group("asg-1");
            let ids: BTreeSet<_> = group.instances.iter().map(|instance| instance.id.clone()).collect();
            assert_eq!(ids.len(), group.instances.len(), "no machine twice");
            assert!(ids.len() == 120 || !group.instances_complete, "seed {seed}, {twist:?}: {} of 120", ids.len());
        }
    }
}

#[test]
fn states_follow_the_machines() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 9).desiring(0)], &["0:9:asg-1"], seed);
        assert!(bench.group("asg-1").instances.is_empty());
        bench.increase("asg-1", 2, 0, "k").unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..=150 / step(seed) {
            bench.advance(step(seed));
            for instance in bench.group("asg-1").instances {
                seen.insert(match instance.state {
                    InstanceState::Creating => "creating",
                    InstanceState::Running => "running",
                    _ => "other",
                });
                let id = &instance.id;
                let spellings: Vec<_> = instance.matches.iter().map(|entry| format!("{entry:?}")).collect();
                assert!(spellings.iter().any(|text| text.contains(&format!("\"cn-hangzhou.{id}\""))), "{spellings:?}");
                assert!(spellings.iter().any(|text| text.contains(&format!("\"alicloud://cn-hangzhou.{id}\""))));
            }
        }
        assert_eq!(seen, BTreeSet::from(["creating", "running"]), "seed {seed}");
        assert!(bench.group("asg-1").instances.iter().all(|instance| instance.state == InstanceState::Running));
        bench.clean("states");
    }
}
