//! Which rows are shown, in which order, with which totals. The same for all tree views.

use std::cmp::Reverse;

use crate::names::ROOT;
use crate::options::{Options, OrderBy};
use crate::patterns::Patterns;
use crate::rows::{Of, Row};

/// What differs between the views.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Scope and graph: small rows are judged by their own values where tfprof does, and a trimmed row is shown.
    Single,
    /// Code: everything is judged by totals, and a trimmed row is not shown.
    Multiple,
}

/// The rows at which the view starts: the first match on each branch.
pub(crate) fn start(rows: &[Row], roots: Vec<usize>, patterns: &Patterns) -> Vec<usize> {
    if patterns.is_all() {
        return roots;
    }
    let mut found = Vec::new();
    let mut open: Vec<usize> = roots.into_iter().rev().collect();
    while let Some(at) = open.pop() {
        if patterns.each().iter().any(|pattern| pattern.is_match(&rows[at].name)) {
            found.push(at);
        } else {
            open.extend(rows[at].below.iter().rev());
        }
    }
    found
}

/// Puts the rows `below` under the root, which adds them up, and decides what is shown.
pub(crate) fn hang(rows: &mut [Row], root: usize, below: Vec<usize>, options: &Options) {
    for &at in &below {
        let total = rows[at].total;
        rows[root].total += total;
    }
    rows[root].below = start(rows, below, &options.start_name_regexes);
    display(rows, root, options, Style::Single);
}

/// Decides what is shown below `root`, sorts it, and recomputes the totals if only shown rows count.
pub(crate) fn display(rows: &mut [Row], root: usize, options: &Options, style: Style) {
    let visited = visit(rows, root, options, style);
    for &(at, owner) in &visited {
        if at != root {
            rows[owner].shown.push(at);
        }
    }
    for &(at, _) in visited.iter().rev() {
        let mut shown = std::mem::take(&mut rows[at].shown);
        sort(rows, &mut shown, options.order_by, style);
        if options.account_displayed_op_only && style == Style::Single {
            let mut total = rows[at].own.as_total();
            shown.iter().for_each(|&child| total += rows[child].total);
            rows[at].total = total;
        }
        rows[at].shown = shown;
    }
}

/// The shown rows, each with the shown row above it, from the top down.
fn visit(rows: &mut [Row], root: usize, options: &Options, style: Style) -> Vec<(usize, usize)> {
    let mut visited = Vec::new();
    // Row, depth, blanks, the shown row above.
    let mut open = vec![(root, 1i64, 0usize, root)];
    while let Some((at, depth, indent, owner)) = open.pop() {
        let ends = options.trim_name_regexes.matches(&rows[at].name) || depth > options.max_depth;
        if ends && style == Style::Multiple && at != root {
            continue;
        }
        let shown = at == root || should_show(&rows[at], options, depth, style);
        let (inner, owner_below) = if shown { (indent + 2, at) } else { (indent, owner) };
        if shown {
            rows[at].indent = indent;
            visited.push((at, owner));
        }
        if !ends {
            let below = rows[at].below.iter().rev();
            open.extend(below.map(|&child| (child, depth + 1, inner, owner_below)));
        }
    }
    visited
}

/// Whether the row is large enough, high enough, and its name is wanted.
pub(crate) fn should_show(row: &Row, options: &Options, depth: i64, style: Style) -> bool {
    if row.name == ROOT {
        return true;
    }
    let (total, own) = (&row.total, &row.own);
    let counted = if style == Style::Single { own } else { total };
    let large = total.requested_bytes >= options.min_bytes
        && total.peak_bytes >= options.min_peak_bytes
        && total.residual_bytes >= options.min_residual_bytes
        && total.output_bytes >= options.min_output_bytes
        && total.exec_micros >= options.min_micros
        && total.accelerator_micros >= options.min_accelerator_micros
        && total.cpu_micros >= options.min_cpu_micros
        && counted.parameters >= options.min_params
        && counted.float_ops >= options.min_float_ops
        && (style == Style::Multiple || own.runs >= options.min_occurrence)
        && depth <= options.max_depth;
    large && options.show_name_regexes.matches(&row.name) && !options.hide_name_regexes.matches(&row.name)
}

/// Sorts rows as requested; equal ones keep their order.
pub(crate) fn sort(rows: &[Row], which: &mut [usize], by: OrderBy, style: Style) {
    let total = |at: &usize| &rows[*at].total;
    match by {
        OrderBy::Bytes => which.sort_by_key(|at| Reverse(total(at).requested_bytes)),
        OrderBy::PeakBytes => which.sort_by_key(|at| Reverse(total(at).peak_bytes)),
        OrderBy::ResidualBytes => which.sort_by_key(|at| Reverse(total(at).residual_bytes)),
        OrderBy::OutputBytes => which.sort_by_key(|at| Reverse(total(at).output_bytes)),
        OrderBy::Micros => which.sort_by_key(|at| Reverse(total(at).exec_micros)),
        OrderBy::AcceleratorMicros => which.sort_by_key(|at| Reverse(total(at).accelerator_micros)),
        OrderBy::CpuMicros => which.sort_by_key(|at| Reverse(total(at).cpu_micros)),
        OrderBy::Params => which.sort_by_key(|at| Reverse(total(at).parameters)),
        OrderBy::FloatOps => which.sort_by_key(|at| Reverse(total(at).float_ops)),
        OrderBy::Occurrence if style == Style::Multiple => {
            which.sort_by_key(|at| Reverse(members(&rows[*at])));
        }
        OrderBy::Name | OrderBy::Occurrence => which.sort_by(|a, b| rows[*a].name.cmp(&rows[*b].name)),
    }
}

fn members(row: &Row) -> usize {
    match &row.of {
        Of::Nodes(members) => members.nodes.len(),
        _ => 0,
    }
}

/// The shown rows from the top down, each before those below it.
pub(crate) fn in_order(rows: &[Row], root: usize) -> Vec<usize> {
    let mut order = Vec::new();
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        order.push(at);
        open.extend(rows[at].shown.iter().rev());
    }
    order
}
