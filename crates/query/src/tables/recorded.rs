//! What was recorded: events and their arguments, tracks, counters, arrows, launches, devices, hosts. Long lists are not
//! copied: their values are taken from the trace row by row.

use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_render::words::terms;
use stepscope_trace::{FlowDirection, FlowPoint, NoteKind, ProcessKind, StrId, Time, TrackId, TrackKind};

use crate::cell::Cell;
use crate::rows::{Rows, Sheet};
use crate::schema::Holds::{Any, Int, Real, Text};
use crate::schema::{Column, From, Table};
use crate::world::{World, id, ns, ns_of_length};

pub(crate) const EVENT: Table = Table {
    name: "event",
    about: "Everything that was recorded with a start and a duration. Also called `slice`.",
    columns: &[
        Column::new("id", Int, "number of the event"),
        Column::new("ts", Int, "start, ns since the session's origin"),
        Column::new("dur", Int, "duration, ns"),
        Column::new("name", Text, "name as recorded"),
        Column::new("category", Text, "the profiler's own category"),
        Column::new("track_id", Int, "the track it is on"),
        Column::new("depth", Int, "number of events around it on its track"),
        Column::new("parent_id", Int, "the event directly around it"),
        Column::new("step", Int, "number of the step in which it starts"),
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
    ],
    from: From::Events,
};

pub(crate) const ARG: Table = Table {
    name: "arg",
    about: "Arguments of events, one row each. Give `event_id`: all other queries decode every argument.",
    columns: &[
        Column::new("event_id", Int, "the event"),
        Column::new("key", Text, "name of the argument"),
        Column::new("value", Any, "its value"),
    ],
    from: From::Arguments,
};

