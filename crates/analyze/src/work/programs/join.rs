//! Joins what ran with the programs: finds each instruction, its cost, and how often it ran.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_hlo::{InstructionId, Module};
use stepscope_trace::Dur;

use super::described::Described;
use super::executed::{Executed, ProgramRef, Stated, Tally};
use super::memory::peak_of;
use super::modules::{ModuleBytes, modules};
use super::unnamed;
use super::{OpEntry, OpFacts, OpTotals, ProgramFacts, ProgramKey, ProgramsPartial};
use crate::context::Context;
use crate::vocabulary::names::hlo_opcode;
use crate::window::Windows;

/// What ran of a program by instruction, and how often it ran.
type Ran = (FxHashMap<String, Tally>, u64);

/// What ran, sorted by the programs of the trace.
struct Sorted<'t> {
    /// The programs in the order of the file, each with what ran of it and how often it ran; `None` if it did not.
    modules: Vec<(ModuleBytes<'t>, Option<Ran>)>,
    /// What belongs to none of them.
    rest: Executed,
}

impl<'t> Sorted<'t> {
    fn of(context: &Context<'t>, windows: &Windows) -> Self {
        let mut executed = Executed::of(context, windows);
        let found = modules(context.trace);
        let kernels = std::mem::take(&mut executed.unnamed);
        unnamed::assign(context, &found, &mut executed, kernels);
        let sorted = found.iter().map(|module| (*module, ran_of(context, &found, module, &mut executed)));
        Sorted { modules: sorted.collect(), rest: executed }
    }
}

