//! What rules look at: the results of a session's analyses, and what several rules derive from them, one file per shape,
//! with nothing of formats and traces in it.

mod device;
mod exchange;
mod held;
mod inner_loop;
mod loading;
mod memory;
mod ops;
mod parts;
mod precision;
mod profiled;
mod programs;
mod rebuilt;
mod recording;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use stepscope_analyze::session::Session;
use stepscope_analyze::vocabulary::{Framework, framework_of};
use stepscope_analyze::{Category, Shares};

use stepscope_trace::{DeviceKind, Dur};

pub use device::{DeviceWork, LowOccupancy, WithoutMatrixUnits};
pub use exchange::{Exchange, Exchanges, OneSide};
pub(crate) use held::{CAUSES, LEADS, WAITS};
pub use held::{Held, HeldByOne, InTurn};
pub use inner_loop::InnerLoop;
pub use loading::PythonLines;
pub(crate) use loading::{python_ranges, writing_lines};
pub use memory::Memory;
pub use ops::{ModelOps, OutputOps};
pub use parts::{CopyFacts, Loader, OpCost, Pipeline, PythonLine, ServiceFacts};
pub use precision::Precision;
pub use profiled::{ProfiledKernel, ProfiledKernels};
pub use programs::{NamedOp, ProgramPart, ProgramTime, SourceLine, computes};
pub use rebuilt::{Rebuilding, RebuiltFunction};
pub use recording::Recording;

/// A step in which a category takes this many times what it takes in the median step stands out.
const USUAL: f64 = 3.0;

/// What several rules derive from the results of a session. It is computed when the first rule asks for it.
pub trait Evidence: Any + Send + Sync {
    /// Derives it.
    fn of(session: &Session) -> Self;
}

