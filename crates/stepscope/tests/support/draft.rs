//! What the documentation says of views, written from the views themselves: the list in `docs/json.md`, and a first schema
//! for a view that has none. Descriptions of a draft are the titles of its columns; a person may improve them.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Map, Value, json};
use stepscope_read::Progress;
use stepscope_render::{Format, Style, Table};
use stepscope_session::views::{VIEWS, View};
use stepscope_session::{Hosts, Profile, SAMPLE_HOST, sample};

use super::{root, schema};

/// The list stands between these lines.
const BEGIN: &str = "<!-- Written by `cargo xtask docs --write`. -->\n";
const END: &str = "<!-- End of what is written. -->\n";
/// A schema whose general members every view has.
const LIKE: &str = "health.v1.json";

/// The page with the list of views as it should be.
pub fn with_list(page: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut list = String::from("\n| view | answers | schema |\n|---|---|---|\n");
    for View { name, question, .. } in VIEWS {
        writeln!(list, "| `stepscope {name}` | {question} | [{name}](schema/{name}.v1.json) |").unwrap();
    }
    format!("{before}{BEGIN}{list}\n{END}{after}")
}

/// Renews the list of views in `docs/json.md`.
pub fn write_list() {
    let path = root().join("docs/json.md");
    let page = fs::read_to_string(&path).unwrap();
    fs::write(&path, with_list(&page)).unwrap();
}

/// Writes a schema for each view that has none.
pub fn write_missing() {
    for view in VIEWS {
        let path = schema::folder().join(format!("{}.v1.json", view.name));
        if !path.exists() {
            let text = serde_json::to_string_pretty(&draft(view)).unwrap();
            fs::write(path, text + "\n").unwrap();
        }
    }
}

/// The schema of a view, by its columns.
fn draft(view: &View) -> Value {
    let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
    let profile = Profile::read(String::new(), Vec::new(), inputs, &Progress::new()).unwrap();
    let table: Table = (view.table)(&Hosts::of(&profile), Style::PLAIN);
    let mut schema = schema::read(LIKE);
    schema["title"] = format!("stepscope.{}.v1", view.name).into();
    schema["description"] = format!(
        "What `stepscope {} --json` writes. The members of a row are the columns of `--csv`.",
        view.name
    )
    .into();
    schema["properties"]["schema"]["const"] = schema["title"].clone();
    let columns = || table.columns().iter().filter(|column| !column.drawn);
    let members: Map<String, Value> = columns()
        .map(|column| {
            let kind = match column.format {
                Format::Name | Format::Text => "string",
                Format::Count | Format::Id => "integer",
                Format::Ms | Format::Bytes | Format::Percent | Format::Short => "number",
            };
            (column.key.to_string(), json!({"description": sentence(&column.title), "type": [kind, "null"]}))
        })
        .collect();
    let keys: Vec<&str> = columns().map(|column| column.key.as_ref()).collect();
    schema["$defs"]["row"] = json!({"type": "object", "properties": members, "required": keys});
    schema
}

fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}
