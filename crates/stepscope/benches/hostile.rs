//! Time that grows faster than a file: every shape of `stepscope_testkit::hostile::shapes` at one size and at four times
//! that size, through the whole binary. Linear work takes four times as long, quadratic work sixteen times; more than
//! [`MOST_GROWTH`] fails.
//!
//! `cargo bench -p stepscope --bench hostile [-- SHAPE] [--bin PATH] [--views]`: shapes whose names contain SHAPE, another
//! binary, every view and not only the report and the summary.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench reports to whoever runs it")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use stepscope_results::views::VIEWS;
use stepscope_testkit::hostile::shapes::{Content, SHAPES, Shape};

/// Growth from n to 4 n that is still near linear.
const MOST_GROWTH: f64 = 8.0;
/// Shorter runs are mostly the start of the process.
const LEAST_SECONDS: f64 = 0.25;
/// So many times each shape is enlarged, until a run takes long enough to tell.
const SIZES: [usize; 2] = [1, 4];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let after = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1));
    let binary = after("--bin").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_stepscope")), PathBuf::from);
    let only = args.first().filter(|arg| !arg.starts_with("--"));
    let views = args.iter().any(|arg| arg == "--views");
    let mut failed = 0;
    for shape in SHAPES.iter().filter(|shape| only.is_none_or(|only| shape.name.contains(only.as_str()))) {
        failed += measure(&binary, shape, views);
    }
    println!("{failed} grow too fast");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures one shape; returns how many of its commands grow too fast.
fn measure(binary: &Path, shape: &Shape, views: bool) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let files = SIZES.map(|times| {
        let path = folder.path().join(times.to_string()).join(shape.file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, (shape.build)(shape.n * times));
        path
    });
    let commands: Vec<&str> = match shape.name.starts_with("scalar") {
        true => vec!["scalars"],
        false => ["report", "info"]
            .into_iter()
            .chain(VIEWS.iter().map(|view| view.name).filter(|_| views))
            .collect(),
    };
    let mut failed = 0;
    for command in commands {
        let [(small, _), (large, ended)] = [0, 1].map(|at| run(binary, command, &files[at]));
        let growth = large / small.max(0.01);
        let bad = large > LEAST_SECONDS && growth > MOST_GROWTH;
        failed += usize::from(bad);
        let megabytes = std::fs::metadata(&files[1]).map_or(0, |data| data.len()) as f64 / 1e6;
        let mark = if bad { "  TOO FAST" } else { "" };
        println!(
            "{:<22} {command:<10} {:>7} {small:>6.2} s {large:>7.2} s  × {growth:>5.1}  {megabytes:.1} MB, {ended}{mark}",
            shape.name, shape.n
        );
    }
    failed
}

fn write(path: &Path, content: Content) {
    match content {
        Content::Bytes(bytes) => std::fs::write(path, bytes).unwrap(),
        Content::Sql(script) => rusqlite::Connection::open(path).unwrap().execute_batch(&script).unwrap(),
    }
}

/// Seconds of processor time that a command takes on a file, and how it ended.
fn run(binary: &Path, command: &str, path: &Path) -> (f64, String) {
    let before = children_seconds();
    let began = Instant::now();
    let mut child = Command::new(binary);
    child.arg(command).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    let status = child.status().unwrap();
    let took = children_seconds()
        .zip(before)
        .map_or_else(|| began.elapsed().as_secs_f64(), |(now, before)| now - before);
    (took, status.code().map_or("signal".to_owned(), |code| format!("exit {code}")))
}

/// Processor time of all children so far; the clock on the wall is no measure on a busy machine.
fn children_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
