//! What a program keeps in memory: the compiler's own assignment of buffers, and who is live when it is fullest.
//!
//! ```text
//! read   bytes → allocations, buffers, traces of the compiler's heap
//! heap   replays such a trace
//! ```
//!
//! Parameters, results and constants exist as long as the program runs. Temporary values share one allocation per memory
//! space; the compiler's trace says when each comes and goes.

mod heap;
mod read;

use crate::module::{InstructionId, Module};
use heap::Replay;

pub use heap::{HeapPoint, Occupied};

/// The compiler's assignment of buffers.
#[derive(Clone, Debug, Default)]
pub struct Buffers<'a> {
    /// Pieces of memory.
    pub allocations: Vec<Allocation>,
    /// Values, which share them.
    pub buffers: Vec<Buffer>,
    traces: Vec<HeapTrace<'a>>,
}

/// What an allocation is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationKind {
    /// An argument of the program.
    Parameter,
    /// A result, which lives on after the program.
    Output,
    /// On the stack of whoever runs it.
    ThreadLocal,
    /// Part of the program.
    Constant,
    /// Values on the way.
    Temporary,
}

impl AllocationKind {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            AllocationKind::Parameter => "argument",
            AllocationKind::Output => "output",
            AllocationKind::ThreadLocal => "thread-local",
            AllocationKind::Constant => "constant",
            AllocationKind::Temporary => "temporary",
        }
    }
}

/// A piece of memory.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Bytes.
    pub size: u64,
    /// The memory space: 0 is the device's main memory.
    pub space: i64,
    /// What it is for.
    pub kind: AllocationKind,
    /// Whether a result lies in it; a parameter that is given away holds one too.
    pub live_out: bool,
    /// Whether it is a parameter that the program overwrites with a result.
    pub aliased: bool,
    /// The values in it: buffer, offset, bytes.
    pub assigned: Vec<(i64, u64, u64)>,
}

/// A value that needs memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// As traces call it.
    pub id: i64,
    /// Bytes, padding included.
    pub size: u64,
    /// The memory space.
    pub space: i64,
    /// The instruction that makes it.
    pub instruction: Option<InstructionId>,
    /// Which part of that instruction's result it is.
    pub path: Vec<i64>,
}

/// Coming and going of temporary values.
#[derive(Clone, Debug, Default)]
struct HeapTrace<'a> {
    events: Vec<HeapEvent<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct HeapEvent<'a> {
    kind: EventKind,
    buffer: i64,
    instruction: &'a str,
    shares: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Allocate,
    Free,
    Share,
}

/// Memory of one space.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse {
    /// The space: 0 is the device's main memory.
    pub space: i64,
    /// Arguments.
    pub argument_bytes: u64,
    /// Results, those in given-away arguments included.
    pub output_bytes: u64,
    /// Results in given-away arguments.
    pub alias_bytes: u64,
    /// Allocations for values on the way.
    pub temp_bytes: u64,
    /// Constants.
    pub constant_bytes: u64,
    /// On stacks.
    pub thread_local_bytes: u64,
    /// All allocations except those on stacks.
    pub total_bytes: u64,
    /// What exists all the time: arguments, results, constants.
    pub static_bytes: u64,
    /// The most that values on the way need at once.
    pub heap_peak_bytes: u64,
    /// The most that exists at once.
    pub peak_bytes: u64,
    /// The event of the trace that fills the heap most.
    pub peak_position: usize,
    /// The instruction that runs then.
    pub peak_instruction: Option<InstructionId>,
    /// Allocated for values on the way, but never needed at once.
    pub fragmentation_bytes: u64,
    /// Whether the compiler's trace is there. Without it, all values on the way count as live at once.
    pub traced: bool,
    /// The heap over the run of the program.
    pub series: Vec<HeapPoint>,
    /// What exists at the peak, the largest first.
    pub live: Vec<LiveBuffer>,
}

/// A value that exists at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveBuffer {
    /// What it is.
    pub kind: AllocationKind,
    /// Bytes with padding.
    pub size: u64,
    /// Bytes of its elements; `None` if its shape is unknown.
    pub unpadded: Option<u64>,
    /// The instruction that makes it.
    pub instruction: Option<InstructionId>,
    /// Which part of its result.
    pub path: Vec<i64>,
    /// When it comes and goes: positions in the trace; `None` if it exists all the time.
    pub span: Option<(usize, usize)>,
}

