//! Programs: what XLA compiled, joined with what ran. Every executed instruction with its time, executions, cost, scope and
//! source line; every program with its runs, and those that never ran.
//!
//! ```text
//! modules   the programs that a trace carries
//! executed  events → instructions that ran
//! described one program: what each instruction is
//! join      both together: costs per execution, executions from kernels
//! peaks     what the devices could do at best
//! bound     the least time that an instruction can take, and what it wastes
//! levels    what crosses which level of memory
//! memory    who is live at the peak
//! show      programs as text
//! card      one instruction with its neighbours, for pages
//! groups    rows by category, scope, source line or phase
//! origins   where an op of another table comes from
//! outside   what TensorFlow runs beside its programs, and at their borders
//! usage     the share of the peak that a step reaches
//! ```
//!
//! Operations are counted by executed events, not by static trip counts: an instruction in a loop counts as often as it ran.
//! One partial result per host ([`ProgramsPartial`]), merged and finished as [`Analysis`] says.

mod bound;
mod card;
mod described;
mod executed;
mod groups;
mod join;
mod levels;
mod memory;
mod memory_picture;
mod modules;
mod origins;
mod outside;
mod peaks;
mod show;
mod unnamed;
mod usage;

use std::collections::BTreeMap;

use stepscope_trace::Dur;

use crate::analysis::Analysis;
use crate::context::Context;
use crate::stored::keep_largest;
use crate::window::{Window, Windows};

pub use bound::{Bound, BoundTime};
pub use card::{Card, Graph, GraphNode, card, card_of_event, graph};
pub use groups::{GroupBy, GroupRow};
pub use levels::{Level, OnChip};
pub use memory::{LiveValue, PeakLine, ProgramMemories, ProgramMemory, ProgramPeak, program_peaks};
pub use memory_picture::{MemoryBox, MemoryPicture, memory_picture};
pub use modules::{ModuleBytes, modules};
pub use origins::{Origin, Origins};
pub use outside::{Borders, Handing, Place, Uncompiled, place_of};
pub use peaks::{PeakSource, Peaks};
pub use stepscope_hlo::{Cost, MatrixType, Movement, Phase, space_name};
pub use usage::Usage;

pub use show::{Shown, Wanted, show};

/// A program.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ProgramKey {
    /// Such as `jit_train_step`.
    pub name: String,
    /// Its number in the profile; `None` if events name it only.
    pub id: Option<u64>,
}

/// What is known about a program.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ProgramFacts {
    /// Whether the profile holds the program itself.
    pub has_module: bool,
    /// Instructions in all computations.
    pub instructions: u64,
    /// Runs, summed over devices.
    pub runs: u64,
    /// Time in its instructions.
    pub time: Dur,
    /// One run by the compiler's count, in which loops count once.
    pub cost_once: Cost,
    /// What it keeps in the device's main memory at most; `None` if the profile does not say.
    pub peak: Option<ProgramPeak>,
    /// Whether it computes gradients.
    pub trains: bool,
}

/// What an instruction is: the same on all hosts.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OpFacts {
    /// `dot`, `fusion` …
    pub opcode: String,
    /// The kind of work.
    pub category: String,
    /// The framework's name, freed of wrappers: `mlp/dot_general`.
    pub label: String,
    /// The user's scopes.
    pub scope: String,
    /// `model.py:41`.
    pub source: String,
    /// The phase of a training step.
    pub phase: Phase,
    /// One execution; unknown parts are counted in it.
    pub cost: Cost,
    /// Bytes that one execution sends to other devices at least.
    pub link_bytes: Option<u64>,
    /// Whether it only surrounds other instructions.
    pub container: bool,
    /// Whether the program that it belongs to holds it. If not, nothing but its name and time is known.
    pub known: bool,
    /// How it moves data, if it does nothing else.
    pub movement: Option<Movement>,
    /// Bytes of the array that it moves.
    pub moved_bytes: u64,
    /// The shape of that array.
    pub shape: String,
    /// Bytes that one execution would not touch if it were fused with elementwise operations around it.
    pub fusable_bytes: u64,
    /// Bytes of tiles that no element fills, per execution.
    pub padding_bytes: u64,
    /// Bytes that one execution moves to and from memory on the chip.
    #[serde(default)]
    pub on_chip: OnChip,
    /// Bytes of one execution that cross the device's main memory, where the profile states them.
    #[serde(default)]
    pub stated_main_bytes: Option<u64>,
    /// Whether it belongs to what decides if a loop goes on.
    pub in_condition: bool,
    /// Which part of a collective it is.
    pub exchange: Option<Exchange>,
}

