//! Products and convolutions: the work of matrix units.

use super::{Cost, MatrixType};
use crate::module::{ConvolutionDims, DotDims, Instruction, Module, WindowDim};
use crate::shape::{ElementType, Shape};

/// Algorithms of a dot that multiply single precision without shortcuts, or in as many passes.
const EXACT_ALGORITHMS: [i64; 3] = [8, 11, 13];
/// Demanded precision "highest".
const HIGHEST: i64 = 2;

/// Two operations per element of the result and element summed over.
pub(super) fn dot(module: &Module<'_>, instruction: &Instruction<'_>) -> Cost {
    let (Some(lhs), Some(dims)) = (module.operand(instruction, 0), instruction.dot_dims()) else {
        return Cost::unknown();
    };
    let kind = precise(MatrixType::of(operand_type(module, instruction)), instruction);
    dot_of(&lhs.shape, &instruction.shape, &dims, kind)
}

/// A product by its shapes.
pub(super) fn dot_of(lhs: &Shape, out: &Shape, dims: &DotDims, kind: MatrixType) -> Cost {
    let summed = dims.lhs_contracting.iter().fold(1u64, |product, &dim| product.saturating_mul(lhs.dim(dim)));
    matrix(out.elements().saturating_mul(summed).saturating_mul(2), kind)
}

/// Operations of `kind`.
pub(super) fn matrix(flops: u64, kind: MatrixType) -> Cost {
    let mut cost = Cost::default();
    cost.matrix[kind as usize] = flops;
    cost
}

/// A convolution as the program states it.
pub(super) fn convolution(module: &Module<'_>, instruction: &Instruction<'_>) -> Cost {
    let Some(input) = module.operand(instruction, 0) else { return Cost::unknown() };
    let kind = precise(MatrixType::of(operand_type(module, instruction)), instruction);
    convolution_of(instruction, &input.shape, &instruction.shape, kind)
}

/// A convolution from `input` to `output`, with the window and dimensions of `instruction`.
pub(super) fn convolution_of(
    instruction: &Instruction<'_>,
    input: &Shape,
    output: &Shape,
    kind: MatrixType,
) -> Cost {
    let Some(dims) = instruction.convolution_dims() else { return Cost::unknown() };
    let (feature_groups, batch_groups) = instruction.groups();
    let ConvolutionDims { input: (batch, channels, space), output: (_, features, out_space), .. } = &dims;
    let factors =
        [input.dim(*channels) / feature_groups, output.dim(*features), input.dim(*batch) / batch_groups];
    let sides = instruction.window();
    let mut flops = factors.into_iter().fold(2, u64::saturating_mul);
    for (index, window) in sides.iter().enumerate() {
        let size = |shape: &Shape, dims: &[i64]| dims.get(index).map_or(1, |&dim| shape.dim(dim));
        match valid_positions(window, size(input, space), size(output, out_space)) {
            Some(valid) => flops = flops.saturating_mul(valid),
            None => return Cost::unknown(),
        }
    }
    matrix(flops, kind)
}

/// Pairs of window element and position at which the window element lies on an element of the input, not on padding and not
/// between dilated elements. `None` if there are too many to count: damaged files claim any number.
fn valid_positions(window: &WindowDim, input: u64, output: u64) -> Option<u64> {
    let dilation = i128::from(window.base_dilation.max(1));
    let limit = i128::from(input) * dilation;
    let stride = i128::from(window.stride.max(1));
    let size = window.size.max(0);
    let first =
        |element: i64| i128::from(element) * i128::from(window.window_dilation) - i128::from(window.low);
    // Without dilation of the input, the valid positions of one window element are a range.
    if dilation == 1 {
        let valid = |element| {
            let first = first(element);
            let skipped =
                (-first).max(0).div_euclid(stride) + i128::from((-first).max(0).rem_euclid(stride) > 0);
            let end = if limit > first { (limit - 1 - first).div_euclid(stride) + 1 } else { 0 };
            u64::try_from((end.min(i128::from(output)) - skipped).max(0)).unwrap_or(0)
        };
        return (size <= LARGEST_WINDOW).then(|| (0..size).map(valid).fold(0, u64::saturating_add));
    }
    let valid = |element| {
        let at = |step: u64| first(element) + i128::from(step) * stride;
        (0..output).filter(|&step| (0..limit).contains(&at(step)) && at(step) % dilation == 0).count() as u64
    };
    let pairs = output.saturating_mul(size as u64);
    (pairs <= MOST_PAIRS).then(|| (0..size).map(valid).sum())
}

/// Elements of one side of a window that are looked at one by one at most.
const LARGEST_WINDOW: i64 = 1 << 16;
/// Pairs of window element and position that are looked at one by one at most: 512 each.
const MOST_PAIRS: u64 = 1 << 18;

/// The type that operands are multiplied in: the narrower one, because units convert up.
fn operand_type(module: &Module<'_>, instruction: &Instruction<'_>) -> ElementType {
    let types = module.operands(instruction).take(2).map(|operand| operand.shape.element);
    types.filter(|element| element.bits() > 0).min_by_key(|element| element.bits()).unwrap_or_default()
}

fn precise(kind: MatrixType, instruction: &Instruction<'_>) -> MatrixType {
    let (demanded, algorithm) = instruction.precision();
    let exact = demanded >= HIGHEST || EXACT_ALGORITHMS.contains(&algorithm);
    if kind == MatrixType::F32 && exact { MatrixType::F32Exact } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(window: &WindowDim, input: i64, output: i64) -> u64 {
        let mut count = 0;
        for element in 0..window.size {
            for step in 0..output {
                let at = step * window.stride - window.low + element * window.window_dilation;
                let on_element = at % window.base_dilation == 0;
                count += u64::from(on_element && (0..input).contains(&(at.div_euclid(window.base_dilation))));
            }
        }
        count
    }

    #[test]
    fn positions_on_padding_and_between_dilated_elements_do_not_count() {
        for (stride, low, window_dilation, base_dilation) in
            [(1, 1, 1, 1), (2, 0, 1, 1), (1, 2, 2, 1), (1, 2, 1, 2), (3, 4, 2, 3), (2, 5, 3, 1)]
        {
            let window = WindowDim {
                size: 3,
                stride,
                low,
                high: low,
                window_dilation,
                base_dilation,
                reversed: false,
            };
            for (input, output) in [(32, 32), (7, 3), (1, 1), (5, 9)] {
                let found = valid_positions(&window, input as u64, output as u64);
                assert_eq!(found, Some(by_hand(&window, input, output)), "{window:?} {input} {output}");
            }
        }
    }
}
