//! Node pools of ACK: sized by their wish, shrunk by name.

use std::collections::BTreeSet;

use plimsoll_guest::{DeleteStatus, ErrorClass, InstanceState, Setup};
use plimsoll_tests_clouds::alicloud::{Group, Order};
use plimsoll_tests_clouds::{Cloud, Fault, Rule};
use rstest::rstest;

use crate::bench::{Bench, SEEDS, Signing, scenario};

const POOL: &str = "np-asg-1";

/// A pool with a wish, and a group of the same account that is no pool.
fn bench(size: u32, seed: u64) -> Bench {
    let tags = [("ack.aliyun.com".to_owned(), "c1".to_owned())].into();
    let pool = Group { tags, ..Group::new("asg-1", 0, 60).desiring(size).running(size) };
    let setup = Setup {
        node_groups: vec![format!("0:60:{POOL}")],
        ..Setup::with_config(r#"{"region": "cn-hangzhou", "ack": {"cluster-id": "c1"}}"#)
    };
    let other = Group::new("asg-2", 0, 9).desiring(2).running(2);
    Bench::with(scenario(vec![pool, other], seed), setup, Signing::V3)
}

fn running(bench: &mut Bench) -> BTreeSet<String> {
    let nodes = bench.group(POOL).instances.into_iter();
    nodes.filter(|node| node.state == InstanceState::Running).map(|node| node.id).collect()
}

#[test]
fn from_nothing_to_three_and_back_by_name() {
    for seed in SEEDS {
        let mut bench = bench(0, seed);
        assert!(bench.group(POOL).instances.is_empty());
        let outcome = bench.increase(POOL, 3, 0, "k").unwrap();
        assert_eq!((outcome.target_size, outcome.activity.is_some()), (3, true));
        assert_eq!(bench.group(POOL).target_size, 3);
        bench.advance(400);
        let nodes: Vec<String> = running(&mut bench).into_iter().collect();
        assert_eq!(nodes.len(), 3, "seed {seed}");
        let outcome = bench.delete(POOL, &nodes[..2], 0, "d").unwrap();
        assert!(outcome.results.iter().all(|result| result.status == DeleteStatus::Accepted), "{outcome:?}");
        bench.advance(400);
        // With the wish unchanged, others would have come.
        assert_eq!(running(&mut bench), BTreeSet::from([nodes[2].clone()]), "seed {seed}");
        assert_eq!(bench.group(POOL).target_size, 1);
        bench.clean("pools");
    }
}

#[rstest]
#[case(0)]
#[case(50)]
#[case(51)]
fn all_nodes_are_read(#[case] size: u32) {
    for seed in SEEDS {
        let mut bench = bench(size, seed);
        assert_eq!(running(&mut bench).len(), size as usize);
        assert!(bench.all_calls() <= size.div_ceil(50) as usize + 2, "{} calls", bench.all_calls());
        bench.clean("reading pools");
    }
}

#[test]
fn a_machine_that_is_released_past_the_pool_is_replaced() {
    for seed in SEEDS {
        let mut bench = bench(3, seed);
        let before = running(&mut bench);
        bench.human(&Order::Release { machine: before.first().unwrap().clone() });
        bench.advance(600);
        let after = running(&mut bench);
        assert_eq!((after.len(), after.intersection(&before).count()), (3, 2), "seed {seed}");
        assert_eq!(bench.group(POOL).target_size, 3);
    }
}

#[test]
fn a_wish_that_a_human_changed_is_not_undone() {
    for seed in SEEDS {
        let mut bench = bench(2, seed);
        bench.group(POOL);
        bench.human(&Order::Resize { group: "asg-1".into(), min: None, max: None, desired: Some(5) });
        let error = bench.increase(POOL, 1, 2, "k").unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "seed {seed}: {error:?}");
        assert_eq!(bench.calls("ModifyClusterNodePool"), 0);
    }
}

#[test]
fn a_wish_is_taken_back_only_as_far_as_no_node_has_to_go() {
    for seed in SEEDS {
        let mut bench = bench(2, seed);
        let nodes = running(&mut bench);
        let error = bench.decrease(POOL, 1, 2).unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Conflict, "below-existing"), "{error:?}");
        bench.increase(POOL, 2, 2, "k").unwrap();
        bench.advance(90);
        let error = bench.decrease(POOL, 2, 4).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "seed {seed}: nodes are on their way: {error:?}");
        bench.advance(400);
        assert!(running(&mut bench).is_superset(&nodes), "seed {seed}");
        bench.clean("taking a wish back");
    }
}

#[rstest]
#[case("ScalingActivityInProgress", ErrorClass::Conflict)]
#[case("QuotaExceed.ElasticQuota", ErrorClass::Quota)]
#[case("Account.Arrearage", ErrorClass::Billing)]
#[case("ApiServer.TooManyRequests", ErrorClass::Throttled)]
fn a_refused_change_has_its_class(#[case] code: &str, #[case] class: ErrorClass) {
    let mut bench = bench(1, 6);
    bench.group(POOL);
    let fault = Fault::Error { status: 400, code: code.into(), message: "not now".into() };
    bench.world.borrow_mut().faults().add(Rule::new("refused", fault).on("ModifyClusterNodePool"));
    let error = bench.increase(POOL, 1, 1, "k").unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (class, code), "{error:?}");
    assert_eq!(bench.group(POOL).target_size, 1);
}

#[test]
fn each_permission_of_pools_is_needed_and_named() {
    for (missing, needs_write) in [
        ("cs:DescribeClusterNodePools", false),
        ("cs:DescribeClusterNodes", false),
        ("cs:ModifyClusterNodePool", true),
        ("cs:RemoveNodePoolNodes", true),
    ] {
        let all = ["DescribeClusterNodePools", "DescribeClusterNodes", "ModifyClusterNodePool", "RemoveNodePoolNodes"];
        let tags = [("ack.aliyun.com".to_owned(), "c1".to_owned())].into();
        let mut start = scenario(vec![Group { tags, ..Group::new("asg-1", 0, 9).desiring(2).running(2) }], 6);
        start.keys[0].allow = all.iter().map(|name| format!("cs:{name}")).filter(|name| name != missing).collect();
        let setup = Setup {
            node_groups: vec![format!("0:9:{POOL}")],
            ..Setup::with_config(r#"{"region": "cn-hangzhou", "ack": {"cluster-id": "c1"}}"#)
        };
        let mut bench = Bench::with(start, setup, Signing::V3);
        let told = if needs_write {
            let nodes: Vec<String> = running(&mut bench).into_iter().take(1).collect();
            let grown = bench.increase(POOL, 1, 2, "k").err();
            let removed = bench.delete(POOL, &nodes, 0, "d");
            format!("{grown:?} {removed:?}")
        } else {
            format!("{:?}", bench.answer())
        };
        assert!(told.contains(&format!("allow {missing} in the RAM policy")), "{told}");
    }
}
