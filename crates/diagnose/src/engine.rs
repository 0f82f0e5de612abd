//! Runs the rules and settles who owns what.
//!
//! Rules compete for the step's time: two of them may have a claim on the same milliseconds (launch-bound and
//! idle, for example), but fixing both cannot save them twice. So claims are served in order, the strongest first,
//! from what the categories own, and all gains together never exceed the step.

use std::collections::BTreeMap;

use stepscope_analyze::Category;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::time::summary::StepRow;
use stepscope_trace::Dur;

use crate::facts::Facts;
use crate::finding::{Finding, Severity, WorstStep};
use crate::owners;
use crate::rule::About;
use crate::rules::RULES;
use crate::thresholds;

/// What is wrong, the verdict first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(facts)).collect();
    findings.sort_by(order);
    // Those that promise something are served before those that only describe.
    let (mut promising, describing): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| finding.winnable.is_some() || finding.claims.is_empty());
    promising.extend(describing);
    let mut findings = promising;
    settle(&mut findings, facts);
    findings.sort_by(order);
    // What others have a better claim to is not worth saying twice.
    let step = facts.summary.length_ms();
    findings.retain(|finding| {
        step <= 0.0 || finding.claims.is_empty() || finding.claimed_ms() / step >= thresholds::NOTABLE
    });
    if is_tiny(facts) {
        findings.retain(Finding::is_about_trust);
    }
    if findings.iter().any(|finding| finding.cause.hides_habits()) {
        findings.retain(|finding| finding.rule.about != About::Habits);
    }
    owners::explain(&mut findings, facts);
    findings
}

/// Is so little recorded that any share of it is chance?
fn is_tiny(facts: &Facts) -> bool {
    let Some(host) = facts.summary.bound().filter(|_| facts.timeline) else { return false };
    let step = facts.summary.length_ms();
    step < thresholds::TINY || (host.whole_capture && (host.events as f64) < thresholds::FEW_EVENTS)
}

/// Trust first; then by severity, what can be saved before what cannot, and within one by what they own. Ties are broken
/// by the rank of findings about trust, by habits before others, and by the id: never by where a rule is listed.
fn order(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    // What can be saved comes before a healthy verdict, which stands where its share puts it among mere remarks.
    let rank = |finding: &Finding| match finding.severity {
        Severity::Critical => 0,
        Severity::Warning if finding.promises() => 1,
        Severity::Warning | Severity::Info => 2,
    };
    let leads = |finding: &Finding| match finding.rule.about {
        About::Trust { .. } => 0,
        About::Answer => 1,
        About::Habits | About::Cause if finding.cause.leads() => 2,
        About::Habits | About::Cause => 3,
    };
    // What a loop does in every step is the better start.
    let first = |finding: &Finding| match finding.rule.about {
        About::Trust { rank } => rank,
        About::Habits => 0,
        About::Answer | About::Cause => 1,
    };
    leads(a)
        .cmp(&leads(b))
        .then(rank(a).cmp(&rank(b)))
        .then(b.claimed_ms().total_cmp(&a.claimed_ms()))
        .then(a.severity.cmp(&b.severity))
        .then(first(a).cmp(&first(b)))
        .then(a.id().cmp(b.id()))
}

fn settle(findings: &mut [Finding], facts: &Facts) {
    let step = facts.summary.length_ms();
    let stepless = facts.timeline && facts.summary.bound().is_some_and(|host| host.whole_capture);
    let has_device = facts.has_device();
    let mut left: BTreeMap<Category, f64> = facts.summary.breakdown_ms.iter().copied().collect();
    for finding in findings {
        finding.stepless = stepless;
        finding.has_device = has_device;
        let mut served = 0.0;
        let about: f64 =
            finding.claims.iter().map(|&(category, ms)| ms.min(facts.ms(category)).max(0.0)).sum();
        finding.about_ms = Some(about).filter(|ms| *ms > 0.0);
        for (category, ms) in &mut finding.claims {
            let available = left.entry(*category).or_default();
            let taken = ms.min(*available).max(0.0);
            *available -= taken;
            served += taken;
            *ms = taken;
        }
        if step > 0.0 && !finding.claims.is_empty() {
            finding.fraction = Some((about / step).clamp(0.0, 1.0));
        }
        // Without a timeline there is no step whose milliseconds could be won.
        let winnable = finding.winnable.filter(|_| facts.timeline);
        finding.place = worst_step(finding, facts);
        finding.gain_ms = winnable.map(|share| (served * share).min(step));
        finding.recurrence = finding.recurrence.or_else(|| concentrated(finding, facts));
        if finding.recurrence.is_some_and(|often| often.steps == 1 && often.of >= OFTEN_ENOUGH) {
            // What happened once says nothing about the steps to come.
            finding.severity = finding.severity.max(Severity::Info);
            finding.gain_ms = None;
        }
    }
}

