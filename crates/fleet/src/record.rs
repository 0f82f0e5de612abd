//! A finished recording: what all its hosts say together, small enough to keep for months.
//!
//! Hosts are added in the order of their names and ids, whatever the order in which they arrived, so that equal hosts
//! give equal bytes. Times that are summed over recordings are whole nanoseconds for the same reason.

use serde::{Deserialize, Serialize};
use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::RankWaiting;
use stepscope_analyze::session::{Gathering, HostPartial, Session};
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::work::ops::{OTHER, Where};
use stepscope_diagnose::facts::Held;
use stepscope_diagnose::rules::compute_bound;
use stepscope_diagnose::rules::straggler::{LateRank, SlowHost};
use stepscope_diagnose::{Facts, Finding, diagnose};
use stepscope_trace::DeviceKind;
use stepscope_trace::statistics::quantile;

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, encoded};
use crate::heat::Heat;
use crate::plan::Recording;

/// Rows of ops, kernels and allocators that are kept one by one.
const KEPT: usize = 32;
const ALLOCATORS: usize = 4;

/// What one cause takes of the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loss {
    /// The finding's id.
    pub(crate) finding: String,
    #[serde(default)]
    pub(crate) subject: Option<String>,
    /// The most that a fix saves, as a share of the step.
    pub(crate) share: f64,
    /// The finding in one sentence.
    pub(crate) summary: String,
    /// What to do first.
    #[serde(default)]
    pub(crate) fix: Option<String>,
}

/// One host of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostFacts {
    pub(crate) host: String,
    /// Its median step.
    pub(crate) step_ms: Option<f64>,
    /// Its own work in the mean step, without waiting for others.
    pub(crate) own_ms: f64,
    /// By how much its step, or its own work in it, is longer than the median host's, as a share of the median step.
    pub(crate) slow: f64,
    /// The share of collectives at which one of its ranks was last; `None` if unknown.
    #[serde(default)]
    pub(crate) last: Option<f64>,
}

/// Time of an op or kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkTime {
    pub(crate) name: String,
    pub(crate) on_device: bool,
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

/// An allocator whose limit is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemoryFacts {
    pub(crate) host: String,
    pub(crate) allocator: String,
    pub(crate) peak_bytes: u64,
    pub(crate) limit_bytes: u64,
    pub(crate) growth_bytes_per_step: Option<f64>,
}

/// What is wrong with one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// A finished recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) recording: Recording,
    /// Hosts whose results are in it.
    pub(crate) read: u64,
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(crate) framework: String,
    /// Accelerators; of hosts without any, their processors count as one.
    pub(crate) devices: u64,
    pub(crate) models: Vec<String>,
    /// The median step; `None` without steps.
    pub(crate) step_ms: Option<f64>,
    /// What the breakdown adds up to.
    pub(crate) length_ms: f64,
    pub(crate) steps: u64,
    pub(crate) breakdown_ms: Vec<(String, f64)>,
    /// The largest first.
    pub(crate) losses: Vec<Loss>,
    /// The verdict, also where nothing can be won.
    pub(crate) verdict: Option<String>,
    /// The finding that makes it untrustworthy.
    pub(crate) doubt: Option<String>,
    pub(crate) hosts: Vec<HostFacts>,
    /// How slow they were at each step; `None` if no two share one.
    #[serde(default)]
    pub(crate) heat: Option<Heat>,
    /// Milliseconds per step of collectives under compute.
    pub(crate) hidden_communication_ms: f64,
    pub(crate) ops: Vec<WorkTime>,
    pub(crate) kernels: Vec<WorkTime>,
    pub(crate) memory: Vec<MemoryFacts>,
    /// Files that were read in part.
    pub(crate) damaged: Vec<Trouble>,
    pub(crate) bytes: u64,
}

impl Record {
    /// Its entry in a partial.
    pub(crate) fn frame(&self) -> Result<Frame, FleetError> {
        let header = Header {
            id: self.recording.id.clone(),
            recording: Some(self.recording.clone()),
            bytes: self.bytes,
            ..Header::new(Kind::Recording)
        };
        Frame::new(header, &encoded(self)?)
    }

