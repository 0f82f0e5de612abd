//! A picture of one typical step: what ran when on the thread that takes the steps, on the busiest other threads and on
//! the devices, coarse enough for a drawing of a thousand columns. For reports that are read without the recording.
//!
//! The step is the counted one whose duration is closest to the median. Spans that would be narrower than a column are
//! merged with their neighbours on the same row.

use stepscope_trace::{Dur, Form, KindId, ProcessKind, Span, Time, Track, TrackKind};

use crate::breakdown::Category;
use crate::context::Context;
use crate::vocabulary::Role;

/// Columns of the drawing: narrower spans are merged.
const COLUMNS: i64 = 1_000;
/// Rows per track: the outermost ones.
const DEPTH: usize = 4;
/// Host threads and streams of devices in the picture.
const THREADS: usize = 3;
const STREAMS: usize = 4;
/// A device that lags further behind than this many steps is drawn within the host's step only.
const FARTHEST: i64 = 2;

/// One typical step of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPicture {
    /// The host.
    pub host: String,
    /// The step's number.
    pub step: i64,
    /// Its duration on the bottleneck device.
    pub dur: Dur,
    /// What the picture covers: the step, and its work on devices that lag behind.
    pub span: Span,
    /// Devices first, then the thread that takes the steps, then others.
    pub tracks: Vec<PictureTrack>,
}

/// A track in the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureTrack {
    /// Its process and its own name.
    pub process: String,
    /// Its own name.
    pub name: String,
    /// Outermost first.
    pub rows: Vec<Vec<PictureSpan>>,
}

/// One event, or several that are too short to be drawn alone.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureSpan {
    /// When.
    pub span: Span,
    /// The category of the longest.
    pub category: Option<Category>,
    /// The name of the longest.
    pub name: String,
    /// How many events.
    pub count: usize,
}

impl StepPicture {
    /// The picture; `None` if there are no steps.
    pub fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        if breakdown.steps.whole_capture {
            return None;
        }
        let (place, dur) = typical(context)?;
        let step = breakdown.steps.all.get(place)?;
        let lagging = breakdown.devices.iter().filter_map(|device| Some(device.steps.get(place)?.work));
        let whole = lagging.fold(step.span, Span::hull);
        let near = whole.dur().ps() <= step.span.dur().ps().saturating_mul(FARTHEST);
        let span = if near { whole } else { step.span };
        let tracks = chosen(context, span).into_iter();
        let tracks = tracks.map(|track| draw(context, track, span)).filter(|track| !track.rows.is_empty());
        let picture = StepPicture {
            host: context.host.clone(),
            step: step.number,
            dur,
            span,
            tracks: tracks.collect(),
        };
        (!picture.tracks.is_empty()).then_some(picture)
    }
}

/// The position of the counted step closest to the median, and its duration.
pub(crate) fn typical(context: &Context) -> Option<(usize, Dur)> {
    let breakdown = context.breakdown();
    let shares = &breakdown.devices.get(breakdown.bottleneck)?.steps;
    let steps = breakdown.steps.all.iter().zip(shares).enumerate();
    let counted: Vec<(usize, Dur)> = steps
        .filter(|(_, (step, _))| step.excluded.is_none())
        .map(|(place, (_, shares))| (place, shares.window.dur()))
        .collect();
    let middle = stepscope_trace::statistics::median_duration(counted.iter().map(|(_, dur)| *dur));
    counted.into_iter().min_by_key(|(_, dur)| (*dur - middle).ps().unsigned_abs())
}

/// Streams of devices by how busy they are in the span, the thread that takes the steps, and the busiest others.
fn chosen<'t>(context: &'t Context<'_>, span: Span) -> Vec<&'t Track> {
    let trace = context.trace;
    let main = context.steps().track;
    let on_device = |track: &Track| trace.process(track.process).kind == ProcessKind::Device;
    let busiest = |wanted: &dyn Fn(&Track) -> bool, most: usize| {
        let tracks = trace.tracks().iter().filter(|track| wanted(track));
        let mut busy: Vec<(Dur, &Track)> = tracks
            .map(|track| (busy(context, track, span), track))
            .filter(|(busy, _)| !busy.is_zero())
            .collect();
        // Stable: equals stay in the order of the trace.
        busy.sort_by_key(|(busy, _)| std::cmp::Reverse(*busy));
        busy.truncate(most);
        busy.into_iter().map(|(_, track)| track).collect::<Vec<_>>()
    };
    let mut tracks = busiest(&|track| track.kind == TrackKind::Stream && on_device(track), STREAMS);
    tracks.extend(trace.tracks().iter().filter(|track| Some(track.id) == main && !on_device(track)));
    let other =
        |track: &Track| track.kind == TrackKind::Thread && !on_device(track) && Some(track.id) != main;
    tracks.extend(busiest(&other, THREADS));
    tracks
}

/// Events of a track that are drawn, in order. Frames of Python would fill all rows of a picture of this size.
fn drawn<'t>(context: &'t Context<'_>, track: &'t Track, span: Span) -> impl Iterator<Item = usize> + 't {
    let trace = context.trace;
    let wanted = move |kind: KindId| {
        let known = trace.kinds().get(kind.index()).is_some_and(|kind| kind.form == Form::Slice);
        known && !matches!(context.vocabulary().role(kind), Role::PythonFrame | Role::Bookkeeping)
    };
    let until = track.starts().partition_point(|&start| start < span.end);
    (0..until).filter(move |&index| track.end(index) > span.start && wanted(track.kind_of(index)))
}

