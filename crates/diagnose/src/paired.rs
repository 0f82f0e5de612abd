//! Paired runs: two programs that take turns in short windows of steps, so that both see the same machine from moment to
//! moment.
//!
//! The two windows of a pair run one after the other in random order. If the programs are equal, the logarithm of their
//! ratio is as likely positive as negative, whatever the machine does. The signed-rank statistic asks for nothing else, so
//! its interval holds on a loaded machine, too. It describes the pairs by the median of all means of two of them.

use crate::compare::noise::{Estimate, Measured};
use crate::compare::{
    Basis, Comparability, ComparedRun, Comparison, Margins, Verdict, Work, WorkDelta, compare, verdict,
};
use crate::statistics::{Confidence, median};

/// One step of a window.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PairedStep {
    /// Wall time in milliseconds.
    pub wall_ms: f64,
    /// Processor time of the process in milliseconds.
    pub cpu_ms: f64,
    /// Instructions of the process; `None` where the kernel does not let it count.
    pub instructions: Option<f64>,
}

/// The steps that one program ran in its turn.
pub type Turn = Vec<PairedStep>;

/// From this length on, the first step of a window does not count: caches are cold after the other program's turn.
const LEAST_TO_DROP: usize = 3;

/// The counted steps of a window.
fn counted(window: &Turn) -> &[PairedStep] {
    if window.len() >= LEAST_TO_DROP { &window[1..] } else { window }
}

/// After how many pairs the sequence is looked at. All looks together are wrong at most once in twenty times.
pub const LOOKS: [usize; Confidence::MOST_LOOKS] = [8, 12, 18, 26, 36, 50, 70, 100, 140, 200];

/// How far two processes of the same program differ in all of their pairs, as a standard deviation: memory lies elsewhere. No
/// number of pairs shows that, only new processes do. Measured with a plain Python loop: 2 % of its processor time, and more
/// of its wall time on a busy machine (`tools/noise_study/paired.py`).
fn between_processes(work: Option<Work>) -> f64 {
    match work {
        None => 0.03,
        Some(Work::Instructions) => 0.003,
        Some(_) => 0.02,
    }
}

/// What the pairs say about one figure: `None` where there are too few of them.
fn measure(pairs: &[(f64, f64)], between: f64, confidence: Confidence) -> Option<Measured> {
    let logs: Vec<f64> = pairs.iter().map(|(base, new)| (new / base).ln()).collect();
    if logs.is_empty() || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> = Vec::with_capacity(logs.len() * (logs.len() + 1) / 2);
    for (place, one) in logs.iter().enumerate() {
        means.extend(logs.iter().take(place + 1).map(|other| (one + other) / 2.0));
    }
    means.sort_by(f64::total_cmp);
    let value = median(&means)?;
    let n = logs.len() as f64;
    let from_end =
        (n * (n + 1.0) / 4.0 - confidence.normal() * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt()).floor();
    let ends = (from_end >= 0.0)
        .then(|| Some((*means.get(from_end as usize)?, *means.iter().rev().nth(from_end as usize)?)))
        .flatten();
    let from_runs = Confidence::default().normal() * std::f64::consts::SQRT_2 * between;
    let ends = ends
        .map(|(low, high)| (value - (value - low).hypot(from_runs), value + (high - value).hypot(from_runs)));
    let base = median(&pairs.iter().map(|(base, _)| *base).collect::<Vec<_>>())?;
    let (low, high) = (ends.map(|ends| ends.0.exp()), ends.map(|ends| ends.1.exp()));
    Some(Measured {
        base_ms: base,
        new_ms: base * value.exp(),
        delta_ms: Estimate {
            value: base * (value.exp() - 1.0),
            low: low.map(|low| base * (low - 1.0)),
            high: high.map(|high| base * (high - 1.0)),
        },
        ratio: Some(Estimate { low, high, ..Estimate::exact(value.exp()) }),
        from_steps: ends.map(|(low, high)| (high - low) / 2.0),
        from_runs,
    })
}

/// A figure of the mean step of each window, for all pairs that have it.
fn figures(pairs: &[(Turn, Turn)], of: impl Fn(&PairedStep) -> Option<f64>) -> Vec<(f64, f64)> {
    let level = |window: &Turn| {
        let values: Option<Vec<f64>> = counted(window).iter().map(&of).collect();
        crate::statistics::mean(&values?)
    };
    pairs.iter().filter_map(|(base, new)| level(base).zip(level(new))).collect()
}

