//! Frames of Python tracers: XLA's writes `$file.py:12 f`, Kineto's has its own category and names like
//! `file.py(12): f`.
//!
//! Nothing below a Python loader is recorded, so only its frames distinguish waiting for data from other
//! Python. They are recognised by common function names.

use super::Role;

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    let function = function_of(name, category)?;
    Some(if fetches_input(function) {
        Role::InputWait
    } else if writes_output(name, function) {
        Role::Output
    } else {
        Role::PythonFrame
    })
}

/// Whether it is a frame of a Python tracer, whatever it does.
pub(crate) fn is_python_frame(name: &str, category: &str) -> bool {
    function_of(name, category).is_some()
}

/// Files in which JAX implements what looks like one op.
const OP_FILES: &[&str] = &[
    "array_methods.py",
    "array_creation.py",
    "ufunc_api.py",
    "ufuncs.py",
    "lax.py",
    "lax_numpy.py",
    "lax_internal.py",
    "functions.py",
    "reductions.py",
    "einsum.py",
    "tensor_contractions.py",
    "indexing.py",
    "dtypes.py",
    "core.py",
    "dispatch.py",
    "pjit.py",
    "api.py",
    "profiler.py",
    "traceback_util.py",
    "random.py",
    "prng.py",
    "array.py",
];
/// PyTorch functions that are whole parts of an iteration.
const TURN: &[&str] =
    &["forward", "backward", "step", "_call_impl", "_wrapped_call_impl", "__next__", "wrapper"];

/// Whether it is a library frame below the calls of a loop: one op, a tracer, a built-in function.
pub(crate) fn is_library_frame(name: &str) -> bool {
    if name.starts_with("<built-in") || name.starts_with("<method") {
        return true;
    }
    let function = name.rsplit([' ', ':']).next().unwrap_or(name);
    if name.starts_with("torch/") || name.contains("/torch/") {
        return !TURN.contains(&function);
    }
    let file = name.strip_prefix('$').and_then(|frame| frame.split(':').next());
    file.is_some_and(|file| OP_FILES.contains(&file))
}

/// The function in a frame's name; `None` if it is not a frame.
fn function_of<'n>(name: &'n str, category: &str) -> Option<&'n str> {
    if let Some(frame) = name.strip_prefix('$') {
        return Some(frame.rsplit(' ').next().unwrap_or(frame));
    }
    (category == "python_function").then(|| name.rsplit(": ").next().unwrap_or(name))
}

/// Names of functions that return the next batch.
const INPUT: &[&str] = &[
    "__next__",
    "next",
    "next_batch",
    "get_batch",
    "get_next_batch",
    "load_batch",
    "fetch_batch",
    "make_batch",
    "sample_batch",
    "read_batch",
    "next_data",
    "get_data",
    "load",
    "load_data",
    "load_sample",
    "fetch",
    "data_loader",
    "dataloader",
    "data_generator",
    "batch_generator",
    "batch_iterator",
    "batches",
    "collate",
    "collate_fn",
    "preprocess",
    "preprocess_batch",
    "augment",
];

fn fetches_input(function: &str) -> bool {
    INPUT.contains(&function)
}

/// Whether a loop that calls this function of this file waits for a producer: `queue.Queue.get`,
/// `multiprocessing.Queue.get`.
pub fn takes_from_queue(file: &str, function: &str) -> bool {
    let file = file.rsplit('/').next().unwrap_or(file);
    matches!(file, "queue.py" | "queues.py") && function == "get"
}

/// Whether a frame hands an item to a queue between threads.
pub(crate) fn puts_into_queue(frame: &str) -> bool {
    calls_queue(frame, "put")
}

/// Whether a frame takes an item from a queue between threads, or waits until there is one.
pub(crate) fn gets_from_queue(frame: &str) -> bool {
    calls_queue(frame, "get")
}

fn calls_queue(frame: &str, wanted: &str) -> bool {
    let parts = frame.strip_prefix('$').and_then(|frame| frame.split_once(' '));
    parts.is_some_and(|(place, function)| {
        matches!(place.split(':').next(), Some("queue.py" | "queues.py")) && function == wanted
    })
}

/// Functions in which a thread gives the interpreter lock up until something happens.
const BLOCKING: &[&str] =
    &["acquire", "wait", "sleep", "join", "select", "poll", "recv", "recv_into", "accept", "read"];

/// Whether a frame of XLA's tracer waits without running Python.
pub(crate) fn blocks(frame: &str) -> bool {
    frame.starts_with('$') && frame.rsplit(' ').next().is_some_and(|function| BLOCKING.contains(&function))
}

/// Whether a frame only waits until a runtime has computed its results.
pub(crate) fn awaits_results(frame: &str) -> bool {
    frame.starts_with('$') && matches!(frame.rsplit(' ').next(), Some("block_until_ready" | "try_to_block"))
}

/// Functions that write files or logs, in any file.
const OUTPUT: &[&str] = &[
    "savefig",
    "imsave",
    "imwrite",
    "savez",
    "savez_compressed",
    "savetxt",
    "to_csv",
    "to_hdf",
    "to_parquet",
    "to_pickle",
    "save_checkpoint",
    "save_model",
    "save_weights",
    "save_pretrained",
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "write_scalars",
    "write_summary",
];

/// Files and functions that write checkpoints, summaries and results.
fn writes_output(name: &str, function: &str) -> bool {
    let summaries = ["summary_ops_v2.py", "tensorboard/plugins/", "torch/utils/tensorboard/"];
    if OUTPUT.contains(&function) || summaries.iter().any(|part| name.contains(part)) {
        return true;
    }
    let saves = function.starts_with("save") || matches!(function, "_save" | "write" | "dump");
    let files = [
        "checkpoint",
        "serialization.py",
        "saver.py",
        "saving",
        "orbax",
        "npyio",
        "json",
        "pickle",
        "joblib",
        "PIL/Image.py",
    ];
    saves && files.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_libraries_are_told_from_the_users() {
        assert!(is_library_frame("torch/nn/functional.py(1898): relu"));
        assert!(is_library_frame("<built-in method conv2d of type object at 0x7f>"));
        assert!(is_library_frame("$ufunc_api.py:176 __call__"));
        assert!(!is_library_frame("torch/_tensor.py(570): backward"));
        assert!(!is_library_frame("train.py(12): relu") && !is_library_frame("$train.py:12 step"));
    }

    #[test]
    fn frames_of_both_tracers_are_known() {
        assert_eq!(role("$train.py:12 step", ""), Some(Role::PythonFrame));
        assert_eq!(role("train.py(12): step", "python_function"), Some(Role::PythonFrame));
        assert_eq!(role("$data.py:7 __next__", ""), Some(Role::InputWait));
        assert_eq!(role("$builtins next", ""), Some(Role::InputWait));
        assert_eq!(role("data.py(7): get_batch", "python_function"), Some(Role::InputWait));
        for written in ["$checkpoint.py:7 save", "$_npyio_impl.py:7 savez_compressed", "$pickle.py:7 dump"] {
            assert_eq!(role(written, ""), Some(Role::Output), "{written}");
        }
        assert_eq!(role("$train.py:7 dump", ""), Some(Role::PythonFrame));
        assert_eq!(role("train.py(12): step", "cpu_op"), None);
        assert_eq!(role("step", ""), None);
    }
}
