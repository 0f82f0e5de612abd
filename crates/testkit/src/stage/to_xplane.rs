//! A run as written by JAX: an XPlane profile with one plane per device, one for the host, and CUDA calls on
//! separate lines.

use std::collections::BTreeMap;

use super::{Call, Direction, Event, Kernel, Ns, Place, Run, What};
use crate::xspace::{XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};

/// The name of a launching call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Calls {
    /// The driver's own name.
    ByName,
    /// The name of what it launches, as in TensorFlow's profiler.
    ByWork,
}

/// The file's bytes.
pub fn write(run: &Run, calls: Calls) -> Vec<u8> {
    let works: BTreeMap<i64, &'static str> = match calls {
        Calls::ByName => BTreeMap::new(),
        Calls::ByWork => run.events.iter().filter_map(|event| Some((event.id, launched(event)?))).collect(),
    };
    let mut host = Plane::new("/host:CPU");
    let mut devices: BTreeMap<i64, Plane> = BTreeMap::new();
    let mut events: Vec<&Event> = run.events.iter().collect();
    events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
    for event in events {
        match event.place {
            Place::Thread(number) => on_thread(&mut host, run.pid + number, event, &works),
            Place::Stream { device, stream } => {
                let plane = devices.entry(device).or_insert_with(|| device_plane(device));
                on_stream(plane, stream, event);
            }
        }
    }
    let planes = devices.into_values().chain([host]).map(|plane| plane.plane).collect();
    XSpace { planes, hostnames: vec!["trainer".to_owned()], ..XSpace::default() }.encode()
}

/// A plane, with the numbers of its names.
pub(super) struct Plane {
    pub(super) plane: XPlane,
    names: BTreeMap<String, i64>,
    stats: BTreeMap<String, i64>,
}

impl Plane {
    pub(super) fn new(name: &str) -> Self {
        Plane { plane: XPlane::named(name), names: BTreeMap::new(), stats: BTreeMap::new() }
    }

    pub(super) fn stat(&mut self, name: &str, value: XValue) -> XStat {
        let next = self.stats.len() as i64 + 1;
        let id = *self.stats.entry(name.to_owned()).or_insert(next);
        if id == next {
            self.plane.stat_metadata.push((id, name.to_owned()));
        }
        XStat::new(id, value)
    }

    fn add(&mut self, line: (i64, &str), name: &str, event: &Event, stats: Vec<XStat>) {
        self.put(line, name, (event.start, event.end), stats);
    }

    pub(super) fn put(&mut self, line: (i64, &str), name: &str, (start, end): (Ns, Ns), stats: Vec<XStat>) {
        let next = self.names.len() as i64 + 1;
        let id = *self.names.entry(name.to_owned()).or_insert(next);
        if id == next {
            self.plane.event_metadata.push((id, XEventMetadata::named(name)));
        }
        let at = self.plane.lines.iter().position(|known| known.id == line.0).unwrap_or_else(|| {
            self.plane.lines.push(XLine { id: line.0, name: line.1.to_owned(), ..XLine::default() });
            self.plane.lines.len() - 1
        });
        let mut made = XEvent::at(start * 1_000, (end - start) * 1_000, id);
        made.stats = stats;
        self.plane.lines[at].events.push(made);
    }
}

fn device_plane(device: i64) -> Plane {
    let mut plane = Plane::new(&format!("/device:GPU:{device}"));
    plane.plane.id = device;
    for (name, value) in [
        ("device_vendor", XValue::Str("Nvidia".to_owned())),
        ("gpu_device_name", XValue::Str("NVIDIA A100-SXM4-80GB".to_owned())),
        ("clock_rate", XValue::Int64(1_410_000)),
        ("core_count", XValue::Int64(108)),
        ("memory_bandwidth", XValue::UInt64(2_039_000_000_000)),
        ("memory_size", XValue::UInt64(85_094_825_984)),
        ("compute_cap_major", XValue::Int64(8)),
        ("compute_cap_minor", XValue::Int64(0)),
    ] {
        let stat = plane.stat(name, value);
        plane.plane.stats.push(stat);
    }
    plane
}

