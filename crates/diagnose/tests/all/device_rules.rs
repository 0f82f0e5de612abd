//! Rules about what a device does in detail, on traces drawn for them: each fires on the trouble that it is about, and
//! keeps quiet on the same loop without it.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use stepscope_analyze::Context;
use stepscope_analyze::devices::bottleneck::Waits;
use stepscope_analyze::session::{HostPartial, Session};
use stepscope_diagnose::Facts;
use stepscope_diagnose::rules::communication_bound::Collectives;
use stepscope_diagnose::rules::serial_streams::SerialStreams;
use stepscope_diagnose::rules::transfer_bound::Transfer;
use stepscope_diagnose::{Finding, Severity, diagnose};
use stepscope_trace::{
    Datum, Device, DeviceKind, Dur, Kind, ProcessId, ProcessKind, Time, Trace, TraceBuilder, TrackId,
    TrackKind,
};

const STEPS: i64 = 10;
const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, Add>(int)";
const MUL: &str = "void at::native::vectorized_elementwise_kernel<4, Mul>(int)";
const PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";
const PINNED: &str = "Memcpy HtoD (Pinned -> Device)";

/// A loop in the making: marked steps of equal length on one thread, and a device. Times are in microseconds.
struct Loop {
    builder: TraceBuilder,
    thread: TrackId,
    device: ProcessId,
    streams: Vec<(i64, TrackId)>,
    launched: i64,
}

impl Loop {
    fn new(length: i64) -> Self {
        Loop::on(DeviceKind::Gpu, length)
    }

    fn on(kind: DeviceKind, length: i64) -> Self {
        let mut made = Loop::without_steps(kind);
        let number = made.builder.strings.intern("step_num");
        for step in 0..STEPS {
            let args = made.builder.arena.push(&[(number, Datum::Int(step))], &[]);
            made.put(made.thread, "", "train", step * length, length, args);
        }
        made
    }

    fn without_steps(kind: DeviceKind) -> Self {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("/host:CPU");
        let host = builder.process(name, ProcessKind::Host, 1);
        let name = builder.strings.intern("python");
        let thread = builder.track(host, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
        let name = builder.strings.intern("GPU 0");
        let device = builder.process(name, ProcessKind::Device, 0);
        let listed = builder.device(Device {
            process: Some(device),
            compute_capability: Some((8, 0)),
            multiprocessors: Some(108),
            ..Device::new(kind, 0)
        });
        builder.process_mut(device).device = Some(listed);
        Loop { builder, thread, device, streams: Vec::new(), launched: 0 }
    }

    fn put(&mut self, track: TrackId, category: &str, name: &str, at: i64, us: i64, args: Option<u64>) {
        let strings = &mut self.builder.strings;
        let (name, category) = (strings.intern(name), strings.intern(category));
        let kind = self.builder.kind(Kind { category, ..Kind::slice(name) });
        self.builder.event(track, Time::ZERO + Dur::from_us(at), Dur::from_us(us), kind, args);
    }

    fn host(&mut self, category: &str, name: &str, at: i64, us: i64) {
        self.put(self.thread, category, name, at, us, None);
    }

    /// Work on a stream, and the call that starts it.
    fn launch(&mut self, call: (&str, i64, i64), work: (&str, i64, i64), stream: i64, grid: &str) {
        self.launched += 1;
        let key = self.builder.strings.intern("correlation");
        let id = (key, Datum::Int(self.launched));
        let args = self.builder.arena.push(&[id], &[]);
        self.put(self.thread, "cuda_runtime", call.0, call.1, call.2, args);
        let track = match self.streams.iter().find(|(number, _)| *number == stream) {
            Some(&(_, track)) => track,
            None => {
                let name = self.builder.strings.intern(&format!("stream {stream}"));
                let track =
                    self.builder.track(self.device, name, TrackKind::Stream, stream, TraceBuilder::ARENA);
                self.streams.push((stream, track));
                track
            }
        };
        let mut own = vec![id];
        for (key, value) in [("grid", grid), ("block", "[256, 1, 1]")] {
            let (key, value) = (self.builder.strings.intern(key), self.builder.strings.intern(value));
            own.push((key, Datum::Json(value)));
        }
        let (key, value) = (self.builder.strings.intern("registers per thread"), Datum::Int(32));
        own.push((key, value));
        let args = self.builder.arena.push(&own, &[]);
        let category = if work.0.starts_with("Memcpy") { "gpu_memcpy" } else { "kernel" };
        self.put(track, category, work.0, work.1, work.2, args);
    }

    /// A kernel that fills the device, launched well ahead.
    fn kernel(&mut self, name: &str, at: i64, us: i64) {
        self.launch(("cudaLaunchKernel", at - 20, 5), (name, at, us), 7, "[4096, 1, 1]");
    }

    fn finish(self) -> Trace {
        self.builder.finish()
    }
}

fn judged(traces: &[Trace]) -> Vec<Finding> {
    let partial =
        |(index, trace): (usize, &Trace)| HostPartial::of(&Context::new(trace, format!("host{index}")));
    diagnose(&Facts::of(Session::finish(traces.iter().enumerate().map(partial).collect()).unwrap()))
}

fn find(traces: &[Trace], id: &str) -> Option<Finding> {
    judged(traces).into_iter().find(|finding| finding.id() == id)
}

/// Steps of a product and `kernels` of 100 µs each behind it.
fn elementwise(kernels: &[&str]) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        made.kernel("ampere_bf16_s16816gemm", at, 300);
        for (index, name) in kernels.iter().enumerate() {
            made.kernel(name, at + 310 + 110 * index as i64, 100);
        }
    }
    made.finish()
}

