//! Compiled programs (`HloProto`), written byte by byte.

use crate::xspace::Message;

/// Element types by their numbers.
pub mod element {
    /// Truth values.
    pub const PRED: u64 = 1;
    /// Integers.
    pub const S32: u64 = 4;
    /// Half precision.
    pub const F16: u64 = 10;
    /// Single precision.
    pub const F32: u64 = 11;
    /// Brain floating point.
    pub const BF16: u64 = 16;
}

/// An array of a type and sizes, in the usual order in memory.
pub fn array(element: u64, dims: &[i64]) -> Message {
    let mut layout = Message::default();
    layout.bytes(1, &packed(&(0..dims.len() as i64).rev().collect::<Vec<_>>()));
    let mut shape = Message::default();
    shape.varint(2, element);
    shape.bytes(3, &packed(dims));
    shape.bytes(5, &layout.0);
    shape
}

/// Several values.
pub fn tuple(parts: &[Message]) -> Message {
    let mut shape = Message::default();
    shape.varint(2, 13);
    parts.iter().for_each(|part| shape.bytes(4, &part.0));
    shape
}

/// Numbers as protobuf packs them.
pub fn packed(numbers: &[i64]) -> Vec<u8> {
    let mut list = Message::default();
    numbers.iter().for_each(|&number| list.raw_varint(number as u64));
    list.0
}

/// An instruction; further fields can be added to what is returned.
pub fn instruction(id: i64, name: &str, opcode: &str, shape: &Message, operands: &[i64]) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    message.bytes(2, opcode.as_bytes());
    message.bytes(3, &shape.0);
    message.varint(35, id as u64);
    message.bytes(36, &packed(operands));
    message
}

/// Says where an instruction comes from: the operation's name, and the line of a file.
pub fn comes_from(instruction: &mut Message, op_name: &str, file: &str, line: u64) {
    let mut metadata = Message::default();
    metadata.bytes(2, op_name.as_bytes());
    metadata.bytes(3, file.as_bytes());
    metadata.varint(4, line);
    instruction.bytes(7, &metadata.0);
}

/// A computation whose last instruction is its result.
pub fn computation(name: &str, id: i64, root: i64, instructions: &[Message]) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    instructions.iter().for_each(|instruction| message.bytes(2, &instruction.0));
    message.varint(5, id as u64);
    message.varint(6, root as u64);
    message
}

/// A module; the last computation is where it starts.
pub fn module(name: &str, id: u64, entry: i64, computations: &[Message]) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    computations.iter().for_each(|computation| message.bytes(3, &computation.0));
    message.varint(5, id);
    message.varint(6, entry as u64);
    message
}

/// A whole program with its buffers.
pub fn proto(module: &Message, buffers: Option<&Message>) -> Vec<u8> {
    let mut message = Message::default();
    message.bytes(1, &module.0);
    if let Some(buffers) = buffers {
        message.bytes(3, &buffers.0);
    }
    message.0
}

/// A product of `f32[64,128]` and `f32[128,32]`, then a fusion that doubles it and takes its `tanh`: 524,288 operations in the
/// product, 2,048 in the fusion, 2,048 transcendental ones. Two temporary buffers of 8,192 bytes, one after the other in the heap.
pub fn sample(id: u64) -> Vec<u8> {
    use element::F32;
    let result = array(F32, &[64, 32]);
    let mut fused_parameter = instruction(1, "param_0", "parameter", &result, &[]);
    fused_parameter.varint(9, 0);
    let fused = computation(
        "fused_computation",
        1,
        3,
        &[
            fused_parameter,
            instruction(2, "add.1", "add", &result, &[1, 1]),
            instruction(3, "tanh.1", "tanh", &result, &[2]),
        ],
    );
    let mut left = instruction(11, "x", "parameter", &array(F32, &[64, 128]), &[]);
    left.varint(9, 0);
    let mut right = instruction(12, "w", "parameter", &array(F32, &[128, 32]), &[]);
    right.varint(9, 1);
    let mut dims = Message::default();
    dims.bytes(1, &packed(&[1]));
    dims.bytes(2, &packed(&[0]));
    let mut dot = instruction(13, "dot.2", "dot", &result, &[11, 12]);
    dot.bytes(30, &dims.0);
    comes_from(&mut dot, "jit(step)/jvp(mlp)/dot_general", "/home/me/model.py", 41);
    let mut fusion = instruction(14, "tanh_fusion", "fusion", &result, &[13]);
    fusion.bytes(11, b"kLoop");
    fusion.bytes(38, &packed(&[1]));
    comes_from(&mut fusion, "jit(step)/jvp(mlp)/tanh", "/home/me/model.py", 42);
    let entry = computation("main", 2, 14, &[left, right, dot, fusion]);
    let module = module("jit_step", id, 2, &[fused, entry]);
    proto(&module, Some(&sample_buffers()))
}

fn sample_buffers() -> Message {
    let buffer = |id: u64, size: u64, instruction: u64| {
        let mut place = Message::default();
        place.varint(4, instruction);
        let mut buffer = Message::default();
        buffer.varint(1, id);
        buffer.varint(2, size);
        buffer.bytes(3, &place.0);
        buffer
    };
    let allocation = |size: u64, flag: Option<u32>, buffers: &[u64]| {
        let mut allocation = Message::default();
        allocation.varint(2, size);
        flag.into_iter().for_each(|flag| allocation.varint(flag, 1));
        for &id in buffers {
            let mut assigned = Message::default();
            assigned.varint(1, id);
            assigned.varint(3, size);
            allocation.bytes(9, &assigned.0);
        }
        allocation
    };
    let event = |kind: u64, buffer: u64, instruction: &str| {
        let mut event = Message::default();
        event.varint(1, kind);
        event.varint(2, buffer);
        event.bytes(4, instruction.as_bytes());
        event
    };
    let mut trace = Message::default();
    for event in [
        event(0, 3, "dot.2"),
        event(0, 4, "tanh_fusion"),
        event(1, 3, "tanh_fusion"),
        event(1, 4, "tanh_fusion"),
    ] {
        trace.bytes(1, &event.0);
    }
    let mut message = Message::default();
    for (id, size, instruction) in [(1, 32_768, 11), (2, 16_384, 12), (3, 8_192, 13), (4, 8_192, 14)] {
        message.bytes(1, &buffer(id, size, instruction).0);
    }
    message.bytes(3, &allocation(32_768, Some(5), &[1]).0);
    message.bytes(3, &allocation(16_384, Some(5), &[2]).0);
    message.bytes(3, &allocation(16_384, None, &[3, 4]).0);
    message.bytes(4, &trace.0);
    message
}
