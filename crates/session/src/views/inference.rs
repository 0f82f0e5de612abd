//! `stepscope inference`: how long requests take, and where the time goes.

use stepscope_analyze::Context;
use stepscope_analyze::time::inference::InferencePartial;
use stepscope_render::views::inference::table;

use super::{View, all_hosts, step_by_step};

pub(super) const VIEW: View = View {
    name: "inference",
    about: "Show inference: latency percentiles of requests, where the time goes, batch sizes",
    after_help: "Examples:\n  \
        stepscope inference logs/          p50 to p99 of a prediction script or a server\n  \
        stepscope inference logs/ --json   JSON for scripts",
    recording: false,
    table: |profile, _| {
        let of = |context: &Context| step_by_step(context, InferencePartial::of);
        table(&all_hosts(profile, of, InferencePartial::merge).finish())
    },
};
