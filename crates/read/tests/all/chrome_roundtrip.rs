//! Random traces, written by the testkit and read back: the same events, arguments, flows and counters.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stepscope_read::{Bytes, Input, Progress, ReadError, open_input};
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace, quoted};
use stepscope_trace::{FlowDirection, Trace, TrackKind, Value};

#[derive(Clone, Debug)]
enum Arg {
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<i32>),
    Bool(bool),
}

impl Arg {
    fn json(&self) -> String {
        match self {
            Arg::Int(value) => value.to_string(),
            Arg::Float(value) => format!("{value:?}"),
            Arg::Text(text) => quoted(text),
            Arg::List(list) => format!("{list:?}"),
            Arg::Bool(value) => value.to_string(),
        }
    }

    fn is(&self, read: &Value<'_>) -> bool {
        match (self, read) {
            (Arg::Int(value), read) => read.as_i64() == Some(*value),
            (Arg::Float(value), Value::Float(read)) => value.to_bits() == read.to_bits(),
            (Arg::Text(text), Value::Str(read)) => text == read,
            (Arg::List(list), Value::Json(read)) => format!("{list:?}") == *read,
            (Arg::Bool(value), Value::Bool(read)) => value == read,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Slice {
        name: String,
        category: &'static str,
        tid: i64,
        ts_ps: i64,
        dur_ps: i64,
        args: Vec<(String, Arg)>,
    },
    Flow {
        tid: i64,
        ts_ps: i64,
        id: u64,
        out: bool,
    },
    Sample {
        series: String,
        ts_ps: i64,
        value: i32,
    },
}

fn arg() -> impl Strategy<Value = Arg> {
    prop_oneof![
        any::<i64>().prop_map(Arg::Int),
        any::<f64>().prop_filter("JSON has no other", |value| value.is_finite()).prop_map(Arg::Float),
        "\\PC{0,12}|[\"\\\\\n\t,:{}\\[\\]é]{0,8}".prop_map(Arg::Text),
        prop::collection::vec(any::<i32>(), 0..4).prop_map(Arg::List),
        any::<bool>().prop_map(Arg::Bool),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let time = 0..4_000_000_000_000i64;
    let args = prop::collection::btree_map("[a-z]{1,4}", arg(), 0..5);
    let slice = ("[a-z:<>\"\\\\ ]{0,8}", 0..3usize, 0..4i64, time.clone(), time.clone(), args).prop_map(
        |(name, category, tid, ts_ps, dur_ps, args)| {
            let category = ["cpu_op", "kernel", ""][category];
            Event::Slice { name, category, tid, ts_ps, dur_ps, args: args.into_iter().collect() }
        },
    );
    let flow = (0..4i64, time.clone(), any::<u64>(), any::<bool>())
        .prop_map(|(tid, ts_ps, id, out)| Event::Flow { tid, ts_ps, id, out });
    let sample = ("[a-c]", time, any::<i32>()).prop_map(|(series, ts_ps, value)| Event::Sample {
        series,
        ts_ps,
        value,
    });
    prop_oneof![4 => slice, 1 => flow, 1 => sample]
}

/// Microseconds with six decimals.
fn micros(ps: i64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

fn write(events: &[Event], epoch_us: i64) -> ChromeTrace {
    let at = |ps: i64| {
        micros(ps).replacen(&(ps / 1_000_000).to_string(), &(epoch_us + ps / 1_000_000).to_string(), 1)
    };
    // The first event gives the origin.
    let origin = ChromeEvent::new("i", "origin").at(0, 0, &at(0));
    events.iter().fold(ChromeTrace::new().event(&origin), |trace, event| match event {
        Event::Slice { name, category, tid, ts_ps, dur_ps, args } => {
            let slice = ChromeEvent::slice(name, category, 1, *tid, &at(*ts_ps), &micros(*dur_ps));
            trace.event(&args.iter().fold(slice, |slice, (key, arg)| slice.arg(key, &arg.json())))
        }
        Event::Flow { tid, ts_ps, id, out } => {
            let phase = if *out { "s" } else { "f" };
            let flow = ChromeEvent::new(phase, "ac2g").text_field("cat", "ac2g").at(1, *tid, &at(*ts_ps));
            trace.event(&flow.field("id", &id.to_string()))
        }
        Event::Sample { series, ts_ps, value } => {
            let counter = ChromeEvent::new("C", "memory").at(1, 0, &at(*ts_ps));
            trace.event(&counter.arg(series, &value.to_string()))
        }
    })
}

fn read(text: String) -> Result<Trace, ReadError> {
    let input = Input::from_bytes("random.json", Bytes::held(text.into_bytes()));
    open_input(&input, &Progress::new()).map(|opened| opened.trace)
}

/// Slices as (tid, start, duration, name, category), with their positions.
fn slices(trace: &Trace) -> Vec<(i64, i64, i64, &str, &str, usize, usize)> {
    let mut all = Vec::new();
    for (number, track) in trace.tracks().iter().enumerate() {
        for i in 0..track.len() {
            let kind = trace.kind(track.kind_of(i));
            let (name, category) = (trace.str(kind.name), trace.str(kind.category));
            if name != "origin" {
                all.push((track.number, track.start(i).ps(), track.dur(i).ps(), name, category, number, i));
            }
        }
    }
    all.sort();
    all
}

fn check(trace: &Trace, events: &[Event]) {
    let mut wanted: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Slice { name, category, tid, ts_ps, dur_ps, args } => {
                Some((*tid, *ts_ps, *dur_ps, name.as_str(), *category, args))
            }
            _ => None,
        })
        .collect();
    wanted.sort_by_key(|&(tid, ts, dur, name, category, _)| (tid, ts, dur, name, category));
    let found = slices(trace);
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        let &(tid, ts, dur, name, category, track, index) = found;
        assert_eq!((tid, ts, dur, name, category), (wanted.0, wanted.1, wanted.2, wanted.3, wanted.4));
        let args: BTreeMap<&str, Value<'_>> =
            trace.args_at(&trace.tracks()[track], index).collect().into_iter().collect();
        assert_eq!(args.len(), wanted.5.len());
        for (key, arg) in wanted.5 {
            assert!(arg.is(&args[key.as_str()]), "{key}: {arg:?} was read as {:?}", args[key.as_str()]);
        }
    }

    let mut flows: Vec<_> = trace
        .flows()
        .iter()
        .map(|flow| {
            (flow.id, flow.time.ps(), flow.direction == FlowDirection::Out, trace.track(flow.track).number)
        })
        .collect();
    let mut samples: Vec<(String, i64, i32)> = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Counter) {
        let name = trace.str(track.name).trim_start_matches("memory/");
        for (time, value) in track.samples.times.iter().zip(&track.samples.values) {
            samples.push((name.to_owned(), time.ps(), *value as i32));
        }
    }
    let (mut wanted_flows, mut wanted_samples) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Flow { tid, ts_ps, id, out } => wanted_flows.push((*id, *ts_ps, *out, *tid)),
            Event::Sample { series, ts_ps, value } => wanted_samples.push((series.clone(), *ts_ps, *value)),
            Event::Slice { .. } => {}
        }
    }
    flows.sort();
    wanted_flows.sort();
    samples.sort();
    wanted_samples.sort();
    assert_eq!(flows, wanted_flows);
    assert_eq!(samples, wanted_samples);
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
}

