//! Problems of the recording itself: the profiler's messages, the reader's repairs, and oddities of the events.
//! Typed and counted; causes and fixes are worded elsewhere.
//!
//! One host at a time: [`health`] of each. Costs one pass over the events.

use std::ops::Range;

use rayon::prelude::*;
use stepscope_trace::{
    Block, DeviceKind, Dur, Form, Note, NoteKind, ProcessKind, Span, Time, Trace, Track, TrackKind,
    overlapping,
};

use crate::recording::info::events_by_process;
use crate::states::chunks;
use crate::vocabulary::has_timeline;
use crate::vocabulary::starts_kernels;
use crate::work::counters::lacks_limits;

/// Severity, ordered: the worst is the greatest.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information; conclusions hold.
    Info,
    /// Some conclusions may not hold.
    Warning,
    /// Part of the data is missing.
    Error,
}

/// The kind of problem.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Trouble {
    /// The file is truncated or contains invalid data; `detail` says what.
    Damaged,
    /// The file of a host could not be read at all; `detail` says which and why.
    Unread,
    /// The file changed while it was read.
    Changed,
    /// The file holds more than its budget allows; `count` is the limit, `detail` names what it counts.
    OverBudget,
    /// The profiler reported an error; `detail` is its text.
    CollectionError,
    /// There are no events.
    NoEvents,
    /// Devices or device calls were seen, but no device work; `detail` says what was seen.
    NoDeviceEvents,
    /// The profiler reports dropped events; the count is unknown if it does not say how many.
    DroppedEvents,
    /// The number of events equals a known limit.
    EventCap,
    /// The profiler reported a warning; `detail` is its text.
    CollectionWarning,
    /// Events entirely outside the capture window. Events that only reach beyond its edges were open when it
    /// started or ended, which is normal.
    OutsideCapture,
    /// Events that last longer than the capture itself.
    OverLong,
    /// Times beyond the range of the trace, clamped.
    TimeOutOfRange,
    /// Ends before starts, read as instants.
    NegativeDuration,
    /// Starts without ends, or ends without starts.
    Unpaired,
    /// References to something that the file does not define; `detail` says what.
    DanglingReference,
    /// The capture is so short that it hardly contains a step; `span` says how short.
    ShortCapture,
    /// Kernels were profiled without counters that show what limits them.
    FewCounters,
    /// A log does not say what its numbers mean.
    UnnamedColumns,
    /// Samples from another time than the timeline beside them; `detail` names them.
    OtherTime,
    /// Some devices have events and others have none; `count` says how many have none.
    IdleDevices,
    /// Repaired text; `detail` names the repair.
    Repaired,
    /// Parts that this version does not understand; `detail` names them.
    UnknownContent,
    /// Events that overlap on one thread or stream without nesting.
    Overlapping,
    /// Slices without a length.
    ZeroLength,
    /// The file has relative times only.
    ClockUnknown,
}

/// One problem of one host.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Issue {
    /// The host.
    pub host: String,
    /// Its kind.
    pub trouble: Trouble,
    /// The profiler's own text, or the name of the thing; may be empty.
    pub detail: String,
    /// Number of occurrences; `None` if it cannot be counted.
    pub count: Option<u64>,
    /// Position of the first occurrence in the file, in bytes.
    pub offset: Option<u64>,
    /// Length of the recording, if that is the problem.
    pub span: Option<Dur>,
}

impl Issue {
    /// A host whose file could not be read at all; `detail` says which and why.
    pub fn unread(host: String, detail: String) -> Self {
        Issue { host, trouble: Trouble::Unread, detail, count: None, offset: None, span: None }
    }

    /// The order in which problems are shown: the worst first, the same whichever host came first.
    pub(crate) fn order(&self) -> impl Ord + '_ {
        (std::cmp::Reverse(self.trouble.severity()), &self.host, self.trouble, &self.detail, self.offset)
    }
}

