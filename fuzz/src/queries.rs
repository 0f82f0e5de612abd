//! SQL over the sample, within limits: the bytes as a query, and a query that the bytes put together from pieces of SQL, so
//! that most of them are understood.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stepscope_query::{Answer, Database, EXAMPLES, Limits, QueryError, TABLES};
use stepscope_read::{Input, Progress};
use stepscope_session::{Profile, sample};

/// Small, so that a query that never ends costs little.
const LIMITS: Limits =
    Limits { rows: 200, bytes: 1 << 20, time: Duration::from_millis(100), memory: 16 << 20 };
/// Bytes that make a query; more would only be cut off by SQLite's own limit.
const LONGEST: usize = 4_000;

/// Pieces of SQL. A byte chooses one; tables, columns and examples come behind them.
const PIECES: &[&str] = &[
    "SELECT",
    "*",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS NULL",
    "BETWEEN",
    "LIKE '%a%'",
    "GLOB 'A*'",
    "REGEXP '(a|b)*'",
    "UNION ALL",
    "EXCEPT",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t)",
    "t",
    "x",
    "(",
    ")",
    ",",
    ";",
    "=",
    "<",
    ">=",
    "+",
    "-",
    "||",
    "/",
    "0",
    "1",
    "-9223372036854775808",
    "9223372036854775807",
    "1e308",
    "'input'",
    "NULL",
    "x'00ff'",
    "count(*)",
    "sum(dur)",
    "max(ts)",
    "group_concat(name)",
    "row_number() OVER (ORDER BY ts)",
    "ms(",
    "arg(id, 'bytes')",
    "overlap(ts, dur, 0, 1e9)",
    "short_name(name)",
    "launch_config(id, 'grid')",
    "regexp('(', name)",
    "randomblob(1000000)",
    "json_group_array(name)",
    "ATTACH 'x' AS y",
    "PRAGMA hard_heap_limit = 0",
    "EXPLAIN",
    "VALUES (1)",
];

/// Queries over the sample.
pub fn queries(bytes: &[u8]) {
    static DATABASE: OnceLock<Option<Database>> = OnceLock::new();
    let Some(database) = DATABASE.get_or_init(open) else { return };
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    for query in [String::from_utf8_lossy(bytes).into_owned(), composed(bytes)] {
        check(&query, &database.query(&query));
    }
}

fn open() -> Option<Database> {
    let inputs = vec![("host".to_owned(), Ok::<Input, _>(sample()))];
    let profile = Profile::read("fuzz".to_owned(), vec!["fuzz".to_owned()], inputs, &Progress::new()).ok()?;
    let database = Database::new(Arc::new(profile), LIMITS);
    // What the tables need is computed once, before anything is timed.
    for table in TABLES {
        let _ = database.query(&format!("SELECT * FROM {} LIMIT 1", table.name));
    }
    Some(database)
}

/// A query of pieces: each byte is one, or the name of a table or column.
fn composed(bytes: &[u8]) -> String {
    let tables = TABLES.iter().map(|table| table.name);
    let columns = TABLES.iter().flat_map(|table| table.columns).map(|column| column.name);
    let words: Vec<&str> = PIECES.iter().copied().chain(tables).chain(columns).collect();
    let Some((first, rest)) = bytes.split_first() else { return String::new() };
    // Half of them begin as one that works and go on from there.
    let mut query = match EXAMPLES.get(usize::from(*first) % (2 * EXAMPLES.len())) {
        Some(example) => example.sql.to_owned(),
        None => "SELECT * FROM event".to_owned(),
    };
    for pair in rest.chunks(2).take(60) {
        let number = pair.iter().fold(0, |number, byte| number * 256 + usize::from(*byte));
        query.push(' ');
        query.push_str(words.get(number % words.len()).copied().unwrap_or_default());
    }
    query
}

/// An answer keeps its limits; an error says something.
fn check(query: &str, outcome: &Result<Answer, QueryError>) {
    match outcome {
        Ok(answer) => {
            assert!(answer.rows.len() <= LIMITS.rows, "{query}");
            assert!(answer.rows.iter().all(|row| row.len() == answer.columns.len()), "{query}");
        }
        Err(error) => assert!(error.parts().iter().all(|part| !part.is_empty()), "{query}: {error}"),
    }
}
