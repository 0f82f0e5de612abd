//! The prompt: one query after the other, with history and completion. A query ends with a semicolon, so that it may take
//! several lines.

use std::io::Write;

use stepscope_query::{Database, FUNCTIONS, TABLES, VIEWS};
use stepscope_session::Problem;

use super::listing;
use super::write::{self, Form};
use crate::editor::Editor;
use crate::failure::Failure;
use crate::output::Terminal;

const KEYWORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "HAVING",
    "DISTINCT",
    "WITH",
];
const COMMANDS: &[&str] = &[".tables", ".schema", ".examples", ".quit"];

/// Runs queries until there are no more.
pub(super) fn run(database: &Database, terminal: &Terminal) -> Result<(), Failure> {
    terminal.remark("end a query with `;`; .tables, .schema TABLE and .examples help; .quit or Ctrl-D ends");
    let mut editor = Editor::new("sql_history", candidates);
    let mut query = String::new();
    while let Some(line) = editor.line(if query.is_empty() { "sql> " } else { "...> " })? {
        let line = line.trim();
        if query.is_empty() && matches!(line, ".quit" | ".exit" | "quit" | "exit") {
            break;
        }
        if !query.is_empty() {
            query.push('\n');
        }
        query.push_str(line);
        let ended = query.starts_with('.') || query.ends_with(';');
        if ended && !query.is_empty() {
            match one(database, &query, terminal) {
                Ok(()) => {}
                Err(Failure::Problem(problem)) => {
                    terminal.report(&problem);
                }
                Err(failure) => return Err(failure),
            }
            query.clear();
        }
    }
    Ok(())
}

fn one(database: &Database, query: &str, terminal: &Terminal) -> Result<(), Failure> {
    let mut out = terminal.stdout();
    match listing(query)? {
        Some(listed) => out.write_all(listed.as_bytes())?,
        None => {
            let answer = database.query(query).map_err(Problem::from)?;
            write::answer(&answer, Form::Text, terminal.out, &mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// Completions of a word: commands, keywords, tables, functions, and columns of the tables that the line names.
fn candidates(before: &[&str], word: &str) -> Vec<String> {
    let begins = |name: &str| {
        name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) && !word.is_empty()
    };
    let pick = |names: &mut dyn Iterator<Item = &'static str>| -> Vec<String> {
        names.filter(|name| begins(name)).map(|name| format!("{word}{}", &name[word.len()..])).collect()
    };
    if word.starts_with('.') && before.is_empty() {
        return pick(&mut COMMANDS.iter().copied());
    }
    let named = |table: &&stepscope_query::Table| before.contains(&table.name);
    let all = TABLES.iter().any(|table| named(&table));
    let columns = TABLES.iter().filter(|table| named(table) || !all).flat_map(|table| table.columns);
    let names = TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name));
    let calls = FUNCTIONS.iter().filter_map(|function| function.call.split('(').next());
    let mut found = pick(
        &mut names.chain(columns.map(|column| column.name)).chain(calls).chain(KEYWORDS.iter().copied()),
    );
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::candidates;

    #[test]
    fn tables_columns_and_commands_are_completed() {
        assert_eq!(candidates(&[], ".t"), [".tables"]);
        assert!(candidates(&["SELECT", "*", "FROM"], "ev").contains(&"event".to_owned()));
        assert!(candidates(&["SELECT"], "self_d").contains(&"self_dur".to_owned()));
        assert!(candidates(&[], "sel").contains(&"selECT".to_owned()));
        assert!(candidates(&[], "").is_empty());
    }
}
