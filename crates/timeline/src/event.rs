//! Single events: details, neighbours, and the event under the pointer.

use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use stepscope_analyze::states::launches::Launch;
use stepscope_analyze::work::programs::{Card, card_of_event};
use stepscope_trace::{Dur, EventId, FlowDirection, FlowPoint, Span, Time, Trace, Track, TrackId, Value};

use super::model::{Model, TrackEntry, ns};
use super::rows::Stretch;

/// Maximum number of ancestors in an answer.
const MOST_PARENTS: usize = 256;
/// Maximum number of arrows in an answer.
const MOST_ARROWS: usize = 200;
/// Maximum number of launches inside an event that are drawn as its own; with more, none is: arrows would hide the picture.
const MOST_INSIDE: usize = 32;
/// Maximum number of flow points examined inside an event: most inside a whole step belong to nested events.
const MOST_POINTS: usize = 10_000;
/// Longer values are cut: compiled programs can be megabytes.
const LONGEST_VALUE: usize = 64 << 10;
/// The largest integer that every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

/// Direction to a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Later.
    Next,
    /// Earlier.
    Previous,
}

/// What neighbours have in common.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Same {
    /// Their name.
    Name,
    /// Their row.
    Row,
}

/// An event in short form, for searches and clicks.
pub fn hit(model: &Model, id: u32, event: u32) -> Option<Json> {
    let entry = model.track(id)?;
    let track = entry.track(model);
    let index = index_on(track, event)?;
    let host = model.host(entry.host);
    let (name, category) = host.look_of(track.kind_of(index));
    Some(json!({
        "track": id, "event": event, "name": model.name(name), "row": entry.layout.row_of(track, index),
        "category": category, "start_ns": host.ns(track.start(index)), "dur_ns": ns(track.dur(index)),
    }))
}

fn index_on(track: &Track, event: u32) -> Option<usize> {
    Some(event as usize).filter(|&index| index < track.len())
}

/// Everything known about an event.
pub fn details(model: &Model, id: u32, event: u32) -> Option<Json> {
    let mut answer = hit(model, id, event)?;
    let entry = model.track(id)?;
    let (track, trace, host) = (entry.track(model), model.trace(entry.host), model.host(entry.host));
    let index = index_on(track, event)?;
    let (start, row) = (track.start(index), entry.layout.row_of(track, index));
    let parents = parents(model, entry, event, row);
    answer["self_ns"] = ns(self_time(model, entry, index, row)).into();
    answer["depth"] = track.nesting().depth(index).into();
    answer["thread"] = trace.str(track.name).into();
    answer["process"] = model.processes[entry.process].name.as_str().into();
    answer["host"] = model.profile.hosts[entry.host].host.as_str().into();
    answer["step"] = host.step_of(track, start).into();
    answer["args"] = arguments(trace, track, index).into();
    answer["parents"] = parents.into_iter().map(|parent| in_short(model, id, parent)).collect();
    answer["flows"] = arrows(model, entry, index).into();
    answer["instruction"] = card_of_event(trace, track, index).map(instruction).into();
    Some(answer)
}

/// The instruction of a compiled program behind an event.
fn instruction(card: Card) -> Json {
    json!({
        "program": card.program.name, "program_id": card.program.id.map(|id| id.to_string()), "op": card.op,
        "what": card.label, "scope": card.scope, "source": card.source, "stack": card.stack, "category": card.category,
        "phase": card.phase,
    })
}

fn in_short(model: &Model, id: u32, event: u32) -> Json {
    let name = model.track(id).map_or("", |entry| {
        let kind = entry.track(model).kind_of(event as usize);
        model.name(model.host(entry.host).look_of(kind).0)
    });
    json!({"track": id, "event": event, "name": name})
}

/// The enclosing events, innermost first.
fn parents(model: &Model, entry: &TrackEntry, event: u32, mut row: usize) -> Vec<u32> {
    let (track, rows) = (entry.track(model), &entry.rows);
    let mut parents = Vec::new();
    while !entry.layout.is_outermost(row) && row > 0 && parents.len() < MOST_PARENTS {
        row -= 1;
        let above = rows.row(track, row);
        let place = above.events().partition_point(|&other| other < event);
        match place.checked_sub(1).map(|place| above.events()[place]) {
            Some(parent) if track.end(parent as usize) >= track.start(event as usize) => parents.push(parent),
            _ => break,
        }
    }
    parents
}

/// Its time without directly nested events.
fn self_time(model: &Model, entry: &TrackEntry, index: usize, row: usize) -> Dur {
    let track = entry.track(model);
    let span = track.span_of(index);
    if entry.layout.is_outermost(row + 1) {
        return span.dur();
    }
    let (from, to) = (span.start.ps(), span.end.ps());
    let mut inside = 0_i64;
    let stretch = Stretch { from, to, narrow: i64::MAX };
    entry.rows.row(track, row + 1).walk(stretch, &mut |piece| {
        let seen = piece.end.min(to).saturating_sub(piece.start.max(from)).max(0);
        inside = inside.saturating_add(piece.busy.min(seen));
    });
    (span.dur() - Dur::from_ps(inside)).at_least_zero()
}

