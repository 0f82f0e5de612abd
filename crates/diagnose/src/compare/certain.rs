//! What is certain although steps scatter, and what follows from it for the rest of the step.
//!
//! Load makes steps longer by a factor that comes and goes, so it scatters the steps of a run. Two cases are beyond what it
//! can do. If the shortest step of one side takes several times as long as the longest of the other, no interval is needed.
//! And since the categories of a step sum to the step, a certain change of the category that makes up the change is one of
//! the whole, and the other way round.

use super::CategoryDelta;
use super::noise::{Estimate, Measured};
use super::verdict::Margins;
use crate::statistics::median;

/// Fewer steps per side are no range.
const LEAST_STEPS: usize = 5;
/// One step in so many may lie outside of the range.
const OUTSIDE: usize = 20;
/// So many times the longest step of one side are the shortest of the other …
const APART: f64 = 2.0;
/// … and the middles of both are so many times their scatter apart.
const SCATTERS: f64 = 3.0;
/// A category explains the change of the whole from this share of it on …
const EXPLAINS: f64 = 0.5;
/// … up to this one: beyond it, other categories make up for most of it.
const OVERDOES: f64 = 1.5;

/// The least and the greatest ratio of a step of NEW to one of BASE, as logarithms, where all steps of one side are far
/// beyond those of the other; else `None`.
pub(super) fn far_apart(base: &[Vec<f64>], new: &[Vec<f64>]) -> Option<(f64, f64)> {
    let (base, new) = (Range::of(base)?, Range::of(new)?);
    let (low, high) = (new.low - base.high, new.high - base.low);
    let gap = low.max(-high);
    let far = (new.middle - base.middle).abs() >= SCATTERS * base.scatter.max(new.scatter);
    (gap >= APART.ln() && far).then_some((low, high))
}

/// The steps of a side as logarithms.
struct Range {
    low: f64,
    high: f64,
    middle: f64,
    scatter: f64,
}

impl Range {
    fn of(side: &[Vec<f64>]) -> Option<Range> {
        let mut all: Vec<f64> = side.concat().into_iter().map(f64::ln).collect();
        if all.len() < LEAST_STEPS || all.iter().any(|log| !log.is_finite()) {
            return None;
        }
        all.sort_by(f64::total_cmp);
        let outside = all.len() / OUTSIDE;
        let (low, high) = (*all.get(outside)?, *all.get(all.len() - 1 - outside)?);
        let middle = median(&all)?;
        let off: Vec<f64> = all.iter().map(|log| (log - middle).abs()).collect();
        Some(Range { low, high, middle, scatter: 1.4826 * median(&off)? })
    }
}

/// Is the estimate beyond 0 for certain, and by more than `least`?
fn excludes(estimate: &Estimate, least: f64) -> bool {
    estimate.low.is_some_and(|low| low > least) || estimate.high.is_some_and(|high| high < -least)
}

/// The share of the change of the whole that a part makes up.
fn share(part: &CategoryDelta, whole_delta: f64) -> f64 {
    if whole_delta == 0.0 { 0.0 } else { part.measured.delta_ms.value / whole_delta }
}

/// The mean step with the interval of the category that makes up its change, if that category's change is certain.
pub(super) fn whole_by_part(mean: &Measured, parts: &[CategoryDelta], margins: &Margins) -> Option<Measured> {
    let delta = mean.delta_ms.value;
    let least = margins.practical * mean.base_ms;
    let certain = |part: &&CategoryDelta| {
        (EXPLAINS..=OVERDOES).contains(&share(part, delta)) && excludes(&part.measured.delta_ms, least)
    };
    // Parts come with the largest change first.
    let part = parts.iter().find(certain)?;
    Some(with_ends(mean, &part.measured.delta_ms, 1.0 / share(part, delta)))
}

/// Makes the category certain that explains a change of the whole. `decided` is the figure that decided about the whole.
pub(super) fn part_by_whole(decided: &Measured, mean: &Measured, parts: &mut [CategoryDelta]) {
    let delta = mean.delta_ms.value;
    let same_way = delta * decided.delta_ms.value > 0.0;
    let explains = |part: &&mut CategoryDelta| share(part, delta) >= EXPLAINS;
    let Some(part) = parts.iter_mut().find(explains).filter(|part| same_way && !part.proven()) else {
        return;
    };
    let of_whole = part.measured.delta_ms.value / decided.delta_ms.value;
    part.measured = with_ends(&part.measured, &decided.delta_ms, of_whole);
}

