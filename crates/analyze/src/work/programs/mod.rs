//! Programs: what XLA compiled, joined with what ran. Every executed instruction with its time, executions, cost, scope and
//! source line; every program with its runs, and those that never ran.
//!
//! ```text
//! modules   the programs that a trace carries
//! executed  events → instructions that ran
//! join      both together: costs per execution, executions from kernels
//! peaks     what the devices could do at best
//! bound     the least time that an instruction can take, and what it wastes
//! memory    who is live at the peak
//! show      programs as text
//! groups    rows by category, scope, source line or phase
//! ```
//!
//! Operations are counted by executed events, not by static trip counts: an instruction in a loop counts as often as it ran.
//! One partial result per host ([`ProgramsPartial::of`]) → [`ProgramsPartial::merge`] → [`ProgramsPartial::finish`].

mod bound;
mod executed;
mod groups;
mod join;
mod memory;
mod modules;
mod peaks;
mod show;

use std::collections::BTreeMap;

use stepscope_trace::Dur;

use crate::context::Context;
use crate::window::{Window, Windows};

pub use bound::{Bound, BoundTime};
pub use groups::{GroupBy, GroupRow};
pub use memory::{LiveValue, ProgramMemories, ProgramMemory};
pub use modules::{ModuleBytes, modules};
pub use peaks::{PeakSource, Peaks};
pub use stepscope_hlo::{Cost, MatrixType, Phase};

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
    /// The most memory that exists at once, in the device's main memory.
    pub peak_bytes: Option<u64>,
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
    /// Whether it moves data to or from the host's memory.
    pub host_memory: bool,
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
    /// Whether kernels were matched by name only, because a graph launched them.
    pub by_name: bool,
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
}

impl ProgramsPartial {
    /// The programs of one host.
    pub fn of(context: &Context) -> Self {
        if modules(context.trace).is_empty() {
            return ProgramsPartial::default();
        }
        let windows = Windows::of(context);
        let mut partial = join::join(context, &windows);
        partial.window = windows.window;
        partial.peaks = Peaks::of(context.trace);
        partial
    }

    /// The time in each program that ran.
    pub fn times(&self) -> BTreeMap<ProgramKey, Dur> {
        let ran = self.programs.iter().filter(|(_, facts)| facts.time > Dur::ZERO);
        ran.map(|(key, facts)| (key.clone(), facts.time)).collect()
    }

    /// Adds another host.
    pub fn merge(&mut self, other: ProgramsPartial) {
        self.window = self.window.merge(other.window);
        self.peaks = self.peaks.take().or(other.peaks);
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
                own.totals.by_name |= entry.totals.by_name;
            }
        }
    }

    /// Ranks programs and instructions by time. `peaks` replaces what the profile or the table of specifications says.
    pub fn finish(self, peaks: Option<Peaks>) -> Programs {
        let mut programs: Vec<ProgramRow> =
            self.programs.into_iter().map(|(key, facts)| ProgramRow { key, facts }).collect();
        programs.sort_by(|a, b| b.facts.time.cmp(&a.facts.time).then_with(|| a.key.cmp(&b.key)));
        let mut ops: Vec<ProgramOp> = Vec::new();
        for (program, entries) in self.ops {
            for (op, entry) in entries {
                ops.push(ProgramOp {
                    program: program.clone(),
                    op,
                    facts: entry.facts,
                    totals: entry.totals,
                });
            }
        }
        ops.sort_by(|a, b| {
            b.totals
                .own
                .cmp(&a.totals.own)
                .then_with(|| a.program.cmp(&b.program))
                .then_with(|| a.op.cmp(&b.op))
        });
        Programs { window: self.window, programs, ops, peaks: peaks.or(self.peaks) }
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
}
