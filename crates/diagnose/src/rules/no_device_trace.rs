//! `no-device-trace`: a GPU or TPU was at work, but its side was not recorded.
//!
//! What the host's waiting means cannot be told without it.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let unseen = facts.recording.device_missing || facts.summary.hosts.iter().any(|host| host.device_unseen);
    let errors = facts.recording.errors.clone();
    (facts.timeline && unseen).then(|| {
        let cause = Cause::DeviceMissing { errors };
        Finding::new(FindingId::NoDeviceTrace, Severity::Warning, cause, facts.framework())
    })
}
