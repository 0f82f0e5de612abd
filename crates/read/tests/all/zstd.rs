//! Zstandard-compressed files: any format may use it, and Nsight Compute's `.ncu-repz` always does.

use std::fs;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use stepscope_read::discover::discover;
use stepscope_read::{Budget, Bytes, Input, Opened, Progress, ReadError, open, open_input};
use stepscope_testkit::ncu::Report;

const CHROME: &[u8] =
    br#"{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "name": "a"}]}"#;

fn packed(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn try_read(bytes: Vec<u8>) -> Result<Opened, ReadError> {
    open_input(&Input::from_bytes("packed", Bytes::held(bytes)), &Progress::new())
}

#[test]
fn compressed_reports_of_nsight_compute_are_found_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.ncu-repz");
    let mut report = Report::new();
    report.session(1_757_321_390, "GTX 1660 SUPER", &[]);
    report.launch("gemm", [16, 16, 1], [256, 1, 1], &[("gpu__time_duration.sum", 9_000.0)]);
    fs::write(&path, packed(&report.bytes())).unwrap();
    let found = discover(&[folder.path().to_owned()]).unwrap();
    assert_eq!(found.sessions[0].files[0].format.name, "ncu");
    let (plain, unpacked) = (try_read(report.bytes()).unwrap(), open(&path, &Progress::new()).unwrap());
    assert_eq!((unpacked.trace.events(), plain.trace.events()), (1, 1));
}

#[test]
fn chrome_traces_are_inflated_while_they_are_read() {
    let opened = try_read(packed(CHROME)).unwrap();
    assert_eq!((opened.format.name, opened.trace.events()), ("chrome", 1));
}

#[test]
fn a_bomb_is_refused() {
    // A frame of 200 blocks that each say: 128 kB of the same byte.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for block in 0..200_u32 {
        let head = (128 << 10) << 3 | 1 << 1 | u32::from(block == 199);
        bomb.extend_from_slice(&head.to_le_bytes()[..3]);
        bomb.push(b' ');
    }
    let input = Input::from_bytes("bomb", Bytes::held(bomb.clone())).with_budget(Budget::new(1 << 20));
    let (inflated, error) = input.inflated();
    assert!(inflated.len() <= 1 << 20 && error.is_some(), "{} bytes", inflated.len());
    assert!(matches!(try_read(bomb), Err(ReadError::NotRecognised { .. })));
}
