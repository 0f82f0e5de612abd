//! From changes and the state at the end to blocks. A history is often a ring: it forgets its beginning, so that the state
//! before it has to be found backwards, from the end.

use rustc_hash::FxHashMap;

use super::{BEFORE, Block, Failure, NEVER, Owner, Role, Segment, SegmentChange, StackId};
use crate::time::Time;

/// The unit in which device allocators hand out memory. If the sizes of all blocks that are live at the end are multiples of
/// it, the sizes of the others were rounded up to it too: histories have the sizes that were asked for.
const UNIT: u64 = 512;

/// A block that is live at the end.
#[derive(Copy, Clone, Debug)]
pub struct Held {
    /// Where it lies.
    pub address: u64,
    /// Bytes that it takes.
    pub size: u64,
    /// Bytes that the program asked for.
    pub requested: u64,
    /// Where it was allocated.
    pub stack: StackId,
    /// What the file says it is for.
    pub role: Option<Role>,
    /// Freed by the program, but still in use by the device.
    pub pending: bool,
}

/// The last thing that happened at an address.
#[derive(Copy, Clone)]
struct Last {
    block: u32,
    live: bool,
}

/// A block that nothing else is known of.
fn new_block(address: u64, size: u64, born: u32) -> Block {
    let stack = StackId::UNKNOWN;
    Block { address, size, requested: size, born, dies: NEVER, stack, count: 1, role: None, pending: false }
}

/// Blocks under construction, from changes in the order in which they happened.
#[derive(Default)]
pub struct OwnerBuilder {
    owner: Owner,
    last: FxHashMap<u64, Last>,
    timed: bool,
}

impl std::fmt::Debug for OwnerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnerBuilder").field("owner", &self.owner.name).finish_non_exhaustive()
    }
}

impl OwnerBuilder {
    /// An owner whose changes have times, or not.
    pub fn new(name: String, timed: bool) -> Self {
        OwnerBuilder { owner: Owner { name, ..Owner::default() }, last: FxHashMap::default(), timed }
    }

    /// The moment after the next change.
    fn next(&mut self, time: Time) -> u32 {
        // Moments beyond the range share the last one.
        if self.owner.changes < NEVER - 2 {
            self.owner.changes += 1;
            if self.timed {
                // A clock that goes back would make moments unfindable by time.
                let time = self.owner.times.last().map_or(time, |&before| before.max(time));
                self.owner.times.push(time);
            }
        }
        self.owner.changes
    }

    /// A block is allocated.
    pub fn allocated(&mut self, time: Time, address: u64, size: u64, stack: StackId, role: Option<Role>) {
        let born = self.next(time);
        let before = self.last.get(&address).copied().filter(|last| last.live);
        if let Some(old) = before.and_then(|last| self.owner.blocks.get_mut(last.block as usize)) {
            // Its free was not recorded.
            old.dies = born;
            self.owner.contradictions += 1;
        }
        self.push(Block { stack, role, ..new_block(address, size, born) }, true);
    }

    fn push(&mut self, block: Block, live: bool) {
        let Ok(at) = u32::try_from(self.owner.blocks.len()) else { return };
        self.owner.blocks.push(block);
        self.last.insert(block.address, Last { block: at, live });
    }

    /// A block is free again. One that was never allocated is older than the history.
    pub fn freed(&mut self, time: Time, address: u64, size: u64) {
        let dies = self.next(time);
        match self.last.get_mut(&address) {
            Some(last) if last.live => {
                last.live = false;
                if let Some(block) = self.owner.blocks.get_mut(last.block as usize) {
                    block.dies = dies;
                }
            }
            Some(_) => self.owner.contradictions += 1,
            None => {
                self.push(Block { dies, ..new_block(address, size, BEFORE) }, false);
            }
        }
    }

    /// A live block is changed in place and gets a new role. One that was never allocated is older than the history.
    pub fn changed(&mut self, address: u64, size: u64, stack: StackId, role: Option<Role>) {
        let live = self.last.get(&address).filter(|last| last.live);
        match live.and_then(|last| self.owner.blocks.get_mut(last.block as usize)) {
            Some(block) => block.role = role,
            None => {
                let known = self.last.contains_key(&address);
                let born = if known { self.owner.changes } else { BEFORE };
                self.push(Block { stack, role, ..new_block(address, size, born) }, true);
            }
        }
    }

    /// A segment is taken from the device, or given back.
    pub fn segment(&mut self, time: Time, segment: Segment, taken: bool) {
        let moment = self.next(time);
        self.owner.segment_changes.push(SegmentChange { moment, segment, taken });
    }

