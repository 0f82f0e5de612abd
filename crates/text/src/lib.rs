//! Numbers, times, sizes, dates and names as people write them. Fixed forms: equal values give equal text everywhere.
//!
//! Below all crates that write sentences, so that findings and reports spell a number the same way.

mod signature;

use std::borrow::Cow;

/// Placeholder for an unknown value.
pub const UNKNOWN: &str = "–";

/// `1234567` as `1,234,567`.
pub fn thousands(value: impl Into<i128>) -> String {
    let value = value.into();
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0 {
        out.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What formulas begin with, also in the full width of East Asian fonts.
const FORMULAS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A field of a CSV file, quoted if necessary. Spreadsheets run what looks like a formula, and names come from files of
/// strangers: such a name gets an apostrophe in front.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    let steers = text.chars().any(|c| c.is_control() || is_direction_mark(c));
    let text = if steers { Cow::Owned(printable(text)) } else { Cow::Borrowed(text) };
    // What is left after marks that nobody sees, and after spaces, which spreadsheets drop.
    let is_formula = text.trim_start().starts_with(FORMULAS) && text.parse::<f64>().is_err();
    let text = if is_formula { Cow::Owned(format!("'{text}")) } else { text };
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        text
    }
}

/// A number with `decimals` places and thousands separators.
pub fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let whole = whole.parse::<i128>().map_or_else(|_| whole.to_owned(), thousands);
    let sign = if value < 0.0 && text.bytes().any(|b| b.is_ascii_digit() && b != b'0') { "-" } else { "" };
    match fraction {
        Some(fraction) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{whole}"),
    }
}

/// About three significant digits, no more than three decimals: `0.012`, `1.23`, `45.6`, `789`.
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.999_5 => 2,
        _ => 3,
    };
    decimal(value, decimals)
}

/// A large number with a prefix: `1.42 G`, `918 T`.
pub fn prefixed(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let prefixes = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, prefix)) => format!("{} {prefix}", short(value / size)),
        None => short(value),
    }
}

/// A duration in a suitable unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`, `3 min 20 s`, `34 h 43 min`.
pub fn duration_ms(ms: f64) -> String {
    if !ms.is_finite() {
        return UNKNOWN.to_owned();
    }
    match ms.abs() {
        // Less than half a picosecond, the resolution of a trace, is a rounding error.
        v if v < 5e-10 => "0 ms".to_owned(),
        v if v < 1e-3 => format!("{} ns", short(ms * 1e6)),
        v if v < 1.0 => format!("{} µs", short(ms * 1e3)),
        v if v < 1e3 => format!("{} ms", short(ms)),
        v if v < 120e3 => format!("{} s", short(ms / 1e3)),
        v if v >= 7_200e3 => {
            let minutes = (ms / 60e3).round();
            format!("{} h {} min", decimal((minutes / 60.0).trunc(), 0), decimal((minutes % 60.0).abs(), 0))
        }
        _ => {
            let seconds = (ms / 1e3).round();
            format!("{} min {} s", decimal((seconds / 60.0).trunc(), 0), decimal((seconds % 60.0).abs(), 0))
        }
    }
}

/// Two durations in the unit of the longer one: `0.850 ms → 12.3 ms`.
pub fn from_to_ms(before: f64, after: f64) -> String {
    let longest = before.abs().max(after.abs());
    let (factor, unit) = match longest {
        v if !v.is_finite() => (1.0, "ms"),
        v if v < 1e-3 => (1e6, "ns"),
        v if v < 1.0 => (1e3, "µs"),
        v if v < 10e3 => (1.0, "ms"),
        _ => (1e-3, "s"),
    };
    format!("{} {unit} → {} {unit}", short(before * factor), short(after * factor))
}

/// A size in decimal units: `512 B`, `1.5 kB`, `2.34 GB`.
pub fn bytes(size: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    if !size.is_finite() {
        return UNKNOWN.to_owned();
    }
    let (mut value, mut unit) = (size, 0);
    while value.abs() >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    let text = if unit == 0 { decimal(value, 0) } else { short(value) };
    format!("{text} {}", UNITS[unit])
}

/// A share as a percentage: `0.453` as `45.3 %`.
pub fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{} %", decimal(fraction * 100.0, 1)) } else { UNKNOWN.to_owned() }
}

/// `1 host`, `2 hosts`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { many })
}

/// `once`, `twice`, `3 times`.
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{} times", thousands(count)),
    }
}

/// How many, per step: whole where it is, else with the digits that matter.
pub fn number(count: f64) -> String {
    if count.fract() == 0.0 || count >= 100.0 { decimal(count, 0) } else { short(count) }
}

