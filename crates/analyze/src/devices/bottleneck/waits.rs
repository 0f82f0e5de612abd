//! Waits between streams: what the recording says about them, and the shortest time that the kernels could take
//! while respecting them.
//!
//! Profilers number the kinds of waits differently, so the call decides: what was recorded for a call of
//! `cudaStreamWaitEvent` is such a wait. Kineto names the stream and the record that is waited for; Nsight
//! Systems only does if it recorded events as well; otherwise a stream counts as waiting for all.

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, ProcessKind, Time, Track, TrackKind, Value};

use super::Device;
use crate::states::launches::Correlations;
use crate::vocabulary::{Keys, is_event_record, is_stream_wait};

/// What is known about waits between streams.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Waits {
    /// Nothing: there are none, or they were not recorded.
    #[default]
    Unrecorded,
    /// The host requests such waits, but the streams were not recorded.
    CallsOnly,
    /// They were recorded, and work that must run in order does not count as a gain.
    Recorded,
}

/// A kernel as submitted to its stream.
pub(super) struct Launched {
    /// When the host submitted it.
    pub at: Time,
    /// The step in which it ran. Steps do not overlap.
    pub step: usize,
    pub stream: i64,
    /// How much of its time counts.
    pub length: Dur,
}

/// What a stream waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Source {
    /// The work on a stream when an event was recorded, by the number of the recording call.
    Record(u64),
    /// The work on a stream when the wait was requested.
    Stream(i64),
    /// The work on any stream.
    Any,
}

/// Ordering across streams, in the order of the host's calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    Record { call: u64, stream: i64 },
    Wait { stream: i64, on: Source },
}

/// All ordering across the streams of one device.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub waits: Waits,
    /// Sorted by the time of the host's call.
    all: Vec<(Time, Order)>,
}

/// Host calls by number.
#[derive(Default)]
struct Calls {
    waits: FxHashMap<u64, Time>,
    records: FxHashMap<u64, Time>,
}

impl Orders {
    pub fn of(device: &Device) -> Self {
        let keys = Correlations::of(device.context.trace);
        let calls = Calls::of(device, &keys);
        let all = marks(device, &keys, &calls);
        let waits = match (all.is_empty(), calls.waits.is_empty()) {
            (false, _) => Waits::Recorded,
            (true, false) => Waits::CallsOnly,
            (true, true) => Waits::Unrecorded,
        };
        Orders { waits, all }
    }

    /// The shortest time for `kernels` if only the order within streams and the recorded waits limit them.
    pub fn shortest(&self, mut kernels: Vec<Launched>) -> Dur {
        kernels.sort_by_key(|kernel| kernel.at);
        let mut reached: FxHashMap<i64, Dur> = FxHashMap::default();
        let mut recorded: FxHashMap<u64, Dur> = FxHashMap::default();
        let mut orders = self.all.iter().peekable();
        let (mut step, mut begun) = (0, Dur::ZERO);
        for kernel in kernels {
            if kernel.step > step {
                step = kernel.step;
                let latest = reached.values().copied().max().unwrap_or_default();
                reached.values_mut().for_each(|reached| *reached = latest);
                begun = latest;
            }
            while let Some((_, order)) = orders.next_if(|(at, _)| *at <= kernel.at) {
                order.apply(&mut reached, &mut recorded);
            }
            // A stream's very first kernel may come in a later step.
            *reached.entry(kernel.stream).or_insert(begun) += kernel.length;
        }
        reached.into_values().max().unwrap_or_default()
    }
}

impl Order {
    fn apply(self, reached: &mut FxHashMap<i64, Dur>, recorded: &mut FxHashMap<u64, Dur>) {
        match self {
            Order::Record { call, stream } => {
                recorded.insert(call, reached.get(&stream).copied().unwrap_or_default());
            }
            Order::Wait { stream, on } => {
                let until = match on {
                    Source::Record(call) => recorded.get(&call).copied(),
                    Source::Stream(other) => reached.get(&other).copied(),
                    Source::Any => reached.values().copied().max(),
                };
                let own = reached.entry(stream).or_default();
                *own = until.map_or(*own, |until| until.max(*own));
            }
        }
    }
}

