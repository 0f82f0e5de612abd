//! An op type and its cost in one line, for `compute-bound` and `op-dominates`.

use stepscope_text::{duration_ms, number, quoted, share};

use crate::facts::OpCost;

/// `MatMul: 12.1 ms per step, 61 % of all op time, 24 times per step; most in model/dense/MatMul.`
pub(in crate::rules) fn cost(op: &OpCost) -> String {
    let example = op.example.as_deref().filter(|example| *example != op.op_type);
    let example = example.map_or(String::new(), |example| format!("; most in {}", quoted(example)));
    let example = match &op.origin {
        Some(origin) if example.is_empty() => format!("; most in {}", quoted(origin)),
        Some(origin) => format!("{example} ({})", quoted(origin)),
        None => example,
    };
    let each = if op.devices > 1 { format!(" on each of {} devices", op.devices) } else { String::new() };
    let times = if op.count_per_step == 1.0 {
        "once".to_owned()
    } else {
        format!("{} times", number(op.count_per_step))
    };
    format!(
        "{}: {} per step{each}, {} of all op time, {times} per step{example}.",
        quoted(&op.op_type),
        duration_ms(op.ms_per_step),
        share(op.share),
    )
}

/// The option with which an optimizer of PyTorch updates all parameters together, if it has one.
pub(in crate::rules) fn joined_update(class: &str) -> Option<&'static str> {
    match class {
        "Adam" | "AdamW" | "SGD" | "Adagrad" => Some("fused"),
        "Adadelta" | "Adamax" | "ASGD" | "NAdam" | "RAdam" | "RMSprop" | "Rprop" => Some("foreach"),
        _ => None,
    }
}

/// An op as tests need it.
#[cfg(test)]
pub(in crate::rules) fn sample(op_type: &str) -> OpCost {
    OpCost {
        op_type: op_type.into(),
        example: Some(format!("model/{op_type}")),
        origin: None,
        ms_per_step: 20.0,
        count_per_step: 3.0,
        devices: 1,
        share: 0.6,
        is_kernel: false,
    }
}
