//! Nsight Compute: reports and pages that the tests write themselves, whole and damaged.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use stepscope_read::{Bytes, Input, Opened, Progress, ReadError, open_input};
use stepscope_testkit::damage::{HUGE_VARINTS, Rng, flip_bits, overwrite, splice, truncations};
use stepscope_testkit::ncu::Report;
use stepscope_trace::{Dur, NoteKind, ProcessKind, Time, Trace, Track, TrackKind};

const OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";

fn try_read(bytes: &[u8]) -> Result<Opened, ReadError> {
    open_input(&Input::from_bytes("report", Bytes::held(bytes.to_vec())), &Progress::new())
}

fn read(bytes: &[u8]) -> Trace {
    let opened = try_read(bytes).unwrap();
    assert_eq!(opened.format.name, "ncu");
    opened.trace
}

fn kernels(trace: &Trace) -> &Track {
    trace.tracks().iter().find(|track| track.kind == TrackKind::Derived).unwrap()
}

fn number(trace: &Trace, index: usize, name: &str) -> Option<f64> {
    trace.args_at(kernels(trace), index).named(name).and_then(|value| value.as_f64())
}

fn report() -> Report {
    let mut report = Report::new();
    let attributes = [
        ("device__attribute_multiprocessor_count", 22),
        ("device__attribute_memory_clock_rate", 7_001_000),
        ("device__attribute_global_memory_bus_width", 192),
        ("device__attribute_compute_capability_major", 7),
        ("device__attribute_compute_capability_minor", 5),
    ];
    report.session(1_757_321_390, "GTX 1660 SUPER", &attributes);
    let metrics = [
        ("gpu__time_duration.sum", 4_789_792.0),
        ("launch__registers_per_thread", 51.0),
        ("launch__shared_mem_per_block_static", 1_024.0),
        ("launch__shared_mem_per_block_dynamic", 512.0),
        (OCCUPANCY, 98.75),
    ];
    report.launch("gemm(float *)", [32, 32, 1], [32, 32, 1], &metrics);
    report.launch("add", [7, 1, 1], [64, 1, 1], &[(OCCUPANCY, 12.5), ("gpu__time_duration.sum", 1_000.0)]);
    report
}

#[test]
fn a_report_gives_launches_one_after_the_other_with_all_metrics() {
    let trace = read(&report().bytes());
    let track = kernels(&trace);
    assert_eq!(trace.process(track.process).kind, ProcessKind::Other);
    assert_eq!(track.len(), 2);
    assert_eq!(trace.kind_name(track.kind_of(0)), "gemm(float *)");
    assert_eq!(trace.str(trace.kind(track.kind_of(0)).category), "ncu_kernel");
    assert_eq!((track.start(0), track.dur(0)), (Time::ZERO, Dur::from_ns(4_789_792)));
    assert_eq!(track.start(1), Time::from_ns(4_789_792));
    assert_eq!(number(&trace, 0, OCCUPANCY), Some(98.75));
    assert_eq!(number(&trace, 1, OCCUPANCY), Some(12.5), "strings of earlier blocks are still known");
    assert_eq!(number(&trace, 0, "registers per thread"), Some(51.0));
    assert_eq!(number(&trace, 0, "shared memory"), Some(1_536.0));
    assert_eq!(number(&trace, 0, "stream"), Some(7.0));
    let grid = trace.args_at(track, 1).named("grid").unwrap();
    assert_eq!(grid.as_str(), Some("[7, 1, 1]"));
    let device = &trace.devices()[0];
    assert_eq!((trace.str(device.name), device.multiprocessors), ("GTX 1660 SUPER", Some(22)));
    assert_eq!(device.compute_capability, Some((7, 5)));
    assert_eq!(device.memory_bandwidth, Some(336_048_000_000));
    assert_eq!(trace.clock().wall_ns_at_origin, Some(1_757_321_390_000_000_000));
}

const PREAMBLE: &str = "loading \"ID\" file\n==PROF== Connected to process 7\n";

#[test]
fn the_raw_page_is_read_past_program_output_with_its_units() {
    let page = format!(
        "{PREAMBLE}\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\",\"launch__registers_per_thread\",\"launch__func_cache_config\",\"dram__bytes_read.sum\"\n\
         \"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"us\",\"register/thread\",\"\",\"Mbyte\"\n\
         \"0\",\"7\",\"a.out\",\"host\",\"f(int, \"\"x\"\")\",\"1\",\"7\",\"(256, 1, 1)\",\"(1024, 5, 1)\",\"0\",\"7.5\",\"1,472.93\",\"40\",\"CachePreferNone\",\"n/a\"\n\
         ==PROF== Disconnected\n"
    );
    let trace = read(page.as_bytes());
    let track = kernels(&trace);
    assert_eq!(trace.kind_name(track.kind_of(0)), "f(int, \"x\")");
    assert_eq!(track.dur(0), Dur::from_ns(1_472_930));
    assert_eq!(number(&trace, 0, "registers per thread"), Some(40.0));
    assert_eq!(number(&trace, 0, "dram__bytes_read.sum"), None, "what is not available is not 0");
    assert_eq!(
        trace.args_at(track, 0).named("launch__func_cache_config").unwrap().as_str(),
        Some("CachePreferNone")
    );
    assert_eq!(trace.args_at(track, 0).named("grid").unwrap().as_str(), Some("[1024, 5, 1]"));
    let saved = read(page.replace("\",\"", "\";\"").as_bytes());
    assert_eq!(kernels(&saved).dur(0), Dur::from_ns(1_472_930));
}