/// A part of a collective.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Exchange {
    /// All of it: nothing of the same program can run meanwhile.
    Whole,
    /// It starts, and other instructions may run until it is done.
    Start,
    /// It waits for the end.
    Done,
}

impl OpFacts {
    /// Whether it moves data to or from the host's memory.
    pub fn host_memory(&self) -> bool {
        self.movement.is_some_and(Movement::is_with_host)
    }
}

/// What ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OpTotals {
    /// How often it ran.
    pub executions: u64,
    /// Events: more than executions if one runs several kernels.
    pub events: u64,
    /// From start to end.
    pub total: Dur,
    /// Without instructions inside.
    pub own: Dur,
    /// The part of both in which it went on in the background, after its events.
    #[serde(default)]
    pub background: Dur,
    /// How events were joined with it.
    pub matched: Matched,
}

/// How events were joined with an instruction, the surest first.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Matched {
    /// The events name it.
    #[default]
    Recorded,
    /// Kernels that a graph launched name no instruction, but theirs is named after it.
    KernelName,
    /// Their line of source is that of this library call only.
    SourceLine,
}

impl Matched {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Matched::Recorded => "recorded",
            Matched::KernelName => "kernel name",
            Matched::SourceLine => "source line",
        }
    }
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct OpEntry {
    facts: OpFacts,
    totals: OpTotals,
}

/// The programs of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ProgramsPartial {
    window: Window,
    programs: BTreeMap<ProgramKey, ProgramFacts>,
    ops: BTreeMap<ProgramKey, BTreeMap<String, OpEntry>>,
    peaks: Option<Peaks>,
    /// Bytes of memory of the smallest device.
    #[serde(default)]
    capacity: Option<u64>,
}

/// Instructions that are kept one by one in files, and programs that did not run.
const MOST_OPS: usize = 1_024;

impl Analysis for ProgramsPartial {
    type Output = Programs;

    /// The programs of one host.
    fn of(context: &Context) -> Self {
        if modules(context.trace).is_empty() {
            return ProgramsPartial::default();
        }
        let windows = Windows::of(context);
        let mut partial = join::join(context, &windows);
        partial.window = windows.window;
        partial.peaks = Peaks::of(context.trace);
        let working = context.trace.devices().iter().filter(|device| device.process.is_some());
        partial.capacity = working.filter_map(|device| device.memory_bytes).min();
        partial
    }

    /// Adds another host.
    fn merge(&mut self, other: ProgramsPartial) {
        self.window = self.window.merge(other.window);
        self.peaks = self.peaks.take().or(other.peaks);
        self.capacity = [self.capacity, other.capacity].into_iter().flatten().min();
        for (key, facts) in other.programs {
            let own = self.programs.entry(key).or_default();
            own.runs += facts.runs;
            own.time += facts.time;
            if !own.has_module {
                *own = ProgramFacts { runs: own.runs, time: own.time, ..facts };
            }
        }
        for (program, ops) in other.ops {
            let own = self.ops.entry(program).or_default();
            for (op, entry) in ops {
                let own = own
                    .entry(op)
                    .or_insert_with(|| OpEntry { facts: entry.facts.clone(), ..OpEntry::default() });
                own.totals.executions += entry.totals.executions;
                own.totals.events += entry.totals.events;
                own.totals.total += entry.totals.total;
                own.totals.own += entry.totals.own;
                own.totals.background += entry.totals.background;
                own.totals.matched = own.totals.matched.max(entry.totals.matched);
            }
        }
    }

