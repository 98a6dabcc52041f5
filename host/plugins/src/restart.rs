//! When a provider that failed may start again: after a pause that grows, and in the end not at all.

use std::time::Duration;

use tokio::time::Instant;

/// How a provider that fails is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartPolicy {
    /// Pause after the first failure; it doubles with each further one.
    pub first_pause: Duration,
    /// Longest pause.
    pub longest_pause: Duration,
    /// A provider that ran for so long without a failure has a clean record.
    pub healthy_after: Duration,
    /// After so many failures in a row it is quarantined.
    pub most_failures: u32,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
            healthy_after: Duration::from_secs(60),
            most_failures: 12,
        }
    }
}

impl RestartPolicy {
    /// No pauses and no quarantine, for drivers that own time.
    pub const fn immediate() -> Self {
        Self {
            first_pause: Duration::ZERO,
            longest_pause: Duration::ZERO,
            healthy_after: Duration::ZERO,
            most_failures: u32::MAX,
        }
    }
}

/// What follows a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consequence {
    Pause(Duration),
    Quarantine,
}

/// Whether a start may be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    Open,
    /// So much of the pause is left.
    Waiting(Duration),
    Quarantined,
}

/// The record of one provider.
#[derive(Debug)]
pub(crate) struct Record {
    policy: RestartPolicy,
    failures: u32,
    last: String,
    started_at: Option<Instant>,
    not_before: Option<Instant>,
    quarantined: bool,
}

impl Record {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Self { policy, failures: 0, last: String::new(), started_at: None, not_before: None, quarantined: false }
    }

    /// Failures in a row, and the last of them.
    pub(crate) fn failures(&self) -> (u32, String) {
        (self.failures, self.last.clone())
    }

    pub(crate) fn gate(&self, now: Instant) -> Gate {
        match self.not_before {
            _ if self.quarantined => Gate::Quarantined,
            Some(moment) if moment > now => Gate::Waiting(moment - now),
            _ => Gate::Open,
        }
    }

    pub(crate) fn started(&mut self, now: Instant) {
        self.started_at = Some(now);
    }

    pub(crate) fn failed(&mut self, now: Instant, reason: String) -> Consequence {
        let policy = self.policy;
        let healthy = self.started_at.take().is_some_and(|started| now - started >= policy.healthy_after);
        self.failures = if healthy { 1 } else { self.failures.saturating_add(1) };
        self.last = reason;
        if self.failures >= policy.most_failures {
            self.quarantined = true;
            return Consequence::Quarantine;
        }
        let doublings = 2_u32.saturating_pow(self.failures - 1);
        let pause = policy.first_pause.saturating_mul(doublings).min(policy.longest_pause);
        self.not_before = Some(now + pause);
        Consequence::Pause(pause)
    }

    /// Another file, another record.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test]
    async fn pauses_double_up_to_the_longest_and_end_in_quarantine() {
        let mut record = Record::new(RestartPolicy::default());
        let mut now = Instant::now();
        let mut pauses = vec![];
        while record.gate(now) == Gate::Open {
            record.started(now);
            match record.failed(now, "trap".into()) {
                Consequence::Pause(pause) => {
                    assert_eq!(record.gate(now), Gate::Waiting(pause));
                    pauses.push(pause.as_secs());
                    now += pause;
                }
                Consequence::Quarantine => break,
            }
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!((record.gate(now + seconds(100_000)), record.failures().0), (Gate::Quarantined, 12));
        record.clear();
        assert_eq!((record.gate(now), record.failures().0), (Gate::Open, 0));
    }

    #[tokio::test]
    async fn a_minute_of_health_cleans_the_record() {
        let mut record = Record::new(RestartPolicy::default());
        let now = Instant::now();
        record.started(now);
        assert_eq!(record.failed(now, String::new()), Consequence::Pause(seconds(1)));
        record.started(now + seconds(1));
        assert_eq!(record.failed(now + seconds(60), String::new()), Consequence::Pause(seconds(2)));
        record.started(now + seconds(62));
        assert_eq!(record.failed(now + seconds(122), String::new()), Consequence::Pause(seconds(1)));
    }

    #[tokio::test]
    async fn a_start_that_fails_counts_too() {
        let mut record = Record::new(RestartPolicy::default());
        let now = Instant::now();
        record.failed(now, String::new());
        assert_eq!(record.failed(now + seconds(500), String::new()), Consequence::Pause(seconds(2)));
    }

    #[tokio::test]
    async fn drivers_that_own_time_never_wait() {
        let mut record = Record::new(RestartPolicy::immediate());
        let now = Instant::now();
        for _ in 0..1000 {
            record.started(now);
            record.failed(now, String::new());
            assert_eq!(record.gate(now), Gate::Open);
        }
    }
}
