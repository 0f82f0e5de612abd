//! `stepscope scopes`: time by name scope, module, Python stack or annotated range, as a tree with bars. JSON and CSV contain
//! every scope with its parent, ready for a flame graph.

use stepscope_analyze::work::scopes::{ScopeNode, ScopeSource, Scopes, ScopesPartial};

use super::{Group, View, all_hosts, describe_window, window_members};
use crate::format::{duration_ms, middle_cut, percent, printable};
use crate::table::{Field, Prose, Table, Tone, columns, described};

/// Scopes below this share of the total time are omitted from the text.
const SHOWN: f64 = 0.01;
/// Number of rows in text.
const ROWS: usize = 40;
/// Characters in a full bar.
const BAR: usize = 16;

pub(super) const VIEW: View = View {
    name: "scopes",
    title: "Scopes",
    group: Group::Time,
    question: "Which layers and modules take the time?",
    about: "Show time by name scope, module, Python stack or annotated range, as a tree",
    after_help: "Examples:\n  \
        stepscope scopes logs/ --top 20    the 20 largest scopes as a tree\n  \
        stepscope scopes logs/ --json      every scope with its parent, for a flame graph",
    record: &[
        "TensorFlow: name layers, or wrap parts in `tf.name_scope('block')`",
        "JAX: wrap parts in `jax.named_scope('block')`",
        "PyTorch: `torch.profiler.profile(with_stack=True, with_modules=True)`, or wrap parts in `torch.profiler.record_function('block')`",
        "Nsight Systems: wrap parts in NVTX ranges (`torch.cuda.nvtx.range('block')`)",
    ],
    events: None,
    recording: false,
    sql: Some(("scope", "Name scopes, as a tree.")),
    columns: || described(columns()),
    members: concat!(window_members!(), "source?: string -- What the scopes come from.\n"),
    table: |hosts| table(&all_hosts(hosts, ScopesPartial::of, ScopesPartial::merge).finish()),
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        id.known: Id "id", "number of the scope" => line.index;
        parent: Id "parent", "the scope around it" => line.node.parent;
        depth.known: Id "depth", "number of scopes around it" => line.node.depth;
        name.known: Name "name", "its name" => line.node.name.as_str();
        path.known: Name "path", "names from the root" => line.scopes.path(line.index);
        count.known: Count "count", "number of runs" => line.node.count;
        total_ms.known: Ms "total_ms", "time with what is inside" => line.node.total_ms;
        self_ms.known: Ms "self_ms", "time without" => line.node.self_ms;
        fraction: Percent "fraction", "share of the total time" => line.fraction;
        total_ms_per_step: Ms "total_ms_per_step", "time per step" => line.scopes.window.per_step(line.node.total_ms);
    }
}

/// A scope, and what it is a part of.
struct Line<'a> {
    scopes: &'a Scopes,
    index: usize,
    node: &'a ScopeNode,
    fraction: f64,
}

/// One row per scope, parents before children.
fn table(scopes: &Scopes) -> Table {
    let fields = columns();
    let mut table = Table::of("scopes", &fields, []);
    let all = scopes.total_ms();
    table.headline = Some(headline(scopes));
    // Rows shown in text come first; both halves keep the order of the tree.
    let least = smallest_shown(scopes);
    let (shown, rest): (Vec<_>, Vec<_>) =
        scopes.nodes.iter().enumerate().partition(|(_, node)| node.total_ms >= least);
    table.dense = true;
    table.top = Some(shown.len().max(1));
    for (index, node) in shown.into_iter().chain(rest) {
        let fraction = if all > 0.0 { node.total_ms / all } else { 0.0 };
        table.add_prose(&fields, &Line { scopes, index, node, fraction }, line(scopes, node, fraction));
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

fn line(scopes: &Scopes, node: &ScopeNode, share: f64) -> Prose {
    let filled = ((share * BAR as f64).round() as usize).min(BAR);
    let bar = format!("{}{}", "█".repeat(filled), " ".repeat(BAR - filled));
    let time = scopes.window.per_step(node.total_ms).unwrap_or(node.total_ms);
    let indent = "  ".repeat(node.depth.min(20));
    let name = middle_cut(&printable(&node.name), 72);
    let rest = format!(" {:>7} {:>9}  {indent}{name}", percent(share), duration_ms(time));
    Prose { tone: Tone::Info, lead: bar, rest }
}

fn source(source: ScopeSource) -> &'static str {
    match source {
        ScopeSource::DeviceOps => "device ops",
        ScopeSource::HostOps => "host ops",
        ScopeSource::Programs => "compiled programs",
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
        ScopeSource::Programs => "time in compiled programs by scope",
        ScopeSource::Modules => "time by module, from the Python stack",
        ScopeSource::PythonStack => "time by Python stack",
        ScopeSource::Ranges => "host time by annotated range",
        ScopeSource::Nothing => return "this recording contains no name scopes".to_owned(),
    };
    format!("{what}: {} {}", duration_ms(time), super::covers(scopes.window))
}
