//! XPlane: how planes, lines, times and properties map to those of a trace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use stepscope_read::{Bytes, Input, Progress, open_input};
use stepscope_testkit::xspace::{
    Message, Position, XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue,
};
use stepscope_trace::{Datum, DeviceKind, Form, NoteKind, ProcessKind, Trace, TrackKind};

const EPOCH_NS: i64 = 1_741_722_099_081_044_120;

fn read_bytes(bytes: Vec<u8>) -> Trace {
    open_input(&Input::from_bytes("test.xplane.pb", Bytes::held(bytes)), &Progress::new()).unwrap().trace
}

fn read(planes: Vec<XPlane>) -> Trace {
    read_bytes(XSpace { planes, ..XSpace::default() }.encode())
}

fn line(id: i64, name: &str, timestamp_ns: i64, offsets: &[i64]) -> XLine {
    let events = offsets.iter().map(|&offset| XEvent::at(offset, 10, 1)).collect();
    XLine { id, name: name.into(), timestamp_ns, events, ..XLine::default() }
}

fn host(lines: Vec<XLine>) -> XPlane {
    XPlane { lines, event_metadata: vec![(1, XEventMetadata::named("op"))], ..XPlane::named("/host:CPU") }
}

fn starts(trace: &Trace, track: usize) -> Vec<i64> {
    trace.tracks()[track].starts().iter().map(|time| time.ps()).collect()
}

fn notes(trace: &Trace, kind: NoteKind) -> Vec<(&str, u64)> {
    let of_kind = trace.notes().iter().filter(|note| note.kind == kind);
    of_kind.map(|note| (note.detail.as_str(), note.count)).collect()
}

#[test]
fn a_line_that_the_file_interrupts_is_one_track() {
    let trace = read(vec![host(vec![
        line(7, "python", 10, &[5, 9]),
        line(8, "other", 0, &[1]),
        line(7, "python", 1, &[0]),
        line(7, "", 20, &[0]),
        line(7, "another of that id", 0, &[3]),
    ])]);
    let names: Vec<_> = trace.tracks().iter().map(|track| trace.str(track.name)).collect();
    assert_eq!(names, ["python", "other", "another of that id"]);
    assert_eq!(starts(&trace, 0), [1_000, 10_005, 10_009, 20_000], "in time order");
}

#[test]
fn the_name_to_show_is_the_name() {
    let shown = XLine { display_name: "shown".into(), display_id: 3, ..line(1, "raw", 0, &[0]) };
    let trace = read(vec![host(vec![shown])]);
    assert_eq!(trace.str(trace.tracks()[0].name), "shown");
}

#[test]
fn epoch_timestamps_count_from_the_earliest() {
    let trace = read(vec![host(vec![
        line(1, "a", EPOCH_NS + 3, &[7]),
        line(2, "b", EPOCH_NS, &[1]),
        line(3, "empty", 0, &[]),
    ])]);
    assert_eq!((starts(&trace, 0), starts(&trace, 1)), (vec![3_007], vec![1]));
    assert_eq!(trace.clock().wall_ns_at_origin, Some(EPOCH_NS));
    assert!(trace.notes().is_empty());
}

