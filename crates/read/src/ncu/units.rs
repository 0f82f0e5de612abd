//! Units: the pages scale every column differently (`us` in one report, `ms` in the next); the native file does
//! not. All values are converted to the base units of the native file.

/// Factor for a value in `unit`: times become nanoseconds, frequencies hertz, rates per second, and multiples
/// (`Kbyte`) the unit itself.
pub(super) fn to_base(unit: &str) -> f64 {
    let (top, bottom) = unit.split_once('/').unwrap_or((unit, ""));
    if bottom.is_empty() {
        return nanoseconds(top).unwrap_or_else(|| multiple(top));
    }
    let per_second = nanoseconds(bottom).map_or(1.0, |length| 1e9 / length);
    multiple(top) * per_second
}

fn nanoseconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nsecond" => 1.0,
        "us" | "usecond" => 1e3,
        "ms" | "msecond" => 1e6,
        "s" | "second" => 1e9,
        _ => return None,
    })
}

fn multiple(unit: &str) -> f64 {
    let mut letters = unit.chars();
    let (first, second) = (letters.next(), letters.next());
    if !second.is_some_and(|letter| letter.is_ascii_lowercase()) {
        return 1.0;
    }
    match first {
        Some('K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        Some('T') => 1e12,
        Some('P') => 1e15,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_comes_to_base_units() {
        for (unit, factor) in [
            ("", 1.0),
            ("%", 1.0),
            ("inst/cycle", 1.0),
            ("register/thread", 1.0),
            ("SM", 1.0),
            ("us", 1e3),
            ("msecond", 1e6),
            ("second", 1e9),
            ("Mbyte", 1e6),
            ("Kbyte/block", 1e3),
            ("Gbyte/s", 1e9),
            ("Tbyte/second", 1e12),
            ("Ghz", 1e9),
            ("cycle/nsecond", 1e9),
            ("sector/us", 1e6),
            ("byte/s", 1.0),
        ] {
            assert_eq!(to_base(unit), factor, "{unit}");
        }
    }
}
