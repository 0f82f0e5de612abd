//! The answer to "how long is a step, and where does it go": one partial a host, merged over the session.
//!
//! A session's step is as long as its slowest host's. The host and the device that bound it are named, and how
//! far the others differ from it.

use stepscope_trace::{DeviceKind, Span, Trace};

use crate::breakdown::{Category, Shares};
use crate::context::Context;
use crate::counters::has_timeline;
use crate::selection::Coverage;
use crate::statistics::Moments;
use crate::steps::{How, Origin, SetApart, StepKind};
use crate::vocabulary::Framework;

/// One step of one host, on the device that bounds it.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// The loop's own number, or a running one.
    pub number: i64,
    /// Where it lies in the trace.
    pub span: Span,
    /// Who owns its time; adds up to it.
    pub shares: Shares,
    /// Why it does not count, if it does not.
    pub set_apart: Option<SetApart>,
}

/// A device as the report shows it.
#[derive(Clone, Debug)]
pub struct DeviceRow {
    /// The name that the trace gives its process, e.g. `/device:GPU:0`.
    pub id: String,
    /// Its model; the id again where that is unknown.
    pub name: String,
    /// What sort.
    pub kind: DeviceKind,
    /// The share of the steps in which it was busy; `None` where its side was not recorded.
    pub busy_fraction: Option<f64>,
    /// In how many steps it did anything.
    pub steps_seen: usize,
}

/// The partial: what one host says.
#[derive(Clone, Debug)]
pub struct HostSummary {
    /// Its name.
    pub host: String,
    /// Who wrote the trace.
    pub framework: Framework,
    /// How far the steps can be trusted.
    pub origin: Origin,
    /// By what they were found.
    pub how: How,
    /// What sort they are.
    pub kind: StepKind,
    /// There are no steps: the one row is the whole capture.
    pub whole_capture: bool,
    /// What the figures are about.
    pub covers: Coverage,
    /// All steps, also those set apart.
    pub steps: Vec<StepRow>,
    /// Its devices; the host's processor alone where there are no others.
    pub devices: Vec<DeviceRow>,
    /// Which of the devices bounds the step.
    pub bounding_device: Option<usize>,
    /// The device runs behind the host.
    pub asynchronous: bool,
    /// A device was at work whose side was not recorded.
    pub device_unseen: bool,
    /// Collectives under compute, over all steps that count.
    pub hidden_communication_ms: f64,
    /// Copies under compute, over all steps that count.
    pub hidden_copies_ms: f64,
    /// How many events the host's trace has.
    pub events: u64,
}

impl HostSummary {
    /// What one host says.
    pub fn of(context: &Context) -> Self {
        let (found, breakdown, states) = (context.steps(), context.breakdown(), context.states());
        let bound = breakdown.bound();
        let steps = breakdown.steps.iter().zip(bound.map_or(&[][..], |device| &device.steps[..]));
        let hidden = |time: fn(&crate::breakdown::StepShares) -> stepscope_trace::Dur| {
            breakdown.counted().map(|(_, shares)| time(shares).ms()).sum::<f64>()
        };
        HostSummary {
            host: context.host.clone(),
            framework: context.vocabulary().framework,
            origin: found.origin,
            how: found.how.clone(),
            kind: found.kind,
            whole_capture: breakdown.whole_capture,
            covers: Coverage::of(context),
            steps: steps
                .map(|(step, shares)| StepRow {
                    number: step.number,
                    span: shares.window,
                    shares: shares.shares,
                    set_apart: step.set_apart,
                })
                .collect(),
            devices: device_rows(context),
            bounding_device: states.has_device.then_some(breakdown.bounding),
            asynchronous: bound.is_some_and(|device| device.asynchronous),
            device_unseen: states.device_unseen,
            hidden_communication_ms: hidden(|shares| shares.hidden_communication),
            hidden_copies_ms: hidden(|shares| shares.hidden_copies),
            events: context.trace.events(),
        }
    }

    /// The steps that count.
    pub fn counted(&self) -> impl Iterator<Item = &StepRow> {
        self.steps.iter().filter(|step| step.set_apart.is_none())
    }

    /// What the host itself does in a mean step, in milliseconds: without waiting for other hosts.
    pub fn own_work_ms(&self) -> f64 {
        const WAITING: [Category; 4] =
            [Category::Communication, Category::Sync, Category::Idle, Category::Unknown];
        let own = |step: &StepRow| {
            let waiting: f64 = WAITING.iter().map(|&category| step.shares.get(category).ms()).sum();
            step.span.dur().ms() - waiting
        };
        let steps = self.counted().count().max(1) as f64;
        self.counted().map(own).sum::<f64>() / steps
    }

    /// The middle step's length in milliseconds; `None` without steps.
    pub fn median_ms(&self) -> Option<f64> {
        Moments::of(self.counted().map(|step| step.span.dur().ms())).map(|moments| moments.median)
    }
}

