//! `stepscope devices`: how busy each device is, and why it is idle.

use stepscope_analyze::devices::DevicesPartial;
use stepscope_analyze::devices::gpu_samples::{GpuSamplesPartial, Wall, may_be_of};
use stepscope_analyze::vocabulary::has_timeline;
use stepscope_render::{Style, Table};

use super::{Group, View, one_host};
use crate::Hosts;

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

/// One host: its devices, and the samples of its GPUs.
struct Part {
    devices: DevicesPartial,
    timeline: bool,
    wall: Option<Wall>,
    gpu_samples: GpuSamplesPartial,
}

fn table(hosts: &Hosts<'_>, _style: Style) -> Table {
    let parts = hosts.visit(|loaded| Part {
        devices: one_host(loaded, DevicesPartial::of),
        timeline: has_timeline(&loaded.trace),
        wall: Wall::of(&loaded.trace),
        gpu_samples: GpuSamplesPartial::of(&loaded.trace, &loaded.host),
    });
    let timelines: Vec<Wall> =
        parts.iter().filter(|part| part.timeline).filter_map(|part| part.wall).collect();
    let mut devices: Option<DevicesPartial> = None;
    let mut gpu_samples = GpuSamplesPartial::default();
    for part in parts {
        match &mut devices {
            Some(all) => all.merge(part.devices),
            None => devices = Some(part.devices),
        }
        // Samples beside a timeline belong to it only if they may have been taken in the same run.
        if part.timeline || may_be_of(part.wall, &timelines) {
            gpu_samples.merge(part.gpu_samples);
        }
    }
    stepscope_render::views::devices::table(&devices.unwrap_or_default().finish(), &gpu_samples.finish())
}
