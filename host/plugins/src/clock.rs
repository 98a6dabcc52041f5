//! Where plug-ins take the time from: the machine, a driver, or nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_model::Time;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// The time that plug-ins see through `wasi:clocks`.
pub trait Clock: Send + Sync {
    /// Time since the Unix epoch.
    fn wall(&self) -> Duration;
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// How many of its seconds pass in one of the machine's. Plug-ins are told how much time they have in the time that they
    /// see; how long the host waits for them is a matter of the machine.
    fn pace(&self) -> u32 {
        1
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic part starts now.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that only its driver moves. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now: Arc<AtomicI64>,
    started: i64,
}

impl VirtualClock {
    /// A clock that stands at this time.
    pub fn new(now: Time) -> Self {
        Self { now: Arc::new(AtomicI64::new(now.millis())), started: now.millis() }
    }
    /// Moves the clock; it never goes back.
    pub fn set(&self, now: Time) {
        self.now.fetch_max(now.millis(), Ordering::SeqCst);
    }
    /// What it shows.
    pub fn now(&self) -> Time {
        Time::from_millis(self.now.load(Ordering::SeqCst))
    }
}

impl Clock for VirtualClock {
    fn wall(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.now().millis()).unwrap_or(0))
    }
    fn monotonic(&self) -> Duration {
        self.now().since(Time::from_millis(self.started))
    }
}

/// No time at all, for plug-ins that must not depend on it: it always shows the Unix epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn wall(&self) -> Duration {
        Duration::ZERO
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// One clock in the two shapes that WASI knows.
pub(crate) struct WasiClock(pub(crate) Arc<dyn Clock>);

impl HostWallClock for WasiClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }
    fn now(&self) -> Duration {
        self.0.wall()
    }
}

impl HostMonotonicClock for WasiClock {
    fn resolution(&self) -> u64 {
        1_000_000
    }
    fn now(&self) -> u64 {
        u64::try_from(self.0.monotonic().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_moves_only_when_told_and_never_back() {
        let clock = VirtualClock::new(Time::from_millis(5_000));
        let shown = clock.clone();
        assert_eq!((shown.wall(), shown.monotonic()), (Duration::from_secs(5), Duration::ZERO));
        clock.set(Time::from_millis(7_500));
        clock.set(Time::from_millis(6_000));
        assert_eq!((shown.wall(), shown.monotonic()), (Duration::from_millis(7_500), Duration::from_millis(2_500)));
    }
}
