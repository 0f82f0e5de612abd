//! The op view: one row per operation type. Totals are sums down the sorted list, so that the first row has the
//! total of all.

use std::collections::BTreeMap;

use crate::display::{Style, should_show, sort};
use crate::measures::Measures;
use crate::names::{GRAPH_PARENT, ROOT};
use crate::options::Options;
use crate::profile::Profile;
use crate::rows::{Members, Of, Row};

/// The rows of the view; the root is the last of them and has the shown ones below it.
pub(crate) fn rows(profile: &Profile, options: &Options) -> (Vec<Row>, usize) {
    let mut by_type: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for index in profile.in_order() {
        by_type.entry(&profile.nodes[index].op).or_default().push(index);
    }
    let mut rows = Vec::with_capacity(by_type.len() + 1);
    for (name, nodes) in by_type {
        let (members, own, accounted) = snapshot(profile, options, &nodes);
        let mut row = Row::new(name.to_owned(), Of::Nodes(members));
        (row.own, row.total, row.accounted) = (own, own, accounted);
        rows.push(row);
    }
    let root = rows.len();
    rows.push(Row::new(ROOT.to_owned(), Of::Name(GRAPH_PARENT)));
    let mut order: Vec<usize> = (0..root).collect();
    sort(&rows, &mut order, options.order_by, Style::Multiple);
    order.retain(|&at| rows[at].accounted);
    accumulate(&mut rows, &order, root);
    let first = start(&rows, &order, options);
    let mut shown = Vec::new();
    for (depth, &at) in (0..).zip(order.iter().skip(first)) {
        if options.trim_name_regexes.matches(&rows[at].name) || depth > options.max_depth {
            break;
        }
        if should_show(&rows[at], options, depth, Style::Multiple) {
            shown.push(at);
        }
    }
    if options.account_displayed_op_only {
        for &at in &shown {
            rows[at].total = rows[at].own;
        }
        accumulate(&mut rows, &shown, root);
    }
    rows[root].shown = shown;
    (rows, root)
}

/// Adds the totals of the following rows to each row; the root has that of the first.
fn accumulate(rows: &mut [Row], order: &[usize], root: usize) {
    let mut behind = Measures::default();
    for &at in order.iter().rev() {
        rows[at].total += behind;
        behind = rows[at].total;
    }
    rows[root].total = behind;
}

/// The first row whose name matches.
fn start(rows: &[Row], order: &[usize], options: &Options) -> usize {
    let patterns = &options.start_name_regexes;
    if patterns.is_all() || patterns.given().is_empty() {
        return 0;
    }
    order.iter().position(|&at| patterns.matches(&rows[at].name)).unwrap_or(order.len())
}

/// Combines nodes: those that count, their values, and whether the row counts at all. A node that matches two
/// patterns is summed twice, as in tfprof, unless that is corrected.
pub(crate) fn snapshot(profile: &Profile, options: &Options, nodes: &[usize]) -> (Members, Measures, bool) {
    let patterns = &options.account_type_regexes;
    let mut picked: Vec<usize> = Vec::new();
    if patterns.is_all() {
        picked.extend(nodes);
    } else {
        for pattern in patterns.each() {
            let matches =
                |index: &&usize| profile.nodes[**index].types.iter().any(|name| pattern.is_match(name));
            picked.extend(nodes.iter().filter(matches));
        }
    }
    if profile.is_fixed {
        picked.sort_unstable();
        picked.dedup();
    }
    let (mut members, mut own) = (Members::default(), Measures::default());
    for &index in &picked {
        let node = &profile.nodes[index];
        own += node.measures(options.step);
        members.types.extend(node.types.iter().cloned());
        members.devices.insert(node.device.clone());
    }
    let accounted = patterns.is_all() || !picked.is_empty();
    picked.sort_by(|a, b| profile.nodes[*a].name.cmp(&profile.nodes[*b].name));
    picked.dedup();
    members.nodes = picked;
    (members, own, accounted)
}
