//! Files with one thing in excess: names, notes, tracks, devices, ids, columns. What handles them must stay near linear
//! in `n`.

use super::others::{
    ncu_details, ncu_devices, ncu_kernels, ncu_metrics, nsys_correlations, nsys_gpus, nsys_metrics,
    nsys_options, nsys_processes, nsys_ranges, samples_columns, scalar_restarts, scalar_tags, smi_columns,
    smi_gpus,
};
use crate::xspace::{XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};

/// The content of a file.
#[derive(Debug)]
pub enum Content {
    /// The bytes.
    Bytes(Vec<u8>),
    /// A script that makes an SQLite database.
    Sql(String),
}

/// A shape: what is in excess, how its file is named, its content for `n` things, and an `n` that takes about a second.
#[derive(Debug)]
pub struct Shape {
    /// What is in excess.
    pub name: &'static str,
    /// The name of its file.
    pub file: &'static str,
    /// Its content.
    pub build: fn(usize) -> Content,
    /// How many things to start with.
    pub n: usize,
}

macro_rules! shapes {
    ($($build:ident $file:literal $n:literal,)*) => {
        /// All shapes.
        pub const SHAPES: &[Shape] =
            &[$(Shape { name: stringify!($build), file: $file, build: $build, n: $n },)*];
    };
}

shapes! {
    chrome_phases "a.json" 20_000,
    chrome_devices "a.json" 4_000,
    chrome_correlations "a.json" 20_000,
    chrome_flows "a.json" 20_000,
    chrome_tracks "a.json" 4_000,
    chrome_processes "a.json" 4_000,
    chrome_names "a.json" 20_000,
    chrome_long_names "a.json" 500,
    chrome_one_name_of_megabytes "a.json" 4,
    chrome_kernels "a.json" 20_000,
    chrome_counters "a.json" 4_000,
    chrome_open_slices "a.json" 20_000,
    chrome_overlaps "a.json" 10_000,
    chrome_frames "a.json" 4_000,
    chrome_steps "a.json" 4_000,
    chrome_allocations "a.json" 20_000,
    chrome_collectives "a.json" 4_000,
    xplane_planes "a.xplane.pb" 4_000,
    xplane_devices "a.xplane.pb" 4_000,
    xplane_lines "a.xplane.pb" 8_000,
    xplane_threads "a.xplane.pb" 4_000,
    xplane_metadata "a.xplane.pb" 20_000,
    xplane_correlations "a.xplane.pb" 20_000,
    xplane_stats "a.xplane.pb" 20_000,
    xplane_arguments "a.xplane.pb" 20_000,
    xplane_order "a.xplane.pb" 200_000,
    nsys_gpus "a.sqlite" 4_000,
    nsys_processes "a.sqlite" 4_000,
    nsys_correlations "a.sqlite" 8_000,
    nsys_metrics "a.sqlite" 4_000,
    nsys_ranges "a.sqlite" 8_000,
    nsys_options "a.sqlite" 8_000,
    ncu_devices "a.ncu-rep" 4_000,
    ncu_metrics "a.ncu-rep" 10_000,
    ncu_kernels "a.ncu-rep" 4_000,
    ncu_details "a.csv" 8_000,
    smi_columns "a.csv" 2_000,
    smi_gpus "a.csv" 4_000,
    samples_columns "a.csv" 4_000,
    scalar_tags "events.out.tfevents.1" 10_000,
    scalar_restarts "events.out.tfevents.1" 2_000,
}

fn chrome(head: &str, events: impl Iterator<Item = String>) -> Content {
    let mut text = format!("{{{head}\"traceEvents\":[\n");
    for (number, event) in events.enumerate() {
        if number > 0 {
            text.push_str(",\n");
        }
        text.push_str(&event);
    }
    text.push_str("]}");
    Content::Bytes(text.into_bytes())
}

