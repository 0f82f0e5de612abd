//! The view `scopes`: time by name scope, as a tree with bars. JSON and CSV contain every scope with its
//! parent, ready for a flame graph.

use stepscope_analyze::work::scopes::{ScopeNode, ScopeSource, Scopes};

use super::describe_window;
use crate::format::{duration_ms, middle_cut, percent, printable};
use crate::style::Style;
use crate::table::{Cell, Column, Format, Table};

/// Scopes below this share of the total time are omitted from the text.
const SHOWN: f64 = 0.01;
/// Number of rows in text.
const ROWS: usize = 40;
/// Characters in a full bar.
const BAR: usize = 16;

/// One row per scope, parents before children.
pub fn table(scopes: &Scopes, style: Style) -> Table {
    let columns = [
        ("id", Format::Id),
        ("parent", Format::Id),
        ("depth", Format::Id),
        ("name", Format::Name),
        ("path", Format::Name),
        ("count", Format::Count),
        ("total_ms", Format::Ms),
        ("self_ms", Format::Ms),
        ("fraction", Format::Percent),
        ("total_ms_per_step", Format::Ms),
    ];
    let columns = columns.map(|(key, format)| Column::new(key, key, format)).to_vec();
    let mut table = Table::new("scopes", columns);
    let all = scopes.total_ms();
    let share = |node: &ScopeNode| if all > 0.0 { node.total_ms / all } else { 0.0 };
    table.headline = Some(headline(scopes));
    // Rows shown in text come first; both halves keep the order of the tree.
    let least = smallest_shown(scopes);
    let (shown, rest): (Vec<usize>, Vec<usize>) =
        (0..scopes.nodes.len()).partition(|&index| scopes.nodes[index].total_ms >= least);
    table.dense = true;
    table.top = Some(shown.len().max(1));
    for index in shown.into_iter().chain(rest) {
        let node = &scopes.nodes[index];
        let cells = [
            index.into(),
            node.parent.into(),
            node.depth.into(),
            node.name.as_str().into(),
            scopes.path(index).into(),
            node.count.into(),
            node.total_ms.into(),
            node.self_ms.into(),
            share(node).into(),
            Cell::from(scopes.window.per_step(node.total_ms)),
        ];
        table.push_prose(cells, line(scopes, node, share(node), style));
    }
    describe_window(&mut table, scopes.window);
    table.member("source", source(scopes.source));
    table
}

/// The time of the smallest scope shown in text: at least [`SHOWN`] of the total, and at most [`ROWS`] rows.
fn smallest_shown(scopes: &Scopes) -> f64 {
    let mut times: Vec<f64> = scopes.nodes.iter().map(|node| node.total_ms).collect();
    times.sort_by(|a, b| b.total_cmp(a));
    let last = times.get(ROWS - 1).copied().unwrap_or(0.0);
    last.max(scopes.total_ms() * SHOWN)
}

fn line(scopes: &Scopes, node: &ScopeNode, share: f64, style: Style) -> String {
    let filled = ((share * BAR as f64).round() as usize).min(BAR);
    let bar = format!("{}{}", "█".repeat(filled), " ".repeat(BAR - filled));
    let time = scopes.window.per_step(node.total_ms).unwrap_or(node.total_ms);
    let indent = "  ".repeat(node.depth.min(20));
    let name = middle_cut(&printable(&node.name), 72);
    format!("{} {:>7} {:>9}  {indent}{name}", style.cyan(&bar), percent(share), duration_ms(time))
}

fn source(source: ScopeSource) -> &'static str {
    match source {
        ScopeSource::DeviceOps => "device ops",
        ScopeSource::HostOps => "host ops",
        ScopeSource::Modules => "modules",
        ScopeSource::PythonStack => "python stack",
        ScopeSource::Ranges => "annotated ranges",
        ScopeSource::Nothing => "nothing",
    }
}

fn headline(scopes: &Scopes) -> String {
    let all = scopes.total_ms();
    let time = scopes.window.per_step(all).unwrap_or(all);
    let what = match scopes.source {
        ScopeSource::DeviceOps => "kernel time by op path",
        ScopeSource::HostOps => "host op time by op path",
        ScopeSource::Modules => "time by module, from the Python stack",
        ScopeSource::PythonStack => "time by Python stack",
        ScopeSource::Ranges => "host time by annotated range",
        ScopeSource::Nothing => return "this recording contains no name scopes".to_owned(),
    };
    format!("{what}: {} {}", duration_ms(time), super::covers(scopes.window))
}
