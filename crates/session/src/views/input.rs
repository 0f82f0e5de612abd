//! `stepscope input`: where batches come from, and which stage bounds them.

use rayon::prelude::*;
use stepscope_analyze::Context;
use stepscope_analyze::input::InputPartial;
use stepscope_render::{Style, Table};

use super::View;
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "input",
    about: "Show the input pipeline: its stages as a tree, which one bounds it, what it could deliver",
    after_help: "Examples:\n  \
        stepscope input logs/                        tf.data, DataLoader or plain Python, whichever there is\n  \
        stepscope input logs/ --sort ms_per_batch    the costliest stage first\n  \
        stepscope input logs/ --json                 for programs",
    table,
};

fn table(profile: &Profile, _style: Style) -> Table {
    let all = profile
        .hosts
        .par_iter()
        .map(|loaded| InputPartial::of(&Context::new(&loaded.trace, loaded.host.as_str())))
        .reduce_with(|mut all, other| {
            all.merge(other);
            all
        });
    // A profile has at least one host.
    all.map_or_else(
        || Table::new("input", Vec::new()),
        |all| stepscope_render::views::input::table(&all.finish()),
    )
}
