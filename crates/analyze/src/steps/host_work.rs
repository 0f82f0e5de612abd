//! When host threads work for a step, by their states: part of finding steps. Knows nothing about devices.

use std::collections::BTreeMap;

use stepscope_trace::{ProcessKind, Span, TrackId};

use crate::host_trace::HostTrace;
use crate::states::timeline::Mask;
use crate::states::{State, StateLine};

/// Work of the host for a step, other than waiting.
const HOST_WORK: Mask = Mask(
    State::Dispatch as u16
        | State::Launch as u16
        | State::InputWait as u16
        | State::Output as u16
        | State::Tracing as u16
        | State::Compile as u16
        | State::HostCompute as u16,
);

/// Work that gives a device something to do, or that the model does on the host.
const HANDS_OUT: Mask = Mask(
    State::Dispatch as u16
        | State::Launch as u16
        | State::Tracing as u16
        | State::Compile as u16
        | State::HostCompute as u16,
);

/// Whether any host thread works within `span`.
pub(super) fn host_works(recorded: &HostTrace, span: Span) -> bool {
    let trace = recorded.trace;
    let on_host = |track: TrackId| trace.process(trace.track(track).process).kind != ProcessKind::Device;
    let mut lines = recorded.states().lines.iter().filter(|(track, _)| on_host(*track));
    lines.any(|(_, line)| has_within(line, span, HOST_WORK))
}

/// The states of all threads, to ask which of them works itself.
pub(super) struct Workers<'r>(BTreeMap<u32, &'r StateLine>);

impl<'r> Workers<'r> {
    pub(super) fn of(recorded: &'r HostTrace) -> Self {
        Workers(recorded.states().lines.iter().map(|(track, line)| (track.0, line)).collect())
    }

    /// Whether a thread itself works on the model within one of `spans`. A thread that does not may still wait for what others
    /// do.
    pub(super) fn works(&self, track: TrackId, spans: &[Span]) -> bool {
        let line = self.0.get(&track.0);
        line.is_some_and(|line| spans.iter().any(|span| has_within(line, *span, HANDS_OUT)))
    }
}

fn has_within(line: &StateLine, span: Span, wanted: Mask) -> bool {
    let first = line.times.partition_point(|&time| time <= span.start).saturating_sub(1);
    // Skipping in a zip would walk over all that comes before: there may be a million spans to ask for.
    let from = |len: usize| first.min(len)..;
    let (times, states) = (&line.times[from(line.times.len())], &line.states[from(line.states.len())]);
    let mut within = times.iter().zip(states).take_while(|&(&time, _)| time < span.end);
    within.any(|(_, state)| state.0 & wanted.0 != 0)
}
