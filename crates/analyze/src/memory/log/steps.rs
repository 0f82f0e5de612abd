//! The steps of a history: ranges that the program named, else the regular returns of a place that allocates.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::memory::{BEFORE, Block, MemoryLog, Owner};

use super::lines::Calls;

/// Allocations at the end that are looked at to find what starts a step.
const LONGEST: usize = 100_000;
/// Places whose steps are compared by what they allocate.
const COMPARED: usize = 16;
/// Steps of fewer repetitions are not told from chance.
const LEAST: usize = 3;
/// By how much the distance between two starts of a step may differ from the typical one.
const TOLERANCE: f64 = 0.1;
/// The share of all allocations that must lie in steps of typical length. A history may begin and end in the middle of one,
/// and set-up comes before the first.
const EXPLAINED: f64 = 0.7;
/// Places that explain nearly as much as the best are equally good.
const NEARLY: f64 = 0.05;

/// The moments at which steps begin, and the end of the last one. Empty if there are no steps.
pub(super) fn of(log: &MemoryLog, owner: &Owner, in_use: &[i64], calls: &[Calls]) -> Vec<u32> {
    let marked = marked(log, owner);
    if marked.len() > LEAST {
        return marked;
    }
    let found = periodic(owner, in_use);
    if is_one_pass(owner, &found, calls) { Vec::new() } else { found }
}

/// Iterations without a backward pass that keep one part in this many of what they allocate are none.
const KEPT_PART: u64 = 4;

/// Whether they are layers of one pass, or parameters that an optimizer meets for the first time. Both repeat, too. Unlike
/// iterations, they keep much of what they allocate, although no backward pass is among them whose graph somebody holds.
fn is_one_pass(owner: &Owner, steps: &[u32], calls: &[Calls]) -> bool {
    let &[first, .., before_last, last] = steps else { return false };
    let within = || owner.blocks.iter().filter(|block| first < block.born && block.born <= before_last);
    let calls_of = |block: &Block| calls.get(block.stack.0 as usize);
    let placed = within().any(|block| calls_of(block).is_some_and(|calls| calls.line.is_some()));
    let backward = within().any(|block| calls_of(block).is_some_and(|calls| calls.backward));
    let taken: u64 = within().map(|block| block.size).sum();
    let kept: u64 = within().filter(|block| block.dies > last).map(|block| block.size).sum();
    placed && !backward && kept > 0 && kept.saturating_mul(KEPT_PART) >= taken
}

/// Ranges with `step` in their name.
fn marked(log: &MemoryLog, owner: &Owner) -> Vec<u32> {
    let is_step = |name: &str| {
        let name = name.to_lowercase();
        // The optimizer's own step is a part of one.
        name.contains("step") && !name.contains("optimizer")
    };
    let steps: Vec<_> = log.marks.iter().filter(|mark| is_step(&mark.name)).collect();
    let moment = |time| owner.moment_at(time).unwrap_or(BEFORE);
    let mut moments: Vec<u32> = steps.iter().map(|mark| moment(mark.start)).collect();
    moments.extend(steps.last().and_then(|mark| mark.end).map(moment));
    moments.dedup();
    moments
}

/// The moment of each allocation, and its place or, without places, its size.
fn taken(owner: &Owner) -> (Vec<u32>, Vec<u32>) {
    let mut blocks: Vec<&Block> =
        owner.blocks.iter().filter(|block| block.born != BEFORE && block.born <= owner.changes).collect();
    blocks.sort_by_key(|block| block.born);
    let placed = blocks.iter().any(|block| block.stack.is_known());
    let mut sizes: HashMap<u64, u32, FxBuildHasher> = HashMap::default();
    let name = |block: &&Block| {
        let next = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        let name = if placed { block.stack.0 } else { *sizes.entry(block.size).or_insert(next) };
        (block.born, name)
    };
    blocks.iter().map(name).unzip()
}

