//! Bytes of an `HloProto` → [`Module`]. Damage keeps what came before it.

use rustc_hash::FxHashMap;

use crate::fields::{Fields, Value, fields, last, numbers};
use crate::frames::Frames;
use crate::module::{Alias, Computation, ComputationId, Instruction, InstructionId, Module};
use crate::schema::{computation, instruction, layout, metadata, module, proto, shape};
use crate::shape::{ElementType, Layout, Shape};

/// Tuples within tuples that are followed. Real programs have three.
const DEEPEST_SHAPE: usize = 32;

impl<'a> Module<'a> {
    /// Reads the `HloProto` in `bytes`. `None` if no module is in it.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut found = None;
        let mut buffers = &[][..];
        let mut damage = None;
        let mut outer = fields(bytes);
        for (number, value) in &mut outer {
            match (number, value) {
                (proto::MODULE, Value::Bytes(message)) => found = Some(message),
                (proto::BUFFER_ASSIGNMENT, Value::Bytes(message)) => buffers = message,
                _ => {}
            }
        }
        damage = damage.or(outer.damage);
        let mut module = read_module(found?);
        module.buffers = buffers;
        module.damage = module.damage.or(damage);
        (!module.instructions.is_empty() || !module.name.is_empty()).then_some(module)
    }

    /// The name of the module in `bytes`, without reading the rest.
    pub fn name_in(bytes: &'a [u8]) -> Option<&'a str> {
        let (_, message) = fields(bytes).find(|(number, _)| *number == proto::MODULE)?;
        fields(message.bytes()).find(|(number, _)| *number == module::NAME).map(|(_, value)| value.text())
    }
}

impl Module<'_> {
    /// Number of instructions of the program in `bytes`, without reading them.
    pub fn instructions_in(bytes: &[u8]) -> u64 {
        let Some((_, message)) = fields(bytes).find(|(number, _)| *number == proto::MODULE) else { return 0 };
        let computations = fields(message.bytes()).filter(|(number, _)| *number == module::COMPUTATIONS);
        let count = |(_, value): (u32, Value<'_>)| {
            fields(value.bytes()).filter(|(number, _)| *number == computation::INSTRUCTIONS).count() as u64
        };
        computations.map(count).sum()
    }
}

/// Parts of a module that refer to others which may come later.
#[derive(Default)]
struct Pending<'a> {
    entry_name: &'a str,
    entry_id: Option<i64>,
    schedules: Vec<&'a [u8]>,
    /// The ids of operands and of called computations, per instruction.
    references: Vec<(Vec<i64>, Vec<i64>)>,
}

fn read_module(message: &[u8]) -> Module<'_> {
    let mut read = Module::default();
    let mut pending = Pending::default();
    let mut all = fields(message);
    for (number, value) in &mut all {
        match number {
            module::NAME => read.name = value.text(),
            module::ENTRY_NAME => pending.entry_name = value.text(),
            module::COMPUTATIONS => read_computation(value.bytes(), &mut read, &mut pending),
            module::ID => read.id = value.number() as u64,
            module::ENTRY_ID => pending.entry_id = Some(value.number()),
            module::SCHEDULE => pending.schedules.push(value.bytes()),
            module::ALIASES => read.aliases.extend(read_aliases(value.bytes())),
            module::DEVICE_ASSIGNMENT => read.devices = devices(value.bytes()),
            module::FRAMES => read.frames = Frames::read(value.bytes()),
            module::PAYLOADS => read.payloads.push(value.bytes()),
            _ => {}
        }
    }
    read.damage = read.damage.or(all.damage);
    resolve(&mut read, &pending);
    read
}

fn read_computation<'a>(message: &'a [u8], read: &mut Module<'a>, pending: &mut Pending<'a>) {
    let start = read.instructions.len() as InstructionId;
    let number = read.computations.len() as ComputationId;
    let mut found = Computation::default();
    let mut all = fields(message);
    for (field, value) in &mut all {
        match field {
            computation::NAME => found.name = value.text(),
            computation::INSTRUCTIONS => {
                let (mut instruction, operands, called) = read_instruction(value.bytes(), &mut read.damage);
                instruction.computation = number;
                read.instructions.push(instruction);
                pending.references.push((operands, called));
            }
            computation::ID => found.id = value.number(),
            computation::ROOT_ID => found.root_id = value.number(),
            computation::IS_FUSION => found.is_fusion = value.number() != 0,
            _ => {}
        }
    }
    read.damage = read.damage.or(all.damage);
    found.instructions = start..read.instructions.len() as InstructionId;
    read.computations.push(found);
}

