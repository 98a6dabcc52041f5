//! Numbers for people, without the standard library's code for floating point, which alone would make an expander a half
//! larger.

/// A number with so many decimals (at most 9), such as `0.08`. Halves are rounded away from zero.
///
/// ```
/// assert_eq!(plimsoll_guest::text::rounded(0.0849, 2), "0.08");
/// assert_eq!(plimsoll_guest::text::rounded(-1.5, 0), "-2");
/// ```
pub fn rounded(value: f64, decimals: u32) -> String {
    if value.is_nan() {
        return "not a number".to_owned();
    }
    let unit = 10u64.pow(decimals.min(9));
    // Beyond the range of `u64` the digits are those of its end.
    let units = (value.abs() * unit as f64).round() as u64;
    let sign = if value < 0.0 && units > 0 { "-" } else { "" };
    let (whole, part) = (units / unit, units % unit);
    if decimals == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part:0width$}", width = decimals.min(9) as usize)
    }
}

/// A share as a whole percentage, such as `5%`.
pub fn percent(share: f64) -> String {
    rounded(share * 100.0, 0) + "%"
}

/// A count with its noun, such as `1 pod` or `3 pods`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::zero(0.0, 2, "0.00")]
    #[case::padded(1.05, 2, "1.05")]
    #[case::carried(0.999, 2, "1.00")]
    #[case::negative(-0.25, 1, "-0.3")]
    #[case::almost_zero_has_no_sign(-0.001, 2, "0.00")]
    #[case::whole(1234.4, 0, "1234")]
    #[case::many_decimals(0.123_456_789_4, 12, "0.123456789")]
    #[case::endless(f64::INFINITY, 0, "18446744073709551615")]
    #[case::none(f64::NAN, 2, "not a number")]
    fn numbers(#[case] value: f64, #[case] decimals: u32, #[case] text: &str) {
        assert_eq!(rounded(value, decimals), text);
    }

    #[test]
    fn nouns() {
        assert_eq!(
            (counted(0, "node"), counted(1, "node"), counted(2, "node")),
            ("0 nodes".into(), "1 node".into(), "2 nodes".into())
        );
    }
}
