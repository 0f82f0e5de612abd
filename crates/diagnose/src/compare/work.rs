//! What a step does, whatever time that takes: processor time, instructions, time on devices, launches, copies, ops.
//!
//! A busy machine makes steps wait. It hardly changes the work that they do, so work shows a change where wall time is too
//! noisy. The reverse is not true: work cannot show that a step waits longer, for a batch, a lock or a disk.

use super::noise::{self, Estimate, Measured, RunToRun, Statistic, Unrest};
use super::side::ComparedRun;
use super::verdict::{self, Margins, Verdict};
use crate::statistics::mean;

/// A kind of work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Processor time of the process, in milliseconds.
    Cpu,
    /// Instructions of the process in user space.
    Instructions,
    /// Time of kernels and copies on devices, in milliseconds.
    Device,
    /// Kernels that ran on devices.
    Launches,
    /// Bytes copied between host and devices.
    Copied,
    /// Ops that ran on the host.
    Ops,
}

/// How a kind of work is counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WorkUnit {
    /// Milliseconds per step.
    Ms,
    /// A number per step.
    Count,
    /// Bytes per step.
    Bytes,
}

impl Work {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Work; 6] =
        [Work::Cpu, Work::Instructions, Work::Device, Work::Launches, Work::Copied, Work::Ops];

    /// The public name, which is also the metric's.
    pub fn key(self) -> &'static str {
        match self {
            Work::Cpu => "cpu",
            Work::Instructions => "instructions",
            Work::Device => "device",
            Work::Launches => "launches",
            Work::Copied => "copied",
            Work::Ops => "ops",
        }
    }

    /// How it is counted.
    pub fn unit(self) -> WorkUnit {
        match self {
            Work::Cpu | Work::Device => WorkUnit::Ms,
            Work::Copied => WorkUnit::Bytes,
            Work::Instructions | Work::Launches | Work::Ops => WorkUnit::Count,
        }
    }

    /// How far runs of one program differ: the least standard deviation, how it grows with the scatter of steps, and the
    /// most that scatter makes of it. Neighbours on a core cost a process caches, so its processor time grows a little.
    fn noise(self) -> Noise {
        match self {
            Work::Cpu => Noise { least: 0.03, per_scatter: 0.5, most: 0.12 },
            Work::Instructions => Noise { least: 0.003, per_scatter: 0.5, most: 0.05 },
            Work::Device => Noise { least: 0.02, per_scatter: 0.5, most: 0.10 },
            Work::Launches | Work::Copied | Work::Ops => Noise { least: 0.002, per_scatter: 0.0, most: 0.0 },
        }
    }
}

/// Where only the sum over all steps is known, work at the edges of the recording may belong to a step or not: this share of
/// one step (standard deviation).
const AT_EDGES: f64 = 0.25;

struct Noise {
    least: f64,
    per_scatter: f64,
    most: f64,
}

/// One kind of work on both sides, per step. `base_ms` and `new_ms` are in the unit of the kind.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct WorkDelta {
    /// Which.
    pub work: Work,
    /// What was measured.
    pub measured: Measured,
    /// What is certain about it: `Slower` means more work.
    pub verdict: Verdict,
}

/// All kinds of work that both sides know.
pub(super) fn compare(base: &[ComparedRun], new: &[ComparedRun], margins: &Margins) -> Vec<WorkDelta> {
    Work::ALL.into_iter().filter_map(|work| delta(work, base, new, margins)).collect()
}

fn delta(work: Work, base: &[ComparedRun], new: &[ComparedRun], margins: &Margins) -> Option<WorkDelta> {
    let of =
        |side: &[ComparedRun]| -> Vec<Vec<f64>> { side.iter().filter_map(|run| run.work(work)).collect() };
    let (old, now) = (of(base), of(new));
    let steps = base.iter().chain(new).map(|run| run.steps_ms.len()).min().unwrap_or(0);
    let measured = measure(work, &old, &now, steps, margins)?;
    Some(WorkDelta { work, measured, verdict: verdict_on(&measured, margins) })
}

/// What a figure says by itself. What was nothing before is more for certain if its difference is.
pub(crate) fn verdict_on(measured: &Measured, margins: &Margins) -> Verdict {
    match measured.ratio {
        Some(_) => verdict::verdict(measured, margins),
        None if measured.delta_ms.low.is_some_and(|low| low > 0.0) => Verdict::Slower,
        None => Verdict::Unclear,
    }
}