/// Of fewer steps nobody can tell whether one is the exception.
const OFTEN_ENOUGH: usize = 5;

/// The steps that hold nearly all of what a finding is about, where those are not more than half of all.
fn concentrated(finding: &Finding, facts: &Facts) -> Option<Recurrence> {
    let host = facts.summary.bound().filter(|host| !host.whole_capture && !finding.claims.is_empty())?;
    let owned: Vec<Dur> = host
        .counted()
        .map(|step| finding.claims.iter().map(|&(category, _)| step.shares.get(category)).sum())
        .collect();
    let all: Dur = owned.iter().copied().sum();
    let mut sorted = owned.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut held = Dur::ZERO;
    let enough = sorted.iter().take(owned.len() / 2).find(|&&time| {
        held += time;
        held.fraction_of(all) >= thresholds::IN_SOME_STEPS
    });
    let least = *enough.filter(|_| !all.is_zero())?;
    Some(Recurrence::of(owned.iter().map(|&time| time >= least)))
}

/// Where to look: the step that counts in which the finding's categories own most.
fn worst_step(finding: &Finding, facts: &Facts) -> Option<WorstStep> {
    let host = facts.summary.bound().filter(|host| !host.whole_capture && !finding.claims.is_empty())?;
    let owned = |step: &StepRow| -> Dur {
        finding
            .claims
            .iter()
            .filter(|(_, ms)| *ms > 0.0)
            .map(|&(category, _)| step.shares.get(category))
            .sum()
    };
    let worst = host.counted().max_by_key(|step| owned(step))?;
    Some(WorstStep { host: host.host.clone(), span: worst.span })
}

