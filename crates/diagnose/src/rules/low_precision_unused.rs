//! `low-precision-unused`: matrix kernels run without the device's matrix units.
//!
//! FP32 on the ordinary units of a GPU that has tensor cores. The most to be won is what 16 bits would: the ratio of
//! both units' peaks.

use stepscope_analyze::Category;

use crate::facts::{Facts, WithoutMatrixUnits};
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let WithoutMatrixUnits { share, kernel, speedup, only_half } =
        facts.device.as_ref()?.without_matrix_units.clone()?;
    (share >= thresholds::KERNEL_SHARE).then(|| {
        let owned = facts.ms(Category::Compute) * share;
        let won = 1.0 - 1.0 / speedup.max(1.0);
        let step = facts.summary.length_ms().max(f64::MIN_POSITIVE);
        let cause = Cause::MatrixUnits { share, kernel: kernel.clone(), speedup, only_half };
        Finding::new(
            FindingId::LowPrecisionUnused,
            super::severity(owned * won / step),
            cause,
            facts.framework(),
        )
        .about(kernel)
        .owning(vec![(Category::Compute, owned)], Some(won))
        .sure(0.8)
    })
}
