//! From the file's pid and tid to processes and tracks.
//!
//! The same pair may stand for several tracks: old files number devices and processes alike, and annotations
//! are drawn on the stream that they annotate. The class of their category distinguishes events, and the kind
//! of a track is settled after everything has been read.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_trace::{
    Device, DeviceKind, NoteKind, ProcessId, ProcessKind, StrId, TraceBuilder, TrackId, TrackKind,
};

use super::category::{Class, Hint, device_line, device_of};

/// Beyond this many tracks, all new ones share one: a broken file must not create a track per event.
const MAX_TRACKS: usize = 1 << 16;

/// A pid or a tid.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Id {
    #[default]
    Missing,
    Number(i64),
    Text(StrId),
    /// Stands for all ids beyond the limit.
    Overflow,
}

/// A process of the file.
#[derive(Default)]
struct Process {
    id: Id,
    name: StrId,
    label: StrId,
}

/// Tracks of one pid and tid.
#[derive(Default)]
struct Lane {
    process: u32,
    tid: Id,
    name: StrId,
    work: Option<TrackId>,
    mark: Option<TrackId>,
    other: Option<TrackId>,
    /// Named by a flow before any event; belongs to the first event.
    undecided: Option<TrackId>,
    host: bool,
    capture: bool,
    /// What names say of events without a known category.
    copies: bool,
    kernels: bool,
    calls: bool,
}

impl Lane {
    /// Whether its events can be a device's work, by their names.
    fn may_be_queue(&self) -> bool {
        (self.copies || self.kernels) && !self.calls && !self.host && !self.capture
    }
}

/// A counter or a set of asynchronous operations, which belongs to a process as a whole.
struct Loose {
    process: u32,
    track: TrackId,
    name: StrId,
    kind: TrackKind,
}

/// A place's number.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceId(u32);

/// All processes and tracks of the file.
#[derive(Default)]
pub(crate) struct Tracks {
    processes: Vec<Process>,
    process_lookup: FxHashMap<Id, u32>,
    places: Vec<Lane>,
    place_lookup: FxHashMap<(u32, Id), u32>,
    loose: Vec<Loose>,
    loose_lookup: FxHashMap<(u32, TrackKind, StrId, StrId), TrackId>,
    last: Option<(Id, Id, PlaceId)>,
}

impl Tracks {
    /// The place of a pid and tid, new or known.
    #[inline]
    pub(crate) fn place(&mut self, pid: Id, tid: Id) -> PlaceId {
        if let Some((last_pid, last_tid, place)) = self.last
            && (last_pid, last_tid) == (pid, tid)
        {
            return place;
        }
        let process = self.process(pid);
        let tid = if self.places.len() < MAX_TRACKS { tid } else { self.known(process, tid) };
        let places = &mut self.places;
        let number = *self.place_lookup.entry((process, tid)).or_insert_with(|| {
            places.push(Lane { process, tid, ..Lane::default() });
            places.len() as u32 - 1
        });
        self.last = Some((pid, tid, PlaceId(number)));
        PlaceId(number)
    }

    fn known(&self, process: u32, tid: Id) -> Id {
        if self.place_lookup.contains_key(&(process, tid)) { tid } else { Id::Overflow }
    }

    fn process(&mut self, pid: Id) -> u32 {
        let full = self.processes.len() >= MAX_TRACKS && !self.process_lookup.contains_key(&pid);
        let id = if full { Id::Overflow } else { pid };
        let processes = &mut self.processes;
        *self.process_lookup.entry(id).or_insert_with(|| {
            processes.push(Process { id, ..Process::default() });
            processes.len() as u32 - 1
        })
    }

    /// Remembers a process' name.
    pub(crate) fn name_process(&mut self, pid: Id, name: StrId) {
        let process = self.process(pid);
        self.processes[process as usize].name = name;
    }

    /// Remembers a process' label.
    pub(crate) fn label_process(&mut self, pid: Id, label: StrId) {
        let process = self.process(pid);
        self.processes[process as usize].label = label;
    }

    /// Remembers a thread's name.
    pub(crate) fn name_thread(&mut self, pid: Id, tid: Id, name: StrId) {
        let place = self.place(pid, tid);
        self.places[place.0 as usize].name = name;
    }

    /// The track of a place for events of a class.
    #[inline]
    pub(crate) fn track(&mut self, builder: &mut TraceBuilder, place: PlaceId, class: Class) -> TrackId {
        let place = &mut self.places[place.0 as usize];
        let slot = match class {
            Class::Work => &mut place.work,
            Class::Mark => &mut place.mark,
            Class::Host | Class::Capture | Class::Neutral => {
                place.host |= class == Class::Host;
                place.capture |= class == Class::Capture;
                &mut place.other
            }
        };
        if let Some(track) = *slot {
            return track;
        }
        let number = number_of(builder, place.tid);
        let new =
            || builder.track(ProcessId(0), StrId::default(), TrackKind::Thread, number, TraceBuilder::ARENA);
        *slot.insert(place.undecided.take().unwrap_or_else(new))
    }

