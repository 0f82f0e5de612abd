//! One track event: a start, an end, an instant or a counter's value, with its name, categories, arguments and arrows.

use std::ops::Range;

use stepscope_trace::{Form, Kind, NoteKind, StrId};
use stepscope_wire::{Payload, walk};

use super::annotations;
use super::kineto;
use super::load::{Arrow, Loader};
use super::points::{ArgSpan, Point, What};
use super::sequence::{Sequence, Table, fixed_numbers, numbers};

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
const STATE: u64 = 5;

/// The fields of an event.
#[derive(Default)]
pub(super) struct Event {
    kind: Option<u64>,
    name: Option<Range<usize>>,
    name_number: u64,
    track: Option<u64>,
    category_numbers: Vec<u64>,
    categories: Vec<Range<usize>>,
    annotations: Vec<Range<usize>>,
    value: Option<f64>,
    extra: [Vec<u64>; 2],
    extra_tracks: [Vec<u64>; 2],
    flows: Vec<(u64, bool)>,
    legacy: Legacy,
    /// µs since the sequence's reference, and since the epoch of the clock.
    delta_us: Option<i64>,
    absolute_us: Option<i64>,
}

/// What older versions wrote instead of a type.
#[derive(Default)]
struct Legacy {
    phase: u8,
    duration_us: i64,
    id: Option<u64>,
    name_number: u64,
}

impl Event {
    fn clear(&mut self) {
        let Event { category_numbers, categories, annotations, extra, extra_tracks, flows, .. } =
            std::mem::take(self);
        *self = Event {
            category_numbers,
            categories,
            annotations,
            extra,
            extra_tracks,
            flows,
            ..Event::default()
        };
        self.category_numbers.clear();
        self.categories.clear();
        self.annotations.clear();
        self.extra.iter_mut().chain(&mut self.extra_tracks).for_each(Vec::clear);
        self.flows.clear();
    }

    fn read(&mut self, file: &[u8], range: Range<usize>) {
        self.clear();
        walk(file, range, |field| match (field.number, field.value) {
            (9, Payload::Varint(kind)) => self.kind = Some(kind),
            (10, Payload::Varint(number)) => self.name_number = number,
            (11, Payload::Varint(uuid)) => self.track = Some(uuid),
            (23, Payload::Len(range)) => self.name = Some(range),
            (3, value) => numbers(file, value, |number| self.category_numbers.push(number)),
            (22, Payload::Len(range)) => self.categories.push(range),
            (4, Payload::Len(range)) => self.annotations.push(range),
            (30, Payload::Varint(value)) => self.value = Some(value as i64 as f64),
            (44, Payload::Fixed64(bits)) => self.value = Some(f64::from_bits(bits)),
            (12, value) => numbers(file, value, |number| self.extra[0].push(number)),
            (31, value) => numbers(file, value, |number| self.extra_tracks[0].push(number)),
            (46, value) => fixed_numbers(file, value, |number| self.extra[1].push(number)),
            (45, value) => numbers(file, value, |number| self.extra_tracks[1].push(number)),
            (36, value) => numbers(file, value, |id| self.flows.push((id, false))),
            (47, value) => fixed_numbers(file, value, |id| self.flows.push((id, false))),
            (42, value) => numbers(file, value, |id| self.flows.push((id, true))),
            (48, value) => fixed_numbers(file, value, |id| self.flows.push((id, true))),
            (1, Payload::Varint(delta)) => self.delta_us = Some(delta as i64),
            (16, Payload::Varint(at)) => self.absolute_us = Some(at as i64),
            (6, Payload::Len(range)) => self.read_legacy(file, range),
            _ => {}
        });
    }

    fn read_legacy(&mut self, file: &[u8], range: Range<usize>) {
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(number)) => self.legacy.name_number = number,
            (2, Payload::Varint(phase)) => self.legacy.phase = phase as u8,
            (3, Payload::Varint(us)) => self.legacy.duration_us = us as i64,
            (6 | 10 | 11, Payload::Varint(id)) => self.legacy.id = Some(id),
            _ => {}
        });
    }

    /// What happens. Older versions wrote the phase of Chrome's JSON.
    fn what(&self) -> Option<What> {
        Some(match (self.kind, self.legacy.phase) {
            (Some(BEGIN), _) | (_, b'B' | b'b' | b'S') => What::Begin,
            (Some(END), _) | (_, b'E' | b'e' | b'F') => What::End,
            (Some(INSTANT), _) | (_, b'I' | b'i' | b'R' | b'n' | b'T' | b'p') => What::Instant,
            (Some(STATE), _) => What::State,
            (_, b'X') => What::Whole(self.legacy.duration_us.saturating_mul(1_000)),
            _ => return None,
        })
    }

    /// Asynchronous operations of older versions are no part of their thread.
    fn is_asynchronous(&self) -> bool {
        matches!(self.legacy.phase, b'b' | b'e' | b'n' | b'S' | b'F' | b'T' | b'p')
    }
}

