//! What was recorded: events and their arguments, tracks, counters, arrows, launches, devices, hosts. Long lists are not
//! copied: their values are taken from the trace row by row.

use std::borrow::Cow;

use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_results::words::terms;
use stepscope_session::HostProfile;
use stepscope_trace::{
    Device, FlowDirection, FlowPoint, Note, NoteKind, Process, ProcessKind, StrId, Time, TrackId, TrackKind,
};

use crate::cell::Cell;
use crate::recording::{Host, Place, Recording, id, ns, ns_of_length};
use crate::rows::{Rows, Sheet};
use crate::schema::Holds::{Any, Int, Real, Text};
use crate::schema::{Column, From, Table, table};

/// The tables of this file.
pub(crate) fn all() -> [Table; 11] {
    [EVENT, ARG, TRACK, PROCESS, COUNTER, FLOW, LAUNCH, DEVICE, HOST, NOTE, STRING]
}

pub(crate) const EVENT: Table = Table {
    name: "event",
    about: "Everything that was recorded with a start and a duration. Also called `slice`.",
    columns: Cow::Borrowed(&[
        Column::new("id", Int, "number of the event"),
        Column::new("ts", Int, "start, ns since the session's origin"),
        Column::new("dur", Int, "duration, ns"),
        Column::new("name", Text, "name as recorded"),
        Column::new("category", Text, "the profiler's own category"),
        Column::new("track_id", Int, "the track it is on"),
        Column::new("depth", Int, "number of events around it on its track"),
        Column::new("parent_id", Int, "the event directly around it"),
        Column::new(
            "step",
            Int,
            "number of the step in which it starts; on a device, of the step that launched it",
        ),
        Column::new("state", Text, "what it does: compute, input, sync, launch, …"),
        Column::new("self_dur", Int, "duration without the events inside, ns"),
        Column::new("op", Text, "type of an op, short name of a kernel"),
        Column::new("host", Text, "host on which it was recorded"),
        Column::new("args", Text, "its arguments as a JSON object").hidden(),
        Column::new("ts_ps", Int, "start, ps").hidden(),
        Column::new("dur_ps", Int, "duration, ps").hidden(),
        Column::new("name_id", Int, "its name in `string`").hidden(),
        Column::new("form", Text, "slice, instant or aggregate").hidden(),
        Column::new("role", Text, "what it is: op, kernel, copy, launch, annotation, …").hidden(),
    ]),
    from: From::Events,
};

pub(crate) const ARG: Table = Table {
    name: "arg",
    about: "Arguments of events, one row each. Give `event_id`: all other queries decode every argument.",
    columns: Cow::Borrowed(&[
        Column::new("event_id", Int, "the event"),
        Column::new("key", Text, "name of the argument"),
        Column::new("value", Any, "its value"),
    ]),
    from: From::Arguments,
};

table! { TRACK: "track", "Threads, device queues and counters.", tracks => (number, place, device),
    id: Int "number of the track" => number;
    name: Text "name as recorded" => owned(place.trace().str(place.track.name));
    kind: Text "thread, stream, async, counter or derived" => track_kind(place.track.kind);
    process_id: Int "the process it belongs to" => place.host.first_process + place.track.process.index();
    number: Int "the profiler's own number: thread id, stream id" => place.track.number;
    device: Text "the device, if it is a device's queue" => device;
    events: Int "number of its events" => place.track.len();
    host: Text "its host" => owned(&place.loaded.host);
}

fn tracks(recording: &Recording) -> impl Iterator<Item = (u32, Place<'_>, Cell<'static>)> {
    let rows = (0..).map_while(|number: u32| recording.place(number).map(|place| (number, place)));
    rows.map(|(number, place)| {
        let process = place.trace().process(place.track.process);
        let on_device = process.kind == ProcessKind::Device;
        let device = if on_device { owned(place.trace().str(process.name)) } else { Cell::Null };
        (number, place, device)
    })
}

fn track_kind(kind: TrackKind) -> &'static str {
    match kind {
        TrackKind::Thread => "thread",
        TrackKind::Stream => "stream",
        TrackKind::Async => "async",
        TrackKind::Counter => "counter",
        TrackKind::Derived => "derived",
    }
}

