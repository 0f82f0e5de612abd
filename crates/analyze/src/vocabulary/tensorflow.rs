//! Names of TensorFlow (seen in 2.3 to 2.21) and Keras (2 and 3).

use super::Role;
use super::families::is_exchange;
use super::signature::{KeySet, Keys};

/// A call of `Session.run`.
pub(super) const SESSION_RUN: &str = "SessionRun";

/// Exact names.
const EXACT: &[(&str, Role)] = &[
    ("tf.function-graph_building", Role::Tracing),
    ("MemoryAllocation", Role::Bookkeeping),
    ("MemoryDeallocation", Role::Bookkeeping),
    ("ExecutorPropagateOutputs", Role::Bookkeeping),
    ("ExecutorState::Process", Role::ExecutorRun),
    ("ExecutorDoneCallback", Role::ExecutorRun),
    ("KernelAndDeviceFunc::Run", Role::EagerKernel),
    ("IteratorGetNextOp::DoCompute", Role::InputWait),
    ("IteratorGetNextAsOptionalOp::DoCompute", Role::InputWait),
    ("IteratorGetNextSync", Role::InputWait),
    ("BatchingSessionRun", Role::Framework),
    ("ProcessBatch", Role::Framework),
    ("FunctionRun", Role::Framework),
    (SESSION_RUN, Role::Framework),
    ("RunGraph", Role::Framework),
];

/// Prefixes of names.
const PREFIXES: &[(&str, Role)] = &[
    ("ThreadpoolListener::", Role::Bookkeeping),
    ("InstantiatedCapturedFunction::", Role::InputFunction),
    ("Iterator::", Role::InputStage),
    ("MultiDeviceIterator", Role::InputWait),
    ("TFE_Py_", Role::EagerCall),
    ("TFE_", Role::Framework),
    ("EagerExecute", Role::EagerCall),
    ("EagerKernelExecute", Role::Framework),
    ("EagerCopyToDevice", Role::Framework),
    ("ValidateInput", Role::Framework),
    ("convert_to_tensor", Role::Framework),
    ("tf.constant", Role::Framework),
    ("ExecutorState::ProcessAsync", Role::Framework),
    ("RemoteCallOp", Role::Framework),
    ("EagerService:", Role::Framework),
    ("XlaLaunch", Role::Framework),
    ("XlaCompile", Role::Compile),
    ("XlaCompilationCache", Role::Compile),
    ("MlirBridge", Role::Compile),
];

/// Endings of names of the pipeline's queues between threads.
const QUEUES: &[&str] = &["Produce", "Consume"];
const QUEUE_OWNERS: &[&str] =
    &["Prefetch", "ParallelMap", "ParallelInterleave", "MapAndBatch", "ParseExample", "ParallelBatch"];

/// Ops that write output.
const OUTPUT_OPS: &[&str] = &[
    "SaveV2",
    "Save",
    "SaveSlices",
    "MergeV2Checkpoints",
    "WriteFile",
    "WriteSummary",
    "WriteScalarSummary",
    "WriteHistogramSummary",
    "WriteImageSummary",
    "WriteAudioSummary",
    "WriteGraphSummary",
    "WriteRawProtoSummary",
    "FlushSummaryWriter",
    "CreateSummaryFileWriter",
    "PrintV2",
    "Print",
    // The text that `tf.print` writes: with `summarize=-1` it takes longer than writing.
    "StringFormat",
    "SaveDataset",
    "DatasetToTFRecord",
];

/// Ops that pass tensors on to another device or process, or wait for them.
const REMOTE_OPS: &[&str] = &["_Send", "_Recv", "_HostSend", "_HostRecv", "RemoteCall"];

/// The nodes between which an executor runs a graph. They compute nothing: their time is the executor's.
const ENDS: &[&str] = &["_SOURCE", "_SINK"];

/// Ops that wait for the next batch.
const INPUT_OPS: &[&str] = &[
    "IteratorGetNext",
    "IteratorGetNextSync",
    "IteratorGetNextAsOptional",
    "MultiDeviceIteratorGetNextFromShard",
    "ReduceDataset",
];

pub(super) fn role(name: &str, keys: KeySet) -> Option<Role> {
    if keys.has(Keys::StepNumber) && !keys.has(Keys::FunctionCall) {
        return Some(Role::StepMarker);
    }
    if keys.has(Keys::FunctionCall) {
        return Some(Role::FunctionCall);
    }
    if let Some((_, role)) = EXACT.iter().find(|(exact, _)| *exact == name) {
        return Some(*role);
    }
    if let Some(op) = name.strip_prefix("EagerLocalExecute: ") {
        return Some(op_role(op).unwrap_or(Role::Framework));
    }
    if let Some((_, role)) = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return Some(*role);
    }
    if keys.has(Keys::InputStage) {
        return Some(Role::InputStage);
    }
    let queue = QUEUES.iter().find_map(|ending| name.strip_suffix(ending));
    if queue.is_some_and(|owner| QUEUE_OWNERS.contains(&owner)) {
        return Some(Role::InputStage);
    }
    if ENDS.iter().any(|end| name.strip_prefix(end).is_some_and(|rest| rest.starts_with(':'))) {
        return Some(Role::Framework);
    }
    op_type(name).map(|op| op_role(op).unwrap_or(Role::Op))
}

/// The role of an op of this type, if it is not simply the model's.
fn op_role(op: &str) -> Option<Role> {
    if INPUT_OPS.contains(&op) {
        Some(Role::InputWait)
    } else if is_output_op(op) {
        Some(Role::Output)
    } else if is_exchange(op) || REMOTE_OPS.contains(&op) {
        Some(Role::HostCollective)
    } else if op.ends_with("Dataset") || op.ends_with("DatasetV2") || op.ends_with("DatasetV3") {
        Some(Role::Framework)
    } else {
        None
    }
}

