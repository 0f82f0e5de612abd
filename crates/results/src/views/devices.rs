//! `stepscope devices`: how busy each device is, and why it is idle; streams, overlap, bytes moved each way, the longest gaps.

use serde_json::json;
use stepscope_analyze::Analysis;
use stepscope_analyze::Category;
use stepscope_analyze::devices::gpu_samples::{GpuSamples, GpuSamplesPartial, Sampled, Wall, may_be_of};
use stepscope_analyze::devices::{DeviceUse, Devices, DevicesPartial, Gap, Moved};
use stepscope_analyze::vocabulary::has_timeline;
use stepscope_analyze::work::gpu_specs::peaks_of;
use stepscope_trace::{DeviceKind, Dur};

use super::{Group, Hosts, View, each_host};
use crate::format::{bytes, duration_ms, middle_cut, percent, plural, short};
use crate::gpu_samples;
use crate::table::{Cell, Field, Table, columns, described};
use crate::words::terms;

/// Number of gaps shown below the table.
const GAPS_SHOWN: usize = 5;
/// Number of devices described below the table.
const DESCRIBED: usize = 4;
/// Width of an event's name in a line.
const NAME: usize = 48;
const DIRECTIONS: [&str; 3] = ["in", "out", "device"];

pub(super) const VIEW: View = View {
    name: "devices",
    title: "Devices",
    group: Group::Hardware,
    question: "How busy were the devices?",
    about: "Show devices: busy and idle time with reasons, streams, overlap, bytes moved, longest gaps",
    after_help: "Examples:\n  \
        stepscope devices logs/          every device of the newest session\n  \
        stepscope devices logs/ --json   all gaps, each with its breakdown",
    record: &[
        "NVIDIA: CUPTI must be on the library path; PyTorch needs `ProfilerActivity.CUDA`",
        "TPU: capture with `jax.profiler.trace` or from the job's profiler port",
        "Hardware samples: `nvidia-smi --query-gpu=… --format=csv -l 1 > gpu.csv`, placed next to the recording",
    ],
    events: None,
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: "
        gaps?: [gap] -- The longest times in which a device had nothing to do.
        peaks?: [peak] -- What the devices can do by their data sheets, in operations per second.
        gauges?: [gauge] -- What a monitor sampled.
        @gap
        host: string -- The host.
        device: string -- The device.
        start_ms: number -- When it starts.
        duration_ms: number -- How long it is.
        cause: 'compute' | 'communication' | 'transfer_in' | 'transfer_out' | 'transfer_device' | 'input' | 'tracing' | 'compile' | 'launch' | 'dispatch' | 'python' | 'output' | 'sync' | 'idle' | 'unknown' -- Who owns it.
        host_event: string? -- What the host did meanwhile.
        @peak
        host: string -- The host.
        device: string -- The device.
        name: string -- The model.
        multiprocessors: integer? -- Multiprocessors.
        fp64: number? -- FP64.
        fp32: number? -- FP32.
        tf32: number? -- TF32.
        fp16: number? -- FP16 and BF16.
        fp8: number? -- FP8.
        int8: number? -- INT8.
        memory_bytes_per_s: number? -- Memory bandwidth.
        @spread
        mean: number -- The mean.
        max: number -- The largest.
        @gauge
        host: string -- The host.
        id: string -- The GPU.
        samples: integer -- Samples.
        seconds: number -- Time that they cover.
        utilisation: spread? -- Share of time in which a kernel ran.
        memory_utilisation: spread? -- Share of time in which memory was read or written.
        memory_bytes: spread? -- Memory in use.
        memory_total_bytes: number? -- Memory.
        power_w: spread? -- Power.
        power_limit_w: number? -- Its limit.
        temperature_c: spread? -- Temperature.
        clock_mhz: spread? -- Clock.
        throttled_fraction: number? -- Share of samples with reduced clocks.
        throttle_reasons: [string]? -- Why clocks were reduced.
    ",
    table: of_hosts,
    groupings: &[],
};

