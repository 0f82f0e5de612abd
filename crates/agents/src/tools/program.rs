//! The tool `program`: a compiled program as HLO text, or one instruction with its neighbours and its stack.

use serde_json::{Value, json};
use stepscope_session::program::{Shown, Wanted, of_profile};

use super::{Tool, cursor_schema, path_schema, session_schema};
use crate::answer::{Answer, page_of_text};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// The largest distance of neighbours.
const FARTHEST: usize = 4;

pub(super) const TOOL: Tool = Tool {
    name: "program",
    title: "Show a program",
    about: "A program that XLA compiled as HLO text, or one instruction with its neighbours and its Python stack.",
    arguments,
    required: &["path"],
    run,
};

fn arguments() -> Value {
    json!({
        "path": path_schema(),
        "program": {"type": "string"},
        "op": {"type": "string", "description": "Instruction, such as fusion.21"},
        "radius": {"type": "integer", "minimum": 0, "maximum": FARTHEST},
        "session": session_schema(),
        "cursor": cursor_schema(),
    })
}

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let owned = |key| arguments.text(key).map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned));
    let wanted = Wanted {
        program: owned("program")?,
        op: owned("op")?,
        long: false,
        radius: arguments.whole_number("radius", 0..=FARTHEST, 1)?,
    };
    let start = arguments.cursor()?;
    let asked = desk.open(arguments.needed("path")?, arguments.text("session")?)?;
    let shown = of_profile(&asked.opened.profile, &wanted)?;
    desk.stop.check()?;
    Ok(page_of_text(&asked.notes, &text_of(&shown), start, data(&shown)))
}

fn text_of(shown: &Shown) -> String {
    let mut text = shown.text.clone();
    if !shown.stack.is_empty() {
        text.push_str("\nfrom\n");
        shown.stack.iter().for_each(|place| text.push_str(&format!("  {place}\n")));
    }
    text
}

fn data(shown: &Shown) -> Value {
    json!({"module": shown.program.name, "program_id": shown.program.id.map(|id| id.to_string()), "stack": shown.stack})
}
