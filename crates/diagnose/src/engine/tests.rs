//! Who owns what, and in which order findings are reported.

use proptest::prelude::*;
use stepscope_analyze::breakdown::Shares;
use stepscope_analyze::session::{Results, Session};
use stepscope_analyze::steps::{How, Origin, StepKind};
use stepscope_analyze::time::eager::Eager;
use stepscope_analyze::time::summary::{HostSummary, Summary};
use stepscope_analyze::vocabulary::Framework;
use stepscope_trace::{Span, Time};

use super::*;
use crate::facts::{
    DeviceWork, ModelOps, OpCost, Precision, PythonLine, PythonLines, Recording, WithoutMatrixUnits,
};

/// Facts about steps that are all alike, with these milliseconds a category.
pub(crate) fn facts(owned: &[(Category, u16)]) -> Facts {
    let mut shares = Shares::default();
    owned.iter().for_each(|&(category, ms)| shares.add(category, Dur::from_us(i64::from(ms) * 1_000)));
    let length = shares.total();
    let step = |number: i64| {
        let start = Time::ZERO + Dur::from_ps(length.ps() * number);
        StepRow { number, span: Span::new(start, start + length), shares, excluded: None }
    };
    let host = HostSummary {
        host: "a".to_owned(),
        part: None,
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
    let summary = Summary::finish(vec![host]);
    let mut facts = Facts::of(Session { timeline: true, summary, results: Results::default() });
    facts.set(Precision::Single);
    facts
}

fn damaged() -> Recording {
    Recording { damage: Some(("cut".to_owned(), Some(7))), ..Recording::default() }
}

fn ids(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(Finding::id).collect()
}

fn without_matrix_units(share: f64) -> WithoutMatrixUnits {
    WithoutMatrixUnits { share, kernel: "sgemm".to_owned(), speedup: 2.0, only_half: false }
}

#[test]
fn what_others_own_makes_a_finding_matter_less() {
    let facts = facts(&[(Category::Compute, 10), (Category::Dispatch, 90)]);
    let cause = || crate::rules::too_few_steps::FewSteps { count: 1, how: How::Nothing };
    let claiming = |ms| {
        Finding::new(&crate::rules::compute_bound::RULE, Severity::Critical, cause(), Framework::Jax)
            .owning(vec![(Category::Dispatch, ms)], Some(1.0))
    };
    let mut findings = [claiming(70.0), claiming(90.0), claiming(90.0)];
    settle(&mut findings, &facts, &mut facts.summary.breakdown_ms.iter().copied().collect());
    let severities = findings.each_ref().map(|finding| finding.severity);
    assert_eq!(severities, [Severity::Critical, Severity::Warning, Severity::Info]);
    let whole = &mut [claiming(60.0)];
    settle(whole, &facts, &mut facts.summary.breakdown_ms.iter().copied().collect());
    assert_eq!(whole[0].severity, Severity::Critical, "nobody else owns part of it");
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
    let mut host = facts(owned).into_session().summary.hosts.remove(0);
    host.host = name.to_owned();
    host
}

#[test]
fn the_rank_that_all_wait_for_comes_first_with_its_reason() {
    let mut facts = facts(&[]);
    let waits = rank("rank0", &[(Category::Compute, 40), (Category::Communication, 60)]);
    let owned = [(Category::Compute, 40), (Category::Python, 52), (Category::Communication, 10)];
    facts.session.summary = Summary::finish(vec![waits.clone(), rank("rank1", &owned)]);
    let findings = diagnose(&facts);
    let first = &findings[0];
    assert_eq!((first.id(), first.subject.as_deref()), ("straggler", Some("rank1")));
    assert!(first.words().summary.contains("mostly in `python`"), "{}", first.words().summary);
    assert_eq!(first.gain_ms, Some(52.0));
    facts.session.summary =
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
    let host = &mut facts.session.summary.hosts[0];
    host.steps[4].shares.add(Category::Input, Dur::from_us(900_000));
    host.steps[4].span.end = host.steps[4].span.end + Dur::from_us(900_000);
    facts.session.summary = Summary::finish(std::mem::take(&mut facts.session.summary.hosts));
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
    facts.session.summary.hosts[0].whole_capture = true;
    facts.session.summary = Summary::finish(std::mem::take(&mut facts.session.summary.hosts));
    assert!(said(&facts).contains("80.0 ms in the capture"), "{}", said(&facts));
    assert!(!said(&facts).contains("per step"), "{}", said(&facts));
}

#[test]
fn what_single_steps_dispatch_is_not_the_cost_of_ops() {
    let mut facts = facts(&[(Category::Compute, 90), (Category::Dispatch, 10)]);
    let host = &mut facts.session.summary.hosts[0];
    for step in [3, 7] {
        host.steps[step].shares.add(Category::Dispatch, Dur::from_us(400_000));
        host.steps[step].span.end = host.steps[step].span.end + Dur::from_us(400_000);
    }
    facts.session.summary = Summary::finish(std::mem::take(&mut facts.session.summary.hosts));
    assert!(facts.share(Category::Dispatch) > 0.4 && facts.usual_ms(Category::Dispatch) < 15.0);
    assert!(!ids(&diagnose(&facts)).contains(&"dispatch-bound"));
}

#[test]
fn lines_of_python_take_no_more_than_python_owns() {
    let mut facts = facts(&[(Category::Python, 50), (Category::TransferIn, 50)]);
    facts.set(PythonLines(vec![PythonLine::new("train.py:7 put", 100.0)]));
    let findings = diagnose(&facts);
    let python = findings.iter().find(|finding| finding.id() == "host-python").expect("half of the step");
    assert_eq!(python.words().evidence[0], "`train.py:7 put`: 50.0 ms per step.");
}

#[test]
fn python_of_the_pipeline_is_named_where_calls_may_wait_for_it() {
    let mut facts = facts(&[(Category::Compute, 20), (Category::Dispatch, 80)]);
    facts.session.results.callbacks.steps = 10;
    facts.session.results.callbacks.beside.add(Category::Dispatch, Dur::from_us(10 * 60_000));
    let words = diagnose(&facts)[0].words();
    assert!(words.evidence.iter().any(|said| said.contains("interpreter lock")), "{words:?}");
    assert!(words.advice[0].contains("tf.py_function"), "{words:?}");
}

#[test]
fn of_next_to_nothing_nothing_is_said() {
    let mut facts = facts(&[(Category::Python, 100)]);
    assert!(!diagnose(&facts).is_empty());
    let host = &mut facts.session.summary.hosts[0];
    host.whole_capture = true;
    host.events = 4;
    facts.session.summary = Summary::finish(std::mem::take(&mut facts.session.summary.hosts));
    assert!(diagnose(&facts).iter().all(|finding| finding.is_about_trust()));
}

#[test]
fn what_others_own_is_still_what_a_finding_is_about() {
    let mut facts = facts(&[(Category::Compute, 90), (Category::Launch, 10)]);
    facts.set(Some(DeviceWork {
        kernels_per_step: 10.0,
        kernel_us: 9_000.0,
        launch_us: None,
        graph_share: 0.0,
        without_matrix_units: Some(without_matrix_units(0.5)),
        low_occupancy: None,
    }));
    let findings = diagnose(&facts);
    let healthy = findings.iter().find(|finding| finding.id() == "compute-bound").expect("healthy");
    assert_eq!(healthy.about_ms, Some(90.0), "all of the model's work");
    assert_eq!(healthy.fraction, Some(0.9), "and so says its share");
    assert!((healthy.claimed_ms() - 45.0).abs() < 1e-9, "half of it is matrix work of another finding");
}

#[test]
fn ties_do_not_depend_on_where_a_rule_is_listed() {
    let mut facts = facts(&[(Category::Input, 100)]);
    facts.set(Recording { device_missing: true, ..damaged() });
    let mut findings = diagnose(&facts);
    assert_eq!(ids(&findings), ["input-bound", "truncated-trace", "no-device-trace"]);
    findings.reverse();
    findings.sort_by(order);
    assert_eq!(ids(&findings), ["truncated-trace", "no-device-trace", "input-bound"]);
}

#[test]
fn the_answer_comes_before_the_doubts_about_it() {
    let mut facts = facts(&[(Category::Input, 100)]);
    facts.set(damaged());
    assert_eq!(ids(&diagnose(&facts)), ["input-bound", "truncated-trace"]);
}

#[test]
fn one_op_is_named_and_its_compute_is_not_claimed_twice() {
    let mut facts = facts(&[(Category::Compute, 100)]);
    let op = |name: &str, share: f64| OpCost {
        origin: None,
        op_type: name.to_owned(),
        example: None,
        ms_per_step: 100.0 * share,
        count_per_step: 1.0,
        devices: 1,
        share,
        is_kernel: false,
    };
    facts.set(ModelOps(vec![op("ConcatV2", 0.95), op("Sum", 0.05)]));
    assert_eq!(ids(&diagnose(&facts)), ["op-dominates"]);
    facts.set(ModelOps(vec![op("MatMul", 0.95), op("Sum", 0.05)]));
    assert_eq!(ids(&diagnose(&facts)), ["compute-bound"]);
}

#[test]
fn two_rules_do_not_win_the_same_milliseconds() {
    let mut facts = facts(&[(Category::Dispatch, 50), (Category::Python, 50)]);
    facts.session.results.eager =
        Eager { ops: 10_000, between: Dur::from_us(400_000), steps: 10, ..Eager::default() };
    let findings = diagnose(&facts);
    assert_eq!(findings[0].id(), "eager-dispatch");
    let gains: f64 = findings.iter().filter_map(|finding| finding.gain_ms).sum();
    assert!(gains <= 100.0, "{gains}");
}

#[test]
fn python_between_many_small_ops_is_the_cost_of_starting_them() {
    let mut facts = facts(&[(Category::Compute, 45), (Category::Python, 55)]);
    facts.session.results.eager =
        Eager { ops: 10_000, between: Dur::from_us(400_000), steps: 10, ..Eager::default() };
    assert_eq!(diagnose(&facts)[0].id(), "eager-dispatch");
    // Most of the Python lies elsewhere.
    facts.session.results.eager.between = Dur::from_us(100_000);
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
        facts.session.results.eager = Eager { ops, between: Dur::from_us(between), kernels: Dur::from_us(between), steps: 10, ..Eager::default() };
        facts.set(Some(DeviceWork {
            kernels_per_step: 1_000.0,
            kernel_us: 3.0,
            launch_us: Some(6.0),
            graph_share: 0.0,
            without_matrix_units: Some(without_matrix_units(product)),
            low_occupancy: None,
        }));
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
