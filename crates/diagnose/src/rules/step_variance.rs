//! Steps differ so much from one another that one number does not describe them.
//!
//! # What it means
//! Some steps take much longer than others. Tracing, writing and waiting for input have findings of their own.
//!
//! # How it is detected
//! Of {STEPS} steps or more, the 90th percentile is at least {TAIL} times the median, or the standard deviation is at least
//! {SPREAD} of the mean. The finding names the category that varies most.
//!
//! The finding says what the long steps do: run more ops, or spend their time in one op, call or range. If they do the same
//! and all of it takes longer by one factor, the host's own work included, the machine was busy or its clock varied. Then the
//! finding is a remark on the recording, and not the verdict.
//!
//! If another loop that runs the model, such as an evaluation, runs at regular intervals and takes at least {NOTABLE} of
//! the time per step, the finding owns that time.
//!
//! If steps of at least {LONG} times the median recur, and call functions that the others do not call or come at equal distances,
//! the finding says how often. It owns what they compute beyond the others if that is at least {NOTABLE} of the step: an
//! evaluation in the loop. A fix saves at most {GAIN} of that. Such a finding is a `warning`: only the author knows how
//! often it is wanted.
//!
//! If ranks of a job hold up one another in turn, each in some steps, no rank is the straggler: the finding says in how many
//! steps that happens, and what the late rank does then.
//!
//! # How to fix it
//! An evaluation between epochs: run it after every few epochs, on fewer batches, or in another process on saved
//! checkpoints.
//!
//! Otherwise, depending on the category: keep more batches ready, write in the background, find the shapes that compile, look for
//! other programs on the machine.
//!
//! # How to check
//! `stepscope steps PATH`. `compare` also reports how many steps it takes to see a difference through the noise.

mod in_turn;

use stepscope_analyze::Category;
use stepscope_analyze::time::odd_steps::{OddSteps, OtherLoop};
use stepscope_analyze::time::peaks::Peaks;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::time::uneven_steps::UnevenSteps;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, quoted, share, short};
use stepscope_trace::statistics::Moments;

