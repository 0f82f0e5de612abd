//! A GPU or TPU was in use, but what it did was not recorded.
//!
//! # What it means
//! There is a GPU or TPU, but the recording has no kernel of it. Why the host waits is therefore unknown, and no finding
//! about the step is based on that wait: time that the device may hide counts as `unknown`.
//!
//! # How it is detected
//! A device is listed, or the host calls its runtime, and no kernel lies on a device; or JAX starts programs, and no op
//! of theirs is recorded on any device, the CPU included.
//! The finding distinguishes seven reasons:
//!
//! - The profiler replayed kernels to collect counters, so their times are not the program's.
//! - The profiler was not asked for the device (Nsight Systems stores its options).
//! - Kernels were started or device memory was used, but the device's side is missing.
//! - Programs were started, but ran after the recording ended or were not traced.
//! - The device's library was called, but nothing was started.
//! - The library was watched, but never called.
//! - Unknown.
//!
//! The profiler's own errors, and its warnings about the device, are shown with a fix.
//!
//! A device that only copies is recorded: copies without kernels are its work. If the program marks ranges, the finding
//! names the one with the most time in which nothing else was recorded.
//!
//! # How to fix it
//! Ask for the device: `nsys profile --trace=cuda,nvtx,osrt …`, with `--trace-fork-before-exec=true` if child processes
//! do the work.
//!
//! If nothing was started or called, check the program's output: it may have failed early or run on the CPU.
//!
//! Otherwise make the tracing library visible (CUPTI on the `LD_LIBRARY_PATH` for NVIDIA, roctracer for AMD), allow
//! profiling for users (`NVreg_RestrictProfilingToAdminUsers=0`), and stop other profilers.
//!
//! PyTorch: `profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`.
//!
//! # How to check
//! `stepscope info PATH` lists the device with events.

use stepscope_analyze::states::missing_device::MissingDevice;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{plural, printable};

use super::shared::ranges::Ranges;
use crate::complaints;
use crate::facts::{Facts, Recording};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "no-device-trace",
    about: About::Trust { rank: 1 },
    view: "health",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("no_device_trace.rs"),
};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let recording = facts.get::<Recording>();
    let unseen = recording.device_missing || facts.summary.hosts.iter().any(|host| host.device_unseen);
    (facts.timeline && unseen).then(|| {
        let missing_device = facts.missing_device.clone().unwrap_or(MissingDevice::Unseen);
        let (complaints, ranges) = (recording.complaints.clone(), Ranges::of(facts));
        let cause = NoDevice { missing_device, complaints, ranges };
        Finding::new(&RULE, Severity::Warning, cause, facts.recorder())
    })
}

/// The device's side is missing.
#[derive(Clone, Debug)]
pub struct NoDevice {
    /// Why, as far as the recording shows.
    pub missing_device: MissingDevice,
    /// The profiler's own errors, and its warnings about the device.
    pub complaints: Vec<String>,
    /// The program's own ranges, which show where the time goes.
    pub ranges: Ranges,
}

impl Cause for NoDevice {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = vec![seen(&self.missing_device)];
        evidence.extend(self.complaints.iter().map(|text| complaint(text)));
        evidence.extend(self.ranges.evidence());
        let mut advice: Vec<String> = Vec::new();
        for known in self.complaints.iter().filter_map(|text| complaints::known(text)) {
            let fix = sentence(known.fix);
            if !advice.contains(&fix) {
                advice.push(fix);
            }
        }
        if advice.is_empty() {
            advice = fixes(&self.missing_device);
        }
        if finding.framework == Framework::PyTorch
            && !matches!(self.missing_device, MissingDevice::Replayed { .. })
        {
            advice.push(
                "Ask for the device: `profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`."
                    .to_owned(),
            );
        }
        let (why, largest) = (summary(&self.missing_device), self.ranges.largest());
        Words { summary: format!("No device trace: {why}{largest}."), evidence, advice }
    }
}

fn summary(missing_device: &MissingDevice) -> &'static str {
    match missing_device {
        MissingDevice::NotAsked { .. } => {
            "the profiler was not asked to record the device, so it is unknown why the host waits"
        }
        MissingDevice::Unseen => {
            "a device was in use but was not recorded, so it is unknown why the host waits"
        }
        MissingDevice::Replayed { .. } => {
            "the profiler replayed kernels to collect counters, so their durations were not recorded"
        }
        MissingDevice::ProgramsOnly => {
            "programs were started, but none of their work was recorded, so it is unknown what bounds the step"
        }
        MissingDevice::NothingStarted { .. } => {
            "the program prepared the device, but started no kernel while it was recorded"
        }
        MissingDevice::NeverCalled => "the program did not call the device while it was recorded",
        MissingDevice::Unknown => "a device is listed, but neither calls to it nor work on it were recorded",
    }
}

fn seen(missing_device: &MissingDevice) -> String {
    match missing_device {
        MissingDevice::NotAsked { asked } => format!("Requested: {}.", asked.join(", ")),
        MissingDevice::Unseen => {
            "The host calls a device, but the recording contains none of its kernels.".to_owned()
        }
        MissingDevice::Replayed { ranges } => format!(
            "The recording has {} of hardware counters instead of kernels.",
            plural(*ranges, "range", "ranges")
        ),
        MissingDevice::ProgramsOnly => {
            "The recording has calls of compiled functions, and no op that ran in them.".to_owned()
        }
        MissingDevice::NothingStarted { calls } => format!(
            "The recording has {} to the device's library; none of them starts a kernel.",
            plural(*calls, "call", "calls")
        ),
        MissingDevice::NeverCalled => {
            "The profiler traced the device's library, but nothing called it.".to_owned()
        }
        MissingDevice::Unknown => "The recording does not say whether the device was asked for.".to_owned(),
    }
}

