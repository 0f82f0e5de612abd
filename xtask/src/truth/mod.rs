//! `cargo xtask truth`: the binary held against everything that carries a truth. Recordings of strangers that somebody
//! looked at by hand, runs that were recorded with a stopwatch beside them, and scenes that were made up. Prints what is
//! wrong, then how often each finding is right; fails where something fell below what was reached before.

mod cases;
mod entry;
mod floor;
mod judge;
mod report;
mod scenes;
mod tally;

use std::path::{Path, PathBuf};

use regex::Regex;

use crate::run::{Outcome, cargo};
use crate::skips::Skips;

/// What was asked for.
#[derive(Default)]
struct Options {
    /// The binary; built where none is named.
    binary: Option<PathBuf>,
    /// Only cases whose name matches, and no scenes.
    only: Option<Regex>,
    /// Renew what was reached.
    write: bool,
}

/// Runs it with these arguments.
pub(crate) fn truth(args: &[&str]) -> Outcome {
    let options = options(args)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built(&["build", "--release", "--quiet", "-p", "stepscope"], "release/stepscope")?,
    };
    hold(&binary, &options)
}

/// What a check runs: with the binary that the other tests use.
pub(crate) fn check(skips: &mut Skips) -> Outcome {
    if !floor::documented()? {
        return Err("the tables of docs/agreement.md are not those of xtask/truth.json; run cargo xtask truth --write".into());
    }
    if cases::corpus().is_none() {
        skips.note(
            "truth of recordings",
            "there is no corpus",
            "STEPSCOPE_CORPUS names a folder of real profiles; then run `cargo xtask truth`",
        );
    }
    let binary = built(&["build", "--quiet", "-p", "stepscope"], "debug/stepscope")?;
    hold(&binary, &Options::default())
}

fn hold(binary: &Path, options: &Options) -> Outcome {
    println!("==> truth");
    let only = |name: &str| options.only.as_ref().is_none_or(|only| only.is_match(name));
    let mut sources = match cases::corpus() {
        Some(corpus) => cases::judge(&corpus, binary, &only)?,
        None => {
            println!("    no corpus of recordings is at hand (STEPSCOPE_CORPUS): scenes alone");
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
        let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
        match arg {
            "--write" => options.write = true,
            "--bin" => options.binary = Some(PathBuf::from(value()?)),
            "--only" => options.only = Some(Regex::new(value()?).map_err(|error| error.to_string())?),
            _ => return Err(format!("unknown argument {arg}")),
        }
    }
    Ok(options)
}

fn built(args: &[&str], path: &str) -> Result<PathBuf, String> {
    cargo("truth: binary", args)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(target.join(path))
}