/// Text that is kept; empty text is unknown.
pub(super) fn owned(text: &str) -> Cell<'static> {
    if text.is_empty() { Cell::Null } else { Cell::from(text.to_owned()) }
}

table! { PROCESS: "process", "Groups of tracks: programs and devices.", processes => (id, process, loaded),
    id: Int "number of the process" => id;
    name: Text "name as recorded" => owned(loaded.trace.str(process.name));
    kind: Text "host, device or other" => process_kind(process.kind);
    pid: Int "the profiler's own number" => process.number;
    host: Text "its host" => owned(&loaded.host);
}

fn processes(recording: &Recording) -> impl Iterator<Item = (usize, &Process, &HostProfile)> {
    recording.each_host().flat_map(|(loaded, host)| {
        let numbered = (host.first_process..).zip(loaded.trace.processes());
        numbered.map(move |(id, process)| (id, process, loaded))
    })
}

fn process_kind(kind: ProcessKind) -> &'static str {
    match kind {
        ProcessKind::Host => "host",
        ProcessKind::Device => "device",
        ProcessKind::Other => "other",
    }
}

const COUNTER: Table = Table {
    name: "counter",
    about: "Samples of counters.",
    columns: Cow::Borrowed(&[
        Column::new("track_id", Int, "the counter's track"),
        Column::new("ts", Int, "when, ns since the session's origin"),
        Column::new("value", Real, "the value"),
        Column::new("name", Text, "name of the counter"),
        Column::new("host", Text, "its host"),
    ]),
    from: From::Rows(|recording| Box::new(Counters::of(recording))),
};

/// The tracks with samples: number, first row, and one entry more.
struct Counters(Vec<(u32, usize)>);

impl Counters {
    fn of(recording: &Recording) -> Self {
        let (mut starts, mut rows) = (Vec::new(), 0);
        for number in 0..u32::try_from(recording.tracks()).unwrap_or(u32::MAX) {
            let samples = recording.place(number).map_or(0, |place| place.track.samples.times.len());
            if samples > 0 {
                starts.push((number, rows));
                rows += samples;
            }
        }
        starts.push((u32::MAX, rows));
        Counters(starts)
    }
}

impl Rows for Counters {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |&(_, rows)| rows)
    }

    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        let after = self.0.partition_point(|&(_, first)| first <= row);
        let Some(&(number, first)) = after.checked_sub(1).and_then(|at| self.0.get(at)) else {
            return Cell::Null;
        };
        let Some(place) = recording.place(number) else { return Cell::Null };
        let samples = &place.track.samples;
        let at = samples.times.get(row - first).map(|at| at.ps().saturating_add(place.host.shift_ps));
        match column {
            0 => number.into(),
            1 => at.map(ns).into(),
            2 => samples.values.get(row - first).copied().into(),
            3 => Cell::known(place.trace().str(place.track.name)),
            _ => place.loaded.host.as_str().into(),
        }
    }
}

table! { FLOW: "flow", "Arrows between events, as recorded.", flows => (from, out_event, in_event, loaded),
    id: Int "number of the arrow within its category" => from.id;
    category: Text "kind of arrow" => owned(loaded.trace.str(from.category));
    out_event: Int "the event in which it starts" => out_event;
    in_event: Int "the event in which it ends" => in_event;
    host: Text "its host" => owned(&loaded.host);
}

/// An arrow, with the events in which it starts and ends.
type Arrow<'w> = (&'w FlowPoint, Option<i64>, Option<i64>, &'w HostProfile);

/// An arrow leads from each of its points to the next.
fn flows(recording: &Recording) -> impl Iterator<Item = Arrow<'_>> {
    recording.each_host().enumerate().flat_map(move |(number, (loaded, _))| {
        let points = loaded.trace.flows();
        let pairs = points.iter().zip(points.iter().skip(1)).filter(|(from, to)| {
            let same = from.category == to.category && from.id == to.id;
            same && from.direction != FlowDirection::In && to.direction != FlowDirection::Out
        });
        pairs.map(move |(from, to)| {
            (from, event_around(recording, number, from), event_around(recording, number, to), loaded)
        })
    })
}