#[test]
fn relative_timestamps_stay_and_the_environment_knows_the_wall_clock() {
    let environment = XPlane {
        stat_metadata: vec![
            (1, "profile_start_time".into()),
            (2, "profile_stop_time".into()),
            (3, "profile_options".into()),
            (4, "SECRET_TOKEN".into()),
        ],
        stats: vec![
            XStat::new(1, XValue::UInt64(EPOCH_NS as u64)),
            XStat::new(2, XValue::UInt64(EPOCH_NS as u64 + 5)),
            XStat::new(3, XValue::Bytes(profile_options())),
            XStat::new(4, XValue::Str("hidden".into())),
        ],
        ..XPlane::named("Task Environment")
    };
    let trace = read(vec![host(vec![line(1, "a", 212_990, &[7])]), environment]);
    assert_eq!(starts(&trace, 0), [212_990_007]);
    assert_eq!(trace.clock().wall_ns_at_origin, Some(EPOCH_NS));
    assert_eq!(trace.environment().captured_ns, Some((EPOCH_NS, EPOCH_NS + 5)));
    let options: Vec<_> =
        trace.environment().capture.iter().map(|option| (trace.str(option.key), option.value)).collect();
    assert_eq!(
        options,
        [
            ("host_tracer_level", Datum::UInt(2)),
            ("python_tracer_level", Datum::UInt(1)),
            ("duration_ms", Datum::UInt(2_000))
        ]
    );
    assert_eq!(trace.strings().find("hidden"), None, "nothing that nobody asked for is kept");
    assert_eq!(trace.processes().len(), 1, "a plane without events is no process");
}

fn profile_options() -> Vec<u8> {
    let mut options = Message::default();
    options.varint(2, 2);
    options.varint(4, 1);
    options.varint(9, 2_000);
    options.bytes(10, b"/somewhere/private");
    options.0
}

#[test]
fn without_any_wall_clock_there_is_none() {
    assert_eq!(read(vec![host(vec![line(1, "a", 5, &[7])])]).clock().wall_ns_at_origin, None);
}

#[test]
fn times_that_do_not_fit_are_clamped_and_noted() {
    let events = vec![
        XEvent::at(i64::MAX, 1, 1),
        XEvent::at(5, -3, 1),
        XEvent::at(-20, 4, 1),
        XEvent::at(0, i64::MIN, 1),
    ];
    let far = XLine { id: 2, timestamp_ns: i64::MIN, events: vec![XEvent::at(0, 1, 1)], ..XLine::default() };
    let near = XLine { id: 1, timestamp_ns: 1, events, ..XLine::default() };
    let trace = read(vec![host(vec![near, far])]);
    assert_eq!(starts(&trace, 0), [980, 1_000, 1_005, i64::MAX]);
    assert_eq!(starts(&trace, 1), [i64::MIN]);
    assert!((0..4).all(|i| trace.tracks()[0].dur(i).ps() >= 0));
    assert_eq!(notes(&trace, NoteKind::TimeOutOfRange), [("plane `/host:CPU`", 2)]);
    assert_eq!(notes(&trace, NoteKind::NegativeDuration), [("plane `/host:CPU`", 2)]);
}

#[test]
fn events_without_metadata_are_kept_and_counted() {
    let mut plane = host(vec![line(1, "a", 0, &[0, 5])]);
    plane.lines[0].events[1].metadata_id = 77;
    let trace = read(vec![plane]);
    assert_eq!(trace.events(), 2);
    assert_eq!(trace.kind_name(trace.tracks()[0].kind_of(1)), "");
    assert_eq!(notes(&trace, NoteKind::DanglingReference), [("plane `/host:CPU`: event metadata", 1)]);
}

#[test]
fn the_recorders_complaints_and_the_host_are_told() {
    let space = XSpace {
        planes: vec![host(vec![line(1, "a", 0, &[0])])],
        errors: vec!["node-3: Failed to load libcupti".into(), "node-3: Failed to load libcupti".into()],
        warnings: vec!["dropped".into()],
        hostnames: vec!["node-3:6009".into()],
    };
    let trace = read_bytes(space.encode());
    assert_eq!(notes(&trace, NoteKind::CollectionError), [("node-3: Failed to load libcupti", 2)]);
    assert_eq!(notes(&trace, NoteKind::CollectionWarning), [("dropped", 1)]);
    assert_eq!(trace.environment().host.map(|host| trace.str(host)), Some("node-3:6009"));
    let only_errors = XSpace { planes: Vec::new(), ..space };
    assert_eq!(notes(&read_bytes(only_errors.encode()), NoteKind::CollectionError).len(), 1);
}