fn read_instruction<'a>(
    message: &'a [u8],
    damage: &mut Option<stepscope_wire::Broken>,
) -> (Instruction<'a>, Vec<i64>, Vec<i64>) {
    let mut found = Instruction { raw: message, ..Instruction::default() };
    let (mut operands, mut called) = (Vec::new(), Vec::new());
    let mut all: Fields<'a> = fields(message);
    for (number, value) in &mut all {
        match number {
            instruction::NAME => found.name = value.text(),
            instruction::OPCODE => found.opcode = value.text(),
            instruction::SHAPE => found.shape = read_shape(value.bytes(), 0),
            instruction::METADATA => read_metadata(value.bytes(), &mut found),
            instruction::ID => found.id = value.number(),
            instruction::OPERANDS => value.append_to(&mut operands),
            instruction::CALLED => value.append_to(&mut called),
            _ => {}
        }
    }
    *damage = damage.or(all.damage);
    (found, operands, called)
}

fn read_metadata<'a>(message: &'a [u8], into: &mut Instruction<'a>) {
    for (number, value) in fields(message) {
        match number {
            metadata::OP_TYPE => into.op_type = value.text(),
            metadata::OP_NAME => into.op_name = value.text(),
            metadata::SOURCE_FILE => into.source_file = value.text(),
            metadata::SOURCE_LINE => into.source_line = value.number(),
            metadata::FRAME => into.frame = value.number(),
            _ => {}
        }
    }
}

fn read_shape(message: &[u8], depth: usize) -> Shape {
    let mut found = Shape::default();
    for (number, value) in fields(message) {
        match number {
            shape::ELEMENT_TYPE => found.element = ElementType(u8::try_from(value.number()).unwrap_or(0)),
            shape::DIMENSIONS => value.append_to(&mut found.dims),
            shape::PARTS if depth < DEEPEST_SHAPE => found.parts.push(read_shape(value.bytes(), depth + 1)),
            shape::LAYOUT => found.layout = Some(Box::new(read_layout(value.bytes()))),
            _ => {}
        }
    }
    found
}

fn read_layout(message: &[u8]) -> Layout {
    let mut found = Layout::default();
    for (number, value) in fields(message) {
        match number {
            layout::MINOR_TO_MAJOR => value.append_to(&mut found.minor_to_major),
            layout::TILES => found.tiles.push(numbers(value.bytes(), 1)),
            layout::ELEMENT_BITS => found.element_bits = u32::try_from(value.number()).unwrap_or(0),
            layout::MEMORY_SPACE => found.memory_space = value.number(),
            _ => {}
        }
    }
    found
}

fn read_aliases(message: &[u8]) -> Vec<Alias> {
    let entries = fields(message).filter(|(number, _)| *number == 1).map(|(_, value)| value.bytes());
    let alias = |entry| Alias {
        output: numbers(entry, 1),
        parameter: last(entry, 2).map_or(0, |value| value.number()),
        part: numbers(entry, 3),
    };
    entries.map(alias).collect()
}

/// Replicas times partitions.
fn devices(message: &[u8]) -> u64 {
    let count = |number| last(message, number).map_or(0, |value| value.number()).max(0) as u64;
    count(1).saturating_mul(count(2))
}

/// Turns ids into numbers. Operands stand in the same computation; ids of different ones may be equal in damaged files.
fn resolve<'a>(read: &mut Module<'a>, pending: &Pending<'a>) {
    let computations: FxHashMap<i64, ComputationId> =
        read.computations.iter().zip(0..).map(|(computation, number)| (computation.id, number)).collect();
    let mut own: FxHashMap<i64, InstructionId> = FxHashMap::default();
    for computation in &mut read.computations {
        own.clear();
        for number in computation.instructions.clone() {
            let index = number as usize;
            let (Some(instruction), Some((operands, called))) =
                (read.instructions.get_mut(index), pending.references.get(index))
            else {
                continue;
            };
            // Only what stands before it: no walk over operands can run in a circle.
            instruction.operands = operands.iter().filter_map(|id| own.get(id).copied()).collect();
            instruction.called = called.iter().filter_map(|id| computations.get(id).copied()).collect();
            own.insert(instruction.id, number);
            read.by_id.insert(instruction.id, number);
        }
        let last =
            computation.instructions.end.checked_sub(1).filter(|_| !computation.instructions.is_empty());
        computation.root = own.get(&computation.root_id).copied().or(last);
    }
    let by_name = |name: &str| read.computations.iter().position(|computation| computation.name == name);
    read.entry = pending
        .entry_id
        .and_then(|id| computations.get(&id).copied())
        .or_else(|| by_name(pending.entry_name).map(|number| number as ComputationId))
        .or_else(|| (read.computations.len() as ComputationId).checked_sub(1));
    for message in &pending.schedules {
        read_schedule(message, &computations, read);
    }
}

fn read_schedule(message: &[u8], computations: &FxHashMap<i64, ComputationId>, read: &mut Module<'_>) {
    for (_, entry) in fields(message).filter(|(number, _)| *number == 1) {
        let id = last(entry.bytes(), 1).map_or(0, |value| value.number());
        let order = last(entry.bytes(), 2).map_or(Vec::new(), |value| numbers(value.bytes(), 1));
        if let Some(&computation) = computations.get(&id) {
            let order = order.iter().filter_map(|id| read.by_id.get(id).copied()).collect();
            read.schedule.insert(computation, order);
        }
    }
}
