//! The argument keys of each kind of event.
//!
//! A framework writes events of one kind from one place in its source, so the first few events of a kind show
//! its keys. Examining only those avoids decoding the arguments of millions.

use rayon::prelude::*;
use stepscope_trace::{KindId, StrId, Trace, Track};

/// Number of events of a kind that are examined. More than one, because two sources may share a name: a user's
/// marker `train` and a function called `train`.
const SAMPLES: u8 = 16;

/// Number of events that are counted together on one core.
const PIECE: usize = 1 << 18;
/// Number of pieces from which it is worth making a table of counts.
const MANY_TRACKS: usize = 4;

/// Keys that matter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Keys {
    /// `step_num`: the event is a step.
    StepNumber,
    /// `_r`: the event is a root.
    Root,
    /// `tf_function_call`: a call of a tf.function, and its outcome.
    FunctionCall,
    /// `hlo_op`: an op of an XLA program.
    HloOp,
    /// `correlation_id` or `correlation`: links a host call with the device work that it launched.
    Correlation,
    /// `id`: the number of a graph run.
    RunId,
    /// `hlo_module`: the XLA program that an op belongs to.
    HloModule,
    /// `eager_op`: the op that an eager call runs.
    EagerOp,
    /// `_ipl_stage_name`: a stage of an input pipeline that identifies itself.
    InputStage,
    /// `context_id`: a call or work of a device's driver, with CUPTI's context number.
    Context,
}

const NAMES: [(Keys, &[&str]); 10] = [
    (Keys::StepNumber, &["step_num"]),
    (Keys::Root, &["_r"]),
    (Keys::FunctionCall, &["tf_function_call"]),
    (Keys::HloOp, &["hlo_op"]),
    (Keys::Correlation, &["correlation_id", "correlation"]),
    (Keys::RunId, &["id"]),
    (Keys::HloModule, &["hlo_module"]),
    (Keys::EagerOp, &["eager_op"]),
    (Keys::InputStage, &["_ipl_stage_name"]),
    (Keys::Context, &["context_id"]),
];

/// A set of [`Keys`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct KeySet(u16);

impl KeySet {
    /// Whether it contains `key`.
    pub fn has(self, key: Keys) -> bool {
        self.0 & (1 << key as u8) != 0
    }
}

/// The kinds in a piece of a track.
struct Counted<'t> {
    track: &'t Track,
    /// The first events of each kind, at most [`SAMPLES`], in order.
    first: Vec<(KindId, usize)>,
    /// Number of further events of each kind that has more.
    more: Vec<(KindId, u64)>,
}

/// Counts the kinds in all pieces of all tracks; the pieces are in order. Each core reuses one table of counts, so that a
/// short track costs no more than its events.
fn count_pieces(trace: &Trace) -> Vec<Counted<'_>> {
    let pieces = |track: &Track| (0..track.len()).step_by(PIECE);
    let all: Vec<(&Track, usize)> =
        trace.tracks().iter().flat_map(|track| pieces(track).map(move |from| (track, from))).collect();
    let counts = || vec![0u32; trace.kinds().len()];
    all.into_par_iter()
        .with_min_len(MANY_TRACKS)
        .map_init(counts, |counts, (track, from)| {
            let kinds = &track.kinds()[from..track.len().min(from + PIECE)];
            let mut first = Vec::new();
            for (index, kind) in kinds.iter().enumerate() {
                let seen = &mut counts[kind.index()];
                *seen += 1;
                if *seen <= u32::from(SAMPLES) {
                    first.push((*kind, from + index));
                }
            }
            let mut more = Vec::new();
            for (kind, _) in &first {
                let seen = std::mem::take(&mut counts[kind.index()]);
                if seen > u32::from(SAMPLES) {
                    more.push((*kind, u64::from(seen) - u64::from(SAMPLES)));
                }
            }
            Counted { track, first, more }
        })
        .collect()
}

/// The keys of every kind.
#[derive(Debug)]
pub struct Signatures {
    keys: Vec<KeySet>,
    events: Vec<u64>,
}

impl Signatures {
    /// One pass over the column of kinds, on all cores; decodes the arguments of a few events per kind.
    pub fn of(trace: &Trace) -> Self {
        let wanted: Vec<(StrId, u16)> = NAMES
            .iter()
            .flat_map(|(key, names)| names.iter().map(move |name| (*key, name)))
            .filter_map(|(key, name)| Some((trace.strings().find(name)?, 1 << key as u8)))
            .collect();
        let mut keys = vec![KeySet::default(); trace.kinds().len()];
        let mut events = vec![0u64; trace.kinds().len()];
        for counted in count_pieces(trace) {
            for (kind, index) in counted.first {
                // Those of a piece are in order, so this is the same choice as in one pass over everything.
                let seen = &mut events[kind.index()];
                *seen += 1;
                if *seen <= u64::from(SAMPLES) {
                    let set = &mut keys[kind.index()];
                    trace.args_at(counted.track, index).visit(|key, _| {
                        let bits = wanted.iter().filter(|(id, _)| *id == key).map(|(_, bit)| bit);
                        set.0 = bits.fold(set.0, |set, bit| set | bit);
                    });
                }
            }
            counted.more.into_iter().for_each(|(kind, more)| events[kind.index()] += more);
        }
        Signatures { keys, events }
    }

    /// The keys of a kind's events.
    #[inline]
    pub fn keys(&self, kind: KindId) -> KeySet {
        self.keys[kind.index()]
    }

    /// Number of events of a kind.
    #[inline]
    pub fn events(&self, kind: KindId) -> u64 {
        self.events[kind.index()]
    }
}
