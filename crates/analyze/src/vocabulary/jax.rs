//! JAX's and XLA's names (JAX 0.4 to 0.10).

use super::Role;
use super::families::is_exchange;
use super::signature::{KeySet, Keys};

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

pub(super) fn is_sign(name: &str) -> bool {
    name.starts_with("PjitFunction(") || name.starts_with("$pjit.py")
}

#[cfg(test)]
mod tests {
    use super::*;

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
