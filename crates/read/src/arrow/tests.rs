//! The table of `parquet/tests.rs` as Arrow, in all the ways that writers use, whole and damaged.

use std::path::Path;

use stepscope_testkit::damage::{Rng, flip_bits, overwrite, splice, truncations};

use super::*;

const COLUMNS: [&str; 7] = ["end", "correlationId", "gridY", "streamId", "text", "textId", "start"];

/// Rows that a table may have here.
const MOST_ROWS: u64 = 1 << 20;

fn budget() -> Budget {
    Budget::new(MOST_ROWS * 64)
}

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tables").join(name);
    std::fs::read(path).unwrap()
}

fn open(bytes: Vec<u8>) -> Vec<Result<Table, TableError>> {
    tables(&Bytes::held(bytes))
}

fn check(row: i64, fields: &[Value<'_>]) {
    let text = format!("kernel {}", row % 11);
    let kept = |value| if row % 5 == 0 { Value::Nothing } else { value };
    let expected = [
        kept(Value::Int(row * 7919 - 1000)),
        Value::Int((1 << 32) - 1 - row),
        kept(Value::Real(row as f64 / 3.0)),
        Value::Int(i64::from(row % 3 == 0)),
        kept(Value::Text(text.as_bytes())),
        Value::Nothing,
        Value::Int(row),
    ];
    assert_eq!(fields, expected, "row {row}");
}

/// The rows of a table, after checking all of them.
fn rows(table: &Table) -> Result<i64, TableError> {
    let mut row = 0;
    table.rows(&COLUMNS, &budget(), |fields| {
        check(row, fields);
        row += 1;
    })?;
    Ok(row)
}

#[test]
fn every_way_of_writing_gives_the_same_rows() {
    for name in ["framed.arrow", "framed-zstd.arrow", "framed-lz4.arrow", "streams.arrows"] {
        let tables = open(file(name));
        assert_eq!(tables.len(), if name.ends_with('s') { 2 } else { 1 }, "{name}");
        for table in tables {
            assert_eq!(rows(&table.unwrap()), Ok(120), "{name}");
        }
    }
}

#[test]
fn streams_carry_the_names_of_their_tables() {
    let names: Vec<_> =
        open(file("streams.arrows")).into_iter().map(|it| it.unwrap().name.unwrap()).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn a_stream_cut_short_gives_the_batches_that_are_whole() {
    let whole = file("streams.arrows");
    let mut most = 0;
    for part in truncations(&whole) {
        let mut count = 0;
        for table in open(part.to_vec()).into_iter().flatten() {
            let _ = table.rows(&COLUMNS, &budget(), |_| count += 1);
        }
        assert!(count >= most, "more bytes give no fewer rows");
        most = count;
    }
    assert!(most >= 200, "{most}");
}

#[test]
fn damage_gives_an_error_or_rows_but_never_a_panic() {
    let mut rng = Rng::new(12);
    for name in ["framed.arrow", "framed-zstd.arrow", "framed-lz4.arrow", "streams.arrows"] {
        let whole = file(name);
        for round in 0..400 {
            let damaged = match round % 3 {
                0 => flip_bits(&whole, &mut rng, 1 + round / 30),
                1 => splice(&whole, &mut rng),
                _ => overwrite(&whole, &mut rng, &[0xff; 12]),
            };
            let mut count = 0;
            let tables = open(damaged);
            let few = tables.len() as u64;
            for table in tables.into_iter().flatten() {
                let _ = table.rows(&COLUMNS, &budget(), |_| count += 1);
            }
            assert!(count <= few * MOST_ROWS);
        }
    }
}
