//! A computed view: its rows and its output forms.

use std::fmt;

use crate::code::{self, Tree};
use crate::display::in_order;
use crate::options::{Column, Options};
use crate::profile::Profile;
use crate::rows::Row;
use crate::{graph, json, op, pprof, scope, text, timeline};

/// A way to look at a profile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// By name scope.
    Scope,
    /// From nodes to their inputs.
    Graph,
    /// By operation type.
    Op,
    /// By line of code.
    Code,
}

impl View {
    /// All of them.
    pub const ALL: [View; 4] = [View::Scope, View::Graph, View::Op, View::Code];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            View::Scope => "scope",
            View::Graph => "graph",
            View::Op => "op",
            View::Code => "code",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.name() == name)
    }

    /// Whether a row is at most one node.
    pub(crate) fn is_single(self) -> bool {
        matches!(self, View::Scope | View::Graph)
    }
}

/// Why a view cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// The step is not in the profile, which has these.
    NoStep(i64, Vec<i64>),
    /// The code view needs call stacks.
    NoStacks,
    /// The output is not available for this view.
    NotForView(&'static str, &'static str),
    /// The timeline of the graph view needs a step, and there is none.
    NoSteps,
    /// pprof takes exactly one column of numbers.
    OneColumn,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::NoStep(step, steps) => {
                let steps: Vec<String> = steps.iter().map(i64::to_string).collect();
                let there = if steps.is_empty() { "none".to_owned() } else { steps.join(", ") };
                write!(f, "step {step} is not in the profile; steps there: {there}; choose one with --step")
            }
            ViewError::NoStacks => {
                f.write_str("the profile holds no call stacks; the code view needs them; add --op_log_path")
            }
            ViewError::NotForView(output, views) => {
                write!(f, "this view has no {output} output; {views}; choose another --output")
            }
            ViewError::NoSteps => {
                f.write_str("the profile holds no run; a timeline needs one; add --run_meta_path")
            }
            ViewError::OneColumn => f.write_str(
                "pprof output takes one column; time, memory, params or float_ops; give one with --select",
            ),
        }
    }
}

/// A computed view.
pub struct Shown<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a Options,
    pub(crate) view: View,
    pub(crate) rows: Vec<Row>,
    pub(crate) root: usize,
    /// Of the code view.
    tree: Option<Tree>,
}

impl<'a> Shown<'a> {
    /// Computes a view.
    pub fn new(profile: &'a Profile, view: View, options: &'a Options) -> Result<Self, ViewError> {
        if options.step >= 0 && !profile.steps.contains(&options.step) {
            return Err(ViewError::NoStep(options.step, profile.steps().collect()));
        }
        if view == View::Code && !profile.has_stacks {
            return Err(ViewError::NoStacks);
        }
        let tree = (view == View::Code).then(|| Tree::new(profile));
        let (rows, root) = match (&tree, view) {
            (Some(tree), _) => code::rows(profile, options, tree),
            (None, View::Graph) => graph::rows(profile, options),
            (None, View::Op) => op::rows(profile, options),
            (None, _) => scope::rows(profile, options),
        };
        Ok(Shown { profile, options, view, rows, root, tree })
    }

