//! Counters of launches made by hand.

use proptest::prelude::*;
use stepscope_trace::{ArgSourceId, Datum, Kind, ProcessKind, Time, TraceBuilder};

use super::*;
use crate::kernels::KernelRow;

const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const COMPUTE: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
const LOAD_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const LOAD_BYTES: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
const EXCESS: &str = "derived__memory_l2_theoretical_sectors_global_excessive";

/// A launch: name, grid, microseconds, metrics.
type Launch<'a> = (&'a str, &'a str, i64, &'a [(&'a str, f64)]);

/// Launches one after the other.
fn profiled(launches: &[Launch<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("Nsight Compute");
    let process = builder.process(name, ProcessKind::Other, 0);
    let track = builder.track(process, name, TrackKind::Derived, 0, ArgSourceId::default());
    for (number, (name, grid, us, metrics)) in launches.iter().enumerate() {
        let strings = &mut builder.strings;
        let mut args: Vec<_> =
            metrics.iter().map(|(name, value)| (strings.intern(name), Datum::Float(*value))).collect();
        args.push((strings.intern("grid"), Datum::Json(strings.intern(grid))));
        let (name, category) = (strings.intern(name), strings.intern(LAUNCH));
        let at = builder.arena.push(&args, &[]);
        let kind = builder.kind(Kind { category, ..Kind::slice(name) });
        builder.event(track, Time::from_ns(number as i64 * 1_000_000_000), Dur::from_us(*us), kind, at);
    }
    builder.finish()
}

fn one(metrics: &[(&str, f64)]) -> KernelCounters {
    let trace = profiled(&[("f", "[1, 1, 1]", 10, metrics)]);
    assert!(!has_timeline(&trace));
    CountersPartial::of(&trace).finish().kernels.remove(0)
}

#[test]
fn launches_alike_are_one_row_and_weighed_by_their_time() {
    let trace = profiled(&[
        ("f", "[8, 1, 1]", 30, &[(MEMORY, 80.0)]),
        ("f", "[8, 1, 1]", 10, &[(MEMORY, 40.0), (COMPUTE, 10.0)]),
        ("f", "[9, 1, 1]", 60, &[]),
    ]);
    let counters = CountersPartial::of(&trace).finish();
    let [other, main] = &counters.kernels[..] else { panic!("{counters:?}") };
    assert_eq!((main.launches, main.total_ms, main.fraction), (2, 0.04, 0.4));
    assert!((main.memory.unwrap() - 0.7).abs() < 1e-9, "{main:?}");
    assert_eq!(main.compute, Some(0.1), "where it was not collected it does not count");
    assert!((main.headroom().unwrap() - 0.3).abs() < 1e-9);
    assert_eq!((other.memory, other.headroom(), other.excess_sectors), (None, None, None));
}

#[test]
fn the_smallest_limit_is_the_limiter_and_warps_win_ties() {
    let limits = |warps: f64, shared: f64| {
        one(&[
            ("launch__occupancy_limit_warps", warps),
            ("launch__occupancy_limit_blocks", 16.0),
            ("launch__occupancy_limit_registers", 8.0),
            ("launch__occupancy_limit_shared_mem", shared),
        ])
        .limiter
    };
    assert_eq!(limits(4.0, 2.0), Some(Limiter::SharedMemory));
    assert_eq!(limits(2.0, 2.0), Some(Limiter::Warps));
    assert_eq!(one(&[]).limiter, None);
}

#[test]
fn a_stride_wastes_sectors_and_a_broadcast_does_not() {
    let strided = one(&[(LOAD_SECTORS, 3_200.0), (LOAD_REQUESTS, 100.0), (LOAD_BYTES, 4.0)]);
    assert_eq!(strided.loads.sectors_per_request, Some(32.0));
    assert_eq!(strided.excess_sectors, Some(0.875));
    let broadcast = one(&[(LOAD_SECTORS, 100.0), (LOAD_REQUESTS, 100.0), (LOAD_BYTES, 4.0)]);
    assert_eq!(broadcast.excess_sectors, Some(0.0));
    let counted = one(&[(LOAD_SECTORS, 800.0), (LOAD_REQUESTS, 100.0), (LOAD_BYTES, 16.0), (EXCESS, 400.0)]);
    assert_eq!(counted.excess_sectors, Some(0.5));
}

#[test]
fn lanes_of_sixteen_bytes_are_not_wasteful() {
    let vectors = [(LOAD_SECTORS, 1_600.0), (LOAD_REQUESTS, 100.0), (LOAD_BYTES, 16.0)];
    assert_eq!(one(&vectors).excess_sectors, Some(0.0));
    let counted = [&vectors[..], &[(EXCESS, 800.0)]].concat();
    assert_eq!(one(&counted).excess_sectors, Some(0.0), "ncu takes them for half wasted");
}

#[test]
fn the_longest_stall_is_a_share_of_the_latency() {
    let kernel = one(&[
        ("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", 24.0),
        ("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", 2.0),
        ("smsp__average_warp_latency_per_inst_issued.ratio", 32.0),
    ]);
    assert_eq!(kernel.stall, Some(("lg_throttle", 0.75)));
}

#[test]
fn bank_conflicts_are_counted_or_follow_from_the_ideal() {
    let counted = one(&[
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 30.0),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 60.0),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 40.0),
    ]);
    assert_eq!(counted.bank_conflicts, Some(0.3));
    let ideal = one(&[("memory_l1_wavefronts_shared", 100.0), ("memory_l1_wavefronts_shared_ideal", 20.0)]);
    assert_eq!((ideal.bank_conflicts, one(&[]).bank_conflicts), (Some(0.8), None));
}

#[test]
fn a_small_grid_leaves_multiprocessors_empty() {
    let kernel = one(&[
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 80.0),
        ("launch__sm_count", 100.0),
        ("launch__grid_size", 10.0),
    ]);
    assert!((kernel.device_occupancy().unwrap() - 0.08).abs() < 1e-9);
}

#[test]
fn kernels_join_by_name_grid_and_block_in_any_spelling() {
    let trace = profiled(&[
        ("gemm(const float *, int)", "[8, 1, 1]", 10, &[]),
        ("gemm(const float *, int)", "[4, 1, 1]", 20, &[]),
    ]);
    let counters = CountersPartial::of(&trace).finish();
    let join = counters.join();
    let launch = |grid: u32| LaunchConfig { grid: Some([grid, 1, 1]), ..LaunchConfig::default() };
    assert_eq!(join.of_launch("void gemm(const float*, int)", &launch(8)).unwrap().total_ms, 0.01);
    assert_eq!(join.of_launch("gemm", &launch(4)).unwrap().total_ms, 0.02);
    assert_eq!(join.of_launch("gemm", &launch(5)), None);
    assert_eq!(join.of_launch("gemv", &launch(4)), None);
    assert_eq!(join.ms_in(&Vec::<KernelRow>::new()), [0.0, 0.0]);
}

proptest! {
    #[test]
    fn shares_stay_shares_whatever_was_measured(
        percent in -1e3f64..1e6, sectors in 0.0f64..1e12, requests in 0.0f64..1e12, excess in 0.0f64..1e13,
    ) {
        let kernel = one(&[
            (MEMORY, percent), (LOAD_SECTORS, sectors), (LOAD_REQUESTS, requests), (EXCESS, excess),
            (LOAD_BYTES, 16.0),
        ]);
        let share = |figure: Option<f64>| figure.is_none_or(|figure| (0.0..=1.0).contains(&figure));
        prop_assert!(share(kernel.memory) && share(kernel.headroom()) && share(kernel.excess_sectors));
    }
}
