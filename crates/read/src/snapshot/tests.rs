//! Snapshots of programs with a known truth, damaged snapshots, and pickles that want to run code.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use stepscope_testkit::damage::{Rng, flip_bits, splice, truncations};
use stepscope_testkit::snapshot::{Pickler, Py, Simulated, Writer};
use stepscope_trace::memory::{Owner, Role};
use stepscope_trace::{NoteKind, Trace};

use crate::{Bytes, Input, Progress, ReadError, open_input};

const WRITERS: [Writer; 4] = [Writer::Python(2), Writer::Python(4), Writer::Python(5), Writer::Cpp];

fn read(bytes: Vec<u8>) -> Result<Trace, ReadError> {
    open_input(&Input::from_bytes("x.pickle", Bytes::held(bytes)), &Progress::new())
        .map(|opened| opened.trace)
}

/// Block by block and moment by moment.
fn in_use(owner: &Owner) -> Vec<u64> {
    let at =
        |moment| owner.blocks.iter().filter(|block| block.is_live_at(moment)).map(|block| block.size).sum();
    (1..=owner.changes).map(at).collect()
}

/// The bytes in use after the changes that a snapshot has as such: a request to free is none.
fn truth(program: &Simulated, ring: usize) -> Vec<u64> {
    let kept = program.changes.len().saturating_sub(ring);
    let all = program.changes.iter().zip(&program.in_use).skip(kept);
    all.filter(|(change, _)| change.action != "free_requested").map(|(_, &bytes)| bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_ring_is_replayed_backwards_to_the_byte(seed in 1_u64.., ring in 1_usize..900, writer in 0_usize..4) {
        let program = Simulated::random(&mut Rng::new(seed), 600);
        let trace = read(Pickler::dump(WRITERS[writer], &program.snapshot(ring))).unwrap();
        let owner = &trace.memory().unwrap().owners[0];
        prop_assert_eq!(in_use(owner), truth(&program, ring));
        prop_assert_eq!(owner.contradictions, 0);
    }
}

#[test]
fn all_writers_and_compression_give_the_same() {
    let program = Simulated::random(&mut Rng::new(11), 3_000);
    let expected = truth(&program, usize::MAX);
    for writer in WRITERS {
        let plain = Pickler::dump(writer, &program.snapshot(usize::MAX));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).unwrap();
        for bytes in [plain, packed.finish().unwrap()] {
            let trace = read(bytes).unwrap();
            let log = trace.memory().unwrap();
            let [owner] = &log.owners[..] else { panic!("one device") };
            assert_eq!(owner.name, "CUDA:0");
            assert_eq!(in_use(owner), expected, "{writer:?}");
            let block = owner.blocks.iter().find(|block| block.stack.is_known()).unwrap();
            let places: Vec<(&str, u32)> =
                log.frames(block.stack).map(|frame| (trace.str(frame.function), frame.line)).collect();
            assert_eq!((places[0], places[2]), (("forward", 116), ("<module>", 120)));
            assert!(block.address >= 1 << 63, "addresses of nine bytes");
            assert_eq!(log.expandable_segments, Some(false));
        }
    }
}

#[test]
fn a_failed_request_says_what_it_asked_for() {
    let mut program = Simulated::random(&mut Rng::new(5), 100);
    program.fail(258_048_000, 58);
    let trace = read(Pickler::dump(Writer::Python(4), &program.snapshot(usize::MAX))).unwrap();
    let owner = &trace.memory().unwrap().owners[0];
    let [failure] = owner.failures[..] else { panic!("one failure") };
    assert_eq!((failure.requested, failure.device_free), (258_048_000, Some(1 << 20)));
    assert!(!owner.segments.is_empty() && owner.segment_changes.len() == owner.segments.len());
}

#[test]
fn what_would_run_code_is_refused_with_its_name_and_place() {
    let snapshot = Pickler::dump(Writer::Python(4), &Simulated::new().snapshot(0));
    let body = &snapshot[..snapshot.len() - 1];
    let hostile: [(&str, &[u8]); 6] = [
        ("GLOBAL", b"cos\nsystem\n\x8c\x02id\x85R."),
        ("STACK_GLOBAL", b"\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."),
        ("REDUCE", b"NN\x85R."),
        ("INST", b"(ios\nsystem\n."),
        ("PERSID", b"Pfile\n."),
        ("NEWOBJ", b"N)\x81."),
    ];
    for (name, end) in hostile {
        let error = read([body, end].concat()).unwrap_err();
        let ReadError::RunsCode { opcode, offset, .. } = error else { panic!("{name}: {error}") };
        assert_eq!(opcode, name);
        assert!(offset as usize >= body.len());
        assert!(error.to_string().ends_with("stepscope does not run it"), "{error}");
    }
}

