//! The Chrome reader reads exported traces back with the same events.

use stepscope_read::{Bytes, Input, Progress, open_input};
use stepscope_trace::{
    Datum, Dur, FlowDirection, Form, Kind, ProcessKind, StrId, Time, Trace, TraceBuilder, TrackKind,
};

use super::{ExportSource, write_chrome, write_parquet, write_perfetto};

/// Threads, a stream and a counter with names that need escaping, overlapping events, instants, arguments of
/// every type, arrows, and times down to the picosecond.
fn generated() -> Trace {
    let mut builder = TraceBuilder::new();
    builder.clock.wall_ns_at_origin = Some(1_700_000_000_000_000_000);
    let keys =
        ["int", "uint", "float", "bool", "text", "list", "none"].map(|key| builder.strings.intern(key));
    let (text, list) = (builder.strings.intern("a \"b\"\n\u{1F600}"), builder.strings.intern("[1, [2, 3]]"));
    let host = builder.strings.intern("host \\ \"quoted\"");
    let process = builder.process(host, ProcessKind::Host, 7);
    let tracks = ["main", "worker\t1"].map(|name| {
        let name = builder.strings.intern(name);
        builder.track(process, name, TrackKind::Thread, 1, TraceBuilder::ARENA)
    });
    let category = builder.strings.intern("cpu_op");
    for number in 0..500_i64 {
        let name = builder.strings.intern(&format!("op {}", number % 17));
        let form = if number % 10 == 3 { Form::Instant } else { Form::Slice };
        let kind = builder.kind(Kind { category, form, ..Kind::slice(name) });
        let values = [
            Datum::Int(-number),
            Datum::UInt(u64::MAX - number as u64),
            Datum::Float(0.1 * number as f64),
            Datum::Bool(number % 2 == 0),
            Datum::Str(text),
            Datum::Json(list),
            Datum::Null,
        ];
        let fields: Vec<(StrId, Datum)> = keys.into_iter().zip(values).take(number as usize % 8).collect();
        let args = builder.arena.push(&fields, &[]);
        let start = Time::from_ps(number * 1_000_000 + number * number % 977);
        let length = if form == Form::Instant { 0 } else { 1_500_000 + number % 7 };
        builder.event(tracks[number as usize % 2], start, Dur::from_ps(length), kind, args);
    }
    let arrow = builder.strings.intern("ac2g");
    builder.flow(Time::from_ps(10), tracks[0], FlowDirection::Out, arrow, 1);
    builder.flow(Time::from_ps(20_000_000), tracks[1], FlowDirection::In, arrow, 1);
    let counter = builder.strings.intern("memory");
    let counter = builder.track(process, counter, TrackKind::Counter, 0, TraceBuilder::ARENA);
    builder.sample(counter, Time::from_ps(5), 0.25);
    builder.finish()
}

/// Every event with its absolute time in picoseconds, its name and all its arguments.
fn listed(trace: &Trace) -> Vec<(i128, i64, String, String, bool, String)> {
    let wall = i128::from(trace.clock().wall_ns_at_origin.unwrap()) * 1_000;
    let mut all: Vec<_> = trace
        .tracks()
        .iter()
        .flat_map(|track| (0..track.len()).map(move |index| (track, index)))
        .map(|(track, index)| {
            let kind = trace.kind(track.kind_of(index));
            let mut args = String::new();
            super::args::push_args(&mut args, trace, trace.args_at(track, index));
            (
                wall + i128::from(track.start(index).ps()),
                track.dur(index).ps(),
                trace.str(kind.name).to_owned(),
                trace.str(kind.category).to_owned(),
                kind.form == Form::Instant,
                args,
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn an_exported_trace_reads_back_the_same() {
    let before = generated();
    let mut out = Vec::new();
    write_chrome(&[ExportSource { host: "trainer", trace: &before }], &mut out).unwrap();
    serde_json::from_slice::<serde_json::Value>(&out).unwrap();
    let after = open_input(&Input::from_bytes("out.json", Bytes::held(out)), &Progress::new()).unwrap().trace;
    assert_eq!(listed(&after), listed(&before));
    assert_eq!(after.flows().len(), 2);
    assert_eq!(
        after.tracks().iter().map(|track| track.samples.values.clone()).collect::<Vec<_>>().concat(),
        [0.25]
    );
    assert!(after.notes().is_empty(), "{:?}", after.notes());
    assert!(after.tracks().iter().all(|track| track.nesting().lanes() <= 1), "viewers would drop overlaps");
}

#[test]
fn parquet_is_compressed() {
    let mut builder = TraceBuilder::new();
    let host = builder.strings.intern("host");
    let process = builder.process(host, ProcessKind::Host, 7);
    let track = builder.track(process, host, TrackKind::Thread, 1, TraceBuilder::ARENA);
    let kind = builder.kind(Kind::slice(host));
    let (key, value) = (builder.strings.intern("shapes"), builder.strings.intern(&"[32, 128]".repeat(20)));
    for number in 0..5_000 {
        let args = builder.arena.push(&[(key, Datum::Str(value))], &[]);
        builder.event(track, Time::from_ps(number * 1_000), Dur::from_ps(900), kind, args);
    }
    let trace = builder.finish();
    let mut out = Vec::new();
    write_parquet(&[ExportSource { host: "trainer", trace: &trace }], &mut out).unwrap();
    // Arguments alone are a megabyte.
    assert!(out.len() < 100_000, "{} bytes", out.len());
}

/// The fields of a message by number, with their wire types.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let (number, length) = match tag & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (0, 8),
            _ => (0, varint(&mut bytes) as usize),
        };
        let (value, rest) = bytes.split_at(length);
        found.push((tag >> 3, number, value.to_vec()));
        bytes = rest;
    }
    found
}

#[test]
fn perfettos_format_has_every_slice_once_nested_and_in_order() {
    let trace = generated();
    let mut out = Vec::new();
    write_perfetto(&[ExportSource { host: "h", trace: &trace }], &mut out).unwrap();
    let (mut begun, mut instants, mut counters, mut flows) = (0, 0, 0, 0);
    let mut open: std::collections::HashMap<u64, (i64, u64)> = std::collections::HashMap::new();
    let mut names = std::collections::HashSet::new();
    for (_, _, packet) in fields(&out) {
        let packet = fields(&packet);
        let Some((.., event)) = packet.iter().find(|(field, ..)| *field == 11) else { continue };
        let at = packet.iter().find(|(field, ..)| *field == 8).map_or(0, |(_, at, _)| *at);
        let event = fields(event);
        let number =
            |wanted| event.iter().find(|(field, ..)| *field == wanted).map_or(0, |(_, value, _)| *value);
        let (depth, last) = open.entry(number(11)).or_default();
        assert!(*last <= at, "times of a track do not decrease");
        *last = at;
        match number(9) {
            1 => (begun, *depth) = (begun + 1, *depth + 1),
            2 => *depth -= 1,
            3 => instants += 1,
            _ => counters += 1,
        }
        assert!(*depth >= 0, "a slice ends after it began");
        flows += event.iter().filter(|(field, ..)| matches!(field, 47 | 48)).count();
        names.extend(event.iter().filter(|(field, ..)| *field == 23).map(|(.., name)| name.clone()));
    }
    assert!(open.values().all(|(depth, _)| *depth == 0), "all slices end");
    assert_eq!((begun + instants, instants, counters, flows), (500, 50, 1, 2));
    assert_eq!(names.len(), 17);
}
