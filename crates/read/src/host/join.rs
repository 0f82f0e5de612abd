//! Adds a log to a trace: markers of steps and frames on the threads that they belong to, pauses of the garbage collector,
//! opened files and started programs on tracks of their own.

use stepscope_trace::{
    Dur, Form, Kind, LIBRARY_SAMPLE, LOCK_WAIT, ProcessId, ProcessKind, Span, Time, Trace, TraceBuilder,
    Track, TrackId, TrackKind, USER_SAMPLE,
};

use super::document::{HostLog, Site, Thread};
use super::frames::{Frame, Sample, between_events, frames, keep_open, split_at, without_delay};

/// Events that `record.py` leaves in the profile, with its own time behind the name: they show how the two clocks relate, and
/// which thread runs the loop.
const CLOCK_MARK: &str = "stepscope/clock#";
/// Boundaries this close to the edge of an event of the loop's thread lie on it: clocks agree to some 50 µs.
const CLOCK_ERROR: Dur = Dur::from_us(300);
/// A file has at most this many steps …
const MOST_STEPS: usize = 100_000;
/// … samples per thread, which is more than `record.py` keeps …
const MOST_SAMPLES: usize = 200_000;
/// … and frames in a stack.
const DEEPEST: usize = 128;

/// A mark of the clock: where, when, and the log's own time.
struct Mark {
    track: TrackId,
    at: Time,
    own_ns: i64,
}

fn marks(trace: &Trace) -> Vec<Mark> {
    let wanted = trace.kinds_where(|kind| trace.kind_name(kind).starts_with(CLOCK_MARK));
    let threads = trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread);
    let mut found = Vec::new();
    for track in threads {
        for (index, kind) in track.events_of(&wanted) {
            let own_ns = trace.kind_name(kind)[CLOCK_MARK.len()..].parse();
            found.extend(own_ns.ok().map(|own_ns| Mark { track: track.id, at: track.start(index), own_ns }));
        }
    }
    found
}

/// The log's origin on the trace's clock: by the marks, else by the wall clock of both.
pub(super) fn origin(trace: &Trace, log: &HostLog) -> Option<Time> {
    let by_mark = marks(trace).iter().map(|mark| mark.at - Dur::from_ns(mark.own_ns)).min();
    by_mark.or_else(|| {
        let (wall, own) = (trace.clock().wall_ns_at_origin?, log.clock.first()?.0);
        Some(Time::from_ns(own.checked_sub(wall)?))
    })
}

/// The thread that runs the loop: where the marks are, else by its number.
fn loop_track(trace: &Trace, log: &HostLog) -> Option<TrackId> {
    let marked = marks(trace).first().map(|mark| mark.track);
    marked.or_else(|| numbered(trace, log.loop_thread?))
}

fn numbered(trace: &Trace, number: i64) -> Option<TrackId> {
    let of_host = |track: &&Track| trace.process(track.process).kind == ProcessKind::Host;
    let mut threads = trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread).filter(of_host);
    threads.find(|track| track.number == number).map(|track| track.id)
}

/// Where the events of one thread of the log go.
struct Place {
    /// An existing track.
    track: Option<TrackId>,
    /// What a new one is called.
    name: String,
    frames: Vec<Frame>,
}

/// The trace with the log, whose origin is at `origin` on the trace's clock.
pub(super) fn join(trace: Trace, log: &HostLog, origin: Option<Time>) -> TraceBuilder {
    let origin = origin.unwrap_or(Time::ZERO);
    let looping = loop_track(&trace, log);
    let (names, paths) = names(log);
    let longest = longest_call(log);
    let steps = steps(&trace, looping, log, origin);
    let starts: Vec<Time> = steps.iter().map(|(_, span)| span.start).collect();
    let mut places = Vec::new();
    for (index, thread) in log.threads.iter().enumerate() {
        let runs_loop = thread.id.is_some() && thread.id == log.loop_thread;
        let track = if runs_loop { looping } else { thread.id.and_then(|id| numbered(&trace, id)) };
        let found = split_at(&starts, frames_of(&trace, track, thread, &paths, (origin, longest)));
        let name =
            if thread.name.is_empty() { format!("Python thread {index}") } else { thread.name.clone() };
        places.push(Place { track, name, frames: found });
    }
    let process = trace.processes().iter().find(|process| process.kind == ProcessKind::Host).map(|it| it.id);
    let mut added = Added { builder: TraceBuilder::reopen(trace), process, log, origin };
    // Markers come first: of two events with the same time, the first is the outer one.
    if !steps.is_empty() {
        let number = log.loop_thread.unwrap_or(0);
        let looping = looping.unwrap_or_else(|| added.track("python", TrackKind::Thread, number));
        added.add_steps(looping, steps);
    }
    added.add_frames(&names, places);
    added.add_lock_waits();
    added.add_rest();
    added.builder
}

