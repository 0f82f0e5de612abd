//! Of many points, those that a chart of so many pixels needs: the first, the least, the greatest and the last of each
//! pixel, and one that is not finite. A line through them looks like the line through all.

use stepscope_trace::series::Series;

/// What a chart is drawn over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Steps.
    Step,
    /// Seconds since the first point.
    Relative,
    /// Seconds since 1970.
    Wall,
}

impl Over {
    /// By its public name.
    pub fn named(name: &str) -> Option<Over> {
        match name {
            "step" => Some(Over::Step),
            "relative" => Some(Over::Relative),
            "wall" => Some(Over::Wall),
            _ => None,
        }
    }

    /// Where a point lies.
    pub fn of(self, series: &Series, at: usize) -> f64 {
        let wall = |at: usize| series.wall_s.get(at).copied().unwrap_or_default();
        match self {
            Over::Step => series.steps.get(at).map_or(0.0, |step| *step as f64),
            Over::Relative => wall(at) - wall(0),
            Over::Wall => wall(at),
        }
    }
}

/// The part of a chart that is drawn, and how many pixels it has.
#[derive(Copy, Clone, Debug)]
pub struct ChartWindow {
    /// What it is drawn over.
    pub over: Over,
    /// From where to where; `None` for all.
    pub range: Option<(f64, f64)>,
    /// Its width in pixels.
    pub pixels: usize,
}

/// The series with the points alone that a chart needs.
pub fn thinned(series: &Series, window: ChartWindow) -> Series {
    let kept = thin(series, window);
    let pick = |column: &[f64]| kept.iter().filter_map(|&at| column.get(at).copied()).collect();
    Series {
        tag: series.tag.clone(),
        steps: kept.iter().filter_map(|&at| series.steps.get(at).copied()).collect(),
        wall_s: pick(&series.wall_s),
        values: pick(&series.values),
        lost: series.lost,
        replaced: series.replaced,
    }
}

/// The points to draw, in order.
pub fn thin(series: &Series, window: ChartWindow) -> Vec<usize> {
    let place = |at: usize| window.over.of(series, at);
    let count = series.values.len();
    let all = || (0..count).map(place);
    let (from, to) = window.range.unwrap_or_else(|| {
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    });
    let width = ((to - from) / window.pixels.max(1) as f64).max(f64::MIN_POSITIVE);
    let bucket = |at: usize| {
        let x = place(at);
        // All that lies outside is one bucket on each side, of which the nearest point is drawn.
        if x < from {
            -1.0
        } else if x > to {
            window.pixels as f64 + 1.0
        } else {
            ((x - from) / width).floor()
        }
    };
    let mut kept = Vec::new();
    let mut start = 0;
    while start < count {
        let here = bucket(start);
        let end = (start + 1..count).find(|&at| bucket(at) != here).unwrap_or(count);
        if here < 0.0 {
            kept.push(end - 1);
        } else if here > window.pixels as f64 {
            kept.push(start);
        } else {
            corners(&series.values, start, end, &mut kept);
        }
        start = end;
    }
    kept
}

/// First, least, greatest and last of some points, and the first that is not finite.
fn corners(values: &[f64], start: usize, end: usize, kept: &mut Vec<usize>) {
    let mut wanted = vec![start, end - 1];
    let (mut least, mut most, mut odd) = (None, None, None);
    for at in start..end {
        let Some(&value) = values.get(at) else { continue };
        if !value.is_finite() {
            odd = odd.or(Some(at));
            continue;
        }
        if least.is_none_or(|(known, _)| value < known) {
            least = Some((value, at));
        }
        if most.is_none_or(|(known, _)| value > known) {
            most = Some((value, at));
        }
    }
    wanted.extend(least.map(|(_, at)| at).into_iter().chain(most.map(|(_, at)| at)).chain(odd));
    wanted.sort_unstable();
    wanted.dedup();
    kept.extend(wanted);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(count: i64) -> Series {
        Series {
            tag: "loss".to_owned(),
            steps: (0..count).collect(),
            wall_s: (0..count).map(|at| 100.0 + at as f64).collect(),
            values: (0..count).map(|at| (at as f64).sin()).collect(),
            ..Series::default()
        }
    }

    #[test]
    fn each_pixel_keeps_its_extremes() {
        let mut many = series(100_000);
        many.values[54_321] = 9.0;
        many.values[60_000] = f64::NAN;
        let kept = thin(&many, ChartWindow { over: Over::Step, range: None, pixels: 300 });
        assert!(kept.len() <= 5 * 301 && kept.is_sorted(), "{}", kept.len());
        for needed in [0, 54_321, 60_000, 99_999] {
            assert!(kept.contains(&needed), "{needed}");
        }
        let few = series(10);
        assert_eq!(
            thin(&few, ChartWindow { over: Over::Wall, range: None, pixels: 300 }),
            (0..10).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_range_keeps_one_neighbour_on_each_side() {
        let kept =
            thin(&series(100), ChartWindow { over: Over::Relative, range: Some((40.0, 43.0)), pixels: 50 });
        assert_eq!(kept, [39, 40, 41, 42, 43, 44]);
        assert_eq!(
            thin(&series(0), ChartWindow { over: Over::Step, range: None, pixels: 50 }),
            Vec::<usize>::new()
        );
        assert_eq!(thin(&series(1), ChartWindow { over: Over::Step, range: None, pixels: 50 }), [0]);
    }
}
