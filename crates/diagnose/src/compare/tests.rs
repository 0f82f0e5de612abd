//! Comparisons of made-up runs: what must be told, what must not.

use proptest::prelude::*;
use stepscope_analyze::{Category, Shares};
use stepscope_trace::{DeviceKind, Dur};

use super::*;
use crate::statistics::Random;

/// A run whose steps scatter evenly around `level` by ± half of `spread`, relative.
pub(crate) fn noisy_run(seed: u64, n: usize, level: f64, spread: f64) -> ComparedRun {
    let mut random = Random::new(seed);
    let steps_ms = (0..n).map(|_| level * (1.0 + spread * (random.unit() - 0.5))).collect();
    ComparedRun { label: format!("run {seed}"), steps_ms, ..ComparedRun::default() }
}

/// A run of equal steps with this breakdown.
pub(crate) fn run_of(parts: &[(Category, f64)], n: usize) -> ComparedRun {
    let mut shares = Shares::default();
    parts.iter().for_each(|(category, ms)| shares.add(*category, Dur::from_ps((ms * 1e9) as i64)));
    ComparedRun { steps_ms: vec![shares.total().ms(); n], shares: vec![shares; n], ..ComparedRun::default() }
}

fn judged(base: &[ComparedRun], new: &[ComparedRun]) -> Verdict {
    compare(base, new, Margins::default()).verdict
}

/// Roughly normal noise of three per cent, the next run another level by one per cent.
fn realistic(seed: u64, n: usize, level: f64) -> ComparedRun {
    let mut random = Random::new(seed);
    let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let level = level * (0.0075 * normal()).exp();
    let steps_ms = (0..n).map(|_| level * (0.03 * normal()).exp()).collect();
    ComparedRun { steps_ms, ..ComparedRun::default() }
}

#[test]
fn on_a_quiet_machine_one_run_finds_thirty_per_cent_and_three_find_ten() {
    let rounds = 40;
    let count = |runs: u64, factor: f64, verdict: Verdict| {
        let side = |round: u64, level: f64| -> Vec<ComparedRun> {
            (0..runs).map(|run| realistic(100 * round + run, 30, level)).collect()
        };
        (0..rounds)
            .filter(|&round| judged(&side(2 * round, 20.0), &side(2 * round + 1, 20.0 * factor)) == verdict)
            .count()
    };
    assert!(count(1, 1.0, Verdict::Same) >= 38);
    assert!(count(1, 1.3, Verdict::Slower) >= 38);
    assert!(count(1, 0.75, Verdict::Faster) >= 38);
    assert!(count(3, 1.1, Verdict::Slower) >= 38);
    assert!(count(3, 0.9, Verdict::Faster) >= 38);
}

/// A run of a program with eight ops and `python_ms` around them, on a machine that makes everything take `machine` times
/// as long.
fn on_machine(seed: u64, machine: f64, python_ms: f64) -> ComparedRun {
    let mut random = Random::new(seed);
    let mut run = ComparedRun::default();
    for _ in 0..60 {
        let pace = machine * (1.0 + 0.2 * (random.unit() - 0.5));
        let mut shares = Shares::default();
        shares.add(Category::Compute, Dur::from_ps((pace * 9.0e9) as i64));
        shares.add(Category::Python, Dur::from_ps((pace * python_ms * 1e9) as i64));
        run.steps_ms.push(shares.total().ms());
        run.shares.push(shares);
    }
    run.ops = (0..8)
        .map(|number| OpTime {
            name: format!("op {number}"),
            op_type: "Op".to_owned(),
            on_device: false,
            ms_per_step: machine * (1.0 + 0.02 * (random.unit() - 0.5)) * (1.0 + f64::from(number) / 8.0),
            count_per_step: 1.0,
        })
        .collect();
    run
}

