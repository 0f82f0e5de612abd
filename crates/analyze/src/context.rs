//! One host's trace with everything that analyses share: computed on first use and then kept, so that a command
//! runs only what it needs.

use std::sync::OnceLock;

use stepscope_trace::Trace;

use crate::breakdown::Breakdown;
use crate::launches::Launches;
use crate::selection::Selection;
use crate::states::States;
use crate::steps::Steps;
use crate::vocabulary::Vocabulary;

/// A trace under analysis.
#[derive(Debug)]
pub struct Context<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// Its host.
    pub host: String,
    /// The part of it to analyse.
    pub selection: Selection,
    vocabulary: OnceLock<Vocabulary>,
    states: OnceLock<States>,
    launches: OnceLock<Launches>,
    steps: OnceLock<Steps>,
    breakdown: OnceLock<Breakdown>,
}

impl<'t> Context<'t> {
    /// Nothing is computed yet.
    pub fn new(trace: &'t Trace, host: impl Into<String>) -> Self {
        Context {
            trace,
            host: host.into(),
            selection: Selection::default(),
            vocabulary: OnceLock::new(),
            states: OnceLock::new(),
            launches: OnceLock::new(),
            steps: OnceLock::new(),
            breakdown: OnceLock::new(),
        }
    }

    /// Selects another part than the counted steps. Must be called before anything is computed.
    pub fn selecting(self, selection: Selection) -> Self {
        Context { selection, ..self }
    }

    /// What the trace's names mean.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.vocabulary.get_or_init(|| Vocabulary::of(self.trace))
    }

    /// What each track does from moment to moment.
    pub fn states(&self) -> &States {
        self.states.get_or_init(|| States::of(self.trace, self.vocabulary()))
    }

    /// Which host call launched which device work.
    pub fn launches(&self) -> &Launches {
        self.launches.get_or_init(|| Launches::of(self.trace, self.vocabulary()))
    }

    /// The steps.
    pub fn steps(&self) -> &Steps {
        self.steps.get_or_init(|| Steps::of(self))
    }

    /// Where the time of the steps goes.
    pub fn breakdown(&self) -> &Breakdown {
        self.breakdown.get_or_init(|| Breakdown::of(self))
    }
}
