//! `stepscope attach PID`: records a window of a Python program that runs already, then reports on it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stepscope_analyze::Selection;
use stepscope_capture::bench::Stop;
use stepscope_capture::run::Following;
use stepscope_capture::run::attach::{AttachError, FIRST, Request, attach};
use stepscope_session::{Cause, Problem, Query};

use super::report;
use crate::cli::FormArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::duration;

/// Record a Python program that runs already, then report why its steps are slow.
///
/// A program that runs with Python 3.14 or later is entered: a window of steady steps is recorded, with Python samples, and
/// the program goes on as before. Older programs are asked if they have a profiler server
/// (`tf.profiler.experimental.server.start`, `jax.profiler.start_server`). For all others, start the program with `stepscope
/// run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope attach 4242                       the verdict with its line\n  \
    stepscope attach 4242 --logdir logs         keep the recording there")]
pub(crate) struct AttachArgs {
    /// The process.
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Log directory for the recording [default: a new one below the system's folder for temporary files].
    #[arg(long, value_name = "DIR")]
    logdir: Option<PathBuf>,
    /// The interpreter that enters the process, of the same version [default: the one that runs it].
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Record so much time if no steps are seen, or over a profiler server.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    duration: Duration,
    /// How long to wait for steps before that.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    patience: Duration,
    /// How long to wait for a recording.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    form: FormArgs,
}

impl AttachArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let folder =
            || std::env::temp_dir().join(format!("stepscope-attach-{}-{}", self.pid, std::process::id()));
        let request = Request {
            pid: self.pid,
            into: self.logdir.clone().unwrap_or_else(folder),
            python: self.python.clone(),
            patience: self.patience,
            duration: self.duration,
            limit: self.timeout,
            stop: Stop::on_interrupt()?,
        };
        let before = RefCell::new(String::new());
        let say = |following: &Following| {
            let state = following.programs.first().map(|program| program.state.clone()).unwrap_or_default();
            if *before.borrow() != state && state == "recording" {
                terminal.remark("recording a window");
            }
            before.replace(state);
        };
        let session = attach(&request, &say).map_err(|error| problem(self.pid, &error))?;
        terminal.remark(&format!("recorded {}", session.display()));
        let wanted = Query { paths: vec![session], ..Query::default() };
        report::run(&wanted, Selection::default(), None, &self.form.form(), terminal)
    }
}

fn problem(pid: u32, error: &AttachError) -> Problem {
    let cannot = |cause, why: String, then: &str| {
        Problem::new(cause, format!("cannot record process {pid}")).then(why).then(then.to_owned())
    };
    let restart = "start it with `stepscope run -- …`, or record from inside it (stepscope.window)";
    match error {
        AttachError::NoProcess(_) => cannot(
            Cause::Usage,
            "there is no such process, or it belongs to another user".to_owned(),
            "look for it with `pgrep -af python`",
        ),
        AttachError::NotPython(_) => cannot(
            Cause::Usage,
            "it does not run Python".to_owned(),
            "give the process of the Python program itself",
        ),
        AttachError::TooOld((major, minor)) => cannot(
            Cause::Nothing,
            format!(
                "it runs Python {major}.{minor}, which cannot be entered from outside (Python {}.{} and later can), and it has \
                 no profiler server",
                FIRST.0, FIRST.1
            ),
            restart,
        ),
        AttachError::Refused(why) => cannot(
            Cause::Nothing,
            format!("its interpreter cannot be entered: {why}"),
            "this needs the right to trace the process (as its user or as root, see /proc/sys/kernel/yama/ptrace_scope), and an \
             interpreter of the same version (--python)",
        ),
        AttachError::Silent(_) => cannot(
            Cause::Nothing,
            error.to_string(),
            "its main thread may be in one long call, which nothing can interrupt; wait longer with --timeout",
        ),
        other => cannot(Cause::Nothing, other.to_string(), restart),
    }
}
