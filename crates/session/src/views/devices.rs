//! `stepscope devices`: how busy each device is, and why it is idle.

use stepscope_analyze::devices::DevicesPartial;
use stepscope_analyze::devices::gpu_samples::{GpuSamples, GpuSamplesPartial, Wall, may_be_of};
use stepscope_analyze::vocabulary::has_timeline;
use stepscope_render::{Style, Table};

use super::{Group, View, all_hosts};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "devices",
    title: "Devices",
    group: Group::Hardware,
    question: "How busy were the devices?",
    about: "Show devices: busy and idle time with reasons, streams, overlap, bytes moved, longest gaps",
    after_help: "Examples:\n  \
        stepscope devices logs/          every device of the newest session\n  \
        stepscope devices logs/ --json   all gaps, each with its breakdown",
    record: &[
        "NVIDIA: CUPTI must be on the library path; PyTorch needs `ProfilerActivity.CUDA`",
        "TPU: capture with `jax.profiler.trace` or from the job's profiler port",
        "Hardware samples: `nvidia-smi --query-gpu=… --format=csv -l 1 > gpu.csv`, placed next to the recording",
    ],
    events: None,
    recording: false,
    table,
    groupings: &[],
};

fn table(profile: &Profile, _style: Style) -> Table {
    let devices = all_hosts(profile, DevicesPartial::of, DevicesPartial::merge).finish();
    stepscope_render::views::devices::table(&devices, &gauges(profile))
}

fn gauges(profile: &Profile) -> Vec<GpuSamples> {
    let shown = profile.hosts.iter().map(|loaded| &loaded.trace).filter(|trace| has_timeline(trace));
    let timelines: Vec<Wall> = shown.filter_map(Wall::of).collect();
    let mut all = GpuSamplesPartial::default();
    for loaded in &profile.hosts {
        if has_timeline(&loaded.trace) || may_be_of(Wall::of(&loaded.trace), &timelines) {
            all.merge(GpuSamplesPartial::of(&loaded.trace, &loaded.host));
        }
    }
    all.finish()
}
