//! Hardware counters become findings whose promises they do not contradict, alone and beside a timeline.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use proptest::prelude::*;
use stepscope_analyze::Context;
use stepscope_analyze::session::{HostPartial, Session};
use stepscope_diagnose::Facts;
use stepscope_diagnose::rules::CounterCause;
use stepscope_diagnose::{Finding, diagnose};
use stepscope_trace::{
    ArgSourceId, Datum, Device, DeviceKind, Dur, Kind, ProcessKind, StrId, Time, Trace, TraceBuilder,
    TrackKind,
};

const COMPUTE: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const SECTORS: &str = "memory_l2_theoretical_sectors_global";
const IDEAL: &str = "memory_l2_theoretical_sectors_global_ideal";
const CONFLICTS: &str = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
const WAVEFRONTS: &str = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
const ACHIEVED: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
const STALL: &str = "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio";
const LATENCY: &str = "smsp__average_warp_latency_per_inst_issued.ratio";
const ISSUE: &str = "smsp__issue_active.avg.per_cycle_active";

/// One launch of each kernel, a millisecond each.
fn counters(kernels: &[(&str, &[(&str, f64)])]) -> Trace {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("Nsight Compute");
    let process = builder.process(name, ProcessKind::Other, 0);
    let track = builder.track(process, name, TrackKind::Derived, 0, ArgSourceId::default());
    builder.device(Device::new(DeviceKind::Gpu, 0));
    for (number, (name, metrics)) in kernels.iter().enumerate() {
        let strings = &mut builder.strings;
        let args: Vec<(StrId, Datum)> =
            metrics.iter().map(|(name, value)| (strings.intern(name), Datum::Float(*value))).collect();
        let (name, category) = (strings.intern(name), strings.intern("ncu_kernel"));
        let at = builder.arena.push(&args, &[]);
        let kind = builder.kind(Kind { category, ..Kind::slice(name) });
        builder.event(track, Time::ZERO + Dur::from_us(number as i64 * 1_000), Dur::from_us(1_000), kind, at);
    }
    builder.finish()
}

