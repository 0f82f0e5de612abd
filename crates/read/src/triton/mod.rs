//! Triton Inference Server's trace (`--trace-config triton,file=…`): the moments of each request, as a list in JSON.
//!
//! ```json
//! [{"id": 1, "model_name": "simple", "timestamps": [{"name": "QUEUE_START", "ns": 2259961222771924}, …]}, …]
//! ```
//!
//! A request may be spread over several items. It becomes one operation, with its phases beside it: waiting in the queue,
//! copying inputs, computing, copying outputs. Requests of models inside an ensemble are parts of the ensemble's request.

use std::collections::BTreeMap;

use memchr::memmem;
use stepscope_trace::{
    Clock, Datum, Delivers, Dur, Format, Kind, NoteKind, ProcessKind, Time, Trace, TraceBuilder, TrackKind,
};

use crate::json::Json;
use crate::{Input, Progress, ReadError, Reader};

/// Traces of Triton.
static FORMAT: Format =
    Format { endings: &[".json"], ..Format::new("triton", "Triton server trace", Delivers::Timeline) };

/// Phases: name, first moment, last moment. Older versions write the names in lower case with blanks.
const PHASES: [(&str, &str, &str); 4] = [
    ("queue", "QUEUE_START", "COMPUTE_START"),
    ("compute input", "COMPUTE_START", "COMPUTE_INPUT_END"),
    ("compute", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"),
    ("compute output", "COMPUTE_OUTPUT_START", "COMPUTE_END"),
];
/// The category of requests and their phases.
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
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset: broken.unwrap_or(0) as u64 });
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
    let origin = moments().min().unwrap_or(0);
    let name = builder.strings.intern("Triton");
    let process = builder.process(name, ProcessKind::Host, 0);
    let category = builder.strings.intern(CATEGORY);
    let model_key = builder.strings.intern("model");
    let (mut added, mut unpaired) = (0, 0);
    let mut tracks = BTreeMap::new();
    let mut put = |builder: &mut TraceBuilder, what: &str, request: &Request, ends: (i64, i64)| {
        let name = builder.strings.intern(what);
        let track = *tracks
            .entry(what.to_owned())
            .or_insert_with(|| builder.track(process, name, TrackKind::Async, 0, TraceBuilder::ARENA));
        let kind = builder.kind(Kind { category, ..Kind::slice(name) });
        let model = builder.strings.intern(&request.model);
        let args = builder.arena.push(&[], &[(model_key, Datum::Str(model))]);
        let start = Time::from_ns(ends.0.saturating_sub(origin));
        builder.event(track, start, Dur::from_ns(ends.1.saturating_sub(ends.0)), kind, args);
    };
    for request in requests.values() {
        let inside = request.parent.is_some_and(|parent| requests.contains_key(&parent));
        match request.span("REQUEST_START", "REQUEST_END") {
            Some(ends) => {
                put(builder, if inside { "model of an ensemble" } else { "request" }, request, ends);
                added += 1;
            }
            None => unpaired += 1,
        }
        for (phase, from, to) in PHASES {
            if let Some(ends) = request.span(from, to) {
                put(builder, phase, request, ends);
            }
        }
    }
    builder.note(NoteKind::Unpaired, "", unpaired, None);
    builder.clock = Clock { wall_ns_at_origin: None, resolution: Dur::from_ns(1) };
    added
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
        assert_eq!(length("compute"), (1, 3_300, 4_000));
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
