//! `stepscope bench`: measures a model server, commands or an input pipeline. Each part is a file below
//! `bench/`. `stepscope-capture` measures; `stepscope-render` writes the text.

mod command;
mod infer;
mod input;
mod quantity;

pub(crate) use quantity::words;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stepscope_capture::bench::{BenchError, Stop};
use stepscope_render::bench as render;
use stepscope_results::Table;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::output::Terminal;

/// Measure a model server, a command or an input pipeline.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope bench infer http://localhost:8501/v1/models/m:predict --body request.json --rate 100\n  \
    stepscope bench command --against 'python new.py' -- python old.py\n  \
    stepscope bench input -- python pipeline.py")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    Infer(infer::InferArgs),
    Command(command::CommandArgs),
    Input(input::InputArgs),
}

impl BenchArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        match &self.part {
            Part::Infer(args) => args.run(terminal),
            Part::Command(args) => args.run(terminal),
            Part::Input(args) => args.run(terminal),
        }
    }
}

/// The output format of the figures.
#[derive(Copy, Clone, Debug, Args)]
struct FormArgs {
    /// Write JSON (schema stepscope.bench.v1).
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write CSV.
    #[arg(long)]
    csv: bool,
}

impl FormArgs {
    /// Writes the figures in the requested format.
    fn write(
        self,
        terminal: &Terminal,
        table: impl FnOnce() -> Table,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = terminal.stdout_as(self.json);
        match (self.json, self.csv) {
            (true, _) => render::write_json(&table(), &mut out)?,
            (_, true) => render::write_csv(&table(), &mut out)?,
            _ => text(&mut out)?,
        }
        Ok(out.flush()?)
    }
}

/// Makes Ctrl-C end the measurement instead of the program, from now on.
fn stop_on_interrupt() -> Result<Stop, Failure> {
    Ok(Stop::on_interrupt()?)
}

/// Shows the current activity if standard error is a terminal.
struct Watched(Option<ProgressBar>);

impl Watched {
    fn new() -> Watched {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(100));
            ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
                .map_or(bar.clone(), |style| bar.with_style(style))
        });
        Watched(bar)
    }

    fn say(&self, what: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Explains why nothing could be measured, and what to do.
fn problem(error: BenchError) -> Failure {
    let problem = match error {
        BenchError::Url(url) => Problem::new(Cause::Usage, format!("not a URL: {url:?}"))
            .then("expected http://HOST:PORT/PATH")
            .then("e.g. http://localhost:8501/v1/models/NAME:predict"),
        BenchError::Https => Problem::new(Cause::Usage, "https is not supported")
            .then("encryption would be measured along with the model")
            .then("measure the plain port, e.g. through kubectl port-forward or ssh -L"),
        BenchError::Header(header) => {
            Problem::new(Cause::Usage, format!("not a header or method: {header:?}"))
                .then("HTTP does not allow these characters")
                .then("give --header 'Name: value'")
        }
        BenchError::Resolve { host, source } => {
            Problem::new(Cause::Nothing, format!("cannot find the host {host:?}"))
                .then(source.to_string())
                .then("check the URL")
        }
        BenchError::Start { program, source } => {
            Problem::new(Cause::Nothing, format!("cannot start {program:?}"))
                .then(source.to_string())
                .then("check the path; to use shell syntax, run sh -c '…'")
        }
        other => Problem::new(Cause::Nothing, "cannot measure").then(other.to_string()),
    };
    Failure::Problem(problem)
}
