//! Steps: how long one iteration of the training or inference loop takes, even if it is not marked.
//!
//! In order of trust: what users and frameworks marked ([`markers`], and ranges that are called steps),
//! requests to a server, runs of a program and of an optimizer ([`repetition`]), of a session ([`sessions`]), pipelines that are set up for a
//! few batches each ([`pipelines`]), the outermost repeating call ([`outer`]), calls of a compiled function,
//! batches, one call that is a pass through the model, calls that a loop makes once per iteration ([`anchors`]), and only
//! then the period of the sequence of kernels or ops
//! on the busiest track ([`period`]), because layers inside a step have one as well: [`evidence`] decides.
//! The result says which one was used.
//!
//! A step lasts from its start to the start of the next one, so that the time between two markers counts too, however
//! long it is, if it recurs ([`layout`]); a request lasts until its answer. Incomplete steps, warm-up steps and pauses
//! that do not recur are excluded with a reason, never averaged in.

mod anchors;
mod cycle;
mod evaluation;
mod evidence;
mod gaps;
mod host_work;
mod larger;
mod layers;
mod layout;
mod markers;
mod names;
mod outer;
mod period;
mod pipelines;
mod ranges;
mod repetition;
mod sessions;
mod warm_ups;
mod whole_cycles;
mod work;
mod written;

use std::cell::LazyCell;

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span, TrackId};

use crate::host_trace::HostTrace;
use crate::states::StateLine;

pub use gaps::Filling;
use gaps::RecordedGaps;
use host_work::host_works;
use layout::Layout;
use outer::Outer;
use period::Period;
pub use period::find_period;
use ranges::Ranges;
pub(crate) use repetition::called_function;
use work::Work;

/// How reliable the steps are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Origin {
    /// Marked.
    Marker,
    /// Inferred from repetition.
    Inferred,
    /// None; the whole capture is analysed as one piece.
    None,
}

/// How the steps were found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum How {
    /// Markers with this name.
    Marker(String),
    /// Steps that the profiler itself derived for a device.
    DeviceSteps,
    /// Calls of this compiled function.
    FunctionCalls(String),
    /// Runs of this program on a device.
    ModuleRuns(String),
    /// A repeating sequence of calls, in which those of this function do most of the work.
    Sequence(String),
    /// Optimizer steps.
    OptimizerSteps(String),
    /// Batches taken from this loader.
    Batches(String),
    /// Annotations with this name.
    Annotations(String),
    /// Answers to requests with this name, on so many threads at once.
    Requests {
        /// The name.
        name: String,
        /// Number of threads.
        threads: usize,
    },
    /// New input pipelines for a few calls of this function each, as `model.fit` and `model.predict` make them; so many per
    /// step.
    Pipelines(String, usize),
    /// The sequence of this many kernels or ops on a track repeats.
    Period(usize),
    /// A sequence repeats, but its repetitions may be layers of one step.
    Unclear {
        /// Number of repetitions.
        parts: usize,
        /// Number of kernels or ops in each.
        ops: usize,
    },
    /// Nothing repeats.
    Nothing,
}

/// The kind of steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StepKind {
    /// Training, as far as is known.
    Training,
    /// Predictions: requests, batches.
    Inference,
}

/// Why a step is excluded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Exclusion {
    /// The end of the capture cut it off.
    Incomplete,
    /// It traced, compiled or grew memory, and later ones did not.
    Startup,
    /// What follows it is not the loop: a pause that does not recur.
    Interrupted,
    /// The device's side of it was not recorded.
    Unrecorded,
    /// It belongs to a cycle of which the recording lacks the recurring pause.
    IncompleteCycle,
    /// Nothing was done in it, while others work: a mark that surrounds no iteration.
    Empty,
}

impl Exclusion {
    /// All of them, in the order in which reports name them.
    pub const ALL: [Self; 6] = [
        Self::Startup,
        Self::Incomplete,
        Self::Interrupted,
        Self::Unrecorded,
        Self::IncompleteCycle,
        Self::Empty,
    ];
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The loop's own number, or a sequence number.
    pub number: i64,
    /// From its start to the start of the next one.
    pub span: Span,
    /// Why it is excluded, if it is.
    pub excluded: Option<Exclusion>,
}

