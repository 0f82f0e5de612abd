//! The content of a profile: sources, devices, tracks, time, versions, step markers. Only counts and names;
//! their meaning for performance is up to other analyses.
//!
//! One host is a [`HostInfo`]; the hosts of a session form an [`Info`]. Only reads the kind of each event, so a
//! profile with millions of events is described in milliseconds.

use serde::Serialize;
use stepscope_trace::{
    Datum, DeviceKind, FirstEvents, Format, KindId, ProcessKind, Property, Span, StrId, Trace, Track,
    TrackKind, Value,
};

use crate::recording::step_markers::{StepMarker, step_markers};
use crate::vocabulary::has_timeline;

/// A source of events: one file of one host, and its content.
#[derive(Copy, Clone, Debug)]
pub struct SourceFile<'a> {
    /// Its path, for messages.
    pub path: &'a str,
    /// Its format.
    pub format: &'static Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Host on which it was recorded.
    pub host: &'a str,
    /// Its content.
    pub trace: &'a Trace,
}

/// What is in the sources.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// One per source, in order; those with a timeline are hosts.
    pub hosts: Vec<HostInfo>,
}

/// What is in one source.
#[derive(Clone, Debug, Serialize)]
pub struct HostInfo {
    /// The host's name.
    pub host: String,
    /// Path of the file.
    pub path: String,
    /// Its format.
    pub format: &'static Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it shows what ran when. Samples and profiled launches do not, and are not separate hosts.
    pub timeline: bool,
    /// Number of events.
    pub events: u64,
    /// Number of distinct kinds of events.
    pub kinds: usize,
    /// Number of flow points (ends of arrows between events).
    pub flow_points: usize,
    /// Records that belong to no event, e.g. compiled modules.
    pub attachments: usize,
    /// Time from the first event to the last; `None` without events.
    pub span_ms: Option<f64>,
    /// Start of the first event, in nanoseconds since 1970; `None` if the file only has relative times.
    pub began_unix_ns: Option<i64>,
    /// Start and end of the capture, in nanoseconds since 1970, if the profiler reports them.
    pub captured_unix_ns: Option<(i64, i64)>,
    /// The devices, as far as they are known.
    pub devices: Vec<DeviceInfo>,
    /// The non-empty tracks, by process.
    pub processes: Vec<ProcessInfo>,
    /// Explicit step markers.
    pub step_markers: Vec<StepMarker>,
    /// Versions of software.
    pub versions: Vec<Named>,
    /// Options of the capture.
    pub capture: Vec<Named>,
    /// The place in a distributed job.
    pub distributed: Vec<Named>,
}

/// A device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceInfo {
    /// The number in the file.
    pub number: i64,
    /// The model, if the file contains it.
    pub name: Option<String>,
    /// `cpu`, `gpu`, `tpu` or `other`.
    pub kind: &'static str,
    /// Number of events on its own tracks; `None` for a device that is only listed.
    pub events: Option<u64>,
    /// Its vendor.
    pub vendor: Option<String>,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<u32>,
    /// Core clock in kHz.
    pub clock_khz: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Peak memory bandwidth in bytes per second.
    pub memory_bandwidth: Option<u64>,
    /// CUDA compute capability, e.g. `8.0`.
    pub compute_capability: Option<String>,
    /// All properties as named in the file.
    pub properties: Vec<Named>,
}

/// A group of tracks.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessInfo {
    /// Its name as recorded.
    pub name: String,
    /// `host`, `device` or `other`.
    pub kind: &'static str,
    /// The profiler's own number.
    pub number: i64,
    /// Its tracks.
    pub tracks: Vec<TrackInfo>,
}

/// A track.
#[derive(Clone, Debug, Serialize)]
pub struct TrackInfo {
    /// Its name as recorded.
    pub name: String,
    /// `thread`, `stream`, `async`, `counter` or `derived`.
    pub kind: &'static str,
    /// The profiler's own number.
    pub number: i64,
    /// Number of events on it.
    pub events: usize,
    /// Number of their kinds.
    pub kinds: usize,
    /// Number of samples, for a counter.
    pub samples: usize,
    /// Time from its first event to its last; `None` if there is none.
    pub span_ms: Option<f64>,
}

/// A named value from the file.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: Scalar,
}

/// A value of any type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Scalar {
    /// Not given.
    Null,
    /// A whole number.
    Int(i64),
    /// An integer above the signed range.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
}

