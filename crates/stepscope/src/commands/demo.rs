//! `stepscope demo`: the report on a sample profile built into the binary.

use std::io::IsTerminal;

use stepscope_analyze::Selection;
use stepscope_read::Progress;
use stepscope_serve::{FleetOptions, SessionSource};
use stepscope_session::report::judge_drawn;
use stepscope_session::{PerHost, SAMPLE_HOST, sample};

use crate::exit::Exit;

use super::report::{self, Form};
use super::serve::PlaceArgs;
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

pub(crate) fn run(form: &Form, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = "sample".to_owned();
    let inputs = vec![(SAMPLE_HOST.to_owned(), || Ok(sample()))];
    let looked = PerHost::at_inputs(session.clone(), vec![session], inputs, &Progress::new(), |profile| {
        load::look_at(profile, Selection::default(), true, form.html.is_some())
    })?;
    let (report, problems) = judge_drawn(looked, Vec::new(), None)?;
    report::show(&report, form, terminal)?;
    let is_text = !form.json && !form.markdown && form.html.is_none();
    if is_text && std::io::stdout().is_terminal() {
        terminal.remark(
            "`stepscope demo --serve` shows the same in the browser, with the timeline: http://127.0.0.1:6200/",
        );
    }
    Ok(load::named(&problems, terminal))
}

/// Serves the page for the sample.
pub(crate) fn serve(place: &PlaceArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let server = place.start(SessionSource::Sample, FleetOptions::default())?;
    place.run(server, "the sample", terminal)
}
