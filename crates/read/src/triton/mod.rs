//! Triton Inference Server's trace (`--trace-config triton,file=…`): the moments of each request, as a list in JSON.
//!
//! ```json
//! [{"id": 1, "model_name": "simple", "timestamps": [{"name": "QUEUE_START", "ns": 2259961222771924}, …]}, …]
//! ```
//!
//! A request may be spread over several items. It becomes one operation, with its time in the queue beside it. What the model
//! does for it (copying inputs, computing, copying outputs) is on a track per model, on several if it works on several requests
//! at once. Requests of models inside an ensemble are parts of the ensemble's request.

use std::collections::BTreeMap;

use memchr::memmem;
use stepscope_trace::{
    Clock, Datum, Delivers, Dur, Format, Kind, NoteKind, ProcessId, ProcessKind, Time, Trace, TraceBuilder,
    TrackId, TrackKind,
};

use crate::json::Json;
use crate::{Input, Progress, ReadError, Reader};

/// Traces of Triton.
static FORMAT: Format =
    Format { endings: &[".json"], ..Format::new("triton", "Triton server trace", Delivers::Timeline) };

/// Waiting: name, first moment, last moment. Older versions write the names in lower case with blanks.
const QUEUE: (&str, &str, &str) = ("queue", "QUEUE_START", "COMPUTE_START");
/// What a model does for a request.
const WORK: [(&str, &str, &str); 3] = [
    ("compute input", "COMPUTE_START", "COMPUTE_INPUT_END"),
    ("compute", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"),
    ("compute output", "COMPUTE_OUTPUT_START", "COMPUTE_END"),
];
/// The category of a model's work.
const MODEL: &str = "triton";
/// Requests of one model at a time that have a track of their own.
const MOST_LANES: usize = 64;
/// The category of requests and their waiting.
const CATEGORY: &str = "request";

/// Reads Triton's traces.
#[derive(Debug)]
pub struct TritonReader;

/// One request.
#[derive(Clone, Debug, Default)]
struct Request {
    model: String,
    parent: Option<i64>,
    moments: Vec<(String, i64)>,
}

impl Request {
    fn at(&self, name: &str) -> Option<i64> {
        self.moments.iter().find(|(known, _)| known == name).map(|(_, ns)| *ns)
    }

    fn span(&self, from: &str, to: &str) -> Option<(i64, i64)> {
        Some((self.at(from)?, self.at(to)?)).filter(|(from, to)| from <= to)
    }
}

impl Reader for TritonReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let has = |part: &[u8]| memmem::find(head, part).is_some();
        let starts = head.trim_ascii_start();
        (starts.starts_with(b"[") || starts.starts_with(b"{"))
            && has(b"\"timestamps\"")
            && has(b"\"ns\"")
            && !has(b"\"ph\"")
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let mut requests: BTreeMap<i64, Request> = BTreeMap::new();
        let broken = Json::root(&bytes).elements(|item| {
            if input.budget().rows(1).is_ok() {
                take(&item, &mut requests);
            }
        });
        let mut builder = TraceBuilder::new();
        if let Some(at) = broken {
            builder.note(NoteKind::Damaged, "truncated", 1, Some(at as u64));
        } else if let Some(error) = inflating {
            builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
        }
        let count = requests.len() as u64;
        if add(&mut builder, &requests) == 0 {
            let what = "it has no request with a start and an end".to_owned();
            return Err(ReadError::Damaged {
                path: input.path().to_owned(),
                what,
                offset: broken.unwrap_or(0) as u64,
            });
        }
        progress.advance(bytes.len() as u64, count);
        Ok(builder.finish())
    }
}

fn take(item: &Json<'_>, requests: &mut BTreeMap<i64, Request>) {
    let (mut id, mut found) = (None, Request::default());
    item.members(|key, value| match key {
        b"id" => id = value.int(),
        b"parent_id" => found.parent = value.int(),
        b"model_name" => found.model = value.string(),
        b"timestamps" => {
            value.elements(|moment| {
                let (mut name, mut ns) = (String::new(), None);
                moment.members(|key, value| match key {
                    b"name" => name = canonical(&value.string()),
                    b"ns" => ns = value.int(),
                    _ => {}
                });
                found.moments.extend(ns.map(|ns| (name, ns)));
            });
        }
        _ => {}
    });
    let Some(id) = id else { return };
    let known = requests.entry(id).or_default();
    known.parent = known.parent.or(found.parent);
    if known.model.is_empty() {
        known.model = found.model;
    }
    known.moments.extend(found.moments);
}

/// `request handler start` is `REQUEST_START` today.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace([' ', '-'], "_");
    name.replace("REQUEST_HANDLER_", "REQUEST_")
}

