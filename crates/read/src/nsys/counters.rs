//! Values over time: sampled GPU metrics, device memory held by a process, and page faults of unified memory.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Form, StrId, Time};

use super::places::{Row, pid_of};
use super::{Import, OddTimes};

/// Reads all counters.
pub(super) fn read(import: &mut Import) {
    read_metrics(import);
    read_memory(import);
    read_host_faults(import);
    read_device_faults(import);
}

const METRICS: &str = "GPU_METRICS";

fn read_metrics(import: &mut Import) {
    if !import.database.has(METRICS) {
        return;
    }
    let mut names: FxHashMap<(Option<i64>, Option<i64>), StrId> = FxHashMap::default();
    import.database.rows("TARGET_INFO_GPU_METRICS", &["typeId", "metricId", "metricName"], |row| {
        if let Some(name) = row.text(2) {
            names.insert((row.int(0), row.int(1)), import.builder.strings.intern(&name));
        }
    });
    let outcome = import.database.rows(METRICS, &["timestamp", "typeId", "metricId", "value"], |row| {
        let (Some(at), Some(value)) = (row.int(0), row.real(3)) else { return };
        let metric = row.int(2).unwrap_or(0);
        let name = names.get(&(row.int(1), row.int(2))).copied();
        let name = name.unwrap_or_else(|| import.builder.strings.intern(&format!("metric {metric}")));
        // The lowest byte of the type is the GPU number.
        let place = Row::Metric { gpu: row.int(1).unwrap_or(0) & 0xff, metric, name };
        let track = import.places.track(place, &mut import.builder);
        import.builder.sample(track, Time::from_ns(at), value);
    });
    import.settle(METRICS, outcome);
}

const MEMORY: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";
/// `memKind` of memory on the device.
const ON_DEVICE: i64 = 2;
/// `memoryOperationType`.
const ALLOCATED: i64 = 0;
const FREED: i64 = 1;

fn read_memory(import: &mut Import) {
    if !import.has_times(MEMORY) {
        return;
    }
    let mut changes: FxHashMap<(i64, i64), Vec<(i64, i64)>> = FxHashMap::default();
    let columns = ["start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType"];
    let outcome = import.database.rows(MEMORY, &columns, |row| {
        let (Some(at), Some(bytes)) = (row.int(0), row.int(3)) else { return };
        let change = match row.int(5) {
            Some(ALLOCATED) => bytes,
            Some(FREED) => bytes.saturating_neg(),
            _ => return,
        };
        if row.int(4).is_none_or(|kind| kind == ON_DEVICE) {
            let place = (row.int(1).map_or(0, pid_of), row.int(2).unwrap_or(0));
            changes.entry(place).or_default().push((at, change));
        }
    });
    import.settle(MEMORY, outcome);
    let mut places: Vec<_> = changes.into_iter().collect();
    places.sort_unstable_by_key(|(place, _)| *place);
    for ((pid, device), mut changes) in places {
        changes.sort_by_key(|&(at, _)| at);
        let track = import.places.track(Row::Memory { pid, device }, &mut import.builder);
        let mut held = 0_i64;
        for (at, change) in changes {
            // Memory allocated before the capture may be freed during it.
            held = held.saturating_add(change).max(0);
            import.builder.sample(track, Time::from_ns(at), held as f64);
        }
    }
}

const HOST_FAULTS: &str = "CUDA_UM_CPU_PAGE_FAULT_EVENTS";

fn read_host_faults(import: &mut Import) {
    if !import.has_times(HOST_FAULTS) {
        return;
    }
    let name = import.intern("CPU page fault");
    let category = import.intern("um_fault");
    let kind = import.kind(name, category, Form::Instant);
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(HOST_FAULTS, &["start", "globalPid"], |row| {
        let Some(times) = odd.point(row.int(0)) else { return };
        let place = Row::HostFaults { pid: row.int(1).map_or(0, pid_of) };
        let track = import.places.track(place, &mut import.builder);
        import.event(track, times, kind, None);
    });
    odd.note(HOST_FAULTS, &mut import.builder);
    import.settle(HOST_FAULTS, outcome);
}

const DEVICE_FAULTS: &str = "CUDA_UM_GPU_PAGE_FAULT_EVENTS";

fn read_device_faults(import: &mut Import) {
    if !import.has_times(DEVICE_FAULTS) {
        return;
    }
    let name = import.intern("GPU page fault");
    let category = import.intern("um_fault");
    let faults = import.intern("faults");
    let kind = import.kind(name, category, Form::Slice);
    let mut odd = OddTimes::default();
    let columns = ["start", "end", "globalPid", "deviceId", "numberOfPageFaults"];
    let outcome = import.database.rows(DEVICE_FAULTS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let place = Row::DeviceFaults { pid: row.int(2).map_or(0, pid_of), device: row.int(3).unwrap_or(0) };
        let own: Vec<_> = row.int(4).map(|count| (faults, Datum::Int(count))).into_iter().collect();
        let args = import.builder.arena.push(&own, &[]);
        let track = import.places.track(place, &mut import.builder);
        import.event(track, times, kind, args);
    });
    odd.note(DEVICE_FAULTS, &mut import.builder);
    import.settle(DEVICE_FAULTS, outcome);
}
