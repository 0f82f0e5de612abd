//! One host's trace with what does not depend on its steps: what names mean, what each track does, which call launched
//! which work. Computed on first use and then kept, so that a command runs only what it needs.

mod lines;

use std::sync::OnceLock;

use stepscope_trace::Trace;

use crate::states::States;
use crate::states::launches::Launches;
use crate::vocabulary::Vocabulary;

use lines::DeviceLines;
pub(crate) use lines::{merged, working_devices};

/// A host's trace.
#[derive(Debug)]
pub struct HostTrace<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// Its host.
    pub host: String,
    vocabulary: OnceLock<Vocabulary>,
    states: OnceLock<States>,
    device_lines: OnceLock<DeviceLines>,
    launches: OnceLock<Launches>,
}

impl<'t> HostTrace<'t> {
    /// Nothing is computed yet.
    pub fn new(trace: &'t Trace, host: impl Into<String>) -> Self {
        HostTrace {
            trace,
            host: host.into(),
            vocabulary: OnceLock::new(),
            states: OnceLock::new(),
            device_lines: OnceLock::new(),
            launches: OnceLock::new(),
        }
    }

    /// What the trace's names mean.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.vocabulary.get_or_init(|| Vocabulary::of(self.trace))
    }

    /// What each track does from moment to moment.
    pub fn states(&self) -> &States {
        self.states.get_or_init(|| {
            let states = States::of(self.trace, self.vocabulary());
            self.trace.rest_arguments();
            states
        })
    }

    fn device_lines(&self) -> &DeviceLines {
        self.device_lines.get_or_init(|| DeviceLines::of(self.trace, self.states()))
    }

    /// Which host call launched which device work.
    pub fn launches(&self) -> &Launches {
        self.launches.get_or_init(|| Launches::of(self.trace, self.vocabulary()))
    }
}
