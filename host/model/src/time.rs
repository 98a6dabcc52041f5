//! Moments and spans, in milliseconds.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch. Real or virtual, always given by the driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Time(i64);

impl Time {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }
    /// From RFC 3339, as Kubernetes writes times; none if the text is something else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(Self::from)
    }
    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }
    /// Whole seconds since the Unix epoch, as taint values carry them.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A duration as Go writes it (`1h30m`, `-1.5s`, `0`), in nanoseconds; none if the text is no such duration or does not
/// fit. Flags and annotations use this form (Go `time.ParseDuration`).
pub fn go_duration_nanos(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    loop {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        total = total.checked_add(scaled(number, go_unit_nanos(unit)?)?)?;
        if tail.is_empty() {
            return i64::try_from(if negative { -total } else { total }).ok();
        }
        rest = tail;
    }
}

fn go_unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A decimal number times a unit, cut off below a nanosecond.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    // More digits after the point than this are below a nanosecond of every unit.
    const DIGITS: usize = 15;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.get(..DIGITS).unwrap_or(fraction);
    let parts: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let below = parts * unit / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_mul(unit)?.checked_add(below)
}

impl From<jiff::Timestamp> for Time {
    fn from(timestamp: jiff::Timestamp) -> Self {
        Self(timestamp.as_millisecond())
    }
}

/// As RFC 3339 in UTC, as Kubernetes writes times.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => timestamp.fmt(f),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        const SECOND: i64 = 1_000_000_000;
        for (text, nanos) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("10m", Some(600 * SECOND)),
            ("1h30m", Some(5400 * SECOND)),
            ("1.5h", Some(5400 * SECOND)),
            ("-1.5s", Some(-3 * SECOND / 2)),
            ("+5s", Some(5 * SECOND)),
            (".5s", Some(SECOND / 2)),
            ("1.s", Some(SECOND)),
            ("250ms", Some(SECOND / 4)),
            ("3us", Some(3000)),
            ("3µs", Some(3000)),
            ("7ns", Some(7)),
            ("1.9ns", Some(1)),
            ("0.3333333333333333333h", Some(1_199_999_999_999)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562048h", None),
            ("99999999999999999999999999999999999999999h", None),
            ("", None),
            ("-", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("5 s", None),
            ("5d", None),
            ("1h 5m", None),
            ("5s-", None),
        ] {
            assert_eq!(go_duration_nanos(text), nanos, "{text:?}");
        }
    }
}
