//! The native module of the Python package, `stepscope._stepscope`. It converts arguments and results and runs the work
//! without the interpreter lock; what a user sees is written in Python, in `python/stepscope/`.
//!
//! It contains no analysis, no sentences for users and no state besides its threads.

mod fleet;
mod frame;
mod recording;
mod report;
mod sides;
mod sql;
mod work;

use std::ffi::OsString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stepscope_results::views::VIEWS;
use stepscope_session::Problem;

pyo3::create_exception!(
    stepscope,
    Error,
    PyValueError,
    "Nothing readable was found, or the question cannot be answered. The message says what was found and what to do."
);

/// A problem as Python sees it.
pub(crate) fn error(problem: &Problem) -> PyErr {
    Error::new_err(problem.to_string())
}

/// The native part of stepscope; use the package `stepscope` instead.
#[pymodule]
mod _stepscope {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::Error;
    #[pymodule_export]
    use super::fleet::{
        FleetReport, fleet_failed, fleet_finish, fleet_format, fleet_merge, fleet_partial, fleet_plan,
    };
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::recording::Recording;
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::sides::{Comparison, compare_sides, gate_steps};
    #[pymodule_export]
    use super::{cli, explain, views};

    /// Buckets are read like folders.
    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        stepscope::add_stores();
        Ok(())
    }

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "its name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs a command line, program name first; returns the exit code.
#[pyfunction]
fn cli(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| stepscope::run(args.into_iter()))
}

/// All views: name, question, and the names of their groupings.
#[pyfunction]
fn views() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    VIEWS.iter().map(|view| (view.name, view.question, view.ways())).collect()
}

/// What a finding means, how it is detected, and how to fix and verify it; `None` if there is no such finding.
#[pyfunction]
fn explain(id: &str) -> PyResult<Option<String>> {
    let Some(rule) = stepscope_diagnose::rules::RULES.iter().find(|rule| rule.id == id) else {
        return Ok(None);
    };
    let mut out = Vec::new();
    stepscope_render::explain::write_text(rule, stepscope_render::Style::PLAIN, &mut out)?;
    Ok(Some(String::from_utf8_lossy(&out).into_owned()))
}