/// Steps begin with a place that allocates once per step: what is allocated between two of its allocations is alike. Layers
/// repeat as well, but what surrounds them is not like a layer, so that steps explain more of the history. Of several places,
/// the one that meets the least memory in use: there, nothing of the step before is left.
fn periodic(owner: &Owner, in_use: &[i64]) -> Vec<u32> {
    let (moments, names) = taken(owner);
    let sample = names.get(names.len().saturating_sub(LONGEST)..).unwrap_or_default();
    let mut places: HashMap<u32, Vec<usize>, FxBuildHasher> = HashMap::default();
    sample.iter().enumerate().for_each(|(at, &name)| places.entry(name).or_default().push(at));
    let mut regular: Vec<(f64, u32, Vec<usize>)> = places
        .into_iter()
        .filter(|(_, starts)| starts.len() >= LEAST)
        .map(|(name, starts)| (explained(&starts, sample.len(), |_| 1.0), name, starts))
        .filter(|(share, _, _)| *share >= EXPLAINED)
        .collect();
    regular.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    regular.truncate(COMPARED);
    for (share, _, starts) in &mut regular {
        *share = explained(starts, sample.len(), |at| overlap(sample, starts, at));
    }
    let best = regular.iter().map(|(share, _, _)| *share).fold(EXPLAINED, f64::max);
    regular.retain(|(share, _, _)| *share >= best - NEARLY);
    let most = regular.iter().map(|(_, _, starts)| starts.len()).max().unwrap_or(0);
    regular.retain(|(_, _, starts)| starts.len() + 1 >= most);
    let before = |at: usize| moments.get(at).map_or(0, |moment| moment.saturating_sub(1));
    let chosen = regular.into_iter().map(|(_, name, starts)| {
        let starts = all_starts(&names, name, typical(&starts));
        let bytes = starts.iter().filter_map(|&at| in_use.get(before(at) as usize));
        (bytes.map(|&bytes| bytes as f64).sum::<f64>() / starts.len().max(1) as f64, name, starts)
    });
    let Some((_, _, starts)) = chosen.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))) else {
        return Vec::new();
    };
    let last = starts.last().copied().unwrap_or(0);
    let whole = is_alike((names.len() - last) as f64, typical(&starts));
    let mut steps: Vec<u32> = starts.into_iter().map(before).collect();
    // What follows the last start is a step if it is as long as one.
    steps.extend(whole.then_some(owner.changes));
    steps
}

/// All allocations of a place that start a step, in the whole history.
fn all_starts(names: &[u32], name: u32, typical: f64) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::new();
    for (at, _) in names.iter().enumerate().filter(|(_, other)| **other == name) {
        if starts.last().is_none_or(|&last| (at - last) as f64 >= typical / 2.0) {
            starts.push(at);
        }
    }
    starts
}

/// The distance between two starts in which the middle allocation lies.
fn typical(starts: &[usize]) -> f64 {
    let mut gaps: Vec<usize> = starts.windows(2).map(|two| two[1] - two[0]).collect();
    gaps.sort_unstable();
    let half = gaps.iter().sum::<usize>().div_ceil(2);
    let mut sum = 0;
    let middle = gaps.iter().find(|&&gap| {
        sum += gap;
        sum >= half
    });
    middle.copied().unwrap_or(0) as f64
}

/// The share of allocations in distances that are as long as the typical one, each weighted. What comes before the first
/// start does not count, nor does a first step that is longer: it also builds what the others use.
fn explained(starts: &[usize], all: usize, weight: impl Fn(usize) -> f64) -> f64 {
    let typical = typical(starts);
    let gaps: Vec<f64> = starts.windows(2).map(|two| (two[1] - two[0]) as f64).collect();
    let set_up = gaps.first().copied().filter(|&gap| gap > typical && !is_alike(gap, typical)).unwrap_or(0.0);
    let alike: Vec<(usize, f64)> =
        gaps.into_iter().enumerate().filter(|(_, gap)| is_alike(*gap, typical)).collect();
    if alike.len() < LEAST - 1 {
        return 0.0;
    }
    let counted = all as f64 - starts.first().copied().unwrap_or(0) as f64 - set_up;
    alike.into_iter().map(|(at, gap)| gap * weight(at)).sum::<f64>() / counted.max(1.0)
}

