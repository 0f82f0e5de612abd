//! Comparisons for Python: of profiles, and of step times that a benchmark took.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stepscope_analyze::steps::Origin;
use stepscope_diagnose::compare::{self, ComparedRun, Margins, Setting, Work};
use stepscope_diagnose::gate::{Limits, Metric, Outcome, gate, gate_by_default};
use stepscope_render::Style;
use stepscope_render::compare as render;
use stepscope_render::gate::{Judgement, write_text};
use stepscope_session::side::run_of;
use stepscope_session::{Hosts, Problem, Profile};
use stepscope_trace::DeviceKind;

use crate::error;
use crate::recording::Recording;
use crate::report::written;
use crate::work;

/// What changed between two sides.
#[pyclass(frozen, module = "stepscope._stepscope")]
pub(crate) struct Comparison {
    comparison: compare::Comparison,
    base: Vec<ComparedRun>,
    new: Vec<ComparedRun>,
}

#[pymethods]
impl Comparison {
    /// JSON, schema `stepscope.compare.v1`.
    fn json(&self) -> PyResult<String> {
        written(|out| render::write_json(&self.comparison, out))
    }

    /// Text, as the command line prints it.
    #[pyo3(signature = (width=None))]
    fn text(&self, width: Option<usize>) -> PyResult<String> {
        written(|out| render::write_text(&self.comparison, false, Style { color: false, width }, out))
    }

    /// Markdown for pull requests.
    fn markdown(&self) -> PyResult<String> {
        written(|out| render::write_markdown(&self.comparison, out))
    }

    /// One self-contained page with both sides.
    fn html(&self) -> PyResult<String> {
        written(|out| render::write_html(&self.comparison, &self.base, &self.new, out))
    }
}

/// Compares recordings, any number per side. `min_effect` is the smallest change worth reporting, as a fraction.
#[pyfunction]
#[pyo3(name = "compare")]
pub(crate) fn compare_sides(
    py: Python<'_>,
    base: Vec<(String, Py<Recording>)>,
    new: Vec<(String, Py<Recording>)>,
    min_effect: f64,
) -> PyResult<Comparison> {
    let side = |all: Vec<(String, Py<Recording>)>| -> Vec<(String, Arc<Profile>)> {
        all.into_iter().map(|(label, one)| (label, Arc::clone(&one.get().profile))).collect()
    };
    let (base, new) = (side(base), side(new));
    work::run(py, None, move || {
        let runs = |side: Vec<(String, Arc<Profile>)>| -> Result<Vec<ComparedRun>, Problem> {
            side.iter().map(|(label, profile)| run_of(&Hosts::of(profile), label)).collect()
        };
        let (base, new) = (runs(base)?, runs(new)?);
        let margins = Margins { practical: min_effect, ..Margins::default() };
        Ok(Comparison { comparison: compare::compare(&base, &new, margins), base, new })
    })?
    .map_err(|problem| error(&problem))
}

/// Step times of one side: runs of steps in milliseconds, the machine that ran them, and the work of the same steps by kind.
type Times = (Vec<Vec<f64>>, String, BTreeMap<String, Vec<Vec<f64>>>);

/// Holds two sides against a limit, as `stepscope gate` does: these metrics, or the mean step and its work by default. Returns the outcome (`passed`, `unclear`,
/// `failed`), the text of the gate, and NEW over BASE.
#[pyfunction]
pub(crate) fn gate_steps(
    base: Times,
    new: Times,
    max_regression: f64,
    metrics: Vec<String>,
) -> PyResult<(&'static str, String, Option<f64>)> {
    let (base, new) = (timed(base), timed(new));
    let comparison = compare::compare(&base, &new, Margins::default());
    let limits = Limits { relative: Some(max_regression), absolute_ms: None };
    let known: Option<Vec<Metric>> = metrics.iter().map(|text| Metric::parse(text)).collect();
    let gate = match known.as_deref() {
        Some([]) => gate_by_default(&base, &new, &comparison, limits),
        Some(metrics) => gate(&base, &new, &comparison, metrics, limits),
        None => return Err(PyValueError::new_err(format!("unknown metric among {}", metrics.join(", ")))),
    };
    let worst = if gate.comparable { gate.worst() } else { Outcome::Failed };
    let passed = worst < Outcome::Failed;
    let judgement = Judgement { gate: &gate, comparison: &comparison, passed, damaged: false };
    let text = written(|out| write_text(&judgement, Style::PLAIN, out))?;
    let measured = gate.checks.first().and_then(|check| check.measured.as_ref());
    let ratio = measured.and_then(|measured| measured.ratio.as_ref()).map(|ratio| ratio.value);
    Ok((worst.key(), text, ratio))
}

/// Runs of which only the step times are known.
fn timed((runs, machine, work): Times) -> Vec<ComparedRun> {
    let setting = Setting {
        devices: vec![(DeviceKind::Cpu, machine)],
        hosts: 1,
        origin: Some(Origin::Marker),
        ..Setting::default()
    };
    let one = |(place, steps_ms): (usize, Vec<f64>)| ComparedRun {
        label: format!("run {}", place + 1),
        steps_ms: steps_ms.into_iter().filter(|ms| ms.is_finite() && *ms > 0.0).collect(),
        work: Work::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, work.get(kind.key())?.get(place)?.clone())))
            .collect(),
        setting: setting.clone(),
        ..ComparedRun::default()
    };
    runs.into_iter().enumerate().map(one).collect()
}