impl Trouble {
    /// Public id; never changes its meaning.
    pub fn id(self) -> &'static str {
        match self {
            Trouble::Damaged => "damaged",
            Trouble::Unread => "unread",
            Trouble::Changed => "changed",
            Trouble::OverBudget => "over-budget",
            Trouble::CollectionError => "collection-error",
            Trouble::NoEvents => "no-events",
            Trouble::NoDeviceEvents => "no-device-trace",
            Trouble::DroppedEvents => "dropped-events",
            Trouble::EventCap => "event-cap",
            Trouble::CollectionWarning => "collection-warning",
            Trouble::OutsideCapture => "outside-capture",
            Trouble::OverLong => "over-long",
            Trouble::TimeOutOfRange => "time-out-of-range",
            Trouble::NegativeDuration => "negative-duration",
            Trouble::Unpaired => "unpaired",
            Trouble::DanglingReference => "dangling-reference",
            Trouble::ShortCapture => "short-capture",
            Trouble::FewCounters => "few-counters",
            Trouble::UnnamedColumns => "unnamed-columns",
            Trouble::OtherTime => "other-time",
            Trouble::IdleDevices => "idle-devices",
            Trouble::Repaired => "repaired",
            Trouble::UnknownContent => "unknown-content",
            Trouble::Overlapping => "overlapping",
            Trouble::ZeroLength => "zero-length",
            Trouble::ClockUnknown => "clock-unknown",
        }
    }

    /// Its severity.
    pub fn severity(self) -> Severity {
        match self {
            Trouble::Damaged
            | Trouble::Unread
            | Trouble::Changed
            | Trouble::OverBudget
            | Trouble::CollectionError
            | Trouble::NoEvents
            | Trouble::NoDeviceEvents
            | Trouble::DroppedEvents
            | Trouble::EventCap => Severity::Error,
            Trouble::CollectionWarning
            | Trouble::OutsideCapture
            | Trouble::OverLong
            | Trouble::TimeOutOfRange
            | Trouble::NegativeDuration
            | Trouble::Unpaired
            | Trouble::DanglingReference
            | Trouble::ShortCapture
            | Trouble::FewCounters
            | Trouble::UnnamedColumns
            | Trouble::OtherTime => Severity::Warning,
            Trouble::IdleDevices
            | Trouble::Repaired
            | Trouble::UnknownContent
            | Trouble::Overlapping
            | Trouble::ZeroLength
            | Trouble::ClockUnknown => Severity::Info,
        }
    }
}

/// Problems of one host's recording, worst first.
pub fn health(trace: &Trace, host: &str) -> Vec<Issue> {
    let mut found = Found { host, issues: trace.notes().iter().map(|note| noted(note, host)).collect() };
    // Counters and GPU samples alone are not the recording of a run, so it cannot be short, empty or one-sided.
    if has_timeline(trace) {
        whole_recording(trace, &mut found);
        devices(trace, &mut found);
    }
    if lacks_limits(trace) {
        found.add(Trouble::FewCounters, "", None);
    }
    events(trace, &mut found);
    let mut issues = found.issues;
    issues.sort_by(|a, b| a.order().cmp(&b.order()));
    issues
}

struct Found<'a> {
    host: &'a str,
    issues: Vec<Issue>,
}

impl Found<'_> {
    fn add(&mut self, trouble: Trouble, detail: &str, count: Option<u64>) {
        let (host, detail) = (self.host.to_owned(), detail.to_owned());
        self.issues.push(Issue { host, trouble, detail, count, offset: None, span: None });
    }

    fn count(&mut self, trouble: Trouble, count: u64) {
        if count > 0 {
            self.add(trouble, "", Some(count));
        }
    }
}

