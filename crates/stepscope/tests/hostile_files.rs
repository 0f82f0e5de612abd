//! Files that an adversary would write, through the whole binary: it ends, keeps what it read, says what happened and how
//! to go on.
#![expect(clippy::unwrap_used, reason = "a test may fail")]
mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;
use stepscope_testkit::hostile::bombs;
#[cfg(unix)]
use stepscope_testkit::hostile::shapes::{Content, SHAPES};
use support::{code, stepscope};

const EVENT: &str = "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"aten::mm\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5}";

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn run(args: &[&str], path: &Path) -> (i32, String, Output) {
    let output = stepscope().args(args).arg(path).output().unwrap();
    (code(&output), String::from_utf8_lossy(&output.stderr).into_owned(), output)
}

#[test]
fn a_file_that_inflates_without_end_is_read_up_to_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(EVENT.as_bytes()).unwrap();
    encoder.write_all(b",{\"ph\":\"X\",\"name\":\"").unwrap();
    (0..64).for_each(|_| encoder.write_all(&vec![b'a'; 1 << 20]).unwrap());
    let path = written(folder.path(), "a.json.gz", &encoder.finish().unwrap());
    for command in ["report", "info", "ops", "health"] {
        let (exit, said, output) = run(&[command, "--budget", "8MB"], &path);
        assert_eq!(exit, 4, "{command}: {said}");
        assert!(said.contains("stopped after 2,000,000 bytes of a single value; 1 event was read"), "{said}");
        assert!(said.contains("--budget 16GB"), "{said}");
        assert!(!output.stdout.is_empty(), "what was read is shown");
    }
    let health = run(&["health", "--json", "--budget", "8MB"], &path).2;
    assert!(String::from_utf8_lossy(&health.stdout).contains("\"over-budget\""));
    let (exit, said, _) = run(&["report", "--budget", "4GB"], &path);
    assert!(exit == 4 && said.contains("damaged"), "a raised limit reads on, to the damage: {said}");
}

#[test]
fn a_database_of_twenty_kilobytes_does_not_claim_thousands_of_millions_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a.sqlite", &bombs::shared_pages());
    let (exit, said, _) = run(&["info", "--budget", "8MB"], &path);
    assert!(exit == 4 && said.contains("stopped after 125,000 rows"), "{exit}: {said}");
    let path = written(folder.path(), "b.sqlite", &bombs::page_that_follows_itself());
    assert_eq!(run(&["info"], &path).0, 4);
}

/// As a program that exports its trace again and again: emptied, then written.
#[cfg(unix)]
#[test]
fn a_profile_that_is_overwritten_again_and_again_never_ends_the_program() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let shape = SHAPES.iter().find(|shape| shape.name == "xplane_metadata").unwrap();
    let Content::Bytes(bytes) = (shape.build)(200_000) else { panic!("bytes") };
    assert!(bytes.len() > 8 << 20, "large enough to be mapped");
    let path = written(folder.path(), "a.xplane.pb", &bytes);
    let stop = AtomicBool::new(false);
    let ends: Vec<Option<i32>> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::fs::write(&path, &bytes).unwrap();
            }
        });
        let runs = (0..6).map(|_| stepscope().arg("info").arg(&path).output().unwrap().status.code());
        let ends = runs.collect();
        stop.store(true, Ordering::Relaxed);
        ends
    });
    // Read whole, in part, or found empty; never ended by a signal or a panic.
    assert!(ends.iter().all(|end| matches!(end, Some(0 | 3 | 4))), "{ends:?}");
}
