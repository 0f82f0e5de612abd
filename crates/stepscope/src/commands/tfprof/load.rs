//! tfprof's files on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use stepscope_render::format::plural;
use stepscope_session::model::{Keep, Model, ModelFiles};
use stepscope_session::{Cause, Problem};

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

impl Files {
    pub(crate) fn load(&self, keep: Keep) -> Result<Model, Problem> {
        self.named()?.load(keep)
    }

    /// The files that were named.
    fn named(&self) -> Result<ModelFiles, Problem> {
        if self.profile_path.is_none() && self.graph_path.is_none() && self.run_meta_path.is_empty() {
            return Err(Problem::new(Cause::Usage, "no files given")
                .then("tfprof reads a saved profile, or a graph with its recorded runs")
                .then("give --profile_path FILE, or --graph_path FILE with --run_meta_path FILE,FILE,…"));
        }
        let runs = self.runs();
        if !self.run_meta_steps.is_empty() && self.run_meta_steps.len() != runs.len() {
            return Err(Problem::new(Cause::Usage, "--run_meta_steps does not match --run_meta_path")
                .then(format!(
                    "{} for {}",
                    plural(self.run_meta_steps.len() as u64, "number", "numbers"),
                    plural(runs.len() as u64, "file", "files")
                ))
                .then("give one number per file"));
        }
        Ok(ModelFiles {
            saved: self.profile_path.clone(),
            graph: self.graph_path.clone(),
            runs,
            run_steps: self.run_meta_steps.clone(),
            op_log: self.op_log_path.clone(),
            checkpoint: self.checkpoint_path.clone(),
        })
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
