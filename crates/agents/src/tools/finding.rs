//! The tool `finding`: one finding with its evidence, its fix and how to verify it.

use std::fmt::Write as _;

use serde_json::json;
use stepscope_diagnose::rules::{RULES, find};
use stepscope_diagnose::{Finding, Rule};
use stepscope_render::format::quoted;
use stepscope_render::report::finding_json;
use stepscope_render::{Style, explain};
use stepscope_session::{Cause, Problem};

use super::{Tool, cursor_schema, path_schema, session_schema};
use crate::answer::{Answer, page_of_text};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

pub(super) const TOOL: Tool = Tool {
    name: "finding",
    title: "Explain a finding",
    about: "One finding of the report in full: evidence with times and threads, what it means, how it is detected, the fix \
            per framework, how to verify it. Without path: the explanation alone.",
    arguments: || {
        json!({
            "id": {"type": "string", "description": "Id from the report, such as input-bound"},
            "path": path_schema(), "session": session_schema(), "cursor": cursor_schema(),
        })
    },
    required: &["id"],
    run,
};

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let rule = known(arguments.needed("id")?)?;
    let start = arguments.cursor()?;
    let explained = text_of(rule)?;
    let Some(path) = arguments.text("path")? else {
        return Ok(page_of_text(&[], &explained, start, json!({"id": rule.id})));
    };
    let asked = desk.open(path, arguments.text("session")?)?;
    let found: Vec<&Finding> =
        asked.report(desk.roots)?.findings.iter().filter(|finding| finding.is(rule)).collect();
    let mut text = String::new();
    for finding in &found {
        let words = finding.words();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {}: {}", finding.severity.key(), finding.id(), words.summary);
        words.evidence.iter().for_each(|line| _ = writeln!(text, "  · {line}"));
        words.advice.iter().for_each(|line| _ = writeln!(text, "  → {line}"));
        text.push('\n');
    }
    if found.is_empty() {
        let _ = writeln!(text, "This profile has no finding {}.\n", quoted(rule.id));
    }
    text.push_str(&explained);
    let data =
        json!({"id": rule.id, "findings": found.iter().map(|it| finding_json(it)).collect::<Vec<_>>()});
    Ok(page_of_text(&asked.notes, &text, start, if start == 0 { data } else { json!({"id": rule.id}) }))
}

/// The explanation of a finding.
pub(super) fn explained(id: &str) -> Option<String> {
    find(id).and_then(|rule| text_of(rule).ok())
}

fn text_of(rule: &Rule) -> Result<String, Failed> {
    let mut text = Vec::new();
    explain::write_text(rule, Style::PLAIN, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn known(id: &str) -> Result<&'static Rule, Problem> {
    find(id).ok_or_else(|| {
        let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        Problem::new(Cause::Usage, format!("there is no finding {}", quoted(id)))
            .then(format!("the findings are {}", ids.join(", ")))
            .then("call it again with one of them")
    })
}