fn noted(note: &Note, host: &str) -> Issue {
    let trouble = match note.kind {
        NoteKind::Damaged => Trouble::Damaged,
        NoteKind::Changed => Trouble::Changed,
        NoteKind::OverBudget => Trouble::OverBudget,
        NoteKind::CollectionError => Trouble::CollectionError,
        NoteKind::CollectionWarning => Trouble::CollectionWarning,
        NoteKind::DroppedByRecorder => Trouble::DroppedEvents,
        NoteKind::Repaired => Trouble::Repaired,
        NoteKind::NegativeDuration => Trouble::NegativeDuration,
        NoteKind::TimeOutOfRange => Trouble::TimeOutOfRange,
        NoteKind::DanglingReference => Trouble::DanglingReference,
        NoteKind::Unpaired => Trouble::Unpaired,
        NoteKind::Unknown => Trouble::UnknownContent,
        NoteKind::Unnamed => Trouble::UnnamedColumns,
    };
    Issue {
        host: host.to_owned(),
        trouble,
        detail: note.detail.clone(),
        count: Some(note.count),
        offset: note.offset,
        span: None,
    }
}

/// Profilers silently stop at these numbers of events: a million and five million in trace viewer files, 2 Mi
/// activities or callbacks in the CUDA tracer.
const EVENT_CAPS: [u64; 3] = [1_000_000, 5_000_000, 2 << 20];

/// A shorter capture rarely contains two steps of anything worth profiling.
const SHORT: Dur = Dur::from_us(10_000);

fn whole_recording(trace: &Trace, found: &mut Found<'_>) {
    let Some(span) = trace.span().filter(|_| trace.events() > 0) else {
        return found.add(Trouble::NoEvents, "", None);
    };
    if span.dur() < SHORT {
        found.add(Trouble::ShortCapture, "", None);
        if let Some(issue) = found.issues.last_mut() {
            issue.span = Some(span.dur());
        }
    }
    if trace.clock().wall_ns_at_origin.is_none() {
        found.add(Trouble::ClockUnknown, "", None);
    }
    let on_devices = events_where(trace, |track| track.kind == TrackKind::Stream);
    let counts = [trace.events(), on_devices, trace.events() - on_devices];
    if let Some(&count) = counts.iter().find(|count| EVENT_CAPS.contains(count)) {
        found.count(Trouble::EventCap, count);
    }
}

fn events_where(trace: &Trace, wanted: impl Fn(&Track) -> bool) -> u64 {
    trace.tracks().iter().filter(|track| wanted(track)).map(|track| track.len() as u64).sum()
}

fn devices(trace: &Trace, found: &mut Found<'_>) {
    let on_devices = events_where(trace, |track| trace.process(track.process).kind == ProcessKind::Device);
    let streams = events_where(trace, |track| track.kind == TrackKind::Stream);
    let accelerators: Vec<_> =
        trace.devices().iter().filter(|device| device.kind != DeviceKind::Cpu).collect();
    if on_devices + streams == 0 {
        // If calls that launch work were recorded, the work should have been recorded too.
        let launch = trace.kinds().iter().map(|kind| trace.str(kind.name)).find(|name| starts_kernels(name));
        if let Some(call) = launch {
            found.add(Trouble::NoDeviceEvents, call, None);
        } else if let Some(device) = accelerators.first() {
            found.add(Trouble::NoDeviceEvents, trace.str(device.name), None);
        }
        return;
    }
    // Only devices with their own tracks count: a list of all devices of the machine proves nothing.
    let events = events_by_process(trace);
    let idle =
        accelerators.iter().filter_map(|device| events.get(device.process?.index())).filter(|&&n| n == 0);
    found.count(Trouble::IdleDevices, idle.count() as u64);
}

/// Number of events of a long track that are looked at together: few enough that all cores finish at about the same time.
const EVENTS_PER_PIECE: usize = 1 << 19;

/// Oddities of single events, counted.
#[derive(Default)]
struct Odd {
    zero: u64,
    over_long: u64,
    outside: u64,
    overlapping: u64,
}

