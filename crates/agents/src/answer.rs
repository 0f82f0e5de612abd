//! Answers of bounded size: text for people, the same as data, and where the next page starts. An assistant pays for every
//! word, and clients cut long answers where it hurts most, so a page ends before they do.

use std::ops::Range;

use serde_json::{Map, Value, json};
use stepscope_render::Style;
use stepscope_render::format::{middle_cut, name_cut, thousands};
use stepscope_render::table::write_text;
use stepscope_results::table::Picked;
use stepscope_results::{Cell, Column, Format, Table};

use crate::clean;
use crate::failed::Failed;

/// The largest answer of a tool, in bytes of JSON.
pub const LIMIT: usize = 8_000;
/// How much of it text takes where data goes with it, in bytes.
const TEXT: usize = 5_000;
/// Less text than this does not make room for data that is too large.
const LEAST: usize = 500;
/// The longest line before the text, in characters.
const NOTE: usize = 400;
/// The longest name in data, in characters.
const NAME: usize = 80;
/// The longest other text in data, in characters.
const PROSE: usize = 400;

/// What a tool answers.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// For reading.
    pub(crate) text: String,
    /// The same for programs: an object.
    pub(crate) data: Value,
}

impl Answer {
    /// As the result of a call.
    pub(crate) fn result(self) -> Value {
        let mut data = self.data;
        clean::value(&mut data);
        json!({
            "content": [{"type": "text", "text": self.text}],
            "structuredContent": data,
            "isError": false,
        })
    }

    fn size(&self) -> usize {
        self.clone().result().to_string().len()
    }
}

/// A failure as the result of a call: assistants read it and try again.
pub(crate) fn error(text: &str) -> Value {
    let text = clean::lines(text);
    let short: String = text.chars().take(LIMIT / 5).collect();
    json!({"content": [{"type": "text", "text": format!("error: {short}")}], "isError": true})
}

/// A page of a long text, from line `start` on. The text quotes names from files, so it is fenced; `preface` is ours.
pub(crate) fn page_of_text(preface: &[String], text: &str, start: usize, data: Value) -> Answer {
    let lines: Vec<&str> = text.trim_end().split('\n').collect();
    let mut budget = TEXT;
    loop {
        let taken = lines_within(lines.get(start..).unwrap_or_default(), budget);
        let next = Some(start + taken.len()).filter(|next| *next < lines.len() && !taken.is_empty());
        let more = next.map(|next| format!("More follows: call again with cursor \"{next}\"."));
        let answer = Answer {
            text: joined(preface, &clean::fenced(&taken.join("\n")), more),
            data: with_cursor(&data, next),
        };
        match shrunk(answer) {
            Some(answer) => return answer,
            None if budget > LEAST => budget = budget * 3 / 4,
            None => {
                return Answer {
                    text: clean::fenced(&taken.join("\n")),
                    data: with_cursor(&json!({}), next),
                };
            }
        }
    }
}

/// A page of a table, from row `start` on: as many rows as asked for and as fit.
pub(crate) fn page_of_table(
    preface: &[String],
    table: &Table,
    rows: &[usize],
    start: usize,
    top: usize,
) -> Result<Answer, Failed> {
    let mut count = top.min(rows.len().saturating_sub(start));
    loop {
        let range = start.min(rows.len())..(start + count).min(rows.len());
        let answer = table_page(preface, table, rows, range)?;
        let size = answer.size();
        if size <= LIMIT {
            return Ok(answer);
        }
        if count <= 1 {
            // One row that is too long on its own: its text is cut, and only that is shown.
            let text = clean::lines(&answer.text).chars().take(TEXT / 4).collect();
            let data = with_cursor(&json!({"cut": true}), Some(start + 1).filter(|next| *next < rows.len()));
            return Ok(Answer { text, data });
        }
        count = (count * LIMIT / size).clamp(1, count - 1);
    }
}

fn table_page(
    preface: &[String],
    table: &Table,
    rows: &[usize],
    range: Range<usize>,
) -> Result<Answer, Failed> {
    let page = rows.get(range.clone()).unwrap_or_default();
    let mut text = Vec::new();
    write_text(table, &Picked { rows: page.to_vec(), cut: 0 }, Style::PLAIN, &mut text)?;
    let next = Some(range.end).filter(|end| *end < rows.len());
    let place =
        match (page.len(), next) {
            (0, _) => Some("No rows.".to_owned()),
            (_, None) if range.start == 0 => None,
            (_, next) => {
                let shown =
                    format!("Rows {} to {} of {}.", range.start + 1, range.end, thousands(rows.len() as u64));
                Some(next.map_or(shown.clone(), |next| {
                    format!("{shown} Call again with cursor \"{next}\" for more.")
                }))
            }
        };
    let objects: Vec<Value> = page
        .iter()
        .filter_map(|row| table.rows().get(*row))
        .map(|row| object(table.columns(), row))
        .collect();
    let data = json!({"headline": table.headline.as_deref().map(clean::line), "total_rows": rows.len(), "rows": objects});
    let text = joined(preface, &clean::fenced(&String::from_utf8_lossy(&text)), place);
    Ok(Answer { text, data: with_cursor(&data, next) })
}

