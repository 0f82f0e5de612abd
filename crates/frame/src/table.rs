//! A view's table as columns. A column has the same type for the same view, whether or not values are missing, as far as
//! its format says; named numbers become one column each, such as `breakdown.input`.

use stepscope_results::{Cell, Column as Described, Format, Table};

use crate::column::{Column, Frame, Values, Words};

/// All rows of a table, without columns that are only drawn.
pub fn frame(table: &Table) -> Frame {
    let mut columns = Vec::new();
    for (place, described) in table.columns().iter().enumerate().filter(|(_, column)| !column.drawn) {
        let cells: Vec<&Cell> =
            table.rows().iter().map(|row| row.get(place).unwrap_or(&Cell::Null)).collect();
        if cells.iter().any(|cell| matches!(cell, Cell::Map(_))) {
            named_numbers(described, &cells, &mut columns);
        } else {
            columns.push(column(described, &cells));
        }
    }
    Frame::new(columns)
}

/// One column per name, in order of appearance; a row without the name has 0 there, because what owns no time is left
/// out of such cells.
fn named_numbers(described: &Described, cells: &[&Cell], columns: &mut Vec<Column>) {
    let mut names: Vec<&str> = Vec::new();
    let entries = |cell: &&Cell| match cell {
        Cell::Map(entries) => entries.clone(),
        _ => Vec::new(),
    };
    for cell in cells {
        let Cell::Map(entries) = cell else { continue };
        for (name, _) in entries {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    for name in names {
        let of =
            |cell: &&Cell| entries(cell).iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        let values = cells.iter().map(|cell| of(cell).unwrap_or(0.0)).collect();
        let known = cells.iter().map(|cell| matches!(cell, Cell::Map(_)));
        let title = format!("{}.{name}", described.key);
        columns.push(Column::with_nulls(title, Values::Float(values), known));
    }
}

/// How a column is stored.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Int,
    Float,
    Bool,
    Text,
}

fn column(described: &Described, cells: &[&Cell]) -> Column {
    let name = described.key.to_string();
    let known = cells.iter().map(|cell| **cell != Cell::Null);
    match kind(described.format, cells) {
        Kind::Int => {
            let whole = |cell: &&Cell| match cell {
                Cell::Int(value) => i64::try_from(*value).unwrap_or(0),
                _ => 0,
            };
            Column::with_nulls(name, Values::Int(cells.iter().map(whole).collect()), known)
        }
        Kind::Float => {
            let number = |cell: &&Cell| match cell {
                Cell::Int(value) => *value as f64,
                Cell::Float(value) => *value,
                Cell::Bool(value) => f64::from(u8::from(*value)),
                _ => 0.0,
            };
            Column::with_nulls(name, Values::Float(cells.iter().map(number).collect()), known)
        }
        Kind::Bool => {
            let truth = |cell: &&Cell| matches!(cell, Cell::Bool(true));
            Column::with_nulls(name, cells.iter().map(truth).collect(), known)
        }
        Kind::Text => {
            let mut words = Words::default();
            for cell in cells {
                match cell {
                    Cell::Text(text) => words.push(text),
                    Cell::Null | Cell::Map(_) => words.push(""),
                    Cell::Int(value) => words.push(&value.to_string()),
                    Cell::Float(value) => words.push(&value.to_string()),
                    Cell::Bool(value) => words.push(&value.to_string()),
                }
            }
            Column::with_nulls(name, Values::Text(words), known)
        }
    }
}

/// The type that holds every cell; where the cells leave a choice, the format decides.
fn kind(format: Format, cells: &[&Cell]) -> Kind {
    let has = |of: fn(&Cell) -> bool| cells.iter().any(|cell| of(cell));
    let texts = has(|cell| matches!(cell, Cell::Text(_)));
    let truths = has(|cell| matches!(cell, Cell::Bool(_)));
    let fractions = has(|cell| matches!(cell, Cell::Float(_)))
        || has(|cell| matches!(cell, Cell::Int(value) if i64::try_from(*value).is_err()));
    let whole = has(|cell| matches!(cell, Cell::Int(_)));
    match (texts, truths, fractions || whole) {
        (true, _, _) | (_, true, true) => Kind::Text,
        (_, true, _) => Kind::Bool,
        (_, _, true) if fractions => Kind::Float,
        (_, _, any) => match format {
            Format::Ms | Format::Percent | Format::Short => Kind::Float,
            Format::Count | Format::Id | Format::Bytes => Kind::Int,
            Format::Name | Format::Text if any => Kind::Int,
            Format::Flag => Kind::Bool,
            Format::Name | Format::Text | Format::Map => Kind::Text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(format: Format) -> Vec<Described> {
        vec![Described::new("a", "", format), Described::new("drawn", "", Format::Text).drawn()]
    }

    fn of(format: Format, cells: &[Cell]) -> Frame {
        let mut table = Table::new("test", described(format));
        cells.iter().for_each(|cell| table.push([cell.clone(), Cell::from("##")]));
        frame(&table)
    }

    #[test]
    fn a_column_keeps_its_type_where_values_are_missing() {
        let ms = of(Format::Ms, &[Cell::from(2_u64), Cell::Null]);
        assert_eq!((ms.columns().len(), ms.rows()), (1, 2), "what is only drawn is left out");
        assert!(matches!(&ms.columns()[0].values, Values::Float(values) if values == &[2.0, 0.0]));
        assert_eq!((ms.columns()[0].nulls(), ms.columns()[0].is_known(1)), (1, false));
        assert!(matches!(&of(Format::Ms, &[Cell::Null]).columns()[0].values, Values::Float(_)));
        assert!(matches!(&of(Format::Count, &[Cell::Null]).columns()[0].values, Values::Int(_)));
        assert!(matches!(&of(Format::Name, &[]).columns()[0].values, Values::Text(_)));
        let truth = of(Format::Text, &[Cell::from(true), Cell::from(false)]);
        assert_eq!(truth.columns()[0].values.truth(0), Some(true));
    }

    #[test]
    fn a_number_beyond_64_bits_is_not_wrapped() {
        let huge = of(Format::Count, &[Cell::Int(i128::from(u64::MAX)), Cell::Int(1)]);
        assert!(matches!(&huge.columns()[0].values, Values::Float(values) if values[1] == 1.0));
    }

    #[test]
    fn named_numbers_are_columns_of_their_own() {
        let parts = |all: &[(&str, f64)]| {
            Cell::Map(all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
        };
        let rows = [parts(&[("input", 2.0)]), Cell::Null, parts(&[("compute", 3.0), ("input", 1.0)])];
        let frame = of(Format::Text, &rows);
        let names: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a.input", "a.compute"]);
        assert!(matches!(&frame.columns()[1].values, Values::Float(values) if values == &[0.0, 0.0, 3.0]));
        assert!(!frame.columns()[1].is_known(1) && frame.columns()[1].is_known(0));
    }
}
