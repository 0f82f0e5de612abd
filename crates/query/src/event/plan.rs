//! How a query's conditions on events are used, and what that costs. Conditions only narrow the walk: SQLite checks each
//! row again, so that its own rules for types decide.
//!
//! A plan is a text with one letter per value that the walk gets, in that order.

use rusqlite::Result;
use rusqlite::vtab::{DistinctMode, IndexConstraintOp as Op, IndexFlags, IndexInfo};

use super::column;
use crate::recording::Recording;

/// Letters of a plan.
pub(super) mod by {
    pub(crate) const ID: char = 'i';
    pub(crate) const TRACK: char = 't';
    pub(crate) const PARENT: char = 'p';
    pub(crate) const STEP: char = 's';
    pub(crate) const HOST: char = 'h';
    pub(crate) const NAME: char = 'n';
    pub(crate) const LIKE: char = 'l';
    pub(crate) const GLOB: char = 'g';
    pub(crate) const CATEGORY: char = 'c';
    pub(crate) const STATE: char = 'a';
    pub(crate) const OP: char = 'o';
    pub(crate) const ROLE: char = 'r';
    /// Starts at this time or later.
    pub(crate) const FROM: char = '>';
    /// Starts at this time or before.
    pub(crate) const UNTIL: char = '<';
    /// In the order of names, categories, ops; these take no value and come last.
    pub(crate) const ORDERED_BY_NAME: char = 'N';
    pub(crate) const ORDERED_BY_CATEGORY: char = 'C';
    pub(crate) const ORDERED_BY_OP: char = 'O';
}

/// The letter of a condition; `None` if it does not narrow the walk.
fn letter(column: i32, operator: &Op) -> Option<char> {
    let column = usize::try_from(column).ok();
    match (column, operator) {
        (None | Some(column::ID), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::ID),
        (Some(column::TRACK), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::TRACK),
        (Some(column::PARENT), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::PARENT),
        (Some(column::STEP), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::STEP),
        (Some(column::HOST), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::HOST),
        (Some(column::NAME), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::NAME),
        (Some(column::NAME), Op::SQLITE_INDEX_CONSTRAINT_LIKE) => Some(by::LIKE),
        (Some(column::NAME), Op::SQLITE_INDEX_CONSTRAINT_GLOB) => Some(by::GLOB),
        (Some(column::CATEGORY), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::CATEGORY),
        (Some(column::STATE), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::STATE),
        (Some(column::OP), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::OP),
        (Some(column::ROLE), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some(by::ROLE),
        (Some(column::TS), Op::SQLITE_INDEX_CONSTRAINT_EQ) => Some('='),
        (Some(column::TS), Op::SQLITE_INDEX_CONSTRAINT_GE | Op::SQLITE_INDEX_CONSTRAINT_GT) => Some(by::FROM),
        (Some(column::TS), Op::SQLITE_INDEX_CONSTRAINT_LE | Op::SQLITE_INDEX_CONSTRAINT_LT) => {
            Some(by::UNTIL)
        }
        _ => None,
    }
}

fn is_text(letter: char) -> bool {
    matches!(letter, by::NAME | by::CATEGORY | by::STATE | by::OP | by::ROLE | by::HOST)
}

/// Chooses the conditions to use.
pub(super) fn plan(recording: &Recording, info: &mut IndexInfo) -> Result<()> {
    let mut used: Vec<(usize, char)> = Vec::new();
    for (place, constraint) in info.constraints().enumerate() {
        if constraint.is_usable()
            && let Some(letter) = letter(constraint.column(), &constraint.operator())
        {
            used.push((place, letter));
        }
    }
    // Another collation would call texts equal that differ.
    used.retain(|&(place, letter)| {
        !is_text(letter) || info.collation(place).is_ok_and(|collation| collation == "BINARY")
    });
    let mut text = String::new();
    for (argument, &(place, letter)) in (1..).zip(&used) {
        info.constraint_usage(place).set_argv_index(argument);
        text.push(letter);
    }
    let ordered = order(info, &text);
    text.extend(ordered.letter);
    info.set_order_by_consumed(ordered.consumed);
    let (rows, cost) = estimate(recording, &text);
    if text.contains(by::ID) {
        info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
    }
    info.set_estimated_rows(rows.max(1.0) as i64);
    info.set_estimated_cost(cost);
    info.set_idx_str(&text);
    Ok(())
}

/// In which order the rows come.
#[derive(Default)]
struct Ordered {
    consumed: bool,
    letter: Option<char>,
}

/// Whether the walk can give the rows in the order that is wanted. Its own order is that of hosts, tracks and times.
fn order(info: &IndexInfo, used: &str) -> Ordered {
    let wanted: Vec<(i32, bool)> =
        info.order_bys().map(|order| (order.column(), order.is_order_by_desc())).collect();
    let [(wanted, descending)] = wanted[..] else { return Ordered::default() };
    // A query that groups does not care which group comes first.
    let grouping = matches!(info.distinct(), DistinctMode::Grouped | DistinctMode::Distinct);
    if descending && !grouping {
        return Ordered::default();
    }
    let free = Ordered { consumed: true, letter: None };
    let by_kind = |letter| Ordered { consumed: true, letter: Some(letter) };
    let one_track = used.contains(by::TRACK) || used.contains(by::PARENT) || used.contains(by::ID);
    match usize::try_from(wanted) {
        Err(_) | Ok(column::ID | column::TRACK | column::HOST) => free,
        Ok(column::TS | column::TS_PS) if one_track => free,
        // Walking all events by kind only pays if nothing else narrows the walk.
        Ok(_) if !used.is_empty() => Ordered::default(),
        Ok(column::NAME) => by_kind(by::ORDERED_BY_NAME),
        Ok(column::CATEGORY) => by_kind(by::ORDERED_BY_CATEGORY),
        Ok(column::OP) => by_kind(by::ORDERED_BY_OP),
        Ok(_) => Ordered::default(),
    }
}

/// Rows that come out, and the cost of getting at them.
fn estimate(recording: &Recording, plan: &str) -> (f64, f64) {
    if plan.contains(by::ID) {
        return (1.0, 1.0);
    }
    if plan.contains(by::PARENT) {
        return (8.0, 20.0);
    }
    // What is walked over, and what of it fits.
    let (mut walked, mut fits) = (recording.events as f64, 1.0);
    for letter in plan.chars() {
        match letter {
            by::TRACK => walked /= recording.tracks().max(1) as f64,
            by::HOST => walked /= recording.hosts.len().max(1) as f64,
            by::STEP => walked /= 20.0,
            '=' => walked /= 1_000_000.0,
            by::FROM | by::UNTIL => walked /= 4.0,
            by::NAME => fits /= 100.0,
            by::LIKE | by::GLOB | by::CATEGORY | by::STATE | by::OP | by::ROLE => fits /= 10.0,
            _ => {}
        }
    }
    let rows = walked * fits;
    (rows, 50.0 + walked * 0.05 + rows)
}
