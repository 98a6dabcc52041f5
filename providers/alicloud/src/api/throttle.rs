//! The cloud counts calls per operation and minute, and once it refuses one it refuses all until the minute is over. So
//! nothing of that operation is sent in the rest of the minute.

use std::collections::BTreeMap;

use plimsoll_guest::{PluginError, state};

use super::Call;
use crate::fingerprint::Fingerprint;

const MINUTE_MS: u64 = 60_000;
/// Where refusals outlive this instance of the plug-in.
const STATE_KEY: &str = "throttled";

/// Operations that must wait, with the time until which.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    until: BTreeMap<String, u64>,
}

impl Throttle {
    /// What an earlier instance learned.
    pub(super) fn remembered() -> Self {
        Self { until: state::get_json(STATE_KEY).unwrap_or_default() }
    }

    /// The refusal that the cloud would give, if this call would be refused.
    pub(super) fn refusal(&self, call: &Call, now_ms: u64) -> Option<PluginError> {
        let until = *self.until.get(&call.permission())?;
        let wait = until.checked_sub(now_ms).filter(|wait| *wait > 0)?;
        let message = format!("{} was throttled; not asked again before the next minute", call.permission());
        let mut error = PluginError::throttled(message).with_code("Throttling");
        error.retry_after_ms = u32::try_from(wait).ok();
        Some(error)
    }

    /// The cloud refused this call. Returns how long to wait, in milliseconds.
    pub(super) fn note(&mut self, call: &Call, now_ms: u64) -> u64 {
        // Clocks differ a little, and not everyone should come back at once.
        let jitter = 500 + Fingerprint::new().with_number(now_ms).with(call.action).number() % 1500;
        let until = (now_ms / MINUTE_MS + 1) * MINUTE_MS + jitter;
        self.until.retain(|_, until| *until > now_ms);
        self.until.insert(call.permission(), until);
        // It is only a cache: without it the cloud says so once more.
        let _ = state::set_json(STATE_KEY, &self.until);
        until - now_ms
    }
}

#[cfg(test)]
mod tests {
    use super::super::Product;
    use super::*;

    const NOON: u64 = 1_717_230_600_000;

    #[test]
    fn the_rest_of_the_minute_is_quiet_for_that_operation_alone() {
        let mut throttle = Throttle::default();
        let call = Call::read(Product::Ess, "DescribeScalingGroups");
        assert!(throttle.refusal(&call, NOON).is_none());
        let wait = throttle.note(&call, NOON + 20_000);
        assert!((40_500..42_000).contains(&wait), "{wait}");

        let error = throttle.refusal(&call, NOON + 59_999).unwrap();
        assert_eq!(error.class, plimsoll_guest::ErrorClass::Throttled);
        assert!(error.retry_after_ms.is_some_and(|wait| wait <= 2001), "{error:?}");
        assert!(throttle.refusal(&call, NOON + 62_001).is_none());
        let other = Call::read(Product::Ess, "DescribeScalingInstances");
        assert!(throttle.refusal(&other, NOON + 30_000).is_none());
        assert!(Throttle::remembered().refusal(&call, NOON + 30_000).is_some());
    }
}