#[test]
fn a_machine_that_changes_its_pace_neither_makes_nor_hides_a_difference() {
    for (seed, (before, after)) in [(1.0, 1.25), (1.2, 0.95), (1.3, 1.0), (0.9, 1.2)].into_iter().enumerate()
    {
        let seed = 10 * seed as u64;
        let base = [on_machine(seed, before, 1.0)];
        let unchanged = compare(&base, &[on_machine(seed + 1, after, 1.0)], Margins::default());
        assert!(
            matches!(unchanged.verdict, Verdict::Unclear | Verdict::Same),
            "{before} {after}: {unchanged:?}"
        );
        let slower = compare(&base, &[on_machine(seed + 2, after, 3.0)], Margins::default());
        assert_eq!(slower.verdict, Verdict::Slower, "{before} {after}");
        let found = slower.beyond.unwrap().ratio.unwrap().value;
        assert!((1.12..1.25).contains(&found), "20 % more: {found}");
    }
}

#[test]
fn parts_of_an_unchanged_step_are_rarely_proven_to_change() {
    let pairs = 60;
    let wrong = (0..pairs)
        .filter(|pair| {
            let pace = [1.0, 1.03, 1.25, 0.9][*pair as usize % 4];
            let (base, new) = (on_machine(2 * pair, 1.0, 1.0), on_machine(2 * pair + 1, pace, 1.0));
            compare(&[base], &[new], Margins::default()).breakdown.iter().any(CategoryDelta::proven)
        })
        .count();
    assert!(wrong as u64 <= pairs / 20, "{wrong} of {pairs}");
}

#[test]
fn another_batch_size_is_not_taken_for_load() {
    let mut base = on_machine(1, 1.2, 1.0);
    let mut new = on_machine(2, 0.95, 3.0);
    (base.setting.batch_size, new.setting.batch_size) = (Some(16), Some(8));
    assert_eq!(compare(&[base], &[new], Margins::default()).beyond, None);
}

#[test]
fn chaos_is_unclear_and_says_what_to_do_next() {
    let (base, new) = (noisy_run(1, 10, 10.0, 1.5), noisy_run(2, 10, 11.0, 1.5));
    let comparison = compare(&[base], &[new], Margins::default());
    assert_eq!((comparison.verdict, comparison.next), (Verdict::Unclear, Some(Next::QuieterMachine)));
}

#[test]
fn a_cost_in_every_fourth_step_is_slower_although_the_median_stays() {
    let base = noisy_run(1, 24, 5.0, 0.1);
    let mut new = noisy_run(2, 24, 5.0, 0.1);
    new.steps_ms.iter_mut().step_by(4).for_each(|ms| *ms += 220.0);
    let comparison = compare(&[base], &[new], Margins::default());
    assert_eq!((comparison.verdict, comparison.decided_by), (Verdict::Slower, Basis::Mean));
    assert!((0.9..1.1).contains(&comparison.median.unwrap().ratio.unwrap().value));
    assert_eq!(comparison.new.rhythm.unwrap().every, 4.0);
    assert_eq!(comparison.base.rhythm, None);
}

#[test]
fn a_few_wild_steps_do_not_hide_a_slower_typical_step() {
    let mut base = noisy_run(1, 60, 10.0, 0.02);
    let mut new = noisy_run(2, 60, 13.0, 0.02);
    base.steps_ms[7] = 300.0;
    new.steps_ms[40] = 300.0;
    let comparison = compare(&[base], &[new], Margins::default());
    assert_eq!((comparison.verdict, comparison.decided_by), (Verdict::Slower, Basis::Median));
}

#[test]
fn load_that_moves_whole_runs_proves_nothing_but_three_times_as_long_does() {
    let loaded = |seed, level| [noisy_run(seed, 60, level, 0.7)];
    assert_eq!(judged(&loaded(1, 10.0), &loaded(2, 14.0)), Verdict::Unclear);
    assert_eq!(judged(&loaded(1, 10.0), &loaded(2, 120.0)), Verdict::Slower);
}

#[test]
fn runs_that_disagree_among_themselves_prove_nothing() {
    let side = |levels: [f64; 3]| -> Vec<ComparedRun> {
        levels.iter().enumerate().map(|(i, level)| noisy_run(i as u64, 40, *level, 0.02)).collect()
    };
    let comparison = compare(&side([10.0, 12.0, 9.0]), &side([10.5, 12.5, 10.0]), Margins::default());
    assert_eq!(comparison.verdict, Verdict::Unclear);
    assert_eq!(comparison.next, Some(Next::QuieterMachine));
    assert_eq!(judged(&side([10.0, 10.1, 9.9]), &side([12.0, 12.1, 11.9])), Verdict::Slower);
}