impl<'a> Module<'a> {
    /// The compiler's assignment of buffers; `None` if the profile has none.
    pub fn buffers(&self) -> Option<Buffers<'a>> {
        (!self.buffers.is_empty()).then(|| read::buffers(self.buffers, &self.by_id))
    }

    /// Every temporary value of a memory space: where it lies, and from when to when. Empty if the profile does not say.
    pub fn occupied(&self, space: i64) -> Vec<Occupied> {
        self.buffers().map(|buffers| heap::occupied(&buffers, space)).unwrap_or_default()
    }

    /// Memory per space that the program uses, the device's main memory first.
    pub fn memory(&self) -> Vec<MemoryUse> {
        let Some(buffers) = self.buffers() else { return Vec::new() };
        let mut spaces: Vec<i64> = buffers.allocations.iter().map(|allocation| allocation.space).collect();
        spaces.sort_unstable();
        spaces.dedup();
        spaces.into_iter().map(|space| self.memory_of(&buffers, space)).collect()
    }

    fn memory_of(&self, buffers: &Buffers<'a>, space: i64) -> MemoryUse {
        let mut found = MemoryUse { space, ..MemoryUse::default() };
        for allocation in buffers.allocations.iter().filter(|allocation| allocation.space == space) {
            found.count(allocation);
        }
        match Replay::of(buffers, space) {
            Some(replay) => found.replayed(self, buffers, &replay),
            None => found.heap_peak_bytes = found.temp_bytes,
        }
        found.peak_bytes = found.static_bytes.saturating_add(found.heap_peak_bytes);
        found.fragmentation_bytes = found.temp_bytes.saturating_sub(found.heap_peak_bytes);
        self.add_static(buffers, &mut found);
        found.live.sort_by(|a, b| {
            b.size.cmp(&a.size).then(a.instruction.cmp(&b.instruction)).then(a.path.cmp(&b.path))
        });
        found
    }

    /// Everything that exists all the time; temporaries too, if nothing says when they do.
    fn add_static(&self, buffers: &Buffers<'a>, found: &mut MemoryUse) {
        let all = found.traced;
        let kept = |allocation: &&Allocation| {
            allocation.space == found.space
                && match allocation.kind {
                    AllocationKind::ThreadLocal => false,
                    AllocationKind::Temporary => !all,
                    _ => true,
                }
        };
        let ids = buffers.by_id();
        let mut live = Vec::new();
        for allocation in buffers.allocations.iter().filter(kept) {
            // Values that share the piece one after the other: the first that fills it stands for all.
            let largest = allocation.assigned.iter().rev().max_by_key(|(_, _, size)| *size);
            let buffer =
                largest.and_then(|(id, _, _)| ids.get(id)).and_then(|&index| buffers.buffers.get(index));
            live.push(LiveBuffer {
                kind: allocation.kind,
                size: allocation.size,
                unpadded: buffer.and_then(|buffer| self.unpadded(buffer)),
                instruction: buffer.and_then(|buffer| buffer.instruction),
                path: buffer.map(|buffer| buffer.path.clone()).unwrap_or_default(),
                span: None,
            });
        }
        found.live.extend(live);
    }

    fn unpadded(&self, buffer: &Buffer) -> Option<u64> {
        let shape = self.instruction(buffer.instruction?)?.shape.at(&buffer.path)?;
        Some(if shape.is_tuple() { shape.bytes() } else { shape.unpadded_bytes() })
    }
}

impl MemoryUse {
    fn count(&mut self, allocation: &Allocation) {
        let size = allocation.size;
        let add = |to: &mut u64| *to = to.saturating_add(size);
        match allocation.kind {
            AllocationKind::Parameter => add(&mut self.argument_bytes),
            AllocationKind::Output => {}
            AllocationKind::ThreadLocal => add(&mut self.thread_local_bytes),
            AllocationKind::Constant => add(&mut self.constant_bytes),
            AllocationKind::Temporary => add(&mut self.temp_bytes),
        }
        if allocation.live_out {
            add(&mut self.output_bytes);
        }
        if allocation.aliased {
            add(&mut self.alias_bytes);
        }
        if allocation.kind != AllocationKind::ThreadLocal {
            add(&mut self.total_bytes);
            if allocation.kind != AllocationKind::Temporary {
                add(&mut self.static_bytes);
            }
        }
    }

    fn replayed(&mut self, module: &Module<'_>, buffers: &Buffers<'_>, replay: &Replay<'_>) {
        self.traced = true;
        self.heap_peak_bytes = replay.peak;
        self.peak_position = replay.position;
        self.peak_instruction = replay.peak_instruction.and_then(|name| module.named(name));
        self.series.clone_from(&replay.series);
        for &(index, start, end) in &replay.live {
            let Some(buffer) = buffers.buffers.get(index) else { continue };
            self.live.push(LiveBuffer {
                kind: AllocationKind::Temporary,
                size: buffer.size,
                unpadded: module.unpadded(buffer),
                instruction: buffer.instruction,
                path: buffer.path.clone(),
                span: Some((start, end)),
            });
        }
    }
}
