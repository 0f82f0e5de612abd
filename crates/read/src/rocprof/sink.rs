//! Records of rocprofv3 as events: kernels and copies on queues of GPUs, calls and markers on threads. Names and arguments
//! are spelt as in Kineto, so that everything that works for Kineto's traces also works here.

use rustc_hash::FxHashMap;
use stepscope_trace::{
    Clock, Datum, Device, DeviceKind, Dur, Form, Kind, NoteKind, ProcessId, ProcessKind, StrId, Time, Trace,
    TraceBuilder, TrackId, TrackKind,
};

/// Beyond this many tracks, all new ones share one.
const MOST_TRACKS: usize = 1 << 14;

/// What a record is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sort {
    Kernel,
    Copy,
    Hip,
    Hsa,
    Marker,
    Rccl,
    Other,
}

impl Sort {
    /// The category in Kineto's traces, which call HIP's functions so, too.
    fn category(self) -> &'static str {
        match self {
            Sort::Kernel => "kernel",
            Sort::Copy => "gpu_memcpy",
            Sort::Hip => "cuda_runtime",
            Sort::Hsa => "hsa_api",
            Sort::Marker => "user_annotation",
            Sort::Rccl => "rccl_api",
            Sort::Other => "rocprofiler",
        }
    }
}

/// Where a record belongs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Thread {
        pid: i64,
        tid: i64,
    },
    /// A queue of the GPU with this number in the file.
    Queue {
        agent: i64,
        queue: i64,
    },
    /// Copies of a GPU.
    Copies {
        agent: i64,
    },
}

/// A GPU as the file describes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Agent {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) units: Option<u32>,
    pub(super) clock_mhz: Option<u64>,
    pub(super) wave: Option<u32>,
    pub(super) waves_per_unit: Option<u32>,
    pub(super) local_bytes: Option<u64>,
}

/// The launch of a kernel; sizes count threads.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Launch {
    pub(super) grid: [i64; 3],
    pub(super) group: [i64; 3],
    pub(super) registers: Option<i64>,
    pub(super) local_bytes: Option<i64>,
}

/// One record.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) sort: Sort,
    pub(super) place: Place,
    pub(super) name: StrId,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) correlation: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) bytes: Option<i64>,
    pub(super) launch: Option<Launch>,
}

/// The trace as read so far.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) builder: TraceBuilder,
    pub(super) agents: FxHashMap<i64, Agent>,
    pub(super) thread_names: FxHashMap<i64, StrId>,
    pub(super) records: u64,
    pub(super) process_name: StrId,
    tracks: FxHashMap<Place, TrackId>,
    hosts: FxHashMap<i64, ProcessId>,
    devices: FxHashMap<i64, ProcessId>,
    origin: Option<i64>,
    negative: u64,
}

impl Sink {
    pub(super) fn text(&mut self, text: &str) -> StrId {
        self.builder.strings.intern(text)
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: &Record) {
        self.records += 1;
        let origin = *self.origin.get_or_insert(record.start);
        let track = self.track(record.place);
        let category = self.builder.strings.intern(record.sort.category());
        let form = if record.sort == Sort::Marker && record.end <= record.start {
            Form::Instant
        } else {
            Form::Slice
        };
        let kind = self.builder.kind(Kind { category, form, ..Kind::slice(record.name) });
        let mut own = Vec::with_capacity(3);
        let mut put = |sink: &mut Sink, key: &str, value: Option<i64>| {
            own.extend(value.map(|value| (sink.builder.strings.intern(key), Datum::Int(value))));
        };
        put(self, "correlation", record.correlation);
        put(self, "stream", record.stream);
        put(self, "bytes", record.bytes);
        let shared = record.launch.map(|launch| self.launch(&launch)).unwrap_or_default();
        let args =
            if own.is_empty() && shared.is_empty() { None } else { self.builder.arena.push(&own, &shared) };
        self.negative += u64::from(record.end < record.start);
        let start = Time::from_ns(record.start.saturating_sub(origin));
        let dur = Dur::from_ns(record.end.saturating_sub(record.start).max(0));
        self.builder.event(track, start, dur, kind, args);
    }

