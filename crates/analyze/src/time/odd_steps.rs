//! Occasional steps that take much longer because they do something extra: an evaluation in the loop or after it, an
//! update after several accumulations, a shuffle buffer that fills again. The mean step includes a share of that; the
//! median does not show it.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindId, Span, Track, TrackKind};

use crate::breakdown::{Category, Shares, StepShares};
use crate::context::Context;
use crate::host_trace::merged;
use crate::states::{State, runs_python};
use crate::steps::{Filling, Step};
use crate::time::recurrence::Recurrence;
use crate::vocabulary::{Role, iterator_path};
use crate::work::functions::name_of;
use stepscope_trace::statistics::median_duration;

/// A step this many times as long as the median is an odd one.
pub const LONG: f64 = 2.0;
/// A function with at most this share of its calls in the other steps belongs to the odd ones. Its time there says
/// nothing: a function that all steps call is long in the long ones.
const ELSEWHERE: f64 = 0.1;
/// More than half: of an excess, of a wait, of the waits.
const MOST: f64 = 0.5;

/// The odd steps of one host.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OddSteps {
    /// How often they occur.
    pub recurrence: Recurrence,
    /// Their median duration in milliseconds.
    pub odd_ms: f64,
    /// The median duration of the others in milliseconds.
    pub usual_ms: f64,
    /// What they spend beyond the others, in total.
    pub excess: Shares,
    /// Functions that are only called in them, longest first, in milliseconds per odd step.
    pub functions: Vec<(String, f64)>,
    /// Another loop between the steps, such as an evaluation.
    #[serde(default)]
    pub other_loop: Option<OtherLoop>,
    /// The stage of the input pipeline in which they wait for their batch, if it is the same in most of them.
    #[serde(default)]
    pub waits_for: Option<String>,
}

/// Another loop that runs after every so many steps.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OtherLoop {
    /// After which steps.
    pub recurrence: Recurrence,
    /// Its median duration in milliseconds.
    pub ms: f64,
    /// What it takes from the counted steps, in total.
    pub shares: Shares,
}

impl OtherLoop {
    fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        let pauses = breakdown.steps.pauses.iter().filter(|pause| pause.filling == Filling::AnotherLoop);
        let spans: Vec<Span> = pauses.map(|pause| pause.span).collect();
        let follows = |step: &Step| {
            let next = spans.partition_point(|pause| pause.start < step.span.start);
            spans.get(next).is_some_and(|pause| pause.start < step.span.end)
        };
        let recurrence = Recurrence::of(breakdown.counted().map(|(step, _)| follows(step)));
        (recurrence.steps > 0).then(|| OtherLoop {
            recurrence,
            ms: median_duration(spans.iter().map(|span| span.dur())).ms(),
            shares: breakdown.owned_within(context, &spans),
        })
    }
}

impl OddSteps {
    /// `None` if no step is odd.
    pub fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        let counted: Vec<&StepShares> = breakdown.counted().map(|(_, shares)| shares).collect();
        let middle = median_duration(counted.iter().map(|step| step.window.dur()));
        let is_odd = |step: &StepShares| step.window.dur().ps() as f64 > LONG * middle.ps() as f64;
        let (odd, usual): (Vec<&StepShares>, Vec<&StepShares>) =
            counted.iter().partition(|step| is_odd(step));
        if breakdown.steps.whole_capture || odd.is_empty() || usual.is_empty() || middle.is_zero() {
            return None;
        }
        let mut excess = Shares::default();
        for category in Category::ALL {
            let ordinary = median_duration(usual.iter().map(|step| step.shares.get(category)));
            let beyond = odd.iter().map(|step| (step.shares.get(category) - ordinary).at_least_zero());
            excess.add(category, beyond.sum());
        }
        Some(OddSteps {
            recurrence: Recurrence::of(counted.iter().map(|step| is_odd(step))),
            odd_ms: median_duration(odd.iter().map(|step| step.window.dur())).ms(),
            usual_ms: median_duration(usual.iter().map(|step| step.window.dur())).ms(),
            functions: functions(context, &odd),
            other_loop: OtherLoop::of(context),
            // Only then is it worth the search.
            waits_for: (excess.get(Category::Input).fraction_of(excess.total()) >= MOST)
                .then(|| blocked_stage(context, &odd))
                .flatten(),
            excess,
        })
    }
}

