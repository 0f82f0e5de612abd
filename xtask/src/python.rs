//! Python environments for the checks: each holds pinned packages, is made once and reused. Those that nothing is added to lie
//! in the user's cache, where all checkouts of the project share them; the others below `target`.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
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
    /// Whether other checkouts may use it, too: nothing is installed into it later.
    pub(crate) shared: bool,
    /// Its content: pinned, so that a new release only changes this line.
    pub(crate) packages: &'static [&'static str],
}

impl Environment {
    /// One of the usual Python, which all checkouts share.
    pub(crate) fn new(name: &str, folder: &str, packages: &'static [&'static str]) -> Self {
        Environment {
            name: name.to_owned(),
            python: PathBuf::from(PYTHON),
            folder: folder.to_owned(),
            shared: true,
            packages,
        }
    }

    /// Where it is made: below [`cache`] if it is shared and there is one, under a name that changes with what it holds.
    fn place(&self) -> Option<PathBuf> {
        let own = Path::new(&self.folder);
        let Some(cache) = cache().filter(|_| self.shared) else { return std::path::absolute(own).ok() };
        let mut hasher = DefaultHasher::new();
        (self.packages, version(&self.python)).hash(&mut hasher);
        let name = own.file_name().unwrap_or_default().to_string_lossy();
        Some(cache.join(format!("{name}-{:016x}", hasher.finish())))
    }

    /// Its Python, if it is there with what it should hold.
    pub(crate) fn finished(&self) -> Option<PathBuf> {
        // One that was made below `target` serves as well.
        let places = [std::path::absolute(&self.folder).ok(), self.place()];
        let is_complete = |folder: &PathBuf| {
            fs::read_to_string(list(folder)).is_ok_and(|installed| installed == self.packages.join("\n"))
        };
        places.into_iter().flatten().find(is_complete).map(|folder| program(&folder))
    }

    /// Its Python; installs what is missing.
    pub(crate) fn made(&self, run: Runner<'_>) -> Result<PathBuf, String> {
        if let Some(python) = self.finished() {
            return Ok(python);
        }
        let folder = self.place().ok_or("there is no current folder")?;
        // Of two checks that need it at the same time, one makes it.
        let _making = lock(&folder)?;
        if let Some(python) = self.finished() {
            return Ok(python);
        }
        let python = program(&folder);
        let what = format!("environment: {}", self.name);
        run(&what, Command::new(&self.python).args(["-m", "venv", "--clear"]).arg(&folder))?;
        if !self.packages.is_empty() {
            let mut pip = install(&python);
            // What is shared is installed once; what pip keeps would only take space.
            let keeps = if self.shared { &["--no-cache-dir"][..] } else { &[] };
            run(&what, pip.args(keeps).args(self.packages))?;
        }
        let list = list(&folder);
        fs::write(&list, self.packages.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", list.display()))?;
        Ok(python)
    }
}

/// The folder of shared environments: `STEPSCOPE_ENVIRONMENTS`, or in the user's cache; `None` if there is no such place.
fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let folder =
        variable("STEPSCOPE_ENVIRONMENTS").or_else(|| Some(caches()?.join("stepscope-environments")))?;
    fs::create_dir_all(&folder).is_ok().then_some(folder)
}

/// What a Python calls itself: another version needs an environment of its own.
fn version(python: &Path) -> Vec<u8> {
    Command::new(python).arg("--version").output().map(|output| output.stdout).unwrap_or_default()
}

/// Waits until nobody else makes an environment in this folder.
fn lock(folder: &Path) -> Result<File, String> {
    let mut path = folder.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&path));
    let locked = file.and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| format!("cannot lock {}: {error}", path.display()))
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
