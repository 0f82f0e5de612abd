//! A model of classic TensorFlow: its graph, its runs, its op log and its checkpoint, read and put together for the
//! views of tfprof. The command line names the files; the page takes those that lie beside a run ([`ModelFiles::found_near`]).

mod find_files;

use std::path::{Path, PathBuf};

use stepscope_read::ReadError;
use stepscope_read::tf::{self, Damages, Found, Kind};
use stepscope_tfgraph::NodeRecord;
use stepscope_tfprof::Profile;

use crate::problem::{Cause, Problem};

/// The files of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelFiles {
    /// A saved profile, which stands for graph, runs and op log.
    pub saved: Option<PathBuf>,
    /// The graph, or an event file that carries it.
    pub graph: Option<PathBuf>,
    /// What runs recorded, a step each, or event files that carry them.
    pub runs: Vec<PathBuf>,
    /// Numbers of these steps where they are not 0, 1, 2, ….
    pub run_steps: Vec<i64>,
    /// The op log.
    pub op_log: Option<PathBuf>,
    /// The prefix of a checkpoint.
    pub checkpoint: Option<PathBuf>,
}

/// What else is to be kept of the files.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The values of variables.
    pub values: bool,
    /// What runs say beyond what tfprof reads, so that its mistakes can be corrected.
    pub calls: bool,
}

/// A model, and what was wrong with its files.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What views are computed from.
    pub profile: Profile,
    /// What was damaged.
    pub damage: Vec<Problem>,
    /// For each step, the share of the graph's nodes that are known to have run.
    pub coverage: Vec<f64>,
}

impl ModelFiles {
    /// Reads them.
    pub fn load(&self, keep: Keep) -> Result<Model, Problem> {
        let mut model = Model::default();
        if keep.calls {
            model.profile = Profile::to_be_fixed();
        }
        match &self.saved {
            Some(path) => {
                let found = tf::read_saved(path).map_err(unreadable)?;
                model.profile = Profile::of_saved(&model.take(path, found));
            }
            None => self.load_parts(&mut model)?,
        }
        if let Some(prefix) = &self.checkpoint {
            model.add_checkpoint(prefix, keep.values)?;
        }
        Ok(model)
    }

    fn load_parts(&self, model: &mut Model) -> Result<(), Problem> {
        if let Some(path) = &self.graph {
            model.add_graph(path)?;
        }
        if let Some(path) = &self.op_log {
            let found = tf::read_op_log(path).map_err(unreadable)?;
            let log = model.take(path, found);
            model.profile.add_op_log(&log);
        }
        for (at, path) in self.runs.iter().enumerate() {
            model.add_runs(path, self.run_steps.get(at).copied())?;
        }
        Ok(())
    }

    /// The files as options of `stepscope tfprof`, each with its value.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let text = |path: &PathBuf| path.display().to_string();
        let mut options = Vec::new();
        let mut add = |name: &'static str, path: &Option<PathBuf>| {
            options.extend(path.as_ref().map(|path| (name, text(path))));
        };
        add("--profile_path", &self.saved);
        add("--graph_path", &self.graph);
        add("--op_log_path", &self.op_log);
        add("--checkpoint_path", &self.checkpoint);
        // A comma in a name would part it.
        if self.runs.iter().any(|path| text(path).contains(',')) {
            options.extend(self.runs.iter().map(|path| ("--run_meta_path", text(path))));
        } else if !self.runs.is_empty() {
            let runs: Vec<String> = self.runs.iter().map(text).collect();
            options.push(("--run_meta_path", runs.join(",")));
        }
        options
    }
}

impl Model {
    /// The value, once its damage is noted.
    fn take<T>(&mut self, path: &Path, found: Found<T>) -> T {
        self.note(path, &found.damage);
        found.value
    }

    fn note(&mut self, path: &Path, damage: &Damages) {
        self.damage.extend(damage_of(path, damage));
    }

    fn add_graph(&mut self, path: &Path) -> Result<(), Problem> {
        match tf::read_graph(path) {
            Ok(found) => {
                let graph = self.take(path, found);
                self.profile.add_graph(&graph);
                Ok(())
            }
            Err(error) if is_events(&error) => self.add_graphs_of_events(path),
            Err(error) => Err(unreadable(error)),
        }
    }

    fn add_graphs_of_events(&mut self, path: &Path) -> Result<(), Problem> {
        let events = tf::read_events(path).map_err(unreadable)?;
        let events = self.take(path, events);
        if events.graphs.is_empty() {
            return Err(carries_none(path, "graph"));
        }
        for place in &events.graphs {
            let bytes = events.bytes.get(place.clone()).unwrap_or_default();
            let found = tf::graph_of(path, bytes, Damages::default()).map_err(unreadable)?;
            let graph = self.take(path, found);
            self.profile.add_graph(&graph);
        }
        Ok(())
    }

