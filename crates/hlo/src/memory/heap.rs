//! Replays the trace of the compiler's heap: how full it is before each event, and who is in it when it is fullest.

use rustc_hash::FxHashMap;

use super::{AllocationKind, Buffers, EventKind, HeapTrace};
use crate::module::InstructionId;

/// A value in the memory for temporary ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// The instruction that makes it.
    pub instruction: Option<InstructionId>,
    /// Which part of its result.
    pub path: Vec<i64>,
    /// Where it starts in the allocation.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// The event of the trace that brings it.
    pub start: usize,
    /// The event that ends it.
    pub end: usize,
}

/// Where each temporary value of a space lies, and when.
pub(super) fn occupied(buffers: &Buffers<'_>, space: i64) -> Vec<Occupied> {
    let ids = buffers.by_id();
    let Some(trace) = trace_of(buffers, space, &ids) else { return Vec::new() };
    let temporary = buffers
        .allocations
        .iter()
        .filter(|allocation| allocation.space == space && allocation.kind == AllocationKind::Temporary);
    let offsets: FxHashMap<i64, u64> = temporary
        .flat_map(|allocation| allocation.assigned.iter().map(|(id, offset, _)| (*id, *offset)))
        .collect();
    let mut heap =
        Heap { buffers, ids: &ids, roots: FxHashMap::default(), pieces: FxHashMap::default(), bytes: 0 };
    let mut found = Vec::new();
    let mut add = |root: i64, piece: Piece, end: usize| {
        let (Some(offset), Some(buffer)) = (offsets.get(&root), buffers.buffers.get(piece.latest)) else {
            return;
        };
        let (instruction, path) = (buffer.instruction, buffer.path.clone());
        found.push(Occupied {
            instruction,
            path,
            offset: *offset,
            size: piece.size,
            start: piece.start,
            end,
        });
    };
    for (index, event) in trace.events.iter().enumerate() {
        match event.kind {
            EventKind::Allocate => heap.allocate(event.buffer, index),
            EventKind::Share => heap.share(event.buffer, event.shares, index),
            EventKind::Free => {
                heap.free(event.buffer);
                let root = heap.roots.get(&event.buffer).copied().unwrap_or(event.buffer);
                if let Some(piece) = heap.pieces.get(&root).copied().filter(|piece| piece.users == 0) {
                    add(root, piece, index);
                    heap.pieces.remove(&root);
                }
            }
        }
    }
    let mut rest: Vec<(i64, Piece)> = heap.pieces.into_iter().filter(|(_, piece)| piece.users > 0).collect();
    rest.sort_unstable_by_key(|(root, _)| *root);
    rest.into_iter().for_each(|(root, piece)| add(root, piece, trace.events.len()));
    found
}

/// How full the heap is, before one event of its trace.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HeapPoint {
    /// Bytes.
    pub bytes: u64,
}

/// What a replay found.
pub(super) struct Replay<'a> {
    pub peak: u64,
    /// The event that fills the heap most.
    pub position: usize,
    pub peak_instruction: Option<&'a str>,
    pub series: Vec<HeapPoint>,
    /// Who is live at the peak: the number of the buffer, and from which event to which.
    pub live: Vec<(usize, usize, usize)>,
}

/// A piece of the heap that several buffers may share.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    users: u32,
    size: u64,
    start: usize,
    /// The one that shares it since last: its name is what people look for.
    latest: usize,
    /// Whether it was live at the peak, as far as the replay got.
    span: Option<(usize, usize, usize)>,
}

impl<'a> Replay<'a> {
    /// Replays the trace of one memory space; `None` if there is none.
    pub fn of(buffers: &Buffers<'a>, space: i64) -> Option<Self> {
        let ids = buffers.by_id();
        let trace = trace_of(buffers, space, &ids)?;
        let mut heap =
            Heap { buffers, ids: &ids, roots: FxHashMap::default(), pieces: FxHashMap::default(), bytes: 0 };
        let (mut peak, mut position) = (0, 0);
        let mut series = Vec::with_capacity(trace.events.len() + 1);
        for (index, event) in trace.events.iter().enumerate() {
            series.push(HeapPoint { bytes: heap.bytes });
            match event.kind {
                EventKind::Allocate => heap.allocate(event.buffer, index),
                EventKind::Free => heap.free(event.buffer),
                EventKind::Share => heap.share(event.buffer, event.shares, index),
            }
            if heap.bytes > peak {
                (peak, position) = (heap.bytes, index);
            }
        }
        series.push(HeapPoint { bytes: heap.bytes });
        let peak_instruction = trace.events.get(position).map(|event| event.instruction);
        let live = live_at(buffers, &ids, trace, position);
        Some(Replay { peak, position, peak_instruction, series, live })
    }
}

