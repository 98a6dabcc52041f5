//! Kubernetes quantities, exactly.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount as Kubernetes writes it (`250m`, `1.5Gi`, `2e3`), kept exactly down to a billionth. Finer amounts are
/// rounded up, as Kubernetes does when it stores them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Quantity {
    nano: i128,
}

const NANO: i128 = 1_000_000_000;

/// As the upper and the lower half of its billionths: few formats know integers of 128 bits.
impl Serialize for Quantity {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the halves are what is meant")]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ((self.nano >> 64) as i64, self.nano as u64).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (upper, lower) = <(i64, u64)>::deserialize(deserializer)?;
        Ok(Self { nano: (i128::from(upper) << 64) | i128::from(lower) })
    }
}

impl Quantity {
    /// Thousandths, rounded up and clamped to `i64`: how cpu is counted.
    pub fn milli(self) -> i64 {
        clamp(ceil_div(self.nano, NANO / 1000))
    }

    /// Whole units, rounded up and clamped to `i64`: how everything but cpu is counted.
    pub fn units(self) -> i64 {
        clamp(ceil_div(self.nano, NANO))
    }

    /// Millionths, rounded up and clamped to `u64`; negative amounts become 0. For prices.
    pub fn micros(self) -> u64 {
        u64::try_from(ceil_div(self.nano, NANO / 1_000_000).max(0)).unwrap_or(u64::MAX)
    }

    /// From whole units.
    pub fn from_units(units: i64) -> Self {
        Self { nano: i128::from(units) * NANO }
    }

    /// Exact sum.
    pub fn plus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano) }
    }

    /// Exact difference.
    pub fn minus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_sub(other.nano) }
    }

    /// The least amount that is not less than this one, among `start` and all amounts above it by a multiple of `step`. A
    /// step of zero or less is none.
    pub fn rounded_up(self, start: Self, step: Self) -> Self {
        if self <= start || step.nano <= 0 {
            return self.max(start);
        }
        Self { nano: start.nano + ceil_div(self.nano - start.nano, step.nano) * step.nano }
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.nano == 0
    }
}

fn ceil_div(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Why a text is no quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantityError {
    /// Nothing is there.
    #[error("the quantity is empty; expected a number such as 250m, 1.5 or 4Gi")]
    Empty,
    /// It does not begin with a number.
    #[error("{0:?} is not a quantity; expected a number such as 250m, 1.5 or 4Gi")]
    Number(String),
    /// What follows the number is no suffix.
    #[error(
        "{text:?} is not a quantity: {suffix:?} is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3"
    )]
    Suffix {
        /// The whole text.
        text: String,
        /// What followed the number.
        suffix: String,
    },
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        let not_a_number = || QuantityError::Number(text.to_owned());
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(not_a_number());
        }
        let scale =
            scale(suffix).ok_or_else(|| QuantityError::Suffix { text: text.to_owned(), suffix: suffix.to_owned() })?;
        let magnitude = scaled(whole, fraction, scale);
        Ok(Self { nano: if negative { -magnitude } else { magnitude } })
    }
}

#[derive(Clone, Copy)]
enum Scale {
    /// Times ten to this power.
    Ten(i32),
    /// Times two to this power.
    Two(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "" => Scale::Ten(0),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            Scale::Ten(
                digits.parse::<i32>().unwrap_or(if digits.starts_with('-') { -999 } else { 999 }).clamp(-999, 999),
            )
        }
    })
}

/// Far above what `i64` holds of any unit, far below what overflows the arithmetic here.
const MOST: i128 = 1 << 100;

/// Number times scale in billionths, rounded up (away from zero, since the sign is put on later) and capped.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> i128 {
    // Digits beyond this position cannot matter except for rounding up.
    const DIGITS: usize = 36;
    let mut mantissa: i128 = 0;
    let mut power: i32 = 0;
    let mut inexact = false;
    let digits = whole.bytes().map(|digit| (digit, false)).chain(fraction.bytes().map(|digit| (digit, true)));
    let mut taken = 0;
    for (digit, after_point) in digits {
        let digit = i128::from(digit - b'0');
        if taken == DIGITS {
            inexact |= digit != 0;
            power += i32::from(!after_point);
        } else {
            taken += usize::from(mantissa != 0 || digit != 0);
            mantissa = mantissa * 10 + digit;
            power -= i32::from(after_point);
        }
    }
    if mantissa == 0 {
        return 0;
    }
    let (numerator, power) = match scale {
        Scale::Ten(exponent) => (Some(mantissa), power + exponent + 9),
        Scale::Two(exponent) => (mantissa.checked_mul(1 << exponent), power + 9),
    };
    // A binary suffix on so long a number: give up digits that are far below a billionth or far above the cap.
    let Some(mut value) = numerator else {
        return if power >= -36 { MOST } else { 1 };
    };
    for _ in 0..power.max(0) {
        value = value.saturating_mul(10);
        if value > MOST {
            return MOST;
        }
    }
    for _ in 0..(-power).max(0) {
        inexact |= value % 10 != 0;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    (value + i128::from(inexact)).min(MOST)
}

/// As a plain decimal number, which Kubernetes reads too.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nano < 0 { "-" } else { "" };
        let (whole, rest) = (self.nano.unsigned_abs() / 1_000_000_000, self.nano.unsigned_abs() % 1_000_000_000);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let fraction = format!("{rest:09}");
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        for (text, milli, units) in [
            ("0", 0, 0),
            ("1", 1000, 1),
            ("250m", 250, 1),
            ("0.5", 500, 1),
            (".5", 500, 1),
            ("1.", 1000, 1),
            ("+2", 2000, 2),
            ("-2", -2000, -2),
            ("-500m", -500, 0),
            ("1n", 1, 1),
            ("100u", 1, 1),
            ("2k", 2_000_000, 2000),
            ("1Ki", 1_024_000, 1024),
            ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
            ("3e3", 3_000_000, 3000),
            ("3E3", 3_000_000, 3000),
            ("12e-1", 1200, 2),
            ("1E", 1_000_000_000_000_000_000i64.saturating_mul(1000), 1_000_000_000_000_000_000),
            ("8Ei", i64::MAX, i64::MAX),
            ("1e400", i64::MAX, i64::MAX),
            ("0.0000000001", 1, 1),
            ("0000000000000000000000000000000000000000000000002", 2000, 2),
            ("1.00000000000000000000000000000000000000000000000", 1000, 1),
            ("1.00000000000000000000000000000000000000000000001", 1001, 2),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!(quantity.milli(), milli, "milli of {text}");
            assert_eq!(quantity.units(), units, "units of {text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "", "1.5.0", "abc", "1 Gi", "1gi", "Gi", "1K", "e3", "1e", "1e+", "--1", "1.5.0Gi", "0x10", "1ee3", "NaN",
            "½",
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn halves_of_a_byte_add_up_before_rounding() {
        let half: Quantity = "500m".parse().unwrap();
        assert_eq!(half.plus(half).units(), 1);
        assert_eq!(half.to_string(), "0.5");
    }

    #[test]
    fn prices_are_millionths() {
        assert_eq!("0.40".parse::<Quantity>().unwrap().micros(), 400_000);
        assert_eq!("-1".parse::<Quantity>().unwrap().micros(), 0);
    }
}
