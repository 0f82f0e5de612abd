//! Operations of the executions whose shapes were recorded. Shapes repeat, so that each is worked out once.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use stepscope_trace::{StrId, Trace, Track, Value};

use super::table::OpTable;
use crate::work::flops::{Formula, Recorded};

/// Operations by the hash of an op and its shapes.
pub(super) type KnownFlops = FxHashMap<u64, Option<f64>>;

/// Shapes that are remembered per thread; a loop over lengths has thousands.
const MOST_KNOWN: usize = 1 << 16;

/// The ops that have a formula, and where their shapes are.
#[derive(Debug)]
pub(super) struct ShapedOps {
    formulas: Vec<Option<Formula>>,
    inputs: Vec<StrId>,
    outputs: Option<StrId>,
    values: Option<StrId>,
}

impl ShapedOps {
    pub(super) fn of(trace: &Trace, table: &OpTable) -> Self {
        let find = |key: &str| trace.strings().find(key);
        let inputs: Vec<StrId> = ["Input Dims", "Input dims", "input_type_shape", "shape"]
            .iter()
            .filter_map(|key| find(key))
            .collect();
        let formula = |(_, kind): &(String, String)| Formula::of(kind).filter(|_| !inputs.is_empty());
        ShapedOps {
            formulas: table.ops.iter().map(formula).collect(),
            outputs: find("output_type_shape"),
            values: find("Concrete Inputs"),
            inputs,
        }
    }

    /// The operations of one execution; `None` if unknown.
    #[inline]
    pub(super) fn flops(
        &self,
        trace: &Trace,
        track: &Track,
        index: usize,
        op: u32,
        known: &mut KnownFlops,
    ) -> Option<f64> {
        let formula = (*self.formulas.get(op as usize)?)?;
        let (mut inputs, mut outputs, mut values) = (None, None, None);
        trace.args_at(track, index).visit(|key, value| {
            if self.inputs.contains(&key) {
                inputs = Some(value);
            } else if Some(key) == self.outputs {
                outputs = Some(value);
            } else if Some(key) == self.values {
                values = Some(value);
            }
        });
        let text = |value: &Option<Value<'_>>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        let (inputs, outputs, values) = (text(&inputs)?, text(&outputs), text(&values));
        let mut hasher = FxHasher::default();
        (op, &inputs, &outputs, &values).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(&flops) = known.get(&key) {
            return flops;
        }
        let recorded = Recorded { inputs: &inputs, outputs: outputs.as_deref(), values: values.as_deref() };
        let flops = formula.flops(recorded);
        if known.len() < MOST_KNOWN {
            known.insert(key, flops);
        }
        flops
    }
}
