//! Ops on the host: one pass per thread with a stack of open ops.
//!
//! A profile may have millions of events on one thread, so long threads are split where no op is open, and the
//! pieces are walked on all cores. A first pass over the same columns finds such places: it costs a third of
//! the walk and saves half of it even on two cores.

use std::ops::Range;

use rayon::prelude::*;
use stepscope_trace::{Dur, ProcessKind, StrId, Time, Trace, Track, TrackKind};

use super::shaped::{KnownFlops, ShapedOps};
use super::table::{Meaning, OpTable};
use super::{Entries, OpKey, Totals, Where};
use crate::context::Context;
use crate::states::timeline::Mask;
use crate::states::{Background, State, StateLine, chunks};
use crate::window::Windows;

/// Number of events in a piece of a long thread.
const PIECE: usize = 1 << 18;
/// Number of executions per op and piece that are examined for input shapes.
const SHAPE_SAMPLES: u64 = 16;

/// Adds the ops of all host threads.
pub(super) fn collect(context: &Context, windows: &Windows, entries: &mut Entries) {
    let trace = context.trace;
    let table = OpTable::of(trace, context.vocabulary());
    if table.ops.is_empty() {
        return;
    }
    let pass = Pass {
        trace,
        background: &context.states().background,
        windows,
        table: &table,
        input_lines: input_lines(context),
        eager_key: trace.strings().find("is_eager"),
        shaped: ShapedOps::of(trace, &table),
        shape_keys: ["shape", "Input Dims", "input_type_shape"]
            .iter()
            .filter_map(|key| trace.strings().find(key))
            .collect(),
    };
    let pieces: Vec<(&Track, Range<usize>)> = trace
        .tracks()
        .par_iter()
        .filter(|track| track.kind == TrackKind::Thread)
        .filter(|track| trace.process(track.process).kind != ProcessKind::Device)
        .flat_map_iter(|track| pass.pieces(track).into_iter().map(move |piece| (track, piece)))
        .collect();
    let found = pieces
        .into_par_iter()
        .fold(|| Found::new(table.ops.len()), |found, (track, piece)| pass.walk(track, piece, found))
        .reduce_with(Found::join);
    if let Some(found) = found {
        found.into_entries(&table, entries);
    }
}

/// The states of each track, if there is an input pipeline at all.
fn input_lines<'c>(context: &'c Context) -> Vec<Option<&'c StateLine>> {
    let mut lines = vec![None; context.trace.tracks().len()];
    let input = Mask(State::InputWork as u16 | State::InputWait as u16);
    for (track, line) in &context.states().lines {
        if line.states.iter().any(|state| state.0 & input.0 != 0) {
            lines[track.index()] = Some(line);
        }
    }
    lines
}

struct Pass<'c> {
    trace: &'c Trace,
    background: &'c Background,
    windows: &'c Windows,
    table: &'c OpTable,
    input_lines: Vec<Option<&'c StateLine>>,
    eager_key: Option<StrId>,
    shape_keys: Vec<StrId>,
    shaped: ShapedOps,
}

