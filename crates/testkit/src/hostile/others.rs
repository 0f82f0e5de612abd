//! Shapes of formats other than Chrome's and XPlane: databases, reports and tables.

use std::fmt::Write as _;

use super::shapes::Content;
use crate::nsys::{Export, global_tid};
use crate::{ncu, tfevents};

fn nsys(fill: impl FnOnce(&mut Export)) -> Content {
    let mut export = Export::new();
    export.string(1, "cudaLaunchKernel_v7000").string(2, "gemm");
    fill(&mut export);
    Content::Sql(format!("BEGIN;\n{}COMMIT;", export.script()))
}

fn launch(export: &mut Export, i: usize, pid: i64, device: usize, id: usize) {
    let (start, end) = ((i * 10_000).to_string(), (i * 10_000 + 5_000).to_string());
    let (tid, process) = (global_tid(pid, pid).to_string(), global_tid(pid, 0).to_string());
    let (device, id) = (device.to_string(), id.to_string());
    let call =
        [("start", &*start), ("end", &end), ("globalTid", &tid), ("correlationId", &id), ("nameId", "1")];
    export.row("CUPTI_ACTIVITY_KIND_RUNTIME", &call);
    let kernel = [
        ("start", &*start),
        ("end", &end),
        ("deviceId", &device),
        ("streamId", "7"),
        ("correlationId", &id),
        ("globalPid", &process),
        ("shortName", "2"),
        ("demangledName", "2"),
    ];
    export.row("CUPTI_ACTIVITY_KIND_KERNEL", &kernel);
}

pub(super) fn nsys_gpus(n: usize) -> Content {
    nsys(|export| {
        for i in 0..n {
            export.row("TARGET_INFO_GPU", &[("id", &i.to_string()), ("name", "'GPU'"), ("smCount", "100")]);
            launch(export, i, 70, i, i + 1);
        }
    })
}

pub(super) fn nsys_processes(n: usize) -> Content {
    nsys(|export| (0..n).for_each(|i| launch(export, i, i as i64 + 1, 0, 1)))
}

pub(super) fn nsys_correlations(n: usize) -> Content {
    nsys(|export| (0..n).for_each(|i| launch(export, i, 70, 0, 1)))
}

pub(super) fn nsys_metrics(n: usize) -> Content {
    nsys(|export| {
        for i in 0..n {
            let (id, time) = (i.to_string(), (i * 100).to_string());
            export.row(
                "TARGET_INFO_GPU_METRICS",
                &[("typeId", &id), ("metricId", &id), ("metricName", &format!("'metric {i}'"))],
            );
            export.row(
                "GPU_METRICS",
                &[("timestamp", &time), ("typeId", &id), ("metricId", &id), ("value", "5")],
            );
        }
    })
}

pub(super) fn nsys_ranges(n: usize) -> Content {
    let tid = global_tid(70, 70).to_string();
    nsys(|export| {
        for i in 0..n {
            let (start, end, text) =
                ((i * 100).to_string(), (i * 100 + 90).to_string(), format!("'range {i}'"));
            let range = [
                ("start", &*start),
                ("end", &end),
                ("eventType", "59"),
                ("text", &text),
                ("globalTid", &tid),
            ];
            export.row("NVTX_EVENTS", &range);
        }
    })
}

pub(super) fn nsys_options(n: usize) -> Content {
    nsys(|export| {
        for i in 0..n {
            export.row("META_DATA_CAPTURE", &[("name", &format!("'CUDA_{i}'")), ("value", "'on'")]);
            export.row(
                "TARGET_INFO_SYSTEM_ENV",
                &[("name", "'OsDescription'"), ("value", &format!("'Linux {i}'"))],
            );
        }
    })
}

fn report(fill: impl FnOnce(&mut ncu::Report)) -> Content {
    let mut report = ncu::Report::new();
    report.session(1_700_000_000, "GPU", &[("warp_size", 32)]);
    fill(&mut report);
    Content::Bytes(report.bytes())
}

pub(super) fn ncu_devices(n: usize) -> Content {
    report(|report| {
        for i in 0..n {
            let metrics = [
                ("launch__device_id", i as f64),
                ("gpu__time_duration.sum", 1_000.0),
                ("device__attribute_warp_size", 32.0),
            ];
            report.launch("k", [1, 1, 1], [32, 1, 1], &metrics);
        }
    })
}

pub(super) fn ncu_metrics(n: usize) -> Content {
    let names: Vec<String> = (0..n).map(|i| format!("metric_{i}.sum")).collect();
    let metrics: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
    report(|report| {
        report.launch("k", [1, 1, 1], [32, 1, 1], &metrics);
    })
}

pub(super) fn ncu_kernels(n: usize) -> Content {
    report(|report| {
        for i in 0..n {
            report.launch(&format!("k{i}"), [1, 1, 1], [32, 1, 1], &[("gpu__time_duration.sum", 1_000.0)]);
        }
    })
}

pub(super) fn ncu_details(n: usize) -> Content {
    let mut text = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Section Name\",\
                    \"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        .to_owned();
    for i in 0..n {
        let _ = writeln!(
            text,
            "\"0\",\"1\",\"python\",\"127.0.0.1\",\"k\",\"1\",\"7\",\"Section\",\"Metric {i}\",\"%\",\"{i}\""
        );
    }
    Content::Bytes(text.into_bytes())
}

pub(super) fn smi_columns(n: usize) -> Content {
    let mut text = "timestamp".to_owned();
    (0..n).for_each(|i| {
        let _ = write!(text, ", utilization.gpu{i} [%]");
    });
    for row in 0..20 {
        let _ = write!(text, "\n2026/04/25 16:06:{row:02}.780");
        (0..n).for_each(|i| {
            let _ = write!(text, ", {} %", i % 100);
        });
    }
    text.push('\n');
    Content::Bytes(text.into_bytes())
}

pub(super) fn smi_gpus(n: usize) -> Content {
    let mut text = "timestamp, uuid, utilization.gpu [%]\n".to_owned();
    for i in 0..n {
        let _ = writeln!(text, "2026/04/25 16:06:06.780, GPU-{i:08x}, 45 %");
    }
    Content::Bytes(text.into_bytes())
}

pub(super) fn samples_columns(n: usize) -> Content {
    let mut text = "time_unix_s,elapsed_s,machine_cpu_percent,tree_rss_bytes".to_owned();
    (0..n).for_each(|i| {
        let _ = write!(text, ",gpu{i}_busy_percent");
    });
    for row in 0..8 {
        let _ = write!(text, "\n18000000{row:02}.123456,0.{row},12.5,1000");
        (0..n).for_each(|_| text.push_str(",50.0"));
    }
    text.push('\n');
    Content::Bytes(text.into_bytes())
}

pub(super) fn scalar_tags(n: usize) -> Content {
    let one = |i: usize| tfevents::record(&tfevents::scalar(1e9 + i as f64, 1, &format!("tag/{i}"), 1.0));
    Content::Bytes((0..n).flat_map(one).collect())
}

/// A session that restarts repeatedly, with many tags.
pub(super) fn scalar_restarts(n: usize) -> Content {
    let start = |i: usize| {
        // Wall time, step, and a session log whose status is "start".
        let mut event = vec![0x09];
        event.extend((1e9 + i as f64).to_le_bytes());
        event.extend([0x10, 1, 0x3a, 2, 0x08, 1]);
        tfevents::record(&event)
    };
    let tag = |i: usize| tfevents::record(&tfevents::scalar(1e9, 1, &format!("tag/{i}"), 1.0));
    Content::Bytes((0..n).flat_map(tag).chain((0..n).flat_map(start)).collect())
}
