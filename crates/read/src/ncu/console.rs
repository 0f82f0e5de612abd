//! What ncu prints to a terminal: one line per launch, then tables of metrics by section.
//!
//! ```text
//!   add(const float *, int) (1024, 5, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 7.5
//!     Section: GPU Speed Of Light Throughput
//!     Elapsed Cycles                cycle      648,066
//! ```
//!
//! With `--print-summary`, a line covers all identical launches, and rows have three values: minimum, maximum
//! and mean. In per-GPU summaries, everything is indented further.

use super::labels::metric_of;
use super::launch::{Launch, Profile};
use super::pages::shape;
use super::sentences::metrics_in;
use crate::csv::number;

/// Whether it looks like ncu's output.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| launch_of(line).is_some())
        && text.lines().any(|line| line.starts_with("    ") && line.trim_start().starts_with("Section: "))
}

/// Reads all tables.
pub(super) fn read(text: &str) -> Profile {
    let mut profile = Profile::new();
    let mut current: Option<Launch> = None;
    let mut advice = String::new();
    for line in text.lines() {
        if is_advice(line) {
            advice.push_str(line);
            advice.push(' ');
            continue;
        }
        if let Some(launch) = current.as_mut() {
            let told = metrics_in(&std::mem::take(&mut advice));
            told.into_iter().for_each(|(name, value)| launch.tell(name, value, &mut profile));
        }
        if let Some(launch) = launch_of(line) {
            if let Some(done) = current.replace(launch) {
                profile.add(done);
            }
        } else if let (Some(launch), Some(row)) = (current.as_mut(), row(line)) {
            let name = metric_of(row.label, row.unit);
            launch.measure(name, row.value, row.unit, &mut profile);
            if let Some(ends) = row.ends {
                launch.measure_ends(name, ends, row.unit, &mut profile);
            }
        }
    }
    if let Some(mut done) = current {
        metrics_in(&advice).into_iter().for_each(|(name, value)| done.tell(name, value, &mut profile));
        profile.add(done);
    }
    profile
}

/// Whether it is part of advice. Advice starts with its kind and is indented further than table rows.
fn is_advice(line: &str) -> bool {
    let begins = ["    OPT ", "    INF ", "    WRN ", "    WARN "].iter().any(|sort| line.starts_with(sort));
    begins || (line.starts_with("          ") && !line.trim().is_empty())
}

/// The launch or launches that a line announces.
fn launch_of(line: &str) -> Option<Launch> {
    one_launch(line).or_else(|| launches_alike(line))
}

/// `  name(args) (32, 32, 1)x(32, 32, 1), Device 0, CC 11.0, Invocations 14`: a line of a summary.
fn launches_alike(line: &str) -> Option<Launch> {
    let (what, invocations) = line.strip_prefix("  ")?.trim_start().rsplit_once(", Invocations ")?;
    let (what, device) = what.split_once(", Device ").unwrap_or((what, ""));
    let device = device.split(',').next().and_then(|number| number.trim().parse().ok());
    let (name, grid, block) = split_shapes(what)?;
    let invocations = Some(invocations.trim().replace(',', "").parse().ok()?);
    let name = name.to_owned();
    Some(Launch { name, device, grid: Some(grid), block: Some(block), invocations, ..Launch::default() })
}

fn one_launch(line: &str) -> Option<Launch> {
    let line = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
    let (what, rest) = line.split_once(", Context ")?;
    let (context, rest) = rest.split_once(", Stream ").unwrap_or((rest, ""));
    let number = |text: &str| text.split(',').next().and_then(|number| number.trim().parse().ok());
    let device = rest.split_once(", Device ").and_then(|(_, rest)| number(rest));
    let mut launch = Launch { device, context: number(context), stream: number(rest), ..Launch::default() };
    match split_shapes(what) {
        Some((name, grid, block)) => {
            launch.name = name.to_owned();
            (launch.grid, launch.block) = (Some(grid), Some(block));
        }
        // Versions before 2022 print the launch time instead.
        None => {
            launch.name = what.split_once("), ").map_or(what, |(name, _)| &what[..name.len() + 1]).to_owned();
        }
    }
    Some(launch)
}

/// `name(args) (1024, 5, 1)x(256, 1, 1)`: the name and both shapes.
fn split_shapes(what: &str) -> Option<(&str, [i64; 3], [i64; 3])> {
    let (before, block) = what.rsplit_once(")x(")?;
    let (name, grid) = before.rsplit_once(" (")?;
    Some((name, shape(&format!("({grid})"))?, shape(&format!("({block}"))?))
}

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'l> {
    label: &'l str,
    /// Empty if there is none.
    unit: &'l str,
    value: &'l str,
    /// Minimum and maximum, if the value is a mean.
    ends: Option<[&'l str; 2]>,
}

