//! Streams of the bounding device side by side: which compute, and whether they ever do so at the same time.

use stepscope_trace::{Dur, Span};

use super::Device;
use crate::kernels::{LaunchKeys, theoretical, waves};
use crate::vocabulary::Role;
use crate::window::Windows;

/// A grid that fills the device less than this often leaves room for another one beside it.
const LEAVES_ROOM: f64 = 0.5;
/// A stream with a smaller share of the kernels' time than this does not count.
const COMPUTES: f64 = 0.1;

/// One stream.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamUse {
    /// Its number.
    pub number: i64,
    /// The time of its kernels.
    pub kernels: Dur,
    /// The time of those whose grids leave room for another kernel.
    pub with_room: Dur,
}

/// Streams in the steps that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Streams {
    /// Those that compute, the busiest first.
    pub computing: Vec<StreamUse>,
    /// How long two of them or more computed at the same time.
    pub overlap: Dur,
}

impl Streams {
    /// The most that running them side by side could win: what leaves room on all streams but the one with most of it.
    pub fn winnable(&self) -> Dur {
        let all: Dur = self.computing.iter().map(|stream| stream.with_room).sum();
        let most = self.computing.iter().map(|stream| stream.with_room).max().unwrap_or_default();
        all - most
    }
}

pub(super) fn find(device: &Device) -> Streams {
    let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
    let windows = Windows::of(device.context);
    let keys = LaunchKeys::of(trace);
    let properties = trace.process(device.process).device.and_then(|id| trace.devices().get(id.index()));
    let mut found: Vec<(StreamUse, Vec<Span>)> = Vec::new();
    for track in device.streams() {
        let mut stream = StreamUse { number: track.number, ..StreamUse::default() };
        let mut spans = Vec::new();
        for index in device.counted(&windows, track) {
            if vocabulary.role(track.kind_of(index)) != Role::Kernel {
                continue;
            }
            stream.kernels += track.dur(index);
            spans.push(track.span_of(index));
        }
        found.push((stream, spans));
    }
    let all: Dur = found.iter().map(|(stream, _)| stream.kernels).sum();
    found.retain(|(stream, _)| !stream.kernels.is_zero() && stream.kernels.fraction_of(all) >= COMPUTES);
    found.sort_by_key(|(stream, _)| (std::cmp::Reverse(stream.kernels), stream.number));
    // How grids fill the device matters only where there is more than one stream.
    if found.len() >= 2 {
        for track in device.streams() {
            let Some((stream, _)) = found.iter_mut().find(|(stream, _)| stream.number == track.number) else {
                continue;
            };
            for index in device.counted(&windows, track) {
                if vocabulary.role(track.kind_of(index)) != Role::Kernel {
                    continue;
                }
                let config = keys.read(trace.args_at(track, index));
                let filled = properties
                    .and_then(|device| waves(device, &config, theoretical(device, &config)?.blocks));
                if filled.is_some_and(|(waves, _)| waves < LEAVES_ROOM) {
                    stream.with_room += track.dur(index);
                }
            }
        }
    }
    let overlap = overlap(found.iter().flat_map(|(_, spans)| spans.iter().copied()).collect());
    Streams { computing: found.into_iter().map(|(stream, _)| stream).collect(), overlap }
}

/// How long two spans or more last at the same time.
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

    #[test]
    fn the_stream_with_most_room_is_not_won() {
        let stream = |number, with_room| StreamUse {
            number,
            kernels: Dur::from_us(100),
            with_room: Dur::from_us(with_room),
        };
        let streams = Streams { computing: vec![stream(1, 90), stream(2, 40)], overlap: Dur::ZERO };
        assert_eq!(streams.winnable(), Dur::from_us(40));
    }
}