#[test]
fn rows_of_different_elementwise_kernels_are_unfused_and_rows_of_one_kernel_are_not() {
    let finding = find(&[elementwise(&[ADD, MUL])], "unfused-elementwise").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!((finding.gain_ms.unwrap() - 0.1).abs() < 0.01, "all but the longest of two: {finding:?}");
    assert!(find(&[elementwise(&[ADD, ADD])], "unfused-elementwise").is_none());
    assert!(find(&[elementwise(&[ADD, "reduce_kernel", MUL])], "unfused-elementwise").is_none());
}

/// Steps with a copy of `us` and a kernel behind it; the copy's call waits for it where `waits`, and the next launch
/// comes `pause` later.
fn copying(name: &str, us: i64, waits: bool, pause: i64) -> Trace {
    let mut made = Loop::new(2_000);
    for step in 0..STEPS {
        let at = step * 2_000 + 50;
        let call = if waits { us + 30 } else { 10 };
        made.launch(("cudaMemcpyAsync", at, call), (name, at + 20, us), 7, "[1, 1, 1]");
        let launched = at + us + 40 + pause;
        made.host("cpu_op", "aten::mm", launched - pause, pause + 10);
        made.launch(
            ("cudaLaunchKernel", launched, 10),
            ("ampere_bf16_gemm", launched + 10, 1_200),
            7,
            "[4096, 1, 1]",
        );
    }
    made.finish()
}

#[test]
fn pageable_copies_are_told_below_the_share_that_bounds_the_step() {
    let finding = find(&[copying(PAGEABLE, 240, true, 5)], "pageable-copies").unwrap();
    assert!((finding.gain_ms.unwrap() - 0.12).abs() < 0.02, "half of the copies: {finding:?}");
    assert!(find(&[copying(PINNED, 240, false, 5)], "pageable-copies").is_none());
    assert!(find(&[copying(PAGEABLE, 100, true, 5)], "pageable-copies").is_none(), "too little");
}

#[test]
fn what_bounds_the_step_says_from_what_memory_it_is_copied() {
    for (name, want) in [(PAGEABLE, Some(1.0)), (PINNED, Some(0.0)), ("MemcpyH2D", None)] {
        let finding = find(&[copying(name, 600, true, 5)], "transfer-bound").unwrap();
        let copies = finding.cause::<Transfer>().and_then(|transfer| transfer.copies.clone()).unwrap();
        assert_eq!(copies.pageable, want);
        assert!(find(&[copying(name, 600, true, 5)], "pageable-copies").is_none(), "said once");
    }
}

