//! `low-precision-unused`: matrix kernels run without the device's matrix units.
//!
//! FP32 on the ordinary units of a GPU that has tensor cores. TF32 or 16-bit would run several times faster; half
//! of their time is a modest promise.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

/// What the matrix units win on these kernels at the least.
const WON: f64 = 0.5;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (share, kernel) = facts.device.as_ref()?.without_matrix_units.clone()?;
    (share >= thresholds::KERNEL_SHARE).then(|| {
        let owned = facts.ms(Category::Compute) * share;
        let step = facts.summary.length_ms().max(f64::MIN_POSITIVE);
        let cause = Cause::MatrixUnits { share, kernel: kernel.clone() };
        Finding::new(
            FindingId::LowPrecisionUnused,
            super::severity(owned * WON / step),
            cause,
            facts.framework(),
        )
        .about(kernel)
        .owning(vec![(Category::Compute, owned)], Some(WON))
        .sure(0.8)
    })
}
