//! Some seeds of the fault simulation; `make soak` plays many more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic")]

use std::path::Path;

use plimsoll_tests_simulation::{Components, Invariant, Story, play};

const SEEDS: u64 = 50;
/// Fewer than a whole day: this is a build for debugging.
const HOURS: u64 = 8;
/// Seeds that show a defect which is not mended yet, and what they break. One that breaks it no more has to go from here.
const KNOWN: [(u64, Invariant); 1] = [(2, Invariant::WishesAreTakenBack)];

fn play_some(first: u64) {
    let components = Components::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak")).unwrap();
    for seed in (first..SEEDS).step_by(2) {
        let known = KNOWN.into_iter().find_map(|(known, invariant)| (known == seed).then_some(invariant));
        match (play(&components, &Story::draw(seed, HOURS), None).unwrap(), known) {
            (Ok(_), None) => {}
            (Ok(_), Some(invariant)) => panic!("seed {seed} does not break {invariant:?} any more: take it from KNOWN"),
            (Err(violation), Some(invariant)) if violation.invariant == invariant => {}
            (Err(violation), _) => panic!("seed {seed}: {violation}\nreplay: soak --seed {seed} --hours {HOURS}"),
        }
    }
}

#[test]
fn even_seeds_break_nothing() {
    play_some(0);
}

#[test]
fn odd_seeds_break_nothing() {
    play_some(1);
}

#[test]
fn a_seed_always_plays_the_same() {
    let components = Components::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak")).unwrap();
    let scenario = Story::draw(7, HOURS);
    let report = |_| play(&components, &scenario, None).unwrap().unwrap();
    let (one, other) = (report(0), report(1));
    assert_eq!(one, other);
    assert!(one.increases > 0 && one.deletions > 0);
}
