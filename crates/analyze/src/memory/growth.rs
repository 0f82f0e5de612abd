//! Memory from step to step: does the memory in use at the end of a step keep growing?

use stepscope_trace::Span;

use super::records::Record;

/// An allocator in one step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StepMemory {
    /// The step's number.
    pub number: i64,
    /// Blocks allocated.
    pub allocations: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Memory in use at its end, in bytes.
    pub end: i64,
    /// Peak memory within it, in bytes.
    pub peak: i64,
}

/// How the memory in use at the ends of steps changes.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Growth {
    /// The median of all slopes between two steps, in bytes.
    pub bytes_per_step: f64,
    /// The share of steps that end with more in use than the previous one.
    pub rising: f64,
    /// Number of steps analysed.
    pub steps: usize,
    /// True if it keeps growing, unlike a program that only allocates at its start.
    pub grows: bool,
}

/// Minimum number of steps.
const LEAST_STEPS: usize = 4;
/// The share of steps that must grow. A leak loses memory in nearly every step; caches that fill and batches of
/// different sizes go up and down.
const RISING: f64 = 0.7;
/// Number of steps compared with each other; longer runs are sampled evenly.
const MOST_COMPARED: usize = 400;

/// The records by step; both are in time order.
pub(super) fn by_step(records: &[Record], steps: &[(i64, Span)]) -> Vec<StepMemory> {
    steps
        .iter()
        .filter_map(|&(number, span)| {
            let first = records.partition_point(|record| record.time < span.start);
            let end = records.partition_point(|record| record.time < span.end);
            let within = records.get(first..end)?;
            let before = first.checked_sub(1).map(|at| records[at].in_use);
            let last = within.last().map(|record| record.in_use).or(before)?;
            Some(StepMemory {
                number,
                allocations: within.iter().filter(|record| record.change >= 0).count() as u64,
                frees: within.iter().filter(|record| record.change < 0).count() as u64,
                end: last,
                peak: within.iter().map(|record| record.in_use).chain(before).max().unwrap_or(last),
            })
        })
        .collect()
}

pub(super) fn growth(steps: &[StepMemory]) -> Option<Growth> {
    if steps.len() < LEAST_STEPS {
        return None;
    }
    let ends: Vec<f64> = steps.iter().map(|step| step.end as f64).collect();
    let rises = ends.windows(2).filter(|two| two[1] > two[0]).count();
    let rising = rises as f64 / (ends.len() - 1) as f64;
    let bytes_per_step = middle_slope(&ends);
    Some(Growth {
        bytes_per_step,
        rising,
        steps: ends.len(),
        grows: bytes_per_step > 0.0 && rising >= RISING,
    })
}

/// The Theil–Sen slope: a few outliers do not change it.
fn middle_slope(ends: &[f64]) -> f64 {
    let every = ends.len().div_ceil(MOST_COMPARED).max(1);
    let points: Vec<(f64, f64)> =
        ends.iter().enumerate().step_by(every).map(|(at, &end)| (at as f64, end)).collect();
    let mut slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (b.1 - a.1) / (b.0 - a.0)))
        .collect();
    slopes.sort_by(f64::total_cmp);
    stepscope_trace::statistics::quantile(&slopes, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(ends: &[i64]) -> Vec<StepMemory> {
        let step = |&end: &i64| StepMemory { number: 0, allocations: 1, frees: 1, end, peak: end };
        ends.iter().map(step).collect()
    }

    #[test]
    fn only_a_steady_rise_is_growth() {
        let steady = growth(&steps(&[100, 110, 120, 125, 140, 150])).unwrap();
        assert!(steady.grows && (steady.bytes_per_step - 10.0).abs() < 1.0);
        assert!(!growth(&steps(&[100, 500, 500, 500, 500, 500])).unwrap().grows, "allocates at its start");
        assert!(!growth(&steps(&[100, 200, 100, 210, 100, 220])).unwrap().grows, "goes up and down");
        assert!(!growth(&steps(&[500, 400, 300, 200])).unwrap().grows);
        assert!(growth(&steps(&[1, 2, 3])).is_none(), "too few to tell");
    }

    #[test]
    fn a_million_steps_are_compared_in_no_time() {
        let ends: Vec<i64> = (0..1_000_000).map(|step| step * 8).collect();
        assert_eq!(growth(&steps(&ends)).unwrap().bytes_per_step, 8.0);
    }
}
