//! Nsight Systems exports as a folder of tables give the same trace as the database, whole and damaged. The
//! folder is the testkit's sample, written by `tools/make_tables.py`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stepscope_read::discover::discover;
use stepscope_read::{Bytes, Input, Opened, Progress, ReadError, TableFile, open, open_input};
use stepscope_testkit::damage::{HUGE_VARINTS, Rng, flip_bits, overwrite, splice};
use stepscope_testkit::nsys::sample;
use stepscope_trace::{NoteKind, Trace};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsys-tables/run_pqtdir")
}

/// A copy that a test may damage.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("run_pqtdir");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(folder()).unwrap().flatten() {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    (place, copy)
}

fn opened(path: &Path) -> Opened {
    open(path, &Progress::new()).unwrap()
}

/// Everything that the trace says about its events.
fn told(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    for track in trace.tracks() {
        for index in 0..track.len() {
            let mut args = Vec::new();
            trace.args_at(track, index).visit(|key, value| {
                args.push(format!("{} {:?} {:?}", trace.str(key), value.as_i64(), value.as_str()));
            });
            let place = (trace.str(trace.process(track.process).name), trace.str(track.name));
            let times = (track.start(index), track.dur(index));
            lines.push(format!("{place:?} {times:?} {} {args:?}", trace.kind_name(track.kind_of(index))));
        }
    }
    lines
}

fn notes(trace: &Trace) -> Vec<(NoteKind, &str)> {
    trace.notes().iter().map(|note| (note.kind, note.detail.as_str())).collect()
}

#[test]
fn a_folder_of_tables_gives_the_same_trace_as_the_database() {
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("run.sqlite");
    let connection = Connection::open(&database).unwrap();
    connection.execute_batch(&format!("BEGIN;{}COMMIT;", sample().script())).unwrap();
    let (ours, theirs) = (opened(&folder()), opened(&database));
    assert_eq!(ours.format, theirs.format);
    assert_eq!(told(&ours.trace), told(&theirs.trace));
    assert_eq!(ours.trace.events(), 12);
    let size = |entry: fs::DirEntry| entry.metadata().unwrap().len();
    assert_eq!(ours.bytes, fs::read_dir(folder()).unwrap().flatten().map(size).sum::<u64>());
}

#[test]
fn any_file_of_the_folder_stands_for_the_whole_of_it() {
    let file = opened(&folder().join("PROCESSES.parquet"));
    assert_eq!(told(&file.trace), told(&opened(&folder()).trace));
}

#[test]
fn arrow_gives_the_same_trace_as_parquet() {
    let streams = folder().join("../run.arrows");
    assert_eq!(told(&opened(&streams).trace), told(&opened(&folder()).trace));
    // The same streams, one per file.
    let (_place, copy) = copy();
    let bytes = fs::read(&streams).unwrap();
    let end = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let mut rest = &bytes[..];
    for name in
        ["StringIds", "PROCESSES", "ThreadNames", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"]
    {
        let at = rest.windows(8).position(|window| window == end).unwrap() + 8;
        fs::write(copy.join(name).with_extension("arrow"), &rest[..at]).unwrap();
        fs::remove_file(copy.join(name).with_extension("parquet")).unwrap();
        rest = &rest[at..];
    }
    assert!(rest.is_empty());
    assert_eq!(told(&opened(&copy).trace), told(&opened(&folder()).trace));
}

#[test]
fn streams_that_end_early_are_read_as_far_as_they_go() {
    let whole = fs::read(folder().join("../run.arrows")).unwrap();
    let part = Input::from_bytes("run.arrows", Bytes::held(whole[..whole.len() * 9 / 10].to_vec()));
    let trace = open_input(&part, &Progress::new()).unwrap().trace;
    assert_eq!(trace.events(), 6, "the calls are there, the kernels behind them are not");
    assert!(notes(&trace).iter().any(|(kind, _)| *kind == NoteKind::Damaged));
}

#[test]
fn the_same_export_in_several_forms_is_one_profile() {
    let found = discover(&[folder().join("..")]).unwrap();
    assert_eq!(found.sessions.len(), 1);
    assert_eq!(found.sessions[0].files.len(), 1);
    assert_eq!(found.sessions[0].duplicates.len(), 1);
}

#[test]
fn a_table_that_cannot_be_read_is_noted_and_the_rest_is_there() {
    let (_place, copy) = copy();
    let kernels = copy.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let bytes = fs::read(&kernels).unwrap();
    fs::write(&kernels, &bytes[..bytes.len() - 9]).unwrap();
    let trace = opened(&copy).trace;
    assert_eq!(trace.events(), 6, "the calls are there still");
    assert_eq!(
        notes(&trace),
        [(NoteKind::Damaged, "table CUPTI_ACTIVITY_KIND_KERNEL: the file is truncated")]
    );
    let foreign = folder().join("../../tables/brotli.parquet");
    fs::copy(foreign, copy.join("NVTX_EVENTS.parquet")).unwrap();
    fs::write(&kernels, bytes).unwrap();
    let trace = opened(&copy).trace;
    assert_eq!(trace.events(), 12);
    let unknown = "table NVTX_EVENTS, after 0 rows: unknown compression 4";
    assert!(notes(&trace).contains(&(NoteKind::Unknown, unknown)), "{:?}", notes(&trace));
}

#[test]
fn a_folder_of_which_nothing_is_left_says_what_is_wrong() {
    let (_place, copy) = copy();
    for entry in fs::read_dir(&copy).unwrap().flatten() {
        fs::write(entry.path(), b"").unwrap();
    }
    assert!(matches!(open(&copy, &Progress::new()), Err(ReadError::Empty { .. })));
    fs::write(copy.join("StringIds.parquet"), b"PAR1 and no more").unwrap();
    let trace = opened(&copy).trace;
    assert_eq!(trace.events(), 0);
    assert!(notes(&trace).iter().all(|(kind, _)| *kind == NoteKind::Damaged));
}

#[test]
fn foreign_tables_are_not_taken_for_a_profile() {
    let foreign = folder().join("../../tables/default.parquet");
    assert!(matches!(open(&foreign, &Progress::new()), Err(ReadError::NotRecognised { .. })));
}

#[test]
fn damage_of_every_sort_gives_an_error_or_a_trace_but_never_a_panic() {
    let whole: Vec<(String, Vec<u8>)> = fs::read_dir(folder())
        .unwrap()
        .flatten()
        .map(|entry| {
            let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    let mut rng = Rng::new(3);
    let mut events = 0;
    for round in 0..400 {
        let spoil = |bytes: &[u8], rng: &mut Rng| match round % 4 {
            0 => flip_bits(bytes, rng, 1 + round / 50),
            1 => splice(bytes, rng),
            2 => overwrite(bytes, rng, HUGE_VARINTS[round % HUGE_VARINTS.len()]),
            _ => bytes[..rng.below(bytes.len())].to_vec(),
        };
        let victim = rng.below(whole.len());
        let tables = whole.iter().enumerate().map(|(index, (name, bytes))| {
            let bytes = if index == victim { spoil(bytes, &mut rng) } else { bytes.clone() };
            TableFile { name: name.clone(), bytes: Bytes::held(bytes) }
        });
        let input = Input::from_tables("run_pqtdir", tables.collect());
        if let Ok(opened) = open_input(&input, &Progress::new()) {
            events += opened.trace.events();
            told(&opened.trace);
        }
    }
    assert!(events > 400 * 6, "most of most folders is read: {events}");
}
