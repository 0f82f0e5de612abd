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

use crate::analysis::Analysis;
use crate::context::Context;
use crate::states::runs_python;
use crate::vocabulary::{Framework, Role, names_torch_op};
use crate::work::functions::name_of;
use stepscope_trace::statistics::median_duration;

/// A pause this many times longer than a cheap op and the usual pause together is not between two ops of a loop.
/// Python around one op differs by about that much: a layer's own wrappers, the next parameter of an optimizer.
const LONG_PAUSE: i64 = 10;
/// No framework's wrappers around one op take longer, not even under a tracer of Python. Longer pauses of a loop, however
/// alike, are the program's own work.
const LONGEST_PAUSE: Dur = Dur::from_us(2_000);
/// A pause this short is always of the size of wrappers, however short the others are: most pauses may lie in the backward
/// pass, between ops that no Python calls.
const SHORT_PAUSE: Dur = Dur::from_us(100);
/// Where so many times more pauses are short than long, the long ones are none of the program's.
const INTERRUPTED: u64 = 9;
/// A pause that is long in at most one of so many steps is none of the program's.
const RARELY: usize = 6;
/// Ops of a processor that take no longer on average work on little data, most of them on one core. Many of them joined
/// into one op take a fraction of their time, so that this time goes with them.
const SHORT_OP: Dur = Dur::from_us(100);
/// The Python of one call that every training step of PyTorch makes: into the model, the loss, `backward()`, the
/// optimizer, the profiler. On a loaded machine such a call takes 100 to 400 µs outside of ops.
const ORDINARY_CALL: Dur = Dur::from_us(500);
/// A step makes so many of these calls.
const ORDINARY_CALLS: usize = 6;

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
    /// Python of the few calls that every step of PyTorch makes.
    #[serde(default)]
    pub around: Dur,
    /// PyTorch's ops, those inside other ops included.
    #[serde(default)]
    pub all_ops: u64,
    /// Time of these without the ops inside them, as far as they are short.
    #[serde(default)]
    pub short_ops: Dur,
    /// Number of steps analysed.
    pub steps: u64,
    /// Number of ops by type, if recorded.
    pub types: BTreeMap<String, u64>,
    /// Compiled functions called on the same threads, with their number of calls.
    pub beside: BTreeMap<String, u64>,
    /// Other calls of the framework from Python, such as making tensors, with their time.
    #[serde(default)]
    pub calls: BTreeMap<String, Dur>,
}

impl Analysis for Eager {
    type Output = Self;

    /// Walks the Python threads.
    fn of(context: &Context) -> Self {
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, shares)| shares.window).collect();
        let mut all = Eager { steps: windows.len() as u64, ..Eager::default() };
        let trace = context.trace;
        let torch = context.vocabulary().framework == Framework::PyTorch;
        let named = OpKinds {
            eager: trace.kinds_where(|kind| trace.kind_name(kind).starts_with(EAGER_OP)),
            torch: trace.kinds_where(|kind| torch && names_torch_op(trace.kind_name(kind))),
            backward: trace.kinds_where(|kind| torch && trace.kind_name(kind).starts_with(BACKWARD)),
        };
        for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
            if runs_python(trace, context.vocabulary(), track) {
                all.add(context, &named, track, &windows);
            }
        }
        all
    }

    /// Adds another host.
    fn merge(&mut self, other: Eager) {
        self.ops += other.ops;
        self.inside += other.inside;
        self.kernels += other.kernels;
        self.between += other.between;
        self.around += other.around;
        self.all_ops += other.all_ops;
        self.short_ops += other.short_ops;
        self.steps += other.steps;
        other.types.into_iter().for_each(|(op, count)| *self.types.entry(op).or_default() += count);
        other.beside.into_iter().for_each(|(name, count)| *self.beside.entry(name).or_default() += count);
        other.calls.into_iter().for_each(|(name, time)| *self.calls.entry(name).or_default() += time);
    }

    fn finish(self) -> Self {
        self
    }
}

