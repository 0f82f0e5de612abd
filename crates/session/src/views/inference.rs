//! `stepscope inference`: how long requests take, and where the time goes.

use stepscope_analyze::Context;
use stepscope_analyze::time::inference::InferencePartial;
use stepscope_render::views::inference::table;

use super::{Group, View, all_hosts, step_by_step};

pub(super) const VIEW: View = View {
    name: "inference",
    title: "Inference",
    group: Group::Time,
    question: "How long do requests take?",
    about: "Show inference: latency percentiles of requests, where the time goes, batch sizes",
    after_help: "Requests are ranges named like `predict`, `generate` or `request`, and asynchronous operations of Chrome \
        traces (`ph` `b`, `n`, `e`) with such a name, from `b` to `e`.\n\nExamples:\n  \
        stepscope inference logs/          p50 to p99 of a prediction script or a server\n  \
        stepscope inference logs/ --json   JSON for scripts",
    record: &[
        "Any server: write one asynchronous operation per request into a Chrome trace, `ph` `b` when it arrives and `e` when it is answered, with one `id`",
        "TensorFlow Serving: capture from its gRPC port while it handles requests",
        "Keras: profile `model.predict`; in your own program, mark each request with `tf.profiler.experimental.Trace('request', step_num=i)`",
    ],
    events: None,
    recording: false,
    table: |hosts, _| {
        let of = |context: &Context| step_by_step(context, InferencePartial::of);
        table(&all_hosts(hosts, of, InferencePartial::merge).finish())
    },
    groupings: &[],
};
