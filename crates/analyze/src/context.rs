//! One host under analysis: its trace ([`HostTrace`]), the part of it to analyse, and its steps with their breakdown. What
//! finds and sweeps the steps takes the trace alone; everything after that takes a [`Context`], which is a trace with steps.

use std::ops::Deref;
use std::sync::OnceLock;

use stepscope_trace::Trace;

use crate::breakdown::Breakdown;
use crate::breakdown::selection::Selection;
use crate::host_trace::HostTrace;
use crate::steps::Steps;

/// A trace under analysis.
#[derive(Debug)]
pub struct Context<'t> {
    host_trace: HostTrace<'t>,
    /// The part of it to analyse.
    pub selection: Selection,
    breakdown: OnceLock<Breakdown>,
}

impl<'t> Context<'t> {
    /// Nothing is computed yet.
    pub fn new(trace: &'t Trace, host: impl Into<String>) -> Self {
        let host_trace = HostTrace::new(trace, host);
        Context { host_trace, selection: Selection::default(), breakdown: OnceLock::new() }
    }

    /// Selects another part than the counted steps. Must be called before anything is computed.
    pub fn selecting(self, selection: Selection) -> Self {
        Context { selection, ..self }
    }

    /// The steps, as the breakdown left them: the selected ones, with warm-up steps excluded.
    pub fn steps(&self) -> &Steps {
        &self.breakdown().steps
    }

    /// Where the time of the steps goes.
    pub fn breakdown(&self) -> &Breakdown {
        self.breakdown.get_or_init(|| Breakdown::of(self, Steps::of(self), self.selection))
    }
}

impl<'t> Deref for Context<'t> {
    type Target = HostTrace<'t>;

    fn deref(&self) -> &HostTrace<'t> {
        &self.host_trace
    }
}
