//! `cargo xtask truth`: checks the binary against everything with a known truth: public recordings that were
//! examined by hand, runs recorded with a stopwatch, and synthetic scenes. Prints what is wrong, then how often
//! each finding is right; fails if something fell below the previous level.

mod cases;
mod entry;
mod floor;
mod judge;
mod report;
mod scenes;
mod tally;

use std::path::{Path, PathBuf};

use regex::Regex;

use crate::run::{Outcome, built_with_tests, cargo, target};
use crate::skips::Skips;

/// What was asked for.
#[derive(Default)]
struct Options {
    /// The binary; built if none is named.
    binary: Option<PathBuf>,
    /// Only cases with matching names, and no scenes.
    only: Option<Regex>,
    /// Updates the recorded level.
    write: bool,
}

/// Runs it with these arguments.
pub(crate) fn truth(args: &[&str]) -> Outcome {
    let options = options(args)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => optimised()?,
    };
    hold(&binary, &options)
}

/// What a check runs: with the binary that the other tests use.
pub(crate) fn check(skips: &mut Skips) -> Outcome {
    if !floor::documented()? {
        return Err(
            "the tables in docs/agreement.md do not match xtask/truth.json; run cargo xtask truth --write"
                .into(),
        );
    }
    if cases::corpus().is_none() {
        skips.note(
            "truth of recordings",
            "there is no corpus",
            "STEPSCOPE_CORPUS names a folder of real profiles; then run `cargo xtask truth`",
        );
    }
    let binary = built_with_tests("stepscope")?;
    hold(&binary, &Options::default())
}

fn hold(binary: &Path, options: &Options) -> Outcome {
    println!("==> truth");
    let only = |name: &str| options.only.as_ref().is_none_or(|only| only.is_match(name));
    let mut sources = match cases::corpus() {
        Some(corpus) => cases::judge(&corpus, binary, &only)?,
        None => {
            println!("    no corpus of recordings (STEPSCOPE_CORPUS): checking only the scenes");
            Vec::new()
        }
    };
    if options.only.is_none() {
        sources.push(scenes::judge()?);
    }
    println!("\n{}\n", tally::tables(&sources));
    if options.only.is_some() {
        return Ok(());
    }
    if options.write {
        return floor::write(&sources);
    }
    let fallen = floor::fallen(&floor::read()?, &sources);
    if fallen.is_empty() {
        return Ok(());
    }
    Err(format!("fewer reports are right than before:\n    {}", fallen.join("\n    ")))
}

fn options(args: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg {
            "--write" => options.write = true,
            "--bin" => options.binary = Some(PathBuf::from(value()?)),
            "--only" => options.only = Some(Regex::new(value()?).map_err(|error| error.to_string())?),
            _ => return Err(format!("unknown argument {arg}")),
        }
    }
    Ok(options)
}

fn optimised() -> Result<PathBuf, String> {
    cargo("truth: binary", &["build", "--release", "--quiet", "-p", "stepscope"])?;
    Ok(target().join("release/stepscope"))
}
