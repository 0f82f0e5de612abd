//! What a comparison takes: plain values, one [`ComparedRun`] a recording, any number of runs a side.

use stepscope_analyze::steps::Origin;
use stepscope_analyze::time::summary::Summary;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::{Category, Shares};
use stepscope_trace::{DeviceKind, Dur};

use super::compiled::PartCost;
use super::load::Around;
use super::machine::Machine;
use super::noise::Unrest;
use super::parts::Part;
use super::work::Work;

/// One recording.
#[derive(Clone, Debug, Default)]
pub struct ComparedRun {
    /// How to call it, e.g. its path.
    pub label: String,
    /// The steps that count, in the order in which they ran, in milliseconds.
    pub steps_ms: Vec<f64>,
    /// How much single steps are disturbed, where `steps_ms` are means of several.
    pub kept_unrest: Option<Unrest>,
    /// What the steps are besides compute, where `shares` are not kept.
    pub kept_around: Option<Around>,
    /// Who owns the time of each of them.
    pub shares: Vec<Shares>,
    /// The categories of the mean step, where `shares` are not kept.
    pub kept_parts: Vec<Part>,
    /// What takes the time of a category, by name, as far as findings say it: `.map(...)`, an op, a line.
    pub culprits: Vec<(Category, String)>,
    /// Ops and kernels by stable name.
    pub ops: Vec<OpTime>,
    /// What parts of the model cost in compiled programs.
    pub parts: Vec<PartCost>,
    /// Were its kernels profiled one by one? Then there are no steps, and `ops` says what a launch of each takes.
    pub profiled: bool,
    /// What was found in it, the verdict first.
    pub findings: Vec<FindingKey>,
    /// What was run, and on what.
    pub setting: Setting,
    /// What else the machine did meanwhile, where that was measured.
    pub machine: Option<Machine>,
    /// The work of each step, or of the mean step where only that is known.
    pub work: Vec<(Work, Vec<f64>)>,
}

/// An op or a kernel; all that share a stable name are one.
#[derive(Clone, Debug, PartialEq)]
pub struct OpTime {
    /// The part of its name that stays from run to run.
    pub name: String,
    /// Its type, e.g. `MatMul`.
    pub op_type: String,
    /// Does it run on a device, rather than on the host?
    pub on_device: bool,
    /// Self time a step in milliseconds.
    pub ms_per_step: f64,
    /// How many a step.
    pub count_per_step: f64,
}

/// A finding, as far as it can be found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingKey {
    /// The public id.
    pub id: String,
    /// What it is about.
    pub subject: Option<String>,
}

/// What was run, and on what.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Setting {
    /// Who wrote the trace; `None` if that does not show.
    pub framework: Option<Framework>,
    /// Versions of software, by name.
    pub versions: Vec<(String, String)>,
    /// The devices at work: what sort, and the model as far as it is known.
    pub devices: Vec<(DeviceKind, String)>,
    /// How many hosts.
    pub hosts: usize,
    /// Examples in a batch, where it shows.
    pub batch_size: Option<u64>,
    /// How the steps were found; `None` without steps.
    pub origin: Option<Origin>,
}

impl ComparedRun {
    /// Steps, breakdown and devices as the summary has them; ops, findings, versions and batch are for the
    /// caller to add.
    pub fn of(label: impl Into<String>, summary: &Summary) -> Self {
        let steps =
            || summary.bound().into_iter().filter(|host| !host.whole_capture).flat_map(|host| host.counted());
        let framework = summary.bound().map(|host| host.framework).filter(|it| *it != Framework::Unknown);
        let mut devices: Vec<(DeviceKind, String)> = summary
            .hosts
            .iter()
            .flat_map(|host| &host.devices)
            .map(|device| (device.kind, device.name.clone()))
            .collect();
        devices.sort();
        ComparedRun {
            label: label.into(),
            steps_ms: steps().map(|step| step.span.dur().ms()).collect(),
            shares: steps().map(|step| step.shares).collect(),
            setting: Setting {
                framework,
                devices,
                hosts: summary.hosts.len(),
                origin: summary.bound().map(|host| host.origin).filter(|_| summary.count > 0),
                ..Setting::default()
            },
            ..ComparedRun::default()
        }
    }

    /// How much the steps are disturbed.
    pub(crate) fn unrest(&self) -> Unrest {
        self.kept_unrest.unwrap_or_else(|| Unrest::of(&self.steps_ms))
    }

    /// What the mean step is besides its compute; `None` where that is not known.
    pub(crate) fn around(&self) -> Option<Around> {
        self.kept_around.or_else(|| Around::of(self))
    }

    /// The work of one kind in each step; `None` where it is not known.
    pub(super) fn work(&self, wanted: Work) -> Option<Vec<f64>> {
        let known = self.work.iter().find(|(work, values)| *work == wanted && !values.is_empty());
        let cpu = || self.machine?.cpu_ms_per_step.filter(|_| wanted == Work::Cpu).map(|ms| vec![ms]);
        known.map(|(_, values)| values.clone()).or_else(cpu)
    }

    /// A category in the mean step; `None` where nothing is known about categories.
    pub(crate) fn part(&self, category: Category) -> Option<Part> {
        if self.kept_parts.is_empty() {
            return Part::of(category, &self.category_ms(category));
        }
        let nothing = Part { category, mean_ms: 0.0, below_ms: Some(0.0), above_ms: Some(0.0) };
        Some(self.kept_parts.iter().find(|part| part.category == category).copied().unwrap_or(nothing))
    }

    /// Are the categories of its steps known?
    pub(super) fn has_parts(&self) -> bool {
        !self.shares.is_empty() || !self.kept_parts.is_empty()
    }

    /// A category's milliseconds in each step.
    pub fn category_ms(&self, category: Category) -> Vec<f64> {
        self.shares.iter().map(|shares| shares.get(category).ms()).collect()
    }

    /// A category's milliseconds in the mean step.
    pub(crate) fn mean_category_ms(&self, category: Category) -> f64 {
        let total: Dur = self.shares.iter().map(|shares| shares.get(category)).sum();
        total.ms() / self.shares.len().max(1) as f64
    }
}