/// The names of frames, and the path of each stack through them.
fn names(log: &HostLog) -> (Vec<(String, bool)>, Vec<Vec<usize>>) {
    let name = |site: &Site| {
        let line = if site.user && log.is_loop(site) { site.line } else { site.first_line };
        (format!("${}:{line} {}", site.file, site.function), site.user)
    };
    // Lines of one function share a name, so that samples in different lines are one frame.
    let mut names: Vec<(String, bool)> = Vec::new();
    let mut numbers = rustc_hash::FxHashMap::default();
    let mut number = |name: (String, bool)| {
        *numbers.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let input = number(("stepscope/input".to_owned(), true));
    let sites: Vec<usize> = log.sites.iter().map(|site| number(name(site))).collect();
    let path = |stack: &Vec<usize>| {
        let mut path = Vec::new();
        let mut in_loop = false;
        for &site in stack.iter().take(DEEPEST) {
            let Some((site, &number)) = log.sites.get(site).zip(sites.get(site)) else { continue };
            // A generator that the loop itself runs is what it takes its batches from.
            if in_loop && site.user && site.generator {
                path.push(input);
            }
            in_loop = site.user && log.is_loop(site);
            path.push(number);
        }
        path
    };
    let paths = log.stacks.iter().map(path).collect();
    (names, paths)
}

/// Events that are longer than half of a step are ranges around other work. Without steps, all count.
fn longest_call(log: &HostLog) -> Dur {
    let times = log.steps.as_ref().map_or(&[][..], |steps| &steps.times);
    let mut steps: Vec<i64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(Dur::from_ps(i64::MAX), |middle| Dur::from_ns(middle / 2))
}

fn frames_of(
    trace: &Trace,
    track: Option<TrackId>,
    thread: &Thread,
    paths: &[Vec<usize>],
    (origin, longest): (Time, Dur),
) -> Vec<Frame> {
    let mut samples: Vec<Sample> = Vec::with_capacity(thread.samples.len());
    let mut until = Time::MIN;
    for &(at, weight, stack) in thread.samples.iter().take(MOST_SAMPLES) {
        let end = origin + Dur::from_ns(at);
        let start = (end - Dur::from_ns(weight.max(0))).max(until);
        if start < end && stack < paths.len() {
            samples.push(Sample { span: Span::new(start, end), stack });
            until = end;
        }
    }
    let path = |stack: usize| paths[stack].as_slice();
    match track {
        Some(id) => {
            let track = trace.track(id);
            between_events(trace, track, frames(&without_delay(track, longest, &samples), path))
        }
        None => frames(&samples, path),
    }
}

/// The steps, with their numbers.
fn steps(trace: &Trace, looping: Option<TrackId>, log: &HostLog, origin: Time) -> Vec<(i64, Span)> {
    let Some(steps) = &log.steps else { return Vec::new() };
    let first = log.window.as_ref().map_or(0, |window| window.first_step);
    let times = steps.times.iter().take(MOST_STEPS).map(|&at| origin + Dur::from_ns(at));
    let mut times: Vec<Time> = times.collect();
    if let Some(track) = looping {
        snap(trace.track(track), &mut times);
    }
    let spans = times.windows(2).filter_map(|pair| match pair {
        &[start, end] if start < end => Some(Span::new(start, end)),
        _ => None,
    });
    spans.zip(0..).map(|(span, number)| (first.saturating_add(number), span)).collect()
}

/// Moves boundaries that lie just inside an event of the thread to the event's edge.
fn snap(track: &Track, times: &mut [Time]) {
    let mut next = 0;
    let mut open: Vec<Span> = Vec::new();
    for time in times.iter_mut() {
        while next < track.len() && track.start(next) < *time {
            let span = track.span_of(next);
            keep_open(&mut open, span);
            next += 1;
        }
        open.retain(|open| open.end > *time);
        let edges = open.iter().flat_map(|event| [event.start, event.end]);
        let distance = |edge: &Time| (*edge - *time).ps().unsigned_abs();
        // The outermost event decides: the edges of what lies inside are inside it.
        if let Some(edge) =
            edges.filter(|edge| distance(edge) <= CLOCK_ERROR.ps().unsigned_abs()).max_by_key(distance)
        {
            *time = edge;
        }
    }
}

/// A trace that grows by a log.
struct Added<'l> {
    builder: TraceBuilder,
    process: Option<ProcessId>,
    log: &'l HostLog,
    origin: Time,
}

