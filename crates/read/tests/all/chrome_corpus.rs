//! Real traces: each opens, and the number of slices matches an independent count.

use std::path::PathBuf;

use stepscope_read::{Input, Progress, open_input};
use stepscope_testkit::corpus::{corpus, files_below, repository};
use stepscope_trace::{Form, NoteKind, Trace, TrackKind};

/// Bytes of memory per event of the file, including arguments and flows.
const BYTES_AN_EVENT: usize = 40;

/// All traces of the corpus, if available, and of the fixtures.
fn traces() -> Vec<PathBuf> {
    let folders = corpus("").into_iter().chain([repository().join("fixtures")]);
    let mut found: Vec<PathBuf> = folders.flat_map(|folder| files_below(&folder)).collect();
    found.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with("trace.json.gz") || name.contains("/pytorch/") && name.contains(".json")
    });
    assert!(!found.is_empty(), "not even a fixture");
    found
}

/// Number of `"ph": "X"` members outside strings.
fn naive_count(text: &[u8], phase: u8) -> u64 {
    let (mut count, mut at) = (0, 0);
    let mut strings: [&[u8]; 2] = [b"", b""];
    while at < text.len() {
        if text[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at + 1;
        at = start;
        while at < text.len() && text[at] != b'"' {
            at += if text[at] == b'\\' { 2 } else { 1 };
        }
        strings = [strings[1], &text[start..at.min(text.len())]];
        count += u64::from(strings == [b"ph".as_slice(), &[phase]]);
        at += 1;
    }
    count
}

fn slices(trace: &Trace) -> u64 {
    let on = |track: &stepscope_trace::Track| {
        (0..track.len()).filter(|&i| trace.kind(track.kind_of(i)).form == Form::Slice).count() as u64
    };
    trace.tracks().iter().map(on).sum()
}

#[test]
fn every_slice_of_every_real_trace_is_read() {
    for path in traces() {
        let name = path.display();
        let input = Input::open(&path).unwrap();
        let progress = Progress::new();
        let opened = open_input(&input, &progress).unwrap_or_else(|error| panic!("{error}"));
        let trace = opened.trace;
        assert_eq!(opened.format.name, "chrome", "{name}");
        assert_eq!((progress.bytes(), progress.total()), (opened.bytes, opened.bytes), "{name}");

        let (text, error) = input.inflated();
        assert!(error.is_none(), "{name}");
        assert_eq!(slices(&trace), naive_count(&text, b'X'), "{name}");
        assert_eq!(trace.events() - slices(&trace), naive_count(&text, b'i'), "{name}");
        let arrows = naive_count(&text, b's') + naive_count(&text, b'f');
        assert_eq!(trace.flows().len() as u64, arrows, "{name}");

        let odd = trace.notes().iter().find(|note| {
            note.kind == NoteKind::Damaged
                || note.detail.starts_with("unreadable")
                || note.kind == NoteKind::Unknown
        });
        assert_eq!(odd, None, "{name}");
        let events = trace.events() as usize + trace.flows().len();
        if events > 5_000 {
            let each = trace.heap_bytes() / events;
            assert!(each <= BYTES_AN_EVENT, "{name}: {each} bytes an event");
        }
    }
}

#[test]
fn kernels_lie_on_streams_and_operators_on_threads() {
    for path in traces() {
        let trace = stepscope_read::open(&path, &Progress::new()).unwrap().trace;
        for track in trace.tracks() {
            for &kind in track.kinds() {
                let wanted = match trace.str(trace.kind(kind).category) {
                    "kernel" | "Kernel" | "gpu_memcpy" | "Memcpy" => TrackKind::Stream,
                    "cpu_op" | "Operator" | "cuda_runtime" | "python_function" => TrackKind::Thread,
                    "gpu_user_annotation" | "Trace" => TrackKind::Derived,
                    _ => continue,
                };
                assert_eq!(track.kind, wanted, "{}: {}", path.display(), trace.kind_name(kind));
            }
        }
    }
}
