//! The report: the verdict first, then its evidence. One [`Report`] has four forms: text for the terminal, JSON
//! for programs, Markdown for pull requests, and one self-contained HTML file.

mod answer;
mod brief;
pub mod html;
mod json;
mod markdown;
mod palette;
mod place;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
mod text;

use stepscope_analyze::Category;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::curves::place::Placed;
use stepscope_analyze::devices::collectives::clock::Clocks;
use stepscope_analyze::devices::gpu_samples::GpuSamples;
use stepscope_analyze::recording::health::{Issue, Trouble};
use stepscope_analyze::steps::Origin;
use stepscope_analyze::time::summary::{HostSummary, Summary};
use stepscope_analyze::time::typical_step::StepPicture;
use stepscope_diagnose::Finding;
use stepscope_diagnose::rules::{no_device_trace, truncated_trace};
use stepscope_trace::series::Series;
use stepscope_trace::{Delivers, Format};

use crate::format::{duration_ms, plural};
use crate::words::{quoted, share, step_times, terms};
use crate::{gpu_samples, health};

pub use brief::{brief_json, finding_json};
pub use html::write_html;
pub(crate) use json::Found;
pub use json::write_json;
pub use markdown::write_markdown;
pub use palette::color;
pub(crate) use text::wrapped;
pub use text::write_text;

/// A longer path is omitted from suggested commands.
const LONGEST_TARGET: usize = 70;

/// Everything that `report` shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// The paths as the user wrote them, for the commands to run next.
    pub targets: Vec<String>,
    /// The session that was used.
    pub session: String,
    /// All sessions found, newest first.
    pub sessions: Vec<String>,
    /// The files.
    pub sources: Vec<SourceRow>,
    /// Problems of the recording, worst first.
    pub health: Vec<HealthRow>,
    /// Steps and their breakdown.
    pub summary: Summary,
    /// Ops, most expensive first.
    pub ops: Vec<OpRow>,
    /// Findings, the verdict first.
    pub findings: Vec<Finding>,
    /// GPU samples recorded beside the run.
    pub gpu_samples: Vec<GpuSamples>,
    /// The profiled kernel with the longest time.
    pub profiled: Option<Profiled>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock, or nothing to compare.
    pub clocks: Option<Clocks>,
    /// The run whose curves lie beside the profile.
    pub run: Option<RunBeside>,
    /// A typical step of the host that limits the run, for pages; `None` if nobody asked for it.
    pub picture: Option<StepPicture>,
}

/// The run that a profile is part of, by event files beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunBeside {
    /// Its name.
    pub name: String,
    /// Is it known how fast its steps were?
    pub has_pace: bool,
    /// Is it known when the profile was recorded?
    pub has_clock: bool,
    /// The profile's place on its curves; `None` if that is not known, or if nothing was logged at the time.
    pub placed: Option<Placed>,
    /// The values that say most about it, thinned to what a small chart shows.
    pub curves: Vec<Series>,
}

/// How close a profiled kernel comes to the device's peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiled {
    /// The kernel.
    pub kernel: String,
    /// Its share of all profiled time.
    pub fraction: f64,
    /// Utilisation of the busiest compute unit, as a share of its peak.
    pub compute: Option<f64>,
    /// The same for the busiest memory unit.
    pub memory: Option<f64>,
    /// The same for device memory.
    pub dram: Option<f64>,
    /// Kernels whose time was not collected: short names.
    pub untimed: Vec<String>,
}

/// A file that was read.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SourceRow {
    /// Its path.
    pub path: String,
    /// Its format.
    pub format: &'static Format,
    /// Its size.
    pub bytes: u64,
    /// Host on which it was recorded.
    pub host: String,
    /// Number of events.
    pub events: u64,
}

/// A problem of the recording, in words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HealthRow {
    /// Public id.
    pub id: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl HealthRow {
    /// The words for one problem.
    pub fn of(issue: &Issue) -> Self {
        let worded = health::words(issue);
        let message = match worded.fix {
            Some(fix) => format!("{}; fix: {fix}", worded.message),
            None => worded.message,
        };
        HealthRow { id: issue.trouble.id(), severity: health::severity(issue.trouble.severity()), message }
    }
}

