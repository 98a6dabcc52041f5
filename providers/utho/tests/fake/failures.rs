//! Everything that can go wrong on the way and in the cloud: the class that it gets, and that nothing happens twice.

use plimsoll_guest::{ErrorClass, ErrorScope, Provider};
use plimsoll_tests_clouds::utho::Order;
use plimsoll_tests_clouds::{Fault, Rule, Twist};
use rstest::rstest;

use super::bench::{Bench, POOL, ids, under_all_seeds, under_seeds};

fn error(status: u16, message: &str) -> Fault {
    Fault::Error { status, code: "injected".into(), message: message.into() }
}

/// Each row of the table of classes, as the cloud says it, for a read and for a write.
#[rstest]
#[case::unauthenticated(error(401, "Unauthorized access. Please provide a valid API key."), ErrorClass::Auth)]
#[case::forbidden(error(403, "no"), ErrorClass::Auth)]
#[case::unauthorized_in_200(error(200, "Unauthorized access. Please provide a valid API key."), ErrorClass::Auth)]
#[case::invalid_key_in_200(error(200, "Invalid API key"), ErrorClass::Auth)]
#[case::unpaid(error(402, "no"), ErrorClass::Billing)]
#[case::insufficient(error(200, "Insufficient funds"), ErrorClass::Billing)]
#[case::balance(error(400, "Low balance"), ErrorClass::Billing)]
#[case::credit(error(200, "No credit left"), ErrorClass::Billing)]
#[case::limit(error(200, "Server limit reached"), ErrorClass::Quota)]
#[case::quota(error(422, "Quota exceeded"), ErrorClass::Quota)]
#[case::stock(error(200, "Out of stock"), ErrorClass::OutOfResources)]
#[case::not_available(error(200, "Plan not available"), ErrorClass::OutOfResources)]
#[case::capacity(error(400, "No capacity"), ErrorClass::OutOfResources)]
#[case::throttled(Fault::Throttled { retry_after_s: Some(20) }, ErrorClass::Throttled)]
#[case::throttled_minute(Fault::ThrottledMinute, ErrorClass::Throttled)]
#[case::server(error(500, "boom"), ErrorClass::Transient)]
#[case::other(error(200, "Something else"), ErrorClass::Other)]
fn classes(#[case] fault: Fault, #[case] class: ErrorClass) {
    under_all_seeds(3, |bench| {
        let id = ids(&bench.instances()[..1]);
        bench.fault(Rule::new("all", fault.clone()).on("cluster"));
        let read = bench.read().unwrap_err();
        assert_eq!((read.class, read.outcome_unknown), (class, false), "{read:?}");
        assert!(bench.grow(1, 3).is_err() && bench.delete(&id, 3).is_err());
        bench.no_faults();

        bench.fault(Rule::new("write", fault.clone()).on("update"));
        let write = bench.grow(1, 3).unwrap_err();
        assert_eq!(write.class, class, "{write:?}");
        let wide = [ErrorClass::Auth, ErrorClass::Billing, ErrorClass::Throttled].contains(&class);
        let scope = if wide { ErrorScope::Provider } else { ErrorScope::Group(POOL.into()) };
        assert_eq!(write.scope, scope);
        assert_eq!(write.outcome_unknown, class == ErrorClass::Transient);
        assert_eq!(bench.journal(|journal| journal.writes().count()), 0, "nothing was written");
        bench.assert_good_manners();
    });
}

#[rstest]
#[case::missing(error(404, "gone"))]
#[case::not_found(error(200, "Node not found"))]
#[case::no_cluster(error(200, "Invalid Cluster ID"))]
fn what_is_missing(#[case] fault: Fault) {
    under_all_seeds(3, |bench| {
        bench.fault(Rule::new("all", fault.clone()).on("cluster"));
        assert_eq!(bench.read().unwrap_err().class, ErrorClass::Config, "no cluster: the operator has to look");
        bench.no_faults();
        bench.fault(Rule::new("all", fault.clone()).on("update"));
        let error = bench.grow(1, 3).unwrap_err();
        assert_eq!((error.class, error.scope), (ErrorClass::NotFound, ErrorScope::Group(POOL.into())));
    });
}

