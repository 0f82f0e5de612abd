//! `stepscope tfprof`: views of TensorFlow's classic profiler, from its own files and with its own options.

mod args;
mod load;
mod prompt;
mod show;

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use stepscope_session::model::Keep;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;
use stepscope_tfprof::{Options, Preset, View};

use crate::failure::Failure;
use crate::load::named;
use crate::output::Terminal;
use args::Given;
use load::Files;
use show::Subject;

pub(crate) use args::with_two_dashes;

/// Show parameters, FLOPs, time and memory by name scope, graph, op type or line of code.
///
/// Takes tfprof's own files and options, and prints the same output. Without a view, it opens a prompt, or runs
/// the lines from standard input.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope tfprof scope --graph_path graph.pb --preset trainable_variables_parameter\n  \
    stepscope tfprof op --graph_path graph.pb --run_meta_path run_meta_0.pb,run_meta_1.pb --op_log_path op_log.pb\n  \
    stepscope tfprof scope --profile_path profile.pb --max_depth 3 --select micros,bytes --order_by micros\n  \
    stepscope tfprof graph --profile_path profile.pb --step 0 --output timeline:outfile=trace\n  \
    stepscope tfprof advise --profile_path profile.pb\n  \
    stepscope tfprof op --graph_path graph.pb --run_meta_path run_meta_0.pb --select micros,float_ops --fix\n  \
    stepscope tfprof --profile_path profile.pb              a prompt; an empty line shows the options")]
pub(crate) struct TfprofArgs {
    /// View to show; without it, a prompt opens.
    #[arg(value_enum, value_name = "VIEW")]
    view: Option<Query>,
    #[command(flatten)]
    files: Files,
    /// Start from the options of this preset.
    #[arg(long, value_enum, value_name = "NAME")]
    preset: Option<PresetName>,
    #[command(flatten)]
    given: Given,
    /// Correct tfprof's mistakes, and list what that changes: fused kernels, input ports, missing FLOPs and shapes.
    #[arg(long)]
    fix: bool,
    /// Write JSON (schema stepscope.tfprof.v1): the tree that tfprof's Python functions return.
    #[arg(long)]
    json: bool,
}

/// What to show.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Query {
    /// By name scope.
    Scope,
    /// From nodes to their inputs.
    Graph,
    /// By operation type.
    Op,
    /// By line of code; needs an op log with call stacks.
    Code,
    /// Advice from tfprof's checks.
    Advise,
}

impl Query {
    fn view(self) -> Option<View> {
        match self {
            Query::Scope => Some(View::Scope),
            Query::Graph => Some(View::Graph),
            Query::Op => Some(View::Op),
            Query::Code => Some(View::Code),
            Query::Advise => None,
        }
    }

    /// The view named by a word at the prompt.
    fn named(word: &str) -> Option<Self> {
        Query::value_variants().iter().copied().find(|it| match it.view() {
            Some(view) => view.name() == word,
            None => word == "advise",
        })
    }
}

/// The presets of ProfileOptionBuilder.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum PresetName {
    /// Time and requested memory, slowest first.
    #[value(name = "time_and_memory")]
    TimeAndMemory,
    /// Parameters of trainable variables.
    #[value(name = "trainable_variables_parameter")]
    TrainableVariablesParameter,
    /// Float operations, largest first.
    #[value(name = "float_operation")]
    FloatOperation,
}

impl PresetName {
    fn options(self) -> Options {
        match self {
            PresetName::TimeAndMemory => Preset::TimeAndMemory.options(),
            PresetName::TrainableVariablesParameter => Preset::TrainableVariablesParameter.options(),
            PresetName::FloatOperation => Preset::FloatOperation.options(),
        }
    }
}

impl TfprofArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        let base = self.preset.map_or_else(Options::default, PresetName::options);
        let options =
            self.given.on_top_of(base).map_err(|error| Problem::new(Cause::Usage, error.to_string()))?;
        let loaded = self.files.load(Keep { values: options.shows_values(), calls: self.fix })?;
        let fixed = self.fix.then(|| loaded.profile.fixed());
        let subject = Subject { profile: &loaded.profile, fixed: fixed.as_ref(), json: self.json };
        let shown = match self.view {
            Some(wanted) => show::show(&subject, wanted, &options, terminal),
            None if self.json => {
                let problem = Problem::new(Cause::Usage, "--json needs a view")
                    .then("no view was given")
                    .then("add scope, graph, op, code or advise after `tfprof`");
                return Err(problem.into());
            }
            None => {
                let interactive = std::io::stdin().is_terminal();
                prompt::run(&subject, &loaded.coverage, options, interactive, terminal)
            }
        };
        // Damage is reported even if the view cannot be shown.
        let damaged = named(&loaded.damage, terminal);
        let exit = shown?;
        Ok(if exit == Exit::Done { damaged } else { exit })
    }
}
