//! How much of the model's work is done, or launched, within a time: distinguishes an iteration of the loop
//! from what surrounds it.

use stepscope_trace::{Dur, Form, Span, Time, Track};

use crate::host_trace::HostTrace;
use crate::host_trace::{merged, working_devices};
use crate::states::State;
use crate::states::timeline::DEVICE_BUSY;
use crate::states::timeline::{Mask, Timeline};
use crate::vocabulary::Role;

/// A piece of work: its duration on its device, at the host time of its launch.
struct Piece {
    at: Span,
    work: Dur,
    /// True if nothing but a copy.
    copies: bool,
    /// Total work of all earlier pieces.
    before: Dur,
}

/// Host work that takes less than one part in this many of the user's ranges says nothing about them.
const NEGLIGIBLE: i64 = 100;

/// Copies on a device.
const COPIES: Mask = Mask(State::CopyIn as u16 | State::CopyOut as u16 | State::CopyDevice as u16);

/// The work of a recording over the host's time.
pub(super) struct Work {
    /// In time order.
    pieces: Vec<Piece>,
    all: Dur,
    /// True if only user-defined ranges were recorded: what they cover is taken for work.
    pub(super) of_ranges: bool,
}

impl Work {
    /// The work outside `left_out`, spans in time order that do not overlap: device work, counted where it was
    /// launched if known; the model's ops on the host if there is no device; what user-defined ranges cover if
    /// there is nothing else.
    pub(super) fn of(recorded: &HostTrace, left_out: &[Span]) -> Self {
        let (mut pieces, mut of_ranges) = (launched(recorded), false);
        if pieces.is_empty() {
            pieces = devices(recorded);
        }
        if pieces.is_empty() {
            let host = merged(recorded, None);
            pieces = busy(&host, Mask::of(State::HostCompute));
            if pieces.is_empty() {
                pieces = busy(&host, Mask(State::Dispatch as u16 | State::Launch as u16));
            }
            let named = ranges(recorded);
            // A few calls into a library beside the ranges are not the work.
            of_ranges = sum(&pieces).ps() < sum(&named).ps() / NEGLIGIBLE;
            if of_ranges {
                pieces = named;
            }
        }
        pieces.retain(|piece| !crate::states::timeline::is_inside(left_out, piece.at.start));
        Work::from(pieces, of_ranges)
    }

    /// The work of the busiest device over its own time.
    pub(super) fn on_device(recorded: &HostTrace) -> Self {
        Work::from(devices(recorded), false)
    }

    fn from(mut pieces: Vec<Piece>, of_ranges: bool) -> Self {
        // What is copied before the first kernel are parameters: a program loads them once.
        let loaded = pieces.iter().position(|piece| !piece.copies).unwrap_or(0);
        pieces.drain(..loaded);
        let mut all = Dur::ZERO;
        for piece in &mut pieces {
            piece.before = all;
            all += piece.work;
        }
        Work { pieces, all, of_ranges }
    }

    /// The total.
    pub(super) fn all(&self) -> Dur {
        self.all
    }

    /// The part within `span`.
    pub(super) fn within(&self, span: Span) -> Dur {
        self.until(span.end) - self.until(span.start)
    }

    /// How many pieces begin within `span`.
    pub(super) fn count(&self, span: Span) -> usize {
        let before = |at: Time| self.pieces.partition_point(|piece| piece.at.start < at);
        before(span.end) - before(span.start)
    }

    /// When the first piece begins.
    pub(super) fn begins(&self) -> Option<Time> {
        self.pieces.first().map(|piece| piece.at.start)
    }

    /// When the first piece within `span` begins.
    pub(super) fn first_in(&self, span: Span) -> Option<Time> {
        let first = self.pieces.partition_point(|piece| piece.at.start < span.start);
        self.pieces.get(first).map(|piece| piece.at.start).filter(|at| *at < span.end)
    }

