//! Names of JAX and XLA (JAX 0.4 to 0.10).

use super::families::is_exchange;
use super::signature::{KeySet, Keys};
use super::{CopyDirection, Role};

const EXACT: &[(&str, Role)] = &[
    ("backend_compile", Role::Compile),
    ("backend_compile_and_load", Role::Compile),
    ("compile_or_get_cached", Role::Compile),
    ("Codegen", Role::Compile),
    ("ParseArguments", Role::Framework),
    ("DevicePut", Role::Framework),
    ("device_put", Role::Framework),
    ("shard_args", Role::Framework),
    ("lower_sharding_computation", Role::Tracing),
    ("lower_jaxpr_to_module", Role::Tracing),
    ("trace_to_jaxpr", Role::Tracing),
    ("trace_to_jaxpr_dynamic", Role::Tracing),
    ("BlockHostUntilReady", Role::Sync),
    ("PjRtBuffer::GetReadyFuture", Role::Sync),
    ("block_until_ready", Role::Sync),
    ("Await", Role::Sync),
    ("CopyToHostAsync", Role::Sync),
    ("H2D Dispatch", Role::HostCopy(CopyDirection::In)),
    ("D2H Dispatch", Role::HostCopy(CopyDirection::Out)),
    ("ThunkExecutor::Execute", Role::Op),
    ("ThunkExecutor::Execute (wait for completion)", Role::Framework),
];

const PREFIXES: &[(&str, Role)] = &[
    ("PjitFunction(", Role::FunctionCall),
    ("CompiledFunction", Role::FunctionCall),
    ("JitCompiler", Role::Compile),
    ("CpuCompiler", Role::Compile),
    ("GpuCompiler", Role::Compile),
    ("NVPTXCompiler", Role::Compile),
    ("AMDGPUCompiler", Role::Compile),
    ("XlaCompile", Role::Compile),
    ("CompileCpuExecutable", Role::Compile),
    ("HLO passes", Role::Compile),
    ("HloPass", Role::Compile),
    ("RunHloPasses", Role::Compile),
    ("RunBackend", Role::Compile),
    ("LLVM", Role::Compile),
    ("end: ", Role::Bookkeeping),
    ("Wait for ", Role::Framework),
    ("PythonRefManager", Role::Framework),
    ("SlinkyThreadPool", Role::Op),
];

pub(super) fn role(name: &str, keys: KeySet) -> Option<Role> {
    if let Some((_, role)) = EXACT.iter().find(|(exact, _)| *exact == name) {
        return Some(*role);
    }
    if let Some((_, role)) = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return Some(*role);
    }
    // `PjRtCpuClient::Compile`, `PjRtStreamExecutorClient::Compile`, `TfrtCpuClient::Compile`, …
    if name.ends_with("Client::Compile")
        || name.ends_with("::CompileAndLoad")
        || name.ends_with("::RunBackend")
    {
        return Some(Role::Compile);
    }
    if name.starts_with("PjRt") || name.starts_with("CommonPjRt") || name.starts_with("ExecuteReplicated") {
        return Some(Role::Framework);
    }
    let op = if is_exchange(name) { Role::HostCollective } else { Role::Op };
    keys.has(Keys::HloOp).then_some(op)
}

/// Functions of `jax.numpy`, `jax.lax`, `jax.nn` and `jax.random` that are separate compiled programs when they
/// are called outside a compiled function.
const LIBRARY: &str = "\
    abs absolute add all any apply_activation arange argmax argmin argsort astype bitwise_and broadcast_in_dim \
    broadcast_to ceil clip concatenate convert_element_type copy cos cumsum divide dot dot_general dynamic_slice \
    dynamic_update_slice einsum equal erf exp expand_dims eye fill floor floor_divide full gather gelu greater \
    greater_equal iota less less_equal linspace log log1p log_softmax logical_and logical_not logical_or logistic \
    logsumexp matmul max maximum mean min minimum mod multiply negative norm not_equal one_hot ones outer pad \
    power prod ravel reduce_max reduce_sum relu remainder repeat reshape roll round rsqrt scatter sigmoid sign \
    silu sin slice softmax sort split sqrt square squeeze stack std subtract sum swapaxes swish take \
    take_along_axis tanh tensordot tile transpose tril triu true_divide var where zeros";

/// Whether it is a call of a single library op instead of a user's compiled function.
pub(crate) fn is_library_function(name: &str) -> bool {
    let Some(function) = name.strip_prefix("PjitFunction(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    // JAX's own helpers start with an underscore: `_where`, `_threefry_split`.
    function.starts_with('_') || LIBRARY.split(' ').any(|known| known == function)
}

pub(super) fn is_sign(name: &str) -> bool {
    name.starts_with("PjitFunction(") || name.starts_with("$pjit.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_told_from_functions_that_somebody_compiled() {
        assert!(is_library_function("PjitFunction(matmul)") && is_library_function("PjitFunction(_where)"));
        assert!(!is_library_function("PjitFunction(train_step)") && !is_library_function("train_function"));
    }

    #[test]
    fn compilers_of_every_client_are_known() {
        let none = KeySet::default();
        for name in [
            "PjRtCpuClient::Compile",
            "CpuCompiler::RunBackend",
            "HLO passes through layout assignment (jit_f)",
        ] {
            assert_eq!(role(name, none), Some(Role::Compile), "{name}");
        }
        assert_eq!(role("PjitFunction(f)", none), Some(Role::FunctionCall));
        assert_eq!(role("end: dot.2", none), Some(Role::Bookkeeping));
    }
}