/// Five steps of 10 ms, each with these kernels and their microseconds one after the other.
fn timeline(kernels: &[(&str, i64)]) -> Trace {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("/host:CPU");
    let host = builder.process(name, ProcessKind::Host, 1);
    let thread = builder.track(host, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
    let name = builder.strings.intern("/device:GPU:0");
    let gpu = builder.process(name, ProcessKind::Device, 0);
    builder.device(Device { process: Some(gpu), ..Device::new(DeviceKind::Gpu, 0) });
    let stream = builder.strings.intern("Stream #1(Compute)");
    let stream = builder.track(gpu, stream, TrackKind::Stream, 1, TraceBuilder::ARENA);
    for step in 0..5 {
        let start = Time::ZERO + Dur::from_us(step * 10_000);
        let key = builder.strings.intern("step_num");
        let args = builder.arena.push(&[(key, Datum::Int(step))], &[]);
        let name = builder.strings.intern("train");
        let kind = builder.kind(Kind::slice(name));
        builder.event(thread, start, Dur::from_us(10_000), kind, args);
        let mut at = start;
        for &(name, us) in kernels {
            let name = builder.strings.intern(name);
            let kind = builder.kind(Kind::slice(name));
            builder.event(stream, at, Dur::from_us(us), kind, None);
            at = at + Dur::from_us(us);
        }
    }
    builder.finish()
}

fn judged(traces: &[Trace]) -> Vec<Finding> {
    let hosts = traces.iter().enumerate();
    let partials = hosts.map(|(host, trace)| HostPartial::of(&Context::new(trace, format!("h{host}"))));
    diagnose(&Facts::of(Session::finish(partials.collect()).unwrap()))
}

fn ids(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(Finding::id).collect()
}

const STRIDED: &[(&str, f64)] = &[(MEMORY, 40.0), (COMPUTE, 20.0), (SECTORS, 800.0), (IDEAL, 200.0)];

#[test]
fn counters_alone_speak_of_kernels_and_not_of_what_a_timeline_would_have() {
    let findings = judged(&[counters(&[("strided", STRIDED), ("fine", &[(MEMORY, 90.0)])])]);
    assert_eq!(ids(&findings), ["uncoalesced-access"]);
    assert_eq!(findings[0].subject.as_deref(), Some("strided"));
    assert_eq!(findings[0].fraction, Some(0.5), "a half of the profiled time");
    assert_eq!(findings[0].gain_ms, None, "there is no step to win anything of");
    assert!((findings[0].winnable.unwrap() - 0.75).abs() < 1e-9, "time falls at most as sectors do");
}

#[test]
fn profiles_of_kernels_do_not_wait_for_one_another() {
    let (few, many) =
        (counters(&[("f", STRIDED)]), counters(&[("g", STRIDED), ("g", STRIDED), ("g", STRIDED)]));
    let findings = judged(&[few, many]);
    assert_eq!(ids(&findings), ["uncoalesced-access"]);
    assert_eq!(findings[0].fraction, Some(1.0));
}

#[test]
fn a_kernel_near_a_peak_is_promised_no_more_than_useful_work_leaves() {
    let near = |compute| [(MEMORY, 88.0), (COMPUTE, compute), (SECTORS, 800.0), (IDEAL, 200.0)];
    for (compute, left) in [(20.0, 0.78), (85.0, 0.15)] {
        let findings = judged(&[counters(&[("near", &near(compute))])]);
        assert_eq!(ids(&findings), ["uncoalesced-access"]);
        assert!((findings[0].winnable.unwrap() - left).abs() < 1e-9, "{:?}", findings[0].winnable);
        assert_eq!(findings[0].gain_fraction(), findings[0].winnable, "the only cap without steps");
    }
}

#[test]
fn what_memory_does_not_limit_is_not_its_fault() {
    let busy = [(MEMORY, 40.0), (COMPUTE, 80.0), (SECTORS, 800.0), (IDEAL, 200.0)];
    assert!(judged(&[counters(&[("busy", &busy)])]).is_empty());
}

#[test]
fn conflicts_few_warps_and_waits_are_told_apart() {
    let conflicts = [(MEMORY, 50.0), (CONFLICTS, 60.0), (WAVEFRONTS, 100.0)];
    assert_eq!(ids(&judged(&[counters(&[("f", &conflicts)])])), ["shared-memory-limited"]);
    let waits = [(MEMORY, 50.0), (STALL, 8.0), (LATENCY, 10.0), (ISSUE, 0.3)];
    let full = [&waits[..], &[(ACHIEVED, 90.0)]].concat();
    assert_eq!(ids(&judged(&[counters(&[("f", &full)])])), ["kernel-stalls"]);
    let empty = [&waits[..], &[(ACHIEVED, 12.0)]].concat();
    assert_eq!(ids(&judged(&[counters(&[("f", &empty)])])), ["low-occupancy"]);
}

#[test]
fn a_timeline_weighs_what_counters_find() {
    let profiled = counters(&[("strided(float *)", STRIDED)]);
    let findings = judged(&[timeline(&[("void strided(float*)", 4_000), ("other", 4_000)]), profiled]);
    let found = findings.iter().find(|finding| finding.id() == "uncoalesced-access").unwrap();
    assert!((found.fraction.unwrap() - 0.4).abs() < 0.01, "4 of 10 ms: {found:?}");
    assert!((found.gain_ms.unwrap() - 3.0).abs() < 0.05, "three quarters of them: {found:?}");
    assert!(!ids(&findings).contains(&"no-steps"), "{findings:?}");
    // What the timeline does not show is told without a share.
    let unseen = judged(&[timeline(&[("other", 8_000)]), counters(&[("strided", STRIDED)])]);
    let found = unseen.iter().find(|finding| finding.id() == "uncoalesced-access").unwrap();
    assert_eq!((found.fraction, found.gain_ms), (None, None));
}

proptest! {
    #[test]
    fn no_promise_exceeds_what_useful_work_leaves(
        memory in 0.0f64..100.0, compute in 0.0f64..100.0, excess in 0.0f64..1.0, conflicts in 0.0f64..1.0,
        stall in 0.0f64..1.0, issue in 0.0f64..1.0, achieved in 0.0f64..100.0,
    ) {
        let metrics = [
            (MEMORY, memory), (COMPUTE, compute), (SECTORS, 1e6), (IDEAL, 1e6 * (1.0 - excess)),
            (CONFLICTS, 1e6 * conflicts), (WAVEFRONTS, 1e6), (STALL, 10.0 * stall), (LATENCY, 10.0),
            (ISSUE, issue), (ACHIEVED, achieved),
        ];
        for finding in judged(&[counters(&[("f", &metrics)])]) {
            let waste = if finding.id() == "uncoalesced-access" { excess } else { 0.0 };
            let headroom = 1.0 - (memory * (1.0 - waste)).max(compute) / 100.0;
            prop_assert!(finding.winnable.is_none_or(|share| share <= headroom + 1e-9), "{:?}", finding);
            let Some(cause) = finding.cause::<CounterCause>() else { continue };
            let most = cause.kernels.iter().filter_map(|kernel| kernel.winnable).fold(0.0, f64::max);
            prop_assert!(most <= headroom + 1e-9, "{:?}", finding);
        }
    }
}
