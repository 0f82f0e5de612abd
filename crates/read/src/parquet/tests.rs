//! One table in all the ways that writers use (`tools/make_tables.py`), whole and damaged.

use std::path::Path;

use stepscope_testkit::damage::{HUGE_VARINTS, Rng, flip_bits, overwrite, splice, truncations};

use super::*;

const ROWS: u64 = 120;
/// Rows that a table may have here.
const MOST_ROWS: u64 = 1 << 20;

fn budget() -> Budget {
    Budget::new(MOST_ROWS * 64)
}

const COLUMNS: [&str; 11] = [
    "end",
    "deviceId",
    "correlationId",
    "globalPid",
    "gridX",
    "gridY",
    "streamId",
    "text",
    "nameId",
    "textId",
    "start",
];

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tables").join(name);
    std::fs::read(path.with_extension("parquet")).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Table, TableError> {
    Table::open(Bytes::held(bytes))
}

/// What the `row`th row holds.
fn check(row: u64, fields: &[Value<'_>]) {
    let int = row as i64;
    let text = format!("kernel {}", row % 11);
    let kept = |value| if row.is_multiple_of(5) { Value::Nothing } else { value };
    let expected = [
        kept(Value::Int(int * 7919 - 1000)),
        Value::Int(int - 60),
        Value::Int((1 << 32) - 1 - int),
        Value::Int(-1 - int),
        Value::Real(row as f64 / 4.0),
        kept(Value::Real(row as f64 / 3.0)),
        Value::Int(i64::from(row.is_multiple_of(3))),
        kept(Value::Text(text.as_bytes())),
        Value::Int(42),
        Value::Nothing,
        Value::Int(int),
    ];
    assert_eq!(fields, expected, "row {row}");
}

#[test]
fn every_way_of_writing_gives_the_same_rows() {
    let ways =
        ["default", "zstd", "pages-v2", "pages-v2-snappy", "small-pages-gzip", "row-groups", "encodings-lz4"];
    for name in ways {
        let table = open(file(name)).unwrap();
        let known: Vec<&str> = table.columns().collect();
        assert_eq!(known, COLUMNS, "{name}: nested columns are passed over");
        let mut row = 0;
        let outcome = table.rows(&COLUMNS, &budget(), |fields| {
            check(row, fields);
            row += 1;
        });
        assert_eq!((outcome, row), (Ok(()), ROWS), "{name}");
    }
}

#[test]
fn columns_come_as_asked_and_those_that_are_not_there_give_nothing() {
    let table = open(file("default")).unwrap();
    let mut rows = Vec::new();
    let asked = ["start", "absent", "nameId", "start"];
    table.rows(&asked, &budget(), |fields| rows.push(format!("{fields:?}"))).unwrap();
    assert_eq!(rows.len() as u64, ROWS);
    assert_eq!(rows[7], "[Int(7), Nothing, Int(42), Int(7)]");
    let mut none = 0;
    table.rows(&["absent"], &budget(), |_| none += 1).unwrap();
    assert_eq!(none, 0, "rows of which nothing is there say nothing");
}

#[test]
fn what_is_not_known_is_named_and_the_rest_is_read() {
    let rows = |name: &str, columns: &[&str]| open(file(name)).unwrap().rows(columns, &budget(), |_| {});
    assert_eq!(rows("brotli", &["start"]), Err(TableError::Unknown("compression", 4)));
    assert_eq!(rows("prefixes", &["text"]), Err(TableError::Unknown("encoding", 7)));
    assert_eq!(rows("prefixes", &["start", "end"]), Ok(()));
}

#[test]
fn a_file_cut_short_is_refused_as_a_whole() {
    let whole = file("default");
    for part in truncations(&whole) {
        assert!(open(part.to_vec()).is_err(), "{} bytes", part.len());
    }
    assert!(open(b"PAR1\xff\xff\xff\xffPAR1".to_vec()).is_err());
    assert!(open(b"PAR1PAR1".to_vec()).is_err());
}

#[test]
fn damage_gives_an_error_or_rows_but_never_a_panic() {
    let mut rng = Rng::new(11);
    let (mut refused, mut read) = (0, 0);
    for name in ["default", "zstd", "pages-v2", "small-pages-gzip", "row-groups", "encodings-lz4"] {
        let whole = file(name);
        for round in 0..300 {
            let damaged = match round % 4 {
                0 => flip_bits(&whole, &mut rng, 1 + round / 30),
                1 => splice(&whole, &mut rng),
                2 => overwrite(&whole, &mut rng, HUGE_VARINTS[round % HUGE_VARINTS.len()]),
                _ => overwrite(&whole, &mut rng, &[0xff; 24]),
            };
            let mut rows = 0;
            let outcome = open(damaged).and_then(|table| table.rows(&COLUMNS, &budget(), |_| rows += 1));
            assert!(rows <= MOST_ROWS);
            match outcome {
                Ok(()) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 200 && read > 100, "{refused} refused, {read} read");
}

#[test]
fn pages_that_inflate_to_more_than_the_budget_end_the_table() {
    let table = open(file("small-pages-gzip")).unwrap();
    let mut rows = 0;
    let budget = Budget::new(600);
    let ended = table.rows(&COLUMNS, &budget, |_| rows += 1);
    assert!(matches!(ended, Err(TableError::Over(_))), "{ended:?} after {rows} rows");
    assert!(rows < ROWS && budget.met().is_some());
}
