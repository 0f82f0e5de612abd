//! Ops: where the model's time goes, by name and by type, on the host and on devices.
//!
//! A host op is an event that a framework writes around one op; its self time excludes nested ops. A device op
//! is the sum of the kernels that it launched. Ops inside the input pipeline are kept separate: they belong to
//! the pipeline, not to the model. Totals cover the counted steps ([`crate::window`]).
//!
//! One partial result per host ([`OpsPartial::of`]) → [`OpsPartial::merge`] → [`OpsPartial::finish`].

mod device;
mod host;
pub(crate) mod launching_op;
mod node_types;
mod shaped;
mod table;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::Dur;

use crate::analysis::Analysis;
use crate::context::Context;
use crate::stored::keep_largest;
use crate::window::{Window, Windows};

pub(crate) use table::OpTable;

/// The type of collectives without an op of the model.
pub const COLLECTIVE: &str = "collective";
/// The name of the row that sums up the ops that were not kept one by one.
pub const OTHER: &str = "(other)";

/// Where an op ran.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Where {
    /// On a device.
    Device,
    /// On the host.
    Host,
}

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct OpKey {
    /// Where it ran.
    pub side: Where,
    /// Whether it ran inside the input pipeline.
    pub input: bool,
    /// The op's type: `MatMul`, `fusion`, `aten::mm`.
    pub kind: String,
    /// The op's own name: `model/dense/MatMul`.
    pub name: String,
}

/// What is known about an op.
#[derive(Copy, Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Totals {
    count: u64,
    total: Dur,
    own: Dur,
    /// Number of executions known to be eager, and known not to be.
    eager: [u64; 2],
    flops: f64,
    bytes: f64,
    /// Executions with known flops, if they follow from recorded shapes.
    #[serde(default)]
    shaped: u64,
    /// Self time of the executions with known flops and bytes.
    flops_time: Dur,
    bytes_time: Dur,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.count += other.count;
        self.total += other.total;
        self.own += other.own;
        self.eager[0] += other.eager[0];
        self.eager[1] += other.eager[1];
        self.flops += other.flops;
        self.bytes += other.bytes;
        self.shaped += other.shaped;
        self.flops_time += other.flops_time;
        self.bytes_time += other.bytes_time;
    }
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Entry {
    totals: Totals,
    /// Input shapes with their counts among the examined executions.
    shapes: Vec<(String, u64)>,
}

impl Entry {
    fn saw_shape(&mut self, shape: &str, times: u64) {
        match self.shapes.iter_mut().find(|(known, _)| known == shape) {
            Some((_, seen)) => *seen += times,
            None => self.shapes.push((shape.to_owned(), times)),
        }
    }
}

type Entries = HashMap<OpKey, Entry, FxBuildHasher>;

/// The ops of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct OpsPartial {
    window: Window,
    /// Number of devices of the host that has most.
    #[serde(default)]
    devices: usize,
    #[serde(with = "crate::stored::sorted")]
    entries: Entries,
}

impl Analysis for OpsPartial {
    type Output = Ops;

    /// The ops of one host.
    fn of(context: &Context) -> Self {
        let windows = Windows::of(context);
        let mut entries = Entries::default();
        host::collect(context, &windows, &mut entries);
        device::collect(context, &windows, &mut entries);
        move_flops(&mut entries);
        let devices = context.breakdown().devices.iter().filter(|device| device.process.is_some()).count();
        OpsPartial { window: windows.window, devices, entries }
    }

    /// Adds another host.
    fn merge(&mut self, other: OpsPartial) {
        self.window = self.window.merge(other.window);
        self.devices = self.devices.max(other.devices);
        for (key, entry) in other.entries {
            let own = self.entries.entry(key).or_default();
            own.totals.add(&entry.totals);
            entry.shapes.iter().for_each(|(shape, times)| own.saw_shape(shape, *times));
        }
    }