#[test]
fn gaps_after_copies_that_hold_up_the_host_are_told() {
    let finding = find(&[copying(PAGEABLE, 250, true, 400)], "blocking-copies").unwrap();
    let gain = finding.gain_ms.unwrap();
    assert!(
        (0.25..0.32).contains(&gain),
        "in the call, and as long after it as it held up the host: {finding:?}"
    );
    assert!(find(&[copying(PINNED, 250, false, 400)], "blocking-copies").is_none(), "nobody waited");
    assert!(find(&[copying(PAGEABLE, 100, true, 20)], "blocking-copies").is_none(), "no gap to speak of");
}

/// Steps with a kernel of 500 µs and, after it, a call of `us`.
fn calling(call: &str, us: i64) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000 + 30;
        made.kernel("ampere_bf16_gemm", at, 500);
        made.host("cuda_runtime", call, at + 520, us);
    }
    made.finish()
}

#[test]
fn memory_that_is_allocated_in_every_step_is_told() {
    let finding = find(&[calling("cudaMalloc", 300)], "allocation-stall").unwrap();
    assert!((finding.gain_ms.unwrap() - 0.3).abs() < 0.02, "{finding:?}");
    assert!(find(&[calling("cudaMalloc", 50)], "allocation-stall").is_none());
    assert!(find(&[calling("cudaEventRecord", 300)], "allocation-stall").is_none());
}

/// Steps with kernels on two streams, one after the other or at the same time.
fn two_streams(grid: &str, together: bool) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        let second = if together { at } else { at + 410 };
        made.launch(("cudaLaunchKernel", at - 20, 5), ("left", at, 400), 7, grid);
        made.launch(("cudaLaunchKernel", at - 10, 5), ("right", second, 400), 13, grid);
    }
    made.finish()
}

#[test]
fn streams_that_take_turns_are_told_only_where_there_is_room() {
    let finding = find(&[two_streams("[20, 1, 1]", false)], "serial-streams").unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert!((finding.gain_ms.unwrap() - 0.4).abs() < 0.01, "{finding:?}");
    assert!(find(&[two_streams("[20, 1, 1]", true)], "serial-streams").is_none(), "already in parallel");
    assert!(find(&[two_streams("[8000, 1, 1]", false)], "serial-streams").is_none(), "no room");
}

/// Steps of a full kernel of 500 µs and one of 300 µs with this grid.
fn with_grid(grid: &str) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        made.kernel("ampere_bf16_s16816gemm", at, 500);
        made.launch(("cudaLaunchKernel", at + 10, 5), ("scan", at + 500, 300), 7, grid);
    }
    made.finish()
}

#[test]
fn a_kernel_of_one_block_on_a_large_device_is_told_and_not_called_healthy() {
    let findings = judged(&[with_grid("[1, 1, 1]")]);
    let (first, gain) = (&findings[0], findings[0].gain_ms.unwrap());
    assert_eq!((first.id(), first.subject.as_deref()), ("low-occupancy", Some("scan")));
    assert!(gain > 0.28 && gain < 0.3, "{first:?}");
    let healthy = findings.iter().find(|finding| finding.id() == "compute-bound").unwrap();
    assert!(!healthy.words().advice[0].contains("healthy"), "{healthy:?}");
    let full = judged(&[with_grid("[4096, 1, 1]")]);
    assert!(full.iter().all(|finding| finding.id() != "low-occupancy"), "{full:?}");
}

/// Steps with two runs of a kernel of `us`; during the second one pages move for 30 µs.
fn migrating(us: i64, copy: &str) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        made.kernel("flags", at, 20);
        made.kernel("flags", at + 100, us);
        made.launch(("cudaMemPrefetch", at, 1), (copy, at + 110, 30), -1, "[1, 1, 1]");
    }
    made.finish()
}

#[test]
fn kernels_that_wait_for_pages_are_told() {
    let finding = find(&[migrating(400, "Memcpy HtoD (Unified)")], "unified-memory-faults").unwrap();
    assert!((finding.gain_ms.unwrap() - 0.38).abs() < 0.01, "{finding:?}");
    assert!(find(&[migrating(400, PINNED)], "unified-memory-faults").is_none(), "nothing migrates");
    assert!(find(&[migrating(40, "Memcpy HtoD (Unified)")], "transfer-bound").is_none());
}

