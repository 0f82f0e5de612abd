//! Queries on recordings with a known truth.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;

use stepscope_query::{Answer, Database, EXAMPLES, Limits, LogFiles, TABLES, VIEWS, Value};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_session::{Profile, Query, ResolvedSession};
use stepscope_testkit::stage::scenes::Shape;
use stepscope_testkit::stage::{scenes_many, to_kineto};
use stepscope_testkit::tfevents::{record, scalar};

fn open(path: &Path) -> Database {
    let chosen = ResolvedSession::of(
        &Query { paths: vec![path.to_owned()], session: None, host: None, roots: Vec::new() },
        &|_| {},
    )
    .unwrap();
    let profile = Profile::load(chosen, &Progress::new()).unwrap();
    Database::new(Arc::new(profile), Limits::TERMINAL)
}

/// The recording that the repository carries.
fn fixture() -> Database {
    open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tf-input-bound"))
}

fn ask(database: &Database, sql: &str) -> Answer {
    database.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn number(database: &Database, sql: &str) -> i64 {
    match ask(database, sql).rows.first().and_then(|row| row.first()) {
        Some(Value::Int(value)) => *value,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn conditions_narrow_the_walk_and_change_nothing() {
    let database = fixture();
    // An expression around a column keeps SQLite from using the condition: both must count the same events.
    for (pushed, plain) in [
        ("track_id = 3", "track_id + 0 = 3"),
        ("ts > 100000000 AND ts <= 400000000", "ts + 0 > 100000000 AND ts + 0 <= 400000000"),
        ("ts >= 100000000.5 AND ts < '400000000'", "+ts >= 100000000.5 AND +ts < 400000000"),
        ("ts = (SELECT max(ts) FROM event)", "ts + 0 = (SELECT max(ts) FROM event)"),
        ("name = (SELECT name FROM event LIMIT 1)", "name || '' = (SELECT name FROM event LIMIT 1)"),
        ("name LIKE '%ITERATOR%'", "name || '' LIKE '%ITERATOR%'"),
        ("name GLOB 'I*'", "name || '' GLOB 'I*'"),
        ("name GLOB '[A-F]*'", "name || '' GLOB '[A-F]*'"),
        ("name IN ('a', (SELECT name FROM event LIMIT 1))", "name || '' = (SELECT name FROM event LIMIT 1)"),
        ("name = 'nobody'", "0"),
        ("name = NULL", "0"),
        ("name = 7", "0"),
        ("step = (SELECT min(number) FROM step)", "step + 0 = (SELECT min(number) FROM step)"),
        ("state = 'input'", "state || '' = 'input'"),
        ("role = 'op'", "role || '' = 'op'"),
        ("op = (SELECT max(op) FROM event)", "op || '' = (SELECT max(op) FROM event)"),
        ("host = (SELECT name FROM host)", "1"),
        ("host = 'nobody'", "0"),
        ("track_id = '3'", "track_id + 0 = 3"),
        ("track_id = 3.5", "0"),
        ("id = (SELECT max(id) FROM event)", "id + 0 = (SELECT max(id) FROM event)"),
        (
            "parent_id = (SELECT id FROM event WHERE depth = 0 ORDER BY dur DESC LIMIT 1)",
            "parent_id + 0 = (SELECT id FROM event WHERE depth = 0 ORDER BY dur DESC LIMIT 1)",
        ),
        ("name = 'x' COLLATE NOCASE", "name || '' = 'x' COLLATE NOCASE"),
    ] {
        let count =
            |condition: &str| number(&database, &format!("SELECT count(*) FROM event WHERE {condition}"));
        assert_eq!(count(pushed), count(plain), "{pushed}");
    }
    assert!(number(&database, "SELECT count(*) FROM event WHERE state = 'input'") > 0);
    assert!(number(&database, "SELECT count(*) FROM event WHERE parent_id IS NOT NULL") > 0);
    assert!(number(&database, "SELECT count(*) FROM event WHERE step IS NOT NULL") > 0);
}

#[test]
fn grouping_and_ordering_agree_with_a_sort() {
    let database = fixture();
    for column in ["name", "category", "op", "track_id", "host"] {
        let grouped =
            ask(&database, &format!("SELECT {column}, count(*), sum(dur) FROM event GROUP BY {column}"));
        // The unary plus makes SQLite sort for itself.
        let sorted =
            ask(&database, &format!("SELECT {column}, count(*), sum(dur) FROM event GROUP BY +{column}"));
        let order = |answer: Answer| {
            let mut rows: Vec<String> = answer.rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        assert_eq!(order(grouped), order(sorted), "{column}");
        let ordered = ask(&database, &format!("SELECT {column} FROM event ORDER BY {column}"));
        let again = ask(&database, &format!("SELECT {column} FROM event ORDER BY +{column}"));
        assert_eq!(ordered.rows, again.rows, "{column}");
    }
    let track = "(SELECT track_id FROM event GROUP BY track_id ORDER BY count(*) DESC LIMIT 1)";
    let times = ask(&database, &format!("SELECT ts FROM event WHERE track_id = {track} ORDER BY ts"));
    let again = ask(&database, &format!("SELECT ts FROM event WHERE track_id = {track} ORDER BY +ts"));
    assert_eq!(times.rows, again.rows);
}

#[test]
fn events_are_counted_without_a_scan() {
    let database = fixture();
    let counted = number(&database, "SELECT count(*) FROM event");
    assert_eq!(counted, number(&database, "SELECT count(id) FROM event"));
    assert_eq!(counted, number(&database, "SELECT sum(events) FROM track"));
    assert_eq!(ask(&database, "select COUNT(*) as n from slice;").columns, ["n"]);
}

#[test]
fn parents_children_and_own_times_fit_together() {
    let database = fixture();
    let wrong = "SELECT count(*) FROM event e JOIN event p ON p.id = e.parent_id \
                 WHERE p.ts > e.ts OR p.depth + 1 <> e.depth OR p.track_id <> e.track_id";
    assert_eq!(number(&database, wrong), 0);
    let own = "SELECT abs(sum(self_dur) - sum(CASE depth WHEN 0 THEN dur ELSE 0 END)) * 100 / sum(dur) FROM event \
               WHERE track_id = (SELECT track_id FROM event GROUP BY track_id ORDER BY count(*) DESC LIMIT 1)";
    assert_eq!(number(&database, own), 0, "own times of a track add up to its outermost events");
}

#[test]
fn joins_find_rows_by_any_column() {
    let database = fixture();
    assert_eq!(
        number(&database, "SELECT count(*) FROM event e JOIN track t ON t.id = e.track_id"),
        number(&database, "SELECT count(*) FROM event"),
    );
    assert_eq!(
        number(
            &database,
            "SELECT count(*) FROM step s JOIN breakdown b ON b.step = s.number AND b.host = s.host"
        ),
        number(&database, "SELECT count(*) FROM breakdown"),
    );
    let names = "SELECT count(*) FROM (SELECT DISTINCT name FROM event) n JOIN event e ON e.name = n.name";
    assert_eq!(number(&database, names), number(&database, "SELECT count(*) FROM event"));
    assert_eq!(number(&database, "SELECT count(*) FROM track WHERE kind = 5"), 0);
}

#[test]
fn results_agree_with_the_report() {
    let database = fixture();
    let verdict = ask(&database, "SELECT id FROM finding WHERE rank = 1");
    assert_eq!(verdict.rows, [[Value::Text("input-bound".to_owned())]]);
    let sums = "SELECT max(abs(s.dur - b.total)) FROM step s JOIN (SELECT step, sum(dur) AS total FROM breakdown \
                WHERE bottleneck = 1 GROUP BY step) b ON b.step = s.number";
    assert!(number(&database, sums) < 1_000, "the categories of a step add up to it");
    assert!(number(&database, "SELECT count(*) FROM input_stage") > 0);
    assert!(number(&database, "SELECT count(*) FROM op WHERE host IS NOT NULL") > 0);
}

#[test]
fn arguments_are_decoded_on_demand() {
    let database = fixture();
    let both = "SELECT count(*) FROM arg a WHERE a.event_id IN (SELECT id FROM event LIMIT 500) \
                AND arg(a.event_id, a.key) IS NOT a.value";
    assert_eq!(number(&database, both), 0);
    assert!(number(&database, "SELECT count(*) FROM arg") > 0);
    assert_eq!(
        number(&database, "SELECT count(*) FROM arg WHERE event_id = (SELECT event_id FROM arg LIMIT 1)"),
        number(&database, "SELECT count(*) FROM arg WHERE event_id + 0 = (SELECT event_id FROM arg LIMIT 1)"),
    );
    assert_eq!(number(&database, "SELECT count(*) FROM event WHERE json_valid(args) = 0"), 0);
}

#[test]
fn answers_stop_at_their_limits() {
    let database = fixture().limited(Limits { rows: 3, ..Limits::TERMINAL });
    let answer = ask(&database, "SELECT id FROM event");
    assert!(answer.rows.len() == 3 && answer.truncated);
    assert!(!ask(&database, "SELECT id FROM event LIMIT 3").truncated);
}

#[test]
fn names_of_nsight_systems_work_on_any_format() {
    let database = fixture();
    for sql in [
        "SELECT s.value, sum(k.\"end\" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k \
         JOIN StringIds s ON s.id = k.shortName GROUP BY 1",
        "SELECT r.start, k.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r \
         JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId",
        "SELECT copyKind, sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1",
        "SELECT text, \"end\" - start FROM NVTX_EVENTS",
        "SELECT * FROM TARGET_INFO_GPU",
        "SELECT * FROM CUPTI_ACTIVITY_KIND_MEMSET",
    ] {
        ask(&database, sql);
    }
    let value = "SELECT count(*) FROM event e JOIN StringIds s ON s.id = e.name_id WHERE s.value <> e.name";
    assert_eq!(number(&database, value), 0);
}

#[test]
fn collectives_are_compared_over_all_ranks() {
    let scene = scenes_many::ranks(Shape { step: 20_000_000, steps: 8, kernels: 20, marked: true }, 4, true);
    let trace = |rank: usize| to_kineto::write(&scene.runs[rank], Some((rank, 4))).into_bytes();
    let database = |ranks: &[usize]| {
        let input = |rank: usize| Input::from_bytes(format!("rank{rank}.json"), Bytes::held(trace(rank)));
        let inputs = ranks.iter().map(|&rank| (format!("rank{rank}"), Ok(input(rank)))).collect();
        let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
        Database::new(Arc::new(profile), Limits::TERMINAL)
    };
    let all = database(&[0, 1, 2, 3]);
    let late = ask(&all, "SELECT rank FROM collective WHERE last > 0.9 AND wait_ms < 0.1");
    let [row] = &late.rows[..] else { panic!("{late:?}") };
    assert!(matches!(&row[0], Value::Text(rank) if rank.starts_with("rank2 ")), "{row:?}");
    let waiting = "SELECT count(*) FROM collective WHERE last < 0.1 AND wait_ms > 8 AND transfer_ms < 2";
    assert_eq!(number(&all, waiting), 3, "{:?}", ask(&all, "SELECT * FROM collective"));
    assert_eq!(number(&database(&[2]), "SELECT count(*) FROM collective"), 0, "one rank shows no waiting");
}

#[test]
fn hosts_can_be_put_on_one_clock() {
    let scene = scenes_many::ranks(Shape { step: 20_000_000, steps: 12, kernels: 20, marked: true }, 3, true);
    let open = |ahead: &[i64]| {
        let input = |(rank, ahead): (usize, &i64)| {
            let run = scene.runs[rank].clone().ahead(*ahead);
            let text = to_kineto::write_from(&run, Some((rank, 3)), Some(1_700_000_000_000_000_000));
            let input = Input::from_bytes(format!("rank{rank}.json"), Bytes::held(text.into_bytes()));
            (format!("rank{rank}"), Ok(input))
        };
        let inputs = ahead.iter().enumerate().map(input).collect();
        let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
        Database::new(Arc::new(profile), Limits::TERMINAL)
    };
    let ahead = [30_000_000, 31_250_000, 3];
    let shifted = open(&ahead);
    for (rank, ahead) in ahead.iter().enumerate() {
        let host = format!("FROM host WHERE name = 'rank{rank}'");
        let shift = number(&shifted, &format!("SELECT clock_shift_ns {host}"));
        let within = number(&shifted, &format!("SELECT clock_uncertainty_ns {host}"));
        let planted = 30_000_000 - ahead;
        assert!((shift - planted).abs() <= within, "rank {rank}: {shift} ± {within} for {planted}");
        assert!(within < 500_000, "{within}");
    }
    // Whatever the clocks say, the same rank is late, and the others wait as long.
    let waits = |database: &Database| ask(database, "SELECT * FROM collective").rows;
    assert_eq!(waits(&shifted), waits(&open(&[0, 0, 0])));
    let unknown = "SELECT count(*) FROM host WHERE clock_shift_ns IS NULL";
    assert_eq!(number(&open(&[0]), unknown), 1, "one clock has nothing to be compared with");
}

#[test]
fn logged_values_can_be_asked_without_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    assert!(LogFiles::below(folder.path()).is_none());
    let points: Vec<u8> =
        (0..5).flat_map(|step| record(&scalar(1.8e9, step, "loss", 1.0 / (1.0 + f32::from(step))))).collect();
    std::fs::write(folder.path().join("events.out.tfevents.1.vm"), points).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no event file").unwrap();
    assert!(LogFiles::below(&folder.path().join("notes.txt")).is_none());
    let database = Database::new(Arc::new(LogFiles::below(folder.path()).unwrap()), Limits::TERMINAL);
    assert_eq!(number(&database, "SELECT count(*) FROM scalar WHERE tag = 'loss' AND step > 0"), 4);
    for name in TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name)) {
        let rows = ask(&database, &format!("SELECT * FROM {name}")).rows.len();
        assert!(rows == 0 || name == "scalar", "{name}: {rows}");
    }
    for example in EXAMPLES {
        ask(&database, example.sql);
    }
}
