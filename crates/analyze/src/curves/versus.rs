//! Two runs' curves of one tag beside each other: at equal step, at equal time since the start, and the way to a value
//! that both reach.
//!
//! Single values of a loss are noisy, so a value *at* a point is the mean of the last stretch before it.

use stepscope_trace::series::Series;

use super::reaches;

/// The share of the common range whose values make the value at its end.
const STRETCH: f64 = 0.05;

/// Both values at one place.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Pair {
    /// The step, or the seconds since the start.
    pub at: f64,
    /// The value of the base.
    pub base: f64,
    /// The value of the other run.
    pub new: f64,
}

/// How each got to a value: the step, and the seconds since its start.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Goal {
    /// The value.
    pub value: f64,
    /// The base; `None` if it does not get there.
    pub base: Option<(i64, f64)>,
    /// The other run.
    pub new: Option<(i64, f64)>,
}

/// One tag of two runs. What cannot be compared is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    /// At the last step that both have.
    pub at_step: Option<Pair>,
    /// At the last time since the start that both have.
    pub at_time: Option<Pair>,
    /// The way to the value that both end beyond; `None` if the tag goes nowhere.
    pub goal: Option<Goal>,
}

impl Versus {
    /// Compares a run with a base.
    pub fn of(base: &Series, new: &Series) -> Self {
        Versus { at_step: at_step(base, new), at_time: at_time(base, new), goal: goal(base, new) }
    }
}

/// Which runs to compare, given the place of each (the number of the path that it is below) and its name there: each with
/// that of the same name in the first place, or single runs with the only one there.
pub fn pairs(runs: &[(usize, &str)]) -> Vec<(usize, usize)> {
    let alone = |place: usize| {
        let mut all = runs.iter().enumerate().filter(|(_, (of, _))| *of == place);
        all.next().filter(|_| all.next().is_none()).map(|(at, _)| at)
    };
    let base_of = |name: &str| runs.iter().position(|(place, known)| *place == 0 && *known == name);
    let others = runs.iter().enumerate().filter(|(_, (place, _))| *place > 0);
    let pair = |(at, (place, name)): (usize, &(usize, &str))| {
        let single = || alone(0).filter(|_| alone(*place).is_some());
        base_of(name).or_else(single).map(|base| (base, at))
    };
    others.filter_map(pair).collect()
}

fn at_step(base: &Series, new: &Series) -> Option<Pair> {
    let ends = |series: &Series| Some((*series.steps.first()? as f64, *series.steps.last()? as f64));
    let ((from_base, to_base), (from_new, to_new)) = (ends(base)?, ends(new)?);
    let (from, to) = (from_base.max(from_new), to_base.min(to_new));
    let step = |series: &Series, at: usize| series.steps.get(at).map(|step| *step as f64);
    Some(Pair { at: to, base: mean_before(base, from, to, step)?, new: mean_before(new, from, to, step)? })
}

fn at_time(base: &Series, new: &Series) -> Option<Pair> {
    let length = |series: &Series| Some(series.wall_s.last()? - series.wall_s.first()?);
    let to = length(base)?.min(length(new)?);
    let time = |series: &Series, at: usize| Some(series.wall_s.get(at)? - series.wall_s.first()?);
    Some(Pair { at: to, base: mean_before(base, 0.0, to, time)?, new: mean_before(new, 0.0, to, time)? })
}

/// The mean of finite values in the last stretch of a range; of the last one before its end if there is none.
fn mean_before(
    series: &Series,
    from: f64,
    to: f64,
    place: impl Fn(&Series, usize) -> Option<f64>,
) -> Option<f64> {
    if to < from {
        return None;
    }
    let after = to - STRETCH * (to - from);
    let (mut sum, mut count, mut last) = (0.0, 0_usize, None);
    for (at, &value) in series.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        let here = place(series, at)?;
        if here > to {
            continue;
        }
        last = Some(value);
        if here >= after {
            sum += value;
            count += 1;
        }
    }
    if count > 0 { Some(sum / count as f64) } else { last }
}

