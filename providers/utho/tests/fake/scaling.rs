//! Growing, shrinking, and what is seen of it.

use plimsoll_guest::{ErrorClass, InstanceState, Provider, RefreshRequest};
use plimsoll_tests_clouds::Journal;

use super::bench::{Bench, POOL, ids, under_all_seeds, under_seeds};

fn running(bench: &mut Bench) -> usize {
    bench.instances().iter().filter(|instance| instance.state == InstanceState::Running).count()
}

#[test]
fn from_one_to_many_and_back() {
    under_seeds(
        1,
        |switches| switches.delete_recreates = false,
        |bench| {
            let group = bench.group();
            assert_eq!((group.min_size, group.max_size, group.target_size), (1, 10, 1));
            let outcome = bench.grow(4, 1).unwrap();
            assert_eq!((outcome.accepted, outcome.target_size, outcome.confirmed), (4, 5, false));
            assert_eq!(bench.count(POOL), 5);
            for _ in 0..4 {
                bench.advance(45);
                assert_eq!(bench.group().target_size, 5, "at every time");
            }
            assert_eq!(running(bench), 5);

            let victims = ids(&bench.instances()[1..]);
            let outcome = bench.delete(&victims, 5).unwrap();
            assert_eq!((outcome.target_size, outcome.results.len()), (1, 4));
            bench.advance(240);
            let group = bench.group();
            assert_eq!((group.target_size, group.instances.len()), (1, 1));
            let mut left = bench.asked_to_leave();
            left.sort();
            assert_eq!(left, victims);
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_pool_is_never_taken_below_one_machine_or_its_least_size() {
    under_all_seeds(2, |bench| {
        let all = ids(&bench.instances());
        let outcome = bench.delete(&all, 2).unwrap();
        let skipped =
            outcome.results.iter().filter(|result| format!("{:?}", result.status).contains("Skipped")).count();
        assert_eq!((skipped, bench.asked_to_leave().len()), (1, 1));
        bench.advance(600);
        let rest = ids(&bench.instances());
        let target = bench.group().target_size;
        let _ = bench.delete(&rest, target);
        assert!(bench.count(POOL) >= 1);
        bench.advance(600);
        assert!(bench.staying(POOL) >= 1);
        bench.assert_good_manners();
    });
}

#[test]
fn a_least_size_of_zero_counts_as_one() {
    under_all_seeds(1, |bench| {
        bench.configure(|setup| setup.node_groups = vec![format!("0:3:{POOL}")]);
        let group = bench.group();
        assert_eq!((group.min_size, group.max_size), (1, 3));
        let all = ids(&group.instances);
        bench.delete(&all, 1).unwrap();
        assert!(bench.asked_to_leave().is_empty());
    });
}

#[test]
fn no_more_than_the_greatest_size() {
    under_all_seeds(8, |bench| {
        let error = bench.grow(3, 8).unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Quota, "max-size"));
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0);
        bench.grow(2, 8).unwrap();
        assert_eq!(bench.count(POOL), 10);
        bench.assert_good_manners();
    });
}

