//! Programs as text, and the neighbours of one instruction.

use stepscope_hlo::{InstructionId, Module, TextOptions};

use super::ProgramKey;
use super::card::stack;
use super::join::times;
use super::modules::{ModuleBytes, modules};
use crate::context::Context;

/// Which program, and which instruction of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Name of the program, its number, or `name(number)`; the one with the most time without it.
    pub program: Option<String>,
    /// Name of an instruction; the whole program without it.
    pub op: Option<String>,
    /// With `%`, signatures and origins.
    pub long: bool,
    /// How far from the instruction to go.
    pub radius: usize,
}

/// A program or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The program.
    pub program: ProgramKey,
    /// HLO text.
    pub text: String,
    /// Stack of the instruction, innermost first: `file:line (function)`.
    pub stack: Vec<String>,
    /// Names that were looked for and are missing; the closest that exist.
    pub missing: Option<Vec<String>>,
}

/// Names that are suggested for a missing one.
const SUGGESTED: usize = 8;

/// Finds what is wanted; `None` if the trace has no programs.
pub fn show(context: &Context, wanted: &Wanted) -> Option<Shown> {
    let found = modules(context.trace);
    let times = times(context);
    let time = |key: &ProgramKey| times.get(key).copied().unwrap_or_default();
    let key = |index: usize| found.get(index).map(ModuleBytes::key);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(key(index).map(|key| time(&key))));
    let fits = |index: &&usize| match (&wanted.program, key(**index)) {
        (None, _) => true,
        (Some(name), Some(key)) => {
            let id = key.id.unwrap_or(0);
            key.name == *name || id.to_string() == *name || format!("{}({id})", key.name) == *name
        }
        _ => false,
    };
    let Some(&index) = order.iter().find(fits) else {
        let names = order.iter().filter_map(|&index| key(index)).map(|key| key.name).take(SUGGESTED);
        return (!found.is_empty()).then(|| Shown { missing: Some(names.collect()), ..Shown::default() });
    };
    let module = Module::read(found.get(index)?.bytes)?;
    let mut shown = Shown { program: key(index)?, ..Shown::default() };
    let options = TextOptions { long: wanted.long };
    let Some(op) = &wanted.op else {
        shown.text = module.text(options);
        return Some(shown);
    };
    match module.named(op.trim_start_matches('%')) {
        None => {
            let close = module.instructions.iter().map(|instruction| instruction.name);
            let close = close.filter(|name| name.contains(op.as_str()) || op.contains(*name));
            shown.missing = Some(close.take(SUGGESTED).map(str::to_owned).collect());
        }
        Some(id) => {
            shown.text = around(&module, id, wanted.radius, options);
            shown.stack = module.instruction(id).map(|made| stack(&module, made)).unwrap_or_default();
        }
    }
    Some(shown)
}

/// The instruction with its operands and users up to a distance, in the order of the program, and what it calls.
fn around(module: &Module<'_>, id: InstructionId, radius: usize, options: TextOptions) -> String {
    let shown = module.neighbourhood(id, radius).nodes.into_iter().map(|(number, _)| number);
    let mut out = String::new();
    for number in shown {
        let Some(instruction) = module.instruction(number) else { continue };
        out.push_str(if number == id { "> " } else { "  " });
        out.push_str(&module.line(instruction, options));
        out.push('\n');
    }
    let called = module.instruction(id).map_or(&[][..], |instruction| &instruction.called);
    for computation in called.iter().filter_map(|&callee| module.computation(callee)) {
        out.push_str(&format!("\n{}:\n", computation.name));
        for (_, instruction) in module.instructions_of(computation) {
            out.push_str(&format!("  {}\n", module.line(instruction, options)));
        }
    }
    out
}
