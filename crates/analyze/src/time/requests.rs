//! Requests that a server wrote as asynchronous operations (`b`/`e` events of Chrome traces): each from its arrival to its
//! answer, across threads, many at once. They are no steps: what runs meanwhile serves several of them.
//!
//! One partial result per host ([`RequestsPartial::of`]) → [`RequestsPartial::merge`] → [`RequestsPartial::finish`].

use std::collections::BTreeMap;

use stepscope_trace::statistics::Moments;
use stepscope_trace::{Form, KindId, Span, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::steps::{is_prediction, overlapping_requests};
use crate::vocabulary::words;

/// Latencies kept for a file.
const KEPT: usize = 4_096;

/// The requests of one host, or of several.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RequestsPartial {
    name: Option<String>,
    count: u64,
    latencies_ms: Vec<f64>,
    /// Time in a queue in milliseconds, and how many requests show it.
    #[serde(default)]
    queued: (f64, u64),
}

/// How long requests take.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// What they are called.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Their latencies in milliseconds.
    pub ms: Moments,
    /// Mean time in the server's queue, in milliseconds; `None` if not recorded.
    pub queue_ms: Option<f64>,
}

impl Analysis for RequestsPartial {
    type Output = Option<Latencies>;

    /// What one host says.
    fn of(context: &Context) -> Self {
        let Some((name, spans)) = recorded(context) else { return RequestsPartial::default() };
        let latencies_ms: Vec<f64> = spans.iter().map(|span| span.dur().ms()).collect();
        let queued = queued(context);
        let queued = (queued.iter().sum(), queued.len() as u64);
        RequestsPartial { name: Some(name), count: latencies_ms.len() as u64, latencies_ms, queued }
    }

    /// Adds another host.
    fn merge(&mut self, other: RequestsPartial) {
        self.name = self.name.take().or(other.name);
        self.count += other.count;
        self.latencies_ms.extend(other.latencies_ms);
        self.queued = (self.queued.0 + other.queued.0, self.queued.1 + other.queued.1);
    }

    /// Keeps as many as fit, spread evenly over all lengths.
    fn bound(&mut self) {
        let all = self.latencies_ms.len();
        if all > KEPT {
            self.latencies_ms.sort_by(f64::total_cmp);
            self.latencies_ms = (0..KEPT).map(|at| self.latencies_ms[at * (all - 1) / (KEPT - 1)]).collect();
        }
    }

    /// The result; `None` of fewer than two, which have no percentiles.
    fn finish(self) -> Option<Latencies> {
        let ms = Moments::of(self.latencies_ms).filter(|_| self.count > 1)?;
        let queue_ms = (self.queued.1 > 0).then(|| self.queued.0 / self.queued.1 as f64);
        Some(Latencies { name: self.name?, count: self.count, ms, queue_ms })
    }
}

/// The name and the spans of the requests of one host: asynchronous operations, or ranges of several threads at once.
pub(super) fn recorded(context: &Context) -> Option<(String, Vec<Span>)> {
    asynchronous(context).or_else(|| overlapping_requests(context, context.steps()))
}

/// What servers call the time before a request is worked on.
const QUEUES: &[&str] = &["queue", "queued", "queue_wait", "waiting in queue"];

/// How long requests waited: operations that are called `queue`, and spans of TensorFlow Serving's batch queue.
pub(super) fn queued(context: &Context) -> Vec<f64> {
    let trace = context.trace;
    let kinds = trace.kinds_where(|kind| {
        let name = trace.kind_name(kind);
        trace.kind(kind).form == Form::Slice && QUEUES.iter().any(|queue| name.eq_ignore_ascii_case(queue))
    });
    let tracks = trace.tracks().iter().filter(|track| track.kind == TrackKind::Async);
    let spans = tracks.flat_map(|track| track.events_of(&kinds).map(|(index, _)| track.dur(index).ms()));
    spans.collect()
}

/// How an operation is known to be a request. The better a sign, the later.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// Its name is a number, which differs from one to the next.
    Number,
    /// Its category is called so.
    Category,
    /// Its name is.
    Name,
}

impl Sign {
    /// The fewest operations that show it.
    fn least(self) -> usize {
        match self {
            Sign::Number => NUMBERED,
            Sign::Category | Sign::Name => 2,
        }
    }
}

/// Fewer operations whose names are numbers may be anything.
const NUMBERED: usize = 10;

