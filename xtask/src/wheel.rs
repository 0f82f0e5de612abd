//! The Python package: builds the wheel, installs it into environments of its own and runs its tests there, with every Python
//! that is at hand. Everything comes from the package index and lies below `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::python::{Environment, PYTHON, install};
use crate::run::{Outcome, run};
use crate::skips::Skips;

/// What builds the wheel.
const BUILDER: &str = "maturin==1.16.0";
/// Where wheels go.
const WHEELS: &str = "target/wheels";
/// The Pythons that are looked for, newest first. The first gets the libraries that frames and notebooks are tested with.
const PYTHONS: &[&str] = &["python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
/// Those libraries, and what checks the types. They need Python 3.11. A new release must not break a check overnight, so
/// versions are raised on purpose.
const LIBRARIES: &[&str] = &[
    "pandas==3.1.1",
    PYARROW,
    "polars==2.1.0",
    "duckdb==2.0.0",
    "pytest==9.2.0",
    "mypy==2.4.1",
    "nbclient==0.11.0",
    "nbformat==5.11.1",
    "ipykernel==7.4.0",
    DASK,
];
const PYARROW: &str = "pyarrow==26.0.1";
const DASK: &str = "dask[distributed]==2026.8.0";
/// Engines with the packages that each needs. Spark passes batches of Arrow on only where pandas is, and wants it below 3.
const ENGINES: &[(&str, &[&str])] =
    &[("ray", &["ray==2.60.0"]), ("dask", &[DASK]), ("spark", &["pyspark==4.3.0", "pandas==2.3.3", PYARROW])];

/// Hosts of the fleet on an engine.
const HOSTS: &str = "60";

/// The environment that builds.
fn builder() -> Environment {
    Environment::new("maturin", "target/wheel-venv", &[BUILDER])
}

/// The environments in which the wheel is tested, without the wheel itself.
fn testers() -> Vec<Environment> {
    let packages = |place| if place == 0 { LIBRARIES } else { &[] };
    pythons().into_iter().enumerate().map(|(place, python)| tester(python, packages(place))).collect()
}

fn tester(python: PathBuf, packages: &'static [&'static str]) -> Environment {
    let name = python.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let folder = format!("target/wheel-check-{name}");
    Environment { name, python, folder, packages, shared: false }
}

/// All of them.
pub(crate) fn environments() -> Vec<Environment> {
    std::iter::once(builder()).chain(testers()).collect()
}

/// Whether a wheel was built here before.
pub(crate) fn is_there() -> bool {
    builder().finished().is_some()
}

/// Builds the wheel with a profile of cargo. `dist` is what is published, and takes the longest.
pub(crate) fn build(profile: &str) -> Outcome {
    let builder = builder().made(&run)?;
    wheel(&builder, profile).map(|wheel| println!("{}", wheel.display()))
}

/// Builds a wheel and tests it with every Python; leaves it out where the package index cannot be reached.
pub(crate) fn check(skips: &mut Skips) -> Outcome {
    let builder = match builder().made(&run) {
        Ok(builder) => builder,
        Err(why) => {
            let how = "`cargo xtask wheel --check` builds and tests it where there is a network";
            skips.note("Python package", &why, how);
            return Ok(());
        }
    };
    let wheel = wheel(&builder, "dev")?;
    for (place, environment) in testers().iter().enumerate() {
        let python = tested(environment, &wheel)?;
        if place == 0 {
            types(&python)?;
            // The one engine that starts within seconds; `live --engines` has them all.
            if cfg!(unix) {
                on_engine("dask", &python)?;
            }
        }
    }
    Ok(())
}

/// Tests the wheel that was built last, as it is published: with every Python, and none of the libraries that only tests need,
/// which not every system has.
pub(crate) fn test() -> Outcome {
    let wheel = last_built()?;
    for python in pythons() {
        tested(&tester(python, &[]), &wheel)?;
    }
    Ok(())
}

/// The Python of an environment in which the wheel passed its tests.
fn tested(environment: &Environment, wheel: &Path) -> Result<PathBuf, String> {
    let python = with_wheel(environment, wheel)?;
    // Tests skip what needs the native module where it is missing; here it must not be.
    let demo = ["-B", "-m", "stepscope", "demo", "--json"];
    run(
        &format!("wheel: program with {}", environment.name),
        Command::new(&python).args(demo).stdout(Stdio::null()),
    )?;
    let tests = ["-B", "-m", "unittest", "discover", "--start-directory", "python/tests"];
    run(&format!("wheel: tests with {}", environment.name), Command::new(&python).args(tests))?;
    Ok(python)
}

