//! What each instruction costs: floating-point operations, transcendental functions, bytes read and written.
//!
//! ```text
//! ops         one instruction: the rules of XLA's own cost analysis
//! matrix      products and convolutions, which run on matrix units
//! fusion      what a fusion reads of its operands and writes
//! custom_call library calls, from their configuration
//! ```
//!
//! One pass in the order of the file, callees before callers; nothing is followed recursively. A loop counts once: how
//! often it ran is known from a recording only. Where a cost cannot be known it is counted as unknown, never as 0.

mod custom_call;
mod fusion;
mod matrix;
mod ops;

pub(crate) use custom_call::{is_matmul, json_dims};
pub use fusion::Users;
pub(crate) use ops::{is_elementwise, is_transcendental};

use crate::module::{ComputationId, InstructionId, Module};
use crate::shape::ElementType;

/// The kind of numbers that a matrix unit multiplies: each has a peak of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MatrixType {
    /// Double precision.
    F64,
    /// Single precision without shortcuts.
    F32Exact,
    /// Single precision, which units may round to fewer bits (TF32) unless told otherwise.
    F32,
    /// Brain floating point.
    Bf16,
    /// Half precision.
    F16,
    /// Floating point of 8 bits.
    F8,
    /// Floating point of 4 or 6 bits.
    F4,
    /// Integers of 8 bits and more.
    Int8,
    /// Integers of 4 bits and fewer.
    Int4,
}

impl MatrixType {
    /// All, in order.
    pub const ALL: [MatrixType; 9] = [
        MatrixType::F64,
        MatrixType::F32Exact,
        MatrixType::F32,
        MatrixType::Bf16,
        MatrixType::F16,
        MatrixType::F8,
        MatrixType::F4,
        MatrixType::Int8,
        MatrixType::Int4,
    ];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            MatrixType::F64 => "f64",
            MatrixType::F32Exact => "f32-exact",
            MatrixType::F32 => "f32",
            MatrixType::Bf16 => "bf16",
            MatrixType::F16 => "f16",
            MatrixType::F8 => "f8",
            MatrixType::F4 => "f4",
            MatrixType::Int8 => "int8",
            MatrixType::Int4 => "int4",
        }
    }

    /// The kind that operands of this type are multiplied as.
    pub fn of(element: ElementType) -> Self {
        match element {
            ElementType::F64 | ElementType::C128 => MatrixType::F64,
            ElementType::BF16 => MatrixType::Bf16,
            ElementType::F16 => MatrixType::F16,
            _ if element.is_float8() => MatrixType::F8,
            _ if element.is_integer() && element.bits() < 8 => MatrixType::Int4,
            _ if element.is_integer() => MatrixType::Int8,
            _ if element.bits() < 8 => MatrixType::F4,
            _ => MatrixType::F32,
        }
    }
}

/// The cost of one execution.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cost {
    /// Operations of matrix products and convolutions, by [`MatrixType`].
    pub matrix: [u64; 9],
    /// All other floating-point and integer operations on elements.
    pub vector: u64,
    /// Exponentials, roots, sines and their like.
    pub transcendentals: u64,
    /// Bytes read and written, as if nothing were cached.
    pub bytes: u64,
    /// Instructions whose operations are unknown.
    pub unknown_flops: u64,
    /// Instructions whose bytes are unknown.
    pub unknown_bytes: u64,
}

impl Cost {
    /// Operations on matrix units and elsewhere. Where some are unknown, those that are known.
    pub fn flops(&self) -> u64 {
        self.matrix_flops().saturating_add(self.vector)
    }

    /// Operations on matrix units.
    pub fn matrix_flops(&self) -> u64 {
        self.matrix.iter().fold(0, |sum, &flops| sum.saturating_add(flops))
    }

    /// The kind of numbers that most matrix operations multiply.
    pub fn matrix_type(&self) -> Option<MatrixType> {
        let most = MatrixType::ALL.into_iter().max_by_key(|&kind| self.matrix[kind as usize])?;
        (self.matrix[most as usize] > 0).then_some(most)
    }

