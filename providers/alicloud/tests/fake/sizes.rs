//! Growth: exactly as much as asked, once, and never less than there was.

use plimsoll_guest::{ActivityState, ErrorClass, GroupStatus, InstanceState};
use plimsoll_tests_clouds::alicloud::{Group, Mark, Order};
use plimsoll_tests_clouds::{Cloud, Fault, Rule};

use crate::bench::{Bench, SEEDS, step};

fn ids(bench: &mut Bench) -> Vec<String> {
    bench.group("asg-1").instances.into_iter().map(|instance| instance.id).collect()
}

/// A group with or without a stored wish, by the seed.
fn group(seed: u64, running: u32) -> Group {
    let group = Group::new("asg-1", 0, 20).running(running);
    if seed % 8 < 4 { group.desiring(running) } else { group }
}

#[test]
fn from_nothing_to_three_and_back() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![group(seed, 0)], &["0:20:asg-1"], seed);
        assert_eq!(bench.group("asg-1").target_size, 0);
        let outcome = bench.increase("asg-1", 3, 0, "up").unwrap();
        assert_eq!((outcome.accepted, outcome.target_size), (3, 3), "seed {seed}");
        for second in 0..200 / step(seed) {
            bench.advance(step(seed));
            let group = bench.group("asg-1");
            assert_eq!(group.target_size, 3, "seed {seed}, second {second}");
        }
        let found = bench.group("asg-1");
        assert_eq!(found.instances.len(), 3);
        assert!(
            found
                .activities
                .iter()
                .any(|one| one.state == ActivityState::Succeeded && one.idempotency_key.as_deref() == Some("up"))
        );
        let all = ids(&mut bench);
        let outcome = bench.delete("asg-1", &all, 0, "down").unwrap();
        assert_eq!(outcome.target_size, 0);
        for _ in 0..=120 / step(seed) {
            bench.advance(step(seed));
            let group = bench.group("asg-1");
            assert_eq!(group.target_size, 0, "seed {seed}");
            assert!(group.instances.iter().all(|instance| instance.state == InstanceState::Deleting));
        }
        assert!(ids(&mut bench).is_empty());
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn one_more_is_one_more_where_machines_are_protected_or_set_aside() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![group(seed, 9)], &["0:20:asg-1"], seed);
        let before = ids(&mut bench);
        for (index, id) in before.iter().enumerate().take(5) {
            let mark = if index < 3 { Mark::Protected } else { Mark::Standby };
            bench.human(&Order::Mark { machine: id.clone(), mark });
        }
        let target = bench.group("asg-1").target_size;
        assert_eq!(target, 9, "seed {seed}");
        let counted = bench.world.borrow().logic().kept.world.probes.protected_and_standby_count;
        bench.increase("asg-1", 1, 9, "k").unwrap();
        bench.advance(25);
        let after = ids(&mut bench);
        assert!(before.iter().all(|id| after.contains(id)), "seed {seed}: none went");
        // A cloud that does not count them fills up a stored wish by itself.
        let fills_up = !counted && seed % 8 < 4;
        assert!(after.len() == 10 || fills_up, "seed {seed}: {} machines", after.len());
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn a_lost_answer_grows_once() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![group(seed, 2)], &["0:20:asg-1"], seed);
        let lost = [Fault::Reset, Fault::SlowHead { ms: 60_000 }, Fault::HalfBody, Fault::Html { status: 504 }];
        let lost = lost[(seed % 4) as usize].clone();
        bench
            .world
            .borrow_mut()
            .faults()
            .add(Rule::new("lost", lost).on("ScaleWithAdjustment").times(1).after_handling());
        let error = bench.increase("asg-1", 2, 2, "k").unwrap_err();
        assert!(error.outcome_unknown && error.class == ErrorClass::Transient, "seed {seed}: {error:?}");
        // The same again, as the host does it: with what it believed, and with what it reads.
        // Where a difference does not move the wish, only the repetition does, so it must not come late.
        let moves = bench.world.borrow().logic().kept.world.probes.quantity_moves_desired;
        bench.advance(if moves || seed % 8 >= 4 { seed % 3 * 40 } else { 0 });
        let again = bench.increase("asg-1", 2, 2, "k").unwrap();
        assert_eq!(again.accepted, 2, "seed {seed}");
        bench.advance(200);
        let group = bench.group("asg-1");
        assert_eq!((group.target_size, group.instances.len()), (4, 4), "seed {seed}");
        let began = bench.world.borrow().logic().kept.world.activities.len();
        assert_eq!(began, 1, "seed {seed}: one activity");
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn a_humans_wish_survives() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 20).desiring(2).running(2)], &["0:20:asg-1"], seed);
        bench.group("asg-1");
        bench.human(&Order::Resize { group: "asg-1".into(), min: None, max: None, desired: Some(7) });
        let error = bench.increase("asg-1", 1, 2, "k").unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Conflict, "stale-target"), "seed {seed}");
        assert_eq!(bench.calls("ScaleWithAdjustment"), 0);
        let error = bench.decrease("asg-1", 1, 2).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert_eq!(bench.calls("ModifyScalingGroup"), 0);
        bench.advance(300);
        assert_eq!(bench.group("asg-1").target_size, 7);
        // Between our read and our write: a difference leaves the human's wish in place.
        let mut done = false;
        *bench.wire.hook.borrow_mut() = Some(Box::new(move |world, action| {
            if action == "ScaleWithAdjustment" && !std::mem::replace(&mut done, true) {
                let order = Order::Resize { group: "asg-1".into(), min: None, max: None, desired: Some(9) };
                world.with(|cloud, context| cloud.obey(&order, context)).unwrap();
            }
        }));
        bench.increase("asg-1", 1, 7, "k2").unwrap();
        *bench.wire.hook.borrow_mut() = None;
        let target = bench.group("asg-1").target_size;
        assert!(target >= 9, "seed {seed}: {target}");
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn the_smaller_of_two_limits_holds() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 4).desiring(3).running(3)], &["0:100:asg-1"], seed);
        let answer = bench.answer().unwrap();
        assert!(answer.diagnostics.iter().any(|finding| finding.code == "max-size"));
        assert_eq!(answer.snapshot.unwrap().groups[0].max_size, 4);
        let error = bench.increase("asg-1", 2, 3, "k").unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Quota, "above-maximum"));
        assert_eq!(bench.calls("ScaleWithAdjustment"), 0);
        assert_eq!(bench.increase("asg-1", 1, 3, "k").unwrap().target_size, 4);
    }
}

