//! Who owns the time, piece by piece: the breakdown's sweep over equal pieces of any window instead of over steps.

use stepscope_trace::{Dur, Span, Time};

use crate::breakdown::{Category, Ground, Shares, is_inside, merged, owner, starving_waits};
use crate::context::Context;
use crate::states::State;
use crate::timeline::Timeline;

/// Cuts `window` into `pieces` of equal length and says who owns each, on the device that bounds the step.
///
/// Also what lies outside the steps has an owner. One sweep: linear in the changes of state and the pieces.
pub fn shares_over(context: &Context, window: Span, pieces: usize) -> Vec<Shares> {
    let mut all = vec![Shares::default(); pieces];
    if pieces == 0 || window.is_empty() {
        return all;
    }
    let ground = Ground::of(context);
    let host = merged(context, None);
    let device = context.breakdown().bound().and_then(|device| device.process);
    let device = device.map_or_else(Timeline::default, |device| merged(context, Some(device)));
    let starving = starving_waits(&host, &device);
    let starves = |at: Time| device.span().is_some() && is_inside(&starving, at);
    let edge = |piece: usize| edge(window, piece, pieces);
    let mut piece = 0;
    host.sweep(&device, window, |span, host, device| {
        let waits = host.has(State::InputWait) && starves(span.start);
        let owner = if waits { Category::Input } else { owner(host, device, ground) };
        let mut from = span.start;
        while from < span.end {
            while piece + 1 < pieces && edge(piece + 1) <= from {
                piece += 1;
            }
            let to = if piece + 1 < pieces { edge(piece + 1).min(span.end) } else { span.end };
            all[piece].add(owner, to - from);
            from = to;
        }
    });
    all
}

/// Where a piece begins.
fn edge(window: Span, piece: usize, pieces: usize) -> Time {
    let offset = i128::from(window.dur().ps()) * piece as i128 / pieces.max(1) as i128;
    window.start + Dur::from_ps(i64::try_from(offset).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Kind, ProcessKind, TraceBuilder, TrackKind};

    #[test]
    fn every_piece_is_owned_as_a_whole_and_the_pieces_add_up() {
        let mut builder = TraceBuilder::new();
        let thread = builder.strings.intern("python");
        let process = builder.process(thread, ProcessKind::Host, 0);
        let track = builder.track(process, thread, TrackKind::Thread, 0, TraceBuilder::ARENA);
        let name = builder.strings.intern("a/MatMul:MatMul");
        let kind = builder.kind(Kind::slice(name));
        for start in [0_i64, 100, 250, 900] {
            builder.event(track, Time::from_ns(start), Dur::from_ns(50), kind, None);
        }
        let trace = builder.finish();
        let context = Context::new(&trace, "host");
        let window = trace.span().unwrap();
        for pieces in [1, 3, 7, 1024] {
            let all = shares_over(&context, window, pieces);
            assert_eq!(all.iter().map(Shares::total).sum::<Dur>(), window.dur());
            for (place, shares) in all.iter().enumerate() {
                let length = edge(window, place + 1, pieces) - edge(window, place, pieces);
                assert_eq!(shares.total(), length, "piece {place} of {pieces}");
            }
            let compute = all.iter().map(|shares| shares.get(Category::Compute)).sum::<Dur>();
            assert_eq!(compute, Dur::from_ns(200));
        }
        assert!(shares_over(&context, window, 0).is_empty());
    }
}
