//! Float operations of one run of an operation, from the shapes of its tensors.
//!
//! tfprof's own formulas stand for what it counts. What it leaves out is counted in the same currency: one for each
//! elementary operation or function per element, two for a multiplication and addition.

use std::collections::BTreeMap;

use stepscope_tfgraph::Attr;

use super::einsum;

/// An operation and the shapes of its tensors. A shape that is not known is empty; a size that is not known is negative.
pub(super) struct Work<'a> {
    /// What ran.
    pub op: &'a str,
    /// What the graph calls it: a fused kernel bears the name of the last operation that it does.
    pub graph_op: &'a str,
    /// Attributes, as far as they are those of what ran.
    pub attrs: &'a [(String, Attr)],
    pub inputs: &'a [Vec<i64>],
    pub outputs: &'a BTreeMap<i64, Vec<i64>>,
}

/// Float operations of one run; `None` where the operation or a shape is not known.
pub(super) fn float_ops(work: &Work<'_>) -> Option<i64> {
    let op = plain(work.op);
    fused(work, op)
        .or_else(|| products(work, op))
        .or_else(|| pooled(work, op))
        .or_else(|| normalised(work, op))
        .or_else(|| reduced(work, op))
        .or_else(|| updated(work, op))
        .or_else(|| elementwise(work, op))
}

/// The name without the marks of a library or of a rewritten kernel.
fn plain(op: &str) -> &str {
    let op = op.strip_prefix("_MklNative").or_else(|| op.strip_prefix("_Mkl")).unwrap_or(op);
    op.trim_start_matches('_')
}

/// The number of elements.
fn size(dims: &[i64]) -> Option<i64> {
    let known = !dims.is_empty() && dims.iter().all(|size| *size >= 0);
    known.then(|| dims.iter().copied().fold(1, i64::saturating_mul))
}

impl Work<'_> {
    fn input(&self, at: usize) -> Option<&[i64]> {
        self.inputs.get(at).map(Vec::as_slice).filter(|dims| size(dims).is_some())
    }

    fn input_size(&self, at: usize) -> Option<i64> {
        self.input(at).and_then(size)
    }

    fn output(&self) -> Option<&[i64]> {
        self.outputs.get(&0).map(Vec::as_slice).filter(|dims| size(dims).is_some())
    }

    fn output_size(&self) -> Option<i64> {
        self.output().and_then(size)
    }

    fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.attr(name).and_then(Attr::as_bool)
    }
}

fn times(a: i64, b: i64) -> i64 {
    a.saturating_mul(b)
}

fn twice(a: i64) -> i64 {
    times(2, a)
}

/// Matrix products and convolutions with what was fused behind them: bias, normalisation, activation.
fn fused(work: &Work<'_>, op: &str) -> Option<i64> {
    let op = op.strip_prefix("Fused")?;
    let extra = work.inputs.len().saturating_sub(2) as i64;
    // These are whole by themselves, whatever is in their names.
    if op.starts_with("BatchNorm") || op.contains("Attention") {
        return None;
    }
    let product = products(work, op)?;
    let out = work.output_size()?;
    // Four further inputs are scale, offset, mean and variance: a multiplication and an addition.
    let behind = if extra == 4 { 2 } else { extra };
    let activation = activation_cost(work.graph_op).unwrap_or(0);
    Some(product.saturating_add(times(out, behind + activation)))
}

