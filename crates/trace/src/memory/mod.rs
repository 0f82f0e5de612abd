//! Memory as blocks with an owner, a birth and a death. Filled by readers of memory snapshots and profiles.
//!
//! The motivating case: a training run dies with "out of memory", and its snapshot lists the last hundred thousand
//! allocations of one device. The history begins in the middle of the run, so what was live before it is only known from
//! what is freed in it and from what is live at its end. [`OwnerBuilder`] pairs the two; after that, the memory in use at any
//! moment is the sum of the blocks that are live then, to the byte.
//!
//! Moments are numbered instead of timed, because clocks are coarse: several changes share a microsecond. Moment 0 is the
//! state before the first change, moment `n` the state after the `n`th change, and [`Owner::end`] the state when the file was
//! written. A block is live from its birth up to, but not including, its death.
//!
//! A block costs 48 bytes and a change 8 bytes.

mod owner;
mod stacks;

use crate::time::Time;

pub use owner::{Held, OwnerBuilder};
pub use stacks::{Frame, StackId, StackTable, StackTableBuilder};

/// The death of a block that is live when the file is written.
pub const NEVER: u32 = u32::MAX;
/// The birth of a block that is older than the history.
pub const BEFORE: u32 = 0;

/// What memory is used for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A weight of the model.
    Parameter,
    /// State that the optimizer keeps per weight.
    Optimizer,
    /// A batch.
    Input,
    /// Memory that is freed almost at once.
    Temporary,
    /// Results of the forward pass that the backward pass needs.
    Activation,
    /// Gradients.
    Gradient,
    /// Bookkeeping of automatic differentiation.
    Autograd,
    /// Allocated in a step and kept for several more.
    Kept,
    /// A compiled program.
    Program,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 9] = [
        Role::Parameter,
        Role::Optimizer,
        Role::Input,
        Role::Temporary,
        Role::Activation,
        Role::Gradient,
        Role::Autograd,
        Role::Kept,
        Role::Program,
    ];

    /// Its public name.
    pub fn key(self) -> &'static str {
        match self {
            Role::Parameter => "parameter",
            Role::Optimizer => "optimizer",
            Role::Input => "input",
            Role::Temporary => "temporary",
            Role::Activation => "activation",
            Role::Gradient => "gradient",
            Role::Autograd => "autograd",
            Role::Kept => "kept",
            Role::Program => "program",
        }
    }
}

/// A piece of memory in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it lies; 0 if unknown.
    pub address: u64,
    /// Bytes that it takes.
    pub size: u64,
    /// Bytes that the program asked for.
    pub requested: u64,
    /// The moment from which on it is live; [`BEFORE`] if it is older than the history.
    pub born: u32,
    /// The first moment at which it is gone, or [`NEVER`].
    pub dies: u32,
    /// Where it was allocated; [`StackId::UNKNOWN`] if the file does not say.
    pub stack: StackId,
    /// How many blocks it stands for: some files only have sums.
    pub count: u32,
    /// What the file says it is for.
    pub role: Option<Role>,
    /// Freed by the program, but still in use by the device.
    pub pending: bool,
}

impl Block {
    /// Whether it is live at a moment.
    #[inline]
    pub fn is_live_at(&self, moment: u32) -> bool {
        self.born <= moment && moment < self.dies
    }
}

/// Memory that an allocator took from the device to cut blocks from it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Reserved for one user, such as a captured graph: others cannot use its free parts.
    pub private: bool,
    /// Can grow in place.
    pub expandable: bool,
}

/// A segment that is taken or given back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SegmentChange {
    /// The moment after it.
    pub moment: u32,
    /// What changed.
    pub segment: Segment,
    /// Taken, not given back.
    pub taken: bool,
}

/// A request that could not be served.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The state that it met.
    pub moment: u32,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes that were free on the device, outside all segments.
    pub device_free: Option<u64>,
    /// Where it was asked for.
    pub stack: StackId,
}

/// A range that the program named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// Its start.
    pub start: Time,
    /// Its end, if recorded.
    pub end: Option<Time>,
}

/// The bytes in use per role, of a file that has no blocks. Indexed as [`Role::ALL`]; the last number is what has no role.
pub type RoleUse = [i64; Role::ALL.len() + 1];

/// The memory of one device or allocator.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// Its name, e.g. `CUDA:0`.
    pub name: String,
    /// Blocks, in the order of their birth as far as it is known.
    pub blocks: Vec<Block>,
    /// The time after each change: moment `n` is at `n - 1`. Empty if the file has no times.
    pub times: Vec<Time>,
    /// The number of changes.
    pub changes: u32,
    /// Segments when the file was written. Empty if the file has none.
    pub segments: Vec<Segment>,
    /// How segments came and went.
    pub segment_changes: Vec<SegmentChange>,
    /// Requests that failed.
    pub failures: Vec<Failure>,
    /// Changes that contradict each other: a free of what is not live, a block where another one is.
    pub contradictions: u64,
    /// Bytes in use per role over time, where blocks are unknown.
    pub roles: Vec<(Time, RoleUse)>,
}

impl Owner {
    /// The moment at which the file was written.
    pub fn end(&self) -> u32 {
        self.changes.saturating_add(1)
    }

    /// The time of a moment, if the file has times.
    pub fn time_of(&self, moment: u32) -> Option<Time> {
        let last = self.times.len().checked_sub(1)?;
        self.times.get((moment.saturating_sub(1) as usize).min(last)).copied()
    }

    /// The last moment at or before a time; `None` before the first change, and without times.
    pub fn moment_at(&self, time: Time) -> Option<u32> {
        let behind = self.times.partition_point(|&at| at <= time);
        if behind == 0 { None } else { u32::try_from(behind).ok() }
    }

    /// Whether the file has the history of blocks, and not just their state.
    pub fn has_history(&self) -> bool {
        self.changes > 0
    }

    /// Heap memory in bytes.
    fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
            + self.times.capacity() * size_of::<Time>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.segment_changes.capacity() * size_of::<SegmentChange>()
            + self.roles.capacity() * size_of::<(Time, RoleUse)>()
    }
}

/// What a file says about memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    /// Devices and allocators, in the file's order.
    pub owners: Vec<Owner>,
    /// Where blocks were allocated.
    pub stacks: StackTable,
    /// Ranges that the program named, by start.
    pub marks: Vec<Mark>,
    /// Whether segments can grow in place, if the file says so.
    pub expandable_segments: Option<bool>,
}

impl MemoryLog {
    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.stacks.heap_bytes() + self.owners.iter().map(Owner::heap_bytes).sum::<usize>()
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = Frame> + '_ {
        self.stacks.frames(stack)
    }
}
