//! The whole trace and its accessors.

use crate::args::{ArgRef, ArgSource, Value};
use crate::device::{Device, Environment};
use crate::flow::FlowPoint;
use crate::ids::{DeviceId, EventId, KindId, ProcessId, StrId, TrackId};
use crate::kind::Kind;
use crate::kind_set::KindSet;
use crate::memory::MemoryLog;
use crate::note::{Note, NoteKind};
use crate::strings::StringTable;
use crate::time::{Clock, Span};
use crate::track::Track;

/// The kind of a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessKind {
    /// Host threads.
    Host,
    /// A device's queues.
    Device,
    /// Anything else: metadata, scheduling, custom planes.
    Other,
}

/// A group of tracks.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its id.
    pub id: ProcessId,
    /// Its name as recorded.
    pub name: StrId,
    /// Its kind.
    pub kind: ProcessKind,
    /// The profiler's own number.
    pub number: i64,
    /// The device whose queues it contains.
    pub device: Option<DeviceId>,
}

/// The trace of one host. Immutable; built by [`crate::TraceBuilder`].
#[derive(Debug)]
pub struct Trace {
    pub(crate) strings: StringTable,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) processes: Vec<Process>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) flows: Vec<FlowPoint>,
    pub(crate) devices: Vec<Device>,
    pub(crate) environment: Environment,
    pub(crate) notes: Vec<Note>,
    pub(crate) clock: Clock,
    pub(crate) arg_sources: Vec<Box<dyn ArgSource>>,
    pub(crate) attachments: Vec<(StrId, ArgRef)>,
    pub(crate) memory: Option<Box<MemoryLog>>,
    pub(crate) span: Option<Span>,
    pub(crate) events: u64,
}

impl Trace {
    /// The kinds for which `wanted` holds, to find their events with [`Track::events_of`].
    pub fn kinds_where(&self, wanted: impl FnMut(KindId) -> bool) -> KindSet {
        KindSet::of(self.kinds.len(), wanted)
    }

    /// All interned strings.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The text of `id`.
    #[inline]
    pub fn str(&self, id: StrId) -> &str {
        self.strings.get(id)
    }

    /// All kinds of events; a [`KindId`] is an index.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kind `id`.
    #[inline]
    pub fn kind(&self, id: KindId) -> &Kind {
        &self.kinds[id.index()]
    }

    /// The name of the kind `id`.
    #[inline]
    pub fn kind_name(&self, id: KindId) -> &str {
        self.str(self.kind(id).name)
    }

    /// All processes.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The process `id`.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.index()]
    }

    /// All tracks; a [`TrackId`] is an index.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The track `id`.
    #[inline]
    pub fn track(&self, id: TrackId) -> &Track {
        &self.tracks[id.index()]
    }

    /// All flow points, by category, id and time.
    pub fn flows(&self) -> &[FlowPoint] {
        &self.flows
    }

    /// All devices.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// What is known about the environment of the run.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The reader's notes, worst first.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Adds a note about the file as a whole, if that is only known once the file has been read.
    pub fn note(&mut self, kind: NoteKind, detail: &str, count: u64) {
        self.notes.push(Note { kind, detail: detail.to_owned(), count, offset: None });
        self.notes.sort_by(|a, b| (a.kind, &a.detail).cmp(&(b.kind, &b.detail)));
    }

    /// Gives back the memory of files that arguments are decoded from. To be called after a pass that decodes many.
    pub fn rest_arguments(&self) {
        self.arg_sources.iter().for_each(|source| source.rest());
    }

    /// Whether the files that arguments are decoded from still have the content that was read.
    pub fn is_intact(&self) -> bool {
        self.arg_sources.iter().all(|source| source.is_intact())
    }

    /// How the trace's time relates to wall-clock time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Named records that belong to no event, e.g. compiled modules.
    pub fn attachments(&self) -> impl Iterator<Item = (StrId, Args<'_>)> {
        self.attachments.iter().map(|&(name, at)| (name, Args { trace: self, refs: [Some(at), None] }))
    }

    /// Blocks of memory with their owners, if the file records them as such.
    pub fn memory(&self) -> Option<&MemoryLog> {
        self.memory.as_deref()
    }

    /// From the first event's start to the last one's end; `None` without events and samples.
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// Number of events on all tracks.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The arguments of an event: its own, then those of its kind.
    #[inline]
    pub fn args(&self, event: EventId) -> Args<'_> {
        let track = self.track(event.track);
        self.args_at(track, event.index as usize)
    }

    /// The arguments of the `index`th event of `track`: its own, then those of its kind.
    #[inline]
    pub fn args_at(&self, track: &Track, index: usize) -> Args<'_> {
        let shared = self.kind(track.kind_of(index)).shared_args;
        Args { trace: self, refs: [track.args_of(index), shared] }
    }

    /// The arguments that all events of a kind share.
    pub fn kind_args(&self, kind: KindId) -> Args<'_> {
        Args { trace: self, refs: [None, self.kind(kind).shared_args] }
    }

    /// Heap memory in bytes, including arguments; mapped files do not count.
    pub fn heap_bytes(&self) -> usize {
        self.strings.heap_bytes()
            + self.kinds.capacity() * size_of::<Kind>()
            + self.tracks.iter().map(Track::heap_bytes).sum::<usize>()
            + self.tracks.capacity() * size_of::<Track>()
            + self.flows.capacity() * size_of::<FlowPoint>()
            + self.arg_sources.iter().map(|source| source.heap_bytes()).sum::<usize>()
            + self.memory.as_ref().map_or(0, |memory| memory.heap_bytes())
    }
}

/// The arguments of one event, not yet decoded.
#[derive(Copy, Clone)]
pub struct Args<'t> {
    trace: &'t Trace,
    refs: [Option<ArgRef>; 2],
}

impl<'t> Args<'t> {
    /// Calls `visit` for each argument.
    pub fn visit(self, mut visit: impl FnMut(StrId, Value<'t>)) {
        for at in self.refs.into_iter().flatten() {
            if let Some(source) = self.trace.arg_sources.get(at.source.index()) {
                source.visit(at.at, &self.trace.strings, &mut visit);
            }
        }
    }

    /// The first argument with the key `key`.
    pub fn get(self, key: StrId) -> Option<Value<'t>> {
        let mut found = None;
        self.visit(|k, value| {
            if k == key && found.is_none() {
                found = Some(value);
            }
        });
        found
    }

    /// The first argument with this name. Prefer [`Args::get`] in loops: it compares integers.
    pub fn named(self, name: &str) -> Option<Value<'t>> {
        self.get(self.trace.strings.find(name)?)
    }

    /// All arguments with their names.
    pub fn collect(self) -> Vec<(&'t str, Value<'t>)> {
        let mut all = Vec::new();
        self.visit(|key, value| all.push((self.trace.str(key), value)));
        all
    }
}
