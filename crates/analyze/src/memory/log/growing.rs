//! What grows from step to step, by line: blocks that outlive the step in which they were allocated by several steps.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_trace::memory::{NEVER, Owner, StackId};

use super::super::growth::{self, StepMemory};
use super::super::{Growth, Leak};
use super::roles::{KEPT_STEPS, Roles};

/// Steps at the start that do not count: the optimizer's state appears in the first one.
const WARM_UP: usize = 2;
/// Fewer steps are few.
const MANY: usize = 6;
/// Growth over the recording below this share of the peak is no growth.
const WORTH: f64 = 0.01;

/// The memory of each step.
pub(super) fn by_step(owner: &Owner, steps: &[u32], in_use: &[i64]) -> Vec<StepMemory> {
    let mut found: Vec<StepMemory> = steps
        .windows(2)
        .zip(0_i64..)
        .filter_map(|(two, number)| {
            let within = in_use.get(two[0] as usize..=two[1] as usize)?;
            let (end, peak) = (*within.last()?, within.iter().copied().max()?);
            Some(StepMemory { number, allocations: 0, frees: 0, end, peak })
        })
        .collect();
    let step_of = |moment: u32| steps.partition_point(|&start| start < moment).checked_sub(1);
    for block in &owner.blocks {
        if let Some(step) = step_of(block.born).and_then(|at| found.get_mut(at)) {
            step.allocations += 1;
        }
        if let Some(step) =
            step_of(block.dies).filter(|_| block.dies != NEVER).and_then(|at| found.get_mut(at))
        {
            step.frees += 1;
        }
    }
    found
}

/// How the memory in use at the ends of steps changes, in the steady state. What is not kept by any line is no growth: steps
/// may end at different points of the program.
pub(super) fn growth(steps: &[StepMemory], kept: &[Leak], peak: i64) -> Option<Growth> {
    let mut growth = growth::growth(steps.get(warm_up(steps.len())..).unwrap_or_default())?;
    let kept: f64 = kept.iter().filter_map(|leak| leak.per_step).sum();
    growth.bytes_per_step = growth.bytes_per_step.min(kept);
    growth.grows &= kept > 0.0 && growth.bytes_per_step * growth.steps as f64 >= WORTH * peak as f64;
    Some(growth)
}

/// The first steps do not count. Of few steps, fewer can be left out.
fn warm_up(steps: usize) -> usize {
    if steps < MANY { WARM_UP - 1 } else { WARM_UP }
}

/// Blocks that outlive their step by several, by line, those that lose the most bytes per step first.
pub(super) fn kept(
    owner: &Owner,
    steps: &[u32],
    roles: &Roles<'_>,
    line: impl Fn(StackId) -> String,
) -> Vec<Leak> {
    let whole = steps.len().saturating_sub(1);
    let first = warm_up(whole);
    let eligible = first..whole.saturating_sub(KEPT_STEPS - 1).max(first);
    let mut rows: BTreeMap<String, (Leak, BTreeSet<usize>)> = BTreeMap::new();
    for block in &owner.blocks {
        let Some(born) = roles.step_of(block.born).filter(|step| eligible.contains(step)) else { continue };
        let dies = if block.dies == NEVER { usize::MAX } else { roles.step_of(block.dies).unwrap_or(0) };
        if dies.saturating_sub(born) < KEPT_STEPS {
            continue;
        }
        let line = line(block.stack);
        let (leak, steps) = rows.entry(line.clone()).or_insert_with(|| {
            let leak = Leak { op: line, shape: None, blocks: 0, bytes: 0, steps: 0, per_step: None };
            (leak, BTreeSet::new())
        });
        leak.blocks += u64::from(block.count);
        leak.bytes = leak.bytes.saturating_add(i64::try_from(block.size).unwrap_or(i64::MAX));
        steps.insert(born);
    }
    let finished = rows.into_values().map(|(leak, steps)| Leak {
        steps: steps.len() as u64,
        per_step: Some(leak.bytes as f64 / eligible.len().max(1) as f64),
        ..leak
    });
    let mut rows: Vec<Leak> = finished.collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.op.cmp(&b.op)));
    rows
}
