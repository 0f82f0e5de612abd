//! XPlane: damaged files are read as far as possible. Nothing panics, takes long or uses much memory, and
//! everything before the damage is kept.

#![expect(clippy::panic, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use stepscope_read::{Bytes, Input, Progress, ReadError, Reader, XPlaneReader, open_input};
use stepscope_testkit::damage::{
    FOREIGN, HUGE_VARINTS, Rng, flip_bits, noise, overwrite, splice, truncations,
};
use stepscope_testkit::xspace::{Position, XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};
use stepscope_trace::{NoteKind, Trace};

fn sample() -> XSpace {
    let stat = |id, value| XStat::new(id, value);
    let event = |i: i64| XEvent {
        stats: vec![stat(1, XValue::Int64(i)), stat(2, XValue::Str("text".into())), stat(3, XValue::Ref(4))],
        place: if i % 5 == 4 { Position::Occurrences(i) } else { Position::Offset(i * 1_000) },
        ..XEvent::at(0, 900, 1 + i % 2)
    };
    let line = |id| XLine {
        id,
        name: format!("line {id}"),
        events: (0..12).map(event).collect(),
        ..XLine::default()
    };
    let plane = |name: &str| XPlane {
        lines: vec![line(1), line(2), XLine { name: "_counters_".into(), ..line(3) }],
        event_metadata: vec![(1, XEventMetadata::named("a")), (2, XEventMetadata::named("b"))],
        stat_metadata: (1..).zip(["counter_value", "note", "ref", "shared"].map(String::from)).collect(),
        stats: vec![stat(1, XValue::Double(0.5)), stat(2, XValue::Bytes(vec![8, 1]))],
        ..XPlane::named(name)
    };
    XSpace {
        planes: vec![plane("/host:CPU"), plane("/device:GPU:0"), plane("Task Environment")],
        errors: vec!["an error".into()],
        hostnames: vec!["host".into()],
        ..XSpace::default()
    }
}

