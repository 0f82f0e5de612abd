//! Which host call launched which device work: a sorted join on the correlation id that CUPTI, ROCm and Kineto
//! write on both sides.

use stepscope_trace::{Args, Dur, EventId, ProcessKind, StrId, Time, Trace, TrackKind};

use crate::vocabulary::{Keys, Role, Vocabulary, is_synchronous_copy, starts_graph};
use stepscope_trace::statistics::median_duration;

/// An asynchronous copy call returns within this time. A longer one waits: for the device, or for the driver,
/// which stages copies of unpinned memory.
pub const RETURNS_WITHIN: Dur = Dur::from_us(50);

/// Whether a copy call with this name and duration waits until the copy is done.
pub(crate) fn waits_for_copy(call: &str, length: Dur) -> bool {
    is_synchronous_copy(call) || length > RETURNS_WITHIN
}

/// A host call and device work that it launched. A graph launch starts many.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The call on the host.
    pub call: EventId,
    /// When the call began.
    pub called: Time,
    /// The work on the device.
    pub work: EventId,
}

/// The keys of the number shared by a call and its work.
pub(crate) struct Correlations(Vec<StrId>);

impl Correlations {
    /// Those that this trace has.
    pub fn of(trace: &Trace) -> Self {
        let names = ["correlation_id", "correlation"];
        Correlations(names.iter().filter_map(|key| trace.strings().find(key)).collect())
    }

    /// The number of one event.
    pub fn read(&self, args: Args) -> Option<u64> {
        let mut id = None;
        args.visit(|key, value| {
            if id.is_none() && self.0.contains(&key) {
                id = value.as_u64();
            }
        });
        // Profilers write 0 if they do not know.
        id.filter(|&id| id != 0)
    }
}

/// Host calls that launched kernels.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LaunchCalls {
    /// Kernels whose call is known.
    pub kernels: u64,
    /// How many of them were launched as part of a graph.
    pub in_graphs: u64,
    /// Calls that started a single kernel.
    pub single: u64,
    /// Their median duration: a first launch that loads code, or one that waits for room in a queue, is not
    /// typical.
    pub usual: Dur,
}

impl LaunchCalls {
    /// Adds another host's.
    pub fn merge(&mut self, other: &LaunchCalls) {
        let both = self.single + other.single;
        let weighed = |calls: &LaunchCalls| calls.usual.ps() as f64 * calls.single as f64;
        self.usual = Dur::from_ps(((weighed(self) + weighed(other)) / both.max(1) as f64) as i64);
        self.single = both;
        self.kernels += other.kernels;
        self.in_graphs += other.in_graphs;
    }

    /// The median duration of a call that launches one kernel; `None` if there is none.
    pub fn usual(&self) -> Option<Dur> {
        (self.single > 0).then_some(self.usual)
    }

    /// The share of kernels launched by graphs.
    pub fn graph_share(&self) -> f64 {
        self.in_graphs as f64 / self.kernels.max(1) as f64
    }
}

/// All launches recorded on both sides.
#[derive(Debug, Default)]
pub struct Launches {
    /// Sorted by device work: track, then time.
    pub all: Vec<Launch>,
}

impl Launches {
    /// Joins calls and work by correlation id.
    pub fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let keys = Correlations::of(trace);
        if keys.0.is_empty() {
            return Launches::default();
        }
        let correlated = trace.kinds_where(|kind| vocabulary.signatures.keys(kind).has(Keys::Correlation));
        let (mut calls, mut works) = (Vec::new(), Vec::new());
        for track in trace.tracks() {
            let side = match (track.kind, trace.process(track.process).kind) {
                (TrackKind::Thread, ProcessKind::Host) => &mut calls,
                (TrackKind::Stream, ProcessKind::Device) => &mut works,
                _ => continue,
            };
            for (index, _) in track.events_of(&correlated) {
                if let Some(id) = keys.read(trace.args_at(track, index)) {
                    side.push((id, track.event_id(index)));
                }
            }
        }
        Launches { all: join(trace, calls, works) }
    }

    /// The calls that launched kernels. Copies do not count, because their calls may wait for the device.
    pub fn calls(&self, trace: &Trace, vocabulary: &Vocabulary) -> LaunchCalls {
        let kind_of = |event: EventId| trace.track(event.track).kind_of(event.index as usize);
        let graphs: Vec<bool> = trace.kinds().iter().map(|kind| starts_graph(trace.str(kind.name))).collect();
        let of_graph = |call: EventId| graphs.get(kind_of(call).index()).copied().unwrap_or(false);
        let kernels = self.all.iter().filter(|launch| {
            matches!(vocabulary.role(kind_of(launch.work)), Role::Kernel | Role::Collective)
        });
        let mut calls: Vec<EventId> = kernels.map(|launch| launch.call).collect();
        let (kernels, in_graphs) = (calls.len(), calls.iter().filter(|&&call| of_graph(call)).count());
        calls.sort_unstable();
        calls.dedup();
        calls.retain(|&call| !of_graph(call));
        let lengths = calls.iter().map(|call| trace.track(call.track).dur(call.index as usize));
        LaunchCalls {
            kernels: kernels as u64,
            in_graphs: in_graphs as u64,
            single: calls.len() as u64,
            usual: median_duration(lengths),
        }
    }

    /// The call that launched `work`.
    pub(crate) fn of_work(&self, work: EventId) -> Option<&Launch> {
        self.all.binary_search_by_key(&work, |launch| launch.work).ok().map(|at| &self.all[at])
    }
}

