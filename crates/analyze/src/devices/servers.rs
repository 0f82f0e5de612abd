//! Parameter servers: how long workers wait for variables that they pull and for updates that they push, by server.
//!
//! A worker's file shows each tensor that it receives (`_Recv`, in the background) under the number of its graph run and the
//! name of the op that sends it. A server's file shows the send under the same number and name, and which task it is. Put
//! together, they tell waiting for a server that has not sent yet from the transfer. Ops under which a receive hides are not
//! subtracted here: that is the work of the breakdown.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use stepscope_trace::{Dur, Span, StrId, Time, Trace, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::job::{JobPart, tasks_of};
use crate::states::timeline::united;
use crate::stored::{FNV_START, mixed};
use crate::vocabulary::op_type;
use crate::window::Windows;

const START: &str = "ExecutorState::ProcessAsync::Start";
const RUNS: &str = "ExecutorState::Process";
const DONE: &str = "ExecutorState::ProcessAsync::Done";
/// Receives and sends that are kept, each: enough for thousands of steps.
const KEPT: usize = 50_000;

/// What a tensor is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Traffic {
    /// A variable that a worker reads.
    Pull,
    /// The end of the updates that it sent.
    Push,
    /// Anything else.
    Other,
}

/// A tensor that a worker received, or that a server sent: graph run, name of the op, and when.
#[derive(Copy, Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Tensor {
    run: i64,
    name: u64,
    traffic: Traffic,
    span: Span,
}

/// What one host says.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ServersPartial {
    workers: Vec<Worker>,
    servers: Vec<Server>,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Worker {
    wall_ns: Option<i64>,
    steps: usize,
    received: Vec<Tensor>,
    /// Time in which any tensor was awaited.
    waited: Dur,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Server {
    task: u64,
    wall_ns: Option<i64>,
    sent: Vec<Tensor>,
}

/// One parameter server.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct ServerShare {
    /// Its number.
    pub task: u64,
    /// Milliseconds per step and worker that its variables are awaited.
    pub pull_ms: f64,
    /// The same for the ends of updates.
    pub push_ms: f64,
    /// Tensors per step and worker.
    pub tensors: f64,
}

/// What workers receive from parameter servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Servers {
    /// Workers that were recorded.
    pub workers: usize,
    /// Milliseconds per step and worker in which any tensor was awaited, hidden or not.
    pub waited_ms: f64,
    /// Milliseconds per step and worker in which variables were awaited.
    pub pull_ms: f64,
    /// Milliseconds per step and worker in which the ends of updates were awaited.
    pub push_ms: f64,
    /// The share of the matched receives' time until the server began to send; `None` if none is matched.
    pub before_send: Option<f64>,
    /// The servers that were recorded, by number.
    pub servers: Vec<ServerShare>,
}

impl Analysis for ServersPartial {
    type Output = Option<Servers>;

    fn of(context: &Context) -> Self {
        let mut found = ServersPartial::default();
        match JobPart::of(context.trace) {
            Some(JobPart::Worker(_)) => found.workers.push(worker(context)),
            Some(JobPart::Server(task)) => {
                let wall_ns = context.trace.clock().wall_ns_at_origin;
                found.servers.push(Server { task, wall_ns, sent: sent(context.trace) });
            }
            _ => {}
        }
        found
    }

    fn merge(&mut self, other: Self) {
        self.workers.extend(other.workers);
        self.servers.extend(other.servers);
    }

    fn bound(&mut self) {
        const TENSORS: usize = 4_096;
        self.workers.iter_mut().for_each(|worker| worker.received.truncate(TENSORS));
        self.servers.iter_mut().for_each(|server| server.sent.truncate(TENSORS));
    }

