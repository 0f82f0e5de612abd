//! The meaning of names. Frameworks rename their events every year, so everything that depends on a name is
//! decided here, with one table per framework, and nowhere else.
//!
//! A [`Role`] is decided once per kind of event, from its name, its category and the keys of its arguments.
//! What must be decided per event (is this call a traced one? does this run belong to the input pipeline?) is
//! left to [`crate::states`], and the role says so.

mod cuda;
mod families;
mod horovod;
mod jax;
pub mod names;
mod onnx_runtime;
mod preparing;
mod profiled;
mod python;
mod pytorch;
mod ranges;
mod signature;
mod stepscope;
mod tensorflow;
mod triton;

use stepscope_trace::{KindId, ProcessKind, Trace, TrackKind};

pub use cuda::{Capture, CopyDirection, capture, is_collective, is_elementwise};
pub(crate) use cuda::{
    copy_direction, is_device_call, is_device_fault, is_event_record, is_host_fault, is_migration,
    is_prefetch, is_replayed, is_stream_wait, is_synchronous_copy, starts_graph, starts_kernels,
    waits_for_all,
};
pub use families::{
    is_callback, is_convolution, is_dense, is_generated, is_opaque, is_product, may_be_convolution,
    may_be_product, words,
};
pub(crate) use jax::is_library_function;
pub(crate) use onnx_runtime::{is_node, node_name};
pub(crate) use preparing::{is_warm_up, prepares_device};
#[cfg(test)]
pub(crate) use profiled::LAUNCH;
pub use profiled::has_timeline;
pub(crate) use profiled::launch_tracks;
pub use python::takes_from_queue;
pub(crate) use python::{awaits_results, blocks, gets_from_queue, puts_into_queue};
pub(crate) use python::{is_library_frame, is_python_frame};
pub use pytorch::names_torch_op;
pub(crate) use pytorch::{is_compiled_region, runs_on_device};
pub use signature::{KeySet, Keys, Signatures};
pub(crate) use tensorflow::iterator_path;
pub(crate) use tensorflow::{is_data_worker_thread, is_server_thread, waits_for};
pub use tensorflow::{is_output_op, is_print_op, is_remote_op, op_type};

/// What a kind of event means for its thread or stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Says nothing about the activity: markers, user annotations.
    Annotation,
    /// A frame of a Python tracer.
    PythonFrame,
    /// Zero-length bookkeeping of the framework; ignored.
    Bookkeeping,
    /// A step marker, if the event has a step number.
    StepMarker,
    /// A call of a compiled function, which may trace or compile it first.
    FunctionCall,
    /// An op of the model on the host.
    Op,
    /// The part of an eager op that runs its kernel, unless it runs a whole function.
    EagerKernel,
    /// Framework overhead around ops.
    Framework,
    /// The framework's entry into an eager op, which may only get the next batch.
    EagerCall,
    /// A piece of a graph run, of the model's or of the input pipeline's: the event's `id` decides.
    ExecutorRun,
    /// Building a graph from Python.
    Tracing,
    /// Compiling a graph.
    Compile,
    /// The consumer's side of the input pipeline: the caller waits until a batch is ready.
    InputWait,
    /// A stage of the input pipeline at work.
    InputStage,
    /// A function that the input pipeline runs; its `id` marks the graph runs that belong to it.
    InputFunction,
    /// CheckpointCost checkpoints, summaries, results.
    Output,
    /// Launching device work.
    Launch,
    /// Requesting a copy from a device; its duration shows whether it blocks.
    LaunchCopy,
    /// Blocked until a device is done.
    Sync,
    /// Allocating or freeing device memory.
    DeviceMemory,
    /// A kernel of the model on a device.
    Kernel,
    /// A collective or a peer message on a device.
    Collective,
    /// A collective of devices that are the host's own processor.
    HostCollective,
    /// A copy on a device; the direction is in the name.
    Copy(CopyDirection),
    /// A copy to or from devices that are the host's own processor.
    HostCopy(CopyDirection),
    /// Filling device memory.
    Memset,
    /// Waiting on a device: barriers, semaphores, infeed not ready.
    DeviceWait,
    /// Unknown to every table.
    Unknown,
}

/// The software that wrote a trace.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Framework {
    /// TensorFlow without Keras' training loop.
    TensorFlow,
    /// Keras on TensorFlow.
    Keras,
    /// JAX.
    Jax,
    /// PyTorch.
    PyTorch,
    /// Unknown.
    Unknown,
}

/// The roles of all kinds of a trace.
#[derive(Debug)]
pub struct Vocabulary {
    roles: Vec<Role>,
    /// The same on host threads.
    host_roles: Vec<Role>,
    /// The framework that wrote the trace.
    pub framework: Framework,
    /// The argument keys of each kind.
    pub signatures: Signatures,
}