impl Odd {
    /// Oddities of a whole track.
    fn of(trace: &Trace, track: &Track, window: Option<Span>) -> Self {
        let blocks = track.blocks().filter(|(events, block)| may_be_odd(track, events, *block, window));
        let odd = blocks.map(|(events, _)| Odd::among(trace, track, events, window));
        let odd = odd.reduce(Odd::default, Odd::and);
        if !matches!(track.kind, TrackKind::Thread | TrackKind::Stream) {
            return odd;
        }
        if let Some(nesting) = track.known_nesting() {
            return Odd { overlapping: nesting.overlapping(), ..odd };
        }
        let pieces = chunks(track, (track.len() / EVENTS_PER_PIECE).max(rayon::current_num_threads()));
        Odd { overlapping: pieces.into_par_iter().map(|piece| overlapping(track, piece)).sum(), ..odd }
    }

    /// Oddities of some events by themselves.
    fn among(trace: &Trace, track: &Track, events: Range<usize>, window: Option<Span>) -> Self {
        let mut odd = Odd::default();
        for index in events {
            let form = trace.kind(track.kind_of(index)).form;
            if form == Form::Aggregate {
                continue;
            }
            let dur = track.dur(index);
            odd.zero += u64::from(form == Form::Slice && dur.is_zero());
            if let Some(window) = window {
                odd.over_long += u64::from(dur > window.dur());
                odd.outside += u64::from(track.end(index) < window.start || track.start(index) > window.end);
            }
        }
        odd
    }

    fn and(self, other: Odd) -> Odd {
        Odd {
            zero: self.zero + other.zero,
            over_long: self.over_long + other.over_long,
            outside: self.outside + other.outside,
            overlapping: self.overlapping + other.overlapping,
        }
    }
}

/// Whether a block contains an event without length, or one that does not fit into the capture window.
fn may_be_odd(track: &Track, events: &Range<usize>, block: Block, window: Option<Span>) -> bool {
    let unfit = |window: Span| {
        let last = events.end.saturating_sub(1);
        block.longest > window.dur()
            || track.start(events.start) < window.start
            || track.start(last) > window.end
    };
    block.shortest.is_zero() || window.is_some_and(unfit)
}

fn events(trace: &Trace, found: &mut Found<'_>) {
    let window = window(trace);
    let odd = trace
        .tracks()
        .par_iter()
        .filter(|track| track.kind != TrackKind::Derived)
        .map(|track| Odd::of(trace, track, window))
        .reduce(Odd::default, Odd::and);
    found.count(Trouble::ZeroLength, odd.zero);
    found.count(Trouble::OverLong, odd.over_long);
    found.count(Trouble::OutsideCapture, odd.outside);
    found.count(Trouble::Overlapping, odd.overlapping);
}

