//! The report on a fleet as text, JSON and one HTML page. Its tables are in `stepscope-results`.

mod html;
mod text;
mod words;

use std::io::{self, Write};

use serde::Serialize;
use stepscope_results::fleet::{FleetReport, StepMap};

pub use html::write_html;
pub use text::write_text;
pub use words::answer;

#[derive(Serialize)]
struct Document<'r> {
    schema: &'static str,
    answer: String,
    coverage: String,
    #[serde(flatten)]
    report: &'r FleetReport,
}

/// Writes JSON.
pub fn write_json(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: "stepscope.fleet.v1",
        answer: answer(report),
        coverage: report.coverage(),
        report,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct MapDocument<'r> {
    schema: &'static str,
    #[serde(flatten)]
    map: &'r StepMap,
}

/// Writes a map of hosts and steps as JSON.
pub fn write_step_map(map: &StepMap, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &MapDocument { schema: "stepscope.fleet-steps.v1", map })?;
    out.write_all(b"\n")
}
