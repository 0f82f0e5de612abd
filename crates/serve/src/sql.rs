//! Queries of the page's console. `API.md` is the contract; what a query may do is decided in `stepscope-query`.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use stepscope_query::{Database, EXAMPLES, FUNCTIONS, TABLES, VIEWS};
use stepscope_session::Problem;

use crate::error::Refusal;

/// Queries that run at the same time; a query takes a core.
const AT_ONCE: usize = 2;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A place among the queries that run, given back when it is dropped.
struct Turn;

impl Turn {
    fn take() -> Option<Self> {
        let more = |running| (running < AT_ONCE).then_some(running + 1);
        RUNNING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a query.
pub(crate) fn answer(database: &Database, query: &str) -> Result<Value, Refusal> {
    let Some(_turn) = Turn::take() else { return Err(Refusal::Busy) };
    let answer = database.query(query).map_err(|error| Refusal::Sql(Box::new(Problem::from(error))))?;
    Ok(json!({
        "schema": "stepscope.sql.v1", "columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated,
    }))
}

/// Tables, functions and examples, for completion and help.
pub(crate) fn described() -> Value {
    let table = |table: &stepscope_query::Table| {
        let columns = table.columns.iter();
        let columns: Vec<Value> = columns
            .map(|column| json!({"name": column.name, "type": column.holds.sql(), "about": column.about}))
            .collect();
        json!({"name": table.name, "about": table.about, "columns": columns})
    };
    let view = |view: &stepscope_query::View| json!({"name": view.name, "about": view.about, "columns": []});
    let tables: Vec<Value> = TABLES.iter().map(table).chain(VIEWS.iter().map(view)).collect();
    let functions: Vec<Value> =
        FUNCTIONS.iter().map(|function| json!({"call": function.call, "about": function.about})).collect();
    let examples: Vec<Value> =
        EXAMPLES.iter().map(|example| json!({"question": example.question, "sql": example.sql})).collect();
    json!({"tables": tables, "functions": functions, "examples": examples})
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stepscope_testkit::corpus::{corpus, repository};

    use super::*;
    use crate::SessionSource;
    use crate::offline::Offline;

    /// The query as it stands in an address.
    fn encoded(query: &str) -> String {
        let one = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        query.bytes().map(one).collect()
    }

    /// Asks the console of each session below a folder all examples; returns the number of sessions that could be read.
    fn ask_all(folder: &Path) -> usize {
        let server = Offline::new(SessionSource::Paths(vec![folder.to_owned()])).unwrap().unwrap();
        let (_, listed) = server.get("/api/sessions").unwrap();
        let listed: Value = serde_json::from_slice(&listed).unwrap();
        let mut read = 0;
        for session in listed["sessions"].as_array().unwrap() {
            let (id, name) = (session["id"].as_u64().unwrap(), session["path"].as_str().unwrap());
            let unreadable = server.get_open(&format!("/api/s/{id}/timeline")).unwrap().0 != 200;
            if unreadable {
                continue;
            }
            for example in EXAMPLES {
                let address = format!("/api/s/{id}/sql?q={}", encoded(example.sql));
                let (status, body) = loop {
                    match server.get_open(&address).unwrap() {
                        // Other tests ask too.
                        (429, _) => std::thread::yield_now(),
                        answer => break answer,
                    }
                };
                let said = String::from_utf8_lossy(&body);
                assert_eq!(status, 200, "{name}: {}: {said:.300}", example.question);
                assert!(said.contains("\"columns\""), "{name}: {}", example.question);
            }
            read += 1;
        }
        read
    }

    #[test]
    fn examples_work_in_the_console() {
        assert!(ask_all(&repository().join("fixtures")) > 3);
    }

    #[test]
    fn examples_work_in_the_console_on_real_profiles() {
        let Some(folder) = corpus("") else { return };
        let read = ask_all(&folder);
        assert!(read > 20, "{read}");
    }
}
