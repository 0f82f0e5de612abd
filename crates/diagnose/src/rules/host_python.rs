//! `host-python`: the loop's own Python fills the step.
//!
//! Nothing of the framework is traced on any thread and the device is idle: logging, metrics, list handling,
//! conversions. Could win all of it.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Python);
    (share >= thresholds::PYTHON).then(|| {
        let cause = Cause::Python { lines: facts.python.iter().take(5).cloned().collect() };
        // Without steps nobody can tell whether it happens once or again and again.
        let whole = facts.summary.bound().is_some_and(|host| host.whole_capture);
        let severity = if whole { Severity::Info } else { super::severity(share) };
        // A tracer of Python makes it look slower than it is.
        let distorted = super::overhead_distorts::check(facts).is_some();
        let finding = Finding::new(FindingId::HostPython, severity, cause, facts.framework())
            .owning(facts.claims(&[Category::Python]), Some(1.0))
            .sure(if distorted { 0.6 } else { 0.85 });
        finding.about(facts.python.first().map(|line| line.place.clone()))
    })
}
