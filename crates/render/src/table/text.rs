//! A table as text: the headline, aligned columns with units, omitted rows, and notes.

use std::io::{self, Write};

use stepscope_results::table::{Cell, Column, Format, Picked, Prose, Table};

use crate::format::{self, UNKNOWN};
use crate::report::wrapped;
use crate::style::Style;

/// Spaces between columns.
const GAP: usize = 2;
/// A name is never cut shorter than this.
const NAME_LEAST: usize = 16;
/// Maximum width of a name if lines may have any length.
const NAME_MOST: usize = 72;

/// Writes the picked rows.
pub fn write_text(table: &Table, picked: &Picked, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if let Some(headline) = &table.headline {
        for line in fitting(headline, style) {
            writeln!(out, "{}", style.bold(&line))?;
        }
    }
    if table.prose().is_empty() {
        write_columns(table, picked, style, out)?;
    } else {
        for (place, prose) in picked.rows.iter().filter_map(|&row| table.prose().get(row)).enumerate() {
            let gap = if table.dense && place > 0 { "" } else { "\n" };
            writeln!(out, "{gap}{}{}", style.tone(prose.tone, &prose.lead), in_width(prose, style))?;
        }
    }
    if picked.cut > 0 {
        let more = format!("… and {} more; --top 0 shows all", format::thousands(picked.cut as u64));
        writeln!(out, "{}", style.dim(&more))?;
    }
    if !table.notes().is_empty() {
        writeln!(out)?;
    }
    let lines = table.notes().iter().flat_map(|note| fitting(note, style));
    lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A sentence in lines that fit; in one line where lines may have any length.
fn fitting(text: &str, style: Style) -> Vec<String> {
    let text = format::printable(text);
    match style.width {
        Some(width) if text.chars().count() > width => wrapped(&text, width, 0),
        _ => vec![text],
    }
}

/// The rest of a row in words, its lines indented as they are.
fn in_width(prose: &Prose, style: Style) -> String {
    let Some(width) = style.width else { return prose.rest.clone() };
    let mut lines: Vec<String> = Vec::new();
    for (place, line) in prose.rest.split('\n').enumerate() {
        let before = if place == 0 { prose.lead.chars().count() } else { 0 };
        if line.chars().count() + before <= width {
            lines.push(line.to_owned());
            continue;
        }
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let later = if place == 0 { 2 } else { indent };
        for (part, text) in wrapped(line, width, later.max(before)).into_iter().enumerate() {
            let spaces = if part == 0 { indent } else { later };
            lines.push(format!("{}{text}", " ".repeat(spaces)));
        }
    }
    lines.join("\n")
}

/// A laid-out column: all its text, and its width.
struct Laid<'a> {
    column: &'a Column,
    title: String,
    cells: Vec<String>,
    width: usize,
}

fn write_columns(table: &Table, picked: &Picked, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if picked.rows.is_empty() {
        return Ok(());
    }
    let mut laid: Vec<Laid<'_>> = table
        .columns()
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.hidden)
        .map(|(place, column)| lay_out(table, picked, place, column))
        // A column without any known value only takes up space.
        .filter(|laid| !laid.column.optional || laid.cells.iter().any(|cell| cell != UNKNOWN))
        .collect();
    let left_out = fit(&mut laid, style.width);
    if table.headline.is_some() {
        writeln!(out)?;
    }
    let titles = line(&laid, |column| &column.title);
    writeln!(out, "{}", style.dim(&titles))?;
    for row in 0..picked.rows.len() {
        writeln!(out, "{}", line(&laid, |column| column.cells.get(row).map_or("", String::as_str)))?;
    }
    if left_out.is_empty() {
        return Ok(());
    }
    let text = format!("Too narrow for {}; --csv and --json have all columns.", format::listed(&left_out));
    fitting(&text, style).into_iter().try_for_each(|line| writeln!(out, "{}", style.dim(&line)))
}

