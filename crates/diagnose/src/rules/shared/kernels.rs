//! Kernels and their launches: the measurements behind `kernel-launch-bound` and `small-kernels`.

use stepscope_text::{decimal, share, short};

use crate::facts::{DeviceWork, Facts};
use crate::finding::Finding;
use crate::thresholds::REPLAYED;
use crate::words::frameworks::fewer_launches;
use crate::words::lines;

/// Kernels and the calls that launch them.
#[derive(Clone, Debug)]
pub struct Launches {
    /// Kernels per step.
    pub per_step: f64,
    /// Their mean length in microseconds.
    pub mean_us: f64,
    /// The median length of the calls that launch them.
    pub launch_us: Option<f64>,
    /// The program replays graphs of kernels already.
    pub replays: bool,
    /// The share of the step in which the device is busy.
    pub busy: f64,
}

impl Launches {
    pub(in crate::rules) fn of(facts: &Facts) -> Option<Self> {
        let (work, busy) = (facts.get::<Option<DeviceWork>>(), facts.busy()?);
        let work = work.as_ref().as_ref()?;
        Some(Launches {
            per_step: work.kernels_per_step,
            mean_us: work.kernel_us,
            launch_us: work.launch_us,
            replays: work.graph_share >= REPLAYED,
            busy,
        })
    }

    /// `900 kernels`.
    pub(in crate::rules) fn many(&self) -> String {
        let many = decimal(self.per_step, 0);
        let noun = if many == "1" { "kernel" } else { "kernels" };
        format!("{many} {noun}")
    }

    pub(in crate::rules) fn evidence(&self) -> Vec<String> {
        let mut evidence = vec![format!(
            "A kernel runs for {} µs on average; {} {} per step.",
            short(self.mean_us),
            self.many(),
            if decimal(self.per_step, 0) == "1" { "runs" } else { "run" }
        )];
        evidence.extend(
            self.launch_us.map(|launch| format!("A launch call takes {} µs at the median.", short(launch))),
        );
        evidence.push(format!("The device is busy for {} of the time.", share(self.busy)));
        if self.replays {
            evidence.push("Graphs of kernels start most of them already.".to_owned());
        }
        evidence
    }

    pub(in crate::rules) fn advice(&self, finding: &Finding) -> Vec<String> {
        if self.replays {
            lines(["Fuse kernels or use larger batches: fewer and longer kernels do the same work."])
        } else {
            fewer_launches(finding.framework)
        }
    }

    #[cfg(test)]
    pub(in crate::rules) fn sample() -> Self {
        Launches { per_step: 900.0, mean_us: 6.5, launch_us: Some(11.0), replays: false, busy: 0.3 }
    }
}