    /// Remembers what the name of an event without a known category says about its place.
    pub(crate) fn hint(&mut self, place: PlaceId, hint: Hint) {
        let place = &mut self.places[place.0 as usize];
        match hint {
            Hint::Copy => place.copies = true,
            Hint::Kernel => place.kernels = true,
            Hint::Call => place.calls = true,
        }
    }

    /// The track for the end of a flow at a place.
    pub(crate) fn flow_track(&mut self, builder: &mut TraceBuilder, place: PlaceId) -> TrackId {
        let place = &mut self.places[place.0 as usize];
        let known = place.work.or(place.other).or(place.mark).or(place.undecided);
        known.unwrap_or_else(|| {
            let number = number_of(builder, place.tid);
            let kind = TrackKind::Thread;
            let track = builder.track(ProcessId(0), StrId::default(), kind, number, TraceBuilder::ARENA);
            *place.undecided.insert(track)
        })
    }

    /// A counter's series, or the asynchronous operations of a category; `None` if there are too many.
    pub(crate) fn loose_track(
        &mut self,
        builder: &mut TraceBuilder,
        pid: Id,
        kind: TrackKind,
        name: StrId,
        series: StrId,
    ) -> Option<TrackId> {
        let process = self.process(pid);
        let key = (process, kind, name, series);
        if let Some(&track) = self.loose_lookup.get(&key) {
            return Some(track);
        }
        if self.loose.len() >= MAX_TRACKS {
            return None;
        }
        let name = match (builder.strings.get(name), builder.strings.get(series)) {
            (_, "" | "value") => name,
            (name, series) => {
                let both = format!("{name}/{series}");
                builder.strings.intern(&both)
            }
        };
        let track = builder.track(ProcessId(0), name, kind, 0, TraceBuilder::ARENA);
        self.loose.push(Loose { process, track, name, kind });
        self.loose_lookup.insert(key, track);
        Some(track)
    }

    /// Settles the kinds of all processes and tracks, and assigns the devices to their processes.
    pub(crate) fn finish(self, builder: &mut TraceBuilder, devices: Vec<Device>) {
        let mut settling = Settling::new(builder, &self.processes);
        for place in &self.places {
            let facts = &mut settling.facts[place.process as usize];
            facts.work |= place.work.is_some();
            // A writer without categories: one that shows copies as devices report them shows the device's queues.
            facts.queues |= place.copies && place.may_be_queue();
        }
        for place in &self.places {
            settling.place(place);
        }
        for loose in &self.loose {
            let facts = &settling.facts[loose.process as usize];
            let on_device = facts.device.is_some() || facts.work;
            let kind = if on_device { ProcessKind::Device } else { ProcessKind::Host };
            settling.put(loose.track, loose.process, kind, loose.name, loose.kind);
        }
        settling.empty_devices();
        settling.devices(devices);
        if self.places.len() >= MAX_TRACKS || self.loose.len() >= MAX_TRACKS {
            builder.note(NoteKind::Unknown, "tracks", 1, None);
        }
    }
}

/// The number of a track or process; if it is text, the last number in the text.
fn number_of(builder: &TraceBuilder, id: Id) -> i64 {
    match id {
        Id::Number(number) => number,
        Id::Text(text) => {
            let text = builder.strings.get(text);
            let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
            let digits = &text[text.len() - digits..];
            digits.chars().take(18).collect::<String>().parse().unwrap_or(0)
        }
        Id::Missing | Id::Overflow => 0,
    }
}

/// What is known about a process after everything has been read.
#[derive(Default)]
struct Facts {
    /// The device named in its name or label.
    device: Option<(DeviceKind, Option<i64>)>,
    /// Its name as a device.
    device_name: StrId,
    /// True if it contains device work.
    work: bool,
    /// True if lanes of it are queues by the names of their events.
    queues: bool,
    /// The trace's processes: host, device, other.
    made: [Option<ProcessId>; 3],
}

struct Settling<'b> {
    builder: &'b mut TraceBuilder,
    processes: &'b [Process],
    facts: Vec<Facts>,
}