/// Reads bytes as XPlane whatever they look like, looks at everything, and checks the bounds.
fn survive(bytes: &[u8]) -> Option<Trace> {
    let input = Input::from_bytes("damaged", Bytes::held(bytes.to_vec()));
    let _ = open_input(&input, &Progress::new());
    let began = Instant::now();
    let read = XPlaneReader.read(&input, &Progress::new());
    let mut looked_at = 0;
    let trace = match read {
        Ok(trace) => trace,
        Err(ReadError::Damaged { offset, .. }) => {
            assert!(offset <= bytes.len() as u64);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    for track in trace.tracks() {
        let nesting = track.nesting();
        for index in 0..track.len() {
            looked_at += nesting.depth(index);
            trace.args_at(track, index).visit(|key, value| {
                looked_at += trace.str(key).len() + value.as_str().map_or(1, str::len);
            });
        }
    }
    trace.attachments().for_each(|(_, args)| args.visit(|_, _| looked_at += 1));
    assert!(looked_at < 10_000_000);
    assert!(trace.heap_bytes() < 64 * bytes.len() + 100_000, "{} of {}", trace.heap_bytes(), bytes.len());
    assert!(began.elapsed() < Duration::from_secs(60));
    for note in trace.notes().iter().filter(|note| note.kind == NoteKind::Damaged) {
        assert!(note.offset.is_none_or(|offset| offset <= bytes.len() as u64), "{note:?}");
    }
    Some(trace)
}

fn damaged(trace: &Trace) -> bool {
    trace.notes().iter().any(|note| note.kind == NoteKind::Damaged)
}

#[test]
fn every_truncation_keeps_what_came_before() {
    let space = sample();
    let bytes = space.encode();
    let mut before = 0;
    for cut in truncations(&bytes) {
        let Some(trace) = survive(cut) else { continue };
        assert!(trace.events() >= before, "a longer file has no fewer events");
        before = trace.events();
        let whole_fields = cut.is_empty() || trace.events() == space.events() as u64;
        assert!(whole_fields || damaged(&trace) || is_border(&space, cut.len()), "cut at {}", cut.len());
    }
    assert_eq!(before, space.events() as u64);
}

/// Is a file of that length made of whole fields? Nothing can then tell that more was to come.
fn is_border(space: &XSpace, len: usize) -> bool {
    (0..=space.planes.len()).any(|planes| {
        let fewer = XSpace { planes: space.planes[..planes].to_vec(), ..XSpace::default() };
        fewer.encode().len() == len
    })
}

#[test]
fn damage_is_named_with_its_place() {
    let space = sample();
    let bytes = space.encode();
    let cut = &bytes[..150];
    let trace = survive(cut).unwrap();
    let note = trace.notes().iter().find(|note| note.detail.contains("line")).unwrap();
    let expected =
        format!("plane `/host:CPU`, line 1, event {}: length runs past the end", trace.events() + 1);
    assert_eq!((note.kind, &note.detail), (NoteKind::Damaged, &expected));
    assert!(note.offset.is_some_and(|offset| offset > 0 && offset < 150));
}

#[test]
fn damage_in_one_line_spares_the_lines_and_planes_around_it() {
    let mut space = sample();
    let whole = space.events();
    space.planes[0].lines[1].events[5].stats[1].value = XValue::Bytes(b"MARK".to_vec());
    let mut bytes = space.encode();
    let mark = bytes.windows(4).position(|window| window == b"MARK").unwrap();
    // The length before the mark now says more than the event holds.
    bytes[mark - 1] = 0x7e;
    let trace = survive(&bytes).unwrap();
    assert_eq!(trace.events(), whole as u64, "the event's own length is intact");
    // Now the event's own length: the rest of its line is lost, but nothing else.
    let event = space.planes[0].lines[1].events[5].encode();
    let mut second = space.encode();
    let line = space.planes[0].lines[1].encode();
    let begin = second.windows(line.len()).position(|window| window == line).unwrap();
    let inside = line.windows(event.len()).position(|window| window == event).unwrap();
    second[begin + inside - 1] = 0xff;
    second[begin + inside] = 0x7f;
    let trace = survive(&second).unwrap();
    assert_eq!(trace.events(), (whole - 7) as u64);
    assert!(trace.notes().iter().any(|note| note.detail.contains("line 2, event 6")), "{:?}", trace.notes());
}

#[test]
fn flipped_bits_splices_and_huge_lengths_are_survived() {
    let bytes = sample().encode();
    let mut rng = Rng::new(7);
    for round in 0..6_000 {
        let mut damaged = flip_bits(&bytes, &mut rng, 1 + round % 4);
        if round % 3 == 0 {
            damaged = splice(&damaged, &mut rng);
        }
        if round % 4 == 0 {
            damaged = overwrite(&damaged, &mut rng, HUGE_VARINTS[round / 4 % HUGE_VARINTS.len()]);
        }
        survive(&damaged);
    }
}

#[test]
fn noise_and_foreign_files_are_survived() {
    let mut rng = Rng::new(3);
    for len in 0..600 {
        survive(&noise(&mut rng, len));
        // Noise that begins like the format.
        let begun =
            [b"\x0a\xff\x7f\x12\x09/host:CPU\x1a\xff\x3f\x22".as_slice(), &noise(&mut rng, len)].concat();
        survive(&begun);
    }
    for foreign in FOREIGN {
        let input = Input::from_bytes("foreign", Bytes::fixed(foreign));
        assert!(open_input(&input, &Progress::new()).is_err(), "{foreign:?}");
    }
}

#[test]
fn many_small_things_cost_no_more_than_their_bytes() {
    let line = XLine { id: 0, ..XLine::default() };
    let many = XPlane { lines: vec![line; 100_000], ..XPlane::named("/host:CPU") };
    let began = Instant::now();
    let planes = XSpace { planes: vec![XPlane::named("/device:GPU:0"); 50_000], ..XSpace::default() };
    let errors = (0..50_000).map(|i| format!("error {i}")).collect();
    let errors = XSpace { errors, ..XSpace::default() };
    for space in [XSpace { planes: vec![many], ..XSpace::default() }, planes, errors] {
        let input = Input::from_bytes("many", Bytes::held(space.encode()));
        let trace = XPlaneReader.read(&input, &Progress::new()).unwrap();
        assert_eq!(trace.events(), 0);
        assert!(trace.notes().len() <= 101);
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}