    /// Keeps the longest ops and the sum of the others, and the most frequent shapes of each.
    fn bound(&mut self) {
        const OPS: usize = 1_024;
        const SHAPES: usize = 4;
        if self.entries.len() > OPS {
            let (kept, rest) = keep_largest(self.entries.drain(), OPS, |entry| entry.totals.own);
            self.entries = kept.into_iter().collect();
            for (key, entry) in rest {
                let other = OpKey { kind: OTHER.to_owned(), name: OTHER.to_owned(), ..key };
                self.entries.entry(other).or_default().totals.add(&entry.totals);
            }
        }
        for entry in self.entries.values_mut() {
            entry.shapes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            entry.shapes.truncate(SHAPES);
        }
    }

    /// Ranks the ops.
    fn finish(self) -> Ops {
        let rows = self.entries.into_iter().map(|(key, entry)| OpRow::new(key, &entry));
        Ops::ranked(self.window, self.devices, rows.collect())
    }
}

/// Operations of an op that launches device work are done there: the host's time has nothing to do with them.
fn move_flops(entries: &mut Entries) {
    let devices: Vec<OpKey> = entries.keys().filter(|key| key.side == Where::Device).cloned().collect();
    for key in devices {
        let host = entries.get_mut(&OpKey { side: Where::Host, ..key.clone() });
        let Some(host) = host.filter(|host| host.totals.shaped > 0) else { continue };
        let (flops, shaped, count) = (host.totals.flops, host.totals.shaped, host.totals.count);
        (host.totals.flops, host.totals.shaped, host.totals.flops_time) = (0.0, 0, Dur::ZERO);
        if let Some(device) = entries.get_mut(&key).filter(|device| device.totals.flops == 0.0) {
            // Executions whose shapes are unknown take their part of the time with them.
            let known = device.totals.own.ps() as f64 * shaped as f64 / count.max(shaped) as f64;
            device.totals.flops = flops;
            device.totals.shaped = shaped;
            device.totals.flops_time = Dur::from_ps(known as i64);
        }
    }
}

impl OpsPartial {
    /// Names of the model's host ops with their executions and self time.
    pub(crate) fn host_ops(&self) -> impl Iterator<Item = (&str, u64, Dur)> {
        let host = self.entries.iter().filter(|(key, _)| key.side == Where::Host && !key.input);
        host.map(|(key, entry)| (key.name.as_str(), entry.totals.count, entry.totals.own))
    }
}

/// One op, or all ops of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// Side and name, and whether it belongs to the input pipeline.
    pub key: OpKey,
    /// How often it ran.
    pub count: u64,
    /// Time from start to end, in milliseconds.
    pub total_ms: f64,
    /// Time without nested ops, in milliseconds. For an eager op only its kernel's time, if recorded: the rest
    /// is framework overhead.
    pub self_ms: f64,
    /// The share of the self time of all rows with the same side and `input`.
    pub fraction: f64,
    /// The cumulative share of this row and all rows above it with the same side and `input`.
    pub cumulative: f64,
    /// Eager (`true`) or inside a function; `None` if unknown or mixed.
    pub eager: Option<bool>,
    /// The most frequent shapes of its inputs, if recorded.
    pub shapes: Option<String>,
    /// Floating-point operations, if the profile has them or they follow from recorded shapes.
    pub flops: Option<f64>,
    /// Floating-point operations per second of self time, if the profile has the numbers.
    pub flops_per_s: Option<f64>,
    /// Bytes moved per second of self time, if the profile has the numbers.
    pub bytes_per_s: Option<f64>,
    totals: Totals,
}

impl OpRow {
    fn new(key: OpKey, entry: &Entry) -> Self {
        // Ties go to the shape that sorts first, so that output does not depend on the order of events.
        let shapes = entry.shapes.iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let mut row = OpRow {
            key,
            count: 0,
            total_ms: 0.0,
            self_ms: 0.0,
            fraction: 0.0,
            cumulative: 0.0,
            eager: None,
            shapes: shapes.map(|(shape, _)| shape.clone()),
            flops: None,
            flops_per_s: None,
            bytes_per_s: None,
            totals: entry.totals,
        };
        row.settle();
        row
    }

