//! Machines that go by name.

use plimsoll_guest::{Deletability, DeleteOutcome, DeleteStatus, ErrorClass};
use plimsoll_tests_clouds::Cloud;
use plimsoll_tests_clouds::Happening;
use plimsoll_tests_clouds::alicloud::{Group, Mark, Order};
use rstest::rstest;

use crate::bench::{Bench, REGION, SEEDS};

fn machines(bench: &mut Bench, group: &str) -> Vec<String> {
    bench.group(group).instances.into_iter().map(|instance| instance.id).collect()
}

fn accepted(outcome: &DeleteOutcome) -> usize {
    outcome.results.iter().filter(|result| result.status == DeleteStatus::Accepted).count()
}

#[rstest]
#[case(1)]
#[case(20)]
#[case(21)]
#[case(45)]
fn any_number_goes_twenty_at_a_time(#[case] count: usize) {
    for seed in SEEDS {
        let group = Group::new("asg-1", 0, 100).running(50);
        let group = if seed % 8 < 4 { group.desiring(50) } else { group };
        let mut bench = Bench::new(vec![group], &["0:100:asg-1"], seed);
        let all = machines(&mut bench, "asg-1");
        let going = &all[..count];
        let mut rounds = 0;
        loop {
            let outcome = bench.delete("asg-1", going, 0, &format!("k{rounds}")).unwrap();
            assert_eq!(outcome.results.len(), count);
            for result in &outcome.results {
                match &result.status {
                    DeleteStatus::Accepted | DeleteStatus::AlreadyGone | DeleteStatus::Skipped(_) => {}
                    DeleteStatus::Failed(error) => {
                        assert_eq!(error.class, ErrorClass::Conflict, "seed {seed}: {error:?}")
                    }
                }
            }
            rounds += 1;
            bench.advance(70);
            if machines(&mut bench, "asg-1").len() == 50 - count {
                break;
            }
            assert!(rounds < 6, "seed {seed}: it does not end");
        }
        bench.advance(200);
        let group = bench.group("asg-1");
        assert_eq!((group.instances.len(), group.target_size as usize), (50 - count, 50 - count), "seed {seed}");
        assert!(going.iter().all(|id| group.instances.iter().all(|instance| instance.id != *id)));
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn the_least_size_is_kept() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 2, 100).desiring(5).running(5)], &["1:100:asg-1"], seed);
        let all = machines(&mut bench, "asg-1");
        // The greatest of the host's, the operator's and the cloud's least size.
        let host = (seed % 3) as u32 + 2;
        let outcome = bench.delete("asg-1", &all, host, "k").unwrap();
        assert_eq!(accepted(&outcome), 5 - host as usize, "seed {seed}: {outcome:?}");
        let refused = outcome
            .results
            .iter()
            .filter(|result| matches!(&result.status, DeleteStatus::Failed(error) if error.code == "below-minimum"));
        assert_eq!(refused.count(), host as usize);
        bench.advance(300);
        assert_eq!(machines(&mut bench, "asg-1").len(), host as usize, "seed {seed}");
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn each_machine_gets_its_own_answer() {
    for seed in SEEDS {
        let groups = vec![
            Group::new("asg-1", 0, 100).desiring(5).running(5),
            Group::new("asg-2", 0, 100).desiring(2).running(2),
        ];
        let mut bench = Bench::new(groups, &["0:100:asg-1", "0:100:asg-2"], seed);
        let (ours, foreign) = (machines(&mut bench, "asg-1"), machines(&mut bench, "asg-2").remove(0));
        bench.human(&Order::Mark { machine: ours[4].clone(), mark: Mark::Protected });
        let leaving = ours[0].clone();
        bench.delete("asg-1", std::slice::from_ref(&leaving), 0, "first").unwrap();
        bench.human(&Order::Hang { group: "asg-1".into(), hangs: false });
        let asked = [
            leaving,
            "i-bp1neverwas".to_owned(),
            foreign.clone(),
            format!("alicloud://{REGION}.{}", ours[1]),
            ours[4].clone(),
            "ack-hybrid://node-1".to_owned(),
        ];
        let outcome = bench.delete("asg-1", &asked, 0, "second").unwrap();
        let status = |index: usize| &outcome.results[index].status;
        assert_eq!(status(0), &DeleteStatus::Accepted, "seed {seed}: it is going already");
        assert_eq!(status(1), &DeleteStatus::AlreadyGone);
        assert!(matches!(status(2), DeleteStatus::Failed(error) if error.code == "other-group"), "{:?}", status(2));
        assert!(matches!(status(4), DeleteStatus::Failed(error) if error.code == "not-deletable"));
        assert!(matches!(status(5), DeleteStatus::Failed(error) if error.code == "other-group"));
        match status(3) {
            DeleteStatus::Accepted => {}
            DeleteStatus::Failed(error) => {
                // The first removal still runs; later it works.
                assert_eq!((error.class, error.retry_after_ms), (ErrorClass::Conflict, Some(10_000)), "seed {seed}");
                let later = (0..6).any(|_| {
                    bench.advance(70);
                    accepted(&bench.delete("asg-1", &asked[3..4], 0, "third").unwrap()) == 1
                });
                assert!(later, "seed {seed}: it is never taken");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        bench.advance(70);
        // A cloud that does not count the protected one makes another in its place.
        let counted = bench.world.borrow().logic().kept.world.probes.protected_and_standby_count;
        let left = machines(&mut bench, "asg-1").len();
        assert!(left == 3 || (left > 3 && !counted), "seed {seed}: {left}");
        assert!(machines(&mut bench, "asg-2").contains(&foreign));
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn what_is_not_released_is_not_given_up() {
    for seed in SEEDS {
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 100).desiring(1).running(1)], &["0:100:asg-1"], seed);
        for (entrusted, prepaid) in [(false, false), (true, false), (true, true)] {
            bench.human(&Order::Attach { group: "asg-1".into(), entrusted, prepaid });
        }
        let group = bench.group("asg-1");
        let held: Vec<_> = group.instances.iter().filter(|instance| instance.deletable != Deletability::Yes).collect();
        assert_eq!((group.instances.len(), held.len()), (4, 2), "seed {seed}: {held:?}");
        let all: Vec<_> = group.instances.iter().map(|instance| instance.id.clone()).collect();
        let held: Vec<_> = held.into_iter().map(|instance| instance.id.clone()).collect();
        assert_eq!(accepted(&bench.delete("asg-1", &all, 0, "k").unwrap()), 2);
        bench.advance(200);
        let left = machines(&mut bench, "asg-1");
        assert!(held.iter().all(|id| left.contains(id)), "seed {seed}");
        let asked_again = bench.calls("DescribeInstances");
        assert_eq!(asked_again, 1, "charge types are asked once");
        let events = bench.world.borrow().journal().events.clone();
        assert!(events.iter().all(|event| event.what != Happening::Gone || !held.contains(&event.subject)));
    }
}
