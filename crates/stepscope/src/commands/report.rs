//! `stepscope report`: the main job. Each host is read, looked at and let go; what is left is merged, judged
//! and worded.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use stepscope_analyze::Selection;
use stepscope_render::report::{self, Report};
use stepscope_session::report::{judge, look_at};
use stepscope_session::{Exit, Problem, Wanted};

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// In which form the report is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// JSON for programs.
    pub(crate) json: bool,
    /// Markdown for pull requests.
    pub(crate) markdown: bool,
    /// One self-contained page, into this file.
    pub(crate) html: Option<PathBuf>,
}

pub(crate) fn run(
    wanted: &Wanted,
    selection: Selection,
    form: &Form,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let targets: Vec<String> = wanted.paths.iter().map(|path| path.display().to_string()).collect();
    let looked = load::looked(wanted, terminal, |loaded| look_at(loaded, selection))?;
    let (report, problems) = judge(looked, targets)?;
    show(&report, form, terminal)?;
    Ok(load::named(&problems, terminal))
}

/// Writes the report in the form that is wanted.
pub(crate) fn show(report: &Report, form: &Form, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(path) = &form.html {
        write_page(path, |out| report::write_html(report, out))?;
    }
    let mut out = terminal.stdout();
    if form.json {
        report::write_json(report, &mut out)?;
    } else if form.markdown {
        report::write_markdown(report, &mut out)?;
    } else if let Some(path) = &form.html {
        writeln!(out, "{}", path.display())?;
    } else {
        report::write_text(report, terminal.out, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Writes a page into the file that was named after `--html`.
pub(crate) fn write_page(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Problem::new(Exit::Nothing, format!("cannot write {}", path.display()))
            .then(error.to_string())
            .then("name a file in a folder that you may write to after --html")
    };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    write(&mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(())
}