#[test]
fn pickles_that_claim_too_much_end_at_once() {
    let start = |rest: &[u8]| [b"\x80\x04}\x8c\x08segments".as_slice(), rest].concat();
    for hostile in [
        start(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"),
        start(&b"(".repeat(1_000)),
        start(&b"N".repeat(3 << 20)),
        start(&b"]0".repeat(3 << 20)),
        start(&b"\x94".repeat(3 << 20)),
        start(b"r\xff\xff\xff\xff"),
        start(b"j\xff\xff\xff\xff"),
        start(b"\x8a\xff"),
        start(b"u"),
        start(b"e"),
        start(b"00000"),
    ] {
        let began = std::time::Instant::now();
        assert!(matches!(read(hostile), Err(ReadError::Damaged { .. })));
        assert!(began.elapsed().as_secs() < 1);
    }
}

#[test]
fn a_truncated_snapshot_still_has_its_state() {
    let program = Simulated::random(&mut Rng::new(9), 2_000);
    let whole = Pickler::dump(Writer::Python(4), &program.snapshot(usize::MAX));
    let trace = read(whole[..whole.len() * 9 / 10].to_vec()).unwrap();
    let owner = &trace.memory().unwrap().owners[0];
    let live: u64 = owner.blocks.iter().map(|block| block.size).sum();
    assert_eq!((live, owner.changes), (*program.in_use.last().unwrap(), 0));
    assert_eq!(trace.notes()[0].kind, NoteKind::Damaged);
}

#[test]
fn damage_never_breaks_the_reader() {
    let whole = Pickler::dump(Writer::Cpp, &Simulated::random(&mut Rng::new(2), 40).snapshot(30));
    truncations(&whole).for_each(|part| drop(read(part.to_vec())));
    let mut rng = Rng::new(1);
    for _ in 0..3_000 {
        drop(read(flip_bits(&whole, &mut rng, 2)));
        drop(read(splice(&whole, &mut rng)));
    }
}

#[test]
fn the_form_of_the_profiler_has_roles_and_places_in_names() {
    let frame = |name: &str| {
        Py::Dict(vec![("filename", Py::str("none")), ("line", Py::Int(0)), ("name", Py::str(name))])
    };
    let frames = || Py::List(vec![frame("<built-in method randn>"), frame("train.py(10): step")]);
    let entry = |action: &str, addr: i128, size: i128, role: Option<&str>| {
        let mut items = vec![
            ("action", Py::str(action)),
            ("addr", Py::Int(addr)),
            ("size", Py::Int(size)),
            ("stream", Py::Int(0)),
            ("frames", frames()),
        ];
        items.extend(role.map(|role| ("category", Py::str(role))));
        Py::Dict(items)
    };
    let block = |size: i128, state: &str| Py::Dict(vec![("size", Py::Int(size)), ("state", Py::str(state))]);
    // A weight that is changed in place is written as freed and allocated.
    let entries = vec![
        entry("alloc", 200, 7, Some("input")),
        entry("free_requested", 100, 4, None),
        entry("free_completed", 100, 4, None),
        entry("alloc", 100, 4, Some("parameter")),
    ];
    let segment = Py::Dict(vec![
        ("device", Py::Int(0)),
        ("address", Py::Int(100)),
        ("total_size", Py::Int(107)),
        (
            "blocks",
            Py::List(vec![block(4, "active_allocated"), block(96, "inactive"), block(7, "active_allocated")]),
        ),
    ]);
    let snapshot = Py::Dict(vec![
        ("device_traces", Py::List(vec![Py::List(entries)])),
        ("segments", Py::List(vec![segment])),
    ]);
    let trace = read(Pickler::dump(Writer::Python(4), &snapshot)).unwrap();
    let log = trace.memory().unwrap();
    let owner = &log.owners[0];
    assert_eq!(in_use(owner), [11]);
    let roles: Vec<_> = owner.blocks.iter().map(|block| (block.role, block.born)).collect();
    assert_eq!(roles, [(Some(Role::Input), 1), (Some(Role::Parameter), 0)]);
    assert!(owner.segments.is_empty(), "the span of a heap is no segment");
    let frame = log.frames(owner.blocks[0].stack).nth(1).unwrap();
    assert_eq!((trace.str(frame.file), frame.line, trace.str(frame.function)), ("train.py", 10, "step"));
}