/// Recording a program with Nsight Systems, with all that is needed here.
const NSIGHT: &str = "Record it: `nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node --output=run python \
                      train.py`, and read what it prints at the end.";

fn fixes(missing_device: &MissingDevice) -> Vec<String> {
    match missing_device {
        MissingDevice::NotAsked { .. } => lines([NSIGHT]),
        MissingDevice::Unseen => lines([
            "Make the device's tracing library visible to the program (CUPTI for NVIDIA, roctracer for AMD), allow it \
             to profile, then record again.",
        ]),
        MissingDevice::Replayed { .. } => {
            lines(["Record again without hardware counters to see how long kernels take."])
        }
        MissingDevice::ProgramsOnly => lines([
            "Wait for the work before the recording ends: `jax.block_until_ready(state)`, then \
             `jax.profiler.stop_trace()`. JAX returns from a call before its work is done.",
            "Record ops, too: `options = jax.profiler.ProfileOptions()`, `options.host_tracer_level = 2`; on a GPU, make \
             CUPTI visible to the program.",
        ]),
        MissingDevice::NothingStarted { .. } => lines([
            "Check the program's output: it may have failed early, or continued without the device.",
            "Record while it trains, after ten steps or more.",
        ]),
        MissingDevice::NeverCalled => lines([
            "Check the program's output: it may have failed early or run on the CPU. Check \
             `torch.cuda.is_available()`, `tf.config.list_physical_devices(\"GPU\")` or `jax.devices()`.",
            "If child processes do the work, follow them: `nsys profile --trace-fork-before-exec=true …`.",
            NSIGHT,
        ]),
        MissingDevice::Unknown => lines([
            "Let the profiler record the device as well, and check that the program uses the device: \
             `torch.cuda.is_available()`, `tf.config.list_physical_devices(\"GPU\")` or `jax.devices()`.",
            "Make the device's tracing library visible to the program (CUPTI for NVIDIA, roctracer for AMD).",
        ]),
    }
}

/// What the profiler itself says, with what it means if that is known.
fn complaint(text: &str) -> String {
    let text = printable(text.trim());
    match complaints::known(&text) {
        Some(known) => sentence(&format!("{}; the profiler reports: {text}", known.meaning)),
        None => sentence(&format!("the profiler reports: {text}")),
    }
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let start = letters.next().map_or(String::new(), |first| first.to_uppercase().collect());
    let stop = if clause.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{start}{}{stop}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{speaks, words};

    fn missing(missing_device: MissingDevice, complaints: &[&str], framework: Framework) -> Words {
        let complaints = complaints.iter().map(|&text| text.to_owned()).collect();
        words(&RULE, NoDevice { missing_device, complaints, ranges: Ranges::default() }, framework)
    }

    #[test]
    fn it_speaks() {
        speaks(
            &RULE,
            NoDevice {
                missing_device: MissingDevice::Unseen,
                complaints: vec!["Failed to load libcupti".into()],
                ranges: Ranges::sample(),
            },
        );
    }

    #[test]
    fn ranges_say_where_the_time_goes() {
        let (missing_device, ranges) = (MissingDevice::Unknown, Ranges::sample());
        let said =
            words(&RULE, NoDevice { missing_device, complaints: Vec::new(), ranges }, Framework::Unknown);
        assert!(
            said.summary.ends_with("; the range `find_centers` takes 67.7 ms (52 %)."),
            "{}",
            said.summary
        );
        assert!(said.evidence.iter().any(|fact| fact.contains("`backbone`: 30.0 ms (23 %)")), "{said:?}");
    }

    #[test]
    fn a_missing_cupti_gets_the_profiler_s_own_words_and_the_fix() {
        let said = missing(MissingDevice::Unseen, &["Failed to load libcupti"], Framework::TensorFlow);
        assert!(said.evidence[1].contains("Failed to load libcupti"), "{:?}", said.evidence);
        assert!(said.advice[0].contains("LD_LIBRARY_PATH"), "{:?}", said.advice);
    }

    #[test]
    fn a_missing_device_has_its_reason_and_its_fix() {
        let never = missing(MissingDevice::NeverCalled, &["No CUDA events collected."], Framework::Unknown);
        assert!(never.summary.contains("did not call the device"), "{}", never.summary);
        assert!(never.evidence[1].contains("No CUDA events collected."), "{:?}", never.evidence);
        assert!(
            never.advice.iter().any(|line| line.contains("--trace-fork-before-exec")),
            "{:?}",
            never.advice
        );
        let asked = MissingDevice::NotAsked { asked: vec!["OSRuntime".into(), "NvtxEvents".into()] };
        let asked = missing(asked, &[], Framework::Unknown);
        assert!(asked.evidence[0].contains("OSRuntime, NvtxEvents"), "{:?}", asked.evidence);
        assert!(asked.advice[0].contains("nsys profile --trace=cuda"), "{:?}", asked.advice);
        let nothing = missing(MissingDevice::NothingStarted { calls: 23 }, &[], Framework::Unknown);
        assert!(nothing.evidence[0].contains("23 calls"), "{:?}", nothing.evidence);
        assert!(!nothing.summary.contains("in use"), "{}", nothing.summary);
        let programs = missing(MissingDevice::ProgramsOnly, &[], Framework::Jax);
        assert!(programs.advice[0].contains("block_until_ready"), "{:?}", programs.advice);
        let torch = missing(MissingDevice::Unknown, &[], Framework::PyTorch).advice.join(" ");
        assert!(torch.contains("ProfilerActivity.CUDA"), "{torch}");
    }
}
