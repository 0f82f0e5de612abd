//! `stepscope fleet plan`, `partial` and `merge`: the fleet as the tasks of an array.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use stepscope_fleet::store::{self, partials_in, read_whole};
use stepscope_fleet::{Set, Shard, Work, finish_with, partial, plan};
use stepscope_read::{Progress, files};
use stepscope_render::format::plural;
use stepscope_session::{Cause, Problem};

use super::options::{PlanOptions, WorkerOptions, add_all, missing, outside, worse};
use super::{in_file, problem};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::progress::with_bar;

/// List what there is to read, as a file that the tasks of an array share.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet plan logs/ -o plan.json\n  \
    stepscope fleet plan logs/ --since 1d -o plan.json    only the last day")]
pub(super) struct PlanArgs {
    /// Log directories or profiles.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    options: PlanOptions,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How much one piece of work reads at most, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    group_bytes: u64,
}

impl PlanArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let options = stepscope_fleet::Options { group_bytes: self.group_bytes, ..self.options.options() };
        let planned = with_bar(&Progress::new(), || plan(&self.paths, &options));
        let works = planned.map_err(|error| problem(&error))?;
        if works.is_empty() {
            return Err(Problem::new(Cause::Nothing, "there is nothing to plan")
                .then("found no profile below the paths, or none since the given date")
                .then("give folders with profiles")
                .into());
        }
        let mut text = serde_json::to_string(
            &json!({ "stepscope_plan": 1, "id": Work::plan_id(&works), "works": works }),
        )
        .map_err(std::io::Error::other)?;
        text.push('\n');
        match &self.output {
            Some(path) => {
                outside(path, &self.paths, "--output")?;
                store::write(path, text.as_bytes()).map_err(|error| problem(&error))?;
            }
            None => terminal.stdout_as(true).write_all(text.as_bytes())?,
        }
        let hosts: usize = works.iter().flat_map(|work| &work.pieces).map(|piece| piece.inputs.len()).sum();
        terminal.remark(&format!(
            "planned {} in {}; use at most as many shards",
            plural(hosts as u64, "host", "hosts"),
            plural(works.len() as u64, "piece of work", "pieces of work")
        ));
        Ok(Exit::Done)
    }
}

fn read_plan(path: &Path) -> Result<Vec<Work>, Problem> {
    let wrong = |what: String| {
        Problem::new(Cause::Usage, format!("{} is not a plan", path.display()))
            .then(what)
            .then("make one with `stepscope fleet plan PATH -o plan.json`")
    };
    let text = files::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut value: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if value.get("stepscope_plan").and_then(Value::as_u64) != Some(1) {
        return Err(wrong("found other content, or a plan of another version".to_owned()));
    }
    serde_json::from_value(value["works"].take()).map_err(|error| wrong(error.to_string()))
}

/// Read one shard of a plan, and write its results as a partial.
///
/// The shard comes from --shard, else from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX. A shard that is already there
/// is not read again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet partial plan.json --shard 3/16 -o parts/\n  \
    sbatch --array=0-15 --wrap 'stepscope fleet partial plan.json -o parts/'\n  \
    stepscope fleet partial plan.json --shards 16 -o parts/    in an indexed Kubernetes job with 16 completions")]
pub(super) struct PartialArgs {
    /// The plan.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Which shard, counted from 0 [default: from the scheduler; all if there is none].
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with = "shards")]
    shard: Option<Shard>,
    /// How many shards there are, where the scheduler does not say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shards: Option<u32>,
    /// Folder for the partials.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    workers: WorkerOptions,
}

fn shard(text: &str) -> Result<Shard, String> {
    Shard::parse(text).map_err(|error| error.to_string())
}

impl PartialArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let works = read_plan(&self.plan)?;
        let variable = |name: &str| std::env::var(name).ok();
        let shard = self.shard.or_else(|| Shard::from_environment(self.shards, variable));
        let shard = match (shard, self.shards) {
            (Some(shard), _) => shard,
            (None, None | Some(1)) => Shard { index: 0, of: 1 },
            (None, Some(_)) => {
                return Err(Problem::new(Cause::Usage, "it is not known which shard this is")
                    .then("found neither --shard, SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX")
                    .then("give --shard I/N")
                    .into());
            }
        };
        let logs: Vec<PathBuf> = works
            .iter()
            .flat_map(|work| &work.pieces)
            .map(|piece| PathBuf::from(&piece.recording.folder))
            .collect();
        outside(&self.output, &logs, "--output")?;
        let id = Work::plan_id(&works);
        let path = self.output.join(shard.file_name());
        if is_done(&path, &id, shard) {
            terminal.remark(&format!("{} is there already", path.display()));
            return Ok(Exit::Done);
        }
        let mut set = Set::new();
        for work in shard.of_plan(&works) {
            let read = with_bar(&Progress::new(), || partial(&work, &self.workers.workers()));
            let bytes = read.map_err(|error| problem(&error))?;
            set.add(&bytes).map_err(|error| problem(&error))?;
        }
        set.settle();
        set.note_shard(&id, shard);
        let report =
            finish_with(&set, &stepscope_fleet::FinishOptions::default()).map_err(|error| problem(&error))?;
        let bytes = set.write().map_err(|error| problem(&error))?;
        store::write(&path, &bytes).map_err(|error| problem(&error))?;
        let mut out = terminal.stdout();
        writeln!(out, "{}: {}", path.display(), plural(report.covered, "host", "hosts"))?;
        out.flush()?;
        Ok(Exit::Done)
    }
}

/// Is there a whole partial of this shard of this plan, with every file read?
fn is_done(path: &Path, plan: &str, shard: Shard) -> bool {
    let set = read_whole(path).and_then(|bytes| Set::read(&bytes));
    set.is_ok_and(|set| set.has_shard(plan, shard) && !set.has_failures())
}

/// Merge partials into one.
///
/// Takes files and folders of partials, also merged ones: days make weeks. Partials that cannot be read are named, and
/// the others are merged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet merge parts/ -o day.part\n  \
    stepscope fleet merge monday.part tuesday.part -o week.part")]
pub(super) struct MergeArgs {
    /// Partials, or folders of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The merged partial.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl MergeArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (mut set, mut exit) = (Set::new(), Exit::Done);
        for path in &self.paths {
            let files = partials_in(path).map_err(|error| in_file(path, &error))?;
            // The result of an earlier merge may lie beside its parts; it adds nothing.
            exit = worse(exit, add_all(&mut set, &files, terminal));
        }
        if set.is_empty() {
            return Err(Problem::new(Cause::Nothing, "there is nothing to merge")
                .then("found no readable partial")
                .then("make some with `stepscope fleet partial`")
                .into());
        }
        let bytes = set.write().map_err(|error| problem(&error))?;
        store::write(&self.output, &bytes).map_err(|error| problem(&error))?;
        let report =
            finish_with(&set, &stepscope_fleet::FinishOptions::default()).map_err(|error| problem(&error))?;
        let mut out = terminal.stdout();
        writeln!(out, "{}: {}", self.output.display(), report.coverage())?;
        out.flush()?;
        Ok(worse(exit, missing(&report, terminal)))
    }
}