fn slice(name: &str, category: &str, place: [usize; 2], times: [usize; 2], args: &str) -> String {
    let ([pid, tid], [ts, dur]) = (place, times);
    format!(
        "{{\"ph\":\"X\",\"name\":\"{name}\",\"cat\":\"{category}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\
         \"args\":{{{args}}}}}"
    )
}

fn chrome_phases(n: usize) -> Content {
    let letter = |i: usize| char::from_u32(0x4e00 + i as u32).unwrap_or('?');
    chrome("", (0..n).map(|i| format!("{{\"ph\":\"{}\",\"name\":\"a\",\"ts\":{i}}}", letter(i))))
}

fn chrome_devices(n: usize) -> Content {
    let list: Vec<String> = (0..n).map(|i| format!("{{\"id\":{i},\"name\":\"GPU {i}\"}}")).collect();
    let head = format!("\"deviceProperties\":[{}],", list.join(","));
    let args = |i: usize| format!("\"device\":{i},\"stream\":7,\"correlation\":{i}");
    let kernels = (0..n).map(|i| slice("k", "kernel", [i, 7], [i * 10, 5], &args(i)));
    let calls = (0..n).map(|i| {
        slice("cudaLaunchKernel", "cuda_runtime", [n + 1, 1], [i * 10, 3], &format!("\"correlation\":{i}"))
    });
    chrome(&head, kernels.chain(calls))
}

fn chrome_correlations(n: usize) -> Content {
    let same = "\"correlation\":1,\"External id\":1,\"device\":0,\"stream\":7";
    let one = |i: usize| {
        [
            slice("aten::mm", "cpu_op", [1, 1], [i * 10, 4], "\"External id\":1"),
            slice("cudaLaunchKernel", "cuda_runtime", [1, 1], [i * 10 + 1, 2], same),
            slice("gemm", "kernel", [0, 7], [i * 10 + 2, 5], same),
        ]
    };
    chrome("", (0..n).flat_map(one))
}

fn chrome_flows(n: usize) -> Content {
    let end = |ph: &str, i: usize| {
        format!(
            "{{\"ph\":\"{ph}\",\"id\":1,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":1,\"tid\":1,\"ts\":{i}}}"
        )
    };
    chrome("", (0..n).flat_map(|i| [slice("a", "cpu_op", [1, 1], [i, 1], ""), end("s", i), end("f", i)]))
}

/// Names of eight kilobytes, each of its own.
fn chrome_long_names(n: usize) -> Content {
    let name = |i: usize| format!("op{i}{}", "a<b".repeat(2_700));
    chrome("", (0..n).map(|i| slice(&name(i), "cpu_op", [1, 1], [i * 10, 5], "")))
}

/// Names of four megabytes each.
fn chrome_one_name_of_megabytes(n: usize) -> Content {
    let name = |i: usize| format!("op{i}{}", "a<b".repeat(1_300_000));
    chrome("", (0..n).map(|i| slice(&name(i), "cpu_op", [1, 1], [i * 10, 5], "")))
}

fn chrome_tracks(n: usize) -> Content {
    chrome("", (0..n).map(|i| slice("a", "cpu_op", [1, i], [i, 5], "")))
}

fn chrome_processes(n: usize) -> Content {
    let name = |i: usize| {
        format!(
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{i},\"args\":{{\"name\":\"/device:GPU:{i}\"}}}}"
        )
    };
    let event = |i: usize| slice("a", "Kernel", [i, 1], [i, 5], "");
    chrome("", (0..n).flat_map(|i| [name(i), event(i)]))
}

fn chrome_names(n: usize) -> Content {
    chrome("", (0..n).map(|i| slice(&format!("op_{i}"), "cpu_op", [1, 1], [i * 2, 1], "")))
}

fn chrome_kernels(n: usize) -> Content {
    let args = |i: usize| {
        format!(
            "\"device\":0,\"stream\":7,\"correlation\":{i},\"grid\":[{i},1,1],\"block\":[128,1,1],\"registers per thread\":{}",
            i % 255
        )
    };
    let launch = |i: usize| {
        slice("cudaLaunchKernel", "cuda_runtime", [1, 1], [i * 10, 3], &format!("\"correlation\":{i}"))
    };
    let kernel = |i: usize| slice(&format!("kernel_{i}"), "kernel", [0, 7], [i * 10 + 2, 5], &args(i));
    chrome("", (0..n).flat_map(|i| [launch(i), kernel(i)]))
}

