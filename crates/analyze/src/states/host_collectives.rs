//! Collectives between processors, call by call: when a rank arrives, when its exchange begins, and when it ends.
//!
//! Each framework says in its own way which calls of several ranks are one collective. TensorFlow writes a group and an
//! instance, XLA a run of a program; both are exact. Gloo writes neither, so that order has to do.
//!
//! The event of TensorFlow's op begins late. Before it, all but one rank ask the leader for parameters, which costs a remote
//! call. A rank arrives when its kernel is called; until the op begins, the exchange is set up.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{EventId, KindSet, Span, StrId, Time, Trace, Track, TrackId, TrackKind};

use super::timeline::united;
use crate::stored::{FNV_START, mixed};
use crate::vocabulary::{Keys, Role, Vocabulary, op_type};

/// One collective on one rank.
#[derive(Copy, Clone, Debug)]
pub(crate) struct HostCall {
    /// Which of several equal ones it is, if the recorder says: the same number on all ranks.
    pub(crate) at: Option<i64>,
    /// What it exchanges and with whom.
    pub(crate) what: u64,
    /// The rank inside the process.
    pub(crate) rank: Inside,
    /// When the rank was ready.
    pub(crate) arrived: Time,
    /// When the exchange began.
    pub(crate) began: Time,
    /// When it was over.
    pub(crate) ended: Time,
    /// The event of the exchange.
    pub(crate) event: EventId,
    /// The number of elements that it exchanges, if the recorder says.
    pub(crate) elements: Option<u64>,
}

/// A rank inside a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Inside {
    /// The process is one rank.
    Process,
    /// A replica of a mirrored model, by its number.
    Replica(i64),
    /// A device, by the number that XLA gives it over all processes.
    Device(i64),
}

/// XLA numbers the devices of a process from this times the number of the process.
const DEVICES_OF_PROCESS: i64 = 2_048;

impl Inside {
    /// Its place in the process, as people call it; empty if the process is one rank.
    pub(crate) fn place(self) -> String {
        match self {
            Inside::Process => String::new(),
            Inside::Replica(number) => format!("replica {number}"),
            Inside::Device(number) => format!("device {}", number.rem_euclid(DEVICES_OF_PROCESS)),
        }
    }
}

const ARRIVED: &str = "CollectiveOpV2Kernel::Run";
const RESOLVED: &str = "CollectiveExecutor::CompleteParamsAsync::Done";
const STARTED: &str = "BaseCollectiveExecutor::ExecuteAsync";
const FINISHED: &str = "CollectiveExecutor::ExecuteAsync::Done";
const PARAMETERS: &str = "CollectiveExecutor::CompleteParams";

/// Every collective of the host's own processors.
pub(crate) fn host_calls(trace: &Trace, vocabulary: &Vocabulary) -> Vec<HostCall> {
    let collectives = trace.kinds_where(|kind| vocabulary.host_role(kind) == Role::HostCollective);
    if collectives.is_empty() {
        return Vec::new();
    }
    let mut calls = of_tensorflow(trace, &collectives);
    if calls.is_empty() {
        calls = of_xla(trace, vocabulary, &collectives);
    }
    if calls.is_empty() {
        calls = of_gloo(trace, &collectives);
    }
    calls
}

/// How many ranks a group of TensorFlow's has; `None` if no recorder says.
pub(crate) fn group_size(trace: &Trace) -> Option<u64> {
    let kinds = trace.kinds_where(|kind| trace.kind_name(kind) == PARAMETERS);
    let key = trace.strings().find("group_size").filter(|_| !kinds.is_empty())?;
    let sizes = threads(trace).flat_map(|track| {
        track.events_of(&kinds).filter_map(|(index, _)| trace.args_at(track, index).get(key)?.as_u64())
    });
    sizes.max()
}

/// The times in which collectives were set up, by the track of their exchange.
pub(super) fn set_up(trace: &Trace, vocabulary: &Vocabulary) -> Vec<(TrackId, Vec<Span>)> {
    let mut all: HashMap<TrackId, Vec<Span>, FxBuildHasher> = HashMap::default();
    for call in host_calls(trace, vocabulary).iter().filter(|call| call.arrived < call.began) {
        all.entry(call.event.track).or_default().push(Span::new(call.arrived, call.began));
    }
    all.into_iter().map(|(track, spans)| (track, united(spans))).collect()
}

fn threads(trace: &Trace) -> impl Iterator<Item = &Track> {
    trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread)
}

/// The numbers that link the events of one call of TensorFlow.
#[derive(Default)]
struct Links {
    arrived: HashMap<u64, Time, FxBuildHasher>,
    finished: HashMap<u64, Time, FxBuildHasher>,
    /// The call that an exchange belongs to.
    call_of: HashMap<u64, u64, FxBuildHasher>,
}

