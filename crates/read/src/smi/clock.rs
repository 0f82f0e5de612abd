//! Timestamps: `2026/04/25 16:06:06.780` as written by nvidia-smi, `2025-09-08T17:26:50+08:00` as written by
//! scripts, and seconds since 1970. A time without a zone is taken as UTC, because the zone is unknown.

/// Nanoseconds since 1970.
pub(super) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        // From 2001 to 2223, in seconds or milliseconds; other numbers are something else.
        return match seconds {
            1e9..8e9 => Some((seconds * 1e6).round() as i64 * 1_000),
            1e12..8e12 => Some((seconds * 1e3).round() as i64 * 1_000),
            _ => None,
        };
    }
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.split(['/', '-']).map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let plausible = (1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !plausible || parts.next().is_some() {
        return None;
    }
    let (time, zone) = split_zone(time.trim());
    let of_day = time_of_day(time)?;
    Some(days_since_1970(year, month, day) * 86_400_000_000_000 + of_day - zone * 1_000_000_000)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Nanoseconds since 1970 of `Thu Oct  1 03:25:17 2026`, as printed on pages.
pub(super) fn as_printed(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    parse(&format!("{year}-{month}-{day} {time}"))
}

/// The time, and the offset of its zone from UTC in seconds.
fn split_zone(time: &str) -> (&str, i64) {
    if let Some(time) = time.strip_suffix('Z') {
        return (time, 0);
    }
    let Some(at) = time.rfind(['+', '-']) else { return (time, 0) };
    let (time, zone) = time.split_at(at);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let part =
        |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse().ok()).unwrap_or(0_i64);
    (time, sign * (part(0..2) * 3_600 + part(2..4) * 60))
}

/// Nanoseconds since midnight of `17:26:50.123`.
pub(super) fn time_of_day(time: &str) -> Option<i64> {
    let mut parts = time.split(':');
    let (hour, minute): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second: f64 = parts.next().map_or(Some(0.0), |second| second.parse().ok())?;
    let plausible = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&second);
    plausible.then(|| (hour * 60 + minute) * 60_000_000_000 + (second * 1e3).round() as i64 * 1_000_000)
}

/// Days from 1970 to a date of the Gregorian calendar; years start in March, so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_every_style_are_read() {
        const NS: i64 = 1_000_000_000;
        assert_eq!(parse("1970/01/02 00:00:01.500"), Some(86_401 * NS + NS / 2));
        assert_eq!(parse("2026/04/25 16:06:06.780"), Some(1_777_133_166 * NS + 780_000_000));
        assert_eq!(parse("2025-09-08T17:26:50+08:00"), Some(1_757_323_610 * NS));
        assert_eq!(parse("2025-09-08 09:26:50Z"), Some(1_757_323_610 * NS));
        assert_eq!(parse("1757323610.25"), Some(1_757_323_610 * NS + NS / 4));
        for none in [
            "",
            "timestamp",
            "45",
            "2025-09-08",
            "2025-13-08 00:00:00",
            "0.5 %",
            "a b",
            "2025-09-08 25:00:00",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
        assert_eq!(as_printed(" Fri Jan  2 00:00:01 1970  "), Some(86_401 * NS));
        assert_eq!(as_printed("Fri Foo  2 00:00:01 1970"), None);
        assert_eq!(as_printed("| Fri Jan 2 00:00:01 1970 |"), None);
    }
}
