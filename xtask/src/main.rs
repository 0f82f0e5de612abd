//! The project's own tasks, so that a machine with Rust, Node and Python needs nothing else: `cargo xtask
//! check` is what CI runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task reports to the person who runs it")]

mod arrows;
mod background;
mod browser;
mod citations;
mod docs;
mod doors;
mod format;
mod live;
mod package;
mod page;
mod portable;
mod python;
mod rooms;
mod run;
mod skips;
mod times;
mod truth;
mod types;
mod unused;
mod wheel;

use std::path::Path;
use std::process::{Command, ExitCode};

use background::Background;
use run::{FEATURES, Outcome, cargo, run, the_cargo};
use skips::Skips;
use times::Times;

const USAGE: &str = "\
cargo xtask check [--all]      every check: format, lints, docs, tests, arrows, packages, truth, live captures, page,
                               fuzzing. Leaves out what this machine cannot run and says how to run it; with --all,
                               which CI uses, that is an error
cargo xtask check --quick      format, lints and unit tests: minutes, before every commit
cargo xtask format             lay out all Rust files, also those that `cargo fmt` does not see
cargo xtask sources            what reads the sources and compiles nothing: format, arrows, packages, citations, types
cargo xtask page               the page alone: types, unit tests, a browser
cargo xtask arrows             do crates, and modules of the analyses, depend on each other in the right direction, and on
                               nothing that they do not use? Does only one place write text and open files?
cargo xtask package            pack all crates for crates.io, with the page, and compile them from their packages
cargo xtask types              write the page's types from docs/schema/
cargo xtask docs --write       write what is generated: docs/findings.md, docs/cli.md, the list of schemas, missing schemas
cargo xtask docs --examples    record the examples in README.md and docs/ again, with the frameworks of STEPSCOPE_TEST_PYTHON
cargo xtask truth [--write]    hold the reports against all recordings with a known truth; precision per finding
                               (--bin PATH: another binary; --only REGEX: some recordings)
cargo xtask live               record real training loops in TensorFlow and JAX; test the Python package
cargo xtask live --engines     run the fleet on Ray, Dask and Spark (minutes, 1.5 GB from the network); the wheel's check has Dask
cargo xtask wheel              build the Python package in target/wheels, with the profile `release` (--dev: without
                               optimisation; --dist: as it is published; --check: build without optimisation, install and
                               test with every Python at hand; --test: test what was built)
