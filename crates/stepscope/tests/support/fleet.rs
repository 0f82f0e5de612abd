//! Folders full of small profiles, and `stepscope fleet` run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::{root, stepscope};

/// A log directory, with a cache and a place for results beside it.
pub struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        Fleet { folder }
    }

    /// Three causes: a job that waits for input, a host that is slow in two jobs, and a job that became slower.
    pub fn planted() -> Self {
        let fleet = Fleet::new();
        for host in 0..6 {
            fleet.place("data/loader", 1, host + 20, "tf-input-bound");
        }
        for job in ["vision/a", "vision/b"] {
            for host in 0..5 {
                fleet.place(job, 1, host, if host == 3 { "jax-train" } else { "jax-plain" });
            }
        }
        for day in 1..=6 {
            fleet.place("nightly", day, 40, if day < 5 { "keras-fit" } else { "keras-plain" });
        }
        fleet
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn place(&self, job: &str, day: u32, host: u32, fixture: &str) -> PathBuf {
        let folder = self.path("logs").join(job).join(format!("plugins/profile/2026_03_{day:02}_04_00_00"));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("node-{host:03}.xplane.pb"));
        fs::copy(profile(&root().join("fixtures").join(fixture)), &file).unwrap();
        file
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = stepscope();
        command.arg("fleet").args(args).env("XDG_CACHE_HOME", self.path("cache"));
        for name in
            ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX"]
        {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", said(&output)))
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn profile(fixture: &Path) -> PathBuf {
    let mut todo = vec![fixture.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(".xplane.pb") {
            return path;
        }
    }
    panic!("no profile in {}", fixture.display())
}

/// Files that were written completely.
pub fn support_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        let Ok(entries) = fs::read_dir(&path) else { continue };
        for entry in entries.flatten().map(|entry| entry.path()) {
            if entry.is_dir() {
                todo.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "part") {
                files.push(entry);
            }
        }
    }
    files.sort();
    files
}