use super::shared::{of_step, severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::{self, in_steps, lines};

/// The rule.
pub static RULE: Rule = Rule {
    id: "step-variance",
    about: About::Cause,
    view: "steps",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("step_variance.rs"),
};

thresholds! {
    /// Fewer steps have no spread worth naming.
    STEPS: Number = 5.0;
    /// 90th percentile over median: beyond it, one number does not describe the steps.
    TAIL: Number = 1.5;
    /// Standard deviation over mean: likewise.
    SPREAD: Share = 0.35;
    /// A step this many times as long as the median does something else.
    LONG: Number = stepscope_analyze::time::odd_steps::LONG;
    /// What recurring long steps do beyond the others can be done elsewhere or less often.
    GAIN: Share = 1.0;
}

/// This many steps at equal distances are not chance.
const PERIODIC: usize = 3;

fn check(facts: &Facts) -> Option<Finding> {
    if let Some(finding) = in_turn::check(facts) {
        return Some(finding);
    }
    let (moments, host) = (facts.summary.step_ms?, facts.summary.bound()?);
    if (facts.summary.count as f64) < STEPS || moments.median <= 0.0 || moments.mean <= 0.0 {
        return None;
    }
    if let Some(finding) = facts.odd.as_ref().and_then(|odd| other_loop(facts, odd)) {
        return Some(finding);
    }
    let (tail, spread) = (moments.p90 / moments.median, moments.stddev? / moments.mean);
    if let Some((odd, claims)) = facts.odd.as_ref().and_then(|odd| Some((odd, recurring(facts, odd)?))) {
        // Only its author knows whether it is wanted as often.
        let finding = Finding::new(&RULE, Severity::Warning, LongSteps(odd.clone()), facts.framework());
        return Some(finding.owning(claims, Some(GAIN)).in_steps(odd.recurrence).sure(0.7));
    }
    (tail >= TAIL || spread >= SPREAD).then(|| {
        let varies =
            Category::ALL.into_iter().max_by(|&a, &b| deviation(host, a).total_cmp(&deviation(host, b)));
        let varies = varies.filter(|category| *category != Category::Unknown);
        let lengths: Vec<f64> = host.counted().map(|step| step.span.dur().ms()).collect();
        let why = facts.uneven.clone();
        let sure = if why.as_ref().is_some_and(is_machine) { MACHINE } else { 0.8 };
        let cause = Variance { spread, tail, varies, why, peaks: Peaks::of(&lengths) };
        Finding::new(&RULE, Severity::Info, cause, facts.framework()).sure(sure)
    })
}

/// How sure it is that steps are long because of the program if everything in them takes longer.
const MACHINE: f64 = 0.2;

fn is_machine(why: &UnevenSteps) -> bool {
    matches!(why, UnevenSteps::Everything(_))
}

/// Another loop between the steps that recurs and takes a notable share of the time.
fn other_loop(facts: &Facts, odd: &OddSteps) -> Option<Finding> {
    let other = odd.other_loop.as_ref().filter(|other| other.recurrence.recurs())?;
    let claims = facts.owned_over(&other.shares, facts.summary.count as u64);
    let share = of_step(facts, total(&claims));
    let cause = Evaluation { other: other.clone(), usual_ms: odd.usual_ms, functions: odd.functions.clone() };
    (share >= NOTABLE).then(|| {
        Finding::new(&RULE, severity(share), cause, facts.framework())
            .owning(claims, Some(GAIN))
            .in_steps(other.recurrence)
            .sure(0.8)
    })
}

/// What recurring long steps compute beyond the others, per mean step; `None` if they do not recur, if it is not much, or
/// if they may be slow for no reason of the program's.
fn recurring(facts: &Facts, odd: &OddSteps) -> Option<Vec<(Category, f64)>> {
    let wanted = [Category::Compute, Category::Dispatch];
    let steps = facts.summary.count.max(1) as f64;
    let excess = |category| (odd.excess.get(category).ms() / steps).min(facts.ms(category));
    let claims: Vec<(Category, f64)> = wanted.map(|category| (category, excess(category))).to_vec();
    // Their own functions show that they do something else. Equal distances do too, if there are enough of them.
    let beyond = (odd.odd_ms - odd.usual_ms).max(f64::MIN_POSITIVE);
    let functions: f64 = odd.functions.iter().map(|(_, ms)| ms).sum();
    let periodic = odd.recurrence.is_periodic() && odd.recurrence.steps >= PERIODIC;
    let differs = functions >= beyond / 2.0 || periodic && !facts.uneven.as_ref().is_some_and(is_machine);
    let much = of_step(facts, total(&claims)) >= NOTABLE;
    (odd.recurrence.recurs() && differs && much).then_some(claims)
}

/// How much a category's time varies from step to step, in milliseconds.
fn deviation(host: &HostSummary, category: Category) -> f64 {
    let times = host.counted().map(|step| step.shares.get(category).ms());
    Moments::of(times).and_then(|moments| moments.stddev).unwrap_or(0.0)
}

/// Steps that differ.
#[derive(Clone, Debug)]
pub struct Variance {
    /// Standard deviation over mean.
    pub spread: f64,
    /// The 90th percentile over the median.
    pub tail: f64,
    /// The category that varies most from step to step.
    pub varies: Option<Category>,
    /// What the long ones do, as far as is known.
    pub why: Option<UnevenSteps>,
    /// The two kinds of steps, if there are two.
    pub peaks: Option<Peaks>,
}

impl Cause for Variance {
    fn words(&self, _: &Finding) -> Words {
        let what = match (&self.why, self.varies) {
            (Some(why), _) => format!("; {}", why_words(why)),
            (None, Some(category)) => {
                format!("; `{}` varies most ({})", category.key(), words::category(category))
            }
            (None, None) => String::new(),
        };
        let summary = match self.peaks {
            Some(peaks) => format!("Step variance: {}{what}.", peaks_words(&peaks)),
            None => format!(
                "Step variance: steps differ by {} of their mean, and one in ten takes at least {} times the median{what}.",
                share(self.spread),
                short(self.tail)
            ),
        };
        Words {
            summary,
            evidence: vec![
                format!("Standard deviation over mean: {}.", share(self.spread)),
                format!("90th percentile over median: {}.", short(self.tail)),
            ],
            advice: match &self.why {
                Some(UnevenSteps::MoreWork(..) | UnevenSteps::Grows(..)) => lines([LOOK]),
                Some(UnevenSteps::Everything(_)) => lines([
                    "Record again on a machine that does nothing else, and compare several runs before you change the program.",
                ]),
                None => lines([LOOK, usual_reason(self.varies)]),
            },
        }
    }

    fn is_noise(&self) -> bool {
        self.why.as_ref().is_some_and(is_machine)
    }
}

/// `the long ones run 120 ops instead of 80`.
fn why_words(why: &UnevenSteps) -> String {
    match why {
        UnevenSteps::MoreWork(usual, long) => {
            format!("the long ones run {} ops and kernels instead of {}", short(*long), short(*usual))
        }
        UnevenSteps::Grows(name, usual, long) => {
            let (usual, long) = (duration_ms(*usual), duration_ms(*long));
            format!("{} takes {long} in the long ones and {usual} in the others", quoted(name))
        }
        UnevenSteps::Everything(factor) => format!(
            "the long ones do the same, and all of it takes about {} times as long, as on a busy machine",
            short(*factor)
        ),
    }
}

/// Steps that recur and do something which the others do not.
#[derive(Clone, Debug)]
pub struct LongSteps(pub OddSteps);

impl Cause for LongSteps {
    fn words(&self, finding: &Finding) -> Words {
        let LongSteps(odd) = self;
        let (long, usual) = (duration_ms(odd.odd_ms), duration_ms(odd.usual_ms));
        let mut evidence = vec![format!("Their median is {long}; that of the other steps is {usual}.")];
        evidence.extend(odd.functions.iter().take(3).map(|(name, ms)| {
            format!("Only these steps call {}: {} in each.", quoted(name), duration_ms(*ms))
        }));
        Words {
            summary: format!(
                "Step variance: {} take {long} instead of {usual}; the extra work takes {} of the mean step.",
                in_steps(&odd.recurrence),
                share(finding.fraction.unwrap_or_default())
            ),
            evidence,
            advice: lines([
                "If it is an evaluation, run it less often, on fewer batches, or in another process on saved checkpoints.",
                LOOK,
            ]),
        }
    }
}

/// `steps are of two kinds, about 22.9 ms and 130 ms (44 % of them)`.
pub fn peaks_words(peaks: &Peaks) -> String {
    let (short, long) = (duration_ms(peaks.short_ms), duration_ms(peaks.long_ms));
    match peaks.alternate {
        true => format!("steps alternate between about {short} and {long}"),
        false => {
            format!("steps are of two kinds, about {short} and {long} ({} of them)", share(peaks.long_share))
        }
    }
}

/// Another loop between the steps.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// When it runs, and what it takes.
    pub other: OtherLoop,
    /// The median duration of the steps that it does not follow, in milliseconds.
    pub usual_ms: f64,
    /// Functions that are only called in the steps that it follows, in milliseconds per such step.
    pub functions: Vec<(String, f64)>,
}