fn chrome_counters(n: usize) -> Content {
    chrome(
        "",
        (0..n).map(|i| {
            format!("{{\"ph\":\"C\",\"name\":\"counter {i}\",\"pid\":1,\"ts\":{i},\"args\":{{\"v\":{i}}}}}")
        }),
    )
}

fn chrome_open_slices(n: usize) -> Content {
    let begin = |i: usize| format!("{{\"ph\":\"B\",\"name\":\"a{i}\",\"pid\":1,\"tid\":1,\"ts\":{i}}}");
    let end =
        |i: usize| format!("{{\"ph\":\"E\",\"name\":\"b{i}\",\"pid\":1,\"tid\":1,\"ts\":{}}}", 1_000_000 + i);
    chrome("", (0..n).map(begin).chain((0..n).map(end)))
}

fn chrome_overlaps(n: usize) -> Content {
    chrome("", (0..n).map(|i| slice("a", "cpu_op", [1, 1], [i, 1_000_000], "")))
}

fn chrome_frames(n: usize) -> Content {
    let frame = |i: usize| {
        let args = format!("\"Python id\":{i},\"Python parent id\":{}", i.saturating_sub(1));
        slice(&format!("train.py({i}): f{i}"), "python_function", [1, 1], [i, 1_000_000 - 2 * i], &args)
    };
    chrome("", (0..n).map(frame))
}

fn chrome_steps(n: usize) -> Content {
    let one = |i: usize| {
        [
            slice(&format!("ProfilerStep#{i}"), "user_annotation", [1, 1], [i * 100, 90], ""),
            slice(
                "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                "user_annotation",
                [1, 1],
                [i * 100 + 1, 20],
                "",
            ),
            slice("aten::mm", "cpu_op", [1, 1], [i * 100 + 30, 40], ""),
        ]
    };
    chrome("", (0..n).flat_map(one))
}

fn chrome_allocations(n: usize) -> Content {
    let one = |i: usize| {
        format!(
            "{{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"cat\":\"cpu_instant_event\",\"pid\":1,\"tid\":1,\"ts\":{i},\
             \"args\":{{\"Addr\":{},\"Bytes\":64,\"Device Type\":1,\"Device Id\":{},\"Total Allocated\":{},\"Total Reserved\":{}}}}}",
            i * 64,
            i % 64,
            i * 64,
            i * 64
        )
    };
    chrome("", (0..n).map(one))
}

fn chrome_collectives(n: usize) -> Content {
    let args = |i: usize| {
        format!(
            "\"device\":0,\"stream\":{i},\"correlation\":{i},\"Collective name\":\"allreduce\",\"Process Group Name\":\"{i}\",\"In msg nelems\":{i}"
        )
    };
    chrome("", (0..n).map(|i| slice("ncclDevKernel_AllReduce", "kernel", [0, i], [i, 1_000_000], &args(i))))
}

fn plane(name: &str, lines: Vec<XLine>, names: &[&str]) -> XPlane {
    let metadata = names.iter().enumerate().map(|(i, name)| (i as i64 + 1, XEventMetadata::named(name)));
    XPlane { lines, event_metadata: metadata.collect(), ..XPlane::named(name) }
}

fn line(id: usize, name: &str, events: Vec<XEvent>) -> XLine {
    XLine {
        id: id as i64,
        name: name.to_owned(),
        timestamp_ns: 1_700_000_000_000_000_000,
        events,
        ..XLine::default()
    }
}

fn space(planes: Vec<XPlane>) -> Content {
    Content::Bytes(XSpace { planes, ..XSpace::default() }.encode())
}