/// A session as rules look at it: the results of its analyses, and what rules derive from them.
#[derive(Debug)]
pub struct Facts {
    pub(crate) session: Session,
    derived: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Deref for Facts {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// The framework whose kernels run.
struct KernelsOf(Framework);

impl Evidence for KernelsOf {
    fn of(session: &Session) -> Self {
        KernelsOf(framework_of(session.kernels.rows.iter().map(|row| row.name.as_str())))
    }
}

impl Facts {
    /// What rules look at in a session.
    pub fn of(session: Session) -> Self {
        Facts { session, derived: Mutex::default() }
    }

    /// The session again.
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Something derived from the results.
    pub fn get<T: Evidence>(&self) -> Arc<T> {
        let derived = || self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let known = derived().get(&TypeId::of::<T>()).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        let made = Arc::new(T::of(&self.session));
        derived().insert(TypeId::of::<T>(), Arc::<T>::clone(&made));
        made
    }

    /// Replaces what is derived, for tests.
    #[cfg(test)]
    pub(crate) fn set<T: Evidence>(&mut self, evidence: T) {
        self.derived.get_mut().unwrap().insert(TypeId::of::<T>(), Arc::new(evidence));
    }

    /// The framework that the program uses: advice is in its language.
    pub fn framework(&self) -> Framework {
        match self.recorder() {
            Framework::Unknown => self.get::<KernelsOf>().0,
            known => known,
        }
    }

    /// The framework whose profiler wrote the trace; unknown if it was another program.
    pub fn recorder(&self) -> Framework {
        self.summary.bound().map_or(Framework::Unknown, |host| host.framework)
    }

    /// Milliseconds of the mean step that a category owns.
    pub fn ms(&self, category: Category) -> f64 {
        self.summary.breakdown_ms.iter().find(|(owner, _)| *owner == category).map_or(0.0, |(_, ms)| *ms)
    }

    /// Milliseconds of the mean step that a category owns, without what stands out in single steps: those do something
    /// else.
    pub fn usual_ms(&self, category: Category) -> f64 {
        let all = self.ms(category);
        let Some(host) = self.summary.bound().filter(|host| !host.whole_capture) else { return all };
        let mut times: Vec<f64> = host.counted().map(|step| step.shares.get(category).ms()).collect();
        times.sort_by(f64::total_cmp);
        let most = USUAL * times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY);
        let usual: f64 = times.iter().map(|time| time.min(most)).sum();
        all.min(usual / times.len().max(1) as f64)
    }

    /// The share of the mean step that a category owns.
    pub fn share(&self, category: Category) -> f64 {
        self.summary.fraction(category)
    }

    /// The share that several categories own together.
    pub fn shares(&self, categories: &[Category]) -> f64 {
        categories.iter().map(|&category| self.share(category)).sum()
    }

    /// Claims on all that some categories own.
    pub fn claims(&self, categories: &[Category]) -> Vec<(Category, f64)> {
        categories.iter().map(|&category| (category, self.ms(category))).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Milliseconds per step that categories own of some time on the bottleneck device, never more than they own at all.
    pub(crate) fn owned_of(&self, shares: &Shares) -> Vec<(Category, f64)> {
        let Some(detail) = &self.detail else { return Vec::new() };
        let owned = |(category, time)| (category, detail.per_step(time).min(self.ms(category)));
        shares.owners().map(owned).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Milliseconds per step that a category owns of its own: without what setting up the device's runtime or allocating
    /// its memory takes, without single gaps of a capture without steps, and without what only shows because the host was held up before. What is done about the
    /// category would not make those shorter.
    pub fn own_ms(&self, category: Category) -> f64 {
        let others = self.detail.as_ref().map_or(0.0, |detail| {
            let idle = &detail.idle;
            let all = [
                &idle.startup,
                &idle.once,
                &idle.allocation,
                &idle.in_copies,
                &idle.after_copies,
                &idle.after_waits,
            ];
            detail.per_step(all.iter().map(|shares| shares.get(category)).sum())
        });
        (self.ms(category) - others).max(0.0)
    }

    /// Milliseconds per step that categories own of some time on the host, summed over this many steps; never more than
    /// they own at all.
    pub(crate) fn owned_over(&self, shares: &Shares, steps: u64) -> Vec<(Category, f64)> {
        let steps = steps.max(1) as f64;
        let owned =
            |(category, time): (Category, Dur)| (category, (time.ms() / steps).min(self.ms(category)));
        shares.owners().map(owned).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Milliseconds per step in Python and dispatch around what writes.
    pub(crate) fn around_output_ms(&self) -> f64 {
        (self.checkpoint_cost.stretches_ms() - self.ms(Category::Output)).max(0.0)
    }

    /// What is known of copies between host and device.
    pub fn copies(&self) -> Option<CopyFacts> {
        let detail = self.detail.as_ref()?;
        let (copies, steps) = (&detail.copies, detail.steps.max(1) as f64);
        let all = copies.with_host();
        (!all.is_zero()).then(|| CopyFacts {
            per_step: (copies.moved[0].copies + copies.moved[1].copies) as f64 / steps,
            pageable: copies.pageable_share(),
            bandwidth_in: copies.moved[0].bandwidth(),
            bandwidth_out: copies.moved[1].bandwidth(),
            on_computing_streams: copies.on_computing_streams.fraction_of(all),
            blocking: copies.blocking as f64 / steps,
            blocked_ms: detail.per_step(copies.blocked),
        })
    }

    /// Is there a device other than the host's processor, recorded or not?
    pub fn has_device(&self) -> bool {
        let devices = || self.summary.hosts.iter().flat_map(|host| &host.devices);
        self.get::<Option<DeviceWork>>().is_some()
            || self.detail.is_some()
            || self.get::<Recording>().device_missing
            || devices().any(|device| device.kind != DeviceKind::Cpu)
    }

    /// Is there a device whose work was recorded?
    pub fn on_device(&self) -> bool {
        self.summary.bound().is_some_and(|host| host.bottleneck_device.is_some())
    }

    /// The share of the steps in which the bottleneck device was busy.
    pub fn busy(&self) -> Option<f64> {
        let host = self.summary.bound()?;
        host.devices.get(host.bottleneck_device?)?.busy_fraction
    }
}
