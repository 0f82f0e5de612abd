//! What ncu prints on a terminal: a line for each launch, then tables of metrics by section.
//!
//! ```text
//!   add(const float *, int) (1024, 5, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 7.5
//!     Section: GPU Speed Of Light Throughput
//!     Elapsed Cycles                cycle      648,066
//! ```

use super::labels::metric_of;
use super::launch::{Launch, Profile};
use super::pages::{datum, shape};
use super::sentences::metrics_in;

/// Does it look like ncu's output?
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| launch_of(line).is_some())
        && text.lines().any(|line| line.starts_with("    Section: "))
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
        } else if let (Some(launch), Some((label, unit, value))) = (current.as_mut(), row(line)) {
            let name = profile.builder.strings.intern(metric_of(label, unit));
            if !launch.metrics.iter().any(|(known, _)| *known == name) {
                launch.metrics.extend(datum(value, unit, &mut profile).map(|value| (name, value)));
            }
        }
    }
    if let Some(mut done) = current {
        metrics_in(&advice).into_iter().for_each(|(name, value)| done.tell(name, value, &mut profile));
        profile.add(done);
    }
    profile
}

/// Is it part of a piece of advice? These begin with their sort, and go on further in than rows of tables.
fn is_advice(line: &str) -> bool {
    let begins = ["    OPT ", "    INF ", "    WRN ", "    WARN "].iter().any(|sort| line.starts_with(sort));
    begins || (line.starts_with("          ") && !line.trim().is_empty())
}

/// The launch that a line announces.
fn launch_of(line: &str) -> Option<Launch> {
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
        // Versions before 2022 print the time of the launch instead.
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

/// A row of a table: label, unit and value, two blanks or more apart. The unit may be missing.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.strip_prefix("    ").filter(|rest| !rest.starts_with([' ', '-']))?.trim_end();
    let (label, rest) = line.split_once("  ")?;
    let mut words = rest.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    match (second, words.next()) {
        (Some(value), None) => Some((label, first, value)),
        (None, None) => Some((label, "", first)),
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
    fn rows_have_a_unit_or_none() {
        assert_eq!(
            row("    Elapsed Cycles                cycle      648,066"),
            Some(("Elapsed Cycles", "cycle", "648,066"))
        );
        assert_eq!(
            row("    # Pass Groups                                    1"),
            Some(("# Pass Groups", "", "1"))
        );
        assert_eq!(
            row("    Executed Ipc Active   inst/cycle         2.66"),
            Some(("Executed Ipc Active", "inst/cycle", "2.66"))
        );
        assert_eq!(row("    OPT   Compute is more heavily utilized"), None);
        assert_eq!(row("    ----------- -----------"), None);
    }
}