impl Links {
    fn of(trace: &Trace) -> Option<Self> {
        let (producer, consumer) = (trace.strings().find("_p")?, trace.strings().find("_c")?);
        let named = |name: &str| trace.kinds_where(|kind| trace.kind_name(kind) == name);
        let (arrived, finished) = (named(ARRIVED), named(FINISHED));
        let (resolved, started) = (named(RESOLVED), named(STARTED));
        let both = trace.kinds_where(|kind| resolved.has(kind) || started.has(kind));
        let mut links = Links::default();
        for track in threads(trace) {
            let number = |index: usize, key| trace.args_at(track, index).get(key)?.as_u64();
            for (index, _) in track.events_of(&arrived) {
                links.arrived.extend(number(index, producer).map(|call| (call, track.start(index))));
            }
            for (index, _) in track.events_of(&finished) {
                links.finished.extend(number(index, consumer).map(|call| (call, track.start(index))));
            }
            let mut open: Option<(Time, u64)> = None;
            for (index, kind) in track.events_of(&both) {
                if resolved.has(kind) {
                    open = number(index, consumer).map(|call| (track.end(index), call));
                } else if let Some((_, call)) = open.filter(|(end, _)| track.start(index) <= *end) {
                    links.call_of.extend(number(index, producer).map(|exchange| (exchange, call)));
                }
            }
        }
        Some(links)
    }
}

fn of_tensorflow(trace: &Trace, collectives: &KindSet) -> Vec<HostCall> {
    let find = |name: &str| trace.strings().find(name);
    let (Some(group), Some(instance)) = (find("group_key"), find("instance_key")) else { return Vec::new() };
    let links = Links::of(trace).unwrap_or_default();
    let link = find("_c");
    let mut calls = Vec::new();
    for track in threads(trace) {
        for (index, kind) in track.events_of(collectives) {
            let (mut of, mut at, mut exchange) = (None, None, None);
            trace.args_at(track, index).visit(|key, value| {
                if key == group {
                    of = value.as_i64();
                } else if key == instance {
                    at = value.as_i64();
                } else if Some(key) == link {
                    exchange = value.as_u64();
                }
            });
            let (Some(of), Some(at)) = (of, at) else { continue };
            let span = track.span_of(index);
            let call = exchange.and_then(|exchange| links.call_of.get(&exchange));
            let arrived = call.and_then(|call| links.arrived.get(call)).filter(|time| **time <= span.start);
            // What follows the exchange runs inside its event.
            let ended = call.and_then(|call| links.finished.get(call));
            let ended = ended.filter(|time| **time > span.start && **time <= span.end);
            calls.push(HostCall {
                at: Some(at),
                what: mixed(FNV_START, &of.to_le_bytes()),
                rank: Inside::Replica(replica_of(trace.kind_name(kind))),
                arrived: arrived.copied().unwrap_or(span.start),
                began: span.start,
                ended: ended.copied().unwrap_or(span.end),
                event: track.event_id(index),
                elements: None,
            });
        }
    }
    number_replicas(&mut calls);
    calls
}

