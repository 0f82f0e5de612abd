//! Devices: busy and idle time with reasons, streams, overlap, bytes moved each way, and the longest gaps.

use serde_json::json;
use stepscope_analyze::Category;
use stepscope_analyze::devices::gpu_samples::{GpuSamples, Sampled};
use stepscope_analyze::devices::{DeviceUse, Devices, Gap, Moved};
use stepscope_analyze::work::gpu_specs::peaks_of;
use stepscope_trace::{DeviceKind, Dur};

use crate::format::{bytes, duration_ms, middle_cut, percent, plural, short};
use crate::{Cell, Column, Format, Table, gpu_samples};

/// Number of gaps shown below the table.
const GAPS_SHOWN: usize = 5;
/// Number of devices described below the table.
const DESCRIBED: usize = 4;
/// Width of an event's name in a line.
const NAME: usize = 48;
const DIRECTIONS: [&str; 3] = ["in", "out", "device"];

/// The table, with GPU samples below it.
pub fn table(devices: &Devices, gpus: &[GpuSamples]) -> Table {
    let several = devices.devices.windows(2).any(|two| two[0].host != two[1].host);
    let host = Column::new("host", "host", Format::Text);
    let streams = devices.devices.iter().any(|device| device.streams > 0);
    let of_streams = |column: Column| if streams { column } else { column.hidden() };
    let mut table = Table::new(
        "devices",
        vec![
            if several { host } else { host.hidden() },
            Column::new("id", "device", Format::Text),
            Column::new("name", "name", Format::Name),
            Column::new("kind", "kind", Format::Text),
            Column::new("busy_fraction", "busy", Format::Percent),
            Column::new("idle_mostly", "idle cause", Format::Text),
            Column::new("steps_seen", "steps", Format::Count),
            of_streams(Column::new("streams", "streams", Format::Count)),
            of_streams(Column::new("concurrency", "concurrency", Format::Short).optional()),
            of_streams(Column::new("kernels", "kernels", Format::Count)),
            of_streams(Column::new("kernel_mean_ms", "mean kernel", Format::Ms)),
            of_streams(Column::new("bytes_in", "copied in", Format::Bytes).optional()),
            of_streams(Column::new("bandwidth_in", "in B/s", Format::Bytes).optional()),
            of_streams(Column::new("bytes_out", "copied out", Format::Bytes).optional()),
            of_streams(Column::new("bandwidth_out", "out B/s", Format::Bytes).optional()),
            Column::new("bytes_device", "between devices", Format::Bytes).hidden(),
            Column::new("bandwidth_device", "", Format::Bytes).hidden(),
            Column::new("pageable_copies", "pageable copies", Format::Count).hidden(),
            Column::new("pinned_copies", "pinned copies", Format::Count).hidden(),
            Column::new("copies_ms", "copies", Format::Ms).hidden(),
            Column::new("hidden_copies_ms", "hidden copies", Format::Ms).hidden(),
            Column::new("communication_ms", "communication", Format::Ms).hidden(),
            Column::new("hidden_communication_ms", "hidden communication", Format::Ms).hidden(),
            Column::new("breakdown", "breakdown", Format::Text).hidden(),
        ],
    );
    table.headline = sampled_headline(devices, gpus).or_else(|| headline(devices));
    table.member("gaps", devices.devices.iter().flat_map(gaps).collect::<Vec<_>>());
    let peaks: Vec<_> = devices.devices.iter().filter_map(peaks).collect();
    if !peaks.is_empty() {
        table.member("peaks", peaks);
    }
    devices.devices.iter().for_each(|device| table.push(row(device)));
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

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
        DeviceKind::Tpu => "tpu",
        DeviceKind::Other => "other",
    }
}

fn row(device: &DeviceUse) -> Vec<Cell> {
    let on_host = device.kind == DeviceKind::Cpu && device.streams == 0;
    let (kernels, kernel_time) = device.kernels;
    let mostly =
        idle(device).first().map(|(cause, share)| format!("{} {}", because(*cause), percent(*share)));
    let [to, from, within] = &device.moved;
    let pageable = to.pageable + from.pageable;
    let pinned = to.pinned + from.pinned;
    let ms = |time: Dur| if on_host { Cell::Null } else { time.ms().into() };
    let count = |number: u64| if on_host { Cell::Null } else { number.into() };
    let breakdown = device.shares.owners().map(|(owner, time)| (owner.key().to_owned(), time.ms())).collect();
    vec![
        device.host.as_str().into(),
        device.id.as_str().into(),
        device.name.as_str().into(),
        kind(device.kind).into(),
        device.busy_fraction.into(),
        mostly.into(),
        device.steps_seen.into(),
        count(device.streams as u64),
        device.concurrency.into(),
        count(kernels),
        (kernels > 0).then(|| kernel_time.ms() / kernels as f64).into(),
        to.bytes.into(),
        to.bandwidth().into(),
        from.bytes.into(),
        from.bandwidth().into(),
        within.bytes.into(),
        within.bandwidth().into(),
        count(pageable),
        count(pinned),
        ms(device.copies.0),
        ms(device.copies.1),
        ms(device.communication.0),
        ms(device.communication.1),
        Cell::Map(breakdown),
    ]
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