#[test]
fn a_wrong_token_is_an_auth_failure_and_changes_nothing() {
    under_all_seeds(3, |bench| {
        bench.set_token("stale");
        let id = vec!["1".to_owned()];
        for error in [bench.read().unwrap_err(), bench.grow(1, 3).unwrap_err(), bench.delete(&id, 3).unwrap_err()] {
            assert_eq!((error.class, &error.scope), (ErrorClass::Auth, &ErrorScope::Provider));
            assert!(error.message.contains("valid API key"), "the cloud's own words: {}", error.message);
        }
        let found = bench.provider().self_test();
        assert_eq!(found.len(), 1, "{found:?}");
        bench.set_token(plimsoll_tests_clouds::utho::TOKEN);
        assert!(bench.provider().self_test().is_empty());
    });
}

/// What hides or breaks an answer.
fn broken() -> Vec<(Fault, bool)> {
    vec![
        (Fault::Refused, false),
        (Fault::NoAddress, false),
        (Fault::WrongName, false),
        (Fault::Reset, false),
        (Fault::Reset, true),
        (Fault::SlowHead { ms: 31_000 }, true),
        (Fault::SlowBody { ms: 31_000 }, true),
        (Fault::HalfBody, true),
        (Fault::Html { status: 502 }, false),
        (Fault::Html { status: 503 }, true),
        (Fault::Html { status: 504 }, true),
        (Fault::Html { status: 200 }, true),
        (Fault::EmptyBody { status: 200 }, true),
        (Fault::EmptyBody { status: 500 }, false),
        (Fault::Oversized { bytes: 5 << 20 }, true),
        (Fault::Redirect { to: "https://elsewhere.example/".into() }, false),
    ]
}

fn rule(fault: &Fault, handled: bool, action: &str) -> Rule {
    let rule = Rule::new("broken", fault.clone()).on(action);
    if handled { rule.after_handling() } else { rule }
}

#[test]
fn a_broken_read_is_never_an_empty_cluster() {
    for (fault, handled) in broken() {
        under_all_seeds(3, |bench| {
            bench.fault(rule(&fault, handled, "cluster"));
            let error = bench.read().unwrap_err();
            let expected =
                if matches!(fault, Fault::Redirect { .. }) { ErrorClass::Other } else { ErrorClass::Transient };
            assert_eq!((error.class, error.outcome_unknown), (expected, false), "{fault:?}: {error:?}");
            let before = bench.journal(|journal| journal.writes().count());
            assert!(bench.grow(1, 3).is_err());
            assert!(bench.delete(&["1".to_owned()], 3).is_err());
            assert_eq!(bench.journal(|journal| journal.writes().count()), before);
            let hosts = bench.journal(|journal| journal.calls.iter().all(|call| call.host == "api.utho.com"));
            assert!(hosts, "a redirect is not followed");
        });
    }
}

#[test]
fn a_broken_answer_to_an_increase_leads_to_one_increase() {
    for (fault, handled) in broken() {
        under_all_seeds(3, |bench| {
            bench.fault(rule(&fault, handled, "update").times(1));
            let call = bench.growing(2, 3);
            match bench.provider().increase_size(call.clone()) {
                Ok(outcome) => assert_eq!((outcome.accepted, bench.count(POOL)), (2, 5), "{fault:?}"),
                Err(error) => {
                    let applied = bench.count(POOL) == 5;
                    assert!(!applied || error.outcome_unknown, "{fault:?}: {error:?}");
                }
            }
            bench.advance(20);
            bench.provider().increase_size(call).unwrap();
            bench.advance(60);
            assert_eq!((bench.count(POOL), bench.group().target_size), (5, 5), "{fault:?}");
            bench.assert_good_manners();
        });
    }
}

#[test]
fn a_smaller_wish_after_a_lost_answer_removes_nothing() {
    for stale in [false, true] {
        under_all_seeds(3, |bench| {
            bench.fault(Rule::new("lost", Fault::Reset).on("update").times(1).after_handling());
            bench.fault(Rule::new("blind", Fault::Refused).on("cluster").skip(1).times(1));
            if stale {
                bench.fault(Rule::new("stale", Fault::Twist { twist: Twist::StaleReads(60_000) }).on("cluster"));
            }
            assert!(bench.grow(4, 3).unwrap_err().outcome_unknown);
            let target = bench.group().target_size;
            if stale {
                assert_eq!(bench.grow(1, target).unwrap_err().code, "increase-unsettled");
            } else {
                assert_eq!(bench.grow(1, target).unwrap().target_size, 8);
            }
            assert!(bench.count(POOL) >= 7);
            bench.assert_good_manners();
        });
    }
}

