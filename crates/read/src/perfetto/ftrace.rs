//! The kernel's events: which thread ran on which processor, what threads that did not run waited for, and what programs
//! wrote into the kernel's log as slices.
//!
//! A thread's states are a track of their own: `Running`, `Runnable` (waiting for a processor), `Sleeping` (waiting for
//! something else), `Uninterruptible` (mostly for a disk).

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, Kind, ProcessKind, StrId, Time, TraceBuilder, TrackId, TrackKind};
use stepscope_wire::{Payload, walk};

use super::load::Loader;
use super::nodes::Nodes;
use super::points::{ArgSpan, Point, What};
use super::sequence::numbers;

/// Threads whose states are kept one by one.
const MOST_THREADS: usize = 1 << 14;
/// Processors that are kept one by one.
const MOST_PROCESSORS: u32 = 4_096;

/// A thread takes over a processor.
#[derive(Copy, Clone, Debug)]
struct Switch {
    ns: i64,
    cpu: u32,
    /// The thread that left; `None` if only the next one is recorded.
    prev: Option<i64>,
    /// Why it left, in the kernel's bits.
    prev_state: i64,
    next: i64,
    name: StrId,
}

/// What the kernel recorded.
#[derive(Debug, Default)]
pub(super) struct Scheduling {
    switches: Vec<Switch>,
    /// Times at which threads became able to run.
    wakes: Vec<(i64, i64)>,
    pub(super) lost: u64,
}

impl Loader<'_> {
    /// Takes over the events of one processor.
    pub(super) fn ftrace(&mut self, file: &[u8], range: Range<usize>) {
        let (mut cpu, mut events, mut compact) = (0, Vec::new(), None);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(value)) => cpu = value as u32,
            (2, Payload::Len(range)) => events.push(range),
            (3, Payload::Varint(value)) => self.scheduling.lost += u64::from(value != 0),
            (4, Payload::Len(range)) => compact = Some(range),
            _ => {}
        });
        let cpu = cpu.min(MOST_PROCESSORS);
        if let Some(range) = compact {
            self.compact(file, range, cpu);
        }
        for event in events {
            self.kernel_event(file, event, cpu);
        }
    }

    fn kernel_event(&mut self, file: &[u8], range: Range<usize>, cpu: u32) {
        let (mut ns, mut pid, mut body) = (0, 0, None);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(value)) => ns = value as i64,
            (2, Payload::Varint(value)) => pid = i64::from(value as i32),
            (number @ (3 | 4 | 17 | 20), Payload::Len(range)) => body = Some((number, range)),
            _ => {}
        });
        match body {
            Some((4, range)) => self.switch(file, range, cpu, ns),
            Some((17 | 20, range)) => {
                walk(file, range, |field| {
                    if let (2, Payload::Varint(woken)) = (field.number, field.value) {
                        self.scheduling.wakes.push((i64::from(woken as i32), ns));
                    }
                });
            }
            Some((_, range)) => {
                let mut text = None;
                walk(file, range, |field| {
                    if let (2, Payload::Len(range)) = (field.number, field.value) {
                        text = Some(range);
                    }
                });
                let text = text.and_then(|range| file.get(range)).map(String::from_utf8_lossy);
                self.printed(text.as_deref().unwrap_or_default().trim_end(), pid, ns);
            }
            None => {}
        }
    }

    fn switch(&mut self, file: &[u8], range: Range<usize>, cpu: u32, ns: i64) {
        let mut switch = Switch { ns, cpu, prev: None, prev_state: 0, next: 0, name: StrId::default() };
        walk(file, range, |field| match (field.number, field.value) {
            (2, Payload::Varint(value)) => switch.prev = Some(i64::from(value as i32)),
            (4, Payload::Varint(value)) => switch.prev_state = value as i64,
            (6, Payload::Varint(value)) => switch.next = i64::from(value as i32),
            (5, Payload::Len(range)) => {
                switch.name = self.builder.strings.intern_bytes(file.get(range).unwrap_or_default());
            }
            _ => {}
        });
        self.scheduling.switches.push(switch);
    }

    /// Switches as columns of differences.
    fn compact(&mut self, file: &[u8], range: Range<usize>, cpu: u32) {
        let mut columns: [Vec<u64>; 13] = Default::default();
        let mut names = Vec::new();
        walk(file, range, |field| match field.number {
            5 => {
                if let Payload::Len(range) = field.value {
                    names.push(self.builder.strings.intern_bytes(file.get(range).unwrap_or_default()));
                }
            }
            number => {
                if let Some(column) = columns.get_mut(number as usize) {
                    numbers(file, field.value, |value| column.push(value));
                }
            }
        });
        let mut ns = 0_i64;
        for (at, delta) in columns[1].iter().enumerate() {
            ns = ns.saturating_add(*delta as i64);
            let value = |column: usize| columns[column].get(at).map(|&value| i64::from(value as i32));
            let name = value(6).and_then(|number| names.get(usize::try_from(number).ok()?)).copied();
            self.scheduling.switches.push(Switch {
                ns,
                cpu,
                prev: None,
                prev_state: value(2).unwrap_or(0),
                next: value(3).unwrap_or(0),
                name: name.unwrap_or_default(),
            });
        }
        ns = 0;
        for (delta, &pid) in columns[7].iter().zip(&columns[8]) {
            ns = ns.saturating_add(*delta as i64);
            self.scheduling.wakes.push((i64::from(pid as i32), ns));
        }
    }

    /// `B|123|name`, `E|123`, `C|123|name|7`: slices and counters that a program wrote.
    fn printed(&mut self, text: &str, tid: i64, ns: i64) {
        let mut parts = text.splitn(4, '|');
        let (sort, pid) = (parts.next().unwrap_or_default(), parts.next().and_then(|pid| pid.parse().ok()));
        let pid: i64 = pid.unwrap_or(tid);
        let what = match sort {
            "B" => What::Begin,
            "E" => What::End,
            "C" => {
                let (name, value) = (parts.next(), parts.next().and_then(|value| value.parse().ok()));
                if let (Some(name), Some(value)) = (name, value) {
                    let name = self.builder.strings.intern(name);
                    let node = self.named_node(Some(pid), name);
                    self.samples.push((node, ns, value));
                }
                return;
            }
            _ => return,
        };
        let rest = text.splitn(3, '|').nth(2).unwrap_or_default();
        let name = self.builder.strings.intern(rest);
        let kind = self.builder.kind(Kind::slice(name));
        let node = self.thread_node(pid, tid);
        self.points.push(Point { node, ns, what, kind, args: ArgSpan::default() });
    }
}

