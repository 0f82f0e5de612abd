//! Times as exact decimal numbers, and alignment of the hosts' clocks.

use stepscope_trace::Time;

use super::ExportSource;

/// The origin of each host, relative to the earliest.
#[derive(Clone, Debug)]
pub struct Origins {
    /// Nanoseconds since 1970 of the earliest origin, if all hosts know theirs.
    pub wall_ns: Option<i64>,
    offsets_ps: Vec<i128>,
}

impl Origins {
    /// Aligns hosts by wall clock if all of them know it; otherwise each starts at its own origin.
    pub fn of(sources: &[ExportSource<'_>]) -> Self {
        let walls: Option<Vec<i64>> =
            sources.iter().map(|source| source.trace.clock().wall_ns_at_origin).collect();
        let earliest = walls.as_ref().and_then(|walls| walls.iter().min().copied());
        let offsets_ps = match (walls, earliest) {
            (Some(walls), Some(first)) => {
                walls.iter().map(|&wall| (i128::from(wall) - i128::from(first)) * 1_000).collect()
            }
            _ => vec![0; sources.len()],
        };
        Origins { wall_ns: earliest, offsets_ps }
    }

    /// Picoseconds from the earliest origin to `time` on the `host`th host.
    pub fn ps(&self, host: usize, time: Time) -> i128 {
        self.offsets_ps.get(host).copied().unwrap_or(0) + i128::from(time.ps())
    }
}

/// Appends `ps` picoseconds as an exact decimal number of units of 10^`digits` picoseconds.
pub(super) fn push_decimal(out: &mut String, ps: i128, digits: u32) {
    use std::fmt::Write as _;
    let unit = 10_u128.pow(digits);
    let (whole, rest) = (ps.unsigned_abs() / unit, ps.unsigned_abs() % unit);
    if ps < 0 {
        out.push('-');
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "{whole}");
    if rest > 0 {
        let _ = write!(out, ".{rest:0width$}", width = digits as usize);
        out.truncate(out.trim_end_matches('0').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_are_exact_in_any_unit() {
        let text = |ps, digits| {
            let mut out = String::new();
            push_decimal(&mut out, ps, digits);
            out
        };
        assert_eq!(text(1_234_567, 6), "1.234567");
        assert_eq!(text(1_500_000, 6), "1.5");
        assert_eq!(text(-1, 6), "-0.000001");
        assert_eq!(text(10_000_000, 6), "10");
        assert_eq!(text(i128::from(i64::MAX), 3), "9223372036854775.807");
    }
}
