//! What the packets of one writer share: names by number, defaults, and the thread that it is.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_trace::{StrId, TraceBuilder};
use stepscope_wire::{Payload, walk};

use super::packet::Packet;

/// Tables of interned texts that are read, by their field in the file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Table {
    Categories = 1,
    Names = 2,
    Keys = 3,
    Texts = 29,
    Stages = 24,
    Kernels = 1000,
    LaunchKeys = 1001,
}

/// A writer.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    valid: bool,
    texts: FxHashMap<(Table, u64), StrId>,
    /// Processes of the contexts of graphics libraries.
    pub(super) contexts: FxHashMap<u64, i64>,
    pub(super) track: Option<u64>,
    pub(super) clock: Option<u32>,
    pub(super) counters: Vec<u64>,
    pub(super) float_counters: Vec<u64>,
    /// The thread that writes it, in files of older versions.
    pub(super) thread: Option<(i64, i64)>,
    /// Times of those files count from here, in µs.
    pub(super) reference_us: i64,
    /// The last value of each counter that records differences.
    pub(super) sums: FxHashMap<u64, f64>,
}

impl Sequence {
    /// Takes over what a packet says about the writer. Returns whether its content can be read.
    pub(super) fn take(&mut self, builder: &mut TraceBuilder, file: &[u8], packet: &Packet) -> bool {
        if packet.clears_state() {
            self.texts.clear();
            self.contexts.clear();
            self.forget_defaults();
            self.valid = true;
        } else if packet.lost {
            self.valid = false;
        }
        if let Some(range) = &packet.defaults {
            self.forget_defaults();
            self.take_defaults(file, range.clone());
        }
        if let Some(range) = &packet.interned {
            self.take_interned(builder, file, range.clone());
        }
        self.valid || !packet.needs_state()
    }

    pub(super) fn text(&self, table: Table, number: u64) -> Option<StrId> {
        self.texts.get(&(table, number)).copied()
    }

    fn forget_defaults(&mut self) {
        self.track = None;
        self.clock = None;
        self.counters.clear();
        self.float_counters.clear();
    }

    fn take_defaults(&mut self, file: &[u8], range: Range<usize>) {
        walk(file, range, |field| match (field.number, field.value) {
            (58, Payload::Varint(clock)) => self.clock = Some(clock as u32),
            (11, Payload::Len(events)) => {
                walk(file, events, |field| match (field.number, field.value) {
                    (11, Payload::Varint(uuid)) => self.track = Some(uuid),
                    (31, value) => numbers(file, value, |uuid| self.counters.push(uuid)),
                    (45, value) => numbers(file, value, |uuid| self.float_counters.push(uuid)),
                    _ => {}
                });
            }
            _ => {}
        });
    }

    fn take_interned(&mut self, builder: &mut TraceBuilder, file: &[u8], range: Range<usize>) {
        walk(file, range, |field| {
            let Payload::Len(entry) = field.value else { return };
            let table = match field.number {
                1 => Table::Categories,
                2 => Table::Names,
                3 => Table::Keys,
                29 => Table::Texts,
                24 => Table::Stages,
                1000 => Table::Kernels,
                1001 => Table::LaunchKeys,
                23 => {
                    let (mut number, mut pid) = (0, 0);
                    walk(file, entry, |field| match (field.number, field.value) {
                        (1, Payload::Varint(value)) => number = value,
                        (2, Payload::Varint(value)) => pid = value as i64,
                        _ => {}
                    });
                    self.contexts.insert(number, pid);
                    return;
                }
                _ => return,
            };
            let (mut number, mut text, mut better) = (0, None, None);
            walk(file, entry, |field| match (field.number, field.value) {
                (1, Payload::Varint(value)) => number = value,
                (2, Payload::Len(range)) => text = Some(range),
                (3, Payload::Len(range)) if table == Table::Kernels => better = Some(range),
                _ => {}
            });
            if let Some(range) = better.or(text) {
                let text = builder.strings.intern_bytes(file.get(range).unwrap_or_default());
                self.texts.insert((table, number), text);
            }
        });
    }
}

/// Repeated numbers, packed or not.
pub(super) fn numbers(file: &[u8], value: Payload, mut add: impl FnMut(u64)) {
    match value {
        Payload::Varint(number) | Payload::Fixed64(number) => add(number),
        Payload::Len(range) | Payload::Cut(range) => {
            let mut cursor = stepscope_wire::Cursor::new(file, range);
            while !cursor.is_done() {
                let Ok(number) = cursor.varint() else { break };
                add(number);
            }
        }
        Payload::Fixed32(_) => {}
    }
}

/// Repeated numbers of eight bytes, packed or not.
pub(super) fn fixed_numbers(file: &[u8], value: Payload, mut add: impl FnMut(u64)) {
    match value {
        Payload::Fixed64(number) | Payload::Varint(number) => add(number),
        Payload::Len(range) | Payload::Cut(range) => {
            let bytes = file.get(range).unwrap_or_default();
            bytes.as_chunks::<8>().0.iter().for_each(|chunk| add(u64::from_le_bytes(*chunk)));
        }
        Payload::Fixed32(_) => {}
    }
}
