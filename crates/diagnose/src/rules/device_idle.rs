//! The device is idle for much of the step, for no single reason.
//!
//! # What it means
//! The device has nothing to do while the host does something else. If one reason owns most of the idle time, that
//! reason's own finding says more.
//!
//! # How it is detected
//! Categories in which the device does nothing own at least {SEVERE} of the step. The finding says why, with the share of
//! each reason: the host waits for a batch, builds graphs, writes, sets up the runtime, allocates memory, is blocked in a
//! copy or a wait, launches, prepares ops, or runs Python. It also says how much of the idle time follows a wait during
//! which nothing could be queued ahead, and names the user's own ranges (NVTX, annotations) around what nothing else
//! explains. It claims only what has no other explanation (`idle`), and is critical if that alone reaches {SEVERE}. A fix
//! saves at most {GAIN} of that. If most of the idle time is what a program sets up once, the finding is `info`. In a capture
//! without steps in which the host recorded nothing for {SEVERE} of the time, it claims that time and promises nothing. It
//! also promises nothing if calls that set something up take {MOSTLY} of such a capture.
//!
//! # How to fix it
//! Start with the largest of the reasons that it lists.
//!
//! # How to check
//! The device's busy share rises.

use stepscope_analyze::Category;
use stepscope_analyze::devices::bottleneck::IdleCause;
use stepscope_text::{duration_ms, listed, quoted, share};

use super::shared::{of_step, setup_ms};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{NOTABLE, SEVERE};
use crate::words;

/// The rule.
pub static RULE: Rule = Rule {
    id: "device-idle",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("device_idle.rs"),
};

thresholds! {
    /// A device that always has work is never idle.
    GAIN: Share = 1.0;
    /// If so much of a capture without steps sets something up, its pauses belong to that.
    MOSTLY: Share = 0.5;
}

/// The device works in these, or may have worked, unrecorded.
const WORKING: [Category; 6] = [
    Category::Compute,
    Category::Communication,
    Category::TransferIn,
    Category::TransferOut,
    Category::TransferDevice,
    Category::Unknown,
];

fn check(facts: &Facts) -> Option<Finding> {
    let busy = facts.busy()?;
    let unrecorded = unrecorded(facts);
    let mut meanwhile: Vec<(Category, f64)> = facts
        .summary
        .breakdown_ms
        .iter()
        .copied()
        .filter(|(category, _)| !WORKING.contains(category))
        .chain(unrecorded)
        .collect();
    meanwhile.sort_by(|a, b| b.1.total_cmp(&a.1));
    let idle: f64 = meanwhile.iter().map(|(_, ms)| ms).sum();
    (of_step(facts, idle) >= SEVERE).then(|| {
        let cause = Idle {
            busy,
            meanwhile,
            causes: causes(facts),
            after_waits_ms: after_waits_ms(facts),
            ranges: ranges(facts),
        };
        // Idle time that nothing explains is worth looking into before anything else.
        let unexplained = facts.own_ms(Category::Idle);
        // What a program does once says nothing about what it does afterwards.
        let recurs = of_step(facts, idle - setup_ms(facts)) >= SEVERE;
        let severity = match of_step(facts, unexplained) >= SEVERE {
            true => Severity::Critical,
            false if recurs => Severity::Warning,
            false => Severity::Info,
        };
        let mut claims = if unexplained > 0.0 { vec![(Category::Idle, unexplained)] } else { Vec::new() };
        claims.extend(unrecorded);
        // Nobody knows what would be won of time in which nothing was recorded, nor of pauses between calls that set up.
        let known = unrecorded.is_none() && !mostly_setup(facts);
        let gain = known.then_some(GAIN);
        Finding::new(&RULE, severity, cause, facts.framework()).owning(claims, gain).sure(0.8)
    })
}

/// Whether most of a capture without steps is what a program sets up once.
fn mostly_setup(facts: &Facts) -> bool {
    let whole = facts.summary.bound().is_some_and(|host| host.whole_capture);
    whole && of_step(facts, setup_ms(facts)) >= MOSTLY
}