    fn settle(&mut self) {
        let totals = &self.totals;
        let rate = |amount: f64, time: Dur| {
            (time > Dur::ZERO && amount > 0.0).then(|| amount / time.secs()).filter(|rate| rate.is_finite())
        };
        self.count = totals.count;
        self.total_ms = totals.total.ms();
        self.self_ms = totals.own.ms();
        self.eager = match totals.eager {
            [0, 0] => None,
            [_, 0] => Some(true),
            [0, _] => Some(false),
            _ => None,
        };
        self.flops = (totals.flops > 0.0).then_some(totals.flops);
        self.flops_per_s = rate(totals.flops, totals.flops_time);
        self.bytes_per_s = rate(totals.bytes, totals.bytes_time);
    }

    /// The mean time of an execution, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        if self.count > 0 { self.total_ms / self.count as f64 } else { 0.0 }
    }
}

/// All ops, ranked.
#[derive(Clone, Debug)]
pub struct Ops {
    /// What totals cover.
    pub window: Window,
    /// Number of devices over which a step's device time is summed.
    pub devices: usize,
    /// First the side that does the model's work, last the ops of the input pipeline; then by self time.
    pub rows: Vec<OpRow>,
}

impl Ops {
    fn ranked(window: Window, devices: usize, mut rows: Vec<OpRow>) -> Self {
        rows.sort_by(|a, b| {
            let group = |row: &OpRow| (row.key.input, row.key.side);
            group(a)
                .cmp(&group(b))
                .then_with(|| b.self_ms.total_cmp(&a.self_ms))
                .then_with(|| b.total_ms.total_cmp(&a.total_ms))
                .then_with(|| a.key.cmp(&b.key))
        });
        for group in rows.chunk_by_mut(|a, b| (a.key.input, a.key.side) == (b.key.input, b.key.side)) {
            let all: f64 = group.iter().map(|row| row.self_ms).sum();
            let mut above = 0.0;
            for row in group {
                above += row.self_ms;
                row.fraction = if all > 0.0 { row.self_ms / all } else { 0.0 };
                row.cumulative = if all > 0.0 { (above / all).min(1.0) } else { 0.0 };
            }
        }
        Ops { window, devices, rows }
    }

    /// The same by type: one row per type, named after the type.
    pub fn by_type(&self) -> Ops {
        let mut types: HashMap<(Where, bool, &str), OpRow, FxBuildHasher> = HashMap::default();
        for row in &self.rows {
            let OpKey { side, input, kind, .. } = &row.key;
            let summed = types.entry((*side, *input, kind.as_str())).or_insert_with(|| {
                let key = OpKey { name: kind.clone(), ..row.key.clone() };
                OpRow { key, shapes: None, totals: Totals::default(), ..row.clone() }
            });
            summed.totals.add(&row.totals);
        }
        let mut rows: Vec<OpRow> = types.into_values().collect();
        rows.iter_mut().for_each(OpRow::settle);
        Ops::ranked(self.window, self.devices, rows)
    }

    /// The side that does the model's work: the device, if it ran any op.
    pub fn side(&self) -> Where {
        let device = self.rows.iter().any(|row| row.key.side == Where::Device);
        if device { Where::Device } else { Where::Host }
    }

    /// The share of the model's op time for which operations are known; `None` if they are known of none.
    pub fn known_flops(&self) -> Option<f64> {
        let (mut known, mut all) = (Dur::ZERO, Dur::ZERO);
        for row in self.model() {
            known += row.totals.flops_time;
            all += row.totals.own;
        }
        (known > Dur::ZERO).then(|| known.fraction_of(all).min(1.0))
    }

    /// The ops that do the model's work, longest first.
    pub fn model(&self) -> impl Iterator<Item = &OpRow> {
        let side = self.side();
        self.rows.iter().filter(move |row| row.key.side == side && !row.key.input)
    }
}

#[cfg(test)]
mod tests;