/// What ran of a program is taken out of everything that ran.
fn ran_of(
    context: &Context,
    found: &[ModuleBytes<'_>],
    module: &ModuleBytes<'_>,
    executed: &mut Executed,
) -> Option<Ran> {
    let refers = |program: &ProgramRef| match program {
        ProgramRef::Number(number) => *number == module.program_id,
        ProgramRef::Name(name) => is_only(found, context.trace.str(*name), module),
        ProgramRef::Unknown => false,
    };
    let programs: Vec<ProgramRef> = executed.ops.keys().copied().filter(|program| refers(program)).collect();
    let mut tallies: FxHashMap<String, Tally> = FxHashMap::default();
    let mut runs = 0;
    for program in &programs {
        runs += executed.runs.remove(program).map_or(0, |runs| runs.len() as u64);
        for (op, tally) in executed.ops.remove(program).unwrap_or_default() {
            tallies.entry(op).or_default().add(tally);
        }
    }
    (!programs.is_empty()).then_some((tallies, runs))
}

pub(super) fn join(context: &Context, windows: &Windows) -> ProgramsPartial {
    let Sorted { modules, rest } = Sorted::of(context, windows);
    let mut partial = ProgramsPartial::default();
    for (module, ran) in modules {
        let Some((tallies, runs)) = ran else {
            let instructions = Module::instructions_in(module.bytes);
            let facts = ProgramFacts { has_module: true, instructions, ..ProgramFacts::default() };
            partial.programs.insert(module.key(), facts);
            continue;
        };
        add_program(&mut partial, module.key(), &module, tallies, runs);
    }
    add_strangers(context, &mut partial, rest);
    partial
}

/// The time in each program of the trace that ran, without reading any of them.
pub(super) fn times(context: &Context) -> BTreeMap<ProgramKey, Dur> {
    let sorted = Sorted::of(context, &Windows::of(context));
    let time = |tallies: &FxHashMap<String, Tally>| tallies.values().map(|tally| tally.own).sum::<Dur>();
    let ran = sorted.modules.iter().filter_map(|(module, ran)| Some((module.key(), time(&ran.as_ref()?.0))));
    ran.filter(|(_, time)| *time > Dur::ZERO).collect()
}

/// Whether a name means this module and no other.
fn is_only(found: &[ModuleBytes<'_>], name: &str, module: &ModuleBytes<'_>) -> bool {
    name == module.name && found.iter().filter(|other| other.name == name).count() == 1
}

/// Programs that ran, but are not in the profile.
fn add_strangers(context: &Context, partial: &mut ProgramsPartial, executed: Executed) {
    for (program, tallies) in executed.ops {
        let key = match program {
            ProgramRef::Number(number) => ProgramKey { name: String::new(), id: Some(number) },
            ProgramRef::Name(name) => ProgramKey { name: context.trace.str(name).to_owned(), id: None },
            ProgramRef::Unknown => ProgramKey { name: String::new(), id: None },
        };
        let runs = executed.runs.get(&program).map_or(0, |runs| runs.len() as u64);
        let time = tallies.values().fold(Dur::ZERO, |sum, tally| sum + tally.own);
        partial.programs.insert(key.clone(), ProgramFacts { runs, time, ..ProgramFacts::default() });
        let ops = partial.ops.entry(key).or_default();
        for (op, tally) in tallies {
            ops.insert(op.clone(), stranger(&op, &tally));
        }
    }
}

/// An instruction that no program holds.
fn stranger(op: &str, tally: &Tally) -> OpEntry {
    let opcode = hlo_opcode(op).to_owned();
    let facts = OpFacts { category: opcode.clone(), opcode, ..OpFacts::default() };
    OpEntry { facts, totals: totals(tally, most_of_a_kind(tally)) }
}

/// Executions if each runs any number of different kernels, but none twice.
fn most_of_a_kind(tally: &Tally) -> u64 {
    if tally.kernels { tally.by_kind.values().copied().max().unwrap_or(0) } else { tally.events }
}

fn totals(tally: &Tally, executions: u64) -> OpTotals {
    let Tally { events, total, own, background, matched, .. } = *tally;
    OpTotals { executions, events, total, own, background, matched }
}

fn add_program(
    partial: &mut ProgramsPartial,
    key: ProgramKey,
    bytes: &ModuleBytes<'_>,
    tallies: FxHashMap<String, Tally>,
    runs: u64,
) {
    let Some(module) = Module::read(bytes.bytes) else {
        let ops = tallies.iter().map(|(op, tally)| (op.clone(), stranger(op, tally))).collect();
        partial.ops.insert(key.clone(), ops);
        partial.programs.insert(key, ProgramFacts { runs, ..ProgramFacts::default() });
        return;
    };
    let (program, peak) = rayon::join(|| Described::of(&module), || peak_of(&module));
    let usual = usual_executions(&program, &tallies);
    let mut ops = BTreeMap::new();
    let mut facts = ProgramFacts {
        has_module: true,
        instructions: module.instructions.len() as u64,
        runs,
        time: Dur::ZERO,
        cost_once: program.costs.total(),
        peak,
        trains: program.phases.trains,
    };
    let mut most = 0;
    for (op, tally) in tallies {
        facts.time += tally.own;
        let Some(id) = program.find(&op) else {
            ops.insert(op.clone(), stranger(&op, &tally));
            continue;
        };
        let executions = executions(&program, id, &tally, &usual);
        if program.is_outermost(id) {
            most = most.max(executions);
        }
        let mut entry = OpEntry { facts: program.facts(id), totals: totals(&tally, executions) };
        if let Some(Stated { flops, bytes, main_bytes }) = tally.stated {
            entry.facts.cost = stated(entry.facts.cost, flops, bytes);
            entry.facts.stated_main_bytes = main_bytes;
        }
        ops.insert(op, entry);
    }
    if facts.runs == 0 {
        facts.runs = most;
    }
    partial.programs.insert(key.clone(), facts);
    partial.ops.insert(key, ops);
}

/// The cost that the profile states, which knows the hardware. The split by unit stays what the program says.
fn stated(own: stepscope_hlo::Cost, flops: u64, bytes: u64) -> stepscope_hlo::Cost {
    let mut cost = own;
    cost.bytes = bytes;
    cost.unknown_bytes = 0;
    if own.flops() != flops {
        cost.unknown_flops = 0;
        match own.matrix_type() {
            Some(kind) => {
                cost.matrix = Default::default();
                cost.matrix[kind as usize] = flops;
                cost.vector = 0;
            }
            None => cost.vector = flops,
        }
    }
    cost
}

/// How often the instructions of each computation ran, as those that run one kernel each say: most of them agree.
fn usual_executions(program: &Described<'_, '_>, tallies: &FxHashMap<String, Tally>) -> FxHashMap<u32, u64> {
    let mut counts: FxHashMap<u32, FxHashMap<u64, u64>> = FxHashMap::default();
    for (op, tally) in tallies.iter().filter(|(_, tally)| tally.kernels) {
        let Some(instruction) = program.find(op).and_then(|id| program.module.instruction(id)) else {
            continue;
        };
        if instruction.opcode == "fusion" && tally.by_kind.len() == 1 {
            *counts.entry(instruction.computation).or_default().entry(tally.events).or_default() += 1;
        }
    }
    let most = |seen: FxHashMap<u64, u64>| seen.into_iter().max_by_key(|&(count, times)| (times, count));
    counts.into_iter().filter_map(|(computation, seen)| Some((computation, most(seen)?.0))).collect()
}

/// Executions of an instruction. A library call runs several kernels per execution, the same one twice at times.
fn executions(
    program: &Described<'_, '_>,
    id: InstructionId,
    tally: &Tally,
    usual: &FxHashMap<u32, u64>,
) -> u64 {
    let most = most_of_a_kind(tally);
    let computation = program.module.instruction(id).map(|instruction| instruction.computation);
    match computation.and_then(|computation| usual.get(&computation)) {
        Some(&usual) if tally.kernels && usual > 0 && most.is_multiple_of(usual) => usual,
        _ => most,
    }
}