/// Time in which anything ran.
fn busy(context: &Context<'_>, track: &Track, span: Span) -> Dur {
    let mut reached = span.start;
    let mut busy = Dur::ZERO;
    for index in drawn(context, track, span) {
        let (start, end) = (track.start(index).max(reached), track.end(index).min(span.end));
        if end > start {
            busy += end - start;
            reached = end;
        }
    }
    busy
}

fn draw(context: &Context<'_>, track: &Track, span: Span) -> PictureTrack {
    let trace = context.trace;
    let states = context.states();
    let feeds_device = states.has_device || states.device_unseen;
    let column = Dur::from_ps((span.dur().ps() / COLUMNS).max(1));
    let mut rows: Vec<Row> = Vec::new();
    let mut open: Vec<Time> = Vec::new();
    for index in drawn(context, track, span) {
        let (start, end) = (track.start(index), track.end(index));
        open.retain(|around| *around > start);
        let depth = open.len();
        open.push(end);
        if depth >= DEPTH {
            continue;
        }
        if rows.len() <= depth {
            rows.resize_with(depth + 1, Row::default);
        }
        let kind = track.kind_of(index);
        rows[depth].add(
            Piece {
                span: Span::new(start.max(span.start), end.min(span.end)),
                category: Category::of_role(context.vocabulary().role(kind), feeds_device),
                kind,
                count: 1,
            },
            column,
        );
    }
    let name = |piece: Piece| PictureSpan {
        span: piece.span,
        category: piece.category,
        name: trace.kind_name(piece.kind).to_owned(),
        count: piece.count,
    };
    PictureTrack {
        process: trace.str(trace.process(track.process).name).to_owned(),
        name: trace.str(track.name).to_owned(),
        rows: rows.into_iter().map(|row| row.pieces.into_iter().map(name).collect()).collect(),
    }
}

/// A span before its name is written out.
struct Piece {
    span: Span,
    category: Option<Category>,
    kind: KindId,
    count: usize,
}

/// One row: spans in order, and how long the longest event of the last one is.
#[derive(Default)]
struct Row {
    pieces: Vec<Piece>,
    longest: Dur,
}

impl Row {
    fn add(&mut self, piece: Piece, column: Dur) {
        let dur = piece.span.dur();
        if let Some(last) = self.pieces.last_mut()
            && dur < column
            && self.longest < column
            && piece.span.start - last.span.end < column
        {
            last.span = last.span.hull(piece.span);
            last.count += 1;
            if dur > self.longest {
                (self.longest, last.category, last.kind) = (dur, piece.category, piece.kind);
            }
            return;
        }
        self.longest = dur;
        self.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Sketch;

    fn picture(sketch: Sketch) -> Option<StepPicture> {
        StepPicture::of(&Context::new(&sketch.finish(), "host"))
    }

    #[test]
    fn the_step_closest_to_the_median_is_drawn_with_its_thread_and_its_device() {
        let mut sketch = Sketch::new();
        let (python, stream) = (sketch.thread("thread 1 (python)"), sketch.stream());
        let mut at = 0;
        for (step, length) in [1_000, 1_000, 1_000, 1_010, 3_000, 1_000].into_iter().enumerate() {
            sketch.event_of(python, "user_annotation", &format!("ProfilerStep#{step}"), at, length, &[]);
            sketch.event_of(python, "cpu_op", "aten::mm", at + 100, 200, &[]);
            // Hundreds of kernels that no drawing of this size can show one by one.
            for kernel in 0..300 {
                sketch.event_of(stream, "kernel", "gemm", at + 300 + kernel, 1, &[]);
            }
            at += length;
        }
        let Some(found) = picture(sketch) else { panic!("no picture") };
        assert!((found.dur.ms() - 1.0).abs() < 0.2, "{:?}", found.dur);
        let rows = |name: &str| {
            let track =
                found.tracks.iter().find(|track| track.rows.iter().flatten().any(|span| span.name == name));
            track.map(|track| track.rows.iter().map(Vec::len).collect::<Vec<_>>())
        };
        assert_eq!(rows("aten::mm").map(|rows| rows.len()), Some(2), "the marker, and the op inside it");
        let kernels = found
            .tracks
            .iter()
            .flat_map(|track| track.rows.iter().flatten())
            .filter(|span| span.name == "gemm");
        let (pieces, count) = kernels.fold((0, 0), |(pieces, count), span| (pieces + 1, count + span.count));
        assert!(count >= 300 && pieces <= 301, "{pieces} pieces of {count} kernels");
    }

    #[test]
    fn a_capture_without_steps_has_no_typical_one() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("thread 1 (python)");
        sketch.event_of(python, "cpu_op", "aten::mm", 0, 300, &[]);
        assert_eq!(picture(sketch), None);
    }

    #[test]
    fn short_neighbours_are_one_span_and_long_ones_are_not() {
        let mut row = Row::default();
        let piece = |start: i64, len: i64| Piece {
            span: Span::new(Time::from_ns(start), Time::from_ns(start + len)),
            category: None,
            kind: KindId::from_index(0),
            count: 1,
        };
        let column = Dur::from_us(1);
        for (start, len) in [(0, 100), (200, 300), (600, 5_000), (5_700, 10), (9_000, 10)] {
            row.add(piece(start, len), column);
        }
        let found: Vec<(f64, usize)> =
            row.pieces.iter().map(|piece| (piece.span.dur().ms(), piece.count)).collect();
        assert_eq!(found, [(0.0005, 2), (0.005, 1), (0.00001, 1), (0.00001, 1)]);
    }
}
