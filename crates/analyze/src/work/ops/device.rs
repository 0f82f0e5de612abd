//! Ops on devices: the kernels, copies and collectives that each op launched.

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Form, KindId, ProcessKind, StrId, Time, Trace, Track, TrackKind, Value};

use super::table::OpTable;
use super::{COLLECTIVE, Entries, OpKey, Totals, Where};
use crate::context::Context;
use crate::vocabulary::names::kernel_short_name;
use crate::vocabulary::{Role, Vocabulary};
use crate::window::Windows;
use crate::work::ops::launching_op::{LaunchingOps, NamedOp, OpKeys, unowned};

/// Adds the ops of all devices.
pub(super) fn collect(context: &Context, windows: &Windows, entries: &mut Entries) {
    let trace = context.trace;
    let streams: Vec<&Track> = trace
        .tracks()
        .iter()
        .filter(|track| track.kind == TrackKind::Stream && !track.is_empty())
        .filter(|track| trace.process(track.process).kind == ProcessKind::Device)
        .collect();
    if streams.is_empty() {
        return;
    }
    let table = OpTable::of(trace, context.vocabulary());
    let pass = Pass {
        trace,
        vocabulary: context.vocabulary(),
        windows,
        keys: OpKeys::of(trace),
        costs: CostKeys::of(trace),
        owners: LaunchingOps::of(context, &table),
        table: &table,
    };
    let found: Vec<Found> = streams.into_par_iter().map(|stream| pass.walk(stream)).collect();
    for (op, totals, shapes) in found.into_iter().flat_map(|found| found.ops) {
        let key = OpKey { side: Where::Device, input: false, kind: op.kind, name: op.name };
        let entry = entries.entry(key).or_default();
        entry.totals.add(&totals);
        shapes.iter().for_each(|(shape, times)| entry.saw_shape(shape, *times));
    }
}

/// The keys of costs, shapes and eager flags.
struct CostKeys {
    flops: Option<StrId>,
    bytes: Vec<StrId>,
    copied: Option<StrId>,
    eager: Option<StrId>,
    shapes: Vec<StrId>,
}

impl CostKeys {
    fn of(trace: &Trace) -> Self {
        let find = |key: &str| trace.strings().find(key);
        CostKeys {
            flops: find("flops"),
            bytes: ["bytes_accessed", "bytes"].iter().filter_map(|key| find(key)).collect(),
            copied: find("memcpy_details"),
            eager: find("is_eager"),
            shapes: ["shape", "shape_with_layout"].iter().filter_map(|key| find(key)).collect(),
        }
    }
}

/// What the arguments of one event contain besides its op.
#[derive(Default)]
struct Costs {
    flops: Option<f64>,
    bytes: Option<f64>,
    eager: Option<bool>,
    shape: Option<String>,
}

struct Pass<'c> {
    trace: &'c Trace,
    vocabulary: &'c Vocabulary,
    windows: &'c Windows,
    keys: OpKeys,
    costs: CostKeys,
    owners: LaunchingOps,
    table: &'c OpTable,
}

/// An op with its figures and its observed shapes.
type Summed = (NamedOp, Totals, Vec<(String, u64)>);

#[derive(Default)]
struct Found {
    lookup: HashMap<NamedOp, usize, FxBuildHasher>,
    /// Kinds whose events belong to no op: cached, because shortening a kernel's name takes longer than
    /// everything else.
    unowned: HashMap<KindId, usize, FxBuildHasher>,
    ops: Vec<Summed>,
}

struct OpenOp {
    end: Time,
    dur: Dur,
    inside: Dur,
    op: usize,
    costs: Costs,
}

