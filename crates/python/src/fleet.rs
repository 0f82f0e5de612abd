//! The fleet for Python: four functions over plain data and bytes, so that any engine can run them.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stepscope_fleet::{FleetError, Options, Work, Workers, failed, finish, merge, partial, plan};
use stepscope_render::Style;
use stepscope_render::fleet as render;
use stepscope_results::fleet::{self as results, TABLES};

use crate::Error;
use crate::frame::Frame;
use crate::report::written;
use crate::work;

/// The report on many jobs.
#[pyclass(frozen, module = "stepscope._stepscope")]
pub(crate) struct FleetReport {
    report: results::FleetReport,
}

#[pymethods]
impl FleetReport {
    /// The answer in one sentence.
    #[getter]
    fn answer(&self) -> String {
        render::answer(&self.report)
    }

    /// What is covered, and what is missing.
    #[getter]
    fn coverage(&self) -> String {
        self.report.coverage()
    }

    /// Is all there that was planned?
    #[getter]
    fn complete(&self) -> bool {
        self.report.is_complete()
    }

    /// Names of the tables.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        TABLES.to_vec()
    }

    /// One table.
    fn table(&self, name: &str) -> PyResult<Frame> {
        let table = results::table(&self.report, name);
        let all = TABLES.join(", ");
        let told = || {
            Error::new_err(format!("there is no table `{name}`; the tables are {all}; choose one of them"))
        };
        table.map(Frame::of).ok_or_else(told)
    }

    /// JSON, schema `stepscope.fleet.v1`.
    fn json(&self) -> PyResult<String> {
        written(|out| render::write_json(&self.report, out))
    }

    /// Text, as the command line prints it.
    #[pyo3(signature = (width=None))]
    fn text(&self, width: Option<usize>) -> PyResult<String> {
        written(|out| render::write_text(&self.report, None, Style { color: false, width }, out))
    }

    /// One self-contained page.
    fn html(&self) -> PyResult<String> {
        written(|out| render::write_html(&self.report, out))
    }
}

fn told(error: FleetError) -> PyErr {
    Error::new_err(error.to_string())
}

fn parsed(work: &str) -> PyResult<Work> {
    serde_json::from_str(work).map_err(|error| {
        Error::new_err(format!("this is not work: {error}; pass what `plan` returned, unchanged"))
    })
}

/// The version of the partials that this module writes.
#[pyfunction]
pub(crate) fn fleet_format() -> u16 {
    stepscope_fleet::FORMAT
}

/// What there is to read below the paths: work as JSON, one text each.
#[pyfunction]
#[pyo3(signature = (paths, job_pattern=None, since=None, group_bytes=None))]
pub(crate) fn fleet_plan(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    job_pattern: Option<String>,
    since: Option<i64>,
    group_bytes: Option<u64>,
) -> PyResult<Vec<String>> {
    let default = Options::default();
    let group_bytes = group_bytes.unwrap_or(default.group_bytes);
    let options = Options { job_pattern, since, group_bytes, ..default };
    let works = work::run(py, None, move || plan(&paths, &options))?.map_err(told)?;
    works
        .iter()
        .map(|work| serde_json::to_string(work).map_err(|error| Error::new_err(error.to_string())))
        .collect()
}

/// Reads work, given as JSON, on `threads` threads, or on one per core.
#[pyfunction]
#[pyo3(signature = (work, threads=None))]
pub(crate) fn fleet_partial<'py>(
    py: Python<'py>,
    work: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let work = parsed(work)?;
    let read = move || partial(&work, &Workers { threads, ..Workers::default() });
    Ok(PyBytes::new(py, &work::run(py, None, read)?.map_err(told)?))
}

/// The partial of work that could not be done: each of its inputs says why.
#[pyfunction]
pub(crate) fn fleet_failed<'py>(py: Python<'py>, work: &str, reason: &str) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &failed(&parsed(work)?, reason).map_err(told)?))
}

/// Unites partials, in any order and any number of times.
#[pyfunction]
pub(crate) fn fleet_merge(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    Ok(PyBytes::new(py, &work::run(py, None, move || merge(&parts))?.map_err(told)?))
}

/// The report on a partial.
#[pyfunction]
pub(crate) fn fleet_finish(py: Python<'_>, bytes: Vec<u8>) -> PyResult<FleetReport> {
    let report = work::run(py, None, move || finish(&bytes))?.map_err(told)?;
    Ok(FleetReport { report })
}