#[test]
fn recorded_page_faults_are_counted_and_timed() {
    let mut made = Loop::new(1_000);
    let name = made.builder.strings.intern("Unified memory page faults");
    let faults = made.builder.track(made.device, name, TrackKind::Derived, 0, TraceBuilder::ARENA);
    let key = made.builder.strings.intern("faults");
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        made.kernel("add", at, 600);
        for group in 0..4 {
            let args = made.builder.arena.push(&[(key, Datum::Int(25))], &[]);
            made.put(faults, "um_fault", "GPU page fault", at + 100 * group, 60, args);
        }
    }
    let finding = find(&[made.finish()], "unified-memory-faults").unwrap();
    assert!((finding.gain_ms.unwrap() - 0.24).abs() < 0.01, "{finding:?}");
    assert!(finding.words().evidence[0].contains("100 page faults on the device"), "{:?}", finding.words());
}

#[test]
fn a_programs_kernels_show_whose_language_advice_is_in() {
    let launched = |kernel: &str| {
        let mut made = Loop::without_steps(DeviceKind::Gpu);
        for turn in 0..400 {
            let at = turn * 20;
            made.launch(("cudaLaunchKernel", at, 12), (kernel, at + 12, 3), 7, "[64, 1, 1]");
        }
        let bound = find(&[made.finish()], "kernel-launch-bound").unwrap();
        bound.words().advice.join(" ")
    };
    assert!(launched(ADD).contains("torch.compile"));
    let plain = launched("add(float*)");
    assert!(!plain.contains("torch") && plain.contains("CUDA graph"), "{plain}");
}

/// What a recorder keeps of a call that makes one stream wait for another.
#[derive(Copy, Clone, PartialEq)]
enum Kept {
    /// The call alone.
    Call,
    /// And which stream waits.
    Waiting,
    /// And for which stream.
    Both,
}

/// Streams 7 and 13 in turn, where 13 waits for an event of stream `on` before its kernel.
fn waiting_streams(on: i64, kept: Kept) -> Trace {
    let mut made = Loop::new(1_000);
    let name = made.builder.strings.intern("stream 13");
    let marks = made.builder.track(made.device, name, TrackKind::Derived, 13, TraceBuilder::ARENA);
    let keys = ["correlation", "wait_on_stream", "wait_on_cuda_event_record_corr_id"]
        .map(|key| made.builder.strings.intern(key));
    for step in 0..STEPS {
        let at = step * 1_000 + 50;
        made.launch(("cudaLaunchKernel", at - 40, 5), ("left", at, 400), 7, "[20, 1, 1]");
        let (record, wait) = (10_000 + step, 20_000 + step);
        for (call, id, began) in
            [("cudaEventRecord", record, at - 30), ("cudaStreamWaitEvent", wait, at - 20)]
        {
            let args = made.builder.arena.push(&[(keys[0], Datum::Int(id))], &[]);
            made.put(made.thread, "cuda_runtime", call, began, 5, args);
        }
        let mut own = vec![(keys[0], Datum::Int(wait))];
        if kept == Kept::Both {
            own.extend([(keys[1], Datum::Int(on)), (keys[2], Datum::Int(record))]);
        }
        let args = made.builder.arena.push(&own, &[]);
        if kept != Kept::Call {
            made.put(marks, "cuda_sync", "Stream Wait Event", at - 18, 1, args);
        }
        made.launch(("cudaLaunchKernel", at - 10, 5), ("right", at + 410, 400), 13, "[20, 1, 1]");
    }
    made.finish()
}

#[test]
fn what_a_recorded_wait_puts_in_order_is_no_chance() {
    let serial = |on, kept| find(&[waiting_streams(on, kept)], "serial-streams");
    assert!(serial(7, Kept::Both).is_none(), "13 needs what 7 did");
    assert!(serial(7, Kept::Waiting).is_none(), "13 waits for somebody");
    let other = serial(21, Kept::Both).unwrap();
    assert!((other.gain_ms.unwrap() - 0.4).abs() < 0.01, "13 waits for a third one: {other:?}");
    let hedged = serial(7, Kept::Call).unwrap();
    assert_eq!(hedged.gain_ms, None, "who waits for whom is unknown");
    let waits = hedged.cause::<SerialStreams>().map(|streams| streams.waits);
    assert_eq!(waits, Some(Waits::CallsOnly), "{hedged:?}");
}

