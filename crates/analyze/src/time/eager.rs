//! Eager execution: how many ops the loop launches one by one, and the framework and Python time between them.
//!
//! The time between two eager ops is Python, but Python of the framework's own wrappers, which disappears with
//! them. It is distinguished from the user's Python by its duration: a loop of eager ops has pauses of similar
//! length, so a much longer pause is something else.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, KindId, KindSet, Span, Time, Track, TrackKind};

use crate::context::Context;
use crate::states::runs_python;
use crate::vocabulary::{Framework, Role};
use crate::work::functions::name_of;
use stepscope_trace::statistics::median_duration;

/// A pause this many times longer than usual is not between two ops of a loop.
const LONG_PAUSE: i64 = 10;

/// Partial result: eager ops in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Eager {
    /// Ops that the loop launched one by one.
    pub ops: u64,
    /// Time inside those calls.
    pub inside: Dur,
    /// The part in which their kernels ran, if recorded.
    pub kernels: Dur,
    /// Python between them.
    pub between: Dur,
    /// Number of steps analysed.
    pub steps: u64,
    /// Number of ops by type, if recorded.
    pub types: BTreeMap<String, u64>,
    /// Compiled functions called on the same threads, with their number of calls.
    pub beside: BTreeMap<String, u64>,
}

impl Eager {
    /// Walks the Python threads.
    pub fn of(context: &Context) -> Self {
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, shares)| shares.window).collect();
        let mut all = Eager { steps: windows.len() as u64, ..Eager::default() };
        let trace = context.trace;
        let names_op = trace.kinds_where(|kind| trace.kind_name(kind).starts_with(EAGER_OP));
        for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
            if runs_python(trace, context.vocabulary(), track) {
                all.add(context, &names_op, track, &windows);
            }
        }
        all
    }

    /// Adds another host.
    pub fn merge(&mut self, other: &Eager) {
        self.ops += other.ops;
        self.inside += other.inside;
        self.kernels += other.kernels;
        self.between += other.between;
        self.steps += other.steps;
        other.types.iter().for_each(|(op, count)| *self.types.entry(op.clone()).or_default() += count);
        other.beside.iter().for_each(|(name, count)| *self.beside.entry(name.clone()).or_default() += count);
    }

    /// The compiled function that is called about once per step.
    pub fn compiled_step(&self) -> Option<&str> {
        let (name, calls) = self.beside.iter().max_by_key(|(_, calls)| **calls)?;
        (calls * 2 >= self.steps).then_some(name.as_str())
    }

    /// How many of them change variables.
    pub fn updates(&self) -> u64 {
        let updates = |op: &&String| op.starts_with("Assign");
        self.types.iter().filter(|(op, _)| updates(op)).map(|(_, count)| count).sum()
    }

    fn add(&mut self, context: &Context, names_op: &KindSet, track: &Track, windows: &[Span]) {
        let walked: Vec<Walked> =
            windows.par_iter().map(|&window| Walked::of(context, names_op, track, window)).collect();
        let usual = median_duration(walked.iter().flat_map(|walked| walked.pauses.iter().copied()));
        let longest = Dur::from_ps(usual.ps().saturating_mul(LONG_PAUSE));
        for Walked { ops, inside, kernels, pauses, kinds } in walked {
            for (kind, count) in kinds {
                let name = context.trace.kind_name(kind);
                let named = match name.strip_prefix(EAGER_OP) {
                    Some(op) => self.types.entry(op.to_owned()),
                    None => self.beside.entry(name_of(context.trace, kind)),
                };
                *named.or_default() += count;
            }
            self.ops += ops;
            self.inside += inside;
            self.kernels += kernels;
            self.between += pauses.into_iter().filter(|&pause| pause <= longest).sum::<Dur>();
        }
    }
}

/// One thread in one step.
#[derive(Default)]
struct Walked {
    ops: u64,
    inside: Dur,
    kernels: Dur,
    /// Between an eager op and the next one.
    pauses: Vec<Dur>,
    /// Number of each kind: types of eager ops, and functions called on the same threads.
    kinds: HashMap<KindId, u64, FxBuildHasher>,
}

/// Prefix of the event that names an eager op's type.
const EAGER_OP: &str = "EagerLocalExecute: ";

impl Walked {
    fn of(context: &Context, names_op: &KindSet, track: &Track, window: Span) -> Self {
        let mut walked = Walked::default();
        let mut last_end: Option<Time> = None;
        let mut inside_until = window.start;
        for index in track.first_from(window.start)..track.len() {
            let start = track.start(index);
            if start >= window.end {
                break;
            }
            let kind = track.kind_of(index);
            let role = context.vocabulary().host_role(kind);
            if start < inside_until {
                if last_end.is_some() && names_op.has(kind) {
                    *walked.kinds.entry(kind).or_default() += 1;
                }
                if role == Role::EagerKernel && last_end.is_some() {
                    walked.kernels += track.dur(index);
                }
                continue;
            }
            if is_eager_op(context, role) {
                let span = track.span_of(index);
                walked.ops += 1;
                walked.inside += span.dur();
                walked.pauses.extend(last_end.map(|end| span.start - end));
                last_end = Some(span.end);
                inside_until = span.end;
            } else if matches!(role, Role::FunctionCall | Role::InputWait | Role::Output | Role::Tracing) {
                // Anything other than an eager op ends the sequence.
                last_end = None;
                inside_until = track.end(index);
                if role == Role::FunctionCall {
                    *walked.kinds.entry(kind).or_default() += 1;
                }
            }
        }
        walked
    }
}

fn is_eager_op(context: &Context, role: Role) -> bool {
    match context.vocabulary().framework {
        Framework::PyTorch => role == Role::Op,
        _ => role == Role::EagerCall,
    }
}
