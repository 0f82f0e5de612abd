//! Kernels whose hardware counters were collected, and what they cost.

use stepscope_analyze::Category;
use stepscope_analyze::session::Session;
use stepscope_analyze::work::counters::KernelCounters;

use super::Evidence;
use super::device::computing;

/// A kernel whose hardware counters were collected.
#[derive(Clone, Debug)]
pub struct ProfiledKernel {
    /// Its counters.
    pub counters: KernelCounters,
    /// Milliseconds per step that it takes, or of the profiled time where there is no timeline; `None` where the
    /// timeline does not show it.
    pub ms: Option<f64>,
}

/// All of them, the longest first.
#[derive(Clone, Debug)]
pub struct ProfiledKernels(pub Vec<ProfiledKernel>);

/// What the profiled kernels cost: in a step, as far as the timeline shows them.
impl Evidence for ProfiledKernels {
    fn of(session: &Session) -> Self {
        let (counters, kernels, summary) = (&session.counters, &session.kernels, &session.summary);
        let compute = summary.length_ms() * summary.fraction(Category::Compute);
        let all: f64 = computing(kernels).map(|row| row.total_ms).sum();
        let in_steps = counters.join().ms_in(&kernels.rows);
        let cost = |profiled_ms: f64, seen_ms: f64| match session.timeline {
            false => Some(profiled_ms),
            true => (all > 0.0 && seen_ms > 0.0).then(|| compute * seen_ms / all),
        };
        let kernels = counters.kernels.iter().zip(in_steps);
        let profiled = kernels
            .map(|(counters, seen)| ProfiledKernel {
                ms: cost(counters.total_ms, seen),
                counters: counters.clone(),
            })
            .collect();
        ProfiledKernels(profiled)
    }
}
