//! `stepscope steps`: every step, its duration and its breakdown.

use stepscope_analyze::time::summary::{HostSummary, Summary};
use stepscope_render::{Style, Table};

use super::{Group, View, one_host, step_by_step};
use crate::{HostProfile, Hosts};

pub(super) const VIEW: View = View {
    name: "steps",
    title: "Steps",
    group: Group::Summary,
    question: "How long did each step take?",
    about: "Show every step: its time, its breakdown, and which steps stand out",
    after_help: "Examples:\n  \
        stepscope steps logs/                        all steps of the newest session\n  \
        stepscope steps logs/ --sort duration_ms     longest first\n  \
        stepscope steps logs/ --csv > steps.csv      for a spreadsheet",
    record: &[
        "TensorFlow: `with tf.profiler.experimental.Trace('train', step_num=step): …` around each step",
        "JAX: `with jax.profiler.StepTraceAnnotation('train', step_num=step): …`",
        "PyTorch: call `prof.step()` after each step",
    ],
    events: None,
    recording: false,
    table,
    groupings: &[],
};

fn table(hosts: &Hosts<'_>, _style: Style) -> Table {
    let of = |loaded: &HostProfile| one_host(loaded, |context| step_by_step(context, HostSummary::of));
    stepscope_render::views::steps::table(&Summary::finish(hosts.visit(of)))
}
