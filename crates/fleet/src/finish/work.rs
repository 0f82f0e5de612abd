//! Ops and kernels over all jobs. Whole nanoseconds add up to the same sum in any order.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_results::fleet::WorkRow;

use crate::record::{Record, WorkTime};

#[derive(Default)]
struct Sum<'r> {
    count: u64,
    ns: u64,
    jobs: BTreeSet<&'r str>,
}

/// The longest.
pub(super) fn rows<'r>(
    records: &[&'r Record],
    of: impl Fn(&'r Record) -> &'r Vec<WorkTime>,
    most: usize,
) -> Vec<WorkRow> {
    let mut sums: BTreeMap<(bool, &str), Sum> = BTreeMap::new();
    let mut all = [0_u64; 2];
    for record in records {
        for row in of(record) {
            let sum = sums.entry((row.on_device, &row.name)).or_default();
            sum.count = sum.count.saturating_add(row.count);
            sum.ns = sum.ns.saturating_add(row.ns);
            sum.jobs.insert(&record.recording.job);
            let place = &mut all[usize::from(row.on_device)];
            *place = place.saturating_add(row.ns);
        }
    }
    let mut sorted: Vec<((bool, &str), Sum)> = sums.into_iter().collect();
    sorted.sort_by(|a, b| b.1.ns.cmp(&a.1.ns).then_with(|| a.0.cmp(&b.0)));
    let row = |((on_device, name), sum): ((bool, &str), Sum)| WorkRow {
        name: name.to_owned(),
        place: if on_device { "device" } else { "host" },
        jobs: sum.jobs.len() as u64,
        count: sum.count,
        total_ms: sum.ns as f64 / 1e6,
        fraction: sum.ns as f64 / all[usize::from(on_device)].max(1) as f64,
    };
    sorted.into_iter().take(most).map(row).collect()
}
