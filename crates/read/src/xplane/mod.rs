//! XPlane: profiles of TensorFlow and JAX (`*.xplane.pb`), a protobuf of planes, lines and events.
//!
//! ```text
//! scan     locates planes, lines and metadata: one walk from length to length
//! line     locates events, the parts of long lines in parallel
//! planes   names → strings, metadata → kinds, lines → tracks, stats → devices and environment
//! events   events → columns, in pieces of 65,536 on every core, in place
//! stats    arguments, decoded from the file on demand
//! ```
//!
//! Every event of the file becomes one event of the trace. Damage in an event keeps the event; damage in a line
//! keeps what came before it and the following lines; and so on upwards.

mod clock;
mod counters;
mod events;
mod id_map;
mod line;
mod names;
mod planes;
mod properties;
mod recognise;
mod recorded;
mod scan;
mod schema;
mod stats;

use std::ops::Range;

use rayon::prelude::*;
use stepscope_trace::{Delivers, Dur, EventColumns, Format, NoteKind, Trace, TraceBuilder, TrackKind};

use crate::{Bytes, Input, Progress, ReadError, Reader, Recorded};
use clock::Origin;
use events::Oddities;
use planes::{PlanePlan, Scanned};
use scan::Space;
use stats::FileBytes;
use stepscope_wire::Broken;

/// Number of notes of one kind that are listed; a thoroughly broken file has too many.
const LISTED: usize = 100;

/// XPlane files.
pub(crate) static FORMAT: Format =
    Format { endings: &[".pb", ".xplane"], ..Format::new("xplane", "XPlane profile", Delivers::Timeline) };

/// Reads XPlane.
#[derive(Debug)]
pub struct XPlaneReader;

impl Reader for XPlaneReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        recognise::recognises(head)
    }

    fn recorded(&self, input: &Input) -> Option<Recorded> {
        recorded::recorded(&input.inflated().0)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (file, gzip_error) = input.inflated();
        progress.expect(file.len() as u64);
        let space = Space::scan(&file);
        let mut scanned: Vec<Scanned> =
            space.planes.par_iter().map(|range| Scanned::new(&file, range.clone())).collect();
        let most = input.budget().most_events(file.len());
        if scanned.iter().map(Scanned::events).sum::<usize>() > most {
            input.budget().over_events(most);
            scanned.iter_mut().fold(most, |left, scanned| scanned.keep(left));
        }
        let mut damage = Damage::default();
        if let Some(error) = gzip_error {
            damage.add(format!("gzip: {error}"), file.len());
        }
        damage.add_framing(&file, &space, &scanned);
        let texts = space.errors.len() + space.warnings.len() + space.hostnames.len();
        if let Some((what, at)) = damage.first.first()
            && texts == 0
            && scanned.iter().all(Scanned::is_empty)
        {
            let (what, offset) = (what.clone(), *at as u64);
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset });
        }
        Ok(build(&file, &space, &scanned, damage, progress))
    }
}

fn build(file: &Bytes, space: &Space, scanned: &[Scanned], mut damage: Damage, progress: &Progress) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.arg_source(Box::new(FileBytes(file.clone())));
    add_texts(file, space, &mut builder);
    let origin = Origin::of(scanned.iter().flat_map(Scanned::timestamps));
    let mut plans: Vec<PlanePlan> =
        scanned.iter().filter_map(|scanned| PlanePlan::new(file, scanned, origin, &mut builder)).collect();
    let decoded: Vec<Vec<(EventColumns, Oddities)>> =
        plans.par_iter().map(|plan| decode_plane(file, plan, progress)).collect();
    for (plan, mut tracks) in plans.iter_mut().zip(decoded) {
        let aggregates: Vec<u64> = tracks.iter().flat_map(|(_, odd)| &odd.aggregates).copied().collect();
        if !aggregates.is_empty() {
            plan.add_aggregates(aggregates.into_iter(), &mut builder);
            tracks = decode_plane(file, plan, &Progress::new());
        }
        add_tracks(file, plan, tracks, &mut damage, &mut builder);
    }
    damage.note(&mut builder);
    builder.clock.wall_ns_at_origin = origin.wall_ns(builder.environment.captured_ns.map(|(start, _)| start));
    // Events of real files nest exactly, whether recorded in nanoseconds or finer.
    builder.clock.resolution = Dur::from_ps(1);
    progress.advance((file.len() as u64).saturating_sub(progress.bytes()), 0);
    builder.finish()
}

