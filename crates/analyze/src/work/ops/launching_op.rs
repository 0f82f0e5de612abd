//! Which op launched which device work.
//!
//! Profilers record it in many ways: XPlane writes the op with the kernel (`tf_op`, `hlo_op`, `level 0` and
//! `annotation` up to TensorFlow 2.12), TPU ops have it in their kind, and Kineto does not record it at all:
//! there the op is the innermost open one on the thread of the launch call.

use rayon::prelude::*;
use stepscope_trace::{Args, EventId, KindId, StrId, Trace, Value};

use crate::context::Context;
use crate::states::launches::Launch;
use crate::vocabulary::names::{framework_op, hlo_name, hlo_opcode};
use crate::vocabulary::starts_graph;
use crate::work::ops::OpTable;

/// The keys under which device events name their op.
#[derive(Debug)]
pub(crate) struct OpKeys {
    hlo_op: Option<StrId>,
    hlo_category: Option<StrId>,
    framework: Vec<StrId>,
    path: Option<StrId>,
}

/// An op as a device event names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamedOp {
    pub(crate) name: String,
    pub(crate) kind: String,
}

impl OpKeys {
    pub(crate) fn of(trace: &Trace) -> Self {
        let find = |key: &str| trace.strings().find(key);
        OpKeys {
            hlo_op: find("hlo_op"),
            hlo_category: find("hlo_category"),
            framework: ["tf_op", "level 0", "annotation"].iter().filter_map(|key| find(key)).collect(),
            path: find("name"),
        }
    }

    /// The framework's path of an event's op, e.g. `model/dense/MatMul` or `jit(f)/layer/dot_general`.
    pub(crate) fn path(&self, args: Args<'_>) -> Option<String> {
        let mut found: Option<(usize, String)> = None;
        args.visit(|key, value| {
            let rank = if Some(key) == self.path { Some(usize::MAX) } else { None };
            let rank = rank.or_else(|| self.framework.iter().position(|known| *known == key));
            let text = value.as_str().map(|text| text.split('#').next().unwrap_or(text));
            if let (Some(rank), Some(text)) = (rank, text.filter(|text| text.contains('/')))
                && found.as_ref().is_none_or(|(best, _)| rank < *best)
            {
                found = Some((rank, framework_op(text).0.to_owned()));
            }
        });
        found.map(|(_, path)| path)
    }

    /// The op named by an event's own arguments. An XLA op is its instruction: one framework op may become
    /// many, and vice versa.
    pub(crate) fn named(&self, args: Args<'_>, event: &str) -> Option<NamedOp> {
        let (mut hlo, mut category) = (None, None);
        let mut framework: Option<(usize, Value<'_>)> = None;
        args.visit(|key, value| {
            if Some(key) == self.hlo_op {
                hlo = hlo.take().or(Some(value));
            } else if Some(key) == self.hlo_category {
                category = category.take().or(Some(value));
            } else if let Some(rank) = self.framework.iter().position(|known| *known == key)
                && framework.as_ref().is_none_or(|(best, _)| rank < *best)
            {
                framework = Some((rank, value));
            }
        });
        let category = category.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty());
        if event.starts_with('%') || category.is_some() {
            let kind = category.unwrap_or_else(|| hlo_opcode(event));
            return Some(NamedOp { name: hlo_name(event).to_owned(), kind: kind.to_owned() });
        }
        if let Some(op) = hlo.as_ref().and_then(Value::as_str).filter(|op| !op.is_empty()) {
            // Annotations stack as `outer::inner`; the inner one is the instruction.
            let op = op.rsplit("::").next().unwrap_or(op);
            return Some(NamedOp { name: hlo_name(op).to_owned(), kind: hlo_opcode(op).to_owned() });
        }
        let text = framework.as_ref().and_then(|(_, value)| value.as_str())?;
        let innermost = text.rsplit("::").find(|part| !part.starts_with('#')).unwrap_or(text);
        let bare = innermost.split('#').next().unwrap_or(innermost);
        let (name, kind) = framework_op(bare);
        let empty = name.is_empty() || bare == "XlaModule:";
        (!empty).then(|| NamedOp { name: name.to_owned(), kind: kind.to_owned() })
    }
}

/// The host ops that launched device work, by launch.
#[derive(Debug)]
pub(crate) struct LaunchingOps {
    /// Sorted by device work, with the op's number in the table.
    all: Vec<(EventId, u32)>,
}

impl LaunchingOps {
    /// Finds the innermost open op of each launch call.
    pub(crate) fn of(context: &Context, table: &OpTable) -> Self {
        let mut calls: Vec<&Launch> = context.launches().all.iter().collect();
        calls.sort_unstable_by_key(|launch| launch.call);
        let tracks: Vec<&[&Launch]> = calls.chunk_by(|a, b| a.call.track == b.call.track).collect();
        let mut all: Vec<(EventId, u32)> =
            tracks.into_par_iter().flat_map_iter(|calls| owners_on(context.trace, table, calls)).collect();
        all.sort_unstable_by_key(|(work, _)| *work);
        LaunchingOps { all }
    }

    /// The op that launched `work`.
    pub(crate) fn op_of(&self, work: EventId) -> Option<u32> {
        let at = self.all.binary_search_by_key(&work, |(known, _)| *known).ok()?;
        self.all.get(at).map(|(_, op)| *op)
    }
}

/// Walks one thread and its launches together.
fn owners_on(trace: &Trace, table: &OpTable, calls: &[&Launch]) -> Vec<(EventId, u32)> {
    let Some(first) = calls.first() else { return Vec::new() };
    let track = trace.track(first.call.track);
    let mut owners = Vec::with_capacity(calls.len());
    let mut open: Vec<(stepscope_trace::Time, u32)> = Vec::new();
    let mut next = 0;
    for launch in calls {
        let at = launch.call.index as usize;
        for index in next..at {
            if let Some(op) = table.launcher(track.kind_of(index)) {
                let start = track.start(index);
                while open.pop_if(|(end, _)| *end <= start).is_some() {}
                open.push((track.end(index), op));
            }
        }
        next = next.max(at);
        while open.pop_if(|(end, _)| *end <= launch.called).is_some() {}
        // The op of a graph's kernel was decided when the graph was captured.
        if !starts_graph(trace.kind_name(track.kind_of(at))) {
            owners.extend(open.last().map(|&(_, op)| (launch.work, op)));
        }
    }
    owners
}

/// The name of a device event without a known op: copies and fills by their name, kernels by their short name.
pub(crate) fn unowned(trace: &Trace, kind: KindId) -> NamedOp {
    use crate::vocabulary::copy_direction;
    let name = trace.kind_name(kind);
    let short = crate::vocabulary::names::kernel_short_name(name);
    let kind = if copy_direction(name).is_some() {
        "Memcpy"
    } else if name.starts_with("Memset") {
        "Memset"
    } else {
        "kernel"
    };
    NamedOp { name: short.into_owned(), kind: kind.to_owned() }
}
