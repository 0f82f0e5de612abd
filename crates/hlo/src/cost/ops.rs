//! The cost of one instruction by its opcode, as XLA's own analysis has it.

use super::{Cost, Pricing, custom_call, fusion, matrix};
use crate::module::{Instruction, WindowDim};

impl<'a> Pricing<'_, 'a> {
    /// One execution of `instruction`.
    pub(super) fn cost(self, instruction: &Instruction<'a>) -> Cost {
        match instruction.opcode {
            "fusion" => fusion::cost(self, instruction),
            "custom-call" => custom_call::cost(self, instruction),
            "while" => self.calls(instruction, Cost::add),
            "conditional" => self.calls(instruction, Cost::raise),
            "call" | "async-start" => self.calls(instruction, Cost::add),
            _ => {
                let mut cost = self.work(instruction);
                cost.bytes = self.bytes(instruction);
                cost
            }
        }
    }

    /// What the called computations cost together.
    fn calls(self, instruction: &Instruction<'a>, join: fn(&mut Cost, &Cost)) -> Cost {
        let mut sum = Cost::default();
        for &callee in &instruction.called {
            join(&mut sum, &self.costs.computation(callee));
        }
        sum
    }

    /// What it computes, without the bytes.
    fn work(self, instruction: &Instruction<'a>) -> Cost {
        let out = instruction.shape.elements();
        let input = self.module.operand(instruction, 0).map(|operand| &operand.shape);
        let input_elements = input.map_or(0, |shape| shape.elements());
        match instruction.opcode {
            "dot" | "scaled-dot" | "ragged-dot" => matrix::dot(self.module, instruction),
            "convolution" => matrix::convolution(self.module, instruction),
            opcode if is_transcendental(opcode) => Cost { transcendentals: out, ..Cost::default() },
            opcode if is_elementwise(opcode) => Cost::vector(out),
            "rng" | "rng-bit-generator" => {
                Cost { transcendentals: instruction.shape.all_elements(), ..Cost::default() }
            }
            "reduce" => {
                let first = instruction.shape.leaves().first().map_or(0, |leaf| leaf.elements());
                self.applied(instruction, 0, input_elements.saturating_sub(first))
            }
            "reduce-window" => self.applied(instruction, 0, windowed(instruction)),
            "select-and-scatter" => self.select_and_scatter(instruction),
            "map" | "scan" => self.applied(instruction, 0, out),
            "scatter" => {
                let updates = scatter_operands(instruction).map(|(_, updates)| updates);
                let first = updates.and_then(|updates| self.module.operand(instruction, updates));
                self.applied(instruction, 0, first.map_or(0, |update| update.shape.elements()))
            }
            "sort" => Cost::vector(input_elements.saturating_mul(ceil_log2(input_elements))),
            "fft" => {
                let steps =
                    instruction.fft_lengths().into_iter().map(|length| floor_log2(length.max(0) as u64));
                Cost::vector(steps.fold(8u64.saturating_mul(input_elements), u64::saturating_mul))
            }
            "triangular-solve" => {
                let last = input.and_then(|shape| shape.dims.last()).map_or(0, |&dim| dim.max(0) as u64);
                let right = self.module.operand(instruction, 1).map_or(0, |operand| operand.shape.elements());
                Cost::vector(last.saturating_mul(right).saturating_mul(2))
            }
            "cholesky" => {
                let last = input.and_then(|shape| shape.dims.last()).map_or(0, |&dim| dim.max(0) as u64);
                Cost::vector(last.saturating_mul(input_elements) / 3)
            }
            "all-reduce" | "all-reduce-start" => Cost::vector(instruction.shape.all_elements()),
            _ => Cost::default(),
        }
    }

    /// A called computation, once per element.
    fn applied(self, instruction: &Instruction<'a>, which: usize, elements: u64) -> Cost {
        let callee = instruction.called.get(which).map(|&callee| self.costs.computation(callee));
        callee.unwrap_or_default().per_element(elements)
    }

    fn select_and_scatter(self, instruction: &Instruction<'a>) -> Cost {
        let source = self.module.operand(instruction, 1).map_or(0, |operand| operand.shape.elements());
        let window = window_elements(&instruction.window());
        let mut cost = self.applied(instruction, 0, source.saturating_mul(window.saturating_sub(1)));
        cost.add(&self.applied(instruction, 1, source));
        cost
    }

    /// Bytes read and written.
    fn bytes(self, instruction: &Instruction<'a>) -> u64 {
        let out = instruction.shape.bytes();
        let operand =
            |index| self.module.operand(instruction, index).map_or(0, |operand| operand.shape.bytes());
        let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, &part| sum.saturating_add(part));
        match instruction.opcode {
            "parameter"
            | "constant"
            | "get-tuple-element"
            | "bitcast"
            | "after-all"
            | "add-dependency"
            | "domain"
            | "async-update"
            | "async-done"
            | "partition-id"
            | "replica-id"
            | "opt-barrier"
            | "optimization-barrier" => 0,
            "transpose" if is_relabelling(self.module.operand(instruction, 0), instruction) => 0,
            "tuple" | "infeed" => {
                if instruction.opcode == "tuple" {
                    out
                } else {
                    instruction.shape.array_bytes()
                }
            }
            "outfeed" => self.module.operand(instruction, 0).map_or(0, |operand| operand.shape.array_bytes()),
            "slice" => sum(&[out, out]),
            "dynamic-slice" => sum(&[out, out, operand(1)]),
            "dynamic-update-slice" => sum(&[operand(1), operand(1), operand(2)]),
            "gather" => sum(&[out, out, operand(1)]),
            "scatter" => self.scatter_bytes(instruction),
            "triangular-solve" => sum(&[out, operand(0) / 2, operand(1)]),
            "cholesky" => operand(0),
            _ => {
                let read = (0..instruction.operands.len()).map(operand);
                read.fold(instruction.shape.array_bytes(), u64::saturating_add)
            }
        }
    }

    fn scatter_bytes(self, instruction: &Instruction<'a>) -> u64 {
        let Some((indices, updates)) = scatter_operands(instruction) else { return 0 };
        let operand =
            |index| self.module.operand(instruction, index).map_or(0, |operand| operand.shape.bytes());
        let written = (updates..instruction.operands.len()).map(operand).fold(0u64, u64::saturating_add);
        written.saturating_mul(3).saturating_add(operand(indices))
    }
}

