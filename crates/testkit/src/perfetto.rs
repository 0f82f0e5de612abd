//! Perfetto traces, packet by packet.

use crate::xspace::Message;

/// A trace under construction.
#[derive(Clone, Debug, Default)]
pub struct PerfettoFile(pub Message);

/// A packet under construction.
#[derive(Clone, Debug, Default)]
pub struct Packet(pub Message);

/// What a track event is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EventType {
    /// A slice starts.
    Begin = 1,
    /// The last slice of the track ends.
    End = 2,
    /// One moment.
    Instant = 3,
    /// A counter's value.
    Counter = 4,
}

/// A packet of a sequence at a time, in nanoseconds.
pub fn packet(sequence: u64, ns: Option<u64>) -> Packet {
    let mut packet = Packet::default();
    packet.0.varint(10, sequence);
    if let Some(ns) = ns {
        packet.0.varint(8, ns);
    }
    packet
}

impl Packet {
    /// The same with bits of `sequence_flags`.
    pub fn flags(mut self, flags: u64) -> Self {
        self.0.varint(13, flags);
        self
    }

    /// The same with the number of its clock.
    pub fn clock(mut self, clock: u64) -> Self {
        self.0.varint(58, clock);
        self
    }

    /// The same with a message in a field.
    pub fn with(mut self, field: u32, message: &Message) -> Self {
        self.0.bytes(field, &message.0);
        self
    }

    /// The same with names by number.
    pub fn names(self, names: &[(u64, &str)]) -> Self {
        let mut interned = Message::default();
        for (number, name) in names {
            let mut entry = Message::default();
            entry.varint(1, *number);
            entry.bytes(2, name.as_bytes());
            interned.bytes(2, &entry.0);
        }
        self.with(12, &interned)
    }

    /// The same with an event of a track; `name` is a number of [`Packet::names`].
    pub fn event(self, kind: EventType, track: u64, name: Option<u64>) -> Self {
        let mut event = Message::default();
        event.varint(9, kind as u64);
        event.varint(11, track);
        if let Some(name) = name {
            event.varint(10, name);
        }
        self.with(11, &event)
    }

    /// The same with a slice's start that has its name and one argument written out.
    pub fn begin(self, track: u64, name: &str, argument: (&str, &str)) -> Self {
        let (mut event, mut annotation) = (Message::default(), Message::default());
        annotation.bytes(10, argument.0.as_bytes());
        annotation.bytes(6, argument.1.as_bytes());
        event.varint(9, EventType::Begin as u64);
        event.varint(11, track);
        event.bytes(23, name.as_bytes());
        event.bytes(4, &annotation.0);
        self.with(11, &event)
    }

    /// The same with a counter's value.
    pub fn value(self, track: u64, value: i64) -> Self {
        let mut event = Message::default();
        event.varint(9, EventType::Counter as u64);
        event.varint(11, track);
        event.varint(30, value as u64);
        self.with(11, &event)
    }

    /// The same with a thread's description.
    pub fn thread(self, uuid: u64, pid: u64, tid: u64, name: &str) -> Self {
        let (mut track, mut thread) = (Message::default(), Message::default());
        thread.varint(1, pid);
        thread.varint(2, tid);
        thread.bytes(5, name.as_bytes());
        track.varint(1, uuid);
        track.bytes(4, &thread.0);
        self.with(60, &track)
    }

    /// The same with the description of a named track.
    pub fn track(self, uuid: u64, parent: u64, name: &str) -> Self {
        let mut track = Message::default();
        track.varint(1, uuid);
        track.varint(5, parent);
        track.bytes(2, name.as_bytes());
        self.with(60, &track)
    }

    /// The same with clocks at one moment.
    pub fn clocks(self, readings: &[(u64, u64)]) -> Self {
        let mut snapshot = Message::default();
        for (clock, ns) in readings {
            let mut reading = Message::default();
            reading.varint(1, *clock);
            reading.varint(2, *ns);
            snapshot.bytes(1, &reading.0);
        }
        self.with(6, &snapshot)
    }

    /// The same with a GPU's work on a queue, with its name, grid and block.
    pub fn gpu_work(self, gpu: u64, ns: u64, name: &str) -> Self {
        let (mut work, mut launch, mut sides) = (Message::default(), Message::default(), Message::default());
        (1..=3).for_each(|side| sides.varint(side, 64));
        launch.bytes(1, &sides.0);
        launch.bytes(2, &sides.0);
        work.varint(2, ns);
        work.varint(3, 7);
        work.varint(11, gpu);
        work.bytes(17, name.as_bytes());
        work.bytes(21, &launch.0);
        self.with(53, &work)
    }
}

impl PerfettoFile {
    /// The same with another packet.
    pub fn with(mut self, packet: &Packet) -> Self {
        self.0.bytes(1, &packet.0.0);
        self
    }

    /// The file.
    pub fn bytes(self) -> Vec<u8> {
        self.0.0
    }
}

/// A loop of steps on one thread, with a counter, a GPU's kernels on another clock, and threads on a processor.
pub fn training(steps: u64) -> Vec<u8> {
    let mut file = PerfettoFile::default()
        .with(&packet(1, None).clocks(&[(6, 1_000), (1, 1_700_000_000_000_000_000), (3, 500)]))
        .with(&packet(1, None).flags(1).thread(2, 77, 77, "main"))
        .with(&packet(1, None).names(&[(1, "train_step"), (2, "forward")]))
        .with(&packet(1, None).track(3, 2, "loss"));
    for step in 0..steps {
        let at = |us: u64| Some(2_000 + step * 10_000_000 + us * 1_000);
        file = file
            .with(&packet(1, at(0)).flags(2).event(EventType::Begin, 2, Some(1)))
            .with(&packet(1, at(100)).flags(2).event(EventType::Begin, 2, Some(2)))
            .with(&packet(2, at(150)).clock(3).gpu_work(0, 4_000_000, "gemm"))
            .with(&packet(1, at(5_000)).event(EventType::End, 2, None))
            .with(&packet(1, at(6_000)).value(3, step as i64))
            .with(&packet(1, at(9_000)).event(EventType::End, 2, None));
    }
    file.with(&switches(steps)).bytes()
}

/// Two threads that take turns on a processor.
fn switches(turns: u64) -> Packet {
    let mut bundle = Message::default();
    bundle.varint(1, 0);
    for turn in 0..turns {
        let (mut event, mut switch) = (Message::default(), Message::default());
        switch.varint(2, 77 + turn % 2);
        switch.varint(4, 1);
        switch.bytes(5, b"python");
        switch.varint(6, 78 - turn % 2);
        event.varint(1, 2_000 + turn * 1_000_000);
        event.bytes(4, &switch.0);
        bundle.bytes(2, &event.0);
    }
    packet(1, None).with(1, &bundle)
}
