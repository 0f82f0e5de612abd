//! The GPUs: from their own table, or from the machine description if there is none.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Device, DeviceId, DeviceKind, ProcessId, Property, StrId};

use super::Import;
use super::database::Which;

const GPUS: &str = "TARGET_INFO_GPU";
/// Columns that identify the hardware permanently; reports do not need them.
const LEFT_OUT: [&str; 4] = ["uuid", "luid", "ctxswDevPath", "ctrlDevPath"];

/// Adds all GPUs and assigns them to the processes that hold their queues.
pub(super) fn read(import: &mut Import) {
    let mut described = from_table(import);
    if described.is_empty() {
        described = from_machine(import);
    }
    let used = import.places.used_gpus();
    let queues: FxHashMap<i64, ProcessId> = used.iter().copied().collect();
    leave_out_displays(import, &mut described, &queues);
    let mut ids: FxHashMap<i64, DeviceId> = FxHashMap::default();
    for properties in described {
        let number = whole(import, &properties, "id").and_then(|id| i64::try_from(id).ok()).unwrap_or(0);
        let device = device_of(import, number, queues.get(&number).copied(), properties);
        let id = import.builder.device(device);
        ids.entry(number).or_insert(id);
    }
    for &(number, process) in &used {
        ids.entry(number).or_insert_with(|| {
            let device = device_of(import, number, Some(process), Vec::new());
            import.builder.device(device)
        });
    }
    import.places.tie_devices(|gpu| ids.get(&gpu).copied(), &mut import.builder);
}

/// Windows lists every display adapter. Adapters without multiprocessors beside others that have them, and
/// without work, are ignored.
fn leave_out_displays(
    import: &Import,
    described: &mut Vec<Vec<Property>>,
    queues: &FxHashMap<i64, ProcessId>,
) {
    let computes =
        |properties: &[Property]| whole(import, properties, "smCount").is_some_and(|count| count > 0);
    let worked = |properties: &[Property]| {
        let id = whole(import, properties, "id").and_then(|id| i64::try_from(id).ok());
        id.is_some_and(|id| queues.contains_key(&id))
    };
    if described.iter().any(|properties| computes(properties)) {
        described.retain(|properties| computes(properties) || worked(properties));
    }
}

fn from_table(import: &mut Import) -> Vec<Vec<Property>> {
    let kept = |column: &&str| !LEFT_OUT.contains(column);
    let columns: Vec<&str> = import.database.columns(GPUS).iter().map(String::as_str).filter(kept).collect();
    let mut found = Vec::new();
    let outcome = import.database.rows(GPUS, &columns, |row| {
        let mut properties = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let value = match (row.int(index), row.text(index)) {
                (_, Some(text)) => Datum::Str(import.builder.strings.intern(&text)),
                (Some(value), None) => Datum::Int(value),
                (None, None) => continue,
            };
            properties.push(Property { key: import.builder.strings.intern(column), value });
        }
        found.push(properties);
    });
    import.settle(GPUS, outcome);
    found
}

/// The machine description lists its GPUs as JSON: `{"Gpus":[{"Id":0,"Name":"…","SmCount":68,…}]}`.
fn from_machine(import: &mut Import) -> Vec<Vec<Property>> {
    let mut found = Vec::new();
    let which = Which::OneOf("name", &["GpuInfo"]);
    import.database.rows_where("TARGET_INFO_SYSTEM_ENV", &["value"], which, |row| {
        let text = row.text(0).unwrap_or_default();
        let list = text.split_once("\"Gpus\":[").map_or("", |(_, list)| list);
        for object in list.split('{').skip(1) {
            let object = object.split('}').next().unwrap_or_default();
            let mut properties = Vec::new();
            for (key, value) in members(object) {
                if LEFT_OUT.contains(&key.as_str()) {
                    continue;
                }
                let value = match value.parse() {
                    Ok(number) => Datum::Int(number),
                    Err(_) => Datum::Str(import.builder.strings.intern(value)),
                };
                properties.push(Property { key: import.builder.strings.intern(&key), value });
            }
            if !properties.is_empty() {
                found.push(properties);
            }
        }
    });
    found
}

/// The members of a flat JSON object, with keys spelt like the table's columns (`SmCount` → `smCount`).
fn members(object: &str) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut rest = object;
    while let Some((key, after)) = quoted(rest) {
        let Some(after) = after.trim_start().strip_prefix(':') else { break };
        let after = after.trim_start();
        let (value, next) = match quoted(after) {
            Some(text) if after.starts_with('"') => text,
            _ => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim(), &after[end..])
            }
        };
        let mut letters = key.chars();
        let lower = letters.next().map(|first| first.to_ascii_lowercase());
        found.push((lower.into_iter().chain(letters).collect(), value));
        rest = next;
    }
    found
}

/// The next quoted text, and what follows it. Device names contain no escapes.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once('"')?;
    rest.split_once('"')
}

fn value_of(import: &Import, properties: &[Property], name: &str) -> Option<Datum> {
    let named = |property: &&Property| import.builder.strings.get(property.key) == name;
    properties.iter().find(named).map(|property| property.value)
}

fn whole(import: &Import, properties: &[Property], name: &str) -> Option<u64> {
    match value_of(import, properties, name)? {
        Datum::Int(value) => u64::try_from(value).ok(),
        Datum::Str(text) => import.builder.strings.get(text).parse().ok(),
        _ => None,
    }
}

fn device_of(
    import: &mut Import,
    number: i64,
    process: Option<ProcessId>,
    properties: Vec<Property>,
) -> Device {
    let vendor = Some(import.intern("NVIDIA"));
    // A profiler that does not know a value writes 0.
    let known = |name: &str| whole(import, &properties, name).filter(|&value| value > 0);
    let small = |name: &str| known(name).and_then(|value| u32::try_from(value).ok());
    let warp_size = small("threadsPerWarp");
    let warps = small("maxWarpsPerSm");
    let minor = whole(import, &properties, "computeMinor").and_then(|minor| u32::try_from(minor).ok());
    let name = match value_of(import, &properties, "name") {
        Some(Datum::Str(name)) => name,
        _ => StrId::default(),
    };
    Device {
        name,
        process,
        vendor,
        multiprocessors: small("smCount"),
        clock_khz: known("clockRate").map(|hertz| hertz / 1_000),
        memory_bytes: known("totalMemory"),
        memory_bandwidth: known("memoryBandwidth"),
        compute_capability: small("computeMajor").zip(minor),
        warp_size,
        max_threads_per_multiprocessor: warps.map(|warps| warps.saturating_mul(warp_size.unwrap_or(32))),
        max_blocks_per_multiprocessor: small("maxBlocksPerSm"),
        registers_per_multiprocessor: small("maxRegistersPerSm"),
        shared_memory_per_multiprocessor: known("maxShmemPerSm"),
        properties,
        ..Device::new(DeviceKind::Gpu, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_taken_apart() {
        let found = members(r#""Id":0,"Name":"GTX, big","TotalMemory":"115","IsDiscrete":true"#);
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        assert_eq!(
            found,
            [("id", "0"), ("name", "GTX, big"), ("totalMemory", "115"), ("isDiscrete", "true")]
        );
        assert!(members("nothing").is_empty() && members("\"").is_empty());
    }
}