/// Compares two programs by their pairs, which come from so many processes of each.
pub fn compare_pairs(
    labels: [&str; 2],
    pairs: &[(Turn, Turn)],
    processes: usize,
    margins: Margins,
) -> Comparison {
    // Steps of different moments say nothing about each other, so only their pairs are looked at.
    let run = |label: &str| [ComparedRun { label: label.to_owned(), ..ComparedRun::default() }];
    let mut comparison = compare(&run(labels[0]), &run(labels[1]), margins);
    comparison.comparability = Comparability::default();
    let steps = |of: &dyn Fn(&(Turn, Turn)) -> usize| pairs.iter().map(of).sum();
    comparison.base.steps = steps(&|pair| counted(&pair.0).len());
    comparison.new.steps = steps(&|pair| counted(&pair.1).len());
    let confidence = margins.confidence;
    let between = |work| between_processes(work) / (processes.max(1) as f64).sqrt();
    let wall = measure(&figures(pairs, |step| Some(step.wall_ms)), between(None), confidence);
    let verdict = wall.as_ref().map_or(Verdict::Unclear, |wall| verdict::verdict(wall, &margins));
    comparison.mean = wall;
    (comparison.verdict, comparison.by_steps) = (verdict, verdict);
    comparison.decided_by = Basis::Pairs;
    comparison.pairs = Some(pairs.len());
    comparison.next = None;
    let cpu = figures(pairs, |step| Some(step.cpu_ms).filter(|ms| *ms > 0.0));
    let instructions = figures(pairs, |step| step.instructions);
    let work = [(Work::Cpu, cpu), (Work::Instructions, instructions)];
    comparison.work = work
        .into_iter()
        .filter_map(|(work, pairs)| {
            let measured = measure(&pairs, between(Some(work)), confidence)?;
            Some(WorkDelta { work, measured, verdict: verdict::verdict(&measured, &margins) })
        })
        .collect();
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    /// Pairs of windows on a machine whose pace comes and goes; NEW does `factor` times the work.
    fn pairs(seed: u64, count: usize, factor: f64) -> Vec<(Turn, Turn)> {
        let mut random = Random::new(seed);
        let mut pace = 1.0;
        let window = |random: &mut Random, pace: f64, work: f64| -> Turn {
            (0..5)
                .map(|_| {
                    let spike = if random.unit() < 0.1 { 3.0 } else { 1.0 };
                    let cpu_ms = 10.0 * work * (1.0 + 0.1 * random.unit());
                    let wall_ms = cpu_ms * pace * spike * (1.0 + 0.4 * random.unit());
                    PairedStep { wall_ms, cpu_ms, instructions: Some(1e6 * work) }
                })
                .collect()
        };
        (0..count)
            .map(|_| {
                pace = (0.7 * pace + 0.9 * random.unit()).clamp(0.7, 4.0);
                let base = window(&mut random, pace, 1.0);
                (base, window(&mut random, pace, factor))
            })
            .collect()
    }

    /// How often a sequence of looks ends with a difference in the direction of `slower`, or in any.
    fn found(factor: f64, any: bool) -> usize {
        let margins = Margins { confidence: Confidence::of_looks(LOOKS.len()), ..Margins::default() };
        (0..60)
            .filter(|seed| {
                let all = pairs(*seed, 140, factor);
                (0..).zip(LOOKS).take_while(|(_, look)| *look <= all.len()).any(|(look_number, look)| {
                    let verdict = compare_pairs(["a", "b"], &all[..look], look_number + 1, margins).verdict;
                    verdict == Verdict::Slower || (any && verdict == Verdict::Faster)
                })
            })
            .count()
    }

    #[test]
    fn pairs_find_ten_per_cent_where_the_machine_changes_its_pace_all_the_time() {
        let (alarms, slower) = (found(1.0, true), found(1.12, false));
        assert!(alarms <= 4 && slower >= 50, "{alarms} false alarms over all looks, {slower} found of 60");
    }

    #[test]
    fn work_has_its_own_interval_and_few_pairs_have_none() {
        let all = pairs(1, 26, 1.08);
        let comparison = compare_pairs(["a", "b"], &all, 4, Margins::default());
        let of = |work: Work| comparison.work.iter().find(|delta| delta.work == work).unwrap();
        assert_eq!(of(Work::Instructions).verdict, Verdict::Slower);
        assert_eq!(of(Work::Cpu).verdict, Verdict::Slower);
        assert!((of(Work::Instructions).measured.ratio.unwrap().value - 1.08).abs() < 1e-9);
        let few = compare_pairs(["a", "b"], &all[..2], 1, Margins::default());
        assert_eq!((few.verdict, few.mean.unwrap().ratio.unwrap().low), (Verdict::Unclear, None));
        assert_eq!(compare_pairs(["a", "b"], &[], 1, Margins::default()).verdict, Verdict::Unclear);
    }
}
