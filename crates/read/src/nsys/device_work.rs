//! Device work: kernels, copies, fills, and graphs that were recorded as a whole.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Form, NoteKind, StrId, TraceBuilder};

use super::database::Fields;
use super::names::{copy_name, memory_kind};
use super::places::{Row, pid_of};
use super::{Import, OddTimes, some_int, waits};

/// The keys of arguments, in Kineto's spelling.
pub(super) struct Keys {
    correlation: StrId,
    device: StrId,
    context: StrId,
    stream: StrId,
    bytes: StrId,
    graph_node: StrId,
    graph: StrId,
}

impl Keys {
    fn new(builder: &mut TraceBuilder) -> Self {
        let mut key = |name: &str| builder.strings.intern(name);
        Keys {
            correlation: key("correlation"),
            device: key("device"),
            context: key("context"),
            stream: key("stream"),
            bytes: key("bytes"),
            graph_node: key("graph node id"),
            graph: key("graph id"),
        }
    }
}

/// Columns of all device work, in the order that [`Queue::of`] expects.
const QUEUE: [&str; 7] = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"];

/// The queue on which a row's work ran.
pub(super) struct Queue {
    pub pid: i64,
    pub device: i64,
    context: Option<i64>,
    pub stream: Option<i64>,
    pub correlation: Option<i64>,
}

impl Queue {
    pub fn of(row: &Fields) -> Self {
        Queue {
            pid: row.int(2).map_or(0, pid_of),
            device: row.int(3).unwrap_or(0),
            context: row.int(4),
            // Migrations of unified memory belong to no stream; profilers write the largest number.
            stream: row.int(5).filter(|&stream| stream < i64::from(u32::MAX)),
            correlation: row.int(6).filter(|&id| id > 0),
        }
    }

    fn row(&self) -> Row {
        Row::Stream { pid: self.pid, device: self.device, stream: self.stream.unwrap_or(-1) }
    }

    fn shared(&self, keys: &Keys) -> impl Iterator<Item = (StrId, Datum)> {
        let device = Some((keys.device, Datum::Int(self.device)));
        [device, some_int(keys.context, self.context), some_int(keys.stream, self.stream)]
            .into_iter()
            .flatten()
    }
}

/// Reads all device work.
pub(super) fn read(import: &mut Import) {
    let keys = Keys::new(&mut import.builder);
    read_kernels(import, &keys);
    read_copies(import, &keys);
    read_fills(import, &keys);
    read_graphs(import, &keys);
    waits::read(import, &keys);
}

/// The columns of device work, and `more`.
pub(super) fn columns<const N: usize>(more: [&'static str; N]) -> Vec<&'static str> {
    QUEUE.into_iter().chain(more).collect()
}

pub(super) fn own_of(import: &mut Import, queue: &Queue, keys: &Keys) -> Option<(StrId, Datum)> {
    let id = queue.correlation?;
    Some((keys.correlation, Datum::Int(import.places.correlation(queue.pid, id))))
}

/// The launch configuration of kernels: each distinct shape is one string.
struct Shapes {
    grid: StrId,
    block: StrId,
    cluster: StrId,
    registers: StrId,
    shared_memory: StrId,
    local_memory: StrId,
    known: FxHashMap<[i64; 3], StrId>,
}

impl Shapes {
    fn new(builder: &mut TraceBuilder) -> Self {
        let mut key = |name: &str| builder.strings.intern(name);
        Shapes {
            grid: key("grid"),
            block: key("block"),
            cluster: key("cluster"),
            registers: key("registers per thread"),
            shared_memory: key("shared memory"),
            local_memory: key("local memory per thread"),
            known: FxHashMap::default(),
        }
    }

    /// Three fields starting at `first`; `None` if the export does not have them.
    fn shape(&mut self, row: &Fields, first: usize, builder: &mut TraceBuilder) -> Option<Datum> {
        let shape = [row.int(first)?, row.int(first + 1).unwrap_or(1), row.int(first + 2).unwrap_or(1)];
        if shape == [0; 3] {
            return None;
        }
        let [x, y, z] = shape;
        let text =
            self.known.entry(shape).or_insert_with(|| builder.strings.intern(&format!("[{x}, {y}, {z}]")));
        Some(Datum::Json(*text))
    }

    fn args(&mut self, row: &Fields, out: &mut Vec<(StrId, Datum)>, builder: &mut TraceBuilder) {
        let shapes = [(self.grid, 12), (self.block, 15), (self.cluster, 22)];
        for (key, first) in shapes {
            out.extend(self.shape(row, first, builder).map(|shape| (key, shape)));
        }
        out.extend(some_int(self.registers, row.int(9)));
        // A block uses what it was compiled with plus what the launch added.
        let asked = row.int(18).into_iter().chain(row.int(19)).reduce(i64::saturating_add);
        out.extend(some_int(self.shared_memory, asked));
        out.extend(some_int(self.local_memory, row.int(20).filter(|&bytes| bytes > 0)));
    }
}

const KERNELS: &str = "CUPTI_ACTIVITY_KIND_KERNEL";

fn read_kernels(import: &mut Import, keys: &Keys) {
    if !import.has_times(KERNELS) {
        return;
    }
    let columns = columns([
        "demangledName",
        "shortName",
        "registersPerThread",
        "graphNodeId",
        "graphId",
        "gridX",
        "gridY",
        "gridZ",
        "blockX",
        "blockY",
        "blockZ",
        "staticSharedMemory",
        "dynamicSharedMemory",
        "localMemoryPerThread",
        "mangledName",
        "clusterX",
        "clusterY",
        "clusterZ",
    ]);
    let category = import.intern("kernel");
    let mut shapes = Shapes::new(&mut import.builder);
    let mut odd = OddTimes::default();
    let mut shared = Vec::new();
    let outcome = import.database.rows(KERNELS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let queue = Queue::of(row);
        let name = import.names.get(row.int(7).or(row.int(8)).or(row.int(21)), &mut import.builder);
        shared.clear();
        shared.extend(queue.shared(keys));
        shapes.args(row, &mut shared, &mut import.builder);
        let own = [
            own_of(import, &queue, keys),
            some_int(keys.graph_node, row.int(10).filter(|&id| id != 0)),
            some_int(keys.graph, row.int(11).filter(|&id| id != 0)),
        ];
        let own: Vec<_> = own.into_iter().flatten().collect();
        let args = import.builder.arena.push(&own, &shared);
        let kind = import.kind(name, category, Form::Slice);
        let track = import.places.track(queue.row(), &mut import.builder);
        import.event(track, times, kind, args);
    });
    odd.note(KERNELS, &mut import.builder);
    import.settle(KERNELS, outcome);
}

const COPIES: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";

fn read_copies(import: &mut Import, keys: &Keys) {
    if !import.has_times(COPIES) {
        return;
    }
    let columns = columns(["bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"]);
    let category = import.intern("gpu_memcpy");
    let mut kinds = FxHashMap::default();
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(COPIES, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let queue = Queue::of(row);
        let sort = (row.int(8), row.int(9), row.int(10));
        let kind = *kinds.entry(sort).or_insert_with(|| {
            let name = import.intern(&copy_name(sort.0, sort.1, sort.2));
            import.kind(name, category, Form::Slice)
        });
        let own = [
            own_of(import, &queue, keys),
            some_int(keys.bytes, row.int(7)),
            some_int(keys.graph_node, row.int(11).filter(|&id| id != 0)),
        ];
        push(import, &queue, own, keys, |import, args| {
            let track = import.places.track(queue.row(), &mut import.builder);
            import.event(track, times, kind, args);
        });
    });
    odd.note(COPIES, &mut import.builder);
    import.settle(COPIES, outcome);
}

