//! Durations and sizes as people write them: `2s`, `500ms`, `10m`; `2GB`, `512MiB`.

use std::time::Duration;

use stepscope_trace::{Span, Time};

/// Half a year. Longer durations are typing errors and would overflow clocks.
const LONGEST: Duration = Duration::from_secs(1 << 24);

/// Parses a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number with a unit, such as 500ms, 2s, 10m or 1h".to_owned();
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ if number == 0.0 && unit.is_empty() => 1.0,
        _ => return Err(wrong()),
    };
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if time < LONGEST { Ok(time) } else { Err("too long".to_owned()) }
}

/// Parses a duration above zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    duration(text)
        .and_then(|time| if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) })
}

/// Parses step numbers, inclusive: `3..7`, `3..`, `..7` or `3`.
pub(crate) fn steps(text: &str) -> Result<(i64, i64), String> {
    let wrong = || "give step numbers, such as 3..7, 3.. or 3".to_owned();
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let end = |text: &str, open: i64| match text.trim() {
        "" => Ok(open),
        number => number.parse().map_err(|_| wrong()),
    };
    let (from, to) = (end(from, i64::MIN)?, end(to.strip_prefix('=').unwrap_or(to), i64::MAX)?);
    if text.trim() == ".." || text.trim().is_empty() {
        return Err(wrong());
    }
    if from <= to { Ok((from, to)) } else { Err("the first step comes after the last".to_owned()) }
}

/// Parses a time range of the recording: `1.2s..1.5s`, `800ms..` or `..2s`.
pub(crate) fn time(text: &str) -> Result<Span, String> {
    let wrong = || "give two times, such as 1.2s..1.5s, 800ms.. or ..2s".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let end = |text: &str, open: Time| match text.trim() {
        "" => Ok(open),
        text => duration(text).map(|time| Time::from_ps((time.as_secs_f64() * 1e12) as i64)),
    };
    let span = Span::new(end(from, Time::MIN)?, end(to, Time::MAX)?);
    if span.is_empty() { Err("the end comes before the start".to_owned()) } else { Ok(span) }
}

/// Parses a rate with an optional prefix: `989T`, `3.35e12`, `60G`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let wrong = || "give a rate per second, such as 989T, 60G or 1.5e12".to_owned();
    let text = text.trim();
    let factor = match text.chars().last().ok_or_else(wrong)? {
        'k' | 'K' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        'T' => 1e12,
        'P' => 1e15,
        _ => 1.0,
    };
    let number = if factor > 1.0 { text.get(..text.len() - 1).ok_or_else(wrong)? } else { text };
    let rate = number.parse::<f64>().map_err(|_| wrong())? * factor;
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(wrong()) }
}

/// Parses a size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "give a number with a unit, such as 500MB, 2GB or 1GiB".to_owned();
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    if (1.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Splits a number from its unit.
fn parts(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_people_write_them() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(some_time("0s").is_err());
        assert_eq!((size("2GB"), size("1GiB"), size("5")), (Ok(2_000_000_000), Ok(1 << 30), Ok(5)));
    }

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(steps("3..7"), Ok((3, 7)));
        assert_eq!(
            (steps("3.."), steps("..7"), steps("3")),
            (Ok((3, i64::MAX)), Ok((i64::MIN, 7)), Ok((3, 3)))
        );
        let ms = |ms: i64| Time::from_ps(ms * 1_000_000_000);
        assert_eq!(time("1.2s..1500ms"), Ok(Span::new(ms(1200), ms(1500))));
        assert_eq!(time("..2s"), Ok(Span::new(Time::MIN, ms(2000))));
        for text in ["", "..", "7..3", "a..b"] {
            assert!(steps(text).is_err(), "{text}");
        }
        for text in ["", "1s", "2s..1s", "1..2"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused() {
        for text in ["2", "", "s", "-1s", "1e3s", "2 days", "infs", "1e999h", "1x", "9999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "GB", "-1GB", "0", "2 apples", "99999999999TB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