/// Describes the sources.
pub fn info(sources: &[SourceFile<'_>]) -> Info {
    Info { hosts: sources.iter().map(host_info).collect() }
}

fn host_info(source: &SourceFile<'_>) -> HostInfo {
    let trace = source.trace;
    let environment = trace.environment();
    let mut first = FirstEvents::new(trace.kinds().len());
    let kinds_of: Vec<_> = trace.tracks().iter().map(|track| first.of(track)).collect();
    let named = |properties: &[Property]| properties.iter().map(|p| named(trace, p)).collect();
    HostInfo {
        host: source.host.to_owned(),
        path: source.path.to_owned(),
        format: source.format,
        bytes: source.bytes,
        timeline: has_timeline(trace),
        events: trace.events(),
        kinds: trace.kinds().len(),
        flow_points: trace.flows().len(),
        attachments: trace.attachments().count(),
        span_ms: trace.span().map(|span| span.dur().ms()),
        began_unix_ns: began(trace),
        captured_unix_ns: environment.captured_ns,
        devices: devices(trace),
        processes: processes(trace, &kinds_of),
        step_markers: step_markers(trace, &kinds_of),
        versions: named(&environment.versions),
        capture: named(&environment.capture),
        distributed: named(&environment.distributed),
    }
}

fn began(trace: &Trace) -> Option<i64> {
    trace.clock().wall_ns_at_origin?.checked_add(trace.span()?.start.ns())
}

fn devices(trace: &Trace) -> Vec<DeviceInfo> {
    let text = |id: StrId| Some(trace.str(id)).filter(|text| !text.is_empty()).map(str::to_owned);
    let events = events_by_process(trace);
    let devices = trace.devices().iter().map(|device| DeviceInfo {
        number: device.number,
        name: text(device.name),
        kind: device_kind(device.kind),
        events: device.process.and_then(|process| events.get(process.index()).copied()),
        vendor: device.vendor.and_then(text),
        multiprocessors: device.multiprocessors,
        clock_khz: device.clock_khz,
        memory_bytes: device.memory_bytes,
        memory_bandwidth: device.memory_bandwidth,
        compute_capability: device.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
        properties: device.properties.iter().map(|property| named(trace, property)).collect(),
    });
    devices.collect()
}

/// Number of events of each process.
pub(crate) fn events_by_process(trace: &Trace) -> Vec<u64> {
    let mut events = vec![0; trace.processes().len()];
    for track in trace.tracks() {
        if let Some(events) = events.get_mut(track.process.index()) {
            *events += track.len() as u64;
        }
    }
    events
}

fn device_kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
        DeviceKind::Tpu => "tpu",
        DeviceKind::Other => "other",
    }
}

fn processes(trace: &Trace, kinds_of: &[Vec<(KindId, usize)>]) -> Vec<ProcessInfo> {
    let mut processes: Vec<ProcessInfo> = trace
        .processes()
        .iter()
        .map(|process| ProcessInfo {
            name: trace.str(process.name).to_owned(),
            kind: match process.kind {
                ProcessKind::Host => "host",
                ProcessKind::Device => "device",
                ProcessKind::Other => "other",
            },
            number: process.number,
            tracks: Vec::new(),
        })
        .collect();
    for (track, kinds) in trace.tracks().iter().zip(kinds_of) {
        if let Some(process) = processes.get_mut(track.process.index())
            && !(track.is_empty() && track.samples.times.is_empty())
        {
            process.tracks.push(track_info(trace, track, kinds.len()));
        }
    }
    processes
}

fn track_info(trace: &Trace, track: &Track, kinds: usize) -> TrackInfo {
    TrackInfo {
        name: trace.str(track.name).to_owned(),
        kind: match track.kind {
            TrackKind::Thread => "thread",
            TrackKind::Stream => "stream",
            TrackKind::Async => "async",
            TrackKind::Counter => "counter",
            TrackKind::Derived => "derived",
        },
        number: track.number,
        events: track.len(),
        kinds,
        samples: track.samples.times.len(),
        span_ms: track.span().map(|span: Span| span.dur().ms()),
    }
}

fn named(trace: &Trace, property: &Property) -> Named {
    Named { key: trace.str(property.key).to_owned(), value: scalar(trace, property.value) }
}

fn scalar(trace: &Trace, value: Datum) -> Scalar {
    match value.resolve(trace.strings()) {
        Value::Int(value) => Scalar::Int(value),
        Value::UInt(value) => Scalar::UInt(value),
        Value::Float(value) if value.is_finite() => Scalar::Float(value),
        Value::Float(_) | Value::Null | Value::Bytes(_) => Scalar::Null,
        Value::Bool(value) => Scalar::Bool(value),
        Value::Str(text) | Value::Json(text) => Scalar::Text(text.into_owned()),
    }
}