/// Some steps.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Numbers {
    /// How many.
    pub count: usize,
    /// The lowest number.
    pub first: i64,
    /// The highest.
    pub last: i64,
}

impl Numbers {
    pub(crate) fn of(numbers: impl Iterator<Item = i64>) -> Option<Self> {
        numbers.fold(None, |all, number| {
            let one = Numbers { count: 1, first: number, last: number };
            Some(all.map_or(one, |all: Numbers| all.and(&one, all.count + 1)))
        })
    }

    pub(crate) fn and(&self, other: &Numbers, count: usize) -> Self {
        Numbers { count, first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// The steps of one host.
#[derive(Clone, Debug)]
pub struct Steps {
    /// How reliable they are.
    pub origin: Origin,
    /// How they were found.
    pub how: How,
    /// Their kind.
    pub kind: StepKind,
    /// All of them in time order, including excluded ones.
    pub all: Vec<Step>,
    /// The track on which they were found.
    pub track: Option<TrackId>,
    /// True if the spans are on the host's time, false if on a device's.
    pub on_host: bool,
    /// True if there are no steps, or none are requested: the only one is the whole capture, or the requested time
    /// range.
    pub whole_capture: bool,
    /// Those that were found, before some were selected.
    pub found: Option<Numbers>,
    /// Long times between two of them that recur, in time order.
    pub pauses: Vec<Pause>,
}

/// A long time between two steps that recurs, such as an evaluation after each epoch. It is part of the step before it,
/// or after it if it is a wait for that one's batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// The position of the step that it is part of.
    pub step: usize,
    /// When.
    pub span: Span,
    /// What fills it.
    pub filling: Filling,
}

/// All but one part in this many is nearly all.
const NEARLY_ALL: i64 = 10;

/// Result of one way of finding steps.
struct Candidate {
    how: How,
    /// (number, span) in time order; spans do not overlap.
    marks: Vec<(i64, Span)>,
    track: Option<TrackId>,
    on_host: bool,
    /// True if the spans include the ends of steps, false if only their starts.
    ends_known: bool,
    /// What another loop does between the steps, such as evaluated batches; in time order.
    breaks: Vec<Span>,
}

impl Candidate {
    /// From the first step to the end of the last.
    fn hull(&self) -> Option<Span> {
        let ((_, first), (_, last)) = (self.marks.first()?, self.marks.last()?);
        let starts = self.marks.windows(2).map(|pair| pair[1].1.start - pair[0].1.start);
        let usual = if self.ends_known { Dur::ZERO } else { median_duration(starts) };
        // An optimizer ends the first step, which began before.
        let begin = match self.how {
            How::OptimizerSteps(_) => first.start - usual,
            _ => first.start,
        };
        Some(Span::new(begin, last.end.max(last.start + usual)))
    }

    /// Whether it is one range around nearly all that was recorded, or around a warm-up as well: a name for the program, not
    /// for a step of it.
    fn is_whole_program(&self, recorded: &HostTrace) -> bool {
        let (How::Annotations(_), [(_, span)]) = (&self.how, self.marks.as_slice()) else { return false };
        let whole = recorded.trace.span().map_or(Dur::ZERO, |whole| whole.dur());
        let warm_up = |warm: &Span| span.start <= warm.start && warm.end <= span.end;
        span.dur().ps() >= whole.ps() / NEARLY_ALL * (NEARLY_ALL - 1)
            || warm_ups::warm_ups(recorded).iter().any(warm_up)
    }

    /// Whether its name is one for a single pass or prediction.
    fn is_named_pass(&self) -> bool {
        matches!(&self.how, How::Annotations(name) if names::is_pass(name))
    }

    /// Whether most of the work is done, or launched, from the first step to the last. A few kernels that repeat in a corner
    /// of the recording are not the loop.
    fn covers_most(&self, recorded: &HostTrace) -> bool {
        let work = if self.on_host { Work::of(recorded, &[]) } else { Work::on_device(recorded) };
        let held = self.hull().map_or(Dur::ZERO, |hull| work.within(hull));
        work.all().is_zero() || work.is_most(held)
    }
}

impl Steps {
    /// Finds the steps of one host.
    pub fn of(recorded: &HostTrace) -> Self {
        let (origin, found) = match markers::find(recorded) {
            Some(found) => (Origin::Marker, Ok(found)),
            None => {
                let ranges = Ranges::of(recorded);
                let found = || inferred(recorded, &ranges).map(|found| evaluation::without(recorded, found));
                match ranges.named_steps() {
                    Some(named) => (Origin::Marker, Ok(named)),
                    None => (Origin::Inferred, found()),
                }
            }
        };
        match found {
            Ok(candidate) => Steps::from(candidate, origin, recorded),
            Err(how) => Steps {
                origin: Origin::None,
                kind: kind_of(recorded, &how),
                how,
                all: Vec::new(),
                track: None,
                on_host: true,
                whole_capture: false,
                found: None,
                pauses: Vec::new(),
            },
        }
    }

    fn from(candidate: Candidate, origin: Origin, recorded: &HostTrace) -> Self {
        let Candidate { how, marks, track, on_host, ends_known, breaks } = candidate;
        let kind = kind_of(recorded, &how);
        let (all, pauses) = match kind {
            // A request lasts from its arrival to its answer, whenever the next one comes.
            StepKind::Inference if ends_known => (marks.iter().map(own_length).collect(), Vec::new()),
            _ => {
                let line = track.filter(|_| on_host).and_then(|track| line_of(recorded, track));
                let gaps = RecordedGaps::new(recorded, &marks, line, &breaks, ends_known);
                let written = line
                    .filter(|_| ends_known)
                    .map(|line| written::with_writes(&marks, line, |gap| gaps.is_another_loop(gap)));
                let laid = Layout::of(&marks, ends_known, &gaps);
                (laid.steps(written.as_deref().unwrap_or(&marks)), laid.pauses())
            }
        };
        let mut steps =
            Steps { origin, kind, how, all, track, on_host, whole_capture: false, found: None, pauses };
        whole_cycles::count(&mut steps.all, &steps.pauses);
        if origin == Origin::Marker && on_host {
            let work = LazyCell::new(|| Work::of(recorded, &[]));
            steps.exclude_empty(|span| host_works(recorded, span), |span| !work.within(span).is_zero());
        }
        steps
    }

    /// Marks around nothing at either end are the profiler's, or the rest of a step. In between the host may only wait for
    /// its device: such a step is empty if `any_work` says so, too.
    fn exclude_empty(&mut self, host_works: impl Fn(Span) -> bool, any_work: impl Fn(Span) -> bool) {
        let works: Vec<bool> = self.all.iter().map(|step| host_works(step.span)).collect();
        let (Some(first), Some(last)) =
            (works.iter().position(|works| *works), works.iter().rposition(|works| *works))
        else {
            return;
        };
        for (index, (step, works)) in self.all.iter_mut().zip(works).enumerate() {
            if index < first || index > last {
                step.excluded = Some(Exclusion::Incomplete);
            } else if !works && !any_work(step.span) {
                step.excluded = Some(Exclusion::Empty);
            }
        }
    }

    /// The numbers of all of them; `None` if there are none.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        Numbers::of(self.all.iter().map(|step| step.number))
    }

    /// Whether several requests are under way at once: what runs in the time of one serves others as well.
    pub(crate) fn overlap(&self) -> bool {
        matches!(self.how, How::Requests { .. })
    }

    /// The counted steps.
    pub fn counted(&self) -> impl Iterator<Item = &Step> {
        self.all.iter().filter(|step| step.excluded.is_none())
    }
}

/// The requests that several threads answer at once, if steps were found by them.
pub(crate) fn overlapping_requests(recorded: &HostTrace, steps: &Steps) -> Option<(String, Vec<Span>)> {
    let How::Requests { name, .. } = &steps.how else { return None };
    Some((name.clone(), Ranges::of(recorded).overlapping(name)))
}

/// The states of a track.
fn line_of<'c>(recorded: &'c HostTrace, track: TrackId) -> Option<&'c StateLine> {
    recorded.states().lines.iter().find(|(other, _)| *other == track).map(|(_, line)| line)
}