impl Calls {
    fn of(device: &Device, keys: &Correlations) -> Self {
        let trace = device.context.trace;
        let sorts: Vec<(bool, bool)> = (trace.kinds().iter())
            .map(|kind| trace.str(kind.name))
            .map(|name| (is_stream_wait(name), is_event_record(name)))
            .collect();
        let mut calls = Calls::default();
        if sorts.iter().all(|sort| *sort == (false, false)) {
            return calls;
        }
        let on_host = |track: &&Track| {
            track.kind == TrackKind::Thread && trace.process(track.process).kind == ProcessKind::Host
        };
        for track in trace.tracks().iter().filter(on_host) {
            for (index, kind) in track.kinds().iter().enumerate() {
                let of_sort = match sorts.get(kind.index()) {
                    Some((true, _)) => &mut calls.waits,
                    Some((_, true)) => &mut calls.records,
                    _ => continue,
                };
                // Runtime and driver may both have the number: the outer one starts first.
                if let Some(call) = keys.read(trace.args_at(track, index)) {
                    let at = of_sort.entry(call).or_insert(track.start(index));
                    *at = track.start(index).min(*at);
                }
            }
        }
        calls
    }
}

/// What the profiler recorded beside the device's streams for calls that make one wait for another.
fn marks(device: &Device, keys: &Correlations, calls: &Calls) -> Vec<(Time, Order)> {
    let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
    let [stream_key, on_key, record_key] = ["stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id"]
        .map(|key| trace.strings().find(key));
    let own = |track: &&Track| track.process == device.process && track.kind == TrackKind::Derived;
    let mut all = Vec::new();
    for track in trace.tracks().iter().filter(own) {
        for (index, &kind) in track.kinds().iter().enumerate() {
            if !vocabulary.signatures.keys(kind).has(Keys::Correlation) {
                continue;
            }
            let args = trace.args_at(track, index);
            // Profilers write a negative number if they do not know.
            let number = |key| args.get(key?).as_ref().and_then(Value::as_i64).filter(|number| *number >= 0);
            let called = keys.read(args).and_then(|call| calls.waits.get(&call).copied());
            let on = number(on_key);
            if called.is_none() && on.is_none() {
                continue;
            }
            let stream = number(stream_key).unwrap_or(track.number);
            let record = number(record_key).and_then(|call| u64::try_from(call).ok());
            let record = record.and_then(|call| Some((call, *calls.records.get(&call)?)));
            let source = match (on, record) {
                (Some(other), Some((call, at))) => {
                    all.push((at, Order::Record { call, stream: other }));
                    Source::Record(call)
                }
                (Some(other), None) => Source::Stream(other),
                (None, _) => Source::Any,
            };
            all.push((called.unwrap_or(track.start(index)), Order::Wait { stream, on: source }));
        }
    }
    all.sort_by_key(|(at, order)| (*at, matches!(order, Order::Wait { .. })));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn shortest(orders: &[(i64, Order)], kernels: &[(i64, i64, i64)]) -> Dur {
        let all = orders.iter().map(|&(us, order)| (at(us), order)).collect();
        let kernels = kernels.iter().map(|&(us, stream, length)| Launched {
            at: at(us),
            step: us as usize / 100,
            stream,
            length: Dur::from_us(length),
        });
        Orders { waits: Waits::Recorded, all }.shortest(kernels.collect())
    }

    #[test]
    fn only_what_an_event_covers_comes_first() {
        let kernels = [(1, 7, 100), (3, 7, 40), (5, 20, 60)];
        let record = (2, Order::Record { call: 9, stream: 7 });
        let wait = |on| (4, Order::Wait { stream: 20, on });
        assert_eq!(shortest(&[], &kernels), Dur::from_us(140), "side by side");
        assert_eq!(
            shortest(&[record, wait(Source::Record(9))], &kernels),
            Dur::from_us(160),
            "after the first"
        );
        assert_eq!(shortest(&[wait(Source::Stream(7))], &kernels), Dur::from_us(200), "after both");
        assert_eq!(shortest(&[wait(Source::Any)], &kernels), Dur::from_us(200), "after all");
        assert_eq!(shortest(&[wait(Source::Stream(8))], &kernels), Dur::from_us(140), "after nothing");
    }

    #[test]
    fn waits_reach_through_streams_without_kernels() {
        let wait = |us, stream, other| (us, Order::Wait { stream, on: Source::Stream(other) });
        let kernels = [(1, 7, 100), (4, 20, 60)];
        assert_eq!(shortest(&[wait(2, 13, 7), wait(3, 20, 13)], &kernels), Dur::from_us(160));
    }

    #[test]
    fn steps_follow_one_another() {
        let turns = [(1, 7, 60), (2, 20, 40), (101, 20, 60), (102, 7, 40), (201, 13, 60)];
        assert_eq!(shortest(&[], &turns), Dur::from_us(180));
    }
}