/// The capture window in the trace's time, with a tolerance of one percent at either end, because profilers
/// measure its edges on another thread.
fn window(trace: &Trace) -> Option<Span> {
    let (from, to) = trace.environment().captured_ns.filter(|(from, to)| from < to)?;
    let origin = trace.clock().wall_ns_at_origin?;
    let at = |ns: i64| Some(Time::from_ns(ns.checked_sub(origin)?));
    let window = Span::new(at(from)?, at(to)?);
    let grace = Dur::from_ps(window.dur().ps() / 100);
    Some(Span::new(window.start - grace, window.end + grace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Device, Kind, TraceBuilder, TrackId};

    fn builder() -> (TraceBuilder, TrackId) {
        let mut builder = TraceBuilder::new();
        builder.clock.wall_ns_at_origin = Some(1_000);
        let name = builder.strings.intern("host");
        let process = builder.process(name, ProcessKind::Host, 1);
        let track = builder.track(process, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
        (builder, track)
    }

    fn slice(builder: &mut TraceBuilder, track: TrackId, name: &str, start_us: i64, dur_us: i64) {
        let name = builder.strings.intern(name);
        let kind = builder.kind(Kind::slice(name));
        builder.event(track, Time::ZERO + Dur::from_us(start_us), Dur::from_us(dur_us), kind, None);
    }

    fn ids(builder: TraceBuilder) -> Vec<(&'static str, Option<u64>)> {
        health(&builder.finish(), "host").iter().map(|issue| (issue.trouble.id(), issue.count)).collect()
    }

    #[test]
    fn a_sound_recording_has_no_trouble() {
        let (mut builder, track) = builder();
        slice(&mut builder, track, "step", 0, 20_000);
        slice(&mut builder, track, "op", 5, 10);
        assert_eq!(ids(builder), []);
    }

    #[test]
    fn overlaps_are_the_same_whether_or_not_a_timeline_was_laid_out_before() {
        let (mut builder, track) = builder();
        (0..500)
            .for_each(|index| slice(&mut builder, track, "op", index * 10, [100, 9, 25][index as usize % 3]));
        let trace = builder.finish();
        let count =
            || health(&trace, "host").iter().find(|issue| issue.trouble == Trouble::Overlapping)?.count;
        let before = count();
        trace.tracks()[0].nesting();
        assert!(before.is_some_and(|count| count > 0));
        assert_eq!(count(), before);
    }

    #[test]
    fn the_worst_comes_first() {
        let (mut builder, track) = builder();
        builder.clock.wall_ns_at_origin = None;
        slice(&mut builder, track, "a", 0, 20_000);
        slice(&mut builder, track, "b", 10_000, 20_000);
        slice(&mut builder, track, "c", 40_000, 0);
        builder.note(NoteKind::Unpaired, "", 3, None);
        builder.note(NoteKind::Damaged, "a tag", 1, Some(77));
        let want = [
            ("damaged", Some(1)),
            ("unpaired", Some(3)),
            ("overlapping", Some(1)),
            ("zero-length", Some(1)),
            ("clock-unknown", None),
        ];
        assert_eq!(ids(builder), want);
    }

    #[test]
    fn events_beyond_the_capture_are_counted() {
        let (mut builder, track) = builder();
        builder.environment.captured_ns = Some((1_000, 1_000 + 50_000_000));
        slice(&mut builder, track, "inside", 0, 50_000);
        slice(&mut builder, track, "late", 60_000, 10);
        slice(&mut builder, track, "endless", 1, 90_000);
        let found = ids(builder);
        assert!(
            found.contains(&("over-long", Some(1))) && found.contains(&("outside-capture", Some(1))),
            "{found:?}"
        );
    }

    #[test]
    fn launches_without_kernels_betray_a_missing_device_trace() {
        let (mut builder, track) = builder();
        slice(&mut builder, track, "cudaLaunchKernel", 0, 20_000);
        assert_eq!(ids(builder), [("no-device-trace", None)]);
    }

    #[test]
    fn one_empty_device_of_two_is_only_idle() {
        let (mut builder, track) = builder();
        slice(&mut builder, track, "step", 0, 20_000);
        for (number, busy) in [(0, true), (1, false)] {
            let name = builder.strings.intern(&format!("/device:GPU:{number}"));
            let process = builder.process(name, ProcessKind::Device, number);
            let stream = builder.track(process, name, TrackKind::Stream, 1, TraceBuilder::ARENA);
            builder.device(Device { process: Some(process), ..Device::new(DeviceKind::Gpu, number) });
            if busy {
                slice(&mut builder, stream, "kernel", 0, 10);
            }
        }
        assert_eq!(ids(builder), [("idle-devices", Some(1))]);
    }

    #[test]
    fn a_device_without_any_event_is_a_missing_device_trace() {
        let (mut builder, track) = builder();
        slice(&mut builder, track, "step", 0, 20_000);
        builder.device(Device::new(DeviceKind::Gpu, 0));
        assert_eq!(ids(builder), [("no-device-trace", None)]);
    }

    #[test]
    fn nothing_recorded_is_said_once() {
        assert_eq!(ids(TraceBuilder::new()), [("no-events", None)]);
    }
}
