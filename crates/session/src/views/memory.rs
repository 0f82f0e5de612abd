//! `stepscope memory`: what was live at each allocator's peak, and whether memory grows.

use stepscope_analyze::memory::MemoryPartial;
use stepscope_render::views::memory::table;

use super::{Group, View, merged_hosts};
use crate::HostProfile;

pub(super) const VIEW: View = View {
    name: "memory",
    title: "Memory",
    group: Group::Hardware,
    question: "What uses the memory?",
    about: "Show memory per allocator: peak, what was live at the peak, growth per step",
    after_help: "Examples:\n  \
        stepscope memory logs/                 what fills the memory at the peak\n  \
        stepscope memory logs/ --filter GPU_0  one allocator\n  \
        stepscope memory logs/ --json          with the timeline and memory per step",
    record: &[
        "TensorFlow: allocations are recorded by default at host tracer level 2",
        "PyTorch: `torch.profiler.profile(profile_memory=True)`; with `record_shapes=True` and `with_stack=True` op names are more precise",
        "JAX: the trace contains allocations on GPUs; `jax.profiler.save_device_memory_profile` writes another format",
    ],
    events: None,
    recording: true,
    table: |hosts, _| {
        let of = |loaded: &HostProfile| MemoryPartial::of(&loaded.context());
        table(&merged_hosts(hosts, of, MemoryPartial::merge).finish())
    },
    groupings: &[],
};