fn measure(
    work: Work,
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    steps: usize,
    margins: &Margins,
) -> Option<Measured> {
    let level = |side: &[Vec<f64>]| mean(&side.iter().filter_map(|run| mean(run)).collect::<Vec<_>>());
    let (base_level, new_level) = (level(base)?, level(new)?);
    // Means of whole runs do not scatter by steps.
    let single = base.iter().chain(new).all(|run| run.len() < 2);
    let at_edges = if single { AT_EDGES / steps.max(1) as f64 } else { 0.0 };
    let between = between_runs(work, base, new, at_edges, margins);
    let from_runs = between.half_width(base.len() as f64, new.len() as f64);
    if base_level <= 0.0 || new_level <= 0.0 {
        let value = new_level - base_level;
        let delta_ms = Estimate {
            value,
            low: Some(value * (1.0 - from_runs).min(1.0)),
            high: Some(value * (1.0 + from_runs)),
        };
        let ratio = (base_level > 0.0).then_some(Estimate { value: 0.0, low: Some(0.0), high: Some(0.0) });
        let known = base_level > 0.0 || new_level > 0.0;
        return known.then_some(Measured {
            base_ms: base_level,
            new_ms: new_level,
            delta_ms,
            ratio,
            from_steps: Some(0.0),
            from_runs,
        });
    }
    if single {
        return Some(Measured::of_means(base_level, new_level, Some(0.0), from_runs));
    }
    noise::measure(base, new, Statistic::Mean, between)
}

fn between_runs(
    work: Work,
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    at_edges: f64,
    margins: &Margins,
) -> RunToRun {
    let Noise { least, per_scatter, most } = work.noise();
    let scattered = base.iter().chain(new).map(|run| {
        let unrest = Unrest::of(run);
        (per_scatter * unrest.worst()).min(most).powi(2)
    });
    let scattered = mean(&scattered.collect::<Vec<_>>()).unwrap_or(0.0);
    noise::between_runs(base, new, (least.hypot(at_edges), scattered), margins.confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare as whole;
    use crate::compare::tests::noisy_run;
    use crate::statistics::Random;

    /// A run on a busy machine: wall time says nothing, processor time scatters by a few per cent.
    fn loaded(seed: u64, cpu_ms: f64) -> ComparedRun {
        let mut random = Random::new(seed);
        let mut run = noisy_run(seed, 40, 2.0 * cpu_ms, 1.2);
        let level = cpu_ms * (1.0 + 0.04 * (random.unit() - 0.5));
        let cpu = (0..40).map(|_| level * (1.0 + 0.15 * (random.unit() - 0.5))).collect();
        run.work = vec![(Work::Cpu, cpu), (Work::Ops, vec![120.0])];
        run
    }

    #[test]
    fn work_is_certain_where_time_is_not() {
        let (mut found, mut wrong) = (0, 0);
        for seed in 0..20 {
            let side = |seed, ms| [loaded(seed, ms)];
            let more = whole(&side(2 * seed, 10.0), &side(2 * seed + 1, 13.0), Margins::default());
            assert_eq!(more.verdict, Verdict::Unclear);
            found += usize::from(more.work[0].verdict == Verdict::Slower);
            assert_eq!((more.work[1].work, more.work[1].verdict), (Work::Ops, Verdict::Same));
            let same = whole(&side(2 * seed, 10.0), &side(2 * seed + 1, 10.0), Margins::default());
            wrong += usize::from(matches!(same.work[0].verdict, Verdict::Slower | Verdict::Faster));
        }
        assert!(found >= 18 && wrong <= 1, "{found} found, {wrong} wrong of 20");
    }

    #[test]
    fn counts_differ_by_little_and_what_was_nothing_is_more() {
        let side = |ops: f64, launches: f64| {
            let work = vec![(Work::Ops, vec![ops]), (Work::Launches, vec![launches])];
            [ComparedRun { work, ..noisy_run(1, 20, 10.0, 0.1) }]
        };
        let judged = |base: &[ComparedRun], new: &[ComparedRun]| -> Vec<Verdict> {
            whole(base, new, Margins::default()).work.iter().map(|delta| delta.verdict).collect()
        };
        // In the order of `Work::ALL`: launches, then ops.
        assert_eq!(judged(&side(100.0, 5.0), &side(110.0, 5.0)), [Verdict::Same, Verdict::Slower]);
        assert_eq!(judged(&side(100.0, 0.0), &side(100.0, 5.0)), [Verdict::Slower, Verdict::Same]);
        assert_eq!(judged(&side(100.0, 5.0), &side(100.0, 0.0)), [Verdict::Faster, Verdict::Same]);
        assert_eq!(judged(&side(100.0, 0.0), &side(100.0, 0.0)), [Verdict::Same], "neither launches");
    }
}
