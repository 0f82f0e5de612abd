//! The project's own chores, so that a machine with Rust, Node and Python needs nothing else:
//! `cargo xtask check` is what CI runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to whoever runs it")]

mod arrows;
mod browser;
mod docs;
mod live;
mod page;
mod run;
mod truth;

use std::path::Path;
use std::process::ExitCode;

use run::{Outcome, cargo};

const USAGE: &str = "\
cargo xtask check              every check that CI makes: format, lints, tests, arrows, truth, live captures, page, fuzzing
cargo xtask page               the page alone: types, unit tests, a browser
cargo xtask arrows             do the crates depend on each other in the right direction?
cargo xtask docs --write       write docs/findings.md from the comments in crates/diagnose/src/rules
cargo xtask truth [--write]    hold the reports against all recordings with a known truth; precision per finding
                               (--bin PATH: another binary; --only REGEX: some recordings)
cargo xtask live               record real training loops in TensorFlow and JAX; test the Python helper
cargo xtask fuzz [--seconds N] damage inputs at random for N seconds a target (default 10)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // All paths below are the repository's, wherever in it the command was given.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Err(error) = std::env::set_current_dir(&root) {
        eprintln!("error: cannot enter {}: {error}", root.display());
        return ExitCode::FAILURE;
    }
    let outcome = match args[..] {
        ["check"] => check(),
        ["page"] => page::check(),
        ["arrows"] => arrows::check(),
        ["docs", "--write"] => docs::write(),
        ["truth", ref rest @ ..] => truth::truth(rest),
        ["live"] => live::check(),
        ["fuzz"] => fuzz("10"),
        ["fuzz", "--seconds", seconds] => fuzz(seconds),
        _ => Err(format!("wrong usage\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Outcome {
    cargo("format", &["fmt", "--all", "--check"])?;
    docs::format_rules()?;
    cargo("format of the fuzz targets", &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])?;
    arrows::check()?;
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    cargo("tests", &["test", "--workspace", "--quiet"])?;
    truth::check()?;
    live::check()?;
    page::check()?;
    fuzz("10")?;
    println!("all checks passed");
    Ok(())
}

/// Fuzzing that needs nothing but the stable toolchain; see CONTRIBUTING.md for the coverage-guided kind.
fn fuzz(seconds: &str) -> Outcome {
    let manifest = ["run", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml", "--"];
    cargo("fuzzing", &[&manifest[..], &["--seconds", seconds]].concat())
}
