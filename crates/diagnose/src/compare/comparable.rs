//! Do both sides measure the same thing? What was changed between them besides the code, and whether that
//! leaves anything to compare.

use std::collections::BTreeSet;

use stepscope_analyze::steps::Origin;
use stepscope_analyze::vocabulary::Framework;
use stepscope_trace::DeviceKind;

use super::program::{Likeness, Programs};
use super::side::{ComparedRun, Setting};

/// Something that differs, as (BASE, NEW).
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Only a part of the work is the same.
    Model(Likeness),
    /// A compiler made up the names of one side only: whether the model is the same cannot be seen.
    CompiledOnOneSide,
    /// Examples in a batch.
    BatchSize(u64, u64),
    /// What sort of device does the work.
    Hardware(Vec<DeviceKind>, Vec<DeviceKind>),
    /// The devices' models.
    DeviceModel(Vec<String>, Vec<String>),
    /// How many devices work.
    DeviceCount(usize, usize),
    /// How many hosts.
    HostCount(usize, usize),
    /// The framework.
    Framework(Framework, Framework),
    /// A version of software.
    Version {
        /// Of what.
        of: String,
        /// Before.
        base: String,
        /// After.
        new: String,
    },
    /// How the steps were found: perhaps other things are called a step.
    StepOrigin(Origin, Origin),
    /// Kernels were profiled one by one, and none on both sides.
    NoKernelInCommon,
    /// A side has no steps.
    NoSteps {
        /// BASE has none.
        base: bool,
        /// NEW has none.
        new: bool,
    },
}

/// What the differences are about; a change of one thing may show in several of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Theme {
    Model,
    Batch,
    Hardware,
    Software,
    Recording,
}

impl Difference {
    /// Does it leave nothing to compare?
    pub fn blocks(&self) -> bool {
        match self {
            Difference::Model(likeness) => likeness.is_another(),
            Difference::Framework(base, new) => native(*base) != native(*new),
            Difference::Hardware(..) | Difference::NoSteps { .. } | Difference::NoKernelInCommon => true,
            _ => false,
        }
    }

    fn theme(&self) -> Theme {
        match self {
            Difference::Model(_) | Difference::CompiledOnOneSide | Difference::NoKernelInCommon => {
                Theme::Model
            }
            Difference::BatchSize(..) => Theme::Batch,
            Difference::Hardware(..)
            | Difference::DeviceModel(..)
            | Difference::DeviceCount(..)
            | Difference::HostCount(..) => Theme::Hardware,
            Difference::Framework(..) | Difference::Version { .. } => Theme::Software,
            Difference::StepOrigin(..) | Difference::NoSteps { .. } => Theme::Recording,
        }
    }
}