#[test]
fn a_count_that_shows_late_is_no_failure_and_not_asked_for_twice() {
    under_seeds(
        3,
        |switches| switches.count_lag_ms = 45_000,
        |bench| {
            bench.grow(2, 3).unwrap();
            assert_eq!(bench.group().target_size, 5, "accepted, though it does not show");
            bench.grow(1, 5).unwrap();
            assert_eq!(bench.count(POOL), 6);
            assert_eq!(bench.grow(1, 3).unwrap_err().class, ErrorClass::Conflict);
            bench.advance(60);
            assert_eq!(bench.group().target_size, 6);
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_repeated_key_has_no_second_effect() {
    under_all_seeds(3, |bench| {
        let call = bench.growing(2, 3);
        for pause in [0, 10, 60, 600] {
            bench.advance(pause);
            let outcome = bench.provider().increase_size(call.clone()).unwrap();
            assert_eq!((outcome.accepted, bench.count(POOL)), (2, 5));
        }
        bench.assert_good_manners();
    });
}

#[test]
fn one_read_makes_a_snapshot() {
    under_all_seeds(3, |bench| {
        let before = bench.sent();
        let answer = bench.read().unwrap();
        assert_eq!(bench.sent(), before + 1);
        assert!(answer.snapshot.unwrap().complete);
        let again = RefreshRequest {
            previous_revision: Some(answer.revision.clone()),
            nodes: bench.hints(),
            ..RefreshRequest::everything()
        };
        assert_eq!(bench.provider().refresh(again.clone()).unwrap().snapshot, None, "nothing changed");
        bench.grow(1, 3).unwrap();
        bench.advance(60);
        assert!(bench.provider().refresh(again).unwrap().snapshot.is_some());
        let part = RefreshRequest { only_groups: vec!["other".into()], ..RefreshRequest::everything() };
        let part = bench.provider().refresh(part).unwrap();
        assert!(!part.snapshot.unwrap().complete);
        assert_ne!(part.revision, answer.revision);
    });
}

#[test]
fn templates_are_known_with_and_without_machines_to_look_at() {
    under_all_seeds(1, |bench| {
        let version = bench.group().template_version;
        let template = bench.provider().templates(vec![POOL.into(), "pool-z".into()]).unwrap();
        assert_eq!(template[1].error.as_ref().unwrap().class, ErrorClass::NotFound);
        assert_eq!(template[0].version, version);
        let node = &template[0].templates[0];
        let amount = |name: &str| node.capacity.iter().find(|one| one.name == name).unwrap().amount.as_str();
        assert_eq!((amount("cpu"), amount("memory"), amount("pods")), ("2", "4096Mi", "110"));
        assert_eq!((node.instance_type.as_str(), node.region.as_str()), ("10045", "inmumbaizone2"));
        assert!(node.zone.is_none() && !node.labels.iter().any(|label| label.key == "node_id"));
    });
    under_all_seeds(1, |bench| {
        // Another plan, of which no machine exists.
        bench.cloud(|cloud| {
            cloud.with(|logic, _| {
                let pool = logic.world_mut().pools.get_mut(POOL).unwrap();
                pool.plan = "10215".into();
                pool.workers.clear();
            });
        });
        let version = bench.group().template_version;
        let answer = bench.provider().templates(vec![POOL.into()]).unwrap();
        let node = &answer[0].templates[0];
        assert_eq!((node.capacity[0].amount.as_str(), node.instance_type.as_str()), ("8", "10215"));
        assert_eq!(answer[0].version, version);
        assert_eq!(bench.journal(|journal: &Journal| journal.count("plans")), 1);
    });
}

#[test]
fn an_atomic_increase_and_a_lower_target_are_not_offered() {
    under_all_seeds(3, |bench| {
        let mut call = bench.growing(2, 3);
        call.atomic = true;
        assert_eq!(bench.provider().increase_size(call).unwrap_err().class, ErrorClass::Unsupported);
        let options = plimsoll_guest::CallOptions::with_key("k");
        let call = plimsoll_guest::Decrease { group: POOL.into(), delta: 1, expected_target: 3, options };
        assert_eq!(bench.provider().decrease_target(call).unwrap_err().class, ErrorClass::Unsupported);
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0);
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    under_all_seeds(3, |bench| {
        let mut call = bench.growing(2, 3);
        call.options.dry_run = true;
        assert_eq!(bench.provider().increase_size(call).unwrap().accepted, 2);
        let victims = ids(&bench.instances()[..1]);
        let mut call = bench.deleting(&victims, 3);
        call.options.dry_run = true;
        assert_eq!(bench.provider().delete_instances(call).unwrap().target_size, 3);
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0);
    });
}
