//! `stepscope path`: who owns the time on the critical path of a step, and how much slack everything else has.

use serde_json::json;
use stepscope_analyze::time::critical::{CriticalPath, Link, NoPath, Owner, Piece};
use stepscope_trace::Dur;

use super::{Group, Hosts, View, each_host};
use crate::format::{duration_ms, percent};
use crate::table::{Field, Table, columns, described};
use crate::words::{quoted, terms};

/// Pieces of the path in JSON.
const MOST_PIECES: usize = 20_000;

pub(super) const VIEW: View = View {
    name: "path",
    title: "Critical path",
    group: Group::Time,
    question: "What determines how long a step takes?",
    about: "Show the critical path of a step: the ops, launches, kernels and copies on it, and the slack of the rest",
    after_help: "Examples:\n  \
        stepscope path logs/               the step closest to the median\n  \
        stepscope path logs/ --steps 7     step 7\n  \
        stepscope path logs/ --json        every piece of the path, in order",
    record: &[
        "PyTorch: `ProfilerActivity.CUDA` and `ProfilerActivity.CPU` together, and `prof.step()` after each step",
        "Nsight Systems: `nsys profile --trace=cuda,nvtx`, with an NVTX range around each step",
        "TensorFlow and JAX on GPUs: CUPTI must be on the library path",
    ],
    events: Some("name"),
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: "
        unknown?: string -- Why the path is unknown, in words. Absent if it is known; otherwise the members from `host` to `path` are absent.
        host?: string -- The host that contributes most to its own path, without collectives: the others wait for it.
        step?: integer -- The step: of those that are selected, the one closest to the median.
        start_ms?: number -- When the step started, on the device that limits it.
        duration_ms?: number -- How long it took. The path sums to it.
        categories?: [category] -- Time on the path by category, the longest first.
        path?: [piece] -- The pieces of the path in order of time, at most 20,000. They tile the step.
        @category
        category: string -- The category.
        path_ms: number -- Time on the path.
        fraction: number -- Share of the step.
        @piece
        kind: 'host' | 'launch' | 'between ops' | 'wake-up' | 'latency' | 'kernel' | 'collective' | 'copy' | 'queue' | 'unknown' -- What it is.
        category: string -- Its category.
        start_ms: number -- When it started.
        duration_ms: number -- How long it took.
    ",
    table: |hosts| table(each_host(hosts, CriticalPath::typical)),
    groupings: &[],
};

/// The table of the step with this number, on the hosts that have it.
pub fn of_step(hosts: &dyn Hosts, step: i64) -> Table {
    table(each_host(hosts, |context| CriticalPath::numbered(context, step)))
}

/// The public names of kinds of pieces.
const KINDS: &[&str] = &[
    "host",
    "launch",
    "between ops",
    "wake-up",
    "latency",
    "kernel",
    "collective",
    "copy",
    "queue",
    "unknown",
];

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        name.known: Name "name", "the op, call, kernel or copy" => line.name();
        kind.known.one_of(KINDS): Text "kind", "what it is" => kind(line.owner.piece);
        path_ms.known: Ms "on the path", "its time on the path" => line.owner.on_path.ms();
        fraction.known: Percent "share", "that as a share of the step" => line.owner.on_path.fraction_of(line.step);
        pieces.known.optional: Count "pieces", "number of pieces of the path" => line.owner.pieces;
        off_path_ms.known.optional: Ms "off the path", "its time off the path" => line.owner.off_path.ms();
        slack_ms: Ms "slack", "how much longer it could have taken without delaying the step, at least; null if all of it is on the path" => line.owner.slack.map(|slack| slack.ms());
        category.known.hidden: Text "category", "its category" => line.owner.category.key();
    }
}

/// Who owns time on a path.
struct Line<'a> {
    owner: &'a Owner,
    step: Dur,
}