fn decode_plane(file: &Bytes, plan: &PlanePlan, progress: &Progress) -> Vec<(EventColumns, Oddities)> {
    plan.tracks.par_iter().map(|track| events::decode(file, &track.pieces, &plan.kinds, progress)).collect()
}

fn add_tracks(
    file: &Bytes,
    plan: &PlanePlan,
    tracks: Vec<(EventColumns, Oddities)>,
    damage: &mut Damage,
    builder: &mut TraceBuilder,
) {
    let mut all = Oddities::default();
    for (track, (columns, odd)) in plan.tracks.iter().zip(tracks) {
        builder.events(track.id, columns);
        all.add(odd);
        if track.kind == TrackKind::Counter {
            let name_of = |id| plan.name_of(id);
            counters::add_samples(file, &track.pieces, &plan.names, name_of, plan.process, builder);
        }
    }
    let plane = format!("plane `{}`", plan.name);
    builder.note(NoteKind::NegativeDuration, &plane, all.negative_durations, None);
    builder.note(NoteKind::TimeOutOfRange, &plane, all.out_of_range, None);
    builder.note(NoteKind::DanglingReference, &format!("{plane}: event metadata"), all.dangling, None);
    if let Some((line, event, broken)) = all.first_broken {
        let detail = format!("{plane}, line {}, event {}: {}", line + 1, event + 1, broken.what);
        damage.add(detail, broken.at);
        damage.more += all.broken - 1;
    }
}

/// The profiler's own messages, and the host name.
fn add_texts(file: &[u8], space: &Space, builder: &mut TraceBuilder) {
    let text = |range: &Range<usize>| String::from_utf8_lossy(&file[range.clone()]).into_owned();
    for (kind, ranges) in
        [(NoteKind::CollectionError, &space.errors), (NoteKind::CollectionWarning, &space.warnings)]
    {
        ranges.iter().take(LISTED).for_each(|range| builder.note(kind, &text(range), 1, None));
        builder.note(kind, "", ranges.len().saturating_sub(LISTED) as u64, None);
    }
    let named = space.hostnames.iter().find(|range| !range.is_empty());
    builder.environment.host = named.map(|range| builder.strings.intern_bytes(&file[range.clone()]));
}

/// Damage found so far: the first few places, and the number of further ones.
#[derive(Debug, Default)]
struct Damage {
    first: Vec<(String, usize)>,
    more: u64,
}

impl Damage {
    fn add(&mut self, what: String, at: usize) {
        if self.first.len() < LISTED {
            self.first.push((what, at));
        } else {
            self.more += 1;
        }
    }

    /// Invalid lengths of messages that contain other messages.
    fn add_framing(&mut self, file: &[u8], space: &Space, scanned: &[Scanned]) {
        for scanned in scanned {
            let name = String::from_utf8_lossy(&file[scanned.plane.name.clone()]);
            for (index, line) in scanned.lines.iter().enumerate() {
                if let Some(Broken { what, at }) = line.broken {
                    let (line, event) = (index + 1, line.events + 1);
                    self.add(format!("plane `{name}`, line {line}, event {event}: {what}"), at);
                }
            }
            if let Some(Broken { what, at }) = scanned.plane.broken {
                self.add(format!("plane `{name}`: {what}"), at);
            }
        }
        if let Some(Broken { what, at }) = space.broken {
            self.add(format!("file: {what}"), at);
        }
    }

    fn note(self, builder: &mut TraceBuilder) {
        for (what, at) in self.first {
            builder.note(NoteKind::Damaged, &what, 1, Some(at as u64));
        }
        builder.note(NoteKind::Damaged, "further places", self.more, None);
    }
}