#[test]
fn a_suspended_group_takes_no_orders() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![group(seed, 1)], &["0:20:asg-1"], seed);
        let orders = [
            Order::Suspend { group: "asg-1".into(), suspended: true },
            Order::Process { group: "asg-1".into(), process: "ScaleOut".into(), suspended: true },
            Order::State { group: "asg-1".into(), state: plimsoll_tests_clouds::alicloud::world::GroupState::Inactive },
        ];
        bench.human(&orders[(seed % 3) as usize]);
        let found = bench.group("asg-1");
        assert_eq!(found.status, GroupStatus::Suspended, "seed {seed}");
        let error = bench.increase("asg-1", 1, 1, "k").unwrap_err();
        assert_eq!(error.class, ErrorClass::Config, "seed {seed}: {error:?}");
        assert_eq!(bench.calls("ScaleWithAdjustment"), 0);
    }
}

#[test]
fn only_wishes_without_a_machine_are_given_up() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![group(seed, 2)], &["0:20:asg-1"], seed);
        let stock = |left| Order::Stock { zone: "cn-hangzhou-a".into(), instance_type: "ecs.g7.xlarge".into(), left };
        bench.human(&stock(Some(1)));
        bench.increase("asg-1", 3, 2, "k").unwrap();
        let mut lowered = 0;
        for round in 0..240 / step(seed) {
            let second = round * step(seed);
            let group = bench.group("asg-1");
            let missing = group.target_size.saturating_sub(group.instances.len() as u32);
            if missing > 0 && second > 20 {
                match bench.decrease("asg-1", missing, group.target_size) {
                    Ok(outcome) => {
                        lowered += outcome.accepted;
                        assert_eq!(bench.group("asg-1").target_size, 3, "seed {seed}");
                    }
                    Err(error) => assert_eq!(error.class, ErrorClass::Conflict, "seed {seed}: {error:?}"),
                }
            }
            bench.advance(step(seed));
        }
        let group = bench.group("asg-1");
        assert_eq!((group.target_size, group.instances.len()), (3, 3), "seed {seed}, {lowered} given up");
        let error = bench.decrease("asg-1", 1, 3);
        if seed % 8 < 4 {
            assert_eq!(error.unwrap_err().code, "below-existing", "seed {seed}");
        } else {
            assert_eq!(error.unwrap_err().code, "in-progress", "seed {seed}");
        }
        bench.clean(&format!("seed {seed}"));
    }
}
