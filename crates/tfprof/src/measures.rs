//! What is counted for a node: time, memory, parameters, float operations, occurrences.

use std::ops::AddAssign;

/// The values of a node, of a row, or of everything below it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Number of runs.
    pub runs: i64,
    /// Nodes defined; only of totals.
    pub definitions: i64,
    /// Accelerator and host time in µs.
    pub exec_micros: i64,
    /// Accelerator time in µs.
    pub accelerator_micros: i64,
    /// Host time in µs.
    pub cpu_micros: i64,
    /// Memory requested.
    pub requested_bytes: i64,
    /// The most held at once.
    pub peak_bytes: i64,
    /// Still held afterwards.
    pub residual_bytes: i64,
    /// In outputs.
    pub output_bytes: i64,
    /// Parameters.
    pub parameters: i64,
    /// Float operations.
    pub float_ops: i64,
}

impl AddAssign for Measures {
    fn add_assign(&mut self, other: Self) {
        let add = |to: &mut i64, value: i64| *to = to.saturating_add(value);
        add(&mut self.runs, other.runs);
        add(&mut self.definitions, other.definitions);
        add(&mut self.exec_micros, other.exec_micros);
        add(&mut self.accelerator_micros, other.accelerator_micros);
        add(&mut self.cpu_micros, other.cpu_micros);
        add(&mut self.requested_bytes, other.requested_bytes);
        add(&mut self.peak_bytes, other.peak_bytes);
        add(&mut self.residual_bytes, other.residual_bytes);
        add(&mut self.output_bytes, other.output_bytes);
        add(&mut self.parameters, other.parameters);
        add(&mut self.float_ops, other.float_ops);
    }
}

impl Measures {
    /// The same with the row itself counted as one definition.
    pub(crate) fn as_total(self) -> Self {
        Measures { definitions: 1, ..self }
    }
}
