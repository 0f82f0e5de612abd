//! Which ops have a formula, and what it is.

use super::shapes::parse;

/// What was recorded with one execution of an op.
#[derive(Copy, Clone, Debug, Default)]
pub struct Recorded<'a> {
    /// The shapes of its inputs.
    pub inputs: &'a str,
    /// The shapes of its outputs, if recorded.
    pub outputs: Option<&'a str>,
    /// The values of its inputs that are no tensors, if recorded.
    pub values: Option<&'a str>,
}

/// The places of a convolution's parameters among its inputs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Places {
    stride: usize,
    padding: usize,
    dilation: usize,
    transposed: Option<usize>,
}

/// How an op's operations follow from its shapes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Input number, first of the two matrices.
    Product(usize),
    /// A product whose output is recorded.
    ProductInto,
    /// A product of stacks of matrices; the first of the two.
    Products(usize),
    /// A layer: rows times a matrix of outputs and inputs.
    Linear,
    /// A convolution by its parameters.
    Convolution(Places),
    /// A convolution whose output is recorded.
    ConvolutionInto,
    /// The gradients of a convolution.
    ConvolutionBackward,
    /// Query, key and value, and the products that they take part in.
    Attention {
        /// The place of the query; key and value follow.
        first: usize,
        /// Products over the width of query and key.
        scores: u64,
        /// Products over the width of the value.
        values: u64,
    },
    /// Looks something up.
    Nothing,
}

const CONVOLUTION: Places = Places { stride: 3, padding: 4, dilation: 5, transposed: Some(6) };

impl Formula {
    /// The formula of an op's type.
    pub fn of(op_type: &str) -> Option<Formula> {
        match op_type.strip_prefix("aten::") {
            Some(op) => torch(op),
            None => other(op_type),
        }
    }

    /// The operations of one execution; `None` if something that decides is not recorded.
    pub fn flops(self, recorded: Recorded<'_>) -> Option<f64> {
        let inputs = parse(recorded.inputs);
        let input = |at: usize| inputs.get(at).map(Vec::as_slice);
        let output = || recorded.outputs.and_then(|text| parse(text).into_iter().next());
        let flops = match self {
            Formula::Nothing => 0.0,
            Formula::Product(first) => product(input(first)?, input(first + 1)?)?,
            Formula::Products(first) => products(input(first)?, input(first + 1)?)?,
            Formula::Linear => {
                let (rows, weight) = (input(0)?, input(1)?);
                let &[outputs, inputs] = weight else { return None };
                if *rows.last()? != inputs {
                    return None;
                }
                2.0 * all(rows) * outputs as f64
            }
            Formula::ProductInto => {
                let output = output().filter(|output| !output.is_empty())?;
                let (left, columns) = (input(0)?, *output.last()? as f64);
                // Rows are in the output, and all elements of the left matrix are rows times inner.
                2.0 * all(left) * columns
            }
            Formula::Convolution(places) => convolution(input(0)?, input(1)?, places, recorded.values?)?,
            Formula::ConvolutionInto => into(input(1)?, &output()?)?,
            Formula::ConvolutionBackward => backward([input(0)?, input(1)?, input(2)?], recorded.values?)?,
            Formula::Attention { first, scores, values } => {
                attention([input(first)?, input(first + 1)?, input(first + 2)?], scores, values)?
            }
        };
        flops.is_finite().then_some(flops)
    }
}

fn torch(op: &str) -> Option<Formula> {
    let inner = Places { stride: 3, padding: 2, dilation: 4, transposed: None };
    let with_bias = Places { stride: 4, padding: 3, dilation: 5, transposed: None };
    let public = Places { transposed: None, ..CONVOLUTION };
    Some(match op {
        "mm" | "_scaled_mm" | "_int_mm" => Formula::Product(0),
        "addmm" | "_addmm_activation" => Formula::Product(1),
        "bmm" | "matmul" => Formula::Products(0),
        "baddbmm" => Formula::Products(1),
        "linear" | "mkldnn_linear" | "_mkl_linear" => Formula::Linear,
        "convolution" | "_convolution" | "convolution_overrideable" => Formula::Convolution(CONVOLUTION),
        "conv1d" | "conv2d" | "conv3d" => Formula::Convolution(public),
        "cudnn_convolution" => Formula::Convolution(inner),
        "mkldnn_convolution" | "miopen_convolution" => Formula::Convolution(with_bias),
        "convolution_backward" => Formula::ConvolutionBackward,
        "embedding" => Formula::Nothing,
        "scaled_dot_product_attention"
        | "_scaled_dot_product_flash_attention"
        | "_scaled_dot_product_flash_attention_for_cpu"
        | "_scaled_dot_product_efficient_attention"
        | "_scaled_dot_product_cudnn_attention" => Formula::Attention { first: 0, scores: 1, values: 1 },
        // Scores are computed again; then come the gradients of all three.
        "_scaled_dot_product_flash_attention_backward"
        | "_scaled_dot_product_flash_attention_for_cpu_backward"
        | "_scaled_dot_product_efficient_attention_backward"
        | "_scaled_dot_product_cudnn_attention_backward" => {
            Formula::Attention { first: 1, scores: 3, values: 2 }
        }
        _ => return None,
    })
}