impl Line<'_> {
    fn name(&self) -> String {
        let Owner { name, piece, .. } = self.owner;
        if name.is_empty() { terms::unnamed_piece(*piece).to_owned() } else { name.clone() }
    }
}

/// The table of the host that contributes most to its own path: the others wait for it. If no host has a path, it says why.
fn table(hosts: Vec<Result<CriticalPath, NoPath>>) -> Table {
    let several = hosts.len() > 1;
    let why = hosts.iter().find_map(|host| host.as_ref().err().copied());
    let found = hosts.into_iter().filter_map(Result::ok);
    let longest = found.reduce(|a, b| if b.own() > a.own() { b } else { a });
    let step = longest.as_ref().map_or(Dur::ZERO, |path| path.window.dur());
    let owners = longest.iter().flat_map(|path| &path.owners);
    let lines: Vec<Line<'_>> = owners.map(|owner| Line { owner, step }).collect();
    let mut table = Table::of("path", &columns(), &lines);
    table.top = Some(20);
    let Some(path) = &longest else {
        let why = terms::no_path(why.unwrap_or(NoPath::Steps));
        table.headline = Some(format!("The critical path is unknown: {why}"));
        table.member("unknown", why);
        return table;
    };
    table.headline = Some(headline(path, several));
    members(&mut table, path);
    notes(&mut table, path);
    table
}

fn headline(path: &CriticalPath, several: bool) -> String {
    let whole = path.window.dur();
    let first = path.categories().into_iter().next().map_or(String::new(), |(category, time)| {
        format!("; {} is {} of its critical path", category.key(), percent(time.fraction_of(whole)))
    });
    let host = if several { format!(" on {}", quoted(&path.host)) } else { String::new() };
    let lags = if path.window == path.marked {
        String::new()
    } else {
        format!(", {} until the device, which lags behind, is done with it", duration_ms(whole.ms()))
    };
    format!("Step {}{host} takes {}{lags}{first}", path.step, duration_ms(path.marked.dur().ms()))
}

fn members(table: &mut Table, path: &CriticalPath) {
    let whole = path.window.dur();
    let categories = path.categories().into_iter().map(|(category, time)| {
        json!({"category": category.key(), "path_ms": time.ms(), "fraction": time.fraction_of(whole)})
    });
    table.member("host", path.host.as_str());
    table.member("step", path.step);
    table.member("start_ms", path.window.start.ms());
    table.member("duration_ms", whole.ms());
    table.member("categories", categories.collect::<Vec<_>>());
    let links = path.links.iter().take(MOST_PIECES).map(piece);
    table.member("path", links.collect::<Vec<_>>());
}

fn piece(link: &Link) -> serde_json::Value {
    json!({"kind": kind(link.piece), "category": link.category.key(), "start_ms": link.span.start.ms(),
           "duration_ms": link.span.dur().ms()})
}

fn notes(table: &mut Table, path: &CriticalPath) {
    table.note("Times on the path sum to the step. Only what shortens the path shortens the step.");
    table.note(
        "The path counts what the step waited for; the overview counts the device's work first, whatever it waited for. \
         Shares of the two differ.",
    );
    table.note("Slack: how much longer it could have taken without delaying the step, at least.");
    if path.links.iter().any(|link| link.piece == Piece::Collective) {
        table.note("A collective on the path includes the time in which it waits for other ranks.");
    }
    if path.inferred {
        table.note(
            "Which stream waited for which was not recorded; it is inferred from the times of kernels.",
        );
    }
}

/// The public name of a kind of piece.
pub fn kind(piece: Piece) -> &'static str {
    match piece {
        Piece::Host => "host",
        Piece::Launch => "launch",
        Piece::Between => "between ops",
        Piece::Wake => "wake-up",
        Piece::Latency => "latency",
        Piece::Kernel => "kernel",
        Piece::Collective => "collective",
        Piece::Copy => "copy",
        Piece::Queue => "queue",
        Piece::Unknown => "unknown",
    }
}
