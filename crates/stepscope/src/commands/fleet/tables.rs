//! The tables of a fleet report as Parquet files.

use std::borrow::Cow;
use std::path::Path;

use stepscope_export::{AnyColumn, write_table_parquet};
use stepscope_fleet::FleetReport;
use stepscope_fleet::store;
use stepscope_results::fleet::{TABLES, table};
use stepscope_results::{Cell, Format, Table};

use super::problem;
use crate::failure::Failure;

/// Writes every table into the folder; files appear whole.
pub(super) fn write_parquet(report: &FleetReport, folder: &Path) -> Result<(), Failure> {
    for name in TABLES {
        let Some(table) = table(report, name) else { continue };
        let mut bytes = Vec::new();
        write_table_parquet(&columns(&table), table.rows().len(), &mut bytes)?;
        store::write(&folder.join(format!("{name}.parquet")), &bytes).map_err(|error| problem(&error))?;
    }
    Ok(())
}

fn columns(table: &Table) -> Vec<(&'static str, AnyColumn)> {
    let column = |(place, column): (usize, &stepscope_results::Column)| {
        let Cow::Borrowed(name) = column.key else { return None };
        let cells = || table.rows().iter().map(move |row| row.get(place).unwrap_or(&Cell::Null));
        let values = match column.format {
            Format::Name | Format::Text | Format::Flag | Format::Map => {
                AnyColumn::Texts(cells().map(text).collect())
            }
            // Unknown is not 0: a column with gaps is one of numbers.
            Format::Count | Format::Id if cells().all(|cell| matches!(cell, Cell::Int(_))) => {
                AnyColumn::Ints(cells().map(|cell| number(cell) as i64).collect())
            }
            _ => AnyColumn::Reals(cells().map(number).collect()),
        };
        Some((name, values))
    };
    table.columns().iter().enumerate().filter_map(column).collect()
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Int(value) => *value as f64,
        Cell::Float(value) => *value,
        Cell::Bool(value) => f64::from(u8::from(*value)),
        Cell::Null | Cell::Text(_) | Cell::Map(_) => f64::NAN,
    }
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Null => String::new(),
        Cell::Map(entries) => {
            let map: serde_json::Map<String, serde_json::Value> =
                entries.iter().map(|(key, value)| (key.clone(), (*value).into())).collect();
            serde_json::Value::Object(map).to_string()
        }
        other => number(other).to_string(),
    }
}
