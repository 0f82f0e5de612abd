//! Ranges around warm-ups, by their names: what they hold is no part of the loop.

use std::cmp::Reverse;

use stepscope_trace::Span;

use super::repetition::host_thread;
use super::words;
use crate::host_trace::HostTrace;
use crate::vocabulary::Role;

/// Whether the range surrounds a warm-up.
pub(super) fn is_warm_up(name: &str) -> bool {
    words(&name.to_ascii_lowercase()).any(|word| word.starts_with("warm") || word.starts_with("init"))
}

/// The spans of warm-up ranges, in time order, without nested ones.
pub(super) fn warm_ups(recorded: &HostTrace) -> Vec<Span> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let warm = trace
        .kinds_where(|kind| vocabulary.role(kind) == Role::Annotation && is_warm_up(trace.kind_name(kind)));
    if warm.is_empty() {
        return Vec::new();
    }
    let mut spans: Vec<Span> = Vec::new();
    for track in trace.tracks().iter().filter(|track| host_thread(track)) {
        spans.extend(track.events_of(&warm).map(|(index, _)| track.span_of(index)));
    }
    spans.sort_unstable_by_key(|span| (span.start, Reverse(span.end)));
    let mut outermost: Vec<Span> = Vec::new();
    for span in spans {
        match outermost.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => outermost.push(span),
        }
    }
    outermost
}
