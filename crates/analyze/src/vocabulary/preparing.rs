//! Calls and ranges in which a program starts: what happens there happens once, and says nothing about its loop.

use super::cuda::without_vendor;
use super::words;

/// Whether it is a call that prepares a device, a library or code, and that a loop does not repeat.
pub(crate) fn prepares_device(name: &str) -> bool {
    const CALLS: &[&str] = &[
        "Init",
        "CtxCreate",
        "DevicePrimaryCtx",
        "DeviceReset",
        "SetDevice",
        "ModuleLoad",
        "ModuleGetFunction",
        "LibraryLoad",
        "LibraryGet",
        "GetFuncBySymbol",
        "Link",
        "StreamCreate",
        "GraphInstantiate",
    ];
    const LIBRARIES: &[&str] =
        &["cublas", "cudnn", "cusparse", "cusolver", "cufft", "curand", "nvrtc", "nccl"];
    const PREPARING: &[&str] = &["Create", "Init", "CompileProgram", "Plan"];
    without_vendor(name).is_some_and(|call| CALLS.iter().any(|start| call.starts_with(start)))
        || (LIBRARIES.iter().any(|library| name.starts_with(library))
            && PREPARING.iter().any(|part| name.contains(part)))
}

/// Whether a range is named as a program's warm-up: `warm up`, `warmup_iters`, `WarmUp`.
pub(crate) fn is_warm_up(name: &str) -> bool {
    // Most names are ruled out without taking them apart.
    let may = name.as_bytes().windows(4).any(|part| part.eq_ignore_ascii_case(b"warm"));
    may && {
        let words = words(name);
        words.iter().any(|word| ["warmup", "warming", "prewarm"].contains(&word.as_str()))
            || words.windows(2).any(|pair| pair == ["warm", "up"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_prepare_are_told_from_those_of_a_loop() {
        for name in [
            "cuModuleLoadData",
            "cudaStreamCreate",
            "cuLibraryLoadData",
            "nvrtcCompileProgram",
            "cublasCreate_v2",
        ] {
            assert!(prepares_device(name), "{name}");
        }
        for name in [
            "cudaLaunchKernel",
            "cudaMemcpy",
            "cudaMalloc",
            "cudaStreamSynchronize",
            "cublasSgemm_v2",
            "Init",
        ] {
            assert!(!prepares_device(name), "{name}");
        }
    }

    #[test]
    fn a_warm_up_is_called_one() {
        for name in ["warm up", "warmup", "WarmUp", "warm-up 3", "model_warmup_iters", "prewarm"] {
            assert!(is_warm_up(name), "{name}");
        }
        for name in ["forward", "swarm_step", "warm colours", "lukewarm", "update"] {
            assert!(!is_warm_up(name), "{name}");
        }
    }
}
