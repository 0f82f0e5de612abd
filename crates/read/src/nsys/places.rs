//! Places: the process, thread, device and stream of a row, and the tracks created for them.

use rustc_hash::FxHashMap;
use stepscope_trace::{
    ArgSourceId, DeviceId, ProcessId, ProcessKind, StrId, TraceBuilder, TrackId, TrackKind,
};

use super::database::Database;
use super::names::Names;

/// The process and thread encoded in a `globalTid`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub pid: i64,
    pub tid: i64,
}

impl Thread {
    pub fn of(global: i64) -> Self {
        Thread { pid: pid_of(global), tid: global & 0xff_ffff }
    }
}

/// The process encoded in a `globalPid` or `globalTid`.
pub(super) fn pid_of(global: i64) -> i64 {
    (global >> 24) & 0xff_ffff
}

/// What a row of the timeline shows; one track each.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Row {
    /// Calls of a thread.
    Thread(Thread),
    /// A thread's time in system libraries: mostly waits, so it does not count as work.
    SystemCalls(Thread),
    /// Sampled positions of a thread.
    Samples(Thread),
    /// Ranges that start on one thread and end on another.
    Ranges { pid: i64 },
    /// Page faults of a process's own code.
    HostFaults { pid: i64 },
    /// A queue of a device.
    Stream { pid: i64, device: i64, stream: i64 },
    /// Waits for a device queue.
    Waits { pid: i64, device: i64, stream: i64 },
    /// Page faults of a device.
    DeviceFaults { pid: i64, device: i64 },
    /// Device memory held by a process.
    Memory { pid: i64, device: i64 },
    /// A sampled GPU metric.
    Metric { gpu: i64, metric: i64, name: StrId },
}

/// All tracks and processes created so far.
#[derive(Default)]
pub(super) struct Places {
    tracks: FxHashMap<Row, TrackId>,
    hosts: FxHashMap<i64, ProcessId>,
    /// By process and the process's own device number.
    devices: FxHashMap<(i64, i64), ProcessId>,
    process_names: FxHashMap<i64, StrId>,
    thread_names: FxHashMap<Thread, StrId>,
    /// The GPU of the machine for a process's device number.
    gpus: FxHashMap<(i64, i64), i64>,
    /// The first user of each GPU: process and the process's own device number.
    users: FxHashMap<i64, (i64, i64)>,
    /// The only device of each process; `None` if it has several.
    only_devices: FxHashMap<i64, Option<i64>>,
    /// Processes, numbered in order of appearance.
    pids: FxHashMap<i64, i64>,
    last: Option<(Row, TrackId)>,
}

impl Places {
    /// Reads the names of processes and threads and the numbering of devices.
    pub fn read(database: &Database, names: &mut Names, builder: &mut TraceBuilder) -> Self {
        let mut places = Places::default();
        database.rows("PROCESSES", &["globalPid", "pid", "name"], |row| {
            let pid = row.int(0).map(pid_of).or(row.int(1));
            if let (Some(pid), Some(name)) = (pid, row.text(2)) {
                places.process_names.insert(pid, builder.strings.intern(&name));
            }
        });
        database.rows("ThreadNames", &["globalTid", "nameId"], |row| {
            if let Some(global) = row.int(0) {
                let name = names.get(row.int(1), builder);
                places.thread_names.insert(Thread::of(global), name);
            }
        });
        database.rows("TARGET_INFO_CUDA_DEVICE", &["pid", "cudaId", "gpuId"], |row| {
            if let (Some(pid), Some(cuda), Some(gpu)) = (row.int(0), row.int(1), row.int(2)) {
                places.gpus.insert((pid & 0xff_ffff, cuda), gpu);
            }
        });
        places
    }

    /// The track of a row. Rows of one place follow each other, so the last one is cached.
    pub fn track(&mut self, row: Row, builder: &mut TraceBuilder) -> TrackId {
        if let Some((last, track)) = self.last
            && last == row
        {
            return track;
        }
        let track = match self.tracks.get(&row) {
            Some(&track) => track,
            None => {
                let track = self.make(row, builder);
                self.tracks.insert(row, track);
                track
            }
        };
        self.last = Some((row, track));
        track
    }