/// The innermost event around a point.
fn event_around(recording: &Recording, number: usize, point: &FlowPoint) -> Option<i64> {
    let track = recording.hosts.get(number)?.first_track.checked_add(point.track.0)?;
    let place = recording.place(track).filter(|place| place.id() == TrackId(point.track.0))?;
    let family = recording.family(track)?;
    let next = place.track.first_from(Time::from_ps(point.time.ps().saturating_add(1)));
    let mut found = next.checked_sub(1);
    while let Some(index) = found {
        if place.track.end(index) >= point.time {
            return Some(id(track, index));
        }
        found = family.parent(index);
    }
    None
}

const LAUNCH: Table = Table {
    name: "launch",
    about: "Which call on the host launched which work on a device.",
    columns: Cow::Borrowed(&[
        Column::new("call_event", Int, "the call"),
        Column::new("work_event", Int, "the work"),
        Column::new("delay", Int, "from the call's start to the work's, ns"),
        Column::new("host", Text, "its host"),
    ]),
    from: From::Rows(|recording| Box::new(Launches::of(recording))),
};

/// The first row of each host, and one entry more.
struct Launches(Vec<usize>);

impl Launches {
    fn of(recording: &Recording) -> Self {
        let mut starts = vec![0];
        for number in 0..recording.hosts.len() {
            starts.push(starts.last().copied().unwrap_or(0) + recording.launches(number).len());
        }
        Launches(starts)
    }
}

impl Rows for Launches {
    fn len(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        let Some(number) = self.0.partition_point(|&first| first <= row).checked_sub(1) else {
            return Cell::Null;
        };
        let first = self.0.get(number).copied().unwrap_or(0);
        let Some(launch) = recording.launches(number).get(row - first) else { return Cell::Null };
        let Some(loaded) = recording.profile().hosts.get(number) else { return Cell::Null };
        match column {
            0 => recording.id_of(number, launch.call).into(),
            1 => recording.id_of(number, launch.work).into(),
            2 => {
                let started = loaded.trace.track(launch.work.track).start(launch.work.index as usize);
                ns_of_length((started - launch.called).ps()).into()
            }
            _ => loaded.host.as_str().into(),
        }
    }
}

table! { DEVICE: "device", "Devices that the recording lists.", devices => (device, loaded, host),
    number: Int "number in the file" => device.number;
    name: Text "model" => owned(loaded.trace.str(device.name));
    kind: Text "cpu, gpu, tpu or other" => terms::device_kind(device.kind);
    process_id: Int "the process with its tracks" => device.process.map(|process| host.first_process + process.index());
    vendor: Text "who makes it" => device.vendor.map_or(Cell::Null, |vendor| owned(loaded.trace.str(vendor)));
    multiprocessors: Int "streaming multiprocessors or compute units" => device.multiprocessors;
    clock_khz: Int "core clock, kHz" => device.clock_khz;
    memory_bytes: Int "device memory, bytes" => device.memory_bytes;
    memory_bandwidth: Int "peak memory bandwidth, bytes per second" => device.memory_bandwidth;
    compute_capability: Text "of CUDA" => device.compute_capability.map(|(major, minor)| format!("{major}.{minor}"));
    host: Text "its host" => owned(&loaded.host);
}

fn devices(recording: &Recording) -> impl Iterator<Item = (&Device, &HostProfile, &Host)> {
    recording
        .each_host()
        .flat_map(|(loaded, host)| loaded.trace.devices().iter().map(move |device| (device, loaded, host)))
}

const HOST: Table = Table {
    name: "host",
    about: "Hosts of the session, one file each.",
    columns: Cow::Borrowed(&[
        Column::new("name", Text, "name"),
        Column::new("path", Text, "file that was read"),
        Column::new("format", Text, "its format"),
        Column::new("bytes", Int, "its size"),
        Column::new("events", Int, "number of events"),
        Column::new("ts", Int, "start of the recording, ns since the session's origin"),
        Column::new("dur", Int, "length of the recording, ns"),
        Column::new(
            "clock_shift_ns",
            Int,
            "what to add to times of this host to put all hosts on one clock, by the ends of common collectives; NULL if unknown",
        ),
        Column::new(
            "clock_uncertainty_ns",
            Int,
            "median distance of single collectives from that; NULL if unknown",
        ),
    ]),
    from: From::Rows(hosts),
};

