//! `--format=csv,noheader,nounits`: unnamed numbers. Only nvidia-smi writes times like `2026/04/25
//! 16:06:06.780`. The GPU of a row can be inferred from the rows; the meaning of the other numbers cannot, so
//! they are named by their column position.

use std::borrow::Cow;

use super::clock;
use super::fields::{Column, Metric, measured, value};
use crate::csv::record;

/// Number of rows examined before columns are judged.
const JUDGED: usize = 200;

/// The columns of such a log; `None` for any other text.
pub(super) fn columns(text: &str, separator: char) -> Option<Vec<Column>> {
    let mut rest = text;
    let first = record(&mut rest, separator)?;
    let (width, stamp) = (first.len(), first.iter().position(|cell| is_stamp(cell))?);
    let others = std::iter::from_fn(|| record(&mut rest, separator)).take(JUDGED - 1);
    let mut rows: Vec<Vec<Cow<str>>> = std::iter::once(first).chain(others).collect();
    // The last row may be incomplete, both here and in the log.
    let whole = rows.iter().take_while(|row| row.len() == width && is_stamp(&row[stamp])).count();
    let has_unit = |cell: &Cow<str>| matches!(measured(cell), (Some(_), unit) if !unit.is_empty());
    if width < 2 || whole + 1 < rows.len() || rows.iter().flatten().any(has_unit) {
        return None;
    }
    rows.truncate(whole);
    let column = |index: usize| rows.iter().map(move |row| row[index].trim());
    let judged =
        (0..width).map(|index| if index == stamp { Column::Timestamp } else { judge(index, column(index)) });
    let judged: Vec<Column> = judged.collect();
    judged.iter().any(|column| matches!(column, Column::Metric(_))).then_some(judged)
}

/// Whether it is a time as nvidia-smi writes it, with slashes and milliseconds.
fn is_stamp(cell: &str) -> bool {
    let shape = cell.trim().bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000/00/00 00:00:00.000") && clock::parse(cell).is_some()
}

fn judge<'t>(index: usize, cells: impl Iterator<Item = &'t str> + Clone) -> Column {
    let is_missing = |cell: &str| cell.starts_with('[') || cell.eq_ignore_ascii_case("N/A");
    let told = || cells.clone().filter(|cell| !is_missing(cell));
    if told().any(|cell| cell.starts_with("GPU-")) || counts_round(cells.clone()) {
        return Column::Identity;
    }
    match told().all(|cell| value(cell).is_some()) {
        true => Column::Metric(Metric { name: format!("column {}", index + 1), unit: "" }),
        false if told().any(|cell| cell.contains(char::is_alphabetic)) => Column::Name,
        false => Column::Other,
    }
}

/// Whether the column repeats 0, 1, …, as the indices of several GPUs do.
fn counts_round<'t>(cells: impl Iterator<Item = &'t str> + Clone) -> bool {
    let gpus = cells.clone().enumerate().take_while(|(row, cell)| cell.parse() == Ok(*row)).count();
    gpus > 1 && cells.enumerate().all(|(row, cell)| cell.parse() == Ok(row % gpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(place: usize) -> Column {
        Column::Metric(Metric { name: format!("column {place}"), unit: "" })
    }

    #[test]
    fn columns_are_called_by_their_places() {
        let log = "2026/04/25 16:06:06.780, 45, [N/A], 11.64\n2026/04/25 16:06:07.781, 46, 7, 11.70\n2026/04/25 16:0";
        assert_eq!(columns(log, ','), Some(vec![Column::Timestamp, metric(2), metric(3), metric(4)]));
    }

    #[test]
    fn gpus_are_told_apart() {
        let line = |second: u32, gpu: u32| format!("2026/04/25 16:06:{second:02}.780, {gpu}, Tesla T4, 45\n");
        let log: String = (0..4).flat_map(|second| [line(second, 0), line(second, 1)]).collect();
        assert_eq!(
            columns(&log, ','),
            Some(vec![Column::Timestamp, Column::Identity, Column::Name, metric(4)])
        );
    }

    #[test]
    fn other_tables_are_none_of_it() {
        for other in [
            "",
            "2026/04/25 16:06:06.780\n",
            "2026-04-25 16:06:06.780, 45\n",
            "2026/04/25, 45\n",
            "2026/04/25 16:06:06.780, started\n",
            "2026/04/25 16:06:06.780, 45 %, 30\n",
            "2026/04/25 16:06:06.780, 45\nsome words\n2026/04/25 16:06:07.780, 46\n",
        ] {
            assert_eq!(columns(other, ','), None, "{other}");
        }
    }
}
