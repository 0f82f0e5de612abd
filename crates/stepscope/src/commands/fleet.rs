//! `stepscope fleet`: many hosts, jobs and days. Plans, reads, merges and reports, on one machine or as the tasks of an
//! array.

mod array;
mod gate;
mod options;
mod report;
mod serve;
mod tables;
mod watch;

use clap::{Args, Subcommand};
use stepscope_fleet::FleetError;
use stepscope_session::{Cause, Problem, unreadable_file};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;

/// Report on many hosts, jobs and days: which jobs lose most and why, which hosts are repeatedly slow.
///
/// `fleet report` does all on this machine. For Slurm and Kubernetes arrays, `plan` lists the work, every task runs
/// `partial` on its shard, then `merge` and `report` combine the results. Order, repetition and restarts do not change
/// the result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet report logs/                               the ranked table of all jobs below logs/\n  \
    stepscope fleet report logs/ --devices hours.csv --html fleet.html\n  \
    stepscope fleet serve logs/ --open                         the same on a web page\n  \
    stepscope fleet plan logs/ -o plan.json                    then, in an array of 16 tasks:\n  \
    stepscope fleet partial plan.json --shards 16 -o parts/    the shard comes from the scheduler\n  \
    stepscope fleet merge parts/ -o day.part && stepscope fleet report day.part")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Report(report::ReportArgs),
    Plan(array::PlanArgs),
    Partial(array::PartialArgs),
    Merge(array::MergeArgs),
    Gate(gate::GateArgs),
    Watch(watch::WatchArgs),
    Serve(serve::ServeArgs),
}

impl FleetArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        match &self.command {
            FleetCommand::Report(args) => args.run(terminal),
            FleetCommand::Plan(args) => args.run(terminal),
            FleetCommand::Partial(args) => args.run(terminal),
            FleetCommand::Merge(args) => args.run(terminal),
            FleetCommand::Gate(args) => args.run(terminal),
            FleetCommand::Watch(args) => args.run(terminal),
            FleetCommand::Serve(args) => args.run(terminal),
        }
    }
}

/// An error of the fleet as the user sees it.
fn problem(error: &FleetError) -> Problem {
    match error {
        FleetError::Usage(text) => {
            let mut parts = text.split("; ");
            let first = Problem::new(Cause::Usage, parts.next().unwrap_or_default());
            parts.fold(first, Problem::then)
        }
        FleetError::Read(error) => unreadable_file(error),
        FleetError::File { path, error } => {
            Problem::new(Cause::Nothing, format!("cannot use {}", path.display()))
                .then(error.to_string())
                .then("check that the path exists, that it may be written, and that the disk has space")
        }
        FleetError::Newer { .. } => Problem::new(Cause::Damaged, error.to_string())
            .then("use that version of stepscope, or make the partial again with this one"),
        other => Problem::new(Cause::Damaged, other.to_string())
            .then("make the partial again with `stepscope fleet partial`"),
    }
}

/// The same for a file.
fn in_file(path: &std::path::Path, error: &FleetError) -> Problem {
    let inner = problem(error);
    let mut parts = inner.parts().iter();
    let first = format!("{}: {}", path.display(), parts.next().map(String::as_str).unwrap_or_default());
    parts.fold(Problem::new(inner.cause, first), |problem, part| problem.then(part.clone()))
}