fn hosts(recording: &Recording) -> Box<dyn Rows> {
    let one = |(loaded, host): (&HostProfile, &Host)| {
        let span = loaded.trace.span();
        vec![
            owned(&loaded.host),
            owned(&loaded.path),
            loaded.format.name.into(),
            loaded.bytes.into(),
            loaded.trace.events().into(),
            span.map(|span| ns(span.start.ps().saturating_add(host.shift_ps))).into(),
            span.map(|span| ns_of_length(span.dur().ps())).into(),
        ]
    };
    Box::new(HostRows(Sheet(recording.each_host().map(one).collect())))
}

/// Hosts, with their clocks: those need an analysis of all hosts, so they are computed when a query reads them.
struct HostRows(Sheet);

impl Rows for HostRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        let clock = || recording.clocks().get(row).copied().flatten();
        match HOST.columns.get(column).map(|column| column.name) {
            Some("clock_shift_ns") => clock().map(|clock| ns_of_length(clock.shift.ps())).into(),
            Some("clock_uncertainty_ns") => clock().map(|clock| ns_of_length(clock.spread.ps())).into(),
            _ => self.0.cell(recording, row, column),
        }
    }
}

table! { NOTE: "note", "What the reader noticed about the files.", notes => (note, loaded),
    kind: Text "damaged, repaired, unknown, …" => note_kind(note.kind);
    detail: Text "details" => owned(&note.detail);
    count: Int "how many times" => note.count;
    offset: Int "position of the first one in the file, bytes" => note.offset;
    host: Text "its host" => owned(&loaded.host);
}

fn notes(recording: &Recording) -> impl Iterator<Item = (&Note, &HostProfile)> {
    recording.each_host().flat_map(|(loaded, _)| loaded.trace.notes().iter().map(move |note| (note, loaded)))
}

fn note_kind(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Damaged => "damaged",
        NoteKind::Changed => "changed",
        NoteKind::OverBudget => "over-budget",
        NoteKind::CollectionError => "collection-error",
        NoteKind::CollectionWarning => "collection-warning",
        NoteKind::DroppedByRecorder => "dropped",
        NoteKind::Repaired => "repaired",
        NoteKind::NegativeDuration => "negative-duration",
        NoteKind::TimeOutOfRange => "time-out-of-range",
        NoteKind::DanglingReference => "dangling-reference",
        NoteKind::Unpaired => "unpaired",
        NoteKind::Unknown => "unknown",
        NoteKind::Unnamed => "unnamed",
    }
}

const STRING: Table = Table {
    name: "string",
    about: "Texts of the recording. An even id is a text, the odd one after it is the same text as a short kernel name.",
    columns: Cow::Borrowed(&[
        Column::new("id", Int, "number of the text"),
        Column::new("value", Text, "the text"),
    ]),
    from: From::Rows(|recording| Box::new(Strings::of(recording))),
};

/// Number of rows: two per text.
struct Strings(usize);

impl Strings {
    fn of(recording: &Recording) -> Self {
        Strings(recording.profile().hosts.iter().map(|loaded| loaded.trace.strings().len() * 2).sum())
    }
}

impl Rows for Strings {
    fn len(&self) -> usize {
        self.0
    }

    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        if column == 0 {
            return row.into();
        }
        let of = |(_, host): &(&HostProfile, &Host)| host.first_string <= row / 2;
        let Some((loaded, host)) = recording.each_host().take_while(of).last() else { return Cell::Null };
        let strings = loaded.trace.strings();
        let number = row / 2 - host.first_string;
        if number >= strings.len() {
            return Cell::Null;
        }
        let text = strings.get(StrId::from_index(number));
        if row.is_multiple_of(2) { text.into() } else { Cell::Text(kernel_short_name(text)) }
    }
}
