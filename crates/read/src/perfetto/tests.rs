//! What packets say, and damage in them.

use std::io::Write as _;

use stepscope_testkit::damage::{Rng, flip_bits, overwrite, splice, truncations};
use stepscope_testkit::perfetto::{EventType, PerfettoFile, packet, training};
use stepscope_trace::{NoteKind, ProcessKind, Trace, TrackKind};

use crate::{Bytes, Input, Progress, ReadError, open_input};

fn read(bytes: Vec<u8>) -> Result<Trace, ReadError> {
    let opened = open_input(&Input::from_bytes("x.pftrace", Bytes::held(bytes)), &Progress::new())?;
    assert_eq!(opened.format.name, "perfetto");
    Ok(opened.trace)
}

/// Name, start and duration in µs of all events of host threads and device queues, in order.
fn events(trace: &Trace, kind: TrackKind) -> Vec<(String, i64, i64)> {
    let tracks = trace.tracks().iter().filter(|track| track.kind == kind);
    let of = |track: &stepscope_trace::Track, index: usize| {
        let name = trace.kind_name(track.kind_of(index)).to_owned();
        (name, track.start(index).ns() / 1_000, track.dur(index).ps() / 1_000_000)
    };
    tracks.flat_map(|track| (0..track.len()).map(move |index| of(track, index))).collect()
}

#[test]
fn names_clocks_queues_and_counters_come_together() {
    let trace = read(training(3)).unwrap();
    let host = events(&trace, TrackKind::Thread);
    assert_eq!(host.len(), 6);
    assert_eq!(host[..2], [("train_step".to_owned(), 0, 9_000), ("forward".to_owned(), 100, 4_900)]);
    // The GPU's clock is 500 ns behind.
    let device = events(&trace, TrackKind::Stream);
    assert_eq!((device.len(), device[1].clone()), (3, ("gemm".to_owned(), 10_150, 4_000)));
    let process = trace.processes().iter().find(|process| process.kind == ProcessKind::Device).unwrap();
    assert_eq!(trace.str(process.name), "GPU 0");
    let counter = trace.tracks().iter().find(|track| track.kind == TrackKind::Counter).unwrap();
    assert_eq!((trace.str(counter.name), &counter.samples.values[..]), ("loss", &[0.0, 1.0, 2.0][..]));
    assert_eq!(trace.clock().wall_ns_at_origin, Some(1_700_000_000_000_001_000));
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
}

#[test]
fn compressed_packets_are_the_same() {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&training(3)).unwrap();
    let mut message = stepscope_testkit::xspace::Message::default();
    message.bytes(50, &packed.finish().unwrap());
    let mut file = stepscope_testkit::xspace::Message::default();
    file.bytes(1, &message.0);
    assert_eq!(read(file.0).unwrap().events(), read(training(3)).unwrap().events());
}

#[test]
fn tracks_of_one_thread_are_one_and_slices_that_overlap_stay() {
    let mut file = PerfettoFile::default().with(&packet(1, None).flags(1).thread(2, 7, 9, "stream 7"));
    for n in 0..4 {
        let at = |ns: u64| Some(1_000 + n * 1_000 + ns);
        file = file
            .with(&packet(1, None).track(100 + n, 2, "stream 7"))
            .with(&packet(1, at(0)).begin(
                100 + n,
                "k",
                ("metadata", "\"grid\": [1, 1, 1], \"correlation\": 5"),
            ))
            .with(&packet(1, at(5_000)).event(EventType::End, 100 + n, None));
    }
    let trace = read(file.bytes()).unwrap();
    let work: Vec<_> = trace.tracks().iter().filter(|track| !track.is_empty()).collect();
    assert_eq!((work.len(), work[0].len(), work[0].kind), (1, 4, TrackKind::Stream));
    let mut keys = Vec::new();
    trace.args_at(work[0], 0).visit(|key, _| keys.push(trace.str(key).to_owned()));
    keys.sort();
    assert_eq!(keys, ["correlation", "grid"]);
}

#[test]
fn what_is_not_paired_or_not_named_is_counted() {
    let file = PerfettoFile::default()
        .with(&packet(1, Some(10)).event(EventType::End, 5, None))
        .with(&packet(1, Some(20)).begin(5, "open", ("a", "b")))
        .with(&packet(1, Some(90)).event(EventType::Instant, 6, None))
        .with(&packet(4, Some(30)).flags(2).event(EventType::Begin, 5, Some(1)));
    let trace = read(file.bytes()).unwrap();
    assert_eq!(trace.events(), 2);
    let note =
        |kind: NoteKind| trace.notes().iter().filter(|note| note.kind == kind).map(|note| note.count).sum();
    let (unpaired, dropped): (u64, u64) = (note(NoteKind::Unpaired), note(NoteKind::DroppedByRecorder));
    assert_eq!((unpaired, dropped), (2, 1));
    let open = events(&trace, TrackKind::Thread);
    assert!(open.iter().any(|(name, ..)| name == "open"), "{open:?}");
}

#[test]
fn scheduling_shows_when_a_thread_waits() {
    let trace = read(training(10)).unwrap();
    let states = trace.tracks().iter().filter(|track| track.kind == TrackKind::Derived && track.number >= 77);
    let names: std::collections::BTreeSet<String> =
        states.flat_map(|track| track.kinds().iter().map(|&kind| trace.kind_name(kind).to_owned())).collect();
    assert!(names.contains("Running") && names.contains("Sleeping"), "{names:?}");
}

#[test]
fn damaged_traces_end_quietly() {
    let whole = training(4);
    truncations(&whole).for_each(|part| drop(read_any(part.to_vec())));
    let mut rng = Rng::new(11);
    for _ in 0..1_500 {
        drop(read_any(flip_bits(&whole, &mut rng, 3)));
        drop(read_any(splice(&whole, &mut rng)));
        drop(read_any(overwrite(&whole, &mut rng, &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])));
    }
    let half = read(whole[..whole.len() / 2].to_vec()).unwrap();
    assert!(half.events() > 3 && half.notes().iter().any(|note| note.kind == NoteKind::Damaged));
}

fn read_any(bytes: Vec<u8>) -> Result<Trace, ReadError> {
    open_input(&Input::from_bytes("x", Bytes::held(bytes)), &Progress::new()).map(|opened| opened.trace)
}

#[test]
fn other_messages_are_not_recognised() {
    for file in [
        &b""[..],
        b"\x0a",
        b"\x0a\x00",
        b"\x0a\x04\x12\x02ab",
        b"{\"traceEvents\": []}",
        b"\x0a\x06\x08\x01\x12\x02ab",
    ] {
        assert!(!super::recognise::recognises(file), "{file:?}");
    }
}
