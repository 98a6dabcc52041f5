//! Machines go by id, under both readings of what a deletion does to the pool.

use plimsoll_guest::{Deletability, DeleteStatus, ErrorClass, Provider};
use plimsoll_tests_clouds::utho::Order;
use plimsoll_tests_clouds::{Fault, Rule};

use super::bench::{Bench, POOL, add_pool, ids, under_all_seeds, under_seeds};

#[test]
fn a_count_that_follows_lets_the_pool_shrink() {
    under_seeds(
        6,
        |switches| switches.delete_recreates = false,
        |bench| {
            let victims = ids(&bench.instances()[..2]);
            let outcome = bench.delete(&victims, 6).unwrap();
            assert!(outcome.results.iter().all(|result| result.status == DeleteStatus::Accepted), "{outcome:?}");
            assert_eq!((outcome.target_size, bench.count(POOL)), (4, 4));
            bench.advance(120);
            assert_eq!(bench.group().target_size, 4);
            let more = ids(&bench.instances()[..1]);
            bench.delete(&more, 4).unwrap();
            bench.advance(300);
            assert_eq!((bench.count(POOL), bench.group().instances.len()), (3, 3));
            assert!(bench.instances().iter().all(|instance| instance.deletable == Deletability::Yes));
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_pool_that_recreates_is_found_out_and_left_alone() {
    under_seeds(
        6,
        |switches| switches.delete_recreates = true,
        |bench| {
            let victims = ids(&bench.instances()[..2]);
            bench.delete(&victims, 6).unwrap();
            bench.advance(60);
            let more = ids(&bench.instances()[2..3]);
            let target = bench.group().target_size;
            let early = bench.delete(&more, target).unwrap_err();
            assert_eq!((early.class, early.code.as_str()), (ErrorClass::Conflict, "deletion-unsettled"));

            bench.advance(240);
            let answer = bench.read().unwrap();
            assert!(answer.diagnostics.iter().any(|one| one.code == "pool-recreates-deleted-nodes"), "{answer:?}");
            let group = bench.group();
            assert_eq!(group.target_size, 6);
            assert!(group.instances.iter().all(|instance| matches!(instance.deletable, Deletability::No(_))));
            let more = ids(&group.instances[..1]);
            let error = bench.delete(&more, 6).unwrap_err();
            assert_eq!((error.class, error.code.as_str()), (ErrorClass::Other, "pool-recreates-deleted-nodes"));
            assert_eq!(bench.asked_to_leave().len(), 2);

            // It can still grow, and a smaller count gives deletions another chance.
            bench.grow(1, 6).unwrap();
            bench.advance(60);
            bench.obey(&Order::Count { pool: POOL.into(), count: 4 });
            bench.advance(300);
            assert!(bench.instances().iter().all(|instance| instance.deletable == Deletability::Yes));
            bench.assert_good_manners();
        },
    );
}

#[test]
fn every_id_gets_the_answer_that_it_deserves() {
    under_all_seeds(6, |bench| {
        let quirks = bench.cloud(|cloud| cloud.logic().quirks);
        bench.cloud(|cloud| cloud.with(|logic, _| add_pool(logic.world_mut(), "pool-b", (1, 5), 2, &quirks)));
        let groups = bench.groups();
        let mine = ids(&groups[0].instances);
        let foreign = ids(&groups[1].instances)[0].clone();
        bench.cloud(|cloud| {
            cloud.with(|logic, context| {
                let switches = logic.switches;
                let cause = plimsoll_tests_clouds::Cause::Human;
                logic.world_mut().delete(POOL, &mine[1], cause, &switches, context);
            });
        });
        let asked = [mine[0].clone(), mine[1].clone(), "../../1".to_owned(), foreign, mine[0].clone()];
        let target = bench.group().target_size;
        let outcome = bench.delete(&asked, target).unwrap();
        let statuses: Vec<_> = outcome.results.iter().map(|result| (result.id.as_str(), &result.status)).collect();
        assert_eq!(statuses.len(), 4, "{statuses:?}");
        assert_eq!(statuses[0], (mine[0].as_str(), &DeleteStatus::Accepted));
        assert_eq!(statuses[1], (mine[1].as_str(), &DeleteStatus::Accepted), "on its way out already");
        assert_eq!(statuses[2], ("../../1", &DeleteStatus::AlreadyGone));
        assert!(matches!(statuses[3].1, DeleteStatus::Failed(error) if error.code == "other-pool"), "{statuses:?}");
        assert_eq!(bench.asked_to_leave(), [mine[0].clone()]);
        bench.assert_good_manners();
    });
}

#[test]
fn one_failure_does_not_stop_the_others_but_a_throttle_does() {
    under_seeds(
        6,
        |switches| switches.delete_recreates = false,
        |bench| {
            let victims = ids(&bench.instances()[..3]);
            let boom = Fault::Error { status: 400, code: "x".into(), message: "Something else".into() };
            bench.fault(Rule::new("one", boom).on("delete").about(&victims[1]));
            let outcome = bench.delete(&victims, 6).unwrap();
            let failed: Vec<_> =
                outcome.results.iter().map(|one| matches!(one.status, DeleteStatus::Failed(_))).collect();
            assert_eq!(failed, [false, true, false]);
            assert_eq!(outcome.target_size, 4);
            bench.no_faults();

            bench.advance(120);
            let victims = ids(&bench.instances()[..3]);
            bench.fault(Rule::new("slow", Fault::Throttled { retry_after_s: Some(30) }).on("delete").skip(1));
            let outcome = bench.delete(&victims, 4).unwrap();
            let [first, second, third] = &outcome.results[..] else { panic!("three results") };
            assert_eq!(first.status, DeleteStatus::Accepted);
            let DeleteStatus::Failed(error) = &second.status else { panic!("{second:?}") };
            assert_eq!((error.class, error.retry_after_ms), (ErrorClass::Throttled, Some(30_000)));
            assert!(matches!(third.status, DeleteStatus::Skipped(_)), "{third:?}");
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_machine_that_goes_meanwhile_is_gone_already() {
    under_all_seeds(4, |bench| {
        let victims = ids(&bench.instances()[..1]);
        let id = victims[0].clone();
        bench.before_write(move |cloud| {
            cloud.with(|logic, _| logic.world_mut().pools.get_mut(POOL).unwrap().workers.remove(&id));
        });
        let outcome = bench.delete(&victims, 4).unwrap();
        assert_eq!(outcome.results[0].status, DeleteStatus::AlreadyGone);
    });
}

#[test]
fn a_failed_machine_can_be_deleted() {
    under_seeds(
        2,
        |switches| (switches.delete_recreates, switches.count_lag_ms) = (false, 0),
        |bench| {
            bench.obey(&Order::Failing { workers: 1 });
            bench.grow(1, 2).unwrap();
            bench.advance(200);
            let failed: Vec<_> = bench.instances().into_iter().filter(|instance| instance.error.is_some()).collect();
            assert_eq!(failed.len(), 1);
            assert_eq!(failed[0].state, plimsoll_guest::InstanceState::Failed);
            bench.delete(&ids(&failed), 3).unwrap();
            bench.advance(60);
            assert_eq!((bench.count(POOL), bench.instances().len()), (2, 2));
            bench.assert_good_manners();
        },
    );
}

#[test]
fn force_is_not_offered() {
    under_all_seeds(3, |bench: &mut Bench| {
        let victims = ids(&bench.instances()[..1]);
        let mut call = bench.deleting(&victims, 3);
        call.force = true;
        assert_eq!(bench.provider().delete_instances(call).unwrap_err().class, ErrorClass::Unsupported);
        assert!(bench.asked_to_leave().is_empty());
    });
}
