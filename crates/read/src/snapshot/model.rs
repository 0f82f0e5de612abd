//! From the shapes of a snapshot to blocks with birth and death: history forwards, state at the end, one device at a time.

use std::collections::BTreeMap;
use std::io;

use stepscope_trace::memory::{Frame, Held, Mark, MemoryLog, Owner, OwnerBuilder, Segment};
use stepscope_trace::{NoteKind, Time, Trace, TraceBuilder};

use super::known::{self, KNOWN};
use super::shapes::{Call, Dict, Entry, RawSegment, Shapes, Value};
use crate::memory_tracks;

/// The trace of a snapshot. `broken` is where a damaged one ends: its history is incomplete and left out then, because the
/// state at the end does not belong to the end of what was read.
pub(super) fn trace(
    mut shapes: Shapes,
    bytes: &[u8],
    broken: Option<(&'static str, usize)>,
    inflating: Option<io::Error>,
) -> Trace {
    let mut builder = TraceBuilder::new();
    let origin = shapes.entries.iter().filter(|entry| entry.timed).map(|entry| entry.time_us).min();
    if broken.is_none() {
        builder.clock.wall_ns_at_origin = origin.map(|us| us.saturating_mul(1_000));
    }
    if let Some((what, at)) = broken {
        builder.note(NoteKind::Damaged, what, 1, Some(at as u64));
    } else if let Some(error) = inflating {
        builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
    }
    let time = |us: i64| Time::from_ns(us.saturating_sub(origin.unwrap_or(0)).saturating_mul(1_000));
    let histories = if broken.is_some() { Vec::new() } else { histories(&shapes) };
    let names = Names { bytes, shapes: &shapes };
    let mut log = MemoryLog {
        owners: owners(&shapes, &histories, &time, names.device_prefix()),
        marks: marks(&names, &time),
        expandable_segments: names.expandable(),
        ..MemoryLog::default()
    };
    let frames: Vec<Frame> = shapes.calls.iter().map(|call| frame(&mut builder, &names, call)).collect();
    let contradictions = log.owners.iter().map(|owner| owner.contradictions).sum();
    builder.note(NoteKind::Unpaired, "allocation or free", contradictions, None);
    log.stacks = std::mem::take(&mut shapes.stacks).finish_with(frames);
    memory_tracks::finish(builder, log).finish()
}

/// The texts of a file.
struct Names<'a> {
    bytes: &'a [u8],
    shapes: &'a Shapes,
}

impl Names<'_> {
    fn text(&self, number: u32) -> String {
        match KNOWN.get(number as usize) {
            Some(text) => (*text).to_owned(),
            None => {
                let range = self.shapes.texts.get(number as usize).cloned().unwrap_or_default();
                String::from_utf8_lossy(self.bytes.get(range).unwrap_or_default()).into_owned()
            }
        }
    }

    fn setting(&self, key: u32) -> Option<Value> {
        let settings = self.shapes.get(self.shapes.root?, known::ALLOCATOR_SETTINGS)?;
        self.shapes.get(settings, key)
    }

    fn expandable(&self) -> Option<bool> {
        match self.setting(known::EXPANDABLE_SEGMENTS)? {
            Value::Bool(is) => Some(is),
            _ => None,
        }
    }

    /// Other devices than CUDA's write the same file, without a setting of that name.
    fn device_prefix(&self) -> &'static str {
        if self.setting(known::PYTORCH_CUDA_ALLOC_CONF).is_some() { "CUDA:" } else { "device " }
    }
}

/// The entries of each device.
fn histories(shapes: &Shapes) -> Vec<Vec<u32>> {
    let Some(traces) = shapes.root.and_then(|root| shapes.get(root, known::DEVICE_TRACES)) else {
        return Vec::new();
    };
    let entries = |&list: &Value| {
        let entry = |&item: &Value| match item {
            Value::Dict(dict) => match shapes.dict(dict) {
                Dict::Entry(entry) => Some(entry),
                _ => None,
            },
            _ => None,
        };
        shapes.items_of(list).iter().filter_map(entry).collect()
    };
    shapes.items_of(traces).iter().map(entries).collect()
}

fn owners(shapes: &Shapes, histories: &[Vec<u32>], time: &dyn Fn(i64) -> Time, prefix: &str) -> Vec<Owner> {
    let mut segments: BTreeMap<i64, Vec<&RawSegment>> = BTreeMap::new();
    shapes.segments.iter().for_each(|segment| segments.entry(segment.device).or_default().push(segment));
    for (history, device) in histories.iter().zip(0_i64..) {
        if !history.is_empty() {
            segments.entry(device).or_default();
        }
    }
    let owner = |(device, segments): (i64, Vec<&RawSegment>)| {
        let history =
            usize::try_from(device).ok().and_then(|at| histories.get(at)).map_or(&[][..], Vec::as_slice);
        let entries = history.iter().filter_map(|&at| shapes.entries.get(at as usize));
        let mut builder =
            OwnerBuilder::new(format!("{prefix}{device}"), entries.clone().any(|entry| entry.timed));
        replay(&mut builder, entries, time);
        let held: Vec<Held> = segments.iter().flat_map(|segment| held(shapes, segment)).collect();
        let profiled =
            history.iter().any(|&at| shapes.entries.get(at as usize).is_some_and(|entry| !entry.timed));
        let segments = segments.iter().filter(|_| !profiled).filter_map(|segment| whole(segment)).collect();
        builder.finish_with(&held, segments)
    };
    segments.into_iter().map(owner).collect()
}

