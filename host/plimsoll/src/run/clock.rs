//! A clock that runs faster than the machine's.

use std::time::{Duration, Instant};

use plimsoll_model::Time;
use plimsoll_plugins::clock::Clock;

/// Begins at the machine's time and then runs `speed` times as fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastClock {
    begun: Time,
    started: Instant,
    speed: u32,
}

impl FastClock {
    pub(crate) fn starting_now(speed: u32) -> Self {
        Self { begun: crate::now(), started: Instant::now(), speed }
    }

    /// Its time.
    pub(crate) fn now(&self) -> Time {
        self.begun + self.monotonic()
    }

    /// When it began.
    pub(crate) fn begun(&self) -> Time {
        self.begun
    }

    /// How long a span of its time takes.
    pub(crate) fn real(&self, span: Duration) -> Duration {
        span / self.speed
    }
}

impl Clock for FastClock {
    fn wall(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.now().millis()).unwrap_or(0))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed() * self.speed
    }

    fn pace(&self) -> u32 {
        self.speed
    }
}
