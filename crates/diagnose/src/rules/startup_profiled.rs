//! The capture holds the program's warm-up, not its steady state.
//!
//! # What it means
//! Tracing, compilation and first allocations happen once. They say nothing about the thousands of steps that follow.
//!
//! # How it is detected
//! Warm-up steps take more than {STARTUP} of the recorded step time.
//!
//! With fewer than {FEW_STEPS} steps, nothing shows what recurs. The finding then looks for single calls that each take
//! at least {SINGLE_CALL} of the recorded time while the device is idle: creating a context, loading a library or a module,
//! compiling a function at its first use. It fires if these calls together take more than {STARTUP} of the recorded time,
//! or if capturing graphs takes more than {SEVERE} of it, and names the calls. Calls that prepare the device or load code
//! count however short they are, as do ranges that the program calls its warm-up, and, without any step, what is compiled
//! and what nothing explains before the first kernel. In a program that calls CUDA itself, all time before the device's
//! first work and after its last work counts.
//!
//! # How to fix it
//! Record later.
//!
//! TensorFlow and JAX: start the profiler after step 10.
//!
//! Keras: `TensorBoard(logdir, profile_batch=(10, 20))`.
//!
//! PyTorch: `schedule(wait=5, warmup=5, active=10)`.
//!
//! # How to check
//! The report excludes few or no steps as start-up.

use stepscope_analyze::Category;
use stepscope_analyze::steps::Exclusion;
use stepscope_text::{duration_ms, listed, plural, quoted, share};

use super::shared::{of_step, setup_ms};
use crate::facts::{Facts, Recording};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{FEW_STEPS, SEVERE};
use crate::words::frameworks::capture;
use crate::words::{self, lines};

/// The rule.
pub static RULE: Rule = Rule {
    id: "startup-profiled",
    about: About::Trust { rank: 3 },
    view: "steps",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("startup_profiled.rs"),
};

thresholds! {
    /// Of the recorded step time: more warm-up than this outweighs everything else.
    STARTUP: Share = 0.50;
    /// A single call that takes this share is not one of many.
    SINGLE_CALL: Share = stepscope_analyze::devices::bottleneck::SINGLE;
}

fn check(facts: &Facts) -> Option<Finding> {
    let host = facts.summary.bound()?;
    let length = |startup: bool| -> f64 {
        let wanted = host.steps.iter().filter(|step| (step.excluded == Some(Exclusion::Startup)) == startup);
        wanted.map(|step| step.span.dur().ms()).sum()
    };
    let few = host.whole_capture || (facts.summary.count as f64) < FEW_STEPS;
    let (warm_up, rest) = (length(true), length(false));
    let share = if warm_up > 0.0 && !host.whole_capture { warm_up / (warm_up + rest) } else { 0.0 };
    if share > STARTUP {
        let excluded = || host.steps.iter().filter(|step| step.excluded == Some(Exclusion::Startup));
        let spent = |category| excluded().map(|step| step.shares.get(category).ms()).sum::<f64>();
        let mostly = Category::ALL.into_iter().max_by(|&a, &b| spent(a).total_cmp(&spent(b)));
        // Building a function is followed by its first run, which may well take longer.
        let builds = spent(Category::Tracing) + spent(Category::Compile) >= BUILDS * warm_up;
        let mostly = mostly.filter(|_| !builds);
        let cause = WarmUp { steps: excluded().count(), steady: facts.summary.count, share, mostly };
        return Some(Finding::new(&RULE, Severity::Warning, cause, facts.recorder()));
    }
    let captures = facts.detail.as_ref().is_some_and(|detail| !detail.idle.captured.is_zero());
    setting_up(facts).filter(|_| (few || captures) && !facts.get::<Recording>().device_missing)
}

