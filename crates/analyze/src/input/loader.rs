//! PyTorch's DataLoader: number of requests, time per batch, and what ran inside.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Form, KindId, ProcessKind, Time, Track, TrackKind};

use super::stage::FunctionOp;
use crate::context::Context;
use crate::vocabulary::Role;
use stepscope_trace::statistics::Moments;

const PREFIX: &str = "enumerate(DataLoader)";

/// Totals of one loader on one host.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LoaderTally {
    name: String,
    fetches_ms: Vec<f64>,
    /// Fetches whose times were not kept.
    #[serde(default)]
    more: u64,
    ops: Vec<FunctionOp>,
    pins: bool,
}

/// A DataLoader.
#[derive(Clone, Debug, PartialEq)]
pub struct Loader {
    /// Its class, e.g. `_SingleProcessDataLoaderIter`.
    pub name: String,
    /// Whether it has worker processes; `None` if its name does not say.
    pub has_workers: Option<bool>,
    /// Number of batches fetched.
    pub fetches: u64,
    /// Time to fetch a batch, in milliseconds.
    pub fetch_ms: Option<Moments>,
    /// Batches per second that it can deliver: the inverse of the mean fetch, if it runs on the loop's thread.
    pub most_batches_per_second: Option<f64>,
    /// The longest ops inside, including what runs inside them.
    pub ops: Vec<FunctionOp>,
    /// True if batches are put into pinned memory.
    pub pins_memory: bool,
}

/// The loaders of one host, from one pass over its threads.
pub(super) fn loaders(context: &Context) -> Vec<LoaderTally> {
    let trace = context.trace;
    let wanted: Vec<bool> = (0..trace.kinds().len())
        .map(|index| trace.kind_name(KindId::from_index(index)).starts_with(PREFIX))
        .collect();
    let mut found = Vec::new();
    if !wanted.contains(&true) {
        return found;
    }
    let threads = trace.tracks().iter().filter(|track| {
        track.kind == TrackKind::Thread && trace.process(track.process).kind != ProcessKind::Device
    });
    for track in threads {
        walk(context, track, &wanted, &mut found);
    }
    found
}

fn walk(context: &Context, track: &Track, wanted: &[bool], found: &mut Vec<LoaderTally>) {
    let trace = context.trace;
    let mut inside: Option<(Time, usize)> = None;
    let mut op_end = Time::MIN;
    let mut ops: HashMap<(usize, KindId), (u64, Dur), FxBuildHasher> = HashMap::default();
    for (index, &kind) in track.kinds().iter().enumerate() {
        let span = track.span_of(index);
        inside = inside.filter(|(end, _)| span.start < *end);
        match inside {
            None if wanted[kind.index()] && trace.kind(kind).form == Form::Slice => {
                let at = place_of(found, trace.kind_name(kind));
                found[at].fetches_ms.push(span.dur().ms());
                inside = Some((span.end, at));
                op_end = Time::MIN;
            }
            Some((_, at)) if span.start >= op_end && context.vocabulary().role(kind) == Role::Op => {
                op_end = span.end;
                let sum = ops.entry((at, kind)).or_default();
                *sum = (sum.0 + 1, sum.1 + span.dur());
            }
            _ => {}
        }
    }
    let mut ops: Vec<_> = ops.into_iter().collect();
    ops.sort_unstable_by_key(|(key, _)| *key);
    for ((at, kind), (count, time)) in ops {
        let op = trace.kind_name(kind);
        found[at].pins |= op.ends_with("pin_memory");
        add_op(&mut found[at].ops, FunctionOp { op: op.to_owned(), count, time });
    }
}

fn place_of(found: &mut Vec<LoaderTally>, name: &str) -> usize {
    let name = name.trim_start_matches(PREFIX).trim_start_matches('#').trim_end_matches(".__next__");
    found.iter().position(|loader| loader.name == name).unwrap_or_else(|| {
        found.push(LoaderTally { name: name.to_owned(), ..LoaderTally::default() });
        found.len() - 1
    })
}

fn add_op(ops: &mut Vec<FunctionOp>, new: FunctionOp) {
    match ops.iter_mut().find(|op| op.op == new.op) {
        Some(op) => (op.count, op.time) = (op.count + new.count, op.time + new.time),
        None => ops.push(new),
    }
}

/// Adds another host's loaders.
pub(super) fn merge(into: &mut Vec<LoaderTally>, others: Vec<LoaderTally>) {
    for other in others {
        match into.iter_mut().find(|loader| loader.name == other.name) {
            Some(loader) => {
                loader.fetches_ms.extend(other.fetches_ms);
                loader.more += other.more;
                loader.pins |= other.pins;
                other.ops.into_iter().for_each(|op| add_op(&mut loader.ops, op));
            }
            None => into.push(other),
        }
    }
}

const OPS_SHOWN: usize = 5;

impl LoaderTally {
    /// Keeps the times of some fetches, from everywhere in the recording.
    pub(super) fn bound(&mut self) {
        const FETCHES: usize = 1_024;
        let all = self.fetches_ms.len();
        crate::stored::thin(&mut self.fetches_ms, FETCHES);
        self.more += (all - self.fetches_ms.len()) as u64;
    }

    pub(super) fn finish(self) -> Loader {
        let LoaderTally { name, fetches_ms, more, mut ops, pins } = self;
        let has_workers = if name.contains("SingleProcess") {
            Some(false)
        } else if name.contains("MultiProcessing") {
            Some(true)
        } else {
            None
        };
        ops.sort_by(|a, b| b.time.cmp(&a.time).then(a.op.cmp(&b.op)));
        ops.truncate(OPS_SHOWN);
        let fetches = fetches_ms.len() as u64 + more;
        let fetch_ms = Moments::of(fetches_ms);
        // With workers, a fetch is mostly waiting: their speed is only visible while they are waited for.
        let most = fetch_ms.filter(|fetch| fetch.mean > 0.0 && has_workers == Some(false));
        Loader {
            name,
            has_workers,
            fetches,
            fetch_ms,
            most_batches_per_second: most.map(|fetch| 1e3 / fetch.mean),
            ops,
            pins_memory: pins,
        }
    }
}
