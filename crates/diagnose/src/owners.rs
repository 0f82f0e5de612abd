//! Who owns the step. A category with a large share has a finding that owns it, or the verdict says why none does: a
//! reader who sees half of the step in one row of the breakdown must not be left alone with it.

use stepscope_analyze::{Category, Shares};
use stepscope_trace::Dur;

use crate::facts::{DeviceWork, Facts, RebuiltFunction};
use crate::finding::Finding;
use crate::rules::host_python;
use crate::thresholds::OWNED;

/// A category that no finding owns.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Unowned {
    /// Which.
    pub category: Category,
    /// Milliseconds per step that nobody owns.
    pub ms: f64,
    /// Their share of the step.
    pub fraction: f64,
    /// Why nobody does.
    pub reason: Reason,
}

/// Why no finding owns a category.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The model's own work.
    Work,
    /// What ran was not recorded.
    NotRecorded,
    /// Single long calls set something up.
    SetUp,
    /// Device memory is allocated or freed.
    Allocation,
    /// Copies hold the host up.
    Copies,
    /// The host waited for the device before it.
    Waits,
    /// Python around ops, as in every eager step.
    Eager,
    /// Programs that were built for the first time.
    Building,
    /// Graphs start the kernels already.
    Graphs,
    /// It stands out in single steps.
    SingleSteps,
    /// There are no steps: it is unknown whether it happens again.
    NoSteps,
    /// Nothing says why.
    Unknown,
}

/// Tells the verdict about large shares that nobody owns.
pub(crate) fn explain(findings: &mut [Finding], facts: &Facts) {
    let step = facts.summary.length_ms();
    let hidden = findings.iter().any(|finding| finding.cause.hides_habits());
    if step <= 0.0 || hidden || !facts.timeline {
        return;
    }
    let owned = |category: Category| -> f64 {
        let claims = findings.iter().flat_map(|finding| &finding.claims);
        claims.filter(|(owner, _)| *owner == category).map(|(_, ms)| ms).sum()
    };
    let rest =
        facts.summary.breakdown_ms.iter().map(|&(category, ms)| (category, (ms - owned(category)).max(0.0)));
    let large = rest.filter(|(_, ms)| *ms >= OWNED * step);
    let all: Vec<Unowned> = large
        .map(|(category, ms)| {
            let reason = reason(facts, category, ms);
            Unowned { category, ms, fraction: ms / step, reason }
        })
        .collect();
    if let Some(verdict) = findings.iter_mut().find(|finding| finding.explains()) {
        verdict.unowned = all;
    }
}

fn reason(facts: &Facts, category: Category, ms: f64) -> Reason {
    let most = |part: f64| part >= 0.5 * ms;
    match category {
        Category::Compute => return Reason::Work,
        Category::Unknown => return Reason::NotRecorded,
        Category::Python if most(host_python::ordinary(facts)) => return Reason::Eager,
        Category::Tracing | Category::Compile if RebuiltFunction::all(facts).is_empty() => {
            return Reason::Building;
        }
        _ => {}
    }
    if let Some(reason) = held_up(facts, category, ms) {
        return reason;
    }
    let work = facts.get::<Option<DeviceWork>>();
    let replays = work.as_ref().as_ref().is_some_and(|work| work.graph_share >= crate::thresholds::REPLAYED);
    if facts.summary.bound().is_some_and(|host| host.whole_capture) {
        Reason::NoSteps
    } else if !most(facts.usual_ms(category)) {
        Reason::SingleSteps
    } else if replays && matches!(category, Category::Launch | Category::Dispatch) {
        Reason::Graphs
    } else {
        Reason::Unknown
    }
}

/// What held the host up for most of it, as far as calls around the device's gaps show.
fn held_up(facts: &Facts, category: Category, ms: f64) -> Option<Reason> {
    let detail = facts.detail.as_ref()?;
    let idle = &detail.idle;
    let of = |all: &[&Shares]| -> Dur { all.iter().map(|shares| shares.get(category)).sum() };
    let parts = [
        (Reason::SetUp, of(&[&idle.startup])),
        (Reason::Allocation, of(&[&idle.allocation])),
        (Reason::Copies, of(&[&idle.in_copies, &idle.after_copies])),
        (Reason::Waits, of(&[&idle.after_waits])),
    ];
    let (reason, time) = parts.into_iter().max_by_key(|(_, time)| *time)?;
    (detail.per_step(time) >= 0.5 * ms).then_some(reason)
}

impl Reason {
    /// The end of the sentence `No finding owns this: …`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Reason::Work => "this is the model's own work",
            Reason::NotRecorded => "what ran in this time was not recorded",
            Reason::SetUp => "single long calls set something up",
            Reason::Allocation => "device memory is allocated or freed",
            Reason::Copies => "copies block the host",
            Reason::Waits => "the host waited for the device just before",
            Reason::Eager => "each op is called from Python, and this is the usual cost of it",
            Reason::Building => "programs were built for the first time, which happens once",
            Reason::Graphs => "graphs start most of the kernels already",
            Reason::SingleSteps => "most of it stands out in single steps",
            Reason::NoSteps => "without steps it is unknown whether this happens again",
            Reason::Unknown => "the recording does not show why",
        }
    }
}
