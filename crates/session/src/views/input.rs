//! `stepscope input`: where batches come from, and which stage limits them.

use stepscope_analyze::input::InputPartial;
use stepscope_render::views::input::table;

use super::{Group, View, all_hosts};

pub(super) const VIEW: View = View {
    name: "input",
    title: "Input",
    group: Group::Time,
    question: "Where do batches come from, and what slows them down?",
    about: "Show the input pipeline: its stages as a tree, the slowest stage, the possible throughput",
    after_help: "Examples:\n  \
        stepscope input logs/                        tf.data, DataLoader or plain Python\n  \
        stepscope input logs/ --sort ms_per_batch    most expensive stage first\n  \
        stepscope input logs/ --json                 JSON for scripts",
    record: &[
        "TensorFlow: the stages of `tf.data` are recorded by default (host tracer level 2)",
        "PyTorch: `torch.utils.data.DataLoader` is recorded by default; for your own loop, add `with_stack=True`",
        "JAX: feed batches through `tf.data`, or mark the wait with `jax.profiler.TraceAnnotation('next batch')`",
    ],
    events: None,
    recording: false,
    table: |hosts, _| table(&all_hosts(hosts, InputPartial::of, InputPartial::merge).finish()),
    groupings: &[],
};
