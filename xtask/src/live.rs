//! Tests against real programs: training loops in TensorFlow and JAX that are captured while they run, the Python helper
//! inside them, the official client of the Model Context Protocol, and a server of object stores. They need Pythons with these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::{Environment, list};
use crate::run::{Outcome, run, tests};
use crate::skips::Skips;

/// A Python with what some tests need.
struct Live {
    /// What it is for.
    name: &'static str,
    folder: &'static str,
    packages: &'static [&'static str],
    /// Names a Python that already has the packages; the tests read it.
    variable: &'static str,
    /// What the tests need, as in `STEPSCOPE_EXPECT`.
    needs: &'static str,
    /// The tests.
    tests: &'static [&'static str],
    /// How large it is.
    size: &'static str,
}

const FRAMEWORKS: Live = Live {
    name: "TensorFlow and JAX",
    folder: "target/live-venv",
    packages: &["tensorflow-cpu==2.21.0", "keras==3.15.0", "tensorboard==2.21.0", "jax[cpu]==0.10.2"],
    variable: "STEPSCOPE_TEST_PYTHON",
    needs: "frameworks",
    tests: &["capture_live", "distributed_live", "programs_live", "run_listens", "run_injects"],
    size: "2 GB",
};

const CLIENTS: Live = Live {
    name: "mcp",
    folder: "target/clients-venv",
    packages: &["mcp==2.3.0"],
    variable: "STEPSCOPE_TEST_CLIENTS",
    needs: "clients",
    tests: &["mcp_live"],
    size: "60 MB",
};

const STORES: Live = Live {
    name: "moto",
    folder: "target/stores-venv",
    packages: &["moto[server]==5.2.5"],
    variable: "STEPSCOPE_TEST_STORES",
    needs: "stores",
    tests: &["remote_live"],
    size: "320 MB",
};

/// The emulator of Azure's object store, an npm package: version, place, size.
const AZURITE: (&str, &str, &str) = ("azurite@3.37.0", "target/azurite", "360 MB");

/// The environments that have to be made, unless they are there.
pub(crate) fn environments() -> Vec<Environment> {
    let made = [FRAMEWORKS, CLIENTS, STORES].into_iter().filter(|live| live.named().is_none());
    made.map(|live| live.environment()).collect()
}

/// Runs the live tests, in environments that are created if necessary.
pub(crate) fn check() -> Outcome {
    all(true)
}

/// `make`: also installs Azurite, which no machine has to have.
fn all(make: bool) -> Outcome {
    let python = FRAMEWORKS.check()?;
    let helper = ["-B", "-m", "unittest", "discover", "--start-directory", "python/tests"];
    run("live: Python helper", Command::new(&python).args(helper))?;
    CLIENTS.check()?;
    stores(make)
}

/// A server of object stores is not worth a failure where it cannot be installed.
fn stores(make: bool) -> Outcome {
    match STORES.python() {
        Ok(_) => STORES.check_with(azurite(make).as_deref()).map(|_| ()),
        Err(why) => {
            println!("==> live: object stores\n    live: object stores: skipped, {why}");
            Ok(())
        }
    }
}

/// The emulator of Azure's object store, if it is there or can be installed; else a word about it.
fn azurite(make: bool) -> Option<PathBuf> {
    let (package, folder, size) = AZURITE;
    let folder = std::env::current_dir().ok()?.join(folder);
    let program = folder.join("node_modules/.bin/azurite-blob");
    let is_there = || fs::read_to_string(list(&folder)).is_ok_and(|installed| installed == package);
    if !is_there() && make {
        let install = ["install", "--silent", "--no-audit", "--no-fund", "--omit=optional", "--prefix"];
        let installed = fs::create_dir_all(&folder).map_err(|error| error.to_string()).and_then(|()| {
            run("live: Azurite", Command::new("npm").args(install).arg(&folder).arg(package))?;
            fs::write(list(&folder), package).map_err(|error| error.to_string())
        });
        if let Err(why) = installed {
            println!("    live: az://: skipped, {why}");
        }
    }
    if !is_there() {
        println!(
            "    live: az://: no {package}; `cargo xtask live` installs it (about {size} from the network)"
        );
        return None;
    }
    Some(program)
}

/// Runs the live tests where environments are there already, or may be made; says whether it ran those with frameworks.
pub(crate) fn check_if_there(skips: &mut Skips, make: bool) -> Result<bool, String> {
    let (frameworks, clients) = (make || FRAMEWORKS.is_there(), make || CLIENTS.is_there());
    let stores = make || STORES.is_there();
    if frameworks && clients && stores {
        return all(make).map(|()| true);
    }
    for (live, is_there) in [(FRAMEWORKS, frameworks), (CLIENTS, clients), (STORES, stores)] {
        let Live { name, variable, size, .. } = live;
        if is_there && name == STORES.name {
            self::stores(make)?;
        } else if is_there {
            live.check()?;
        } else {
            let how = format!("`cargo xtask live` makes one below target/ (about {size} from the network)");
            skips.skip("live tests", &format!("there is no Python with {name} ({variable})"), &how)?;
        }
    }
    Ok(frameworks)
}

impl Live {
    /// Runs its tests; returns its Python.
    fn check(&self) -> Result<PathBuf, String> {
        self.check_with(None)
    }

    /// The same, with an emulator of Azure's object store.
    fn check_with(&self, azurite: Option<&Path>) -> Result<PathBuf, String> {
        let python = self.python()?;
        for test in self.tests {
            let mut tests = tests();
            tests.args(["--test", test]).env(self.variable, &python).env("STEPSCOPE_EXPECT", self.needs);
            if let Some(azurite) = azurite {
                tests.env("STEPSCOPE_TEST_AZURITE", azurite);
                tests.env("STEPSCOPE_EXPECT", format!("{},azurite", self.needs));
            }
            run(&format!("live: {test}"), &mut tests)?;
        }
        Ok(python)
    }

    /// Its Python; installs what is missing.
    fn python(&self) -> Result<PathBuf, String> {
        self.named().map_or_else(|| self.environment().made(&run), Ok)
    }

    /// The Python that somebody wants to be used.
    fn named(&self) -> Option<PathBuf> {
        std::env::var_os(self.variable).map(PathBuf::from)
    }

    /// Whether it can be used without the network.
    fn is_there(&self) -> bool {
        self.named().is_some() || self.environment().finished().is_some()
    }

    fn environment(&self) -> Environment {
        Environment::new(self.name, self.folder, self.packages)
    }
}
