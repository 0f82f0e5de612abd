//! The reader must not depend on block boundaries, nor break on any damage.

use std::fmt::Write;

use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use stepscope_testkit::damage::{self, Rng};
use stepscope_trace::Trace;

use super::window::{Fed, Window};
use super::{ChromeReader, read};
use crate::{Bytes, Input, Progress, ReadError, Reader};

/// Everything about a trace, as text.
fn dump(trace: &Trace) -> String {
    let mut out = String::new();
    for process in trace.processes() {
        let _ = writeln!(out, "{:?} {}", process, trace.str(process.name));
    }
    for track in trace.tracks() {
        let _ = writeln!(out, "{:?} {:?} {} {:?}", track.process, track.kind, track.number, track.samples);
        for index in 0..track.len() {
            let name = trace.kind_name(track.kind_of(index));
            let args = trace.args_at(track, index).collect();
            let _ = writeln!(out, "  {:?} {name:?} {args:?}", track.span_of(index));
        }
    }
    let _ = writeln!(out, "{:?}\n{:?}\n{:?}", trace.flows(), trace.notes(), trace.clock());
    let _ = writeln!(out, "{:?}\n{:?}", trace.devices(), trace.environment());
    out
}

fn outcome(result: Result<Trace, ReadError>) -> String {
    result.map_or_else(|error| error.to_string(), |trace| dump(&trace))
}

fn input(text: &[u8]) -> Input {
    Input::from_bytes("trace.json", Bytes::held(text.to_vec()))
}

fn in_blocks(text: &[u8], block: usize) -> String {
    outcome(read(Window::held(text, block), &input(text), &Progress::new()))
}

/// Reads a stream that delivers blocks whose lengths repeat `script`.
fn scripted(text: &[u8], script: &[usize]) -> String {
    let mut left = text;
    let mut lens = script.iter().cycle();
    let feed = move |buffer: &mut Vec<u8>| {
        let len = lens.next().map_or(1, |&len| len.min(left.len()));
        let (block, rest) = left.split_at(len);
        buffer.extend_from_slice(block);
        left = rest;
        Fed { read: len as u64, end: rest.is_empty(), error: None }
    };
    let input = input(text);
    outcome(read(Window::stream(Box::new(feed), 1, input.budget()), &input, &Progress::new()))
}