    /// The share of the step that fixing everything saves at most. Unknown if no finding says how much, unless the verdict
    /// is that the device works all the time.
    pub(crate) fn lost(&self) -> Option<f64> {
        self.step_ms?;
        if self.losses.is_empty() && self.verdict.as_deref() != Some(compute_bound::RULE.id) {
            return None;
        }
        // A straggler stretches the step; everything else happens within what is left.
        let (held, within): (Vec<&Loss>, Vec<&Loss>) = self
            .losses
            .iter()
            .partition(|loss| loss.finding == stepscope_diagnose::rules::straggler::RULE.id);
        let sum = |losses: &[&Loss]| losses.iter().fold(0.0, |sum, loss| sum + loss.share).clamp(0.0, 1.0);
        let held = sum(&held);
        Some(held + (1.0 - held) * sum(&within))
    }

    /// The share of the step that a category takes.
    pub(crate) fn share(&self, category: &str) -> f64 {
        let ms = self.breakdown_ms.iter().find(|(name, _)| name == category).map_or(0.0, |(_, ms)| *ms);
        if self.length_ms > 0.0 { ms / self.length_ms } else { 0.0 }
    }
}

/// The record of hosts that can all be read.
pub(crate) fn record_of<'f>(frames: impl Iterator<Item = &'f Frame>) -> Result<Record, FleetError> {
    let (record, troubles) = gathered(frames)?;
    match troubles.into_iter().next() {
        None => Ok(record),
        Some(trouble) => Err(FleetError::Content(trouble.reason)),
    }
}

/// The record of those hosts that can be read, and why the others cannot.
pub(crate) fn gathered<'f>(
    frames: impl Iterator<Item = &'f Frame>,
) -> Result<(Record, Vec<Trouble>), FleetError> {
    let mut frames: Vec<&Frame> = frames.collect();
    frames.sort_by(|a, b| (&a.header.host, &a.header.id).cmp(&(&b.header.host, &b.header.id)));
    let recording = frames.iter().find_map(|frame| frame.header.recording.clone());
    let recording = recording.ok_or_else(|| FleetError::Content("no recording".to_owned()))?;
    let hosts = || frames.iter().filter(|frame| frame.header.kind == Kind::Host);
    let mut gathering = Gathering::new(hosts().filter_map(|frame| frame.header.timeline));
    let (mut troubles, mut damaged, mut read) = (Vec::new(), Vec::new(), 0);
    for frame in &frames {
        let trouble = |reason: String| Trouble {
            host: frame.header.host.clone(),
            path: frame.header.path.clone(),
            reason,
        };
        if frame.header.kind != Kind::Host {
            troubles.push(trouble(frame.header.reason.clone()));
            continue;
        }
        match frame.content::<HostPartial>() {
            Ok(partial) => {
                gathering.add(partial);
                read += 1;
                if !frame.header.reason.is_empty() {
                    damaged.push(trouble(frame.header.reason.clone()));
                }
            }
            Err(error) => {
                troubles.push(trouble(format!("{error} (written by stepscope {})", frame.header.tool)));
            }
        }
    }
    let wall = hosts().find_map(|frame| frame.header.timeline?.wall);
    let at = if recording.dated { None } else { wall.map(|wall| wall.seconds().0 as i64) };
    let bytes = hosts().map(|frame| frame.header.bytes).fold(0, u64::saturating_add);
    let at = at.unwrap_or(recording.at);
    let record = match gathering.finish() {
        Some(session) => judged(Empty { recording, read, at, damaged, bytes }, session),
        None => Empty { recording, read, at, damaged, bytes }.record(),
    };
    Ok((record, troubles))
}

/// What is known without any analysis.
struct Empty {
    recording: Recording,
    read: u64,
    at: i64,
    damaged: Vec<Trouble>,
    bytes: u64,
}