impl<'b> Settling<'b> {
    fn new(builder: &'b mut TraceBuilder, processes: &'b [Process]) -> Self {
        let facts = processes.iter().map(|process| {
            let of = |name: StrId| device_of(builder.strings.get(name)).map(|device| (device, name));
            let id = match process.id {
                Id::Text(text) => text,
                _ => StrId::default(),
            };
            match of(process.label).or_else(|| of(process.name)).or_else(|| of(id)) {
                Some((device, device_name)) => {
                    Facts { device: Some(device), device_name, ..Facts::default() }
                }
                None => Facts { device_name: process.name, ..Facts::default() },
            }
        });
        let facts = facts.collect();
        Settling { builder, processes, facts }
    }

    fn place(&mut self, place: &Lane) {
        let name = match place.tid {
            Id::Text(text) if place.name == StrId::default() => text,
            _ => place.name,
        };
        if let Some(track) = place.work {
            self.put(track, place.process, ProcessKind::Device, name, TrackKind::Stream);
        }
        if let Some(track) = place.mark {
            self.put(track, place.process, ProcessKind::Device, name, TrackKind::Derived);
        }
        if let Some(track) = place.other.or(place.undecided) {
            let (process, kind) = self.kind_of_other(place, name);
            self.put(track, place.process, process, name, kind);
        }
    }

    fn kind_of_other(&self, place: &Lane, name: StrId) -> (ProcessKind, TrackKind) {
        let facts = &self.facts[place.process as usize];
        if place.capture || self.is_capture(place.process) {
            (ProcessKind::Other, TrackKind::Derived)
        } else if place.host {
            (ProcessKind::Host, TrackKind::Thread)
        } else if facts.queues && !facts.work && place.may_be_queue() {
            (ProcessKind::Device, TrackKind::Stream)
        } else if facts.work {
            (ProcessKind::Device, TrackKind::Derived)
        } else if facts.device.is_some() {
            (ProcessKind::Device, device_line(self.builder.strings.get(name)))
        } else {
            (ProcessKind::Host, TrackKind::Thread)
        }
    }

    /// Whether it is the pseudo process on which a profiler draws its own captures.
    fn is_capture(&self, process: u32) -> bool {
        let Id::Text(text) = self.processes[process as usize].id else { return false };
        matches!(self.builder.strings.get(text), "Spans" | "Traces" | "")
    }

    fn put(&mut self, track: TrackId, process: u32, owner: ProcessKind, name: StrId, kind: TrackKind) {
        let process = self.made(process, owner);
        self.builder.move_track(track, process);
        self.builder.describe_track(track, name, kind);
    }

    /// The trace's process for the file's process, created on first use.
    fn made(&mut self, process: u32, kind: ProcessKind) -> ProcessId {
        let file = &self.processes[process as usize];
        let facts = &mut self.facts[process as usize];
        let (slot, name) = match kind {
            ProcessKind::Host => (0, file.name),
            ProcessKind::Device => (1, facts.device_name),
            ProcessKind::Other => (2, file.name),
        };
        let name = match file.id {
            Id::Text(text) if name == StrId::default() => text,
            _ => name,
        };
        *facts.made[slot].get_or_insert_with(|| {
            let number = number_of(self.builder, file.id);
            self.builder.process(name, kind, number)
        })
    }

    /// TensorFlow lists the devices that it uses, also if nothing of them was recorded. PyTorch labels devices that it does
    /// not use.
    fn empty_devices(&mut self) {
        for process in 0..self.processes.len() {
            let named = device_of(self.builder.strings.get(self.processes[process].name)).is_some();
            let lists = self.builder.strings.get(self.processes[process].name).starts_with("/device:");
            if named && lists {
                self.made(process as u32, ProcessKind::Device);
            }
        }
    }

    /// Adds the listed devices, and unlisted devices that have work.
    fn devices(&mut self, listed: Vec<Device>) {
        let mut at_work: Vec<(ProcessId, DeviceKind, i64)> = Vec::new();
        for (facts, process) in self.facts.iter().zip(self.processes) {
            if let Some(made) = facts.made[1] {
                let (kind, ordinal) = facts.device.unwrap_or((DeviceKind::Gpu, None));
                let number = ordinal.unwrap_or_else(|| number_of(self.builder, process.id));
                at_work.push((made, kind, number));
            }
        }
        let mut by_number: FxHashMap<i64, VecDeque<ProcessId>> = FxHashMap::default();
        for &(process, _, number) in &at_work {
            by_number.entry(number).or_default().push_back(process);
        }
        let mut listed_processes = FxHashSet::default();
        for mut device in listed {
            device.process = by_number.get_mut(&device.number).and_then(VecDeque::pop_front);
            listed_processes.extend(device.process);
            self.builder.device(device);
        }
        at_work.retain(|(process, ..)| !listed_processes.contains(process));
        at_work.sort_by_key(|&(process, _, number)| (number, process));
        for (process, kind, number) in at_work {
            self.builder.device(Device { process: Some(process), ..Device::new(kind, number) });
        }
    }
}