/// Phases of a request (`queue`, `prefill`) are recorded under the same category; those that are called requests come first,
/// then what takes longest.
fn asynchronous(context: &Context) -> Option<(String, Vec<Span>)> {
    let trace = context.trace;
    let mut families: BTreeMap<(Sign, String), Vec<Span>> = BTreeMap::new();
    let named: Vec<Option<(Sign, String)>> =
        (0..trace.kinds().len()).map(|index| family(context, KindId::from_index(index))).collect();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Async) {
        for (index, kind) in track.kinds().iter().enumerate() {
            let span = track.span_of(index);
            if let Some(family) = named[kind.index()].as_ref().filter(|_| !span.is_empty()) {
                match families.get_mut(family) {
                    Some(spans) => spans.push(span),
                    None => drop(families.insert(family.clone(), vec![span])),
                }
            }
        }
    }
    let length = |spans: &[Span]| spans.iter().map(|span| span.dur().ps()).fold(0, i64::saturating_add);
    let found = families.into_iter().filter(|((sign, _), spans)| spans.len() >= sign.least());
    let found = found.max_by_key(|((sign, _), spans)| (*sign, length(spans)));
    found.map(|((_, name), spans)| (name, spans))
}

/// The name of a kind without its number, and what shows that it is a request; `None` if nothing does.
fn family(context: &Context, kind: KindId) -> Option<(Sign, String)> {
    let (trace, described) = (context.trace, context.trace.kind(kind));
    if described.form != Form::Slice {
        return None;
    }
    let (name, category) = (trace.kind_name(kind), trace.str(described.category));
    let stem: Vec<String> =
        words(name).into_iter().filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit())).collect();
    let sign = if is_request(name) {
        Sign::Name
    } else if is_request(category) {
        Sign::Category
    } else if stem.is_empty() {
        Sign::Number
    } else {
        return None;
    };
    let stem = match (stem.is_empty(), category.is_empty()) {
        (false, _) => stem.join(" "),
        (true, false) => category.to_owned(),
        (true, true) => "numbered operation".to_owned(),
    };
    Some((sign, stem))
}

fn is_request(name: &str) -> bool {
    is_prediction(name) || words(name).iter().any(|word| matches!(word.as_str(), "req" | "requests"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Dur, Kind, ProcessKind, Time, TraceBuilder};

    /// Asynchronous operations: category, name, start and length in milliseconds.
    fn latencies(operations: &[(&str, &str, i64, i64)]) -> Option<Latencies> {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("server");
        let process = builder.process(name, ProcessKind::Host, 1);
        let track = builder.track(process, name, TrackKind::Async, 1, TraceBuilder::ARENA);
        for &(category, name, start, len) in operations {
            let [name, category] = [name, category].map(|text| builder.strings.intern(text));
            let kind = builder.kind(Kind { category, ..Kind::slice(name) });
            let start = Time::from_ns(start * 1_000_000);
            builder.event(track, start, Dur::from_us(len * 1_000), kind, None);
        }
        let trace = builder.finish();
        RequestsPartial::of(&Context::new(&trace, "host")).finish()
    }

    #[test]
    fn requests_overlap_and_their_phases_are_not_requests() {
        let mut all = Vec::new();
        for n in 0..20 {
            let at = n * 5;
            all.extend([
                ("llm", "request", at, 40),
                ("llm", "queue", at, 10),
                ("llm", "decode", at + 10, 30),
            ]);
        }
        let found = latencies(&all).unwrap();
        assert_eq!((found.name.as_str(), found.count, found.ms.median), ("request", 20, 40.0));
    }

    #[test]
    fn the_number_of_a_request_is_not_part_of_its_name() {
        let found = latencies(&[("http", "req-00a1", 0, 10), ("http", "req-00a2", 5, 20)]).unwrap();
        assert_eq!((found.name.as_str(), found.count, found.ms.max), ("req", 2, 20.0));
        let found = latencies(&[("request", "7", 0, 10), ("request", "8", 5, 20)]).unwrap();
        assert_eq!((found.name.as_str(), found.count), ("request", 2));
    }

    #[test]
    fn operations_that_are_called_by_numbers_are_one_family() {
        let names: Vec<String> = (1..=40).map(|number| number.to_string()).collect();
        let all: Vec<_> =
            names.iter().zip(0..).map(|(name, at)| ("sim", name.as_str(), at * 3, 20)).collect();
        let found = latencies(&all).unwrap();
        assert_eq!((found.name.as_str(), found.count, found.ms.median), ("sim", 40, 20.0));
        assert_eq!(latencies(&all[..9]), None, "a few may be anything");
    }

    #[test]
    fn other_asynchronous_operations_are_no_requests() {
        assert_eq!(latencies(&[("GROUP_API", "Group API", 0, 10), ("P2P", "Send", 5, 20)]), None);
        assert_eq!(latencies(&[("llm", "request", 0, 10)]), None, "one has no percentiles");
    }
}