/// Events without metadata and with ends before their starts, so that each plane has notes of its own.
fn xplane_planes(n: usize) -> Content {
    let odd = |i: usize| vec![XEvent::at(i as i64, -5, 1), XEvent::at(i as i64, 5, 99)];
    space((0..n).map(|i| plane(&format!("plane {i}"), vec![line(1, "a", odd(i))], &["op"])).collect())
}

fn xplane_devices(n: usize) -> Content {
    let event = |i: usize| vec![XEvent::at(i as i64 * 1_000, 500, 1)];
    let name = |i: usize| format!("/device:GPU:{i}");
    space((0..n).map(|i| plane(&name(i), vec![line(7, "Stream #7(Kernel)", event(i))], &["gemm"])).collect())
}

fn xplane_lines(n: usize) -> Content {
    let lines = (0..n).map(|i| line(i, &format!("thread/{i}"), vec![XEvent::at(i as i64, 5_000, 1)]));
    space(vec![plane("/host:CPU", lines.collect(), &["op"])])
}

/// Threads of a program, each with an event of its own kind.
fn xplane_threads(n: usize) -> Content {
    let names: Vec<String> = (0..n).map(|i| format!("call {i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lines =
        (0..n).map(|i| line(i, &format!("python/{i}"), vec![XEvent::at(i as i64, 5_000, i as i64 + 1)]));
    space(vec![plane("/host:CPU", lines.collect(), &names)])
}

fn xplane_metadata(n: usize) -> Content {
    let names: Vec<String> = (0..n).map(|i| format!("op_{i}:Type{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = (0..n).map(|i| XEvent::at(i as i64 * 2_000, 1_000, i as i64 + 1)).collect();
    space(vec![plane("/host:CPU", vec![line(1, "python", events)], &names)])
}

fn xplane_correlations(n: usize) -> Content {
    let stats = || vec![XStat::new(1, XValue::Int64(7)), XStat::new(2, XValue::Int64(7))];
    let event =
        |i: usize, late: i64| XEvent { stats: stats(), ..XEvent::at(i as i64 * 10_000 + late, 3_000, 1) };
    let named = |mut plane: XPlane| {
        plane.stat_metadata = vec![(1, "correlation_id".to_owned()), (2, "group_id".to_owned())];
        plane
    };
    let host = line(1, "python", (0..n).map(|i| event(i, 0)).collect());
    let device = line(7, "Stream #7(Kernel)", (0..n).map(|i| event(i, 2_000)).collect());
    space(vec![
        named(plane("/host:CPU", vec![host], &["cuLaunchKernel"])),
        named(plane("/device:GPU:0", vec![device], &["gemm"])),
    ])
}

fn xplane_stats(n: usize) -> Content {
    let mut plane = plane("/host:CPU", vec![line(1, "python", vec![XEvent::at(0, 1_000, 1)])], &["op"]);
    plane.stat_metadata = (0..n).map(|i| (i as i64 + 1, format!("stat_{i}_version"))).collect();
    plane.stats = (0..n).map(|i| XStat::new(i as i64 + 1, XValue::Int64(i as i64))).collect();
    space(vec![plane])
}

/// Events with so long arguments that each is far from the next.
fn xplane_arguments(n: usize) -> Content {
    let text = || XStat::new(1, XValue::Str("x".repeat(300)));
    let event = |i: usize| XEvent { stats: vec![text()], ..XEvent::at(i as i64 * 2_000, 1_000, 1) };
    let mut plane =
        plane("/host:CPU", vec![line(1, "python", (0..n).map(event).collect())], &["EagerExecute"]);
    plane.stat_metadata = vec![(1, "shape".to_owned())];
    space(vec![plane])
}

/// Events in the opposite order of their times, one inside the other by turns.
fn xplane_order(n: usize) -> Content {
    let events =
        (0..n).rev().map(|i| XEvent::at(i as i64 * 2_000, if i % 2 == 0 { 5_000 } else { 1_000 }, 1));
    space(vec![plane("/host:CPU", vec![line(1, "python", events.collect())], &["MatMul:MatMul"])])
}
