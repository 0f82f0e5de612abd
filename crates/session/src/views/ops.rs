//! `stepscope ops`: which ops the time goes to.

use stepscope_analyze::work::ops::{Ops, OpsPartial};
use stepscope_render::{Style, Table, views};

use super::{Group, Grouping, View, all_hosts};
use crate::Hosts;

pub(super) const VIEW: View = View {
    name: "ops",
    title: "Ops",
    group: Group::Time,
    question: "Which ops does the time go to?",
    about: "Show which ops the time goes to, on the host and on devices",
    after_help: "Examples:\n  \
        stepscope ops logs/                    most expensive ops first\n  \
        stepscope ops logs/ --by type          MatMul, Conv2D, … instead of every single op\n  \
        stepscope ops logs/ --filter conv      only ops with `conv` in their name or type\n  \
        stepscope ops logs/ --sort count --csv for a spreadsheet",
    record: &[
        "TensorFlow: profile steps that run inside a `tf.function`; ops are recorded by default",
        "PyTorch: `torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`",
    ],
    events: Some("name"),
    recording: false,
    table: |hosts, _: Style| views::ops::table(&ops(hosts)),
    groupings: &[Grouping { by: "type", table: by_type }],
};

/// For `--by type`.
fn by_type(hosts: &Hosts<'_>, _: Style) -> Table {
    views::ops::table_by_type(&ops(hosts))
}

fn ops(hosts: &Hosts<'_>) -> Ops {
    all_hosts(hosts, OpsPartial::of, OpsPartial::merge).finish()
}
