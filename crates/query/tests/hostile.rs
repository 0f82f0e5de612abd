//! Queries that try to do harm: to write, to read files, to take all memory or to never end. All are refused or stopped,
//! and none leaves a file behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stepscope_query::{Database, Failed, Limits};
use stepscope_read::Progress;
use stepscope_session::{Profile, Query, ResolvedSession};

/// What a query may take here. Fewer rows and bytes than elsewhere, so that all of them end soon.
const LIMITS: Limits =
    Limits { rows: 1_000, bytes: 4 << 20, time: Duration::from_millis(200), memory: 1 << 30 };

fn fixture() -> Database {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tf-input-bound");
    let wanted = Query { paths: vec![path], session: None, host: None, roots: Vec::new() };
    let profile = Profile::load(ResolvedSession::of(&wanted, &|_| {}).unwrap(), &Progress::new()).unwrap();
    Database::new(Arc::new(profile), LIMITS)
}

/// Statements that are no SELECT. Each is tried alone, behind a SELECT, behind EXPLAIN and with a comment before it.
const WRITES: &[&str] = &[
    "ATTACH DATABASE '{file}' AS x",
    "ATTACH 'file:{file}?mode=rwc' AS x",
    "ATTACH ':memory:' AS x",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '{file}'",
    "CREATE TABLE x(a)",
    "CREATE TEMP TABLE x AS SELECT * FROM event",
    "CREATE VIEW x AS SELECT 1",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE INDEX x ON event(name)",
    "CREATE TRIGGER x INSTEAD OF INSERT ON slice BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "CREATE VIRTUAL TABLE x USING rtree(a, b, c)",
    "DROP VIEW slice",
    "DROP TABLE event",
    "ALTER TABLE event RENAME TO x",
    "INSERT INTO event(id) VALUES (1)",
    "REPLACE INTO event(id) VALUES (1)",
    "UPDATE event SET name = 'x'",
    "DELETE FROM event",
    "DELETE FROM sqlite_schema",
    "UPDATE sqlite_master SET sql = 'x'",
    "BEGIN",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
    "RELEASE x",
    "REINDEX",
    "ANALYZE",
    "PRAGMA database_list",
    "PRAGMA journal_mode = WAL",
    "PRAGMA temp_store_directory = '/'",
    "PRAGMA writable_schema = ON",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA query_only = OFF",
    "PRAGMA max_page_count = 1",
    "PRAGMA trusted_schema = ON",
];

/// Queries that read what they should not, or call what they should not.
const READS: &[&str] = &[
    "SELECT load_extension('{file}')",
    "SELECT load_extension('{file}', 'main')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('{file}', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT sqlite_log(1, 'x')",
    "SELECT * FROM dbstat",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('event')",
    "SELECT * FROM pragma_compile_options",
    "SELECT * FROM pragma_journal_mode('WAL')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM generate_series(1, 10)",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM event WHERE id = ?",
    "SELECT * FROM event WHERE id = :id",
    "WITH x AS (DELETE FROM event RETURNING *) SELECT * FROM x",
    "SELECT 1; SELECT 2",
    "SELECT",
    "",
    ";",
    "-- nothing",
    "\u{0}",
    "SELECT \u{0}",
    "SELECT 'unterminated",
    "SELECT /* unterminated",
    "SELECT * FROM nowhere",
    "SELECT nothing FROM event",
    "SELECT \"compute\"",
    "SELECT regexp('(', 'x')",
    "SELECT regexp('(((((a{100}){100}){100}){100}){100})', 'x')",
    "SELECT * FROM event WHERE name MATCH 'x'",
];

/// Queries that never end, or that only end when the memory does.
const ENDLESS: &[&str] = &[
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION SELECT x + 1 FROM t) SELECT max(x) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT sum(x) FROM t",
    "WITH RECURSIVE t(x) AS (VALUES(1), (2) UNION ALL SELECT x * 2 FROM t) SELECT avg(x) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 'a' UNION ALL SELECT x || 'aaaaaaaaaaaaaaaa' FROM t) SELECT max(length(x)) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM t) SELECT max(length(x)) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t ORDER BY 1 DESC) SELECT count(*) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT group_concat(x) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT json_group_array(x) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(DISTINCT hex(randomblob(900))) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t ORDER BY -x",
    "SELECT count(*) FROM event a, event b, event c",
    "SELECT count(*) FROM event a, event b WHERE a.name || b.name LIKE '%x%y%z%'",
    "SELECT max(a.ts + b.ts + c.ts) FROM event a, event b, event c",
    "SELECT count(*) FROM event a JOIN event b ON a.dur < b.dur JOIN event c ON b.dur < c.dur",
    "SELECT a.name FROM event a, event b, event c ORDER BY a.ts * b.ts * c.ts",
    "SELECT DISTINCT a.ts * b.ts FROM event a, event b, event c ORDER BY 1",
    "SELECT count(*) FROM arg a, arg b, arg c",
    "SELECT sum(length(a.args) + length(b.args)) FROM event a, event b",
    "SELECT (SELECT count(*) FROM event b, event c WHERE b.ts > a.ts) FROM event a",
    "SELECT count(*) FROM string a, string b, string c, string d",
    "SELECT count(*) OVER (ORDER BY a.ts) FROM event a, event b, event c",
];