impl Vocabulary {
    /// Examines every kind of the trace once.
    pub fn of(trace: &Trace) -> Self {
        let signatures = Signatures::of(trace);
        let on_device = kinds_on_devices(trace);
        let roles = (0..trace.kinds().len())
            .map(|index| role_of(trace, KindId::from_index(index), &signatures, on_device[index]))
            .collect::<Vec<_>>();
        let framework = recorded_by(trace, &roles);
        let host_roles = roles.iter().map(|role| on_host(*role)).collect();
        Vocabulary { roles, host_roles, framework, signatures }
    }

    /// The role of a kind. For a kind on devices, its role there.
    #[inline]
    pub fn role(&self, kind: KindId) -> Role {
        self.roles[kind.index()]
    }

    /// The role of a kind on a host thread. TensorFlow gives the call that launches a kernel or a copy the name
    /// of what it launches, so one kind may occur on both sides.
    #[inline]
    pub fn host_role(&self, kind: KindId) -> Role {
        self.host_roles[kind.index()]
    }
}

/// What a role means on a host thread.
fn on_host(role: Role) -> Role {
    match role {
        Role::Kernel | Role::Collective | Role::Memset => Role::Launch,
        Role::Copy(_) => Role::LaunchCopy,
        role => role,
    }
}

/// The kinds that occur on device streams: there, names of host calls mean the work that they launched.
fn kinds_on_devices(trace: &Trace) -> Vec<bool> {
    let mut found = vec![false; trace.kinds().len()];
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Stream) {
        if trace.process(track.process).kind == ProcessKind::Device {
            track.kinds().iter().for_each(|kind| found[kind.index()] = true);
        }
    }
    found
}

fn role_of(trace: &Trace, id: KindId, signatures: &Signatures, on_device: bool) -> Role {
    let kind = trace.kind(id);
    let (name, category) = (trace.str(kind.name), trace.str(kind.category));
    if on_device {
        return cuda::device_role(name, category);
    }
    let keys = signatures.keys(id);
    stepscope::role(name)
        .or_else(|| python::role(name, category))
        .or_else(|| onnx_runtime::role(name, category))
        .or_else(|| pytorch::role(name, category))
        .or_else(|| tensorflow::role(name, keys))
        .or_else(|| cuda::host_role(name, category))
        .or_else(|| horovod::role(name, category))
        .or_else(|| triton::role(name, category))
        .or_else(|| jax::role(name, keys))
        .unwrap_or(if keys.has(Keys::Correlation) && keys.has(Keys::Context) {
            // A driver call with the name of what it launches, which never ran.
            Role::Launch
        } else {
            Role::Unknown
        })
}

/// Whether it is a call from the program that runs a model once: `Session.run` of TensorFlow 1, a run of ONNX Runtime.
pub(crate) fn is_session_run(name: &str, category: &str) -> bool {
    name == tensorflow::SESSION_RUN || is_prediction_run(name, category)
}

/// Whether it is such a call of a library that only predicts.
pub(crate) fn is_prediction_run(name: &str, category: &str) -> bool {
    category == "Session" && name == onnx_runtime::MODEL_RUN
}

/// The framework whose kernels these are, by their names. A profiler of the device alone sees nothing else of it.
pub fn framework_of<'n>(kernels: impl Iterator<Item = &'n str>) -> Framework {
    let mut found = Framework::Unknown;
    for name in kernels {
        if name.contains("at::native::") {
            return Framework::PyTorch;
        }
        if name.contains("tensorflow::") {
            found = Framework::TensorFlow;
        }
    }
    found
}

fn recorded_by(trace: &Trace, roles: &[Role]) -> Framework {
    let mut seen = [false; 4];
    for (kind, role) in trace.kinds().iter().zip(roles) {
        let (name, category) = (trace.str(kind.name), trace.str(kind.category));
        seen[0] |= pytorch::is_sign(name, category);
        seen[1] |= jax::is_sign(name);
        seen[2] |= tensorflow::is_keras_sign(name);
        seen[3] |= tensorflow::is_sign(name) || *role == Role::InputStage;
    }
    for frame in trace.memory().map_or(&[][..], |log| log.stacks.all_frames()) {
        seen[0] |= trace.str(frame.file).contains("torch/");
        seen[1] |= trace.str(frame.file).contains("jax/_src/");
    }
    let versions = &trace.environment().versions;
    seen[1] |= versions.iter().any(|version| trace.str(version.key).starts_with("jax"));
    match seen {
        [true, ..] => Framework::PyTorch,
        [_, true, ..] => Framework::Jax,
        [_, _, true, _] => Framework::Keras,
        [_, _, _, true] => Framework::TensorFlow,
        _ => Framework::Unknown,
    }
}