impl Cause for Evaluation {
    fn words(&self, finding: &Finding) -> Words {
        let per_step = self.other.shares.total().ms() / self.other.recurrence.of.max(1) as f64;
        let every = match self.other.recurrence.every {
            Some(1) => "after every step".to_owned(),
            Some(every) => format!("after every {every} steps"),
            None => format!("after {}", in_steps(&self.other.recurrence)),
        };
        let mut evidence = vec![
            format!(
                "It takes {} each time; the other steps take {}.",
                duration_ms(self.other.ms),
                duration_ms(self.usual_ms)
            ),
            "It runs the model between the steps, as an evaluation does.".to_owned(),
        ];
        evidence.extend(self.functions.iter().take(2).map(|(name, ms)| {
            format!("Only then is {} called: {} each time.", quoted(name), duration_ms(*ms))
        }));
        Words {
            summary: format!(
                "Step variance: an evaluation, or another loop that runs the model, runs {every} and takes {} on average.",
                finding.owned(per_step)
            ),
            evidence,
            advice: evaluate_less(finding.framework),
        }
    }
}

/// How to spend less time on evaluations.
fn evaluate_less(framework: Framework) -> Vec<String> {
    let less = match framework {
        Framework::Keras => {
            "If it is an evaluation, run it less often or on fewer batches: `model.fit(..., validation_freq=5, \
             validation_steps=10)`."
        }
        _ => "If it is an evaluation, run it less often or on fewer batches.",
    };
    lines([
        less,
        "Evaluate saved checkpoints in another process, so that training does not wait.",
        "Train longer between two evaluations: longer epochs also set up fewer iterators.",
    ])
}

const LOOK: &str = "Look at the long steps: `stepscope steps PATH --sort duration_ms`.";

/// What makes a category vary.
fn usual_reason(varies: Option<Category>) -> &'static str {
    match varies {
        Some(Category::Input) => {
            "Usual cause: a buffer that runs empty now and then. Keep more batches ready."
        }
        Some(Category::Output) => "Usual cause: writing in every n-th step. Write in the background.",
        Some(Category::Tracing | Category::Compile) => {
            "Usual cause: functions that are built in some steps only. Find which shapes or arguments are new there."
        }
        Some(Category::Python) => {
            "Usual cause: Python that runs in some steps only, such as logging, evaluation or garbage collection."
        }
        Some(Category::Compute) => {
            "Usual cause: batches of different sizes, or other programs on the same processor."
        }
        Some(Category::Communication) => {
            "Usual cause: devices that wait for one another. Look for a slow host."
        }
        _ => "Usual cause: other programs on the same machine.",
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::Shares;
    use stepscope_analyze::time::recurrence::Recurrence;

    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for varies in Category::ALL {
            speaks(&RULE, Variance { spread: 0.5, tail: 2.0, varies: Some(varies), why: None, peaks: None });
        }
        let causes = [
            UnevenSteps::MoreWork(80.0, 120.0),
            UnevenSteps::Grows("aten::sort".to_owned(), 1.0, 20.0),
            UnevenSteps::Everything(2.0),
        ];
        for why in causes {
            let noise = is_machine(&why);
            let cause = Variance { spread: 0.5, tail: 2.0, varies: None, why: Some(why), peaks: None };
            assert_eq!(cause.is_noise(), noise);
            speaks(&RULE, cause);
        }
        let peaks = Peaks { short_ms: 10.0, long_ms: 90.0, long_share: 0.4, alternate: false };
        for alternate in [false, true] {
            let peaks = Some(Peaks { alternate, ..peaks });
            let varies = Some(Category::Input);
            speaks(&RULE, Variance { spread: 0.5, tail: 2.0, varies, why: None, peaks });
        }
        let other = OtherLoop {
            recurrence: Recurrence { steps: 3, of: 18, every: Some(6) },
            ms: 300.0,
            shares: Shares::default(),
        };
        speaks(&RULE, Evaluation { other, usual_ms: 10.0, functions: vec![("test_step".to_owned(), 290.0)] });
    }
}
