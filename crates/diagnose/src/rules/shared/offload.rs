//! Arrays that a compiled program keeps in the host's memory, for `transfer-bound`: copies inside the program are no batches
//! that somebody forgot to send ahead.

use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Movement, ProgramOp, space_name};
use stepscope_text::{bytes, duration_ms, plural, quoted};

use crate::facts::Facts;
use crate::words::lines;

/// Arrays in the host's memory that the steps wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Offload {
    /// The program.
    pub program: String,
    /// How many copies of arrays it waits for.
    pub count: usize,
    /// Those that are waited for longest.
    pub arrays: Vec<OffloadedArray>,
    /// Bytes that cross per step and device.
    pub bytes_per_step: f64,
    /// What the program keeps in the device's memory at most, and what the device has, as far as known.
    pub peak: Option<u64>,
    /// Bytes of the device.
    pub capacity: Option<u64>,
}

/// An array in the host's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct OffloadedArray {
    /// The framework's name, or the instruction's.
    pub name: String,
    /// Its line of source; empty if unknown.
    pub source: String,
    /// Its shape.
    pub shape: String,
    /// Its bytes.
    pub bytes: u64,
    /// From where to where.
    pub way: (i64, i64),
    /// Milliseconds of waiting per step, on one device.
    pub ms: f64,
}

/// Arrays that are named.
const NAMED: usize = 4;
/// Copies inside programs explain the transfers from this share on.
const MOST: f64 = 0.5;

impl Offload {
    /// What programs keep in the host's memory, if waiting for it is most of these milliseconds of copies per step.
    pub(in crate::rules) fn of(facts: &Facts, copies_ms: f64) -> Option<Self> {
        let programs = &facts.programs;
        let per_step = |total: f64| {
            let steps = programs.window.per_step(total).unwrap_or(total);
            steps / facts.ops.devices.max(1) as f64
        };
        let waits = |op: &&ProgramOp| op.facts.host_memory() && op.facts.opcode != "copy-start";
        let moved: Vec<&ProgramOp> = programs.ops.iter().filter(waits).collect();
        let time: f64 = moved.iter().map(|op| op.totals.own.ms()).sum();
        if per_step(time) < MOST * copies_ms || time <= 0.0 {
            return None;
        }
        let first = moved.first()?;
        let crossed: f64 =
            moved.iter().map(|op| op.facts.moved_bytes as f64 * op.totals.executions as f64).sum();
        let row = programs.programs.iter().find(|row| row.key == first.program);
        Some(Offload {
            program: first.program.name.clone(),
            count: moved.len(),
            arrays: moved.iter().take(NAMED).map(|op| OffloadedArray::of(op, per_step)).collect(),
            bytes_per_step: per_step(crossed),
            peak: row.and_then(|row| row.facts.peak.as_ref()).map(|peak| peak.bytes),
            capacity: programs.capacity,
        })
    }

    /// What was seen.
    pub(in crate::rules) fn evidence(&self) -> Vec<String> {
        let mut said = vec![format!(
            "{} waits for {} between its own memory and the host's: it offloads arrays, {} per step on each device.",
            quoted(&self.program),
            plural(self.count as u64, "copy", "copies"),
            bytes(self.bytes_per_step)
        )];
        said.extend(self.arrays.iter().map(OffloadedArray::words));
        match (self.peak, self.capacity) {
            (Some(peak), Some(all)) => said.push(format!(
                "The program keeps at most {} of {} in the device's memory.",
                bytes(peak as f64),
                bytes(all as f64)
            )),
            (Some(peak), None) => {
                said.push(format!(
                    "The program keeps at most {} in the device's memory.",
                    bytes(peak as f64)
                ));
            }
            _ => {}
        }
        said
    }

    /// What to do about it.
    pub(in crate::rules) fn advice(&self, framework: Framework) -> Vec<String> {
        let names: Vec<String> = self.arrays.iter().map(|array| quoted(&array.name)).collect();
        let names = stepscope_text::listed(&names);
        let keep = match framework {
            Framework::Jax => format!(
                "Keep on the device what fits, the arrays that are used most often first: a sharding with \
                 `memory_kind=\"device\"` instead of `\"pinned_host\"` for {names}."
            ),
            _ => format!("Keep on the device what fits, the arrays that are used most often first: {names}."),
        };
        let mut advice = vec![keep];
        advice.extend(lines([
            "Hide the rest: begin each copy at least one layer before its array is used, so that computing covers it.",
            "Move fewer bytes: offload in 16 bits, or recompute what is cheap instead of offloading it.",
        ]));
        advice
    }
}

impl OffloadedArray {
    fn of(op: &ProgramOp, per_step: impl Fn(f64) -> f64) -> Self {
        let facts = &op.facts;
        let way = match facts.movement {
            Some(Movement::Between { from, to }) => (from, to),
            _ => (0, 0),
        };
        OffloadedArray {
            name: if facts.label.is_empty() { op.op.clone() } else { facts.label.clone() },
            source: facts.source.clone(),
            shape: facts.shape.clone(),
            bytes: facts.moved_bytes,
            way,
            ms: per_step(op.totals.own.ms()),
        }
    }

    fn words(&self) -> String {
        let source =
            if self.source.is_empty() { String::new() } else { format!(" at {}", quoted(&self.source)) };
        format!(
            "{}{source}, {} of {}, from {} to {}: {} of waiting per step.",
            quoted(&self.name),
            bytes(self.bytes as f64),
            quoted(self.shape.split('{').next().unwrap_or_default()),
            space_name(self.way.0),
            space_name(self.way.1),
            duration_ms(self.ms)
        )
    }
}