#[test]
fn aggregated_events_have_a_kind_of_their_own_and_tell_their_number() {
    let mut plane = host(vec![line(1, "a", 0, &[5, 9])]);
    let place = Position::Occurrences(42);
    plane.lines[0].events.push(XEvent { place, ..XEvent::at(0, 1_000, 1) });
    let trace = read(vec![plane]);
    let track = &trace.tracks()[0];
    let forms: Vec<_> = (0..3).map(|i| trace.kind(track.kind_of(i)).form).collect();
    assert_eq!(forms, [Form::Aggregate, Form::Slice, Form::Slice]);
    assert_eq!(trace.kind_name(track.kind_of(0)), "op");
    let number = trace.args_at(track, 0).named("num_occurrences").and_then(|value| value.as_i64());
    assert_eq!((number, track.dur(0).ps()), (Some(42), 1_000));
    assert!(trace.args_at(track, 1).collect().is_empty());
}

#[test]
fn devices_carry_their_properties() {
    let names = ["clock_rate", "core_count", "memory_size", "compute_cap_major", "compute_cap_minor"];
    let mut plane = XPlane {
        stat_metadata: (1..).zip(names.map(String::from)).collect(),
        stats: (1..)
            .zip([1_530_000, 80, 16 << 30, 7, 0])
            .map(|(id, v)| XStat::new(id, XValue::Int64(v)))
            .collect(),
        lines: vec![line(14, "Stream #14(Compute)", 0, &[0]), line(-559_038_737, "Steps", 0, &[0])],
        event_metadata: vec![(1, XEventMetadata::named("kernel"))],
        ..XPlane::named("/device:GPU:3")
    };
    for (id, key, value) in
        [(6, "device_vendor", "Nvidia"), (7, "cuda_version", "12.4"), (8, "gpu_device_name", "V100")]
    {
        plane.stat_metadata.push((id, key.into()));
        plane.stats.push(XStat::new(id, XValue::Str(value.into())));
    }
    let trace = read(vec![plane, XPlane::named("/device:GPU:4")]);
    let [device, idle] = trace.devices() else { panic!("two devices") };
    assert_eq!((device.number, device.kind, trace.str(device.name)), (3, DeviceKind::Gpu, "V100"));
    assert_eq!(device.vendor.map(|vendor| trace.str(vendor)), Some("Nvidia"));
    assert_eq!((device.clock_khz, device.multiprocessors), (Some(1_530_000), Some(80)));
    assert_eq!((device.memory_bytes, device.compute_capability), (Some(16 << 30), Some((7, 0))));
    assert_eq!(device.memory_bandwidth, None, "unknown is not zero");
    assert_eq!(device.properties.len(), 8);
    assert_eq!((idle.number, idle.properties.len()), (4, 0));
    let versions: Vec<_> =
        trace.environment().versions.iter().map(|version| trace.str(version.key)).collect();
    assert_eq!(versions, ["cuda_version"]);
    let kinds: Vec<_> = trace.tracks().iter().map(|track| track.kind).collect();
    assert_eq!(kinds, [TrackKind::Stream, TrackKind::Derived]);
    assert!(trace.processes().iter().all(|process| process.kind == ProcessKind::Device));
    assert_eq!(trace.processes()[0].device.map(|id| id.index()), Some(0));
}