    /// A launch as Kineto writes it: the grid counts blocks.
    fn launch(&mut self, launch: &Launch) -> Vec<(StrId, Datum)> {
        let blocks: Vec<i64> = launch
            .grid
            .iter()
            .zip(&launch.group)
            .map(
                |(&all, &one)| {
                    if one > 0 { all.max(0).unsigned_abs().div_ceil(one.unsigned_abs()) as i64 } else { 0 }
                },
            )
            .collect();
        let mut args = Vec::with_capacity(4);
        for (key, sides) in [("grid", &blocks[..]), ("block", &launch.group[..])] {
            if sides.iter().all(|&side| side > 0) {
                let text = format!("{sides:?}");
                args.push((
                    self.builder.strings.intern(key),
                    Datum::Json(self.builder.strings.intern(&text)),
                ));
            }
        }
        let numbers = [("registers per thread", launch.registers), ("shared memory", launch.local_bytes)];
        for (key, value) in numbers {
            args.extend(value.map(|value| (self.builder.strings.intern(key), Datum::Int(value))));
        }
        args
    }

    fn track(&mut self, place: Place) -> TrackId {
        if let Some(&track) = self.tracks.get(&place) {
            return track;
        }
        let place = if self.tracks.len() < MOST_TRACKS { place } else { Place::Thread { pid: 0, tid: 0 } };
        let (process, name, kind, number) = match place {
            Place::Thread { pid, tid } => {
                let known = self.thread_names.get(&tid).copied();
                let name = known.unwrap_or_else(|| self.builder.strings.intern(&format!("thread {tid}")));
                (self.host(pid), name, TrackKind::Thread, tid)
            }
            Place::Queue { agent, queue } => {
                let name = self.builder.strings.intern(&format!("queue {queue}"));
                (self.device(agent), name, TrackKind::Stream, queue)
            }
            Place::Copies { agent } => {
                (self.device(agent), self.builder.strings.intern("copies"), TrackKind::Stream, -1)
            }
        };
        let track = self.builder.track(process, name, kind, number, TraceBuilder::ARENA);
        self.tracks.insert(place, track);
        track
    }

    fn host(&mut self, pid: i64) -> ProcessId {
        let (builder, name) = (&mut self.builder, self.process_name);
        *self.hosts.entry(pid).or_insert_with(|| builder.process(name, ProcessKind::Host, pid))
    }

    fn device(&mut self, agent: i64) -> ProcessId {
        let number = self.agents.get(&agent).map_or(agent, |agent| agent.number);
        let builder = &mut self.builder;
        *self.devices.entry(agent).or_insert_with(|| {
            let name = builder.strings.intern(&format!("GPU {number}"));
            builder.process(name, ProcessKind::Device, number)
        })
    }

    /// Describes the GPUs that worked, and freezes the trace.
    pub(super) fn finish(mut self) -> Trace {
        let mut used: Vec<(i64, ProcessId)> =
            self.devices.iter().map(|(&agent, &process)| (agent, process)).collect();
        used.sort_unstable_by_key(|(_, process)| *process);
        for (id, process) in used {
            let agent = self.agents.get(&id).cloned().unwrap_or(Agent { number: id, ..Agent::default() });
            let name = self.builder.strings.intern(&agent.name);
            let vendor = self.builder.strings.intern("AMD");
            self.builder.device(Device {
                name,
                process: Some(process),
                vendor: Some(vendor),
                multiprocessors: agent.units,
                clock_khz: agent.clock_mhz.map(|mhz| mhz.saturating_mul(1_000)),
                warp_size: agent.wave,
                max_threads_per_multiprocessor: agent
                    .waves_per_unit
                    .zip(agent.wave)
                    .map(|(a, b)| a.saturating_mul(b)),
                shared_memory_per_multiprocessor: agent.local_bytes,
                ..Device::new(DeviceKind::Gpu, agent.number)
            });
        }
        self.builder.start_at_first();
        self.builder.clock = Clock { wall_ns_at_origin: None, resolution: Dur::from_ns(1) };
        self.builder.note(NoteKind::NegativeDuration, "", self.negative, None);
        self.builder.finish()
    }
}

/// What Kineto calls a copy: `MEMORY_COPY_HOST_TO_DEVICE` is `Memcpy HtoD`.
pub(super) fn copy_name(operation: &str) -> &'static str {
    let side = |text: &str| if text.contains("HOST") { 'H' } else { 'D' };
    match operation.split_once("_TO_").map(|(from, to)| (side(from), side(to))) {
        Some(('H', 'D')) => "Memcpy HtoD",
        Some(('D', 'H')) => "Memcpy DtoH",
        Some(('H', 'H')) => "Memcpy HtoH",
        Some(_) => "Memcpy DtoD",
        None => "Memcpy",
    }
}
