//! Python environments below `target`: each holds pinned packages, is made once and reused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::Outcome;

/// Runs one command of several: in the open ([`crate::run::run`]), or beside other work ([`crate::background`]).
pub(crate) type Runner<'a> = &'a dyn Fn(&str, &mut Command) -> Outcome;

/// The usual Python.
pub(crate) const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// A Python with some packages.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// What it is for.
    pub(crate) name: String,
    /// The Python that makes it.
    pub(crate) python: PathBuf,
    /// Its location; cargo's own folder is already ignored by git.
    pub(crate) folder: String,
    /// Its content: pinned, so that a new release only changes this line.
    pub(crate) packages: &'static [&'static str],
}

impl Environment {
    /// One of the usual Python.
    pub(crate) fn new(name: &str, folder: &str, packages: &'static [&'static str]) -> Self {
        Environment {
            name: name.to_owned(),
            python: PathBuf::from(PYTHON),
            folder: folder.to_owned(),
            packages,
        }
    }

    /// Its Python, if it is there with what it should hold.
    pub(crate) fn finished(&self) -> Option<PathBuf> {
        let folder = std::path::absolute(&self.folder).ok()?;
        let installed = fs::read_to_string(list(&folder)).ok()?;
        (installed == self.packages.join("\n")).then(|| program(&folder))
    }

    /// Its Python; installs what is missing.
    pub(crate) fn made(&self, run: Runner<'_>) -> Result<PathBuf, String> {
        if let Some(python) = self.finished() {
            return Ok(python);
        }
        let folder = std::path::absolute(&self.folder).map_err(|error| error.to_string())?;
        let python = program(&folder);
        let what = format!("environment: {}", self.name);
        run(&what, Command::new(&self.python).args(["-m", "venv", "--clear"]).arg(&folder))?;
        if !self.packages.is_empty() {
            run(&what, install(&python).arg("--no-cache-dir").args(self.packages))?;
        }
        let list = list(&folder);
        fs::write(&list, self.packages.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", list.display()))?;
        Ok(python)
    }
}

/// Installs packages, whose names follow, for the Python of an environment.
pub(crate) fn install(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// The Python of an environment.
fn program(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// The list of what is installed is written last: an environment without it was never finished.
pub(crate) fn list(folder: &Path) -> PathBuf {
    folder.join("packages.txt")
}
