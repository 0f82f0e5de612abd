//! Small hand-made traces for the tests of analyses.

use stepscope_trace::{
    Datum, Device, DeviceKind, Dur, Kind, ProcessId, ProcessKind, Time, Trace, TraceBuilder, TrackId,
    TrackKind,
};

/// A trace under construction. Times are in microseconds.
pub(crate) struct Sketch {
    builder: TraceBuilder,
    host: ProcessId,
}

/// An argument's value.
pub(crate) enum Arg {
    Int(i64),
    Text(&'static str),
}

impl Sketch {
    pub(crate) fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("/host:CPU");
        let host = builder.process(name, ProcessKind::Host, 0);
        Sketch { builder, host }
    }

    /// A host thread.
    pub(crate) fn thread(&mut self, name: &str) -> TrackId {
        let name = self.builder.strings.intern(name);
        self.builder.track(self.host, name, TrackKind::Thread, 1, TraceBuilder::ARENA)
    }

    /// A device with compute capability 8.0 and one stream.
    pub(crate) fn stream(&mut self) -> TrackId {
        self.stream_of(0)
    }

    /// The same, by the device's number.
    pub(crate) fn stream_of(&mut self, number: i64) -> TrackId {
        let name = self.builder.strings.intern(&format!("/device:GPU:{number}"));
        let process = self.builder.process(name, ProcessKind::Device, number + 1);
        let device = Device {
            process: Some(process),
            compute_capability: Some((8, 0)),
            multiprocessors: Some(108),
            ..Device::new(DeviceKind::Gpu, number)
        };
        self.builder.device(device);
        let stream = self.builder.strings.intern("Stream #7(Compute)");
        self.builder.track(process, stream, TrackKind::Stream, 7, TraceBuilder::ARENA)
    }

    /// Another stream of the first device; the first one must be there.
    pub(crate) fn second_stream(&mut self, _first: TrackId) -> TrackId {
        let name = self.builder.strings.intern("Stream #20(NCCL)");
        let process = ProcessId::from_index(1);
        self.builder.track(process, name, TrackKind::Stream, 20, TraceBuilder::ARENA)
    }

    /// A line that a profiler derived for the first device, which must be there.
    pub(crate) fn derived(&mut self, name: &str) -> TrackId {
        let name = self.builder.strings.intern(name);
        self.builder.track(ProcessId::from_index(1), name, TrackKind::Derived, 90, TraceBuilder::ARENA)
    }

    /// The line with samples of the host's threads.
    pub(crate) fn samples(&mut self) -> TrackId {
        let name = self.builder.strings.intern("CPU samples");
        self.builder.track(self.host, name, TrackKind::Derived, 1, TraceBuilder::ARENA)
    }

    /// An event without a category.
    pub(crate) fn event(&mut self, track: TrackId, name: &str, start: i64, dur: i64, args: &[(&str, Arg)]) {
        self.event_of(track, "", name, start, dur, args);
    }

    /// An event with one of Kineto's categories.
    pub(crate) fn event_of(
        &mut self,
        track: TrackId,
        category: &str,
        name: &str,
        start: i64,
        dur: i64,
        args: &[(&str, Arg)],
    ) {
        let strings = &mut self.builder.strings;
        let (name, category) = (strings.intern(name), strings.intern(category));
        let own: Vec<_> = args
            .iter()
            .map(|(key, value)| {
                let value = match value {
                    Arg::Int(value) => Datum::Int(*value),
                    Arg::Text(text) => Datum::Str(strings.intern(text)),
                };
                (strings.intern(key), value)
            })
            .collect();
        let at = self.builder.arena.push(&own, &[]);
        let kind = self.builder.kind(Kind { category, ..Kind::slice(name) });
        self.builder.event(track, Time::from_ns(start * 1_000), Dur::from_us(dur), kind, at);
    }

    /// Steps of equal length, marked on `track`.
    pub(crate) fn steps(&mut self, track: TrackId, count: i64, length: i64) {
        self.steps_from(track, count, length, 0);
    }

    /// The same, the first of them at `start`.
    pub(crate) fn steps_from(&mut self, track: TrackId, count: i64, length: i64, start: i64) {
        for step in 0..count {
            let args = [("step_num", Arg::Int(step)), ("_r", Arg::Int(1))];
            self.event(track, "train", start + step * length, length, &args);
        }
    }

    pub(crate) fn finish(self) -> Trace {
        self.builder.finish()
    }
}
