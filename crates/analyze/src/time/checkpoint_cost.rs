//! What surrounds output: a checkpoint is more than the op that writes it. The framework walks its objects in
//! Python and launches small ops to join names and merge files, and all of that disappears with the checkpoint.
//!
//! Between two function calls or two batch fetches, the loop does things one by one. If one of them writes, the
//! whole stretch counts as its surroundings. PyTorch's loop calls no function: there, each op ends a stretch.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, KindId, Span, Time, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::states::activities::{Does, Kinds};
use crate::states::read_out::{ReadOut, read_out};
use crate::states::runs_python;
use crate::time::python::frame_place;
use crate::vocabulary::{Framework, Role};

/// Partial result: stretches of the loop in which something was written, in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CheckpointCost {
    /// The stretches.
    pub stretches: Dur,
    /// Number of steps analysed.
    pub steps: u64,
    /// Python functions that write, by place, with their time.
    #[serde(default)]
    pub writers: BTreeMap<String, Dur>,
    /// Variables that were read into Python one after the other, as for a file that the framework does not write itself.
    #[serde(default)]
    pub variables: u64,
}

impl Analysis for CheckpointCost {
    type Output = Self;

    /// Walks the Python threads; nothing if nothing writes.
    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, shares)| shares.window).collect();
        let mut all = CheckpointCost { steps: windows.len() as u64, ..CheckpointCost::default() };
        let outputs = trace.kinds_where(|kind| context.vocabulary().role(kind) == Role::Output);
        let writes = |track: &&Track| {
            track.kind == TrackKind::Thread
                && runs_python(trace, context.vocabulary(), track)
                && track.has_any(&outputs)
        };
        for track in trace.tracks().iter().filter(writes) {
            let walked: Vec<Stretches> =
                windows.par_iter().map(|&window| Stretches::of(context, track, window)).collect();
            all.stretches += walked.iter().map(|walked| walked.length).sum::<Dur>();
            for (kind, time) in walked.into_iter().flat_map(|walked| walked.writers) {
                let range = trace.str(trace.kind(kind).category) == "user_annotation";
                let range = || range.then(|| trace.kind_name(kind).to_owned());
                if let Some(place) = frame_place(trace, kind).or_else(range) {
                    *all.writers.entry(place).or_default() += time;
                }
            }
        }
        all.variables = variables_read(context, &windows);
        all
    }

    /// Adds another host's.
    fn merge(&mut self, other: CheckpointCost) {
        self.stretches += other.stretches;
        self.steps += other.steps;
        self.variables += other.variables;
        other.writers.into_iter().for_each(|(place, time)| *self.writers.entry(place).or_default() += time);
    }

    fn finish(self) -> Self {
        self
    }
}