/// Adds all requests; returns how many.
fn add(builder: &mut TraceBuilder, requests: &BTreeMap<i64, Request>) -> u64 {
    let moments = || requests.values().flat_map(|request| request.moments.iter().map(|(_, ns)| *ns));
    let name = builder.strings.intern("Triton");
    let process = builder.process(name, ProcessKind::Host, 0);
    let mut rows = Rows { process, origin: moments().min().unwrap_or(0), tracks: BTreeMap::new() };
    let (mut added, mut unpaired) = (0, 0);
    for request in requests.values() {
        let inside = request.parent.is_some_and(|parent| requests.contains_key(&parent));
        match request.span("REQUEST_START", "REQUEST_END") {
            Some(ends) => {
                rows.operation(
                    builder,
                    if inside { "model of an ensemble" } else { "request" },
                    request,
                    ends,
                );
                added += 1;
            }
            None => unpaired += 1,
        }
        if let Some(ends) = request.span(QUEUE.1, QUEUE.2) {
            rows.operation(builder, QUEUE.0, request, ends);
        }
    }
    rows.models(builder, requests);
    builder.note(NoteKind::Unpaired, "", unpaired, None);
    builder.clock = Clock { wall_ns_at_origin: None, resolution: Dur::from_ns(1) };
    added
}

/// Tracks by name.
struct Rows {
    process: ProcessId,
    origin: i64,
    tracks: BTreeMap<String, TrackId>,
}

impl Rows {
    fn operation(&mut self, builder: &mut TraceBuilder, what: &str, request: &Request, ends: (i64, i64)) {
        let track = self.track(builder, what, TrackKind::Async);
        self.put(builder, track, (what, CATEGORY), request, ends);
    }

    /// A model's work, on the first track of the model that is free.
    fn models(&mut self, builder: &mut TraceBuilder, requests: &BTreeMap<i64, Request>) {
        let mut work: Vec<(i64, i64, &Request)> = requests
            .values()
            .filter_map(|request| {
                request.span("COMPUTE_START", "COMPUTE_END").map(|(from, to)| (from, to, request))
            })
            .collect();
        work.sort_by_key(|(from, to, _)| (*from, *to));
        let mut free: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (from, to, request) in work {
            let lanes = free.entry(request.model.as_str()).or_default();
            let lane = match lanes.iter().position(|&until| until <= from) {
                Some(lane) => lane,
                None if lanes.len() < MOST_LANES => {
                    lanes.push(to);
                    lanes.len() - 1
                }
                None => 0,
            };
            if let Some(until) = lanes.get_mut(lane) {
                *until = to;
            }
            let name = format!("{} {}", request.model, lane + 1);
            let track = self.track(builder, &name, TrackKind::Thread);
            for (phase, first, last) in WORK {
                if let Some(ends) = request.span(first, last) {
                    self.put(builder, track, (phase, MODEL), request, ends);
                }
            }
        }
    }

    fn track(&mut self, builder: &mut TraceBuilder, name: &str, kind: TrackKind) -> TrackId {
        let (process, number) = (self.process, self.tracks.len() as i64);
        *self.tracks.entry(name.to_owned()).or_insert_with(|| {
            let name = builder.strings.intern(name);
            builder.track(process, name, kind, number, TraceBuilder::ARENA)
        })
    }

    fn put(
        &self,
        builder: &mut TraceBuilder,
        track: TrackId,
        (name, category): (&str, &str),
        request: &Request,
        ends: (i64, i64),
    ) {
        let [name, category, key, model] =
            [name, category, "model", &request.model].map(|text| builder.strings.intern(text));
        let kind = builder.kind(Kind { category, ..Kind::slice(name) });
        let args = builder.arena.push(&[], &[(key, Datum::Str(model))]);
        let start = Time::from_ns(ends.0.saturating_sub(self.origin));
        builder.event(track, start, Dur::from_ns(ends.1.saturating_sub(ends.0)), kind, args);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, open_input};
    use stepscope_testkit::damage::{Rng, flip_bits, splice, truncations};

    fn open(bytes: Vec<u8>) -> Result<(&'static str, Trace), ReadError> {
        open_input(&Input::from_bytes("x", Bytes::held(bytes)), &Progress::new())
            .map(|opened| (opened.format.name, opened.trace))
    }

    const TRACE: &[u8] = stepscope_testkit::json_results::TRITON.as_bytes();

    #[test]
    fn requests_have_their_phases_and_open_ones_are_counted() {
        let (format, trace) = open(TRACE.to_vec()).unwrap();
        assert_eq!(format, "triton");
        let length = |name: &str| {
            let track = trace.tracks().iter().find(|track| trace.str(track.name) == name).unwrap();
            (track.len(), track.start(0).ns(), track.dur(0).ps() / 1_000)
        };
        assert_eq!(length("request"), (1, 100, 8_000));
        assert_eq!(length("queue"), (1, 200, 3_000));
        assert_eq!(length("simple 1"), (3, 3_200, 100));
        assert_eq!(length("model of an ensemble"), (1, 1_100, 1_000));
        assert_eq!(trace.notes()[0].count, 1);
    }

    #[test]
    fn damaged_traces_end_quietly() {
        truncations(TRACE).for_each(|part| drop(open(part.to_vec())));
        let mut rng = Rng::new(9);
        for _ in 0..500 {
            drop(open(flip_bits(TRACE, &mut rng, 3)));
            drop(open(splice(TRACE, &mut rng)));
        }
        let (_, trace) = open(TRACE[..TRACE.len() - 40].to_vec()).unwrap();
        assert!(trace.events() > 4);
    }
}
