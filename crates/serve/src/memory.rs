//! Answers about memory: what is live at a moment, and what the page draws of it over time. `API.md` defines them.

use serde_json::{Value, json};
use stepscope_analyze::Context;
use stepscope_analyze::memory::{self, At, CallNode, HeldAt, Live};
use stepscope_trace::Time;
use stepscope_trace::memory::Role;

use crate::error::Refusal;
use crate::store::{Ledgers, Timeline};

/// An allocator that a request names, on its host.
struct Named<'a> {
    ledgers: &'a Ledgers,
    context: Context<'a>,
    host: usize,
    name: &'a str,
    /// From the host's times to the session's.
    shift: stepscope_trace::Dur,
}

fn named(opened: &Timeline, allocator: usize) -> Result<Named<'_>, Refusal> {
    let ledgers = opened.ledgers();
    let (host, name) = ledgers.allocators.get(allocator).ok_or(Refusal::Missing("allocator"))?;
    let loaded = opened.model.profile.hosts.get(*host).ok_or(Refusal::Broken)?;
    Ok(Named { ledgers, context: loaded.context(), host: *host, name, shift: opened.model.host(*host).shift })
}

impl Named<'_> {
    fn ns(&self, time: Time) -> f64 {
        (time + self.shift).ps() as f64 / 1e3
    }
}

/// What was live in an allocator at a moment of the session, in picoseconds, and the calls behind it.
pub(crate) fn at(opened: &Timeline, allocator: usize, at: i64) -> Result<Value, Refusal> {
    let named = named(opened, allocator)?;
    let moment = Time::from_ps(at) - named.shift;
    let (in_use, rows) = live_at(&named, moment);
    let calls = memory::calls_at(&named.context, named.name, Some(moment))
        .or_else(|| memory::calls_at(&named.context, named.name, None));
    let rows: Vec<Value> = rows.iter().map(row).collect();
    let calls = calls.map(|calls| calls.iter().map(call).collect::<Vec<Value>>());
    Ok(json!({"t_ns": at as f64 / 1e3, "in_use": in_use, "rows": rows, "calls": calls}))
}

/// From recorded blocks, else from events. A file without times has one state.
fn live_at(named: &Named<'_>, moment: Time) -> (Option<i64>, Vec<Live>) {
    if named.context.trace.memory().is_some() {
        let of = |at| memory::held_at(&named.context, at).into_iter().find(|held| held.name == named.name);
        let timeless = |held: &HeldAt| held.at.is_none();
        let held = of(At::Time(moment)).or_else(|| of(At::Peak).filter(timeless));
        return held.map_or((None, Vec::new()), |held| (Some(held.in_use), held.rows));
    }
    let ledger = named.ledgers.hosts.get(named.host);
    let alive = ledger.and_then(|ledger| ledger.alive_at(&named.context, named.name, moment));
    alive.map_or((None, Vec::new()), |(in_use, rows)| (Some(in_use), rows))
}

fn row(row: &Live) -> Value {
    json!({
        "op": row.op, "line": row.line, "role": row.role.map(Role::key), "bytes": row.bytes, "blocks": row.blocks,
        "shape": row.shape, "data_type": row.data_type, "region": row.region,
    })
}

fn call(call: &CallNode) -> Value {
    json!({"parent": call.parent, "name": call.name, "bytes": call.bytes, "blocks": call.blocks})
}

/// Use over time by role.
pub(crate) fn over_time(opened: &Timeline, allocator: usize) -> Result<Value, Refusal> {
    let named = named(opened, allocator)?;
    let Some(curve) = memory::role_curve(&named.context, named.name) else {
        return Ok(json!({"t_ns": [], "roles": [], "reserved": []}));
    };
    let times: Vec<f64> = curve.times.iter().map(|&time| named.ns(time)).collect();
    let role =
        |(role, bytes): &(Option<Role>, Vec<i64>)| json!({"role": role.map(Role::key), "bytes": bytes});
    let roles: Vec<Value> = curve.roles.iter().map(role).collect();
    Ok(json!({"t_ns": times, "roles": roles, "reserved": curve.reserved}))
}

/// Where blocks lie, over time. Addresses count from the start of their range: 64 bits do not fit into numbers of scripts.
pub(crate) fn map(opened: &Timeline, allocator: usize) -> Result<Value, Refusal> {
    let named = named(opened, allocator)?;
    let Some(map) = memory::address_map(&named.context, named.name) else {
        return Ok(json!({"ranges": [], "segments": [], "blocks": [], "omitted": 0}));
    };
    let place = |address: u64| {
        let at = map.ranges.partition_point(|&(start, _)| start <= address).checked_sub(1)?;
        let &(start, size) = map.ranges.get(at)?;
        (address - start < size).then_some((at, address - start))
    };
    let ns = |time: Option<Time>| time.map(|time| named.ns(time));
    let segments = map.segments.iter().filter_map(|segment| {
        let (range, offset) = place(segment.address)?;
        Some(json!([range, offset, segment.size, ns(segment.from), ns(segment.to)]))
    });
    let blocks = map.blocks.iter().filter_map(|block| {
        let (range, offset) = place(block.address)?;
        let role = block.role.map(Role::key);
        Some(json!([range, offset, block.size, ns(block.from), ns(block.to), block.line, role]))
    });
    let ranges =
        map.ranges.iter().map(|(start, size)| json!({"address": format!("{start:#x}"), "bytes": size}));
    Ok(json!({
        "ranges": ranges.collect::<Vec<_>>(), "segments": segments.collect::<Vec<_>>(),
        "blocks": blocks.collect::<Vec<_>>(), "omitted": map.omitted,
    }))
}
