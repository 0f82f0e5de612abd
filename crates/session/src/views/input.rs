//! `stepscope input`: where batches come from, and which stage bounds them.

use stepscope_analyze::input::InputPartial;
use stepscope_render::views::input::table;

use super::{View, all_hosts};

pub(super) const VIEW: View = View {
    name: "input",
    about: "Show the input pipeline: its stages as a tree, which one bounds it, what it could deliver",
    after_help: "Examples:\n  \
        stepscope input logs/                        tf.data, DataLoader or plain Python, whichever there is\n  \
        stepscope input logs/ --sort ms_per_batch    the costliest stage first\n  \
        stepscope input logs/ --json                 for programs",
    recording: false,
    table: |profile, _| table(&all_hosts(profile, InputPartial::of, InputPartial::merge).finish()),
};
