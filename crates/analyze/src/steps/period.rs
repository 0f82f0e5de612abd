//! Steps by the period of a sequence: if nothing is marked and no function repeats, the kernels of a step still
//! come in the same order every time.

use stepscope_trace::{Dur, ProcessKind, Span, Time, Track, TrackKind};

use super::evidence::{Repetitions, is_fed};
use super::larger::larger_period;
use super::{Candidate, How, cycle, layers};
use crate::host_trace::HostTrace;
use crate::vocabulary::Role;
use stepscope_trace::statistics::median_duration;

/// Number of events of the sequence that are examined. Enough for hundreds of steps, and bounded.
const LONGEST: usize = 400_000;
/// The share of events that must equal the one a period later. An insertion costs a whole period of them.
const ALIKE: f64 = 0.6;
/// Among periods that fit nearly as well as the best, the shortest is right: twice the period fits as well, and
/// much better if something happens every few steps.
const NEARLY: f64 = 0.05;
/// The same with equal weight for every name. Layers fill a step with few names and repeat within it; what
/// occurs once per step (an embedding, a loss, an optimizer) are many names with few events, which a period of
/// layers leaves unexplained. What occurs only every few steps (logging, a scheduler) are few names.
const NEARLY_BY_NAME: f64 = 0.2;
/// A name with fewer events does not repeat.
const OFTEN: u32 = 3;
/// Number of periods tried.
const TRIED: usize = 48;

/// A sequence that repeats.
pub(super) enum Period {
    /// Its repetitions are steps.
    Steps(Candidate),
    /// They may be steps, or layers of one step.
    Unclear {
        /// Number of repetitions.
        parts: usize,
        /// Number of ops in each.
        ops: usize,
    },
}

pub(super) fn find(recorded: &HostTrace) -> Option<Period> {
    let on_device = busiest(recorded, true);
    let (track, on_host) = match on_device {
        Some(track) => (track, false),
        None => (busiest(recorded, false)?, true),
    };
    let vocabulary = recorded.vocabulary();
    let work: Vec<usize> = (0..track.len())
        .filter(|&index| is_work(vocabulary.role(track.kind_of(index))))
        .take(LONGEST)
        .collect();
    let names = names_of(recorded, track, &work);
    let pauses = pauses(track, &work);
    let mut nested = false;
    let exact = find_period(&names);
    let larger = exact.and_then(|period| Some((period, larger_period(&names, period)?)));
    let (period, first): (usize, Vec<usize>) = match (larger, exact) {
        (Some((period, larger)), _) if !is_fed(recorded, track, &work, names.len() / period) => {
            nested = true;
            let first = larger.starts(|at| pauses[at]);
            (larger.length, first.into_iter().map(|at| work[at]).collect())
        }
        (_, Some(period)) if !is_loop(&names, period) => return None,
        (_, Some(period)) => (period, starts(&work, &pauses, &names, period)?),
        (_, None) => cycle::find(track, &work, &names, &pauses)?,
    };
    if !is_most(track, &work, &first) || layers::are_walked_through(recorded, names.len() / period) {
        return None;
    }
    let repetitions = Repetitions {
        recorded,
        track,
        on_host,
        work: &work,
        pauses: &pauses,
        names: &names,
        period,
        exact: exact.is_some(),
        first: &first,
    };
    if !nested && !repetitions.are_steps() {
        return Some(Period::Unclear { parts: names.len() / period, ops: period });
    }
    let marks = first
        .iter()
        .enumerate()
        .map(|(number, &index)| (number as i64, Span::new(track.start(index), track.end(index))))
        .collect();
    let found = Candidate {
        how: How::Period(period),
        marks,
        track: Some(track.id),
        on_host,
        ends_known: false,
        breaks: Vec::new(),
    };
    // Other streams, and copies, count as well.
    found.covers_most(recorded).then_some(Period::Steps(found))
}