impl Empty {
    fn record(self) -> Record {
        Record {
            recording: self.recording,
            read: self.read,
            at: self.at,
            framework: String::new(),
            devices: 0,
            models: Vec::new(),
            step_ms: None,
            length_ms: 0.0,
            steps: 0,
            breakdown_ms: Vec::new(),
            losses: Vec::new(),
            verdict: None,
            doubt: None,
            hosts: Vec::new(),
            heat: None,
            hidden_communication_ms: 0.0,
            ops: Vec::new(),
            kernels: Vec::new(),
            memory: Vec::new(),
            damaged: self.damaged,
            bytes: self.bytes,
        }
    }
}

fn judged(known: Empty, session: Session) -> Record {
    let facts = Facts::of(session);
    let findings = diagnose(&facts);
    let summary = &facts.summary;
    let length_ms = summary.length_ms();
    let bound = summary.bound();
    let counted = bound.map_or(0, |host| host.counted().count()).max(1) as f64;
    let mut models: Vec<String> =
        summary.hosts.iter().flat_map(accelerators).map(|device| device.name.clone()).collect();
    models.sort();
    models.dedup();
    models.truncate(KEPT);
    let devices: usize = summary.hosts.iter().map(|host| accelerators(host).count().max(1)).sum();
    let mut losses: Vec<Loss> = findings.iter().filter_map(|finding| loss(finding, length_ms)).collect();
    losses.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.finding.cmp(&b.finding)));
    Record {
        framework: format!("{:?}", facts.framework()).to_lowercase(),
        devices: devices as u64,
        models,
        step_ms: summary.step_ms.map(|moments| moments.median),
        length_ms,
        steps: summary.count as u64,
        breakdown_ms: summary
            .breakdown_ms
            .iter()
            .map(|(category, ms)| (category.key().to_owned(), *ms))
            .collect(),
        losses,
        verdict: findings.first().filter(|finding| finding.explains()).map(|it| it.id().to_owned()),
        doubt: findings.iter().find(|finding| finding.is_about_trust()).map(|it| it.id().to_owned()),
        hosts: host_facts(&facts),
        heat: Heat::of(&summary.hosts),
        hidden_communication_ms: bound.map_or(0.0, |host| host.hidden_communication_ms) / counted,
        ops: longest(facts.ops.rows.iter().filter(|row| !row.key.input).map(|row| WorkTime {
            name: row.key.kind.clone(),
            on_device: row.key.side == Where::Device,
            count: row.count,
            ns: nanoseconds(row.self_ms),
        })),
        kernels: longest(facts.kernels.rows.iter().map(|row| WorkTime {
            name: row.name.clone(),
            on_device: true,
            count: row.count,
            ns: nanoseconds(row.total_ms),
        })),
        memory: memory(&facts),
        ..known.record()
    }
}

fn accelerators(host: &HostSummary) -> impl Iterator<Item = &stepscope_analyze::time::summary::DeviceRow> {
    host.devices.iter().filter(|device| device.kind != DeviceKind::Cpu)
}

/// What a finding takes of the step. A straggler claims no time of its own host's step, but all wait for it.
fn loss(finding: &Finding, length_ms: f64) -> Option<Loss> {
    let share = match (finding.cause::<SlowHost>(), finding.cause::<LateRank>()) {
        (Some(slow), _) if slow.ms > 0.0 => 1.0 - slow.usual_ms / slow.ms,
        (_, Some(late)) if length_ms > 0.0 => late.waiting_ms / length_ms,
        _ => finding.gain_ms.filter(|_| length_ms > 0.0)? / length_ms,
    };
    let words = finding.words();
    (share > 0.0 && share.is_finite()).then(|| Loss {
        finding: finding.id().to_owned(),
        subject: finding.subject.clone(),
        share: share.min(1.0),
        summary: words.summary,
        fix: words.advice.into_iter().next(),
    })
}

