//! Hosts put together one after the other, so that only one of them is in memory beside what all say together.
//!
//! Hosts must come in a fixed order: sums of floating-point numbers, and which of several equal things is kept first,
//! depend on it.

use stepscope_trace::Dur;

use super::{HostPartial, Session, Sums, summed_up};
use crate::devices::bottleneck::DeviceDetail;
use crate::devices::gpu_samples::{GpuSamplesPartial, Wall, may_be_of};
use crate::recording::health::{Issue, Trouble};
use crate::time::odd_steps::OddSteps;
use crate::time::summary::HostSummary;

/// What a host's timeline covers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Timeline {
    /// When it was recorded, if it has a time of day.
    pub wall: Option<Wall>,
}

/// What the hosts of a session say together, so far.
#[derive(Debug)]
pub struct Gathering {
    /// Does any host say what ran when?
    timeline: bool,
    /// When the timelines were recorded.
    walls: Vec<Wall>,
    bounds: Vec<(HostSummary, Option<DeviceDetail>, Option<OddSteps>)>,
    sums: Option<Sums>,
}

impl Gathering {
    /// Begins with what is known of the timelines of all hosts that follow.
    pub fn new(timelines: impl Iterator<Item = Timeline>) -> Self {
        let all: Vec<Timeline> = timelines.collect();
        let walls = all.iter().filter_map(|timeline| timeline.wall).collect();
        Gathering { timeline: !all.is_empty(), walls, bounds: Vec::new(), sums: None }
    }

    /// Adds a host.
    pub fn add(&mut self, mut host: HostPartial) {
        leave_out_other_times(&mut host, &self.walls);
        // A host without a timeline has no steps to bound anything.
        if host.timeline || !self.timeline {
            self.bounds.push((host.summary, host.detail, host.odd));
        }
        self.sums = Some(match self.sums.take() {
            Some(sums) => sums.merge(host.sums),
            None => host.sums,
        });
    }

    /// Finishes what each analysis found; `None` of no host.
    pub fn finish(self) -> Option<Session> {
        let Gathering { timeline, bounds, sums, .. } = self;
        let mut sums = sums?;
        let (mut summaries, mut details, mut odd) = (Vec::new(), Vec::new(), Vec::new());
        for (summary, detail, odd_steps) in bounds {
            summaries.push(summary);
            details.push(detail);
            odd.push(odd_steps);
        }
        sums.issues.sort_by(|a, b| a.order().cmp(&b.order()));
        let counters = sums.counters.finish();
        let summary = summed_up(summaries, timeline, &counters);
        let bottleneck_host = summary.bottleneck_host;
        let world_size = sums.collectives.world_size();
        let ranks = sums.collectives.align();
        Some(Session {
            timeline,
            detail: details.into_iter().nth(bottleneck_host).flatten(),
            odd: odd.into_iter().nth(bottleneck_host).flatten(),
            summary,
            issues: sums.issues,
            ops: sums.ops.finish(),
            input: sums.input.finish(),
            memory: sums.memory.finish(),
            eager: sums.eager,
            callbacks: sums.callbacks,
            graph_loops: sums.graph_loops,
            program_types: sums.program_types,
            setup: sums.setup,
            updates: sums.updates,
            checkpoint_cost: sums.checkpoint_cost,
            functions: sums.functions.finish(),
            kernels: sums.kernels.finish(),
            counters,
            gpu_samples: sums.gpu_samples.finish(),
            waiting: ranks.waiting(),
            world_size,
            clocks: ranks.clocks,
            requests: sums.requests.finish(),
            feeding: sums.feeding,
            missing_device: sums.missing_device,
            ranges: sums.ranges,
            python_frames: sums.frames as f64 / sums.events.max(1) as f64,
        })
    }
}

/// Samples that lie beside a timeline belong to it only if they may have been taken in the same run.
fn leave_out_other_times(host: &mut HostPartial, timelines: &[Wall]) {
    if host.timeline || host.sums.gpu_samples.is_empty() || may_be_of(host.wall, timelines) {
        return;
    }
    host.sums.gpu_samples = GpuSamplesPartial::default();
    let name = host.summary.host.clone();
    host.sums.issues.push(Issue {
        host: name.clone(),
        trouble: Trouble::OtherTime,
        detail: name,
        count: None,
        offset: None,
        span: None::<Dur>,
    });
}