/// As part of all checks: where it was built before, or where everything has to run.
pub(crate) fn check_if_there(skips: &mut Skips, make: bool) -> Outcome {
    if make || is_there() {
        return check(skips);
    }
    let how = "`cargo xtask wheel --check` builds and tests it (about 600 MB from the network)";
    skips.skip("Python package", &format!("{BUILDER} is not installed below target/"), how)
}

/// Runs the fleet on each engine, with a worker that is killed. Takes minutes, so that no other check includes it.
pub(crate) fn engines(skips: &mut Skips) -> Outcome {
    let wheel = wheel(&builder().made(&run)?, "dev")?;
    // Engines follow new versions of Python late.
    let python = ["python3.12", "python3.13", "python3.11", "python3.10"].into_iter().find_map(found);
    let python = python.unwrap_or_else(|| PathBuf::from("python3"));
    for &(engine, packages) in ENGINES {
        let python = match with_wheel(&tester(python.clone(), packages), &wheel) {
            Ok(python) => python,
            Err(why) => {
                skips.note(&format!("fleet on {engine}"), &why, "run it where the package can be installed");
                continue;
            }
        };
        on_engine(engine, &python)?;
    }
    Ok(())
}

/// Starts an engine, and compares the fleet on it with this machine's, also with a worker that is killed.
fn on_engine(engine: &str, python: &Path) -> Outcome {
    let script = ["-B", "python/tests/engines/run.py", engine, HOSTS];
    run(&format!("wheel: fleet on {engine}"), Command::new(python).args(script))
}

/// The type stubs against the module, and the package's own types.
fn types(python: &Path) -> Outcome {
    let stubs = ["-m", "mypy.stubtest", "stepscope._stepscope", "--ignore-missing-stub"];
    run("wheel: type stubs", Command::new(python).args(stubs))?;
    let types = ["-m", "mypy", "--ignore-missing-imports", "--package", "stepscope"];
    run("wheel: types", Command::new(python).args(types))
}

/// The Pythons at hand, newest first: on the path, or among those of pyenv.
fn pythons() -> Vec<PathBuf> {
    let found: Vec<PathBuf> = PYTHONS.iter().filter_map(|name| found(name)).collect();
    if found.is_empty() { vec![PathBuf::from(PYTHON)] } else { found }
}

fn found(name: &str) -> Option<PathBuf> {
    let home = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let entries = fs::read_dir(home.unwrap_or_default().join("versions")).into_iter().flatten().flatten();
    let installed = entries.map(|entry| entry.path().join("bin").join(name));
    // A name on the path may lead nowhere.
    std::iter::once(PathBuf::from(name)).chain(installed).find(|python| {
        let asked = Command::new(python).args(["-c", "import venv"]).output();
        asked.is_ok_and(|output| output.status.success())
    })
}

/// The Python of an environment with this wheel, in place of an earlier one.
fn with_wheel(environment: &Environment, wheel: &Path) -> Result<PathBuf, String> {
    let python = environment.made(&run)?;
    let what = format!("wheel: install for {}", environment.name);
    run(&what, install(&python).arg("--force-reinstall").arg(wheel))?;
    Ok(python)
}

/// Builds, and returns the wheel.
fn wheel(builder: &Path, profile: &str) -> Result<PathBuf, String> {
    let out = folder()?;
    // What an earlier build left would be found as well; it may not be there.
    let _ = fs::remove_dir_all(&out);
    let mut build = Command::new(builder);
    build.args(["-m", "maturin", "build", "--locked", "--profile", profile, "--out"]).arg(&out);
    run("wheel: build", &mut build)?;
    last_built()
}

fn folder() -> Result<PathBuf, String> {
    std::path::absolute(WHEELS).map_err(|error| error.to_string())
}

fn last_built() -> Result<PathBuf, String> {
    let out = folder()?;
    let entries = fs::read_dir(&out).map_err(|error| error.to_string())?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
    wheels.find(is_wheel).ok_or_else(|| format!("there is no wheel in {}", out.display()))
}
