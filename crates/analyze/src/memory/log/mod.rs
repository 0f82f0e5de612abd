//! Memory that a file records as blocks with owners: snapshots and profiles of live memory. Knows no format.
//!
//! ```text
//! lines    stacks of calls → the user's line
//! steps    where steps begin
//! roles    what a block is for
//! pieces   free memory inside segments
//! growing  what is kept from step to step
//! picture  what a page draws
//! ```

mod growing;
mod lines;
pub(super) mod picture;
mod pieces;
mod roles;
mod steps;

use std::collections::BTreeMap;

use stepscope_trace::Time;
use stepscope_trace::memory::{BEFORE, Block, Failure, MemoryLog, Owner, Role, RoleUse};

use self::lines::Calls;
use self::roles::Roles;
use super::{Allocator, At, BlockRow, HeldAt, Live, MOST_POINTS, OutOfMemory, RoleSource};
use crate::context::Context;

/// Rows of one moment; the rest is one row.
const MOST_ROWS: usize = 1_000;
/// Blocks that are listed one by one.
const MOST_BLOCKS: usize = 10_000;

/// For blocks of a history without stacks.
pub(super) const NO_STACK: &str = "no stack recorded";

/// All allocators of a file.
pub(super) fn allocators(context: &Context, log: &MemoryLog) -> Vec<Allocator> {
    let calls = lines::all(context.trace, log);
    log.owners.iter().filter_map(|owner| Look::new(context, log, owner, &calls).allocator()).collect()
}

/// What was held at a moment, per owner.
pub(super) fn held_at(context: &Context, log: &MemoryLog, at: At) -> Vec<HeldAt> {
    let calls = lines::all(context.trace, log);
    log.owners.iter().filter_map(|owner| Look::new(context, log, owner, &calls).held(at)).collect()
}

/// One owner, with what is derived once.
struct Look<'a> {
    context: &'a Context<'a>,
    owner: &'a Owner,
    calls: &'a [Calls],
    /// Bytes in use at each moment.
    in_use: Vec<i64>,
    steps: Vec<u32>,
}

impl<'a> Look<'a> {
    fn new(context: &'a Context<'a>, log: &MemoryLog, owner: &'a Owner, calls: &'a [Calls]) -> Self {
        let in_use = in_use(owner);
        let steps = if owner.has_history() { steps::of(log, owner, &in_use, calls) } else { Vec::new() };
        Look { context, owner, calls, in_use, steps }
    }

    /// The first moment of the peak. Without history, the state that the file has.
    fn peak(&self) -> Option<u32> {
        if !self.owner.has_history() {
            return Some(self.owner.end());
        }
        let most = self.in_use.iter().copied().max()?;
        u32::try_from(self.in_use.iter().position(|&bytes| bytes == most)?).ok()
    }

    fn at(&self, moment: u32) -> i64 {
        self.in_use.get(moment as usize).copied().unwrap_or(0)
    }

    fn line(&self, block: &Block) -> Option<String> {
        let known = self.calls.get(block.stack.0 as usize).and_then(|calls| calls.line.clone());
        known.or_else(|| (block.born != BEFORE).then(|| NO_STACK.to_owned()))
    }

    fn allocator(&self) -> Option<Allocator> {
        if self.owner.blocks.is_empty() && !self.owner.roles.is_empty() {
            return Some(of_roles(self.context, self.owner));
        }
        let peak = self.peak()?;
        let roles = Roles::new(self.owner, self.calls, &self.steps);
        let (at_peak, before_capture) = self.rows(peak, &roles);
        let failure = self.owner.failures.last().map(|failure| self.failed(failure, &roles));
        let by_step = growing::by_step(self.owner, &self.steps, &self.in_use);
        let name = |stack| self.calls.get(stack_index(stack)).and_then(|calls| calls.line.clone());
        let kept = growing::kept(self.owner, &self.steps, &roles, |stack| {
            name(stack).unwrap_or_else(|| NO_STACK.to_owned())
        });
        let (allocations, frees) = self.counts();
        let in_file = self.owner.blocks.iter().any(|block| block.role.is_some());
        Some(Allocator {
            host: self.context.host.clone(),
            name: self.owner.name.clone(),
            allocations,
            frees,
            peak: self.at(peak),
            peak_at: self.owner.time_of(peak).unwrap_or(Time::ZERO),
            timed: !self.owner.times.is_empty(),
            history: self.owner.has_history(),
            peak_step: roles
                .step_of(peak)
                .and_then(|step| i64::try_from(step).ok())
                .filter(|_| !by_step.is_empty()),
            capacity: failure
                .as_ref()
                .and_then(|failure| failure.reserved?.checked_add(failure.device_free?)),
            reserved_at_peak: pieces::reserved_at(self.owner, peak),
            lifetime_peak: None,
            fragmentation_at_peak: None,
            timeline: self.timeline(),
            before_capture,
            reserved_by_programs: 0,
            program: None,
            programs: Vec::new(),
            growth: growing::growth(&by_step, &kept, self.at(peak)),
            leaks: kept,
            steps: by_step,
            roles: role_sums(&at_peak, before_capture),
            roles_from: if in_file {
                Some(RoleSource::File)
            } else {
                (self.steps.len() > 1).then_some(RoleSource::Lifetimes)
            },
            largest_request: self.owner.blocks.iter().map(|block| block.requested).max(),
            out_of_memory: failure,
            at_peak,
        })
    }