#[test]
fn compiled_modules_are_attached_undecoded() {
    let module = XEventMetadata {
        stats: vec![XStat::new(1, XValue::Bytes(vec![1, 2, 3]))],
        ..XEventMetadata::named("jit_step(12)")
    };
    let plane = XPlane {
        event_metadata: vec![(12, module), (13, XEventMetadata::named("without a module"))],
        stat_metadata: vec![(1, "Hlo Proto".into()), (2, "jax_version".into())],
        stats: vec![XStat::new(2, XValue::Str("0.10.2".into()))],
        ..XPlane::named("/host:metadata")
    };
    let trace = read(vec![plane]);
    let attached: Vec<_> =
        trace.attachments().map(|(name, args)| (trace.str(name), args.collect())).collect();
    let [(name, args)] = &attached[..] else { panic!("one module") };
    assert_eq!((*name, format!("{args:?}")), ("jit_step(12)", r#"[("Hlo Proto", Bytes([1, 2, 3]))]"#.into()));
    assert_eq!(trace.str(trace.environment().versions[0].key), "jax_version");
    assert!(trace.processes().is_empty());
}

#[test]
fn counters_become_samples_and_stay_events() {
    let mut counters = line(1, "_counters_", 0, &[0, 10, 20]);
    for (event, value) in counters.events.iter_mut().zip([5.0, f64::NAN, 7.0]) {
        event.stats.push(XStat::new(1, XValue::Double(value)));
    }
    let plane = XPlane { stat_metadata: vec![(1, "counter_value".into())], ..host(vec![counters]) };
    let trace = read(vec![plane]);
    let [events, samples] = trace.tracks() else { panic!("two tracks") };
    assert_eq!((events.kind, events.len()), (TrackKind::Counter, 3));
    assert_eq!((trace.str(samples.name), &samples.samples.values[..]), ("op", &[5.0, 7.0][..]));
    assert_eq!(trace.events(), 3);
}

#[test]
fn unknown_fields_and_long_tags_are_no_damage() {
    let mut event = Message::default();
    event.fixed32(15, 7);
    event.bytes(200, b"later versions");
    event.0.extend([0x88, 0x00, 0x01]); // the tag of the metadata id in two bytes
    event.varint(2, 9);
    event.fixed64(77, 1);
    let mut line = Message::default();
    line.bytes(99, b"?");
    line.0.extend([0xa2, 0x00]); // the tag of an event in two bytes
    line.raw_varint(event.0.len() as u64);
    line.0.extend(&event.0);
    line.bytes(4, &event.0);
    let mut plane = Message(host(Vec::new()).encode());
    plane.bytes(3, &line.0);
    plane.fixed32(50, 0);
    let mut space = Message::default();
    space.bytes(1, &plane.0);
    space.varint(9, 1);
    let trace = read_bytes(space.0);
    assert_eq!((trace.events(), starts(&trace, 0)), (2, vec![9, 9]));
    assert_eq!(trace.kind_name(trace.tracks()[0].kind_of(0)), "op");
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
}

#[test]
fn of_offset_and_number_the_last_one_counts() {
    let mut line = Message::default();
    for fields in [[(5, 42), (2, 9)], [(2, 9), (5, 42)]] {
        let mut event = Message::default();
        event.varint(1, 1);
        fields.iter().for_each(|&(number, value)| event.varint(number, value));
        line.bytes(4, &event.0);
    }
    let mut plane = Message(host(Vec::new()).encode());
    plane.bytes(3, &line.0);
    let mut space = Message::default();
    space.bytes(1, &plane.0);
    let trace = read_bytes(space.0);
    let track = &trace.tracks()[0];
    let number = |i| trace.args_at(track, i).named("num_occurrences").and_then(|value| value.as_i64());
    assert_eq!((starts(&trace, 0), number(0), number(1)), (vec![0, 9], Some(42), None));
}

#[test]
fn gzip_is_inflated_and_its_damage_noted() {
    let offsets: Vec<i64> = (0..20_000).map(|i| i * i % 7_919 + i * 10_000).collect();
    let bytes = XSpace { planes: vec![host(vec![line(1, "a", 0, &offsets)])], ..XSpace::default() }.encode();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&bytes).unwrap();
    let zipped = encoder.finish().unwrap();
    assert_eq!(read_bytes(zipped.clone()).events(), 20_000);
    let cut = read_bytes(zipped[..zipped.len() / 2].to_vec());
    assert!(cut.events() > 1_000 && cut.events() < 20_000);
    assert!(notes(&cut, NoteKind::Damaged).iter().any(|(what, _)| what.starts_with("gzip")));
}
