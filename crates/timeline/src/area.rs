//! A selected area of the timeline: what ran in it, by name, and as a flame graph.
//!
//! Only the time inside the area counts. One pass over the events of each track with one stack per lane, tracks
//! on all cores; the trees of the tracks are merged by name.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use stepscope_trace::{Dur, Span, Time, Track};

use super::model::{Host, Model, TrackEntry, ns};
use super::rows::Stretch;

/// Maximum number of flame graph boxes in an answer; the smallest are omitted.
const MOST_BOXES: usize = 4_000;
/// Maximum number of rows in an answer, longest time first.
const MOST_ROWS: usize = 2_000;
/// Deeper calls count towards their ancestor at this depth.
const DEEPEST: usize = 512;

/// Totals for each name.
#[derive(Copy, Clone, Debug)]
struct Sum {
    category: u8,
    count: u64,
    total: Dur,
    own: Dur,
    least: Dur,
    most: Dur,
}

/// A box of the flame graph: a name below its callers.
#[derive(Clone, Debug)]
struct Call {
    name: u32,
    category: u8,
    count: u64,
    total: Dur,
    inside: Vec<u32>,
}

/// Calls as a tree; the first one is the root.
#[derive(Debug)]
struct Tree {
    calls: Vec<Call>,
    places: FxHashMap<(u32, u32), u32>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Call { name: 0, category: 0, count: 0, total: Dur::ZERO, inside: Vec::new() };
        Tree { calls: vec![root], places: FxHashMap::default() }
    }
}

impl Tree {
    /// The node for `name` called from `from`, new or known.
    fn call(&mut self, from: u32, name: u32, category: u8) -> u32 {
        let Tree { calls, places } = self;
        *places.entry((from, name)).or_insert_with(|| {
            let place = u32::try_from(calls.len()).unwrap_or(u32::MAX);
            calls.push(Call { name, category, count: 0, total: Dur::ZERO, inside: Vec::new() });
            calls[from as usize].inside.push(place);
            place
        })
    }

