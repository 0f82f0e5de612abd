//! `stepscope kernels`: which kernels run on the GPUs, how they were launched and by which op.

use stepscope_analyze::work::counters::{Counters, CountersPartial};
use stepscope_analyze::work::kernels::{Kernels, KernelsPartial};
use stepscope_render::{Style, views};

use super::{Group, View, all_hosts};
use crate::Profile;

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
    table: |profile, _: Style| views::kernels::table(&kernels(profile), &counters(profile)),
    groupings: &[],
};

fn kernels(profile: &Profile) -> Kernels {
    all_hosts(profile, KernelsPartial::of, KernelsPartial::merge).finish()
}

fn counters(profile: &Profile) -> Counters {
    all_hosts(profile, |context| CountersPartial::of(context.trace), CountersPartial::merge).finish()
}