/// Matrix products, convolutions, attention.
fn products(work: &Work<'_>, op: &str) -> Option<i64> {
    match op {
        "MatMul" | "SparseMatMul" | "BatchMatMul" | "BatchMatMulV2" | "BatchMatMulV3" => {
            Some(times(twice(work.output_size()?), contracted(work)?))
        }
        "Conv2D" | "Conv3D" => Some(times(twice(work.output_size()?), without_last(work.input(1)?)?)),
        "DepthwiseConv2dNative" | "Dilation2D" => {
            Some(times(twice(work.output_size()?), window(work.input(1)?)?))
        }
        // The gradient of the result goes through the same products as the result did.
        "Conv2DBackpropInput" | "Conv3DBackpropInput" | "Conv3DBackpropInputV2" => {
            Some(times(twice(work.input_size(2)?), without_last(work.input(1)?)?))
        }
        "Conv2DBackpropFilter" | "Conv3DBackpropFilter" | "Conv3DBackpropFilterV2" => {
            Some(times(twice(work.input_size(2)?), without_last(work.output()?)?))
        }
        "DepthwiseConv2dNativeBackpropInput" => {
            Some(times(twice(work.input_size(2)?), window(work.input(1)?)?))
        }
        "DepthwiseConv2dNativeBackpropFilter" => {
            Some(times(twice(work.input_size(2)?), window(work.output()?)?))
        }
        "Einsum" | "XlaEinsum" => einsum::float_ops(work.attr("equation")?.as_text()?, work.inputs),
        _ if op.contains("Attention") && !op.contains("Grad") && !op.contains("Backward") => attention(work),
        _ => None,
    }
}

/// The length over which two matrices are multiplied: of `m×k` and `k×n` to `m×n`, whichever is transposed.
fn contracted(work: &Work<'_>) -> Option<i64> {
    let face = |dims: &[i64]| match dims {
        [.., rows, columns] => Some(i128::from(*rows) * i128::from(*columns)),
        _ => None,
    };
    let Some(first) = work.input(0) else { return weights_length(work.input(1)?, work.output()?) };
    let (a, b, out) = (face(first)?, face(work.input(1)?)?, face(work.output()?)?);
    if out == 0 {
        return Some(0);
    }
    let square = a.checked_mul(b)? / out;
    let root = (square as f64).sqrt().round() as i128;
    (root * root == square).then(|| i64::try_from(root).ok()).flatten()
}

/// The same where only weights and result are known: the size of the weights that is not the result's last.
fn weights_length(weights: &[i64], out: &[i64]) -> Option<i64> {
    match (weights, out) {
        ([.., length, width], [.., last]) if width == last => Some(*length),
        ([.., width, length], [.., last]) if width == last => Some(*length),
        _ => None,
    }
}

/// All sizes of a filter but the last, the channels that come out.
fn without_last(filter: &[i64]) -> Option<i64> {
    let (_, rest) = filter.split_last()?;
    size(rest)
}

/// Height and width of a filter.
fn window(filter: &[i64]) -> Option<i64> {
    filter.get(..2).and_then(size)
}

/// Query, key and value of `…×length×depth`: two products and a softmax between them.
fn attention(work: &Work<'_>) -> Option<i64> {
    let (query, key, value) = (work.input(0)?, work.input(1)?, work.input(2)?);
    let ([batch @ .., length, depth], [.., keys, _], [.., _, width]) = (query, key, value) else {
        return None;
    };
    let scores = times(times(size(batch).unwrap_or(1), *length), *keys);
    Some(times(scores, twice(depth.saturating_add(*width)).saturating_add(5)))
}

fn pooled(work: &Work<'_>, op: &str) -> Option<i64> {
    let cells = || work.attr("ksize").and_then(Attr::as_ints).and_then(size);
    match op {
        "AvgPool" | "MaxPool" | "AvgPool3D" | "MaxPool3D" => Some(times(cells()?, work.output_size()?)),
        "AvgPoolGrad" => Some(times(twice(cells()?), work.input_size(1)?)),
        "MaxPoolGrad" => Some(times(cells()?.saturating_add(1), work.input_size(1)?)),
        _ => None,
    }
}

