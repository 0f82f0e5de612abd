//! The prompt: one query after the other, with history and completion. A query ends with a semicolon, so that it may take
//! several lines.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use stepscope_capture::at_interrupts;
use stepscope_query::{Database, FUNCTIONS, TABLES};
use stepscope_read::Progress;

use super::write::{self, Form};
use super::{listing, note_if_cut, problem, tables};
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
const COMMANDS: &[&str] = &[".tables", ".schema", ".examples", ".help", ".quit"];
/// Keywords behind which a table comes.
const BEFORE_TABLES: &[&str] = &["FROM", "JOIN", ".schema"];
const HELP: &str = "end a query with `;`; .tables, .schema TABLE and .examples help; Ctrl-C stops a query; \
                    .quit or Ctrl-D ends";

/// Runs queries until there are no more.
pub(super) fn run(database: &Database, terminal: &Terminal) -> Result<(), Failure> {
    terminal.remark(HELP);
    let running = Running::default();
    let current = running.clone();
    at_interrupts(move || current.get().stop())?;
    let mut editor = Editor::new("sql_history", candidates)?;
    let mut query = String::new();
    while let Some(line) = editor.line(if query.is_empty() { "sql> " } else { "...> " })? {
        let line = line.trim();
        if query.is_empty() && matches!(line, ".quit" | ".exit" | "quit" | "exit") {
            break;
        }
        if query.is_empty() && line == ".help" {
            terminal.remark(HELP);
            continue;
        }
        if !query.is_empty() {
            query.push('\n');
        }
        query.push_str(line);
        let ended = query.starts_with('.') || query.ends_with(';');
        if ended && !query.is_empty() {
            match one(database, &query, &running.renew(), terminal) {
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

/// The query that is running, so that Ctrl-C can stop it.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<Arc<Progress>>>);

impl Running {
    fn get(&self) -> Arc<Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For the next query: what stopped one must not stop the others.
    fn renew(&self) -> Arc<Progress> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        self.get()
    }
}

fn one(
    database: &Database,
    query: &str,
    progress: &Arc<Progress>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let mut out = terminal.stdout();
    match listing(query)? {
        Some(listed) => out.write_all(listed.as_bytes())?,
        None => {
            let answer = database.query_until(query, progress).map_err(problem)?;
            write::answer(&answer, Form::Text, terminal.out, &mut out)?;
            out.flush()?;
            note_if_cut(&answer, terminal);
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
    let last = before.last().copied().unwrap_or_default();
    if BEFORE_TABLES.iter().any(|keyword| keyword.eq_ignore_ascii_case(last)) {
        return pick(&mut tables());
    }
    let keywords = pick(&mut KEYWORDS.iter().copied());
    // Capital letters mean a keyword, if there is one.
    if !keywords.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase()) {
        return keywords;
    }
    let named = |table: &&stepscope_query::Table| before.contains(&table.name);
    let all = TABLES.iter().any(|table| named(&table));
    let columns = TABLES.iter().filter(|table| named(table) || !all).flat_map(|table| table.columns.iter());
    let calls = FUNCTIONS.iter().filter_map(|function| function.call.split('(').next());
    let mut found = pick(&mut tables().chain(columns.map(|column| column.name)).chain(calls));
    found.extend(keywords);
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
        assert_eq!(candidates(&["SELECT", "*", "FROM"], "ev"), ["event"], "no columns behind FROM");
        assert_eq!(candidates(&["select", "*", "from"], "ev"), ["event"]);
        assert_eq!(candidates(&[".schema"], "fin"), ["finding"]);
        assert_eq!(candidates(&[], "SEL"), ["SELECT"], "capital letters are keywords");
        assert!(candidates(&["SELECT"], "self_d").contains(&"self_dur".to_owned()));
        assert!(candidates(&[], "sel").contains(&"selECT".to_owned()));
        assert!(candidates(&[], "").is_empty());
    }
}
