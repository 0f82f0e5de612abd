//! A run as written by `torch.profiler`: Kineto's Chrome trace, one file per process.

use std::collections::BTreeSet;

use super::{Call, Direction, Event, Kernel, Ns, Place, Run, What};
use crate::chrome::{ChromeEvent, ChromeTrace};

/// The rank and world size of the process, if any.
pub type Rank = Option<(usize, usize)>;

const DEVICE: &str = r#"{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85094825984, "computeMajor": 8, "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 108, "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 166912, "sharedMemPerMultiprocessor": 167936}"#;

/// The file's text.
pub fn write(run: &Run, rank: Rank) -> String {
    write_from(run, rank, None)
}

/// The same with a wall clock: nanoseconds since 1970 at the run's time 0.
pub fn write_from(run: &Run, rank: Rank, wall_ns: Option<Ns>) -> String {
    let devices: BTreeSet<i64> = run.events.iter().filter_map(device_of).collect();
    let listed: Vec<String> =
        devices.iter().map(|device| DEVICE.replacen("\"id\": 0", &format!("\"id\": {device}"), 1)).collect();
    let mut trace = ChromeTrace::new()
        .head("schemaVersion", "1")
        .head("deviceProperties", &format!("[{}]", listed.join(", ")))
        .head("cupti_version", "22");
    if let Some(wall) = wall_ns {
        trace = trace.head("baseTimeNanoseconds", &wall.to_string());
    }
    if let Some((rank, world)) = rank {
        let info = format!(r#"{{"backend": "nccl", "rank": {rank}, "world_size": {world}}}"#);
        trace = trace.head("distributedInfo", &info);
    }
    let mut events: Vec<&Event> = run.events.iter().collect();
    events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
    for event in events {
        if let Some(written) = written(run, event) {
            trace = trace.event(&written);
        }
    }
    named(trace, run, &devices).tail("traceName", "\"trace.json\"").text()
}

fn device_of(event: &Event) -> Option<i64> {
    match event.place {
        Place::Stream { device, .. } => Some(device),
        Place::Thread(_) => None,
    }
}

fn named(mut trace: ChromeTrace, run: &Run, devices: &BTreeSet<i64>) -> ChromeTrace {
    let about = |name: &str, pid: i64, tid: i64, key: &str, text: &str| {
        ChromeEvent::new("M", name).at(pid, tid, "0.000").arg(key, &format!("\"{text}\""))
    };
    trace = trace.event(&about("process_name", run.pid, 0, "name", "python3"));
    trace = trace.event(&about("process_labels", run.pid, 0, "labels", "CPU"));
    for &device in devices {
        trace = trace.event(&about("process_name", device, 0, "name", "python3"));
        trace = trace.event(&about("process_labels", device, 0, "labels", &format!("GPU {device}")));
    }
    let places: BTreeSet<Place> = run.events.iter().map(|event| event.place).collect();
    for place in places {
        let (pid, tid) = row(run, place);
        let name = match place {
            Place::Thread(_) => format!("thread {tid} (python3)"),
            Place::Stream { stream, .. } => format!("stream {stream} "),
        };
        trace = trace.event(&about("thread_name", pid, tid, "name", &name));
    }
    trace
}

fn row(run: &Run, place: Place) -> (i64, i64) {
    match place {
        Place::Thread(number) => (run.pid, run.pid + number),
        Place::Stream { device, stream } => (device, stream),
    }
}

fn written(run: &Run, event: &Event) -> Option<ChromeEvent> {
    let (pid, tid) = row(run, event.place);
    let slice = |name: &str, category: &str| {
        ChromeEvent::slice(name, category, pid, tid, &us(event.start), &us(event.end - event.start))
    };
    let number = event.id.to_string();
    let on_device = |written: ChromeEvent| {
        let (device, stream) = match event.place {
            Place::Stream { device, stream } => (device, stream),
            Place::Thread(_) => (0, 0),
        };
        written
            .arg("External id", &number)
            .arg("device", &device.to_string())
            .arg("context", "1")
            .arg("stream", &stream.to_string())
            .arg("correlation", &number)
    };
    let kernel = |kernel: &Kernel| {
        on_device(slice(kernel.torch, "kernel"))
            .arg("registers per thread", "32")
            .arg("shared memory", "0")
            .arg("grid", &format!("[{}, 1, 1]", kernel.blocks))
            .arg("block", "[256, 1, 1]")
    };
    Some(match &event.what {
        What::Step(number) => slice(&format!("ProfilerStep#{number}"), "user_annotation"),
        What::Request(_) => slice("inference", "user_annotation"),
        What::Range(name) => slice(name, "user_annotation"),
        What::Op(name) => slice(name, "cpu_op").arg("External id", &number),
        What::WaitForBatch => {
            slice("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation")
        }
        What::Compile => slice("compile_fx.<locals>.fw_compiler_base", "dynamo_timed"),
        // No stacks were requested, and nothing is compiled into one function.
        What::Python(_) | What::Function(_) => return None,
        What::Call(call) => {
            slice(call_name(*call), "cuda_runtime").arg("cbid", "211").arg("correlation", &number)
        }
        What::Kernel(of) => kernel(of),
        What::Node(of, node) => kernel(of).arg("graph id", "3").arg("graph node id", &node.to_string()),
        // Kineto always records the kernels of a graph.
        What::Graph => return None,
        What::Copy { direction, pinned, bytes } => {
            let host = if *pinned { "Pinned" } else { "Pageable" };
            let name = match direction {
                Direction::In => format!("Memcpy HtoD ({host} -> Device)"),
                Direction::Out => format!("Memcpy DtoH (Device -> {host})"),
            };
            on_device(slice(&name, "gpu_memcpy")).arg("bytes", &bytes.to_string())
        }
    })
}

/// The runtime's name of a call.
pub(super) fn call_name(call: Call) -> &'static str {
    match call {
        Call::Launch => "cudaLaunchKernel",
        Call::GraphLaunch => "cudaGraphLaunch",
        Call::CopyAsync(_) => "cudaMemcpyAsync",
        Call::StreamSynchronize => "cudaStreamSynchronize",
        Call::DeviceSynchronize => "cudaDeviceSynchronize",
        Call::Malloc => "cudaMalloc",
        Call::Free => "cudaFree",
        Call::EventRecord => "cudaEventRecord",
        Call::StreamWaitEvent => "cudaStreamWaitEvent",
    }
}

fn us(time: Ns) -> String {
    format!("{}.{:03}", time / 1_000, time % 1_000)
}
