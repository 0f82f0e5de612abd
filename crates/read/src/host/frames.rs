//! Samples of one thread → frames with a start and an end, one per run of samples that agree.
//!
//! A sample stands for the time since the one before it, so that the frames of a thread tile its time. Where a thread was
//! recorded exactly, its events correct them: a frame that reaches into an event that it does not contain ends there.

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, Form, KindId, Span, Time, Trace, Track};

/// Time, what the sample stands for, and the stack.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sample {
    pub(super) span: Span,
    pub(super) stack: usize,
}

/// A run of samples in one frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its name, as a number of the caller's.
    pub(super) name: usize,
    pub(super) span: Span,
}

/// Frames of one thread; a real log has a few thousand.
const MOST_FRAMES: usize = 2_000_000;

/// The frames of samples in the order of time. `path` is the names of a stack, outermost first.
pub(super) fn frames<'p>(samples: &[Sample], path: impl Fn(usize) -> &'p [usize]) -> Vec<Frame> {
    let mut all = Vec::new();
    let mut open: Vec<(usize, Time)> = Vec::new();
    let mut until = Time::MIN;
    for sample in samples {
        if all.len() > MOST_FRAMES {
            break;
        }
        let names = path(sample.stack);
        let common = open.iter().zip(names).take_while(|((name, _), new)| name == *new).count();
        let kept = if sample.span.start > until { 0 } else { common };
        close(&mut open, kept, until, &mut all);
        open.extend(names.iter().skip(kept).map(|&name| (name, sample.span.start)));
        until = sample.span.end;
    }
    close(&mut open, 0, until, &mut all);
    // Of frames with the same time, the outer one comes first.
    all.sort_by_key(|(depth, frame)| (frame.span.start, std::cmp::Reverse(frame.span.end), *depth));
    all.into_iter().map(|(_, frame)| frame).filter(|frame| !frame.span.is_empty()).collect()
}

fn close(open: &mut Vec<(usize, Time)>, kept: usize, until: Time, all: &mut Vec<(usize, Frame)>) {
    let ended = open.drain(kept..).enumerate();
    all.extend(
        ended.map(|(depth, (name, start))| (kept + depth, Frame { name, span: Span::new(start, until) })),
    );
}

/// A piece of a thread's time: an outermost recorded event, or the pause before one.
#[derive(Copy, Clone, Debug)]
struct Piece {
    span: Span,
    /// The event, or the one that ends the pause.
    kind: KindId,
    pause: bool,
}

/// Corrects samples that came late. While Python code runs, the sampling thread waits for its turn, often until the code calls
/// something that gives the interpreter lock up, and on a busy machine for much longer. So what runs in a piece of time follows
/// from all samples in such pieces (pauses before the same call, or the same call) by their places in them: code that is only
/// ever seen at the very end of a pause takes little of it. What no sample shows stays empty: unknown code is better than the
/// wrong code.
pub(super) fn without_delay(track: &Track, longest: Dur, samples: &[Sample]) -> Vec<Sample> {
    let pieces = pieces(track, longest);
    let seen = seen(&pieces, samples);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let mut corrected: Vec<Sample> = Vec::with_capacity(samples.len() * 2);
    let begin = pieces.partition_point(|piece| piece.span.end <= first.span.start);
    let mut at = first.span.start;
    for piece in pieces[begin..].iter().take_while(|piece| piece.span.start < last.span.end) {
        let whole = Span::new(piece.span.start.max(first.span.start), piece.span.end.min(last.span.end));
        fill(whole, seen.get(&(piece.kind, piece.pause)).map_or(&[], Vec::as_slice), &mut corrected);
        at = whole.end;
    }
    // After the last recorded event there is nothing to correct by.
    for sample in samples.iter().filter(|sample| sample.span.end > at) {
        push(
            &mut corrected,
            Sample { span: Span::new(sample.span.start.max(at), sample.span.end), ..*sample },
        );
    }
    corrected
}

