//! Tracks as the file describes them: a tree of processes, threads, counters and named tracks, by number.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_trace::{StrId, TraceBuilder};
use stepscope_wire::{Payload, walk};

/// Levels of the tree that are climbed; a damaged file may have a loop.
const DEPTH: usize = 32;

/// A counter's unit.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Counter {
    pub(super) factor: f64,
    /// Each value is the difference to the one before.
    pub(super) incremental: bool,
}

/// A track of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) parent: Option<u64>,
    pub(super) name: StrId,
    pub(super) process: Option<i64>,
    pub(super) thread: Option<(i64, i64)>,
    pub(super) counter: Option<Counter>,
}

/// Where the events of a track belong.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Thread(i64, i64),
    /// A track of a process, or of nothing, by its name.
    Named(Option<i64>, StrId),
    /// A track without a name, by its place.
    Unnamed(Option<i64>, u32),
}

/// All tracks.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    numbers: FxHashMap<u64, u32>,
    pub(super) all: Vec<Node>,
    pub(super) process_names: FxHashMap<i64, StrId>,
    pub(super) thread_names: FxHashMap<(i64, i64), StrId>,
    /// Processes of threads, for events that only name the thread.
    pub(super) process_of_thread: FxHashMap<i64, i64>,
}

impl Nodes {
    /// The place of a track, which may be described later.
    pub(super) fn number(&mut self, uuid: u64) -> u32 {
        *self.numbers.entry(uuid).or_insert_with(|| {
            self.all.push(Node::default());
            (self.all.len() - 1) as u32
        })
    }

    pub(super) fn get(&self, number: u32) -> Option<&Node> {
        self.all.get(number as usize)
    }

