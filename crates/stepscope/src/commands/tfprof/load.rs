//! Reads tfprof's files and combines them.

use std::path::{Path, PathBuf};

use clap::Args;
use stepscope_read::ReadError;
use stepscope_read::tf::{self, Damages, Found, Kind};
use stepscope_render::format::plural;
use stepscope_session::{Exit, Problem};
use stepscope_tfprof::Profile;

/// The files.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// A saved profile (ProfileProto); replaces all other files.
    #[arg(
        long = "profile_path",
        value_name = "FILE",
        conflicts_with_all = ["graph_path", "run_meta_path", "op_log_path"]
    )]
    profile_path: Option<PathBuf>,
    /// The graph (GraphDef), binary or text, or an event file that contains it.
    #[arg(long = "graph_path", id = "graph_path", value_name = "FILE")]
    graph_path: Option<PathBuf>,
    /// Recorded runs (RunMetadata, or event files that contain it), separated by commas: steps 0, 1, 2, ….
    #[arg(long = "run_meta_path", id = "run_meta_path", value_name = "FILES")]
    run_meta_path: Vec<String>,
    /// Step numbers for --run_meta_path, separated by commas, instead of 0, 1, 2, ….
    #[arg(
        long = "run_meta_steps",
        value_name = "NUMBERS",
        value_delimiter = ',',
        requires = "run_meta_path"
    )]
    run_meta_steps: Vec<i64>,
    /// The op log (tfprof_log): FLOPs, types and call stacks.
    #[arg(long = "op_log_path", id = "op_log_path", value_name = "FILE")]
    op_log_path: Option<PathBuf>,
    /// Prefix of a checkpoint, for variable values and the type _checkpoint_variables.
    #[arg(long = "checkpoint_path", value_name = "PREFIX")]
    checkpoint_path: Option<PathBuf>,
}

/// A profile, and the damage in its files.
pub(crate) struct Loaded {
    pub(crate) profile: Profile,
    pub(crate) damage: Vec<Problem>,
    /// For each step, the share of the graph's nodes that ran.
    pub(crate) coverage: Vec<f64>,
}

impl Files {
    pub(crate) fn load(&self, with_values: bool) -> Result<Loaded, Problem> {
        let mut loaded = Loaded { profile: Profile::default(), damage: Vec::new(), coverage: Vec::new() };
        match &self.profile_path {
            Some(path) => {
                let found = tf::read_saved(path).map_err(unreadable)?;
                loaded.profile = Profile::of_saved(&loaded.take(path, found));
            }
            None if self.graph_path.is_none() && self.run_meta_path.is_empty() => {
                return Err(Problem::new(Exit::Usage, "no files given")
                    .then("tfprof reads a saved profile, or a graph with its recorded runs")
                    .then(
                        "give --profile_path FILE, or --graph_path FILE with --run_meta_path FILE,FILE,…",
                    ));
            }
            None => self.load_parts(&mut loaded)?,
        }
        if let Some(prefix) = &self.checkpoint_path {
            loaded.add_checkpoint(prefix, with_values)?;
        }
        Ok(loaded)
    }

    fn load_parts(&self, loaded: &mut Loaded) -> Result<(), Problem> {
        if let Some(path) = &self.graph_path {
            loaded.add_graph(path)?;
        }
        if let Some(path) = &self.op_log_path {
            let found = tf::read_op_log(path).map_err(unreadable)?;
            let log = loaded.take(path, found);
            loaded.profile.add_op_log(&log);
        }
        let runs = self.runs();
        if !self.run_meta_steps.is_empty() && self.run_meta_steps.len() != runs.len() {
            return Err(Problem::new(Exit::Usage, "--run_meta_steps does not match --run_meta_path")
                .then(format!(
                    "{} for {}",
                    plural(self.run_meta_steps.len() as u64, "number", "numbers"),
                    plural(runs.len() as u64, "file", "files")
                ))
                .then("give one number per file"));
        }
        for (at, path) in runs.iter().enumerate() {
            loaded.add_runs(path, self.run_meta_steps.get(at).copied())?;
        }
        Ok(())
    }

    /// The run files: each value is a file, or several separated by commas.
    fn runs(&self) -> Vec<PathBuf> {
        let files = |value: &String| match Path::new(value).exists() {
            true => vec![PathBuf::from(value)],
            false => value.split(',').filter(|part| !part.is_empty()).map(PathBuf::from).collect(),
        };
        self.run_meta_path.iter().flat_map(files).collect()
    }
}

impl Loaded {
    /// Notes the damage and returns the value.
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

    /// A checkpoint adds little; without it, the view is still worth showing.
    fn add_checkpoint(&mut self, prefix: &Path, with_values: bool) -> Result<(), Problem> {
        match tf::read_checkpoint(prefix, with_values) {
            Ok(found) => {
                let checkpoint = self.take(prefix, found);
                self.profile.add_variables(checkpoint.variables);
            }
            Err(error @ ReadError::Io { .. }) => return Err(unreadable(error)),
            Err(error) => {
                let problem = Problem::new(Exit::Damaged, error.to_string())
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
            let mut visit = |device: &str, record: &stepscope_tfgraph::NodeRecord<'_>| {
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
            let problem = Problem::new(Exit::Damaged, format!("{} contains no node records", path.display()))
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
    Problem::new(Exit::Nothing, format!("{} contains no {what}", path.display()))
        .then("it is an event file without that data")
        .then("record it with FileWriter.add_graph and FileWriter.add_run_metadata")
}

/// Error for a file from which nothing could be read.
fn unreadable(error: ReadError) -> Problem {
    let problem = Problem::new(Exit::Nothing, error.to_string());
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

/// The option that takes this kind of file.
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

/// Error for a file that could be read in part.
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
        Problem::new(Exit::Damaged, what)
            .then("the numbers cover only the part that could be read")
            .then("record it again"),
    )
}