/// Stores an event's arguments and returns their location.
pub(super) fn push<const N: usize>(
    import: &mut Import,
    queue: &Queue,
    own: [Option<(StrId, Datum)>; N],
    keys: &Keys,
    then: impl FnOnce(&mut Import, Option<u64>),
) {
    let own: Vec<_> = own.into_iter().flatten().collect();
    let shared: Vec<_> = queue.shared(keys).collect();
    let args = import.builder.arena.push(&own, &shared);
    then(import, args);
}

const FILLS: &str = "CUPTI_ACTIVITY_KIND_MEMSET";

fn read_fills(import: &mut Import, keys: &Keys) {
    if !import.has_times(FILLS) {
        return;
    }
    let columns = columns(["bytes", "memKind", "graphNodeId"]);
    let category = import.intern("gpu_memset");
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(FILLS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let queue = Queue::of(row);
        let memory = row.int(8).and_then(memory_kind).unwrap_or("Unknown");
        let name = import.intern(&format!("Memset ({memory})"));
        let kind = import.kind(name, category, Form::Slice);
        let own = [
            own_of(import, &queue, keys),
            some_int(keys.bytes, row.int(7)),
            some_int(keys.graph_node, row.int(9).filter(|&id| id != 0)),
        ];
        push(import, &queue, own, keys, |import, args| {
            let track = import.places.track(queue.row(), &mut import.builder);
            import.event(track, times, kind, args);
        });
    });
    odd.note(FILLS, &mut import.builder);
    import.settle(FILLS, outcome);
}

const GRAPHS: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

/// Graphs that were only recorded as a whole: one piece of work each, and a note about the better option.
fn read_graphs(import: &mut Import, keys: &Keys) {
    if !import.has_times(GRAPHS) {
        return;
    }
    let columns = columns(["graphId", "graphExecId"]);
    let category = import.intern("cuda_graph");
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(GRAPHS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let queue = Queue::of(row);
        let graph = row.int(7).or(row.int(8));
        let name = import.intern(&graph.map_or("CUDA graph".into(), |graph| format!("CUDA graph {graph}")));
        let kind = import.kind(name, category, Form::Slice);
        let own = [own_of(import, &queue, keys), some_int(keys.graph, graph)];
        push(import, &queue, own, keys, |import, args| {
            let track = import.places.track(queue.row(), &mut import.builder);
            import.event(track, times, kind, args);
        });
    });
    odd.note(GRAPHS, &mut import.builder);
    import.builder.note(NoteKind::CollectionWarning, WHOLE_GRAPHS, outcome.rows, None);
    import.settle(GRAPHS, outcome);
}

const WHOLE_GRAPHS: &str =
    "CUDA graphs were recorded as a whole; use nsys profile --cuda-graph-trace=node to record their kernels";
