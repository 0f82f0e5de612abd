//! `stepscope fleet watch`: keeps a store up to date, and reads only what is new.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stepscope_fleet::store::{self, Cache, read_whole};
use stepscope_fleet::{Local, Set, Work, plan, run};
use stepscope_read::Progress;
use stepscope_render::fleet::write_html;
use stepscope_render::format::plural;

use super::options::{FinishArgs, PlanOptions, WorkerOptions, outside, said};
use super::tables::write_parquet;
use super::{in_file, problem};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::progress::with_bar;
use crate::quantity;

/// Keep a store of results up to date: reads only recordings that are new, and renews the tables.
///
/// The store is a folder with the merged partial (fleet.part), one Parquet file per table and a page (fleet.html).
/// Recordings stay in the store after their profiles are deleted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet watch logs/ --store fleet/              every 10 minutes until interrupted\n  \
    stepscope fleet watch logs/ --store fleet/ --once       once, for cron\n  \
    stepscope fleet gate fleet/fleet.part                   check what is in the store")]
pub(super) struct WatchArgs {
    /// Log directories.
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    plan: PlanOptions,
    #[command(flatten)]
    finish: FinishArgs,
    /// Folder of the store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// How long to wait between two looks.
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time, default_value = "10m")]
    every: Duration,
    /// Look once, then end.
    #[arg(long, conflicts_with = "every")]
    once: bool,
    #[command(flatten)]
    workers: WorkerOptions,
}

impl WatchArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        outside(&self.store, &self.paths, "--store")?;
        loop {
            self.look(terminal)?;
            if self.once {
                return Ok(Exit::Done);
            }
            std::thread::sleep(self.every);
        }
    }

    fn look(&self, terminal: &Terminal) -> Result<(), Failure> {
        let path = self.store.join("fleet.part");
        let mut set = match path.exists() {
            true => read_whole(&path)
                .and_then(|bytes| Set::read(&bytes))
                .map_err(|error| in_file(&path, &error))?,
            false => Set::new(),
        };
        let planned = with_bar(&Progress::new(), || plan(&self.paths, &self.plan.options()));
        let works = planned.map_err(|error| problem(&error))?;
        let works = new_in(works, &set);
        let local = Local {
            workers: self.workers.workers(),
            cache: Some(Cache::at(self.store.join("hosts"))),
            ..Local::default()
        };
        let before = set.write().map_err(|error| problem(&error))?;
        let new = with_bar(&local.progress, || run(&works, &local)).map_err(|error| problem(&error))?;
        set.join(new);
        set.settle();
        let after = set.write().map_err(|error| problem(&error))?;
        let report = self.finish.finished(&set, None)?;
        if before != after || !path.exists() {
            store::write(&path, &after).map_err(|error| problem(&error))?;
            write_parquet(&report, &self.store)?;
            let mut page = Vec::new();
            write_html(&report, &mut page)?;
            store::write(&self.store.join("fleet.html"), &page).map_err(|error| problem(&error))?;
        }
        said(&local, terminal);
        let done = local.done.load(std::sync::atomic::Ordering::Relaxed);
        let mut out = terminal.stdout();
        writeln!(
            out,
            "{} {} looked at. {}",
            plural(done, "new host", "new hosts"),
            was(done),
            stepscope_render::fleet::answer(&report)
        )?;
        out.flush()?;
        Ok(())
    }
}

fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// The work without recordings that are finished in the store.
fn new_in(works: Vec<Work>, set: &Set) -> Vec<Work> {
    let mut works = works;
    for work in &mut works {
        work.pieces.retain(|piece| !set.has_finished(&piece.recording.id));
    }
    works.retain(|work| !work.pieces.is_empty());
    works
}