impl Pass<'_> {
    /// Splits a track where no op is open.
    fn pieces(&self, track: &Track) -> Vec<Range<usize>> {
        if track.len() <= PIECE {
            return std::iter::once(0..track.len()).collect();
        }
        // Usually there are moments at which nothing at all is open, and these are known.
        let wanted = track.len() / PIECE;
        let quiet = chunks(track, wanted);
        if quiet.len() * 2 > wanted {
            return quiet;
        }
        let starts: Vec<usize> = (0..track.len()).step_by(PIECE).collect();
        let ends: Vec<Time> = starts.par_iter().map(|&from| self.last_end(track, from)).collect();
        let (mut pieces, mut from, mut open_until) = (Vec::new(), 0, Time::MIN);
        for (&begin, &end) in starts.iter().skip(1).zip(&ends) {
            open_until = open_until.max(end);
            let cut = (begin..track.len().min(begin + PIECE)).find(|&at| track.start(at) >= open_until);
            if let Some(cut) = cut.filter(|&cut| cut == begin || self.none_open(track, begin, cut)) {
                pieces.push(from..cut);
                from = cut;
            }
        }
        pieces.push(from..track.len());
        pieces
    }

    /// End of the last op that starts in the piece from `from`.
    fn last_end(&self, track: &Track, from: usize) -> Time {
        (from..track.len().min(from + PIECE))
            .filter(|&index| self.table.meaning(track.kind_of(index)) != Meaning::Other)
            .map(|index| track.end(index))
            .max()
            .unwrap_or(Time::MIN)
    }

    /// Whether all ops that start from `from` on have ended at `at`.
    fn none_open(&self, track: &Track, from: usize, at: usize) -> bool {
        let now = track.start(at);
        (from..at)
            .filter(|&index| self.table.meaning(track.kind_of(index)) != Meaning::Other)
            .all(|index| track.end(index) <= now)
    }

    fn walk(&self, track: &Track, piece: Range<usize>, mut found: Found) -> Found {
        let mut windows = self.windows.of_track(self.trace, track);
        let mut input = InputWalk::new(self.input_lines.get(track.id.index()).copied().flatten());
        let mut open: Vec<OpenOp> = Vec::new();
        for index in piece {
            let kind = track.kind_of(index);
            let (op, eager) = match self.table.meaning(kind) {
                Meaning::Other => continue,
                Meaning::Op(op) => (op, false),
                Meaning::EagerOp(op) => (op, true),
                Meaning::EagerKernel => {
                    let (start, dur) = (track.start(index), track.dur(index));
                    found.close(&mut open, start);
                    if let Some(outer) = open.last_mut().filter(|outer| outer.eager) {
                        outer.kernel += dur;
                    }
                    continue;
                }
            };
            let (start, dur) = (track.start(index), track.dur(index));
            found.close(&mut open, start);
            let end = start + dur;
            if let Some(outer) = open.last_mut() {
                if outer.eager
                    && !eager
                    && self.table.ops[outer.op as usize].1 == self.table.ops[op as usize].1
                {
                    // Older versions record the kernel of an eager op as a separate op.
                    outer.kernel += dur;
                    continue;
                }
                outer.inside += end.min(outer.end) - start;
            }
            let counts = windows.counts(start);
            let is_input = input.at(start);
            let slot = op * 2 + u32::from(is_input);
            let flops =
                if counts { self.shaped.flops(self.trace, track, index, op, &mut found.known) } else { None };
            let (inside, kernel, covered) = (Dur::ZERO, Dur::ZERO, false);
            let late = self.background.after(track, index);
            open.push(OpenOp { end, dur, inside, kernel, late, op, slot, eager, counts, flops, covered });
            if counts {
                self.look_closer(track, index, slot, eager, &mut found);
            }
        }
        found.close(&mut open, Time::MAX);
        found
    }

    /// Examines the first executions of an op for values that only arguments contain.
    fn look_closer(&self, track: &Track, index: usize, slot: u32, eager: bool, found: &mut Found) {
        let looked = &mut found.looked[slot as usize];
        if *looked >= SHAPE_SAMPLES {
            return;
        }
        *looked += 1;
        let mut is_eager = eager.then_some(true);
        self.trace.args_at(track, index).visit(|key, value| {
            if self.shape_keys.contains(&key)
                && let Some(shape) = value.as_str()
            {
                found.shapes.push((slot, shape.to_owned()));
            } else if Some(key) == self.eager_key {
                is_eager = is_eager.or(value.as_i64().map(|eager| eager != 0));
            }
        });
        if let Some(eager) = is_eager {
            found.eager[slot as usize][usize::from(!eager)] += 1;
        }
    }
}

struct OpenOp {
    end: Time,
    dur: Dur,
    /// Time of nested ops.
    inside: Dur,
    /// Time of an eager op's kernel.
    kernel: Dur,
    /// Time that it went on in the background.
    late: Dur,
    op: u32,
    slot: u32,
    eager: bool,
    counts: bool,
    /// Operations by its shapes.
    flops: Option<f64>,
    /// Whether a nested op does them.
    covered: bool,
}

