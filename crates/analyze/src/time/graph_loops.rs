//! Loops that TensorFlow's executor runs inside a step. It notes the round with each piece of a graph that it runs, also of
//! ops that are too cheap to be recorded.

use stepscope_trace::{Dur, Span, Track};

use crate::analysis::Analysis;
use crate::context::Context;

/// Pieces that are examined per thread: rounds are alike.
const SAMPLES: usize = 20_000;

/// Partial result: the loops in the counted steps.
#[derive(Copy, Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GraphLoops {
    /// The most rounds of a loop.
    pub rounds: u64,
    /// Time of pieces in rounds after the first.
    pub inside: Dur,
    /// Time of all pieces.
    pub all: Dur,
}

impl Analysis for GraphLoops {
    type Output = Self;

    /// Examines the executor's threads.
    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let mut found = GraphLoops::default();
        let Some(round) = trace.strings().find("iter_num") else { return found };
        let pieces = trace.kinds_where(|kind| trace.kind_name(kind) == "ExecutorState::Process");
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, step)| step.window).collect();
        let counts = |track: &Track, index: usize| {
            let start = track.start(index);
            let after = windows.partition_point(|window| window.start <= start);
            after.checked_sub(1).is_some_and(|at| windows[at].contains(start))
        };
        for track in trace.tracks() {
            let counted = track.events_of(&pieces).filter(|(index, _)| counts(track, *index));
            for (index, _) in counted.take(SAMPLES) {
                let number = trace.args_at(track, index).get(round).and_then(|round| round.as_u64());
                let (number, time) = (number.unwrap_or(0), track.dur(index));
                found.all += time;
                found.inside += if number > 0 { time } else { Dur::ZERO };
                found.rounds = found.rounds.max(number.saturating_add(1));
            }
        }
        found
    }

    /// Adds another host.
    fn merge(&mut self, other: GraphLoops) {
        self.rounds = self.rounds.max(other.rounds);
        self.inside += other.inside;
        self.all += other.all;
    }

    fn finish(self) -> Self {
        self
    }
}

impl GraphLoops {
    /// The share of the executor's time in rounds after the first.
    pub fn share(&self) -> f64 {
        self.inside.fraction_of(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn rounds_are_counted_in_the_steps() {
        let mut sketch = Sketch::new();
        let (python, executor) = (sketch.thread("python"), sketch.thread("tf_Compute/1"));
        for step in 0..4 {
            let at = 1_000 * step;
            sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            for round in 0..8 {
                let args = [("id", Arg::Int(step)), ("iter_num", Arg::Int(round))];
                sketch.event(executor, "ExecutorState::Process", at + 100 * round, 50, &args);
            }
        }
        let trace = sketch.finish();
        let found = GraphLoops::of(&Context::new(&trace, "host"));
        assert_eq!((found.rounds, found.share()), (8, 7.0 / 8.0));
    }
}
