//! Bytes of a `BufferAssignmentProto` → [`Buffers`].

use rustc_hash::FxHashMap;

use super::{Allocation, AllocationKind, Buffer, Buffers, EventKind, HeapEvent, HeapTrace};
use crate::fields::{Value, fields};
use crate::module::InstructionId;
use crate::schema::buffers as field;

pub(super) fn buffers<'a>(message: &'a [u8], by_id: &FxHashMap<i64, InstructionId>) -> Buffers<'a> {
    let mut found = Buffers::default();
    for (number, value) in fields(message) {
        match (number, value) {
            (field::LOGICAL, Value::Bytes(bytes)) => found.buffers.push(buffer(bytes, by_id)),
            (field::ALLOCATIONS, Value::Bytes(bytes)) => found.allocations.push(allocation(bytes)),
            (field::TRACES, Value::Bytes(bytes)) => found.traces.push(trace(bytes)),
            _ => {}
        }
    }
    found
}

impl Buffers<'_> {
    /// Where each buffer stands, by its id.
    pub(super) fn by_id(&self) -> FxHashMap<i64, usize> {
        self.buffers.iter().enumerate().map(|(index, buffer)| (buffer.id, index)).collect()
    }
}

fn size(value: Value<'_>) -> u64 {
    value.number().max(0) as u64
}

fn buffer(message: &[u8], by_id: &FxHashMap<i64, InstructionId>) -> Buffer {
    let mut found = Buffer { id: 0, size: 0, space: 0, instruction: None, path: Vec::new() };
    for (number, value) in fields(message) {
        match number {
            1 => found.id = value.number(),
            2 => found.size = size(value),
            3 => {
                for (number, value) in fields(value.bytes()) {
                    match number {
                        3 => value.append_to(&mut found.path),
                        4 => found.instruction = by_id.get(&value.number()).copied(),
                        _ => {}
                    }
                }
            }
            4 => found.space = value.number(),
            _ => {}
        }
    }
    found
}

fn allocation(message: &[u8]) -> Allocation {
    let mut found = Allocation {
        size: 0,
        space: 0,
        kind: AllocationKind::Temporary,
        live_out: false,
        aliased: false,
        assigned: Vec::new(),
    };
    let (mut local, mut parameter, mut constant) = (false, false, false);
    for (number, value) in fields(message) {
        match number {
            2 => found.size = size(value),
            3 => local = value.number() != 0,
            5 => parameter = value.number() != 0,
            7 => found.live_out = value.number() != 0,
            8 => found.space = value.number(),
            9 => found.assigned.push(assigned(value.bytes())),
            12 => constant = value.number() != 0,
            13 => found.aliased = value.number() != 0,
            _ => {}
        }
    }
    found.kind = match (parameter, found.live_out, local, constant) {
        (true, ..) => AllocationKind::Parameter,
        (_, true, ..) => AllocationKind::Output,
        (_, _, true, _) => AllocationKind::ThreadLocal,
        (_, _, _, true) => AllocationKind::Constant,
        _ => AllocationKind::Temporary,
    };
    found
}

fn assigned(message: &[u8]) -> (i64, u64, u64) {
    let mut found = (0, 0, 0);
    for (number, value) in fields(message) {
        match number {
            1 => found.0 = value.number(),
            2 => found.1 = size(value),
            3 => found.2 = size(value),
            _ => {}
        }
    }
    found
}

fn trace(message: &[u8]) -> HeapTrace<'_> {
    let events = fields(message).filter(|(number, _)| *number == 1).map(|(_, value)| event(value.bytes()));
    HeapTrace { events: events.collect() }
}

fn event(message: &[u8]) -> HeapEvent<'_> {
    let mut found = HeapEvent { kind: EventKind::Allocate, buffer: 0, instruction: "", shares: 0 };
    for (number, value) in fields(message) {
        match number {
            1 if value.number() == 1 => found.kind = EventKind::Free,
            1 if value.number() == 2 => found.kind = EventKind::Share,
            2 => found.buffer = value.number(),
            4 => found.instruction = value.text(),
            5 => found.shares = value.number(),
            _ => {}
        }
    }
    found
}