/// Time in which the host recorded nothing although the device's side is known, where it is most of a capture without
/// steps: what else is there to say?
fn unrecorded(facts: &Facts) -> Option<(Category, f64)> {
    let detail =
        facts.detail.as_ref().filter(|_| facts.summary.bound().is_some_and(|host| host.whole_capture))?;
    let ms = detail.per_step(detail.idle.get(IdleCause::Unknown)).min(facts.ms(Category::Unknown));
    (of_step(facts, ms) >= SEVERE).then_some((Category::Unknown, ms))
}

/// Why, the longest first.
fn causes(facts: &Facts) -> Vec<(IdleCause, f64)> {
    let Some(detail) = &facts.detail else { return Vec::new() };
    let each = IdleCause::ALL.into_iter().map(|cause| (cause, detail.per_step(detail.idle.get(cause))));
    let mut causes: Vec<_> = each.filter(|(_, ms)| *ms > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes
}

/// The user's ranges that hold a notable part of it.
fn ranges(facts: &Facts) -> Vec<(String, f64)> {
    let Some(detail) = &facts.detail else { return Vec::new() };
    let least = NOTABLE * facts.summary.length_ms();
    let each = detail.idle.ranges.iter().map(|(name, time)| (name.clone(), detail.per_step(*time)));
    each.filter(|(_, ms)| *ms >= least).collect()
}

fn after_waits_ms(facts: &Facts) -> f64 {
    let after = facts
        .detail
        .as_ref()
        .map(|detail| detail.per_step(detail.idle.after_waits.total() + detail.idle.after_copies.total()));
    after.unwrap_or(0.0)
}

/// A device that is idle, by what the host does meanwhile.
#[derive(Clone, Debug)]
pub struct Idle {
    /// The share of the step in which the device is busy.
    pub busy: f64,
    /// Categories of the idle time in milliseconds per step, the longest first.
    pub meanwhile: Vec<(Category, f64)>,
    /// Causes of the idle time in milliseconds per step, the longest first.
    pub causes: Vec<(IdleCause, f64)>,
    /// Milliseconds per step of gaps that follow a wait for the device or a copy which blocked the host.
    pub after_waits_ms: f64,
    /// The user's ranges around what nothing else explains, in milliseconds per step, the longest first.
    pub ranges: Vec<(String, f64)>,
}

impl Cause for Idle {
    fn words(&self, _: &Finding) -> Words {
        let reasons: Vec<String> = self
            .meanwhile
            .iter()
            .take(3)
            .map(|(category, ms)| format!("`{}` {}", category.key(), duration_ms(*ms)))
            .collect();
        let host = if reasons.is_empty() {
            String::new()
        } else {
            format!("; meanwhile the host spends {}", listed(&reasons))
        };
        let mut evidence = self.reasons();
        evidence.extend(self.ranges.iter().take(3).map(|(range, ms)| {
            format!("{} of it lies inside the range {}.", duration_ms(*ms), quoted(range))
        }));
        Words {
            summary: format!("Device idle: the device is busy {} of the time{host}.", share(self.busy)),
            evidence,
            advice: vec![self.start_with()],
        }
    }
}

impl Idle {
    /// What to do first: about the cause of most of it, where a call shows that cause, or about its category.
    fn start_with(&self) -> String {
        let all: f64 = self.causes.iter().map(|(_, ms)| ms).sum();
        let most = self.causes.first().filter(|(_, ms)| *ms >= 0.5 * all);
        match (most.and_then(|(cause, _)| about_calls(*cause)), self.meanwhile.first()) {
            (Some(advice), _) => advice.to_owned(),
            (None, Some((category, _))) => {
                format!("Start with `{}`: {}.", category.key(), first_step(*category))
            }
            (None, None) => "Look at the gaps one by one: `stepscope devices PATH`.".to_owned(),
        }
    }
}

/// What to do about calls that hold the device up.
fn about_calls(cause: IdleCause) -> Option<&'static str> {
    match cause {
        IdleCause::Startup => Some(
            "Do such calls once, before what you measure: create the context, load libraries and run each kernel once. \
             `CUDA_MODULE_LOADING=EAGER` loads all code at the start.",
        ),
        IdleCause::Allocation => {
            Some("Allocate memory once, before the loop, or use a pool such as `cudaMallocAsync`.")
        }
        IdleCause::Copy => {
            Some("Use copies that do not block the host: pinned memory and asynchronous calls.")
        }
        _ => None,
    }
}

