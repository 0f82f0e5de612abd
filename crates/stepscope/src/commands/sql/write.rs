//! Answers as text, JSON, CSV and Parquet.

use std::io::{self, Write};
use std::path::Path;

use stepscope_export::{AnyColumn, write_table_parquet};
use stepscope_query::{Answer, Value};
use stepscope_render::Style;
use stepscope_render::format::{csv_field, middle_cut, plural};
use stepscope_session::Cause;

use crate::failure::Failure;
use crate::write_file::save;

/// Widest column of text, in characters.
const WIDEST: usize = 72;

/// How an answer is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Csv,
}

/// Writes an answer.
pub(super) fn answer(answer: &Answer, form: Form, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Text => text(answer, style, out),
        Form::Json => json(answer, out),
        Form::Csv => csv(answer, out),
    }
}

fn json(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let columns = serde_json::to_string(&answer.columns)?;
    let truncated = answer.truncated;
    write!(
        out,
        "{{\"schema\": \"stepscope.sql.v1\",\n \"columns\": {columns},\n \"truncated\": {truncated},\n \"rows\": ["
    )?;
    for (place, row) in answer.rows.iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        write!(out, "{comma}\n  {}", serde_json::to_string(row)?)?;
    }
    out.write_all(if answer.rows.is_empty() { b"]}\n" } else { b"\n ]}\n" })
}

fn csv(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let line = |cells: &mut dyn Iterator<Item = String>| -> String {
        cells.map(|cell| csv_field(&cell).into_owned()).collect::<Vec<_>>().join(",")
    };
    write!(out, "{}\r\n", line(&mut answer.columns.iter().cloned()))?;
    for row in &answer.rows {
        write!(out, "{}\r\n", line(&mut row.iter().map(Value::text)))?;
    }
    Ok(())
}

/// A value as people read it.
fn shown(value: &Value) -> String {
    match value {
        Value::Real(value) if value.is_finite() => {
            let text = format!("{value:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        other => middle_cut(&other.text(), WIDEST),
    }
}

fn text(answer: &Answer, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let titles: Vec<String> = answer.columns.iter().map(|name| middle_cut(name, WIDEST)).collect();
    let count = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..titles.len())
        .map(|place| {
            let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| count(cell));
            cells.chain(std::iter::once(count(&titles[place]))).max().unwrap_or(0)
        })
        .collect();
    let is_number = |place: usize| {
        let mut known =
            answer.rows.iter().filter_map(|row| row.get(place)).filter(|value| **value != Value::Null);
        known.all(|value| matches!(value, Value::Int(_) | Value::Real(_)))
    };
    let numbers: Vec<bool> = (0..titles.len()).map(is_number).collect();
    let line = |cells: &[String]| -> String {
        let padded = cells.iter().zip(&widths).zip(&numbers).map(|((cell, &width), &number)| {
            let fill = " ".repeat(width.saturating_sub(count(cell)));
            if number { fill + cell } else { cell.clone() + &fill }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    writeln!(out, "{}", style.bold(&line(&titles)))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))?;
    let count = plural(rows.len() as u64, "row", "rows");
    writeln!(out, "{}", style.dim(&format!("({count})")))
}

/// Writes a Parquet file.
pub(super) fn parquet(answer: &Answer, path: &Path) -> Result<(), Failure> {
    let mut names: Vec<String> = Vec::new();
    for name in &answer.columns {
        // Readers want names that differ.
        let same = names.iter().filter(|known| *known == name).count();
        names.push(if same > 0 { format!("{name}_{}", same + 1) } else { name.clone() });
    }
    let columns: Vec<(&str, AnyColumn)> =
        names.iter().enumerate().map(|(place, name)| (name.as_str(), column(answer, place))).collect();
    save(path, Cause::Usage, "set --parquet to a file in an existing folder", |out| {
        write_table_parquet(&columns, answer.rows.len(), out)
    })?;
    Ok(())
}

fn column(answer: &Answer, place: usize) -> AnyColumn {
    let values = || answer.rows.iter().map(|row| row.get(place).unwrap_or(&Value::Null));
    let real = |value: &Value| match value {
        Value::Int(value) => *value as f64,
        Value::Real(value) => *value,
        _ => f64::NAN,
    };
    if values().all(|value| matches!(value, Value::Int(_))) {
        let whole = |value: &Value| if let Value::Int(value) = value { *value } else { 0 };
        AnyColumn::Ints(values().map(whole).collect())
    } else if values().all(|value| matches!(value, Value::Int(_) | Value::Real(_) | Value::Null)) {
        AnyColumn::Reals(values().map(real).collect())
    } else {
        AnyColumn::Texts(values().map(Value::text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Answer {
        let rows = vec![
            vec![Value::Text("a,\"b\u{1b}".into()), Value::Real(1.5), Value::Int(7)],
            vec![Value::Null, Value::Null, Value::Int(-1)],
        ];
        Answer { columns: vec!["name".into(), "ms".into(), "n".into()], rows, truncated: false }
    }

    fn written(form: Form) -> String {
        let mut out = Vec::new();
        answer(&sample(), form, Style::PLAIN, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn all_forms_hold_the_same_values() {
        let json: serde_json::Value = serde_json::from_str(&written(Form::Json)).unwrap();
        assert_eq!(json["rows"][1], serde_json::json!([null, null, -1]));
        assert_eq!(written(Form::Csv), "name,ms,n\r\n\"a,\"\"b \",1.5,7\r\n,,-1\r\n");
        let text = written(Form::Text);
        assert!(
            text.starts_with("name") && text.ends_with("(2 rows)\n") && !text.contains('\u{1b}'),
            "{text}"
        );
    }

    #[test]
    fn columns_of_a_file_have_one_type() {
        let answer = sample();
        assert!(matches!(column(&answer, 0), AnyColumn::Texts(_)));
        assert!(matches!(column(&answer, 1), AnyColumn::Reals(_)));
        assert!(matches!(column(&answer, 2), AnyColumn::Ints(_)));
    }
}
