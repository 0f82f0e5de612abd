//! What else the machine did while runs were recorded, and whether that explains a difference.
//!
//! A run that waits for a processor takes longer and computes the same. If the processor time per step stayed
//! the same and the machine was busier on the slower side, the machine can explain the difference. Sleeping longer looks
//! the same, so this does not prove that the program is unchanged. It only means that a change is not proven.

use super::side::ComparedRun;

/// Processor time per step counts as unchanged up to this, relative. A busy neighbour costs a few per cent of it, too:
/// caches and memory are shared.
const SAME_WORK: f64 = 0.05;
/// The machine counts as busier from this share of its processors on.
const BUSIER: f64 = 0.10;

/// What was measured beside one run, or the mean over the runs of a side. What is not known is `None`.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The share of all processors that other processes used, 0 to 1.
    pub others: Option<f64>,
    /// The share of all processors that the hypervisor gave to other machines, 0 to 1.
    pub stolen: Option<f64>,
    /// The share of time in which a quota held the run back, 0 to 1.
    pub throttled: Option<f64>,
    /// The share of samples in which a GPU's clocks were held down, 0 to 1.
    pub gpu_throttled: Option<f64>,
    /// Processor time per step in milliseconds.
    pub cpu_ms_per_step: Option<f64>,
}

impl Machine {
    /// The mean over a side's runs; `None` where nothing was measured.
    pub(super) fn of(side: &[ComparedRun]) -> Option<Machine> {
        let known: Vec<&Machine> = side.iter().filter_map(|run| run.machine.as_ref()).collect();
        let mean = |of: fn(&Machine) -> Option<f64>| {
            let values: Vec<f64> = known.iter().filter_map(|machine| of(machine)).collect();
            crate::statistics::mean(&values)
        };
        (!known.is_empty()).then(|| Machine {
            others: mean(|it| it.others),
            stolen: mean(|it| it.stolen),
            throttled: mean(|it| it.throttled),
            gpu_throttled: mean(|it| it.gpu_throttled),
            cpu_ms_per_step: mean(|it| it.cpu_ms_per_step),
        })
    }

    /// The largest of the shares that kept the run from working.
    fn kept_from(&self) -> f64 {
        let all = [self.others, self.stolen, self.throttled, self.gpu_throttled];
        all.into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Both sides' machines.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Machines {
    /// BASE.
    pub base: Machine,
    /// NEW.
    pub new: Machine,
}

impl Machines {
    pub(super) fn of(base: &[ComparedRun], new: &[ComparedRun]) -> Option<Machines> {
        Some(Machines { base: Machine::of(base)?, new: Machine::of(new)? })
    }

    /// Could the machine alone have made NEW slower (`slower`) or faster?
    pub fn explain(&self, slower: bool) -> bool {
        let sign = if slower { 1.0 } else { -1.0 };
        let busier = sign * (self.new.kept_from() - self.base.kept_from()) >= BUSIER;
        let same_work = self
            .base
            .cpu_ms_per_step
            .zip(self.new.cpu_ms_per_step)
            .is_some_and(|(base, new)| base > 0.0 && new > 0.0 && sign * (new / base).ln() <= SAME_WORK);
        // Held-down clocks make the same work take longer, processor time or not.
        let held = |machine: &Machine| machine.gpu_throttled.unwrap_or(0.0);
        let slowed_gpu = sign * (held(&self.new) - held(&self.base)) >= BUSIER;
        (busier && same_work) || slowed_gpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(others: f64, cpu_ms: f64) -> Machine {
        Machine { others: Some(others), cpu_ms_per_step: Some(cpu_ms), ..Machine::default() }
    }

    #[test]
    fn the_same_work_beside_busy_neighbours_is_explained_by_them() {
        let machines = Machines { base: machine(0.02, 30.0), new: machine(0.45, 30.6) };
        assert!(machines.explain(true));
        assert!(!machines.explain(false), "neighbours make nothing faster");
        let more_work = Machines { new: machine(0.45, 39.0), ..machines };
        assert!(!more_work.explain(true), "the program itself computes more");
        let quiet = Machines { new: machine(0.04, 30.0), ..machines };
        assert!(!quiet.explain(true), "nobody else was there");
        let unknown = Machines { new: Machine { others: Some(0.45), ..Machine::default() }, ..machines };
        assert!(!unknown.explain(true), "the processor time is not known");
    }

    #[test]
    fn clocks_that_were_held_down_explain_slower_steps() {
        let held = Machine { gpu_throttled: Some(0.6), ..Machine::default() };
        assert!(Machines { base: Machine::default(), new: held }.explain(true));
    }

    #[test]
    fn a_side_is_the_mean_of_its_runs() {
        let run = |others| ComparedRun { machine: Some(machine(others, 10.0)), ..ComparedRun::default() };
        let mean = Machine::of(&[run(0.1), run(0.3), ComparedRun::default()]).unwrap();
        assert!((mean.others.unwrap() - 0.2).abs() < 1e-9 && mean.stolen.is_none());
        assert_eq!(Machine::of(&[ComparedRun::default()]), None);
    }
}
