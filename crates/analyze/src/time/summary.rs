//! How long a step is, and where its time goes: one partial result per host, merged over the session.
//!
//! A session's step is as long as its slowest host's. The result names the host and device that limit it, and
//! how far the others differ.

use stepscope_trace::{DeviceKind, Span, Trace};

use crate::breakdown::{Category, Shares};
use crate::context::Context;
use crate::coverage::Coverage;
use crate::job::JobPart;
use crate::steps::{Exclusion, How, Origin, StepKind};
use crate::vocabulary::Framework;
use crate::vocabulary::has_timeline;
use stepscope_trace::statistics::Moments;

/// One step of one host, on the bottleneck device.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct StepRow {
    /// The loop's own number, or a sequence number.
    pub number: i64,
    /// Its location in the trace.
    pub span: Span,
    /// Its breakdown, which adds up to the step.
    pub shares: Shares,
    /// Why it is excluded, if it is.
    pub excluded: Option<Exclusion>,
}

impl StepRow {
    /// The host's own work in the step, in milliseconds, without waiting for other hosts.
    pub fn own_work_ms(&self) -> f64 {
        const WAITING: [Category; 4] =
            [Category::Communication, Category::Sync, Category::Idle, Category::Unknown];
        let waiting: f64 = WAITING.iter().map(|&category| self.shares.get(category).ms()).sum();
        self.span.dur().ms() - waiting
    }
}

/// A device as the report shows it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct DeviceRow {
    /// The name of its process in the trace, e.g. `/device:GPU:0`.
    pub id: String,
    /// Its model; the id if unknown.
    pub name: String,
    /// Its kind.
    pub kind: DeviceKind,
    /// Share of the steps in which it was busy; `None` if its side was not recorded.
    pub busy_fraction: Option<f64>,
    /// Number of steps in which it did anything.
    pub steps_seen: usize,
}

/// Partial result of one host.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct HostSummary {
    /// Its name.
    pub host: String,
    /// Its part in a job, if it says.
    #[serde(default)]
    pub part: Option<JobPart>,
    /// The framework that wrote the trace.
    pub framework: Framework,
    /// How reliable the steps are.
    pub origin: Origin,
    /// How they were found.
    pub how: How,
    /// Their kind.
    pub kind: StepKind,
    /// True if there are no steps: the only row is the whole capture.
    pub whole_capture: bool,
    /// What the figures cover.
    pub covers: Coverage,
    /// All steps, including excluded ones.
    pub steps: Vec<StepRow>,
    /// Its devices; only the host's processor if there are no others.
    pub devices: Vec<DeviceRow>,
    /// Index of the bottleneck device.
    pub bottleneck_device: Option<usize>,
    /// True if the device lags behind the host.
    pub asynchronous: bool,
    /// True if a device was working whose side was not recorded.
    pub device_unseen: bool,
    /// Collectives hidden under compute, over all counted steps.
    pub hidden_communication_ms: f64,
    /// Copies hidden under compute, over all counted steps.
    pub hidden_copies_ms: f64,
    /// Number of events in the host's trace.
    pub events: u64,
}

impl HostSummary {
    /// What one host says.
    pub fn of(context: &Context) -> Self {
        let (found, breakdown, states) = (context.steps(), context.breakdown(), context.states());
        let bound = breakdown.bound();
        let steps = breakdown.steps.all.iter().zip(bound.map_or(&[][..], |device| &device.steps[..]));
        let hidden = |time: fn(&crate::breakdown::StepShares) -> stepscope_trace::Dur| {
            breakdown.counted().map(|(_, shares)| time(shares).ms()).sum::<f64>()
        };
        HostSummary {
            host: context.host.clone(),
            part: JobPart::of(context.trace),
            framework: context.vocabulary().framework,
            origin: found.origin,
            how: found.how.clone(),
            kind: found.kind,
            whole_capture: breakdown.steps.whole_capture,
            covers: Coverage::of(context),
            steps: steps
                .map(|(step, shares)| StepRow {
                    number: step.number,
                    span: shares.window,
                    shares: shares.shares,
                    excluded: step.excluded,
                })
                .collect(),
            devices: device_rows(context),
            bottleneck_device: states.has_device.then_some(breakdown.bottleneck),
            asynchronous: bound.is_some_and(|device| device.asynchronous),
            device_unseen: states.device_unseen,
            hidden_communication_ms: hidden(|shares| shares.hidden_communication),
            hidden_copies_ms: hidden(|shares| shares.hidden_copies),
            events: context.trace.events(),
        }
    }

    /// Keeps a bounded number of steps.
    pub(crate) fn bound(&mut self) {
        const STEPS: usize = 512;
        let all = self.counted().count();
        crate::stored::thin(&mut self.steps, STEPS);
        let kept = self.counted().count() as f64 / all.max(1) as f64;
        self.hidden_communication_ms *= kept;
        self.hidden_copies_ms *= kept;
    }

