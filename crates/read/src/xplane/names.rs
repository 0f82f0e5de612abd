//! The kinds of planes and lines, by their names and ids.

use stepscope_trace::{DeviceKind, ProcessKind, TrackKind};

/// The plane whose event metadata are compiled modules.
pub(super) const METADATA_PLANE: &str = "/host:metadata";
/// The plane whose stats say how and when the profile was recorded.
pub(super) const ENVIRONMENT_PLANE: &str = "Task Environment";

/// Lines computed from other lines by the profiler or a viewer have ids from here on. Profilers with 32-bit ids
/// wrote them sign-extended. Thread ids are hashes and may be larger, so the range is closed.
const DERIVED_IDS: std::ops::Range<i64> = 0xdead_beef..0xdead_beef + 400;

/// Computed lines on a device plane. `XLA Ops` is one of them only if the device does not record ops itself.
const DERIVED_NAMES: &[&str] = &[
    "Steps",
    "XLA Modules",
    "Framework Name Scope",
    "TensorFlow Name Scope",
    "Framework Ops",
    "TensorFlow Ops",
    "Source code",
    "Launch Stats",
    "Host Offload Ops",
    "Sparse Core Steps",
    "Sparse Core Modules",
    "XLA Overhead",
];

/// The kind of a plane.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaneKind {
    Host,
    Device(DeviceKind, Option<i64>),
    Other,
}

impl PlaneKind {
    pub fn of(name: &str) -> Self {
        if name.starts_with("/host:") {
            return PlaneKind::Host;
        }
        let Some((sort, rest)) = name.strip_prefix("/device:").and_then(|rest| rest.split_once(':')) else {
            return PlaneKind::Other;
        };
        let kind = match sort {
            // Rows drawn by hand, or rows of the network between devices.
            "CUSTOM" => return PlaneKind::Other,
            "GPU" => DeviceKind::Gpu,
            "TPU" => DeviceKind::Tpu,
            "CPU" => DeviceKind::Cpu,
            _ => DeviceKind::Other,
        };
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        PlaneKind::Device(kind, digits.and_then(|digits| digits.parse().ok()))
    }

    pub fn process(self) -> ProcessKind {
        match self {
            PlaneKind::Host => ProcessKind::Host,
            PlaneKind::Device(..) => ProcessKind::Device,
            PlaneKind::Other => ProcessKind::Other,
        }
    }
}

/// The kind of a line's events.
pub(super) fn track_kind(plane: PlaneKind, id: i64, name: &str) -> TrackKind {
    if name == "_counters_" {
        return TrackKind::Counter;
    }
    if is_derived_id(id) {
        return TrackKind::Derived;
    }
    match plane {
        PlaneKind::Host => TrackKind::Thread,
        PlaneKind::Other => TrackKind::Async,
        PlaneKind::Device(DeviceKind::Tpu, _) => tpu_track_kind(name),
        PlaneKind::Device(..) => {
            let computed = name == "XLA Ops" || name.contains(" - from #") || DERIVED_NAMES.contains(&name);
            if computed { TrackKind::Derived } else { TrackKind::Stream }
        }
    }
}

/// A TPU records its ops on lines with fixed names. The other lines repeat them at another level, or show
/// related data (synchronisation flags, overlays, annotations), so they must not count as work.
fn tpu_track_kind(name: &str) -> TrackKind {
    match name {
        "XLA Ops" | "Sparse Core Ops" => TrackKind::Stream,
        "Async XLA Ops" => TrackKind::Async,
        _ => TrackKind::Derived,
    }
}

fn is_derived_id(id: i64) -> bool {
    let unwrapped = i32::try_from(id).map_or(id, |id| if id < 0 { i64::from(id as u32) } else { id.into() });
    DERIVED_IDS.contains(&unwrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_told_apart_by_name() {
        assert_eq!(PlaneKind::of("/host:CPU"), PlaneKind::Host);
        assert_eq!(PlaneKind::of("/device:GPU:3"), PlaneKind::Device(DeviceKind::Gpu, Some(3)));
        assert_eq!(
            PlaneKind::of("/device:TPU:12 SparseCore 1"),
            PlaneKind::Device(DeviceKind::Tpu, Some(12))
        );
        assert_eq!(PlaneKind::of("/device:XPU:x"), PlaneKind::Device(DeviceKind::Other, None));
        for other in ["/device:CUSTOM:Megascale Trace", "Task Environment", "/device:", ""] {
            assert_eq!(PlaneKind::of(other), PlaneKind::Other);
        }
    }

    #[test]
    fn computed_lines_are_known_by_id_and_by_name() {
        let gpu = PlaneKind::of("/device:GPU:0");
        let tpu = PlaneKind::of("/device:TPU:0");
        for id in [0xdead_beef, 0xdead_beef + 5, -559_038_737, -559_038_734] {
            assert_eq!(track_kind(gpu, id, "anything"), TrackKind::Derived);
            assert_eq!(track_kind(PlaneKind::Host, id, "anything"), TrackKind::Derived);
        }
        for hash in [-1_472_503_042_444_199_177, 6_300_611_701_581_713_424, 0xdead_beef - 1, -559_038_738] {
            assert_eq!(track_kind(PlaneKind::Host, hash, "python"), TrackKind::Thread);
        }
        assert_eq!(track_kind(gpu, 14, "Stream #14(Compute,MemcpyD2D)"), TrackKind::Stream);
        assert_eq!(track_kind(gpu, 3, "XLA Ops"), TrackKind::Derived);
        assert_eq!(track_kind(gpu, 3, "XLA Ops - from #14"), TrackKind::Derived);
        assert_eq!(track_kind(tpu, 3, "XLA Ops"), TrackKind::Stream);
        assert_eq!(track_kind(tpu, 4, "Async XLA Ops"), TrackKind::Async);
        assert_eq!(track_kind(tpu, 2, "XLA Modules"), TrackKind::Derived);
        assert_eq!(track_kind(PlaneKind::Host, 2, "Steps"), TrackKind::Thread);
        assert_eq!(track_kind(tpu, 9, "_counters_"), TrackKind::Counter);
    }
}