/// Steps of 1,000 µs whose all-reduce begins at `begin` and ends at 900.
fn rank(begin: i64) -> Trace {
    let mut made = Loop::new(1_000);
    for step in 0..STEPS {
        let at = step * 1_000;
        made.kernel("ampere_bf16_gemm", at + 30, 290);
        let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
        made.launch(("cudaLaunchKernel", at + 20, 5), (name, at + begin, 900 - begin), 13, "[24, 1, 1]");
    }
    made.finish()
}

#[test]
fn a_rank_that_arrives_late_is_named_and_waiting_is_told_from_transfer() {
    let traces = [rank(400), rank(700)];
    let late = find(&traces, "straggler").unwrap();
    assert_eq!(late.subject.as_deref(), Some("host1 GPU 0"));
    let bound = find(&traces, "communication-bound").unwrap();
    let waiting = bound.cause::<Collectives>().and_then(|found| found.waiting.clone()).unwrap();
    assert!((waiting.ranks[0].waiting_ms - 0.3).abs() < 1e-6 && (waiting.transfer_ms() - 0.2).abs() < 1e-6);
    assert!(find(&[rank(400), rank(410)], "straggler").is_none(), "nearly together");
}

#[test]
fn a_capture_of_the_runtimes_start_is_called_that() {
    let mut made = Loop::without_steps(DeviceKind::Gpu);
    made.host("cpu_op", "aten::to", 0, 9_000_000);
    made.host("cuda_runtime", "cudaFree", 100, 8_000_000);
    for kernel in 0..30 {
        let at = 9_000_000 + 1_000 * kernel * (1 + kernel % 7);
        let name = format!("kernel{}", (kernel * kernel) % 23);
        made.launch(("cudaLaunchKernel", at, 10), (&name, at + 20, 5), 7, "[1, 1, 1]");
    }
    let findings = judged(&[made.finish()]);
    let ids: Vec<&str> = findings.iter().map(Finding::id).collect();
    assert!(ids.contains(&"startup-profiled"), "{ids:?}");
    assert!(!ids.contains(&"kernel-launch-bound"), "{ids:?}");
    assert!(!ids.contains(&"host-python"), "no Python was recorded: {ids:?}");
}

#[test]
fn a_capture_inside_a_compilation_has_its_own_length() {
    let mut made = Loop::without_steps(DeviceKind::Gpu);
    made.host("user_annotation", "CUDAGraphNode.record (dynamo_timed)", 0, 600_000);
    made.host("cuda_runtime", "cudaStreamBeginCapture", 100, 10);
    made.host("cuda_runtime", "cudaStreamEndCapture", 590_000, 10);
    for kernel in 0..30 {
        let at = 610_000 + 1_000 * kernel * (1 + kernel % 7);
        let name = format!("kernel{}", (kernel * kernel) % 23);
        made.launch(("cudaLaunchKernel", at, 10), (&name, at + 20, 5), 7, "[1, 1, 1]");
    }
    let findings = judged(&[made.finish()]);
    let startup = findings.iter().find(|finding| finding.id() == "startup-profiled");
    let summary = startup.map(|finding| finding.words().summary).unwrap_or_default();
    assert!(summary.contains("610 ms"), "until the first kernel, and nothing twice: {summary}");
}

#[test]
fn what_computes_on_a_device_is_its_side_of_the_recording() {
    for kind in [DeviceKind::Gpu, DeviceKind::Tpu] {
        let mut made = Loop::on(kind, 1_000);
        for step in 0..STEPS {
            made.kernel("fusion", step * 1_000 + 50, 900);
        }
        assert!(find(&[made.finish()], "no-device-trace").is_none(), "{kind:?}");
        let idle = Loop::on(kind, 1_000).finish();
        assert!(find(&[idle], "no-device-trace").is_some(), "{kind:?}");
    }
}