/// Queries whose values or texts are too large.
const LARGE: &[&str] = &[
    "SELECT zeroblob(100000000)",
    "SELECT zeroblob(2147483647)",
    "SELECT randomblob(1000000000)",
    "SELECT hex(randomblob(200000000))",
    "SELECT hex(zeroblob(7000000))",
    "SELECT printf('%.*c', 1000000000, 'x')",
    "SELECT printf('%1000000000d', 1)",
    "SELECT format('%-100000000s|', 'x')",
    "SELECT replace(hex(zeroblob(1000000)), '0', 'xxxxxxxxxxxxxxxx')",
    "SELECT quote(zeroblob(7000000))",
    "SELECT group_concat(hex(randomblob(100000))) FROM event",
    "SELECT string_agg(hex(randomblob(100000)), ',') FROM event",
    "SELECT json_group_array(hex(randomblob(100000))) FROM event",
    "SELECT json_group_object(id, hex(randomblob(100000))) FROM event",
    "SELECT hex(zeroblob(3000000)) || hex(zeroblob(3000000))",
    "SELECT json_array(hex(zeroblob(2000000)), hex(zeroblob(2000000)), hex(zeroblob(2000000)))",
    "SELECT 'x' LIKE hex(zeroblob(10000))",
    "SELECT 'x' GLOB hex(zeroblob(10000))",
    "SELECT json_patch('{}', '{}')",
];

/// Functions on the longest values that there may be, in rows without end: a clock between operations is not enough.
const SLOW_FUNCTIONS: &[&str] = &[
    "instr(hex(zeroblob(490000)), hex(zeroblob(240000)) || '1')",
    "replace(hex(zeroblob(490000)), hex(zeroblob(240000)) || '1', 'x')",
    "trim(hex(zeroblob(490000)) || 'x', hex(randomblob(240000)))",
    "unhex(hex(zeroblob(490000)), hex(zeroblob(240000)))",
    "hex(zeroblob(490000)) LIKE '%' || substr(hex(zeroblob(200)), 1, 200) || '1%'",
    "hex(zeroblob(490000)) LIKE '%0%0%0%0%0%0%0%0%0%0%0%0%0%0%1'",
    "hex(zeroblob(490000)) GLOB '*' || substr(hex(zeroblob(200)), 1, 200) || '1*'",
    "hex(zeroblob(490000)) GLOB '*[^1]*[^1]*[^1]*[^1]*[^1]*[^1]*1'",
    "hex(randomblob(490000))",
    "substr(hex(zeroblob(490000)), 1, 90000) REGEXP '(0?){80}1$'",
    "length(json_extract(json_array(hex(zeroblob(400000))), '$[0]'))",
];

/// Texts that grow with a number, so that they get too deep, too wide or too long.
fn grown() -> Vec<String> {
    let mut all = Vec::new();
    for size in [200, 2_000, 20_000, 60_000] {
        all.push(format!("SELECT {}1{}", "(".repeat(size), ")".repeat(size)));
        all.push(format!("SELECT -{}1", "- ".repeat(size)));
        all.push(format!("SELECT 1{}", "+1".repeat(size)));
        all.push(format!("SELECT {}1", "NOT ".repeat(size)));
        all.push(format!("SELECT {}", "abs(".repeat(size) + "1" + &")".repeat(size)));
        all.push(format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(size)));
        all.push(format!("SELECT {}1{}", "(SELECT ".repeat(size), ")".repeat(size)));
        all.push(format!("SELECT * FROM event{}", ", event".repeat(size)));
        all.push(format!("SELECT 1{}", ", 1".repeat(size)));
        all.push(format!("SELECT CASE {} END", "WHEN 1 THEN 1 ".repeat(size)));
        all.push(format!("SELECT max({}1)", "1, ".repeat(size)));
        all.push(format!("SELECT '{}'", "x".repeat(size * 10)));
        all.push(format!("SELECT 1 WHERE {}1", "1 OR ".repeat(size)));
    }
    all
}

/// The statements as they come, and disguised.
fn disguised(statement: &str) -> [String; 4] {
    [
        statement.to_owned(),
        format!("SELECT 1; {statement}"),
        format!("/* SELECT */ -- x\n {statement};"),
        format!("{statement}; SELECT 1"),
    ]
}

