//! Counters: a `_counters_` line contains events of many counters, each with its value as a stat. Every counter
//! gets its own track of samples; the events stay on theirs.

use rustc_hash::FxHashMap;
use stepscope_trace::{ArgSourceId, ProcessId, StrId, Time, TraceBuilder, TrackKind};

use super::events::{Placed, for_each_event};
use super::schema::event;
use super::stats::{Raw, StatNames, message_at, read_stat};
use crate::Bytes;
use stepscope_wire::{Payload, walk};

/// Adds the samples of a line. `name_of` returns the counter for a metadata id.
pub(super) fn add_samples(
    file: &Bytes,
    pieces: &[Placed],
    names: &StatNames,
    name_of: impl Fn(u64) -> StrId,
    process: ProcessId,
    builder: &mut TraceBuilder,
) {
    let key = builder.strings.intern("counter_value");
    let mut tracks = FxHashMap::default();
    let mut sample = |counter: u64, time: Time, value: f64| {
        let next = tracks.len() as i64;
        let track = *tracks.entry(counter).or_insert_with(|| {
            builder.track(process, name_of(counter), TrackKind::Counter, next, ArgSourceId::default())
        });
        builder.sample(track, time, value);
    };
    for placed in pieces {
        for_each_event(file, placed, |at, event, _| {
            let time = event.start(placed);
            let Some(body) = message_at(file, at as u64) else { return };
            walk(file, body, |field| {
                if let (event::STATS, Payload::Len(range)) = (field.number, field.value)
                    && let (found, value) = read_stat(file, range, names)
                    && found == key
                    && let Some(value) = number(&value)
                {
                    sample(event.metadata_id, time, value);
                }
            });
        });
    }
}

fn number(value: &Raw) -> Option<f64> {
    match value {
        Raw::Int(v) => Some(*v as f64),
        Raw::UInt(v) => Some(*v as f64),
        Raw::Float(v) => Some(*v),
        _ => None,
    }
}
