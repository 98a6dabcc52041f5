//! How many requests plug-ins made, and how they ended: what metrics are made of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::observer::{RequestOutcome, Requested};

/// Requests that are counted together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct RequestKind {
    /// Name of the plug-in.
    pub plugin: String,
    /// The entry of `hosts` that covers them, or `not granted`.
    pub host: String,
    /// How they ended.
    pub outcome: RequestOutcome,
    /// HTTP status of the responses, if the heads of some came.
    pub status: Option<u16>,
}

impl fmt::Display for RequestKind {
    /// How they ended: `answered with status 200`, `timed-out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.name())?;
        self.status.map_or(Ok(()), |status| write!(f, " with status {status}"))
    }
}

/// Counts requests since the start. An observer hands it what it is told.
#[derive(Debug, Default)]
pub struct RequestCounts(Mutex<BTreeMap<RequestKind, u64>>);

impl RequestCounts {
    /// One more.
    pub fn count(&self, request: Requested) {
        let Requested { plugin, host, outcome, status, .. } = request;
        let kind = RequestKind { plugin, host, outcome, status };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// What was counted so far, in a fixed order.
    pub fn read(&self) -> BTreeMap<RequestKind, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_ends_alike_is_counted_together() {
        let counts = RequestCounts::default();
        let requested = |status, outcome| Requested {
            plugin: "utho".into(),
            host: "https://api.utho.com".into(),
            credential: None,
            status,
            outcome,
            took: Duration::from_millis(3),
        };
        for _ in 0..3 {
            counts.count(requested(Some(200), RequestOutcome::Answered));
        }
        counts.count(requested(None, RequestOutcome::TimedOut));
        let told: Vec<_> = counts.read().into_iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        assert_eq!(told, ["3 answered with status 200", "1 timed-out"]);
    }
}
