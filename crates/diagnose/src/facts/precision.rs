//! In which precision the model's ops run on the host's processor, as far as the recording shows.
//!
//! XLA attaches its programs, with types. TensorFlow's recorder writes no types of ops. Three things give them away: the types
//! of batches, which tf.data writes; fusion: on a processor, TensorFlow fuses a product with its bias in 32 and 16 bits
//! alone; and variables that are cast in each step, as mixed precision does.

use std::collections::HashSet;

use stepscope_analyze::session::Session;
use stepscope_analyze::vocabulary::is_dense;
use stepscope_analyze::work::ops::{OpRow, Where};
use stepscope_analyze::work::program_types::ProgramTypes;

use super::Evidence;

/// The precision of the model's ops.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Batches are of 64 bits.
    DoubleBatches,
    /// Products stay apart from their biases, as in 64 bits, or in 16 on a processor without instructions for them.
    Unfused,
    /// Products of compiled programs are of 64 bits.
    DoubleProducts,
    /// Products or parameters of compiled programs are of 16 bits.
    HalfProducts,
    /// Variables are cast before they are multiplied, as in mixed precision.
    Mixed,
    /// 32 or 16 bits.
    Single,
    /// The recording does not say, but products stand outside of any layer: they take the types of the data, which may be
    /// numpy's float64. Layers create their parameters in float32 and convert what they are given.
    OwnProducts,
    /// The recording does not say.
    #[default]
    Unrecorded,
}

impl Evidence for Precision {
    fn of(session: &Session) -> Self {
        let types = session.input.pipeline.as_ref().map_or(&[][..], |pipeline| &pipeline.types[..]);
        let rows = || session.ops.rows.iter().filter(|row| row.key.side == Where::Host && !row.key.input);
        let ProgramTypes { double, single, half, half_parameters, other_parameters } = session.program_types;
        let fused = rows().any(|row| row.key.kind.contains("Fused"));
        if double + single + half > 0 {
            match (double > single + half, half > single + double) {
                (true, _) => Precision::DoubleProducts,
                (_, true) => Precision::HalfProducts,
                _ if half_parameters > other_parameters => Precision::HalfProducts,
                _ => Precision::Single,
            }
        } else if !fused && types.iter().any(|kind| kind == "double") {
            Precision::DoubleBatches
        } else if casts_variables(rows()) {
            Precision::Mixed
        } else if fused || types.iter().any(|kind| matches!(kind.as_str(), "float" | "half" | "bfloat16")) {
            Precision::Single
        } else if unfused(rows()) {
            Precision::Unfused
        } else if rows().any(|row| is_dense(&row.key.kind) && is_own(&row.key.name)) {
            Precision::OwnProducts
        } else {
            Precision::Unrecorded
        }
    }
}

impl Precision {
    /// Whether there are signs of 64 bits.
    pub(crate) fn is_double(self) -> bool {
        matches!(self, Precision::DoubleBatches | Precision::Unfused | Precision::DoubleProducts)
    }

    /// Whether there are signs of 16 bits.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Precision::HalfProducts | Precision::Mixed)
    }
}

/// Whether an op has no layer around it: `MatMul_1`, but not `dense/MatMul`.
fn is_own(name: &str) -> bool {
    !name.contains('/')
}

/// Whether at least two variables are cast in layers with products: a kernel and its bias. Learning rates do not count.
fn casts_variables<'r>(rows: impl Iterator<Item = &'r OpRow> + Clone) -> bool {
    let products = rows.clone().filter(|row| is_dense(&row.key.kind));
    let layers: HashSet<&str> = products.filter_map(|row| Some(row.key.name.rsplit_once('/')?.0)).collect();
    let in_layer = |cast: &str| cast.match_indices('/').any(|(at, _)| layers.contains(&cast[..at]));
    let reads = rows.clone().filter(|row| row.key.kind == "ReadVariableOp");
    let read: HashSet<&str> = reads.filter_map(|row| row.key.name.strip_suffix("/ReadVariableOp")).collect();
    rows.filter(|row| row.key.kind == "Cast" && read.contains(row.key.name.as_str()))
        .filter(|row| in_layer(&row.key.name))
        .nth(1)
        .is_some()
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