impl Eager {
    /// The framework's call from Python that takes longest, other than ops and compiled functions, in milliseconds per step.
    pub fn longest_call(&self) -> Option<(&str, f64)> {
        let (name, time) = self.calls.iter().max_by_key(|(_, time)| **time)?;
        Some((name.as_str(), time.ms() / self.steps.max(1) as f64))
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

    fn add(&mut self, context: &Context, named: &OpKinds, track: &Track, windows: &[Span]) {
        let trace = context.trace;
        let (programs, torch) = match context.vocabulary().framework {
            Framework::Jax => (true, false),
            framework => (false, framework == Framework::PyTorch),
        };
        let walked: Vec<Walked> =
            windows.par_iter().map(|&window| Walked::of(context, named, track, window)).collect();
        let usual =
            median_duration(walked.iter().flat_map(|walked| walked.pauses.iter().map(|pause| pause.time)));
        let cheap = cheap_op(walked.iter().flat_map(|walked| walked.lengths.iter().copied()).collect());
        let usual = usual + cheap.min(usual);
        let mut longest = Dur::from_ps(usual.ps().saturating_mul(LONG_PAUSE)).min(LONGEST_PAUSE);
        if torch {
            longest = longest.max(SHORT_PAUSE);
        }
        let mut own: OwnByKind = HashMap::default();
        let interrupted = if torch { interrupted(&walked, longest) } else { Places::default() };
        // Beside a compiled step, what Python does between the other ops is rather the program's.
        let beside = walked.iter().filter(|walked| walked.kinds.keys().any(|kind| !named.eager.has(*kind)));
        let compiled = !torch && !programs && beside.count() * 2 >= walked.len();
        let rarely = if compiled { Vec::new() } else { rarely_long(&walked, longest) };
        for Walked { ops, inside, kernels, pauses, edges, lengths: _, kinds, calls, own: walked_own } in
            walked
        {
            for (kind, count) in kinds {
                let name = context.trace.kind_name(kind);
                let named = match name.strip_prefix(EAGER_OP) {
                    Some(op) => self.types.entry(op.to_owned()),
                    None if torch => self.types.entry(name.to_owned()),
                    None if programs => self.types.entry(name_of(context.trace, kind)),
                    None => self.beside.entry(name_of(context.trace, kind)),
                };
                *named.or_default() += count;
            }
            // Releasing what is no longer needed is nobody's call.
            let calls =
                calls.into_iter().filter(|(kind, _)| !trace.kind_name(*kind).starts_with("TFE_Delete"));
            for (kind, time) in calls {
                *self.calls.entry(trace.kind_name(kind).to_owned()).or_default() += time;
            }
            self.ops += ops;
            self.inside += inside;
            self.kernels += kernels;
            for (kind, (ops, time)) in walked_own.by_kind {
                let all = own.entry(kind).or_default();
                *all = (all.0 + ops, all.1 + time);
            }
            let is_between = |at: usize, pause: &Pause| {
                let rare = || rarely.get(at).copied().unwrap_or(false);
                pause.time <= longest || interrupted.contains_key(&pause.place) || rare()
            };
            let (between, longer): (Vec<_>, Vec<_>) =
                pauses.into_iter().enumerate().partition(|(at, pause)| is_between(*at, pause));
            self.between += between.into_iter().map(|(_, pause)| pause.time).sum::<Dur>();
            if torch {
                let ordinary = longer
                    .into_iter()
                    .map(|(_, pause)| pause.time)
                    .chain(edges)
                    .filter(|&pause| pause <= ORDINARY_CALL);
                self.around += ordinary.take(ORDINARY_CALLS).sum::<Dur>();
            }
        }
        self.all_ops += own.values().map(|(ops, _)| ops).sum::<u64>();
        // By their mean: a thread that loses its processor makes single ones look long.
        let short = own.values().filter(|(ops, time)| time.ps() <= SHORT_OP.ps().saturating_mul(*ops as i64));
        self.short_ops += short.map(|(_, time)| *time).sum::<Dur>();
    }
}

/// Kinds of events that name the type of an op.
struct OpKinds {
    /// TensorFlow writes one inside each eager op.
    eager: KindSet,
    /// PyTorch's ops have names of their own.
    torch: KindSet,
    /// Ranges around ops of the backward pass, which no line of Python calls.
    backward: KindSet,
}

/// A pause between two eager ops.
#[derive(Copy, Clone)]
struct Pause {
    time: Dur,
    /// The kinds of the ops around it.
    place: (KindId, KindId),
}

/// Places with long pauses, each with its number of short and long ones.
type Places = HashMap<(KindId, KindId), (u64, u64), FxBuildHasher>;

/// Places whose pauses are short most of the time. What a program does between two ops, it does each time: if only some
/// pauses of a place are long, the thread lost its processor there.
fn interrupted(walked: &[Walked], longest: Dur) -> Places {
    let mut places = Places::default();
    let pauses = || walked.iter().flat_map(|walked| &walked.pauses);
    for pause in pauses().filter(|pause| pause.time > longest) {
        places.entry(pause.place).or_default().1 += 1;
    }
    if !places.is_empty() {
        for pause in pauses().filter(|pause| pause.time <= longest) {
            if let Some((short, _)) = places.get_mut(&pause.place) {
                *short += 1;
            }
        }
    }
    places.retain(|_, (short, long)| *short > INTERRUPTED * *long);
    places
}

/// Whether each pause of a step, by its position, is long in few steps only: the thread lost its processor there. Known where
/// all steps start the same number of ops.
fn rarely_long(walked: &[Walked], longest: Dur) -> Vec<bool> {
    let mut working = walked.iter().filter(|walked| walked.ops > 0).map(|walked| &walked.pauses);
    let pauses = working.clone().next().map_or(0, Vec::len);
    let steps = working.clone().count();
    if steps < RARELY || working.any(|other| other.len() != pauses) {
        return Vec::new();
    }
    let mut long = vec![0_usize; pauses];
    for walked in walked {
        let each = long.iter_mut().zip(&walked.pauses);
        each.for_each(|(long, pause)| *long += usize::from(pause.time > longest));
    }
    long.into_iter().map(|long| long * RARELY <= steps).collect()
}

/// One thread in one step.
#[derive(Default)]
struct Walked {
    ops: u64,
    inside: Dur,
    kernels: Dur,
    /// Between an eager op and the next one.
    pauses: Vec<Pause>,
    /// Before the first op and after the last.
    edges: [Dur; 2],
    /// The ops themselves.
    lengths: Vec<Dur>,
    /// Number of each kind: types of eager ops, and functions called on the same threads.
    kinds: HashMap<KindId, u64, FxBuildHasher>,
    /// Other calls of the framework.
    calls: HashMap<KindId, Dur, FxBuildHasher>,
    /// Ops by their own time.
    own: OwnTimes,
}

/// Number of ops and their own time, by kind.
type OwnByKind = HashMap<KindId, (u64, Dur), FxBuildHasher>;

/// The own times of nested ops of PyTorch.
#[derive(Default)]
struct OwnTimes {
    /// Ops that have not ended yet: when they end, their kind, and their time without the ops inside them.
    open: Vec<(Time, KindId, Dur)>,
    by_kind: OwnByKind,
}

impl OwnTimes {
    fn add(&mut self, kind: KindId, span: Span) {
        self.close(span.start);
        if let Some((_, _, own)) = self.open.last_mut() {
            *own = *own - span.dur();
        }
        self.open.push((span.end, kind, span.dur()));
    }

