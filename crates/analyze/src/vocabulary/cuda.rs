//! Names of CUDA and HIP: host calls and device work, as spelt by CUPTI, ROCm, Kineto and Nsight; and the ops
//! of TPUs.

use super::Role;

/// Direction of a copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CopyDirection {
    /// To the device.
    In,
    /// From the device.
    Out,
    /// Within or between devices, or unknown.
    Device,
}

/// Prefixes of host calls; the first match decides. The vendor's prefix is removed first.
const CALLS: &[(&str, Role)] = &[
    ("LaunchKernel", Role::Launch),
    ("Launch", Role::Launch),
    ("ModuleLaunch", Role::Launch),
    ("ExtModuleLaunch", Role::Launch),
    ("ExtLaunch", Role::Launch),
    ("GraphLaunch", Role::Launch),
    ("HccModuleLaunch", Role::Launch),
    ("Memcpy", Role::LaunchCopy),
    ("Memset", Role::Launch),
    ("StreamSynchronize", Role::Sync),
    ("DeviceSynchronize", Role::Sync),
    ("EventSynchronize", Role::Sync),
    ("CtxSynchronize", Role::Sync),
    ("Malloc", Role::DeviceMemory),
    ("MemAlloc", Role::DeviceMemory),
    ("MemCreate", Role::DeviceMemory),
    ("Free", Role::DeviceMemory),
    ("MemFree", Role::DeviceMemory),
    ("HostAlloc", Role::DeviceMemory),
    ("HostMalloc", Role::DeviceMemory),
    ("HostRegister", Role::DeviceMemory),
    ("HostUnregister", Role::DeviceMemory),
    ("MemHost", Role::DeviceMemory),
    ("MemMap", Role::DeviceMemory),
    ("MemUnmap", Role::DeviceMemory),
    ("MemRelease", Role::DeviceMemory),
    ("MemAddress", Role::DeviceMemory),
    ("MemPool", Role::DeviceMemory),
];

/// A call of the CUDA or HIP runtime or driver.
pub(super) fn api_role(name: &str) -> Role {
    let Some(call) = without_vendor(name) else { return Role::Framework };
    CALLS.iter().find(|(start, _)| call.starts_with(start)).map_or(Role::Framework, |(_, role)| *role)
}

/// A runtime call of any accelerator: the category says that it is one; those of other vendors are recognised
/// by words.
pub(super) fn runtime_role(name: &str) -> Role {
    const WORDS: &[(&str, Role)] = &[
        ("synchronize", Role::Sync),
        ("memcpy", Role::LaunchCopy),
        ("memorycopy", Role::LaunchCopy),
        ("launch", Role::Launch),
        ("submit_for_execution", Role::Launch),
        ("executecommandlists", Role::Launch),
    ];
    if is_device_call(name) {
        return api_role(name);
    }
    let word = WORDS.iter().find(|(word, _)| contains_ignoring_case(name.as_bytes(), word.as_bytes()));
    word.map_or(Role::Framework, |(_, role)| *role)
}

/// Ranges that a profiler replays to collect counters: their duration is caused by the profiler.
pub(crate) fn is_replayed(category: &str) -> bool {
    category == "cuda_profiler_range"
}

/// Whether a queue only waits for another one, or for the host. Accelerators with command queues record their
/// waits among the work (`event_wait`, `wait_for_semaphore`).
fn is_wait(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b' ');
    let lower = name.to_ascii_lowercase();
    plain
        && (lower == "wait"
            || lower.ends_with("_wait")
            || lower.starts_with("wait_for_")
            || lower.starts_with("wait_event")
            || lower.starts_with("event_wait"))
}

