//! A program on a simulated caching allocator: blocks of 512 bytes and more, cut from segments. All that happens is known, so
//! that a snapshot can be held against it, also one that only kept the end.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::pickler::Py;
use crate::damage::Rng;

/// Blocks are multiples of this.
const UNIT: u64 = 512;
/// Segments are multiples of this.
const SEGMENT: u64 = 2 << 20;
/// Where the first segment lies: above 2^63, so that addresses need nine bytes.
const FIRST: u64 = 0xf000_0000_0000_0000;

/// Something that happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// As the snapshot calls it.
    pub action: &'static str,
    /// Where.
    pub address: u64,
    /// Bytes as the history has them: what was asked for, or the size of a segment.
    pub size: u64,
    /// Microseconds.
    pub time_us: i64,
    /// The line that did it.
    pub line: u32,
}

#[derive(Copy, Clone, Debug)]
struct Live {
    size: u64,
    requested: u64,
    line: u32,
}

/// A program that runs.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What happened so far.
    pub changes: Vec<Change>,
    /// Bytes in use after each change, as the allocator counts them.
    pub in_use: Vec<u64>,
    /// Bytes in use by line after the change with the most bytes in use.
    pub peak: (u64, BTreeMap<u32, u64>),
    live: BTreeMap<u64, Live>,
    segments: Vec<(u64, u64)>,
    now: i64,
    current: u64,
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulated {
    /// Nothing happened yet.
    pub fn new() -> Self {
        Simulated {
            changes: Vec::new(),
            in_use: Vec::new(),
            peak: (0, BTreeMap::new()),
            live: BTreeMap::new(),
            segments: Vec::new(),
            now: 1_700_000_000_000_000,
            current: 0,
        }
    }

    fn push(&mut self, action: &'static str, address: u64, size: u64, line: u32) {
        self.now += 3;
        self.changes.push(Change { action, address, size, time_us: self.now, line });
        self.in_use.push(self.current);
        if self.current > self.peak.0 {
            let mut by_line = BTreeMap::new();
            self.live.values().for_each(|block| *by_line.entry(block.line).or_default() += block.size);
            self.peak = (self.current, by_line);
        }
    }

    /// A line allocates; the address.
    pub fn allocate(&mut self, requested: u64, line: u32) -> u64 {
        let size = requested.max(1).next_multiple_of(UNIT);
        let address = self.gap(size).unwrap_or_else(|| {
            let bytes = size.next_multiple_of(SEGMENT);
            let address = self.segments.last().map_or(FIRST, |(address, bytes)| address + bytes + SEGMENT);
            self.segments.push((address, bytes));
            self.push("segment_alloc", address, bytes, line);
            address
        });
        self.live.insert(address, Live { size, requested, line });
        self.current += size;
        self.push("alloc", address, requested, line);
        address
    }

    /// The first gap that is large enough.
    fn gap(&self, size: u64) -> Option<u64> {
        self.segments.iter().find_map(|&(begin, bytes)| {
            let mut free = begin;
            for (&address, block) in self.live.range(begin..begin + bytes) {
                if address - free >= size {
                    return Some(free);
                }
                free = address + block.size;
            }
            (begin + bytes - free >= size).then_some(free)
        })
    }

    /// The block at an address is freed by a line.
    pub fn free(&mut self, address: u64, line: u32) {
        let Some(block) = self.live.get(&address).copied() else { return };
        self.push("free_requested", address, block.requested, line);
        self.live.remove(&address);
        self.current -= block.size;
        self.push("free_completed", address, block.requested, line);
    }

    /// A program that allocates and frees at random.
    pub fn random(rng: &mut Rng, changes: usize) -> Self {
        let mut program = Simulated::new();
        while program.changes.len() < changes {
            let live: Vec<u64> = program.live.keys().copied().collect();
            if live.is_empty() || rng.below(100) < 55 {
                let most = if rng.below(5) == 0 { 9 << 20 } else { 9_000 };
                program.allocate(1 + rng.below(most) as u64, 10 + rng.below(6) as u32);
            } else {
                program.free(live[rng.below(live.len())], 90);
            }
        }
        program
    }

    /// A request fails.
    pub fn fail(&mut self, requested: u64, line: u32) {
        self.push("oom", 1 << 20, requested, line);
    }

    /// The snapshot, with the last `ring` changes only.
    pub fn snapshot(&self, ring: usize) -> Py {
        let entries = self.changes.iter().skip(self.changes.len().saturating_sub(ring));
        let settings =
            vec![("PYTORCH_CUDA_ALLOC_CONF", Py::str("")), ("expandable_segments", Py::Bool(false))];
        Py::Dict(vec![
            ("segments", Py::List(self.segments.iter().map(|segment| self.segment(*segment)).collect())),
            ("device_traces", Py::List(vec![Py::List(entries.map(entry).collect())])),
            ("allocator_settings", Py::Dict(settings)),
            ("external_annotations", Py::List(Vec::new())),
        ])
    }

    fn segment(&self, (begin, bytes): (u64, u64)) -> Py {
        let block = |address: u64, size: u64, live: Option<&Live>| {
            let mut items = vec![
                ("address", Py::Int(address.into())),
                ("size", Py::Int(size.into())),
                ("requested_size", Py::Int(live.map_or(0, |live| live.requested).into())),
                ("state", Py::str(if live.is_some() { "active_allocated" } else { "inactive" })),
            ];
            items.extend(live.map(|live| ("frames", frames(live.line))));
            Py::Dict(items)
        };
        let (mut blocks, mut free) = (Vec::new(), begin);
        for (&address, live) in self.live.range(begin..begin + bytes) {
            if address > free {
                blocks.push(block(free, address - free, None));
            }
            blocks.push(block(address, live.size, Some(live)));
            free = address + live.size;
        }
        if free < begin + bytes {
            blocks.push(block(free, begin + bytes - free, None));
        }
        Py::Dict(vec![
            ("device", Py::Int(0)),
            ("address", Py::Int(begin.into())),
            ("total_size", Py::Int(bytes.into())),
            ("stream", Py::Int(0)),
            ("segment_type", Py::str("large")),
            ("segment_pool_id", Py::Tuple(vec![Py::Int(0), Py::Int(0)])),
            ("is_expandable", Py::Bool(false)),
            ("frames", Py::List(Vec::new())),
            ("blocks", Py::List(blocks)),
        ])
    }
}

fn entry(change: &Change) -> Py {
    let place = if change.action == "oom" { "device_free" } else { "addr" };
    Py::Dict(vec![
        ("action", Py::str(change.action)),
        (place, Py::Int(change.address.into())),
        ("size", Py::Int(change.size.into())),
        ("stream", Py::Int(0)),
        ("time_us", Py::Int(change.time_us.into())),
        ("compile_context", Py::str("N/A")),
        ("user_metadata", Py::str("")),
        ("frames", frames(change.line)),
    ])
}

/// The calls of a line: the library inside, the program outside. Frames are shared, lists of them are not.
fn frames(line: u32) -> Py {
    let frame = |number: u32, file: &str, line: u32, name: &str| {
        let items =
            vec![("filename", Py::str(file)), ("line", Py::Int(line.into())), ("name", Py::str(name))];
        Py::Shared(number, Rc::new(Py::Dict(items)))
    };
    Py::List(vec![
        frame(1, "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 116, "forward"),
        frame(1_000 + line, "/home/u/model.py", line, "layer"),
        frame(2, "/home/u/train.py", 120, "<module>"),
    ])
}
