//! What categories and names say about *where* an event ran. What it means for performance is decided
//! elsewhere.

use stepscope_trace::{DeviceKind, TrackKind};

/// Where events of a category run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
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
pub(crate) fn class_of(category: &str) -> Class {
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

/// What a name alone says about where an event ran, for writers without categories.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A copy or fill as devices report them: `[MEMCPY] DtoH`, `[CUDA memset]`, `Memcpy HtoD (Pinned -> Device)`.
    Copy,
    /// A kernel's signature: `void f<float>(float*)`.
    Kernel,
    /// A call of a device's library or an op of a framework, which run on a host thread.
    Call,
}

/// The hint in a name, if there is one.
pub(crate) fn hint_of(name: &str) -> Option<Hint> {
    let lower = || name.get(..name.len().min(24)).unwrap_or(name).to_ascii_lowercase();
    let capital_after = |start: &str| {
        name.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    let bracketed = name.starts_with('[') && ["memcpy", "memset"].iter().any(|word| lower().contains(word));
    let directed = ["Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"].iter().any(|start| name.starts_with(start));
    if bracketed || directed {
        Some(Hint::Copy)
    } else if name.starts_with("void ") && name.contains('(') {
        Some(Hint::Kernel)
    } else if ["cuda", "hip", "cu"].iter().any(|start| capital_after(start)) || name.starts_with("aten::") {
        Some(Hint::Call)
    } else {
        None
    }
}

/// Kind and ordinal of the device in a process name or label: `GPU 0`, `/device:TPU:1`. PyTorch's first profiler called the
/// device's side `CUDA functions`.
pub(crate) fn device_of(name: &str) -> Option<(DeviceKind, Option<i64>)> {
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
pub(crate) fn device_line(name: &str) -> TrackKind {
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
    fn names_say_where_events_without_categories_ran() {
        for copy in [
            "[MEMCPY] DtoH",
            "[CUDA memcpy Host-to-Device]",
            "[CUDA memset]",
            "Memcpy HtoD (Pinned -> Device)",
        ] {
            assert_eq!(hint_of(copy), Some(Hint::Copy), "{copy}");
        }
        assert_eq!(hint_of("void at::native::copy<4>(int, float*)"), Some(Hint::Kernel));
        for call in ["cudaMemcpyAsync", "cuLaunchKernel", "hipMemcpy", "aten::copy_"] {
            assert_eq!(hint_of(call), Some(Hint::Call), "{call}");
        }
        for neither in ["MemcpyH2D", "train_step", "custom", "[1] layer", "ünder"] {
            assert_eq!(hint_of(neither), None, "{neither}");
        }
    }

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
