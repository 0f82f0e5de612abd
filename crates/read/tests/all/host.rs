//! Logs of Python programs: alone, beside the profile of their process, and damaged.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;

use stepscope_read::{Bytes, HostReader, Input, Progress, Reader, discover, open};
use stepscope_testkit::damage::{Rng, flip_bits, overwrite, splice, truncations};
use stepscope_testkit::host::{log, profile};
use stepscope_trace::{NoteKind, Trace, Track, TrackKind};

fn named<'t>(trace: &'t Trace, start: &str) -> Vec<(&'t Track, usize)> {
    let wanted = trace.kinds_where(|kind| trace.kind_name(kind).starts_with(start));
    let tracks = trace.tracks().iter();
    tracks
        .flat_map(|track| track.events_of(&wanted).map(move |(at, _)| (track, at)).collect::<Vec<_>>())
        .collect()
}

fn read(folder: &Path, late_us: i64) -> Trace {
    fs::write(folder.join("vm.1700000000000.pt.trace.json"), profile(late_us)).unwrap();
    fs::write(folder.join("vm.host.json"), log()).unwrap();
    open(&folder.join("vm.1700000000000.pt.trace.json"), &Progress::new()).unwrap().trace
}

#[test]
fn steps_and_lines_join_the_profile_of_the_process_by_the_marks_of_its_clock() {
    let folder = tempfile::tempdir().unwrap();
    // However far the wall clocks are apart, the mark in the profile tells.
    for late_us in [0, 3_000, 900_000] {
        let trace = read(folder.path(), late_us);
        let steps = named(&trace, "stepscope/step#");
        assert_eq!(steps.len(), 4);
        let ops = named(&trace, "aten::mm");
        let (thread, _) = ops[0];
        assert!(steps.iter().all(|(track, _)| track.id == thread.id));
        let ends = |all: &[(&Track, usize)]| all.iter().map(|(track, at)| track.end(*at)).collect::<Vec<_>>();
        assert_eq!(ends(&steps), ends(&ops), "boundaries lie on the edges of events");
        let batches = named(&trace, "$train.py:41 make_batch");
        let on_loop: Vec<_> = batches.iter().filter(|(track, _)| track.id == thread.id).collect();
        assert_eq!(on_loop.len(), 4);
        let ms = on_loop.iter().map(|(track, at)| track.dur(*at).ms()).sum::<f64>();
        assert!((ms - 32.0).abs() < 1.0, "{ms}");
        // The loop's own lines are told apart, also within its function.
        assert!(
            !named(&trace, "$train.py:20 main").is_empty() && !named(&trace, "$train.py:21 main").is_empty()
        );
    }
}

#[test]
fn what_belongs_to_no_thread_has_tracks_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let trace = read(folder.path(), 0);
    for name in ["collect generation 2", "write /data/a.bin", "start /bin/true"] {
        let found = named(&trace, name);
        assert!(found.len() == 1 && found[0].0.kind == TrackKind::Derived, "{name}");
    }
    let versions = &trace.environment().versions;
    assert!(versions.iter().any(|version| trace.str(version.key) == "torch"));
}

#[test]
fn a_log_beside_its_profile_is_part_of_it_and_alone_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    read(folder.path(), 0);
    let found = discover::discover(&[folder.path().to_owned()]).unwrap();
    let [session] = &found.sessions[..] else { panic!("{:?}", found.sessions) };
    assert_eq!((session.files.len(), session.duplicates.len()), (1, 1));
    fs::remove_file(folder.path().join("vm.1700000000000.pt.trace.json")).unwrap();
    let alone = open(&folder.path().join("vm.host.json"), &Progress::new()).unwrap();
    assert_eq!((alone.format.name, named(&alone.trace, "stepscope/step#").len()), ("stepscope-host", 4));
}

#[test]
fn a_damaged_log_leaves_the_profile_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    read(folder.path(), 0);
    fs::write(folder.path().join("vm.host.json"), &log()[..400]).unwrap();
    let trace = open(&folder.path().join("vm.1700000000000.pt.trace.json"), &Progress::new()).unwrap().trace;
    assert_eq!(named(&trace, "aten::mm").len(), 4);
    assert!(trace.notes().iter().any(|note| note.kind == NoteKind::Damaged));
}

#[test]
fn damage_never_ends_in_a_panic() {
    let whole = log().into_bytes();
    let read = |bytes: &[u8]| {
        let input = Input::from_bytes("vm.host.json", Bytes::held(bytes.to_vec()));
        HostReader.read(&input, &Progress::new()).unwrap()
    };
    assert!(read(&whole).events() > 0);
    truncations(&whole).for_each(|part| drop(read(part)));
    let mut rng = Rng::new(11);
    for _ in 0..300 {
        drop(read(&flip_bits(&whole, &mut rng, 3)));
        drop(read(&splice(&whole, &mut rng)));
        drop(read(&overwrite(&whole, &mut rng, b"9223372036854775807")));
        drop(read(&overwrite(&whole, &mut rng, b"-9223372036854775808")));
    }
}