/// Where the indices and the first update of a scatter stand among its operands: n arrays, indices, n updates.
fn scatter_operands(instruction: &Instruction<'_>) -> Option<(usize, usize)> {
    let arrays = instruction.operands.len().checked_sub(1)? / 2;
    Some((arrays, arrays + 1))
}

/// Whether a transpose only names the dimensions anew and moves nothing.
fn is_relabelling(operand: Option<&Instruction<'_>>, transpose: &Instruction<'_>) -> bool {
    let Some(from) = operand.and_then(|operand| operand.shape.layout.as_ref()) else { return false };
    let Some(to) = transpose.shape.layout.as_ref() else { return false };
    let dimensions = transpose.dimensions();
    let moved =
        to.minor_to_major.iter().map(|&dim| usize::try_from(dim).ok().and_then(|dim| dimensions.get(dim)));
    from.minor_to_major.len() == to.minor_to_major.len()
        && moved.zip(&from.minor_to_major).all(|(dim, own)| dim == Some(own))
}

fn window_elements(window: &[WindowDim]) -> u64 {
    window.iter().fold(1, |product, dim| product.saturating_mul(dim.size.max(0) as u64))
}

/// How often a windowed reduction applies its function. A running sum, which is a window as long as its dimension, is
/// computed step by step.
fn windowed(instruction: &Instruction<'_>) -> u64 {
    let window = instruction.window();
    let leaves = instruction.shape.leaves();
    let Some(shape) = leaves.first() else { return 0 };
    let out = shape.elements();
    let mut wide = window.iter().enumerate().filter(|(_, dim)| dim.size > 1);
    if let (Some((index, dim)), None) = (wide.next(), wide.next()) {
        let size = shape.dim(index as i64);
        let pad = dim.low;
        let only =
            window.iter().enumerate().all(|(other, dim)| other == index || (dim.low == 0 && dim.high == 0));
        let runs =
            pad > 0 && pad == dim.high && pad as u64 == size.saturating_sub(1) && dim.size == 2 * pad + 1;
        if only && runs {
            return (out / size.max(1)).saturating_add(size).saturating_sub(1);
        }
    }
    window_elements(&window).saturating_sub(1).saturating_mul(out)
}

/// The binary logarithm, rounded up.
fn ceil_log2(n: u64) -> u64 {
    if n <= 1 { 0 } else { u64::from(64 - (n - 1).leading_zeros()) }
}

fn floor_log2(n: u64) -> u64 {
    n.checked_ilog2().map_or(0, u64::from)
}

/// Functions that hardware computes in several steps.
pub(crate) fn is_transcendental(opcode: &str) -> bool {
    matches!(
        opcode,
        "exponential"
            | "exponential-minus-one"
            | "log"
            | "log-plus-one"
            | "logistic"
            | "power"
            | "sqrt"
            | "rsqrt"
            | "cbrt"
            | "tanh"
            | "tan"
            | "sine"
            | "cosine"
            | "sinh"
            | "cosh"
            | "erf"
            | "atan2"
            | "acos"
            | "acosh"
            | "asin"
            | "asinh"
            | "atanh"
    )
}

/// One operation per element of the result.
pub(crate) fn is_elementwise(opcode: &str) -> bool {
    matches!(
        opcode,
        "abs"
            | "add"
            | "and"
            | "ceil"
            | "clamp"
            | "compare"
            | "complex"
            | "convert"
            | "count-leading-zeros"
            | "divide"
            | "floor"
            | "imag"
            | "is-finite"
            | "maximum"
            | "minimum"
            | "multiply"
            | "negate"
            | "not"
            | "or"
            | "popcnt"
            | "real"
            | "reduce-precision"
            | "remainder"
            | "round-nearest-afz"
            | "round-nearest-even"
            | "select"
            | "shift-left"
            | "shift-right-arithmetic"
            | "shift-right-logical"
            | "sign"
            | "stochastic-convert"
            | "subtract"
            | "xor"
    )
}