/// One op, over the counted steps.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// Its full name, including the scope.
    pub name: String,
    /// Its type.
    pub op_type: String,
    /// True if it ran on a device, false if on the host.
    pub on_device: bool,
    /// Number of executions.
    pub count: u64,
    /// Time from start to end, in milliseconds.
    pub total_ms: f64,
    /// Time without nested ops.
    pub self_ms: f64,
    /// Its share of the self time of all ops.
    pub fraction: f64,
}

impl OpRow {
    fn place(&self) -> &'static str {
        if self.on_device { "device" } else { "host" }
    }
}

/// A unit that reaches this share of its peak limits a kernel, as in ncu's own rules.
const NEAR_PEAK: f64 = 0.6;

/// Below this many steps, a 90th percentile is no more than the longest step.
const STEPS_FOR_P90: usize = 10;

/// Number of GPUs whose samples are shown.
const GPUS: usize = 4;

impl Report {
    /// What was sampled or counted, where that is all there is.
    fn seen(&self) -> Option<String> {
        (self.only(Delivers::Counters) || self.only(Delivers::Samples)).then(|| self.nothing_found())
    }

    /// If no rule fires on the counters: how close the longest kernel comes to the device's peaks.
    fn near_peak(&self) -> String {
        let best = self.profiled.as_ref().and_then(|kernel| {
            let units = [("compute", kernel.compute), ("memory", kernel.memory)];
            let known = units.into_iter().filter_map(|(unit, peak)| Some((unit, peak?)));
            known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(unit, peak)| (kernel, unit, peak))
        });
        let Some((kernel, unit, peak)) = best else {
            return "The counters of the profiled kernels show no problem.".to_owned();
        };
        let (name, time) = (quoted(&kernel.kernel), share(kernel.fraction));
        let works =
            format!("{name} ({time} of the profiled time) reaches {} of the peak of {unit}", share(peak));
        let caches = kernel.dram.filter(|dram| unit == "memory" && peak >= NEAR_PEAK && *dram < peak / 2.0);
        if let Some(dram) = caches {
            format!(
                "The collected counters do not show whether the work is needed: {name} ({time} of the profiled time) keeps \
                 caches at {} of their peak, and device memory at {}. Record with `ncu --set full` to see wasted accesses.",
                share(peak),
                share(dram)
            )
        } else if peak >= NEAR_PEAK {
            format!("The counters show no problem: {works}.")
        } else {
            format!(
                "The collected counters do not show what limits the kernels: {works}. Record with `ncu --set full` \
                 to see stall reasons."
            )
        }
    }

    /// The profiled kernels without a time, which no share of the profiled time includes.
    fn untimed(&self) -> Option<String> {
        let names = &self.profiled.as_ref()?.untimed;
        let more = match names.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Some(format!("no time was collected for {}{more}", quoted(names.first()?)))
    }

    /// Whether a source shows what ran when.
    fn has_timeline(&self) -> bool {
        let most = self.sources.iter().map(|source| source.format.delivers).min();
        most.is_none_or(|most| most <= Delivers::Runs)
    }

    /// True if no source shows more than this.
    fn only(&self, delivers: Delivers) -> bool {
        self.sources.iter().map(|source| source.format.delivers).min() == Some(delivers)
    }

    fn nothing_found(&self) -> String {
        if self.only(Delivers::Counters) && self.health.iter().any(|row| row.id == Trouble::FewCounters.id())
        {
            return "The profiled kernels have times, but no counters that show their bottleneck.".to_owned();
        }
        if self.only(Delivers::Counters) {
            return self.near_peak();
        }
        if self.only(Delivers::Samples) {
            let seen = gpu_samples::headline(&self.gpu_samples)
                .unwrap_or_else(|| "The GPUs were sampled, but the log does not name its columns".to_owned());
            return format!("{seen}. Samples cannot show why a step is slow.");
        }
        if self.only(Delivers::RunSamples) {
            return "Samples of a run show its resource use, not why a step is slow. Run it again with \
                    `--profiler-port`, or record a profile (docs/capture.md)."
                .to_owned();
        }
        let shares = self.by_share();
        let most: Vec<String> = shares
            .iter()
            .take(3)
            .map(|(category, _, part)| format!("{} {}", category.key(), share(*part)))
            .collect();
        match self.summary.step_ms {
            Some(moments) => {
                format!("No problem found: a step takes {} ({}).", duration_ms(moments.mean), most.join(", "))
            }
            None if most.is_empty() => "Nothing to report: the recording is empty.".to_owned(),
            None => format!("No problem found: in the whole capture, {}.", most.join(", ")),
        }
    }

    /// The breakdown of the step, largest share first: category, milliseconds, share.
    fn by_share(&self) -> Vec<(Category, f64, f64)> {
        let mut rows: Vec<(Category, f64, f64)> = self
            .summary
            .breakdown_ms
            .iter()
            .map(|&(category, ms)| (category, ms, self.summary.fraction(category)))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows
    }

    fn bound(&self) -> Option<&HostSummary> {
        self.summary.bound()
    }

    /// The parts of the step-time line: `39.8 ms median`, `41.2 ms p90`, `12 steps marked train`, …
    fn step_line(&self) -> Vec<String> {
        let Some(host) = self.bound() else { return vec!["nothing was recorded".to_owned()] };
        let Some(moments) = self.summary.step_ms else {
            let length = duration_ms(self.summary.length_ms());
            if self.only(Delivers::Counters) {
                let timed = self.summary.length_ms() > 0.0;
                let time = if timed { format!("{length} of kernels") } else { "not collected".to_owned() };
                let alone = "profiled one at a time, without a timeline".to_owned();
                return [Some(time), Some(alone), self.untimed()].into_iter().flatten().collect();
            }
            if self.only(Delivers::Samples) || self.only(Delivers::RunSamples) {
                return vec!["hardware samples, without a timeline".to_owned()];
            }
            let asked = host.origin != Origin::None;
            let why = match host.whole_capture {
                true if asked => "as one piece".to_owned(),
                true => terms::how(&host.how),
                false => "no counted steps".to_owned(),
            };
            let apart = terms::all_excluded(host).filter(|_| !host.whole_capture);
            let part = matches!(host.covers.selection.range, Range::Time(_) | Range::Piece(_));
            let what = if part { "part of the capture" } else { "whole capture" };
            return [Some(format!("{what}, {length}")), Some(why), apart].into_iter().flatten().collect();
        };
        let (one, many) = terms::step_kind(host.kind);
        let steps = plural(self.summary.count as u64, one, many);
        let mut parts = match self.summary.count {
            1 => vec![duration_ms(moments.median)],
            count => {
                let (high, name) =
                    if count < STEPS_FOR_P90 { (moments.max, "longest") } else { (moments.p90, "p90") };
                let mean =
                    step_times::mean_beside(&moments).map(|mean| format!("{} mean", duration_ms(mean)));
                let usual = [
                    format!("{} median", duration_ms(moments.median)),
                    format!("{} {name}", duration_ms(high)),
                ];
                mean.into_iter().chain(usual).chain(step_times::shape(host)).collect()
            }
        };
        parts.push(format!("{steps} {}", terms::how(&host.how)));
        parts
    }

    /// Which steps and time range it covers, if there is a timeline.
    fn covers(&self) -> Option<String> {
        let host = self.bound().filter(|_| self.has_timeline())?;
        host.covers.span.map(|_| crate::covers::words(&host.covers))
    }

    /// GPU samples, one line per GPU, and a note on utilisation.
    fn sampled(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.gpu_samples.iter().take(GPUS).map(gpu_samples::words).collect();
        if self.gpu_samples.len() > GPUS {
            lines.push(format!("… and {} more; see `stepscope devices`.", self.gpu_samples.len() - GPUS));
        }
        if self.gpu_samples.iter().any(|gpu| gpu.utilisation.is_some()) {
            lines.push(gpu_samples::UTILISATION.to_owned());
        }
        lines
    }

    /// Where on the run's curves the profile was recorded, and whether its steps are typical.
    fn in_run(&self) -> Option<String> {
        self.run.as_ref().map(place::words)
    }

    /// Which host and device limit the step, if there is a choice.
    fn bounded_by(&self) -> Option<String> {
        let host = self.bound().filter(|_| self.has_timeline())?;
        let device = host.bottleneck_device.and_then(|place| host.devices.get(place));
        let device = device.map(|device| {
            let busy = device.busy_fraction.map_or(String::new(), |busy| format!(", busy {}", share(busy)));
            format!("{}{busy}", quoted(&device.name))
        });
        let among = |count: usize, what: &str| {
            if count > 1 { format!(" (of {count} {what})") } else { String::new() }
        };
        let device = device.map(|device| format!("{device}{}", among(host.devices.len(), "devices")));
        let hosts = self.summary.hosts.len();
        let named = (hosts > 1).then(|| format!("host {}{}", quoted(&host.host), among(hosts, "hosts")));
        match (device, named) {
            (None, None) => None,
            (Some(device), None) => Some(device),
            (None, Some(host)) => Some(host),
            (Some(device), Some(host)) => Some(format!("{device}, {host}")),
        }
    }

    /// Sessions that were not used.
    fn other_sessions(&self) -> Option<String> {
        let others = self.sessions.iter().filter(|name| **name != self.session).count() as u64;
        (others > 0).then(|| {
            format!(
                "{}; {} available, see `--session`",
                quoted(&self.session),
                plural(others, "other session", "other sessions")
            )
        })
    }

    /// True if a finding about trust already says what this row says.
    fn said_above(&self, row: &HealthRow) -> bool {
        let found = |rule| self.findings.iter().any(|finding| finding.is(rule));
        match row.id {
            "no-device-trace" | "collection-error" => found(&no_device_trace::RULE),
            "damaged" | "dropped-events" | "event-cap" => found(&truncated_trace::RULE),
            _ => false,
        }
    }

    /// What the breakdown splits: the step or the capture.
    fn whole(&self) -> &'static str {
        if self.summary.step_ms.is_some() { "step" } else { "capture" }
    }

    /// Commands to run next.
    fn next_commands(&self) -> Vec<String> {
        let cause = self.findings.iter().find(|finding| !finding.is_about_trust());
        let view = cause.map(|finding| finding.rule.view);
        let words: Vec<String> = self.targets.iter().map(|path| crate::format::shell_word(path)).collect();
        let words = words.join(" ");
        let target = if words.chars().count() <= LONGEST_TARGET { words.as_str() } else { "PATH" };
        for (delivers, view) in [(Delivers::Counters, "kernels"), (Delivers::Samples, "devices")] {
            if self.only(delivers) {
                return vec![format!("stepscope {view} {target}")];
            }
        }
        if self.only(Delivers::RunSamples) {
            return vec![format!("stepscope compare {target} AFTER")];
        }
        if view.is_none() && !self.findings.is_empty() {
            return ["health", "info"].map(|view| format!("stepscope {view} {target}")).to_vec();
        }
        let first = view.unwrap_or("steps");
        let mut commands = vec![format!("stepscope {first} {target}")];
        if first != "ops" {
            commands.push(format!("stepscope ops {target}"));
        }
        // With several paths, it would be unclear where one side of a comparison ends.
        if self.targets.len() == 1 {
            commands.push(format!("stepscope compare {target} AFTER"));
        }
        commands
    }
}

/// What fixing a finding saves: `saves at most 34.9 ms per step`.
fn promise(finding: &Finding) -> Option<String> {
    let gain = finding.gain_ms.filter(|gain| *gain > 0.0)?;
    Some(format!("saves at most {} {}", duration_ms(gain), finding.per()))
}