impl Added<'_> {
    fn track(&mut self, name: &str, kind: TrackKind, number: i64) -> TrackId {
        let process = match self.process {
            Some(process) => process,
            None => {
                let name = self.builder.strings.intern("python");
                *self.process.insert(self.builder.process(name, ProcessKind::Host, 0))
            }
        };
        let name = self.builder.strings.intern(name);
        self.builder.track(process, name, kind, number, TraceBuilder::ARENA)
    }

    fn kind(&mut self, name: &str, category: &str) -> Kind {
        let category = self.builder.strings.intern(category);
        Kind { category, ..Kind::slice(self.builder.strings.intern(name)) }
    }

    fn add_frames(&mut self, names: &[(String, bool)], places: Vec<Place>) {
        let kinds: Vec<_> = names
            .iter()
            .map(|(name, user)| {
                let range = !name.starts_with('$');
                let category = if range {
                    "user_annotation"
                } else if *user {
                    USER_SAMPLE
                } else {
                    LIBRARY_SAMPLE
                };
                let kind = self.kind(name, category);
                self.builder.kind(kind)
            })
            .collect();
        for place in places {
            let new = || format!("{} (Python samples)", place.name);
            let track = match place.track {
                Some(track) => track,
                None => self.track(&new(), TrackKind::Derived, 0),
            };
            for frame in place.frames {
                let dur = frame.span.end - frame.span.start;
                self.builder.event(track, frame.span.start, dur, kinds[frame.name], None);
            }
        }
    }

    fn add_steps(&mut self, track: TrackId, steps: Vec<(i64, Span)>) {
        for (number, span) in steps {
            let kind = self.kind(&format!("stepscope/step#{number}"), "");
            let kind = self.builder.kind(kind);
            self.builder.event(track, span.start, span.end - span.start, kind, None);
        }
    }

    /// Waits for the interpreter lock, named by the code of the program that holds it.
    fn add_lock_waits(&mut self) {
        let (log, origin) = (self.log, self.origin);
        if log.lock_waits.is_empty() {
            return;
        }
        let track = self.track("interpreter lock", TrackKind::Derived, 0);
        for &(end, waited, stack) in log.lock_waits.iter().take(MOST_SAMPLES) {
            let sites = stack.and_then(|stack| log.stacks.get(stack)).into_iter().flatten().rev();
            let holder = sites.filter_map(|&site| log.sites.get(site)).find(|site| site.user);
            let name = holder.map_or_else(
                || "another thread".to_owned(),
                |site| format!("{}:{} {}", site.file, site.first_line, site.function),
            );
            let kind = self.kind(&name, LOCK_WAIT);
            let kind = self.builder.kind(kind);
            let waited = Dur::from_ns(waited.max(0));
            self.builder.event(track, origin + Dur::from_ns(end) - waited, waited, kind, None);
        }
    }

    /// Pauses, files and children, on tracks of their own: any thread may have caused them.
    fn add_rest(&mut self) {
        let (log, origin) = (self.log, self.origin);
        if !log.collections.is_empty() {
            let track = self.track("garbage collector", TrackKind::Derived, 0);
            for &(at, dur, generation) in &log.collections {
                let kind = self.kind(&format!("collect generation {generation}"), "");
                let kind = self.builder.kind(kind);
                self.builder.event(track, origin + Dur::from_ns(at), Dur::from_ns(dur.max(0)), kind, None);
            }
        }
        if !log.opens.is_empty() || !log.children.is_empty() {
            let track = self.track("files and programs", TrackKind::Derived, 0);
            let opens = log.opens.iter().map(|(at, _, path, writes)| {
                (*at, format!("{} {path}", if *writes { "write" } else { "open" }))
            });
            let children = log.children.iter().map(|(at, _, path)| (*at, format!("start {path}")));
            for (at, name) in opens.chain(children).collect::<Vec<_>>() {
                let kind = Kind { form: Form::Instant, ..self.kind(&name, "") };
                let kind = self.builder.kind(kind);
                self.builder.event(track, origin + Dur::from_ns(at), Dur::ZERO, kind, None);
            }
        }
        let versions = log.versions.iter().map(|(name, version)| (name.as_str(), version.as_str()));
        let python = Some(("python", log.python.as_str())).filter(|(_, version)| !version.is_empty());
        for (name, version) in versions.chain(python).collect::<Vec<_>>() {
            let property = self.builder.text_property(name, version);
            let known = &mut self.builder.environment.versions;
            if !known.iter().any(|old| old.key == property.key) {
                known.push(property);
            }
        }
    }
}