/// Types of ONNX Runtime and TensorFlow.
fn other(op: &str) -> Option<Formula> {
    Some(match op {
        "Conv" | "FusedConv" | "NhwcFusedConv" | "ConvInteger" => Formula::ConvolutionInto,
        "Gemm" | "FusedGemm" | "FusedMatMul" | "MatMulInteger" | "MatMulNBits" => Formula::ProductInto,
        "MatMul" | "_FusedMatMul" => Formula::Product(0),
        "BatchMatMul" | "BatchMatMulV2" | "BatchMatMulV3" => Formula::Products(0),
        "Gather" | "GatherV2" | "ResourceGather" => Formula::Nothing,
        _ => return None,
    })
}

fn all(shape: &[u64]) -> f64 {
    shape.iter().map(|&side| side as f64).product()
}

/// Two matrices, of which either may be transposed where only one way fits.
fn product(left: &[u64], right: &[u64]) -> Option<f64> {
    let (&[a, b], &[c, d]) = (left, right) else {
        return products(left, right);
    };
    let (rows, inner, columns) = if b == c {
        (a, b, d)
    } else if b == d {
        (a, b, c)
    } else if a == c {
        (b, a, d)
    } else if a == d {
        (b, a, c)
    } else {
        return None;
    };
    Some(2.0 * rows as f64 * inner as f64 * columns as f64)
}

/// Stacks of matrices; a smaller stack is used again.
fn products(left: &[u64], right: &[u64]) -> Option<f64> {
    let [left_stack @ .., rows, inner] = left else {
        // A vector times a matrix.
        let (&[inner], &[same, columns]) = (left, right) else { return None };
        return (inner == same).then_some(2.0 * inner as f64 * columns as f64);
    };
    let (right_stack, same, columns) = match right {
        [stack @ .., same, columns] => (stack, same, *columns),
        [same] => (&[][..], same, 1),
        [] => return None,
    };
    if inner != same {
        return None;
    }
    let stack = all(left_stack).max(all(right_stack));
    Some(2.0 * stack * *rows as f64 * *inner as f64 * columns as f64)
}

/// From the weight and the output: `[outputs, inputs per group, …]`, `[batch, outputs, …]`.
fn into(weight: &[u64], output: &[u64]) -> Option<f64> {
    let (_, inner) = weight.split_first()?;
    (weight.len() > 2 && output.len() == weight.len()).then(|| 2.0 * all(output) * all(inner))
}

fn convolution(input: &[u64], weight: &[u64], places: Places, values: &str) -> Option<f64> {
    let ([batch, _, space @ ..], [outputs, inner, filter @ ..]) = (input, weight) else { return None };
    if space.len() != filter.len() || space.is_empty() {
        return None;
    }
    let values = texts(values);
    let numbers = |at: usize| numbers(values.get(at)?, space.len());
    let transposed = places.transposed.is_some_and(|at| values.get(at).is_some_and(|text| text == "True"));
    let positions = if transposed {
        all(space)
    } else {
        let (stride, padding) = (numbers(places.stride)?, numbers(places.padding)?);
        let dilation = numbers(places.dilation)?;
        let mut positions = 1.0;
        for (axis, (&side, &width)) in space.iter().zip(filter).enumerate() {
            let reach = dilation.get(axis)?.checked_mul(width.checked_sub(1)?)?.checked_add(1)?;
            let padded = side.checked_add(padding.get(axis)?.checked_mul(2)?)?;
            positions *= (padded.checked_sub(reach)? / (*stride.get(axis)?).max(1) + 1) as f64;
        }
        positions
    };
    Some(2.0 * *batch as f64 * positions * all(filter) * *outputs as f64 * *inner as f64)
}