/// The names of work. The kernels of eager ops all have one name: the op around each has its own.
fn names_of(recorded: &HostTrace, track: &Track, work: &[usize]) -> Vec<u32> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let ops = trace.kinds_where(|kind| trace.kind_name(kind).starts_with("EagerLocalExecute: "));
    let started: Vec<usize> = track.events_of(&ops).map(|(index, _)| index).collect();
    let name = |&index: &usize| {
        let own = track.kind_of(index);
        let eager = vocabulary.role(own) == Role::EagerKernel;
        let before = started.partition_point(|&op| op < index).checked_sub(1).map(|last| started[last]);
        let around = before.filter(|&op| eager && track.end(op) >= track.end(index));
        around.map_or(own, |op| track.kind_of(op)).0
    };
    work.iter().map(name).collect()
}

/// Whether the repetition is a loop of steps, or of layers inside one step.
///
/// A capture cuts a loop anywhere, so what comes before the first and after the last whole period is also part
/// of one. Layers have something else around them: embeddings before, a loss or a sampler after. Those occur
/// once, not once per period.
fn is_loop(names: &[u32], period: usize) -> bool {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let repeats = names.len() / period;
    let occurrences =
        |name: u32| sorted.partition_point(|&n| n <= name) - sorted.partition_point(|&n| n < name);
    let edge = period.min(names.len());
    let odd = |part: &[u32]| part.iter().filter(|&&name| occurrences(name) <= repeats / 4).count();
    let around = odd(&names[..edge]).max(odd(&names[names.len() - edge..]));
    around < 3.max(period / 10) && !is_framed(names, period)
}

/// Whether the repetition breaks at both ends, and much less in between. What surrounds layers may consist of
/// the same kernels as layers.
fn is_framed(names: &[u32], period: usize) -> bool {
    let pairs = names.len().saturating_sub(period);
    let differ = |places: std::ops::Range<usize>| {
        let differ = places.clone().filter(|&at| names[at] != names[at + period]).count();
        differ as f64 / places.len().max(1) as f64
    };
    let edge = period.min(pairs / 3);
    let within = differ(edge..pairs - edge);
    let most = (5.0 * within).min((1.5 * within).max(0.5));
    differ(0..edge) > most && differ(pairs - edge..pairs) > most
}

/// Whether the repetitions cover most of the track's work.
fn is_most(track: &Track, work: &[usize], first: &[usize]) -> bool {
    let (Some(&begin), Some(&last)) = (first.first(), first.last()) else { return false };
    let length = median_duration(first.windows(2).map(|pair| track.start(pair[1]) - track.start(pair[0])));
    let held = Span::new(track.start(begin), track.start(last) + length);
    let busy = |index: &&usize| held.contains(track.start(**index));
    let all: Dur = work.iter().map(|&index| track.dur(index)).sum();
    let inside: Dur = work.iter().filter(busy).map(|&index| track.dur(index)).sum();
    inside.ps() >= all.ps() / 2
}

/// How long nothing runs before each event. Events inside others end before these do.
fn pauses(track: &Track, work: &[usize]) -> Vec<Dur> {
    let mut busy_until: Option<Time> = None;
    let pause = |&index: &usize| {
        let pause = busy_until.map_or(Dur::ZERO, |until| (track.start(index) - until).at_least_zero());
        busy_until = busy_until.max(Some(track.end(index)));
        pause
    };
    work.iter().map(pause).collect()
}

fn is_work(role: Role) -> bool {
    matches!(role, Role::Kernel | Role::Collective | Role::Op | Role::EagerKernel)
}

fn busiest<'t>(recorded: &HostTrace<'t>, device: bool) -> Option<&'t Track> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let wanted = |track: &&Track| match track.kind {
        TrackKind::Stream => device && trace.process(track.process).kind == ProcessKind::Device,
        TrackKind::Thread => !device,
        _ => false,
    };
    let busy = |track: &&Track| -> Dur {
        let work = |&index: &usize| is_work(vocabulary.role(track.kind_of(index)));
        (0..track.len()).filter(work).map(|index| track.dur(index)).sum()
    };
    trace
        .tracks()
        .iter()
        .filter(wanted)
        .map(|track| (busy(&track), track))
        .filter(|(busy, _)| !busy.is_zero())
        .max_by_key(|(busy, _)| *busy)
        .map(|(_, track)| track)
}