    /// A checkpoint adds little; without it the view is still worth showing.
    fn add_checkpoint(&mut self, prefix: &Path, with_values: bool) -> Result<(), Problem> {
        match tf::read_checkpoint(prefix, with_values) {
            Ok(found) => {
                let checkpoint = self.take(prefix, found);
                self.profile.add_variables(checkpoint.variables);
            }
            Err(error @ ReadError::Io { .. }) => return Err(unreadable(error)),
            Err(error) => {
                let problem = Problem::new(Cause::Damaged, error.to_string())
                    .then("its index is truncated or damaged, so its variables are not shown")
                    .then("save it again, or omit --checkpoint_path");
                self.damage.push(problem);
            }
        }
        Ok(())
    }

    fn add_runs(&mut self, path: &Path, number: Option<i64>) -> Result<(), Problem> {
        let step = number.unwrap_or(self.coverage.len() as i64);
        let read = tf::read_run(path, &mut |device, record| self.profile.add_record(step, device, record));
        match read {
            Ok(found) => self.end_run(path, step, found),
            Err(error) if is_events(&error) => self.add_runs_of_events(path)?,
            Err(error) => return Err(unreadable(error)),
        }
        Ok(())
    }

    fn add_runs_of_events(&mut self, path: &Path) -> Result<(), Problem> {
        let events = tf::read_events(path).map_err(unreadable)?;
        let events = self.take(path, events);
        if events.runs.is_empty() {
            return Err(carries_none(path, "run metadata"));
        }
        for run in &events.runs {
            let step = self.coverage.len() as i64;
            let bytes = events.bytes.get(run.place.clone()).unwrap_or_default();
            let mut visit = |device: &str, record: &NodeRecord<'_>| {
                self.profile.add_record(step, device, record);
            };
            let found = tf::run_of(path, bytes, Damages::default(), &mut visit).map_err(unreadable)?;
            self.end_run(path, step, found);
        }
        Ok(())
    }

    fn end_run(&mut self, path: &Path, step: i64, found: Found<tf::RunSummary>) {
        let summary = self.take(path, found);
        if summary.records == 0 {
            let problem =
                Problem::new(Cause::Damaged, format!("{} contains no node records", path.display()))
                    .then("the run was not traced, so its step is empty")
                    .then("record with RunOptions(trace_level=RunOptions.FULL_TRACE)");
            self.damage.push(problem);
        }
        self.profile.end_step(step, &summary.devices);
        self.coverage.push(self.profile.coverage());
    }
}

fn is_events(error: &ReadError) -> bool {
    matches!(error, ReadError::WrongKind { found: Some(found), .. } if *found == Kind::Events.name())
}

fn carries_none(path: &Path, what: &str) -> Problem {
    Problem::new(Cause::Nothing, format!("{} contains no {what}", path.display()))
        .then("it is an event file without that data")
        .then("record it with FileWriter.add_graph and FileWriter.add_run_metadata")
}

/// A file that gives nothing.
fn unreadable(error: ReadError) -> Problem {
    let problem = Problem::new(Cause::Nothing, error.to_string());
    let option = match &error {
        ReadError::WrongKind { found: Some(found), .. } => option_of(found),
        _ => None,
    };
    match (error, option) {
        (_, Some(option)) => problem.then(format!("pass it with {option}")),
        (ReadError::WrongKind { .. }, None) => {
            problem.then("tfprof does not know this kind of file").then("check the file name")
        }
        (ReadError::Empty { .. }, _) => problem.then("it contains 0 bytes").then("record it again"),
        (ReadError::Damaged { .. }, _) => {
            problem.then("nothing before that place could be read").then("record it again")
        }
        _ => problem.then("check the path"),
    }
}

/// The option for a file of this kind.
fn option_of(kind: &str) -> Option<&'static str> {
    let options = [
        (Kind::Graph, "--graph_path"),
        (Kind::GraphText, "--graph_path"),
        (Kind::Run, "--run_meta_path"),
        (Kind::OpLog, "--op_log_path"),
        (Kind::Saved, "--profile_path"),
        (Kind::CheckpointIndex, "--checkpoint_path"),
        (Kind::XSpace, "`stepscope report`"),
    ];
    options.into_iter().find(|(known, _)| known.name() == kind).map(|(_, option)| option)
}

/// A file that gives a part.
fn damage_of(path: &Path, damage: &Damages) -> Option<Problem> {
    let first = damage.first()?;
    let place = first.at.map(|at| format!(" at byte {at}")).unwrap_or_default();
    let more = match damage.count() - 1 {
        0 => String::new(),
        1 => ", and 1 more place".to_owned(),
        more => format!(", and {more} more places"),
    };
    let what = format!("{} is damaged: {}{place}{more}", path.display(), first.what);
    Some(
        Problem::new(Cause::Damaged, what)
            .then("the numbers cover only the part that could be read")
            .then("record it again"),
    )
}
