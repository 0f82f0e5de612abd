//! The tool `report`: why the step is slow.

use serde_json::json;
use stepscope_render::Style;
use stepscope_render::report::{brief_json, write_text};

use super::{Tool, cursor_schema, path_schema, session_schema};
use crate::answer::{Answer, page_of_text};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

pub(super) const TOOL: Tool = Tool {
    name: "report",
    title: "Report on a profile",
    about: "Explain why the step is slow: verdict, step time, breakdown by category, top ops, findings with evidence and \
            fix. Start here.",
    arguments: || json!({"path": path_schema(), "session": session_schema(), "cursor": cursor_schema()}),
    required: &["path"],
    run,
};

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let start = arguments.cursor()?;
    let asked = desk.open(arguments.needed("path")?, arguments.text("session")?)?;
    let report = asked.report(desk.roots)?;
    let mut text = Vec::new();
    write_text(report, Style::PLAIN, &mut text)?;
    let data = if start == 0 { brief_json(report) } else { json!({}) };
    Ok(page_of_text(&asked.notes, &String::from_utf8_lossy(&text), start, data))
}
