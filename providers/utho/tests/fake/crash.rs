//! The component dies at each request, before it is sent or after the cloud handled it; then the host goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plimsoll_guest::{DeleteStatus, ErrorClass, Provider};

use super::bench::{Bench, POOL, ids, under_all_seeds, under_seeds};

/// More requests than any call makes.
const BOUNDARIES: usize = 4;

/// Whether the call died.
fn dies(bench: &mut Bench, at: usize, after: bool, act: impl Fn(&mut Bench)) -> bool {
    bench.crash(at, after);
    let died = catch_unwind(AssertUnwindSafe(|| act(bench))).is_err();
    bench.restart();
    died
}

fn boundaries() -> impl Iterator<Item = (usize, bool)> {
    (0..BOUNDARIES).flat_map(|at| [(at, false), (at, true)])
}

#[test]
fn an_increase_with_the_same_key_has_one_effect() {
    let mut deaths = 0;
    for (at, after) in boundaries() {
        let died = std::cell::Cell::new(0);
        under_all_seeds(3, |bench| {
            let call = bench.growing(2, 3);
            let again = call.clone();
            died.set(
                died.get()
                    + u32::from(dies(bench, at, after, move |bench| {
                        let _ = bench.provider().increase_size(call.clone());
                    })),
            );
            bench.advance(20);
            let outcome = bench.provider().increase_size(again).unwrap();
            assert_eq!((outcome.accepted, outcome.target_size), (2, 5));
            bench.advance(60);
            assert_eq!((bench.count(POOL), bench.group().target_size), (5, 5));
            bench.assert_good_manners();
        });
        deaths += died.get();
    }
    assert!(deaths >= 400, "the read and the write, before and after, under every seed: {deaths}");
}

#[test]
fn an_increase_converges_when_the_host_forgot_it_too() {
    for (at, after) in boundaries() {
        under_all_seeds(3, |bench| {
            let call = bench.growing(2, 3);
            dies(bench, at, after, move |bench| {
                let _ = bench.provider().increase_size(call.clone());
            });
            bench.restart_host();
            // A new host wants five machines, and goes by what it reads.
            for _ in 0..5 {
                let target = bench.group().target_size;
                if target < 5 {
                    bench.grow(5 - target, target).unwrap();
                }
                bench.advance(30);
            }
            assert_eq!((bench.count(POOL), bench.group().target_size), (5, 5));
            bench.assert_good_manners();
        });
    }
}

#[test]
fn a_deletion_is_neither_lost_nor_doubled() {
    for (at, after) in boundaries() {
        under_seeds(
            5,
            |switches| switches.delete_recreates = false,
            |bench| {
                let victims = ids(&bench.instances()[..2]);
                let call = bench.deleting(&victims, 5);
                let again = call.clone();
                dies(bench, at, after, move |bench| {
                    let _ = bench.provider().delete_instances(call.clone());
                });
                // The count may still lag behind the deletion that went through.
                let mut answer = bench.provider().delete_instances(again.clone());
                for _ in 0..10 {
                    let done =
                        |status: &DeleteStatus| matches!(status, DeleteStatus::Accepted | DeleteStatus::AlreadyGone);
                    match &answer {
                        Ok(outcome) if outcome.results.iter().all(|result| done(&result.status)) => break,
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.class, ErrorClass::Conflict),
                    }
                    bench.advance(60);
                    answer = bench.provider().delete_instances(again.clone());
                }
                answer.unwrap();
                bench.advance(300);
                let mut left = bench.asked_to_leave();
                left.sort();
                assert_eq!(left, victims);
                assert_eq!((bench.count(POOL), bench.group().target_size), (3, 3));
                bench.assert_good_manners();
            },
        );
    }
}

#[test]
fn a_read_can_be_repeated() {
    for (at, after) in boundaries() {
        under_all_seeds(3, |bench| {
            dies(bench, at, after, |bench| {
                let _ = bench.read();
            });
            assert_eq!(bench.group().target_size, 3);
        });
    }
}