/// Normalisation over a batch: mean, variance, then one multiplication and one addition per element.
fn normalised(work: &Work<'_>, op: &str) -> Option<i64> {
    let all = || work.input_size(0);
    match op {
        "FusedBatchNorm" | "FusedBatchNormV2" | "FusedBatchNormV3" | "FusedBatchNormEx" => {
            let training = work.flag("is_training").unwrap_or(true);
            let per_element = if training { 6 } else { 2 };
            let activation = if op.ends_with("Ex") { activation_cost(work.graph_op).unwrap_or(0) } else { 0 };
            let per_channel = times(6, work.input_size(1).unwrap_or(0));
            Some(times(all()?, per_element + activation).saturating_add(per_channel))
        }
        "FusedBatchNormGrad" | "FusedBatchNormGradV2" | "FusedBatchNormGradV3" | "FusedBatchNormGradEx" => {
            Some(times(9, all()?))
        }
        "Softmax" | "LogSoftmax" => Some(times(5, all()?)),
        "L2Loss" => Some(times(3, all()?).saturating_sub(1)),
        _ => None,
    }
}

fn reduced(work: &Work<'_>, op: &str) -> Option<i64> {
    match op {
        "BiasAddGrad" | "Sum" | "ArgMax" | "ArgMin" | "Max" | "Min" | "Prod" => {
            Some(work.input_size(0)?.saturating_sub(work.output_size()?).max(0))
        }
        "Mean" => work.input_size(0),
        "AddN" => Some(times(work.inputs.len().saturating_sub(1) as i64, work.input_size(0)?)),
        _ => None,
    }
}

/// Optimizers: which input is the gradient, and the operations per element.
const OPTIMIZERS: [(&str, usize, i64); 13] = [
    ("GradientDescent", 2, 2),
    ("Momentum", 3, 4),
    ("KerasMomentum", 3, 4),
    ("Adagrad", 3, 7),
    ("AdagradV2", 4, 8),
    ("Adadelta", 6, 17),
    ("Adam", 9, 12),
    ("AdamWithAmsgrad", 10, 13),
    ("AdaMax", 8, 10),
    ("RMSProp", 7, 12),
    ("CenteredRMSProp", 8, 17),
    ("Ftrl", 3, 16),
    ("FtrlV2", 3, 16),
];

/// What Nesterov's look ahead costs beside it.
const NESTEROV: i64 = 3;

/// Updates of variables.
fn updated(work: &Work<'_>, op: &str) -> Option<i64> {
    if matches!(op, "AssignAdd" | "AssignSub" | "AssignAddVariableOp" | "AssignSubVariableOp") {
        return work.input_size(1);
    }
    let op = op.strip_prefix("Resource").unwrap_or(op);
    let name = op.strip_prefix("SparseApply").or_else(|| op.strip_prefix("Apply"))?;
    let (_, gradient, cost) = OPTIMIZERS.iter().find(|(known, ..)| *known == name)?;
    let ahead = if work.flag("use_nesterov") == Some(true) { NESTEROV } else { 0 };
    Some(times(work.input_size(*gradient)?, cost + ahead))
}

/// What an activation costs per element; `None` where it is none.
fn activation_cost(op: &str) -> Option<i64> {
    let activation = matches!(
        op,
        "Relu"
            | "Relu6"
            | "LeakyRelu"
            | "Elu"
            | "Selu"
            | "Sigmoid"
            | "Tanh"
            | "Softplus"
            | "Softsign"
            | "Gelu"
    );
    activation.then_some(1)
}