impl CheckpointCost {
    /// Python functions that write, with their milliseconds per step, longest first.
    pub fn writers_ms(&self) -> Vec<(&str, f64)> {
        let per_step = |time: &Dur| time.ms() / self.steps.max(1) as f64;
        let mut all: Vec<(&str, f64)> =
            self.writers.iter().map(|(place, time)| (place.as_str(), per_step(time))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// Variables per step that are read one after the other.
    pub fn variables_per_step(&self) -> f64 {
        self.variables as f64 / self.steps.max(1) as f64
    }

    /// Milliseconds per step from the model's work, or a batch, to the next one, if something is written in
    /// between.
    pub fn stretches_ms(&self) -> f64 {
        self.stretches.ms() / self.steps.max(1) as f64
    }
}

/// How many variables were read one after the other in these windows, which are in time order.
fn variables_read(context: &Context, windows: &[Span]) -> u64 {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let kinds = Kinds::of(trace, vocabulary);
    let reads = kinds.that_do(Does::READS);
    if reads.is_empty() {
        return 0;
    }
    let python = |track: &&Track| {
        track.kind == TrackKind::Thread && runs_python(trace, vocabulary, track) && track.has_any(&reads)
    };
    let counted = |read: &ReadOut| {
        let next = windows.partition_point(|window| window.end <= read.span.start);
        windows.get(next).is_some_and(|window| window.start < read.span.end)
    };
    let threads = trace.tracks().iter().filter(python);
    let all = threads.flat_map(|track| read_out(&kinds, vocabulary, track));
    all.filter(counted).map(|read| read.reads as u64).sum()
}

/// The stretches of one step in which something was written.
#[derive(Default)]
struct Stretches {
    length: Dur,
    /// What writes, outermost only.
    writers: HashMap<KindId, Dur, FxBuildHasher>,
}

impl Stretches {
    fn of(context: &Context, track: &Track, window: Span) -> Self {
        let mut all = Stretches::default();
        let (mut from, mut written) = (window.start, Dur::ZERO);
        let (mut call_until, mut write_until) = (Time::MIN, Time::MIN);
        let ops_end = context.vocabulary().framework == Framework::PyTorch;
        for index in track.first_from(window.start)..track.len() {
            let span = track.span_of(index);
            if span.start >= window.end {
                break;
            }
            if span.start < call_until || span.start < write_until {
                continue;
            }
            match context.vocabulary().role(track.kind_of(index)) {
                Role::Output => {
                    written += span.dur();
                    *all.writers.entry(track.kind_of(index)).or_default() += span.dur();
                    write_until = span.end;
                }
                role if role == Role::FunctionCall
                    || role == Role::InputWait
                    || (ops_end && role == Role::Op) =>
                {
                    all.close(Span::new(from, span.start), written);
                    (from, call_until, written) = (span.end, span.end, Dur::ZERO);
                }
                _ => {}
            }
        }
        all.close(Span::new(from, window.end), written);
        all
    }

    fn close(&mut self, stretch: Span, written: Dur) {
        if !written.is_zero() {
            self.length += stretch.dur();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn the_stretch_around_a_checkpoint_is_its_own_and_the_step_function_is_not() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for number in 0..4 {
            let start = number * 1_000;
            sketch.event(thread, "train", start, 1_000, &[("step_num", Arg::Int(number))]);
            sketch.event(thread, "run", start, 300, &[("tf_function_call", Arg::Text("notTraced-nonXla"))]);
            sketch.event(thread, "$checkpoint.py:7 save", start + 450, 300, &[]);
            sketch.event(thread, "EagerLocalExecute: SaveV2", start + 500, 200, &[]);
        }
        let trace = sketch.finish();
        let writing = CheckpointCost::of(&Context::new(&trace, "host"));
        assert_eq!(writing.steps, 4);
        assert_eq!(writing.stretches, Dur::from_us(2_800));
        assert!((writing.stretches_ms() - 0.7).abs() < 1e-9);
        assert_eq!(writing.writers_ms(), [("checkpoint.py:7 save", 0.3)]);
    }

    #[test]
    fn a_range_around_writing_is_output_and_nothing_before_it() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for number in 0..4 {
            let start = number * 1_000;
            sketch.event_of(thread, "user_annotation", &format!("ProfilerStep#{number}"), start, 1_000, &[]);
            sketch.event_of(thread, "cpu_op", "aten::mul", start, 300, &[]);
            sketch.event_of(thread, "user_annotation", "save_checkpoint", start + 400, 600, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let output: Dur =
            context.breakdown().counted().map(|(_, step)| step.shares.get(Category::Output)).sum();
        assert_eq!(output, Dur::from_us(4 * 600));
        assert_eq!(CheckpointCost::of(&context).writers_ms(), [("save_checkpoint", 0.6)]);
    }

    #[test]
    fn python_between_the_models_eager_ops_is_not_around_a_checkpoint() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for number in 0..4 {
            let start = number * 1_000;
            sketch.event_of(thread, "user_annotation", &format!("ProfilerStep#{number}"), start, 1_000, &[]);
            sketch.event_of(thread, "cpu_op", "aten::mm", start, 100, &[]);
            sketch.event_of(thread, "cpu_op", "aten::mm", start + 300, 100, &[]);
            sketch.event_of(
                thread,
                "python_function",
                "torch/serialization.py(9): save",
                start + 450,
                500,
                &[],
            );
        }
        let trace = sketch.finish();
        let writing = CheckpointCost::of(&Context::new(&trace, "host"));
        assert_eq!((writing.steps, writing.stretches), (4, Dur::from_us(2_400)));
    }
}
