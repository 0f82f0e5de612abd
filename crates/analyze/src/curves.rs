//! What a logged series says in one row: how many points, where it began and ended, its extremes, and how fast steps
//! went by the clock. Beside the timeline's analyses: it takes a [`Series`], not a trace.

pub mod pace;
pub mod place;
pub mod smooth;
pub mod study;
pub mod tags;
pub mod thin;
pub mod versus;

use std::collections::BTreeMap;

use stepscope_trace::series::{Hparams, LogDamage, OtherTag, Restart, RunLog, Series};

use self::pace::{Pace, evaluated_s};

/// A series in one row. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// How many points it has.
    pub points: usize,
    /// Its first step.
    pub first_step: Option<i64>,
    /// Its last step.
    pub last_step: Option<i64>,
    /// When its first point was written, in seconds since 1970.
    pub first_wall_s: Option<f64>,
    /// When its last one was.
    pub last_wall_s: Option<f64>,
    /// The first value; may be not a number.
    pub first: Option<f64>,
    /// The last value; may be not a number.
    pub last: Option<f64>,
    /// The least finite value, and its step.
    pub min: Option<(f64, i64)>,
    /// The greatest finite value, and its step.
    pub max: Option<(f64, i64)>,
    /// The mean of the finite values.
    pub mean: Option<f64>,
    /// How many values are not numbers.
    pub nan: usize,
    /// How many are infinite.
    pub infinite: usize,
    /// The first step whose value is not finite.
    pub first_not_finite: Option<i64>,
    /// When that was written, in seconds since 1970.
    pub not_finite_s: Option<f64>,
    /// The last finite value before that.
    pub before_not_finite: Option<f64>,
    /// The last finite value of all, and its step.
    pub last_finite: Option<(f64, i64)>,
    /// Steps per second over the whole series, by the clock.
    pub steps_per_second: Option<f64>,
    /// Nine of ten pieces are faster, and nine of ten slower than this.
    pub pace: Option<(f64, f64)>,
}

impl Curve {
    /// Of a series.
    pub fn of(series: &Series) -> Self {
        Curve { pace: pace(series), ..Curve::without_pace(series) }
    }

    /// One pass over the values: a log directory of a gigabyte has fifty million of them.
    fn without_pace(series: &Series) -> Self {
        let mut curve = Curve { points: series.values.len(), ..Curve::default() };
        let (mut least, mut most, mut last) = (None::<usize>, None::<usize>, None::<usize>);
        let (mut low, mut high, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0_usize);
        let mut odd = None;
        for (at, &value) in series.values.iter().enumerate() {
            if !value.is_finite() {
                odd = odd.or(Some(at));
                curve.nan += usize::from(value.is_nan());
                curve.infinite += usize::from(value.is_infinite());
                continue;
            }
            // Of equal ones the first counts.
            if value < low {
                (low, least) = (value, Some(at));
            }
            if value > high {
                (high, most) = (value, Some(at));
            }
            (sum, count, last) = (sum + value, count + 1, Some(at));
        }
        let point = |at: usize| Some((*series.values.get(at)?, *series.steps.get(at)?));
        (curve.min, curve.max) = (least.and_then(point), most.and_then(point));
        curve.last_finite = last.and_then(point);
        curve.mean = (count > 0).then(|| sum / count as f64);
        curve.first_not_finite = odd.and_then(|at| series.steps.get(at).copied());
        curve.not_finite_s = odd.and_then(|at| series.wall_s.get(at).copied());
        curve.before_not_finite = odd.and_then(|at| series.values.get(at.checked_sub(1)?).copied());
        (curve.first_step, curve.last_step) = (series.steps.first().copied(), series.steps.last().copied());
        (curve.first_wall_s, curve.last_wall_s) =
            (series.wall_s.first().copied(), series.wall_s.last().copied());
        (curve.first, curve.last) = (series.values.first().copied(), series.values.last().copied());
        curve.steps_per_second = overall(series);
        curve
    }
}

/// A tag's curve with what is known about its points.
#[derive(Clone, Debug, PartialEq)]
pub struct TagCurve {
    /// The tag.
    pub tag: String,
    /// The series in one row.
    pub curve: Curve,
    /// Points in damaged records.
    pub lost: u64,
    /// Points that newer ones replaced.
    pub replaced: u64,
    /// The means of pieces of the series, for a small picture; `None` where a piece has no finite value.
    pub course: Vec<Option<f64>>,
}

/// What one run logged, without its points: a log directory of a gigabyte has few rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCurves {
    /// The run.
    pub name: String,
    /// Records that were read.
    pub records: u64,
    /// Its curves, by tag.
    pub curves: Vec<TagCurve>,
    /// Its other tags.
    pub others: Vec<OtherTag>,
    /// Its hyperparameters.
    pub hparams: Option<Hparams>,
    /// Where it began again.
    pub restarts: Vec<Restart>,
    /// How fast its steps were.
    pub pace: Option<Pace>,
    /// When it evaluated its model, in seconds since 1970.
    pub evaluated_s: Vec<f64>,
    /// When it last wrote anything.
    pub last_s: Option<f64>,
    /// What is wrong with its files.
    pub damage: Vec<LogDamage>,
}

