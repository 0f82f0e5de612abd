//! SQL over the sample, within limits: the bytes as a query, and a well-formed query that the bytes choose branch by
//! branch, so that many get past the parser.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stepscope_query::{Answer, Database, EXAMPLES, Limits, QueryError, TABLES, Table};
use stepscope_read::{Input, Progress};
use stepscope_session::{Profile, sample};

/// Small, so that a query that never ends costs little.
const LIMITS: Limits =
    Limits { rows: 200, bytes: 1 << 20, time: Duration::from_millis(100), memory: 16 << 20 };
/// Bytes that make a query; more would only be cut off by SQLite's own limit.
const LONGEST: usize = 4_000;

/// Values, calls and whole clauses that an expression may hold; `@` stands for another expression.
const EXPRESSIONS: &[&str] = &[
    "0",
    "-9223372036854775808",
    "9223372036854775807",
    "1e308",
    "NULL",
    "'input'",
    "x'00ff'",
    "(@ + @)",
    "(@ - @)",
    "(@ * @)",
    "(@ / @)",
    "(@ || @)",
    "(@ = @)",
    "(@ < @)",
    "(@ AND NOT @)",
    "(@ IN (@, @))",
    "(@ BETWEEN @ AND @)",
    "(@ IS NULL)",
    "(@ LIKE '%a_')",
    "(@ GLOB '[A-F]*')",
    "(@ REGEXP '(a|b)*c')",
    "CASE WHEN @ THEN @ ELSE @ END",
    "CAST(@ AS TEXT)",
    "ms(@)",
    "arg(@, 'bytes')",
    "overlap(@, @, @, @)",
    "short_name(@)",
    "launch_config(@, 'gridX')",
    "regexp(@, @)",
    "printf('%.*f', @, @)",
    "substr(@, @, @)",
    "replace(@, @, @)",
    "hex(randomblob(1000))",
    "json_extract(@, '$.a')",
    "EXISTS (SELECT 1 FROM step WHERE @)",
    "(SELECT max(@) FROM op)",
];

/// What may be selected besides an expression.
const COLUMNS: &[&str] = &[
    "*",
    "count(*)",
    "sum(@)",
    "max(@), min(@)",
    "group_concat(@)",
    "json_group_array(@)",
    "row_number() OVER (ORDER BY @)",
    "count(DISTINCT @)",
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
    for table in TABLES.iter() {
        let _ = database.query(&format!("SELECT * FROM {} LIMIT 1", table.name));
    }
    Some(database)
}

/// A query that the bytes choose, branch by branch. It is well-formed; whether its columns exist is up to the bytes too.
fn composed(bytes: &[u8]) -> String {
    let mut choices = Choices { bytes: bytes.iter() };
    if choices.one_in(8) {
        return choices.from(EXAMPLES).map_or_else(String::new, |example| example.sql.to_owned());
    }
    let Some(table) = choices.from(TABLES.as_slice()) else { return String::new() };
    let selected = if choices.one_in(2) { "@" } else { choices.from(COLUMNS).copied().unwrap_or("*") };
    let mut query = format!("SELECT {} FROM {}", choices.filled(selected, table), table.name);
    for clause in [" JOIN event AS e ON e.id = @", " WHERE @", " GROUP BY @", " ORDER BY @ DESC", " LIMIT @"]
    {
        if choices.one_in(3) {
            query += &choices.filled(clause, table);
        }
    }
    query
}

/// Decisions, one byte each; the first of everything once the bytes are used up.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % most.max(1)
    }

    fn one_in(&mut self, most: usize) -> bool {
        self.below(most) + 1 == most
    }

    fn from<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len()))
    }

    /// A text with an expression in each place that wants one.
    fn filled(&mut self, text: &str, table: &Table) -> String {
        let mut filled = text.to_owned();
        // Each round fills what the round before left open; whatever is open at last is a number.
        for _ in 0..4 {
            let mut next = String::new();
            for (place, part) in filled.split('@').enumerate() {
                if place > 0 {
                    next += &self.expression(table);
                }
                next += part;
            }
            filled = next;
        }
        filled.replace('@', "1")
    }

    fn expression(&mut self, table: &Table) -> String {
        match self.below(2) {
            0 => self
                .from(table.columns.as_ref())
                .map_or_else(String::new, |column| format!("\"{}\"", column.name)),
            _ => self.from(EXPRESSIONS).copied().unwrap_or_default().to_owned(),
        }
    }
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

#[cfg(test)]
mod tests {
    use stepscope_testkit::damage::{Rng, noise};

    use super::*;

    #[test]
    fn many_composed_queries_are_answered() {
        let (database, mut rng) = (open().unwrap(), Rng::new(7));
        let composed: Vec<String> = (0..200).map(|_| composed(&noise(&mut rng, 80))).collect();
        let answered = composed.iter().filter(|query| database.query(query).is_ok()).count();
        assert!(answered > 60, "{answered} of 200 are answered");
    }
}