/// The order of replicas in the names of one collective's ops: their scope, else the number at the end.
fn replica_of(name: &str) -> i64 {
    let digits = |text: &str| {
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    if let Some((_, rest)) = name.split_once("replica_") {
        return digits(rest).unwrap_or(0);
    }
    let scope = op_type(name).map_or(name, |op| name[..name.len() - op.len()].trim_end_matches(':'));
    scope.rsplit_once('_').and_then(|(_, last)| digits(last)).unwrap_or(0)
}

/// A process that takes part several times in one collective has that many ranks; any other is one.
fn number_replicas(calls: &mut [HostCall]) {
    calls.sort_by_key(|call| (call.at, call.what, call.rank));
    for same in calls.chunk_by_mut(|a, b| (a.at, a.what) == (b.at, b.what)) {
        let several = same.len() > 1;
        for (number, call) in same.iter_mut().enumerate() {
            call.rank = if several { Inside::Replica(number as i64) } else { Inside::Process };
        }
    }
}

fn of_xla(trace: &Trace, vocabulary: &Vocabulary, collectives: &KindSet) -> Vec<HostCall> {
    let find = |name: &str| trace.strings().find(name);
    let Some(run) = find("run_id") else { return Vec::new() };
    let (ordinal, module) = (find("device_ordinal"), find("hlo_module"));
    let mut calls = Vec::new();
    for track in threads(trace) {
        for (index, kind) in track.events_of(collectives) {
            if !vocabulary.signatures.keys(kind).has(Keys::HloOp) {
                continue;
            }
            let (mut at, mut device) = (None, 0);
            let mut what = mixed(FNV_START, trace.kind_name(kind).as_bytes());
            trace.args_at(track, index).visit(|key, value| {
                if key == run {
                    at = value.as_i64();
                } else if Some(key) == ordinal {
                    device = value.as_i64().unwrap_or(0);
                } else if Some(key) == module {
                    what = mixed(what, value.as_str().unwrap_or_default().as_bytes());
                }
            });
            let Some(at) = at else { continue };
            let (span, event) = (track.span_of(index), track.event_id(index));
            calls.push(whole(Some(at), what, Inside::Device(device), span, event));
        }
    }
    calls
}

fn of_gloo(trace: &Trace, collectives: &KindSet) -> Vec<HostCall> {
    let named = trace.kinds_where(|kind| collectives.has(kind) && trace.kind_name(kind).starts_with("gloo:"));
    let dims: Option<StrId> = trace.strings().find("Input Dims");
    let mut calls = Vec::new();
    for track in threads(trace) {
        for (index, kind) in track.events_of(&named) {
            let mut what = mixed(FNV_START, trace.kind_name(kind).as_bytes());
            let size = dims.and_then(|key| trace.args_at(track, index).get(key));
            let size = size.as_ref().and_then(|size| size.as_str()).unwrap_or_default();
            what = mixed(what, size.as_bytes());
            let call = whole(None, what, Inside::Process, track.span_of(index), track.event_id(index));
            calls.push(HostCall { elements: elements_of(size), ..call });
        }
    }
    calls
}

/// The number of elements in all tensors of a list of dimensions: `[[512, 2], [4]]` has 1,028.
fn elements_of(dims: &str) -> Option<u64> {
    let lists = dims.trim().strip_prefix('[')?.split('[').skip(1).filter_map(|list| list.split(']').next());
    let of_list = |list: &str| {
        let mut sizes = list.split(',').map(|size| size.trim().parse::<u64>());
        sizes.try_fold(1_u64, |all, size| size.ok().and_then(|size| all.checked_mul(size)))
    };
    lists.map(of_list).try_fold(0_u64, |sum, one| sum.checked_add(one?)).filter(|all| *all > 0)
}

/// A call that is nothing but its event.
fn whole(at: Option<i64>, what: u64, rank: Inside, span: Span, event: EventId) -> HostCall {
    let (arrived, ended) = (span.start, span.end);
    HostCall { at, what, rank, arrived, began: arrived, ended, event, elements: None }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use super::*;
    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};

    /// Four steps of a millisecond in which a collective is called at 100 µs, begins at 400 and ends at 700.
    fn recorded(names: &[&str]) -> Trace {
        let mut sketch = Sketch::new();
        let (python, executor, queue) = (
            sketch.thread("python"),
            sketch.thread("tf_Compute/1"),
            sketch.thread("tf_GrpcWorkerEnvQueues/1"),
        );
        let exchanges: Vec<_> = names.iter().map(|_| sketch.thread("collective_ops/1")).collect();
        for step in 0..4 {
            let at = 1_000 * step;
            sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            sketch.event(python, "f", at, 900, &[("tf_function_call", Arg::Text("notTraced-nonXla"))]);
            for (number, (name, exchange)) in names.iter().zip(&exchanges).enumerate() {
                let (call, run) = (100 * step + number as i64, 1_000 + 100 * step + number as i64);
                sketch.event(executor, ARRIVED, at + 100, 1, &[("_p", Arg::Int(call))]);
                let resolved = at + 380 + 4 * number as i64;
                sketch.event(queue, RESOLVED, resolved, 3, &[("_c", Arg::Int(call))]);
                sketch.event(queue, STARTED, resolved + 1, 1, &[("_p", Arg::Int(run))]);
                let keys = [
                    ("group_key", Arg::Int(1)),
                    ("instance_key", Arg::Int(50 + step)),
                    ("_c", Arg::Int(run)),
                ];
                sketch.event(*exchange, &format!("{name}:CollectiveReduceV2"), at + 400, 400, &keys);
                sketch.event(*exchange, FINISHED, at + 700, 90, &[("_c", Arg::Int(call))]);
            }
        }
        sketch.finish()
    }

    #[test]
    fn a_rank_arrives_before_its_exchange_is_set_up_and_leaves_before_what_follows() {
        let trace = recorded(&["sgd/CollectiveReduceV2"]);
        let context = Context::new(&trace, "host");
        let calls = host_calls(&trace, context.vocabulary());
        let times: Vec<(i64, i64, i64)> =
            calls.iter().map(|call| (call.arrived.ps(), call.began.ps(), call.ended.ps())).collect();
        assert_eq!(times[0], (100_000_000, 400_000_000, 700_000_000));
        assert!(calls.iter().all(|call| call.rank == Inside::Process && call.at.is_some()));
        // Setting up is communication, never the rank's own dispatch.
        let communication: Dur =
            context.breakdown().counted().map(|(_, step)| step.shares.get(Category::Communication)).sum();
        assert_eq!(communication, Dur::from_us(4 * 700));
    }

    #[test]
    fn replicas_of_one_process_are_ranks() {
        let trace = recorded(&["sgd/CollectiveReduceV2_1", "sgd/CollectiveReduceV2"]);
        let context = Context::new(&trace, "host");
        let calls = host_calls(&trace, context.vocabulary());
        let ranks: Vec<Inside> = calls.iter().map(|call| call.rank).take(2).collect();
        assert_eq!(ranks, [Inside::Replica(0), Inside::Replica(1)]);
        assert_eq!(
            (elements_of("[[512, 2], [4]]"), elements_of("[]"), elements_of("x")),
            (Some(1_028), None, None)
        );
        assert_eq!(replica_of("replica_2/sgd/CollectiveReduceV2_7:CollectiveReduceV2"), 2);
    }
}