fn arguments(trace: &Trace, track: &Track, index: usize) -> Vec<Json> {
    let one = |(key, value): (&str, Value<'_>)| json!({"key": key, "value": plain(&value)});
    trace.args_at(track, index).collect().into_iter().map(one).collect()
}

/// A value as JSON; what JSON or a browser cannot represent exactly becomes text.
fn plain(value: &Value<'_>) -> Json {
    match value {
        Value::Int(number) if number.unsigned_abs() <= EXACT => (*number).into(),
        Value::Int(number) => number.to_string().into(),
        Value::UInt(number) if *number <= EXACT => (*number).into(),
        Value::UInt(number) => number.to_string().into(),
        Value::Float(number) if number.is_finite() => (*number).into(),
        Value::Float(number) => number.to_string().into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Str(text) | Value::Json(text) => text.chars().take(LONGEST_VALUE).collect::<String>().into(),
        Value::Bytes(bytes) => {
            let shown = bytes.iter().take(256).map(|byte| format!("{byte:02x}")).collect::<String>();
            shown.into()
        }
        Value::Null => "".into(),
    }
}

/// The event before or after another one with the same name or row.
pub fn neighbour(model: &Model, id: u32, event: u32, way: Way, same: Same) -> Option<Json> {
    let entry = model.track(id)?;
    let track = entry.track(model);
    let index = index_on(track, event)?;
    let found = match same {
        Same::Row => {
            let row = entry.rows.row(track, entry.layout.row_of(track, index));
            let place = row.events().binary_search(&event).ok()?;
            let place = match way {
                Way::Next => place + 1,
                Way::Previous => place.checked_sub(1)?,
            };
            row.events().get(place).copied()?
        }
        Same::Name => {
            let host = model.host(entry.host);
            let name = |index: usize| host.look_of(track.kind_of(index)).0;
            let wanted = name(index);
            let found = match way {
                Way::Next => (index + 1..track.len()).find(|&other| name(other) == wanted),
                Way::Previous => (0..index).rev().find(|&other| name(other) == wanted),
            };
            u32::try_from(found?).ok()?
        }
    };
    hit(model, id, found)
}

/// The event of a row at a moment, or the longest within `tolerance` of it. Times are picoseconds of the
/// session.
pub fn at(model: &Model, id: u32, row: usize, at: i64, tolerance: i64) -> Option<Json> {
    let entry = model.track(id)?;
    let track = entry.track(model);
    let at = at.saturating_sub(model.host(entry.host).shift.ps());
    let row = entry.rows.row(track, row);
    let there = row.longest(at, at.saturating_add(1));
    let near = || row.longest(at.saturating_sub(tolerance), at.saturating_add(tolerance).saturating_add(1));
    hit(model, id, there.or_else(near)?)
}

/// Links between events: launches of device work, and arrows in the file.
#[derive(Debug)]
pub struct Arrows {
    /// Sorted by work.
    launches: Vec<Launch>,
    /// The same, sorted by call.
    by_call: OnceLock<Vec<Launch>>,
    /// Positions of the trace's flow points, by track and time.
    points: OnceLock<Vec<u32>>,
}

impl Arrows {
    pub(crate) fn new(launches: Vec<Launch>) -> Self {
        Arrows { launches, by_call: OnceLock::new(), points: OnceLock::new() }
    }

    fn by_call(&self) -> &[Launch] {
        self.by_call.get_or_init(|| {
            let mut all = self.launches.clone();
            all.sort_unstable_by_key(|launch| launch.call);
            all
        })
    }

    /// What calls inside an event launched, if it is little.
    fn launches_inside(&self, track: &Track, index: usize) -> Vec<EventId> {
        let (event, end) = (track.event_id(index), track.end(index));
        let by_call = self.by_call();
        let behind = &by_call[by_call.partition_point(|launch| launch.call <= event)..];
        let inside = |call: EventId| call.track == event.track && track.start(call.index as usize) < end;
        let within = behind.iter().take(MOST_POINTS).take_while(|launch| inside(launch.call));
        let within = within.filter(|launch| track.end(launch.call.index as usize) <= end);
        let found: Vec<EventId> = within.take(MOST_INSIDE + 1).map(|launch| launch.work).collect();
        if found.len() > MOST_INSIDE { Vec::new() } else { found }
    }

    /// What an event launched, or what launched it.
    fn launches_of(&self, event: EventId) -> Vec<(bool, EventId)> {
        let by_call = self.by_call();
        let first = by_call.partition_point(|launch| launch.call < event);
        let started = by_call[first..].iter().take_while(|launch| launch.call == event);
        let started = started.take(MOST_ARROWS).map(|launch| (true, launch.work));
        let first = self.launches.partition_point(|launch| launch.work < event);
        let by = self.launches[first..].iter().take_while(|launch| launch.work == event);
        started.chain(by.map(|launch| (false, launch.call))).collect()
    }

    /// Flow points on a track within a span.
    fn points_in(&self, trace: &Trace, track: TrackId, span: Span) -> &[u32] {
        let flows = trace.flows();
        let key = |place: u32| {
            flows.get(place as usize).map_or((TrackId(u32::MAX), Time::MAX), |p| (p.track, p.time))
        };
        let sorted = self.points.get_or_init(|| {
            let mut all: Vec<u32> = (0..u32::try_from(flows.len()).unwrap_or(u32::MAX)).collect();
            all.sort_unstable_by_key(|&place| key(place));
            all
        });
        let first = sorted.partition_point(|&place| key(place) < (track, span.start));
        let last = sorted.partition_point(|&place| key(place) <= (track, span.end));
        sorted.get(first..last).unwrap_or_default()
    }
}

fn arrows(model: &Model, entry: &TrackEntry, index: usize) -> Vec<Json> {
    let (trace, track, host) = (model.trace(entry.host), entry.track(model), model.host(entry.host));
    let this = track.event_id(index);
    let mut all: Vec<(bool, String, EventId)> = Vec::new();
    for &place in host.arrows.points_in(trace, track.id, track.span_of(index)).iter().take(MOST_POINTS) {
        let place = place as usize;
        let Some(point) = trace.flows().get(place) else { continue };
        if owner(model, entry.host, point) != Some(this) {
            continue;
        }
        for (out, other) in linked(trace.flows(), place) {
            if let Some(other) = owner(model, entry.host, other).filter(|other| *other != this) {
                all.push((out, trace.str(point.category).to_owned(), other));
            }
        }
        if all.len() >= MOST_ARROWS {
            break;
        }
    }
    for (out, other) in host.arrows.launches_of(this) {
        if !all.iter().any(|(_, _, known)| *known == other) {
            all.push((out, "launch".to_owned(), other));
        }
    }
    if !all.iter().any(|(out, ..)| *out) {
        let inside = host.arrows.launches_inside(track, index).into_iter();
        all.extend(inside.map(|work| (true, "launch inside".to_owned(), work)));
    }
    all.truncate(MOST_ARROWS);
    let described = all.into_iter().filter_map(|(out, kind, other)| {
        let to = model.number_of(entry.host, other.track.index());
        let mut answer = hit(model, to, other.index)?;
        answer["direction"] = if out { "out" } else { "in" }.into();
        answer["kind"] = kind.into();
        Some(answer)
    });
    described.collect()
}

/// The points that a point's arrow leads to or comes from: from each start to all that follow it before the
/// next.
fn linked(flows: &[FlowPoint], place: usize) -> Vec<(bool, &FlowPoint)> {
    let Some(point) = flows.get(place) else { return Vec::new() };
    let same = |other: &&FlowPoint| (other.category, other.id) == (point.category, point.id);
    let before = flows[..place].iter().rev().take_while(same).take(MOST_ARROWS);
    let behind = flows[place + 1..].iter().take_while(same).take(MOST_ARROWS);
    match point.direction {
        FlowDirection::Out => behind
            .take_while(|other| other.direction != FlowDirection::Out)
            .map(|other| (true, other))
            .collect(),
        FlowDirection::Step | FlowDirection::In => {
            let mut before = before;
            let from = before.find(|other| other.direction == FlowDirection::Out);
            let on = behind.take(1).filter(|other| other.direction != FlowDirection::Out);
            let on = on.filter(|_| point.direction == FlowDirection::Step);
            from.map(|from| (false, from)).into_iter().chain(on.map(|on| (true, on))).collect()
        }
    }
}

/// The innermost event around a flow point.
fn owner(model: &Model, host: usize, point: &FlowPoint) -> Option<EventId> {
    let entry = model.track(model.number_of(host, point.track.index()))?;
    let track = entry.track(model);
    let rows = &entry.rows;
    let at = point.time;
    let mut best: Option<usize> = None;
    for row in 0..rows.len() {
        let events = rows.row(track, row);
        let behind = events.events().partition_point(|&event| track.start(event as usize) <= at);
        let last = behind.checked_sub(1).map(|place| events.events()[place] as usize);
        let around = last.filter(|&event| track.end(event) >= at);
        let shorter = |event: &usize| best.is_none_or(|best| track.dur(*event) <= track.dur(best));
        best = around.filter(shorter).or(best);
    }
    best.map(|index| track.event_id(index))
}