/// The gradient of the input and that of the weight cost as much as the convolution each.
fn backward([gradient, input, weight]: [&[u64]; 3], values: &str) -> Option<f64> {
    let values = texts(values);
    let transposed = values.get(7).is_some_and(|text| text == "True");
    let once = if transposed {
        // The filter visits the positions of the input.
        let ([batch, _, space @ ..], true) = (input, input.len() == weight.len()) else { return None };
        2.0 * *batch as f64 * all(space) * all(weight)
    } else {
        into(weight, gradient)?
    };
    let wanted = values.get(10)?.trim_matches(['[', ']']).split(',').take(2);
    Some(once * wanted.filter(|flag| flag.trim() == "True").count() as f64)
}

fn attention([query, key, value]: [&[u64]; 3], scores: u64, values: u64) -> Option<f64> {
    let (&[batch, heads, length, width], &[_, _, keys, same]) = (query, key) else { return None };
    let &[_, _, _, value_width] = value else { return None };
    if width != same {
        return None;
    }
    let pairs = 2.0 * batch as f64 * heads as f64 * length as f64 * keys as f64;
    Some(pairs * (scores as f64 * width as f64 + values as f64 * value_width as f64))
}

/// The texts of Kineto's list of values: `["", "", "[2, 2]", "False"]`.
fn texts(values: &str) -> Vec<String> {
    let mut parts = values.split('"');
    parts.next();
    let mut found = Vec::new();
    while let Some(text) = parts.next() {
        found.push(text.to_owned());
        parts.next();
    }
    found
}

/// `[2, 2]`; one number stands for all axes.
fn numbers(text: &str, axes: usize) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let numbers: Option<Vec<u64>> = inner.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers?;
    match numbers[..] {
        [only] => Some(vec![only; axes]),
        _ if numbers.len() == axes => Some(numbers),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flops(op: &str, inputs: &str, values: Option<&str>) -> Option<f64> {
        Formula::of(op)?.flops(Recorded { inputs, outputs: None, values })
    }

    #[test]
    fn products_count_two_operations_per_pair() {
        assert_eq!(flops("aten::mm", "[[64, 128], [128, 32]]", None), Some(2.0 * 64.0 * 128.0 * 32.0));
        assert_eq!(flops("aten::addmm", "[[32], [64, 128], [128, 32], [], []]", None), Some(524_288.0));
        assert_eq!(flops("aten::bmm", "[[8, 4, 16], [8, 16, 2]]", None), Some(2_048.0));
        assert_eq!(flops("aten::linear", "[[2, 8, 16], [4, 16], [4]]", None), Some(2_048.0));
        assert_eq!(flops("MatMul", "(128,784),(10,784)", None), Some(2.0 * 128.0 * 784.0 * 10.0));
        assert_eq!(flops("aten::mm", "[[64, 128], [64, 32]]", None), Some(524_288.0), "transposed");
        assert_eq!(flops("aten::mm", "[[64, 128], [7, 32]]", None), None);
        assert_eq!(flops("aten::mm", "[]", None), None);
    }

    #[test]
    fn convolutions_need_their_parameters() {
        let inputs = "[[16, 3, 32, 32], [8, 3, 3, 3], [8], [], [], [], [], [], []]";
        let values = r#"["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]"#;
        let want = 2.0 * 16.0 * 16.0 * 16.0 * 9.0 * 8.0 * 3.0;
        assert_eq!(flops("aten::convolution", inputs, Some(values)), Some(want));
        assert_eq!(flops("aten::convolution", inputs, None), None);
        let onnx = Recorded {
            inputs: r#"[{"float":[4,3,224,224]},{"float":[16,3,3,3]},{"float":[16]}]"#,
            outputs: Some(r#"[{"float":[4,16,112,112]}]"#),
            values: None,
        };
        let want = 2.0 * 4.0 * 16.0 * 112.0 * 112.0 * 27.0;
        assert_eq!(Formula::of("Conv").and_then(|formula| formula.flops(onnx)), Some(want));
    }

    #[test]
    fn unknown_ops_stay_unknown_and_lookups_compute_nothing() {
        assert_eq!(flops("aten::layer_norm", "[[8, 8]]", None), None);
        assert_eq!(flops("aten::embedding", "[[8, 8], [4]]", None), Some(0.0));
    }
}
