//! When a file was recorded, without reading its events.

use stepscope_trace::TraceBuilder;

use super::clock::is_calendar;
use super::names::ENVIRONMENT_PLANE;
use super::properties::{add_capture, plane_stats};
use super::scan::{Plane, Space};
use super::schema::line;
use super::stats::StatNames;
use crate::{Bytes, Recorded};
use stepscope_wire::{Cursor, Payload};

/// The start and the end that the profiler states; else the first start of a line since the epoch.
pub(super) fn recorded(file: &Bytes) -> Option<Recorded> {
    let planes: Vec<Plane> =
        Space::scan(file).planes.into_iter().map(|range| Plane::scan(file, range)).collect();
    let environment = planes.iter().find(|plane| file[plane.name.clone()] == *ENVIRONMENT_PLANE.as_bytes());
    let stated = environment.and_then(|plane| {
        let mut builder = TraceBuilder::new();
        let names = StatNames::new(file, &plane.stat_metadata, &mut builder.strings);
        let stats = plane_stats(file, &plane.stats, &names, &builder.strings);
        add_capture(file, &stats, &mut builder);
        builder.environment.captured_ns
    });
    if let Some((start_ns, end_ns)) = stated.filter(|(start, _)| is_calendar(*start)) {
        return Some(Recorded { start_ns, end_ns: Some(end_ns) });
    }
    let lines = planes.iter().flat_map(|plane| &plane.lines);
    let starts = lines.filter_map(|range| starts_at(Cursor::new(file, range.clone())));
    starts.filter(|ns| is_calendar(*ns)).min().map(|start_ns| Recorded { start_ns, end_ns: None })
}

/// The start of a line, which stands before its events.
fn starts_at(mut line: Cursor<'_>) -> Option<i64> {
    while let Ok(Some(field)) = line.field() {
        match (field.number, field.value) {
            (line::TIMESTAMP_NS, Payload::Varint(ns)) => return Some(ns as i64),
            (line::EVENTS, _) => return None,
            _ => (),
        }
    }
    None
}