/// Label, unit and value, separated by at least two spaces. The unit may be missing, and a summary has three
/// values. Metric names contain no spaces and fill their column.
fn row(line: &str) -> Option<Row<'_>> {
    let line = line.strip_prefix("      ").or(line.strip_prefix("    "))?;
    let line = Some(line).filter(|rest| !rest.starts_with([' ', '-']))?.trim_end();
    let first = line.split(' ').next().filter(|word| word.contains("__"));
    let (label, rest) = match first {
        Some(name) => (name, line.get(name.len()..)?),
        None => line.split_once("  ")?,
    };
    let mut cells: Vec<&str> = Vec::new();
    for cell in rest.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).take(5) {
        // Some locales put spaces between thousands.
        match number(cell) {
            Some(_) => cells.push(cell),
            None => cells.extend(cell.split_whitespace().take(5)),
        }
    }
    let row = |unit, value, ends| Some(Row { label, unit, value, ends });
    let numbers = |cells: [&str; 3]| cells.into_iter().all(|cell| number(cell).is_some());
    match cells[..] {
        [value] => row("", value, None),
        [unit, value] => row(unit, value, None),
        [least, most, mean] if numbers([least, most, mean]) => row("", mean, Some([least, most])),
        [unit, least, most, mean] if numbers([least, most, mean]) => row(unit, mean, Some([least, most])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_old_and_new_versions_are_known() {
        let new = launch_of(
            "  f(const char *, int) (1024, 5, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 7.5",
        );
        let new = new.unwrap_or_default();
        assert_eq!(
            (new.name.as_str(), new.grid, new.block),
            ("f(const char *, int)", Some([1024, 5, 1]), Some([256, 1, 1]))
        );
        assert_eq!((new.context, new.stream, new.device), (Some(1), Some(7), Some(0)));
        let old = launch_of("  f(int, int), 2021-Mar-01 10:00:00, Context 1, Stream 7").unwrap_or_default();
        assert_eq!((old.name.as_str(), old.grid, old.stream), ("f(int, int)", None, Some(7)));
        assert!(launch_of("    Section: Occupancy").is_none());
    }

    #[test]
    fn summaries_name_all_launches_alike() {
        let found = launch_of("  t(float *, int) (32, 16, 1)x(8, 8, 1), Device 1, CC 9.0, Invocations 1,400");
        let found = found.unwrap_or_default();
        assert_eq!((found.name.as_str(), found.device), ("t(float *, int)", Some(1)));
        assert_eq!((found.grid, found.block), (Some([32, 16, 1]), Some([8, 8, 1])));
        assert_eq!(found.invocations, Some(1_400));
        let by_gpu = launch_of("    t(int) (2, 1, 1)x(64, 1, 1), Invocations 3").unwrap_or_default();
        assert_eq!((by_gpu.name.as_str(), by_gpu.invocations), ("t(int)", Some(3)));
        assert!(launch_of("the kernel ran often, Invocations 3").is_none());
    }

    #[test]
    fn rows_have_a_unit_or_none() {
        let plain = |label, unit, value| Some(Row { label, unit, value, ends: None });
        assert_eq!(
            row("    Elapsed Cycles                cycle      648,066"),
            plain("Elapsed Cycles", "cycle", "648,066")
        );
        assert_eq!(
            row("    # Pass Groups                                    1"),
            plain("# Pass Groups", "", "1")
        );
        assert_eq!(
            row("    Executed Ipc Active   inst/cycle         2.66"),
            plain("Executed Ipc Active", "inst/cycle", "2.66")
        );
        assert_eq!(row("    dram__bytes.sum Mbyte 1.50"), plain("dram__bytes.sum", "Mbyte", "1.50"));
        assert_eq!(
            row("    SM Active Cycles            cycle      23 111 929,56"),
            plain("SM Active Cycles", "cycle", "23 111 929,56")
        );
        assert_eq!(row("    OPT   Compute is more heavily utilized"), None);
        assert_eq!(row("    ----------- -----------"), None);
    }

    #[test]
    fn rows_of_summaries_have_three_values() {
        let want = Some(Row {
            label: "Memory Throughput",
            unit: "%",
            value: "64.43",
            ends: Some(["56.59", "72.29"]),
        });
        assert_eq!(row("    Memory Throughput      %   56.59   72.29   64.43"), want);
        assert_eq!(row("      Memory Throughput      %   56.59   72.29   64.43"), want);
        let bare = row("    Block Limit SM   16   16   16").map(|row| (row.unit, row.value));
        assert_eq!(bare, Some(("", "16")));
        assert_eq!(row("    Metric Name     Metric Unit Minimum Maximum Average"), None);
    }
}