    /// Does it run steps, rather than serve others that do?
    pub fn trains(&self) -> bool {
        self.part.is_none_or(JobPart::trains)
    }

    /// The steps that count.
    pub fn counted(&self) -> impl Iterator<Item = &StepRow> {
        self.steps.iter().filter(|step| step.excluded.is_none())
    }

    /// The host's own work in a mean step, in milliseconds, without waiting for other hosts.
    pub fn own_work_ms(&self) -> f64 {
        let steps = self.counted().count().max(1) as f64;
        self.counted().map(StepRow::own_work_ms).sum::<f64>() / steps
    }

    /// The median step duration in milliseconds; `None` without steps: the whole capture is not one.
    pub fn median_ms(&self) -> Option<f64> {
        self.middle_ms().filter(|_| !self.whole_capture)
    }

    fn mean_ms(&self) -> f64 {
        let steps = self.counted().count().max(1) as f64;
        self.counted().map(|step| step.span.dur().ms()).sum::<f64>() / steps
    }

    fn communicates(&self) -> bool {
        self.counted().any(|step| !step.shares.get(Category::Communication).is_zero())
    }

    fn middle_ms(&self) -> Option<f64> {
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

/// Devices of which only counters or GPU samples were recorded: their utilisation is unknown.
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
    /// All hosts, in order.
    pub hosts: Vec<HostSummary>,
    /// The host that limits the step: its median step is the longest.
    pub bottleneck_host: usize,
    /// The durations of that host's counted steps, in milliseconds; `None` without steps.
    pub step_ms: Option<Moments>,
    /// Number of counted steps.
    pub count: usize,
    /// Number of excluded steps.
    pub dropped: usize,
    /// The breakdown of the mean step (or of the whole capture, if there are no steps); adds up to its
    /// duration.
    pub breakdown_ms: Vec<(Category, f64)>,
}

/// Hosts whose steps differ by less run in lockstep: each waits for the slowest.
const IN_STEP: f64 = 1.02;
/// The same for mean steps, which noise moves less: hosts that wait for one another need the same time for all steps.
const IN_STEP_ON_AVERAGE: f64 = 1.05;

/// The host that all others wait for: the one with the longest step, or, if hosts run in lockstep, the one that
/// works longest in it. A host without steps, such as one whose file is cut, holds up nobody that has steps; nor does
/// one that serves others, as far as anybody was recorded whom it serves.
fn slowest(hosts: &[HostSummary]) -> usize {
    let all = 0..hosts.len();
    let some =
        |wanted: &dyn Fn(usize) -> bool| all.clone().filter(|&index| wanted(index)).collect::<Vec<_>>();
    let trains = some(&|index| hosts[index].trains() && !hosts[index].whole_capture);
    let with_steps = some(&|index| !hosts[index].whole_capture);
    let of = [trains, with_steps].into_iter().find(|found| !found.is_empty());
    let of = of.unwrap_or_else(|| all.clone().collect());
    let length = |index: usize| hosts[index].middle_ms().unwrap_or(0.0);
    let alike = |length: &dyn Fn(usize) -> f64, factor: f64| {
        let lengths = || of.iter().map(|&index| length(index));
        lengths().fold(0.0, f64::max) <= lengths().fold(f64::INFINITY, f64::min) * factor
    };
    let mean = |index: usize| hosts[index].mean_ms();
    let communicate = of.iter().any(|&index| hosts[index].communicates());
    let in_step = alike(&length, IN_STEP) || communicate && alike(&mean, IN_STEP_ON_AVERAGE);
    let key = |index: usize| if in_step { hosts[index].own_work_ms() } else { length(index) };
    of.into_iter().max_by(|&a, &b| key(a).total_cmp(&key(b)).then(b.cmp(&a))).unwrap_or(0)
}

impl Summary {
    /// Combines the hosts.
    pub fn finish(hosts: Vec<HostSummary>) -> Self {
        let bottleneck_host = slowest(&hosts);
        let bound = hosts.get(bottleneck_host);
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
            bottleneck_host,
            hosts,
        }
    }

    /// The host that limits the step.
    pub fn bound(&self) -> Option<&HostSummary> {
        self.hosts.get(self.bottleneck_host)
    }

    /// The duration that the breakdown adds up to, in milliseconds.
    pub fn length_ms(&self) -> f64 {
        self.breakdown_ms.iter().map(|(_, ms)| ms).sum()
    }

    /// The share of a category in the step.
    pub fn fraction(&self, category: Category) -> f64 {
        let length = self.length_ms();
        let owned = self.breakdown_ms.iter().find(|(owner, _)| *owner == category).map_or(0.0, |(_, ms)| *ms);
        if length > 0.0 { owned / length } else { 0.0 }
    }
}
