//! Everything that a program says about one of its instructions, and its neighbours on a plane.

use stepscope_hlo::{
    Cost, Costs, Drawing, Instruction, InstructionId, Module, Neighbourhood, Phases, TextOptions,
};
use stepscope_hlo::{label, scope};
use stepscope_trace::{Args, Trace, Track, Value};

use super::ProgramKey;
use super::modules::{ModuleBytes, modules};
use crate::vocabulary::names::hlo_name;

/// One instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// The program.
    pub program: ProgramKey,
    /// Its name.
    pub op: String,
    /// Its kind.
    pub opcode: String,
    /// The kind of work.
    pub category: String,
    /// The framework's name.
    pub label: String,
    /// The user's scopes.
    pub scope: String,
    /// The line of source.
    pub source: String,
    /// Places from the innermost call outwards: `file:line (function)`.
    pub stack: Vec<String>,
    /// Forward, backward, recomputation or optimizer; `None` if the program does not train.
    pub phase: Option<&'static str>,
    /// The line of text.
    pub text: String,
    /// Lines of what it calls.
    pub inside: Vec<String>,
    /// One execution.
    pub cost: Cost,
    /// Factors of the operations of its product: what, and how many.
    pub formula: Vec<(&'static str, u64)>,
}

/// Lines of a called computation that are kept.
const MOST_INSIDE: usize = 200;

/// The instruction of a program; `None` if there is no such one.
pub fn card(trace: &Trace, program: u64, op: &str) -> Option<Card> {
    of_module(modules(trace).iter().find(|module| module.program_id == program)?, op)
}

/// The instruction behind an event; `None` if it runs none, or if its program is not in the trace.
pub fn card_of_event(trace: &Trace, track: &Track, index: usize) -> Option<Card> {
    let find = |key: &str| trace.strings().find(key);
    let keys = (find("hlo_op"), find("program_id"), find("hlo_module"), find("hlo_category"));
    let (mut op, mut number, mut name, mut tpu) = (None, None, None, false);
    let args: Args<'_> = trace.args_at(track, index);
    args.visit(|key, value| {
        let key = Some(key);
        match value {
            Value::Str(text) if key == keys.0 => op = Some(text.into_owned()),
            Value::Str(text) if key == keys.2 => name = Some(text.into_owned()),
            _ if key == keys.3 => tpu = true,
            value if key == keys.1 => number = value.as_u64(),
            _ => {}
        }
    });
    if tpu {
        op = Some(hlo_name(trace.kind_name(track.kind_of(index))).to_owned());
    }
    let op = op?;
    let found = modules(trace);
    let same_name = || found.iter().filter(|module| Some(module.name) == name.as_deref());
    let module = match number {
        Some(number) => found.iter().find(|module| module.program_id == number)?,
        None if same_name().count() == 1 => same_name().next()?,
        None => return None,
    };
    of_module(module, op.rsplit("::").next().unwrap_or(&op))
}

fn of_module(bytes: &ModuleBytes<'_>, op: &str) -> Option<Card> {
    let module = Module::read(bytes.bytes)?;
    let id = module.named(op)?;
    let instruction = module.instruction(id)?;
    let phases = Phases::of(&module);
    let options = TextOptions { long: false };
    let called = instruction.called.first().and_then(|&callee| module.computation(callee));
    let inner = called.into_iter().flat_map(|called| module.instructions_of(called));
    let inside = inner.take(MOST_INSIDE).map(|(_, inner)| module.line(inner, options).trim().to_owned());
    Some(Card {
        program: ProgramKey { name: bytes.name.to_owned(), id: Some(bytes.program_id) },
        op: op.to_owned(),
        opcode: instruction.opcode.to_owned(),
        category: module.category(instruction),
        label: label(instruction.op_name),
        scope: scope(instruction.op_name),
        source: module.source(instruction).map(|source| source.to_string()).unwrap_or_default(),
        stack: stack(&module, instruction),
        phase: phases.trains.then(|| phases.of_instruction(id).name()),
        text: module.line(instruction, options).trim().to_owned(),
        inside: inside.collect(),
        cost: Costs::of(&module).instruction(id),
        formula: formula(&module, instruction),
    })
}

pub(super) fn stack(module: &Module<'_>, instruction: &Instruction<'_>) -> Vec<String> {
    let place = |source: stepscope_hlo::Source<'_>| match source.function {
        "" => source.to_string(),
        function => format!("{source} ({function})"),
    };
    module.stack(instruction).into_iter().map(place).collect()
}

/// Factors of a product: its own, or that of the product inside.
fn formula(module: &Module<'_>, instruction: &Instruction<'_>) -> Vec<(&'static str, u64)> {
    let own = (instruction.opcode == "dot").then_some(instruction);
    let called = instruction.called.first().and_then(|&callee| module.computation(callee));
    let inside =
        || called.and_then(|called| module.instructions_of(called).find(|(_, inner)| inner.opcode == "dot"));
    let Some(dot) = own.or_else(|| inside().map(|(_, inner)| inner)) else { return Vec::new() };
    let (Some(dims), Some(left)) = (dot.dot_dims(), module.operand(dot, 0)) else { return Vec::new() };
    let contracted = dims.lhs_contracting.iter().map(|&dim| left.shape.dim(dim)).fold(1, u64::saturating_mul);
    vec![
        ("multiply and add", 2),
        ("elements of the result", dot.shape.elements()),
        ("terms of each", contracted),
    ]
}

/// A neighbourhood as a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The program.
    pub program: ProgramKey,
    /// Boxes in the order of [`Drawing::nodes`].
    pub nodes: Vec<GraphNode>,
    /// Where boxes and lines are.
    pub drawing: Drawing,
}

/// A box of the picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphNode {
    /// The instruction.
    pub op: String,
    /// Its kind.
    pub opcode: String,
    /// Its shape, without the layout.
    pub shape: String,
    /// The framework's name.
    pub label: String,
    /// How far it is from the one in the middle.
    pub distance: usize,
    /// It has neighbours that are not shown.
    pub cut: bool,
}

/// Letters of the longest name in a box, and pixels per letter.
const LONGEST: usize = 30;
const LETTER: f64 = 7.2;

/// The neighbours of an instruction up to a distance, laid out; `None` if there is no such one.
pub fn graph(trace: &Trace, program: u64, op: &str, radius: usize) -> Option<Graph> {
    let found = modules(trace);
    let bytes = found.iter().find(|module| module.program_id == program)?;
    let module = Module::read(bytes.bytes)?;
    let around: Neighbourhood = module.neighbourhood(module.named(op)?, radius);
    let node = |(place, &(id, distance)): (usize, &(InstructionId, usize))| {
        let Some(instruction) = module.instruction(id) else { return GraphNode::default() };
        GraphNode {
            op: instruction.name.to_owned(),
            opcode: instruction.opcode.to_owned(),
            shape: instruction.shape.without_layout(),
            label: label(instruction.op_name),
            distance,
            cut: around.cut.contains(&place),
        }
    };
    let nodes: Vec<GraphNode> = around.nodes.iter().enumerate().map(node).collect();
    let letters = |node: usize| {
        nodes.get(node).map_or(0, |node| node.op.chars().count().max(node.shape.chars().count()).min(LONGEST))
    };
    let drawing = around.draw(|node| 24.0 + LETTER * letters(node) as f64);
    let program = ProgramKey { name: bytes.name.to_owned(), id: Some(bytes.program_id) };
    Some(Graph { program, nodes, drawing })
}
