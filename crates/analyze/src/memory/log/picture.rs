//! What a page draws of recorded blocks: the calls behind what is held at a moment, use over time by role, and where blocks
//! lie. Each is bounded, however long the history is. Knows nothing about colours and pixels.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_trace::Time;
use stepscope_trace::memory::{BEFORE, Block, Frame, MemoryLog, Owner, Role, StackId};

use super::roles::Roles;
use super::{At, Look, NO_STACK, lines, sum};
use crate::context::Context;

/// Calls of one tree. Smaller stacks end at the call that they share with a larger one.
const MOST_CALLS: usize = 4_000;
/// Moments of one curve.
const MOST_MOMENTS: usize = 1_500;
/// Blocks of one map: those that hold most bytes for the longest time.
const MOST_PLACED: usize = 6_000;

/// A call in the tree of what is held at a moment. The caller comes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// Its caller.
    pub parent: Option<u32>,
    /// `train.py:75 step`.
    pub name: String,
    /// Bytes that it and what it calls hold.
    pub bytes: i64,
    /// Blocks that it and what it calls hold.
    pub blocks: u64,
}

/// Bytes in use over time by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleCurve {
    /// Moments: of each piece of time the one with the most bytes in use.
    pub times: Vec<Time>,
    /// Bytes at these moments per role, the largest role first; `None`: the role is unknown.
    pub roles: Vec<(Option<Role>, Vec<i64>)>,
    /// Bytes of segments at these moments; empty if the file has no segments.
    pub reserved: Vec<i64>,
}

/// Where blocks lie, over time.
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    /// Ranges of addresses that segments ever took, lowest first: start and size.
    pub ranges: Vec<(u64, u64)>,
    /// Segments, with the time during which they existed.
    pub segments: Vec<PlacedSegment>,
    /// Blocks, those that hold most for longest first.
    pub blocks: Vec<PlacedBlock>,
    /// Blocks that are left out.
    pub omitted: u64,
}

/// A segment and its time. `None`: it existed before or after the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was taken.
    pub from: Option<Time>,
    /// When it was given back.
    pub to: Option<Time>,
}

/// A block and its time. `None`: it was live before or after the recording.
#[derive(Clone, Debug)]
pub struct PlacedBlock {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was allocated.
    pub from: Option<Time>,
    /// When it was freed.
    pub to: Option<Time>,
    /// The line that allocated it.
    pub line: Option<String>,
    /// What it is for.
    pub role: Option<Role>,
}

/// The calls behind what an allocator holds at a time; without a time, at the peak. `None` if the file has no stacks.
pub fn calls_at(context: &Context, allocator: &str, at: Option<Time>) -> Option<Vec<CallNode>> {
    let log = context.trace.memory().filter(|log| !log.stacks.is_empty())?;
    look(context, log, allocator, |look| {
        let moment = look.moment(at.map_or(At::Peak, At::Time))?;
        Some(calls(look, log, moment))
    })
}

/// The use of an allocator over time by role. `None` if the file has no history with times.
pub fn role_curve(context: &Context, allocator: &str) -> Option<RoleCurve> {
    let log = context.trace.memory()?;
    look(context, log, allocator, |look| {
        let owner = look.owner;
        if !owner.roles.is_empty() {
            return Some(recorded_curve(owner));
        }
        (owner.times.len() > 1).then(|| block_curve(look))
    })
}

/// Where an allocator's blocks lie over time. `None` if the file has no segments or no times.
pub fn address_map(context: &Context, allocator: &str) -> Option<AddressMap> {
    let log = context.trace.memory()?;
    look(context, log, allocator, |look| {
        let segments = segments(look.owner);
        (!segments.is_empty() && look.owner.times.len() > 1).then(|| placed(look, segments))
    })
}

