//! `stepscope path`: the chain of ops, launches, kernels and copies that determines how long a step takes.

use stepscope_analyze::time::critical::CriticalPath;
use stepscope_render::{Style, Table};

use super::{Group, View, one_host};
use crate::{HostProfile, Hosts};

pub(super) const VIEW: View = View {
    name: "path",
    title: "Critical path",
    group: Group::Time,
    question: "What determines how long a step takes?",
    about: "Show the critical path of a step: the ops, launches, kernels and copies on it, and the slack of the rest",
    after_help: "Examples:\n  \
        stepscope path logs/               the step closest to the median\n  \
        stepscope path logs/ --steps 7     step 7\n  \
        stepscope path logs/ --json        every piece of the path, in order",
    record: &[
        "PyTorch: `ProfilerActivity.CUDA` and `ProfilerActivity.CPU` together, and `prof.step()` after each step",
        "Nsight Systems: `nsys profile --trace=cuda,nvtx`, with an NVTX range around each step",
        "TensorFlow and JAX on GPUs: CUPTI must be on the library path",
    ],
    events: Some("name"),
    recording: false,
    table,
    groupings: &[],
};

fn table(hosts: &Hosts<'_>, _style: Style) -> Table {
    let of = |loaded: &HostProfile| one_host(loaded, CriticalPath::typical);
    stepscope_render::views::critical_path::table(hosts.visit(of))
}