#[test]
fn a_broken_answer_to_a_deletion_leads_to_one_deletion() {
    for (fault, handled) in broken() {
        under_seeds(
            5,
            |switches| switches.delete_recreates = false,
            |bench| {
                bench.fault(rule(&fault, handled, "delete").times(1));
                let victims = ids(&bench.instances()[..1]);
                let call = bench.deleting(&victims, 5);
                let first = bench.provider().delete_instances(call.clone()).unwrap();
                let gone = !bench.asked_to_leave().is_empty();
                let plimsoll_guest::DeleteStatus::Failed(error) = &first.results[0].status else { panic!("{first:?}") };
                assert!(!gone || error.outcome_unknown, "{fault:?}: {error:?}");
                bench.advance(60);
                bench.provider().delete_instances(call).unwrap();
                bench.advance(300);
                assert_eq!(bench.asked_to_leave(), victims);
                assert_eq!((bench.count(POOL), bench.group().target_size), (4, 4), "{fault:?}");
                bench.assert_good_manners();
            },
        );
    }
}

#[test]
fn slow_and_dripping_answers_within_the_time_are_good() {
    for fault in [Fault::ByteByByte, Fault::SlowHead { ms: 20_000 }, Fault::SlowBody { ms: 20_000 }] {
        under_all_seeds(3, |bench| {
            bench.fault(Rule::new("slow", fault.clone()));
            assert_eq!(bench.group().target_size, 3);
            bench.grow(1, 3).unwrap();
        });
    }
}

#[test]
fn a_throttled_minute_costs_one_call_and_keeps_the_pool() {
    under_all_seeds(5, |bench| {
        let victims = ids(&bench.instances()[..3]);
        bench.once("delete", Fault::ThrottledMinute);
        let before = bench.journal(|journal| journal.count("delete"));
        bench.delete(&victims, 5).unwrap();
        assert_eq!(bench.journal(|journal| journal.count("delete")), before + 1);
        assert!(bench.asked_to_leave().is_empty());
    });
}

#[test]
fn stale_reads_do_not_lead_to_a_smaller_count() {
    under_all_seeds(3, |bench| {
        bench.fault(Rule::new("stale", Fault::Twist { twist: Twist::StaleReads(20_000) }).on("cluster"));
        bench.grow(3, 3).unwrap();
        bench.advance(5);
        assert_eq!(bench.group().target_size, 6, "accepted, though reads are stale");
        bench.grow(1, 6).unwrap();
        bench.advance(60);
        assert_eq!((bench.count(POOL), bench.group().target_size), (7, 7));
        bench.assert_good_manners();
    });
}

fn refused(bench: &mut Bench, order: &Order, class: ErrorClass) {
    bench.obey(order);
    let error = bench.grow(3, 3).unwrap_err();
    assert_eq!((error.class, error.outcome_unknown), (class, false), "{error:?}");
    assert_eq!(bench.count(POOL), 3);
}

#[test]
fn stock_quota_and_balance_are_told_apart_and_come_back() {
    let stock = |left| Order::Stock { plan: "10045".into(), left };
    under_seeds(
        3,
        |switches| switches.stock_checked_late = false,
        |bench| {
            refused(bench, &stock(Some(0)), ErrorClass::OutOfResources);
            refused(bench, &stock(Some(2)), ErrorClass::OutOfResources);
            bench.obey(&stock(None));
            refused(bench, &Order::Quota { workers: Some(4) }, ErrorClass::Quota);
            bench.obey(&Order::Quota { workers: None });
            refused(bench, &Order::Arrears { on: true }, ErrorClass::Billing);
            bench.obey(&Order::Arrears { on: false });
            bench.grow(3, 3).unwrap();
            assert_eq!(bench.count(POOL), 6);
            bench.assert_good_manners();
        },
    );
}

#[test]
fn a_count_without_machines_is_told_as_it_is() {
    under_seeds(
        3,
        |switches| (switches.stock_checked_late, switches.count_lag_ms) = (true, 0),
        |bench| {
            bench.obey(&Order::Stock { plan: "10045".into(), left: Some(1) });
            bench.grow(3, 3).unwrap();
            bench.advance(300);
            let group = bench.group();
            assert_eq!((group.target_size, group.instances.len()), (6, 4));
            let value = |key: &str| group.attributes.iter().find(|one| one.key == key).unwrap().value.as_str();
            assert_eq!((value("utho-count"), value("utho-workers")), ("6", "4"));
        },
    );
}