/// Without steps to compare, it shows in single calls that take most of the time.
fn setting_up(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let setup_ms = setup_ms(facts);
    let warm_up_ms = detail.per_step(detail.idle.warm_up);
    // What is captured is replayed later: a recording that holds the capture is not of the loop.
    let captured_ms = detail.per_step(detail.idle.captured);
    let shows = of_step(facts, setup_ms.max(warm_up_ms)) > STARTUP || of_step(facts, captured_ms) > SEVERE;
    shows.then(|| {
        // A capture is setup, whether or not the device waits for it. So is what the program calls its warm-up.
        let ms = setup_ms.max(captured_ms).max(warm_up_ms);
        let share = of_step(facts, ms);
        let calls = detail.idle.startup_calls.iter();
        let calls = calls.map(|(name, time)| (name.clone(), detail.per_step(*time))).collect();
        let sampled = detail.idle.sampled.clone();
        Finding::new(&RULE, Severity::Warning, SettingUp { ms, share, calls, sampled }, facts.recorder())
    })
}

/// Warm-up steps that trace or compile for less than this share of their time are slow for another reason.
const BUILDS: f64 = 0.2;

/// Steps that only warm up.
#[derive(Copy, Clone, Debug)]
pub struct WarmUp {
    /// Warm-up steps.
    pub steps: usize,
    /// Steps after them.
    pub steady: usize,
    /// The share of the recorded step time that they take.
    pub share: f64,
    /// Where most of their time goes, if they hardly trace or compile.
    pub mostly: Option<Category>,
}

impl WarmUp {
    fn reason(&self) -> String {
        let one = self.steps == 1;
        match self.mostly {
            None if one => {
                "It traces, compiles or allocates for the first time; later steps do not.".to_owned()
            }
            None => "They trace, compile or allocate for the first time; later steps do not.".to_owned(),
            Some(Category::Input) => {
                let wait = if one { "It waits for its batch" } else { "They wait for their batches" };
                format!(
                    "{wait}: at first, a pipeline starts and fills its buffers. Later steps do not wait as long."
                )
            }
            Some(category) => {
                let spends = if one { "It spends" } else { "They spend" };
                let what = words::category(category);
                format!(
                    "{spends} most of the time in `{}` ({what}); later steps are shorter.",
                    category.key()
                )
            }
        }
    }
}

impl Cause for WarmUp {
    fn words(&self, finding: &Finding) -> Words {
        let verb = if self.steps == 1 { "takes" } else { "take" };
        let warm = plural(self.steps as u64, "step", "steps");
        let rest = match self.steady {
            0 => "no steady step follows".to_owned(),
            some => {
                let follow = if some == 1 { "follows" } else { "follow" };
                format!("only {} {follow}", plural(some as u64, "steady step", "steady steps"))
            }
        };
        Words {
            summary: format!(
                "Warm-up: {warm} {verb} {} of the recorded step time; {rest}.",
                share(self.share)
            ),
            evidence: vec![self.reason()],
            advice: later(finding),
        }
    }
}

/// Something is set up while the device waits: its runtime, a library, code at its first use.
#[derive(Clone, Debug)]
pub struct SettingUp {
    /// Milliseconds per step that the device waits for it, or that graphs of kernels are captured.
    pub ms: f64,
    /// The share of the step, or of the capture if there are no steps.
    pub share: f64,
    /// The calls in which that happens, with their milliseconds per step, the longest first.
    pub calls: Vec<(String, f64)>,
    /// Functions in which samples of the processor met the program outside of those calls, and their share of the samples.
    pub sampled: Vec<(String, f64)>,
}

/// Calls that take less of the setup than this do not explain it.
const EXPLAINED: f64 = 0.1;

impl SettingUp {
    /// What no call explains, but most of it: the program's own work before it uses the device, as far as anybody knows.
    fn is_unexplained(&self) -> bool {
        self.calls.iter().map(|(_, ms)| ms).sum::<f64>() < EXPLAINED * self.ms
    }

    fn summary(&self) -> String {
        let (part, time) = (share(self.share), duration_ms(self.ms));
        if self.is_unexplained() {
            return format!(
                "Warm-up: the program does other things than using the device for {part} of the recorded time ({time})."
            );
        }
        let most =
            self.calls.first().map_or(String::new(), |(call, _)| format!(", mostly in {}", quoted(call)));
        format!("Warm-up: setup takes {part} of the recorded time ({time}){most}.")
    }
}