#[test]
fn the_details_page_is_long_and_ragged() {
    let head = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\"\n";
    let row = |id: u32, section: &str, rest: &str| {
        format!(
            "\"{id}\",\"7\",\"a\",\"h\",\"f\",\"1\",\"7\",\"(8, 1, 1)\",\"(9, 1, 1)\",\"0\",\"7.5\",\"{section}\",{rest}\n"
        )
    };
    let page = [
        head.to_owned(),
        row(0, "GPU Speed Of Light Throughput", "\"Memory Throughput\",\"%\",\"33.52\",\"\""),
        row(0, "GPU Speed Of Light Throughput", "\"Duration\",\"ms\",\"4.65\",\"\""),
        row(0, "WarpStateStats", "\"\",\"\",\"\",\"CPIStall\",\"OPT\",\"Waits,\nand waits\""),
        row(0, "Memory Workload Analysis", "\"Memory Throughput\",\"Gbyte/s\",\"12.45\",\"\""),
        row(1, "Occupancy", "\"Achieved Occupancy\",\"%\",\"98.75\",\"\""),
    ];
    let trace = read(page.concat().as_bytes());
    assert_eq!(kernels(&trace).len(), 2);
    assert_eq!(kernels(&trace).dur(0), Dur::from_ns(4_650_000));
    assert_eq!(number(&trace, 0, "dram__bytes.sum.per_second"), Some(12.45e9));
    assert_eq!(
        number(&trace, 0, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        Some(33.52)
    );
    assert_eq!(number(&trace, 1, OCCUPANCY), Some(98.75));
    // What a spreadsheet saves where the comma stands before fractions.
    let trace = read(page.concat().replace("\",\"", "\";\"").replace("4.65", "4,65").as_bytes());
    assert_eq!(kernels(&trace).dur(0), Dur::from_ns(4_650_000));
    assert_eq!(number(&trace, 1, OCCUPANCY), Some(98.75));
}

#[test]
fn summaries_tell_of_all_launches_alike() {
    let csv = "==PROF== Disconnected from process 7\n\
        \"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"\n\
        \"7\",\"a\",\"h\",\"f(int)\",\"(64, 1, 1)\",\"(8, 1, 1)\",\"0\",\"8.6\",\"10\",\"S\",\"Duration\",\"us\",\"4.00\",\"8.00\",\"5.00\"\n\
        \"7\",\"a\",\"h\",\"f(int)\",\"(64, 1, 1)\",\"(8, 1, 1)\",\"0\",\"8.6\",\"10\",\"S\",\"Achieved Occupancy\",\"%\",\"40.0\",\"60.0\",\"50.0\"\n\
        \"7\",\"a\",\"h\",\"g(int)\",\"(64, 1, 1)\",\"(8, 1, 1)\",\"0\",\"8.6\",\"1\",\"S\",\"Duration\",\"us\",\"1.00\",\"1.00\",\"1.00\"\n";
    let console = "[7] a@127.0.0.1\n  Device 0, CC 8.6\n    \
        f(int) (8, 1, 1)x(64, 1, 1), Invocations 10\n      Section: S\n      \
        Metric Name             Metric Unit Minimum Maximum Average\n      \
        Duration                         us    4.00    8.00    5.00\n      \
        sm__warps_active.avg.pct_of_peak_sustained_active % 40.0 60.0 50.0\n\n    \
        g(int) (8, 1, 1)x(64, 1, 1), Invocations 1\n      Section: S\n      \
        Duration                         us    1.00    1.00    1.00\n";
    for text in [csv, console] {
        let trace = read(text.as_bytes());
        let track = kernels(&trace);
        assert_eq!((track.len(), track.dur(0)), (2, Dur::from_us(50)));
        assert_eq!(number(&trace, 0, "invocations"), Some(10.0));
        assert_eq!(number(&trace, 0, OCCUPANCY), Some(50.0));
        assert_eq!(number(&trace, 0, "gpu__time_duration.min"), Some(4_000.0));
        assert_eq!(number(&trace, 0, "gpu__time_duration.max"), Some(8_000.0));
        assert_eq!(trace.kind_name(track.kind_of(1)), "g(int)");
    }
}

#[test]
fn a_report_that_is_cut_off_keeps_the_launches_before() {
    let whole = report().bytes();
    let mut seen = [false; 3];
    for cut in truncations(&whole) {
        match try_read(cut) {
            Ok(opened) => {
                let launches = kernels(&opened.trace).len();
                seen[launches] = true;
                let damage =
                    opened.trace.notes().iter().filter(|note| note.kind == NoteKind::Damaged).count();
                assert!(launches == 1 && damage <= 1 || launches == 2, "{launches} launches, {damage} notes");
            }
            Err(ReadError::Damaged { .. } | ReadError::NotRecognised { .. } | ReadError::Empty { .. }) => {
                seen[0] = true;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(seen, [true, true, false]);
}

#[test]
fn damage_of_every_sort_gives_an_error_or_a_trace_but_never_a_panic() {
    let whole = report().bytes();
    let mut rng = Rng::new(22);
    for round in 0..3_000 {
        let damaged = match round % 3 {
            0 => flip_bits(&whole, &mut rng, 1 + round / 300),
            1 => splice(&whole, &mut rng),
            _ => overwrite(&whole, &mut rng, HUGE_VARINTS[round % HUGE_VARINTS.len()]),
        };
        if let Ok(opened) = try_read(&damaged) {
            for track in opened.trace.tracks() {
                (0..track.len()).for_each(|index| opened.trace.args_at(track, index).visit(|_, _| {}));
            }
        }
    }
}
