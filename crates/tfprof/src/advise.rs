//! tfprof's own checks.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::is_accelerator;
use crate::numbers::time;
use crate::options::{Column, Options, OrderBy, Output};
use crate::profile::Profile;
use crate::rows::Row;
use crate::{code, op, scope};

/// What the checks say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// By check.
    pub checkers: Vec<Checker>,
}

/// What one check says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checker {
    /// The check.
    pub name: &'static str,
    /// Its reports; each may have several lines.
    pub reports: Vec<String>,
}

impl Advice {
    /// What tfprof prints, the checks in the order of their names.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for checker in &self.checkers {
            out += &format!("\n{}:\n", checker.name);
            checker.reports.iter().for_each(|report| out += &format!("{report}\n"));
        }
        out
    }
}

impl Advice {
    /// Reports that one profile has and its correction has not, and the other way round: check, before, after.
    pub fn changes(before: &Advice, after: &Advice) -> Vec<(&'static str, Option<String>, Option<String>)> {
        let mut changes = Vec::new();
        for (old, new) in before.checkers.iter().zip(&after.checkers) {
            let lines = |checker: &Checker| -> Vec<String> {
                checker.reports.iter().flat_map(|report| report.lines()).map(str::to_owned).collect()
            };
            let (old_lines, new_lines) = (lines(old), lines(new));
            let mut gone = old_lines.iter().filter(|line| !new_lines.contains(line));
            let mut come = new_lines.iter().filter(|line| !old_lines.contains(line));
            loop {
                let (before, after) = (gone.next().cloned(), come.next().cloned());
                if before.is_none() && after.is_none() {
                    break;
                }
                changes.push((new.name, before, after));
            }
        }
        changes
    }
}

/// Runs the checks.
pub fn advise(profile: &Profile) -> Advice {
    let checkers = vec![
        Checker { name: "AcceleratorUtilizationChecker", reports: utilization(profile) },
        Checker { name: "ExpensiveOperationChecker", reports: expensive(profile) },
        Checker { name: "OperationChecker", reports: operations(profile) },
    ];
    Advice { checkers }
}

/// How busy each accelerator is in the last step of each node.
fn utilization(profile: &Profile) -> Vec<String> {
    // Start, end, work.
    let mut devices: BTreeMap<&str, (i64, i64, i64)> = BTreeMap::new();
    for index in profile.in_order() {
        let node = &profile.nodes[index];
        let Some((_, exec)) = node.execs.last_key_value() else { continue };
        if !is_accelerator(&node.device) {
            continue;
        }
        let (start, end, work) = devices.entry(&node.device).or_default();
        if *start == 0 {
            *start = exec.start;
        } else if exec.start != 0 {
            *start = exec.start.min(*start);
        }
        *end = exec.end.max(*end);
        *work = work.saturating_add(exec.micros(true));
    }
    let mut reports = Vec::new();
    for (device, (start, end, work)) in devices {
        let total = end.saturating_sub(start);
        if total > 0 {
            let share = work as f64 / total as f64;
            let low = if share >= 0.5 { "" } else { "low " };
            reports.push(format!("device: {device} {low}utilization: {share:.2}"));
        }
    }
    reports
}

/// Common wrong choices of operations.
fn operations(profile: &Profile) -> Vec<String> {
    let nodes = || profile.nodes.iter();
    let mut reports = Vec::new();
    let normalises = nodes().any(|node| node.name.contains("BatchNorm"));
    let fused = nodes().any(|node| match profile.is_fixed {
        true => node.types.iter().any(|name| name.starts_with("FusedBatchNorm")),
        // tfprof does not know the later versions.
        false => node.types.contains("FusedBatchNorm"),
    });
    if normalises && !fused {
        reports.push("Maybe use faster FusedBatchNorm instead of BatchNorm".to_owned());
    }
    let channels_last = nodes().any(|node| {
        let format = node.attr("data_format").and_then(|attr| attr.as_text());
        format == Some("NHWC") && is_accelerator(&node.device)
    });
    if channels_last {
        reports.push("Found operation using NHWC data_format on GPU. Maybe NCHW is faster.".to_owned());
    }
    reports
}

/// The most expensive operation types, scopes and lines.
fn expensive(profile: &Profile) -> Vec<String> {
    let mut reports = Vec::new();
    let options = |max_depth: i64, min_micros: i64| Options {
        max_depth,
        min_micros,
        order_by: OrderBy::Micros,
        select: BTreeSet::from([Column::Micros]),
        output: Output::None,
        ..Options::default()
    };
    if !profile.steps.is_empty() {
        let (rows, root) = op::rows(profile, &options(3, 1));
        reports.extend(top_types(&rows, root));
    }
    let (rows, root) = scope::rows(profile, &options(100, 100));
    reports.extend(top_scopes(&rows, root, profile.is_fixed));
    if profile.has_stacks {
        let tree = code::Tree::new(profile);
        let (rows, root) = code::rows(profile, &options(100, 1), &tree);
        reports.extend(top_lines(&rows, root));
    }
    reports
}

fn top_types(rows: &[Row], root: usize) -> Option<String> {
    let whole = rows[root].total.exec_micros as f64 + 1e-10;
    let line = |(number, &at): (i32, &usize)| {
        let Row { name, own, .. } = &rows[at];
        let (cpu, accelerator) = (time(own.cpu_micros), time(own.accelerator_micros));
        let (total, share) = (time(own.exec_micros), 100.0 * own.exec_micros as f64 / whole);
        format!(
            "top {number} operation type: {name}, cpu: {cpu}, accelerator: {accelerator}, total: {total} ({share:.2}%)"
        )
    };
    let lines: Vec<String> = (1..).zip(rows[root].shown.iter().take(3)).map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// tfprof prints the times of the scopes themselves, which have none; those of all inside them are meant.
fn top_scopes(rows: &[Row], root: usize, is_fixed: bool) -> Option<String> {
    let line = |(number, &at): (i32, &usize)| {
        let Row { name, own, total, .. } = &rows[at];
        let of = if is_fixed { total } else { own };
        let (cpu, accelerator, total) =
            (time(of.cpu_micros), time(of.accelerator_micros), time(of.exec_micros));
        format!("top {number} graph node: {name}, cpu: {cpu}, accelerator: {accelerator}, total: {total}")
    };
    let lines: Vec<String> = (1..).zip(rows[root].shown.iter().take(3)).map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Lines that are worth a look: below the point where the stacks part, a few on each of a few levels.
fn top_lines(rows: &[Row], root: usize) -> Option<String> {
    let mut at = root;
    while let [only] = rows[at].shown[..] {
        at = only;
    }
    if rows[at].shown.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    lines_below(rows, at, 0, &mut lines);
    Some(lines.join("\n"))
}

fn lines_below(rows: &[Row], at: usize, depth: usize, lines: &mut Vec<String>) {
    if rows[at].shown.len() <= 1 || depth > 3 {
        return;
    }
    for &child in rows[at].shown.iter().take(3) {
        let Row { name, total, .. } = &rows[child];
        if total.exec_micros < 1_000 {
            continue;
        }
        let (cpu, accelerator) = (time(total.cpu_micros), time(total.accelerator_micros));
        let micros = time(total.exec_micros);
        let blanks = depth * 2;
        lines.push(format!("{:blanks$}{name}, cpu: {cpu}, accelerator: {accelerator}, total: {micros}", ""));
        lines_below(rows, child, depth + 1, lines);
    }
}
