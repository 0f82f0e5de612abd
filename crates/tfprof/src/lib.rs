//! The views of tfprof, TensorFlow's classic profiler: parameters, float operations, time and memory by name scope,
//! graph, operation type and line of code, with advice.
//!
//! ```text
//! profile   graph + op log + runs + variables (stepscope-tfgraph)  →  nodes with the recording of each step
//! options   the 21 options of tfprof, the presets of ProfileOptionBuilder, the line form of its prompt
//! scope, graph, op, code   nodes → rows with own and total values
//! display   which rows are shown, in which order, with which totals
//! text      rows as printed by tfprof, byte for byte
//! json, timeline, pprof   the same for programs
//! advise    tfprof's own checks
//! flat, walk, variables   rows, neighbours and variables as plain values, for a page
//! fix       the profile with tfprof's mistakes corrected, and what that changes in a view
//! ```
//!
//! This crate knows nothing about files: values in, values and text out. Another program defines the text down
//! to its spelling, so it is written here beside the rules it shows, not among stepscope's own sentences.

mod advise;
mod code;
mod device;
mod display;
mod exec;
mod fix;
mod flat;
mod graph;
mod json;
mod measures;
mod names;
mod numbers;
mod op;
mod options;
mod parse;
mod patterns;
mod pprof;
mod profile;
mod rows;
mod scope;
mod text;
mod timeline;
mod variables;
mod view;
mod walk;

pub use advise::{Advice, Checker, advise};
pub use fix::{Amount, Change, ChangedCell, Changes, Fixed, Reason, ReasonKind};
pub use flat::FlatRow;
pub use measures::Measures;
pub use options::{Column, OptionError, Options, OrderBy, Output, Preset};
pub use parse::{Line, OPTION_NAMES, parse_line};
pub use patterns::Patterns;
pub use profile::Profile;
pub use timeline::timeline_notice;
pub use variables::VariableRow;
pub use view::{Shown, View, ViewError};
pub use walk::{NodeInfo, NodeLine, NodeLink};
