//! Shows one view as its options request.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use stepscope_session::{Exit, Problem};
use stepscope_tfprof::{Options, Output, Profile, Shown, View, ViewError, advise, timeline_notice};

use super::Wanted;
use crate::failure::Failure;
use crate::output::Terminal;

const SCHEMA: &str = "stepscope.tfprof.v1";

/// The format of standard output.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Form {
    pub(crate) json: bool,
}

/// Shows a view, or the advice.
pub(crate) fn show(
    profile: &Profile,
    wanted: Wanted,
    options: &Options,
    form: Form,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    match wanted.view() {
        Some(view) => show_view(profile, view, options, form, terminal),
        None => show_advice(profile, form, terminal),
    }
}

fn show_advice(profile: &Profile, form: Form, terminal: &Terminal) -> Result<Exit, Failure> {
    let advice = advise(profile);
    let mut out = terminal.stdout();
    if form.json {
        let checkers =
            advice.checkers.iter().map(|it| (it.name.to_owned(), json!({ "reports": it.reports })));
        let checkers: Map<String, Value> = checkers.collect();
        writeln!(out, "{}", json!({ "schema": SCHEMA, "view": "advise", "checkers": checkers }))?;
    } else {
        out.write_all(advice.text().as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn show_view(
    profile: &Profile,
    view: View,
    options: &Options,
    form: Form,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    if let (Output::Timeline(file), View::Graph, ..0) = (&options.output, view, options.step) {
        return timeline_of_each_step(profile, file, options, terminal);
    }
    let shown = match Shown::new(profile, view, options) {
        Ok(shown) => shown,
        Err(error) => {
            if !form.json && options.output == Output::Stdout {
                terminal.stdout().write_all(options.empty_report().as_bytes())?;
            }
            return Err(wrong(&error).into());
        }
    };
    remarks(&shown, view, options, terminal);
    let mut out = terminal.stdout();
    match &options.output {
        Output::Stdout if form.json => {
            let tree = shown.json();
            let rest = tree.strip_prefix('{').unwrap_or(&tree);
            writeln!(out, "{{\"schema\":\"{SCHEMA}\",\"view\":\"{}\",{rest}", view.name())?;
        }
        Output::Stdout => out.write_all(shown.report().as_bytes())?,
        Output::None => {}
        Output::File(file) => {
            write_file(Path::new(file), shown.text().as_bytes())?;
            terminal.remark(&format!("the {} view is written to {file}", view.name()));
        }
        Output::Timeline(file) => write_timeline(&shown, view, file, options.step, &mut out)?,
        Output::Pprof(file) => {
            let content = shown.pprof().map_err(|error| wrong(&error))?;
            write_file(Path::new(file), &content)?;
            writeln!(out, "\nRun pprof -png --nodecount=100 --sample_index=1 <{file}>")?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Messages that tfprof prints to standard error.
fn remarks(shown: &Shown<'_>, view: View, options: &Options, terminal: &Terminal) {
    if view == View::Code && options.account_displayed_op_only {
        terminal.remark("the code view ignores account_displayed_op_only");
    }
    match shown.lost_gradients() {
        0 => {}
        1 => terminal.remark("gradients of 1 operation are not counted: the operation is not in the graph"),
        lost => {
            terminal.remark(&format!(
                "gradients of {lost} operations are not counted: they are not in the graph"
            ));
        }
    }
}

/// The timeline of the graph view shows one step, so each step gets its own file.
fn timeline_of_each_step(
    profile: &Profile,
    file: &str,
    options: &Options,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let steps: Vec<i64> = profile.steps().collect();
    if steps.is_empty() {
        return Err(wrong(&ViewError::NoSteps).into());
    }
    let mut out = terminal.stdout();
    for step in steps {
        let options = Options { step, ..options.clone() };
        let shown = Shown::new(profile, View::Graph, &options).map_err(|error| wrong(&error))?;
        write_timeline(&shown, View::Graph, file, step, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn write_timeline(
    shown: &Shown<'_>,
    view: View,
    file: &str,
    step: i64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (content, peaks) = shown.timeline().map_err(|error| wrong(&error))?;
    let file = format!("{file}_{step}");
    write_file(Path::new(&file), content.as_bytes())?;
    out.write_all(timeline_notice(view, &file, &peaks).as_bytes())?;
    Ok(())
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), Problem> {
    fs::write(path, content).map_err(|error| {
        Problem::new(Exit::Usage, format!("cannot write {}", path.display()))
            .then(error.to_string())
            .then("choose a file in an existing folder")
    })
}

fn wrong(error: &ViewError) -> Problem {
    Problem::new(Exit::Usage, error.to_string())
}