impl Cause for SettingUp {
    fn words(&self, finding: &Finding) -> Words {
        let named = self.calls.iter().map(|(call, ms)| format!("{}: {}.", quoted(call), duration_ms(*ms)));
        let mut evidence: Vec<String> = named.collect();
        if !self.sampled.is_empty() {
            let met = self.sampled.iter().map(|(name, part)| format!("{} {}", quoted(name), share(*part)));
            let met = listed(&met.collect::<Vec<_>>());
            evidence.push(format!("Samples of the processor show what the program does meanwhile: {met}."));
        }
        evidence.extend(lines([match (self.is_unexplained(), self.sampled.is_empty()) {
            (true, true) => {
                "Meanwhile the device is idle, before its first work and after its last. Nothing shows what the program \
                 does: it may import libraries, read files or prepare its data."
            }
            (true, false) => "Meanwhile the device is idle, before its first work and after its last.",
            (false, _) => {
                "Meanwhile the device is idle. The first use of a device creates a context, loads libraries and \
                 compiles code. Too few steps were recorded to show whether these calls take as long again."
            }
        }]));
        Words { summary: self.summary(), evidence, advice: later(finding) }
    }

    fn hides_habits(&self) -> bool {
        true
    }
}

fn later(finding: &Finding) -> Vec<String> {
    vec![format!("Record later, after ten steps or more: {}.", capture(finding.framework))]
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::vocabulary::Framework;

    use super::*;
    use crate::rules::testing::{speaks, words};

    fn setting_up(calls: &[(&str, f64)], sampled: &[(&str, f64)]) -> SettingUp {
        let owned =
            |all: &[(&str, f64)]| all.iter().map(|&(name, number)| (name.to_owned(), number)).collect();
        SettingUp { ms: 9_000.0, share: 0.8, calls: owned(calls), sampled: owned(sampled) }
    }

    #[test]
    fn only_calls_that_set_something_up_are_called_setup() {
        let said = |cause| words(&RULE, cause, Framework::Unknown);
        let known = said(setting_up(&[("cudaFree", 8_000.0)], &[]));
        assert!(known.summary.starts_with("Warm-up: setup takes 80 %"), "{}", known.summary);
        let own = said(setting_up(&[("cudaMalloc", 0.4)], &[("rand", 0.7)]));
        assert!(!own.summary.contains("setup") && own.evidence[1].contains("`rand` 70 %"), "{own:?}");
        assert!(!own.evidence.iter().any(|line| line.contains("creates a context")), "{own:?}");
        assert!(said(setting_up(&[], &[])).evidence[0].contains("Nothing shows"));
    }

    #[test]
    fn it_speaks() {
        for mostly in Category::ALL.into_iter().map(Some).chain([None]) {
            speaks(&RULE, WarmUp { steps: 2, steady: 0, share: 0.9, mostly });
        }
        speaks(&RULE, setting_up(&[("cudaFree", 8_000.0)], &[]));
        speaks(&RULE, setting_up(&[], &[]));
        speaks(&RULE, setting_up(&[], &[("rand", 0.7), ("main", 0.1)]));
    }

    #[test]
    fn a_pipeline_that_fills_its_buffers_does_not_compile() {
        let warm = WarmUp { steps: 1, steady: 9, share: 0.6, mostly: Some(Category::Input) };
        let evidence = words(&RULE, warm, Framework::TensorFlow).evidence;
        assert!(evidence[0].starts_with("It waits for its batch: at first"), "{evidence:?}");
    }

    #[test]
    fn nouns_and_verbs_agree() {
        let said = |steps, steady| {
            words(&RULE, WarmUp { steps, steady, share: 0.98, mostly: None }, Framework::Jax).summary
        };
        assert_eq!(
            said(1, 8),
            "Warm-up: 1 step takes 98 % of the recorded step time; only 8 steady steps follow."
        );
        assert_eq!(
            said(2, 1),
            "Warm-up: 2 steps take 98 % of the recorded step time; only 1 steady step follows."
        );
    }
}