    /// Ends what is over by then.
    fn close(&mut self, now: Time) {
        while let Some((_, kind, own)) = self.open.pop_if(|(end, ..)| *end <= now) {
            let (ops, time) = self.by_kind.entry(kind).or_default();
            *ops += 1;
            *time += own.max(Dur::ZERO);
        }
    }
}

/// Start of the name of ranges around ops of PyTorch's backward pass.
const BACKWARD: &str = "autograd::engine::evaluate_function";

/// Prefix of the event that names an eager op's type.
const EAGER_OP: &str = "EagerLocalExecute: ";

impl Walked {
    fn of(context: &Context, named: &OpKinds, track: &Track, window: Span) -> Self {
        let mut walked = Walked::default();
        let mut last_end: Option<(Time, KindId)> = None;
        let mut inside_until = window.start;
        let torch = context.vocabulary().framework == Framework::PyTorch;
        let mut backward_until = window.start;
        for index in track.first_from(window.start)..track.len() {
            let start = track.start(index);
            if start >= window.end {
                break;
            }
            let kind = track.kind_of(index);
            let role = context.vocabulary().host_role(kind);
            if torch && role == Role::Op {
                walked.own.add(kind, track.span_of(index));
            }
            if named.backward.has(kind) {
                backward_until = track.end(index);
            }
            if start < inside_until {
                if last_end.is_some() && named.eager.has(kind) {
                    *walked.kinds.entry(kind).or_default() += 1;
                }
                if role == Role::EagerKernel && last_end.is_some() {
                    walked.kernels += track.dur(index);
                }
                continue;
            }
            if is_eager_op(context, role) {
                if role == Role::FunctionCall || (start >= backward_until && named.torch.has(kind)) {
                    *walked.kinds.entry(kind).or_default() += 1;
                }
                let span = track.span_of(index);
                if walked.ops == 0 {
                    walked.edges[0] = span.start - window.start;
                }
                walked.edges[1] = window.end - span.end.min(window.end);
                walked.ops += 1;
                walked.inside += span.dur();
                walked.lengths.push(span.dur());
                let pause =
                    |(end, last): (Time, KindId)| Pause { time: span.start - end, place: (last, kind) };
                walked.pauses.extend(last_end.map(pause));
                last_end = Some((span.end, kind));
                inside_until = span.end;
            } else if matches!(role, Role::FunctionCall | Role::InputWait | Role::Output | Role::Tracing) {
                // Anything other than an eager op ends the sequence.
                last_end = None;
                inside_until = track.end(index);
                if role == Role::FunctionCall {
                    *walked.kinds.entry(kind).or_default() += 1;
                }
            } else if role == Role::Framework {
                *walked.calls.entry(kind).or_default() += track.dur(index);
                inside_until = track.end(index);
            }
        }
        walked.own.close(Time::MAX);
        walked
    }
}

/// What an op costs that computes next to nothing: the lower quartile.
fn cheap_op(mut lengths: Vec<Dur>) -> Dur {
    let quarter = lengths.len() / 4;
    if lengths.is_empty() { Dur::ZERO } else { *lengths.select_nth_unstable(quarter).1 }
}

fn is_eager_op(context: &Context, role: Role) -> bool {
    match context.vocabulary().framework {
        Framework::PyTorch => role == Role::Op,
        // Each call of a compiled function starts one program; an op outside of such functions is one, too.
        Framework::Jax => role == Role::FunctionCall,
        _ => role == Role::EagerCall,
    }
}

#[cfg(test)]
mod tests;
