//! `stepscope run -- CMD…`: runs a command unchanged, then reports its step times, resource use and likely
//! bottleneck. [`page`] combines the recorded data with the verdict of a profile.

mod page;

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use stepscope_capture::grpc::Address;
use stepscope_capture::run::{Ended, Following, Options, ProfileRequest, RunError, record};
use stepscope_capture::sample::Nvml;
use stepscope_read::discover::RUN_FILE;
use stepscope_render::run as render;
use stepscope_session::{Cause, Problem};

use super::serve::ServeArgs;
use crate::exit::Exit;

use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::duration;
use crate::screen::guarded;
use crate::write_file;
use stepscope_storage::write_atomically;

/// Name of the file with the samples of a saved run.
const SAMPLES_FILE: &str = "samples.csv";

/// Run a command, then report why its steps are slow, with the line of code.
///
/// The command runs as it would without stepscope: input, output and exit code are its own. A Python program that trains
/// with TensorFlow, Keras, JAX or PyTorch is recorded by itself, without a change to it: a window of steady steps, with
/// Python samples. Any other command is timed by its output (progress bars, `step 12/100`, `4.2it/s`) or its event files.
/// The summary is printed to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope run -- python train.py --epochs 1                the verdict with its line, and a summary\n  \
    stepscope run --serve -- python train.py                   then open the recording in the browser\n  \
    stepscope run --batch-size 64 -- python train.py           examples per second as well\n  \
    stepscope run --profiler-port 6009 -- python train.py      also profile the steady state, for a verdict instead of a hint\n  \
    stepscope run --save before -- python train.py             then change something and use --save after\n  \
    stepscope compare before after                             did the change help?")]
pub(crate) struct RunArgs {
    /// Number of examples in a batch, to report examples per second.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch_size: Option<u64>,
    /// Where the command writes event files and profiles [default: the working directory].
    #[arg(long, value_name = "DIR")]
    logdir: Option<PathBuf>,
    /// Save the run to a new folder, for `compare`, `gate` and `report`.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Write JSON (schema stepscope.run.v1) to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Take a short profile once steps are steady; the command must start a profiler server on this port.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    profiler_port: Option<u16>,
    /// Length of that profile.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, requires = "profiler_port")]
    profile_duration: Duration,
    /// Do not record Python programs; only time and monitor them.
    #[arg(long)]
    no_inject: bool,
    /// Do not record who holds device memory (also off with STEPSCOPE_MEMORY=0).
    #[arg(long)]
    no_memory: bool,
    /// Open the recording in the browser when the command has ended.
    #[arg(long, conflicts_with = "no_inject")]
    serve: bool,
    /// How often to sample the hardware.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Duration,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Sampling interval. Shorter intervals cost more than they show.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length < Duration::from_millis(10) {
        return Err("give at least 10ms".to_owned());
    }
    Ok(length)
}

/// NVIDIA's library, if the system's loader cannot find it.
pub(super) fn nvml() -> Nvml {
    std::env::var_os("STEPSCOPE_NVML_PATH").map_or(Nvml::Installed, |path| Nvml::At(path.into()))
}

impl RunArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        if let Some(folder) = &self.save {
            make_folder(folder)?;
        }
        let recorded = record(&self.options()).map_err(problem)?;
        let mut page = page::page(&self.command, self.batch_size, &recorded, self.save.as_deref());
        let profile = page.verdict.as_ref().map(|verdict| PathBuf::from(&verdict.path));
        let mut document = Vec::new();
        render::write_json(&page, &mut document)?;
        // The command has run and its exit code counts. Failed writes are still reported, and not called saved.
        let mut failed = Vec::new();
        if let (Some(folder), Some(error)) = (&self.save, &recorded.samples_lost) {
            failed.push(unwritable(&folder.join(SAMPLES_FILE), error));
        }
        let run = self.save.as_ref().map(|folder| folder.join(RUN_FILE)).filter(|_| failed.is_empty());
        for path in run.iter().chain(&self.json) {
            if let Err(error) = write_atomically(path, |out| out.write_all(&document)) {
                failed.push(unwritable(path, &error));
            }
        }
        if self.save.as_ref().is_some_and(|folder| !folder.join(RUN_FILE).is_file()) {
            page.saved = None;
        }
        for problem in &failed {
            terminal.report(problem);
        }
        let mut words = Vec::new();
        render::write_text(&page, terminal.err, &mut words)?;
        // If standard error is closed, nobody reads the summary.
        let _ = io::stderr().write_all(&guarded(&words));
        if let Some(profile) = profile.filter(|_| self.serve) {
            ServeArgs::of(profile).run(terminal)?;
        }
        Ok(Exit::OfCommand(recorded.ended.shell_code()))
    }

    fn options(&self) -> Options {
        let logdir = self.logdir.clone().unwrap_or_else(|| PathBuf::from("."));
        let into = self
            .save
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("stepscope-run-{}", std::process::id())));
        let request = |port| ProfileRequest {
            address: Address { host: "localhost".to_owned(), port, name: None },
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
            inject: (!self.no_inject && self.profiler_port.is_none()).then_some(into),
            memory: !self.no_memory,
            progress: io::stderr().is_terminal().then_some(say_progress),
            nvml: nvml(),
        }
    }
}

/// Says what happens to the command while it runs, one line per change.
fn say_progress(following: &Following) {
    if let Some(state) = following.trained().map(|program| &program.state) {
        let text = match state.as_str() {
            "recording" => "recording a window of steps",
            "recorded" => "recorded",
            _ => return,
        };
        // If standard error is closed, nobody reads it.
        let _ = writeln!(io::stderr(), "stepscope: {text}");
    }
}

/// Creates a folder for a run. A folder that already contains a run is not overwritten.
fn make_folder(folder: &Path) -> Result<(), Problem> {
    if folder.join(RUN_FILE).exists() {
        return Err(Problem::new(Cause::Usage, format!("{} already contains a run", folder.display()))
            .then(format!("found {RUN_FILE} there"))
            .then("set --save to another folder"));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    write_file::unwritable(path, Cause::Usage, error, "choose a writable location")
}

/// Explains why a command did not run; exit codes follow shell conventions.
pub(super) fn problem(error: RunError) -> Failure {
    let problem = match error {
        RunError::Start { program, error } => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let problem = Problem::new(Cause::Usage, format!("cannot start `{}`", program.to_string_lossy()))
                .then(if missing { "the program does not exist".to_owned() } else { error.to_string() })
                .then("check its name and PATH; to use shell syntax, run stepscope run -- sh -c '…'");
            return Failure::Start(if missing { 127 } else { 126 }, problem);
        }
        RunError::Samples { path, error } => unwritable(&path, &error),
        RunError::Nothing => Problem::new(Cause::Usage, "no command to run")
            .then("nothing follows `run`")
            .then("for example: stepscope run -- python train.py"),
        RunError::System(error) => Problem::new(Cause::Nothing, "cannot monitor the command")
            .then(error.to_string())
            .then("try again; if it keeps failing, run the command without stepscope"),
    };
    Failure::Problem(problem)
}

/// The signal that ended a command, as a shell would show it.
pub(super) fn signal(ended: Ended) -> Option<i32> {
    match ended {
        Ended::Signal(number) => Some(number),
        Ended::Code(_) => None,
    }
}