impl Pass<'_> {
    fn walk(&self, track: &Track) -> Found {
        let mut windows = self.windows.of_track(self.trace, track);
        let mut found = Found::default();
        let mut open: Vec<OpenOp> = Vec::new();
        for index in 0..track.len() {
            let kind = track.kind_of(index);
            let start = track.start(index);
            if !self.is_work(kind) || !windows.counts(start) {
                continue;
            }
            let (dur, end) = (track.dur(index), track.end(index));
            while let Some(ended) = open.pop_if(|open| open.end <= start) {
                found.close(ended);
            }
            // Only what lies entirely inside is nested; kernels of one stream may overlap slightly.
            if let Some(outer) = open.last_mut().filter(|outer| end <= outer.end) {
                outer.inside += dur;
            }
            let op = match self.op_of(track, index, kind) {
                Some(op) => found.number(op),
                None => found.unowned(self.trace, kind),
            };
            let costs = self.costs_of(track, index);
            open.push(OpenOp { end, dur, inside: Dur::ZERO, op, costs });
        }
        while let Some(ended) = open.pop() {
            found.close(ended);
        }
        found
    }

    fn is_work(&self, kind: KindId) -> bool {
        let role = self.vocabulary.role(kind);
        self.trace.kind(kind).form == Form::Slice
            && matches!(role, Role::Kernel | Role::Collective | Role::Copy(_) | Role::Memset | Role::Unknown)
    }

    /// The op that the event names or that launched it.
    fn op_of(&self, track: &Track, index: usize, kind: KindId) -> Option<NamedOp> {
        let args = self.trace.args_at(track, index);
        if let Some(named) = self.keys.named(args, self.trace.kind_name(kind)) {
            return Some(named);
        }
        let owner = self.owners.op_of(track.event_id(index)).and_then(|op| self.table.ops.get(op as usize));
        if self.vocabulary.role(kind) == Role::Collective && owner.is_none_or(|(name, _)| only_records(name))
        {
            let name = kernel_short_name(self.trace.kind_name(kind)).into_owned();
            return Some(NamedOp { name, kind: COLLECTIVE.to_owned() });
        }
        owner.map(|(name, kind)| NamedOp { name: name.clone(), kind: kind.clone() })
    }

    fn costs_of(&self, track: &Track, index: usize) -> Costs {
        let mut costs = Costs::default();
        self.trace.args_at(track, index).visit(|key, value| {
            if Some(key) == self.costs.flops {
                costs.flops = value.as_f64();
            } else if self.costs.bytes.contains(&key) {
                costs.bytes = costs.bytes.or(value.as_f64());
            } else if Some(key) == self.costs.copied {
                costs.bytes = costs.bytes.or(copied_bytes(&value));
            } else if Some(key) == self.costs.eager {
                costs.eager = value.as_i64().map(|eager| eager != 0);
            } else if self.costs.shapes.contains(&key) {
                costs.shape = value.as_str().map(str::to_owned);
            }
        });
        costs
    }
}

/// Ops that PyTorch opens around any collective only to record its arguments: the kernel says more.
fn only_records(op: &str) -> bool {
    op == "record_param_comms" || op.starts_with("nccl:")
}

/// The size in `kind_src:pinned size:4096 dest:0 async:1`.
fn copied_bytes(details: &Value<'_>) -> Option<f64> {
    let details = details.as_str()?;
    let size = details.split_ascii_whitespace().find_map(|part| part.strip_prefix("size:"))?;
    size.parse().ok().filter(|size| *size > 0.0)
}

impl Found {
    /// The number of the op that stands for a kind without an op.
    fn unowned(&mut self, trace: &Trace, kind: KindId) -> usize {
        if let Some(&known) = self.unowned.get(&kind) {
            return known;
        }
        let number = self.number(unowned(trace, kind));
        self.unowned.insert(kind, number);
        number
    }

    fn number(&mut self, op: NamedOp) -> usize {
        let next = self.ops.len();
        let (number, ops) = (self.lookup.entry(op), &mut self.ops);
        match number {
            hashbrown::hash_map::Entry::Occupied(known) => *known.get(),
            hashbrown::hash_map::Entry::Vacant(new) => {
                ops.push((new.key().clone(), Totals::default(), Vec::new()));
                *new.insert(next)
            }
        }
    }

    fn close(&mut self, ended: OpenOp) {
        let OpenOp { dur, inside, op, costs, .. } = ended;
        let Some((_, totals, shapes)) = self.ops.get_mut(op) else { return };
        let own = (dur - inside).at_least_zero();
        let mut eager = [0; 2];
        if let Some(is_eager) = costs.eager {
            eager[usize::from(!is_eager)] = 1;
        }
        totals.add(&Totals {
            count: 1,
            total: dur,
            own,
            eager,
            flops: costs.flops.unwrap_or(0.0),
            bytes: costs.bytes.unwrap_or(0.0),
            shaped: 0,
            flops_time: costs.flops.map_or(Dur::ZERO, |_| own),
            bytes_time: costs.bytes.map_or(Dur::ZERO, |_| own),
        });
        if let Some(shape) = costs.shape {
            // A few are enough to find the most frequent.
            let full = shapes.len() >= 8;
            match shapes.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, times)) => *times += 1,
                None if !full => shapes.push((shape, 1)),
                None => {}
            }
        }
    }
}