/// The steps, or why there are none.
fn inferred(recorded: &HostTrace, ranges: &Ranges) -> Result<Candidate, How> {
    let sure = ranges
        .requests()
        .or_else(|| repetition::module_runs(recorded))
        .or_else(|| repetition::optimizer_steps(recorded))
        .or_else(|| sessions::find(recorded))
        .or_else(|| pipelines::find(recorded));
    if let Some(sure) = sure {
        return Ok(sure);
    }
    let (mut pass, mut around) = (None, None);
    match outer::find(recorded, ranges) {
        Some(Outer::Repeated(turns)) => return Ok(turns),
        // A name for all that was recorded names the program, unless it names a pass.
        Some(Outer::Named(found)) if found.is_whole_program(recorded) && !found.is_named_pass() => {}
        Some(Outer::Single(found) | Outer::Named(found)) => pass = Some(found),
        Some(Outer::Around(found)) => around = Some(found),
        None => {}
    }
    let covering = |found: &Candidate| found.covers_most(recorded);
    let batches = || repetition::batches(recorded).filter(covering);
    let called = repetition::function_calls(recorded).or_else(batches).or(pass);
    let anchored = || ranges.optimizer_steps().filter(covering).or_else(|| anchors::find(recorded));
    if let Some(found) = called.or_else(anchored) {
        return Ok(found);
    }
    let why = match period::find(recorded) {
        Some(Period::Steps(steps)) => return Ok(steps),
        Some(Period::Unclear { parts, ops }) => How::Unclear { parts, ops },
        None => How::Nothing,
    };
    let single = || repetition::single(recorded).filter(covering);
    let around = around.filter(|found| !found.is_whole_program(recorded));
    let program = || repetition::few_module_runs(recorded).filter(covering);
    ranges.any().or_else(single).or_else(program).or(around).ok_or(why)
}

