//! A program with everything that its instructions are asked for: cost, origin, phase, and what each moves.

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_hlo::{
    Costs, Instruction, InstructionId, Module, Phases, Users, collective_kind, label, scope,
};

use super::{Exchange, OnChip, OpFacts};

/// Operands that are followed to find where an instruction without a name comes from.
const FOLLOWED: usize = 8;

/// A module with everything that its instructions are asked for.
pub(super) struct Described<'m, 'a> {
    pub module: &'m Module<'a>,
    pub costs: Costs,
    pub phases: Phases,
    by_name: FxHashMap<&'a str, InstructionId>,
    users: Users,
    /// Computations that decide whether a loop goes on.
    conditions: FxHashSet<u32>,
}

impl<'m, 'a> Described<'m, 'a> {
    pub fn of(module: &'m Module<'a>) -> Self {
        let by_name =
            module.instructions.iter().zip(0..).map(|(instruction, id)| (instruction.name, id)).collect();
        let loops = module.instructions.iter().filter(|instruction| instruction.opcode == "while");
        let conditions = loops.filter_map(|each| each.called.get(1).copied()).collect();
        let (costs, (phases, users)) =
            rayon::join(|| Costs::of(module), || (Phases::of(module), Users::of(module)));
        Described { module, costs, phases, by_name, users, conditions }
    }

    pub fn find(&self, op: &str) -> Option<InstructionId> {
        self.by_name.get(op).copied()
    }

    pub fn is_outermost(&self, id: InstructionId) -> bool {
        self.module
            .instruction(id)
            .is_some_and(|instruction| Some(instruction.computation) == self.module.entry)
    }

    pub fn facts(&self, id: InstructionId) -> OpFacts {
        let Some(instruction) = self.module.instruction(id) else { return OpFacts::default() };
        let named = self.origin(id, instruction);
        let movement = self.module.movement(instruction);
        let moved = movement.and_then(|_| self.module.moved(instruction));
        OpFacts {
            opcode: instruction.opcode.to_owned(),
            category: self.module.category(instruction),
            label: label(named.op_name),
            scope: scope(named.op_name),
            source: self.module.source(named).map(|source| source.to_string()).unwrap_or_default(),
            phase: self.phases.of_instruction(id),
            cost: self.costs.instruction(id),
            link_bytes: self.module.collective(instruction).and_then(|collective| collective.link_bytes),
            container: self.module.is_container(instruction),
            known: true,
            movement,
            moved_bytes: moved.map_or(0, |shape| shape.array_bytes()),
            shape: moved.map(ToString::to_string).unwrap_or_default(),
            fusable_bytes: self.fusable_bytes(id, instruction),
            padding_bytes: self.module.padding_bytes(instruction),
            on_chip: OnChip::of(self.module, instruction),
            stated_main_bytes: None,
            in_condition: self.conditions.contains(&instruction.computation),
            exchange: self.exchange(instruction),
        }
    }

    /// Whether and how a collective can overlap with other work.
    fn exchange(&self, instruction: &Instruction<'a>) -> Option<Exchange> {
        if collective_kind(instruction.opcode).is_some() {
            return Some(match instruction.opcode.ends_with("-start") {
                true if !self.is_synchronous(instruction) => Exchange::Start,
                _ => Exchange::Whole,
            });
        }
        let start = instruction.opcode.ends_with("-done").then(|| self.module.operand(instruction, 0))??;
        self.module.collective(start).map(|_| Exchange::Done)
    }

    /// GPUs mark collectives that are split into start and done, but do not overlap.
    fn is_synchronous(&self, instruction: &Instruction<'a>) -> bool {
        let config = self.module.config(instruction);
        config.windows(SYNCHRONOUS.len()).any(|part| part == SYNCHRONOUS)
    }

    /// Bytes that one execution would not touch if elementwise operations in a row were one: what it reads of others that
    /// stand alone, and what it writes for those alone.
    fn fusable_bytes(&self, id: InstructionId, instruction: &Instruction<'a>) -> u64 {
        let alone = |instruction: &Instruction<'a>| self.module.is_unfused(instruction);
        if !alone(instruction) {
            return 0;
        }
        let elements = instruction.shape.all_elements();
        let fits = |other: &Instruction<'a>| alone(other) && other.shape.all_elements() == elements;
        let read = self.module.operands(instruction).filter(|operand| fits(operand));
        let read = read.fold(0, |sum: u64, operand| sum.saturating_add(operand.shape.array_bytes()));
        let users = self.users.get(id);
        let user = |&user: &InstructionId| self.module.instruction(user);
        let only_those = !users.is_empty() && users.iter().filter_map(user).all(fits);
        read.saturating_add(if only_those { instruction.shape.array_bytes() } else { 0 })
    }

    /// The instruction that says where this one comes from: itself; the most expensive one inside; or what it works on.
    fn origin(&self, id: InstructionId, instruction: &'m Instruction<'a>) -> &'m Instruction<'a> {
        let says = |instruction: &Instruction<'_>| !instruction.op_name.is_empty();
        if says(instruction) {
            return instruction;
        }
        let inside = instruction.called.first().and_then(|&callee| self.module.computation(callee));
        let inside = inside.filter(|_| instruction.opcode == "fusion");
        let named = inside.into_iter().flat_map(|inside| self.module.instructions_of(inside));
        let named = named.filter(|(_, inner)| says(inner));
        if let Some((_, inner)) = named.max_by_key(|(id, _)| self.costs.instruction(*id).flops()) {
            return inner;
        }
        let mut next = self.module.instruction(id);
        for _ in 0..FOLLOWED {
            next = next.and_then(|instruction| self.module.operand(instruction, 0));
            match next {
                Some(operand) if says(operand) => return operand,
                Some(_) => {}
                None => break,
            }
        }
        instruction
    }
}

const SYNCHRONOUS: &[u8] = b"\"is_sync\":true";
