//! Ranks with planted waiting and planted clocks.

use super::clock::Unaligned;
use super::*;
use crate::sketch::Sketch;
use stepscope_trace::Trace;

/// Steps of 1,000 µs with one all-reduce that ends at 900 and begins at `start`, on a clock `late` µs behind.
fn rank(start: i64, late: i64) -> Trace {
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    sketch.steps_from(thread, 5, 1_000, late);
    for step in 0..5 {
        let at = step * 1_000 + late;
        sketch.event_of(stream, "kernel", "gemm", at, start - 10, &[]);
        sketch.event_of(
            stream,
            "kernel",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
            at + start,
            900 - start,
            &[],
        );
    }
    sketch.finish()
}

fn waiting(traces: &[Trace]) -> Option<Waiting> {
    let partial = |(number, trace): (usize, &Trace)| {
        CollectivesPartial::of(&Context::new(trace, format!("host{number}")))
    };
    let all = traces.iter().enumerate().map(partial).reduce(|mut all, next| {
        all.merge(next);
        all
    });
    all?.align().waiting()
}

#[test]
fn waiting_and_transfer_are_told_apart_whatever_the_clocks_say() {
    for late in [0, 7_777] {
        let found = waiting(&[rank(300, 0), rank(700, late)]);
        let found = found.unwrap_or_default();
        let figures: Vec<(f64, f64, f64)> =
            found.ranks.iter().map(|rank| (rank.waiting_ms, rank.transfer_ms, rank.last)).collect();
        assert_eq!(figures, [(0.4, 0.2, 0.0), (0.0, 0.2, 1.0)], "{late}");
        assert_eq!(found.latest().map(|rank| rank.name.as_str()), Some("host1 /device:GPU:0"));
        assert!((found.collectives_per_step - 1.0).abs() < 1e-9);
    }
}

#[test]
fn each_collective_of_each_rank_has_its_waiting() {
    let traces = [rank(300, 0), rank(700, 7_777)];
    let partial =
        |number: usize| CollectivesPartial::of(&Context::new(&traces[number], format!("host{number}")));
    let mut all = partial(0);
    all.merge(partial(1));
    let runs = all.align().runs();
    let found = |host: &str| {
        let own = runs.iter().filter(|run| run.host == host);
        own.map(|run| (run.waited.ms(), run.last)).collect::<Vec<_>>()
    };
    assert_eq!(found("host0"), [(0.4, false); 5]);
    assert_eq!(found("host1"), [(0.0, true); 5]);
    assert_eq!(partial(0).align().runs(), []);
}

#[test]
fn one_rank_alone_or_ranks_without_anything_in_common_say_nothing() {
    assert_eq!(waiting(&[rank(300, 0)]), None);
    let mut other = Sketch::new();
    let (thread, stream) = (other.thread("python"), other.stream());
    other.steps(thread, 5, 1_000);
    other.event_of(stream, "kernel", "ncclDevKernel_SendRecv(x)", 10, 100, &[]);
    assert_eq!(waiting(&[rank(300, 0), other.finish()]), None);
}

/// Steps of 1,000 µs with exchanges of one name from and until these times.
fn exchanging(spans: &[(i64, i64)]) -> Trace {
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    sketch.steps(thread, 5, 1_000);
    for step in 0..5 {
        for (start, end) in spans {
            let at = step * 1_000 + start;
            sketch.event_of(stream, "kernel", "ncclDevKernel_SendRecv(x)", at, end - start, &[]);
        }
    }
    sketch.finish()
}