    /// Keeps the longest instructions, and the programs that ran.
    fn bound(&mut self) {
        self.programs.retain(|_, facts| facts.runs > 0 || facts.time > Dur::ZERO);
        if self.ops.values().map(BTreeMap::len).sum::<usize>() <= MOST_OPS {
            return;
        }
        let all = std::mem::take(&mut self.ops).into_iter().flat_map(|(program, ops)| {
            ops.into_iter().map(move |(op, entry)| ((program.clone(), op), entry))
        });
        let (kept, _) = keep_largest(all, MOST_OPS, |entry| entry.totals.own);
        for ((program, op), entry) in kept {
            self.ops.entry(program).or_default().insert(op, entry);
        }
    }

    /// Ranks programs and instructions by time.
    fn finish(self) -> Programs {
        let mut programs: Vec<ProgramRow> =
            self.programs.into_iter().map(|(key, facts)| ProgramRow { key, facts }).collect();
        programs.sort_by(|a, b| b.facts.time.cmp(&a.facts.time).then_with(|| a.key.cmp(&b.key)));
        let mut ops: Vec<ProgramOp> = Vec::new();
        for (program, entries) in self.ops {
            for (op, OpEntry { facts, totals }) in entries {
                ops.push(ProgramOp { program: program.clone(), op, facts, totals });
            }
        }
        ops.sort_by(|a, b| {
            let longest = b.totals.own.cmp(&a.totals.own);
            longest.then_with(|| (&a.program, &a.op).cmp(&(&b.program, &b.op)))
        });
        Programs { window: self.window, programs, ops, peaks: self.peaks, capacity: self.capacity }
    }
}

/// One program.
#[derive(Clone, Debug)]
pub struct ProgramRow {
    /// Which.
    pub key: ProgramKey,
    /// What is known about it.
    pub facts: ProgramFacts,
}

/// One instruction that ran.
#[derive(Clone, Debug)]
pub struct ProgramOp {
    /// The program.
    pub program: ProgramKey,
    /// Its name in the program.
    pub op: String,
    /// What it is.
    pub facts: OpFacts,
    /// What ran.
    pub totals: OpTotals,
}

impl ProgramOp {
    /// The cost of all executions; `None` for what only surrounds others, and for what no program holds.
    pub fn cost(&self) -> Option<Cost> {
        let priced = self.facts.known && !self.facts.container;
        priced.then(|| self.facts.cost.times(self.totals.executions))
    }

    /// Operations of all executions; `None` if unknown.
    pub fn flops(&self) -> Option<u64> {
        self.cost().filter(|cost| cost.unknown_flops == 0).map(|cost| cost.flops())
    }

    /// Bytes read and written by all executions; `None` if unknown.
    pub fn bytes(&self) -> Option<u64> {
        self.cost().filter(|cost| cost.unknown_bytes == 0).map(|cost| cost.bytes)
    }

    /// What people recognise it by: the framework's name and the line, else its own name.
    pub fn title(&self) -> String {
        match (self.facts.label.as_str(), self.facts.source.as_str()) {
            ("", "") => self.op.clone(),
            ("", source) => format!("{} at {source}", self.op),
            (label, "") => label.to_owned(),
            (label, source) => format!("{label} at {source}"),
        }
    }
}

/// All programs, the one with the most time first, and all instructions that ran.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// What totals cover.
    pub window: Window,
    /// Programs.
    pub programs: Vec<ProgramRow>,
    /// Instructions.
    pub ops: Vec<ProgramOp>,
    /// What the devices could do at best; `None` if nobody knows.
    pub peaks: Option<Peaks>,
    /// Bytes of memory of the smallest device that worked.
    pub capacity: Option<u64>,
}

impl Programs {
    /// The same with peaks that the user gave.
    #[must_use]
    pub fn with_peaks(self, peaks: Option<Peaks>) -> Self {
        Programs { peaks: peaks.or(self.peaks), ..self }
    }
}
