//! One packet: where its parts are. The sequence that it belongs to stands behind them, so nothing is decoded here.

use std::ops::Range;

use stepscope_wire::{Broken, Payload, walk};

pub(super) const TIMESTAMP: u32 = 8;
pub(super) const SEQUENCE: u32 = 10;
pub(super) const COMPRESSED: u32 = 50;
pub(super) const ZSTD_COMPRESSED: u32 = 133;

/// Interned data and defaults of the sequence are valid from here on.
const STATE_CLEARED: u64 = 1;
/// The packet cannot be read without them.
const NEEDS_STATE: u64 = 2;

/// What a packet is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    TrackEvent(Range<usize>),
    TrackDescriptor(Range<usize>),
    ThreadDescriptor(Range<usize>),
    ProcessDescriptor(Range<usize>),
    ClockSnapshot(Range<usize>),
    ProcessTree(Range<usize>),
    Ftrace(Range<usize>),
    GpuWork(Range<usize>),
    GpuCounters(Range<usize>),
    Deflated(Range<usize>),
    Zstd(Range<usize>),
}

/// One packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    pub(super) timestamp: Option<u64>,
    pub(super) clock: Option<u32>,
    pub(super) sequence: u32,
    pub(super) flags: u64,
    pub(super) cleared: bool,
    /// Packets of the sequence before this one were lost.
    pub(super) lost: bool,
    pub(super) interned: Option<Range<usize>>,
    pub(super) defaults: Option<Range<usize>>,
    pub(super) content: Option<Content>,
}

impl Packet {
    pub(super) fn clears_state(&self) -> bool {
        self.cleared || self.flags & STATE_CLEARED != 0
    }

    pub(super) fn needs_state(&self) -> bool {
        self.flags & NEEDS_STATE != 0
    }
}

/// The parts of a packet, and what ended it early.
pub(super) fn read(file: &[u8], range: Range<usize>) -> (Packet, Option<Broken>) {
    let mut packet = Packet::default();
    let broken = walk(file, range, |field| match field.value {
        Payload::Varint(value) => match field.number {
            TIMESTAMP => packet.timestamp = Some(value),
            58 => packet.clock = Some(value as u32),
            SEQUENCE => packet.sequence = value as u32,
            13 => packet.flags = value,
            41 => packet.cleared = value != 0,
            42 => packet.lost = value != 0,
            _ => {}
        },
        Payload::Len(range) | Payload::Cut(range) => {
            let content = match field.number {
                11 => Content::TrackEvent(range),
                60 => Content::TrackDescriptor(range),
                44 => Content::ThreadDescriptor(range),
                43 => Content::ProcessDescriptor(range),
                6 => Content::ClockSnapshot(range),
                2 => Content::ProcessTree(range),
                1 => Content::Ftrace(range),
                53 => Content::GpuWork(range),
                52 => Content::GpuCounters(range),
                COMPRESSED => Content::Deflated(range),
                ZSTD_COMPRESSED => Content::Zstd(range),
                12 => return packet.interned = Some(range),
                59 => return packet.defaults = Some(range),
                _ => return,
            };
            packet.content = Some(content);
        }
        Payload::Fixed64(_) | Payload::Fixed32(_) => {}
    });
    (packet, broken)
}