fn join(trace: &Trace, mut calls: Vec<(u64, EventId)>, mut works: Vec<(u64, EventId)>) -> Vec<Launch> {
    let started = |event: EventId| trace.track(event.track).start(event.index as usize);
    // Several host events may have the id (the runtime call and the driver call inside it): the first to start is the
    // outermost.
    calls.sort_unstable_by_key(|&(id, call)| (id, started(call), call));
    calls.dedup_by_key(|&mut (id, _)| id);
    works.sort_unstable();
    let mut launches = Vec::with_capacity(works.len());
    let mut at = 0;
    for (id, work) in works {
        while calls.get(at).is_some_and(|&(call, _)| call < id) {
            at += 1;
        }
        if let Some(&(_, call)) = calls.get(at).filter(|&&(known, _)| known == id) {
            launches.push(Launch { call, called: started(call), work });
        }
    }
    launches.sort_unstable_by_key(|launch| launch.work);
    launches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn copies_and_graphs_are_no_launches_of_single_kernels() {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        let id = |number| [("correlation", Arg::Int(number))];
        let mut call = |name: &str, work: &str, number: i64, us: i64| {
            let at = number * 1_000;
            sketch.event_of(thread, "cuda_runtime", name, at, us, &id(number));
            sketch.event_of(stream, "kernel", work, at + us, 50, &id(number));
        };
        call("cudaLaunchKernel", "gemm", 1, 900);
        call("cudaLaunchKernel", "gemm", 2, 5);
        call("cudaLaunchKernel", "gemm", 3, 7);
        call("hipMemcpyWithStream", "Memcpy DtoH (Device -> Pageable)", 4, 800);
        call("cudaGraphLaunch", "gemm", 5, 70);
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let calls = Launches::of(&trace, &vocabulary).calls(&trace, &vocabulary);
        assert_eq!((calls.kernels, calls.in_graphs, calls.single), (4, 1, 3));
        assert_eq!(calls.usual(), Some(Dur::from_us(7)), "a slow first launch does not count for the others");
        assert!((calls.graph_share() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_call_that_waits_for_its_copy_is_no_launch() {
        for (name, state) in [
            ("hipMemcpyWithStream", Category::Sync),
            ("cudaMemcpyAsync", Category::Sync),
            ("x", Category::Dispatch),
        ] {
            let mut sketch = Sketch::new();
            let (thread, stream) = (sketch.thread("python"), sketch.stream());
            sketch.steps(thread, 4, 1_000);
            for turn in 0..4 {
                let id = || [("correlation", Arg::Int(turn + 1))];
                sketch.event_of(thread, "cuda_runtime", name, turn * 1_000, 600, &id());
                sketch.event_of(stream, "kernel", "gemm", turn * 1_000 + 700, 200, &id());
            }
            let trace = sketch.finish();
            let context = Context::new(&trace, "host");
            let owned: Dur = context.breakdown().counted().map(|(_, shares)| shares.shares.get(state)).sum();
            assert_eq!(owned, Dur::from_us(2_400), "{name}");
        }
    }

    #[test]
    fn calls_under_the_name_of_what_they_launch_are_launches() {
        let mut sketch = Sketch::new();
        let (python, executor, stream) =
            (sketch.thread("python"), sketch.thread("tf_Compute/9"), sketch.stream());
        sketch.steps(python, 4, 1_000);
        for turn in 0..4 {
            let stats = || [("correlation_id", Arg::Int(turn + 1)), ("context_id", Arg::Int(1))];
            sketch.event(executor, "volta_sgemm_128x64_nn", turn * 1_000 + 100, 200, &stats());
            sketch.event(executor, "never_ran_kernel", turn * 1_000 + 320, 30, &stats());
            sketch.event(stream, "volta_sgemm_128x64_nn", turn * 1_000 + 400, 300, &stats());
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let owned = |category| -> Dur {
            context.breakdown().counted().map(|(_, shares)| shares.shares.get(category)).sum()
        };
        assert_eq!(owned(Category::Compute), Dur::from_us(4 * 300), "the device's work alone");
        assert_eq!(owned(Category::Launch), Dur::from_us(4 * 230));
    }
}