fn lay_out<'a>(table: &Table, picked: &Picked, place: usize, column: &'a Column) -> Laid<'a> {
    let values = || picked.rows.iter().filter_map(|&row| table.rows().get(row)?.get(place));
    let unit = TimeUnit::for_largest(values().filter_map(number).fold(0.0, |a: f64, b| a.max(b.abs())));
    let title = match column.format {
        Format::Ms => format!("{} {}", column.title, unit.name()),
        _ => column.title.to_string(),
    };
    let cells: Vec<String> = values().map(|cell| show(cell, column.format, unit)).collect();
    let width = cells.iter().chain([&title]).map(|text| text.chars().count()).max().unwrap_or(0);
    Laid { column, title, cells, width }
}

/// The unit of a whole column of times, so that its values are easy to compare.
#[derive(Copy, Clone)]
enum TimeUnit {
    Micro,
    Milli,
    Second,
}

impl TimeUnit {
    fn for_largest(ms: f64) -> Self {
        match ms {
            // A column without values keeps the unit of all other outputs.
            v if v > 0.0 && v < 1.0 => TimeUnit::Micro,
            v if v < 100_000.0 => TimeUnit::Milli,
            _ => TimeUnit::Second,
        }
    }

    fn name(self) -> &'static str {
        match self {
            TimeUnit::Micro => "µs",
            TimeUnit::Milli => "ms",
            TimeUnit::Second => "s",
        }
    }

    fn show(self, ms: f64) -> String {
        match self {
            TimeUnit::Micro => format::decimal(ms * 1e3, 2),
            TimeUnit::Milli => format::decimal(ms, 3),
            TimeUnit::Second => format::decimal(ms / 1e3, 3),
        }
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Int(value) => Some(*value as f64),
        Cell::Float(value) => Some(*value),
        _ => None,
    }
}

fn show(cell: &Cell, format: Format, unit: TimeUnit) -> String {
    match cell {
        Cell::Null => return UNKNOWN.to_owned(),
        Cell::Bool(value) => return if *value { "yes" } else { "no" }.to_owned(),
        Cell::Text(text) => return format::printable(text),
        Cell::Map(entries) => return show_map(entries),
        Cell::Int(value) if format == Format::Count => return format::thousands(*value),
        Cell::Int(value) if matches!(format, Format::Id | Format::Name | Format::Text) => {
            return value.to_string();
        }
        Cell::Int(_) | Cell::Float(_) => {}
    }
    let value = number(cell).unwrap_or(f64::NAN);
    match format {
        Format::Ms => unit.show(value),
        Format::Bytes => format::bytes(value),
        Format::Percent => format::percent(value),
        Format::Count if value.fract() == 0.0 => format::decimal(value, 0),
        Format::Count => format::decimal(value, 1),
        Format::Id | Format::Name | Format::Text | Format::Flag | Format::Map => value.to_string(),
        Format::Short => format::short(value),
    }
}

/// The three largest of named times.
fn show_map(entries: &[(String, f64)]) -> String {
    let mut entries: Vec<&(String, f64)> = entries.iter().filter(|(_, value)| value.is_finite()).collect();
    entries.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown: Vec<String> =
        entries.iter().take(3).map(|(key, value)| format!("{key} {}", format::short(*value))).collect();
    shown.join(", ")
}

/// Makes the columns fit: first cuts names, then drops optional columns, the last first, then others; the first column and
/// one more stay. Returns the titles of those that were dropped.
fn fit(laid: &mut Vec<Laid<'_>>, width: Option<usize>) -> Vec<String> {
    let mut dropped = Vec::new();
    loop {
        let Some(over) = over(laid, width) else {
            cut_names(laid, NAME_MOST);
            dropped.reverse();
            return dropped;
        };
        if let Some(name) = widest_name(laid).filter(|&i| laid[i].width > NAME_LEAST) {
            let next = laid[name].width.saturating_sub(over).max(NAME_LEAST);
            let before = laid[name].width;
            set_width(&mut laid[name], next);
            if before > laid[name].width {
                continue;
            }
        }
        let optional = laid.iter().rposition(|column| column.column.optional);
        let Some(last) = optional.or(laid.len().checked_sub(1).filter(|last| *last > 1)) else {
            return dropped;
        };
        let title = laid.remove(last).column.title.trim().to_owned();
        dropped.extend(Some(title).filter(|title| !title.is_empty()));
    }
}

/// Number of characters by which the columns are too wide.
fn over(laid: &[Laid<'_>], width: Option<usize>) -> Option<usize> {
    let all = laid.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP);
    all.checked_sub(width?).filter(|&over| over > 0)
}

