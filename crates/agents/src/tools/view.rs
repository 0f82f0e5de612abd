//! The tool `view`: one of the tables behind the report.

use serde_json::{Value, json};
use stepscope_render::format::quoted;
use stepscope_results::Select;
use stepscope_results::views::{DEFAULT_GROUPING, VIEWS, View};
use stepscope_session::{Cause, Hosts, Problem};

use super::{Tool, cursor_schema, path_schema, session_schema};
use crate::answer::{Answer, page_of_table};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// Rows of a page, if not asked for otherwise.
const TOP: usize = 15;
/// Most rows of a page.
const MOST: usize = 100;

pub(super) const TOOL: Tool = Tool {
    name: "view",
    title: "Show a table",
    about: "One table of a profile, most expensive first: ops, kernels, steps, input (pipeline stages), memory, devices, \
            scopes, path, functions, inference, health, hlo_* (compiled programs).",
    arguments,
    required: &["path", "name"],
    run,
};

fn arguments() -> Value {
    let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    json!({
        "path": path_schema(),
        "name": {"type": "string", "enum": names},
        "top": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "Rows per page, 15 by default"},
        "filter": {"type": "string", "description": "Regular expression for any text of a row"},
        "sort": {"type": "string", "description": "Column, such as count or self_ms:asc"},
        "by": {"type": "string", "description": "ops: name or type; hlo_ops: source, scope or phase"},
        "session": session_schema(),
        "cursor": cursor_schema(),
    })
}

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let view = known(arguments.needed("name")?)?;
    let by = arguments.text("by")?.unwrap_or(DEFAULT_GROUPING);
    let grouped = view.grouped(by).ok_or_else(|| {
        let ways = match &view.ways()[..] {
            [] => "it has none".to_owned(),
            ways => format!("the groupings are {}", ways.join(", ")),
        };
        Problem::new(Cause::Usage, format!("{} cannot be grouped by {}", view.name, quoted(by)))
            .then(ways)
            .then("leave out `by`, or choose another")
    })?;
    let (top, start) = (arguments.whole_number("top", 1..=MOST, TOP)?, arguments.cursor()?);
    let owned = |key| arguments.text(key).map(|text| text.map(str::to_owned));
    let select = Select { top: Some(0), sort: owned("sort")?, filter: owned("filter")? };
    let asked = desk.open(arguments.needed("path")?, arguments.text("session")?)?;
    let table = Hosts::of(&asked.opened.profile).table(view, grouped)?;
    desk.stop.check()?;
    let picked = table.pick(&select, None)?;
    page_of_table(&asked.notes, &table, &picked.rows, start, top)
}

fn known(name: &str) -> Result<&'static View, Problem> {
    View::named(name).ok_or_else(|| {
        let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        Problem::new(Cause::Usage, format!("there is no view {}", quoted(name)))
            .then(format!("the views are {}", names.join(", ")))
            .then("call it again with one of them")
    })
}
