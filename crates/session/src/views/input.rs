//! `stepscope input`: where batches come from, and which stage limits them.

use stepscope_analyze::input::InputPartial;
use stepscope_render::views::input::table;

use super::{View, all_hosts};

pub(super) const VIEW: View = View {
    name: "input",
    about: "Show the input pipeline: its stages as a tree, the slowest stage, the possible throughput",
    after_help: "Examples:\n  \
        stepscope input logs/                        tf.data, DataLoader or plain Python\n  \
        stepscope input logs/ --sort ms_per_batch    most expensive stage first\n  \
        stepscope input logs/ --json                 JSON for scripts",
    recording: false,
    table: |profile, _| table(&all_hosts(profile, InputPartial::of, InputPartial::merge).finish()),
};
