//! Fuzzing without any tool: every target gets damaged inputs until its time is up. The same seed gives the
//! same inputs; an input that fails is saved below `fuzz/artifacts` and can be run again by name.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "reports to the person who runs it")]

mod memory;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use stepscope_fuzz::mutate::mutate;
use stepscope_fuzz::seeds::Seeds;
use stepscope_fuzz::targets::{Target, targets};
use stepscope_testkit::damage::Rng;

const USAGE: &str =
    "usage: stepscope-fuzz [--seconds N] [--runs N] [--seed N] [--share I/N] [TARGET [FILE...]]";

/// Time limit for one input; the usual takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Options {
    seconds: u64,
    /// Inputs per target instead of a time.
    runs: Option<u64>,
    seed: u64,
    /// Every `share.1`th target, from the one with the index `share.0`: several processes divide all of them.
    share: (usize, usize),
    target: Option<String>,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    stepscope_read::allow_inflated_bytes(memory::BUDGET);
    // Before the seeds use SQLite: it takes its allocator only once.
    stepscope_sqlite::prepare();
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { seconds: 10, runs: None, seed: 1, share: (0, 1), target: None, files: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse().ok()).ok_or(USAGE);
        match arg.as_str() {
            "--seconds" => options.seconds = number()?,
            "--runs" => options.runs = Some(number()?),
            "--seed" => options.seed = number()?,
            "--share" => options.share = args.next().and_then(|text| share(&text)).ok_or(USAGE)?,
            _ if arg.starts_with('-') => return Err(USAGE.to_owned()),
            _ if options.target.is_none() => options.target = Some(arg),
            _ => options.files.push(arg.into()),
        }
    }
    Ok(options)
}

/// `1/2` is the first half.
fn share(text: &str) -> Option<(usize, usize)> {
    let (which, of) = text.split_once('/')?;
    let (which, of): (usize, usize) = (which.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&which).then_some((which - 1, of))
}

fn run(options: &Options) -> Result<(), String> {
    let wanted = |name: &str| options.target.as_deref().is_none_or(|target| target == name);
    let chosen: Vec<_> = targets().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = targets().map(|(name, _)| name).collect();
        return Err(format!("unknown target; the targets are {}", names.join(", ")));
    }
    let (first, every) = options.share;
    let seeds = if options.files.is_empty() { Some(Seeds::all()) } else { None };
    for (name, target) in chosen.into_iter().skip(first).step_by(every) {
        if let Some(seeds) = &seeds {
            fuzz(name, target, seeds, options)?;
        }
        for file in &options.files {
            let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
            one(target, &bytes).map_err(|what| format!("{name} on {}: {what}", file.display()))?;
        }
    }
    Ok(())
}

fn fuzz(name: &str, target: Target, seeds: &Seeds, options: &Options) -> Result<(), String> {
    let mut rng = Rng::new(options.seed);
    let (began, time) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut runs = 0_u64;
    while options.runs.map_or_else(|| began.elapsed() < time, |wanted| runs < wanted) {
        let bytes = mutate(seeds.any(&mut rng), &mut rng);
        if let Err(what) = one(target, &bytes) {
            let kept = keep(name, runs, &bytes)?;
            return Err(format!("{name}, input {runs}: {what}; kept as {}", kept.display()));
        }
        runs += 1;
    }
    println!("{name}: {runs} damaged inputs in {:.0} s, no failures", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs one input: no panic, not too long, not too much memory. On a busy machine any input can take long, so one that does
/// gets more chances.
fn one(target: Target, bytes: &[u8]) -> Result<(), String> {
    const CHANCES: usize = 3;
    let mut took = Duration::MAX;
    for _ in 0..CHANCES {
        took = took.min(run_once(target, bytes)?);
        if took <= PATIENCE {
            return Ok(());
        }
    }
    Err(format!("took {:.1} s", took.as_secs_f64()))
}

fn run_once(target: Target, bytes: &[u8]) -> Result<Duration, String> {
    let began = Instant::now();
    memory::restart();
    panic::catch_unwind(AssertUnwindSafe(|| target.run(bytes))).map_err(|_| "panicked".to_owned())?;
    let (took, most) = (began.elapsed(), memory::most());
    if most > memory::ALLOWED {
        return Err(format!(
            "took {most} bytes of memory for {} bytes of input, more than {}",
            bytes.len(),
            memory::ALLOWED
        ));
    }
    Ok(took)
}

fn keep(name: &str, run: u64, bytes: &[u8]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
    let file = folder.join(format!("input-{run}"));
    fs::create_dir_all(&folder).and_then(|()| fs::write(&file, bytes)).map_err(|error| error.to_string())?;
    Ok(file)
}