#[test]
fn ranks_that_are_not_at_work_at_once_did_not_meet() {
    let found = waiting(&[
        exchanging(&[(100, 200), (300, 400), (600, 700)]),
        exchanging(&[(150, 200), (350, 400), (800, 950)]),
    ]);
    let figures: Vec<(f64, f64)> =
        found.iter().flat_map(|found| &found.ranks).map(|rank| (rank.waiting_ms, rank.transfer_ms)).collect();
    assert_eq!(figures, [(0.1, 0.1), (0.0, 0.1)], "the third is not the same one");
    // Most of them do not fit: the order says nothing.
    let other = exchanging(&[(100, 200), (400, 500), (700, 750)]);
    assert_eq!(waiting(&[exchanging(&[(100, 200), (300, 350), (800, 900)]), other]), None);
}

fn aligned(traces: &[Trace]) -> Aligned {
    let mut all = CollectivesPartial::default();
    for (number, trace) in traces.iter().enumerate() {
        all.merge(CollectivesPartial::of(&Context::new(trace, format!("host{number}"))));
    }
    all.align()
}

/// Steps of 1,000 µs with an all-reduce of 300 µs each, that ends at 900 plus its own delay.
fn jittery(delays: &[i64], late: i64) -> Trace {
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    sketch.steps_from(thread, delays.len() as i64, 1_000, late);
    for (step, delay) in (0..).zip(delays) {
        let at = step * 1_000 + late;
        sketch.event_of(stream, "kernel", "ncclDevKernel_AllReduce(x)", at + 600 + delay, 300, &[]);
    }
    sketch.finish()
}

#[test]
fn a_planted_shift_comes_out_within_its_uncertainty() {
    let still = jittery(&[0; 9], 0);
    let moved = jittery(&[3, -4, 0, 6, -5, 2, 90, -1, 4], 7_777);
    let clocks = aligned(&[still, moved]).clocks.unwrap();
    assert_eq!(clocks.reference, "host0");
    assert_eq!(clocks.of("host0").map(|offset| (offset.late, offset.spread)), Some((Dur::ZERO, Dur::ZERO)));
    let found = clocks.of("host1").unwrap();
    let error = (found.late - Dur::from_us(7_777)).ps().abs();
    assert!(error <= found.spread.ps() && found.spread < Dur::from_us(6), "{found:?}");
    assert_eq!((found.matched, found.shift), (9, None), "these traces have no wall clock");
    let precision = clocks.precision().unwrap();
    assert_eq!((precision.matched, precision.apart_ms), (9, None));
}

#[test]
fn a_shift_that_nobody_can_know_is_not_zero() {
    let unknown = |traces: &[Trace]| aligned(traces).clocks.unwrap().hosts[1].offset;
    assert_eq!(unknown(&[jittery(&[0; 2], 0), jittery(&[0; 2], 50)]), Err(Unaligned::Few(2)));
    let scattered = jittery(&[300, -250, 280, -290, 0, 260], 50);
    assert!(matches!(unknown(&[jittery(&[0; 6], 0), scattered]), Err(Unaligned::Loose(_))));
    assert_eq!(unknown(&[jittery(&[0; 6], 0), exchanging(&[(100, 200)])]), Err(Unaligned::Apart));
    assert_eq!(aligned(&[jittery(&[0; 6], 0)]).clocks, None, "there is one clock");
}

#[test]
fn devices_of_one_host_share_its_clock() {
    // The second device ends each collective 40 µs later, and that is no clock.
    let mut sketch = Sketch::new();
    let (thread, one, two) = (sketch.thread("python"), sketch.stream(), sketch.stream_of(1));
    sketch.steps(thread, 5, 1_000);
    for step in 0..5 {
        for (stream, late) in [(one, 0), (two, 40)] {
            let at = step * 1_000 + 300 + late;
            sketch.event_of(stream, "kernel", "ncclDevKernel_AllReduce(x)", at, 400, &[]);
        }
    }
    let found = aligned(&[sketch.finish()]);
    assert_eq!(found.clocks, None);
    let waiting: Vec<f64> = found.waiting().unwrap().ranks.iter().map(|rank| rank.waiting_ms).collect();
    assert_eq!(waiting, [0.04, 0.0]);
}
