//! What categories and names say about *where* an event ran. What it means for performance is decided
//! elsewhere.

use stepscope_trace::{DeviceKind, TrackKind};

/// Where events of a category run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// On a queue of a device.
    Work,
    /// Drawn on a device queue by the profiler: annotations, waits.
    Mark,
    /// On a host thread.
    Host,
    /// The span of the capture itself.
    Capture,
    /// Unknown; the names of process and thread decide.
    Neutral,
}

/// The class of a category. Profilers renamed theirs over the years: `Kernel` became `kernel`.
pub(super) fn class_of(category: &str) -> Class {
    match category {
        "kernel"
        | "Kernel"
        | "gpu_memcpy"
        | "Memcpy"
        | "gpu_memset"
        | "Memset"
        | "concurrent_kernel"
        | "cuda_profiler_range" => Class::Work,
        "gpu_user_annotation" | "cuda_sync" | "cuda_event" => Class::Mark,
        "cpu_op" | "Operator" | "user_annotation" | "python_function" | "cuda_runtime" | "cuda_driver"
        | "Runtime" | "cpu_instant_event" | "overhead" => Class::Host,
        "Trace" => Class::Capture,
        _ if category.ends_with("_runtime") || category.ends_with("_driver") => Class::Host,
        _ if ["mtia_", "xpu_", "hpu_kernel", "hpu_mem"].iter().any(|start| category.starts_with(start)) => {
            Class::Work
        }
        _ => Class::Neutral,
    }
}

/// Kind and ordinal of the device in a process name or label: `GPU 0`, `/device:TPU:1`. PyTorch's first profiler called the
/// device's side `CUDA functions`.
pub(super) fn device_of(name: &str) -> Option<(DeviceKind, Option<i64>)> {
    if name == "CUDA functions" {
        return Some((DeviceKind::Gpu, Some(0)));
    }
    let (sort, rest) = match name.strip_prefix("/device:") {
        Some(rest) => rest.split_once(':').unwrap_or((rest, "")),
        None => name.split_once(' ').unwrap_or((name, "")),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    let kind = match sort {
        "GPU" | "XPU" => DeviceKind::Gpu,
        "TPU" => DeviceKind::Tpu,
        "MTIA" | "HPU" | "NPU" => DeviceKind::Other,
        "CPU" => return None,
        _ if name.starts_with("/device:") => DeviceKind::Other,
        _ => return None,
    };
    Some((kind, digits.parse().ok()))
}

/// The kind of a device's line by its name, if no category says so.
pub(super) fn device_line(name: &str) -> TrackKind {
    const DERIVED: [&str; 14] = [
        "Steps",
        "Step",
        "XLA Modules",
        "XLA TraceMe",
        "Framework Ops",
        "Framework Name Scope",
        "TensorFlow Ops",
        "TensorFlow Name Scope",
        "Source code",
        "Source Code",
        "Launch Stats",
        "HLO Modules",
        "HLO Ops",
        "Host Threads",
    ];
    match name {
        "Async XLA Ops" | "XLA Async Ops" => TrackKind::Async,
        _ if DERIVED.contains(&name) || name.starts_with("Launch Stats") => TrackKind::Derived,
        _ => TrackKind::Stream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_of_all_recorders_are_understood() {
        assert_eq!(device_of("GPU 3"), Some((DeviceKind::Gpu, Some(3))));
        assert_eq!(device_of("/device:TPU:1 SparseCore 0"), Some((DeviceKind::Tpu, Some(1))));
        assert_eq!(device_of("/device:GPU:0"), Some((DeviceKind::Gpu, Some(0))));
        assert_eq!(device_of("CUDA functions"), Some((DeviceKind::Gpu, Some(0))));
        assert_eq!(device_of("MTIA 9"), Some((DeviceKind::Other, Some(9))));
        for host in ["/host:CPU", "CPU", "python3.10", "/device:CPU:0", ""] {
            assert_eq!(device_of(host), None, "{host}");
        }
    }
}
