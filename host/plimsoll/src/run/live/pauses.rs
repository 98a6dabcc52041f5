//! When the next loop begins.

use std::time::Duration;

use plimsoll_core::Memory;
use plimsoll_core::memory::Stage;
use plimsoll_model::Time;

/// So long is always between two loops, so that pods that come together are seen together.
const LEAST: Duration = Duration::from_millis(250);

/// When loops began, and how long is waited between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    scan_interval: Duration,
    frequent: bool,
    /// How long a marked node settles.
    settling: Duration,
    /// When the last loop began, and the one before.
    begun: [Option<Time>; 2],
}

/// What ends a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pause {
    /// At the latest after this long.
    pub(super) longest: Duration,
    /// Not before this long.
    pub(super) least: Duration,
    /// Whether a pod that fits nowhere ends it.
    pub(super) by_pods: bool,
}

impl Pauses {
    pub(super) fn new(scan_interval: Duration, frequent: bool, settling: Duration) -> Self {
        Self { scan_interval, frequent, settling, begun: [None; 2] }
    }

    /// A loop begins.
    pub(super) fn begin(&mut self, at: Time) {
        self.begun = [Some(at), self.begun[0]];
    }

    /// What ends the pause after it. Two loops follow a productive one at once: what came of it is looked at against the
    /// beginning of the loop before the last (the peer's rule).
    pub(super) fn next(&self, memory: &Memory) -> Pause {
        let least = LEAST.min(self.scan_interval);
        let whole = Pause { longest: self.scan_interval, least, by_pods: self.frequent };
        if !self.frequent {
            return Pause { least: self.scan_interval, ..whole };
        }
        let productive = [memory.last_scale_up_ms, memory.last_scale_down_ms].into_iter().flatten().max();
        let is_recent = match (productive, self.begun) {
            (Some(productive), [_, Some(older)]) => productive >= older.millis(),
            (Some(productive), [Some(only), None]) => productive >= only.millis(),
            _ => false,
        };
        if is_recent {
            return Pause { longest: least, ..whole };
        }
        // A node that settles is looked at when it has.
        let settles = memory.removals.values().any(|removal| matches!(removal.stage, Stage::Settling(_)));
        if settles { Pause { longest: whole.longest.min(self.settling.max(LEAST)), ..whole } } else { whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_loops_follow_a_productive_one_at_once() {
        let at = |seconds: i64| Time::from_millis(seconds * 1000);
        let mut pauses = Pauses::new(Duration::from_secs(10), true, Duration::from_secs(5));
        let mut memory = Memory::default();
        let quick = |pauses: &Pauses, memory: &Memory| pauses.next(memory).longest == LEAST;
        pauses.begin(at(0));
        assert!(!quick(&pauses, &memory), "nothing happened");
        pauses.begin(at(10));
        memory.last_scale_up_ms = Some(at(10).millis());
        assert!(quick(&pauses, &memory), "the first follows at once");
        pauses.begin(at(11));
        assert!(quick(&pauses, &memory), "the second too");
        pauses.begin(at(12));
        assert!(!quick(&pauses, &memory), "the third waits");
        assert!(pauses.next(&memory).by_pods);
        memory.last_scale_up_ms = None;
        memory.last_scale_down_ms = Some(at(12).millis());
        assert!(quick(&pauses, &memory), "a removal counts as well");
    }

    #[test]
    fn without_frequent_loops_the_interval_is_all() {
        let mut pauses = Pauses::new(Duration::from_secs(10), false, Duration::from_secs(5));
        pauses.begin(Time::from_millis(0));
        let memory = Memory { last_scale_up_ms: Some(0), ..Memory::default() };
        let pause = pauses.next(&memory);
        assert_eq!(
            (pause.least, pause.longest, pause.by_pods),
            (Duration::from_secs(10), Duration::from_secs(10), false)
        );
    }
}