    fn add(&mut self, other: &Tree) {
        let mut mine = vec![0_u32; other.calls.len()];
        // A call is created before those inside it.
        for (place, call) in other.calls.iter().enumerate() {
            for &inside in &call.inside {
                let theirs = &other.calls[inside as usize];
                let here = self.call(mine[place], theirs.name, theirs.category);
                mine[inside as usize] = here;
                let call = &mut self.calls[here as usize];
                call.count += theirs.count;
                call.total += theirs.total;
            }
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    by_name: FxHashMap<u32, Sum>,
    tree: Tree,
    events: u64,
}

/// An open event.
struct OpenSlice {
    index: usize,
    call: u32,
    seen: Dur,
    inside: Dur,
}

/// Summarises a time range, in picoseconds of the session, on some tracks or all.
pub fn answer(model: &Model, from: i64, to: i64, tracks: Option<&[u32]>) -> Value {
    let tracks = tracks.unwrap_or(&model.order);
    let one = |&id: &u32| model.track(id).map(|entry| on_track(model, entry, from, to)).unwrap_or_default();
    let sums = tracks.par_iter().map(one).reduce(Sums::default, |mut all, one| {
        all.add(&one);
        all
    });
    let mut rows: Vec<(&u32, &Sum)> = sums.by_name.iter().collect();
    rows.sort_by(|a, b| b.1.own.cmp(&a.1.own).then(b.1.total.cmp(&a.1.total)).then(a.0.cmp(b.0)));
    rows.truncate(MOST_ROWS);
    let rows = rows.into_iter().map(|(&name, sum)| json!({
        "name": model.name(name), "category": sum.category, "count": sum.count, "total_ns": ns(sum.total),
        "average_ns": ns(sum.total) / sum.count.max(1) as f64, "self_ns": ns(sum.own), "min_ns": ns(sum.least),
        "max_ns": ns(sum.most),
    }));
    json!({
        "rows": rows.collect::<Vec<_>>(), "events": sums.events, "flame": flame(model, &sums.tree),
        "span_ns": ns(Dur::from_ps(to.saturating_sub(from).max(0))),
    })
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.events += other.events;
        self.tree.add(&other.tree);
        for (&name, sum) in &other.by_name {
            let mine = self.by_name.entry(name).or_insert(Sum {
                count: 0,
                total: Dur::ZERO,
                own: Dur::ZERO,
                ..*sum
            });
            mine.count += sum.count;
            mine.total += sum.total;
            mine.own += sum.own;
            mine.least = mine.least.min(sum.least);
            mine.most = mine.most.max(sum.most);
        }
    }

    /// Closes an event, whose time is now known.
    fn close(&mut self, open: &OpenSlice, host: &Host, track: &Track) {
        let (name, category) = host.look_of(track.kind_of(open.index));
        let sum = self.by_name.entry(name).or_insert(Sum {
            category,
            count: 0,
            total: Dur::ZERO,
            own: Dur::ZERO,
            least: open.seen,
            most: open.seen,
        });
        sum.count += 1;
        sum.total += open.seen;
        sum.own += (open.seen - open.inside).at_least_zero();
        sum.least = sum.least.min(open.seen);
        sum.most = sum.most.max(open.seen);
        if let Some(call) = self.tree.calls.get_mut(open.call as usize) {
            call.count += 1;
            call.total += open.seen;
        }
    }
}

fn on_track(model: &Model, entry: &TrackEntry, from: i64, to: i64) -> Sums {
    let (track, host) = (entry.track(model), model.host(entry.host));
    let shift = host.shift.ps();
    let area = Span::new(Time::from_ps(from.saturating_sub(shift)), Time::from_ps(to.saturating_sub(shift)));
    let mut sums = Sums::default();
    let nesting = track.nesting();
    let mut lanes: Vec<Vec<OpenSlice>> = (0..nesting.lanes()).map(|_| Vec::new()).collect();
    let inside = track.first_from(area.start)..track.first_from(area.end);
    for index in open_at(model, entry, area.start).into_iter().chain(inside) {
        let Some(open) = lanes.get_mut(nesting.lane(index)) else { continue };
        let depth = nesting.depth(index);
        while open.last().is_some_and(|last| nesting.depth(last.index) >= depth) {
            if let Some(ended) = open.pop() {
                sums.close(&ended, host, track);
            }
        }
        let seen = track.span_of(index).intersect(area).dur();
        let (name, category) = host.look_of(track.kind_of(index));
        let call = match open.last_mut() {
            Some(outer) => {
                outer.inside += seen;
                if depth < DEEPEST { sums.tree.call(outer.call, name, category) } else { outer.call }
            }
            None => sums.tree.call(0, name, category),
        };
        sums.events += 1;
        open.push(OpenSlice { index, call, seen, inside: Dur::ZERO });
    }
    for open in lanes.iter().flatten() {
        sums.close(open, host, track);
    }
    sums
}

/// The events that are already running at `at`, by start.
fn open_at(model: &Model, entry: &TrackEntry, at: Time) -> Vec<usize> {
    let (track, rows) = (entry.track(model), &entry.rows);
    let mut open = Vec::new();
    for row in 0..rows.len() {
        let stretch = Stretch { from: at.ps(), to: at.ps(), narrow: 0 };
        rows.row(track, row).walk(stretch, &mut |piece| open.push(piece.first as usize));
    }
    open.sort_unstable();
    open
}

/// The tree in depth-first order; siblings by size, the smallest omitted.
fn flame(model: &Model, tree: &Tree) -> Vec<Value> {
    let least = least_shown(tree);
    let mut boxes = Vec::new();
    let mut todo: Vec<(u32, usize, f64)> = Vec::new();
    push_inside(tree, 0, 0, 0.0, least, &mut todo);
    while let Some((place, depth, start)) = todo.pop().filter(|_| boxes.len() < MOST_BOXES) {
        let call = &tree.calls[place as usize];
        boxes.push(json!({
            "name": model.name(call.name), "category": call.category, "depth": depth, "start": start,
            "total_ns": ns(call.total), "count": call.count,
        }));
        push_inside(tree, place, depth + 1, start, least, &mut todo);
    }
    boxes
}

/// The time of the smallest box shown, so that there are at most [`MOST_BOXES`].
fn least_shown(tree: &Tree) -> Dur {
    let mut totals: Vec<Dur> = tree.calls.iter().skip(1).map(|call| call.total).collect();
    if totals.len() <= MOST_BOXES {
        return Dur::ZERO;
    }
    let place = totals.len() - MOST_BOXES;
    *totals.select_nth_unstable(place).1
}

fn push_inside(
    tree: &Tree,
    place: u32,
    depth: usize,
    start: f64,
    least: Dur,
    todo: &mut Vec<(u32, usize, f64)>,
) {
    let mut inside: Vec<u32> = tree.calls[place as usize].inside.clone();
    inside.sort_by_key(|&call| (std::cmp::Reverse(tree.calls[call as usize].total), call));
    let mut at = start;
    let mut shown = Vec::new();
    for call in inside {
        let total = tree.calls[call as usize].total;
        if total >= least {
            shown.push((call, depth, at));
            at += ns(total);
        }
    }
    todo.extend(shown.into_iter().rev());
}