/// A sample of everything, some of it broken.
fn sample() -> String {
    ChromeTrace::new()
        .head("schemaVersion", "1")
        .head("deviceProperties", r#"[{"id": 0, "name": "NVIDIA A100", "numSms": 108, "warpSize": 32}]"#)
        .head("distributedInfo", r#"{"backend": "nccl", "rank": 3, "pg_config": [{"ranks": [0, 1]}]}"#)
        .event(&ChromeEvent::new("M", "process_name").at(0, 0, "5").arg("name", "\"python\""))
        .event(&ChromeEvent::new("M", "process_labels").at(0, 0, "5").arg("labels", "\"GPU 0\""))
        .event(
            &ChromeEvent::slice("gemm<\"é\\n\">", "kernel", 0, 7, "1661203462672784.123", "12.5")
                .arg("grid", "[1, 2, 3]")
                .arg("est. achieved occupancy %", "NaN")
                .arg("correlation", "77"),
        )
        .event(&ChromeEvent::new("s", "ac2g").text_field("cat", "ac2g").at(9, 9, "1661203462672780").field("id", "77"))
        .raw(r#"{"ph": "X", "name": "f("a", "b")", "cat": "cpu_op", "ts": 1661203462672779, "dur": 3, "pid": 9, "tid": 9}"#)
        .raw(r#"{"ph": "X", "name": "C:\dir\", "cat": "cpu_op", "ts": 1661203462672778, "dur": 3, "pid": 9, "tid": 9,}"#)
        .raw("{}")
        .raw("17")
        .raw(r#"{"ph": "X", "na"#)
        .event(&ChromeEvent::new("B", "outer").at(9, 9, "1661203462672790"))
        .event(&ChromeEvent::new("E", "outer").at(9, 9, "1661203462672799").arg("result", "[]"))
        .event(&ChromeEvent::new("C", "memory").at(9, 9, "1661203462672790").arg("used", "5").arg("free", "\"6\""))
        .event(&ChromeEvent::new("i", "[memory]").at(9, 9, "1661203462672791").arg("Bytes", "-4"))
        .tail("traceName", "\"x\"")
        .tail("baseTimeNanoseconds", "0")
        .text()
}

#[test]
fn block_boundaries_do_not_matter() {
    for text in [sample(), sample().replace("\n  ", " "), format!("{}junk", sample())] {
        let text = text.as_bytes();
        let whole = in_blocks(text, text.len() + 1);
        assert!(whole.contains("gemm"), "{whole}");
        for block in 1..=text.len() {
            assert_eq!(in_blocks(text, block), whole, "blocks of {block} bytes");
        }
        for script in [&[1usize][..], &[2, 1, 7], &[64, 1], &[1, 300, 3]] {
            assert_eq!(scripted(text, script), whole, "{script:?}");
        }
    }
}

#[test]
fn tensorflow_s_export_keeps_the_names_of_ops_and_lists_devices_without_events() {
    let op = ChromeEvent::new("X", "MatMul").at(1, 1, "10").field("dur", "5");
    let text = ChromeTrace::new()
        .event(&ChromeEvent::new("M", "process_name").at(2, 0, "0").arg("name", "\"/device:GPU:0\""))
        .event(&ChromeEvent::new("M", "process_name").at(1, 0, "0").arg("name", "\"/host:CPU\""))
        .event(&op.arg("long_name", "\"model/dense/MatMul:MatMul\""))
        .event(
            &ChromeEvent::new("X", "fusion.1")
                .at(1, 1, "20")
                .field("dur", "5")
                .arg("long_name", "\"%fusion = …\""),
        )
        .text();
    let trace = read(Window::held(text.as_bytes(), 1 << 20), &input(b""), &Progress::new()).unwrap();
    let names: Vec<&str> = trace.kinds().iter().map(|kind| trace.str(kind.name)).collect();
    assert!(names.contains(&"model/dense/MatMul:MatMul") && names.contains(&"fusion.1"), "{names:?}");
    let devices: Vec<_> = trace.devices().iter().map(|device| device.kind).collect();
    assert_eq!(devices, [stepscope_trace::DeviceKind::Gpu]);
}

#[test]
fn every_event_of_the_sample_is_read_or_counted() {
    let text = sample();
    let trace = read(Window::held(text.as_bytes(), 1 << 20), &input(b""), &Progress::new()).unwrap();
    let notes: Vec<String> =
        trace.notes().iter().map(|note| format!("{} {}", note.detail, note.count)).collect();
    assert_eq!(trace.events(), 5, "three slices, one pair and one instant: {}", dump(&trace));
    assert!(notes.contains(&"unreadable-event 2".to_owned()), "{notes:?}");
    assert!(notes.contains(&"empty-event 1".to_owned()), "{notes:?}");
    assert!(notes.contains(&"bare-quote 4".to_owned()), "{notes:?}");
    assert!(notes.contains(&"bare-word 1".to_owned()), "{notes:?}");
}

#[test]
fn a_file_cut_anywhere_gives_what_came_before() {
    let text = sample();
    let whole = read(Window::held(text.as_bytes(), 1 << 20), &input(b""), &Progress::new()).unwrap();
    let mut before = 0;
    for cut in damage::truncations(text.trim_end().as_bytes()) {
        match ChromeReader.read(&input(cut), &Progress::new()) {
            Ok(trace) => {
                assert!(trace.events() <= whole.events());
                assert!(trace.events() + 1 >= before, "a longer text lost events");
                before = trace.events();
                let damaged = trace.notes().iter().any(|note| note.detail == "truncated");
                assert!(damaged, "cut at {} and no note", cut.len());
            }
            Err(ReadError::Damaged { .. }) => assert_eq!(before, 0),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn no_damage_breaks_the_reader() {
    let text = sample();
    let text = text.as_bytes();
    let mut rng = Rng::new(7);
    for round in 0..6_000 {
        let damaged = match round % 4 {
            0 => damage::flip_bits(text, &mut rng, 1),
            1 => damage::flip_bits(text, &mut rng, 20),
            2 => damage::splice(text, &mut rng),
            _ => damage::overwrite(text, &mut rng, b"\"{[99999999999999999999e999999999]}\\"),
        };
        let whole = in_blocks(&damaged, 1 << 20);
        if round % 16 == 0 {
            assert_eq!(in_blocks(&damaged, 13), whole, "{}", String::from_utf8_lossy(&damaged));
        }
    }
    for foreign in damage::FOREIGN {
        let _ = ChromeReader.read(&input(foreign), &Progress::new());
        assert!(!ChromeReader.recognises(foreign), "{}", String::from_utf8_lossy(foreign));
    }
}

/// Text on which a careless reader takes quadratic time.
#[test]
fn hostile_texts_take_linear_time() {
    const TIMES: usize = 60_000;
    let texts = [
        "[".repeat(TIMES * 10),
        format!("[{}", "{\"ph\":\"X\",\"args\":[".repeat(TIMES)),
        format!("[{}", "{\"ph\":\"X\",\"args\":{".repeat(TIMES)),
        format!("[{}", "{\"ph\":\"X\",\"name\":\"".repeat(TIMES)),
        format!("[{}", "{\"ph\":\"X\",\"name\":\",".repeat(TIMES)),
        format!("[{}", "{\"ph\":\"X\" x,".repeat(TIMES)),
        format!("{{\"traceEvents\":[{}", "},".repeat(TIMES)),
        format!("{{\"traceEvents\":[{}", "]],".repeat(TIMES)),
        format!("{{{}", "\"a\" ".repeat(TIMES)),
        format!("[{{\"ph\":\"X\",\"ts\":{}}}", "9".repeat(TIMES * 10)),
        format!("[{{\"ph\":\"X\",\"ts\":1,\"name\":\"{}\"}}", "\\u00e".repeat(TIMES)),
        format!("[{}", "{\"ph\":\"B\",\"ts\":1},{\"ph\":\"E\",\"name\":\"x\",\"ts\":1},".repeat(TIMES)),
    ];
    for text in &texts {
        let start = std::time::Instant::now();
        let _ = ChromeReader.read(&input(text.as_bytes()), &Progress::new());
        let took = start.elapsed().as_secs_f64();
        assert!(took < 20.0, "{took} s for {} bytes of {}", text.len(), &text[..40]);
    }
}

#[test]
fn only_traces_are_recognised() {
    let yes = [
        "[{\"name\": \"a\", \"ph\" : \"X\"}",
        "\u{feff} {\"traceEvents\": []}",
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"na",
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[",
        "{\"a\": \"C:\\\", \"traceEvents\": [{",
    ];
    let no = [
        "{\"name\": \"package\", \"version\": \"1.0\"}",
        "{\"label\": \"input-bound\", \"traceEvents\": 5}",
        "{\"schemaVersion\": 1, \"results\": []}",
        "{\"displayTimeUnit\": \"ms\"}",
        "[{\"cols\": [], \"rows\": [{\"c\": [{\"v\": \"ph\"}]}]}]",
        "[1, 2, \"ph\"]",
        "\"traceEvents\"",
        "",
    ];
    for text in yes {
        assert!(ChromeReader.recognises(text.as_bytes()), "{text}");
    }
    for text in no {
        assert!(!ChromeReader.recognises(text.as_bytes()), "{text}");
    }
}

#[test]
fn time_begins_with_the_earliest_event_wherever_it_stands_in_the_file() {
    let slice = |name: &str, ts: &str| ChromeEvent::slice(name, "cpu_op", 1, 1, ts, "5");
    let trace = |late: &str| {
        let text = ChromeTrace::new()
            .event(&slice("second", late))
            .event(&slice("first", "1661203462672770"))
            .event(&ChromeEvent::new("C", "memory").at(1, 1, "1661203462672790").arg("bytes", "7"))
            .text();
        ChromeReader.read(&input(text.as_bytes()), &Progress::new()).unwrap()
    };
    let read = trace("1661203462672790");
    assert_eq!(read.span().map(|span| (span.start.ps(), span.end.ps())), Some((0, 25_000_000)));
    assert_eq!(read.clock().wall_ns_at_origin, Some(1_661_203_462_672_770_000));
    // A time of another clock is the beginning of nothing.
    let read = trace("7");
    assert!(read.notes().iter().any(|note| note.kind == stepscope_trace::NoteKind::TimeOutOfRange));
}