/// Tests ascending times for whether a track is inside the input pipeline.
struct InputWalk<'c> {
    line: Option<&'c StateLine>,
    next: usize,
    input: bool,
}

impl<'c> InputWalk<'c> {
    fn new(line: Option<&'c StateLine>) -> Self {
        InputWalk { line, next: 0, input: false }
    }

    fn at(&mut self, now: Time) -> bool {
        let Some(line) = self.line else { return false };
        if self.next == 0 {
            // Pieces start in the middle.
            self.next = line.times.partition_point(|&time| time <= now).saturating_sub(1);
        }
        while line.times.get(self.next).is_some_and(|&time| time <= now) {
            let state = line.states[self.next];
            self.input = state.has(State::InputWork) || state.has(State::InputWait);
            self.next += 1;
        }
        self.input
    }
}

/// What a walk has found so far. Two slots per op: the model's, the input pipeline's.
struct Found {
    sums: Vec<(u64, Dur, Dur)>,
    /// Executions with known operations, these, and their self time.
    flops: Vec<(u64, f64, Dur)>,
    /// Operations of shapes that were seen before.
    known: KnownFlops,
    looked: Vec<u64>,
    eager: Vec<[u64; 2]>,
    shapes: Vec<(u32, String)>,
}

impl Found {
    fn new(ops: usize) -> Self {
        let slots = ops * 2;
        Found {
            sums: vec![(0, Dur::ZERO, Dur::ZERO); slots],
            flops: vec![(0, 0.0, Dur::ZERO); slots],
            known: KnownFlops::default(),
            looked: vec![0; slots],
            eager: vec![[0; 2]; slots],
            shapes: Vec::new(),
        }
    }

    /// Closes the ops that have ended by `now`.
    #[inline]
    fn close(&mut self, open: &mut Vec<OpenOp>, now: Time) {
        while let Some(ended) = open.pop_if(|open| open.end <= now) {
            if ended.counts {
                let whole = if ended.kernel.is_zero() { ended.dur } else { ended.kernel };
                let (count, total, own) = &mut self.sums[ended.slot as usize];
                let self_time = (whole - ended.inside).at_least_zero() + ended.late;
                *count += 1;
                *total += ended.dur + ended.late;
                *own += self_time;
                if let Some(flops) = ended.flops.filter(|_| !ended.covered) {
                    let (known, sum, time) = &mut self.flops[ended.slot as usize];
                    *known += 1;
                    *sum += flops;
                    *time += self_time;
                }
            }
            if (ended.flops.is_some() || ended.covered)
                && let Some(outer) = open.last_mut()
            {
                outer.covered = true;
            }
        }
    }

    fn join(mut self, other: Found) -> Found {
        for (own, other) in self.sums.iter_mut().zip(&other.sums) {
            *own = (own.0 + other.0, own.1 + other.1, own.2 + other.2);
        }
        for (own, other) in self.flops.iter_mut().zip(&other.flops) {
            *own = (own.0 + other.0, own.1 + other.1, own.2 + other.2);
        }
        for (own, other) in self.eager.iter_mut().zip(&other.eager) {
            *own = [own[0] + other[0], own[1] + other[1]];
        }
        self.shapes.extend(other.shapes);
        self
    }

    fn into_entries(self, table: &OpTable, entries: &mut Entries) {
        let key = |slot: usize| {
            let (name, kind) = &table.ops[slot / 2];
            OpKey { side: Where::Host, input: slot % 2 == 1, kind: kind.clone(), name: name.clone() }
        };
        for (slot, &(count, total, own)) in self.sums.iter().enumerate().filter(|(_, sums)| sums.0 > 0) {
            let eager = self.eager[slot];
            let (shaped, flops, flops_time) = self.flops[slot];
            let totals = Totals { count, total, own, eager, shaped, flops, flops_time, ..Totals::default() };
            entries.entry(key(slot)).or_default().totals.add(&totals);
        }
        for (slot, shape) in &self.shapes {
            if let Some(entry) = entries.get_mut(&key(*slot as usize)) {
                entry.saw_shape(shape, 1);
            }
        }
    }
}