    /// Whether all of it is known.
    pub fn is_known(&self) -> bool {
        self.unknown_flops == 0 && self.unknown_bytes == 0
    }

    /// Adds another cost.
    pub fn add(&mut self, other: &Cost) {
        self.join(other, u64::saturating_add);
    }

    /// The cost of `times` executions.
    #[must_use]
    pub fn times(&self, times: u64) -> Cost {
        let mut cost = *self;
        cost.join(&Cost::default(), |value, _| value.saturating_mul(times));
        cost
    }

    fn join(&mut self, other: &Cost, with: impl Fn(u64, u64) -> u64) {
        for (own, theirs) in self.matrix.iter_mut().zip(other.matrix) {
            *own = with(*own, theirs);
        }
        self.vector = with(self.vector, other.vector);
        self.transcendentals = with(self.transcendentals, other.transcendentals);
        self.bytes = with(self.bytes, other.bytes);
        self.unknown_flops = with(self.unknown_flops, other.unknown_flops);
        self.unknown_bytes = with(self.unknown_bytes, other.unknown_bytes);
    }

    /// Per figure the larger one: the cost of whichever branch runs.
    fn raise(&mut self, other: &Cost) {
        self.join(other, u64::max);
    }

    fn unknown() -> Self {
        Cost { unknown_flops: 1, unknown_bytes: 1, ..Cost::default() }
    }

    fn vector(flops: u64) -> Self {
        Cost { vector: flops, ..Cost::default() }
    }

    /// What a callee computes per element, without the bytes that it reads: its values stay in registers.
    fn per_element(&self, elements: u64) -> Self {
        Cost { bytes: 0, unknown_bytes: 0, ..*self }.times(elements)
    }
}

/// The costs of a module.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    instructions: Vec<Cost>,
    computations: Vec<Cost>,
    /// Bytes that a computation reads of its parameters and their parts, if it is fused.
    reads: Vec<u64>,
    entry: Cost,
}

impl Costs {
    /// Prices every instruction of a module.
    pub fn of(module: &Module<'_>) -> Self {
        let mut costs = Costs {
            instructions: vec![Cost::default(); module.instructions.len()],
            reads: vec![0; module.instructions.len()],
            ..Costs::default()
        };
        let users = Users::of(module);
        for computation in &module.computations {
            let mut sum = Cost::default();
            for (number, instruction) in module.instructions_of(computation) {
                let pricing = Pricing { module, costs: &costs, users: &users };
                let cost = pricing.cost(instruction);
                sum.add(&cost);
                if let Some(place) = costs.instructions.get_mut(number as usize) {
                    *place = cost;
                }
            }
            costs.computations.push(sum);
            for (number, _) in module.instructions_of(computation).filter(|(_, value)| is_input(value.opcode))
            {
                let read = fusion::read_bytes(Pricing { module, costs: &costs, users: &users }, number);
                if let Some(place) = costs.reads.get_mut(number as usize) {
                    *place = read;
                }
            }
        }
        costs.entry = module.entry.map_or(Cost::default(), |entry| costs.computation(entry));
        costs
    }

    /// One execution of an instruction with everything that it calls; loops count once.
    pub fn instruction(&self, id: InstructionId) -> Cost {
        self.instructions.get(id as usize).copied().unwrap_or_default()
    }

    /// One execution of a computation. Zero for one that is not priced yet: a circle of calls in a damaged file.
    pub fn computation(&self, id: ComputationId) -> Cost {
        self.computations.get(id as usize).copied().unwrap_or_default()
    }

    fn read(&self, parameter: InstructionId) -> u64 {
        self.reads.get(parameter as usize).copied().unwrap_or(0)
    }

    /// One run of the program, loops counted once.
    pub fn total(&self) -> Cost {
        self.entry
    }
}

fn is_input(opcode: &str) -> bool {
    matches!(opcode, "parameter" | "get-tuple-element")
}

/// Everything that the price of an instruction depends on.
#[derive(Copy, Clone)]
struct Pricing<'c, 'a> {
    module: &'c Module<'a>,
    /// Complete for all computations before the current one.
    costs: &'c Costs,
    users: &'c Users,
}