pub(crate) const TRACK: Table = Table {
    name: "track",
    about: "Threads, device queues and counters.",
    columns: &[
        Column::new("id", Int, "number of the track"),
        Column::new("name", Text, "name as recorded"),
        Column::new("kind", Text, "thread, stream, async, counter or derived"),
        Column::new("process_id", Int, "the process it belongs to"),
        Column::new("number", Int, "the profiler's own number: thread id, stream id"),
        Column::new("device", Text, "the device, if it is a device's queue"),
        Column::new("events", Int, "number of its events"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(tracks),
};

fn tracks(world: &World) -> Box<dyn Rows> {
    let rows = (0..).map_while(|number: u32| world.place(number).map(|place| (number, place)));
    let one = |(number, place): (u32, crate::world::Place<'_>)| {
        let (trace, track) = (place.trace(), place.track);
        let process = trace.process(track.process);
        let on_device = process.kind == ProcessKind::Device;
        vec![
            number.into(),
            owned(trace.str(track.name)),
            track_kind(track.kind).into(),
            (place.host.first_process + track.process.index()).into(),
            track.number.into(),
            if on_device { owned(trace.str(process.name)) } else { Cell::Null },
            track.len().into(),
            owned(&place.loaded.host),
        ]
    };
    Box::new(Sheet(rows.map(one).collect()))
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

pub(crate) const PROCESS: Table = Table {
    name: "process",
    about: "Groups of tracks: programs and devices.",
    columns: &[
        Column::new("id", Int, "number of the process"),
        Column::new("name", Text, "name as recorded"),
        Column::new("kind", Text, "host, device or other"),
        Column::new("pid", Int, "the profiler's own number"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(processes),
};

fn processes(world: &World) -> Box<dyn Rows> {
    let mut rows = Vec::new();
    for (loaded, host) in world.each_host() {
        let trace = &loaded.trace;
        for (place, process) in trace.processes().iter().enumerate() {
            let kind = match process.kind {
                ProcessKind::Host => "host",
                ProcessKind::Device => "device",
                ProcessKind::Other => "other",
            };
            rows.push(vec![
                (host.first_process + place).into(),
                owned(trace.str(process.name)),
                kind.into(),
                process.number.into(),
                owned(&loaded.host),
            ]);
        }
    }
    Box::new(Sheet(rows))
}

pub(crate) const COUNTER: Table = Table {
    name: "counter",
    about: "Samples of counters.",
    columns: &[
        Column::new("track_id", Int, "the counter's track"),
        Column::new("ts", Int, "when, ns since the session's origin"),
        Column::new("value", Real, "the value"),
        Column::new("name", Text, "name of the counter"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(|world| Box::new(Counters::of(world))),
};

/// The tracks with samples: number, first row, and one entry more.
struct Counters(Vec<(u32, usize)>);

impl Counters {
    fn of(world: &World) -> Self {
        let (mut starts, mut rows) = (Vec::new(), 0);
        for number in 0..u32::try_from(world.tracks()).unwrap_or(u32::MAX) {
            let samples = world.place(number).map_or(0, |place| place.track.samples.times.len());
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

    fn cell<'a>(&'a self, world: &'a World, row: usize, column: usize) -> Cell<'a> {
        let after = self.0.partition_point(|&(_, first)| first <= row);
        let Some(&(number, first)) = after.checked_sub(1).and_then(|at| self.0.get(at)) else {
            return Cell::Null;
        };
        let Some(place) = world.place(number) else { return Cell::Null };
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

pub(crate) const FLOW: Table = Table {
    name: "flow",
    about: "Arrows between events, as recorded.",
    columns: &[
        Column::new("id", Int, "number of the arrow within its category"),
        Column::new("category", Text, "kind of arrow"),
        Column::new("out_event", Int, "the event in which it starts"),
        Column::new("in_event", Int, "the event in which it ends"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(flows),
};

/// An arrow leads from each of its points to the next.
fn flows(world: &World) -> Box<dyn Rows> {
    let mut rows = Vec::new();
    for (number, (loaded, _)) in world.each_host().enumerate() {
        let points = loaded.trace.flows();
        for (from, to) in points.iter().zip(points.iter().skip(1)) {
            let same = from.category == to.category && from.id == to.id;
            if !same || from.direction == FlowDirection::In || to.direction == FlowDirection::Out {
                continue;
            }
            rows.push(vec![
                from.id.into(),
                owned(loaded.trace.str(from.category)),
                event_around(world, number, from).into(),
                event_around(world, number, to).into(),
                owned(&loaded.host),
            ]);
        }
    }
    Box::new(Sheet(rows))
}

/// The innermost event around a point.
fn event_around(world: &World, number: usize, point: &FlowPoint) -> Option<i64> {
    let track = world.hosts.get(number)?.first_track.checked_add(point.track.0)?;
    let place = world.place(track).filter(|place| place.id() == TrackId(point.track.0))?;
    let family = world.family(track)?;
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

pub(crate) const LAUNCH: Table = Table {
    name: "launch",
    about: "Which call on the host launched which work on a device.",
    columns: &[
        Column::new("call_event", Int, "the call"),
        Column::new("work_event", Int, "the work"),
        Column::new("delay", Int, "from the call's start to the work's, ns"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(|world| Box::new(Launches::of(world))),
};

/// The first row of each host, and one entry more.
struct Launches(Vec<usize>);

impl Launches {
    fn of(world: &World) -> Self {
        let mut starts = vec![0];
        for number in 0..world.hosts.len() {
            starts.push(starts.last().copied().unwrap_or(0) + world.launches(number).len());
        }
        Launches(starts)
    }
}

impl Rows for Launches {
    fn len(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    fn cell<'a>(&'a self, world: &'a World, row: usize, column: usize) -> Cell<'a> {
        let Some(number) = self.0.partition_point(|&first| first <= row).checked_sub(1) else {
            return Cell::Null;
        };
        let first = self.0.get(number).copied().unwrap_or(0);
        let Some(launch) = world.launches(number).get(row - first) else { return Cell::Null };
        let Some(loaded) = world.profile().hosts.get(number) else { return Cell::Null };
        match column {
            0 => world.id_of(number, launch.call).into(),
            1 => world.id_of(number, launch.work).into(),
            2 => {
                let started = loaded.trace.track(launch.work.track).start(launch.work.index as usize);
                ns_of_length((started - launch.called).ps()).into()
            }
            _ => loaded.host.as_str().into(),
        }
    }
}

pub(crate) const DEVICE: Table = Table {
    name: "device",
    about: "Devices that the recording lists.",
    columns: &[
        Column::new("number", Int, "number in the file"),
        Column::new("name", Text, "model"),
        Column::new("kind", Text, "cpu, gpu, tpu or other"),
        Column::new("process_id", Int, "the process with its tracks"),
        Column::new("vendor", Text, "who makes it"),
        Column::new("multiprocessors", Int, "streaming multiprocessors or compute units"),
        Column::new("clock_khz", Int, "core clock, kHz"),
        Column::new("memory_bytes", Int, "device memory, bytes"),
        Column::new("memory_bandwidth", Int, "peak memory bandwidth, bytes per second"),
        Column::new("compute_capability", Text, "of CUDA"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(devices),
};

fn devices(world: &World) -> Box<dyn Rows> {
    let mut rows = Vec::new();
    for (loaded, host) in world.each_host() {
        let trace = &loaded.trace;
        for device in trace.devices() {
            rows.push(vec![
                device.number.into(),
                owned(trace.str(device.name)),
                terms::device_kind(device.kind).into(),
                device.process.map(|process| host.first_process + process.index()).into(),
                device.vendor.map_or(Cell::Null, |vendor| owned(trace.str(vendor))),
                device.multiprocessors.into(),
                device.clock_khz.into(),
                device.memory_bytes.into(),
                device.memory_bandwidth.into(),
                device.compute_capability.map(|(major, minor)| format!("{major}.{minor}")).into(),
                owned(&loaded.host),
            ]);
        }
    }
    Box::new(Sheet(rows))
}

pub(crate) const HOST: Table = Table {
    name: "host",
    about: "Hosts of the session, one file each.",
    columns: &[
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
    ],
    from: From::Rows(hosts),
};

fn hosts(world: &World) -> Box<dyn Rows> {
    let one = |(loaded, host): (&stepscope_session::HostProfile, &crate::world::Host)| {
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
    Box::new(HostRows(Sheet(world.each_host().map(one).collect())))
}

/// Hosts, with their clocks: those need an analysis of all hosts, so they are computed when a query reads them.
struct HostRows(Sheet);

impl Rows for HostRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell<'a>(&'a self, world: &'a World, row: usize, column: usize) -> Cell<'a> {
        let clock = || world.clocks().get(row).copied().flatten();
        match HOST.columns.get(column).map(|column| column.name) {
            Some("clock_shift_ns") => clock().map(|clock| ns_of_length(clock.shift.ps())).into(),
            Some("clock_uncertainty_ns") => clock().map(|clock| ns_of_length(clock.spread.ps())).into(),
            _ => self.0.cell(world, row, column),
        }
    }
}

pub(crate) const NOTE: Table = Table {
    name: "note",
    about: "What the reader noticed about the files.",
    columns: &[
        Column::new("kind", Text, "damaged, repaired, unknown, …"),
        Column::new("detail", Text, "details"),
        Column::new("count", Int, "how many times"),
        Column::new("offset", Int, "position of the first one in the file, bytes"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(notes),
};

fn notes(world: &World) -> Box<dyn Rows> {
    let rows = world.each_host().flat_map(|(loaded, _)| {
        loaded.trace.notes().iter().map(|note| {
            vec![
                note_kind(note.kind).into(),
                owned(&note.detail),
                note.count.into(),
                note.offset.into(),
                owned(&loaded.host),
            ]
        })
    });
    Box::new(Sheet(rows.collect()))
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

pub(crate) const STRING: Table = Table {
    name: "string",
    about: "Texts of the recording. An even id is a text, the odd one after it is the same text as a short kernel name.",
    columns: &[Column::new("id", Int, "number of the text"), Column::new("value", Text, "the text")],
    from: From::Rows(|world| Box::new(Strings::of(world))),
};

/// Number of rows: two per text.
struct Strings(usize);

impl Strings {
    fn of(world: &World) -> Self {
        Strings(world.profile().hosts.iter().map(|loaded| loaded.trace.strings().len() * 2).sum())
    }
}

impl Rows for Strings {
    fn len(&self) -> usize {
        self.0
    }

    fn cell<'a>(&'a self, world: &'a World, row: usize, column: usize) -> Cell<'a> {
        if column == 0 {
            return row.into();
        }
        let of =
            |(_, host): &(&stepscope_session::HostProfile, &crate::world::Host)| host.first_string <= row / 2;
        let Some((loaded, host)) = world.each_host().take_while(of).last() else { return Cell::Null };
        let strings = loaded.trace.strings();
        let number = row / 2 - host.first_string;
        if number >= strings.len() {
            return Cell::Null;
        }
        let text = strings.get(StrId::from_index(number));
        if row.is_multiple_of(2) { text.into() } else { Cell::Text(kernel_short_name(text)) }
    }
}
