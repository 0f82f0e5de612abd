//! What a loop writes after the marker of a step. Where markers nearly touch, a longer gap between two of them is excluded
//! unless it is regular; a checkpoint in it belongs to the loop all the same. After the last marker, nothing but the writing
//! itself shows that.

use stepscope_trace::{Span, Time};

use crate::states::{State, StateLine};

/// Fewer writes between markers may be a coincidence.
const REPEATS: usize = 2;

/// The marks, each with what is written after it and before the next one, if the loop does so repeatedly. Where
/// `is_other_loop` is true of the gap, the write belongs to that.
pub(super) fn with_writes(
    marks: &[(i64, Span)],
    line: &StateLine,
    is_other_loop: impl Fn(Span) -> bool,
) -> Vec<(i64, Span)> {
    let mut all = marks.to_vec();
    let mut found = 0;
    for (mark, next) in all.iter_mut().zip(marks.iter().skip(1)) {
        let gap = Span::new(mark.1.end, next.1.start);
        if let Some(end) = last_write(gap, line).filter(|_| !is_other_loop(gap)) {
            mark.1.end = end;
            found += 1;
        }
    }
    if found < REPEATS {
        return marks.to_vec();
    }
    if let Some((_, last)) = all.last_mut()
        && let Some(written) = written_after(last.end, line)
        // A pause that is longer than the writing is something else.
        && written.start - last.end <= written.dur()
    {
        last.end = written.end;
    }
    all
}

/// The end of the last write within a gap.
fn last_write(gap: Span, line: &StateLine) -> Option<Time> {
    let range = line.times.partition_point(|time| *time < gap.start)
        ..line.times.partition_point(|time| *time < gap.end);
    let last = range.start + line.states.get(range)?.iter().rposition(|state| state.has(State::Output))?;
    line.times.get(last + 1).map(|end| (*end).min(gap.end))
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

    /// The lengths of marked steps of 1 ms, with a write of 2 ms after each of these.
    fn lengths(written: &[i64]) -> Vec<Dur> {
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
        steps.all.iter().map(|step| step.span.dur()).collect()
    }

    fn last_of(written: &[i64]) -> Dur {
        lengths(written).last().copied().unwrap_or_default()
    }

    #[test]
    fn what_the_loop_writes_after_the_last_marker_belongs_to_its_step() {
        assert_eq!(last_of(&[1, 3, 5]), Dur::from_us(3_100));
        assert_eq!(last_of(&[1, 3]), Dur::from_us(1_000));
        assert_eq!(
            lengths(&[0, 3])[..4],
            [3_200, 1_000, 1_000, 3_200].map(Dur::from_us),
            "irregular, but written"
        );
        assert_eq!(last_of(&[5]), Dur::from_us(1_000), "a loop that never wrote before");
    }
}