/// Divides a piece as the samples in such pieces lie in theirs.
fn fill(whole: Span, places: &[(f64, usize)], all: &mut Vec<Sample>) {
    let length = whole.dur().ps() as f64;
    let mut at = whole.start;
    for (index, &(place, stack)) in places.iter().enumerate() {
        // Up to half of the way to the next one.
        let half = |next: &(f64, usize)| whole.start + Dur::from_ps(((place + next.0) / 2.0 * length) as i64);
        let end = places.get(index + 1).map_or(whole.end, half);
        push(all, Sample { span: Span::new(at, end.max(at)), stack });
        at = end.max(at);
    }
}

/// Samples that are remembered per sort of piece; more do not make it more exact.
const MOST_PLACES: usize = 512;

/// Where samples lie in each sort of piece, from 0 at its start to 1 at its end, in this order.
fn seen(pieces: &[Piece], samples: &[Sample]) -> FxHashMap<(KindId, bool), Vec<(f64, usize)>> {
    let mut all: FxHashMap<(KindId, bool), Vec<(f64, usize)>> = FxHashMap::default();
    let begin = samples.first().map_or(Time::MIN, |sample| sample.span.start);
    for sample in samples {
        // A sample stands for the time before it: on an edge, for the piece that ends there.
        let at = pieces.partition_point(|piece| piece.span.end < sample.span.end);
        let Some(piece) = pieces.get(at).filter(|piece| piece.span.start < sample.span.end) else {
            continue;
        };
        let start = piece.span.start.max(begin);
        let place = (sample.span.end - start).fraction_of(piece.span.end - start);
        let places = all.entry((piece.kind, piece.pause)).or_default();
        if places.len() < MOST_PLACES {
            places.push((place, sample.stack));
        }
    }
    all.values_mut().for_each(|places| places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))));
    all
}

fn push(all: &mut Vec<Sample>, sample: Sample) {
    match all.last_mut() {
        _ if sample.span.is_empty() => {}
        Some(last) if last.stack == sample.stack && last.span.end == sample.span.start => {
            last.span.end = sample.span.end;
        }
        _ => all.push(sample),
    }
}

/// The outermost events that are at most so long, and the pauses before them. Longer ones are ranges around whole steps.
fn pieces(track: &Track, longest: Dur) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut until = Time::MIN;
    for index in 0..track.len() {
        let span = track.span_of(index);
        if span.is_empty() || span.dur() > longest || span.start < until {
            continue;
        }
        let kind = track.kind_of(index);
        if until < span.start {
            pieces.push(Piece { span: Span::new(until, span.start), kind, pause: true });
        }
        pieces.push(Piece { span, kind, pause: false });
        until = span.end;
    }
    pieces
}

/// Events that are open at once on one thread, beyond which a file makes no sense.
const MOST_OPEN: usize = 256;

/// Adds an event to those that are open when it starts.
pub(super) fn keep_open(open: &mut Vec<Span>, event: Span) {
    open.retain(|open| open.end > event.start);
    if open.len() < MOST_OPEN {
        open.push(event);
    }
}

/// Frames that do not cross the events of their thread.
pub(super) fn between_events(trace: &Trace, track: &Track, mut frames: Vec<Frame>) -> Vec<Frame> {
    // All starts, then all ends: the second pass sees what the first has moved.
    for at_end in [false, true] {
        let mut order: Vec<usize> = (0..frames.len()).collect();
        let edge = |frame: &Frame| if at_end { frame.span.end } else { frame.span.start };
        order.sort_by_key(|&index| edge(&frames[index]));
        let mut open: Vec<Span> = Vec::new();
        let mut next = 0;
        for index in order {
            let frame = frames[index].span;
            let at = if at_end { frame.end } else { frame.start };
            while next < track.len() && track.start(next) < at {
                let span = track.span_of(next);
                if trace.kind(track.kind_of(next)).form == Form::Slice && !span.is_empty() {
                    keep_open(&mut open, span);
                }
                next += 1;
            }
            open.retain(|open| open.end > at);
            let crossed = open.iter().find(|event| {
                if at_end { event.start > frame.start } else { event.end < frame.end && event.start < at }
            });
            if let Some(event) = crossed {
                let span = &mut frames[index].span;
                if at_end { span.end = event.start } else { span.start = event.end }
            }
        }
    }
    frames.retain(|frame| frame.span.start < frame.span.end);
    frames
}

