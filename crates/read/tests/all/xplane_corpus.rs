//! XPlane: real profiles. An independent, naive walk counts their events; the reader must find as many.
//!
//! Runs over the repository's fixtures and, where it is there, over the corpus.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_read::{Input, Progress, ReadError, open, reader_for};
use stepscope_testkit::corpus::{corpus, files_below, repository};
use stepscope_trace::{NoteKind, Trace};

fn profiles_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = files_below(folder);
    found.retain(|path| path.to_string_lossy().ends_with(".xplane.pb"));
    found
}

/// The naive walk: how many length-delimited fields `path` leads to. It knows nothing of what they hold.
fn count(bytes: &[u8], path: &[u64]) -> Option<u64> {
    let Some((&wanted, deeper)) = path.split_first() else { return Some(1) };
    let (mut at, mut total) = (0, 0);
    while at < bytes.len() {
        let tag = varint(bytes, &mut at)?;
        match tag & 7 {
            0 => drop(varint(bytes, &mut at)?),
            1 => at += 8,
            2 => {
                let len = varint(bytes, &mut at)? as usize;
                let body = bytes.get(at..at.checked_add(len)?)?;
                if tag >> 3 == wanted {
                    total += count(body, deeper)?;
                }
                at += len;
            }
            5 => at += 4,
            _ => return None,
        }
    }
    Some(total)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

const EVENTS: &[u64] = &[1, 3, 4];
const STATS: &[u64] = &[1, 3, 4, 4];

fn check(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let opened = open(path, &Progress::new());
    let Some(events) = count(&bytes, EVENTS) else {
        let noted = match opened {
            Ok(opened) => {
                opened.trace.notes().iter().any(|n| n.kind == NoteKind::Damaged && n.offset.is_some())
            }
            Err(error) => matches!(error, ReadError::Damaged { .. }),
        };
        assert!(noted, "{}: damage must be named with its place", path.display());
        return;
    };
    let opened = opened.unwrap();
    let trace = &opened.trace;
    assert_eq!((opened.format.name, trace.events()), ("xplane", events), "{}", path.display());
    assert!(trace.notes().iter().all(|note| note.kind != NoteKind::Damaged), "{:?}", trace.notes());
    assert_eq!(own_arguments(trace), count(&bytes, STATS).unwrap(), "{}", path.display());
    // Small files are held in memory rather than mapped; that is their size, not the trace's.
    let held = if bytes.len() < 4 << 20 { bytes.len() } else { 0 };
    if events > 5_000 && trace.kinds().len() < 1_000 {
        let per_event = (trace.heap_bytes() - held) as f64 / events as f64;
        assert!(per_event <= 40.0, "{}: {per_event} bytes an event", path.display());
    }
}

/// All events' own arguments, which must have names.
fn own_arguments(trace: &Trace) -> u64 {
    let mut own = 0;
    for track in trace.tracks() {
        for index in 0..track.len() {
            let mut all = 0u64;
            trace.args_at(track, index).visit(|key, _| {
                assert!(!trace.str(key).is_empty());
                all += 1;
            });
            let mut shared = 0;
            trace.kind_args(track.kind_of(index)).visit(|_, _| shared += 1);
            own += all - shared;
        }
    }
    own
}

#[test]
fn fixtures_are_read_whole() {
    let profiles = profiles_below(&repository().join("fixtures"));
    assert!(!profiles.is_empty());
    profiles.iter().for_each(|path| check(path));
}

#[test]
fn profiles_from_elsewhere_are_read_whole() {
    let Some(corpus) = corpus("") else { return };
    for folder in ["labelled", "xplane-names", "xplane-public"] {
        profiles_below(&corpus.join(folder)).iter().for_each(|path| check(path));
    }
}

#[test]
fn other_protobufs_and_texts_are_not_taken_for_profiles() {
    let Some(corpus) = corpus("") else { return };
    let is_profile = |path: &Path| path.to_string_lossy().trim_end_matches(".gz").ends_with(".xplane.pb");
    for path in files_below(&corpus).iter().filter(|path| !is_profile(path)) {
        let Ok(input) = Input::open(path) else { continue };
        let format = reader_for(&input).map(|reader| reader.format().name);
        assert_ne!(format, Some("xplane"), "{}", path.display());
    }
}
