//! Files of classic TensorFlow as plain values: the graph, the recorded nodes of a run, the log of operations
//! with their FLOPs and call stacks, a saved profile, and the variables of a checkpoint.
//!
//! `stepscope-read` fills these from files; `stepscope-tfprof` computes views from them. This crate contains
//! the types shared by both, and knows neither files nor views.

mod graph;
mod log;
mod record;
mod saved;
mod variable;

pub use graph::{Attr, DataType, Graph, InputSource, NodeDef, Shape};
pub use log::{Frame, OpLog, OpLogEntry};
pub use record::{AllocatorUse, Call, NodeRecord, OutputUse, timeline_call, timeline_op};
pub use saved::{SavedExec, SavedMemory, SavedNode, SavedProfile};
pub use variable::{Values, Variable};
