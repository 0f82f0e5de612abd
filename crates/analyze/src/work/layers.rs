//! What the names of ops tell of layers that could run faster: batch normalisation made of single ops, and transposes
//! that only change the layout of images between `NHWC` and `NCHW`.
//!
//! TensorFlow names ops by the scope that made them, and its layout optimizer names what it puts in.

use std::collections::BTreeSet;

use crate::work::ops::{OpRow, Ops};

/// Ops that belong together, in the steps that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerCost {
    /// The share of all the model's ops in time.
    pub share: f64,
    /// How many ops run per step.
    pub ops_per_step: f64,
    /// The layers that they belong to, in the order of their names.
    pub layers: Vec<String>,
    /// The op that costs most.
    pub example: String,
}

/// Layers that could run faster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// Batch normalisation made of single ops.
    pub batch_norm: Option<LayerCost>,
    /// Transposes that the layout optimizer put in.
    pub layout: Option<LayerCost>,
}

impl Layers {
    /// Looks at the model's ops.
    pub fn of(ops: &Ops) -> Self {
        let side = ops.side();
        let of_model = || ops.rows.iter().filter(|row| row.key.side == side && !row.key.input);
        let per_step = |count: u64| ops.window.per_step(count as f64).unwrap_or(count as f64);
        let whole: f64 = of_model().map(|row| row.self_ms).sum();
        let cost = |rows: Vec<&OpRow>, layer: fn(&str) -> Option<&str>| {
            let time: f64 = rows.iter().map(|row| row.self_ms).sum();
            let longest = rows.iter().max_by(|a, b| a.self_ms.total_cmp(&b.self_ms))?;
            let layers: BTreeSet<&str> = rows.iter().filter_map(|row| layer(&row.key.name)).collect();
            Some(LayerCost {
                share: if whole > 0.0 { time / whole } else { 0.0 },
                ops_per_step: per_step(rows.iter().map(|row| row.count).sum()),
                layers: layers.into_iter().map(str::to_owned).collect(),
                example: longest.key.name.clone(),
            })
        };
        let single: Vec<&OpRow> = of_model().filter(|row| is_part_of_batch_norm(row)).collect();
        // Without these it is something else that happens to bear the name.
        let normalises =
            single.iter().any(|row| matches!(row.key.kind.as_str(), "SquaredDifference" | "Rsqrt"));
        let transposes =
            of_model().filter(|row| row.key.name.ends_with(LAYOUT_OPTIMIZER) && is_transpose(row));
        Layers {
            batch_norm: normalises.then(|| cost(single, batch_norm_layer)).flatten(),
            layout: cost(transposes.collect(), transposed_op),
        }
    }
}

/// How the layout optimizer ends the names of what it puts in.
const LAYOUT_OPTIMIZER: &str = "-LayoutOptimizer";

fn is_transpose(row: &OpRow) -> bool {
    row.key.kind == "Transpose" || row.key.kind == "_MklTranspose"
}

/// The op that a transpose was put in for: `conv1/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer`.
fn transposed_op(name: &str) -> Option<&str> {
    let (mut op, _) = name.split_once("-Transpose")?;
    // Numbers of the output and of the input.
    while let Some((rest, number)) = op.rsplit_once('-')
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        op = rest;
    }
    Some(op)
}

/// Operations that batch normalisation is made of.
const ARITHMETIC: [&str; 15] = [
    "Add",
    "AddV2",
    "AddN",
    "Mean",
    "Mul",
    "Neg",
    "RealDiv",
    "Rsqrt",
    "RsqrtGrad",
    "Sqrt",
    "Square",
    "SquaredDifference",
    "Sub",
    "Sum",
    "Tile",
];

fn is_part_of_batch_norm(row: &OpRow) -> bool {
    ARITHMETIC.contains(&row.key.kind.as_str()) && batch_norm_layer(&row.key.name).is_some()
}

/// The scope of the layer: everything up to the part that says `BatchNorm` or `batch_normalization`.
fn batch_norm_layer(name: &str) -> Option<&str> {
    let forward = name.strip_prefix("gradients/").unwrap_or(name);
    let mut end = 0;
    for part in forward.split('/') {
        let plain: String = part.chars().filter(char::is_ascii_alphabetic).collect();
        end += part.len();
        if plain.to_ascii_lowercase().starts_with("batchnorm") {
            return forward.get(..end);
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::context::Context;
    use crate::sketch::Sketch;
    use crate::work::ops::OpsPartial;

    fn layers(ops: &[(&str, i64)]) -> Layers {
        let mut sketch = Sketch::new();
        let (python, thread) = (sketch.thread("python"), sketch.thread("tf_Compute/1"));
        sketch.steps(python, 4, 1_000);
        for step in 0..4 {
            let mut at = step * 1_000 + 10;
            for (name, length) in ops {
                sketch.event(thread, name, at, *length, &[]);
                at += length;
            }
        }
        let trace = sketch.finish();
        Layers::of(&OpsPartial::of(&Context::new(&trace, "host")).finish())
    }

    #[test]
    fn batch_normalisation_of_single_ops_is_found_with_its_gradients() {
        let found = layers(&[
            ("conv1/Conv2D:Conv2D", 100),
            ("conv1/BatchNorm/moments/SquaredDifference:SquaredDifference", 60),
            ("conv1/BatchNorm/batchnorm/mul_1:Mul", 20),
            ("gradients/conv1/BatchNorm/batchnorm/mul_1_grad/Mul:Mul", 20),
            ("model/batch_normalization_2/batchnorm/add_1:AddV2", 100),
            ("conv1/BatchNorm/batchnorm/ReadVariableOp:ReadVariableOp", 100),
        ]);
        let cost = found.batch_norm.unwrap();
        assert!((cost.share - 0.5).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.layers, ["conv1/BatchNorm", "model/batch_normalization_2"]);
        assert_eq!(
            (cost.ops_per_step, cost.example.as_str()),
            (4.0, "model/batch_normalization_2/batchnorm/add_1")
        );
        assert_eq!(found.layout, None);
    }

    #[test]
    fn a_fused_kernel_and_a_mere_name_are_none() {
        assert_eq!(layers(&[("bn/BatchNorm:FusedBatchNormV3", 100)]).batch_norm, None);
        assert_eq!(layers(&[("BatchNormalizer/mul:Mul", 100)]).batch_norm, None);
    }

    #[test]
    fn transposes_of_the_layout_optimizer_are_found() {
        let found = layers(&[
            ("conv1/Conv2D:Conv2D", 150),
            ("conv1/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer:Transpose", 50),
            ("conv1/Conv2D-0-0-TransposeNCHWToNHWC-LayoutOptimizer:Transpose", 50),
            ("transpose:Transpose", 50),
        ]);
        let cost = found.layout.unwrap();
        assert!((cost.share - 1.0 / 3.0).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.layers, ["conv1/Conv2D"]);
    }
}
