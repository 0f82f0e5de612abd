//! Columns: their names and units, and what they must be if the log has no header.

use std::borrow::Cow;

/// A sampled value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Metric {
    /// The name in `nvidia-smi --help-query-gpu`, e.g. `memory.used`.
    pub name: String,
    /// The unit as nvidia-smi writes it, e.g. `MiB`; empty for a bare number.
    pub unit: &'static str,
}

/// The content of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// When the sample was taken.
    Timestamp,
    /// The GPU that it is about.
    Identity,
    /// The model of that GPU.
    Name,
    /// A value.
    Metric(Metric),
    /// Something constant.
    Other,
}

/// Prefixes of names of values that change, with their units.
const METRICS: &[(&str, &str)] = &[
    ("utilization.", "%"),
    ("memory.", "MiB"),
    ("fb_memory_usage.", "MiB"),
    ("power.", "W"),
    ("enforced.power.limit", "W"),
    ("module.power.", "W"),
    ("clocks.", "MHz"),
    ("clocks_throttle_reasons.", ""),
    ("clocks_event_reasons.", ""),
    ("temperature.", "C"),
    ("fan.speed", "%"),
    ("pstate", ""),
    ("pcie.link.", ""),
    ("encoder.stats.", ""),
    ("ecc.errors.", ""),
];

impl Column {
    /// The column for a header cell: `memory.used [MiB]`, ` power.draw`, `gpu_name`.
    pub(crate) fn from_header(cell: &str) -> Self {
        let name = cell.split('[').next().unwrap_or(cell).trim().to_ascii_lowercase();
        // A query for `clocks.sm` returns a column `clocks.current.sm`: one name for both.
        let name = match name.strip_prefix("clocks.current.") {
            Some("memory") => "clocks.mem".to_owned(),
            Some(which) => format!("clocks.{which}"),
            None => name,
        };
        match name.as_str() {
            "timestamp" | "time" => Column::Timestamp,
            "index" | "gpu" | "gpu_id" | "gpu_index" | "uuid" | "gpu_uuid" | "serial" | "gpu_serial"
            | "pci.bus_id" | "gpu_bus_id" => Column::Identity,
            "name" | "gpu_name" => Column::Name,
            _ => match METRICS.iter().find(|(start, _)| name.starts_with(start)) {
                Some(&(_, unit)) => Column::Metric(Metric { name, unit }),
                None => Column::Other,
            },
        }
    }

    fn metric(name: &str, unit: &'static str) -> Self {
        Column::Metric(Metric { name: name.to_owned(), unit })
    }
}

/// The columns of a header; `None` for a row that is not a header.
pub(super) fn header(row: &[Cow<str>]) -> Option<Vec<Column>> {
    let columns: Vec<Column> = row.iter().map(|cell| Column::from_header(cell)).collect();
    columns.iter().any(|column| matches!(column, Column::Metric(_))).then_some(columns)
}

/// The columns of a log without a header, from the units in the first row. Of two similar columns, the one
/// about the GPU usually comes before the one about its memory, and the used amount never exceeds the total.
pub(super) fn guessed(row: &[Cow<str>]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::with_capacity(row.len());
    let (mut shares, mut powers, mut clocks) = (0, 0, 0);
    let mut sizes: Vec<(f64, usize)> = Vec::new();
    let mut temperature = false;
    for (index, cell) in row.iter().enumerate() {
        let (value, unit) = measured(cell);
        columns.push(match (value, unit) {
            _ if super::clock::parse(cell).is_some() => Column::Timestamp,
            (Some(_), "%") => {
                shares += 1;
                pick(&["utilization.gpu", "utilization.memory"], shares, "%")
            }
            (Some(value), "MiB") => {
                sizes.push((value, index));
                Column::Other
            }
            (Some(_), "W") => {
                powers += 1;
                pick(&["power.draw", "power.limit"], powers, "W")
            }
            (Some(_), "MHz") => {
                clocks += 1;
                pick(&["clocks.sm", "clocks.mem"], clocks, "MHz")
            }
            // A bare number before all measurements is the GPU's index; after them it is its temperature.
            (Some(value), "") if !temperature && columns.len() > 1 && (15.0..=120.0).contains(&value) => {
                temperature = true;
                Column::metric("temperature.gpu", "C")
            }
            (Some(value), "") if columns.len() <= 2 && value < 64.0 => Column::Identity,
            (None, _) if cell.starts_with("GPU-") => Column::Identity,
            (None, _) if cell.contains(char::is_alphabetic) && index <= 3 => Column::Name,
            _ => Column::Other,
        });
    }
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names: &[&str] = match sizes.len() {
        1 => &["memory.used"],
        _ => &["memory.used", "memory.total"],
    };
    let ends = [sizes.first(), sizes.last()].into_iter().flatten();
    for (name, &(_, index)) in names.iter().zip(ends) {
        if let Some(column) = columns.get_mut(index) {
            *column = Column::metric(name, "MiB");
        }
    }
    columns
}

