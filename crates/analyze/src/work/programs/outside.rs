//! What TensorFlow runs outside of compiled programs, and what it does at their borders.
//!
//! Automatic clustering compiles what XLA can compile, and runs the rest op by op between the clusters. A profile names those
//! ops and their types, and the time to hand values into and out of each cluster. It does not name the reason; for types
//! that XLA's compiler bridge leaves out on principle, the type is the reason.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindId, KindSet, Time, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::window::Windows;

/// Why an op of TensorFlow is not part of a compiled program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Uncompiled {
    /// The size of its result depends on values, and compiled programs have fixed sizes.
    Size,
    /// It works on text.
    Text,
    /// It calls Python.
    Python,
    /// It belongs to the input pipeline.
    Input,
    /// It looks up a table that lives outside of programs.
    Lookup,
    /// It writes or prints something.
    Output,
    /// It exchanges data with other processes.
    Exchange,
}

/// What an op has to do with compiled programs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It starts a program, or hands values in or out.
    Border,
    /// It runs by itself, for this reason if the type says one.
    Outside(Option<Uncompiled>),
}

/// Types of ops at the border of clusters.
const BORDERS: &[&str] = &[
    "_XlaRun",
    "_XlaCompile",
    "_XlaMerge",
    "XlaLaunch",
    "_Arg",
    "_Retval",
    "_Send",
    "_Recv",
    "_HostSend",
    "_HostRecv",
];

/// What an op of this type has to do with compiled programs.
pub fn place_of(op_type: &str) -> Place {
    if BORDERS.contains(&op_type) {
        return Place::Border;
    }
    let has = |parts: &[&str]| parts.iter().any(|part| op_type.contains(part));
    let is = |types: &[&str]| types.contains(&op_type);
    let reason = if has(&["PyFunc", "PyFunction", "NumpyFunction"]) {
        Some(Uncompiled::Python)
    } else if has(&[
        "Dataset",
        "Iterator",
        "ReaderRead",
        "QueueDequeue",
        "ParseExample",
        "ParseSingleExample",
    ]) {
        Some(Uncompiled::Input)
    } else if has(&["LookupTable", "HashTable"]) {
        Some(Uncompiled::Lookup)
    } else if has(&["Summary", "SaveV2", "RestoreV2", "WriteFile"])
        || is(&["Print", "PrintV2", "Assert", "Save"])
    {
        Some(Uncompiled::Output)
    } else if has(&["String", "Regex", "Unicode", "Base64"])
        || op_type.starts_with("Decode")
        || op_type.starts_with("Encode")
    {
        Some(Uncompiled::Text)
    } else if has(&["Unique", "Ragged", "DynamicPartition", "NonMaxSuppression", "SparseTo", "SparseReshape"])
        || is(&["Where", "ListDiff", "SetDiff1D"])
    {
        Some(Uncompiled::Size)
    } else if has(&["Collective", "Nccl"]) {
        Some(Uncompiled::Exchange)
    } else {
        None
    };
    Place::Outside(reason)
}

/// Values that are handed to or taken from one cluster.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Handing {
    /// How often.
    pub count: u64,
    /// How many values in all.
    pub values: u64,
    /// How long in all.
    pub time: Dur,
}

/// Values into and out of clusters, by the op that runs the cluster and the direction.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Borders {
    /// By op, then `true` for what goes in.
    pub handed: BTreeMap<(String, bool), Handing>,
}

const INPUTS: &str = "Populate Inputs (";
const OUTPUTS: &str = "Populate Outputs (";
const RUNS: &str = ":_XlaRun";

impl Analysis for Borders {
    type Output = Self;

    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let mut found = Borders::default();
        let mut hands = false;
        let wanted = trace.kinds_where(|kind| {
            let handing = handed(trace, kind).is_some();
            hands |= handing;
            handing || trace.kind_name(kind).ends_with(RUNS)
        });
        if !hands {
            return found;
        }
        let windows = Windows::of(context);
        for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
            found.walk(trace, track, &windows, &wanted);
        }
        found
    }

    fn merge(&mut self, other: Borders) {
        for (key, more) in other.handed {
            let own = self.handed.entry(key).or_default();
            own.count += more.count;
            own.values += more.values;
            own.time += more.time;
        }
    }

    fn finish(self) -> Self {
        self
    }
}

impl Borders {
    fn walk(&mut self, trace: &Trace, track: &Track, windows: &Windows, wanted: &KindSet) {
        let mut counted = windows.of_track(trace, track);
        let mut cluster: Option<(Time, &str)> = None;
        for (index, kind) in track.events_of(wanted) {
            let span = track.span_of(index);
            let Some((inward, values)) = handed(trace, kind) else {
                cluster = trace.kind_name(kind).strip_suffix(RUNS).map(|name| (span.end, name));
                continue;
            };
            if !counted.counts(span.start) {
                continue;
            }
            let inside = cluster.filter(|(end, _)| span.start < *end).map_or("", |(_, name)| name);
            let hands = self.handed.entry((inside.to_owned(), inward)).or_default();
            hands.count += 1;
            hands.values = hands.values.saturating_add(values);
            hands.time += span.dur();
        }
    }
}

/// Whether an event hands values to a cluster (`true`) or takes some, and how many; `None` if it does neither.
fn handed(trace: &Trace, kind: KindId) -> Option<(bool, u64)> {
    let name = trace.kind_name(kind);
    let (inward, rest) = match name.strip_prefix(INPUTS) {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix(OUTPUTS)?),
    };
    Some((inward, rest.strip_suffix(')')?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_xla_leaves_out_are_the_reason_and_others_are_unknown() {
        let outside = |reason| Place::Outside(Some(reason));
        assert_eq!(place_of("Unique"), outside(Uncompiled::Size));
        assert_eq!(place_of("AsString"), outside(Uncompiled::Text));
        assert_eq!(place_of("StringToNumber"), outside(Uncompiled::Text));
        assert_eq!(place_of("EagerPyFunc"), outside(Uncompiled::Python));
        assert_eq!(place_of("IteratorGetNext"), outside(Uncompiled::Input));
        assert_eq!(place_of("LookupTableFindV2"), outside(Uncompiled::Lookup));
        assert_eq!(place_of("WriteScalarSummary"), outside(Uncompiled::Output));
        assert_eq!(place_of("CollectiveReduceV2"), outside(Uncompiled::Exchange));
        assert_eq!(place_of("MatMul"), Place::Outside(None));
        assert_eq!(place_of("_XlaRun"), Place::Border);
    }
}
