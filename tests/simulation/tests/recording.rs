//! A recording of a fault test is its report: run again, every loop decides the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic")]

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_recording::{Recorder, Recording, replay};
use plimsoll_tests_simulation::{Components, Story, play_recorded};

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn recorded_fault_tests_decide_the_same_again() {
    let components = Components::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak")).unwrap();
    let (mut loops, mut answers, mut unfinished) = (0, 0, 0);
    for seed in [3, 7, 12, 21] {
        let file = Shared::default();
        let recorder = Recorder::begin(Box::new(file.clone())).unwrap();
        let played = play_recorded(&components, &Story::draw(seed, 8), None, Some(recorder)).unwrap().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        let mut recording = Recording::open(bytes.as_slice()).unwrap();
        let mut count = 0;
        while let Some(replayed) = replay::again(&mut recording).unwrap() {
            assert_eq!(replayed.differences, [], "seed {seed}, loop {}", replayed.number);
            count += 1;
            answers += replayed.steps.len();
            unfinished += u64::from(replayed.unfinished);
        }
        assert!(count <= played.loops && count + played.kills >= played.loops, "{count} of {}", played.loops);
        assert!(bytes.len() as u64 / count < 10_000, "{} bytes for {count} loops", bytes.len());
        loops += count;
    }
    assert!(loops > 500 && answers > 100 && unfinished > 0, "{loops} loops, {answers} answers, {unfinished} ends");
}
