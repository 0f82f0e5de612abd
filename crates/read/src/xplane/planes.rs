//! One plane: its names, kinds, properties and tracks, ready for decoding its events.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_trace::{ArgRef, ArgSourceId, Form, Kind, ProcessId, StrId, TraceBuilder, TrackId, TrackKind};

use super::clock::Origin;
use super::events::{Kinds, Placed};
use super::id_map::IdMap;
use super::line::Line;
use super::names::{ENVIRONMENT_PLANE, METADATA_PLANE, PlaneKind, track_kind};
use super::properties::{add_capture, add_device, add_host_properties, plane_stats};
use super::scan::{Entry, Plane};
use super::schema::event_metadata;
use super::stats::{EventStats, MetadataStats, StatNames};
use crate::Bytes;
use stepscope_wire::{Payload, walk};

/// A plane after the first pass.
#[derive(Debug)]
pub(super) struct Scanned {
    pub plane: Plane,
    pub lines: Vec<Line>,
}

impl Scanned {
    pub fn new(file: &[u8], range: Range<usize>) -> Self {
        let plane = Plane::scan(file, range);
        let lines = plane.lines.par_iter().map(|range| Line::scan(file, range.clone())).collect();
        Scanned { plane, lines }
    }

    /// Start times of the lines that contain events.
    pub(crate) fn timestamps(&self) -> impl Iterator<Item = i64> {
        self.lines.iter().filter(|line| line.events > 0).map(|line| line.timestamp_ns)
    }

    /// Whether it contains nothing.
    pub fn is_empty(&self) -> bool {
        let plane = &self.plane;
        let entries = plane.event_metadata.len() + plane.stat_metadata.len() + plane.stats.len();
        entries == 0 && self.lines.iter().all(|line| line.events == 0)
    }

    /// Number of its events.
    pub fn events(&self) -> usize {
        self.lines.iter().map(|line| line.events).sum()
    }

    /// Keeps the first events, up to `left` of them; returns how many others may keep.
    pub fn keep(&mut self, mut left: usize) -> usize {
        for line in &mut self.lines {
            line.pieces.retain(|piece| {
                let fits = piece.events <= left;
                left -= if fits { piece.events } else { left };
                fits
            });
            line.events = line.pieces.iter().map(|piece| piece.events).sum();
        }
        left
    }

    fn has_events(&self) -> bool {
        self.lines.iter().any(|line| line.events > 0)
    }
}

/// A track whose events are still to be decoded.
#[derive(Debug)]
pub(super) struct TrackPlan {
    pub id: TrackId,
    pub kind: TrackKind,
    pub pieces: Vec<Placed>,
}

/// A plane whose events are still to be decoded.
#[derive(Debug)]
pub(super) struct PlanePlan {
    pub name: String,
    pub process: ProcessId,
    pub kinds: Kinds,
    pub tracks: Vec<TrackPlan>,
    pub names: Arc<StatNames>,
    /// The kinds of slices, by metadata id.
    slices: FxHashMap<u64, Kind>,
}

impl PlanePlan {
    /// Reads everything except the events. `None` for a plane that has no events and is not a device.
    pub fn new(file: &Bytes, scanned: &Scanned, origin: Origin, builder: &mut TraceBuilder) -> Option<Self> {
        let plane = &scanned.plane;
        let name_id = builder.strings.intern_bytes(&file[plane.name.clone()]);
        let name = builder.strings.get(name_id).to_owned();
        let kind = PlaneKind::of(&name);
        let names = Arc::new(StatNames::new(file, &plane.stat_metadata, &mut builder.strings));
        let stats = plane_stats(file, &plane.stats, &names, &builder.strings);
        match kind {
            PlaneKind::Host => add_host_properties(file, &stats, builder),
            _ if name == ENVIRONMENT_PLANE => add_capture(file, &stats, builder),
            _ => {}
        }
        let metadata = metadata_source(file, &names, builder);
        if name == METADATA_PLANE {
            attach_all(file, &plane.event_metadata, metadata, builder);
        }
        let is_device = matches!(kind, PlaneKind::Device(..));
        if !scanned.has_events() && !is_device {
            return None;
        }
        let process = builder.process(name_id, kind.process(), plane.id);
        if let PlaneKind::Device(device, number) = kind {
            add_device(file, &stats, device, number.unwrap_or(plane.id), process, builder);
        }
        let mut plan = PlanePlan {
            name,
            process,
            kinds: Kinds::default(),
            tracks: Vec::new(),
            names,
            slices: FxHashMap::default(),
        };
        if scanned.has_events() {
            plan.add_kinds(file, &plane.event_metadata, metadata, builder);
            plan.add_tracks(file, &scanned.lines, kind, origin, builder);
        }
        Some(plan)
    }

