//! The program's own Python in threads that nothing else was recorded of: what a pipeline calls to make its batches. Known only
//! from samples, which have tracks of their own.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, KindId, Track, TrackKind};

use super::{Frame, MOST_FRAMES, Place, PythonFrame, Windows};
use crate::context::Context;

/// Time by function, without what it calls of the program's own.
pub(super) type Elsewhere = HashMap<Place, Dur, FxBuildHasher>;

pub(super) fn elsewhere(context: &Context, frames: &[Option<Frame>], windows: &Windows) -> Elsewhere {
    let mut all = Elsewhere::default();
    let user = |kind: KindId| frames.get(kind.index()).and_then(Option::as_ref).filter(|frame| frame.user);
    let sampled = |track: &&Track| {
        track.kind == TrackKind::Derived && track.kinds().iter().any(|&kind| user(kind).is_some())
    };
    for track in context.trace.tracks().iter().filter(sampled) {
        let mut open: Vec<(usize, Dur)> = Vec::new();
        for index in 0..track.len() {
            if user(track.kind_of(index)).is_none() {
                continue;
            }
            let span = track.span_of(index);
            close(&mut open, |at| track.end(at) <= span.start, |at| user(track.kind_of(at)), &mut all);
            let counted = windows.until(span.end) - windows.until(span.start);
            if let Some((_, own)) = open.last_mut() {
                *own = (*own - counted).at_least_zero();
            }
            open.push((index, counted));
        }
        close(&mut open, |_| true, |at| user(track.kind_of(at)), &mut all);
    }
    all
}

fn close<'f>(
    open: &mut Vec<(usize, Dur)>,
    ended: impl Fn(usize) -> bool,
    frame: impl Fn(usize) -> Option<&'f Frame>,
    all: &mut Elsewhere,
) {
    while let Some((index, own)) = open.pop_if(|(index, _)| ended(*index)) {
        if let Some(frame) = frame(index).filter(|_| !own.is_zero()) {
            *all.entry(frame.key()).or_default() += own;
        }
    }
}

/// The functions, longest first.
pub(super) fn finish(all: Elsewhere) -> Vec<PythonFrame> {
    let mut sorted: Vec<(Place, Dur)> = all.into_iter().collect();
    sorted.sort_by(|(a, left), (b, right)| right.cmp(left).then_with(|| a.cmp(b)));
    sorted.truncate(MOST_FRAMES);
    let frame = |((file, line, function), own): (Place, Dur)| PythonFrame {
        file,
        line,
        function,
        calls: 0,
        inclusive_ms: own.ms(),
        own_ms: own.ms(),
        through: None,
    };
    sorted.into_iter().map(frame).collect()
}
