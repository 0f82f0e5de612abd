//! What several rules share: how severe a share is, in which steps something happens, and measurements and words that
//! serve more than one finding.

pub(super) mod building;
pub(super) mod copies;
pub(super) mod counters;
pub(super) mod kernels;
pub(super) mod offload;
pub(super) mod ops;
pub(super) mod programs;
pub(super) mod ranges;
pub(super) mod runs;

use stepscope_analyze::Category;
use stepscope_analyze::devices::bottleneck::IdleCause;
use stepscope_analyze::devices::collectives::clock::Precision;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::time::summary::StepRow;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, plural};
use stepscope_trace::Dur;

use crate::facts::Facts;
use crate::finding::Severity;
use crate::thresholds;

/// How much a share of the step matters.
pub(crate) fn severity(share: f64) -> Severity {
    if share >= thresholds::SEVERE {
        Severity::Critical
    } else if share >= thresholds::NOTABLE {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// Milliseconds as a share of the mean step.
pub(super) fn of_step(facts: &Facts, ms: f64) -> f64 {
    ms / facts.summary.length_ms().max(f64::MIN_POSITIVE)
}

/// Milliseconds in which the device waits for what a program does once: a context, libraries, code that is loaded. In a
/// capture without steps, what is built is built for the first time.
pub(super) fn setup_ms(facts: &Facts) -> f64 {
    let Some(detail) = &facts.detail else { return 0.0 };
    let whole = facts.summary.bound().is_some_and(|host| host.whole_capture);
    let building = if whole { detail.idle.get(IdleCause::Building) } else { Dur::ZERO };
    detail.per_step(detail.idle.get(IdleCause::Startup) + building)
}

/// How ranks of several hosts were compared.
pub(super) fn on_one_clock(clocks: Precision) -> String {
    let collectives = plural(clocks.matched as u64, "common collective", "common collectives");
    let spread = duration_ms(clocks.spread_ms);
    match clocks.apart_ms {
        Some(apart) => format!(
            "The hosts' clocks are up to {} apart. They are aligned at the ends of {collectives}, ±{spread}.",
            duration_ms(apart)
        ),
        None => format!("The hosts' clocks are aligned at the ends of {collectives}, ±{spread}."),
    }
}

/// All milliseconds of claims.
pub(super) fn total(claims: &[(Category, f64)]) -> f64 {
    claims.iter().map(|(_, ms)| ms).sum()
}

pub(super) fn is_jax(facts: &Facts) -> bool {
    facts.framework() == Framework::Jax
}

/// In which of the counted steps these categories own at least this share.
pub(super) fn steps_with(facts: &Facts, categories: &[Category], least: f64) -> Recurrence {
    let Some(host) = facts.summary.bound() else { return Recurrence::default() };
    let notable = |step: &StepRow| {
        let owned: f64 = categories.iter().map(|&category| step.shares.get(category).ms()).sum();
        owned >= least * step.span.dur().ms() && owned > 0.0
    };
    Recurrence::of(host.counted().map(notable))
}