    fn counts(&self) -> (u64, u64) {
        let born = self.owner.blocks.iter().filter(|block| block.born != BEFORE || !self.owner.has_history());
        let dead = self.owner.blocks.iter().filter(|block| block.dies <= self.owner.changes);
        (born.map(|block| u64::from(block.count)).sum(), dead.count() as u64)
    }

    /// What is live at a moment, by line, call and role, and the bytes of what is older than the history, if neither its
    /// line nor its role is known.
    fn rows(&self, moment: u32, roles: &Roles<'_>) -> (Vec<Live>, i64) {
        let mut rows: BTreeMap<(u32, Option<Role>), Live> = BTreeMap::new();
        let mut before = 0_i64;
        for block in self.owner.blocks.iter().filter(|block| block.is_live_at(moment)) {
            let size = i64::try_from(block.size).unwrap_or(i64::MAX);
            let (line, role) = (self.line(block), roles.of(block));
            if line.is_none() && role.is_none() {
                before = before.saturating_add(size);
                continue;
            }
            let row = rows.entry((block.stack.0, role)).or_insert_with(|| Live {
                op: self
                    .calls
                    .get(block.stack.0 as usize)
                    .and_then(|calls| calls.op.clone())
                    .unwrap_or_default(),
                line,
                role,
                requested: Some(0),
                ..Live::default()
            });
            row.blocks += u64::from(block.count);
            row.bytes = row.bytes.saturating_add(size);
            let requested = i64::try_from(block.requested).unwrap_or(i64::MAX);
            row.requested = row.requested.map(|sum| sum.saturating_add(requested));
        }
        let mut rows: Vec<Live> = merged(rows.into_values().collect());
        rows.sort_by(|a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| (&a.line, &a.op, a.role).cmp(&(&b.line, &b.op, b.role)))
        });
        super::blocks::rest_in_one(&mut rows, MOST_ROWS);
        (rows, before)
    }

    fn failed(&self, failure: &Failure, roles: &Roles<'_>) -> OutOfMemory {
        let line =
            |block: &Block| self.line(block).unwrap_or_else(|| "allocated before the recording".to_owned());
        OutOfMemory {
            at: self.owner.time_of(failure.moment),
            requested: failure.requested,
            line: self.calls.get(stack_index(failure.stack)).and_then(|calls| calls.line.clone()),
            allocated: self.at(failure.moment),
            reserved: pieces::reserved_at(self.owner, failure.moment),
            device_free: failure.device_free,
            free: pieces::free_at(self.owner, failure.moment, line),
            holders: self.rows(failure.moment, roles).0,
        }
    }

    fn timeline(&self) -> Vec<(Time, i64)> {
        let points: Vec<(Time, i64)> =
            self.owner.times.iter().copied().zip(self.in_use.iter().copied().skip(1)).collect();
        thinned(&points)
    }

    fn moment(&self, at: At) -> Option<u32> {
        match at {
            At::Peak => self.peak(),
            At::Oom => self.owner.failures.last().map(|failure| failure.moment),
            At::Time(time) => self.owner.moment_at(time),
            At::Step(number) => {
                let at = usize::try_from(number).ok()?;
                let (&begin, &end) = (self.steps.get(at)?, self.steps.get(at + 1)?);
                // The highest moment of the step.
                (begin..=end).max_by_key(|&moment| (self.at(moment), std::cmp::Reverse(moment)))
            }
        }
    }

    fn held(&self, at: At) -> Option<HeldAt> {
        if !self.owner.roles.is_empty() {
            return held_roles(self.context, self.owner, at);
        }
        let moment = self.moment(at)?;
        let roles = Roles::new(self.owner, self.calls, &self.steps);
        let (rows, before) = self.rows(moment, &roles);
        let mut live: Vec<&Block> =
            self.owner.blocks.iter().filter(|block| block.is_live_at(moment)).collect();
        live.sort_by_key(|block| (std::cmp::Reverse(block.size), block.address));
        let blocks = live.iter().take(MOST_BLOCKS).map(|block| BlockRow {
            address: block.address,
            bytes: block.size,
            requested: block.requested,
            count: u64::from(block.count),
            line: self.line(block),
            role: roles.of(block),
            born: self.owner.time_of(block.born).filter(|_| block.born != BEFORE),
            pending: block.pending,
        });
        Some(HeldAt {
            host: self.context.host.clone(),
            name: self.owner.name.clone(),
            at: self.owner.time_of(moment),
            in_use: self.at(moment),
            before_capture: before,
            reserved_by_programs: 0,
            program: None,
            rows,
            blocks: blocks.collect(),
        })
    }
}