/// Frames that end and start again where steps do, so that no frame crosses the markers of steps.
pub(super) fn split_at(steps: &[Time], frames: Vec<Frame>) -> Vec<Frame> {
    let mut all = Vec::with_capacity(frames.len());
    for mut frame in frames {
        let first = steps.partition_point(|step| *step <= frame.span.start);
        for &step in steps[first..].iter().take_while(|step| **step < frame.span.end) {
            all.push(Frame { span: Span::new(frame.span.start, step), ..frame });
            frame.span.start = step;
        }
        all.push(frame);
    }
    all
}

#[cfg(test)]
mod tests {
    use stepscope_trace::{Kind, ProcessKind, TraceBuilder, TrackKind};

    use super::*;

    fn sample(from: i64, to: i64, stack: usize) -> Sample {
        Sample { span: Span::new(Time::from_ns(from), Time::from_ns(to)), stack }
    }

    #[test]
    fn samples_that_agree_are_one_frame_and_a_gap_ends_it() {
        let paths: [&[usize]; 2] = [&[7], &[7, 8]];
        let samples =
            [sample(0, 4, 0), sample(4, 8, 1), sample(8, 12, 1), sample(12, 16, 0), sample(40, 44, 0)];
        let found = frames(&samples, |stack| paths[stack]);
        let shown: Vec<_> = found.iter().map(|f| (f.name, f.span.start.ns(), f.span.end.ns())).collect();
        assert_eq!(shown, [(7, 0, 16), (8, 4, 12), (7, 40, 44)]);
    }

    #[test]
    fn a_frame_does_not_cross_the_start_of_a_step() {
        let steps = [10, 20, 30].map(Time::from_ns);
        let frame = Frame { name: 1, span: Span::new(Time::from_ns(10), Time::from_ns(25)) };
        let spans: Vec<_> =
            split_at(&steps, vec![frame]).iter().map(|f| (f.span.start.ns(), f.span.end.ns())).collect();
        assert_eq!(spans, [(10, 20), (20, 25)]);
    }

    #[test]
    fn a_sample_that_came_late_is_believed_only_where_it_was_taken() {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("call");
        let process = builder.process(name, ProcessKind::Host, 1);
        let track = builder.track(process, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
        let kind = builder.kind(Kind::slice(name));
        // Four turns: 80 ns of Python, then a call of 20 ns.
        for turn in 0..4 {
            builder.event(track, Time::from_ns(100 * turn + 80), Dur::from_ns(20), kind, None);
        }
        let trace = builder.finish();
        // Two samples in Python (stack 1); others in the call (stack 2) that gives the lock up, or on the way to it (stack 3).
        let samples = [
            sample(0, 90, 2),
            sample(90, 120, 1),
            sample(120, 278, 3),
            sample(278, 340, 1),
            sample(340, 390, 2),
        ];
        let found = without_delay(trace.track(track), Dur::from_ns(50), &samples);
        let of = |stack| {
            found.iter().filter(|it| it.stack == stack).map(|it| it.span.dur().ps() / 1_000).sum::<i64>()
        };
        assert_eq!((of(1), of(2)), (4 * 59, 3 * 20 + 10));
        assert_eq!(of(3), 4 * 21, "only seen near the end of a pause");
        // All samples in Python: the calls between them are not Python's.
        let samples = [sample(0, 50, 1), sample(50, 250, 1), sample(250, 350, 1)];
        let found = without_delay(trace.track(track), Dur::from_ns(50), &samples);
        assert_eq!(found.iter().map(|it| it.span.dur().ps() / 1_000).sum::<i64>(), 350 - 3 * 20);
    }
}