fn device_rows(context: &Context) -> Vec<DeviceRow> {
    let (trace, breakdown) = (context.trace, context.breakdown());
    if !has_timeline(trace) {
        return unwatched(trace);
    }
    let rows = breakdown.devices.iter().map(|device| {
        let Some(process) = device.process else {
            return DeviceRow {
                id: "host".to_owned(),
                name: "CPU".to_owned(),
                kind: DeviceKind::Cpu,
                busy_fraction: (!context.states().device_unseen).then_some(breakdown.busy_fraction(device)),
                steps_seen: device.steps_seen,
            };
        };
        let process = trace.process(process);
        let known = process.device.map(|id| &trace.devices()[id.index()]);
        let id = Some(trace.str(process.name)).filter(|name| !name.trim().is_empty());
        let number = known.map_or(process.number, |known| known.number);
        let id = id.map_or_else(|| format!("GPU {number}"), str::to_owned);
        let name = known.map(|known| trace.str(known.name)).filter(|name| !name.is_empty());
        DeviceRow {
            name: name.unwrap_or(&id).to_owned(),
            kind: known.map_or(DeviceKind::Other, |known| known.kind),
            id,
            busy_fraction: Some(breakdown.busy_fraction(device)),
            steps_seen: device.steps_seen,
        }
    });
    rows.collect()
}

/// Devices of which only counters or gauges were recorded: how busy they were is not known.
fn unwatched(trace: &Trace) -> Vec<DeviceRow> {
    let rows = trace.devices().iter().map(|device| {
        let process = device.process.map(|process| trace.str(trace.process(process).name).to_owned());
        let id = process.unwrap_or_else(|| format!("GPU {}", device.number));
        let name = Some(trace.str(device.name)).filter(|name| !name.is_empty());
        DeviceRow {
            name: name.unwrap_or(&id).to_owned(),
            kind: device.kind,
            id,
            busy_fraction: None,
            steps_seen: 0,
        }
    });
    rows.collect()
}

/// The whole session.
#[derive(Clone, Debug)]
pub struct Summary {
    /// All hosts, as they came.
    pub hosts: Vec<HostSummary>,
    /// The host that bounds the step: its median step is the longest.
    pub bounding_host: usize,
    /// The lengths of the bounding host's steps that count, in milliseconds; `None` without steps.
    pub step_ms: Option<Moments>,
    /// How many steps count.
    pub count: usize,
    /// How many were set apart.
    pub dropped: usize,
    /// Who owns the mean step (or the whole capture, where there are no steps); adds up to its length.
    pub breakdown_ms: Vec<(Category, f64)>,
}

/// Hosts whose steps differ by less than this run in step: each waits for the slowest.
const IN_STEP: f64 = 1.02;

/// The host that all others wait for: the one with the longest step, or, where hosts run in step, the one that
/// works longest in it.
fn slowest(hosts: &[HostSummary]) -> usize {
    let lengths: Vec<f64> = hosts.iter().map(|host| host.median_ms().unwrap_or(0.0)).collect();
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    let shortest = lengths.iter().copied().fold(f64::INFINITY, f64::min);
    let in_step = longest <= shortest * IN_STEP;
    let key = |index: usize| if in_step { hosts[index].own_work_ms() } else { lengths[index] };
    (0..hosts.len()).max_by(|&a, &b| key(a).total_cmp(&key(b)).then(b.cmp(&a))).unwrap_or(0)
}

impl Summary {
    /// Puts the hosts together.
    pub fn finish(hosts: Vec<HostSummary>) -> Self {
        let bounding_host = slowest(&hosts);
        let bound = hosts.get(bounding_host);
        let whole = bound.is_none_or(|host| host.whole_capture);
        let lengths: Vec<f64> =
            bound.iter().flat_map(|host| host.counted()).map(|step| step.span.dur().ms()).collect();
        let mut shares = Shares::default();
        bound.iter().flat_map(|host| host.counted()).for_each(|step| shares.add_all(&step.shares));
        let per_step = lengths.len().max(1) as f64;
        let breakdown_ms = shares.owners().map(|(category, time)| (category, time.ms() / per_step)).collect();
        let dropped = bound.map_or(0, |host| host.steps.len() - lengths.len());
        Summary {
            step_ms: if whole { None } else { Moments::of(lengths.iter().copied()) },
            count: if whole { 0 } else { lengths.len() },
            dropped,
            breakdown_ms,
            bounding_host,
            hosts,
        }
    }

    /// The host that bounds the step.
    pub fn bound(&self) -> Option<&HostSummary> {
        self.hosts.get(self.bounding_host)
    }

    /// The length that the breakdown adds up to, in milliseconds.
    pub fn length_ms(&self) -> f64 {
        self.breakdown_ms.iter().map(|(_, ms)| ms).sum()
    }

    /// The share of the step that a category owns.
    pub fn fraction(&self, category: Category) -> f64 {
        let length = self.length_ms();
        let owned = self.breakdown_ms.iter().find(|(owner, _)| *owner == category).map_or(0.0, |(_, ms)| *ms);
        if length > 0.0 { owned / length } else { 0.0 }
    }
}
