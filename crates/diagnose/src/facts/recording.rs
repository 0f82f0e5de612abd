//! What the recording says about itself, in the shape that rules need.

use stepscope_analyze::recording::health::{Issue, Trouble};
use stepscope_analyze::session::Session;

use super::Evidence;

/// What the recording says about itself.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What broke, and at which byte.
    pub damage: Option<(String, Option<u64>)>,
    /// Events that the recorder dropped, by its own word or because their number is exactly its limit.
    pub dropped: Option<u64>,
    /// Devices, or calls to devices, were seen, but nothing that ran on one.
    pub device_missing: bool,
    /// The recorder's own errors, and its warnings about the device.
    pub complaints: Vec<String>,
}

impl Evidence for Recording {
    fn of(session: &Session) -> Self {
        let issues = &session.issues;
        let of = |trouble: Trouble| issues.iter().filter(move |issue| issue.trouble == trouble);
        // A break inside a message breaks all that hold it; the innermost lies furthest.
        let damage = of(Trouble::Changed)
            .chain(of(Trouble::OverBudget))
            .next()
            .or_else(|| of(Trouble::Damaged).max_by_key(|issue| issue.offset));
        let broke = |issue: &Issue| match issue.trouble {
            Trouble::Changed => "the file changed while it was read".to_owned(),
            Trouble::OverBudget => format!("the limit of {} {}", issue.count.unwrap_or(0), issue.detail),
            _ => issue.detail.clone(),
        };
        let mut dropped = of(Trouble::DroppedEvents).chain(of(Trouble::EventCap)).peekable();
        Recording {
            damage: damage.map(|issue| (broke(issue), issue.offset)),
            dropped: dropped.peek().is_some().then(|| lost(dropped)),
            device_missing: of(Trouble::NoDeviceEvents).next().is_some()
                || (session.feeding.accelerator && !session.feeding.computed),
            complaints: of(Trouble::CollectionError)
                .chain(of(Trouble::CollectionWarning).filter(|issue| is_about_device(&issue.detail)))
                .map(|issue| issue.detail.clone())
                .collect(),
        }
    }
}

/// How many events were lost, where somebody counted them; a recorder that stops at its limit does not.
fn lost<'i>(issues: impl Iterator<Item = &'i Issue>) -> u64 {
    issues.filter(|issue| issue.trouble == Trouble::DroppedEvents).filter_map(|issue| issue.count).sum()
}

/// Does a warning of the recorder speak of the device, or of the library that records it?
fn is_about_device(warning: &str) -> bool {
    let lower = warning.to_ascii_lowercase();
    ["cuda", "cupti", "gpu", "hip", "roctracer", "tpu"]
        .iter()
        .any(|word| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| found == *word))
}