    /// A request failed.
    pub fn failed(&mut self, time: Time, requested: u64, device_free: Option<u64>, stack: StackId) {
        let moment = self.next(time);
        self.owner.failures.push(Failure { moment, requested, device_free, stack });
    }

    /// The blocks, if the file says nothing about the state at its end.
    pub fn finish(self) -> Owner {
        self.owner
    }

    /// The blocks, given what is live at the end.
    pub fn finish_with(mut self, held: &[Held], segments: Vec<Segment>) -> Owner {
        let unit = if !held.is_empty() && held.iter().all(|held| held.size % UNIT == 0) { UNIT } else { 1 };
        for block in &mut self.owner.blocks {
            block.size = block.size.checked_next_multiple_of(unit).unwrap_or(block.size);
        }
        for held in held {
            self.hold(held);
        }
        let end = self.owner.end();
        for last in self.last.values().filter(|last| last.live) {
            // Neither freed in the history nor live at the end.
            if let Some(block) = self.owner.blocks.get_mut(last.block as usize) {
                block.dies = end;
                self.owner.contradictions += 1;
            }
        }
        self.owner.segments = segments;
        self.owner.blocks.shrink_to_fit();
        self.owner.times.shrink_to_fit();
        self.owner
    }

    fn hold(&mut self, held: &Held) {
        let known = self.last.get_mut(&held.address);
        let born = match known {
            Some(last) if last.live => {
                // The state at the end has the last word; what is still marked live afterwards is not in it.
                last.live = false;
                if let Some(block) = self.owner.blocks.get_mut(last.block as usize) {
                    (block.size, block.requested, block.pending) = (held.size, held.requested, held.pending);
                    block.stack = if block.stack.is_known() { block.stack } else { held.stack };
                    block.role = block.role.or(held.role);
                }
                return;
            }
            // Freed in the history, so that it was allocated again after it.
            Some(_) => self.owner.end(),
            None => BEFORE,
        };
        self.owner.blocks.push(Block {
            address: held.address,
            size: held.size,
            requested: held.requested,
            born,
            dies: NEVER,
            stack: held.stack,
            count: 1,
            role: held.role,
            pending: held.pending,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(address: u64, size: u64) -> Held {
        Held { address, size, requested: size - 12, stack: StackId(7), role: None, pending: false }
    }

    fn in_use(owner: &Owner, moment: u32) -> u64 {
        owner.blocks.iter().filter(|block| block.is_live_at(moment)).map(|block| block.size).sum()
    }

    #[test]
    fn what_is_older_than_the_history_counts_from_its_beginning() {
        let mut builder = OwnerBuilder::new("CUDA:0".into(), true);
        builder.freed(Time::from_ns(10), 0x1000, 500);
        builder.allocated(Time::from_ns(20), 0x2000, 1_000, StackId(3), None);
        builder.allocated(Time::from_ns(30), 0x1000, 512, StackId(4), None);
        let owner =
            builder.finish_with(&[held(0x2000, 2_048), held(0x9000, 4_096), held(0x1000, 512)], Vec::new());
        let uses: Vec<u64> = (0..=owner.end()).map(|moment| in_use(&owner, moment)).collect();
        assert_eq!(
            uses,
            [4_608, 4_096, 6_144, 6_656, 6_656],
            "rounded to the unit, and as held where that is known"
        );
        assert_eq!(owner.blocks[1].stack, StackId(3), "the history knows where it was allocated");
        assert_eq!((owner.blocks[1].requested, owner.contradictions), (2_036, 0));
        assert_eq!(owner.time_of(2), Some(Time::from_ns(20)));
        assert_eq!((owner.moment_at(Time::from_ns(25)), owner.moment_at(Time::ZERO)), (Some(2), None));
    }

    #[test]
    fn contradictions_are_counted_and_never_count_a_byte_twice() {
        let mut builder = OwnerBuilder::new("CUDA:0".into(), false);
        builder.allocated(Time::ZERO, 0x1000, 512, StackId(1), None);
        builder.allocated(Time::ZERO, 0x1000, 1_024, StackId(1), None);
        builder.freed(Time::ZERO, 0x1000, 1_024);
        builder.freed(Time::ZERO, 0x1000, 1_024);
        builder.allocated(Time::ZERO, 0x3000, 512, StackId(1), None);
        let owner = builder.finish_with(&[held(0x1000, 1_024)], Vec::new());
        let uses: Vec<u64> = (0..=owner.end()).map(|moment| in_use(&owner, moment)).collect();
        assert_eq!(uses, [0, 512, 1_024, 0, 0, 512, 1_024], "the last one is live only after the history");
        assert_eq!(owner.contradictions, 3);
        assert!(owner.times.is_empty() && owner.time_of(3).is_none());
    }
}
