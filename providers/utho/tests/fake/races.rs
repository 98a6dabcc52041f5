//! People change things at the same time.

use plimsoll_guest::ErrorClass;
use plimsoll_tests_clouds::utho::Order;

use super::bench::{POOL, add_pool, ids, under_all_seeds, under_seeds};

#[test]
fn a_human_who_was_faster_wins() {
    for count in [3, 7] {
        under_seeds(
            5,
            |switches| switches.count_lag_ms = 0,
            |bench| {
                let seen = bench.group().target_size;
                bench.obey(&Order::Count { pool: POOL.into(), count });
                let error = bench.grow(1, seen).unwrap_err();
                assert_eq!((error.class, error.code.as_str()), (ErrorClass::Conflict, "stale-target"));
                assert_eq!(bench.count(POOL), count, "the human's size stands");
                bench.assert_good_manners();
            },
        );
    }
}

#[test]
fn a_human_who_raises_is_seen_by_the_machines_even_if_the_count_lags() {
    under_seeds(
        3,
        |switches| switches.count_lag_ms = 45_000,
        |bench| {
            bench.obey(&Order::Count { pool: POOL.into(), count: 6 });
            assert_eq!(bench.grow(1, 3).unwrap_err().class, ErrorClass::Conflict);
            assert_eq!(bench.group().target_size, 6);
            bench.grow(1, 6).unwrap();
            assert_eq!(bench.count(POOL), 7);
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_human_who_lowers_takes_deletions_off_the_table() {
    under_seeds(
        6,
        |switches| switches.count_lag_ms = 0,
        |bench| {
            let victims = ids(&bench.instances()[..2]);
            bench.obey(&Order::Count { pool: POOL.into(), count: 3 });
            let staying: Vec<_> = bench
                .instances()
                .into_iter()
                .filter(|instance| instance.state == plimsoll_guest::InstanceState::Running)
                .collect();
            let still = victims.iter().filter(|id| staying.iter().any(|one| one.id == **id)).count();
            match bench.delete(&victims, 6) {
                // Some of the human's three were ours to delete: then fewer are missing than the host counted on.
                Err(error) => assert_eq!(error.code, "stale-target"),
                Ok(_) => {
                    panic!("{still} of our machines were left, and the pool is three smaller than the host believes")
                }
            }
            assert!(bench.asked_to_leave().is_empty());
            assert_eq!(bench.count(POOL), 3);
        },
    );
}

#[test]
fn after_our_write_a_human_may_lower_at_once() {
    under_seeds(
        3,
        |switches| switches.count_lag_ms = 0,
        |bench| {
            bench.grow(3, 3).unwrap();
            bench.obey(&Order::Count { pool: POOL.into(), count: 4 });
            bench.advance(60);
            assert_eq!(bench.group().target_size, 4, "an accepted wish does not outlive another count");
            bench.grow(1, 4).unwrap();
            assert_eq!(bench.count(POOL), 5);
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_human_lowers_between_our_read_and_our_write_of_a_deletion() {
    under_seeds(
        6,
        |switches| (switches.count_lag_ms, switches.delete_recreates) = (0, false),
        |bench| {
            let victims = ids(&bench.instances()[..1]);
            bench.before_write(|cloud| {
                let order = Order::Count { pool: POOL.into(), count: 4 };
                cloud.with(|logic, context| logic.obey(&order, context)).unwrap();
            });
            let outcome = bench.delete(&victims, 6).unwrap();
            // Deleting by id is relative, so the human's size stands, less the machine if it was still there.
            assert!([3, 4].contains(&bench.count(POOL)), "{}", bench.count(POOL));
            bench.advance(60);
            assert!(outcome.target_size >= bench.count(POOL));
            assert_eq!(bench.group().target_size, bench.count(POOL));
        },
    );
}

#[test]
fn a_pool_that_a_human_removes_is_gone_and_the_others_stay() {
    under_all_seeds(3, |bench| {
        let quirks = bench.cloud(|cloud| cloud.logic().quirks);
        bench.cloud(|cloud| cloud.with(|logic, _| add_pool(logic.world_mut(), "pool-b", (1, 5), 2, &quirks)));
        let victims = ids(&bench.instances()[..1]);
        bench.obey(&Order::Count { pool: POOL.into(), count: 0 });
        for error in [bench.grow(1, 3).unwrap_err(), bench.delete(&victims, 3).unwrap_err()] {
            assert_eq!((error.class, error.code.as_str()), (ErrorClass::NotFound, "pool-not-found"));
        }
        let answer = bench.read().unwrap();
        let snapshot = answer.snapshot.unwrap();
        assert!(snapshot.complete);
        assert_eq!(snapshot.groups.iter().map(|group| group.id.as_str()).collect::<Vec<_>>(), ["pool-b"]);

        // The last pool goes: an empty map, which comes as a list from some back ends.
        bench.obey(&Order::Count { pool: "pool-b".into(), count: 0 });
        let snapshot = bench.read().unwrap().snapshot.unwrap();
        assert!(snapshot.complete && snapshot.groups.is_empty());
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0);
    });
}

#[test]
fn a_pool_removed_between_read_and_write_is_not_found() {
    under_all_seeds(3, |bench| {
        bench.before_write(|cloud| {
            let order = Order::Count { pool: POOL.into(), count: 0 };
            cloud.with(|logic, context| logic.obey(&order, context)).unwrap();
        });
        let error = bench.grow(1, 3).unwrap_err();
        assert_eq!((error.class, error.outcome_unknown), (ErrorClass::NotFound, false));
        assert_eq!(error.scope, plimsoll_guest::ErrorScope::Group(POOL.into()));
    });
}

#[test]
fn a_pool_taken_off_automatic_scaling_is_left_alone() {
    under_all_seeds(3, |bench| {
        bench.obey(&Order::AutoScale { pool: POOL.into(), on: false });
        assert!(bench.groups().is_empty());
        assert_eq!(bench.grow(1, 3).unwrap_err().code, "not-managed");
        bench.configure(|setup| setup.node_groups = vec![format!("1:4:{POOL}"), "1:4:pool-z".into()]);
        let answer = bench.read().unwrap();
        assert!(answer.diagnostics.iter().any(|one| one.code == "pool-not-found"), "{answer:?}");
        assert_eq!(bench.group().max_size, 4);
        bench.grow(1, 3).unwrap();
        assert_eq!(bench.count(POOL), 4);
        bench.assert_good_manners();
    });
}

#[test]
fn a_human_who_deletes_a_machine_gets_another() {
    under_all_seeds(3, |bench| {
        let worker = bench.instances()[0].id.clone();
        bench.obey(&Order::DeleteWorker { pool: POOL.into(), worker: worker.clone() });
        bench.advance(400);
        let group = bench.group();
        assert_eq!((group.target_size, group.instances.len()), (3, 3));
        assert!(!ids(&group.instances).contains(&worker));
        bench.assert_good_manners();
    });
}

#[test]
fn limits_of_the_command_line_stay_within_those_of_utho() {
    under_all_seeds(3, |bench| {
        bench.configure(|setup| setup.node_groups = vec![format!("0:50:{POOL}")]);
        let group = bench.group();
        assert_eq!((group.min_size, group.max_size), (1, 10));
        bench.configure(|setup| setup.node_groups = vec![format!("20:50:{POOL}")]);
        let group = bench.group();
        assert_eq!(group.error.unwrap().code, "no-limits");
        assert!(group.min_size <= group.max_size);
        assert_eq!(bench.grow(1, 3).unwrap_err().code, "no-limits");
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0);
    });
}
