//! `stepscope run -- CMD…`: runs a command as it is, and says in the end how fast its steps were, what it took of the
//! machine, and what probably holds it up. [`page`] brings together what was recorded and what a profile shows.

mod page;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use stepscope_capture::grpc::Address;
use stepscope_capture::run::{Ended, Options, ProfileRequest, RunError, record, write_whole};
use stepscope_capture::sample::Nvml;
use stepscope_read::discover::RUN_FILE;
use stepscope_render::run as render;
use stepscope_session::{Exit, Problem};

use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::duration;

pub(super) use page::usage;

/// Samples lie beside the run's own file.
const SAMPLES_FILE: &str = "samples.csv";

/// Run a command and tell how fast its steps were, what it took of the machine, and what may hold it up.
///
/// The command runs as it would without us: its input, output and exit code are its own. Steps are timed by what it
/// prints (progress bars, `step 12/100`, `4.2it/s`) or writes into event files. The page comes on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope run -- python train.py --epochs 1                one page at the end\n  \
    stepscope run --batch-size 64 -- python train.py           examples a second as well\n  \
    stepscope run --profiler-port 6009 -- python train.py      and a profile of the steady state: a verdict, not a hint\n  \
    stepscope run --save before -- python train.py             then change something and --save after\n  \
    stepscope compare before after                             did it pay?")]
pub(crate) struct RunArgs {
    /// Examples in a batch, for examples a second.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch_size: Option<u64>,
    /// Where the command writes event files and profiles [default: the working directory].
    #[arg(long, value_name = "DIR")]
    logdir: Option<PathBuf>,
    /// Save the run into a new folder, for `compare`, `gate` and `report`.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Write JSON (schema stepscope.run.v1) into FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The command starts a profiler server on this port: take a short profile once its steps are steady.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    profiler_port: Option<u16>,
    /// How long that profile is.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, requires = "profiler_port")]
    profile_duration: Duration,
    /// How often to sample the hardware.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Duration,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How often to sample: samples that come more often cost more than they tell.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length < Duration::from_millis(10) {
        return Err("give at least 10ms".to_owned());
    }
    Ok(length)
}

/// NVIDIA's library, where the system's loader would not find it.
pub(super) fn nvml() -> Nvml {
    std::env::var_os("STEPSCOPE_NVML_PATH").map_or(Nvml::Installed, |path| Nvml::At(path.into()))
}

impl RunArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        if let Some(folder) = &self.save {
            make_folder(folder)?;
        }
        let recorded = record(&self.options()).map_err(problem)?;
        let page = page::page(&self.command, self.batch_size, &recorded, self.save.as_deref());
        let mut document = Vec::new();
        render::write_json(&page, &mut document)?;
        let places =
            self.json.clone().into_iter().chain(self.save.as_ref().map(|folder| folder.join(RUN_FILE)));
        for path in places {
            // The command has run and its exit code counts; what could not be written is said all the same.
            if let Err(error) = write_whole(&path, &document) {
                terminal.report(&unwritable(&path, &error));
            }
        }
        let mut words = Vec::new();
        render::write_text(&page, terminal.err, &mut words)?;
        // Whoever closed standard error does not want the page.
        let _ = io::stderr().write_all(&words);
        Ok(Exit::OfCommand(recorded.ended.shell_code()))
    }

    fn options(&self) -> Options {
        let logdir = self.logdir.clone().unwrap_or_else(|| PathBuf::from("."));
        let into = self
            .save
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("stepscope-run-{}", std::process::id())));
        let request = |port| ProfileRequest {
            address: Address { host: "localhost".to_owned(), port },
            duration: self.profile_duration,
            into: into.clone(),
        };
        Options {
            command: self.command.clone(),
            logdir,
            batch_size: self.batch_size,
            interval: self.interval,
            samples: self.save.as_ref().map(|folder| folder.join(SAMPLES_FILE)),
            profile: self.profiler_port.map(request),
            nvml: nvml(),
        }
    }
}

/// A folder for a run; one that holds a run already is not written over.
fn make_folder(folder: &Path) -> Result<(), Problem> {
    if folder.join(RUN_FILE).exists() {
        return Err(Problem::new(Exit::Usage, format!("{} holds a run already", folder.display()))
            .then(format!("found {RUN_FILE} there"))
            .then("name another folder after --save"));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Exit::Usage, format!("cannot write {}", path.display()))
        .then(error.to_string())
        .then("name a place that you may write to")
}

/// Why a command did not run; exit codes are those of shells.
pub(super) fn problem(error: RunError) -> Problem {
    match error {
        RunError::Start { program, error } => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let code = if missing { 127 } else { 126 };
            Problem::new(Exit::OfCommand(code), format!("cannot start `{}`", program.to_string_lossy()))
                .then(if missing { "there is no such program".to_owned() } else { error.to_string() })
                .then("check its name and PATH; shell syntax needs a shell: stepscope run -- sh -c '…'")
        }
        RunError::Samples { path, error } => unwritable(&path, &error),
        RunError::Nothing => Problem::new(Exit::Usage, "no command to run")
            .then("found nothing after run")
            .then("stepscope run -- python train.py"),
        RunError::System(error) => Problem::new(Exit::Nothing, "the command could not be watched")
            .then(error.to_string())
            .then("try again; run it without stepscope if this stays"),
    }
}

/// How a shell would show the end of a command.
pub(super) fn signal(ended: Ended) -> Option<i32> {
    match ended {
        Ended::Signal(number) => Some(number),
        Ended::Code(_) => None,
    }
}
