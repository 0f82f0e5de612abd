//! What the documentation says of `--json`: a schema per view from its declaration, schemas of other documents from
//! `docs/schema/source/` (the notation is that of [`super::notation`]), and the list of views in `docs/json.md`.

use std::fmt::Write as _;
use std::fs;

use stepscope_results::covers;
use stepscope_results::table::{Column, Kind};
use stepscope_results::views::{VIEWS, View};

use super::{notation, root, schema};

/// The list stands between these lines.
const BEGIN: &str = "<!-- Written by `cargo xtask docs --write`. -->\n";
const END: &str = "<!-- End of what is written. -->\n";

/// The page with the list of views as it should be.
pub fn with_list(page: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut list = String::from("\n| view | answers | schema |\n|---|---|---|\n");
    for view in VIEWS {
        let (View { name, question, .. }, command) = (view, command(view));
        writeln!(list, "| `stepscope {command}` | {question} | [{name}](schema/{name}.v1.json) |").unwrap();
    }
    format!("{before}{BEGIN}{list}\n{END}{after}")
}

fn command(view: &View) -> String {
    view.command().collect::<Vec<_>>().join(" ")
}

/// Writes the schemas and the list.
pub fn write() {
    let path = root().join("docs/json.md");
    let page = fs::read_to_string(&path).unwrap();
    fs::write(&path, with_list(&page)).unwrap();
    for (name, text) in schemas() {
        fs::write(schema::folder().join(format!("{name}.v1.json")), text).unwrap();
    }
}

/// All schemas: names and contents.
pub fn schemas() -> Vec<(String, String)> {
    let of_view = |view: &View| (view.name.to_owned(), notation::document(view.name, &described(view)));
    let files = fs::read_dir(schema::folder().join("source")).unwrap().flatten();
    let of_file = |file: fs::DirEntry| {
        let name = file.file_name().to_string_lossy().trim_end_matches(".txt").to_owned();
        let mut text = fs::read_to_string(file.path()).unwrap();
        if text.contains(": covers") {
            text += covers::MEMBERS;
        }
        let written = notation::document(&name, &text);
        (name, written)
    };
    VIEWS.iter().map(of_view).chain(files.map(of_file)).collect()
}

/// The document of a view.
fn described(view: &View) -> String {
    let (members, parts) = view.members.split_at(view.members.find('@').unwrap_or(view.members.len()));
    let rows: String = (view.columns)().iter().filter(|column| !column.drawn).map(member).collect();
    format!(
        "What `stepscope {} --json` writes. The members of a row are the columns of `--csv`.\n\
         headline?: string -- The answer in one line.\n\
         {members}\n\
         covers?: covers -- The part of the recording that the figures cover.\n\
         notes?: [string] -- Remarks.\n\
         rows: [row] -- One object per row.\n\
         {}{parts}\n@row\n{rows}",
        command(view),
        covers::MEMBERS
    )
}

/// A column as a member of a row.
fn member(column: &Column) -> String {
    let words = column.one_of.iter().map(|word| format!("'{word}'"));
    let kind = match column.kind() {
        Kind::Text if !column.one_of.is_empty() => words.collect::<Vec<_>>().join(" | "),
        Kind::Text => "string".to_owned(),
        Kind::Int => "integer".to_owned(),
        Kind::Real => "number".to_owned(),
        Kind::Flag => "boolean".to_owned(),
        Kind::Map => "{number}".to_owned(),
    };
    let about = match column.kind() {
        Kind::Flag => format!("Whether {}", column.about),
        _ => column.about.chars().next().map_or(String::new(), |first| {
            first.to_uppercase().chain(column.about.chars().skip(1)).collect()
        }),
    };
    let (left_out, null) = (if column.sometimes { "?" } else { "" }, if column.known { "" } else { "?" });
    format!("{}{left_out}: {kind}{null} -- {about}.\n", column.key)
}