fn pick(names: &[&str], nth: usize, unit: &'static str) -> Column {
    names.get(nth - 1).map_or(Column::Other, |name| Column::metric(name, unit))
}

/// Number and unit of a cell: `45 %`, `20146 MiB`, `11.64 W`, `33`.
pub(super) fn measured(cell: &str) -> (Option<f64>, &str) {
    let cell = cell.trim();
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    (crate::csv::number(number), unit.trim())
}

/// The value of a cell. Flags and states are words; unavailable values are `None`.
pub(super) fn value(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    match cell {
        "Active" => return Some(1.0),
        "Not Active" => return Some(0.0),
        _ => {}
    }
    if let Some(digits) = cell.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|bits| bits as f64);
    }
    if let Some(state) = cell.strip_prefix('P').and_then(|state| state.parse().ok()) {
        return Some(state);
    }
    let (number, unit) = measured(cell);
    number.map(|number| match unit {
        "GiB" => number * 1024.0,
        "KiB" => number / 1024.0,
        "mW" => number / 1e3,
        _ => number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'t>(cells: &[&'t str]) -> Vec<Cow<'t, str>> {
        cells.iter().map(|cell| Cow::Borrowed(*cell)).collect()
    }

    #[test]
    fn headers_tell_columns_with_and_without_units() {
        assert_eq!(Column::from_header("memory.used [MiB]"), Column::metric("memory.used", "MiB"));
        assert_eq!(Column::from_header("utilization.gpu [%]"), Column::metric("utilization.gpu", "%"));
        assert_eq!(Column::from_header("clocks.current.sm [MHz]"), Column::metric("clocks.sm", "MHz"));
        assert_eq!(Column::from_header("clocks.current.memory [MHz]"), Column::metric("clocks.mem", "MHz"));
        assert_eq!(Column::from_header("pci.bus_id"), Column::Identity);
        assert_eq!(Column::from_header("driver_version"), Column::Other);
        assert_eq!(header(&row(&["2026/04/25 16:06:06.780", "0 %"])), None);
    }

    #[test]
    fn columns_without_a_header_are_told_by_their_units() {
        let cells = ["2026/04/25 16:06:06.780", "1", "0 %", "3 %", "20146 MiB", "2 MiB", "27", "11.64 W"];
        let want = [
            Column::Timestamp,
            Column::Identity,
            Column::metric("utilization.gpu", "%"),
            Column::metric("utilization.memory", "%"),
            Column::metric("memory.total", "MiB"),
            Column::metric("memory.used", "MiB"),
            Column::metric("temperature.gpu", "C"),
            Column::metric("power.draw", "W"),
        ];
        assert_eq!(guessed(&row(&cells)), want);
    }

    #[test]
    fn words_have_values_and_what_is_missing_has_none() {
        assert_eq!(value("45 %"), Some(45.0));
        assert_eq!(value("1.5 GiB"), Some(1536.0));
        assert_eq!(value("0x0000000000000004"), Some(4.0));
        assert_eq!(value("P8"), Some(8.0));
        assert_eq!((value("Active"), value("Not Active")), (Some(1.0), Some(0.0)));
        for none in ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", ""] {
            assert_eq!(value(none), None, "{none}");
        }
    }
}
