//! `stepscope report`: the main command. Each host is read, analysed and dropped; the partial results are
//! merged, diagnosed and rendered.

use std::io::Write;
use std::path::{Path, PathBuf};

use stepscope_analyze::Selection;
use stepscope_analyze::work::programs::Peaks;
use stepscope_render::format::printable;
use stepscope_render::report;
use stepscope_results::report::Report;
use stepscope_session::report::judge_drawn;
use stepscope_session::{Cause, Query};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;
use crate::write_file::save;

/// The output format of the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// JSON for programs.
    pub(crate) json: bool,
    /// Markdown for pull requests.
    pub(crate) markdown: bool,
    /// Writes one self-contained HTML page to this file.
    pub(crate) html: Option<PathBuf>,
}

pub(crate) fn run(
    wanted: &Query,
    selection: Selection,
    peaks: Option<Peaks>,
    form: &Form,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let targets: Vec<String> = wanted.paths.iter().map(|path| path.display().to_string()).collect();
    let look = |profile, only| load::look_at(profile, selection, only, form.html.is_some());
    let (report, problems) = judge_drawn(load::analyse_hosts(wanted, terminal, look)?, targets, peaks)?;
    show(&report, form, terminal)?;
    Ok(load::named(&problems, terminal))
}

/// Writes the report in the requested format.
pub(crate) fn show(report: &Report, form: &Form, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(path) = &form.html {
        write_page(path, |out| report::write_html(report, out))?;
    }
    let mut out = terminal.stdout_as(form.json);
    if form.json {
        report::write_json(report, &mut out)?;
    } else if form.markdown {
        report::write_markdown(report, &mut out)?;
    } else if let Some(path) = &form.html {
        writeln!(out, "{}", printable(&path.display().to_string()))?;
    } else {
        report::write_text(report, terminal.out, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Writes a page to the file given with `--html`.
pub(crate) fn write_page(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    Ok(save(path, Cause::Nothing, "set --html to a file in a writable folder", write)?)
}
