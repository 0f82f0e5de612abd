//! From the file's tracks to those of the trace: slices, counters and arrows where they belong. What runs on a device is
//! decided as for Chrome's JSON.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Dur, FlowDirection, StrId, Time, TraceBuilder, TrackId, TrackKind};

use super::load::Arrow;
use super::nodes::{Nodes, Owner};
use super::points::{self, Oddities, Point, Slice};
use crate::chrome::args::ArgWriter;
use crate::chrome::category::{Class, Hint, class_of, hint_of};
use crate::chrome::tracks::{Id, PlaceId, Tracks};

/// From the file's tracks to those of the trace.
pub(super) struct Placing<'n> {
    nodes: &'n Nodes,
    origin: i64,
    tracks: Tracks,
    writer: ArgWriter,
    classes: FxHashMap<StrId, Class>,
    hints: FxHashMap<StrId, Option<Hint>>,
    placed: FxHashMap<u32, TrackId>,
}

impl<'n> Placing<'n> {
    pub(super) fn new(nodes: &'n Nodes, origin: i64) -> Self {
        Placing {
            nodes,
            origin,
            tracks: Tracks::default(),
            writer: ArgWriter::default(),
            classes: FxHashMap::default(),
            hints: FxHashMap::default(),
            placed: FxHashMap::default(),
        }
    }

    pub(super) fn name_all(&mut self, builder: &mut TraceBuilder) {
        let mut processes: Vec<_> = self.nodes.process_names.iter().collect();
        processes.sort_unstable();
        for (&pid, &name) in processes {
            let text = builder.strings.get(name).to_owned();
            match text.rsplit_once(" [").and_then(|(name, label)| Some((name, label.strip_suffix(']')?))) {
                Some((bare, label)) => {
                    let (bare, label) = (builder.strings.intern(bare), builder.strings.intern(label));
                    self.tracks.name_process(Id::Number(pid), bare);
                    self.tracks.label_process(Id::Number(pid), label);
                }
                None => self.tracks.name_process(Id::Number(pid), name),
            }
        }
        let mut threads: Vec<_> = self.nodes.thread_names.iter().collect();
        threads.sort_unstable();
        for (&(pid, tid), &name) in threads {
            self.tracks.name_thread(Id::Number(pid), Id::Number(tid), name);
        }
    }

    /// Settles the kinds of all tracks.
    pub(super) fn finish(self, builder: &mut TraceBuilder) {
        self.tracks.finish(builder, Vec::new());
    }

    fn time(&self, ns: i64) -> Time {
        Time::from_ns(ns.saturating_sub(self.origin))
    }

    /// Adds all slices. Tracks of one thread are paired together.
    pub(super) fn events(
        &mut self,
        builder: &mut TraceBuilder,
        all: &[Point],
        args: &[(StrId, Datum)],
        last: i64,
    ) -> Oddities {
        let mut oddities = Oddities::default();
        let (groups, count) = self.groups();
        let overlapping = self.overlapping(all);
        for group in points::grouped(all, &groups, count) {
            let mut found: Vec<Slice> = Vec::with_capacity(group.len() / 2 + 1);
            points::slices(all, &group, last, &mut oddities, |slice| found.push(slice));
            for slice in found {
                let track = self.track(builder, &slice, &overlapping);
                let of = |span: points::ArgSpan| {
                    args.get(span.from as usize..span.to as usize).unwrap_or_default()
                };
                let record = match (of(slice.args), of(slice.end_args)) {
                    ([], []) => None,
                    (own, []) => self.writer.push(builder, own),
                    (own, end) => self.writer.push(builder, &[own, end].concat()),
                };
                let start = self.time(slice.ns);
                builder.event(track, start, Dur::from_ns(slice.length), slice.kind, record);
                self.placed.insert(slice.node, track);
            }
        }
        oddities
    }

    /// The group of each track in which starts and ends are paired.
    fn groups(&self) -> (Vec<u32>, usize) {
        let mut threads: FxHashMap<(i64, i64), u32> = FxHashMap::default();
        let mut count = 0_u32;
        let mut next = || {
            count += 1;
            count - 1
        };
        let groups = self.nodes.all.iter().map(|node| match node.thread {
            Some(id) => *threads.entry(id).or_insert_with(&mut next),
            None => next(),
        });
        let groups: Vec<u32> = groups.collect();
        (groups, count.max(1) as usize)
    }

