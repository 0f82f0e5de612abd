//! The CSV pages. `--page raw` is wide: one row per launch, one column per metric, units in the second line.
//! `--page details` is long: one row per metric, and rows of advice with more fields between them; with
//! `--print-summary`, one row per metric of all identical launches. Output of the profiled program may precede
//! the header.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use stepscope_trace::StrId;

use super::labels::metric_of;
use super::launch::{Launch, Profile};
use super::sentences::metrics_in;
use crate::csv::{record, separator};

/// Columns that identify the launch of a row; all other columns of the raw page are metrics.
const IDENTITY: [&str; 13] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
];

/// Whether a line of the text starts a page.
pub(super) fn recognises(text: &str) -> bool {
    header_at(text).is_some()
}

fn header_at(text: &str) -> Option<usize> {
    let opens = |line: &str| {
        // Every printed line goes through this check, and the first letters rule out most of them.
        if !["\"ID\"", "ID", "\"Process ID\"", "Process ID"].iter().any(|first| line.starts_with(first)) {
            return false;
        }
        let cells = record(&mut { line }, separator(line)).unwrap_or_default();
        let has = |column: &str| cells.iter().any(|cell| cell == column);
        match cells.first().map(|cell| &**cell) {
            Some("ID") => cells.get(1).is_some_and(|cell| cell == "Process ID"),
            Some("Process ID") => ["Kernel Name", "Invocations", "Metric Name"].into_iter().all(has),
            _ => false,
        }
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if opens(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Reads a page of either kind.
pub(super) fn read(text: &str) -> Profile {
    let mut profile = Profile::new();
    let mut rest = header_at(text).and_then(|at| text.get(at..)).unwrap_or("");
    let separator = separator(rest);
    let Some(header) = record(&mut rest, separator) else { return profile };
    let columns = Columns::new(&header);
    match columns.metric {
        Some(_) => read_long(rest, separator, &columns, &mut profile),
        None => read_wide((rest, separator), &header, &columns, &mut profile),
    }
    profile
}

/// The columns that both pages have.
struct Columns {
    kernel: Option<usize>,
    context: Option<usize>,
    stream: Option<usize>,
    block: Option<usize>,
    grid: Option<usize>,
    device: Option<usize>,
    metric: Option<usize>,
    unit: Option<usize>,
    value: Option<usize>,
    advice: Option<usize>,
    summary: Option<Summary>,
}

/// Columns that only a summary has.
struct Summary {
    process: Option<usize>,
    invocations: usize,
    minimum: Option<usize>,
    maximum: Option<usize>,
}

impl Columns {
    fn new(header: &[Cow<str>]) -> Self {
        let find = |name: &str| header.iter().position(|column| column == name);
        Columns {
            kernel: find("Kernel Name"),
            context: find("Context"),
            stream: find("Stream"),
            block: find("Block Size"),
            grid: find("Grid Size"),
            device: find("Device"),
            metric: find("Metric Name"),
            unit: find("Metric Unit"),
            value: find("Metric Value").or(find("Average")),
            advice: find("Rule Description"),
            summary: find("Invocations").map(|invocations| Summary {
                process: find("Process ID"),
                invocations,
                minimum: find("Minimum"),
                maximum: find("Maximum"),
            }),
        }
    }

    fn launch(&self, row: &[Cow<str>]) -> Launch {
        let text =
            |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", |text| &**text);
        let whole = |column: Option<usize>| text(column).parse().ok();
        Launch {
            name: text(self.kernel).to_owned(),
            device: whole(self.device),
            context: whole(self.context),
            stream: whole(self.stream),
            grid: shape(text(self.grid)),
            block: shape(text(self.block)),
            invocations: self.summary.as_ref().and_then(|summary| whole(Some(summary.invocations))),
            ..Launch::default()
        }
    }

    /// Key of the rows about one launch: its number, or, in summaries, everything that launches share.
    fn identity(&self, row: &[Cow<str>]) -> String {
        let cell =
            |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", |cell| &**cell);
        match &self.summary {
            None => cell(Some(0)).to_owned(),
            Some(summary) => {
                let columns = [summary.process, self.kernel, self.grid, self.block, self.device];
                columns.map(cell).join("\n")
            }
        }
    }
}

/// Three sizes as they are printed: `(32, 32, 1)`.
pub(super) fn shape(text: &str) -> Option<[i64; 3]> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut sizes = inner.split(',').map(|size| size.trim().parse().ok());
    Some([sizes.next()??, sizes.next()??, sizes.next()??])
}

fn is_launch(row: &[Cow<str>]) -> bool {
    row.len() > 2 && row.first().is_some_and(|id| id.parse::<u64>().is_ok())
}

fn read_wide(
    (mut rest, separator): (&str, char),
    header: &[Cow<str>],
    columns: &Columns,
    profile: &mut Profile,
) {
    let metrics: Vec<(usize, StrId)> = header
        .iter()
        .enumerate()
        .filter(|(_, name)| !IDENTITY.contains(&&***name) && !name.is_empty())
        .map(|(column, name)| (column, profile.builder.strings.intern(name)))
        .collect();
    let mut units: Vec<Cow<str>> = Vec::new();
    while let Some(row) = record(&mut rest, separator) {
        if !is_launch(&row) {
            // The line of units has no number at the front; everything else is program output.
            if units.is_empty()
                && row.len() + 1 >= header.len()
                && row.first().is_some_and(|id| id.is_empty())
            {
                units = row;
            }
            continue;
        }
        let mut launch = columns.launch(&row);
        for &(column, name) in &metrics {
            let unit = units.get(column).map_or("", |unit| &**unit);
            let value = row.get(column).and_then(|text| profile.datum(text, unit));
            launch.metrics.extend(value.map(|value| (name, value)));
        }
        profile.add(launch);
    }
}

fn read_long(mut rest: &str, separator: char, columns: &Columns, profile: &mut Profile) {
    let mut launches: Vec<Launch> = Vec::new();
    let mut by_id: FxHashMap<String, usize> = FxHashMap::default();
    while let Some(row) = record(&mut rest, separator) {
        if !is_launch(&row) {
            continue;
        }
        let index = *by_id.entry(columns.identity(&row)).or_insert_with(|| {
            launches.push(columns.launch(&row));
            launches.len() - 1
        });
        let text =
            |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", |text| &**text);
        let (label, unit) = (text(columns.metric), text(columns.unit));
        if label.is_empty() {
            let told = metrics_in(text(columns.advice));
            if let Some(launch) = launches.get_mut(index) {
                told.into_iter().for_each(|(name, value)| launch.tell(name, value, profile));
            }
            continue;
        }
        let Some(launch) = launches.get_mut(index) else { continue };
        launch.measure(metric_of(label, unit), text(columns.value), unit, profile);
        if let Some(summary) = &columns.summary {
            let ends = [text(summary.minimum), text(summary.maximum)];
            launch.measure_ends(metric_of(label, unit), ends, unit, profile);
        }
    }
    launches.into_iter().for_each(|launch| profile.add(launch));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_printed() {
        assert_eq!(shape("(32, 4, 1)"), Some([32, 4, 1]));
        assert_eq!(shape("32, 4, 1"), None);
        assert_eq!(shape("(32, 4)"), None);
        assert_eq!(shape("()"), None);
    }
}
