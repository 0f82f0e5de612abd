//! What a fusion costs: the work of all instructions in it, the bytes of what crosses its border only.
//!
//! A parameter is read once for all users that walk over it, but a slice of it reads the slice only, and an update in place
//! touches the updated part only.

use super::{Cost, Pricing};
use crate::module::{ComputationId, Instruction, InstructionId, Module};

/// Who takes the value of an instruction: users in the order of the file, each once.
#[derive(Clone, Debug, Default)]
pub struct Users {
    /// Where the users of an instruction start.
    starts: Vec<u32>,
    users: Vec<InstructionId>,
}

impl Users {
    /// The users of all instructions of a module.
    pub fn of(module: &Module<'_>) -> Self {
        let count = module.instructions.len();
        let mut starts = vec![0u32; count + 1];
        let distinct = |instruction: &Instruction<'_>| {
            let mut operands = instruction.operands.clone();
            operands.sort_unstable();
            operands.dedup();
            operands
        };
        for instruction in &module.instructions {
            for operand in distinct(instruction) {
                starts[operand as usize + 1] += 1;
            }
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut users = vec![0; starts[count] as usize];
        for (instruction, number) in module.instructions.iter().zip(0..) {
            for operand in distinct(instruction) {
                let place = &mut next[operand as usize];
                users[*place as usize] = number;
                *place += 1;
            }
        }
        Users { starts, users }
    }

    /// The users of one instruction.
    pub fn get(&self, id: InstructionId) -> &[InstructionId] {
        let bounds = self.starts.get(id as usize).zip(self.starts.get(id as usize + 1));
        bounds.and_then(|(&start, &end)| self.users.get(start as usize..end as usize)).unwrap_or_default()
    }
}

/// One execution of a fusion.
pub(super) fn cost<'a>(pricing: Pricing<'_, 'a>, fusion: &Instruction<'a>) -> Cost {
    let Some(&callee) = fusion.called.first() else { return Cost::unknown() };
    let module = pricing.module;
    let Some(computation) = module.computation(callee) else { return Cost::unknown() };
    if fusion.fusion_kind() == "kCustom"
        && let Some((id, _)) = module
            .instructions_of(computation)
            .find(|(_, instruction)| matches!(instruction.opcode, "gather" | "scatter"))
    {
        return pricing.costs.instruction(id);
    }
    let mut cost = pricing.costs.computation(callee);
    cost.unknown_bytes = 0;
    let mut bytes = written(module, fusion, callee);
    for (id, instruction) in module.instructions_of(computation) {
        let read = match instruction.opcode {
            "parameter" => read_of_parameter(pricing, id),
            // A single number is part of the code.
            "constant" if instruction.shape.all_elements() > 1 => instruction.shape.array_bytes(),
            _ => 0,
        };
        bytes = bytes.saturating_add(read);
    }
    cost.bytes = bytes;
    cost
}

/// Bytes of the results. An update in place writes the update only.
fn written(module: &Module<'_>, fusion: &Instruction<'_>, callee: ComputationId) -> u64 {
    let Some(root) = module.root_of(callee) else { return fusion.shape.array_bytes() };
    let updated = |instruction: &Instruction<'_>| {
        (instruction.opcode == "dynamic-update-slice")
            .then(|| module.operand(instruction, 1).map(|update| update.shape.bytes()))
            .flatten()
    };
    if !fusion.shape.is_tuple() {
        return updated(root).unwrap_or_else(|| fusion.shape.bytes());
    }
    let parts = fusion.shape.parts.iter().enumerate().map(|(index, part)| {
        let source = (root.opcode == "tuple").then(|| module.operand(root, index)).flatten();
        source.and_then(updated).unwrap_or_else(|| part.array_bytes())
    });
    parts.fold(0, u64::saturating_add)
}

/// Bytes that a fusion reads of a parameter; of a tuple, those of its parts.
fn read_of_parameter(pricing: Pricing<'_, '_>, parameter: InstructionId) -> u64 {
    let module = pricing.module;
    let Some(instruction) = module.instruction(parameter) else { return 0 };
    if !instruction.shape.is_tuple() {
        return pricing.costs.read(parameter);
    }
    let is_part =
        |user: InstructionId| module.instruction(user).is_some_and(|user| user.opcode == "get-tuple-element");
    let parts = pricing.users.get(parameter).iter().filter(|&&user| is_part(user));
    parts.map(|&part| pricing.costs.read(part)).fold(0, u64::saturating_add)
}

/// Bytes that the users of a value in its computation read of it.
pub(super) fn read_bytes(pricing: Pricing<'_, '_>, value: InstructionId) -> u64 {
    let module = pricing.module;
    let Some(own) = module.instruction(value) else { return 0 };
    let all = own.shape.bytes();
    // A result that is the operand itself is read as a whole.
    let mut read_all =
        module.computation(own.computation).and_then(|computation| computation.root) == Some(value);
    let mut sum = if read_all { all } else { 0 };
    for &user in pricing.users.get(value) {
        let Some(user) = module.instruction(user) else { continue };
        let first = user.operands.first() == Some(&value);
        let read = match user.opcode {
            "slice" => user.shape.bytes(),
            "dynamic-slice" if first => user.shape.bytes(),
            "dynamic-update-slice" if first => 0,
            "broadcast" | "reshape" => all,
            "fusion" => through(pricing, user, value),
            _ if read_all => 0,
            _ => {
                read_all = true;
                all
            }
        };
        sum = sum.saturating_add(read);
    }
    sum
}

/// Bytes that a fusion within the fusion reads of `value`.
fn through(pricing: Pricing<'_, '_>, inner: &Instruction<'_>, value: InstructionId) -> u64 {
    let module = pricing.module;
    let Some(computation) = inner.called.first().and_then(|&callee| module.computation(callee)) else {
        return 0;
    };
    let position = |number: i64| usize::try_from(number).ok().and_then(|number| inner.operands.get(number));
    let parameters = module.instructions_of(computation).filter(|(_, instruction)| {
        instruction.opcode == "parameter" && position(instruction.parameter_number()) == Some(&value)
    });
    parameters.map(|(id, _)| read_of_parameter(pricing, id)).fold(0, u64::saturating_add)
}