/// The way to the less far of both ends. Only if both go the same way is one of them further.
fn goal(base: &Series, new: &Series) -> Option<Goal> {
    let ends = |series: &Series| {
        let steps = (*series.steps.first()? as f64, *series.steps.last()? as f64);
        let step = |series: &Series, at: usize| series.steps.get(at).map(|step| *step as f64);
        let first = series.values.iter().copied().find(|value| value.is_finite())?;
        Some((first, mean_before(series, steps.0, steps.1, step)?))
    };
    let ((from_base, to_base), (from_new, to_new)) = (ends(base)?, ends(new)?);
    let falls = to_base < from_base;
    if falls != (to_new < from_new) || to_base == from_base || to_new == from_new {
        return None;
    }
    let value = if falls { to_base.max(to_new) } else { to_base.min(to_new) };
    Some(Goal { value, base: reaches(base, value), new: reaches(new, value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loss that falls from 1 to 0 over so many steps, each of so many seconds.
    fn falling(steps: i64, seconds: f64, speed: f64) -> Series {
        Series {
            tag: "loss".to_owned(),
            steps: (0..=steps).collect(),
            wall_s: (0..=steps).map(|step| 500.0 + seconds * step as f64).collect(),
            values: (0..=steps).map(|step| 1.0 - speed * step as f64 / 100.0).collect(),
            ..Series::default()
        }
    }

    #[test]
    fn runs_are_compared_at_equal_step_and_equal_time() {
        // The second needs twice as many steps, which take a quarter of the time.
        let versus = Versus::of(&falling(100, 4.0, 1.0), &falling(200, 1.0, 0.5));
        let step = versus.at_step.unwrap();
        assert_eq!(step.at, 100.0);
        assert!((step.base - 0.025).abs() < 1e-9 && (step.new - 0.5125).abs() < 1e-9, "{step:?}");
        let time = versus.at_time.unwrap();
        assert_eq!(time.at, 200.0);
        assert!(time.new < time.base, "{time:?}");
        let goal = versus.goal.unwrap();
        let (base, new) = (goal.base.unwrap(), goal.new.unwrap());
        assert!(goal.value < 0.03 && base.1 > 1.9 * new.1 && base.0 < new.0, "{goal:?}");
    }

    #[test]
    fn runs_of_the_same_name_are_compared_or_the_only_ones() {
        assert_eq!(pairs(&[(0, "train"), (0, "eval"), (1, "eval"), (1, "train")]), [(1, 2), (0, 3)]);
        assert_eq!(pairs(&[(0, "."), (1, "x")]), [(0, 1)]);
        assert_eq!(pairs(&[(0, "a"), (0, "b"), (1, "c")]), []);
    }

    #[test]
    fn what_cannot_be_compared_is_unknown() {
        let mut late = falling(10, 1.0, 1.0);
        late.steps = (500..=510).collect();
        assert_eq!(Versus::of(&falling(100, 1.0, 1.0), &late).at_step, None, "no step in common");
        let flat = falling(10, 1.0, 0.0);
        assert_eq!(Versus::of(&flat, &flat).goal, None);
        assert_eq!(Versus::of(&Series::default(), &flat).at_time, None);
        let rising = falling(100, 1.0, -1.0);
        assert_eq!(Versus::of(&falling(100, 1.0, 1.0), &rising).goal, None, "they go different ways");
    }

    #[test]
    fn a_run_that_is_not_a_number_at_the_end_counts_by_what_came_before() {
        let mut broken = falling(100, 1.0, 1.0);
        broken.values.iter_mut().skip(50).for_each(|value| *value = f64::NAN);
        let step = Versus::of(&falling(100, 1.0, 1.0), &broken).at_step.unwrap();
        assert_eq!(step.new, broken.values[49]);
    }
}
