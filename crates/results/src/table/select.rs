//! Row selection: `--filter`, `--sort` and `--top`, once for all views.

use std::cmp::Ordering;

use regex::RegexBuilder;

use super::{Cell, Column, Table};

/// The selection. The default is all rows in the view's own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// Maximum number of rows; 0 means all.
    pub top: Option<usize>,
    /// A column's key, optionally followed by `:asc` or `:desc`.
    pub sort: Option<String>,
    /// A regular expression that some text of a row must match, ignoring case.
    pub filter: Option<String>,
}

/// An invalid selection.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// There is no such column.
    #[error("unknown column `{asked}`; the columns are {columns}; choose one of them with --sort")]
    UnknownColumn {
        /// The requested column.
        asked: String,
        /// The existing columns.
        columns: String,
    },
    /// A direction other than `asc` and `desc`.
    #[error(
        "unknown sort order `{asked}` for `{column}`; the orders are asc and desc; for example {column}:asc"
    )]
    UnknownOrder {
        /// The column.
        column: String,
        /// The requested direction.
        asked: String,
    },
    /// The regular expression is invalid.
    #[error(
        "--filter is not a valid regular expression; {reason}; escape special characters with a backslash"
    )]
    BadFilter {
        /// The parser's message, in one line.
        reason: String,
    },
}

/// The selected rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// Their positions in the table, in the requested order.
    pub rows: Vec<usize>,
    /// Number of rows that match the filter but exceed `--top`.
    pub cut: usize,
}

impl Table {
    /// Selects rows: filters, sorts, then cuts. `default_top` applies if `--top` was not given.
    pub fn pick(&self, select: &Select, default_top: Option<usize>) -> Result<Picked, SelectError> {
        let mut rows: Vec<usize> = (0..self.rows.len()).collect();
        if let Some(pattern) = &select.filter {
            let pattern = RegexBuilder::new(pattern).case_insensitive(true).build().map_err(bad_filter)?;
            rows.retain(|&row| self.rows[row].iter().any(|cell| is_match(&pattern, cell)));
        }
        if let Some(sort) = &select.sort {
            let (column, descending) = self.order(sort)?;
            rows.sort_by(|&a, &b| compare(&self.rows[a][column], &self.rows[b][column], descending));
        }
        let top = select.top.or(default_top).filter(|&top| top > 0).unwrap_or(usize::MAX);
        let cut = rows.len().saturating_sub(top);
        rows.truncate(top);
        Ok(Picked { rows, cut })
    }

    /// The column to sort by, and whether the largest value comes first, which is the default for numbers.
    fn order(&self, sort: &str) -> Result<(usize, bool), SelectError> {
        let (key, order) = sort.split_once(':').map_or((sort, None), |(key, order)| (key, Some(order)));
        let column = self.columns.iter().position(|column| column.key == key).ok_or_else(|| {
            let keys: Vec<&str> = self.columns.iter().map(|column: &Column| column.key.as_ref()).collect();
            SelectError::UnknownColumn { asked: key.to_owned(), columns: keys.join(", ") }
        })?;
        let descending = match order {
            None => self.columns[column].format.is_number(),
            Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                return Err(SelectError::UnknownOrder { column: key.to_owned(), asked: other.to_owned() });
            }
        };
        Ok((column, descending))
    }
}

fn bad_filter(error: regex::Error) -> SelectError {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim();
    SelectError::BadFilter { reason: reason.strip_prefix("error: ").unwrap_or(reason).to_owned() }
}

fn is_match(pattern: &regex::Regex, cell: &Cell) -> bool {
    matches!(cell, Cell::Text(text) if pattern.is_match(text))
}

/// Unknown values come last in either direction.
fn compare(a: &Cell, b: &Cell, descending: bool) -> Ordering {
    let order = match (rank(a), rank(b)) {
        (None, None) => return Ordering::Equal,
        (None, _) => return Ordering::Greater,
        (_, None) => return Ordering::Less,
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    };
    let order = match (a, b) {
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
        _ => order,
    };
    if descending { order.reverse() } else { order }
}

/// The sort value of a cell: text counts as equal here, named numbers by their sum.
fn rank(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(*value as f64),
        Cell::Float(value) => Some(*value),
        Cell::Bool(value) => Some(f64::from(u8::from(*value))),
        Cell::Text(_) => Some(0.0),
        Cell::Map(entries) => Some(entries.iter().map(|(_, value)| value).sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(
            "test",
            vec![Column::new("name", "name", Format::Name), Column::new("ms", "time", Format::Ms)],
        );
        table.push([Cell::from("b"), 2.0.into()]);
        table.push([Cell::from("a"), Cell::Null]);
        table.push([Cell::from("C"), 10_u64.into()]);
        table
    }

    fn select(sort: &str, filter: &str, top: usize) -> Select {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Select { top: Some(top), sort: given(sort), filter: given(filter) }
    }

    fn rows(select: &Select) -> Vec<usize> {
        table().pick(select, None).unwrap().rows
    }

    #[test]
    fn numbers_sort_downwards_text_upwards_and_unknown_last() {
        assert_eq!(rows(&select("ms", "", 0)), [2, 0, 1]);
        assert_eq!(rows(&select("ms:asc", "", 0)), [0, 2, 1]);
        assert_eq!(rows(&select("name", "", 0)), [2, 1, 0]);
        assert_eq!(rows(&select("name:desc", "", 0)), [0, 1, 2]);
    }

    #[test]
    fn filter_comes_before_top() {
        assert_eq!(rows(&select("", "^[bc]$", 1)), [0]);
        let picked = table().pick(&select("", "^[bc]$", 1), None).unwrap();
        assert_eq!(picked.cut, 1);
        assert_eq!(table().pick(&Select::default(), Some(2)).unwrap().rows.len(), 2);
        assert_eq!(table().pick(&select("", "", 0), Some(2)).unwrap().rows.len(), 3, "0 is all");
    }

    #[test]
    fn what_cannot_be_done_says_what_can() {
        let said = |select: Select| table().pick(&select, None).unwrap_err().to_string();
        assert!(said(select("time", "", 0)).contains("the columns are name, ms"));
        assert!(said(select("ms:up", "", 0)).contains("asc and desc"));
        assert!(said(select("", "(", 0)).contains("unclosed group"), "{}", said(select("", "(", 0)));
    }
}
