//! `stepscope kernels`: which kernels run on the GPUs, how they were launched and by which op.

use stepscope_analyze::Context;
use stepscope_analyze::work::counters::{Counters, CountersPartial};
use stepscope_analyze::work::kernels::{Kernels, KernelsPartial};
use stepscope_render::{Style, views};

use super::{Group, View, all_hosts};
use crate::Hosts;

pub(super) const VIEW: View = View {
    name: "kernels",
    title: "Kernels",
    group: Group::Time,
    question: "What ran on the GPUs, and how well?",
    about: "Show which kernels run on the GPUs, how they were launched and by which op",
    after_help: "Examples:\n  \
        stepscope kernels logs/                     longest first\n  \
        stepscope kernels logs/ --sort occupancy:asc lowest occupancy first\n  \
        stepscope kernels logs/ --csv               with launch delay, waves, tail and limiter\n  \
        stepscope kernels run.sqlite gemm.ncu-rep   with the hardware counters of Nsight Compute",
    record: &[
        "Kernels are only recorded on GPUs. On CPUs, see the Ops page",
        "TensorFlow: CUPTI must be on the library path (`LD_LIBRARY_PATH`)",
        "PyTorch: add `ProfilerActivity.CUDA` to the activities",
        "Any CUDA program: `nsys profile --trace=cuda,nvtx --export sqlite python train.py`",
    ],
    events: Some("name"),
    recording: false,
    table: |hosts, _: Style| {
        let (kernels, counters) = both(hosts);
        views::kernels::table(&kernels, &counters)
    },
    groupings: &[],
};

fn both(hosts: &Hosts<'_>) -> (Kernels, Counters) {
    let of = |context: &Context| (KernelsPartial::of(context), CountersPartial::of(context.trace));
    let merge = |all: &mut (KernelsPartial, CountersPartial), (kernels, counters)| {
        all.0.merge(kernels);
        all.1.merge(counters);
    };
    let (kernels, counters) = all_hosts(hosts, of, merge);
    (kernels.finish(), counters.finish())
}
