//! Shows one view as its options request.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;
use stepscope_tfprof::{
    Advice, Changes, Fixed, Options, Output, Profile, Shown, View, ViewError, advise, timeline_notice,
};

use super::Query;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::write_file::save;

const SCHEMA: &str = "stepscope.tfprof.v1";

/// What is shown, and in which form.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) profile: &'a Profile,
    /// The same corrected, where that is wanted.
    pub(crate) fixed: Option<&'a Fixed>,
    pub(crate) json: bool,
}

impl<'a> Subject<'a> {
    /// The profile that views are computed from.
    fn shown(&self) -> &'a Profile {
        self.fixed.map_or(self.profile, |fixed| &fixed.profile)
    }

    /// What the correction changes in a view.
    fn changes(&self, shown: &Shown<'_>, view: View, options: &Options) -> Option<Changes> {
        let fixed = self.fixed?;
        let before = Shown::new(self.profile, view, options).ok()?;
        Some(Changes::between(&before, shown, fixed))
    }
}

/// Shows a view, or the advice.
pub(crate) fn show(
    subject: &Subject<'_>,
    wanted: Query,
    options: &Options,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    match wanted.view() {
        Some(view) => show_view(subject, view, options, terminal),
        None => show_advice(subject, terminal),
    }
}

fn show_advice(subject: &Subject<'_>, terminal: &Terminal) -> Result<Exit, Failure> {
    let advice = advise(subject.shown());
    let changes = subject.fixed.map(|_| Advice::changes(&advise(subject.profile), &advice));
    let mut out = terminal.stdout_as(subject.json);
    if subject.json {
        let checkers =
            advice.checkers.iter().map(|it| (it.name.to_owned(), json!({ "reports": it.reports })));
        let checkers: Map<String, Value> = checkers.collect();
        let mut answer = json!({ "schema": SCHEMA, "view": "advise", "checkers": checkers });
        if let Some(changes) = changes {
            let change = |(checker, before, after): &AdviceChange| json!({ "checker": checker, "before": before, "after": after });
            answer["fix"] = json!({ "changed": changes.iter().map(change).collect::<Vec<_>>() });
        }
        writeln!(out, "{answer}")?;
    } else {
        out.write_all(advice.text().as_bytes())?;
        out.write_all(changes.map_or(String::new(), |changes| advice_changes(&changes)).as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Check, report before, report after.
type AdviceChange = (&'static str, Option<String>, Option<String>);

fn advice_changes(changes: &[AdviceChange]) -> String {
    if changes.is_empty() {
        return "\nChanged by --fix: nothing in this advice\n".to_owned();
    }
    let mut text = "\nChanged by --fix:\n".to_owned();
    for (checker, before, after) in changes {
        let said = |line: &Option<String>| line.clone().unwrap_or_else(|| "not said".to_owned());
        text += &format!("  {checker}: {} -> {}\n", said(before), said(after));
    }
    text
}

fn show_view(
    subject: &Subject<'_>,
    view: View,
    options: &Options,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let profile = subject.shown();
    if let (Output::Timeline(file), View::Graph, ..0) = (&options.output, view, options.step) {
        return timeline_of_each_step(profile, file, options, terminal);
    }
    let shown = match Shown::new(profile, view, options) {
        Ok(shown) => shown,
        Err(error) => {
            if !subject.json && options.output == Output::Stdout {
                terminal.stdout().write_all(options.empty_report().as_bytes())?;
            }
            return Err(wrong(&error).into());
        }
    };
    remarks(&shown, view, options, terminal);
    let changes = subject.changes(&shown, view, options);
    let listed = changes.as_ref().map_or(String::new(), Changes::text);
    let mut out = terminal.stdout_as(subject.json);
    match &options.output {
        Output::Stdout if subject.json => write_json(&shown, view, changes.as_ref(), &mut out)?,
        Output::Stdout => write!(out, "{}{listed}", shown.report())?,
        Output::None => {}
        Output::File(file) => {
            write_file(Path::new(file), format!("{}{listed}", shown.text()).as_bytes())?;
            terminal.remark(&format!("the {} view is written to {file}", view.name()));
        }
        Output::Timeline(file) => {
            write_timeline(&shown, view, file, options.step, &mut out)?;
            out.write_all(listed.as_bytes())?;
        }
        Output::Pprof(file) => {
            let content = shown.pprof().map_err(|error| wrong(&error))?;
            write_file(Path::new(file), &content)?;
            writeln!(out, "\nRun pprof -png --nodecount=100 --sample_index=1 <{file}>")?;
            out.write_all(listed.as_bytes())?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn write_json(
    shown: &Shown<'_>,
    view: View,
    changes: Option<&Changes>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let fix = changes.map_or(String::new(), |changes| format!("\"fix\":{},", changes.json()));
    let tree = shown.json();
    let rest = tree.strip_prefix('{').unwrap_or(&tree);
    writeln!(out, "{{\"schema\":\"{SCHEMA}\",\"view\":\"{}\",{fix}{rest}", view.name())?;
    Ok(())
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
    save(path, Cause::Usage, "choose a file in an existing folder", |out| out.write_all(content))
}

fn wrong(error: &ViewError) -> Problem {
    Problem::new(Cause::Usage, error.to_string())
}