fn own_length(&(number, span): &(i64, Span)) -> Step {
    Step { number, span, excluded: None }
}

/// Names that frameworks and users give to predictions.
const INFERENCE: &[&str] =
    &["predict", "inference", "infer", "serving", "serve", "decode", "generate", "request", "ProcessBatch"];

/// Whether it is such a name.
pub(crate) fn is_prediction(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    INFERENCE.iter().any(|word| words(&name).any(|part| part == *word))
        || name.contains("predict_function")
        || name == "model_run"
}

/// The words of a name.
fn words(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether one of these is among the words of a name.
fn has_word(name: &str, wanted: &[&str]) -> bool {
    words(&name.to_ascii_lowercase()).any(|word| wanted.contains(&word))
}

fn kind_of(recorded: &HostTrace, how: &How) -> StepKind {
    let inference = match how {
        How::Marker(name)
        | How::FunctionCalls(name)
        | How::Sequence(name)
        | How::Annotations(name)
        | How::ModuleRuns(name)
        | How::Pipelines(name, _) => is_prediction(name),
        How::Requests { .. } => true,
        _ => false,
    };
    let predicts = || {
        let trace = recorded.trace;
        trace.kinds().iter().any(|kind| trace.str(kind.name) == "BatchingSessionRun")
    };
    let none = matches!(how, How::Nothing | How::Unclear { .. });
    if inference || (none && predicts()) { StepKind::Inference } else { StepKind::Training }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Time;

    use super::*;

    #[test]
    fn marks_around_nothing_are_no_steps_and_waits_for_the_device_are() {
        let span = |start| Span::new(Time::from_ps(start), Time::from_ps(start + 10));
        let all = (0..6).map(|number| own_length(&(number, span(10 * number)))).collect();
        let mut steps = Steps {
            origin: Origin::Marker,
            how: How::Marker("train".to_owned()),
            kind: StepKind::Training,
            all,
            track: None,
            on_host: true,
            whole_capture: false,
            found: None,
            pauses: Vec::new(),
        };
        let works = |span: Span| [10, 40].contains(&span.start.ps());
        steps.exclude_empty(works, |span| span.start.ps() == 20);
        let why: Vec<_> = steps.all.iter().map(|step| step.excluded).collect();
        let (cut, empty) = (Some(Exclusion::Incomplete), Some(Exclusion::Empty));
        assert_eq!(why, [cut, None, None, empty, None, cut]);
        steps.all.iter_mut().for_each(|step| step.excluded = None);
        steps.exclude_empty(|_| false, |_| false);
        assert_eq!(steps.counted().count(), 6, "nothing was recorded inside of any");
    }
}