    fn add_kinds(&mut self, file: &[u8], entries: &[Entry], source: ArgSourceId, builder: &mut TraceBuilder) {
        self.kinds.unknown = builder.kind(Kind::slice(StrId::default()));
        let mut ids = Vec::with_capacity(entries.len());
        for entry in entries {
            let kind = read_kind(file, entry, source, builder);
            ids.push((entry.id, builder.kind(kind).0));
            self.slices.insert(entry.id, kind);
        }
        self.kinds.slices = IdMap::new(&ids);
    }

    /// Creates separate kinds for aggregated events.
    pub(crate) fn add_aggregates(
        &mut self,
        metadata_ids: impl Iterator<Item = u64>,
        builder: &mut TraceBuilder,
    ) {
        let unnamed = Kind::slice(StrId::default());
        let ids: Vec<_> = metadata_ids
            .map(|id| {
                let slice = self.slices.get(&id).copied().unwrap_or(unnamed);
                (id, builder.kind(Kind { form: Form::Aggregate, ..slice }).0)
            })
            .collect();
        self.kinds.aggregates = IdMap::new(&ids);
    }

    /// The name of a metadata id.
    pub fn name_of(&self, metadata_id: u64) -> StrId {
        self.slices.get(&metadata_id).map_or(StrId::default(), |kind| kind.name)
    }

    /// Lines with the same id and name are one track, however often the file interrupts them; so is a
    /// continuation without a name.
    fn add_tracks(
        &mut self,
        file: &Bytes,
        lines: &[Line],
        plane: PlaneKind,
        origin: Origin,
        builder: &mut TraceBuilder,
    ) {
        let occurrences = builder.strings.intern("num_occurrences");
        let source = EventStats { file: file.clone(), names: self.names.clone(), occurrences };
        let source = builder.arg_source(Box::new(source));
        let mut by_name = FxHashMap::default();
        let mut by_id = FxHashMap::default();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.events > 0) {
            let shown = if line.display_name.is_empty() { &line.name } else { &line.display_name };
            let name = builder.strings.intern_bytes(&file[shown.clone()]);
            let known = if shown.is_empty() { by_id.get(&line.id) } else { by_name.get(&(line.id, name)) };
            let number = known.copied().unwrap_or_else(|| {
                let kind = track_kind(plane, line.id, builder.strings.get(name));
                let id = builder.track(self.process, name, kind, line.id, source);
                self.tracks.push(TrackPlan { id, kind, pieces: Vec::new() });
                self.tracks.len() - 1
            });
            by_name.insert((line.id, name), number);
            by_id.entry(line.id).or_insert(number);
            let base_ps = origin.base_ps(line.timestamp_ns);
            let placed =
                line.pieces.iter().map(|piece| Placed { piece: piece.clone(), base_ps, line: index });
            self.tracks[number].pieces.extend(placed);
        }
    }
}

fn metadata_source(file: &Bytes, names: &Arc<StatNames>, builder: &mut TraceBuilder) -> ArgSourceId {
    let metadata = builder.strings.intern("metadata");
    builder.arg_source(Box::new(MetadataStats { file: file.clone(), names: names.clone(), metadata }))
}

/// What the file says about all events of one metadata.
fn read_kind(file: &[u8], entry: &Entry, source: ArgSourceId, builder: &mut TraceBuilder) -> Kind {
    let mut kind = Kind::slice(StrId::default());
    walk(file, entry.value.clone(), |field| match (field.number, field.value) {
        (event_metadata::NAME, Payload::Len(range)) => kind.name = builder.strings.intern_bytes(&file[range]),
        (event_metadata::DISPLAY_NAME, Payload::Len(range)) => {
            kind.display_name = builder.strings.intern_bytes(&file[range]);
        }
        (event_metadata::STATS | event_metadata::METADATA, Payload::Len(_)) => {
            kind.shared_args = Some(ArgRef { source, at: entry.at as u64 });
        }
        _ => {}
    });
    kind
}

/// Keeps metadata without events: compiled modules.
fn attach_all(file: &[u8], entries: &[Entry], source: ArgSourceId, builder: &mut TraceBuilder) {
    for entry in entries {
        let kind = read_kind(file, entry, source, builder);
        if let Some(at) = kind.shared_args {
            builder.attach(kind.name, at);
        }
    }
}
