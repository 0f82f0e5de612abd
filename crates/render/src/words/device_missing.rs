//! Words for a recording without the device's side: why it is missing, as far as the recording tells, and how to
//! record again with it.

use stepscope_analyze::absence::Absence;
use stepscope_analyze::health::{Issue, Trouble};
use stepscope_analyze::vocabulary::Framework;

use super::{Words, lines};
use crate::format::plural;
use crate::health;

pub(super) fn words(absence: &Absence, complaints: &[String], framework: Framework) -> Words {
    let known: Vec<_> = complaints.iter().map(|text| health::words(&complaint(text))).collect();
    let mut evidence = vec![seen(absence)];
    evidence.extend(known.iter().map(|worded| sentence(&worded.message)));
    let mut advice: Vec<String> = Vec::new();
    for fix in known.iter().filter_map(|worded| worded.fix.as_ref()).map(|fix| sentence(fix)) {
        if !advice.contains(&fix) {
            advice.push(fix);
        }
    }
    if advice.is_empty() {
        advice = cures(absence);
    }
    if framework == Framework::PyTorch && !matches!(absence, Absence::Replayed { .. }) {
        advice.push(
            "Ask for the device: `profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`."
                .to_owned(),
        );
    }
    Words { summary: summary(absence).to_owned(), evidence, advice }
}

fn summary(absence: &Absence) -> &'static str {
    match absence {
        Absence::NotAsked { .. } => {
            "No device trace: the recorder was not asked for the device's side, so why the host waits cannot be told."
        }
        Absence::Unseen => {
            "No device trace: a device was at work, but its side was not recorded; why the host waits cannot be told."
        }
        Absence::Replayed { .. } => {
            "No device trace: the profiler counted in kernels, which runs them many times; how long they take was not \
             recorded."
        }
        Absence::NothingStarted { .. } => {
            "No device trace: the program prepared the device, but started no kernel while it was recorded."
        }
        Absence::NeverCalled => "No device trace: the program did not call the device while it was recorded.",
        Absence::Unknown => {
            "No device trace: a device is listed, but neither calls to it nor work on it were recorded."
        }
    }
}

fn seen(absence: &Absence) -> String {
    match absence {
        Absence::NotAsked { asked } => format!("Asked for: {}.", asked.join(", ")),
        Absence::Unseen => "The host talks to a device, but no kernel of it is in the recording.".to_owned(),
        Absence::Replayed { ranges } => format!(
            "{} of hardware counters were recorded in place of kernels.",
            plural(*ranges, "range", "ranges")
        ),
        Absence::NothingStarted { calls } => format!(
            "There are {} of the device's library, and none of them starts a kernel.",
            plural(*calls, "call", "calls")
        ),
        Absence::NeverCalled => {
            "The recorder watched the device's library, and there is not one call of it.".to_owned()
        }
        Absence::Unknown => "Whether the device was asked for, the recording does not say.".to_owned(),
    }
}

/// Recording a program with Nsight Systems, with all that is needed here.
const NSIGHT: &str = "Record it: `nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node --output=run python \
                      train.py`, and read what it prints at the end.";

fn cures(absence: &Absence) -> Vec<String> {
    match absence {
        Absence::NotAsked { .. } => lines([NSIGHT]),
        Absence::Unseen => lines([
            "Make the device's tracing library visible to the program (CUPTI for NVIDIA, roctracer for AMD) and allow \
             it to profile, then record again.",
        ]),
        Absence::Replayed { .. } => {
            lines(["Record again without hardware counters to see how long kernels take."])
        }
        Absence::NothingStarted { .. } => lines([
            "See what the program itself printed: it may have failed early, or have gone on without the device.",
            "Record while it trains, after ten steps or more.",
        ]),
        Absence::NeverCalled => lines([
            "See what the program itself printed: it may have failed early or run on the CPU; check \
             `torch.cuda.is_available()`, `tf.config.list_physical_devices(\"GPU\")` or `jax.devices()`.",
            "If child processes do the work, follow them: `nsys profile --trace-fork-before-exec=true …`.",
            NSIGHT,
        ]),
        Absence::Unknown => lines([
            "Ask the profiler for the device's side as well, and check that the program uses the device: \
             `torch.cuda.is_available()`, `tf.config.list_physical_devices(\"GPU\")` or `jax.devices()`.",
            "Make the device's tracing library visible to the program (CUPTI for NVIDIA, roctracer for AMD).",
        ]),
    }
}

fn complaint(error: &str) -> Issue {
    Issue {
        host: String::new(),
        trouble: Trouble::CollectionError,
        detail: error.to_owned(),
        count: None,
        offset: None,
        span: None,
    }
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let start = letters.next().map_or(String::new(), |first| first.to_uppercase().collect());
    let stop = if clause.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{start}{}{stop}", letters.as_str())
}
