//! The cycle of a sequence that never repeats exactly: kernels that come once in each turn, at equal distances, whatever
//! comes between them. A frame of a simulation has 12 to 16 kernels.

use std::collections::BTreeMap;

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Track};

/// Fewer turns that differ have no rhythm: a handful of blocks of one pass may be as regular.
const LEAST_TURNS: usize = 10;
/// Distances are regular if three quarters of them are at most so many times a quarter of them.
const REGULAR: f64 = 1.5;
/// Names belong to one cycle if their numbers differ by at most one part in this many: the recording cut a turn off, or a few
/// turns are without one.
const SAME_COUNT: usize = 50;
/// Kernels that come only now and then, such as those of a log, have few names: the rarest that have at least one in this many
/// of the names of the largest group make the cycle.
const RARE: usize = 4;
/// One name alone may be regular by chance.
const LEAST_NAMES: usize = 2;

/// The places of one name.
type Places = Vec<usize>;

/// The usual number of events in a turn, and the first event of each.
pub(super) fn find(
    track: &Track,
    work: &[usize],
    names: &[u32],
    pauses: &[Dur],
) -> Option<(usize, Vec<usize>)> {
    let mut places: BTreeMap<u32, Places> = BTreeMap::new();
    names.iter().enumerate().for_each(|(at, &name)| places.entry(name).or_default().push(at));
    let is_regular = |same: &Places| {
        let mut apart: Vec<Dur> =
            same.windows(2).map(|pair| track.start(work[pair[1]]) - track.start(work[pair[0]])).collect();
        apart.sort_unstable();
        let at = |quarter: usize| apart.get(apart.len() * quarter / 4).map_or(0.0, |apart| apart.ps() as f64);
        at(3) <= REGULAR * at(1)
    };
    let mut regular: Vec<Places> =
        places.into_values().filter(|same| same.len() >= LEAST_TURNS && is_regular(same)).collect();
    regular.sort_by_key(Vec::len);
    let is_one = |a: &Places, b: &Places| b.len() - a.len() <= 1 + a.len() / SAME_COUNT;
    let groups: Vec<&[Places]> = regular.chunk_by(is_one).collect();
    let most = groups.iter().map(|group| group.len()).max()?;
    let group = groups.into_iter().find(|group| group.len() >= LEAST_NAMES && group.len() * RARE >= most)?;
    let pause = |same: &&Places| median_duration(same.iter().map(|&at| pauses[at]));
    let first = group.iter().max_by_key(pause)?;
    Some((names.len() / first.len(), first.iter().map(|&at| work[at]).collect()))
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::sketch::Sketch;
    use crate::steps::{How, Origin, Steps};

    /// Frames of 12 to 16 kernels, `apart` µs from one another on average; some of the kernels in any order.
    fn frames(count: i64, apart: impl Fn(i64) -> i64) -> Steps {
        let mut sketch = Sketch::new();
        let stream = sketch.stream();
        let mut begin = 0;
        for frame in 0..count {
            let mut at = begin;
            for kernel in 0..12 + frame * 7 % 5 {
                let name = match kernel {
                    0 => "advect".to_owned(),
                    3 => "project".to_owned(),
                    _ => format!("solve{}", (frame * frame * 13 + kernel * (frame + 3)) % 9),
                };
                sketch.event_of(stream, "kernel", &name, at, 300, &[]);
                at += 310;
            }
            begin += apart(frame);
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn frames_that_differ_in_their_kernels_are_steps() {
        let steps = frames(60, |_| 16_700);
        assert_eq!((steps.origin, steps.all.len()), (Origin::Inferred, 60));
        assert!(matches!(steps.how, How::Period(12..=16)), "{:?}", steps.how);
        assert!(steps.counted().all(|step| step.span.dur().ms() == 16.7));
    }

    #[test]
    fn what_comes_at_any_time_is_no_cycle() {
        let steps = frames(60, |frame| 4_000 + (frame * frame * 7_919) % 90_000);
        assert_eq!(steps.origin, Origin::None);
    }
}