    /// Named tracks of which several exist side by side: they are drawn together, and their slices overlap.
    fn overlapping(&self, all: &[Point]) -> FxHashMap<Owner, bool> {
        let mut first: FxHashMap<Owner, (u32, bool)> = FxHashMap::default();
        for point in all {
            let owner = self.nodes.owner(point.node);
            let known = first.entry(owner).or_insert((point.node, false));
            known.1 |= known.0 != point.node;
        }
        first.into_iter().map(|(owner, (_, several))| (owner, several)).collect()
    }

    fn track(
        &mut self,
        builder: &mut TraceBuilder,
        slice: &Slice,
        overlapping: &FxHashMap<Owner, bool>,
    ) -> TrackId {
        let kind = builder.kind_of(slice.kind);
        let class = *self.classes.entry(kind.category).or_insert_with(|| {
            let text = builder.strings.get(kind.category);
            class_of(text.split(',').next().unwrap_or(text))
        });
        let owner = self.nodes.owner(slice.node);
        let (pid, tid) = match owner {
            Owner::Thread(pid, tid) => (Id::Number(pid), Id::Number(tid)),
            Owner::Unnamed(pid, number) => {
                (pid.map_or(Id::Missing, Id::Number), Id::Number(i64::from(number)))
            }
            Owner::Named(pid, name) => {
                let several = overlapping.get(&owner) == Some(&true) && class == Class::Neutral;
                let pid = agent(builder, name).or(pid.map(Id::Number)).unwrap_or(Id::Missing);
                if several {
                    let kind = TrackKind::Async;
                    let track = self.tracks.loose_track(builder, pid, kind, name, StrId::default());
                    if let Some(track) = track {
                        return track;
                    }
                }
                (pid, Id::Text(name))
            }
        };
        let place = self.tracks.place(pid, tid);
        if class == Class::Neutral {
            self.take_hint(builder, place, kind.name);
        }
        self.tracks.track(builder, place, class)
    }

    fn take_hint(&mut self, builder: &TraceBuilder, place: PlaceId, name: StrId) {
        let strings = &builder.strings;
        if let Some(hint) = *self.hints.entry(name).or_insert_with(|| hint_of(strings.get(name))) {
            self.tracks.hint(place, hint);
        }
    }

    pub(super) fn counters(&mut self, builder: &mut TraceBuilder, samples: &[(u32, i64, f64)]) {
        let mut tracks: FxHashMap<u32, Option<TrackId>> = FxHashMap::default();
        for &(node, ns, value) in samples {
            let track = *tracks.entry(node).or_insert_with(|| {
                let (pid, name) = match self.nodes.owner(node) {
                    Owner::Thread(pid, _) => {
                        (Some(pid), self.nodes.get(node).map(|it| it.name).unwrap_or_default())
                    }
                    Owner::Named(pid, name) => (pid, name),
                    Owner::Unnamed(pid, _) => (pid, StrId::default()),
                };
                let pid = pid.map_or(Id::Missing, Id::Number);
                self.tracks.loose_track(builder, pid, TrackKind::Counter, name, StrId::default())
            });
            if let Some(track) = track {
                builder.sample(track, self.time(ns), value);
            }
        }
    }

    /// The first end of an arrow is where it starts, the last where it ends.
    pub(super) fn arrows(&mut self, builder: &mut TraceBuilder, mut arrows: Vec<Arrow>) {
        arrows.sort_by_key(|arrow| (arrow.id, arrow.ns, arrow.ends));
        let category = builder.strings.intern("flow");
        for ends in arrows.chunk_by(|a, b| a.id == b.id) {
            for (index, end) in ends.iter().enumerate() {
                let direction = match index {
                    0 => FlowDirection::Out,
                    _ if end.ends || index + 1 == ends.len() => FlowDirection::In,
                    _ => FlowDirection::Step,
                };
                if let Some(&track) = self.placed.get(&end.node) {
                    builder.flow(self.time(end.ns), track, direction, category, end.id);
                }
            }
        }
    }
}

/// The GPU in a track's name, as AMD's profiler writes it: `COMPUTE AGENT [4] QUEUE [0] (GPU)`.
fn agent(builder: &mut TraceBuilder, name: StrId) -> Option<Id> {
    let text = builder.strings.get(name);
    let number = text.strip_suffix("(GPU)")?.split_once("AGENT [")?.1.split_once(']')?.0;
    let title = format!("GPU {}", number.parse::<u32>().ok()?);
    Some(Id::Text(builder.strings.intern(&title)))
}
