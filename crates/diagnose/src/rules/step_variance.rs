//! `step-variance`: steps differ so much from one another that one number does not describe them.
//!
//! Names the category that varies most. Where some steps come back that do something which the others do not, such as an
//! evaluation in the loop, it says how often and owns what they do beyond the others. Tracing, writing and waiting have
//! rules of their own.

use stepscope_analyze::Category;
use stepscope_analyze::odd::OddSteps;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

/// Fewer steps than this have no spread worth naming.
const STEPS: usize = 5;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (moments, host) = (facts.summary.step_ms?, facts.summary.bound()?);
    if facts.summary.count < STEPS || moments.median <= 0.0 || moments.mean <= 0.0 {
        return None;
    }
    let (tail, spread) = (moments.p90 / moments.median, moments.stddev? / moments.mean);
    let recurring = facts.odd.as_ref().and_then(|odd| recurring(facts, odd));
    let odd = recurring.as_ref().and(facts.odd.clone());
    (recurring.is_some() || tail >= thresholds::TAIL || spread >= thresholds::SPREAD).then(|| {
        let varies =
            Category::ALL.into_iter().max_by(|&a, &b| deviation(host, a).total_cmp(&deviation(host, b)));
        let often = odd.as_ref().map(|odd| odd.recurrence);
        let cause = Cause::Variance { spread, tail, varies, odd };
        let new = |severity| Finding::new(FindingId::StepVariance, severity, cause, facts.framework());
        match recurring.zip(often) {
            Some((claims, often)) => {
                // Whether it is wanted as often only its author knows.
                new(Severity::Warning).owning(claims, Some(1.0)).in_steps(often).sure(0.7)
            }
            None => new(Severity::Info).sure(0.8),
        }
    })
}

/// What recurring odd steps compute beyond the others, per mean step; `None` where they do not come back, where it is not
/// much, or where they may be slow for no reason of the program's.
fn recurring(facts: &Facts, odd: &OddSteps) -> Option<Vec<(Category, f64)>> {
    let wanted = [Category::Compute, Category::Dispatch];
    let steps = facts.summary.count.max(1) as f64;
    let excess = |category| (odd.excess.get(category).ms() / steps).min(facts.ms(category));
    let claims: Vec<(Category, f64)> = wanted.map(|category| (category, excess(category))).to_vec();
    let ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    // Their own functions show that they do something else. Equal distances do too, where there are enough of them.
    let beyond = (odd.odd_ms - odd.usual_ms).max(f64::MIN_POSITIVE);
    let functions: f64 = odd.functions.iter().map(|(_, ms)| ms).sum();
    let periodic = odd.recurrence.every.is_some() && odd.recurrence.steps >= 3;
    let differs = functions >= beyond / 2.0 || periodic;
    let much = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE) >= thresholds::NOTABLE;
    (odd.recurrence.recurs() && differs && much).then_some(claims)
}

/// How much a category's time varies from step to step, in milliseconds.
fn deviation(host: &stepscope_analyze::summary::HostSummary, category: Category) -> f64 {
    let times = host.counted().map(|step| step.shares.get(category).ms());
    stepscope_analyze::statistics::Moments::of(times).and_then(|moments| moments.stddev).unwrap_or(0.0)
}
