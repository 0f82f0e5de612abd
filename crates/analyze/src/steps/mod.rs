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
//! A step lasts from its start to the start of the next one, so that the time between two markers counts too; a
//! request lasts until its answer. Incomplete steps and warm-up steps are excluded with a reason, never
//! averaged in.

mod anchors;
mod cycle;
mod evaluation;
mod evidence;
mod larger;
mod layers;
mod markers;
mod names;
mod outer;
mod period;
mod pipelines;
mod ranges;
mod repetition;
mod sessions;
mod work;
mod written;

use std::cell::OnceCell;

use stepscope_trace::{Dur, ProcessKind, Span, TrackId};

use crate::host_trace::HostTrace;
use crate::host_trace::{merged, working_devices};
use crate::states::timeline::DEVICE_BUSY;
use crate::states::timeline::{Mask, Timeline};
use crate::states::{State, StateLine};
use stepscope_trace::statistics::median_duration;

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
    /// What follows it is not the loop: an evaluation, a pause.
    Interrupted,
    /// The device's side of it was not recorded.
    Unrecorded,
}

impl Exclusion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Startup, Self::Incomplete, Self::Interrupted, Self::Unrecorded];
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
}

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
            },
        }
    }

    fn from(candidate: Candidate, origin: Origin, recorded: &HostTrace) -> Self {
        let Candidate { how, marks, track, on_host, ends_known, breaks } = candidate;
        let kind = kind_of(recorded, &how);
        let all = match kind {
            // A request lasts from its arrival to its answer, whenever the next one comes.
            StepKind::Inference if ends_known => marks.iter().map(own_length).collect(),
            _ => {
                let devices = Devices { recorded, lines: OnceCell::new() };
                let pace = Pace { recorded, marks: &marks, work: OnceCell::new() };
                let is_broken = |gap: Span| {
                    let next = breaks.partition_point(|other| other.start < gap.start);
                    breaks.get(next).is_some_and(|other| other.start < gap.end)
                };
                let is_other = |gap: Span| is_broken(gap) || ends_known && pace.is_kept_in(gap);
                let line = track.filter(|_| ends_known && on_host).and_then(|track| line_of(recorded, track));
                let written = line.map(|line| written::with_writes(&marks, line, is_other));
                laid_end_to_end(
                    written.as_deref().unwrap_or(&marks),
                    ends_known,
                    |gap| devices.work(gap),
                    is_other,
                )
            }
        };
        let mut steps = Steps { origin, kind, how, all, track, on_host, whole_capture: false, found: None };
        if origin == Origin::Marker && on_host {
            steps.exclude_empty_ends(|span| host_works(recorded, span));
        }
        steps
    }

    /// Empty markers at either end are the profiler's, or the rest of a step.
    fn exclude_empty_ends(&mut self, works: impl Fn(Span) -> bool) {
        let full = |step: &Step| works(step.span);
        let (Some(first), Some(last)) = (self.all.iter().position(full), self.all.iter().rposition(full))
        else {
            return;
        };
        for (index, step) in self.all.iter_mut().enumerate() {
            if index < first || index > last {
                step.excluded = Some(Exclusion::Incomplete);
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

/// Work of the host for a step, other than waiting.
const HOST_WORK: Mask = Mask(
    State::Dispatch as u16
        | State::Launch as u16
        | State::InputWait as u16
        | State::Output as u16
        | State::Tracing as u16
        | State::Compile as u16
        | State::HostCompute as u16,
);

/// Whether any host thread works within `span`.
fn host_works(recorded: &HostTrace, span: Span) -> bool {
    let trace = recorded.trace;
    let on_host = |track: TrackId| trace.process(trace.track(track).process).kind != ProcessKind::Device;
    recorded.states().lines.iter().filter(|(track, _)| on_host(*track)).any(|(_, line)| {
        let first = line.times.partition_point(|&time| time <= span.start).saturating_sub(1);
        let within =
            line.times.iter().zip(&line.states).skip(first).take_while(|&(&time, _)| time < span.end);
        within.into_iter().any(|(_, state)| state.0 & HOST_WORK.0 != 0)
    })
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
        Some(Outer::Single(found)) => pass = Some(found),
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
    ranges.any().or_else(single).or(around).ok_or(why)
}

/// Gaps between markers smaller than this share of a step are excluded: they are the cost of the marker itself,
/// and a stopwatch in the loop does not see them either.
const NEGLIGIBLE_GAP: f64 = 0.02;
/// Where such gaps are usual, a gap of this share of a step is something that the loop does between two steps.
const NOTABLE_GAP: f64 = 0.1;
/// A gap is filled with the model's work like the steps if it has at least this share of their density.
const SAME_PACE: f64 = 0.5;
/// A gap of this many steps is not part of the loop, unless such gaps are regular.
const INTERRUPTION: i64 = 5;

/// This many equally spaced pauses are not a coincidence.
const REGULAR: usize = 3;

fn own_length(&(number, span): &(i64, Span)) -> Step {
    Step { number, span, excluded: None }
}

/// Device activity, only computed if a gap is long.
struct Devices<'c, 't> {
    recorded: &'c HostTrace<'t>,
    lines: OnceCell<Vec<Timeline<'c>>>,
}

impl Devices<'_, '_> {
    /// Whether a device works for most of this time. Then it is not a pause: a host that runs ahead is blocked
    /// when all queues are full, and its own pace says nothing.
    fn work(&self, gap: Span) -> bool {
        let lines = self.lines.get_or_init(|| {
            let devices = working_devices(self.recorded).into_iter();
            devices.map(|device| merged(self.recorded, Some(device))).collect()
        });
        lines.iter().any(|line| line.time_in(DEVICE_BUSY, gap).fraction_of(gap.dur()) > 0.5)
    }
}

/// The density of the model's work in marked steps and between them, only computed if a gap is long.
struct Pace<'c, 't> {
    recorded: &'c HostTrace<'t>,
    marks: &'c [(i64, Span)],
    work: OnceCell<Option<(Work, f64)>>,
}

impl Pace<'_, '_> {
    /// Whether the model works in this gap as it does in the steps: another loop runs there, such as an evaluation
    /// between two epochs. What a device does there may have been launched before, so that without launches nobody
    /// can tell.
    fn is_kept_in(&self, gap: Span) -> bool {
        let known = self.work.get_or_init(|| {
            let unknown = self.recorded.states().has_device && self.recorded.launches().all.is_empty();
            let work = (!unknown).then(|| Work::of(self.recorded, &[]))?;
            let marked: Dur = self.marks.iter().map(|(_, span)| span.dur()).sum();
            let done: Dur = self.marks.iter().map(|&(_, span)| work.within(span)).sum();
            Some((work, done.fraction_of(marked)))
        });
        let Some((work, density)) = known else { return false };
        *density > 0.0 && work.within(gap).fraction_of(gap.dur()) >= SAME_PACE * density
    }
}

/// Turns markers into steps that reach from start to start. A long gap in which `works` reports no work is not
/// part of them, nor is one that `is_other_loop`.
fn laid_end_to_end(
    marks: &[(i64, Span)],
    ends_known: bool,
    works: impl Fn(Span) -> bool,
    is_other_loop: impl Fn(Span) -> bool,
) -> Vec<Step> {
    let gap_after = |index: usize| Span::new(marks[index].1.end, marks[index + 1].1.start);
    let gaps: Vec<Dur> = marks.windows(2).map(|pair| pair[1].1.start - pair[0].1.end).collect();
    let length = median_duration(marks.iter().map(|(_, span)| span.dur()));
    let gap = median_duration(gaps.iter().copied());
    let tight = ends_known && gap.fraction_of(length) < NEGLIGIBLE_GAP;
    let longest = Dur::from_ps((length + gap.at_least_zero()).ps().saturating_mul(INTERRUPTION));
    // Beyond what separates two steps anyway.
    let stands_out = |index: usize| (gaps[index] - gap.at_least_zero()).fraction_of(length) >= NOTABLE_GAP;
    let others: Vec<usize> = (0..gaps.len())
        .filter(|&index| stands_out(index) && gaps[index].ps() >= gap.ps().saturating_mul(2))
        .filter(|&index| is_other_loop(gap_after(index)))
        .collect();
    let is_other = |index: usize| others.binary_search(&index).is_ok();
    let paused =
        |index: usize| !tight && gaps[index] > longest && !is_other(index) && !works(gap_after(index));
    // Where the usual gap is nothing, a longer one belongs to the loop if it recurs.
    let recurs = tight && {
        let long: Vec<usize> =
            (0..gaps.len()).filter(|&index| stands_out(index) && !is_other(index)).collect();
        is_regular(&long)
    };
    let mut pauses: Vec<usize> = (0..gaps.len()).filter(|&index| paused(index)).collect();
    if is_regular(&pauses) {
        pauses.clear();
    }
    let step = |(index, &(number, span)): (usize, &(i64, Span))| {
        let (end, excluded) = match marks.get(index + 1).map(|(_, next)| next.start) {
            // The last one has no successor: its marker says where it ended; otherwise its end is unknown.
            None => (span.end, (!ends_known).then_some(Exclusion::Incomplete)),
            Some(next) if pauses.binary_search(&index).is_ok() => {
                (span.end.min(next), Some(Exclusion::Interrupted))
            }
            Some(next) if tight && !(recurs && stands_out(index)) => (span.end.min(next), None),
            Some(next) if is_other(index) => ((span.end + gap.at_least_zero()).min(next), None),
            Some(next) => (next, None),
        };
        Step { number, span: Span::new(span.start, end), excluded }
    };
    marks.iter().enumerate().map(step).collect()
}

/// Whether pauses recur regularly. Then they belong to the loop: checkpoints, for example, whose time all steps
/// share.
fn is_regular(pauses: &[usize]) -> bool {
    let apart = || pauses.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = (apart().min().unwrap_or(0), apart().max().unwrap_or(0));
    pauses.len() >= REGULAR && most - least <= 1
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

    fn marks(spans: &[(i64, i64)]) -> Vec<(i64, Span)> {
        let span = |&(start, end)| Span::new(Time::from_ps(start), Time::from_ps(end));
        spans.iter().enumerate().map(|(number, ends)| (number as i64, span(ends))).collect()
    }

    fn lengths(steps: &[Step]) -> Vec<(i64, Option<Exclusion>)> {
        steps.iter().map(|step| (step.span.dur().ps(), step.excluded)).collect()
    }

    #[test]
    fn markers_that_nearly_touch_keep_their_own_length() {
        let steps =
            laid_end_to_end(&marks(&[(0, 1000), (1005, 2005), (2010, 3010)]), true, |_| false, |_| false);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (1000, None)]);
    }

    #[test]
    fn time_between_markers_belongs_to_the_step_before() {
        let steps =
            laid_end_to_end(&marks(&[(0, 600), (1000, 1600), (2000, 2600)]), true, |_| false, |_| false);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (600, None)]);
    }

    #[test]
    fn a_pause_is_not_part_of_the_loop() {
        let steps = laid_end_to_end(
            &marks(&[(0, 600), (1000, 1600), (9000, 9600), (10_000, 10_600)]),
            true,
            |_| false,
            |_| false,
        );
        assert_eq!(steps[1].excluded, Some(Exclusion::Interrupted));
        assert_eq!(steps[1].span.dur(), Dur::from_ps(600));
    }

    #[test]
    fn pauses_after_every_so_many_steps_are_part_of_the_loop() {
        let starts = |pause_after: &[i64]| -> Vec<(i64, i64)> {
            let paused = |number: i64| pause_after.iter().filter(|&&last| last < number).count() as i64;
            (0..20).map(|number| number * 1_000 + paused(number) * 20_000).map(|at| (at, at + 600)).collect()
        };
        let excluded = |pause_after: &[i64]| {
            let steps = laid_end_to_end(&marks(&starts(pause_after)), true, |_| false, |_| false);
            steps.iter().filter(|step| step.excluded == Some(Exclusion::Interrupted)).count()
        };
        assert_eq!(excluded(&[4, 9, 14]), 0);
        assert_eq!(excluded(&[2, 9, 11]), 3, "now and then");
        assert_eq!(excluded(&[4, 9]), 2, "twice may be an accident");
    }

    /// Twenty steps of a microsecond that nearly touch, with a pause of this length after every fifth.
    fn epochs(pause: i64) -> Vec<(i64, i64)> {
        (0..20).map(|number| number * 1_000 + number / 5 * pause).map(|at| (at, at + 995)).collect()
    }

    #[test]
    fn what_the_loop_does_after_each_epoch_counts_even_if_steps_nearly_touch() {
        for pause in [300, 20_000] {
            let steps = laid_end_to_end(&marks(&epochs(pause)), true, |_| false, |_| false);
            assert_eq!(steps[3].span.dur(), Dur::from_ps(995));
            assert_eq!(steps[4].span.dur(), Dur::from_ps(1_000 + pause), "a checkpoint");
            assert!(steps.iter().all(|step| step.excluded.is_none()));
        }
        let once = marks(&[(0, 995), (1_000, 1_995), (90_000, 90_995), (91_000, 91_995)]);
        let steps = laid_end_to_end(&once, true, |_| false, |_| false);
        assert_eq!(lengths(&steps)[1], (995, None), "once may be an accident");
        let short = marks(&[(0, 995), (1_000, 1_995), (2_300, 3_295), (3_300, 4_295)]);
        let steps = laid_end_to_end(&short, true, |_| false, |_| false);
        assert_eq!(lengths(&steps)[1], (995, None), "however short");
    }

    #[test]
    fn another_loop_between_two_epochs_is_not_part_of_a_step() {
        let steps = laid_end_to_end(&marks(&epochs(20_000)), true, |_| false, |_| true);
        assert_eq!(lengths(&steps)[4], (995, None), "its own length");
        let apart: Vec<(i64, i64)> = epochs(20_000).iter().map(|&(start, end)| (start, end - 300)).collect();
        let steps = laid_end_to_end(&marks(&apart), true, |_| false, |_| true);
        assert!(steps[..19].iter().all(|step| step.span.dur() == Dur::from_ps(1_000)), "{steps:?}");
    }

    #[test]
    fn a_gap_in_which_a_device_works_is_no_pause() {
        let spans = [(0, 100), (200, 300), (400, 500), (3_000, 3_100), (5_600, 5_700)];
        let steps = laid_end_to_end(&marks(&spans), false, |_| true, |_| false);
        assert!(steps[..4].iter().all(|step| step.excluded.is_none()), "{steps:?}");
    }

    #[test]
    fn marks_around_nothing_at_the_ends_are_no_steps_and_those_in_between_are() {
        let all = laid_end_to_end(
            &marks(&[(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)]),
            true,
            |_| false,
            |_| false,
        );
        let mut steps = Steps {
            origin: Origin::Marker,
            how: How::Marker("train".to_owned()),
            kind: StepKind::Training,
            all,
            track: None,
            on_host: true,
            whole_capture: false,
            found: None,
        };
        steps.exclude_empty_ends(|span| [10, 30].contains(&span.start.ps()));
        let apart: Vec<bool> = steps.all.iter().map(|step| step.excluded.is_some()).collect();
        assert_eq!(apart, [true, false, false, false, true]);
        steps.all.iter_mut().for_each(|step| step.excluded = None);
        steps.exclude_empty_ends(|_| false);
        assert_eq!(steps.counted().count(), 5, "nothing was recorded inside of any");
    }

    #[test]
    fn a_step_whose_end_nobody_knows_is_incomplete() {
        let steps =
            laid_end_to_end(&marks(&[(0, 10), (1000, 1010), (2000, 2010)]), false, |_| false, |_| false);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (10, Some(Exclusion::Incomplete))]);
    }
}
