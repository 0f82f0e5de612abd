//! Concurrency of the bottleneck device's streams: which of them compute, and whether they ever overlap.

use stepscope_trace::{Dur, Span, Track};

use super::Device;
use super::waits::{Launched, Orders, Waits};
use crate::vocabulary::{Role, starts_graph};
use crate::window::Windows;
use crate::work::kernels::{LaunchKeys, theoretical, waves};

/// A grid that fills less than this share of the device leaves room for another one.
pub const LEAVES_ROOM: f64 = 0.5;
/// A stream with a smaller share of the kernel time is ignored.
pub const COMPUTES: f64 = 0.1;

/// One stream.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StreamUse {
    /// Its number.
    pub number: i64,
    /// The time of its kernels.
    pub kernels: Dur,
    /// The time of kernels whose grids leave room for another kernel.
    pub with_room: Dur,
}

/// Streams in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Streams {
    /// The computing streams, busiest first.
    pub computing: Vec<StreamUse>,
    /// How long at least two of them computed at the same time.
    pub overlap: Dur,
    /// The maximum gain from running them concurrently: the time that leaves room, without the longest sequence
    /// that has to run in order.
    pub winnable: Dur,
    /// What is known about waits between streams.
    pub waits: Waits,
}

pub(super) fn find(device: &Device) -> Streams {
    let windows = Windows::of(device.context);
    let mut found: Vec<(StreamUse, Vec<Span>)> = Vec::new();
    for track in device.streams() {
        let mut stream = StreamUse { number: track.number, ..StreamUse::default() };
        let mut spans = Vec::new();
        for index in kernels(device, &windows, track) {
            stream.kernels += track.dur(index);
            spans.push(track.span_of(index));
        }
        found.push((stream, spans));
    }
    let all: Dur = found.iter().map(|(stream, _)| stream.kernels).sum();
    found.retain(|(stream, _)| !stream.kernels.is_zero() && stream.kernels.fraction_of(all) >= COMPUTES);
    found.sort_by_key(|(stream, _)| (std::cmp::Reverse(stream.kernels), stream.number));
    let overlap = overlap(found.iter().flat_map(|(_, spans)| spans.iter().copied()).collect());
    let mut computing: Vec<StreamUse> = found.into_iter().map(|(stream, _)| stream).collect();
    // How grids fill the device and what waits for what only matters with more than one stream.
    if computing.len() < 2 {
        return Streams { computing, overlap, ..Streams::default() };
    }
    let with_room = with_room(device, &windows, &mut computing);
    let all: Dur = computing.iter().map(|stream| stream.with_room).sum();
    let orders = Orders::of(device);
    Streams { winnable: all - orders.shortest(with_room), waits: orders.waits, computing, overlap }
}

/// The indices of a stream's counted kernels.
fn kernels<'w, 't: 'w>(
    device: &'w Device<'_, 't>,
    windows: &'w Windows,
    track: &'t Track,
) -> impl Iterator<Item = usize> + 'w {
    let vocabulary = device.context.vocabulary();
    device.counted(windows, track).filter(|&index| vocabulary.role(track.kind_of(index)) == Role::Kernel)
}

/// Kernels of computing streams whose grids leave room for others. Kernels of a graph do not count, because the
/// order within a graph is not recorded.
fn with_room(device: &Device, windows: &Windows, computing: &mut [StreamUse]) -> Vec<Launched> {
    let (trace, launches) = (device.context.trace, device.context.launches());
    let keys = LaunchKeys::of(trace);
    let properties = trace.process(device.process).device.and_then(|id| trace.devices().get(id.index()));
    let mut found = Vec::new();
    for track in device.streams() {
        let Some(stream) = computing.iter_mut().find(|stream| stream.number == track.number) else {
            continue;
        };
        for index in kernels(device, windows, track) {
            let config = keys.read(trace.args_at(track, index));
            let filled =
                properties.and_then(|device| waves(device, &config, theoretical(device, &config)?.blocks));
            let launch = launches.of_work(track.event_id(index));
            let call =
                launch.map(|launch| trace.track(launch.call.track).kind_of(launch.call.index as usize));
            let of_graph = call.is_some_and(|call| starts_graph(trace.kind_name(call)));
            if of_graph || filled.is_none_or(|(waves, _)| waves >= LEAVES_ROOM) {
                continue;
            }
            let at = launch.map_or(track.start(index), |launch| launch.called);
            stream.with_room += track.dur(index);
            let step = device.windows.partition_point(|window| window.end <= track.start(index));
            found.push(Launched { at, step, stream: stream.number, length: track.dur(index) });
        }
    }
    found
}

/// How long at least two spans overlap.
fn overlap(spans: Vec<Span>) -> Dur {
    let mut edges: Vec<(stepscope_trace::Time, i32)> =
        spans.iter().flat_map(|span| [(span.start, 1), (span.end, -1)]).collect();
    edges.sort_unstable();
    let (mut open, mut together) = (0, Dur::ZERO);
    for pair in edges.windows(2) {
        open += pair[0].1;
        if open >= 2 {
            together += pair[1].0 - pair[0].0;
        }
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::Time;

    #[test]
    fn what_lasts_at_the_same_time_is_summed() {
        let span = |start, end| Span::new(Time::from_ps(start), Time::from_ps(end));
        assert_eq!(overlap(vec![span(0, 10), span(10, 20), span(15, 30)]), Dur::from_ps(5));
        assert_eq!(overlap(vec![span(0, 10), span(2, 4), span(3, 5)]), Dur::from_ps(3));
        assert_eq!(overlap(Vec::new()), Dur::ZERO);
    }
}