fn whole(segment: &RawSegment) -> Option<Segment> {
    let RawSegment { size, private, expandable, .. } = *segment;
    Some(Segment { address: segment.address?, size, private, expandable })
}

/// The blocks of a segment that are in use. Those of older files have no address, but lie one behind the other.
fn held<'a>(shapes: &'a Shapes, segment: &RawSegment) -> impl Iterator<Item = Held> + use<'a> {
    let blocks = segment.blocks.map_or(&[][..], |list| shapes.items_of(Value::List(list)));
    let mut next = segment.address.unwrap_or(0);
    blocks.iter().filter_map(move |&item| {
        let Value::Dict(dict) = item else { return None };
        let Dict::Block(place) = shapes.dict(dict) else { return None };
        let block = shapes.blocks.get(place as usize)?;
        let address = block.address.unwrap_or(next);
        next = address.saturating_add(block.size);
        block.live.then_some(Held {
            address,
            size: block.size,
            requested: block.requested,
            stack: block.stack,
            role: block.role,
            pending: block.pending,
        })
    })
}

/// Memory is free once its free is completed; files without such entries only have requests.
fn replay<'a>(
    builder: &mut OwnerBuilder,
    entries: impl Iterator<Item = &'a Entry> + Clone,
    time: &dyn Fn(i64) -> Time,
) {
    let completes = entries.clone().any(|entry| entry.action == known::FREE_COMPLETED);
    let mut entries = entries.peekable();
    while let Some(entry) = entries.next() {
        let at = time(entry.time_us);
        let segment =
            |expandable| Segment { address: entry.address, size: entry.size, private: false, expandable };
        match entry.action {
            known::ALLOC => builder.allocated(at, entry.address, entry.size, entry.stack, entry.role),
            known::FREE_COMPLETED | known::FREE => {
                // A tensor that is changed in place is written as freed and allocated again.
                let again = entries.next_if(|next| !next.timed && is_new_version(entry, next));
                match again {
                    Some(next) => builder.changed(next.address, next.size, next.stack, next.role),
                    None => builder.freed(at, entry.address, entry.size),
                }
            }
            known::FREE_REQUESTED if !completes => builder.freed(at, entry.address, entry.size),
            known::SEGMENT_ALLOC => builder.segment(at, segment(false), true),
            known::SEGMENT_FREE => builder.segment(at, segment(false), false),
            known::SEGMENT_MAP => builder.segment(at, segment(true), true),
            known::SEGMENT_UNMAP => builder.segment(at, segment(true), false),
            known::OOM => builder.failed(at, entry.size, Some(entry.address), entry.stack),
            _ => {}
        }
    }
}

fn is_new_version(freed: &Entry, next: &Entry) -> bool {
    next.action == known::ALLOC
        && (next.address, next.size, next.stack) == (freed.address, freed.size, freed.stack)
}

fn marks(names: &Names<'_>, time: &dyn Fn(i64) -> Time) -> Vec<Mark> {
    let shapes = names.shapes;
    let Some(list) = shapes.root.and_then(|root| shapes.get(root, known::EXTERNAL_ANNOTATIONS)) else {
        return Vec::new();
    };
    let mut marks: Vec<Mark> = Vec::new();
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &item in shapes.items_of(list) {
        let (Some(Value::Text(name)), Some(Value::Int(us)), Some(Value::Text(stage))) =
            (shapes.get(item, known::NAME), shapes.get(item, known::TIME_US), shapes.get(item, known::STAGE))
        else {
            continue;
        };
        if stage == known::START {
            open.entry(name).or_default().push(marks.len());
            marks.push(Mark { name: names.text(name), start: time(us), end: None });
        } else if let Some(mark) = open.get_mut(&name).and_then(Vec::pop).and_then(|at| marks.get_mut(at)) {
            mark.end = Some(time(us));
        }
    }
    marks.sort_by_key(|mark| mark.start);
    marks
}

/// A call. PyTorch's profiler writes place and function as one name: `train.py(10): step`.
fn frame(builder: &mut TraceBuilder, names: &Names<'_>, call: &Call) -> Frame {
    let file = call.file.map(|file| names.text(file)).unwrap_or_default();
    let function = call.function.map(|function| names.text(function)).unwrap_or_default();
    let (file, function, line) = match (file.as_str(), call.line) {
        ("none" | "", 0) => match placed(&function) {
            Some((file, line, function)) => (file.to_owned(), function.to_owned(), line),
            None => (String::new(), function, 0),
        },
        _ => (file, function, call.line),
    };
    Frame { file: builder.strings.intern(&file), function: builder.strings.intern(&function), line }
}

fn placed(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function))
}
