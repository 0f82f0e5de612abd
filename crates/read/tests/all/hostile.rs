//! Files that claim more than they hold, and files that change: every reader ends within its budget, keeps what came
//! before, and says so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use stepscope_read::{Budget, Bytes, Input, Limit, Progress, ReadError, TableFile, open_input};
use stepscope_testkit::hostile::bombs;
use stepscope_testkit::xspace::{XEvent, XEventMetadata, XLine, XPlane, XSpace};
use stepscope_trace::{NoteKind, Trace};

/// A small budget, so that the tests are quick.
const BUDGET: u64 = 8 << 20;

fn input(bytes: Vec<u8>) -> Input {
    Input::from_bytes("hostile", Bytes::held(bytes)).with_budget(Budget::new(BUDGET))
}

/// The trace, and the limit that its notes name.
fn read(input: &Input) -> (Trace, Option<(String, u64)>) {
    let opened = open_input(input, &Progress::new()).unwrap();
    let notes = opened.trace.notes().iter().filter(|note| note.kind == NoteKind::OverBudget);
    let over = notes.map(|note| (note.detail.clone(), note.count)).next();
    (opened.trace, over)
}

/// A head, then a filler that repeats, compressed as it comes.
fn gzip(head: &[u8], filler: u8, times: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(head).unwrap();
    let block = vec![filler; 1 << 20];
    (0..times).for_each(|_| encoder.write_all(&block).unwrap());
    encoder.finish().unwrap()
}

/// Zstandard: a raw block with the head, then blocks of one repeated byte, four bytes for 128 KB each.
fn zstd(head: &[u8], filler: u8, times: usize) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let block = |last: u32, kind: u32, size: u32| last | kind << 1 | size << 3;
    out.extend(&block(0, 0, head.len() as u32).to_le_bytes()[..3]);
    out.extend(head);
    for _ in 0..times * 8 {
        out.extend(&block(0, 1, 128 << 10).to_le_bytes()[..3]);
        out.push(filler);
    }
    out.extend(&block(1, 0, 0).to_le_bytes()[..3]);
    out
}

const EVENT: &[u8] =
    b"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5}";

#[test]
fn filler_behind_a_trace_ends_at_the_budget() {
    let whole = [EVENT, b"]}"].concat();
    for bytes in [gzip(&whole, b' ', 64), zstd(&whole, b' ', 64)] {
        let (trace, over) = read(&input(bytes));
        assert_eq!(trace.events(), 1);
        assert_eq!(over, Some(("inflated bytes".to_owned(), BUDGET)));
    }
}