/// The smallest distance at which the sequence repeats itself at least twice; `None` if it does not.
///
/// Candidates are the typical distances between two events of one name; each costs one pass.
pub fn find_period(names: &[u32]) -> Option<usize> {
    let mut candidates = distances(names);
    candidates.retain(|&period| names.len() >= 3 * period);
    candidates.truncate(TRIED);
    candidates.sort_unstable();
    let (dense, often) = numbered(names);
    let scores: Vec<Score> = candidates.iter().map(|&period| Score::of(&dense, &often, period)).collect();
    let best = scores.iter().map(|score| score.by_event).fold(ALIKE, f64::max);
    let fits = |score: &Score| score.by_event >= best - NEARLY && score.by_event >= ALIKE;
    let best = scores.iter().filter(|score| fits(score)).map(|score| score.by_name).fold(0.0, f64::max);
    let found = scores.iter().position(|score| fits(score) && score.by_name >= best - NEARLY_BY_NAME);
    found.map(|at| candidates[at])
}

/// How well a sequence repeats after a period.
pub(super) struct Score {
    /// The share of events that equal the one a period later.
    pub(super) by_event: f64,
    /// The mean of that share over frequent names.
    by_name: f64,
}

impl Score {
    pub(super) fn of(names: &[u32], often: &[bool], period: usize) -> Self {
        let mut tally = vec![(0u32, 0u32); often.len()];
        for (&name, &later) in names.iter().zip(&names[period..]) {
            if let Some((same, all)) = tally.get_mut(name as usize) {
                *same += u32::from(name == later);
                *all += 1;
            }
        }
        let share = |same: f64, all: f64| if all > 0.0 { same / all } else { 0.0 };
        let sum = |part: fn(&(u32, u32)) -> u32| tally.iter().map(|one| f64::from(part(one))).sum::<f64>();
        let counted = tally.iter().zip(often).filter(|((_, all), often)| **often && *all > 0);
        let shares: Vec<f64> =
            counted.map(|((same, all), _)| share(f64::from(*same), f64::from(*all))).collect();
        Score {
            by_event: share(sum(|one| one.0), sum(|one| one.1)),
            by_name: share(shares.iter().sum(), shares.len() as f64),
        }
    }
}

/// The names numbered from 0, and which of them are frequent.
pub(super) fn numbered(names: &[u32]) -> (Vec<u32>, Vec<bool>) {
    let mut known = names.to_vec();
    known.sort_unstable();
    known.dedup();
    let dense: Vec<u32> =
        names.iter().map(|name| known.partition_point(|other| other < name) as u32).collect();
    let mut counts = vec![0u32; known.len()];
    dense.iter().for_each(|&name| counts[name as usize] += 1);
    (dense, counts.iter().map(|&count| count >= OFTEN).collect())
}

/// For each name the median distance between its occurrences; the most frequent distances first.
fn distances(names: &[u32]) -> Vec<usize> {
    let mut places: Vec<(u32, u32)> = names.iter().enumerate().map(|(at, &name)| (name, at as u32)).collect();
    places.sort_unstable();
    let mut votes: Vec<(usize, usize)> = Vec::new();
    for same in places.chunk_by(|a, b| a.0 == b.0) {
        let mut gaps: Vec<u32> = same.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
        if gaps.len() >= 2 {
            let middle = gaps.len() / 2;
            votes.push((*gaps.select_nth_unstable(middle).1 as usize, 1));
        }
    }
    votes.sort_unstable();
    let mut counted: Vec<(usize, usize)> = Vec::new();
    for (distance, vote) in votes {
        match counted.last_mut() {
            Some((last, votes)) if *last == distance => *votes += vote,
            _ => counted.push((distance, vote)),
        }
    }
    counted.sort_by_key(|&(distance, votes)| (std::cmp::Reverse(votes), distance));
    counted.into_iter().map(|(distance, _)| distance).collect()
}

