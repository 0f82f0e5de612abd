//! `stepscope report`: the main job. Each host is read, looked at and let go; what is left is merged, judged
//! and worded.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use stepscope_analyze::Context;
use stepscope_analyze::ops::{OpRow as OpResult, Where};
use stepscope_diagnose::diagnose;
use stepscope_diagnose::gather::{Gathered, HostPartial};
use stepscope_render::report::{self, HealthRow, OpRow, Report, SourceRow};

use crate::load::{Loaded, Looked, Wanted};
use crate::output::Terminal;
use crate::problem::{Exit, Failure, Problem};

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

/// Ops that the report carries; the view has them all.
const OPS: usize = 100;

pub(crate) fn run(wanted: &Wanted, form: &Form, terminal: &Terminal) -> Result<Exit, Failure> {
    let target: Vec<String> = wanted.paths.iter().map(|path| path.display().to_string()).collect();
    let looked = Looked::at(wanted, terminal, look)?;
    let (report, problems) = judge(looked, target.join(" "))?;
    show(&report, form, terminal)?;
    Ok(Looked::<()>::end(&problems, terminal))
}

/// What is kept of one host.
pub(crate) type HostLook = (SourceRow, HostPartial);

pub(crate) fn look(loaded: &Loaded) -> HostLook {
    let context = Context::new(&loaded.trace, loaded.host.as_str());
    let partial = HostPartial::of(&context);
    // Tearing down millions of states costs time that nobody waits for gladly; the process ends soon.
    std::mem::forget(context);
    (loaded.source_row(), partial)
}

/// Merges the hosts and judges them.
pub(crate) fn judge(looked: Looked<HostLook>, target: String) -> Result<(Report, Vec<Problem>), Failure> {
    let (session, sessions) = (looked.session.clone(), looked.sessions.clone());
    let (hosts, problems) = looked.into_parts();
    let (sources, partials): (Vec<SourceRow>, Vec<HostPartial>) = hosts.into_iter().unzip();
    let nothing = || Problem::new(Exit::Nothing, "nothing could be read".to_owned());
    let Gathered { facts, issues, ops } = Gathered::finish(partials).ok_or_else(nothing)?;
    let findings = diagnose(&facts);
    let report = Report {
        target,
        session,
        sessions,
        sources,
        health: issues.iter().map(HealthRow::of).collect(),
        summary: facts.summary,
        ops: ops.rows.iter().filter(|row| !row.key.input).take(OPS).map(op_row).collect(),
        findings,
    };
    Ok((report, problems))
}

fn op_row(row: &OpResult) -> OpRow {
    OpRow {
        name: row.key.name.clone(),
        op_type: row.key.kind.clone(),
        on_device: row.key.side == Where::Device,
        count: row.count,
        total_ms: row.total_ms,
        self_ms: row.self_ms,
        fraction: row.fraction,
    }
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
