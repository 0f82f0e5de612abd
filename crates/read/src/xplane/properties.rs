//! Stats of whole planes: device properties, capture settings, versions.
//!
//! From planes that are not devices, only known names are read, so that nothing from the process environment
//! can end up in a report.

use std::ops::Range;

use stepscope_trace::{Datum, Device, DeviceKind, ProcessId, Property, StringTableBuilder, TraceBuilder};

use super::schema::PROFILE_OPTIONS;
use super::stats::{Raw, StatNames, read_stat};
use stepscope_wire::{Payload, walk};

/// The stats of a plane with their names resolved.
pub(super) fn plane_stats(
    file: &[u8],
    stats: &[Range<usize>],
    names: &StatNames,
    strings: &StringTableBuilder,
) -> Vec<(String, Raw)> {
    let named = stats.iter().map(|range| read_stat(file, range.clone(), names));
    named.map(|(key, value)| (strings.get(key).to_owned(), value)).collect()
}

/// Adds the device of a plane.
pub(super) fn add_device(
    file: &[u8],
    stats: &[(String, Raw)],
    kind: DeviceKind,
    number: i64,
    process: ProcessId,
    builder: &mut TraceBuilder,
) {
    let mut device = Device::new(kind, number);
    device.process = Some(process);
    let mut capability = (None, None);
    for (key, raw) in stats {
        let Some(value) = raw.datum(file, &mut builder.strings) else { continue };
        let whole = whole_number(value);
        let small = whole.and_then(|v| u32::try_from(v).ok());
        match (key.as_str(), value) {
            ("clock_rate", _) => device.clock_khz = whole,
            ("core_count", _) => device.multiprocessors = small,
            ("memory_bandwidth", _) => device.memory_bandwidth = whole,
            ("memory_size", _) => device.memory_bytes = whole,
            ("compute_cap_major", _) => capability.0 = small,
            ("compute_cap_minor", _) => capability.1 = small,
            ("device_vendor", Datum::Str(name)) => device.vendor = Some(name),
            ("gpu_device_name" | "device_type_string", Datum::Str(name)) => device.name = name,
            _ => {}
        }
        let property = Property { key: builder.strings.intern(key), value };
        if key.ends_with("_version") {
            push(&mut builder.environment.versions, property);
        }
        device.properties.push(property);
    }
    device.compute_capability = capability.0.zip(capability.1);
    if device.memory_bandwidth.is_none() {
        device.memory_bandwidth = stated_hbm_bandwidth(&device, builder);
    }
    builder.device(device);
}

fn whole_number(value: Datum) -> Option<u64> {
    match value {
        Datum::UInt(v) => Some(v),
        Datum::Int(v) => u64::try_from(v).ok(),
        _ => None,
    }
}

/// TPUs state their memory bandwidth in GB/s.
fn stated_hbm_bandwidth(device: &Device, builder: &mut TraceBuilder) -> Option<u64> {
    let key = builder.strings.intern("peak_hbm_bw_gigabytes_per_second");
    device.properties.iter().find(|property| property.key == key).and_then(|property| match property.value {
        Datum::Float(v) if v > 0.0 && v < 1e9 => Some((v * 1e9) as u64),
        _ => None,
    })
}

/// Reads when and how the profile was captured.
pub(super) fn add_capture(file: &[u8], stats: &[(String, Raw)], builder: &mut TraceBuilder) {
    let when = |wanted: &str| {
        let (_, raw) = stats.iter().find(|(key, _)| key == wanted)?;
        match raw {
            Raw::UInt(v) => i64::try_from(*v).ok(),
            Raw::Int(v) => Some(*v),
            _ => None,
        }
        .filter(|&ns| ns > 0)
    };
    builder.environment.captured_ns = when("profile_start_time").zip(when("profile_stop_time"));
    if let Some((_, Raw::Bytes(range))) = stats.iter().find(|(key, _)| key == "profile_options") {
        add_profile_options(file, range.clone(), builder);
    }
}

fn add_profile_options(file: &[u8], range: Range<usize>, builder: &mut TraceBuilder) {
    walk(file, range, |field| {
        let known = PROFILE_OPTIONS.iter().find(|(number, _)| *number == field.number);
        if let (Some((_, name)), Payload::Varint(value)) = (known, field.value) {
            let key = builder.strings.intern(name);
            builder.environment.capture.push(Property { key, value: Datum::UInt(value) });
        }
    });
}

/// Reads the versions and the process id that a host plane states.
pub(super) fn add_host_properties(file: &[u8], stats: &[(String, Raw)], builder: &mut TraceBuilder) {
    for (key, raw) in stats {
        let is_version = key.ends_with("_version");
        if !is_version && key != "process_id" {
            continue;
        }
        let Some(value) = raw.datum(file, &mut builder.strings) else { continue };
        let property = Property { key: builder.strings.intern(key), value };
        let environment = &mut builder.environment;
        let list = if is_version { &mut environment.versions } else { &mut environment.distributed };
        push(list, property);
    }
}

/// Adds a property once. They are compared one by one, so there is an end to them.
fn push(list: &mut Vec<Property>, property: Property) {
    const MOST: usize = 500;
    if list.len() < MOST && !list.contains(&property) {
        list.push(property);
    }
}
