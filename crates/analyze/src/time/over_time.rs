//! The breakdown over time: the breakdown's sweep over equal pieces of any window instead of over steps.

use stepscope_trace::{Dur, Span, Time};

use crate::breakdown::{Category, Ground, Shares, owner, starving_waits};
use crate::context::Context;
use crate::host_trace::merged;
use crate::states::State;
use crate::states::timeline::Timeline;
use crate::states::timeline::is_inside;

/// Divides `window` into `pieces` of equal length and returns the breakdown of each, on the bottleneck device.
///
/// Time outside the steps has a category too; but only between the first step and the last does unrecorded time
/// count as Python in the training loop. One sweep: linear in the changes of state and the pieces.
pub fn shares_over(context: &Context, window: Span, pieces: usize) -> Vec<Shares> {
    let mut all = vec![Shares::default(); pieces];
    if pieces == 0 || window.is_empty() {
        return all;
    }
    let host = merged(context, None);
    let inside = context.breakdown().ground.clone();
    let outside = Ground { fallback: Category::Idle, ..inside.clone() };
    let loops = looping(context).unwrap_or(window);
    let device = context.breakdown().bound().and_then(|device| device.process);
    let device = device.map_or_else(Timeline::default, |device| merged(context, Some(device)));
    let starving = starving_waits(&host, &device);
    let starves = |at: Time| device.span().is_some() && is_inside(&starving, at);
    let (mut piece, mut until) = (0, edge(window, 1, pieces));
    host.sweep(&device, window, |span, host, device| {
        let waits = host.has(State::InputWait) && starves(span.start);
        let mut from = span.start;
        while from < span.end {
            while piece + 1 < pieces && until <= from {
                piece += 1;
                until = edge(window, piece + 1, pieces);
            }
            let to = if piece + 1 < pieces { until.min(span.end) } else { span.end };
            let ground = if from >= loops.start && from < loops.end { &inside } else { &outside };
            let turn = [loops.start, loops.end].into_iter().find(|&turn| turn > from).unwrap_or(to);
            let to = to.min(turn);
            let owner = if waits { Category::Input } else { owner(host, device, ground, from) };
            all[piece].add(owner, to - from);
            from = to;
        }
    });
    all
}

/// From the first step to the last; `None` if there are none.
fn looping(context: &Context) -> Option<Span> {
    let steps = context.steps().all.iter().filter(|_| !context.steps().whole_capture);
    steps.map(|step| step.span).reduce(Span::hull)
}

/// Start of a piece.
fn edge(window: Span, piece: usize, pieces: usize) -> Time {
    let offset = i128::from(window.dur().ps()) * piece as i128 / pieces.max(1) as i128;
    window.start + Dur::from_ps(i64::try_from(offset).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Sketch;
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

    #[test]
    fn before_the_first_step_nobody_knows_what_the_program_does() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        sketch.event(thread, "FunctionRun", 0, 10, &[]);
        sketch.steps_from(thread, 4, 1_000, 5_000);
        for step in 0..4 {
            sketch.event(thread, "ExecutorState::Process", 5_000 + step * 1_000, 200, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let window = Span::new(Time::ZERO, Time::ZERO + Dur::from_us(9_000));
        let all = shares_over(&context, window, 9);
        let of = |category| all.iter().map(|shares| shares.get(category)).sum::<Dur>();
        assert_eq!(of(Category::Idle), Dur::from_us(4_990), "nothing is recorded there");
        assert_eq!(of(Category::Python), Dur::from_us(3_200), "inside the steps it is the loop");
        assert_eq!(shares_over(&context, window, 1)[0].get(Category::Idle), Dur::from_us(4_990));
    }
}