cargo xtask fuzz [--seconds N] damage inputs at random for N seconds per target (default 10)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // All paths below are relative to the repository, wherever the command was run.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Err(error) = std::env::set_current_dir(&root) {
        eprintln!("error: cannot enter {}: {error}", root.display());
        return ExitCode::FAILURE;
    }
    let outcome = match args[..] {
        ["check", ..] if SPARING.iter().any(|(name, _)| std::env::var_os(name).is_none()) => sparingly(&args),
        ["check"] => check(false),
        ["check", "--all"] => check(true),
        ["check", "--quick"] => quick(),
        ["format"] => format::write(),
        ["sources"] => sources().and_then(|()| package::check()),
        ["page"] => page::check(&mut Skips::new(true)),
        ["arrows"] => arrows::check()
            .and_then(|()| rooms::check())
            .and_then(|()| unused::check())
            .and_then(|()| doors::check()),
        ["package"] => package::whole(),
        ["types"] => types::write(),
        ["docs", "--write"] => docs::write(),
        ["docs", "--examples", ref names @ ..] => docs::examples(names),
        ["truth", ref rest @ ..] => truth::truth(rest),
        ["live"] => live::check().and_then(|()| wheel::check(&mut Skips::new(true))),
        ["live", "--engines"] => wheel::engines(&mut Skips::new(false)),
        ["wheel"] => wheel::build("release"),
        ["wheel", "--dev"] => wheel::build("dev"),
        ["wheel", "--dist"] => wheel::build("dist"),
        ["wheel", "--test"] => wheel::test(),
        ["wheel", "--check"] => wheel::check(&mut Skips::new(true)),
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

/// What a check builds is built once and never debugged: incremental state would take more space than all the rest (4.1 GB
/// beside 3.1 GB), and debug information triples the size of a test program. A panic still says its line. Settings of the
/// user's own win.
const SPARING: [(&str, &str); 2] = [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")];

/// Runs this program again with those settings.
fn sparingly(args: &[&str]) -> Outcome {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let missing = SPARING.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let status = Command::new(program).args(args).envs(missing).status();
    let status = status.map_err(|error| format!("cannot start again: {error}"))?;
    if status.success() { Ok(()) } else { Err("the check failed".to_owned()) }
}

/// Everything. `all`: nothing may be left out.
fn check(all: bool) -> Outcome {
    let mut times = Times::start(PARTS);
    let mut skips = Skips::new(all);
    let outcome = parts(&mut skips, &mut times, all);
    println!("{times}");
    outcome.map(|()| println!("{}", skips.summary()))
}

/// What is worth a few minutes before every commit.
fn quick() -> Outcome {
    let mut times = Times::start(3);
    let mut parts = || {
        times.part("sources", sources)?;
        times.part("lints", lints)?;
        times.part("unit tests", || run("unit tests", run::tests().args(["--lib", "--bins"])))
    };
    let outcome = parts();
    println!("{times}");
    outcome.map(|()| println!("format, lints and unit tests passed; `cargo xtask check` runs the rest"))
}

/// How many parts there are.
const PARTS: usize = 14;

/// All parts, in the order in which they are most likely to fail soon.
fn parts(skips: &mut Skips, times: &mut Times, all: bool) -> Outcome {
    times.part("sources", sources)?;
    let background = Background::start(environments(all));
    times.part("lints", lints)?;
    times.part("documentation", documentation)?;
    times.part("tests", || tests(skips))?;
    times.part("default features", default_features)?;
    times.part("package", package::check)?;
    times.part("Windows", || portable::windows(skips))?;
    times.part("dependencies", || dependencies(skips))?;
    times.part("truth", || truth::check(skips))?;
    times.part("environments", || background.finish());
    let live = times.part("live tests", || live::check_if_there(skips, all))?;
    skips.take_tests(live);
    times.part("Python package", || wheel::check_if_there(skips, all))?;
    times.part("page", || page::check(skips))?;
    // A short look at each target; `cargo xtask fuzz` takes longer ones.
    times.part("fuzzing", || fuzz("7"))
}

/// What reads the sources and compiles nothing.
fn sources() -> Outcome {
    format::check()?;
    arrows::check()?;
    rooms::check()?;
    unused::check()?;
    doors::check()?;
    portable::check()?;
    citations::check()?;
    types::check()
}

/// The Pythons that later parts need and may make.
fn environments(all: bool) -> Vec<python::Environment> {
    let mut wanted = if all { live::environments() } else { Vec::new() };
    if all || wheel::is_there() {
        wanted.extend(wheel::environments());
    }
    wanted
}

fn lints() -> Outcome {
    let mut lints = the_cargo();
    lints.args(["clippy", "--all-targets", "--quiet"]).args(FEATURES).args(["--", "-D", "warnings"]);
    run("lints", &mut lints)
}

/// All tests. Those that cannot run here write it down.
fn tests(skips: &Skips) -> Outcome {
    run("tests", run::tests().env("STEPSCOPE_SKIPPED", skips.watch_tests()?))
}

/// What a build without the feature `remote`, which all others have, does differently.
fn default_features() -> Outcome {
    cargo("default features", &["test", "--quiet", "--workspace", "--test", "remote"])
}

/// The documentation of all crates with their private parts, for people who work on them, without a warning.
fn documentation() -> Outcome {
    let mut docs = the_cargo();
    docs.args(["doc", "--no-deps", "--quiet", "--document-private-items"]).args(FEATURES);
    run("documentation", docs.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links"))
}

/// Licences, advisories and duplicates of what is depended on (`deny.toml`), where cargo-deny is installed.
fn dependencies(skips: &mut Skips) -> Outcome {
    let asked = Command::new("cargo").args(["deny", "--version"]).output();
    if asked.is_ok_and(|output| output.status.success()) {
        return cargo("dependencies", &["deny", "--all-features", "check", "--hide-inclusion-graph"]);
    }
    skips.note(
        "dependencies",
        "cargo-deny is missing",
        "`cargo install cargo-deny`, then `cargo deny check`",
    );
    Ok(())
}

/// Fuzzing that needs nothing but the stable toolchain; see CONTRIBUTING.md for the coverage-guided kind. A target needs one
/// core and counts the memory of its whole process, so there is a process per core.
fn fuzz(seconds: &str) -> Outcome {
    let fuzz = run::built_with_tests("stepscope-fuzz")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = |which| {
        let mut command = Command::new(&fuzz);
        command.args(["--seconds", seconds, "--share", &format!("{which}/{cores}")]);
        command
    };
    run::together("fuzzing", (1..=cores).map(share))
}
