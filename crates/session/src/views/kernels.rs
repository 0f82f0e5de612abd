//! `stepscope kernels`: which kernels run on the GPUs, how they were launched and by which op.

use stepscope_analyze::work::counters::{Counters, CountersPartial};
use stepscope_analyze::work::kernels::{Kernels, KernelsPartial};
use stepscope_render::{Style, views};

use super::{View, all_hosts};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "kernels",
    about: "Show which kernels run on the GPUs, how they were launched and by which op",
    after_help: "Examples:\n  \
        stepscope kernels logs/                     longest first\n  \
        stepscope kernels logs/ --sort occupancy:asc lowest occupancy first\n  \
        stepscope kernels logs/ --csv               with launch delay, waves, tail and limiter\n  \
        stepscope kernels run.sqlite gemm.ncu-rep   with the hardware counters of Nsight Compute",
    recording: false,
    table: |profile, _: Style| views::kernels::table(&kernels(profile), &counters(profile)),
};

fn kernels(profile: &Profile) -> Kernels {
    all_hosts(profile, KernelsPartial::of, KernelsPartial::merge).finish()
}

fn counters(profile: &Profile) -> Counters {
    all_hosts(profile, |context| CountersPartial::of(context.trace), CountersPartial::merge).finish()
}
