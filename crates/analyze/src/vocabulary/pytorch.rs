//! Names of PyTorch, as written by Kineto (1.8 to 2.9). The category says nearly everything; before 1.12 all
//! host events were called `Operator`.

use super::Role;

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    match category {
        "cpu_op" | "Operator" | "user_annotation" => Some(host_op(name, category)),
        "cuda_runtime" | "cuda_driver" | "Runtime" | "mtia_runtime" | "xpu_runtime" | "hpu_runtime" => {
            Some(super::cuda::runtime_role(name))
        }
        "cpu_instant_event" | "Trace" => Some(Role::Bookkeeping),
        "overhead" => Some(overhead(name)),
        "gpu_user_annotation" => Some(Role::Annotation),
        "cuda_sync" => Some(Role::Annotation),
        "dynamo_timed" => Some(Role::Compile),
        // The first profiler wrote no categories.
        "" if name.starts_with("aten::") => Some(host_op(name, category)),
        _ => None,
    }
}

fn host_op(name: &str, category: &str) -> Role {
    if is_step(name) {
        Role::StepMarker
    } else if name.starts_with("enumerate(DataLoader)#") || name == "enumerate(DataLoader)" {
        Role::InputWait
    } else if name == "TorchDynamo Cache Lookup" {
        // Looking for code that was compiled before: part of every call.
        Role::Framework
    } else if is_compiling(name) {
        Role::Compile
    } else if is_annotation(name) {
        Role::Annotation
    } else if is_collective(name) {
        Role::HostCollective
    } else if category == "user_annotation" {
        super::ranges::role(name)
    } else {
        Role::Op
    }
}

/// Collectives of the processor: Gloo's own range, on its thread, and the op that hands the data to a backend.
fn is_collective(name: &str) -> bool {
    ["gloo:", "c10d::", "_c10d_functional::"].iter().any(|start| name.starts_with(start))
}

/// Parts of `torch.compile` at work, which it times itself since 2.6.
fn is_compiling(name: &str) -> bool {
    name.ends_with(" (dynamo_timed)")
        || name.starts_with("TorchDynamo")
        || name.starts_with("Inductor")
        || name.contains("compile_fx")
}

/// What CUPTI counts as overhead is the profiler's own, except for code that is brought onto the device on first use, which
/// also takes its time unrecorded, once. The driver's compiler is a compiler; loading code is part of a first launch.
fn overhead(name: &str) -> Role {
    let lower = name.to_ascii_lowercase();
    if lower.contains("driver compiler") {
        Role::Compile
    } else if ["module load", "lazy function load"].iter().any(|sort| lower.contains(sort)) {
        Role::Launch
    } else {
        Role::Bookkeeping
    }
}

/// The markers that `torch.profiler` writes around `prof.step()`.
fn is_step(name: &str) -> bool {
    name.strip_prefix("ProfilerStep#").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

/// Blocks that old versions recorded as operators.
fn is_annotation(name: &str) -> bool {
    name.starts_with("Optimizer.")
        || name.starts_with("DataParallel.")
        || name.starts_with("DistributedDataParallel.")
        || name.starts_with("nn.Module:")
        || name.starts_with("##")
        || name == "[memory]"
        || name.starts_with("autograd::engine::evaluate_function")
}

/// Whether it is the name of an op. All ops have a namespace (`aten::mm`, `flash_attn::_fwd`); names without
/// one are ranges around ops: a compiled region, a node of the backward graph, a TorchScript function, a user
/// range.
pub fn names_torch_op(name: &str) -> bool {
    name.contains("::") && !name.starts_with("torch::autograd::") && !name.starts_with("autograd::")
}

/// Whether it is the compiler's name for a whole part of a model.
pub(crate) fn is_compiled_region(name: &str) -> bool {
    ["Torch-Compiled Region", "CompiledFunction", "CompiledFxGraph"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether it is an op that only devices have.
pub(crate) fn runs_on_device(name: &str) -> bool {
    name.strip_prefix("aten::").is_some_and(|op| {
        let op = op.trim_start_matches('_');
        // Every machine checks whether cuDNN can be used.
        (op.starts_with("cudnn_") || op.starts_with("miopen_")) && !op.ends_with("_is_acceptable")
    })
}

pub(super) fn is_sign(name: &str, category: &str) -> bool {
    matches!(category, "cpu_op" | "Operator") || name.starts_with("aten::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_brought_to_the_device_is_no_overhead_of_the_recorder() {
        for name in ["Runtime Triggered Module Loading", "Lazy Function Loading"] {
            assert_eq!(role(name, "overhead"), Some(Role::Launch), "{name}");
        }
        assert_eq!(role("Driver Compiler", "overhead"), Some(Role::Compile));
        assert_eq!(role("Activity Buffer Request", "overhead"), Some(Role::Bookkeeping));
    }

    #[test]
    fn old_and_new_categories_mean_the_same() {
        for category in ["cpu_op", "Operator"] {
            assert_eq!(role("aten::addmm", category), Some(Role::Op));
        }
        assert_eq!(role("aten::addmm", ""), Some(Role::Op), "as the first profiler wrote it");
        assert_eq!(role("my_range", ""), None);
        assert_eq!(role("ProfilerStep#12", "Operator"), Some(Role::StepMarker));
        assert_eq!(role("ProfilerStep#12", "user_annotation"), Some(Role::StepMarker));
        assert_eq!(role("Optimizer.step#SGD.step", "Operator"), Some(Role::Annotation));
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        assert_eq!(role(loader, "user_annotation"), Some(Role::InputWait));
        assert_eq!(role("load_batch", "user_annotation"), Some(Role::InputWait));
        assert_eq!(role("my_range", "user_annotation"), Some(Role::Annotation));
        assert_eq!(role("c10d::allreduce_", "cpu_op"), Some(Role::HostCollective));
        assert_eq!(role("cudaLaunchKernel", "Runtime"), Some(Role::Launch));
        assert_eq!(role("anything", ""), None);
    }

    #[test]
    fn compiling_is_not_looking_for_compiled_code() {
        let inner = "_compile.compile_inner (dynamo_timed)";
        assert_eq!(role(inner, "user_annotation"), Some(Role::Compile));
        assert_eq!(role("TorchDynamo Cache Lookup", "cpu_op"), Some(Role::Framework));
    }
}
