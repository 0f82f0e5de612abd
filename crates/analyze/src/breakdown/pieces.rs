//! Where in a step some categories own the time: the stretches themselves, for pictures of what a finding is about.

use stepscope_trace::{Dur, Span};

use super::{Breakdown, Category, owner, starving_waits};
use crate::host_trace::HostTrace;
use crate::host_trace::merged;
use crate::states::State;
use crate::states::timeline::{Timeline, is_inside};

/// A stretch that one category owns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When.
    pub span: Span,
    /// Whose.
    pub category: Category,
}

/// Stretches at most: a picture cannot show more.
const MOST: usize = 100_000;

impl Breakdown {
    /// The stretches of `window` that some categories own on the device that limits the step, in order of time. Stretches of
    /// one category that touch are one.
    pub fn stretches(&self, recorded: &HostTrace, window: Span, of: &[Category]) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        let Some(bound) = self.bound() else { return found };
        let host = merged(recorded, None);
        let device = bound.process.map_or_else(Timeline::default, |process| merged(recorded, Some(process)));
        let starving = if bound.process.is_some() { starving_waits(&host, &device) } else { Vec::new() };
        host.sweep(&device, window, |span, host, device| {
            let starves = host.has(State::InputWait) && is_inside(&starving, span.start);
            let category =
                if starves { Category::Input } else { owner(host, device, &self.ground, span.start) };
            if !of.contains(&category) || span.dur() == Dur::ZERO {
                return;
            }
            let room = found.len() < MOST;
            match found.last_mut() {
                Some(last) if last.category == category && last.span.end == span.start => {
                    last.span.end = span.end;
                }
                _ if room => found.push(Stretch { span, category }),
                _ => {}
            }
        });
        found
    }
}