fn widest_name(laid: &[Laid<'_>]) -> Option<usize> {
    let names = laid.iter().enumerate().filter(|(_, column)| column.column.format == Format::Name);
    names.max_by_key(|(_, column)| column.width).map(|(place, _)| place)
}

fn cut_names(laid: &mut [Laid<'_>], most: usize) {
    for column in laid.iter_mut().filter(|column| column.column.format == Format::Name) {
        let width = column.width.min(most);
        set_width(column, width);
    }
}

fn set_width(column: &mut Laid<'_>, width: usize) {
    for cell in &mut column.cells {
        *cell = format::name_cut(cell, width);
    }
    column.title = format::middle_cut(&column.title, width);
    column.width = width;
}

fn line<'a>(laid: &'a [Laid<'_>], text: impl Fn(&'a Laid<'_>) -> &'a str) -> String {
    let mut line = String::new();
    for (place, column) in laid.iter().enumerate() {
        if place > 0 {
            line.push_str("  ");
        }
        let text = text(column);
        let pad = column.width.saturating_sub(text.chars().count());
        if column.column.format.is_number() {
            line.extend(std::iter::repeat_n(' ', pad));
            line.push_str(text);
        } else {
            line.push_str(text);
            line.extend(std::iter::repeat_n(' ', pad));
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_results::Select;

    fn ops() -> Table {
        let mut table = Table::new(
            "ops",
            vec![
                Column::new("name", "op", Format::Name),
                Column::new("count", "count", Format::Count),
                Column::new("total_ms", "total", Format::Ms),
                Column::new("fraction", "share", Format::Percent),
                Column::new("bytes", "memory", Format::Bytes).optional(),
                Column::new("secret", "secret", Format::Text).hidden(),
            ],
        );
        table.headline = Some("MatMul dominates".to_owned());
        let long = "gradient_tape/model/dense/MatMul_1";
        table.push([Cell::from(long), 12_345_u64.into(), 4.25.into(), 0.61.into(), 2_500_000_u64.into()]);
        table.push([Cell::from("Add\x1b[31m"), 7_u64.into(), 0.0125.into(), 0.002.into(), Cell::Null]);
        table.note("Self times.");
        table.note("Also \x1b]0;a title\x07.");
        table
    }

    fn text(width: Option<usize>, top: Option<usize>) -> String {
        let (table, mut out) = (ops(), Vec::new());
        let picked = table.pick(&Select { top, ..Select::default() }, None).unwrap();
        write_text(&table, &picked, Style { color: false, width }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_that_nobody_knows_are_in_milliseconds() {
        let mut table = Table::new(
            "steps",
            vec![Column::new("wait_ms", "wait", Format::Ms), Column::new("n", "n", Format::Count)],
        );
        table.push([Cell::Null, 1_u64.into()]);
        let mut out = Vec::new();
        let picked = table.pick(&Select::default(), None).unwrap();
        write_text(&table, &picked, Style { color: false, width: None }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("wait ms"), "{text}");
    }

    #[test]
    fn numbers_stand_at_the_right_with_their_units() {
        insta::assert_snapshot!(text(None, None), @r"
        MatMul dominates

        op                                   count  total ms   share   memory
        gradient_tape/model/dense/MatMul_1  12,345     4.250  61.0 %  2.50 MB
        Add [31m                                 7     0.013   0.2 %        –

        Self times.
        Also  ]0;a title .
        ");
    }

    #[test]
    fn names_are_cut_before_optional_columns_go() {
        assert!(text(Some(66), None).contains("memory"));
        assert!(text(Some(66), None).contains('…'));
        let narrow = text(Some(48), None);
        assert!(!narrow.contains("MB") && narrow.contains("Too narrow for memory"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 48), "{narrow}");
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_lines_and_is_told_what_is_missing() {
        let narrow = text(Some(30), None);
        assert!(narrow.lines().all(|line| line.chars().count() <= 30), "{narrow}");
        let told = narrow.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("Too narrow for") && told.contains("share and memory"), "{narrow}");
    }

    #[test]
    fn what_is_cut_is_said() {
        assert!(text(None, Some(1)).contains("… and 1 more"));
    }
}