impl Idle {
    /// Causes if they are known, with their shares; categories otherwise.
    fn reasons(&self) -> Vec<String> {
        let all: f64 = self.causes.iter().map(|(_, ms)| ms).sum();
        if all <= 0.0 {
            let told = self.meanwhile.iter().take(4).map(|(category, ms)| {
                let (key, what) = (category.key(), words::category(*category));
                format!("`{key}`: {} per step ({what}).", duration_ms(*ms))
            });
            return told.collect();
        }
        let told = self.causes.iter().take(4).filter(|(_, ms)| *ms >= 0.01 * all);
        // Shares alone: a wait for input counts as `input` from its start, a gap only once the device has run dry, so that
        // milliseconds of gaps would stand beside others of the same name.
        let mut lines: Vec<String> = told
            .map(|(cause, ms)| format!("{} of the gaps: {}.", share(ms / all), why_idle(*cause)))
            .collect();
        if self.after_waits_ms >= 0.05 * all {
            lines.push(format!(
                "{} of it follows a wait for the device: the host could not queue work ahead.",
                duration_ms(self.after_waits_ms)
            ));
        }
        lines
    }
}

/// What the host does while the device has nothing to do.
fn why_idle(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::Input => "the host waits for a batch",
        IdleCause::Building => "graphs are traced or compiled",
        IdleCause::Output => "results are written",
        IdleCause::Startup => "single long calls set something up",
        IdleCause::Allocation => "device memory is allocated or freed",
        IdleCause::Copy => "the host is blocked in a copy",
        IdleCause::Sync => "the host is blocked in a wait for the device",
        IdleCause::Launch => "the host launches work",
        IdleCause::Framework => "the framework prepares ops",
        IdleCause::Python => "Python runs in the training loop",
        IdleCause::Unknown => "nothing was recorded",
    }
}

/// What to do first about a kind of idle time.
fn first_step(category: Category) -> &'static str {
    match category {
        Category::Input => "load data in parallel with the step",
        Category::Tracing | Category::Compile => "build functions once, before the loop",
        Category::Launch | Category::Dispatch => {
            "do more work per call (larger batches, fused or captured kernels)"
        }
        Category::Python => "move Python out of the loop",
        Category::Output => "write less often, or in the background",
        Category::Sync => "read results back only when you log",
        _ => "look at the gaps one by one with `stepscope devices PATH`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let idle = Idle {
            busy: 0.2,
            meanwhile: vec![(Category::Python, 8.0)],
            causes: Vec::new(),
            after_waits_ms: 4.0,
            ranges: vec![("load_layer_*".into(), 5.0)],
        };
        speaks(&RULE, idle.clone());
        speaks(&RULE, Idle { causes: IdleCause::ALL.map(|cause| (cause, 2.0)).to_vec(), ..idle.clone() });
        for cause in IdleCause::ALL {
            speaks(&RULE, Idle { causes: vec![(cause, 2.0)], ..idle.clone() });
        }
    }

    #[test]
    fn one_long_call_gets_no_advice_for_many_short_ones() {
        let meanwhile = vec![(Category::Launch, 40.0)];
        let idle = |cause| Idle {
            busy: 0.2,
            meanwhile: meanwhile.clone(),
            causes: vec![(cause, 40.0)],
            after_waits_ms: 0.0,
            ranges: Vec::new(),
        };
        assert!(idle(IdleCause::Launch).start_with().contains("larger batches"));
        assert!(idle(IdleCause::Startup).start_with().contains("once, before"));
    }
}
