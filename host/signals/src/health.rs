//! Whether the loop is alive, by the Go autoscaler's rules: `/health-check`.
//!
//! Until monitoring begins, as while a replica waits for its lease, all is well. Until the first success both limits are
//! `max-startup-time`; from then on a loop must begin every `max-inactivity`, and succeed every `max-failing-time`.

use std::time::Duration;

/// Limits, by their flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HealthLimits {
    /// `max-inactivity`.
    pub max_inactivity: Duration,
    /// `max-failing-time`.
    pub max_failing_time: Duration,
    /// `max-startup-time`; never less than the other two.
    pub max_startup_time: Duration,
}

impl HealthLimits {
    /// Limits as given; the one for the start is raised to the greatest of the three.
    pub fn new(max_inactivity: Duration, max_failing_time: Duration, max_startup_time: Duration) -> Self {
        let max_startup_time = max_startup_time.max(max_inactivity).max(max_failing_time);
        Self { max_inactivity, max_failing_time, max_startup_time }
    }
}

/// When the loop last did something. Times are counted from an arbitrary beginning, on a clock that is never set back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    limits: HealthLimits,
    /// When monitoring began; none: it has not.
    begun: Option<Duration>,
    last_activity: Duration,
    last_success: Duration,
    succeeded: bool,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "error: last activity {}s ago (at most {}s), last success {}s ago (at most {}s)",
    inactive.as_secs(),
    max_inactive.as_secs(),
    failing.as_secs(),
    max_failing.as_secs()
)]
pub struct Sick {
    /// Since the last activity.
    pub inactive: Duration,
    /// How long that may be.
    pub max_inactive: Duration,
    /// Since the last success, or since the start.
    pub failing: Duration,
    /// How long that may be.
    pub max_failing: Duration,
}

impl Health {
    /// Nothing is monitored yet.
    pub fn new(limits: HealthLimits) -> Self {
        let zero = Duration::ZERO;
        Self { limits, begun: None, last_activity: zero, last_success: zero, succeeded: false }
    }

    /// From now on it counts. Called again, nothing changes.
    pub fn begin(&mut self, now: Duration) {
        if self.begun.is_none() {
            self.begun = Some(now);
            self.last_activity = now;
            self.last_success = now;
        }
    }

    /// A loop begins.
    pub fn active(&mut self, now: Duration) {
        self.last_activity = self.last_activity.max(now);
    }

    /// A loop succeeded, which is activity too.
    pub fn succeeded(&mut self, now: Duration) {
        self.active(now);
        self.last_success = self.last_success.max(now);
        self.succeeded = true;
    }

    /// Whether a loop has succeeded yet.
    pub fn has_succeeded(&self) -> bool {
        self.succeeded
    }

    /// Whether all is well.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn check(&self, now: Duration) -> Result<(), Sick> {
        if self.begun.is_none() {
            return Ok(());
        }
        let (max_inactive, max_failing) = match self.succeeded {
            true => (self.limits.max_inactivity, self.limits.max_failing_time),
            false => (self.limits.max_startup_time, self.limits.max_startup_time),
        };
        let inactive = now.saturating_sub(self.last_activity);
        let failing = now.saturating_sub(self.last_success);
        if inactive > max_inactive || failing > max_failing {
            return Err(Sick { inactive, max_inactive, failing, max_failing });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    fn limits() -> HealthLimits {
        HealthLimits::new(minutes(10), minutes(15), minutes(20))
    }

    enum Did {
        Begin(u64),
        Active(u64),
        Succeeded(u64),
    }
    use Did::{Active, Begin, Succeeded};

    #[test]
    fn the_rules_of_the_peer() {
        for (name, did, now, well) in [
            ("not monitored yet: a follower waits for as long as it takes", &[][..], 1000, true),
            ("a loop may take its time to start", &[Begin(0)], 20, true),
            ("but not for ever", &[Begin(0)], 21, false),
            ("active, but without a success since the start", &[Begin(0), Active(18)], 21, false),
            ("after a success the short limits hold", &[Begin(0), Succeeded(1)], 11, true),
            ("no loop for too long", &[Begin(0), Succeeded(1)], 12, false),
            ("loops that fail", &[Begin(0), Succeeded(1), Active(15)], 16, true),
            ("loops that fail for too long", &[Begin(0), Succeeded(1), Active(16)], 17, false),
            ("success is activity", &[Begin(0), Succeeded(1), Succeeded(30)], 40, true),
            ("monitoring begins when the lease is won", &[Begin(500)], 520, true),
            ("and begins once", &[Begin(500), Begin(600)], 521, false),
        ] {
            let mut health = Health::new(limits());
            for did in did {
                match *did {
                    Begin(at) => health.begin(minutes(at)),
                    Active(at) => health.active(minutes(at)),
                    Succeeded(at) => health.succeeded(minutes(at)),
                }
            }
            assert_eq!(health.check(minutes(now)).is_ok(), well, "{name}");
        }
    }

    #[test]
    fn a_start_may_take_as_long_as_anything_else() {
        assert_eq!(HealthLimits::new(minutes(10), minutes(30), minutes(20)).max_startup_time, minutes(30));
    }

    #[test]
    fn the_reason_has_the_ages() {
        let mut health = Health::new(limits());
        health.begin(minutes(0));
        health.succeeded(minutes(1));
        let text = health.check(minutes(20)).unwrap_err().to_string();
        assert_eq!(text, "error: last activity 1140s ago (at most 600s), last success 1140s ago (at most 900s)");
    }
}