fn host_facts(facts: &Facts) -> Vec<HostFacts> {
    let hosts = &facts.summary.hosts;
    let middle = |all: Vec<f64>| {
        let mut all = all;
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.5).unwrap_or(0.0)
    };
    // Who serves others has no steps to compare.
    let measured: Vec<(Option<f64>, f64)> =
        hosts.iter().map(|host| (host.median_ms().filter(|_| host.trains()), host.own_work_ms())).collect();
    let usual_ms = middle(measured.iter().filter_map(|(step, _)| *step).collect());
    // The own work of a host without steps is that of its whole capture.
    let usual_own = middle(measured.iter().filter(|(step, _)| step.is_some()).map(|(_, own)| *own).collect());
    let ranks = facts.collectives.waiting.as_ref().map_or(&[][..], |waiting| &waiting.ranks);
    let held = facts.get::<Held>();
    let rows = hosts.iter().zip(measured).map(|(host, (step_ms, own_ms))| {
        // Where arrivals were compared, they say who is slow, as in the finding.
        let longer = match &*held {
            Held::Unknown => (step_ms.unwrap_or(0.0) - usual_ms).max(own_ms - usual_own),
            Held::ByOne(one) if one.rank.host == host.host => one.rank.late_ms,
            _ => 0.0,
        };
        let slow = if usual_ms > 0.0 && step_ms.is_some() { (longer / usual_ms).max(0.0) } else { 0.0 };
        let own_rank = |name: &str| name.strip_prefix(&host.host).is_some_and(|rest| rest.starts_with(' '));
        let own = |rank: &&RankWaiting| rank.host == host.host || own_rank(&rank.name);
        let last = ranks.iter().filter(own).map(|rank| rank.last);
        HostFacts { host: host.host.clone(), step_ms, own_ms, slow, last: last.max_by(f64::total_cmp) }
    });
    rows.collect()
}

/// The longest, summed up by name, and the sum of the others.
fn longest(rows: impl Iterator<Item = WorkTime>) -> Vec<WorkTime> {
    let mut by_name = std::collections::BTreeMap::<(String, bool), (u64, u64)>::new();
    for row in rows {
        let sum = by_name.entry((row.name, row.on_device)).or_default();
        *sum = (sum.0.saturating_add(row.count), sum.1.saturating_add(row.ns));
    }
    let mut all: Vec<WorkTime> = by_name
        .into_iter()
        .map(|((name, on_device), (count, ns))| WorkTime { name, on_device, count, ns })
        .collect();
    all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (&a.name, a.on_device).cmp(&(&b.name, b.on_device))));
    let rest = all.split_off(KEPT.min(all.len()));
    for on_device in [false, true] {
        let others = || rest.iter().filter(|row| row.on_device == on_device);
        let count = others().map(|row| row.count).fold(0, u64::saturating_add);
        let ns = others().map(|row| row.ns).fold(0, u64::saturating_add);
        if ns > 0 {
            all.push(WorkTime { name: OTHER.to_owned(), on_device, count, ns });
        }
    }
    all
}

fn nanoseconds(ms: f64) -> u64 {
    (ms * 1e6).round().max(0.0) as u64
}

fn memory(session: &Session) -> Vec<MemoryFacts> {
    let mut known: Vec<MemoryFacts> = session
        .memory
        .allocators
        .iter()
        .filter_map(|allocator| {
            let limit_bytes = allocator.capacity.filter(|limit| *limit > 0)?;
            let growth = allocator.growth.filter(|growth| growth.grows).map(|growth| growth.bytes_per_step);
            Some(MemoryFacts {
                host: allocator.host.clone(),
                allocator: allocator.name.clone(),
                peak_bytes: u64::try_from(allocator.peak).unwrap_or(0),
                limit_bytes,
                growth_bytes_per_step: growth,
            })
        })
        .collect();
    let full = |row: &MemoryFacts| row.peak_bytes as f64 / row.limit_bytes as f64;
    known.sort_by(|a, b| {
        full(b).total_cmp(&full(a)).then_with(|| (&a.host, &a.allocator).cmp(&(&b.host, &b.allocator)))
    });
    known.truncate(ALLOCATORS);
    known
}

/// The category of communication that nothing hides.
pub(crate) fn exposed(record: &Record) -> f64 {
    record.share(Category::Communication.key())
}