/// How much of what is allocated after a start is also allocated after the next one, or the one before; 0 to 1.
fn overlap(names: &[u32], starts: &[usize], at: usize) -> f64 {
    let part = |at: usize| names.get(*starts.get(at)?..*starts.get(at + 1)?);
    let other = if at + 2 < starts.len() { Some(at + 1) } else { at.checked_sub(1) };
    let (Some(own), Some(other)) = (part(at), other.and_then(part)) else { return 0.0 };
    let mut counts: HashMap<u32, i64, FxBuildHasher> = HashMap::default();
    own.iter().for_each(|name| *counts.entry(*name).or_default() += 1);
    let mut shared = 0;
    for name in other {
        if let Some(left) = counts.get_mut(name).filter(|left| **left > 0) {
            *left -= 1;
            shared += 1;
        }
    }
    f64::from(shared) / own.len().max(other.len()).max(1) as f64
}

fn is_alike(gap: f64, typical: f64) -> bool {
    (gap - typical).abs() <= TOLERANCE * typical
}

#[cfg(test)]
mod tests {
    use stepscope_trace::memory::StackId;

    use super::*;

    /// Four repetitions that each allocate two blocks of 1 kB, of which one lives on for `kept` repetitions.
    fn one_pass(kept: u32, backward: bool) -> bool {
        let block = |born: u32, dies: u32| Block {
            address: u64::from(born) * 4_096,
            size: 1_000,
            requested: 1_000,
            born,
            dies,
            stack: StackId(0),
            count: 1,
            role: None,
            pending: false,
        };
        let turn = |turn: u32| {
            let at = 10 * turn + 1;
            let dies = if kept == 0 { at + 5 } else { at + 10 * kept };
            [block(at, at + 3), block(at + 1, dies)]
        };
        let owner = Owner { blocks: (0..4).flat_map(turn).collect(), changes: 100, ..Owner::default() };
        let calls = [Calls { line: Some("model.py:5 forward".to_owned()), backward, ..Calls::default() }];
        is_one_pass(&owner, &[0, 10, 20, 30, 40], &calls)
    }

    #[test]
    fn layers_of_one_pass_are_no_steps_and_a_loop_that_holds_its_graphs_has_steps() {
        assert!(one_pass(50, false), "each layer keeps half of what it allocates");
        assert!(!one_pass(50, true), "a graph that somebody holds");
        assert!(!one_pass(0, false), "nothing is kept");
        assert!(!one_pass(1, false), "nothing is kept for long");
    }

    #[test]
    fn steps_explain_more_than_the_layers_in_them() {
        let step = [0, 100, 201, 300, 400];
        let layers = [10, 20, 30, 110, 120, 130, 210, 220, 230, 310, 320, 330];
        assert_eq!(typical(&step), 100.0);
        assert!(explained(&step, 450, |_| 1.0) > 0.85 && explained(&layers, 450, |_| 1.0) < EXPLAINED);
        assert!(
            explained(&[0, 160, 260, 360], 400, |_| 1.0) > EXPLAINED,
            "a first step that is longer does not count"
        );
    }

    #[test]
    fn parts_of_a_step_that_are_equally_long_are_told_apart_by_what_they_allocate() {
        let names: Vec<u32> =
            (0..12).flat_map(|part| (0..10).map(move |at| if at == 0 { 0 } else { 1 + part % 3 })).collect();
        let parts: Vec<usize> = (0..12).map(|part| part * 10).collect();
        let steps: Vec<usize> = (0..4).map(|step| step * 30).collect();
        assert!(overlap(&names, &parts, 1) < 0.2 && overlap(&names, &steps, 1) == 1.0);
    }
}
