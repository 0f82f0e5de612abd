//! `stepscope memory`: what was alive at each allocator's peak, and whether memory grows.

use rayon::prelude::*;
use stepscope_analyze::Context;
use stepscope_analyze::memory::MemoryPartial;
use stepscope_render::{Style, Table};

use super::View;
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "memory",
    about: "Show memory by allocator: its peak, what was alive then, growth from step to step",
    after_help: "Examples:\n  \
        stepscope memory logs/                 what fills the memory at the peak\n  \
        stepscope memory logs/ --filter GPU_0  one allocator\n  \
        stepscope memory logs/ --json          with the timeline and memory by step",
    table,
};

fn table(profile: &Profile, _style: Style) -> Table {
    let all = profile
        .hosts
        .par_iter()
        .map(|loaded| MemoryPartial::of(&Context::new(&loaded.trace, loaded.host.as_str())))
        .reduce_with(|mut all, other| {
            all.merge(other);
            all
        });
    // A profile has at least one host.
    all.map_or_else(
        || Table::new("memory", Vec::new()),
        |all| stepscope_render::views::memory::table(&all.finish()),
    )
}