fn hostile(file: &Path) -> Vec<String> {
    let mut all: Vec<String> = WRITES.iter().flat_map(|statement| disguised(statement)).collect();
    all.extend(READS.iter().chain(LARGE).map(|statement| (*statement).to_owned()));
    all.iter().map(|query| query.replace("{file}", &file.display().to_string())).collect()
}

#[test]
fn hostile_queries_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = fixture();
    let all = hostile(&folder.path().join("written.db"));
    assert!(all.len() + grown().len() + ENDLESS.len() > 200);
    let answered: Vec<&String> = all.iter().filter(|query| database.query(query).is_ok()).collect();
    assert!(answered.is_empty(), "{answered:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file was written");
}

#[test]
fn queries_that_never_end_are_stopped() {
    let database = fixture();
    // What the tables need is computed before the clock starts.
    database.query("SELECT count(*) FROM event WHERE parent_id = 0 AND state = 'x'").unwrap();
    for query in ENDLESS {
        let start = Instant::now();
        let error = database.query(query).expect_err(query);
        // Far above the limit, far below any of these queries: machines may be busy.
        assert!(start.elapsed() < Duration::from_secs(60), "{query}: {:?}", start.elapsed());
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn functions_on_long_values_end_in_time() {
    let database = fixture();
    for function in SLOW_FUNCTIONS {
        let query = format!("{} SELECT group_concat({function}, '') FROM t", numbers(""));
        let start = Instant::now();
        let error = database.query(&query).expect_err(function);
        // Two hundred milliseconds are asked for; without the limits, each takes minutes.
        assert!(start.elapsed() < Duration::from_secs(30), "{function}: {:?}: {error}", start.elapsed());
    }
    let error = database.query("SELECT hex(zeroblob(490000)) REGEXP 'x'").expect_err("too long to search");
    assert!(error.to_string().contains("substr"), "{error}");
}

#[test]
fn queries_that_grow_are_refused_or_answered_at_once() {
    let database = fixture();
    for query in grown() {
        let start = Instant::now();
        let shown: String = query.chars().take(60).collect();
        let answer = database.query(&query);
        assert!(start.elapsed() < Duration::from_secs(60), "{shown}: {:?}", start.elapsed());
        assert!(query.len() < 64 << 10 || answer.is_err(), "{shown}");
    }
}

#[test]
fn large_answers_are_cut() {
    let database = fixture();
    for query in [
        "SELECT hex(randomblob(100000)) FROM event",
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t",
        "SELECT a.id, b.id FROM event a, event b",
    ] {
        let answer = database.query(query).unwrap();
        assert!(answer.truncated && answer.rows.len() <= LIMITS.rows, "{query}");
    }
}

#[test]
fn messages_say_what_to_do() {
    let database = fixture();
    for (query, says) in [
        ("ATTACH 'x' AS y", "only SELECT is allowed"),
        ("SELECT * FROM nowhere", "no such table"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("SELECT count(*) FROM event a, event b, event c", "stopped after 0.2 s"),
        ("SELECT zeroblob(100000000)", "too much memory"),
        ("SELECT \"compute\"", "single quotes"),
        ("SELEC 1", "at character 1"),
    ] {
        let error = database.query(query).expect_err(query);
        assert!(error.to_string().contains(says), "{query}: {error}");
        assert_eq!(error.parts().iter().filter(|part| part.is_empty()).count(), 0, "{error}");
    }
}

/// A table of numbers from 1, up to a limit or without end.
fn numbers(rows: &str) -> String {
    format!("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t {rows})")
}

#[test]
fn a_greedy_query_leaves_others_their_memory() {
    let limits = Limits { time: Duration::from_secs(300), memory: 32 << 20, ..LIMITS };
    let database = fixture().limited(limits);
    // Each sorts rows of about 500 bytes: without end, or 20 MB.
    let sorted = "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY hex(randomblob(250))) AS n FROM t)";
    let greedy = format!("{} {sorted}", numbers(""));
    let honest = format!("{} {sorted}", numbers("LIMIT 30000"));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..4 {
                    assert_eq!(database.query(&greedy).map_err(|error| error.failed), Err(Failed::TooLarge));
                }
            });
        }
        for _ in 0..8 {
            let answer = database.query(&honest);
            assert!(answer.is_ok(), "{:?}", answer.err());
        }
    });
}

#[test]
fn a_stopped_query_ends_at_once() {
    let database = fixture().limited(Limits { time: Duration::from_secs(300), ..LIMITS });
    let progress = Arc::new(Progress::new());
    let start = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| database.query_until(ENDLESS[0], &progress));
        std::thread::sleep(Duration::from_millis(50));
        progress.stop();
        let error = running.join().unwrap().unwrap_err();
        assert_eq!(error.failed, Failed::Stopped);
    });
    assert!(start.elapsed() < Duration::from_secs(100), "{:?}", start.elapsed());
}