fn columns() -> Vec<Field<DeviceUse>> {
    columns! { device: DeviceUse;
        host.known: Text "host", "its host" => device.host.as_str();
        id.known: Text "device", "its id" => device.id.as_str();
        name: Name "name", "its model or name" => device.name.as_str();
        kind.known.one_of(&["cpu", "gpu", "tpu", "other"]): Text "kind", "what it is" => terms::device_kind(device.kind);
        busy_fraction: Percent "busy", "share of the covered time in which it works" => device.busy_fraction;
        idle_mostly: Text "idle cause", "what its idle time is mostly for" => idle_mostly(device);
        steps_seen: Count "steps", "steps in which it was seen" => device.steps_seen;
        streams: Count "streams", "streams" => apart(device, device.streams as u64);
        concurrency.optional: Short "concurrency", "streams that work at once, on average" => device.concurrency;
        kernels: Count "kernels", "kernel launches" => apart(device, device.kernels.0);
        kernel_mean_ms: Ms "mean kernel", "mean time of a kernel" => kernel_mean_ms(device);
        bytes_in.optional: Bytes "copied in", "bytes copied to it" => device.moved[0].bytes;
        bandwidth_in.optional.real: Bytes "in B/s", "bytes per second of these copies" => device.moved[0].bandwidth();
        bytes_out.optional: Bytes "copied out", "bytes copied from it" => device.moved[1].bytes;
        bandwidth_out.optional.real: Bytes "out B/s", "bytes per second of these copies" => device.moved[1].bandwidth();
        bytes_device.hidden: Bytes "between devices", "bytes copied between devices" => device.moved[2].bytes;
        bandwidth_device.hidden.real: Bytes "", "bytes per second of these copies" => device.moved[2].bandwidth();
        pageable_copies.hidden: Count "pageable copies", "copies from or to pageable memory" => apart(device, device.moved[0].pageable + device.moved[1].pageable);
        pinned_copies.hidden: Count "pinned copies", "copies from or to pinned memory" => apart(device, device.moved[0].pinned + device.moved[1].pinned);
        copies_ms.hidden: Ms "copies", "time of all copies" => apart(device, device.copies.0.ms());
        hidden_copies_ms.hidden: Ms "hidden copies", "time of copies under compute" => apart(device, device.copies.1.ms());
        communication_ms.hidden: Ms "communication", "time of collectives" => apart(device, device.communication.0.ms());
        hidden_communication_ms.hidden: Ms "hidden communication", "time of collectives under compute" => apart(device, device.communication.1.ms());
        breakdown.hidden: Map "breakdown", "milliseconds per category; categories without time are left out" => Cell::named(device.shares.owners().map(|(owner, time)| (owner.key(), time.ms())));
    }
}

/// Columns that only devices with streams fill.
const OF_STREAMS: &[&str] = &[
    "streams",
    "concurrency",
    "kernels",
    "kernel_mean_ms",
    "bytes_in",
    "bandwidth_in",
    "bytes_out",
    "bandwidth_out",
];

/// One host: its devices, and the samples of its GPUs.
struct Part {
    devices: DevicesPartial,
    timeline: bool,
    wall: Option<Wall>,
    gpu_samples: GpuSamplesPartial,
}

fn of_hosts(hosts: &dyn Hosts) -> Table {
    let parts = each_host(hosts, |context| Part {
        devices: DevicesPartial::of(context),
        timeline: has_timeline(context.trace),
        wall: Wall::of(context.trace),
        gpu_samples: GpuSamplesPartial::of(context),
    });
    let timelines: Vec<Wall> =
        parts.iter().filter(|part| part.timeline).filter_map(|part| part.wall).collect();
    let mut devices: Option<DevicesPartial> = None;
    let mut gpu_samples = GpuSamplesPartial::default();
    for part in parts {
        match &mut devices {
            Some(all) => all.merge(part.devices),
            None => devices = Some(part.devices),
        }
        // Samples beside a timeline belong to it only if they may have been taken in the same run.
        if part.timeline || may_be_of(part.wall, &timelines) {
            gpu_samples.merge(part.gpu_samples);
        }
    }
    table(&devices.unwrap_or_default().finish(), &gpu_samples.finish())
}