pub(super) fn without_vendor(name: &str) -> Option<&str> {
    ["cuda", "cu", "hip"]
        .iter()
        .filter_map(|vendor| name.strip_prefix(vendor))
        .find(|call| call.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Whether it is a call of the device's runtime or driver.
pub(crate) fn is_device_call(name: &str) -> bool {
    without_vendor(name).is_some()
}

/// Whether it is a call that launches a whole graph of kernels.
pub(crate) fn starts_graph(call: &str) -> bool {
    without_vendor(call).is_some_and(|call| call.starts_with("GraphLaunch"))
}

/// A call that starts or ends the capture of a graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// From here on, launches run nothing.
    Begins,
    /// The graph is complete.
    Ends,
}

/// Whether the call starts or ends the capture of a graph.
pub fn capture(call: &str) -> Option<Capture> {
    let call = without_vendor(call)?;
    if call.starts_with("StreamBeginCapture") {
        Some(Capture::Begins)
    } else {
        call.starts_with("StreamEndCapture").then_some(Capture::Ends)
    }
}

/// Whether it is a call that makes a stream wait for an event.
pub(crate) fn is_stream_wait(call: &str) -> bool {
    without_vendor(call).is_some_and(|call| call.starts_with("StreamWaitEvent"))
}

/// Whether it is a copy of pages of unified memory, which no call asked for unless it was a prefetch.
pub(crate) fn is_migration(name: &str) -> bool {
    name.starts_with("Memcpy ") && name.ends_with("(Unified)")
}

/// Whether it is a page fault of unified memory on a device.
pub(crate) fn is_device_fault(name: &str) -> bool {
    name == "GPU page fault"
}

/// Whether it is a page fault of unified memory on the host.
pub(crate) fn is_host_fault(name: &str) -> bool {
    name == "CPU page fault"
}

/// Whether it is a call that moves unified memory ahead of its use.
pub(crate) fn is_prefetch(call: &str) -> bool {
    without_vendor(call).is_some_and(|call| call.starts_with("MemPrefetch"))
}

/// Whether it is a call that waits for everything a device or a context has to do.
pub(crate) fn waits_for_all(call: &str) -> bool {
    without_vendor(call)
        .is_some_and(|call| call.starts_with("DeviceSynchronize") || call.starts_with("CtxSynchronize"))
}

/// Whether it is a call that records an event on a stream.
pub(crate) fn is_event_record(call: &str) -> bool {
    without_vendor(call).is_some_and(|call| call.starts_with("EventRecord"))
}

/// Whether it is a call that launches kernels, one or a whole graph.
pub(crate) fn starts_kernels(name: &str) -> bool {
    without_vendor(name).is_some_and(|call| call.contains("Launch") && !call.contains("HostFunc"))
}

/// Whether the call waits until its copy is done, by its name; others may wait too.
pub(crate) fn is_synchronous_copy(call: &str) -> bool {
    without_vendor(call).is_some_and(|call| call.starts_with("Memcpy") && !call.contains("Async"))
}

/// A host event of a format without categories.
pub(super) fn host_role(name: &str, category: &str) -> Option<Role> {
    // AMD's runtime below HIP.
    if category == "hsa_api" {
        return Some(if name.contains("signal_wait") { Role::Sync } else { Role::Framework });
    }
    if category == "rccl_api" {
        return Some(Role::Launch);
    }
    if without_vendor(name).is_some() {
        return Some(api_role(name));
    }
    // XProf's host lines name the copy, not the call.
    (copy_direction(name).is_some()).then_some(Role::LaunchCopy)
}

/// Work on a device.
pub(super) fn device_role(name: &str, category: &str) -> Role {
    if category == "gpu_user_annotation" || category == "user_annotation" {
        return Role::Annotation;
    }
    if is_replayed(category) || category == "cpu_instant_event" || name.starts_with("[memory]") {
        return Role::Bookkeeping;
    }
    if is_wait(name) {
        return Role::DeviceWait;
    }
    if let Some(direction) = copy_direction(name) {
        return Role::Copy(direction);
    }
    if name.starts_with("Memset") || name.starts_with("MemSet") || category == "gpu_memset" {
        return Role::Memset;
    }
    if is_collective(name) {
        return Role::Collective;
    }
    tpu_role(name).unwrap_or(Role::Kernel)
}

/// Whether a kernel or an op moves data between devices.
pub fn is_collective(name: &str) -> bool {
    let op = hlo_opcode(name).unwrap_or(name);
    let lower = op.as_bytes();
    COLLECTIVES.iter().any(|part| contains_ignoring_case(lower, part.as_bytes()))
}

/// Parts of names of collectives: all generations of NCCL and RCCL kernels, one-shot and multicast all-reduces
/// of inference servers, XLA's opcodes.
const COLLECTIVES: &[&str] = &[
    "nccl",
    "rccl",
    "msccl",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "multimem_all_reduce",
    "cross_device_reduce",
    "allreduce",
    "allgather",
    "alltoall",
    "reducescatter",
    "nvshmem",
    "barrier-cores",
];

/// Whether a kernel computes each element of its result from one element of each input, and nothing else:
/// PyTorch's eager kernels (1.0 to 2.9), TensorFlow's through Eigen and its kernel generator (2.4 on), XLA's
/// for single ops. Kernels that a compiler already fused (`triton_poi_fused_…`, `loop_…_fusion`) do not count:
/// they are already fused.
pub fn is_elementwise(kernel: &str) -> bool {
    const EIGEN: &[&str] =
        &["TensorCwiseUnaryOp", "TensorCwiseBinaryOp", "TensorCwiseTernaryOp", "TensorConversionOp"];
    const NOT_EIGEN: &[&str] = &["TensorReductionOp", "TensorContractionOp", "TensorShufflingOp"];
    const SINGLE: &[&str] = &[
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "negate",
        "convert",
        "exponential",
        "log",
        "tanh",
        "logistic",
        "power",
        "sqrt",
        "rsqrt",
        "select",
        "compare",
        "abs",
        "sign",
        "and",
        "or",
        "not",
    ];
    if kernel.contains("EigenMetaKernel") {
        let has = |parts: &[&str]| parts.iter().any(|part| kernel.contains(part));
        return has(EIGEN) && !has(NOT_EIGEN);
    }
    if let Some(op) = kernel.strip_prefix("wrapped_") {
        let op = op.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        return SINGLE.contains(&op);
    }
    let stem = kernel.split(['<', '(']).next().unwrap_or(kernel);
    let eager = stem.contains("elementwise_kernel") && !stem.contains("index_elementwise");
    eager || (stem.contains("_GPU_DT_") && stem.ends_with("_kernel"))
}

/// XLA ops on TPUs are whole HLO instructions: `%copy-done = f32[8]{0} copy-done(…)`.
fn hlo_opcode(name: &str) -> Option<&str> {
    let (result, _) = name.strip_prefix('%')?.split_once(" = ")?;
    Some(result.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// XLA's number of the host's memory, as spelt in layouts.
const HOST_MEMORY: &str = "S(5)";

/// The direction of an asynchronous XLA copy: both halves contain the shapes of its target and source,
/// `%copy-start = (f32[8]{0}, f32[8]{0:S(5)}, u32[]) copy-start(…)`.
fn hlo_copy_direction(instruction: &str) -> CopyDirection {
    let pair = ["copy-done((", " = ("].iter().find_map(|start| Some(instruction.split_once(start)?.1));
    let mut on_host = pair.unwrap_or_default().split(']').skip(1).map(|layout| {
        let layout = layout.strip_prefix('{').and_then(|layout| layout.split_once('}'));
        layout.is_some_and(|(layout, _)| layout.contains(HOST_MEMORY))
    });
    match (on_host.next(), on_host.next()) {
        (Some(false), Some(true)) => CopyDirection::In,
        (Some(true), Some(false)) => CopyDirection::Out,
        _ => CopyDirection::Device,
    }
}

fn tpu_role(name: &str) -> Option<Role> {
    let op = hlo_opcode(name).unwrap_or(name);
    if op.starts_with("infeed") {
        Some(Role::Copy(CopyDirection::In))
    } else if op.starts_with("outfeed") {
        Some(Role::Copy(CopyDirection::Out))
    } else if op.starts_with("copy-start") || op.starts_with("copy-done") {
        Some(Role::Copy(hlo_copy_direction(name)))
    } else if op.starts_with("send") || op.starts_with("recv") {
        Some(Role::Copy(CopyDirection::Device))
    } else if op == "dependency-wait" {
        Some(Role::DeviceWait)
    } else {
        None
    }
}

/// The direction of a copy, if the name is one. Known spellings: `MemcpyH2D`, `MEMCPYHtoD`, `Memcpy HtoD
/// (Pinned -> Device)`, `[CUDA memcpy Host-to-Device]`, `CopyHostToDevice`.
pub(crate) fn copy_direction(name: &str) -> Option<CopyDirection> {
    let bytes = name.as_bytes();
    let is_copy = [&b"memcpy"[..], b"copyhosttodevice", b"copydevicetohost", b"copybuffer", b"dma_request"]
        .iter()
        .any(|part| contains_ignoring_case(bytes, part));
    // A kernel whose template arguments mention a copy is a kernel.
    if !is_copy || name.contains('<') || name.contains('(') && !starts_ignoring_case(bytes, b"memcpy") {
        return None;
    }
    let has = |parts: &[&str]| parts.iter().any(|part| contains_ignoring_case(bytes, part.as_bytes()));
    Some(if has(&["HtoD", "H2D", "host-to-device", "hosttodevice", "HtoA"]) {
        CopyDirection::In
    } else if has(&["DtoH", "D2H", "device-to-host", "devicetohost", "AtoH"]) {
        CopyDirection::Out
    } else {
        CopyDirection::Device
    })
}

fn starts_ignoring_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

fn contains_ignoring_case(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_every_spelling_have_a_direction() {
        use CopyDirection::{Device, In, Out};
        for (name, want) in [
            ("MemcpyH2D", In),
            ("MEMCPYHtoD", In),
            ("Memcpy HtoD (Pinned -> Device)", In),
            ("[CUDA memcpy Host-to-Device]", In),
            ("MemcpyD2H", Out),
            ("Memcpy DtoH (Device -> Pageable)", Out),
            ("MemcpyD2D", Device),
            ("MemcpyP2P", Device),
            ("MemcpyOther", Device),
        ] {
            assert_eq!(copy_direction(name), Some(want), "{name}");
        }
        assert_eq!(copy_direction("void memcpy_kernel<float>(float*)"), None);
        assert_eq!(copy_direction("volta_sgemm_128x64_nn"), None);
    }

    #[test]
    fn elementwise_kernels_are_told_from_reductions_and_fused_ones() {
        for name in [
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)",
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::T&)>(int)",
            "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorCwiseBinaryOp<x>>>(y)",
            "Mul_GPU_DT_FLOAT_DT_FLOAT_kernel",
            "wrapped_add_3",
        ] {
            assert!(is_elementwise(name), "{name}");
        }
        for name in [
            "void at::native::index_elementwise_kernel<128, 4, f>(int)",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(r)",
            "void Eigen::internal::EigenMetaKernel<Eigen::TensorReductionOp<Eigen::TensorCwiseBinaryOp<x>>>(y)",
            "triton_poi_fused_add_mul_0",
            "loop_add_fusion",
            "wrapped_transpose",
            "ampere_sgemm_128x64_tn",
        ] {
            assert!(!is_elementwise(name), "{name}");
        }
    }

    #[test]
    fn copies_that_wait_are_told_by_their_call() {
        let starting =
            ["cudaLaunchKernelExC", "cuLaunchKernel", "cudaGraphLaunch", "hipExtModuleLaunchKernel"];
        assert!(starting.into_iter().all(starts_kernels));
        assert!(!["cudaLaunchHostFunc", "cudaMemsetAsync", "Launch"].into_iter().any(starts_kernels));
        assert!(is_synchronous_copy("cudaMemcpy") && is_synchronous_copy("cuMemcpyHtoD_v2"));
        assert!(!is_synchronous_copy("cudaMemcpyAsync") && !is_synchronous_copy("hipMemcpyHtoDAsync"));
        assert!(!is_synchronous_copy("cudaLaunchKernel"));
    }

    #[test]
    fn waits_and_replays_are_no_compute() {
        for name in ["event_wait", "wait_for_semaphore", "WAIT"] {
            assert_eq!(device_role(name, "mtia_ccp_events"), Role::DeviceWait, "{name}");
        }
        assert_eq!(device_role("awaited_gemm", "kernel"), Role::Kernel);
        assert_eq!(device_role("volta_sgemm_128x64_nn", "cuda_profiler_range"), Role::Bookkeeping);
        assert_eq!(device_role("dma_request", "mtia_ccp_events"), Role::Copy(CopyDirection::Device));
        assert_eq!(runtime_role("synchronizeStream"), Role::Sync);
        assert_eq!(runtime_role("runFunction - job_prep_and_submit_for_execution"), Role::Launch);
        assert_eq!(runtime_role("cudaMemcpyAsync"), Role::LaunchCopy);
    }

    #[test]
    fn collectives_are_known_by_every_generation_of_names() {
        for name in [
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
            "ncclDevKernel_AllGather_RING_LL",
            "%all-reduce.3 = f32[4] all-reduce(f32[4] %x)",
        ] {
            assert_eq!(device_role(name, "kernel"), Role::Collective, "{name}");
        }
        assert_eq!(device_role("volta_sgemm_128x64_nn", "kernel"), Role::Kernel);
    }

    #[test]
    fn calls_of_both_vendors_are_known() {
        for (name, want) in [
            ("cudaLaunchKernel", Role::Launch),
            ("cuLaunchKernelEx", Role::Launch),
            ("hipExtModuleLaunchKernel", Role::Launch),
            ("cudaGraphLaunch", Role::Launch),
            ("cudaMemcpyAsync", Role::LaunchCopy),
            ("cudaStreamSynchronize", Role::Sync),
            ("hipEventSynchronize", Role::Sync),
            ("cudaMalloc", Role::DeviceMemory),
            ("cudaEventQuery", Role::Framework),
        ] {
            assert_eq!(api_role(name), want, "{name}");
        }
        assert_eq!(host_role("custom", ""), None);
    }

    #[test]
    fn copies_of_xla_go_where_their_layouts_say() {
        let (device, host) = ("f32[5,8]{1,0:T(8,128)}", "f32[5,8]{1,0:T(8,128)S(5)}");
        let pairs = [
            (device, host, CopyDirection::In),
            (host, device, CopyDirection::Out),
            (device, "f32[5,8]{1,0:T(8,128)S(1)}", CopyDirection::Device),
            ("f32[]", "f32[]{:S(5)}", CopyDirection::In),
        ];
        for (to, from, direction) in pairs {
            let start = format!("%copy-start.1 = ({to}, {from}, u32[]{{:S(2)}}) copy-start({from} %param)");
            let done = format!("%copy-done.1 = {to} copy-done(({to}, {from}, u32[]{{:S(2)}}) %copy-start.1)");
            for name in [start, done] {
                assert_eq!(tpu_role(&name), Some(Role::Copy(direction)), "{name}");
            }
        }
        assert_eq!(
            tpu_role("copy-done.1"),
            Some(Role::Copy(CopyDirection::Device)),
            "a bare name tells nothing"
        );
    }
}