impl RunCurves {
    /// Of a log.
    pub fn of<'l>(log: &'l RunLog) -> Self {
        // Most tags of a run are logged together, and have one clock.
        let mut known: Option<(&Series, Option<(f64, f64)>)> = None;
        let mut pace_of = |series: &'l Series| match known {
            Some((last, pace)) if last.steps == series.steps && last.wall_s == series.wall_s => pace,
            _ => {
                let pace = pace(series);
                known = Some((series, pace));
                pace
            }
        };
        let curve = |series: &'l Series| TagCurve {
            curve: Curve { pace: pace_of(series), ..Curve::without_pace(series) },
            course: course(&series.values),
            lost: series.lost,
            replaced: series.replaced,
            tag: series.tag.clone(),
        };
        RunCurves {
            name: log.name.clone(),
            records: log.records,
            curves: log.series.iter().map(curve).collect(),
            others: log.others.clone(),
            hparams: log.hparams.clone(),
            restarts: log.restarts.clone(),
            pace: Pace::of(log),
            evaluated_s: evaluated_s(log),
            last_s: log.last_s,
            damage: log.damage.clone(),
        }
    }

    /// Names pauses of runs after evaluations that runs beside them logged at the time: `a/validation` stands beside
    /// `a/train`.
    pub fn explain(runs: &mut [RunCurves]) {
        let folder = |name: &str| name.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
        let mut evaluated: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for run in runs.iter().filter(|run| !run.evaluated_s.is_empty()) {
            evaluated.entry(folder(&run.name)).or_default().extend(&run.evaluated_s);
        }
        evaluated.values_mut().for_each(|times| times.sort_by(f64::total_cmp));
        for run in runs {
            let beside = evaluated.get(&folder(&run.name));
            if let (Some(pace), Some(times)) = (&mut run.pace, beside) {
                pace.explain(times);
            }
        }
    }
}

/// So many pieces make the small picture of a series.
const PIECES: usize = 24;

fn course(values: &[f64]) -> Vec<Option<f64>> {
    let mean = |piece: &[f64]| {
        let finite = || piece.iter().copied().filter(|value| value.is_finite());
        let count = finite().count();
        (count > 0).then(|| finite().sum::<f64>() / count as f64)
    };
    values.chunks(values.len().div_ceil(PIECES).max(1)).map(mean).collect()
}

/// Steps from the first to the last point over the time between them.
fn overall(series: &Series) -> Option<f64> {
    let steps = series.steps.last()?.checked_sub(*series.steps.first()?)?;
    let seconds = series.wall_s.last()? - series.wall_s.first()?;
    (steps > 0 && seconds > 0.0).then(|| steps as f64 / seconds)
}

/// How fast the slow and the fast pieces between two points are.
fn pace(series: &Series) -> Option<(f64, f64)> {
    let mut rates: Vec<f64> = series
        .steps
        .windows(2)
        .zip(series.wall_s.windows(2))
        .filter_map(|(steps, walls)| {
            let (steps, seconds) = (steps[1].checked_sub(steps[0])?, walls[1] - walls[0]);
            (steps > 0 && seconds > 0.0).then(|| steps as f64 / seconds)
        })
        .collect();
    Some((quantile_of(&mut rates, 0.1)?, quantile_of(&mut rates, 0.9)?))
}

/// The same as [`quantile`](stepscope_trace::statistics::quantile) of values in any order, without sorting all of them.
fn quantile_of(values: &mut [f64], q: f64) -> Option<f64> {
    let place = q * values.len().checked_sub(1)? as f64;
    let (_, below, rest) = values.select_nth_unstable_by(place.floor() as usize, f64::total_cmp);
    let above = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(*below);
    Some(*below + (above - *below) * place.fract())
}

/// When a series first reaches a value, from above or from below, whichever its first value is on the other side of:
/// the step, and the seconds since its first point.
pub fn reaches(series: &Series, value: f64) -> Option<(i64, f64)> {
    let first = series.values.iter().copied().find(|value| value.is_finite())?;
    let there = |seen: &f64| if first > value { *seen <= value } else { *seen >= value };
    let at = series.values.iter().position(|seen| seen.is_finite() && there(seen))?;
    Some((*series.steps.get(at)?, series.wall_s.get(at)? - series.wall_s.first()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series {
            tag: "loss".to_owned(),
            steps: (0..values.len() as i64).map(|step| 10 * step).collect(),
            wall_s: (0..values.len()).map(|place| 100.0 + 2.0 * place as f64).collect(),
            values: values.to_vec(),
            ..Series::default()
        }
    }

    #[test]
    fn a_row_says_where_it_began_and_ended_and_how_fast() {
        let curve = Curve::of(&series(&[3.0, 1.0, f64::NAN, 1.0, f64::INFINITY, 2.0]));
        assert_eq!((curve.points, curve.nan, curve.infinite), (6, 1, 1));
        assert_eq!((curve.min, curve.max), (Some((1.0, 10)), Some((3.0, 0))));
        assert_eq!((curve.mean, curve.first_not_finite), (Some(1.75), Some(20)));
        assert_eq!((curve.first, curve.last), (Some(3.0), Some(2.0)));
        assert_eq!((curve.steps_per_second, curve.pace), (Some(5.0), Some((5.0, 5.0))));
    }

    #[test]
    fn quantiles_need_no_order() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quantile_of(&mut values, 0.1), Some(1.4));
        assert_eq!(quantile_of(&mut values, 0.9), Some(4.6));
        assert_eq!(quantile_of(&mut [], 0.5), None);
    }

    #[test]
    fn nothing_is_unknown_and_not_zero() {
        let curve = Curve::of(&Series::default());
        assert_eq!(curve, Curve::default());
        assert_eq!(Curve::of(&series(&[1.0])).steps_per_second, None);
        assert_eq!(Curve::of(&series(&[f64::NAN])).mean, None);
    }

    #[test]
    fn a_value_is_reached_from_either_side() {
        assert_eq!(reaches(&series(&[3.0, 2.0, 0.5]), 1.0), Some((20, 4.0)));
        assert_eq!(reaches(&series(&[0.1, 0.7, 0.9]), 0.7), Some((10, 2.0)));
        assert_eq!(reaches(&series(&[3.0, 2.0]), 1.0), None);
    }
}