/// The first event of each repetition: among the names that occur once per period, the one with the longest
/// pause before it.
fn starts(work: &[usize], pauses: &[Dur], names: &[u32], period: usize) -> Option<Vec<usize>> {
    let expected = names.len() / period;
    let mut places: Vec<(u32, usize)> = names.iter().copied().zip(0..).collect();
    places.sort_unstable();
    places
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|same| same.len() + 1 >= expected && same.len() <= expected + 1)
        .max_by_key(|same| median_duration(same.iter().map(|&(_, at)| pauses[at])))
        .map(|same| same.iter().map(|&(_, at)| work[at]).collect())
        .or_else(|| (period == 1 && places.first()?.0 == places.last()?.0).then(|| work.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_sequence_has_its_length_as_period() {
        let one: Vec<u32> = (0..40).map(|i| if i % 5 == 0 { 1 } else { i }).collect();
        let all: Vec<u32> = one.iter().copied().cycle().take(40 * 6).collect();
        assert_eq!(find_period(&all), Some(40));
    }

    #[test]
    fn kernels_of_eager_ops_are_told_apart_by_their_ops() {
        let mut sketch = crate::sketch::Sketch::new();
        let thread = sketch.thread("python");
        let ops = ["MatMul", "BiasAdd", "Relu", "Sum", "Mul", "Sub"];
        for (at, op) in ops.iter().cycle().take(ops.len() * 20).enumerate() {
            let at = 100 * at as i64;
            sketch.event(thread, &format!("EagerLocalExecute: {op}"), at, 80, &[]);
            sketch.event(thread, "KernelAndDeviceFunc::Run", at + 20, 40, &[]);
        }
        let trace = sketch.finish();
        let steps = crate::steps::Steps::of(&crate::context::Context::new(&trace, "host"));
        assert_eq!((steps.how, steps.all.len()), (How::Period(ops.len()), 20));
    }

    #[test]
    fn a_few_insertions_do_not_hide_the_period() {
        let mut all: Vec<u32> = (0..50).cycle().take(50 * 10).collect();
        for at in [120, 260, 390] {
            all.insert(at, 999);
        }
        assert_eq!(find_period(&all), Some(50));
    }

    #[test]
    fn layers_between_a_beginning_and_an_end_are_no_loop() {
        let layers = (0..20).cycle().take(20 * 12);
        let once: Vec<u32> = (100..106).chain(layers.clone()).chain(200..204).collect();
        assert_eq!(find_period(&once), Some(20));
        assert!(!is_loop(&once, 20));
        let cut_anywhere: Vec<u32> = (7..20).chain(layers).chain(0..5).collect();
        assert!(is_loop(&cut_anywhere, 20));
    }

    #[test]
    fn layers_between_what_looks_like_parts_of_them_are_no_loop() {
        let layers = (0..20).cycle().take(20 * 12);
        let once: Vec<u32> = [3, 3, 7].into_iter().chain(layers).chain([9, 9]).collect();
        assert_eq!(find_period(&once), Some(20));
        assert!(!is_loop(&once, 20));
    }

    #[test]
    fn a_step_of_many_layers_is_longer_than_a_layer() {
        let layers = || (0..4).cycle().take(4 * 30);
        let step: Vec<u32> = [100, 101].into_iter().chain(layers()).chain([200, 201, 202]).collect();
        let mut all: Vec<u32> = step.iter().copied().cycle().take(step.len() * 100).collect();
        assert_eq!(find_period(&all), Some(step.len()));
        for turn in (0..100).rev().step_by(25) {
            all.insert(turn * step.len(), 300);
        }
        assert_eq!(find_period(&all), Some(step.len()), "something comes now and then");
    }

    #[test]
    fn what_does_not_repeat_has_none() {
        let all: Vec<u32> = (0..500u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
        assert_eq!(find_period(&all), None);
        assert_eq!(find_period(&[]), None);
        assert_eq!(find_period(&[1, 2]), None);
    }
}
