//! Functions that are built again and again, in the shape that rules need.

use stepscope_analyze::session::Session;
use stepscope_analyze::work::functions::{FunctionRow, Sign};

/// A function that is built again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltFunction {
    /// Its name.
    pub name: String,
    /// Calls in the steps looked at.
    pub calls: u64,
    /// How many of them traced.
    pub traces: u64,
    /// How many of them compiled.
    pub compiles: u64,
    /// Milliseconds per step lost.
    pub ms_per_step: f64,
    /// The sign of why.
    pub why: Rebuilding,
}

/// Why a function is built again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rebuilding {
    /// Its arguments vary: Python values, shapes or types.
    ArgumentsVary,
    /// It is made anew before every call.
    Recreated,
    /// It cannot be told.
    Unknown,
}

impl RebuiltFunction {
    /// All of a session, the worst first.
    pub fn all(session: &Session) -> Vec<Self> {
        session.functions.rows.iter().filter_map(rebuilt).collect()
    }
}

fn rebuilt(function: &FunctionRow) -> Option<RebuiltFunction> {
    let why = match function.sign? {
        Sign::ArgumentsVary | Sign::ShapesVary => Rebuilding::ArgumentsVary,
        Sign::Recreated => Rebuilding::Recreated,
        Sign::CompilesEachCall | Sign::ShapesVaryOrRecreated => Rebuilding::Unknown,
        Sign::FirstCallOnly => return None,
    };
    Some(RebuiltFunction {
        name: function.name.clone(),
        calls: function.calls,
        traces: function.traces,
        compiles: function.compiles,
        ms_per_step: function.lost_ms_per_step.unwrap_or(function.tracing_ms + function.compile_ms),
        why,
    })
}
