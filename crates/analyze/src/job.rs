//! The part that a process plays in a distributed job, as far as its own recording says: a worker that trains, a server that
//! holds variables, the coordinator that hands out steps, a worker that prepares data. Knows nothing about other processes.

use std::collections::BTreeMap;

use stepscope_trace::{Trace, TrackKind};

use crate::vocabulary::{is_data_worker_thread, is_server_thread, op_type};

/// A part in a job.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum JobPart {
    /// Runs steps that read variables of servers, by its number.
    Worker(u64),
    /// Holds variables, by its number.
    Server(u64),
    /// Hands out steps and runs none.
    Coordinator,
    /// Prepares batches for others.
    DataWorker,
}

impl JobPart {
    /// What a recording says; `None` for everything that just trains.
    pub fn of(trace: &Trace) -> Option<Self> {
        let threads = || trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread);
        if threads().any(|track| is_data_worker_thread(trace.str(track.name))) {
            return Some(JobPart::DataWorker);
        }
        if !threads().any(|track| is_server_thread(trace.str(track.name))) {
            return None;
        }
        sender(trace).or_else(|| coordinates(trace).then_some(JobPart::Coordinator))
    }

    /// Does it run steps of its own?
    pub fn trains(self) -> bool {
        matches!(self, JobPart::Worker(_))
    }
}

/// The task that sends tensors from here, by most of the names under which they are sent:
/// `/job:worker/replica:0/task:1/device:CPU:0;…;/job:ps/replica:0/task:0/…`.
fn sender(trace: &Trace) -> Option<JobPart> {
    let sends = trace.kinds_where(|kind| op_type(trace.kind_name(kind)) == Some("_Send"));
    let key = trace.strings().find("key").filter(|_| !sends.is_empty())?;
    let mut tasks: BTreeMap<JobPart, u64> = BTreeMap::new();
    let mut asked = false;
    for track in trace.tracks() {
        for (index, _) in track.events_of(&sends) {
            let args = trace.args_at(track, index);
            let value = args.get(key);
            let Some((from, to)) = value.as_ref().and_then(|value| value.as_str()).and_then(tasks_of) else {
                continue;
            };
            asked |= from != to;
            *tasks.entry(from).or_default() += 1;
        }
    }
    // A process that only sends to itself says nothing about a job.
    let most = tasks.into_iter().filter(|_| asked).max_by_key(|(_, sent)| *sent)?;
    Some(most.0)
}

/// The task that a tensor comes from and the one that it goes to; `None` for other names.
pub(crate) fn tasks_of(key: &str) -> Option<(JobPart, JobPart)> {
    let mut parts = key.split(';');
    let (from, to) = (parts.next()?, parts.nth(1)?);
    Some((task_of(from)?, task_of(to)?))
}

fn task_of(device: &str) -> Option<JobPart> {
    let value = |name: &str| device.split('/').find_map(|part| part.strip_prefix(name)?.strip_prefix(':'));
    let number = value("task")?.parse().ok()?;
    match value("job")? {
        "ps" => Some(JobPart::Server(number)),
        "chief" | "coordinator" | "master" => Some(JobPart::Coordinator),
        _ => Some(JobPart::Worker(number)),
    }
}

/// Whether a program calls functions from Python and runs none of their graphs: others do.
fn coordinates(trace: &Trace) -> bool {
    let has = |start: &str| !trace.kinds_where(|kind| trace.kind_name(kind).starts_with(start)).is_empty();
    has("TFE_Py_Execute") && !has("ExecutorState::Process") && !has("CollectiveExecutor::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn a_process_is_what_it_sends_as() {
        let key = "/job:worker/replica:0/task:1/device:CPU:0;d5f1;/job:ps/replica:0/task:0/device:CPU:0;edge_9_x;0:0";
        assert_eq!(tasks_of(key), Some((JobPart::Worker(1), JobPart::Server(0))));
        assert_eq!(tasks_of("x;y"), None);
        let mut sketch = Sketch::new();
        let thread = sketch.thread("tf_Compute/1");
        sketch.thread("tf_GrpcWorkerEnvQueues/1");
        sketch.event(thread, "mul/_9:_Send", 0, 10, &[("key", Arg::Text(key))]);
        assert_eq!(JobPart::of(&sketch.finish()), Some(JobPart::Worker(1)));
    }

    #[test]
    fn who_only_calls_functions_coordinates_and_who_runs_them_does_not() {
        let part = |runs: bool| {
            let mut sketch = Sketch::new();
            let thread = sketch.thread("python");
            sketch.thread("GrpcWorkerEnvPool/1");
            sketch.event(thread, "TFE_Py_ExecuteCancelable", 0, 10, &[]);
            if runs {
                sketch.event(thread, "ExecutorState::Process", 0, 10, &[]);
            }
            JobPart::of(&sketch.finish())
        };
        assert_eq!((part(false), part(true)), (Some(JobPart::Coordinator), None));
        let mut sketch = Sketch::new();
        let thread = sketch.thread("tf_data_service_fcfs_prefetch_thread/1");
        sketch.event(thread, "Iterator::Root::Map", 0, 10, &[]);
        assert_eq!(JobPart::of(&sketch.finish()), Some(JobPart::DataWorker));
    }
}