/// The stage of a tf.data pipeline that the longest waits of these steps are for: the innermost one of which a single call
/// takes most of the wait. A shuffle that fills its buffer asks for thousands of elements in one call.
fn blocked_stage(context: &Context, odd: &[&StepShares]) -> Option<String> {
    let trace = context.trace;
    let host = merged(context, None);
    let mut waits: Vec<(Span, usize, &str)> = Vec::new();
    let mut all = host.spans_in(State::InputWait).peekable();
    for step in odd {
        while all.next_if(|wait| wait.end <= step.window.start).is_some() {}
        let mut longest: Option<Span> = None;
        while let Some(wait) = all.next_if(|wait| wait.start < step.window.end) {
            longest = longest.into_iter().chain([wait]).max_by_key(|wait| wait.dur());
        }
        waits.extend(longest.map(|wait| (wait, 0, "")));
    }
    let stages = trace.kinds_where(|kind| context.vocabulary().role(kind) == Role::InputStage);
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        for (index, kind) in track.events_of(&stages) {
            let span = track.span_of(index);
            let next = waits.partition_point(|(wait, ..)| wait.end <= span.start);
            let Some((wait, depth, name)) = waits.get_mut(next) else { break };
            if span.intersect(*wait).dur().fraction_of(wait.dur()) < MOST {
                continue;
            }
            let Some(path) = iterator_path(trace.kind_name(kind)) else { continue };
            let (deep, last) = path.fold((0, ""), |(deep, _), stage| (deep + 1, stage));
            if deep > *depth {
                (*depth, *name) = (deep, last);
            }
        }
    }
    let bare = |name: &str| name.split('[').next().unwrap_or(name).to_owned();
    let mut names: Vec<String> = waits.iter().map(|(.., name)| bare(name)).collect();
    names.sort_unstable();
    let most = names.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
    let many = most.len() as f64 > MOST * names.len() as f64;
    most.first().filter(|name| many && !name.is_empty()).cloned()
}

/// The calls of a function.
#[derive(Default)]
struct Calls {
    /// In the odd steps.
    within: u64,
    /// In all others.
    elsewhere: u64,
    /// The time of those in the odd steps.
    time: Dur,
}

/// The functions that are only called in these steps.
fn functions(context: &Context, odd: &[&StepShares]) -> Vec<(String, f64)> {
    let trace = context.trace;
    let windows: Vec<Span> = odd.iter().map(|step| step.window).collect();
    let mut found: BTreeMap<KindId, Calls> = BTreeMap::new();
    let python =
        |track: &&Track| track.kind == TrackKind::Thread && runs_python(trace, context.vocabulary(), track);
    let calls = trace.kinds_where(|kind| context.vocabulary().role(kind) == Role::FunctionCall);
    for track in trace.tracks().iter().filter(python) {
        for (index, kind) in track.events_of(&calls) {
            let span = track.span_of(index);
            let after = windows.partition_point(|window| window.start <= span.start);
            let inside = after.checked_sub(1).is_some_and(|at| windows[at].contains(span.start));
            let calls = found.entry(kind).or_default();
            if inside {
                calls.within += 1;
                calls.time += span.dur();
            } else {
                calls.elsewhere += 1;
            }
        }
    }
    let mut found: Vec<(String, f64)> = found
        .into_iter()
        .filter(|(_, calls)| calls.elsewhere as f64 <= ELSEWHERE * calls.within as f64)
        .map(|(kind, calls)| (name_of(trace, kind), calls.time.ms() / odd.len().max(1) as f64))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn what_every_fourth_step_does_beyond_the_others_is_its_excess() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..12 {
            let evaluates = step % 4 == 3;
            let length = if evaluates { 1_000 } else { 100 };
            sketch.event(thread, "train", at, length, &[("step_num", Arg::Int(step))]);
            let call = || [("tf_function_call", Arg::Text("notTraced-nonXla"))];
            sketch.event(thread, "step", at, 100, &call());
            sketch.event(thread, "a/MatMul:MatMul", at + 10, 80, &[]);
            if evaluates {
                sketch.event(thread, "evaluate", at + 100, 900, &call());
                sketch.event(thread, "b/MatMul:MatMul", at + 150, 800, &[]);
            }
            at += length;
        }
        let trace = sketch.finish();
        let odd = OddSteps::of(&Context::new(&trace, "host")).unwrap();
        assert_eq!(odd.recurrence, Recurrence { steps: 3, of: 12, every: Some(4) });
        assert_eq!((odd.odd_ms, odd.usual_ms), (1.0, 0.1));
        assert_eq!(odd.excess.get(Category::Compute), Dur::from_us(2_400));
        assert_eq!(odd.functions, [("evaluate".to_owned(), 0.9)]);
    }

    #[test]
    fn a_function_that_all_steps_call_is_not_the_long_ones_own() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..12 {
            let length = if step % 5 == 3 { 5_000 } else { 100 };
            sketch.event(thread, "train", at, length, &[("step_num", Arg::Int(step))]);
            sketch.event(thread, "step", at, length, &[("tf_function_call", Arg::Text("notTraced-nonXla"))]);
            at += length;
        }
        let trace = sketch.finish();
        let odd = OddSteps::of(&Context::new(&trace, "host")).unwrap();
        assert_eq!((odd.recurrence.steps, odd.functions), (2, Vec::new()));
    }
}
