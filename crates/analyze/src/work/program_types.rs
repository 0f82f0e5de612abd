//! The number types of XLA's programs. XLA attaches its programs to a recording; of all that they contain, only the types of
//! products and parameters are read. PyTorch records the types of an op's inputs, if asked. On a processor, XLA may convert parameters of 16 bits and multiply in 32.

use stepscope_trace::{Trace, TrackKind, Value};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::vocabulary::is_dense;

/// Partial result: how many products and parameters of each type the attached programs have.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProgramTypes {
    /// float64.
    pub double: u64,
    /// float32.
    pub single: u64,
    /// bfloat16 and float16.
    pub half: u64,
    /// Parameters of bfloat16 and float16.
    pub half_parameters: u64,
    /// Parameters of float32 and float64.
    pub other_parameters: u64,
}

/// Bytes of programs that are read: those of large models repeat their layers.
const MOST_BYTES: usize = 64 << 20;

/// Ops that are looked at: those of later steps repeat them.
const MOST_OPS: usize = 2_000;

/// Fields on the way from a program to the type of an instruction's result, and the numbers of types.
const MODULE: u64 = 1;
const COMPUTATIONS: u64 = 3;
const SIGNATURE: u64 = 4;
const PARAMETERS: u64 = 1;
const INSTRUCTIONS: u64 = 2;
const OPCODE: u64 = 2;
const SHAPE: u64 = 3;
const ELEMENT_TYPE: u64 = 2;
const F16: u64 = 10;
const F32: u64 = 11;
const F64: u64 = 12;
const BF16: u64 = 16;

impl Analysis for ProgramTypes {
    type Output = Self;

    /// Reads the programs of a trace; without any, the types of PyTorch's products, which `record_shapes=True` records.
    fn of(context: &Context) -> Self {
        let found = ProgramTypes::of_programs(context.trace);
        if found == ProgramTypes::default() { ProgramTypes::of_ops(context.trace) } else { found }
    }

    /// Adds another host.
    fn merge(&mut self, other: ProgramTypes) {
        self.double += other.double;
        self.single += other.single;
        self.half += other.half;
        self.half_parameters += other.half_parameters;
        self.other_parameters += other.other_parameters;
    }

    fn finish(self) -> Self {
        self
    }
}

impl ProgramTypes {
    fn of_ops(trace: &Trace) -> Self {
        let mut found = ProgramTypes::default();
        let Some(key) = trace.strings().find("Input type") else { return found };
        let products = trace.kinds_where(|kind| {
            let name = trace.kind_name(kind);
            name.starts_with("aten::") && is_dense(name)
        });
        let threads = trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread);
        let events =
            threads.flat_map(|track| track.events_of(&products).map(move |(index, _)| (track, index)));
        for (track, index) in events.take(MOST_OPS) {
            trace.args_at(track, index).visit(|name, value| {
                if let (true, Value::Json(types) | Value::Str(types)) = (name == key, value) {
                    found.add_first(&types);
                }
            });
        }
        found
    }

    /// Counts an op by its first input of a floating-point type.
    fn add_first(&mut self, types: &str) {
        for word in types.split(|c: char| !c.is_ascii_alphanumeric()) {
            match word {
                "double" => self.double += 1,
                "float" => self.single += 1,
                "BFloat16" | "Half" => self.half += 1,
                _ => continue,
            }
            return;
        }
    }

    fn of_programs(trace: &Trace) -> Self {
        let (mut found, mut left) = (ProgramTypes::default(), MOST_BYTES);
        for (_, args) in trace.attachments() {
            args.visit(|key, value| {
                let proto = matches!(trace.str(key), "Hlo Proto" | "hlo_proto");
                if let (true, Value::Bytes(bytes)) = (proto, &value)
                    && bytes.len() <= left
                {
                    left -= bytes.len();
                    found.read(bytes);
                }
            });
        }
        found
    }

    fn read(&mut self, program: &[u8]) {
        for module in parts(program, MODULE) {
            for computation in parts(module, COMPUTATIONS) {
                parts(computation, INSTRUCTIONS).for_each(|instruction| self.add(instruction));
            }
            for parameter in parts(module, SIGNATURE).flat_map(|signature| parts(signature, PARAMETERS)) {
                match element(parameter) {
                    Some(F64 | F32) => self.other_parameters += 1,
                    Some(F16 | BF16) => self.half_parameters += 1,
                    _ => {}
                }
            }
        }
    }

    fn add(&mut self, instruction: &[u8]) {
        let product = |opcode: &[u8]| matches!(opcode, b"dot" | b"convolution");
        if !parts(instruction, OPCODE).any(product) {
            return;
        }
        match parts(instruction, SHAPE).find_map(element) {
            Some(F64) => self.double += 1,
            Some(F32) => self.single += 1,
            Some(F16 | BF16) => self.half += 1,
            _ => {}
        }
    }
}

/// The type of a shape's elements.
fn element(shape: &[u8]) -> Option<u64> {
    Fields(shape).find_map(|field| match field {
        (ELEMENT_TYPE, Field::Number(number)) => Some(number),
        _ => None,
    })
}

/// A field's value.
enum Field<'b> {
    Number(u64),
    Part(&'b [u8]),
}

/// The fields of a message, until it ends or breaks.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let (part, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(part)
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (u64, Field<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Part(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Field::Part(self.take(length)?)
            }
            5 => Field::Part(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

/// The messages and strings in a field of a message.
fn parts(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    Fields(message).filter_map(move |(number, field)| match field {
        Field::Part(part) if number == wanted => Some(part),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8][..], bytes].concat()
    }

    /// A program with one instruction.
    fn program(opcode: &str, element: u64) -> Vec<u8> {
        let shape = part(3, &[2 << 3, element as u8]);
        let instruction = [part(1, b"x"), part(2, opcode.as_bytes()), shape].concat();
        part(1, &part(3, &part(2, &instruction)))
    }

    #[test]
    fn products_are_counted_by_type() {
        let mut found = ProgramTypes::default();
        for (opcode, element) in [("dot", F64), ("dot", BF16), ("convolution", F32), ("add", F64)] {
            found.read(&program(opcode, element));
        }
        found.read(&part(1, &part(4, &part(1, &[2 << 3, BF16 as u8]))));
        let want =
            ProgramTypes { double: 1, single: 1, half: 1, half_parameters: 1, ..ProgramTypes::default() };
        assert_eq!(found, want);
    }

    #[test]
    fn the_first_floating_point_input_of_a_product_counts() {
        let mut found = ProgramTypes::default();
        for types in [
            r#"["double","double","Scalar"]"#,
            r#"["float","float"]"#,
            r#"["c10::BFloat16","float"]"#,
            r#"["long int","Scalar"]"#,
        ] {
            found.add_first(types);
        }
        assert_eq!(found, ProgramTypes { double: 1, single: 1, half: 1, ..ProgramTypes::default() });
    }

    #[test]
    fn broken_programs_are_read_as_far_as_they_go() {
        let whole = program("dot", F64);
        for end in 0..whole.len() {
            let mut found = ProgramTypes::default();
            found.read(&whole[..end]);
            assert_eq!(found, ProgramTypes::default(), "{end}");
        }
    }
}
