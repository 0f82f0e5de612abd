//! The line of the user's program that a stack of calls belongs to: the innermost call outside of libraries.

use stepscope_trace::Trace;
use stepscope_trace::memory::{Frame, MemoryLog, StackId};

/// Parts of paths that only libraries have.
const LIBRARIES: &[&str] = &[
    "site-packages/",
    "dist-packages/",
    "/torch/",
    "/jax/_src/",
    "/jaxlib/",
    "/lib/python3",
    "<frozen",
    "<string>",
    "torch/csrc",
    "aten/src",
    "c10/",
];
/// Beginnings of paths that only libraries have: profilers cut off where packages are installed.
const PACKAGES: &[&str] = &["torch/", "jax/", "jaxlib/", "optax/", "flax/", "keras/", "tensorflow/"];
/// Endings of files of the native parts of libraries.
const NATIVE: &[&str] = &[".cpp", ".cc", ".c", ".h", ".cu", ".cuh", ".hpp"];
/// Parts of the paths of optimizers.
const OPTIMIZERS: &[&str] =
    &["torch/optim/", "optax/", "keras/src/optimizers/", "keras/optimizers/", "apex/optimizers/"];
/// Parts of the paths and names of functions in which only backward passes are.
const BACKWARD: &[&str] = &["autograd", "gradient_tape", "transpose(jvp(", "torch/_tensor.py"];

/// What the calls of one stack say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// `train.py:75 step`; `None` without calls.
    pub(super) line: Option<String>,
    /// The innermost call.
    pub(super) op: Option<String>,
    /// Whether an optimizer is among them.
    pub(super) optimizer: bool,
    /// Whether they belong to a backward pass.
    pub(super) backward: bool,
}

/// What the calls of all stacks say, by stack.
pub(super) fn all(trace: &Trace, log: &MemoryLog) -> Vec<Calls> {
    let count = u32::try_from(log.stacks.len()).unwrap_or(u32::MAX);
    (0..count).map(|stack| of(trace, log, StackId(stack))).collect()
}

fn of(trace: &Trace, log: &MemoryLog, stack: StackId) -> Calls {
    let frames: Vec<Frame> = log.frames(stack).collect();
    let file = |frame: &Frame| trace.str(frame.file);
    let name = |frame: &Frame| trace.str(frame.function);
    let has = |parts: &[&str]| {
        let holds =
            |frame: &Frame| parts.iter().any(|part| file(frame).contains(part) || name(frame).contains(part));
        frames.iter().any(holds)
    };
    let placed = frames.iter().filter(|frame| !file(frame).is_empty());
    let own = placed.clone().find(|frame| !is_library(file(frame)));
    let label = |frame: &Frame| label(file(frame), frame.line, name(frame));
    Calls {
        line: own.or(placed.clone().next()).or(frames.first()).map(label),
        op: frames.first().map(label),
        optimizer: has(OPTIMIZERS),
        backward: has(BACKWARD) || frames.iter().any(|frame| name(frame) == "backward"),
    }
}

/// `train.py:75 step`.
pub(super) fn label(file: &str, line: u32, function: &str) -> String {
    match (file.is_empty(), function.is_empty()) {
        (true, _) => function.to_owned(),
        (false, true) => format!("{file}:{line}"),
        (false, false) => format!("{file}:{line} {function}"),
    }
}

fn is_library(file: &str) -> bool {
    LIBRARIES.iter().any(|part| file.contains(part))
        || PACKAGES.iter().any(|start| file.starts_with(start))
        || NATIVE.iter().any(|ending| file.ends_with(ending))
        || matches!(file, "" | "??")
        || is_recorder(file)
}

/// Whether `stepscope run` put this file into the program: its folder is named by the process and the time.
fn is_recorder(file: &str) -> bool {
    let mut parts = file.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    matches!(name, "hook.py" | "record.py" | "memory.py") && folder.starts_with("stepscope-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_programs() {
        for library in [
            "/usr/lib/python3/site-packages/torch/nn/modules/linear.py",
            "torch/nn/modules/linear.py",
            "/opt/venv/lib/python3.11/site-packages/jax/_src/api.py",
            "<frozen runpy>",
            "/build/c10/cuda/CUDACachingAllocator.cpp",
            "??",
            "/tmp/stepscope-4242-18e9320801f71c57/hook.py",
        ] {
            assert!(is_library(library), "{library}");
        }
        for own in [
            "train.py",
            "/home/u/torch_models/train.py",
            "/home/u/model.py",
            "torchmem.py",
            "/home/u/hook.py",
        ] {
            assert!(!is_library(own), "{own}");
        }
    }
}