    /// What tfprof prints: the notice on missing streams, the columns explained, `Profile:`, the rows.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.profile.misses_streams {
            out += MISSING_STREAMS;
        }
        out += &doc(self.view, self.options, self.profile.is_fixed);
        out += "Profile:\n";
        out += &self.table();
        out
    }

    /// The rows alone, with the line above them.
    pub fn table(&self) -> String {
        let mut out = text::legend(self.view, self.options);
        let root = &self.rows[self.root];
        for at in in_order(&self.rows, self.root) {
            let row = &self.rows[at];
            out += &match self.view {
                View::Scope | View::Graph => text::single(self.profile, self.options, row),
                View::Code => text::code(self.options, row),
                View::Op if at == self.root => continue,
                View::Op => text::op(self.profile, self.options, row, root),
            };
        }
        out
    }

    /// What tfprof prints to standard output, including the options before and the end after it.
    pub fn report(&self) -> String {
        framed(self.options, &self.text())
    }

    /// The tree that tfprof returns, with its names, as JSON.
    pub fn json(&self) -> String {
        json::tree(self.profile, self.options, self.view, &self.rows, self.root)
    }

    /// Number of gradients that the code view had to exclude, because their forward operation is unknown.
    pub fn lost_gradients(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.lost)
    }

    /// The view as a Chrome trace, with the messages that tfprof prints for it.
    pub fn timeline(&self) -> Result<(String, Vec<String>), ViewError> {
        match self.view {
            View::Op => Err(ViewError::NotForView("timeline", "scope, graph and code do")),
            View::Graph if self.options.step < 0 => Err(ViewError::NoSteps),
            View::Graph => Ok(timeline::graph(self.profile, self.options.step, &self.rows, self.root)),
            View::Scope | View::Code => Ok((timeline::tree(&self.rows, self.root), Vec::new())),
        }
    }

    /// The view as a compressed pprof profile.
    pub fn pprof(&self) -> Result<Vec<u8>, ViewError> {
        let Some(tree) = &self.tree else {
            return Err(ViewError::NotForView("pprof", "only code does"));
        };
        let mut columns = self.options.select.iter();
        let column = match (columns.next(), columns.next()) {
            (Some(column), None) if pprof::can_show(*column) => *column,
            _ => return Err(ViewError::OneColumn),
        };
        Ok(pprof::profile(self.profile, self.options.step, tree, &self.rows, column))
    }
}

/// A report as tfprof frames it on standard output.
pub(crate) fn framed(options: &Options, body: &str) -> String {
    format!(
        "\n=========================Options=============================\n{}\
         \n==================Model Analysis Report======================\n{body}\
         \n======================End of Report==========================\n",
        options.echo()
    )
}

impl Options {
    /// What tfprof prints if a view cannot be shown: its options, and nothing between the lines.
    pub fn empty_report(&self) -> String {
        framed(self, "")
    }
}

const MISSING_STREAMS: &str = "\n\nFound accelerator operation but misses accelerator stream stats!\n\n\
    It's likely a gpu tracing issue rather than tf-profiler issue.\n\
    If you found your operation missing accelerator time, consider to post to discuss@tensorflow.org!\n\n";

/// What the columns mean, in tfprof's words.
fn doc(view: View, options: &Options, is_fixed: bool) -> String {
    let about = match view {
        // tfprof explains the scope view here.
        View::Graph if is_fixed => {
            "graph: The nodes are those of the model graph; below each are its inputs."
        }
        View::Scope | View::Graph => {
            "scope: The nodes in the model graph are organized by their names, which is hierarchical like filesystem."
        }
        View::Code => {
            "code: When python trace is available, the nodes are python lines and their are organized by the python \
             call stack."
        }
        View::Op => {
            "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type \
             are aggregated together."
        }
    };
    let columns: Vec<String> = options.select.iter().map(|column| doc_of(*column)).collect();
    format!("\nDoc:\n{about}\n{}\n\n", columns.join("\n"))
}

fn doc_of(column: Column) -> String {
    let total = "total execution time: Sum of accelerator execution time and cpu execution time.";
    let accelerator = "accelerator execution time: Time spent executing on the accelerator. This is normally \
        measured by the actual hardware library.";
    let cpu = "cpu execution time: The time from the start to the end of the operation. It's the sum of actual cpu \
        run time plus the time that it spends waiting if part of computation is launched asynchronously.";
    match column {
        Column::Bytes => "requested bytes: The memory requested by the operation, accumulatively.",
        Column::Micros => return format!("{total}\n{cpu}\n{accelerator}"),
        Column::Params => "param: Number of parameters (in the Variable).",
        Column::FloatOps => {
            "flops: Number of float operations. Note: Please read the implementation for the math behind it."
        }
        Column::TensorValue => "tensor_value: Not supported now.",
        Column::Device => "device: which device is placed on.",
        Column::OpTypes => {
            "op_types: The attributes of the operation, includes the Kernel name device placed on and user-defined \
             strings."
        }
        Column::Occurrence => "occurrence: The number of times it occurs",
        Column::InputShapes => "input shape: The shape of input tensors",
        Column::AcceleratorMicros => accelerator,
        Column::CpuMicros => cpu,
        Column::PeakBytes => "peak bytes: The peak amount of memory that the operation is holding at some point.",
        Column::ResidualBytes => "residual bytes: The memory not de-allocated after the operation finishes.",
        Column::OutputBytes => {
            "output bytes: The memory that is output from the operation (not necessarily allocated by the operation)"
        }
    }
    .to_owned()
}
