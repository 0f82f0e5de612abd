//! What is worth asking: the changes that find something to change in a recording.

use rustc_hash::FxHashMap;
use stepscope_trace::Dur;

use super::Recorded;
use super::change::Change;
use crate::time::critical::Piece;
use crate::vocabulary::names::kernel_short_name;

/// Kernels that are asked about one by one.
const KERNELS: usize = 3;
/// How many workers are asked about.
const WORKERS: [usize; 2] = [2, 4];

/// All changes that may apply, and the longest kernels twice as fast.
pub(super) fn candidates(recorded: &Recorded) -> Vec<Change> {
    let mut all = vec![Change::InputFree];
    all.extend(WORKERS.map(Change::Workers));
    all.extend([
        Change::LaunchGraph,
        Change::KernelsHalf,
        Change::OverlapCommunication,
        Change::NoSync,
        Change::Python(2.0),
    ]);
    all.extend(longest_kernels(recorded).into_iter().map(|name| Change::Op(name, 2.0)));
    all
}

fn longest_kernels(recorded: &Recorded) -> Vec<String> {
    let mut sums: FxHashMap<&str, Dur> = FxHashMap::default();
    for work in recorded.graph.works.iter().filter(|work| work.piece == Piece::Kernel) {
        *sums.entry(recorded.name(work.event)).or_default() += work.span.dur();
    }
    let mut sums: Vec<(&str, Dur)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut names: Vec<String> = sums.iter().map(|(name, _)| kernel_short_name(name).into_owned()).collect();
    let mut seen = rustc_hash::FxHashSet::default();
    names.retain(|name| seen.insert(name.clone()));
    names.truncate(KERNELS);
    names
}