impl Finding {
    /// Does it promise something that can be relied on?
    fn promises(&self) -> bool {
        self.winnable.is_some() && self.claimed_ms() > 0.0 && self.confidence >= thresholds::RELIABLE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stepscope_analyze::breakdown::Shares;
    use stepscope_analyze::steps::{How, Origin, StepKind};
    use stepscope_analyze::time::callbacks::Callbacks;
    use stepscope_analyze::time::eager::Eager;
    use stepscope_analyze::time::pipeline_setup::SetUp;
    use stepscope_analyze::time::summary::{HostSummary, Summary};
    use stepscope_analyze::vocabulary::Framework;
    use stepscope_analyze::work::layers::Layers;
    use stepscope_trace::{Span, Time};

    use super::*;
    use crate::facts::{
        DeviceWork, Exchanges, Loader, OpCost, Precision, PythonLine, Recording, WithoutMatrixUnits,
    };

    /// Facts about steps that are all alike, with these milliseconds a category.
    fn facts(owned: &[(Category, u16)]) -> Facts {
        let mut shares = Shares::default();
        owned.iter().for_each(|&(category, ms)| shares.add(category, Dur::from_us(i64::from(ms) * 1_000)));
        let length = shares.total();
        let step = |number: i64| {
            let start = Time::ZERO + Dur::from_ps(length.ps() * number);
            StepRow { number, span: Span::new(start, start + length), shares, excluded: None }
        };
        let host = HostSummary {
            host: "a".to_owned(),
            framework: Framework::TensorFlow,
            origin: Origin::Marker,
            how: How::Marker("train".to_owned()),
            kind: StepKind::Training,
            whole_capture: false,
            covers: stepscope_analyze::Coverage::default(),
            steps: (0..10).map(step).collect(),
            devices: Vec::new(),
            bottleneck_device: None,
            asynchronous: false,
            device_unseen: false,
            hidden_communication_ms: 0.0,
            hidden_copies_ms: 0.0,
            events: 100,
        };
        Facts {
            summary: Summary::finish(vec![host]),
            recording: Recording::default(),
            ops: Vec::new(),
            precision: Precision::Single,
            inner_loop: None,
            called: Vec::new(),
            output_ops: Vec::new(),
            around_output_ms: 0.0,
            variables_read: 0.0,
            writers: Vec::new(),
            eager: Eager::default(),
            layers: Layers::default(),
            callbacks: Callbacks::default(),
            setup: SetUp::default(),
            updates: stepscope_analyze::time::optimizer::Updates::default(),
            one_side: None,
            odd: None,
            rebuilt: Vec::new(),
            loader: Loader::Unknown,
            python: Vec::new(),
            ranges: Vec::new(),
            device: None,
            kernels_of: Framework::Unknown,
            counters: Vec::new(),
            timeline: true,
            memory: Vec::new(),
            detail: None,
            waiting: None,
            exchanges: Exchanges::default(),
            requests: None,
        }
    }

    fn ids(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(Finding::id).collect()
    }

    fn without_matrix_units(share: f64) -> WithoutMatrixUnits {
        WithoutMatrixUnits { share, kernel: "sgemm".to_owned(), speedup: 2.0, only_half: false }
    }

    #[test]
    fn the_largest_owner_is_the_verdict() {
        let waiting = diagnose(&facts(&[(Category::Compute, 20), (Category::Input, 80)]));
        assert_eq!(ids(&waiting), ["input-bound"]);
        assert_eq!(waiting[0].gain_ms, Some(80.0));
        assert_eq!(waiting[0].place.as_ref().map(|place| place.span.dur()), Some(Dur::from_us(100_000)));
        let healthy = diagnose(&facts(&[(Category::Compute, 90), (Category::Input, 10)]));
        assert_eq!(ids(&healthy), ["compute-bound"]);
        assert_eq!(healthy[0].gain_ms, None);
    }

    /// A host of another name whose steps have these milliseconds per category.
    fn rank(name: &str, owned: &[(Category, u16)]) -> HostSummary {
        let mut host = facts(owned).summary.hosts.remove(0);
        host.host = name.to_owned();
        host
    }

    #[test]
    fn the_rank_that_all_wait_for_comes_first_with_its_reason() {
        let mut facts = facts(&[]);
        let waits = rank("rank0", &[(Category::Compute, 40), (Category::Communication, 60)]);
        let owned = [(Category::Compute, 40), (Category::Python, 52), (Category::Communication, 10)];
        facts.summary = Summary::finish(vec![waits.clone(), rank("rank1", &owned)]);
        let findings = diagnose(&facts);
        let first = &findings[0];
        assert_eq!((first.id(), first.subject.as_deref()), ("straggler", Some("rank1")));
        assert!(first.words().summary.contains("mostly in `python`"), "{}", first.words().summary);
        assert_eq!(first.gain_ms, Some(52.0));
        facts.summary =
            Summary::finish(vec![waits.clone(), HostSummary { host: "rank1".to_owned(), ..waits }]);
        assert_eq!(ids(&diagnose(&facts))[0], "communication-bound", "equal ranks");
    }

    #[test]
    fn a_fixable_share_comes_before_a_larger_healthy_one() {
        let findings = diagnose(&facts(&[(Category::Compute, 60), (Category::Input, 40)]));
        assert_eq!(ids(&findings), ["input-bound", "compute-bound"]);
    }

    #[test]
    fn what_can_be_won_comes_before_a_healthy_verdict() {
        let findings = diagnose(&facts(&[(Category::Compute, 75), (Category::Input, 25)]));
        assert_eq!(ids(&findings), ["input-bound", "compute-bound"]);
        assert_eq!(findings[0].severity, Severity::Warning);
    }

    #[test]
    fn what_happened_once_promises_nothing_per_step() {
        let mut facts = facts(&[(Category::Compute, 100)]);
        let host = &mut facts.summary.hosts[0];
        host.steps[4].shares.add(Category::Input, Dur::from_us(900_000));
        host.steps[4].span.end = host.steps[4].span.end + Dur::from_us(900_000);
        facts.summary = Summary::finish(std::mem::take(&mut facts.summary.hosts));
        let findings = diagnose(&facts);
        let input = findings.iter().find(|finding| finding.id() == "input-bound");
        assert!(input.is_some_and(|input| input.gain_ms.is_none() && input.severity == Severity::Info));
    }

    #[test]
    fn without_steps_no_sentence_counts_by_them() {
        let mut facts = facts(&[(Category::Compute, 20), (Category::TransferIn, 80)]);
        let said = |facts: &Facts| {
            let findings = diagnose(facts);
            let copies = findings.into_iter().find(|finding| finding.id() == "transfer-bound").unwrap();
            copies.words().evidence.join(" ")
        };
        assert!(said(&facts).contains("80.0 ms per step"), "{}", said(&facts));
        facts.summary.hosts[0].whole_capture = true;
        facts.summary = Summary::finish(std::mem::take(&mut facts.summary.hosts));
        assert!(said(&facts).contains("80.0 ms in the capture"), "{}", said(&facts));
        assert!(!said(&facts).contains("per step"), "{}", said(&facts));
    }

    #[test]
    fn what_single_steps_dispatch_is_not_the_cost_of_ops() {
        let mut facts = facts(&[(Category::Compute, 90), (Category::Dispatch, 10)]);
        let host = &mut facts.summary.hosts[0];
        for step in [3, 7] {
            host.steps[step].shares.add(Category::Dispatch, Dur::from_us(400_000));
            host.steps[step].span.end = host.steps[step].span.end + Dur::from_us(400_000);
        }
        facts.summary = Summary::finish(std::mem::take(&mut facts.summary.hosts));
        assert!(facts.share(Category::Dispatch) > 0.4 && facts.usual_ms(Category::Dispatch) < 15.0);
        assert!(!ids(&diagnose(&facts)).contains(&"dispatch-bound"));
    }

    #[test]
    fn lines_of_python_take_no_more_than_python_owns() {
        let mut facts = facts(&[(Category::Python, 50), (Category::TransferIn, 50)]);
        facts.python = vec![PythonLine::new("train.py:7 put", 100.0)];
        let findings = diagnose(&facts);
        let python = findings.iter().find(|finding| finding.id() == "host-python").expect("half of the step");
        assert_eq!(python.words().evidence[0], "`train.py:7 put`: 50.0 ms per step.");
    }

    #[test]
    fn python_of_the_pipeline_is_named_where_calls_may_wait_for_it() {
        let mut facts = facts(&[(Category::Compute, 20), (Category::Dispatch, 80)]);
        facts.callbacks.steps = 10;
        facts.callbacks.beside.add(Category::Dispatch, Dur::from_us(10 * 60_000));
        let words = diagnose(&facts)[0].words();
        assert!(words.evidence.iter().any(|said| said.contains("interpreter lock")), "{words:?}");
        assert!(words.advice[0].contains("tf.py_function"), "{words:?}");
    }

    #[test]
    fn of_next_to_nothing_nothing_is_said() {
        let mut facts = facts(&[(Category::Python, 100)]);
        assert!(!diagnose(&facts).is_empty());
        let host = &mut facts.summary.hosts[0];
        host.whole_capture = true;
        host.events = 4;
        facts.summary = Summary::finish(std::mem::take(&mut facts.summary.hosts));
        assert!(diagnose(&facts).iter().all(|finding| finding.is_about_trust()));
    }

    #[test]
    fn what_others_own_is_still_what_a_finding_is_about() {
        let mut facts = facts(&[(Category::Compute, 90), (Category::Launch, 10)]);
        facts.device = Some(DeviceWork {
            kernels_per_step: 10.0,
            kernel_us: 9_000.0,
            launch_us: None,
            graph_share: 0.0,
            without_matrix_units: Some(without_matrix_units(0.5)),
            low_occupancy: None,
        });
        let findings = diagnose(&facts);
        let healthy = findings.iter().find(|finding| finding.id() == "compute-bound").expect("healthy");
        assert_eq!(healthy.about_ms, Some(90.0), "all of the model's work");
        assert_eq!(healthy.fraction, Some(0.9), "and so says its share");
        assert!((healthy.claimed_ms() - 45.0).abs() < 1e-9, "half of it is matrix work of another finding");
    }

    #[test]
    fn ties_do_not_depend_on_where_a_rule_is_listed() {
        let mut facts = facts(&[(Category::Input, 100)]);
        facts.recording.damage = Some(("cut".to_owned(), Some(7)));
        facts.recording.device_missing = true;
        let mut findings = diagnose(&facts);
        assert_eq!(ids(&findings), ["truncated-trace", "no-device-trace", "input-bound"]);
        findings.reverse();
        findings.sort_by(order);
        assert_eq!(ids(&findings), ["truncated-trace", "no-device-trace", "input-bound"]);
    }

    #[test]
    fn doubt_comes_before_any_diagnosis() {
        let mut facts = facts(&[(Category::Input, 100)]);
        facts.recording.damage = Some(("cut".to_owned(), Some(7)));
        assert_eq!(ids(&diagnose(&facts)), ["truncated-trace", "input-bound"]);
    }

    #[test]
    fn one_op_is_named_and_its_compute_is_not_claimed_twice() {
        let mut facts = facts(&[(Category::Compute, 100)]);
        let op = |name: &str, share: f64| OpCost {
            op_type: name.to_owned(),
            example: None,
            ms_per_step: 100.0 * share,
            count_per_step: 1.0,
            devices: 1,
            share,
            is_kernel: false,
        };
        facts.ops = vec![op("ConcatV2", 0.95), op("Sum", 0.05)];
        assert_eq!(ids(&diagnose(&facts)), ["op-dominates"]);
        facts.ops = vec![op("MatMul", 0.95), op("Sum", 0.05)];
        assert_eq!(ids(&diagnose(&facts)), ["compute-bound"]);
    }

    #[test]
    fn two_rules_do_not_win_the_same_milliseconds() {
        let mut facts = facts(&[(Category::Dispatch, 50), (Category::Python, 50)]);
        facts.eager = Eager { ops: 10_000, between: Dur::from_us(400_000), steps: 10, ..Eager::default() };
        let findings = diagnose(&facts);
        assert_eq!(findings[0].id(), "eager-dispatch");
        let gains: f64 = findings.iter().filter_map(|finding| finding.gain_ms).sum();
        assert!(gains <= 100.0, "{gains}");
    }

    #[test]
    fn python_between_many_small_ops_is_the_cost_of_starting_them() {
        let mut facts = facts(&[(Category::Compute, 45), (Category::Python, 55)]);
        facts.eager = Eager { ops: 10_000, between: Dur::from_us(400_000), steps: 10, ..Eager::default() };
        assert_eq!(diagnose(&facts)[0].id(), "eager-dispatch");
        // Most of the Python lies elsewhere.
        facts.eager.between = Dur::from_us(100_000);
        assert_eq!(diagnose(&facts)[0].id(), "host-python");
    }

    #[test]
    fn overhead_that_exceeds_the_work_leads() {
        let owned = [(Category::Dispatch, 47), (Category::Python, 28), (Category::Compute, 25)];
        assert_eq!(diagnose(&facts(&owned))[0].id(), "dispatch-bound");
        let owned = [(Category::Dispatch, 25), (Category::Compute, 75)];
        assert_eq!(diagnose(&facts(&owned))[0].id(), "compute-bound");
    }

    #[test]
    fn a_large_share_that_nobody_owns_has_a_reason_on_the_verdict() {
        let findings = diagnose(&facts(&[(Category::Compute, 60), (Category::Unknown, 40)]));
        assert_eq!(ids(&findings), ["compute-bound"]);
        let rest: Vec<_> = findings[0].unowned.iter().map(|rest| (rest.category, rest.reason)).collect();
        assert_eq!(rest, [(Category::Unknown, owners::Reason::NotRecorded)]);
        let said = findings[0].words().evidence;
        assert!(said.iter().any(|line| line.starts_with("No finding owns 40.0 ms of `unknown`")), "{said:?}");
        let owned = diagnose(&facts(&[(Category::Compute, 85), (Category::Unknown, 15)]));
        assert_eq!(owned[0].unowned, [], "a small share needs none");
    }

    proptest! {
        #[test]
        fn gains_never_exceed_the_step(
            owned in prop::collection::vec(0u16..200, Category::COUNT),
            ops in 0u64..100_000,
            between in 0i64..1_000_000,
            product in 0.0f64..1.0,
        ) {
            let owned: Vec<(Category, u16)> = Category::ALL.into_iter().zip(owned).collect();
            let mut facts = facts(&owned);
            facts.eager = Eager { ops, between: Dur::from_us(between), kernels: Dur::from_us(between), steps: 10, ..Eager::default() };
            facts.device = Some(DeviceWork {
                kernels_per_step: 1_000.0,
                kernel_us: 3.0,
                launch_us: Some(6.0),
                graph_share: 0.0,
                without_matrix_units: Some(without_matrix_units(product)),
                low_occupancy: None,
            });
            let step = facts.summary.length_ms();
            let findings = diagnose(&facts);
            let gains: f64 = findings.iter().filter_map(|finding| finding.gain_ms).sum();
            prop_assert!(gains <= step + 1e-6, "{} of {}", gains, step);
            for finding in &findings {
                prop_assert!(finding.fraction.is_none_or(|fraction| (0.0..=1.0).contains(&fraction)));
                if let (Some(gain), Some(fraction)) = (finding.gain_ms, finding.fraction) {
                    prop_assert!(gain <= fraction * step + 1e-6, "{:?} wins more than it owns", finding.id());
                }
            }
        }
    }
}
