//! `no-device-trace`: a GPU or TPU was at work, but its side was not recorded.
//!
//! What the host's waiting means cannot be told without it.

use stepscope_analyze::absence::Absence;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let unseen = facts.recording.device_missing || facts.summary.hosts.iter().any(|host| host.device_unseen);
    (facts.timeline && unseen).then(|| {
        let absence = facts.recording.absence.clone().unwrap_or(Absence::Unseen);
        let cause = Cause::DeviceMissing { absence, complaints: facts.recording.complaints.clone() };
        Finding::new(FindingId::NoDeviceTrace, Severity::Warning, cause, facts.framework())
    })
}