fn look<T>(
    context: &Context,
    log: &MemoryLog,
    allocator: &str,
    ask: impl FnOnce(&Look<'_>) -> Option<T>,
) -> Option<T> {
    let owner = log.owners.iter().find(|owner| owner.name == allocator)?;
    let calls = lines::all(context.trace, log);
    ask(&Look::new(context, log, owner, &calls))
}

/// The tree of calls, outermost first.
fn calls(look: &Look<'_>, log: &MemoryLog, moment: u32) -> Vec<CallNode> {
    let mut stacks: FxHashMap<(StackId, bool), (i64, u64)> = FxHashMap::default();
    for block in look.owner.blocks.iter().filter(|block| block.is_live_at(moment)) {
        let older = block.born == BEFORE && look.owner.has_history();
        let sums = stacks.entry((block.stack, older && !block.stack.is_known())).or_default();
        sums.0 = sums.0.saturating_add(bytes(block));
        sums.1 += u64::from(block.count);
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by_key(|&((stack, older), (bytes, _))| (std::cmp::Reverse(bytes), stack, older));
    let mut tree = CallTree::default();
    for ((stack, older), held) in stacks {
        let mut frames: Vec<Frame> = log.frames(stack).collect();
        frames.reverse();
        match (frames.is_empty(), older) {
            (false, _) => tree.add(frames.into_iter().map(Call::Frame), held),
            (true, true) => tree.add([Call::Before].into_iter(), held),
            (true, false) => tree.add([Call::Unknown].into_iter(), held),
        }
    }
    let name = |call: Call| match call {
        Call::Frame(frame) => lines::label(
            look.context.trace.str(frame.file),
            frame.line,
            look.context.trace.str(frame.function),
        ),
        Call::Before => "allocated before the capture".to_owned(),
        Call::Unknown => NO_STACK.to_owned(),
    };
    let node = |(call, node): (Call, CallNode)| CallNode { name: name(call), ..node };
    tree.nodes.into_iter().map(node).collect()
}

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Call {
    Frame(Frame),
    Before,
    Unknown,
}

#[derive(Default)]
struct CallTree {
    nodes: Vec<(Call, CallNode)>,
    children: FxHashMap<(Option<u32>, Call), u32>,
}

impl CallTree {
    /// Adds a stack, outermost call first.
    fn add(&mut self, stack: impl Iterator<Item = Call>, (bytes, blocks): (i64, u64)) {
        let mut parent = None;
        for call in stack {
            let Some(at) = self.child(parent, call) else { return };
            if let Some((_, node)) = self.nodes.get_mut(at as usize) {
                node.bytes = node.bytes.saturating_add(bytes);
                node.blocks += blocks;
            }
            parent = Some(at);
        }
    }

    fn child(&mut self, parent: Option<u32>, call: Call) -> Option<u32> {
        if let Some(&at) = self.children.get(&(parent, call)) {
            return Some(at);
        }
        // What hangs at the root has no larger stack to end at.
        if self.nodes.len() >= MOST_CALLS && parent.is_some() {
            return None;
        }
        let at = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push((call, CallNode { parent, name: String::new(), bytes: 0, blocks: 0 }));
        self.children.insert((parent, call), at);
        Some(at)
    }
}

/// Of each piece of time, the moment with the most bytes in use.
fn highest(times: &[Time], at: impl Fn(usize) -> i64) -> Vec<usize> {
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Vec::new() };
    let piece = ((last - first).ps() / MOST_MOMENTS as i64).max(1);
    let mut chosen: Vec<usize> = Vec::new();
    let mut current = None;
    for (place, &time) in times.iter().enumerate() {
        let which = (time - first).ps() / piece;
        match (current == Some(which), chosen.last_mut()) {
            (true, Some(best)) if at(place) > at(*best) => *best = place,
            (true, _) => {}
            (false, _) => {
                current = Some(which);
                chosen.push(place);
            }
        }
    }
    chosen
}

fn recorded_curve(owner: &Owner) -> RoleCurve {
    let times: Vec<Time> = owner.roles.iter().map(|(time, _)| *time).collect();
    let chosen = highest(&times, |place| owner.roles.get(place).map_or(0, |(_, bytes)| sum(bytes)));
    let points: Vec<_> = chosen.iter().filter_map(|&place| owner.roles.get(place)).collect();
    let roles = Role::ALL.into_iter().map(Some).chain([None]).enumerate();
    let of_role = |(at, role): (usize, Option<Role>)| {
        (role, points.iter().map(|(_, bytes)| bytes.get(at).copied().unwrap_or(0)).collect())
    };
    RoleCurve {
        times: points.iter().map(|(time, _)| *time).collect(),
        roles: largest_first(roles.map(of_role).collect()),
        reserved: Vec::new(),
    }
}

fn block_curve(look: &Look<'_>) -> RoleCurve {
    let owner = look.owner;
    // Moment `n` is at `n - 1` of the times.
    let chosen = highest(&owner.times, |place| look.in_use.get(place + 1).copied().unwrap_or(0));
    let moments: Vec<u32> = chosen.iter().filter_map(|&place| u32::try_from(place + 1).ok()).collect();
    let roles = Roles::new(owner, look.calls, &look.steps);
    let mut changes: BTreeMap<Option<Role>, Vec<i64>> = BTreeMap::new();
    for block in &owner.blocks {
        let first = moments.partition_point(|&moment| moment < block.born);
        let behind = moments.partition_point(|&moment| moment < block.dies);
        if first == behind {
            continue;
        }
        let line = changes.entry(roles.of(block)).or_insert_with(|| vec![0; moments.len() + 1]);
        line[first] = line[first].saturating_add(bytes(block));
        line[behind] = line[behind].saturating_sub(bytes(block));
    }
    let of_role = |(role, mut line): (Option<Role>, Vec<i64>)| {
        line.pop();
        let mut held = 0_i64;
        line.iter_mut().for_each(|slot| {
            held = held.saturating_add(*slot);
            *slot = held;
        });
        (role, line)
    };
    RoleCurve {
        times: chosen.iter().filter_map(|&place| owner.times.get(place).copied()).collect(),
        roles: largest_first(changes.into_iter().map(of_role).collect()),
        reserved: reserved(owner, &moments),
    }
}

fn bytes(block: &Block) -> i64 {
    i64::try_from(block.size).unwrap_or(i64::MAX)
}

fn largest_first(mut roles: Vec<(Option<Role>, Vec<i64>)>) -> Vec<(Option<Role>, Vec<i64>)> {
    let most = |line: &[i64]| line.iter().copied().max().unwrap_or(0);
    roles.retain(|(_, line)| most(line) > 0);
    roles.sort_by_key(|(role, line)| (std::cmp::Reverse(most(line)), *role));
    roles
}

/// Bytes of segments at each moment, forwards from the state before the history.
fn reserved(owner: &Owner, moments: &[u32]) -> Vec<i64> {
    let Some(before) = super::pieces::reserved_at(owner, BEFORE) else { return Vec::new() };
    let mut held = i64::try_from(before).unwrap_or(i64::MAX);
    let mut changes = owner.segment_changes.iter().peekable();
    let at = |&moment: &u32| {
        while let Some(change) = changes.next_if(|change| change.moment <= moment) {
            let size = i64::try_from(change.segment.size).unwrap_or(i64::MAX);
            held = if change.taken { held.saturating_add(size) } else { held.saturating_sub(size) };
        }
        held
    };
    moments.iter().map(at).collect()
}

/// All segments that ever existed, with their time.
fn segments(owner: &Owner) -> Vec<PlacedSegment> {
    let mut open: BTreeMap<u64, PlacedSegment> = BTreeMap::new();
    let mut ended: Vec<PlacedSegment> = Vec::new();
    for segment in super::pieces::segments_at(owner, BEFORE) {
        let placed = PlacedSegment { address: segment.address, size: segment.size, from: None, to: None };
        open.insert(segment.address, placed);
    }
    for change in &owner.segment_changes {
        let (segment, time) = (change.segment, owner.time_of(change.moment));
        if change.taken {
            let placed = PlacedSegment { address: segment.address, size: segment.size, from: time, to: None };
            ended.extend(open.insert(segment.address, placed));
        } else if let Some(mut gone) = open.remove(&segment.address) {
            gone.to = time;
            ended.push(gone);
        }
    }
    ended.extend(open.into_values());
    ended.sort_by_key(|segment| (segment.address, segment.from));
    ended
}

fn placed(look: &Look<'_>, segments: Vec<PlacedSegment>) -> AddressMap {
    let owner = look.owner;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for segment in &segments {
        let end = segment.address.saturating_add(segment.size);
        match ranges.last_mut() {
            Some((start, size)) if segment.address <= start.saturating_add(*size) => {
                *size = (*size).max(end.saturating_sub(*start));
            }
            _ => ranges.push((segment.address, segment.size)),
        }
    }
    let (first, last) = (owner.times.first().copied(), owner.times.last().copied());
    let length = |block: &Block| {
        let from = if block.born == BEFORE { first } else { owner.time_of(block.born) };
        let to = if block.dies > owner.changes { last } else { owner.time_of(block.dies) };
        from.zip(to).map_or(0, |(from, to)| (to - from).ps().max(0))
    };
    let mut weighed: Vec<(u128, usize)> = owner
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.address != 0 && block.size > 0)
        .map(|(at, block)| (u128::from(block.size) * (length(block) as u128 + 1), at))
        .collect();
    let omitted = weighed.len().saturating_sub(MOST_PLACED);
    weighed.sort_unstable_by_key(|&(weight, at)| (std::cmp::Reverse(weight), at));
    weighed.truncate(MOST_PLACED);
    let roles = Roles::new(owner, look.calls, &look.steps);
    let place = |&(_, at): &(u128, usize)| {
        let block = owner.blocks.get(at)?;
        Some(PlacedBlock {
            address: block.address,
            size: block.size,
            from: owner.time_of(block.born).filter(|_| block.born != BEFORE),
            to: owner.time_of(block.dies).filter(|_| block.dies <= owner.changes),
            line: look.line(block),
            role: roles.of(block),
        })
    };
    let blocks = weighed.iter().filter_map(place).collect();
    AddressMap { ranges, segments, blocks, omitted: omitted as u64 }
}

#[cfg(test)]
mod tests;
