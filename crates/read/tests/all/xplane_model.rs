//! XPlane: everything that is written is read back, event for event and argument for argument.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::collection::vec;
use proptest::prelude::*;
use stepscope_read::{Bytes, Input, Progress, open_input};
use stepscope_testkit::xspace::{Position, XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};
use stepscope_trace::{Form, Trace, Value};

fn read(space: &XSpace) -> Trace {
    let input = Input::from_bytes("test.xplane.pb", Bytes::held(space.encode()));
    let progress = Progress::new();
    let opened = open_input(&input, &progress).unwrap();
    assert_eq!(opened.format.name, "xplane");
    assert_eq!(progress.bytes(), progress.total(), "all bytes are accounted for");
    assert_eq!(progress.events(), opened.trace.events());
    opened.trace
}

/// An event in terms that both sides can be brought to: plane, line id, name, start, duration, form, arguments.
type Plain = (String, i64, String, i64, i64, bool, Vec<(String, String)>);

fn show(value: &Value<'_>) -> String {
    match value {
        Value::Float(v) => format!("Float({:x})", v.to_bits()),
        Value::Str(text) => format!("Str({text})"),
        other => format!("{other:?}"),
    }
}

fn events_of(trace: &Trace) -> Vec<Plain> {
    let mut all = Vec::new();
    for track in trace.tracks() {
        let plane = trace.str(trace.process(track.process).name).to_owned();
        for index in 0..track.len() {
            let kind = trace.kind(track.kind_of(index));
            let args = trace.args_at(track, index).collect();
            let args = args.iter().map(|(key, value)| ((*key).to_owned(), show(value))).collect();
            let aggregate = kind.form == Form::Aggregate;
            all.push((
                plane.clone(),
                track.number,
                trace.str(kind.name).to_owned(),
                track.start(index).ps(),
                track.dur(index).ps(),
                aggregate,
                args,
            ));
        }
    }
    all.sort();
    all
}

fn expected_events(space: &XSpace) -> Vec<Plain> {
    let mut all = Vec::new();
    for plane in &space.planes {
        for line in &plane.lines {
            for event in &line.events {
                let metadata = plane.event_metadata.iter().rfind(|(id, _)| *id == event.metadata_id);
                let mut args: Vec<_> = event.stats.iter().map(|stat| expected_arg(plane, stat)).collect();
                let (start, aggregate) = match event.place {
                    Position::Offset(ps) => (ps, false),
                    Position::Unsaid => (0, false),
                    Position::Occurrences(count) => {
                        args.push(("num_occurrences".to_owned(), format!("Int({count})")));
                        (0, true)
                    }
                };
                args.extend(
                    metadata.iter().flat_map(|(_, m)| &m.stats).map(|stat| expected_arg(plane, stat)),
                );
                all.push((
                    plane.name.clone(),
                    line.id,
                    metadata.map(|(_, m)| m.name.clone()).unwrap_or_default(),
                    line.timestamp_ns * 1_000 + start,
                    event.duration_ps,
                    aggregate,
                    args,
                ));
            }
        }
    }
    all.sort();
    all
}

fn expected_arg(plane: &XPlane, stat: &XStat) -> (String, String) {
    let named = |id: i64| plane.stat_metadata.iter().rfind(|(known, _)| *known == id).map(|(_, name)| name);
    let value = match &stat.value {
        XValue::Double(v) => format!("Float({:x})", v.to_bits()),
        XValue::UInt64(v) => format!("UInt({v})"),
        XValue::Int64(v) => format!("Int({v})"),
        XValue::Str(text) => format!("Str({text})"),
        XValue::Bytes(bytes) => format!("Bytes({bytes:?})"),
        XValue::Ref(id) => named(*id as i64).map_or("Null".to_owned(), |text| format!("Str({text})")),
        XValue::None => "Null".to_owned(),
    };
    (named(stat.metadata_id).cloned().unwrap_or_default(), value)
}

/// Small ids, ids far apart, and ids that are hashes.
fn metadata_id() -> impl Strategy<Value = i64> {
    prop_oneof![6 => 1i64..12, 1 => 0i64..2_000, 1 => any::<i64>()]
}