#[test]
fn a_text_without_end_is_no_larger_in_memory_than_one_value_may_be() {
    let open = [EVENT, b",{\"ph\":\"X\",\"name\":\""].concat();
    for bytes in [gzip(&open, b'a', 64), zstd(&open, b'a', 64)] {
        let (trace, over) = read(&input(bytes));
        assert_eq!(trace.events(), 1, "what came before is kept");
        assert_eq!(over, Some((Limit::Value.counts().to_owned(), BUDGET / 4)));
    }
    let nothing =
        open_input(&input(gzip(b"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"", b'a', 64)), &Progress::new());
    assert!(matches!(nothing.unwrap_err(), ReadError::OverBudget { .. }));
}

#[test]
fn honest_compression_meets_no_limit() {
    let event = &EVENT[16..];
    let mut text = b"{\"traceEvents\":[".to_vec();
    (0..200_000).for_each(|_| text.extend([event, b",\n"].concat()));
    text.truncate(text.len() - 2);
    text.extend(b"]}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&text).unwrap();
    let (trace, over) = read(&Input::from_bytes("honest", Bytes::held(encoder.finish().unwrap())));
    assert_eq!((trace.events(), over), (200_000, None));
}

#[test]
fn a_compressed_profile_of_any_format_ends_at_the_budget() {
    let line = XLine { name: "a".into(), events: vec![XEvent::at(0, 5, 1)], ..XLine::default() };
    let metadata = vec![(1, XEventMetadata::named("op"))];
    let plane = XPlane { lines: vec![line], event_metadata: metadata, ..XPlane::named("/host:CPU") };
    let xplane = XSpace { planes: vec![plane], ..XSpace::default() }.encode();
    let smi = b"timestamp, index, utilization.gpu [%]\n2026/04/25 16:06:06.780, 0, 45 %\n";
    let samples = b"time_unix_s,elapsed_s,machine_cpu_percent,tree_rss_bytes\n1800000000.1,0.1,12.5,1000\n";
    for (head, filler) in [(&xplane[..], 0x22), (smi, b'\n'), (samples, b'\n')] {
        let (trace, over) = read(&input(gzip(head, filler, 64)));
        assert_eq!(over, Some(("inflated bytes".to_owned(), BUDGET)), "{:?}", trace.notes());
    }
}

#[test]
fn events_without_content_do_not_take_ten_times_the_file() {
    // Two bytes each: the tag of an event, and the length 0.
    let mut line = vec![0x08, 1];
    line.extend([0x22, 0].repeat(400_000));
    let length = |bytes: &[u8]| {
        let n = bytes.len();
        vec![n as u8 & 0x7f | 0x80, (n >> 7) as u8 & 0x7f | 0x80, (n >> 14) as u8]
    };
    let field = |number: u8, bytes: &[u8]| [vec![number << 3 | 2], length(bytes), bytes.to_vec()].concat();
    let name = [&[0x12, 9][..], b"/host:CPU"].concat();
    let bytes = field(1, &[name, field(3, &line)].concat());
    let (trace, over) = read(&input(bytes.clone()));
    assert!(trace.events() > 0 && trace.events() <= BUDGET / 64, "{}", trace.events());
    assert_eq!(over, Some(("events".to_owned(), BUDGET / 64)));
    let (trace, over) = read(&Input::from_bytes("few", Bytes::held(bytes)));
    assert_eq!((trace.events(), over), (400_000, None));
}

#[test]
fn shared_pages_of_a_database_do_not_multiply_without_end() {
    let bytes = bombs::shared_pages();
    assert!(bytes.len() < 32 << 10);
    let (trace, over) = read(&input(bytes));
    assert!(trace.events() > 1_000 && trace.events() <= BUDGET / 64, "{}", trace.events());
    assert_eq!(over, Some(("rows".to_owned(), BUDGET / 64)));
}

#[test]
fn a_page_that_follows_itself_ends() {
    let bytes = bombs::page_that_follows_itself();
    assert!(bytes.len() < 32 << 10);
    // Texts longer than the file are refused by the database itself, or end with the budget.
    let opened = open_input(&input(bytes), &Progress::new());
    let notes = opened.unwrap().trace.notes().to_vec();
    assert!(
        notes.iter().any(|note| note.kind == NoteKind::Damaged && note.detail.contains("StringIds")),
        "{notes:?}"
    );
}

#[test]
fn pages_of_a_table_file_do_not_inflate_without_end() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsys-tables/run_pqtdir");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let tables = |budget| {
        let table = |path: &std::path::PathBuf| TableFile {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            bytes: Bytes::held(std::fs::read(path).unwrap()),
        };
        let input = Input::from_tables("tables", files.iter().map(table).collect());
        match budget {
            Some(bytes) => input.with_budget(Budget::new(bytes)),
            None => input,
        }
    };
    let (whole, over) = read(&tables(None));
    assert_eq!(over, None);
    let (part, over) = read(&tables(Some(640)));
    assert!(part.events() < whole.events() && over.is_some(), "{over:?}");
}

#[cfg(unix)]
#[test]
fn a_profile_that_is_overwritten_is_read_to_the_end_and_says_so() {
    use std::fs::OpenOptions;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.xplane.pb");
    let events = (0..600_000).map(|i| XEvent::at(i * 2_000, 1_000, 1)).collect();
    let line =
        XLine { name: "a".into(), timestamp_ns: 1_700_000_000_000_000_000, events, ..XLine::default() };
    let metadata = vec![(1, XEventMetadata::named("op"))];
    let plane = XPlane { lines: vec![line], event_metadata: metadata, ..XPlane::named("/host:CPU") };
    std::fs::write(&path, XSpace { planes: vec![plane], ..XSpace::default() }.encode()).unwrap();

    let input = Input::open(&path).unwrap();
    let opened = open_input(&input, &Progress::new()).unwrap();
    assert!(opened.trace.is_intact() && opened.trace.notes().is_empty());
    // As `cp` does: the file is emptied first.
    OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(!opened.trace.is_intact(), "known without touching the file");
    for track in opened.trace.tracks() {
        (0..track.len()).for_each(|index| opened.trace.args_at(track, index).visit(|_, _| {}));
    }
    let torn = open_input(&input, &Progress::new());
    let known = match torn {
        Ok(opened) => opened.trace.notes().iter().any(|note| note.kind == NoteKind::Changed),
        Err(error) => matches!(error, ReadError::Changed { .. }),
    };
    assert!(known);
}

#[test]
fn a_stopped_reading_ends_in_every_format() {
    let export = rusqlite::Connection::open_in_memory().and_then(|mut connection| {
        connection.execute_batch(stepscope_testkit::nsys::sample().script())?;
        Ok(connection.serialize(rusqlite::MAIN_DB)?.to_vec())
    });
    let samples = b"time_unix_s,elapsed_s,machine_cpu_percent,tree_rss_bytes\n1800000000.1,0.1,12.5,1000\n";
    let fixtures = stepscope_testkit::corpus::repository().join("fixtures");
    let files = stepscope_testkit::corpus::files_below(&fixtures);
    let mut inputs: Vec<Input> =
        [export.unwrap(), samples.to_vec(), [EVENT, b"]}"].concat()].map(input).into_iter().collect();
    inputs.extend(files.iter().filter_map(|file| Input::open(file).ok()));
    let mut stopped = 0;
    for input in inputs.iter().filter(|input| open_input(input, &Progress::new()).is_ok()) {
        let progress = Progress::new();
        progress.stop();
        let reading = std::panic::AssertUnwindSafe(|| open_input(input, &progress).map(drop));
        let caught = std::panic::catch_unwind(reading);
        assert!(caught.is_err_and(|caught| Progress::is_stop(&*caught)), "{}", input.path().display());
        stopped += 1;
    }
    assert!(stopped > 5, "{stopped}");
}
