//! A day of demand, faults and people, for every seed.

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_guest::{CallOptions, Deletability, Delete, DeleteStatus, Increase, InstanceState, NodeGroup, Provider};
use plimsoll_tests_clouds::utho::Order;
use plimsoll_tests_clouds::{Fault, Rule};
use rstest::rstest;

use super::bench::{Bench, POOL, SEEDS, under_these_seeds};

/// From one look to the next, in seconds.
const PERIOD: u64 = 120;
const LOOPS: u64 = 24 * 60 * 60 / PERIOD;
/// Requests that one loop may need: a read, and the requests of one write.
const MOST_REQUESTS: usize = 1 + 2 + 10;

/// A small host: one pool, one wish, at most one write in a loop.
struct Host {
    wanted: u32,
    named: BTreeSet<String>,
}

impl Host {
    fn step(&mut self, bench: &mut Bench) {
        let Ok(answer) = bench.read() else { return };
        let snapshot = answer.snapshot.unwrap();
        let Some(group) = snapshot.groups.into_iter().find(|group| group.id == POOL) else {
            panic!("nobody removed the pool, and it is gone")
        };
        assert!(group.min_size >= 1 && group.error.is_none(), "{group:?}");
        let wanted = self.wanted.clamp(group.min_size, group.max_size);
        if group.target_size < wanted {
            let options = CallOptions::with_key(bench.key());
            let (delta, expected_target) = (wanted - group.target_size, group.target_size);
            let call = Increase { group: POOL.into(), delta, expected_target, atomic: false, options };
            if let Ok(outcome) = bench.provider().increase_size(call) {
                assert_eq!(outcome.accepted, delta);
            }
        } else if group.target_size > wanted && group.instances_complete {
            self.shrink(&group, group.target_size - wanted, bench);
        }
    }

    fn shrink(&mut self, group: &NodeGroup, surplus: u32, bench: &mut Bench) {
        let idle = group.instances.iter().filter(|instance| {
            let up = matches!(instance.state, InstanceState::Running | InstanceState::Failed);
            up && instance.deletable == Deletability::Yes
        });
        let ids: Vec<_> = idle.take(surplus.min(10) as usize).map(|instance| instance.id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        self.named.extend(ids.iter().cloned());
        let call = Delete {
            group: POOL.into(),
            ids: ids.clone(),
            expected_target: group.target_size,
            min_size: group.min_size,
            force: false,
            options: CallOptions::with_key(bench.key()),
        };
        if let Ok(outcome) = bench.provider().delete_instances(call) {
            assert_eq!(outcome.results.len(), ids.len());
            assert!(outcome.results.iter().all(|result| !matches!(&result.status, DeleteStatus::Failed(error)
                if error.code == "other-pool")));
        }
    }
}

fn trouble(bench: &mut Bench) {
    let faults = [
        Fault::Reset,
        Fault::Refused,
        Fault::HalfBody,
        Fault::Html { status: 502 },
        Fault::SlowHead { ms: 40_000 },
        Fault::Throttled { retry_after_s: None },
        Fault::ThrottledMinute,
        Fault::EmptyBody { status: 200 },
        Fault::Error { status: 500, code: "x".into(), message: "boom".into() },
        Fault::Error { status: 200, code: "x".into(), message: "Something else".into() },
    ];
    let fault = bench.chance.pick(&faults).unwrap().clone();
    let action = *bench.chance.pick(&["cluster", "update", "delete"]).unwrap();
    let handled = bench.chance.percent(50);
    let rule = Rule::new("trouble", fault).on(action).times(1 + bench.chance.below(3) as u32);
    bench.fault(if handled { rule.after_handling() } else { rule });
}

fn people(bench: &mut Bench) {
    let count = 1 + bench.chance.below(10) as u32;
    let workers: Vec<_> = bench.cloud(|cloud| cloud.logic().world().pools[POOL].workers.keys().cloned().collect());
    let worker = bench.chance.pick(&workers).cloned();
    let order = match (bench.chance.below(4), worker) {
        (0, _) => Order::Count { pool: POOL.into(), count },
        (1, Some(worker)) => Order::DeleteWorker { pool: POOL.into(), worker },
        (2, _) => Order::Failing { workers: 1 },
        _ => {
            Order::Stock { plan: "10045".into(), left: bench.chance.pick(&[Some(0), Some(3), None]).copied().unwrap() }
        }
    };
    bench.obey(&order);
}

fn day(bench: &mut Bench) {
    let mut host = Host { wanted: 2, named: BTreeSet::new() };
    for _ in 0..LOOPS {
        if bench.chance.percent(8) {
            host.wanted = bench.chance.below(13) as u32;
        }
        if bench.chance.percent(10) {
            trouble(bench);
        }
        if bench.chance.percent(2) {
            people(bench);
        }
        if bench.chance.percent(1) {
            bench.restart();
        }
        let before = bench.sent();
        host.step(bench);
        assert!(bench.sent() - before <= MOST_REQUESTS, "{} requests in one loop", bench.sent() - before);
        assert!(bench.count(POOL) >= 1);
        bench.advance(PERIOD);
    }
    settle(&mut host, bench);
}

/// Trouble ends; then the pool is what is wanted.
fn settle(host: &mut Host, bench: &mut Bench) {
    bench.no_faults();
    bench.obey(&Order::Stock { plan: "10045".into(), left: None });
    bench.obey(&Order::Failing { workers: 0 });
    host.wanted = 7;
    for _ in 0..60 {
        host.step(bench);
        bench.advance(PERIOD);
    }
    bench.assert_good_manners();
    let left: BTreeSet<_> = bench.asked_to_leave().into_iter().collect();
    assert!(left.is_subset(&host.named), "only machines that were asked for go");
    let group = bench.group();
    assert!((1..=10).contains(&group.target_size), "{group:?}");
    assert!(bench.staying(POOL) >= 7, "what is wanted is there");
    if !bench.switches().delete_recreates {
        assert_eq!((bench.count(POOL), bench.staying(POOL)), (7, 7));
    }
}

/// In parts, which can run at the same time.
#[rstest]
#[case(0..25)]
#[case(25..50)]
#[case(50..75)]
#[case(75..SEEDS)]
fn a_day_under_every_seed(#[case] seeds: Range<u64>) {
    under_these_seeds(seeds, 2, |_| {}, day);
}
