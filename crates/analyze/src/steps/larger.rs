//! A period of periods: equal layers repeat within a step, and the steps repeat as well.
//!
//! If all layers are alike, and the kernels before and after them are the same too, no kernel occurs once per
//! step. But the repetition of layers breaks at the end of every step, at equal distances.

use stepscope_trace::Dur;
use stepscope_trace::statistics::median_duration;

use super::period::{Score, find_period, numbered};

/// How well the larger sequence must repeat: a step repeats exactly, or nearly.
const EXACTLY: f64 = 0.9;
/// A step with fewer repetitions is too similar to something that happens every other step.
const LEAST_LAYERS: usize = 3;
/// The share of one repetition that may itself consist of repetitions. With more, it is already a step with
/// layers.
const INNER: usize = 4;

/// A larger period.
pub(super) struct Larger {
    /// Number of events.
    pub(super) length: usize,
    /// Where the smaller period breaks, once in each.
    breaks: Vec<usize>,
    /// The smaller period.
    smaller: usize,
    /// Number of events in total.
    events: usize,
}

/// The period in which `period` repeats; `None` if it repeats throughout, or breaks irregularly.
pub(super) fn larger_period(names: &[u32], period: usize) -> Option<Larger> {
    if holds_layers(names, period) {
        return None;
    }
    let breaks = breaks(names, period);
    let mut apart: Vec<usize> = breaks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if apart.is_empty() {
        return None;
    }
    let middle = apart.len() / 2;
    let length = *apart.select_nth_unstable(middle).1;
    if length < LEAST_LAYERS * period || names.len() < 2 * length {
        return None;
    }
    let (dense, often) = numbered(names);
    let repeats = |period: usize| Score::of(&dense, &often, period).by_event;
    let (larger, smaller) = (repeats(length), repeats(period));
    (larger >= EXACTLY && larger >= smaller).then_some(Larger {
        length,
        breaks,
        smaller: period,
        events: names.len(),
    })
}

/// Whether one repetition mostly consists of smaller ones.
pub(super) fn holds_layers(names: &[u32], period: usize) -> bool {
    names.get(..period).and_then(find_period).is_some_and(|inner| inner * INNER <= period)
}

/// Where the sequence stops repeating: the start of each stretch that does not repeat.
fn breaks(names: &[u32], period: usize) -> Vec<usize> {
    let later = names.get(period..).unwrap_or_default();
    let differ = names.iter().zip(later).enumerate().filter(|(_, (name, later))| name != later);
    let mut breaks: Vec<usize> = Vec::new();
    let mut last = None;
    for (at, _) in differ {
        if last.is_none_or(|last| at > last + period) {
            breaks.push(at);
        }
        last = Some(at);
    }
    // Everything before the first repetition is not a break.
    breaks.retain(|&at| at > 0);
    breaks
}

impl Larger {
    /// The first event of each: a repetition breaks one smaller period before its last one ends, so the longest
    /// pause soon after that is the end of a step.
    pub(super) fn starts(&self, pause_before: impl Fn(usize) -> Dur) -> Vec<usize> {
        let after_breaks =
            |after: usize| self.breaks.iter().map(move |&at| at + after).filter(|&at| at < self.events);
        let typical = |after: usize| median_duration(after_breaks(after).map(&pause_before));
        let after =
            (self.smaller..2 * self.smaller).max_by_key(|&after| (typical(after), 2 * self.smaller - after));
        let after = after.unwrap_or(self.smaller);
        let mut starts: Vec<usize> = after_breaks(after).collect();
        // The first step has no break before it.
        if let Some(first) = starts.first().map(|first| first.saturating_sub(self.length))
            && starts.first().is_some_and(|&known| known >= self.length / 2)
        {
            starts.insert(0, first);
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `passes` of 12 equal layers with a beginning and an end of the same kernels.
    fn passes(passes: usize) -> Vec<u32> {
        let layer = [1, 2, 3, 2, 4, 5, 2, 6, 7, 8, 9, 2, 3];
        let layers = layer.into_iter().cycle().take(layer.len() * 12);
        let pass: Vec<u32> = [3, 2].into_iter().chain(layers).chain([5, 8, 2]).collect();
        pass.iter().copied().cycle().take(pass.len() * passes).collect()
    }

    #[test]
    fn passes_of_equal_layers_are_the_steps() {
        let names = passes(4);
        assert_eq!(find_period(&names), Some(13), "a layer");
        let larger = larger_period(&names, 13).unwrap();
        assert_eq!(larger.length, 12 * 13 + 5);
        let starts = larger.starts(|at| if at % 161 == 0 { Dur::from_us(5) } else { Dur::ZERO });
        assert_eq!(starts, [0, 161, 322, 483]);
    }

    #[test]
    fn one_pass_has_no_larger_period() {
        assert!(larger_period(&passes(1), 13).is_none());
        let endless: Vec<u32> = (0..13).cycle().take(13 * 40).collect();
        assert!(larger_period(&endless, 13).is_none());
    }

    #[test]
    fn what_comes_now_and_then_between_steps_with_layers_does_not_make_them_longer() {
        let layers = (0..4).cycle().take(4 * 30);
        let step: Vec<u32> = [100, 101].into_iter().chain(layers).chain([200, 201, 202]).collect();
        let mut all: Vec<u32> = step.iter().copied().cycle().take(step.len() * 100).collect();
        for turn in (0..100).rev().step_by(25) {
            all.insert(turn * step.len(), 300);
        }
        assert!(larger_period(&all, step.len()).is_none());
    }
}