    fn make(&mut self, row: Row, builder: &mut TraceBuilder) -> TrackId {
        let (process, name, kind, number) = match row {
            Row::Thread(thread) => (
                self.host(thread.pid, builder),
                self.thread_name(thread, builder),
                TrackKind::Thread,
                thread.tid,
            ),
            Row::SystemCalls(thread) | Row::Samples(thread) => {
                let what = if matches!(row, Row::Samples(_)) { "CPU samples" } else { "OS runtime" };
                let name = format!("{} · {what}", self.thread_name(thread, builder));
                (self.host(thread.pid, builder), name, TrackKind::Derived, thread.tid)
            }
            Row::Ranges { pid } => (self.host(pid, builder), "NVTX ranges".into(), TrackKind::Async, 0),
            Row::HostFaults { pid } => {
                (self.host(pid, builder), "Unified memory page faults".into(), TrackKind::Derived, 0)
            }
            Row::Stream { pid, device, stream } => {
                let name = if stream < 0 { "unified memory".into() } else { format!("stream {stream}") };
                (self.device(pid, device, builder), name, TrackKind::Stream, stream)
            }
            Row::Waits { pid, device, stream } => {
                let name =
                    if stream < 0 { "synchronisation".into() } else { format!("stream {stream} · waits") };
                (self.device(pid, device, builder), name, TrackKind::Derived, stream)
            }
            Row::DeviceFaults { pid, device } => {
                let name = "Unified memory page faults".into();
                (self.device(pid, device, builder), name, TrackKind::Derived, 0)
            }
            Row::Memory { pid, device } => {
                let name = "Device memory allocated (bytes)".into();
                (self.device(pid, device, builder), name, TrackKind::Counter, 0)
            }
            Row::Metric { gpu, metric, name } => {
                let name = builder.strings.get(name).to_owned();
                (self.any_device(gpu, builder), name, TrackKind::Counter, metric)
            }
        };
        let name = builder.strings.intern(&name);
        builder.track(process, name, kind, number, ArgSourceId::default())
    }

    fn thread_name(&self, thread: Thread, builder: &TraceBuilder) -> String {
        match self.thread_names.get(&thread).map(|&name| builder.strings.get(name)) {
            Some(name) if !name.is_empty() => format!("{name} ({})", thread.tid),
            _ => format!("thread {}", thread.tid),
        }
    }

    fn host(&mut self, pid: i64, builder: &mut TraceBuilder) -> ProcessId {
        let name = self.process_names.get(&pid).copied().filter(|&name| name != StrId::default());
        *self.hosts.entry(pid).or_insert_with(|| {
            let name = name.unwrap_or_else(|| builder.strings.intern(&format!("process {pid}")));
            builder.process(name, ProcessKind::Host, pid)
        })
    }

    fn device(&mut self, pid: i64, device: i64, builder: &mut TraceBuilder) -> ProcessId {
        if let Some(&known) = self.devices.get(&(pid, device)) {
            return known;
        }
        let gpu = self.gpu(pid, device);
        let name = builder.strings.intern(&format!("GPU {gpu}"));
        let process = builder.process(name, ProcessKind::Device, gpu);
        self.devices.insert((pid, device), process);
        let first = self.users.entry(gpu).or_insert((pid, device));
        *first = (pid, device).min(*first);
        self.only_devices.entry(pid).and_modify(|only| *only = None).or_insert(Some(device));
        process
    }

    /// The first process that uses a GPU; a new one if there is none.
    fn any_device(&mut self, gpu: i64, builder: &mut TraceBuilder) -> ProcessId {
        match self.users.get(&gpu).copied() {
            Some((pid, device)) => self.device(pid, device, builder),
            None => self.device(-1, gpu, builder),
        }
    }

    /// The device that a process really uses. Rows about waits always contain 0; if a process only works on one
    /// other device, it is that one.
    pub(crate) fn device_in_use(&self, pid: i64, device: i64) -> i64 {
        self.only_devices.get(&pid).copied().flatten().unwrap_or(device)
    }

    fn gpu(&self, pid: i64, device: i64) -> i64 {
        self.gpus.get(&(pid, device)).copied().unwrap_or(device)
    }

    /// A correlation id that is unique in the whole trace, because each process numbers its own.
    pub fn correlation(&mut self, pid: i64, id: i64) -> i64 {
        let next = self.pids.len() as i64;
        id | *self.pids.entry(pid).or_insert(next) << 32
    }

    /// Assigns every process that holds a device's queues to its device, and distinguishes processes that share
    /// one.
    pub(crate) fn tie_devices(
        &self,
        mut device_of: impl FnMut(i64) -> Option<DeviceId>,
        builder: &mut TraceBuilder,
    ) {
        let mut users: FxHashMap<i64, u32> = FxHashMap::default();
        for &(pid, device) in self.devices.keys() {
            *users.entry(self.gpu(pid, device)).or_default() += 1;
        }
        for (&(pid, device), &process) in &self.devices {
            let gpu = self.gpu(pid, device);
            if users.get(&gpu).is_some_and(|&count| count > 1) {
                let name = builder.strings.intern(&format!("GPU {gpu} (process {pid})"));
                builder.process_mut(process).name = name;
            }
            builder.process_mut(process).device = device_of(gpu);
        }
    }

    /// The GPUs that did any work, with the process that holds their queues.
    pub(crate) fn used_gpus(&self) -> Vec<(i64, ProcessId)> {
        let mut used: Vec<_> =
            self.devices.iter().map(|(&(pid, device), &process)| (self.gpu(pid, device), process)).collect();
        used.sort_unstable();
        used.dedup_by_key(|&mut (gpu, _)| gpu);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_global_thread_id_packs_process_and_thread() {
        assert_eq!(Thread::of(285_169_118_567_452), Thread { pid: 220_188, tid: 220_188 });
        assert_eq!(pid_of(285_169_118_347_264), 220_188);
        assert_eq!(Thread::of(-1), Thread { pid: 0xff_ffff, tid: 0xff_ffff });
    }
}