/// What an op of this type waits for while it runs in the background; `None` if it works itself or runs other ops.
pub(crate) fn waits_for(op: &str) -> Option<Role> {
    op_role(op).filter(|role| matches!(role, Role::InputWait | Role::HostCollective))
}

/// Whether an op of this type hands tensors to another process or device, or waits for them.
pub fn is_remote_op(op: &str) -> bool {
    REMOTE_OPS.contains(&op)
}

/// Whether an op of this type formats or prints text.
pub fn is_print_op(op: &str) -> bool {
    matches!(op, "PrintV2" | "Print" | "StringFormat")
}

/// Whether a thread belongs to a server that other processes send work to, or that sends work to others.
pub(crate) fn is_server_thread(name: &str) -> bool {
    name.starts_with("GrpcWorkerEnv") || name.starts_with("tf_GrpcWorkerEnv")
}

/// Whether a thread of a tf.data service worker prepares batches for other processes.
pub(crate) fn is_data_worker_thread(name: &str) -> bool {
    name.starts_with("tf_data_service_") || name.starts_with("tf_data_standalone")
}

/// Whether an op of this type writes output.
pub fn is_output_op(op: &str) -> bool {
    OUTPUT_OPS.contains(&op)
}

/// The op's type in an event name `scope/name:Type`.
///
/// Types are identifiers that start with a capital or an underscore, which distinguishes ops from other names
/// with a colon (`Iterator::Root`, `$file.py:12 f`).
pub fn op_type(name: &str) -> Option<&str> {
    let (scope, op) = name.rsplit_once(':')?;
    let first = *op.as_bytes().first()?;
    let named = first.is_ascii_uppercase() || (first == b'_' && op.len() > 1);
    let word = op.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'>');
    (named && word && !scope.is_empty() && !scope.ends_with(':') && !scope.starts_with('$')).then_some(op)
}

/// The stages in the name of a tf.data event, from the root: `Iterator::Root::Prefetch::Map` is `["Root",
/// "Prefetch", "Map"]`.
pub(crate) fn iterator_path(name: &str) -> Option<impl Iterator<Item = &str>> {
    name.strip_prefix("Iterator::").map(|path| path.split("::"))
}

pub(super) fn is_keras_sign(name: &str) -> bool {
    matches!(
        name,
        "Profiled batch"
            | "multi_step_on_iterator"
            | "one_step_on_iterator"
            | "train_function"
            | "predict_function"
            | "test_function"
            | "one_step_on_data"
            | "one_step_on_data_distributed"
    ) || name.contains("__inference_multi_step_on_iterator")
        || name.contains("__inference_one_step_on_")
        || name.contains("__inference_train_function_")
        || name.contains("__inference_predict_function_")
}

pub(super) fn is_sign(name: &str) -> bool {
    name == SESSION_RUN
        || name.starts_with("TFE_Py")
        || name.starts_with("EagerExecute")
        || name.starts_with("ExecutorState::")
        || name == "tf.function-graph_building"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn op_types_are_told_from_other_names_with_colons() {
        assert_eq!(op_type("sequential/dense/MatMul:MatMul"), Some("MatMul"));
        assert_eq!(op_type("x/Relu:_FusedMatMul"), Some("_FusedMatMul"));
        assert_eq!(op_type("Iterator::Root::Prefetch"), None);
        assert_eq!(op_type("$train.py:12 step"), None);
        assert_eq!(op_type("end: dot.2"), None);
        assert_eq!(op_type("ThreadpoolListener::Record"), None);
        assert_eq!(op_type(":MatMul"), None);
    }

    #[test]
    fn pipelines_and_checkpoints_are_not_the_models_work() {
        let none = KeySet::default();
        assert_eq!(role("Iterator::Root::Prefetch::Map", none), Some(Role::InputStage));
        assert_eq!(role("ParallelMapProduce", none), Some(Role::InputStage));
        assert_eq!(role("EagerLocalExecute: SaveV2", none), Some(Role::Output));
        assert_eq!(role("EagerLocalExecute: MatMul", none), Some(Role::Framework));
        assert_eq!(role("save/SaveV2:SaveV2", none), Some(Role::Output));
        assert_eq!(role("dense/MatMul:MatMul", none), Some(Role::Op));
        assert_eq!(role("my own name", none), None);
        assert_eq!(role("_SOURCE:NoOp", none), Some(Role::Framework), "the executor starts");
        assert_eq!(role("group_deps:NoOp", none), Some(Role::Op));
        assert_eq!(role("StringFormat:StringFormat", none), Some(Role::Output));
    }

    #[test]
    fn what_other_processes_do_is_neither_an_op_nor_dispatch() {
        let none = KeySet::default();
        assert_eq!(role("EagerService:Enqueue", none), Some(Role::Framework));
        assert_eq!(role("mul_2/_11:_Send", none), Some(Role::HostCollective));
        assert_eq!(waits_for("_Recv"), Some(Role::HostCollective));
        assert_eq!(waits_for("IteratorGetNext"), Some(Role::InputWait));
        assert_eq!(waits_for("PartitionedCall"), None, "it runs other ops");
    }

    #[test]
    fn paths_name_the_stages_from_the_root() {
        let path: Vec<_> = iterator_path("Iterator::Root::Prefetch::Map").into_iter().flatten().collect();
        assert_eq!(path, ["Root", "Prefetch", "Map"]);
        assert!(iterator_path("IteratorGetNext").is_none());
    }
}