/// The trace of a memory space: the first whose first buffer lies in a temporary allocation of that space, else the one with
/// the most events of that space.
fn trace_of<'b, 'a>(
    buffers: &'b Buffers<'a>,
    space: i64,
    ids: &FxHashMap<i64, usize>,
) -> Option<&'b HeapTrace<'a>> {
    let temporary: rustc_hash::FxHashSet<i64> = buffers
        .allocations
        .iter()
        .filter(|allocation| allocation.space == space && allocation.kind == AllocationKind::Temporary)
        .flat_map(|allocation| allocation.assigned.iter().map(|(buffer, _, _)| *buffer))
        .collect();
    let starts_there =
        |trace: &&HeapTrace<'_>| trace.events.first().is_some_and(|event| temporary.contains(&event.buffer));
    let of_space = |trace: &&HeapTrace<'_>| {
        let is_there = |buffer: i64| {
            ids.get(&buffer)
                .and_then(|&index| buffers.buffers.get(index))
                .is_some_and(|buffer| buffer.space == space)
        };
        trace.events.iter().filter(|event| is_there(event.buffer)).count()
    };
    let most = || buffers.traces.iter().rev().max_by_key(of_space).filter(|trace| of_space(trace) > 0);
    buffers.traces.iter().find(starts_there).or_else(most)
}

struct Heap<'h, 'a> {
    buffers: &'h Buffers<'a>,
    ids: &'h FxHashMap<i64, usize>,
    /// Which piece a buffer lies in.
    roots: FxHashMap<i64, i64>,
    pieces: FxHashMap<i64, Piece>,
    bytes: u64,
}

impl Heap<'_, '_> {
    fn index(&self, buffer: i64) -> usize {
        self.ids.get(&buffer).copied().unwrap_or(usize::MAX)
    }

    fn allocate(&mut self, buffer: i64, at: usize) {
        let index = self.index(buffer);
        let size = self.buffers.buffers.get(index).map_or(0, |buffer| buffer.size);
        self.roots.insert(buffer, buffer);
        self.pieces.insert(buffer, Piece { users: 1, size, start: at, latest: index, span: None });
        self.bytes = self.bytes.saturating_add(size);
    }

    fn share(&mut self, buffer: i64, with: i64, at: usize) {
        let root = self.roots.get(&with).copied().unwrap_or(with);
        let index = self.index(buffer);
        let size = self
            .ids
            .get(&root)
            .and_then(|&index| self.buffers.buffers.get(index))
            .map_or(0, |root| root.size);
        self.roots.insert(buffer, root);
        let piece = self.pieces.entry(root).or_insert(Piece { size, start: at, ..Piece::default() });
        if piece.users == 0 {
            piece.start = at;
            self.bytes = self.bytes.saturating_add(piece.size);
        }
        piece.users += 1;
        piece.latest = index;
    }

    fn free(&mut self, buffer: i64) {
        let root = self.roots.get(&buffer).copied().unwrap_or(buffer);
        let Some(piece) = self.pieces.get_mut(&root).filter(|piece| piece.users > 0) else { return };
        piece.users -= 1;
        if piece.users == 0 {
            self.bytes = self.bytes.saturating_sub(piece.size);
        }
    }
}

/// Who lies in the heap after event `position`, and until when. A second replay: keeping a list at every event that raises the
/// peak would cost the square of their number.
fn live_at(
    buffers: &Buffers<'_>,
    ids: &FxHashMap<i64, usize>,
    trace: &HeapTrace<'_>,
    position: usize,
) -> Vec<(usize, usize, usize)> {
    let mut heap = Heap { buffers, ids, roots: FxHashMap::default(), pieces: FxHashMap::default(), bytes: 0 };
    let end = trace.events.len();
    let mut ended: Vec<(usize, usize, usize)> = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        match event.kind {
            EventKind::Allocate => heap.allocate(event.buffer, index),
            EventKind::Share => heap.share(event.buffer, event.shares, index),
            EventKind::Free => {
                heap.free(event.buffer);
                let root = heap.roots.get(&event.buffer).copied().unwrap_or(event.buffer);
                if let Some(piece) = heap.pieces.get_mut(&root).filter(|piece| piece.users == 0)
                    && let Some((latest, start, _)) = piece.span.take()
                {
                    ended.push((latest, start, index));
                }
            }
        }
        if index == position {
            for piece in heap.pieces.values_mut().filter(|piece| piece.users > 0) {
                piece.span = Some((piece.latest, piece.start, end));
            }
        }
    }
    ended.extend(heap.pieces.values().filter_map(|piece| piece.span));
    ended.sort_unstable();
    ended
}