proptest! {
    #[test]
    fn what_was_written_is_read(events in prop::collection::vec(event(), 0..80), epoch in 0..2_000_000_000_000_000i64) {
        let trace = write(&events, epoch);
        check(&read(trace.text()).unwrap(), &events);
        check(&read(trace.array()).unwrap(), &events);
        let unclosed = trace.array();
        let unclosed = read(unclosed.trim_end_matches(']').to_owned()).unwrap();
        prop_assert_eq!(unclosed.notes().len(), 1);
    }
}

#[test]
fn queues_of_a_writer_without_categories_are_known_by_their_copies() {
    let event = |name: &str, pid: i64, tid: i64, at: &str| ChromeEvent::slice(name, "", pid, tid, at, "5");
    let text = ChromeTrace::new()
        .event(&event("[MEMCPY] HtoD", 1, 7, "10"))
        .event(&event("void scale<float>(float*)", 1, 7, "20"))
        .event(&event("void scale<float>(float*)", 1, 8, "30"))
        .event(&event("cudaMemcpyAsync", 1, 9, "40"))
        .event(&event("[MEMCPY] DtoH", 2, 3, "50"))
        .event(&event("cudaMemcpyAsync", 2, 3, "60"))
        .text();
    let trace = read(text).unwrap();
    let kind_of = |pid: i64, tid: i64| {
        let here = |track: &&stepscope_trace::Track| {
            track.number == tid && trace.process(track.process).number == pid
        };
        trace.tracks().iter().find(here).map(|track| track.kind)
    };
    assert_eq!(kind_of(1, 7), Some(TrackKind::Stream));
    assert_eq!(kind_of(1, 8), Some(TrackKind::Stream), "beside a queue with copies");
    assert_eq!(kind_of(1, 9), Some(TrackKind::Thread));
    assert_eq!(kind_of(2, 3), Some(TrackKind::Thread), "calls run on a host thread");
}