/// `1 call`, `2.50 calls`: a mean count with the form of the noun that agrees with it.
pub fn several(count: f64, one: &str, many: &str) -> String {
    let count = number(count);
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

/// A share inside a sentence: `88 %`, `4.5 %`.
pub fn share(fraction: f64) -> String {
    let per_cent = fraction * 100.0;
    format!("{} %", decimal(per_cent, usize::from(per_cent.abs() < 9.95)))
}

/// A list inside a sentence: `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Nanoseconds since 1970 as `2026-01-31 12:34:56 UTC`.
pub fn utc(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}

/// Seconds since 1970 of a time in UTC; `None` if there is no such time.
pub fn utc_seconds(date: (i64, i64, i64), time: (i64, i64, i64)) -> Option<i64> {
    let ((year, month, day), (hour, minute, second)) = (date, time);
    let valid = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..61).contains(&second);
    valid.then(|| days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// The inverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Days since 1970 as year, month and day of the Gregorian calendar (Howard Hinnant's algorithm).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Shortens `text` to at most `width` characters by cutting the middle: both ends of op and kernel names say
/// most.
pub fn middle_cut(text: &str, width: usize) -> String {
    let text = &printable(text);
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = kept / 2;
    let head: String = text.chars().take(kept - tail).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

/// Shortens a name to at most `width` characters: first removes the noise of a C++ signature, then cuts the
/// middle.
pub fn name_cut(name: &str, width: usize) -> String {
    let name = &printable(name);
    if name.chars().count() <= width {
        return name.to_owned();
    }
    middle_cut(&signature::plain(name), width)
}

/// A name from a trace inside a sentence: short, printable, between backticks.
pub fn quoted(name: &str) -> String {
    let clean: String = printable(name).chars().map(|c| if c == '`' { '\'' } else { c }).collect();
    format!("`{}`", name_cut(clean.trim(), 70))
}

/// A path or a name as one word of a shell's line.
pub fn shell_word(text: &str) -> String {
    let text = printable(text);
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Text for a terminal: without control characters, which could move the cursor or change its title, and without
/// marks that change the direction of text, which could show a name as another one.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !is_direction_mark(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}c\u{202e}d\r\ne"), "a [2Jb cd  e");
    }

    #[test]
    fn words_of_a_shell_stay_one_word() {
        assert_eq!(shell_word("logs/run-1"), "logs/run-1");
        assert_eq!(shell_word("my run's"), r"'my run'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn csv_fields_are_quoted_and_are_no_formulas() {
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(
            (csv_field("-1.5"), csv_field("-x"), csv_field("aten::mm")),
            ("-1.5".into(), "'-x".into(), "aten::mm".into())
        );
        for formula in ["＝1+1", "＠x", "\u{200e}=1+1", "\t=1+1", " =1+1", "\r\n+x"] {
            assert!(csv_field(formula).starts_with('\''), "{formula:?}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(-1_234_567), "-1,234,567");
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(decimal(-1234.5, 1), "-1,234.5");
        assert_eq!(decimal(-0.0004, 3), "0.000");
        assert_eq!(decimal(f64::NAN, 3), UNKNOWN);
    }

    #[test]
    fn times_and_sizes_take_the_unit_that_suits() {
        assert_eq!(duration_ms(3e-16), "0 ms");
        assert_eq!(duration_ms(0.000_85), "850 ns");
        assert_eq!(duration_ms(0.0123), "12.3 µs");
        assert_eq!(duration_ms(4.56), "4.56 ms");
        assert_eq!(duration_ms(1_200.0), "1.20 s");
        assert_eq!(duration_ms(200_000.0), "3 min 20 s");
        assert_eq!(duration_ms(7_170_000.0), "119 min 30 s");
        assert_eq!(duration_ms(124_999_000.0), "34 h 43 min");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(999_600.0), "1.00 MB");
        assert_eq!(bytes(2.34e9), "2.34 GB");
        assert_eq!(percent(0.453), "45.3 %");
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(plural(1, "step", "steps"), "1 step");
        assert_eq!(plural(2, "step", "steps"), "2 steps");
        assert_eq!(several(1.0, "call", "calls"), "1 call");
        assert_eq!(several(2.5, "call", "calls"), "2.50 calls");
        assert_eq!(listed(&["a", "b", "c"].map(str::to_owned)), "a, b and c");
    }

    #[test]
    fn names_are_short_and_cannot_leave_their_quotes() {
        let name = format!("a`b\x1b{}", "x".repeat(500));
        let quoted = quoted(&name);
        assert!(quoted.chars().count() <= 72 && quoted.starts_with("`a'b x"), "{quoted}");
    }

    #[test]
    fn dates_hold_across_leap_years_and_before_1970() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(1_709_210_096_000_000_000), "2024-02-29 12:34:56 UTC");
        assert_eq!(utc(-1), "1969-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_399_000_000_000), "2100-02-28 23:59:59 UTC");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(middle_cut("volta_sgemm_128x64_nn", 11), "volta…64_nn");
        assert_eq!(middle_cut("short", 11), "short");
        assert_eq!(middle_cut("größe", 4), "gr…e");
        assert_eq!(middle_cut("abc", 0), "…");
    }
}