    fn finish(self) -> Option<Servers> {
        let received: usize = self.workers.iter().map(|worker| worker.received.len()).sum();
        if received == 0 {
            return None;
        }
        let steps = self.workers.iter().map(|worker| worker.steps).sum::<usize>().max(1) as f64;
        let waited: Dur = self.workers.iter().map(|worker| worker.waited).sum();
        let mut all =
            Servers { workers: self.workers.len(), waited_ms: waited.ms() / steps, ..Servers::default() };
        for worker in &self.workers {
            all.pull_ms += of(&worker.received, Traffic::Pull).ms() / steps;
            all.push_ms += of(&worker.received, Traffic::Push).ms() / steps;
        }
        self.by_server(&mut all, steps);
        Some(all)
    }
}

/// The time in which any tensor of a sort was awaited.
fn of(tensors: &[Tensor], traffic: Traffic) -> Dur {
    let spans = tensors.iter().filter(|tensor| tensor.traffic == traffic).map(|tensor| tensor.span).collect();
    united(spans).iter().map(|span| span.dur()).sum()
}

impl ServersPartial {
    /// Assigns what workers received to the servers that sent it.
    fn by_server(&self, all: &mut Servers, steps: f64) {
        let mut sent: FxHashMap<(i64, u64), (u64, i128)> = FxHashMap::default();
        for server in &self.servers {
            for tensor in &server.sent {
                let at = wall(server.wall_ns, tensor.span.start);
                sent.entry((tensor.run, tensor.name)).or_insert((server.task, at));
            }
        }
        let mut by_task: BTreeMap<u64, Vec<(usize, Tensor)>> = BTreeMap::new();
        let (mut before, mut whole) = (0_i128, 0_i128);
        for (number, worker) in self.workers.iter().enumerate() {
            for tensor in &worker.received {
                let Some((task, at)) = sent.get(&(tensor.run, tensor.name)) else { continue };
                by_task.entry(*task).or_default().push((number, *tensor));
                if worker.wall_ns.is_some() {
                    let start = wall(worker.wall_ns, tensor.span.start);
                    let dur = i128::from(tensor.span.dur().ps());
                    before += (at - start).clamp(0, dur);
                    whole += dur;
                }
            }
        }
        all.before_send = (whole > 0).then(|| before as f64 / whole as f64);
        all.servers = by_task.into_iter().map(|(task, tensors)| share(task, &tensors, steps)).collect();
    }
}

fn share(task: u64, tensors: &[(usize, Tensor)], steps: f64) -> ServerShare {
    let workers = tensors.iter().map(|(worker, _)| *worker).max().unwrap_or(0);
    let sum = |traffic| {
        let of_worker = |worker: usize| -> Dur {
            let own: Vec<Tensor> =
                tensors.iter().filter(|(number, _)| *number == worker).map(|(_, tensor)| *tensor).collect();
            of(&own, traffic)
        };
        (0..=workers).map(of_worker).sum::<Dur>().ms() / steps
    };
    ServerShare {
        task,
        pull_ms: sum(Traffic::Pull),
        push_ms: sum(Traffic::Push),
        tensors: tensors.len() as f64 / steps,
    }
}

/// Picoseconds since 1970.
fn wall(origin_ns: Option<i64>, at: Time) -> i128 {
    i128::from(origin_ns.unwrap_or(0)) * 1_000 + i128::from(at.ps())
}

fn worker(context: &Context) -> Worker {
    let trace = context.trace;
    let windows = Windows::of(context);
    let steps = context.breakdown().counted().count();
    let mut received = received(trace);
    received.sort_by_key(|tensor| tensor.span.start);
    let mut within = windows.of_host();
    received.retain(|tensor| within.counts(tensor.span.start));
    let all = united(received.iter().map(|tensor| tensor.span).collect());
    Worker {
        wall_ns: trace.clock().wall_ns_at_origin,
        steps: steps.max(1),
        waited: all.iter().map(|span| span.dur()).sum(),
        received,
    }
}

/// The op that sends a tensor, in the name of the op that receives it: without the number at the end.
fn sender_of(name: &str) -> &str {
    name.rsplit_once("/_").map_or(name, |(sender, _)| sender)
}

