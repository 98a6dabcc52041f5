//! Time, for providers. An expander has no clock: the same question must get the same answer.

use std::time::Duration;

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    source::now_ms()
}

/// The end of the time that the host gives to a call.
///
/// Make one from `deadline_ms` when the call begins, and hand it to every request of that call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline {
    at_nanos: u64,
}

impl Deadline {
    /// So many milliseconds from now.
    pub fn after_ms(milliseconds: u32) -> Self {
        Self::after(Duration::from_millis(milliseconds.into()))
    }

    /// So long from now.
    pub fn after(delay: Duration) -> Self {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self { at_nanos: source::monotonic_nanos().saturating_add(delay) }
    }

    /// What is left; zero when it has passed.
    pub fn remaining(&self) -> Duration {
        Duration::from_nanos(self.at_nanos.saturating_sub(source::monotonic_nanos()))
    }
}

#[cfg(target_arch = "wasm32")]
mod source {
    use crate::bindings::system::clocks::{monotonic_clock, wall_clock};

    pub(super) fn now_ms() -> u64 {
        let now = wall_clock::now();
        now.seconds.saturating_mul(1000).saturating_add(u64::from(now.nanoseconds / 1_000_000))
    }

    pub(super) fn monotonic_nanos() -> u64 {
        monotonic_clock::now()
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod source {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    pub(super) fn now_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn monotonic_nanos() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_has_passed_leaves_nothing() {
        assert_eq!(Deadline::after_ms(0).remaining(), Duration::ZERO);
    }

    #[test]
    fn a_deadline_runs_down() {
        let deadline = Deadline::after_ms(60_000);
        let remaining = deadline.remaining();
        assert!(remaining <= Duration::from_secs(60) && remaining > Duration::from_secs(1), "{remaining:?}");
        assert!(Deadline::after(Duration::MAX) > deadline);
    }
}