    /// Takes over a description.
    pub(super) fn describe(&mut self, builder: &mut TraceBuilder, file: &[u8], range: Range<usize>) {
        let mut node = Node::default();
        let mut uuid = 0;
        let text = |builder: &mut TraceBuilder, range: Range<usize>| {
            builder.strings.intern_bytes(file.get(range).unwrap_or_default())
        };
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(value)) => uuid = value,
            (5, Payload::Varint(value)) => node.parent = Some(value),
            (2 | 10 | 13, Payload::Len(range)) => node.name = text(builder, range),
            (3, Payload::Len(range)) => node.process = self.process(builder, file, range),
            (4, Payload::Len(range)) => node.thread = self.thread(builder, file, range).map(|(id, _)| id),
            (8, Payload::Len(range)) => node.counter = Some(counter(file, range)),
            _ => {}
        });
        if node.name == StrId::default()
            && let Some(id) = node.thread
        {
            node.name = self.thread_names.get(&id).copied().unwrap_or_default();
        }
        if let (Some(pid), false) = (node.process, node.name == StrId::default()) {
            // Kineto puts the number of the device behind the name: `python [GPU 0]`.
            let known = self.process_names.get(&pid).map(|&name| builder.strings.get(name).to_owned());
            if known.is_none_or(|known| builder.strings.get(node.name).starts_with(&known)) {
                self.process_names.insert(pid, node.name);
            }
        }
        let number = self.number(uuid) as usize;
        if let Some(known) = self.all.get_mut(number) {
            *known = Node {
                parent: node.parent.or(known.parent),
                name: if node.name == StrId::default() { known.name } else { node.name },
                process: node.process.or(known.process),
                thread: node.thread.or(known.thread),
                counter: node.counter.or(known.counter),
            };
        }
    }

    /// A process' number, and its name if there is one.
    pub(super) fn process(
        &mut self,
        builder: &mut TraceBuilder,
        file: &[u8],
        range: Range<usize>,
    ) -> Option<i64> {
        let (mut pid, mut name, mut command) = (None, None, None);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(value)) => pid = Some(value as i64),
            (6, Payload::Len(range)) => name = Some(range),
            (2, Payload::Len(range)) if command.is_none() => command = Some(range),
            _ => {}
        });
        // A process without a number is one of its own, as in files of devices.
        let pid = pid.unwrap_or(0);
        if let Some(range) = name.or(command) {
            let name = builder.strings.intern_bytes(file.get(range).unwrap_or_default());
            self.process_names.insert(pid, name);
        }
        Some(pid)
    }

    /// A thread's process and number, and the reference of its times in µs.
    pub(super) fn thread(
        &mut self,
        builder: &mut TraceBuilder,
        file: &[u8],
        range: Range<usize>,
    ) -> Option<((i64, i64), i64)> {
        let (mut pid, mut tid, mut name, mut reference) = (0, None, None, 0);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(value)) => pid = i64::from(value as i32),
            (2, Payload::Varint(value)) => tid = Some(value as i64),
            (5, Payload::Len(range)) => name = Some(range),
            (6, Payload::Varint(value)) => reference = value as i64,
            _ => {}
        });
        let id = (pid, tid?);
        self.process_of_thread.insert(id.1, pid);
        if let Some(range) = name {
            let name = builder.strings.intern_bytes(file.get(range).unwrap_or_default());
            self.thread_names.insert(id, name);
        }
        Some((id, reference))
    }

    /// Threads and processes as the recorder listed them.
    pub(super) fn tree(&mut self, builder: &mut TraceBuilder, file: &[u8], range: Range<usize>) {
        walk(file, range, |field| {
            let Payload::Len(entry) = field.value else { return };
            let (mut first, mut third, mut text) = (0, None, None);
            walk(file, entry, |inner| match (inner.number, inner.value) {
                (1, Payload::Varint(value)) => first = i64::from(value as i32),
                (3, Payload::Varint(value)) => third = Some(i64::from(value as i32)),
                (2, Payload::Len(range)) if field.number == 2 => text = Some(range),
                (3, Payload::Len(range)) if field.number == 1 && text.is_none() => text = Some(range),
                _ => {}
            });
            let name = text.map(|range| builder.strings.intern_bytes(file.get(range).unwrap_or_default()));
            match field.number {
                1 => {
                    self.process_of_thread.insert(first, first);
                    name.map(|name| self.process_names.entry(first).or_insert(name));
                }
                2 => {
                    let pid = third.unwrap_or(first);
                    self.process_of_thread.insert(first, pid);
                    name.map(|name| self.thread_names.entry((pid, first)).or_insert(name));
                }
                _ => {}
            }
        });
    }

    /// Where a track's events belong: its own thread, the thread above if it has no name of its own, else its name.
    pub(super) fn owner(&self, number: u32) -> Owner {
        let Some(node) = self.get(number) else { return Owner::Unnamed(None, number) };
        let named = |pid: Option<i64>| match node.name == StrId::default() {
            true => Owner::Unnamed(pid, number),
            false => Owner::Named(pid, node.name),
        };
        if let Some((pid, tid)) = node.thread {
            return Owner::Thread(pid, tid);
        }
        let mut above = node;
        for _ in 0..DEPTH {
            if let Some((pid, tid)) = above.thread {
                let same = node.name == StrId::default() || node.name == above.name;
                return if same { Owner::Thread(pid, tid) } else { named(Some(pid)) };
            }
            if let Some(pid) = above.process {
                return named(Some(pid));
            }
            let parent = above.parent.and_then(|uuid| self.numbers.get(&uuid));
            match parent.and_then(|&number| self.get(number)) {
                Some(next) => above = next,
                None => break,
            }
        }
        named(None)
    }
}

fn counter(file: &[u8], range: Range<usize>) -> Counter {
    let mut found = Counter { factor: 1.0, incremental: false };
    walk(file, range, |field| match (field.number, field.value) {
        (4, Payload::Varint(value)) if value != 0 => found.factor = value as i64 as f64,
        (5, Payload::Varint(value)) => found.incremental = value != 0,
        _ => {}
    });
    found
}
