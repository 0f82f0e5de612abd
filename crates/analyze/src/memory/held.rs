//! What was held at a moment that somebody asks for, and what an out-of-memory error met.

use stepscope_trace::Time;
use stepscope_trace::memory::Role;

use super::blocks::{self, Live};
use super::{Allocator, log, programs, records};
use crate::context::Context;

/// A moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The peak of each allocator.
    Peak,
    /// The last request that failed.
    Oom,
    /// A time.
    Time(Time),
    /// The highest moment of a step.
    Step(i64),
}

/// Where the roles of blocks come from.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleSource {
    /// The file says them.
    File,
    /// They follow from when blocks were allocated and freed.
    Lifetimes,
}

/// What an allocator held at a moment. Rows, what is older and what programs reserve sum to the bytes in use.
#[derive(Clone, Debug, Default)]
pub struct HeldAt {
    /// The host.
    pub host: String,
    /// The allocator.
    pub name: String,
    /// The time, if the file has times.
    pub at: Option<Time>,
    /// Bytes in use.
    pub in_use: i64,
    /// Bytes of blocks that are older than the recording.
    pub before_capture: i64,
    /// Bytes that loaded programs reserve.
    pub reserved_by_programs: i64,
    /// The program that reserves them.
    pub program: Option<String>,
    /// Live blocks, combined; largest first.
    pub rows: Vec<Live>,
    /// The largest blocks one by one, if the file has them.
    pub blocks: Vec<BlockRow>,
}

impl HeldAt {
    /// What an allocator held at its peak.
    pub fn at_peak(allocator: &Allocator) -> Self {
        HeldAt {
            host: allocator.host.clone(),
            name: allocator.name.clone(),
            at: allocator.timed.then_some(allocator.peak_at),
            in_use: allocator.peak,
            before_capture: allocator.before_capture,
            reserved_by_programs: allocator.reserved_by_programs,
            program: allocator.program.clone(),
            rows: allocator.at_peak.clone(),
            blocks: Vec::new(),
        }
    }
}

/// One live block.
#[derive(Clone, Debug)]
pub struct BlockRow {
    /// Where it lies; 0 if unknown.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// How many blocks it stands for.
    pub count: u64,
    /// The line that allocated it.
    pub line: Option<String>,
    /// What it is for.
    pub role: Option<Role>,
    /// When it was allocated; `None` if it is older than the recording, or unknown.
    pub born: Option<Time>,
    /// Freed by the program, but still in use by the device.
    pub pending: bool,
}

/// A request that failed, and the state that it met. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OutOfMemory {
    /// When.
    pub at: Option<Time>,
    /// What was asked for.
    pub requested: u64,
    /// The line that asked.
    pub line: Option<String>,
    /// In use then.
    pub allocated: i64,
    /// In segments then.
    pub reserved: Option<u64>,
    /// Free on the device, outside of segments.
    pub device_free: Option<u64>,
    /// Free inside segments.
    pub free: Option<FreeMemory>,
    /// What was live, largest first.
    pub holders: Vec<Live>,
}

impl OutOfMemory {
    /// Whether enough was free, but in pieces that are too small.
    pub fn is_fragmentation(&self) -> bool {
        let outside = self.device_free.unwrap_or(0);
        self.free.as_ref().is_some_and(|free| {
            self.requested > free.largest
                && self.requested > outside
                && self.requested <= free.bytes.saturating_add(outside)
        })
    }
}

/// Free memory inside segments that cannot be given back, because something in them is live. Sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FreeMemory {
    /// All of it.
    pub bytes: u64,
    /// The largest piece.
    pub largest: u64,
    /// In segments without anything live: an allocator gives them back before it fails.
    pub releasable: u64,
    /// In segments that only one user may use.
    pub private: u64,
    /// The lines that keep nearly empty segments, those with the most free bytes first.
    pub pins: Vec<Pin>,
}

/// A line whose blocks keep segments that are free otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pin {
    /// The line.
    pub line: String,
    /// Free bytes in those segments.
    pub free_bytes: u64,
    /// Bytes of its blocks in them.
    pub bytes: u64,
    /// Number of its blocks in them.
    pub blocks: u64,
    /// Number of segments.
    pub segments: u64,
}

/// What each allocator of one host held at a moment. Those that do not know the moment are left out.
pub fn held_at(context: &Context, at: At) -> Vec<HeldAt> {
    if let Some(recorded) = context.trace.memory() {
        return log::held_at(context, recorded, at);
    }
    let groups = records::collect(context);
    groups.iter().filter_map(|group| of_events(context, group, at)).collect()
}

fn of_events(context: &Context, group: &records::Group, at: At) -> Option<HeldAt> {
    let records = &group.records;
    let highest = |range: std::ops::Range<usize>| {
        range.max_by_key(|&at| (records.get(at).map(|record| record.in_use), std::cmp::Reverse(at)))
    };
    let place = match at {
        At::Peak => highest(0..records.len())?,
        At::Oom => return None,
        At::Time(time) => records.partition_point(|record| record.time <= time).checked_sub(1)?,
        At::Step(number) => {
            let mut steps = context.breakdown().counted();
            let (step, _) = steps.find(|(step, _)| step.number == number)?;
            let first = records.partition_point(|record| record.time < step.span.start);
            highest(first..records.partition_point(|record| record.time < step.span.end))?
        }
    };
    let record = records.get(place)?;
    let freed = blocks::pair(records);
    let rows = blocks::alive(context, records, &freed, place);
    let known = rows.iter().map(|live| live.bytes).fold(0, i64::saturating_add);
    Some(HeldAt {
        host: context.host.clone(),
        name: group.name.clone(),
        at: Some(record.time),
        in_use: record.in_use,
        before_capture: record.heap().saturating_sub(known).max(0),
        reserved_by_programs: record.reserved,
        program: group
            .chip
            .filter(|_| record.reserved > 0)
            .and_then(|chip| programs::reserving(context, chip, records, place)),
        rows,
        blocks: Vec::new(),
    })
}