/// A row as an object: the members of `--json`, with long names cut.
fn object(columns: &[Column], cells: &[Cell]) -> Value {
    let member = |(column, cell): (&Column, &Cell)| {
        let value = match (cell, column.format) {
            (Cell::Text(text), Format::Name) => Value::String(name_cut(text, NAME)),
            (Cell::Text(text), _) => Value::String(middle_cut(text, PROSE)),
            (Cell::Null, _) => return None,
            _ => serde_json::to_value(cell).unwrap_or_default(),
        };
        Some((column.key.to_string(), value))
    };
    let shown = columns.iter().zip(cells).filter(|(column, _)| !column.drawn);
    Value::Object(shown.filter_map(member).collect::<Map<_, _>>())
}

fn joined(preface: &[String], block: &str, after: Option<String>) -> String {
    let preface = preface.iter().map(|line| clean::lines(line).chars().take(NOTE).collect::<String>());
    preface.chain([block.to_owned()]).chain(after).collect::<Vec<_>>().join("\n")
}

fn with_cursor(data: &Value, next: Option<usize>) -> Value {
    let mut data = data.clone();
    if let (Some(next), Some(members)) = (next, data.as_object_mut()) {
        members.insert("next_cursor".to_owned(), next.to_string().into());
    }
    data
}

/// As many lines as fit; the first one is cut if it does not.
fn lines_within<'a>(lines: &[&'a str], budget: usize) -> Vec<&'a str> {
    let mut room = budget;
    let fits = |line: &&&str| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    };
    let taken: Vec<&str> = lines.iter().take_while(fits).copied().collect();
    match (taken.is_empty(), lines.first()) {
        (true, Some(first)) => vec![first.get(..first.floor_char_boundary(budget)).unwrap_or_default()],
        _ => taken,
    }
}

/// The answer with the ends of its lists left off until it fits; `None` if its text alone is too long.
fn shrunk(mut answer: Answer) -> Option<Answer> {
    let mut left_off = 0_u64;
    while answer.size() > LIMIT {
        let members = answer.data.as_object_mut()?;
        let lists = members.values_mut().filter_map(Value::as_array_mut).filter(|list| !list.is_empty());
        let longest = lists.max_by_key(|list| Value::Array(list.to_vec()).to_string().len());
        match longest {
            Some(list) => {
                list.pop();
                left_off += 1;
                members.insert("left_off".to_owned(), left_off.into());
            }
            None => return None,
        }
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, data: &Value) -> Vec<Answer> {
        let (mut pages, mut start) = (Vec::new(), 0);
        loop {
            let page = page_of_text(&["note: x".to_owned()], text, start, data.clone());
            let next = page.data["next_cursor"].as_str().map(|next| next.parse().unwrap());
            pages.push(page);
            match next {
                Some(next) => start = next,
                None => return pages,
            }
        }
    }

    #[test]
    fn a_long_text_comes_in_pages_that_fit_and_lose_nothing() {
        let text: String = (0..2_000).map(|line| format!("line \"{line}\" é\n")).collect();
        let data = json!({"findings": vec!["x".repeat(300); 40]});
        let pages = texts(&text, &data);
        assert!(pages.len() > 3 && pages.iter().all(|page| page.size() <= LIMIT));
        let all: String = pages.iter().map(|page| page.text.as_str()).collect();
        assert!((0..2_000).all(|line| all.contains(&format!("line \"{line}\" "))));
        assert!(pages[0].data["left_off"].as_u64().unwrap() > 0);
        let one = texts(&"x".repeat(100_000), &json!({}));
        assert!(one.len() == 1 && one[0].size() <= LIMIT, "a line without an end is cut");
        let wide = texts(&"\u{1F600}\"\\".repeat(30_000), &json!({"s": "y".repeat(2_000)}));
        assert!(wide[0].size() <= LIMIT);
        let heavy = texts("text", &json!({"s": "y".repeat(20_000)}));
        assert!(
            heavy[0].size() <= LIMIT && heavy[0].text.contains("text"),
            "data that cannot be cut is left out"
        );
    }

    #[test]
    fn a_table_comes_in_pages_that_fit() {
        let columns =
            vec![Column::new("name", "name", Format::Name), Column::new("text", "text", Format::Text)];
        let mut table = Table::new("test", columns);
        for row in 0..100 {
            table.push([
                Cell::from(format!("{row}-{}", "n".repeat(500))),
                Cell::from("t\u{1b}".repeat(5_000)),
            ]);
        }
        let rows: Vec<usize> = (0..100).collect();
        let mut start = 0;
        while start < 100 {
            let page = page_of_table(&[], &table, &rows, start, 15).unwrap();
            assert!(page.size() <= LIMIT && !page.text.contains('\u{1b}'));
            let next = page.data["next_cursor"].as_str().map_or(100, |next| next.parse().unwrap());
            assert!(next > start);
            start = next;
        }
        let none = page_of_table(&[], &table, &rows, 500, 15).unwrap();
        assert!(none.text.contains("No rows."), "{}", none.text);
    }
}
