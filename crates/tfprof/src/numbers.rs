//! Numbers as tfprof writes them.

/// A count: `8.19k`.
pub(crate) fn count(n: i64) -> String {
    match n {
        ..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.2}k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}m", n as f64 / 1e6),
        _ => format!("{:.2}b", n as f64 / 1e9),
    }
}

/// A time: `2.15ms`.
pub(crate) fn time(micros: i64) -> String {
    match micros {
        ..1_000 => format!("{micros}us"),
        1_000..1_000_000 => format!("{:.2}ms", micros as f64 / 1e3),
        _ => format!("{:.2}sec", micros as f64 / 1e6),
    }
}

/// An amount of memory: `32.77KB`.
pub(crate) fn bytes(bytes: i64) -> String {
    match bytes {
        ..1_000 => format!("{bytes}B"),
        1_000..1_000_000 => format!("{:.2}KB", bytes as f64 / 1e3),
        _ => format!("{:.2}MB", bytes as f64 / 1e6),
    }
}

/// A shape: `64x128`.
pub(crate) fn shape(dims: &[i64]) -> String {
    dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// Six significant digits without trailing zeros, as C's `%g`.
pub(crate) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return trim(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_at_a_thousand() {
        assert_eq!([count(999), count(1_000), count(-5)], ["999", "1.00k", "-5"]);
        assert_eq!([count(2_500_000), count(3_000_000_000)], ["2.50m", "3.00b"]);
        assert_eq!([time(999), time(2_149), time(1_500_000)], ["999us", "2.15ms", "1.50sec"]);
        assert_eq!([bytes(999), bytes(32_768), bytes(3_000_000_000)], ["999B", "32.77KB", "3000.00MB"]);
    }

    #[test]
    fn general_numbers_are_those_of_c() {
        assert_eq!([general(0.032_768), general(0.001_92), general(1.0)], ["0.032768", "0.00192", "1"]);
        assert_eq!([general(0.000_004), general(1_234_567.0)], ["4e-06", "1.23457e+06"]);
    }
}
