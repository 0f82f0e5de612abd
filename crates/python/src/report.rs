//! The report for Python, in each of its forms.

use pyo3::prelude::*;
use rayon::prelude::*;
use stepscope_analyze::Shares;
use stepscope_analyze::time::over_time::shares_over;
use stepscope_render::Style;
use stepscope_render::report::{self, html::notebook};
use stepscope_session::report::{HostLook, look, report_on};
use stepscope_session::{HostProfile, Problem, Profile};

/// Columns of the small timeline in a notebook.
const COLUMNS: usize = 240;

/// The report on a profile.
#[pyclass(frozen, module = "stepscope._stepscope")]
pub(crate) struct Report {
    report: stepscope_results::report::Report,
    /// The breakdown over time of the host that bounds the step.
    strip: Vec<Shares>,
    /// Length of the recording in milliseconds.
    length_ms: f64,
}

impl Report {
    pub(crate) fn of(profile: &Profile, targets: Vec<String>) -> Result<Self, Problem> {
        let hosts: Vec<HostLook> = profile.hosts.par_iter().map(look).collect();
        let report = report_on(profile, hosts, targets)?;
        let bound = report.summary.bound().map(|host| host.host.as_str());
        let host = profile.hosts.iter().find(|loaded| Some(loaded.host.as_str()) == bound);
        let host = host.or(profile.hosts.first());
        let strip = host.map_or_else(Vec::new, strip);
        let span = host.and_then(|loaded| loaded.trace.span());
        Ok(Report { strip, length_ms: span.map_or(0.0, |span| span.dur().ms()), report })
    }
}

fn strip(host: &HostProfile) -> Vec<Shares> {
    host.trace.span().map_or_else(Vec::new, |span| shares_over(&host.context(), span, COLUMNS))
}

#[pymethods]
impl Report {
    /// The verdict in one sentence.
    #[getter]
    fn verdict(&self) -> String {
        report::answer(&self.report)
    }

    /// JSON, schema `stepscope.report.v1`.
    fn json(&self) -> PyResult<String> {
        written(|out| report::write_json(&self.report, out))
    }

    /// Text, as the command line prints it.
    #[pyo3(signature = (width=None))]
    fn text(&self, width: Option<usize>) -> PyResult<String> {
        written(|out| report::write_text(&self.report, Style { color: false, width }, out))
    }

    /// Markdown for pull requests.
    fn markdown(&self) -> PyResult<String> {
        written(|out| report::write_markdown(&self.report, out))
    }

    /// One self-contained page.
    fn html(&self) -> PyResult<String> {
        written(|out| report::write_html(&self.report, out))
    }

    /// A fragment for notebooks, without scripts and style sheets. `link` is the address of the timeline.
    #[pyo3(signature = (link=None))]
    fn fragment(&self, link: Option<&str>) -> String {
        let timeline = notebook::Strip { shares: &self.strip, length_ms: self.length_ms, link };
        notebook::fragment(&self.report, &timeline)
    }
}

/// What a function writes, as text.
pub(crate) fn written(
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> PyResult<String> {
    let mut out = Vec::new();
    write(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