/// The table, with GPU samples below it.
fn table(devices: &Devices, gpus: &[GpuSamples]) -> Table {
    let mut table = Table::of("devices", &columns(), &devices.devices);
    if devices.devices.windows(2).all(|two| two[0].host == two[1].host) {
        table.hide(&["host"]);
    }
    if devices.devices.iter().all(|device| device.streams == 0) {
        table.hide(OF_STREAMS);
    }
    table.headline = sampled_headline(devices, gpus).or_else(|| headline(devices));
    table.member("gaps", devices.devices.iter().flat_map(gaps).collect::<Vec<_>>());
    let peaks: Vec<_> = devices.devices.iter().filter_map(peaks).collect();
    if !peaks.is_empty() {
        table.member("peaks", peaks);
    }
    devices.devices.iter().take(DESCRIBED).for_each(|device| describe(&mut table, device));
    if !gpus.is_empty() {
        table.member("gauges", gpus.iter().map(sampled).collect::<Vec<_>>());
        gpus.iter().take(DESCRIBED).for_each(|gpu| table.note(gpu_samples::words(gpu)));
    }
    if gpus.iter().any(|gpu| gpu.utilisation.is_some()) {
        table.note(gpu_samples::UTILISATION);
    }
    table
}

/// A figure of work that a host does not do by itself.
fn apart<T>(device: &DeviceUse, figure: T) -> Option<T> {
    (device.kind != DeviceKind::Cpu || device.streams > 0).then_some(figure)
}

fn idle_mostly(device: &DeviceUse) -> Option<String> {
    idle(device).first().map(|(cause, share)| format!("{} {}", because(*cause), percent(*share)))
}

fn kernel_mean_ms(device: &DeviceUse) -> Option<f64> {
    let (kernels, time) = device.kernels;
    (kernels > 0).then(|| time.ms() / kernels as f64)
}

/// Idle time below this share of a step needs no cause.
const WORTH_NAMING: f64 = 0.01;

