//! Ops that wait in the background. TensorFlow's executor starts them, goes on, and is called back when they are done: for
//! a tensor of another process, or for the next batch. In between no thread shows that the step waits.

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Args, KindSet, Span, StrId, Time, Trace, TrackId, TrackKind};

use super::State;
use super::timeline::united;
use super::walk::is_pipeline_thread;
use crate::vocabulary::waits_for;

const START: &str = "ExecutorState::ProcessAsync::Start";
const DONE: &str = "ExecutorState::ProcessAsync::Done";

/// The keys of an op that runs in the background.
struct OpKeys {
    kernel: StrId,
    run: StrId,
    producer: Option<StrId>,
    consumer: Option<StrId>,
}

/// Which execution of an op: the graph run, and the number that links both of its events.
type Execution = (i64, u64);

impl OpKeys {
    fn of(trace: &Trace) -> Option<Self> {
        let key = |name: &str| trace.strings().find(name);
        Some(OpKeys {
            kernel: key("kernel_type")?,
            run: key("step_id")?,
            producer: key("_p"),
            consumer: key("_c"),
        })
    }

    fn execution(&self, args: Args<'_>, link: Option<StrId>) -> Option<Execution> {
        let run = args.get(self.run)?.as_i64()?;
        Some((run, args.get(link?)?.as_u64()?))
    }
}

/// The waits of the model's graphs, in time order, by the thread that started them. Graph runs of the input pipeline wait
/// for themselves.
pub(super) fn waits(
    trace: &Trace,
    input_runs: &HashSet<i64, FxBuildHasher>,
    has_device: bool,
) -> Vec<(TrackId, State, Vec<Span>)> {
    let of_name = |wanted: &str| trace.kinds_where(|kind| trace.kind_name(kind) == wanted);
    let (starts, dones) = (of_name(START), of_name(DONE));
    let Some(keys) = OpKeys::of(trace).filter(|_| !starts.is_empty() && !dones.is_empty()) else {
        return Vec::new();
    };
    let ends = ends(trace, &keys, &dones);
    let mut all = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        if is_pipeline_thread(trace.str(track.name)) {
            continue;
        }
        let mut found: [(State, Vec<Span>); 2] =
            [(State::InputWait, Vec::new()), (State::Communication, Vec::new())];
        for (index, _) in track.events_of(&starts) {
            let args = trace.args_at(track, index);
            let kernel = args.get(keys.kernel);
            let role = kernel.as_ref().and_then(|kernel| kernel.as_str()).and_then(waits_for);
            // Beside a device, tensors from elsewhere in the process are copies of the device's.
            let state = role.and_then(|role| State::of_role(role, has_device));
            let Some((run, number)) = keys.execution(args, keys.producer) else { continue };
            let started = track.end(index);
            let after = ends.get(&(run, number)).and_then(|ends| first_after(ends, started));
            let slot = found.iter_mut().find(|(wanted, _)| Some(*wanted) == state);
            if let (Some((_, spans)), Some(end)) = (slot.filter(|_| !input_runs.contains(&run)), after) {
                spans.push(Span::new(started, end));
            }
        }
        let waits = found.into_iter().filter(|(_, spans)| !spans.is_empty());
        all.extend(waits.map(|(state, spans)| (track.id, state, united(spans))));
    }
    all
}

/// When each execution was done, in time order: a loop runs an op under one number several times.
fn ends(trace: &Trace, keys: &OpKeys, dones: &KindSet) -> HashMap<Execution, Vec<Time>, FxBuildHasher> {
    let mut ends: HashMap<Execution, Vec<Time>, FxBuildHasher> = HashMap::default();
    for track in trace.tracks() {
        for (index, _) in track.events_of(dones) {
            let args = trace.args_at(track, index);
            if let Some(execution) = keys.execution(args, keys.consumer) {
                ends.entry(execution).or_default().push(track.start(index));
            }
        }
    }
    ends.values_mut().for_each(|times| times.sort_unstable());
    ends
}

fn first_after(ends: &[Time], at: Time) -> Option<Time> {
    ends.get(ends.partition_point(|&end| end < at)).copied()
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};

    /// The time of a category in four steps of a millisecond that wait for an op of this type from 100 to 700 µs, and
    /// compute from 600 to 900 µs.
    fn owned(kernel: &'static str, thread: &str, category: Category) -> Dur {
        let mut sketch = Sketch::new();
        let (python, executor, queue) =
            (sketch.thread("python"), sketch.thread(thread), sketch.thread("tf_GrpcWorkerEnvQueues/1"));
        for step in 0..4 {
            let at = 1_000 * step;
            sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            sketch.event(python, "f", at, 1_000, &[("tf_function_call", Arg::Text("notTraced-nonXla"))]);
            let args = |link| {
                [
                    ("name", Arg::Text("x")),
                    ("kernel_type", Arg::Text(kernel)),
                    ("step_id", Arg::Int(7 + step)),
                    (link, Arg::Int(3)),
                ]
            };
            sketch.event(executor, super::START, at + 90, 10, &args("_p"));
            sketch.event(queue, super::DONE, at + 700, 10, &args("_c"));
            sketch.event(queue, "dense/MatMul:MatMul", at + 600, 300, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().counted().map(|(_, step)| step.shares.get(category)).sum()
    }

    #[test]
    fn a_tensor_of_another_process_is_waited_for_until_it_arrives() {
        let executor = "tf_Compute/1";
        assert_eq!(owned("_Recv", executor, Category::Communication), Dur::from_us(4 * 500));
        assert_eq!(owned("_Recv", executor, Category::Compute), Dur::from_us(4 * 300), "hides the rest");
        assert_eq!(owned("IteratorGetNext", executor, Category::Input), Dur::from_us(4 * 500));
    }

    #[test]
    fn ops_that_run_others_and_pipelines_wait_for_nothing() {
        assert_eq!(owned("PartitionedCall", "tf_Compute/1", Category::Communication), Dur::ZERO);
        let pipeline = "tf_data_private_threadpool/1";
        assert_eq!(owned("IteratorGetNext", pipeline, Category::Input), Dur::ZERO);
    }
}