/// A figure with the interval of another one, times a factor.
fn with_ends(figure: &Measured, ends: &Estimate, factor: f64) -> Measured {
    let (low, high) = (ends.low.map(|low| low * factor), ends.high.map(|high| high * factor));
    let over_base = |delta: f64| (1.0 + delta / figure.base_ms).max(f64::MIN_POSITIVE);
    Measured {
        delta_ms: Estimate { low, high, ..figure.delta_ms },
        ratio: figure.ratio.map(|ratio| Estimate {
            low: low.map(over_base),
            high: high.map(over_base),
            ..ratio
        }),
        ..*figure
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use stepscope_analyze::Category;

    use super::*;

    #[test]
    fn ranges_that_lie_far_apart_need_no_interval() {
        let two_peaks: Vec<f64> = (0..14).map(|i| if i % 2 == 0 { 1.5 } else { 4.0 }).collect();
        let slow: Vec<f64> = (0..14).map(|i| 60.0 + f64::from(i)).collect();
        let (low, high) = far_apart(from_ref(&two_peaks), from_ref(&slow)).unwrap();
        assert!((low.exp() - 15.0).abs() < 1e-9 && (high.exp() - 73.0 / 1.5).abs() < 1e-9);
        let (back, _) = far_apart(from_ref(&slow), from_ref(&two_peaks)).unwrap();
        assert!((back + high).abs() < 1e-9, "the same when the sides change places");
        assert_eq!(far_apart(&[two_peaks], &[vec![60.0; 4]]), None, "four steps are no range");
        let overlaps: Vec<f64> = slow.iter().map(|ms| ms / 1.9).collect();
        assert_eq!(far_apart(&[overlaps], &[slow]), None);
        assert_eq!(far_apart(&[vec![0.0; 9]], &[vec![1.0; 9]]), None);
    }

    #[test]
    fn one_wild_step_in_twenty_hides_nothing() {
        let mut base = vec![10.0; 40];
        base[7] = 900.0;
        assert!(far_apart(&[base.clone()], &[vec![50.0; 40]]).is_some());
        base[8..10].fill(900.0);
        assert_eq!(far_apart(&[base], &[vec![50.0; 40]]), None);
    }

    fn part(category: Category, base_ms: f64, new_ms: f64, width: f64) -> CategoryDelta {
        let value = new_ms - base_ms;
        let delta_ms = Estimate { value, low: Some(value - width), high: Some(value + width) };
        let measured = Measured { delta_ms, ..Measured::of_means(base_ms, new_ms, Some(0.1), 0.1) };
        CategoryDelta { category, measured }
    }

    #[test]
    fn what_makes_up_a_change_is_as_certain_as_the_change() {
        let mean = Measured::of_means(10.0, 50.0, Some(2.0), 1.0);
        let parts = [part(Category::Input, 1.0, 39.0, 20.0), part(Category::Compute, 9.0, 11.0, 5.0)];
        let whole = whole_by_part(&mean, &parts, &Margins::default()).unwrap();
        let ratio = whole.ratio.unwrap();
        assert!(ratio.low.unwrap() > 2.5 && ratio.value == 5.0, "{whole:?}");
        let unclear = [part(Category::Input, 1.0, 39.0, 40.0)];
        assert_eq!(whole_by_part(&mean, &unclear, &Margins::default()), None);
        let little = [part(Category::Compute, 9.0, 19.0, 1.0)];
        assert_eq!(whole_by_part(&mean, &little, &Margins::default()), None, "a quarter explains nothing");

        let decided = Measured::of_means(10.0, 50.0, Some(0.1), 0.1);
        let mut parts = unclear;
        part_by_whole(&decided, &decided, &mut parts);
        assert!(parts[0].proven(), "{parts:?}");
        let mut small = [part(Category::Compute, 9.0, 11.0, 5.0)];
        part_by_whole(&decided, &decided, &mut small);
        assert!(!small[0].proven());
    }
}