/// Operations element by element.
fn elementwise(work: &Work<'_>, op: &str) -> Option<i64> {
    let out = || work.output_size();
    if let Some(cost) = activation_cost(op) {
        return Some(times(cost, out()?));
    }
    // The slope, and its product with what comes from behind.
    if op.strip_suffix("Grad").is_some_and(|of| activation_cost(of).is_some()) {
        return Some(times(2, out()?));
    }
    match op {
        "BiasAdd" | "BiasAddV1" | "Add" | "AddV2" | "Sub" | "Mul" | "RealDiv" | "Div" | "DivNoNan"
        | "FloorDiv" | "FloorMod" | "Maximum" | "Minimum" | "Pow" | "GreaterEqual" | "Greater"
        | "LessEqual" | "Less" | "Equal" | "NotEqual" | "Reciprocal" | "Inv" | "Square" | "Log" | "Log1p"
        | "Neg" | "Exp" | "Expm1" | "Sqrt" | "Abs" | "Sign" | "Erf" | "Sin" | "Cos" | "Floor" | "Ceil"
        | "Round" => out(),
        "SquaredDifference" | "Rsqrt" | "SqrtGrad" => Some(times(2, out()?)),
        "RsqrtGrad" => Some(times(4, out()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(
        op: &str,
        graph_op: &str,
        attrs: &[(&str, Attr)],
        inputs: &[&[i64]],
        output: &[i64],
    ) -> Option<i64> {
        let attrs: Vec<(String, Attr)> =
            attrs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs: Vec<Vec<i64>> = inputs.iter().map(|dims| dims.to_vec()).collect();
        let outputs = BTreeMap::from([(0, output.to_vec())]);
        float_ops(&Work { op, graph_op, attrs: &attrs, inputs: &inputs, outputs: &outputs })
    }

    fn simple(op: &str, inputs: &[&[i64]], output: &[i64]) -> Option<i64> {
        count(op, op, &[], inputs, output)
    }

    #[test]
    fn products_are_counted_whichever_side_is_transposed() {
        assert_eq!(simple("MatMul", &[&[32, 64], &[64, 128]], &[32, 128]), Some(2 * 64 * 32 * 128));
        assert_eq!(simple("MatMul", &[&[64, 32], &[128, 64]], &[32, 128]), Some(2 * 64 * 32 * 128));
        // tfprof takes the last size of the first input, which is wrong where that is transposed.
        assert_eq!(
            simple("BatchMatMulV2", &[&[8, 64, 32], &[8, 64, 128]], &[8, 32, 128]),
            Some(2 * 64 * 8 * 32 * 128)
        );
        assert_eq!(simple("MatMul", &[&[-1, 64], &[64, 128]], &[-1, 128]), None);
        // The weights are enough where the first input is not known.
        assert_eq!(simple("MatMul", &[&[], &[64, 128]], &[32, 128]), Some(2 * 64 * 32 * 128));
        assert_eq!(simple("MatMul", &[&[-1, 64], &[128, 64]], &[32, 128]), Some(2 * 64 * 32 * 128));
        assert_eq!(simple("MatMul", &[&[32, 64], &[]], &[32, 128]), None);
    }

    #[test]
    fn a_fused_kernel_counts_all_that_it_does() {
        let product = 2 * 64 * 32 * 128;
        let inputs: &[&[i64]] = &[&[32, 64], &[64, 128], &[128]];
        assert_eq!(count("_FusedMatMul", "BiasAdd", &[], inputs, &[32, 128]), Some(product + 32 * 128));
        assert_eq!(count("_FusedMatMul", "Relu", &[], inputs, &[32, 128]), Some(product + 2 * 32 * 128));
        assert_eq!(
            count("_MklNativeFusedMatMul", "Relu", &[], inputs, &[32, 128]),
            Some(product + 2 * 32 * 128)
        );
        let channels: &[i64] = &[16];
        let inputs: &[&[i64]] = &[&[8, 28, 28, 3], &[3, 3, 3, 16], channels, channels, channels, channels];
        let out = 8 * 28 * 28 * 16;
        assert_eq!(
            count("_FusedConv2D", "Relu", &[], inputs, &[8, 28, 28, 16]),
            Some(2 * out * 27 + 2 * out + out)
        );
    }

    #[test]
    fn gradients_of_convolutions_do_not_depend_on_stride_or_format() {
        let (filter, gradient): (&[i64], &[i64]) = (&[3, 3, 8, 16], &[4, 16, 14, 14]);
        let expected = 2 * (4 * 16 * 14 * 14) * 3 * 3 * 8;
        assert_eq!(simple("Conv2DBackpropInput", &[&[4], filter, gradient], &[4, 8, 28, 28]), Some(expected));
        assert_eq!(
            simple("Conv2DBackpropFilter", &[&[4, 8, 28, 28], &[4], gradient], filter),
            Some(expected)
        );
        let depthwise = 2 * (4 * 14 * 14 * 8) * 9;
        let (filter, gradient): (&[i64], &[i64]) = (&[3, 3, 8, 1], &[4, 14, 14, 8]);
        assert_eq!(
            simple("DepthwiseConv2dNativeBackpropInput", &[&[4], filter, gradient], &[4, 14, 14, 8]),
            Some(depthwise)
        );
    }

    #[test]
    fn optimizers_are_counted_by_the_gradient() {
        let (scalar, weights): (&[i64], &[i64]) = (&[1], &[64, 128]);
        let adam: Vec<&[i64]> =
            vec![scalar, scalar, scalar, scalar, scalar, scalar, scalar, scalar, scalar, weights];
        assert_eq!(simple("ResourceApplyAdam", &adam, &[]), Some(12 * 64 * 128));
        let momentum: &[&[i64]] = &[weights, weights, scalar, weights, scalar];
        assert_eq!(simple("ApplyMomentum", momentum, weights), Some(4 * 64 * 128));
        let nesterov = [("use_nesterov", Attr::Bool(true))];
        assert_eq!(
            count("ResourceApplyMomentum", "ResourceApplyMomentum", &nesterov, momentum, &[]),
            Some(7 * 64 * 128)
        );
        assert_eq!(
            simple("ResourceSparseApplyAdagrad", &[scalar, scalar, scalar, &[5, 128]], &[]),
            Some(7 * 640)
        );
        assert_eq!(simple("ResourceApplyUnheardOf", momentum, &[]), None);
        assert_eq!(simple("AssignAddVariableOp", &[scalar, weights], &[]), Some(64 * 128));
    }

    #[test]
    fn activations_normalisation_and_attention_are_counted() {
        assert_eq!(simple("Relu", &[&[32, 128]], &[32, 128]), Some(32 * 128));
        assert_eq!(simple("ReluGrad", &[&[32, 128], &[32, 128]], &[32, 128]), Some(2 * 32 * 128));
        let image: &[&[i64]] = &[&[8, 28, 28, 16], &[16], &[16]];
        let all = 8 * 28 * 28 * 16;
        assert_eq!(simple("FusedBatchNormV3", image, &[8, 28, 28, 16]), Some(6 * all + 6 * 16));
        let inference = [("is_training", Attr::Bool(false))];
        let op = "FusedBatchNormV3";
        assert_eq!(count(op, op, &inference, image, &[8, 28, 28, 16]), Some(2 * all + 6 * 16));
        let query: &[i64] = &[2, 8, 128, 64];
        let scores = 2 * 8 * 128 * 128;
        assert_eq!(
            simple("FusedScaledDotProductAttention", &[query, query, query], query),
            Some(scores * (2 * 64 + 5 + 2 * 64))
        );
        assert_eq!(simple("Const", &[], &[32]), None);
    }

    #[test]
    fn pools_need_their_window() {
        let ksize = [("ksize", Attr::Ints(vec![1, 2, 2, 1]))];
        assert_eq!(
            count("MaxPool", "MaxPool", &ksize, &[&[8, 28, 28, 16]], &[8, 14, 14, 16]),
            Some(4 * 8 * 14 * 14 * 16)
        );
        assert_eq!(simple("MaxPool", &[&[8, 28, 28, 16]], &[8, 14, 14, 16]), None);
    }

    #[test]
    fn sizes_beyond_all_bounds_do_not_overflow() {
        let huge: &[i64] = &[i64::MAX, i64::MAX];
        for op in
            ["MatMul", "Conv2D", "Relu", "FusedBatchNormV3", "AddN", "Softmax", "ScaledDotProductAttention"]
        {
            let _ = simple(op, &[huge, huge, huge], huge);
        }
    }
}