    /// The longest time after the first piece in `span` during which none is done.
    pub(super) fn longest_gap(&self, span: Span) -> Option<Span> {
        let at = |time: Time| self.pieces.partition_point(|piece| piece.at.start < time);
        let within = self.pieces.get(at(span.start)..at(span.end))?;
        let next = within.iter().skip(1).map(|piece| piece.at.start).chain([span.end]);
        let gaps = within.iter().zip(next).filter(|(piece, next)| piece.at.end < *next);
        gaps.map(|(piece, next)| Span::new(piece.at.end, next)).max_by_key(|gap| gap.dur())
    }

    /// Whether `part` is most of the work.
    pub(super) fn is_most(&self, part: Dur) -> bool {
        !self.all.is_zero() && part.ps() >= self.all.ps() / 2
    }

    fn until(&self, at: Time) -> Dur {
        let after = self.pieces.partition_point(|piece| piece.at.start < at);
        let Some(piece) = after.checked_sub(1).map(|last| &self.pieces[last]) else { return Dur::ZERO };
        if at >= piece.at.end {
            return piece.before + piece.work;
        }
        let share = (at - piece.at.start).fraction_of(piece.at.dur());
        piece.before + Dur::from_ps((piece.work.ps() as f64 * share) as i64)
    }
}

fn launched(recorded: &HostTrace) -> Vec<Piece> {
    let piece = |launch: &crate::states::launches::Launch| {
        let (track, index) = (recorded.trace.track(launch.work.track), launch.work.index as usize);
        Piece {
            at: Span::new(launch.called, launch.called),
            work: track.dur(index),
            copies: matches!(recorded.vocabulary().role(track.kind_of(index)), Role::Copy(_)),
            before: Dur::ZERO,
        }
    };
    let mut pieces: Vec<Piece> = recorded.launches().all.iter().map(piece).collect();
    pieces.sort_by_key(|piece| piece.at.start);
    pieces
}

/// What the user-defined ranges of one thread cover, of the thread on which that is most.
fn ranges(recorded: &HostTrace) -> Vec<Piece> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let wanted = trace.kinds_where(|kind| {
        let named = trace.kind_name(kind);
        vocabulary.role(kind) == Role::Annotation
            && trace.kind(kind).form == Form::Slice
            && !named.is_empty()
            && !super::names::is_part(named)
    });
    let covered = |track: &Track| {
        let mut pieces: Vec<Piece> = Vec::new();
        for (index, _) in track.events_of(&wanted) {
            let span = track.span_of(index);
            let start = pieces.last().map_or(span.start, |last| span.start.max(last.at.end));
            if start < span.end {
                let at = Span::new(start, span.end);
                pieces.push(Piece { at, work: at.dur(), copies: false, before: Dur::ZERO });
            }
        }
        pieces
    };
    let threads = trace.tracks().iter().filter(|track| super::repetition::has_ranges(trace, track));
    threads.map(covered).max_by_key(|pieces| sum(pieces)).unwrap_or_default()
}

/// The busy time of the busiest device.
fn devices(recorded: &HostTrace) -> Vec<Piece> {
    let lines = working_devices(recorded).into_iter().map(|device| merged(recorded, Some(device)));
    lines.map(|line| busy(&line, DEVICE_BUSY)).max_by_key(|pieces| sum(pieces)).unwrap_or_default()
}

fn sum(pieces: &[Piece]) -> Dur {
    pieces.iter().map(|piece| piece.work).sum()
}

fn busy(line: &Timeline, states: Mask) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let Some(span) = line.span() else { return pieces };
    line.sweep(&Timeline::default(), span, |at, mask, _| {
        if mask.0 & states.0 != 0 {
            let copies = mask.0 & COPIES.0 != 0 && mask.0 & states.0 & !COPIES.0 == 0;
            pieces.push(Piece { at, work: at.dur(), copies, before: Dur::ZERO });
        }
    });
    pieces
}