fn traffic_of(name: &str) -> Traffic {
    let op = name.rsplit('/').next().unwrap_or(name);
    let reads = ["ReadVariableOp", "ResourceGather", "GatherV2", "EmbeddingLookup"];
    if reads.iter().any(|read| op.starts_with(read)) || name.contains("/ReadVariableOp") {
        Traffic::Pull
    } else if name.contains("ControlEdges") || op.starts_with("NoOp") || op.starts_with("Assign") {
        Traffic::Push
    } else {
        Traffic::Other
    }
}

fn received(trace: &Trace) -> Vec<Tensor> {
    let key = |name: &str| trace.strings().find(name);
    let (Some(kernel), Some(run), Some(name)) = (key("kernel_type"), key("step_id"), key("name")) else {
        return Vec::new();
    };
    let named = |wanted: &str| trace.kinds_where(|kind| trace.kind_name(kind) == wanted);
    let (starts, dones) = (named(START), named(DONE));
    let number = |args: stepscope_trace::Args<'_>, link: Option<StrId>| args.get(link?)?.as_u64();
    let mut ends: HashMap<(i64, u64), Vec<Time>, FxBuildHasher> = HashMap::default();
    for track in trace.tracks() {
        for (index, _) in track.events_of(&dones) {
            let args = trace.args_at(track, index);
            let of = args.get(run).and_then(|run| run.as_i64()).zip(number(args, key("_c")));
            of.into_iter().for_each(|of| ends.entry(of).or_default().push(track.start(index)));
        }
    }
    ends.values_mut().for_each(|times| times.sort_unstable());
    let mut found = Vec::new();
    for track in trace.tracks() {
        for (index, _) in track.events_of(&starts) {
            let args = trace.args_at(track, index);
            let receives = args.get(kernel).is_some_and(|kernel| kernel.as_str() == Some("_Recv"));
            let of = args.get(run).and_then(|run| run.as_i64()).zip(number(args, key("_p")));
            let Some(of) = of.filter(|_| receives && found.len() < KEPT) else { continue };
            let (start, text) = (track.end(index), args.get(name));
            let after = ends.get(&of).and_then(|times| times.get(times.partition_point(|&end| end < start)));
            if let (Some(end), Some(text)) = (after, text.as_ref().and_then(|text| text.as_str())) {
                let text = sender_of(text);
                let (name, traffic) = (mixed(FNV_START, text.as_bytes()), traffic_of(text));
                found.push(Tensor { run: of.0, name, traffic, span: Span::new(start, *end) });
            }
        }
    }
    found
}

fn sent(trace: &Trace) -> Vec<Tensor> {
    let key = |name: &str| trace.strings().find(name);
    let (Some(run), Some(from), Some(place)) = (key("id"), key("from"), key("key")) else {
        return Vec::new();
    };
    let sends = trace.kinds_where(|kind| op_type(trace.kind_name(kind)) == Some("_Send"));
    let both = trace.kinds_where(|kind| sends.has(kind) || trace.kind_name(kind) == RUNS);
    let mut found = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        // The graph run that a send belongs to is that of the executor's event around it.
        let mut open: Option<(Time, i64)> = None;
        for (index, kind) in track.events_of(&both) {
            let args = trace.args_at(track, index);
            if !sends.has(kind) {
                let number = args.get(run).and_then(|run| run.as_i64());
                open = number.map(|number| (track.end(index), number));
                continue;
            }
            let (text, tasks) = (args.get(from), args.get(place));
            let text = text.as_ref().and_then(|text| text.as_str());
            let to = tasks.as_ref().and_then(|key| key.as_str()).and_then(tasks_of);
            let goes_out = to.is_some_and(|(from, to)| from != to);
            let of = open.filter(|(end, _)| track.start(index) <= *end).map(|(_, number)| number);
            if let (Some(run), Some(text), true) = (of, text, goes_out && found.len() < KEPT) {
                let (name, traffic) = (mixed(FNV_START, text.as_bytes()), traffic_of(text));
                found.push(Tensor { run, name, traffic, span: track.span_of(index) });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
