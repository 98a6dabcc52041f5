//! Times as the cloud writes them: `2024-06-01T08:30Z`, with or without seconds, sometimes with an offset.

/// Milliseconds since the Unix epoch; none if it is no such time.
pub(crate) fn parse_ms(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = clock.find(['Z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone_at);
    let mut clock = clock.split(':');
    let (hour, minute) = (number(clock.next()?)?, number(clock.next()?)?);
    let second = match clock.next() {
        Some(text) => number(text.split('.').next()?)?,
        None => 0,
    };
    let offset_minutes = offset_minutes(zone)?;
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !in_range {
        return None;
    }
    let minutes = days_since_epoch(year, month, day) * 1440 + hour * 60 + minute - offset_minutes;
    u64::try_from(minutes * 60_000 + second * 1000).ok()
}

fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn offset_minutes(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("Z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    Some(sign * (number(hours)? * 60 + number(minutes)?))
}

/// The civil calendar, by Howard Hinnant's `days_from_civil`.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::minutes("2024-06-01T08:30Z", Some(1_717_230_600_000))]
    #[case::seconds("2024-06-01T08:30:15Z", Some(1_717_230_615_000))]
    #[case::fraction("2024-06-01T08:30:15.25Z", Some(1_717_230_615_000))]
    #[case::offset("2024-06-01T16:30:00+08:00", Some(1_717_230_600_000))]
    #[case::leap_day("2024-02-29T00:00Z", Some(1_709_164_800_000))]
    #[case::epoch("1970-01-01T00:00Z", Some(0))]
    #[case::empty("", None)]
    #[case::date_only("2024-06-01", None)]
    #[case::no_zone("2024-06-01T08:30", None)]
    #[case::month("2024-13-01T08:30Z", None)]
    #[case::words("yesterdayTnoonZ", None)]
    fn times(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(parse_ms(text), ms);
    }
}
