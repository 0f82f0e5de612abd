//! The tables of `nsys export` hold what the export holds: row by row, column by column, over all databases at hand; and
//! joins by key are found through an index.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use stepscope_query::{Database, Limits, Value};
use stepscope_read::Progress;
use stepscope_session::{Profile, Query, ResolvedSession};
use stepscope_testkit::corpus::{corpus, files_below, repository};

const TABLES: [&str; 8] = [
    "StringIds",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
    "TARGET_INFO_GPU",
];

fn open(path: &Path) -> Option<Database> {
    let wanted = Query { paths: vec![path.to_owned()], session: None, host: None, roots: Vec::new() };
    let profile = Profile::load(ResolvedSession::of(&wanted, &|_| {}).ok()?, &Progress::new()).ok()?;
    let limits =
        Limits { rows: usize::MAX, bytes: usize::MAX, time: Duration::from_secs(600), ..Limits::TERMINAL };
    Some(Database::new(Arc::new(profile), limits))
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// The columns and rows of a table in the database itself.
fn native(connection: &Connection, table: &str) -> Option<(Vec<String>, Vec<Vec<Value>>)> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).ok()?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        all.push((0..columns.len()).map(|place| value(row.get_ref(place).unwrap())).collect());
    }
    Some((columns, all))
}

fn compare(path: &Path) -> usize {
    let Some(ours) = open(path) else { return 0 };
    let theirs = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut compared = 0;
    for table in TABLES {
        let Some((columns, rows)) = native(&theirs, table) else {
            let answer = ours.query(&format!("SELECT count(*) FROM {table}")).unwrap();
            assert_eq!(answer.rows, [[Value::Int(0)]], "{}: {table}", path.display());
            continue;
        };
        let wanted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let answer = ours.query(&format!("SELECT {} FROM {table}", wanted.join(", "))).unwrap();
        assert_eq!(answer.rows.len(), rows.len(), "{}: {table}", path.display());
        for (number, (got, row)) in answer.rows.iter().zip(&rows).enumerate() {
            assert_eq!(got, row, "{}: {table}: row {number} of {columns:?}", path.display());
        }
        compared += rows.len();
    }
    compared
}

#[test]
fn every_table_is_that_of_the_export_row_by_row() {
    let Some(folder) = corpus("nsys") else { return };
    let is_database = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sqlite");
    let compared: usize =
        files_below(&folder).iter().filter(|path| is_database(path)).map(|path| compare(path)).sum();
    assert!(compared > 100_000, "{compared} rows");
}

/// An export of two processes, each with its own correlations.
fn written(folder: &Path, kernels: usize) -> PathBuf {
    let path = folder.join("export.sqlite");
    let mut script = String::from(
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
            streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
            nameId INTEGER, returnValue INTEGER);
         CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
         INSERT INTO StringIds VALUES (5, 'void gemm<float>(int)'), (6, 'gemm'), (9, 'cudaLaunchKernel_v7000');
         INSERT INTO NVTX_EVENTS VALUES (10, 90, 59, 'aten::mm, op_id = 7', 281474993487873), (20, NULL, 34, 'mark', 281474993487873);
         BEGIN;",
    );
    for number in 1..=kernels {
        let (start, pid) = (1_000 + number * 100, (1_i64 << 48) | ((number as i64 % 2 + 1) << 24));
        script.push_str(&format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 1, 3, 7, {number}, {pid}, 5, 6);
             INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {}, {}, {number}, 9, 0);",
            start + 40,
            start + 90,
            start + 20,
            pid + 1
        ));
    }
    script.push_str("COMMIT;");
    Connection::open(&path).unwrap().execute_batch(&script).unwrap();
    path
}

#[test]
fn values_of_an_export_are_not_interpreted() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 20);
    assert_eq!(compare(&path), 3 + 20 + 20 + 2);
    let database = open(&path).unwrap();
    let found = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN event e ON e.id = k.event_id \
                 WHERE e.dur = k.\"end\" - k.start AND e.name = 'void gemm<float>(int)'";
    assert_eq!(database.query(found).unwrap().rows, [[Value::Int(20)]], "each row has its event");
    let named =
        "SELECT s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId LIMIT 1";
    assert_eq!(database.query(named).unwrap().rows, [[Value::Text("cudaLaunchKernel_v7000".to_owned())]]);
}

#[test]
fn joins_by_key_take_time_in_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&written(folder.path(), 20_000)).unwrap();
    for query in [
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)",
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN CUPTI_ACTIVITY_KIND_KERNEL k \
         ON k.correlationId = r.correlationId JOIN StringIds s ON s.id = k.shortName",
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN event e ON e.id = k.event_id",
        "SELECT count(*) FROM event e JOIN track t ON t.id = e.track_id WHERE e.category = 'kernel'",
        "SELECT count(*) FROM launch l JOIN event c ON c.id = l.call_event JOIN event w ON w.id = l.work_event",
    ] {
        let began = Instant::now();
        let rows = database.query(query).unwrap().rows;
        assert_eq!(rows, [[Value::Int(20_000)]], "{query}");
        // Pairs of all rows are 400 millions: minutes.
        assert!(began.elapsed() < Duration::from_secs(60), "{query}: {:?}", began.elapsed());
    }
}

#[test]
fn queries_in_perfettos_words_run() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&written(folder.path(), 50)).unwrap();
    let number = |query: &str| match database.query(query).unwrap().rows.first().and_then(|row| row.first()) {
        Some(Value::Int(value)) => *value,
        other => panic!("{query}: {other:?}"),
    };
    assert_eq!(number("SELECT count(*) FROM slices"), number("SELECT count(*) FROM event"));
    assert!(number("SELECT count(*) FROM thread_slice s JOIN thread_track t ON t.id = s.track_id") > 0);
    assert!(number("SELECT end_ts - start_ts FROM trace_bounds") > 0);
    assert_eq!(number("SELECT EXTRACT_ARG(arg_set_id, 'op_id') FROM slice WHERE name = 'aten::mm'"), 7);
    let around = "SELECT count(*) FROM slice s, ancestor_slice(s.id) a WHERE a.id != s.parent_id AND a.depth >= s.depth";
    assert_eq!(number(around), 0);
    let up = number("SELECT count(*) FROM slice s, ancestor_slice(s.id) a");
    assert_eq!(up, number("SELECT count(*) FROM slice s, descendant_slice(s.id) d"), "both directions");
    let common = "SELECT count(*) FROM slice a, overlapping_slice(a.id) o JOIN slice b ON b.id = o.id \
                  WHERE o.dur != overlap(a.ts, a.dur, b.ts, b.dur)";
    assert_eq!(number(common), 0);
    assert_eq!(number("SELECT count(*) FROM ancestor_slice(-1)"), 0);
}

#[test]
fn other_formats_have_the_same_tables() {
    let database = open(&repository().join("fixtures/torch-train")).unwrap();
    for table in TABLES {
        database.query(&format!("SELECT * FROM {table} LIMIT 5")).unwrap();
        database.query(&format!("SELECT event_id, host FROM {table} LIMIT 5")).unwrap();
    }
    let texts =
        "SELECT count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId WHERE s.value != n.text";
    assert_eq!(database.query(texts).unwrap().rows, [[Value::Int(0)]]);
}
