//! What a loop writes after the marker of a step. Steps reach from start to start, so that a checkpoint between two markers
//! counts; after the last marker, nothing but the writing itself shows that it belongs to the loop.

use stepscope_trace::{Span, Time};

use crate::states::{State, StateLine};

/// Fewer writes between markers may be a coincidence.
const REPEATS: usize = 2;

/// Extends the last mark by what is written right after it, if the loop writes between earlier marks.
pub(super) fn extend_last(marks: &mut [(i64, Span)], line: &StateLine) {
    let between = marks.windows(2).filter(|pair| {
        let (end, next) = (pair[0].1.end, pair[1].1.start);
        written_after(end, line).is_some_and(|written| written.start < next)
    });
    if between.count() < REPEATS {
        return;
    }
    let Some((_, last)) = marks.last_mut() else { return };
    // A pause that is longer than the writing is something else.
    if let Some(written) =
        written_after(last.end, line).filter(|written| written.start - last.end <= written.dur())
    {
        last.end = written.end;
    }
}

/// The first write that starts at or after a time.
fn written_after(at: Time, line: &StateLine) -> Option<Span> {
    let first = line.times.partition_point(|time| *time < at);
    let states = line.states.get(first..)?;
    let start = first + states.iter().position(|state| state.has(State::Output))?;
    Some(Span::new(*line.times.get(start)?, *line.times.get(start + 1)?))
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::Steps;

    /// Marked steps of 1 ms, with a write of 2 ms after each of these.
    fn last_of(written: &[i64]) -> Dur {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..6 {
            sketch.event(thread, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
            sketch.event(thread, "train_step", at, 1_000, &call);
            at += 1_000;
            if written.contains(&step) {
                sketch.event(thread, "EagerLocalExecute: WriteSummary", at + 100, 2_000, &[]);
                at += 2_200;
            }
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        steps.all.last().map_or(Dur::ZERO, |step| step.span.dur())
    }

    #[test]
    fn what_the_loop_writes_after_the_last_marker_belongs_to_its_step() {
        assert_eq!(last_of(&[1, 3, 5]), Dur::from_us(3_100));
        assert_eq!(last_of(&[1, 3]), Dur::from_us(1_000));
        assert_eq!(last_of(&[5]), Dur::from_us(1_000), "a loop that never wrote before");
    }
}