impl Scheduling {
    pub(super) fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// Earliest and latest time.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        let times = || self.switches.iter().map(|switch| switch.ns);
        Some((times().min()?, times().max()?))
    }

    /// Adds a track per processor and a track of states per thread.
    pub(super) fn finish(mut self, builder: &mut TraceBuilder, nodes: &Nodes, (origin, last): (i64, i64)) {
        if self.switches.is_empty() {
            return;
        }
        self.switches.sort_by_key(|switch| (switch.cpu, switch.ns));
        let name = builder.strings.intern("processors");
        let process = builder.process(name, ProcessKind::Other, 0);
        let mut states: FxHashMap<i64, Vec<(i64, &'static str)>> = FxHashMap::default();
        for switches in self.switches.chunk_by(|a, b| a.cpu == b.cpu) {
            let Some(first) = switches.first() else { continue };
            let label = builder.strings.intern(&format!("processor {}", first.cpu));
            let number = i64::from(first.cpu);
            let track = builder.track(process, label, TrackKind::Derived, number, TraceBuilder::ARENA);
            for (at, now) in switches.iter().enumerate() {
                let then = switches.get(at + 1);
                let idle = builder.strings.intern("idle");
                let name = match now.next {
                    0 => idle,
                    _ if now.name == StrId::default() => label,
                    _ => now.name,
                };
                let kind = builder.kind(Kind::slice(name));
                put(builder, track, kind, (now.ns, then.map_or(last, |then| then.ns)), origin);
                note_state(&mut states, now.next, now.ns, "Running");
                if let Some(then) = then {
                    note_state(&mut states, then.prev.unwrap_or(now.next), then.ns, reason(then.prev_state));
                }
            }
        }
        for &(tid, ns) in &self.wakes {
            note_state(&mut states, tid, ns, "Runnable");
        }
        thread_states(builder, nodes, states, origin);
    }
}

fn note_state(states: &mut FxHashMap<i64, Vec<(i64, &'static str)>>, tid: i64, ns: i64, state: &'static str) {
    if tid != 0 && (states.len() < MOST_THREADS || states.contains_key(&tid)) {
        states.entry(tid).or_default().push((ns, state));
    }
}

/// Why a thread left its processor, from the kernel's bits.
fn reason(bits: i64) -> &'static str {
    match bits & 0xff {
        0 => "Runnable",
        bits if bits & 1 != 0 => "Sleeping",
        bits if bits & 2 != 0 => "Uninterruptible",
        _ => "Stopped",
    }
}

fn put(
    builder: &mut TraceBuilder,
    track: TrackId,
    kind: stepscope_trace::KindId,
    ends: (i64, i64),
    origin: i64,
) {
    let start = Time::from_ns(ends.0.saturating_sub(origin));
    builder.event(track, start, Dur::from_ns(ends.1.saturating_sub(ends.0).max(0)), kind, None);
}

fn thread_states(
    builder: &mut TraceBuilder,
    nodes: &Nodes,
    states: FxHashMap<i64, Vec<(i64, &'static str)>>,
    origin: i64,
) {
    let mut threads: Vec<_> = states.into_iter().collect();
    threads.sort_by_key(|(tid, _)| *tid);
    let label = builder.strings.intern("thread states");
    let process = builder.process(label, ProcessKind::Other, 0);
    for (tid, mut changes) in threads {
        changes.sort_by_key(|(ns, _)| *ns);
        let pid = nodes.process_of_thread.get(&tid).copied().unwrap_or(tid);
        let known = nodes.thread_names.get(&(pid, tid)).copied();
        let name = known.unwrap_or_else(|| builder.strings.intern(&format!("thread {tid}")));
        let track = builder.track(process, name, TrackKind::Derived, tid, TraceBuilder::ARENA);
        for pair in changes.windows(2) {
            let [(from, state), (to, _)] = pair else { continue };
            if from < to {
                let name = builder.strings.intern(state);
                let kind = builder.kind(Kind::slice(name));
                put(builder, track, kind, (*from, *to), origin);
            }
        }
    }
}
