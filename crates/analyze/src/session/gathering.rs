//! Hosts put together one after the other, so that only one of them is in memory beside what all say together.
//!
//! Hosts must come in a fixed order: sums of floating-point numbers, and which of several equal things is kept first,
//! depend on it.

use stepscope_trace::Dur;

use super::{HostPartial, OfHost, Results, Session, Sums};
use crate::breakdown::Category;
use crate::devices::gpu_samples::{GpuSamplesPartial, Wall, may_be_of};
use crate::recording::health::{Issue, Trouble};
use crate::time::summary::Summary;

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
    hosts: Vec<OfHost>,
    sums: Option<Sums>,
}

impl Gathering {
    /// Begins with what is known of the timelines of all hosts that follow.
    pub fn new(timelines: impl Iterator<Item = Timeline>) -> Self {
        let all: Vec<Timeline> = timelines.collect();
        let walls = all.iter().filter_map(|timeline| timeline.wall).collect();
        Gathering { timeline: !all.is_empty(), walls, hosts: Vec::new(), sums: None }
    }

    /// Adds a host.
    pub fn add(&mut self, mut host: HostPartial) {
        leave_out_other_times(&mut host, &self.walls);
        let (timeline, (of_host, sums)) = (host.timeline, host.into_parts());
        // A host without a timeline has no steps to bound anything.
        if timeline || !self.timeline {
            self.hosts.push(of_host);
        }
        self.sums = Some(match self.sums.take() {
            Some(before) => before.merge(sums),
            None => sums,
        });
    }

    /// Finishes what each analysis found; `None` of no host.
    pub fn finish(self) -> Option<Session> {
        let Gathering { timeline, hosts, sums, .. } = self;
        let mut summary = Summary::finish(hosts.iter().map(|host| host.summary.clone()).collect());
        let bottleneck = hosts.into_iter().nth(summary.bottleneck_host);
        let results = Results::of(bottleneck, sums?);
        // Where there is no timeline at all, the time that is looked at is that of the profiled kernels.
        if !timeline {
            let profiled: f64 = results.counters.kernels.iter().map(|kernel| kernel.total_ms).sum();
            summary.breakdown_ms = vec![(Category::Compute, profiled)];
            summary.breakdown_ms.retain(|(_, ms)| *ms > 0.0);
        }
        Some(Session { timeline, summary, results })
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