/// The framework that runs the ops: a Keras loop and a loop of one's own both run TensorFlow.
pub(super) fn native(framework: Framework) -> Framework {
    if framework == Framework::Keras { Framework::TensorFlow } else { framework }
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Comparability {
    /// What differs, the gravest first.
    pub differences: Vec<Difference>,
    /// How much of the work both sides do, 0 to 1; `None` where it is not known.
    pub similarity: Option<f64>,
}

impl Comparability {
    /// Is there anything to compare?
    pub(crate) fn is_comparable(&self) -> bool {
        !self.differences.iter().any(Difference::blocks)
    }

    /// Was more than one thing changed at once, so that nobody can say which one made the difference?
    pub fn several_changes(&self) -> bool {
        let themes: BTreeSet<Theme> = self.differences.iter().map(Difference::theme).collect();
        themes.iter().filter(|theme| **theme != Theme::Recording).count() > 1
    }
}

/// Which side has no steps; `None` where both have some.
pub(super) fn no_steps(base: &[ComparedRun], new: &[ComparedRun]) -> Option<Difference> {
    let [base, new] = [base, new].map(|side| side.iter().all(|run| run.steps_ms.is_empty()));
    (base || new).then_some(Difference::NoSteps { base, new })
}

/// Holds both sides' settings against each other. Of a side with several runs, the first one speaks. `nothing` says why
/// there is nothing to measure, where that is so.
pub fn comparability(
    base: &[ComparedRun],
    new: &[ComparedRun],
    nothing: Option<Difference>,
    programs: &Programs,
) -> Comparability {
    let mut differences = Vec::from_iter(nothing);
    match programs {
        Programs::Known(likeness) if likeness.is_changed() => {
            differences.push(Difference::Model(likeness.clone()));
        }
        Programs::CompiledOnOneSide => differences.push(Difference::CompiledOnOneSide),
        Programs::Known(_) | Programs::Unknown => (),
    }
    if let (Some(base), Some(new)) = (base.first(), new.first()) {
        hardware(&base.setting, &new.setting, &mut differences);
        software(&base.setting, &new.setting, &mut differences);
    }
    differences.sort_by_key(|difference| !difference.blocks());
    Comparability { differences, similarity: programs.similarity() }
}

fn hardware(base: &Setting, new: &Setting, found: &mut Vec<Difference>) {
    let kinds = |setting: &Setting| -> Vec<DeviceKind> {
        setting.devices.iter().map(|(kind, _)| *kind).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let models = |setting: &Setting| -> Vec<String> {
        let models: BTreeSet<&String> = setting.devices.iter().map(|(_, name)| name).collect();
        models.into_iter().cloned().collect()
    };
    let (old, now) = (kinds(base), kinds(new));
    if old != now {
        found.push(Difference::Hardware(old, now));
    } else if models(base) != models(new) {
        found.push(Difference::DeviceModel(models(base), models(new)));
    }
    if base.devices.len() != new.devices.len() {
        found.push(Difference::DeviceCount(base.devices.len(), new.devices.len()));
    }
    if base.hosts != new.hosts {
        found.push(Difference::HostCount(base.hosts, new.hosts));
    }
    if let (Some(old), Some(now)) = (base.batch_size, new.batch_size)
        && old != now
    {
        found.push(Difference::BatchSize(old, now));
    }
}

fn software(base: &Setting, new: &Setting, found: &mut Vec<Difference>) {
    if let (Some(old), Some(now)) = (base.framework, new.framework)
        && old != now
    {
        found.push(Difference::Framework(old, now));
    }
    for (of, old) in &base.versions {
        let now = new.versions.iter().find(|(name, _)| name == of).map(|(_, now)| now);
        if let Some(now) = now.filter(|now| *now != old) {
            found.push(Difference::Version { of: of.clone(), base: old.clone(), new: now.clone() });
        }
    }
    if let (Some(old), Some(now)) = (base.origin, new.origin)
        && old != now
    {
        found.push(Difference::StepOrigin(old, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the ops have in common.
    fn alike(common: f64) -> Programs {
        let (base, new) = Default::default();
        Programs::Known(Likeness { common, base, new, convolves: false })
    }

    fn run(change: impl FnOnce(&mut Setting)) -> Vec<ComparedRun> {
        let mut setting = Setting {
            framework: Some(Framework::TensorFlow),
            versions: vec![("tensorflow".to_owned(), "2.20".to_owned())],
            devices: vec![(DeviceKind::Gpu, "A100".to_owned())],
            hosts: 1,
            batch_size: Some(32),
            origin: Some(Origin::Marker),
        };
        change(&mut setting);
        vec![ComparedRun { steps_ms: vec![1.0], setting, ..ComparedRun::default() }]
    }

    #[test]
    fn equal_settings_do_not_differ() {
        assert_eq!(comparability(&run(|_| ()), &run(|_| ()), None, &alike(0.9)).differences, []);
    }

    #[test]
    fn another_sort_of_device_or_model_blocks() {
        let cpu = run(|setting| setting.devices = vec![(DeviceKind::Cpu, "CPU".to_owned())]);
        assert!(!comparability(&run(|_| ()), &cpu, None, &Programs::Unknown).is_comparable());
        assert!(!comparability(&run(|_| ()), &run(|_| ()), None, &alike(0.01)).is_comparable());
        let newer = run(|setting| setting.devices = vec![(DeviceKind::Gpu, "H100".to_owned())]);
        let found = comparability(&run(|_| ()), &newer, None, &alike(0.4));
        assert!(found.is_comparable() && found.several_changes(), "{found:?}");
        let jax = run(|setting| setting.framework = Some(Framework::Jax));
        assert!(!comparability(&run(|_| ()), &jax, None, &Programs::Unknown).is_comparable());
        let keras = run(|setting| setting.framework = Some(Framework::Keras));
        assert!(comparability(&run(|_| ()), &keras, None, &Programs::Unknown).is_comparable());
    }

    #[test]
    fn two_changes_at_once_are_noticed() {
        let version = |setting: &mut Setting| setting.versions[0].1 = "2.21".to_owned();
        let one = comparability(&run(|_| ()), &run(version), None, &alike(1.0));
        assert!(!one.several_changes() && one.differences.len() == 1);
        let both = run(|setting| {
            version(setting);
            setting.batch_size = Some(64);
        });
        assert!(comparability(&run(|_| ()), &both, None, &alike(1.0)).several_changes());
    }
}
