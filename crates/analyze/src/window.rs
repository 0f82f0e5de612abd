//! The part of a trace that an analysis counts: the counted steps, on the host's time and on each device's own;
//! the whole capture if there are no steps. Warm-up and incomplete steps would distort every average.

use rustc_hash::FxHashMap;
use stepscope_trace::{ProcessId, Span, Time, Trace, Track};

use crate::context::Context;
use crate::steps::Step;

/// What totals cover.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Window {
    /// This many steps, summed over the hosts.
    Steps(usize),
    /// Everything that was recorded, because there are no steps.
    #[default]
    WholeCapture,
}

impl Window {
    /// Combines two hosts. Steps win: a host without any adds nothing to a mean step.
    pub fn merge(self, other: Window) -> Window {
        match (self, other) {
            (Window::Steps(a), Window::Steps(b)) => Window::Steps(a + b),
            (Window::WholeCapture, other) | (other, Window::WholeCapture) => other,
        }
    }

    /// A total per step of one host; `None` if there are no steps.
    pub fn per_step(self, total: f64) -> Option<f64> {
        match self {
            Window::Steps(steps) if steps > 0 => Some(total / steps as f64),
            _ => None,
        }
    }
}

/// The counted windows of one host, by process.
#[derive(Clone, Debug)]
pub struct Windows {
    host: Vec<Span>,
    devices: FxHashMap<ProcessId, Vec<Span>>,
    /// What totals cover.
    pub window: Window,
}

impl Windows {
    /// The windows of one host's counted steps.
    pub fn of(context: &Context) -> Self {
        let breakdown = context.breakdown();
        if breakdown.steps.whole_capture {
            let all = vec![context.selection.time().unwrap_or(Span::new(Time::MIN, Time::MAX))];
            return Windows { host: all, devices: FxHashMap::default(), window: Window::WholeCapture };
        }
        let counted =
            |index: usize| breakdown.steps.all.get(index).is_some_and(|step| step.excluded.is_none());
        let on_host = breakdown.devices.iter().find(|device| device.process.is_none());
        let span = |index: usize, step: &Step| {
            // The host's own threads may do a step's work later than the loop requests it.
            on_host.and_then(|host| host.steps.get(index)).map_or(step.span, |shares| shares.window)
        };
        let steps = breakdown.steps.all.iter().enumerate().filter(|(_, step)| step.excluded.is_none());
        let host: Vec<Span> = steps.map(|(index, step)| span(index, step)).collect();
        let devices = breakdown.devices.iter().filter_map(|device| {
            let steps = device.steps.iter().enumerate().filter(|(index, _)| counted(*index));
            Some((device.process?, steps.map(|(_, shares)| shares.work).collect()))
        });
        let window = Window::Steps(host.len());
        Windows { devices: devices.collect(), host, window }
    }

    /// The windows on the host's time.
    pub fn of_host(&self) -> Walk<'_> {
        Walk { spans: &self.host }
    }

    /// The windows on a track's own time.
    pub fn of_track(&self, trace: &Trace, track: &Track) -> Walk<'_> {
        let process = trace.process(track.process).id;
        Walk { spans: self.devices.get(&process).unwrap_or(&self.host) }
    }
}

/// Tests ascending times for whether they lie in a window.
#[derive(Copy, Clone, Debug)]
pub struct Walk<'w> {
    spans: &'w [Span],
}

impl Walk<'_> {
    /// Whether `at` lies inside. Times must not decrease between calls.
    #[inline]
    pub fn counts(&mut self, at: Time) -> bool {
        while let Some((first, rest)) = self.spans.split_first() {
            if at < first.end {
                return first.start <= at;
            }
            self.spans = rest;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_skips_gaps_and_empty_windows() {
        let span = |start, end| Span::new(Time::from_ps(start), Time::from_ps(end));
        let spans = [span(10, 20), span(20, 20), span(30, 40)];
        let mut walk = Walk { spans: &spans };
        let inside: Vec<bool> =
            [5, 10, 19, 20, 29, 30, 40, 50].into_iter().map(|at| walk.counts(Time::from_ps(at))).collect();
        assert_eq!(inside, [false, true, true, false, false, true, false, false]);
    }

    #[test]
    fn hosts_without_steps_do_not_thin_the_mean() {
        assert_eq!(Window::Steps(4).merge(Window::WholeCapture), Window::Steps(4));
        assert_eq!(Window::Steps(4).per_step(8.0), Some(2.0));
        assert_eq!(Window::WholeCapture.per_step(8.0), None);
        assert_eq!(Window::Steps(0).per_step(8.0), None);
    }
}
