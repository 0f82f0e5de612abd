//! What a client can call, one file each. A tool is a name, a few words, its arguments and a function: from an open profile
//! to an [`Answer`], with what the terminal would show.

mod compare;
mod finding;
mod list_profiles;
mod program;
mod report;
mod schema;
mod sql;
mod view;

use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// A tool.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its name for people.
    pub(crate) title: &'static str,
    /// What it answers, for the assistant that chooses.
    pub(crate) about: &'static str,
    /// Its arguments: a JSON schema for each.
    pub(crate) arguments: fn() -> Value,
    /// Those that have to be given.
    pub(crate) required: &'static [&'static str],
    /// Answers.
    run: fn(&Desk<'_>, Arguments<'_>) -> Result<Answer, Failed>,
}

/// All tools, in the order in which an investigation uses them.
pub(crate) const TOOLS: &[Tool] = &[
    list_profiles::TOOL,
    report::TOOL,
    finding::TOOL,
    view::TOOL,
    program::TOOL,
    compare::TOOL,
    sql::TOOL,
    schema::TOOL,
];

/// The tool with this name.
pub(crate) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// Checks the arguments and answers.
    pub(crate) fn call(&self, desk: &Desk<'_>, given: &Map<String, Value>) -> Result<Answer, Failed> {
        let known = (self.arguments)();
        let known: Vec<String> =
            known.as_object().into_iter().flat_map(|known| known.keys().cloned()).collect();
        (self.run)(desk, Arguments::of(given, &known)?)
    }
}

/// The address of the description of all tables.
pub(crate) fn sql_schema_uri() -> &'static str {
    "stepscope://sql-schema"
}

/// The text of a resource.
pub(crate) fn resource(uri: &str) -> Option<String> {
    if uri == sql_schema_uri() {
        return Some(schema::all());
    }
    let id = uri.strip_prefix("stepscope://findings/")?;
    finding::explained(id)
}

/// The argument that names a profile.
fn path_schema() -> Value {
    json!({"type": "string", "description": "Profile, session folder or log directory, as in list_profiles"})
}

/// The argument that chooses one of several sessions.
fn session_schema() -> Value {
    json!({"type": "string", "description": "Session instead of the newest"})
}

/// The argument that asks for the next page.
fn cursor_schema() -> Value {
    json!({"type": "string", "description": "next_cursor of the last answer"})
}