impl Loader<'_> {
    /// Takes over one event of a sequence. `ns` is the packet's time, if it has one.
    pub(super) fn track_event(&mut self, file: &[u8], range: Range<usize>, writer: usize, ns: Option<i64>) {
        let mut event = std::mem::take(&mut self.event);
        event.read(file, range);
        let held = self.sequences.get_mut(writer).and_then(Option::take);
        if let Some(mut sequence) = held {
            let ns = ns.or_else(|| legacy_ns(&event, &mut sequence)).unwrap_or(0);
            self.take_event(file, &event, &mut sequence, ns);
            self.put_back(writer, sequence);
        }
        self.event = event;
    }

    fn take_event(&mut self, file: &[u8], event: &Event, sequence: &mut Sequence, ns: i64) {
        let node = self.node_of(event, sequence);
        self.extra_counters(event, sequence, ns);
        if event.kind == Some(COUNTER) {
            if let Some(value) = event.value {
                self.counter_value(node, sequence, ns, value);
            }
            return;
        }
        let Some(what) = event.what() else {
            return self.builder.note(NoteKind::Unknown, "type of track event", 1, None);
        };
        let name = match &event.name {
            Some(range) => self.builder.strings.intern_bytes(file.get(range.clone()).unwrap_or_default()),
            None => self.interned_name(event, sequence),
        };
        let from = self.args.len();
        for range in &event.annotations {
            self.args.extend(annotations::read(&mut self.builder, sequence, file, range.clone()));
        }
        let mut category = self.category(file, event, sequence);
        if category == StrId::default() && from < self.args.len() {
            let text = self.builder.strings.get(name).to_owned();
            if let Some(known) = kineto::unfold(&mut self.builder, &text, &mut self.args, from) {
                category = self.builder.strings.intern(known);
            }
        }
        let form = if what == What::Instant { Form::Instant } else { Form::Slice };
        let kind = self.builder.kind(Kind { category, form, ..Kind::slice(name) });
        let args = ArgSpan { from: from as u32, to: self.args.len() as u32 };
        self.points.push(Point { node, ns, what, kind, args });
        for &(id, ends) in &event.flows {
            self.arrows.push(Arrow { id, ns, node, ends });
        }
    }

    fn interned_name(&mut self, event: &Event, sequence: &Sequence) -> StrId {
        let number = if event.name_number != 0 { event.name_number } else { event.legacy.name_number };
        let name = sequence.text(Table::Names, number);
        if name.is_none() && number != 0 {
            self.builder.note(NoteKind::DanglingReference, "name of an event", 1, None);
        }
        name.unwrap_or_default()
    }

    /// The category; several are joined with commas.
    fn category(&mut self, file: &[u8], event: &Event, sequence: &Sequence) -> StrId {
        let strings = &mut self.builder.strings;
        let interned =
            event.category_numbers.iter().filter_map(|&number| sequence.text(Table::Categories, number));
        let mut all: Vec<StrId> = interned.collect();
        for range in &event.categories {
            all.push(strings.intern_bytes(file.get(range.clone()).unwrap_or_default()));
        }
        match all[..] {
            [] => StrId::default(),
            [only] => only,
            _ => {
                let joined: Vec<&str> = all.iter().map(|&id| strings.get(id)).collect();
                let joined = joined.join(",");
                strings.intern(&joined)
            }
        }
    }

    fn node_of(&mut self, event: &Event, sequence: &Sequence) -> u32 {
        if event.is_asynchronous() {
            let id = event.legacy.id.unwrap_or(0);
            return self.operation_node(sequence.thread.map(|(pid, _)| pid), id);
        }
        match (event.track.or(sequence.track), sequence.thread) {
            (Some(uuid), _) => self.nodes.number(uuid),
            (None, Some((pid, tid))) => self.thread_node(pid, tid),
            (None, None) => self.nodes.number(0),
        }
    }

    /// Values of counters that an event of another track brings along.
    fn extra_counters(&mut self, event: &Event, sequence: &mut Sequence, ns: i64) {
        for (sort, values) in event.extra.iter().enumerate() {
            let own = &event.extra_tracks[sort];
            let usual = if sort == 0 { &sequence.counters } else { &sequence.float_counters };
            let tracks = if own.is_empty() { usual.clone() } else { own.clone() };
            for (&value, uuid) in values.iter().zip(tracks) {
                let node = self.nodes.number(uuid);
                let value = if sort == 0 { value as i64 as f64 } else { f64::from_bits(value) };
                self.counter_value(node, sequence, ns, value);
            }
        }
    }

    fn counter_value(&mut self, node: u32, sequence: &mut Sequence, ns: i64, value: f64) {
        let counter = self.nodes.get(node).and_then(|node| node.counter);
        let value = match counter {
            Some(counter) if counter.incremental => {
                let sum = sequence.sums.entry(u64::from(node)).or_default();
                *sum += value * counter.factor;
                *sum
            }
            Some(counter) => value * counter.factor,
            None => value,
        };
        self.samples.push((node, ns, value));
    }
}

/// The time of an event of an older version.
fn legacy_ns(event: &Event, sequence: &mut Sequence) -> Option<i64> {
    if let Some(us) = event.absolute_us {
        return us.checked_mul(1_000);
    }
    let us = sequence.reference_us.checked_add(event.delta_us?)?;
    sequence.reference_us = us;
    us.checked_mul(1_000)
}
