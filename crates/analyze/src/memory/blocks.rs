//! Blocks of memory, from allocation to release, paired by sorting by address and time.

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use stepscope_trace::memory::Role;
use stepscope_trace::{Span, Time};

use super::records::{self, Record};
use crate::context::Context;
use crate::vocabulary::op_type;

/// Equal blocks that were live at the peak.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Live {
    /// The allocating op; empty if unknown.
    pub op: String,
    /// The line of the user's program, `train.py:75 step`, if the recording has stacks.
    #[serde(default)]
    pub line: Option<String>,
    /// What they are for.
    #[serde(default)]
    pub role: Option<Role>,
    /// The tensor's shape.
    pub shape: Option<String>,
    /// The tensor's type.
    pub data_type: Option<String>,
    /// Their purpose: `output`, `temp`, `persist`, …
    pub region: Option<String>,
    /// How many.
    pub blocks: u64,
    /// Their total size in bytes.
    pub bytes: i64,
    /// The requested size in bytes, if known.
    pub requested: Option<i64>,
}

/// Blocks that were allocated in a step and never freed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Leak {
    /// The allocating op, or the line of the user's program.
    pub op: String,
    /// The tensor's shape.
    pub shape: Option<String>,
    /// How many.
    pub blocks: u64,
    /// Their total size in bytes.
    pub bytes: i64,
    /// Number of steps in which such a block was allocated and kept.
    pub steps: u64,
    /// Bytes kept per step, over the steps in which keeping can be told from not having freed yet.
    #[serde(default)]
    pub per_step: Option<f64>,
}

/// Maximum number of rows in a result.
const MOST_ROWS: usize = 1_000;
/// Old profilers write no addresses, so the block that is freed is unknown.
pub(super) const UNKNOWN: u64 = 0;
/// For blocks that were never freed.
const NEVER: u32 = u32::MAX;

/// For each record the index of the one that frees its block, or [`NEVER`].
pub(super) fn pair(records: &[Record]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(records.len()).unwrap_or(NEVER)).collect();
    // Records are in time order, so their indices are too.
    order.sort_unstable_by_key(|&at| (records[at as usize].address, at));
    let mut freed = vec![NEVER; records.len()];
    for two in order.windows(2) {
        let (take, give) = (&records[two[0] as usize], &records[two[1] as usize]);
        // A block where another one was has no recorded free before it.
        if take.address == give.address && take.address != UNKNOWN && take.change >= 0 {
            freed[two[0] as usize] = two[1];
        }
    }
    freed
}

/// The blocks of the records, with equal ones combined.
struct Rows<'c, 't> {
    context: &'c Context<'t>,
    places: HashMap<Key, usize, FxBuildHasher>,
    rows: Vec<Live>,
}

type Key = (String, Option<String>, Option<String>, Option<String>);

impl Rows<'_, '_> {
    fn add(&mut self, record: &Record) -> usize {
        let details = records::details(self.context, record.event);
        let op = details.op.unwrap_or_else(|| {
            let name = record.op.map_or("", |kind| self.context.trace.kind_name(kind));
            match op_type(name) {
                Some(kind) => name.trim_end_matches(kind).trim_end_matches(':').to_owned(),
                None => name.to_owned(),
            }
        });
        let key = (op, details.shape, details.data_type, details.region);
        let place = *self.places.entry(key).or_insert_with_key(|(op, shape, data_type, region)| {
            self.rows.push(Live {
                op: op.clone(),
                shape: shape.clone(),
                data_type: data_type.clone(),
                region: region.clone(),
                ..Live::default()
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[place];
        row.blocks += 1;
        row.bytes = row.bytes.saturating_add(record.change);
        if let Some(requested) = details.requested {
            row.requested = Some(row.requested.unwrap_or(0).saturating_add(requested));
        }
        place
    }
}

/// What was live at the peak, largest first. Never more than was in use: of blocks whose free was not recorded, the oldest
/// are left out.
pub(super) fn alive(context: &Context, records: &[Record], freed: &[u32], peak: usize) -> Vec<Live> {
    let mut rows = Rows { context, places: HashMap::default(), rows: Vec::new() };
    let is_live = |(record, end): &(&Record, &u32)| {
        record.change > 0 && record.address != UNKNOWN && (**end == NEVER || **end as usize > peak)
    };
    let live = || records.iter().zip(freed).take(peak + 1).filter(is_live).map(|(record, _)| record);
    let known = live().fold(0, |sum: i64, record| sum.saturating_add(record.change));
    let mut excess = known.saturating_sub(records.get(peak).map_or(0, Record::heap));
    for record in live() {
        if excess > 0 {
            excess = excess.saturating_sub(record.change);
        } else {
            rows.add(record);
        }
    }
    let mut rows = rows.rows;
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.op.cmp(&b.op)));
    rest_in_one(&mut rows, MOST_ROWS);
    rows
}

/// Combines everything beyond a number of rows into one unnamed row, so that the sum stays right.
pub(super) fn rest_in_one(rows: &mut Vec<Live>, most: usize) {
    if rows.len() <= most {
        return;
    }
    let rest = rows.split_off(most - 1);
    rows.push(Live {
        blocks: rest.iter().map(|row| row.blocks).sum(),
        bytes: rest.iter().map(|row| row.bytes).fold(0, i64::saturating_add),
        ..Live::default()
    });
}

/// Blocks allocated within the steps and never freed. Those of the last step do not count, because they may
/// simply not have been freed yet.
pub(super) fn leaks(
    context: &Context,
    records: &[Record],
    freed: &[u32],
    steps: &[(i64, Span)],
) -> Vec<Leak> {
    let Some((_, steps)) = steps.split_last() else { return Vec::new() };
    let step_of = |time: Time| {
        let at = steps.partition_point(|(_, span)| span.start <= time).checked_sub(1)?;
        steps[at].1.contains(time).then_some(at)
    };
    let mut rows = Rows { context, places: HashMap::default(), rows: Vec::new() };
    let mut seen: HashSet<(usize, usize), FxBuildHasher> = HashSet::default();
    let kept = records
        .iter()
        .zip(freed)
        .filter(|(record, end)| record.change > 0 && record.address != UNKNOWN && **end == NEVER);
    for (record, _) in kept {
        if let Some(step) = step_of(record.time) {
            let place = rows.add(record);
            seen.insert((place, step));
        }
    }
    let mut steps_of = vec![0; rows.rows.len()];
    seen.iter().for_each(|(place, _)| steps_of[*place] += 1);
    let mut leaks: Vec<Leak> = rows
        .rows
        .into_iter()
        .zip(steps_of)
        .map(|(row, steps)| Leak {
            op: row.op,
            shape: row.shape,
            blocks: row.blocks,
            bytes: row.bytes,
            steps,
            per_step: None,
        })
        .collect();
    leaks.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.op.cmp(&b.op)));
    leaks.truncate(MOST_ROWS);
    leaks
}