fn headline(devices: &Devices) -> Option<String> {
    let busiest = devices
        .devices
        .iter()
        .filter_map(|device| Some((device, device.busy_fraction?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((device, busy)) = busiest else {
        return Some("No device work was recorded; device utilisation is unknown".to_owned());
    };
    let cause = idle(device).into_iter().next().filter(|(_, share)| *share >= WORTH_NAMING);
    let why = cause.map_or(String::new(), |(cause, share)| match cause {
        Category::Idle | Category::Unknown => {
            format!("; the cause of its idle time was not recorded ({} of the step)", percent(share))
        }
        cause => format!("; main idle cause: {} ({} of the step)", cause.key(), percent(share)),
    });
    Some(format!("{} is busy for {} of the step time{why}", device.id, percent(busy)))
}

/// If GPU samples are all there is, they are the answer.
fn sampled_headline(devices: &Devices, gpus: &[GpuSamples]) -> Option<String> {
    let watched = devices.devices.iter().any(|device| device.busy_fraction.is_some());
    gpu_samples::headline(gpus).filter(|_| !watched)
}

fn sampled(gpu: &GpuSamples) -> serde_json::Value {
    let spread = |of: Option<Sampled>| of.map(|of| json!({"mean": of.mean, "max": of.max}));
    json!({"host": gpu.host, "id": gpu.id, "samples": gpu.samples, "seconds": gpu.span.secs(),
           "utilisation": spread(gpu.utilisation), "memory_utilisation": spread(gpu.memory_utilisation),
           "memory_bytes": spread(gpu.memory_bytes), "memory_total_bytes": gpu.memory_total_bytes,
           "power_w": spread(gpu.power_w), "power_limit_w": gpu.power_limit_w,
           "temperature_c": spread(gpu.temperature_c), "clock_mhz": spread(gpu.clock_mhz),
           "throttled_fraction": gpu.throttled.as_ref().map(|(share, _)| share),
           "throttle_reasons": gpu.throttled.as_ref().map(|(_, reasons)| reasons)})
}

/// The causes of the device's idle time, largest first, as shares of the steps.
fn idle(device: &DeviceUse) -> Vec<(Category, f64)> {
    const WORK: [Category; 5] = [
        Category::Compute,
        Category::Communication,
        Category::TransferIn,
        Category::TransferOut,
        Category::TransferDevice,
    ];
    let whole = device.shares.total();
    let mut causes: Vec<(Category, f64)> = device
        .shares
        .owners()
        .filter(|(category, _)| !WORK.contains(category))
        .map(|(category, time)| (category, time.fraction_of(whole)))
        .collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes
}

/// The name of an idle cause; unassigned time has no recorded cause.
fn because(cause: Category) -> &'static str {
    if matches!(cause, Category::Idle | Category::Unknown) { "unknown" } else { cause.key() }
}

/// Peak rates of the device, by its name, in 10¹² operations per second.
fn peaks(device: &DeviceUse) -> Option<serde_json::Value> {
    let peaks = peaks_of(&device.name)?;
    Some(json!({"host": device.host, "device": device.id, "name": peaks.name,
                "multiprocessors": peaks.multiprocessors, "fp64": peaks.fp64, "fp32": peaks.fp32,
                "tf32": peaks.tf32, "fp16": peaks.half, "fp8": peaks.fp8, "int8": peaks.int8,
                "memory_bytes_per_s": peaks.memory * 1e9}))
}

fn gaps(device: &DeviceUse) -> impl Iterator<Item = serde_json::Value> {
    device.gaps.iter().map(|gap| {
        json!({"host": device.host, "device": device.id, "start_ms": gap.span.start.ms(),
               "duration_ms": gap.span.dur().ms(), "cause": gap.cause.key(), "host_event": gap.host_event})
    })
}

fn describe(table: &mut Table, device: &DeviceUse) {
    overlap(table, device, "copies take", device.copies);
    overlap(table, device, "communication takes", device.communication);
    for (moved, direction) in device.moved.iter().zip(DIRECTIONS) {
        if let Some(note) = moved_words(moved, direction, device.steps > 0) {
            table.note(format!("{}: {note}", device.id));
        }
    }
    for gap in device.gaps.iter().take(GAPS_SHOWN) {
        table.note(format!("{}: {}", device.id, gap_words(gap)));
    }
}

fn overlap(table: &mut Table, device: &DeviceUse, what: &str, (all, hidden): (Dur, Dur)) {
    if !all.is_zero() {
        let (time, of) = match device.steps {
            0 => (all.ms(), "in the whole capture"),
            steps => (all.ms() / steps as f64, "per step"),
        };
        table.note(format!(
            "{}: {what} {} {of}, {} of it overlapped with compute.",
            device.id,
            duration_ms(time),
            percent(hidden.fraction_of(all)),
        ));
    }
}

fn moved_words(moved: &Moved, direction: &str, steps: bool) -> Option<String> {
    let size = moved.bytes?;
    let speed = moved.bandwidth().map_or(String::new(), |speed| format!(" at {}/s", bytes(speed)));
    let pageable = if moved.pageable > 0 {
        format!(", {} from or to pageable memory", plural(moved.pageable, "copy", "copies"))
    } else {
        String::new()
    };
    let copies = plural(moved.copies, "copy", "copies");
    let over = if steps { " in the whole capture" } else { "" };
    Some(format!("{direction}: {copies}{over}, {}{speed}{pageable}.", bytes(size as f64)))
}

fn gap_words(gap: &Gap) -> String {
    let event = gap
        .host_event
        .as_ref()
        .map_or(String::new(), |event| format!(", the host was in {}", middle_cut(event, NAME)));
    format!(
        "idle for {} at {} ms, cause: {}{event}.",
        duration_ms(gap.span.dur().ms()),
        short(gap.span.start.ms()),
        because(gap.cause),
    )
}
