//! `stepscope memory`: what was live at each allocator's peak, and whether memory grows.

use stepscope_analyze::memory::MemoryPartial;
use stepscope_render::views::memory::table;

use super::{View, all_hosts};

pub(super) const VIEW: View = View {
    name: "memory",
    about: "Show memory per allocator: peak, what was live at the peak, growth per step",
    after_help: "Examples:\n  \
        stepscope memory logs/                 what fills the memory at the peak\n  \
        stepscope memory logs/ --filter GPU_0  one allocator\n  \
        stepscope memory logs/ --json          with the timeline and memory per step",
    recording: true,
    table: |profile, _| table(&all_hosts(profile, MemoryPartial::of, MemoryPartial::merge).finish()),
};
