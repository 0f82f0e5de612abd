//! Library calls: what their configuration says about their work. What says nothing is unknown.

use serde_json::Value;

use super::{Cost, MatrixType, Pricing, matrix};
use crate::config::{Config, number, numbers};
use crate::module::{DotDims, Instruction, Module};
use crate::shape::Shape;

/// The backward pass of attention computes five products where the forward pass computes two.
const ATTENTION_BACKWARD: (u64, u64) = (5, 2);

/// One execution of a custom call.
pub(super) fn cost<'a>(pricing: Pricing<'_, 'a>, call: &Instruction<'a>) -> Cost {
    let module = pricing.module;
    let target = call.target();
    let config = Config::of(module.config(call));
    let known = if is_matmul(target) {
        product(module, call, &config)
    } else if target.starts_with("__cudnn$conv") && !target.contains("Reorder") {
        convolution(module, call)
    } else if target.starts_with("__cudnn$fmha") {
        attention(module, call, &config)
    } else {
        return estimate(&config).unwrap_or_else(Cost::unknown);
    };
    match known {
        Some(mut cost) => {
            cost.bytes = border_bytes(module, call);
            cost
        }
        None => Cost::unknown(),
    }
}

/// Products of cuBLAS, hipBLAS and their like, in all variants.
pub(crate) fn is_matmul(target: &str) -> bool {
    target.starts_with("__cublas$gemm")
        || target.starts_with("__cublas$lt$matmul")
        || target.starts_with("__triton_gemm")
}

/// The result of a call, without the scratch memory that it returns beside it.
fn result<'i>(call: &'i Instruction<'_>) -> Option<&'i Shape> {
    if call.shape.is_tuple() { call.shape.parts.first() } else { Some(&call.shape) }
}

/// Bytes of the operands and of the result.
fn border_bytes(module: &Module<'_>, call: &Instruction<'_>) -> u64 {
    let read = module.operands(call).map(|operand| operand.shape.bytes());
    read.fold(result(call).map_or(0, Shape::bytes), u64::saturating_add)
}

fn product(module: &Module<'_>, call: &Instruction<'_>, config: &Config<'_>) -> Option<Cost> {
    let lhs = module.operand(call, 0)?;
    let dims = config.dot_dims()?;
    Some(matrix::dot_of(&lhs.shape, result(call)?, &dims, MatrixType::of(lhs.shape.element)))
}

/// A convolution of cuDNN or MIOpen. Window and dimensions are those of the forward pass, whichever array is computed.
fn convolution(module: &Module<'_>, call: &Instruction<'_>) -> Option<Cost> {
    let first = &module.operand(call, 0)?.shape;
    let second = &module.operand(call, 1)?.shape;
    let made = result(call)?;
    let (input, output) = match call.target() {
        "__cudnn$convBackwardInput" => (made, first),
        "__cudnn$convBackwardFilter" => (first, second),
        _ => (first, made),
    };
    let cost = matrix::convolution_of(call, input, output, MatrixType::of(first.element));
    cost.is_known().then_some(cost)
}

/// Fused attention: scores and weighted sum, each a product over all pairs of positions. A causal mask skips half of them.
fn attention(module: &Module<'_>, call: &Instruction<'_>, config: &Config<'_>) -> Option<Cost> {
    let config = config.get("cudnn_fmha_backend_config")?;
    let dims = json_dims(config.get("bmm1_dot_dimension_numbers")?)?;
    let (query, key) = (&module.operand(call, 0)?.shape, &module.operand(call, 1)?.shape);
    let shared = dims.rhs_batch.iter().chain(&dims.rhs_contracting);
    let shared = shared.fold(1u64, |product, &dim| product.saturating_mul(key.dim(dim))).max(1);
    let scores = query.elements().saturating_mul(key.elements() / shared).saturating_mul(2);
    let mut flops = scores.saturating_mul(2);
    if call.target().contains("Backward") {
        flops = flops.saturating_mul(ATTENTION_BACKWARD.0) / ATTENTION_BACKWARD.1;
    }
    if config.get("mask_type").and_then(Value::as_str).is_some_and(|mask| mask.contains("CAUSAL")) {
        flops /= 2;
    }
    Some(matrix::matrix(flops, MatrixType::of(query.element)))
}

/// The cost that the kernel's author states, as Pallas allows.
fn estimate(config: &Config<'_>) -> Option<Cost> {
    let found =
        config.get("cost_estimate").or_else(|| config.get("custom_call_config")?.get("cost_estimate"))?;
    let figure = |key| number(found.get(key)?).and_then(|value| u64::try_from(value).ok());
    let flops = figure("flops");
    let bytes = figure("bytes_accessed");
    if flops.is_none() && bytes.is_none() {
        return None;
    }
    Some(Cost {
        vector: flops.unwrap_or(0),
        transcendentals: figure("transcendentals").unwrap_or(0),
        bytes: bytes.unwrap_or(0),
        unknown_flops: u64::from(flops.is_none()),
        unknown_bytes: u64::from(bytes.is_none()),
        ..Cost::default()
    })
}

/// The dimensions of a product in a configuration.
pub(crate) fn json_dims(found: &Value) -> Option<DotDims> {
    let list = |key| numbers(found.get(key));
    Some(DotDims {
        lhs_contracting: list("lhs_contracting_dimensions"),
        rhs_contracting: list("rhs_contracting_dimensions"),
        lhs_batch: list("lhs_batch_dimensions"),
        rhs_batch: list("rhs_batch_dimensions"),
    })
}
