//! The tool `compare`: whether a change made the step faster.

use serde_json::{Map, Value, json};
use stepscope_diagnose::compare::{ComparedRun, Margins, compare};
use stepscope_render::Style;
use stepscope_render::compare::{compare_json, write_text};
use stepscope_session::Hosts;
use stepscope_session::side::run_of;

use super::{Tool, cursor_schema};
use crate::answer::{Answer, page_of_text};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// What of a comparison goes into data; the rest is in the text.
const MEMBERS: &[&str] = &[
    "verdict",
    "summary",
    "ratio",
    "delta_ms",
    "base",
    "new",
    "machine_explains",
    "remarks",
    "findings",
    "breakdown",
];

pub(super) const TOOL: Tool = Tool {
    name: "compare",
    title: "Compare two profiles",
    about: "Whether the step got faster: faster, slower, same, unclear or not-comparable, with confidence interval and what \
            changed per category and op. Use it to verify a fix.",
    arguments: || {
        let side = |what: &str| json!({"type": ["string", "array"], "items": {"type": "string"}, "description": what});
        json!({
            "before": side("Path of the profile before the change; several runs as a list"),
            "after": side("The same after it"),
            "cursor": cursor_schema(),
        })
    },
    required: &["before", "after"],
    run,
};

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let start = arguments.cursor()?;
    let (before, after) = (arguments.texts("before")?, arguments.texts("after")?);
    let mut notes = Vec::new();
    let mut side = |paths: &[&str]| -> Result<Vec<ComparedRun>, Failed> {
        let mut runs = Vec::new();
        for path in paths {
            let asked = desk.open(path, None)?;
            runs.push(run_of(&Hosts::of(&asked.opened.profile), &asked.target)?);
            notes.extend(asked.notes);
            desk.stop.check()?;
        }
        Ok(runs)
    };
    let (before, after) = (side(&before)?, side(&after)?);
    let comparison = compare(&before, &after, Margins::default());
    let mut text = Vec::new();
    write_text(&comparison, false, Style::PLAIN, &mut text)?;
    let data = if start == 0 { chosen(compare_json(&comparison)) } else { json!({}) };
    notes.truncate(5);
    Ok(page_of_text(&notes, &String::from_utf8_lossy(&text), start, data))
}

fn chosen(all: Value) -> Value {
    let Value::Object(mut all) = all else { return json!({}) };
    let members = MEMBERS.iter().filter_map(|key| Some(((*key).to_owned(), all.remove(*key)?)));
    Value::Object(members.collect::<Map<_, _>>())
}