fn stack_index(stack: stepscope_trace::memory::StackId) -> usize {
    stack.0 as usize
}

/// Rows with the same line, call and role as one: stacks may differ further out.
fn merged(rows: Vec<Live>) -> Vec<Live> {
    let mut known: BTreeMap<(Option<String>, String, Option<Role>), Live> = BTreeMap::new();
    for row in rows {
        match known.get_mut(&(row.line.clone(), row.op.clone(), row.role)) {
            Some(same) => {
                same.blocks += row.blocks;
                same.bytes = same.bytes.saturating_add(row.bytes);
                same.requested = same.requested.zip(row.requested).map(|(a, b)| a.saturating_add(b));
            }
            None => drop(known.insert((row.line.clone(), row.op.clone(), row.role), row)),
        }
    }
    known.into_values().collect()
}

/// Bytes per role, largest first; what is older than the history has none.
pub(super) fn role_sums(rows: &[Live], before: i64) -> Vec<(Option<Role>, i64)> {
    let mut sums: BTreeMap<Option<Role>, i64> = BTreeMap::new();
    rows.iter().for_each(|row| *sums.entry(row.role).or_default() += row.bytes);
    if before > 0 {
        *sums.entry(None).or_default() += before;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(role, bytes)| (std::cmp::Reverse(*bytes), *role));
    sums
}

/// Bytes in use at each moment, from the first to the end.
fn in_use(owner: &Owner) -> Vec<i64> {
    let mut bytes = vec![0_i64; owner.end() as usize + 1];
    for block in &owner.blocks {
        let size = i64::try_from(block.size).unwrap_or(i64::MAX);
        if let Some(slot) = bytes.get_mut(block.born as usize) {
            *slot = slot.saturating_add(size);
        }
        if let Some(slot) = bytes.get_mut(block.dies as usize) {
            *slot = slot.saturating_sub(size);
        }
    }
    let mut sum = 0_i64;
    for slot in &mut bytes {
        sum = sum.saturating_add(*slot);
        *slot = sum;
    }
    bytes
}

/// The points, thinned so that each piece keeps its maximum.
fn thinned(points: &[(Time, i64)]) -> Vec<(Time, i64)> {
    let piece = points.len().div_ceil(MOST_POINTS).max(1);
    points.chunks(piece).filter_map(|piece| piece.iter().max_by_key(|point| point.1)).copied().collect()
}

/// The roles of a point of a file without blocks.
fn role_rows(bytes: &RoleUse) -> Vec<Live> {
    let roles = Role::ALL.into_iter().map(Some).chain([None]);
    let row = |(role, &bytes): (Option<Role>, &i64)| Live { role, bytes, ..Live::default() };
    let mut rows: Vec<Live> = roles.zip(bytes).map(row).filter(|row| row.bytes != 0).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.role));
    rows
}

fn sum(bytes: &RoleUse) -> i64 {
    bytes.iter().copied().fold(0, i64::saturating_add)
}

fn peak_of(owner: &Owner) -> Option<&(Time, RoleUse)> {
    let most = owner.roles.iter().map(|(_, bytes)| sum(bytes)).max()?;
    owner.roles.iter().find(|(_, bytes)| sum(bytes) == most)
}

/// The allocator of a file that only has bytes per role.
fn of_roles(context: &Context, owner: &Owner) -> Allocator {
    let (peak_at, bytes) = peak_of(owner).copied().unwrap_or_default();
    let at_peak = role_rows(&bytes);
    let points: Vec<(Time, i64)> = owner.roles.iter().map(|(time, bytes)| (*time, sum(bytes))).collect();
    Allocator {
        host: context.host.clone(),
        name: owner.name.clone(),
        peak: sum(&bytes),
        peak_at,
        timed: true,
        history: true,
        timeline: thinned(&points),
        roles: role_sums(&at_peak, 0),
        roles_from: Some(RoleSource::File),
        at_peak,
        ..Allocator::default()
    }
}

fn held_roles(context: &Context, owner: &Owner, at: At) -> Option<HeldAt> {
    let point = match at {
        At::Peak => peak_of(owner)?,
        At::Time(time) => {
            owner.roles.get(owner.roles.partition_point(|(at, _)| *at <= time).checked_sub(1)?)?
        }
        At::Oom | At::Step(_) => return None,
    };
    Some(HeldAt {
        host: context.host.clone(),
        name: owner.name.clone(),
        at: Some(point.0),
        in_use: sum(&point.1),
        rows: role_rows(&point.1),
        ..HeldAt::default()
    })
}
