//! In which precision the model's ops run on the host's processor, as far as the recording shows.
//!
//! TensorFlow's recorder writes no types of ops. Two things give them away: the types of batches, which tf.data writes, and
//! fusion: on a processor, TensorFlow fuses a product with its bias in 32 and 16 bits alone.

use std::collections::HashSet;

use stepscope_analyze::fleet::Session;
use stepscope_analyze::work::ops::{OpRow, Where};

/// The precision of the model's ops.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Batches are of 64 bits.
    DoubleBatches,
    /// Products stay apart from their biases, as in 64 bits.
    Unfused,
    /// 32 or 16 bits.
    Single,
    /// The recording does not say.
    #[default]
    Unrecorded,
}

impl Precision {
    pub(super) fn of(session: &Session) -> Self {
        let types = session.input.pipeline.as_ref().map_or(&[][..], |pipeline| &pipeline.types[..]);
        let rows = || session.ops.rows.iter().filter(|row| row.key.side == Where::Host && !row.key.input);
        let fused = rows().any(|row| row.key.kind.contains("Fused"));
        if fused {
            Precision::Single
        } else if types.iter().any(|kind| kind == "double") {
            Precision::DoubleBatches
        } else if types.iter().any(|kind| matches!(kind.as_str(), "float" | "half" | "bfloat16")) {
            Precision::Single
        } else if unfused(rows()) {
            Precision::Unfused
        } else {
            Precision::Unrecorded
        }
    }

    /// Whether there are signs of 64 bits.
    pub fn is_double(self) -> bool {
        matches!(self, Precision::DoubleBatches | Precision::Unfused)
    }
}

/// Whether a compiled function adds the bias of a product in an op of its own.
fn unfused<'r>(rows: impl Iterator<Item = &'r OpRow> + Clone) -> bool {
    let scopes_of = |kind: &'static str| {
        rows.clone()
            .filter(move |row| row.key.kind == kind && row.eager != Some(true))
            .filter_map(|row| Some(row.key.name.rsplit_once('/')?.0))
    };
    let products: HashSet<&str> = scopes_of("MatMul").collect();
    scopes_of("BiasAdd").any(|scope| products.contains(scope))
}
