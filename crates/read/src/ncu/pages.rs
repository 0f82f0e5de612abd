//! The CSV pages. `--page raw` is wide: one row a launch, one column a metric, units in the second line.
//! `--page details` is long: one row a metric, and rows of advice with more fields between them. Whatever the
//! profiled program printed may stand before the header.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, StrId};

use super::labels::metric_of;
use super::launch::{Launch, Profile};
use super::sentences::metrics_in;
use super::units::to_base;
use crate::csv::{number, record};

/// Columns that say which launch a row is about; all others of the raw page are metrics.
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

/// Does a line of the text open a page?
pub(super) fn recognises(text: &str) -> bool {
    header_at(text).is_some()
}

fn header_at(text: &str) -> Option<usize> {
    let opens = |line: &str| line.starts_with("\"ID\",\"Process ID\",") || line.starts_with("ID,Process ID,");
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if opens(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Reads a page of either sort.
pub(super) fn read(text: &str) -> Profile {
    let mut profile = Profile::new();
    let mut rest = header_at(text).and_then(|at| text.get(at..)).unwrap_or("");
    let Some(header) = record(&mut rest) else { return profile };
    let columns = Columns::new(&header);
    match columns.metric {
        Some(_) => read_long(rest, &columns, &mut profile),
        None => read_wide(rest, &header, &columns, &mut profile),
    }
    profile
}

/// Where the columns are that both pages have.
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
            value: find("Metric Value"),
            advice: find("Rule Description"),
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
            metrics: Vec::new(),
        }
    }
}

/// Three sizes as they are printed: `(32, 32, 1)`.
pub(super) fn shape(text: &str) -> Option<[i64; 3]> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut sizes = inner.split(',').map(|size| size.trim().parse().ok());
    Some([sizes.next()??, sizes.next()??, sizes.next()??])
}

/// A printed value in base units; `None` where there is none.
pub(super) fn datum(text: &str, unit: &str, profile: &mut Profile) -> Option<Datum> {
    match number(text) {
        Some(value) => Some(Datum::Float(value * to_base(unit))),
        None if matches!(text.trim(), "" | "n/a" | "nan" | "inf" | "-nan" | "-inf" | "no data") => None,
        None => Some(Datum::Str(profile.builder.strings.intern(text.trim()))),
    }
}

fn is_launch(row: &[Cow<str>]) -> bool {
    row.len() > 2 && row.first().is_some_and(|id| id.parse::<u64>().is_ok())
}

fn read_wide(mut rest: &str, header: &[Cow<str>], columns: &Columns, profile: &mut Profile) {
    let metrics: Vec<(usize, StrId)> = header
        .iter()
        .enumerate()
        .filter(|(_, name)| !IDENTITY.contains(&&***name) && !name.is_empty())
        .map(|(column, name)| (column, profile.builder.strings.intern(name)))
        .collect();
    let mut units: Vec<Cow<str>> = Vec::new();
    while let Some(row) = record(&mut rest) {
        if !is_launch(&row) {
            // The units' line is the one without a number in front; everything else is what a program printed.
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
            let value = row.get(column).and_then(|text| datum(text, unit, profile));
            launch.metrics.extend(value.map(|value| (name, value)));
        }
        profile.add(launch);
    }
}

fn read_long(mut rest: &str, columns: &Columns, profile: &mut Profile) {
    let mut launches: Vec<Launch> = Vec::new();
    let mut by_id: FxHashMap<String, usize> = FxHashMap::default();
    while let Some(row) = record(&mut rest) {
        if !is_launch(&row) {
            continue;
        }
        let id = row.first().map(|id| id.clone().into_owned()).unwrap_or_default();
        let index = *by_id.entry(id).or_insert_with(|| {
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
        let name = profile.builder.strings.intern(metric_of(label, unit));
        if let Some(value) = datum(text(columns.value), unit, profile)
            && let Some(launch) = launches.get_mut(index)
            && !launch.metrics.iter().any(|(known, _)| *known == name)
        {
            launch.metrics.push((name, value));
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
