//! `truncated-trace`: the recording is damaged, or the recorder dropped events.
//!
//! Everything else is said of what could be read, so this comes first.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let cause = match (&facts.recording.damage, facts.recording.dropped) {
        (Some((what, offset)), _) => Cause::Damage { what: what.clone(), offset: *offset },
        (None, Some(count)) => Cause::Dropped { count },
        (None, None) => return None,
    };
    Some(Finding::new(FindingId::TruncatedTrace, Severity::Warning, cause, facts.framework()))
}
