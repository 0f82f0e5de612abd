//! Counters of hand-made launches.

use proptest::prelude::*;
use stepscope_trace::{
    ArgSourceId, Datum, Device, DeviceKind, Kind, ProcessKind, Time, TraceBuilder, TrackKind,
};

use super::*;
use crate::vocabulary::{LAUNCH, has_timeline};
use crate::work::kernels::KernelRow;

const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const COMPUTE: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
const LOAD_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const LOAD_BYTES: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
const EXCESS: &str = "derived__memory_l2_theoretical_sectors_global_excessive";

/// Readers write it as a whole number, as timelines have it.
const SHARED: &str = "shared memory";

fn whole((_, value): &mut (StrId, Datum)) {
    if let Datum::Float(bytes) = *value {
        *value = Datum::Int(bytes as i64);
    }
}

/// A launch: name, grid, microseconds, metrics.
type Launch<'a> = (&'a str, &'a str, i64, &'a [(&'a str, f64)]);

/// Consecutive launches.
fn profiled(launches: &[Launch<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("Nsight Compute");
    let process = builder.process(name, ProcessKind::Other, 0);
    let track = builder.track(process, name, TrackKind::Derived, 0, ArgSourceId::default());
    for (number, (name, grid, us, metrics)) in launches.iter().enumerate() {
        let strings = &mut builder.strings;
        let mut args: Vec<_> =
            metrics.iter().map(|(name, value)| (strings.intern(name), Datum::Float(*value))).collect();
        args.iter_mut().filter(|(name, _)| strings.get(*name) == SHARED).for_each(whole);
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
    CountersPartial::of(&Context::new(&trace, "host")).finish().kernels.remove(0)
}

#[test]
fn launches_alike_are_one_row_and_weighed_by_their_time() {
    let trace = profiled(&[
        ("f", "[8, 1, 1]", 30, &[(MEMORY, 80.0)]),
        ("f", "[8, 1, 1]", 10, &[(MEMORY, 40.0), (COMPUTE, 10.0)]),
        ("f", "[9, 1, 1]", 60, &[]),
    ]);
    let counters = CountersPartial::of(&Context::new(&trace, "host")).finish();
    let [other, main] = &counters.kernels[..] else { panic!("{counters:?}") };
    assert_eq!((main.launches, main.total_ms, main.fraction), (2, 0.04, 0.4));
    assert!((main.memory.unwrap() - 0.7).abs() < 1e-9, "{main:?}");
    assert_eq!(main.compute, Some(0.1), "where it was not collected it does not count");
    assert!((main.headroom(Waste::None).unwrap() - 0.3).abs() < 1e-9);
    assert_eq!((other.memory, other.headroom(Waste::None), other.excess_sectors), (None, None, None));
}

/// What the speed-of-light section has of a kernel: its passes and requests, and nothing about sectors.
const PASSES: &str = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed";
const REQUESTS: &str = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed";
const L1: &str = "l1tex__throughput.avg.pct_of_peak_sustained_active";
const L2: &str = "lts__throughput.avg.pct_of_peak_sustained_elapsed";

#[test]
fn passes_per_request_show_scattered_accesses_unless_shared_memory_takes_them() {
    let scattered = [(PASSES, 97.5), (REQUESTS, 11.8), (SHARED, 0.0)];
    assert!((one(&scattered).passes.unwrap() - 8.26).abs() < 0.01);
    let shared = [(PASSES, 97.5), (REQUESTS, 11.8), (SHARED, 4_096.0)];
    assert_eq!(one(&shared).passes, None, "conflicts in shared memory look the same");
    let coarse = [(L1, 99.0), (L2, 1.7), (COMPUTE, 11.8), (SHARED, 0.0)];
    assert!((one(&coarse).passes.unwrap() - 8.39).abs() < 0.01, "a page of details has no more");
    let fed = [(L1, 99.0), (L2, 80.0), (COMPUTE, 11.8), (SHARED, 0.0)];
    assert_eq!(one(&fed).passes, None, "it may wait for the second cache");
}

#[test]
fn half_wasted_sectors_are_wide_requests_unless_there_are_too_many_requests() {
    let half = |busy: f64, shared: f64| {
        let metrics = [
            (EXCESS, 375_000.0),
            ("memory_l2_theoretical_sectors_global", 750_000.0),
            (LOAD_BYTES, 16.0),
            ("sm__memory_throughput.avg.pct_of_peak_sustained_elapsed", busy),
            ("sm__cycles_elapsed.sum", 1_478_480.0),
            (SHARED, shared),
        ];
        one(&metrics).excess_sectors
    };
    assert_eq!(half(17.35, 0.0), Some(0.5), "6 sectors per request are no 16 bytes per thread");
    assert_eq!(half(7.0, 0.0), None, "15 sectors may be");
    assert_eq!(half(17.35, 1_024.0), None, "most requests may be for shared memory");
}

#[test]
fn arithmetic_is_what_remains_however_data_is_loaded() {
    let fma = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed";
    let alu = "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed";
    assert_eq!(one(&[(fma, 17.0), (alu, 4.0), (COMPUTE, 91.0)]).arithmetic, Some(0.17));
    assert_eq!(one(&[(fma, 2.0), (alu, 60.0)]).arithmetic, Some(0.6), "whole numbers are work too");
    assert_eq!(one(&[("fp32 peak", 10.0), (fma, 21.5)]).arithmetic, Some(0.1), "addresses are not");
    let issue = [("smsp__issue_active.avg.per_cycle_active", 0.24), (COMPUTE, 83.0)];
    assert_eq!(one(&issue).arithmetic, Some(0.24), "no more than was issued");
    assert_eq!(one(&[(COMPUTE, 83.0)]).arithmetic, None);
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
    let counters = CountersPartial::of(&Context::new(&trace, "host")).finish();
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
        prop_assert!(share(kernel.memory) && share(kernel.headroom(Waste::None)) && share(kernel.excess_sectors));
    }
}

const DRAM_BYTES: &str = "dram__bytes.sum";
const STORE_BYTES: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio";

/// The launch of 10 µs on a device of this name and bandwidth.
fn on(device: &str, bandwidth: Option<u64>, metrics: &[(&str, f64)]) -> KernelCounters {
    let trace = profiled(&[("f", "[1, 1, 1]", 10, metrics)]);
    let mut counters = CountersPartial::default();
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern(device);
    builder.device(Device { name, memory_bandwidth: bandwidth, ..Device::new(DeviceKind::Gpu, 0) });
    let ceilings = Ceilings::of(&builder.finish());
    let (names, track) = (Names::of(&trace), launch_tracks(&trace).next().unwrap());
    let mut figures = names.read(trace.args_at(track, 0));
    ceilings.complete(&mut figures, trace.args_at(track, 0));
    let key = Key { name: "f".to_owned(), launch: LaunchConfig::default() };
    counters.entries.entry(key).or_default().add(figures, track.dur(0));
    counters.finish().kernels.remove(0)
}

#[test]
fn peaks_that_a_report_lacks_come_from_the_device_or_its_data_sheet() {
    // 7.775 MB in 10 µs are half of an A100's 1,555 GB/s.
    let moved = (DRAM_BYTES, 7.775e6);
    let sheet = on("NVIDIA A100-SXM4-40GB", None, &[moved]);
    assert_eq!(sheet.dram_peak, Some(PeakSource::DataSheet));
    assert!((sheet.dram.unwrap() - 0.5).abs() < 1e-9, "{sheet:?}");
    let device = on("NVIDIA A100-SXM4-40GB", Some(3_110_000_000_000), &[moved]);
    assert_eq!(device.dram_peak, Some(PeakSource::Device));
    assert!((device.dram.unwrap() - 0.25).abs() < 1e-9, "{device:?}");
    let counted = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 80.0);
    let counted = on("NVIDIA A100-SXM4-40GB", None, &[moved, counted]);
    assert_eq!((counted.dram_peak, counted.dram), (Some(PeakSource::Counted), Some(0.8)));
    let stranger = on("some card", None, &[moved]);
    assert_eq!((stranger.dram_peak, stranger.dram), (None, None));
    // 39 million fused operations in 10 µs are 7.8 of 19.5 TFLOP/s.
    let fused = ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum", 39e6);
    let busy = on("NVIDIA A100-SXM4-40GB", None, &[fused]);
    assert!((busy.sheet_fp32.unwrap() - 0.4).abs() < 1e-9, "{busy:?}");
}

#[test]
fn times_alone_do_not_say_what_limits_a_kernel() {
    let lacks = |metrics: &[(&str, f64)]| lacks_limits(&profiled(&[("f", "[1, 1, 1]", 10, metrics)]));
    assert!(lacks(&[("gpu__time_duration.sum", 10_000.0)]));
    assert!(lacks(&[(MEMORY, f64::NAN)]), "asked for, but not available");
    assert!(!lacks(&[(MEMORY, 10.0)]));
    assert!(!lacks_limits(&TraceBuilder::new().finish()), "nothing was profiled");
}

#[test]
fn rates_follow_from_totals_and_from_both_directions() {
    let both = one(&[("dram__bytes_read.sum", 3e6), ("dram__bytes_write.sum", 1e6)]);
    assert!((both.dram_bytes_per_s.unwrap() - 4e11).abs() < 1.0, "{both:?}");
    let rates = one(&[("dram__bytes_read.sum.per_second", 3e11), ("dram__bytes_write.sum.per_second", 1e11)]);
    assert_eq!(rates.dram_bytes_per_s, Some(4e11));
    assert_eq!(one(&[("dram__bytes_read.sum", 3e6)]).dram_bytes_per_s, None, "writes are unknown");
}

#[test]
fn a_row_of_a_summary_is_as_many_launches_as_it_says() {
    let metrics =
        [("invocations", 5.0), ("gpu__time_duration.min", 1_000.0), ("gpu__time_duration.max", 4_000.0)];
    let kernel = one(&metrics);
    assert_eq!((kernel.launches, kernel.total_ms), (5, 0.01));
    assert_eq!((kernel.min_ms, kernel.max_ms, kernel.mean_ms()), (0.001, 0.004, 0.002));
    let timeless = profiled(&[
        ("f", "[1, 1, 1]", 0, &[("invocations", 3.0), (MEMORY, 80.0)]),
        ("f", "[1, 1, 1]", 0, &[("invocations", 1.0), (MEMORY, 40.0)]),
    ]);
    let kernel = CountersPartial::of(&Context::new(&timeless, "host")).finish().kernels.remove(0);
    assert!((kernel.memory.unwrap() - 0.7).abs() < 1e-9, "{kernel:?}");
}

#[test]
fn more_sectors_than_any_request_can_fill_are_waste() {
    let scattered = one(&[(LOAD_SECTORS, 3_200.0), (LOAD_REQUESTS, 100.0)]);
    assert_eq!(scattered.excess_sectors, Some(0.5), "at least: 16 of 32 may be needed");
    let contiguous = one(&[(LOAD_SECTORS, 1_600.0), (LOAD_REQUESTS, 100.0)]);
    assert_eq!(contiguous.excess_sectors, None, "may be 16 bytes a thread");
}

#[test]
fn half_in_excess_is_believed_where_little_is_asked_of_sectors() {
    let told = [(EXCESS, 40.0), ("memory_l2_theoretical_sectors_global", 100.0)];
    assert_eq!(one(&told).excess_sectors, None);
    assert_eq!(one(&[told[0], told[1], (STORE_BYTES, 4.0)]).excess_sectors, Some(0.4));
    assert_eq!(one(&[told[0], told[1], (STORE_BYTES, 16.0)]).excess_sectors, None);
}
