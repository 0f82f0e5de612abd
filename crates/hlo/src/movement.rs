//! Instructions that move data without computing anything: changes of layout, copies of a buffer, and copies between memory
//! spaces.

use crate::cost::{is_elementwise, is_transcendental};
use crate::module::{Instruction, Module};
use crate::shape::Shape;

/// The device's main memory.
pub const MAIN_SPACE: i64 = 0;
/// Memory on the chip of a TPU (VMEM).
pub const VECTOR_SPACE: i64 = 1;
/// The host's memory.
pub const HOST_SPACE: i64 = 5;

/// How an instruction moves data.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Movement {
    /// The same elements in another order in memory.
    Relayout,
    /// The same elements in the same order elsewhere: a buffer that is still needed, or may not be given away.
    Duplicate,
    /// From one memory space to another.
    Between {
        /// The space that is read.
        from: i64,
        /// The space that is written.
        to: i64,
    },
}

impl Movement {
    /// Whether it reads or writes the host's memory.
    pub fn is_with_host(self) -> bool {
        matches!(self, Movement::Between { from, to } if from == HOST_SPACE || to == HOST_SPACE)
    }

    /// Whether the data only changes its order or place within one memory.
    pub fn is_within(self) -> bool {
        !matches!(self, Movement::Between { .. })
    }
}

/// What people call a memory space. Numbers are those of TPUs; GPUs use the first and the host's only.
pub fn space_name(space: i64) -> &'static str {
    match space {
        0 => "HBM",
        VECTOR_SPACE => "VMEM",
        2 => "sync flags",
        HOST_SPACE => "host memory",
        6 => "SMEM",
        _ => "another memory",
    }
}

/// Instructions that change the order of elements or their bits only.
const REORDERS: [&str; 3] = ["copy", "transpose", "reshape"];
/// What may stand beside those in a fusion that still computes nothing.
const FREE: [&str; 6] = ["parameter", "constant", "bitcast", "tuple", "get-tuple-element", "convert"];

impl<'a> Module<'a> {
    /// How an instruction moves data; `None` if it computes something. Of an asynchronous copy, both halves.
    pub fn movement(&self, instruction: &Instruction<'a>) -> Option<Movement> {
        match instruction.opcode {
            "copy-start" => started(instruction),
            "copy-done" => self.operand(instruction, 0).and_then(started),
            "copy" => {
                let source = &self.operand(instruction, 0)?.shape;
                Some(of_copy(source, &instruction.shape))
            }
            "transpose" | "reshape" | "bitcast-convert" => Some(Movement::Relayout),
            "fusion" => self.fused_movement(instruction),
            _ => None,
        }
    }

    /// XLA wraps single instructions into fusions, and fuses a transpose with a change of type.
    fn fused_movement(&self, fusion: &Instruction<'a>) -> Option<Movement> {
        let inside = self.computation(*fusion.called.first()?)?;
        let mut found = None;
        for (_, inner) in self.instructions_of(inside) {
            if FREE.contains(&inner.opcode) {
                continue;
            }
            if !REORDERS.contains(&inner.opcode) {
                return None;
            }
            let own = self.movement(inner)?;
            found = match found {
                None | Some(Movement::Duplicate) => Some(own),
                known => known,
            };
        }
        found
    }

    /// The array that an instruction moves.
    pub fn moved<'m>(&self, instruction: &'m Instruction<'a>) -> Option<&'m Shape> {
        match instruction.shape.is_tuple() {
            true => instruction.shape.parts.first(),
            false => Some(&instruction.shape),
        }
    }

    /// Whether an instruction is one elementwise operation by itself, also if a fusion wraps it.
    pub fn is_unfused(&self, instruction: &Instruction<'a>) -> bool {
        let elementwise = |opcode: &str| is_elementwise(opcode) || is_transcendental(opcode);
        if instruction.opcode != "fusion" {
            return elementwise(instruction.opcode);
        }
        let inside = instruction.called.first().and_then(|&callee| self.computation(callee));
        let mut work = 0;
        for (_, inner) in inside.into_iter().flat_map(|inside| self.instructions_of(inside)) {
            match inner.opcode {
                "parameter" | "constant" | "bitcast" | "broadcast" => {}
                opcode if elementwise(opcode) => work += 1,
                _ => return false,
            }
        }
        work == 1
    }

    /// Bytes of tiles that no element fills, of everything that an instruction reads and writes.
    pub fn padding_bytes(&self, instruction: &Instruction<'a>) -> u64 {
        let padding = |shape: &Shape| shape.array_bytes().saturating_sub(shape.unpadded_bytes());
        let read = self.operands(instruction).map(|operand| padding(&operand.shape));
        read.fold(padding(&instruction.shape), u64::saturating_add)
    }
}

/// The movement that an asynchronous copy starts: its result holds the target and the source.
fn started(start: &Instruction<'_>) -> Option<Movement> {
    let (to, from) = (start.shape.parts.first()?, start.shape.parts.get(1)?);
    (start.opcode == "copy-start").then(|| of_copy(from, to))
}

fn of_copy(from: &Shape, to: &Shape) -> Movement {
    let spaces = (from.memory_space(), to.memory_space());
    if spaces.0 != spaces.1 {
        return Movement::Between { from: spaces.0, to: spaces.1 };
    }
    let order = |shape: &Shape| {
        shape.layout.as_ref().map(|layout| (layout.minor_to_major.clone(), layout.tiles.clone()))
    };
    if order(from) == order(to) { Movement::Duplicate } else { Movement::Relayout }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{ElementType, Layout};

    fn shape(order: &[i64], space: i64) -> Shape {
        let layout = Layout { minor_to_major: order.to_vec(), memory_space: space, ..Layout::default() };
        Shape {
            element: ElementType::F32,
            dims: vec![8, 4],
            layout: Some(Box::new(layout)),
            ..Shape::default()
        }
    }

    #[test]
    fn a_copy_is_told_by_spaces_first_then_by_the_order_of_elements() {
        let usual = shape(&[1, 0], 0);
        assert_eq!(of_copy(&usual, &shape(&[1, 0], 0)), Movement::Duplicate);
        assert_eq!(of_copy(&usual, &shape(&[0, 1], 0)), Movement::Relayout);
        let out = of_copy(&usual, &shape(&[0, 1], HOST_SPACE));
        assert_eq!(out, Movement::Between { from: 0, to: HOST_SPACE });
        assert!(out.is_with_host() && !out.is_within());
        assert!(!of_copy(&usual, &shape(&[1, 0], 1)).is_with_host(), "on the chip");
    }
}