#[test]
fn one_step_per_side_proves_nothing() {
    let one = |ms: f64| [ComparedRun { steps_ms: vec![ms], ..ComparedRun::default() }];
    let comparison = compare(&one(10.0), &one(20.0), Margins::default());
    assert_eq!(comparison.verdict, Verdict::Unclear);
    assert_eq!(comparison.median.unwrap().ratio.unwrap().value, 2.0);
    assert_eq!(comparison.next, Some(Next::LongerRuns(20)));
}

#[test]
fn without_steps_or_on_other_hardware_nothing_is_comparable() {
    let steps = || noisy_run(1, 30, 10.0, 0.1);
    let comparison = compare(&[ComparedRun::default()], &[steps()], Margins::default());
    assert_eq!(comparison.verdict, Verdict::NotComparable);
    assert_eq!(comparison.median, None);
    let mut on_gpu = steps();
    on_gpu.setting.devices.push((DeviceKind::Gpu, "A100".to_owned()));
    let comparison = compare(&[steps()], &[on_gpu], Margins::default());
    assert_eq!((comparison.verdict, comparison.by_steps), (Verdict::NotComparable, Verdict::Same));
}

#[test]
fn the_breakdown_tells_what_moved() {
    let base = run_of(&[(Category::Compute, 9.0), (Category::Input, 3.0)], 30);
    let new = run_of(&[(Category::Compute, 9.0), (Category::Python, 0.5)], 30);
    let comparison = compare(&[base], &[new], Margins::default());
    let moved: Vec<(Category, f64, bool)> = comparison
        .breakdown
        .iter()
        .map(|delta| (delta.category, delta.measured.delta_ms.value, delta.proven()))
        .collect();
    assert_eq!(
        moved,
        [(Category::Input, -3.0, true), (Category::Python, 0.5, true), (Category::Compute, 0.0, false)]
    );
    assert_eq!(comparison.verdict, Verdict::Faster);
}

#[test]
fn findings_go_come_and_stay() {
    let with = |ids: &[&str]| ComparedRun {
        findings: ids.iter().map(|id| FindingKey { id: (*id).to_owned(), subject: None }).collect(),
        ..noisy_run(1, 20, 10.0, 0.1)
    };
    let changes = compare(
        &[with(&["input-bound", "retracing"])],
        &[with(&["retracing", "host-python"])],
        Margins::default(),
    )
    .findings;
    let ids = |findings: &[FindingKey]| findings.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&changes.solved), ["input-bound"]);
    assert_eq!(ids(&changes.new), ["host-python"]);
    assert_eq!(ids(&changes.left), ["retracing"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn steps_in_another_order_are_never_faster_or_slower(
        steps in prop::collection::vec(0.1_f64..1000.0, 0..120),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let mut shuffled = steps.clone();
        for place in (1..shuffled.len()).rev() {
            shuffled.swap(place, random.below(place + 1));
        }
        let run = |steps_ms| [ComparedRun { steps_ms, ..ComparedRun::default() }];
        let verdict = judged(&run(steps), &run(shuffled));
        prop_assert!(!matches!(verdict, Verdict::Faster | Verdict::Slower), "{verdict:?}");
    }

    #[test]
    fn both_directions_agree(
        base in prop::collection::vec(1.0_f64..3.0, 2..60),
        new in prop::collection::vec(1.0_f64..3.0, 2..60),
    ) {
        let run = |steps_ms: &Vec<f64>| [ComparedRun { steps_ms: steps_ms.clone(), ..ComparedRun::default() }];
        let there = compare(&run(&base), &run(&new), Margins::default()).median.unwrap().ratio.unwrap();
        let back = compare(&run(&new), &run(&base), Margins::default()).median.unwrap().ratio.unwrap();
        prop_assert!((there.value * back.value - 1.0).abs() < 1e-9);
        prop_assert!(there.low.unwrap() <= there.value && there.value <= there.high.unwrap());
    }
}
