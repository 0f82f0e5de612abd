//! `stepscope inference`: how long requests take, and where.

use rayon::prelude::*;
use stepscope_analyze::Context;
use stepscope_analyze::inference::InferencePartial;
use stepscope_render::{Style, Table};

use super::View;
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "inference",
    about: "Show inference: latency percentiles of requests, where their time goes, batch sizes",
    after_help: "Examples:\n  \
        stepscope inference logs/          p50 to p99 of a predicting program or a server\n  \
        stepscope inference logs/ --json   for programs",
    table,
};

fn table(profile: &Profile, _style: Style) -> Table {
    let all = profile
        .hosts
        .par_iter()
        .map(|loaded| InferencePartial::of(&Context::new(&loaded.trace, loaded.host.as_str())))
        .reduce_with(|mut all, other| {
            all.merge(other);
            all
        });
    // A profile has at least one host.
    all.map_or_else(
        || Table::new("inference", Vec::new()),
        |all| stepscope_render::views::inference::table(&all.finish()),
    )
}
