//! Virtual time. It moves when a test moves it.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub i64);

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

impl UnixMs {
    /// A moment written like `2024-06-01T08:30:00Z`; none if it is not written so.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(|moment| Self(moment.as_millisecond()))
    }

    /// `2024-06-01T08:30:00Z`.
    pub fn seconds(self) -> String {
        self.format("%Y-%m-%dT%H:%M:%SZ")
    }

    /// `2024-06-01T08:30Z`.
    pub fn minutes(self) -> String {
        self.format("%Y-%m-%dT%H:%MZ")
    }

    /// `2024-06-01 08:30:00`.
    pub fn spaced(self) -> String {
        self.format("%Y-%m-%d %H:%M:%S")
    }

    fn format(self, pattern: &str) -> String {
        Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH).strftime(pattern).to_string()
    }

    /// The beginning of the next minute of the clock.
    pub fn next_minute(self) -> Self {
        Self((self.0.div_euclid(MINUTE_MS) + 1) * MINUTE_MS)
    }

    /// How long after `earlier` this is; zero if it is before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl Add<Duration> for UnixMs {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(later.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for UnixMs {
    type Output = Self;

    fn sub(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(earlier.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::UnixMs;

    #[test]
    fn a_moment_is_written_as_it_is_read() {
        let moment = UnixMs::parse("2024-06-01T08:30:59Z").unwrap();
        assert_eq!(moment.seconds(), "2024-06-01T08:30:59Z");
        assert_eq!(moment.minutes(), "2024-06-01T08:30Z");
        assert_eq!(moment.spaced(), "2024-06-01 08:30:59");
        assert_eq!(moment.next_minute().seconds(), "2024-06-01T08:31:00Z");
        assert_eq!(moment.next_minute().next_minute().seconds(), "2024-06-01T08:32:00Z");
        assert_eq!(UnixMs::parse("yesterday"), None);
    }
}
