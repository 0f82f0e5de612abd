//! The critical path of a step: who owns the time on it, and how much slack everything else has.

use serde_json::json;
use stepscope_analyze::time::critical::{CriticalPath, Link, NoPath, Owner, Piece};

use crate::format::{duration_ms, percent};
use crate::words::{quoted, terms};
use crate::{Cell, Column, Format, Table};

/// Pieces of the path in JSON.
const MOST_PIECES: usize = 20_000;

/// The table of the host that contributes most to its own path: the others wait for it. If no host has a path, it says why.
pub fn table(hosts: Vec<Result<CriticalPath, NoPath>>) -> Table {
    let mut table = Table::new(
        "path",
        vec![
            Column::new("name", "name", Format::Name),
            Column::new("kind", "kind", Format::Text),
            Column::new("path_ms", "on the path", Format::Ms),
            Column::new("fraction", "share", Format::Percent),
            Column::new("pieces", "pieces", Format::Count).optional(),
            Column::new("off_path_ms", "off the path", Format::Ms).optional(),
            Column::new("slack_ms", "slack", Format::Ms),
            Column::new("category", "category", Format::Text).hidden(),
        ],
    );
    table.top = Some(20);
    let several = hosts.len() > 1;
    let why = hosts.iter().find_map(|host| host.as_ref().err().copied());
    let found = hosts.into_iter().filter_map(Result::ok);
    let longest = found.reduce(|a, b| if b.own() > a.own() { b } else { a });
    let Some(path) = longest else {
        let why = terms::no_path(why.unwrap_or(NoPath::Steps));
        table.headline = Some(format!("The critical path is unknown: {why}"));
        table.member("unknown", why);
        return table;
    };
    table.headline = Some(headline(&path, several));
    members(&mut table, &path);
    path.owners.iter().for_each(|owner| table.push(row(&path, owner)));
    notes(&mut table, &path);
    table
}

fn headline(path: &CriticalPath, several: bool) -> String {
    let whole = path.window.dur();
    let first = path.categories().into_iter().next().map_or(String::new(), |(category, time)| {
        format!("; {} is {} of its critical path", category.key(), percent(time.fraction_of(whole)))
    });
    let host = if several { format!(" on {}", quoted(&path.host)) } else { String::new() };
    format!("Step {}{host} takes {}{first}", path.step, duration_ms(whole.ms()))
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

fn row(path: &CriticalPath, owner: &Owner) -> Vec<Cell> {
    let name =
        if owner.name.is_empty() { terms::unnamed_piece(owner.piece).to_owned() } else { owner.name.clone() };
    vec![
        name.into(),
        kind(owner.piece).into(),
        owner.on_path.ms().into(),
        owner.on_path.fraction_of(path.window.dur()).into(),
        (owner.pieces as u64).into(),
        owner.off_path.ms().into(),
        owner.slack.map(|slack| slack.ms()).into(),
        owner.category.key().into(),
    ]
}

fn notes(table: &mut Table, path: &CriticalPath) {
    table.note("Times on the path sum to the step. Only what shortens the path shortens the step.");
    table.note(
        "Slack: how much later the same off the path could have ended without delaying the step, at least.",
    );
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