fn stat() -> impl Strategy<Value = XStat> {
    let value = prop_oneof![
        any::<u64>().prop_map(|bits| XValue::Double(f64::from_bits(bits))),
        any::<u64>().prop_map(XValue::UInt64),
        any::<i64>().prop_map(XValue::Int64),
        "\\PC{0,20}".prop_map(XValue::Str),
        vec(any::<u8>(), 0..200).prop_map(XValue::Bytes),
        (0u64..12).prop_map(XValue::Ref),
        Just(XValue::None),
    ];
    (metadata_id(), value).prop_map(|(id, value)| XStat::new(id, value))
}

fn event() -> impl Strategy<Value = XEvent> {
    let place = prop_oneof![
        8 => (-1_000i64..1 << 50).prop_map(Position::Offset),
        1 => (0i64..1 << 40).prop_map(Position::Occurrences),
        1 => Just(Position::Unsaid),
    ];
    let duration = prop_oneof![4 => 0i64..1 << 20, 1 => 0i64..1 << 50, 1 => Just(0)];
    (metadata_id(), place, duration, vec(stat(), 0..4)).prop_map(
        |(metadata_id, place, duration_ps, stats)| XEvent { metadata_id, place, duration_ps, stats },
    )
}

prop_compose! {
    fn line()(
        id in prop_oneof![0i64..3, any::<i64>()],
        name in "[a-z]{0,3}",
        timestamp_ns in 0i64..1 << 40,
        display_id in 0i64..3,
        duration_ps in 0i64..3,
        events in vec(event(), 0..12),
    ) -> XLine {
        XLine { id, name, display_name: String::new(), display_id, timestamp_ns, duration_ps, events }
    }
}

prop_compose! {
    fn plane()(
        id in any::<i64>(),
        name in "/(host|device):[A-Z]{1,3}:[0-9]",
        lines in vec(line(), 0..5),
        event_metadata in vec((metadata_id(), "\\PC{1,12}", vec(stat(), 0..3)), 0..12),
        stat_metadata in vec((metadata_id(), "[a-z_]{1,8}"), 0..12),
        stats in vec(stat(), 0..3),
    ) -> XPlane {
        let event_metadata = event_metadata
            .into_iter()
            .map(|(id, name, stats)| (id, XEventMetadata { name, stats, ..XEventMetadata::default() }))
            .collect();
        XPlane { id, name, lines, event_metadata, stat_metadata, stats }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(planes in vec(plane(), 1..4)) {
        let space = XSpace { planes, ..XSpace::default() };
        let trace = read(&space);
        prop_assert_eq!(trace.events(), space.events() as u64);
        prop_assert_eq!(events_of(&trace), expected_events(&space));
    }
}

#[test]
fn a_line_of_many_pieces_is_decoded_whole_and_in_order() {
    let events: Vec<_> = (0..250_000i64)
        .map(|i| {
            let mut event =
                XEvent::at(i * 1_500, if i % 1_000 == 0 { 1 << 33 } else { 700 + i % 5 }, 1 + i % 3);
            if i % 7 == 0 {
                event.stats.push(XStat::new(1, XValue::Int64(i)));
            }
            event
        })
        .collect();
    let names = ["a", "b", "c"].map(XEventMetadata::named);
    let plane = XPlane {
        lines: vec![XLine { id: 9, name: "python".into(), events, timestamp_ns: 5, ..XLine::default() }],
        event_metadata: (1..).zip(names).collect(),
        stat_metadata: vec![(1, "number".into())],
        ..XPlane::named("/host:CPU")
    };
    let trace = read(&XSpace { planes: vec![plane], ..XSpace::default() });
    let [track] = trace.tracks() else { panic!("one track") };
    assert_eq!(track.len(), 250_000);
    let number = trace.strings().find("number").unwrap();
    for i in 0..250_000 {
        assert_eq!(track.start(i).ps(), 5_000 + i as i64 * 1_500);
        let long = i % 1_000 == 0;
        assert_eq!(track.dur(i).ps(), if long { 1 << 33 } else { 700 + i as i64 % 5 });
        assert_eq!(trace.kind_name(track.kind_of(i)), ["a", "b", "c"][i % 3]);
        let arg = trace.args_at(track, i).get(number).and_then(|value| value.as_i64());
        assert_eq!(arg, (i % 7 == 0).then_some(i as i64));
    }
}