/// The name of what a single call launches.
fn launched(event: &Event) -> Option<&'static str> {
    match &event.what {
        What::Kernel(kernel) => Some(kernel.xla),
        What::Copy { direction: Direction::In, .. } => Some("MemcpyH2D"),
        What::Copy { direction: Direction::Out, .. } => Some("MemcpyD2H"),
        _ => None,
    }
}

fn on_thread(host: &mut Plane, tid: i64, event: &Event, works: &BTreeMap<i64, &'static str>) {
    let python = (tid, "python");
    match &event.what {
        What::Step(number) => {
            let stats =
                vec![host.stat("step_num", XValue::Int64(*number)), host.stat("_r", XValue::Int64(1))];
            host.add(python, "train", event, stats);
        }
        What::Request(_) => host.add(python, "inference", event, Vec::new()),
        What::Range(name) => host.add(python, name, event, Vec::new()),
        What::Function(name) => host.add(python, &format!("PjitFunction({name})"), event, Vec::new()),
        What::WaitForBatch => host.add(python, "$loader.py:57 next_batch", event, Vec::new()),
        What::Python(function) => host.add(python, &format!("$train.py:31 {function}"), event, Vec::new()),
        What::Compile => host.add(python, "backend_compile", event, Vec::new()),
        What::Call(call) => {
            let mut stats = vec![host.stat("correlation_id", XValue::Int64(event.id))];
            let line = format!("Host Threads/{tid}");
            let starts = matches!(call, Call::Launch | Call::CopyAsync(_));
            let work = works.get(&event.id).filter(|_| starts);
            if work.is_some() {
                stats.push(host.stat("context_id", XValue::Int64(1)));
            }
            host.add((tid + 100_000, &line), work.unwrap_or(&call_name(*call)), event, stats);
        }
        // XLA fused the ops into its programs.
        _ => {}
    }
}

fn on_stream(plane: &mut Plane, stream: i64, event: &Event) {
    let line = format!("Stream #{stream}(Compute,MemcpyH2D)");
    let mut stats = vec![plane.stat("correlation_id", XValue::Int64(event.id))];
    let name = match &event.what {
        What::Kernel(kernel) | What::Node(kernel, _) => {
            stats.push(plane.stat("kernel_details", XValue::Str(details(kernel))));
            stats.push(plane.stat("hlo_module", XValue::Str("jit_train_step".to_owned())));
            if matches!(event.what, What::Node(..)) {
                stats.push(plane.stat("cuda_graph_id", XValue::UInt64(3)));
            }
            kernel.xla
        }
        What::Copy { direction, pinned, bytes } => {
            let host = if *pinned { "pinned" } else { "pageable" };
            let (name, from, to) = match direction {
                Direction::In => ("MemcpyH2D", host, "device"),
                Direction::Out => ("MemcpyD2H", "device", host),
            };
            let text = format!("kind_src:{from} kind_dst:{to} size:{bytes} dest:0 async:1");
            stats.push(plane.stat("memcpy_details", XValue::Str(text)));
            name
        }
        _ => return,
    };
    plane.add((stream, &line), name, event, stats);
}

fn details(kernel: &Kernel) -> String {
    let blocks = kernel.blocks;
    format!("regs:32 static_shared:0 dynamic_shared:0 grid:{blocks},1,1 block:256,1,1 occ_pct:100")
}

/// The driver's name of a call.
fn call_name(call: Call) -> &'static str {
    match call {
        Call::Launch => "cuLaunchKernel",
        Call::GraphLaunch => "cuGraphLaunch",
        Call::CopyAsync(Direction::In) => "cuMemcpyHtoDAsync_v2",
        Call::CopyAsync(Direction::Out) => "cuMemcpyDtoHAsync_v2",
        Call::StreamSynchronize => "cuStreamSynchronize",
        Call::DeviceSynchronize => "cuCtxSynchronize",
        Call::Malloc => "cuMemAlloc_v2",
        Call::Free => "cuMemFree_v2",
        Call::EventRecord => "cuEventRecord",
        Call::StreamWaitEvent => "cuStreamWaitEvent",
    }
}
