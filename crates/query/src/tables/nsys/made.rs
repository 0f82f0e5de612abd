//! Rows in the form of an export, made of the events of other formats.

use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_trace::{DeviceKind, Form, ProcessKind, StrId};

use crate::cell::Cell;
use crate::functions::launch_config;
use crate::recording::{Place, Recording, id, ns, ns_of_length};

/// What the rows of a table are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Strings,
    Kernels,
    Copies,
    Fills,
    Calls,
    Waits,
    Ranges,
    Gpus,
}

impl Sort {
    /// What such events are in any format.
    fn roles(self) -> &'static [&'static str] {
        match self {
            Sort::Kernels => &["kernel", "collective"],
            Sort::Copies => &["copy"],
            Sort::Fills => &["memset"],
            Sort::Calls => &["launch", "launch_copy", "sync", "device_memory"],
            Sort::Ranges => &["annotation", "step_marker"],
            Sort::Strings | Sort::Waits | Sort::Gpus => &[],
        }
    }

    /// The categories that the reader of exports gives to the rows of such a table.
    pub(super) fn categories(self) -> &'static [&'static str] {
        match self {
            Sort::Kernels => &["kernel"],
            Sort::Copies => &["gpu_memcpy"],
            Sort::Fills => &["gpu_memset"],
            Sort::Calls => &["cuda_runtime", "cuda_driver"],
            Sort::Waits => &["cuda_sync"],
            Sort::Ranges => &["user_annotation", "cpu_op"],
            Sort::Strings | Sort::Gpus => &[],
        }
    }
}

/// The rows of a host.
pub(super) struct Made {
    sort: Sort,
    rows: usize,
    /// The event of each row.
    events: Vec<i64>,
    /// Which call belongs to which work: what rows are joined by.
    correlations: Vec<Option<i64>>,
}

impl Made {
    pub(super) fn of(recording: &Recording, number: usize, sort: Sort) -> Self {
        let Some((loaded, _)) = recording.each_host().nth(number) else {
            return Made { sort, rows: 0, events: Vec::new(), correlations: Vec::new() };
        };
        let rows = match sort {
            Sort::Strings => loaded.trace.strings().len() * 2,
            Sort::Gpus => loaded.trace.devices().iter().filter(|it| it.kind == DeviceKind::Gpu).count(),
            _ => {
                let events = events(recording, number, sort);
                let correlations = events.iter().map(|event| correlation(recording, *event)).collect();
                return Made { sort, rows: events.len(), events, correlations };
            }
        };
        Made { sort, rows, events: Vec::new(), correlations: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn cell<'a>(
        &self,
        recording: &'a Recording,
        number: usize,
        row: usize,
        name: &str,
    ) -> Cell<'a> {
        match (self.sort, name) {
            (Sort::Strings, _) => text(recording, number, row, name),
            (Sort::Gpus, _) => gpu(recording, number, row, name),
            (_, "correlationId") => self.correlations.get(row).copied().flatten().into(),
            _ => {
                let event = self.events.get(row).and_then(|event| recording.event(*event));
                event.map_or(Cell::Null, |(track, index)| self.of_event(recording, track, index, name))
            }
        }
    }

    fn of_event<'a>(&self, recording: &'a Recording, track: u32, index: usize, name: &str) -> Cell<'a> {
        let Some(place) = recording.place(track) else { return Cell::Null };
        let start = || ns(place.track.start(index).ps().saturating_add(place.host.shift_ps));
        let name_id =
            || 2 * (place.host.first_string + place.trace().kind(place.track.kind_of(index)).name.index());
        let argument = |keys: &[&str]| arguments(&place, index, keys);
        match name {
            "event_id" => id(track, index).into(),
            "start" => start().into(),
            "end" => start().saturating_add(ns_of_length(place.track.dur(index).ps())).into(),
            "globalTid" => global_tid(&place).into(),
            "deviceId" => device(&place).into(),
            "streamId" => place.track.number.into(),
            "contextId" => argument(&["context", "context_id"]),
            "demangledName" | "mangledName" | "nameId" | "textId" => name_id().into(),
            "shortName" => (name_id() + 1).into(),
            "text" => place.trace().kind_name(place.track.kind_of(index)).into(),
            "bytes" => argument(&["bytes", "Bytes"]),
            "copyKind" => copy_kind(recording, &place, index),
            "returnValue" => Cell::Int(0),
            "domainId" => Cell::Int(0),
            "eventType" => Cell::Int(if self.is_mark(&place, index) { 34 } else { 59 }),
            "registersPerThread" => launch_config(&place, index, "registers").into(),
            "staticSharedMemory" => launch_config(&place, index, "shared").into(),
            "gridX" | "gridY" | "gridZ" | "blockX" | "blockY" | "blockZ" => {
                launch_config(&place, index, name).into()
            }
            _ => Cell::Null,
        }
    }

    fn is_mark(&self, place: &Place<'_>, index: usize) -> bool {
        place.trace().kind(place.track.kind_of(index)).form == Form::Instant
    }
}

/// The events of these roles.
fn events(recording: &Recording, number: usize, sort: Sort) -> Vec<i64> {
    let Some((loaded, host)) = recording.each_host().nth(number) else { return Vec::new() };
    let Some(meaning) = recording.meanings().get(number).copied() else { return Vec::new() };
    let trace = &loaded.trace;
    let fits =
        |kind, on_device| meaning.role_of(kind, on_device).is_some_and(|role| sort.roles().contains(&role));
    let kinds = || (0..trace.kinds().len()).map(stepscope_trace::KindId::from_index);
    let wanted =
        [false, true].map(|on_device| kinds().map(|kind| fits(kind, on_device)).collect::<Vec<bool>>());
    let mut found = Vec::new();
    for (place, track) in (host.first_track..).zip(trace.tracks()) {
        let on_device = trace.process(track.process).kind == ProcessKind::Device;
        let wanted = &wanted[usize::from(on_device)];
        let events = (0..track.len()).filter(|index| wanted[track.kind_of(*index).index()]);
        found.extend(events.map(|index| id(place, index)));
    }
    found
}

fn correlation(recording: &Recording, event: i64) -> Option<i64> {
    let (track, index) = recording.event(event)?;
    match arguments(&recording.place(track)?, index, &["correlation_id", "correlation"]) {
        Cell::Int(value) => Some(value),
        _ => None,
    }
}

/// The first of these arguments that an event has.
fn arguments<'a>(place: &Place<'a>, index: usize, keys: &[&str]) -> Cell<'a> {
    let args = place.trace().args_at(place.track, index);
    let found = keys.iter().find_map(|key| args.named(key));
    found.map_or(Cell::Null, |value| match Cell::of_argument(value) {
        Cell::Text(text) => Cell::from(text.into_owned()),
        other => other,
    })
}

/// A thread as Nsight Systems numbers it: process and thread, 24 bits each.
fn global_tid(place: &Place<'_>) -> i64 {
    let pid = place.trace().process(place.track.process).number;
    (pid & 0xff_ffff) << 24 | (place.track.number & 0xff_ffff)
}

fn device(place: &Place<'_>) -> i64 {
    let mut devices = place.trace().devices().iter();
    let own = devices.find(|device| device.process == Some(place.track.process));
    own.map_or(0, |device| device.number)
}

fn copy_kind<'a>(recording: &Recording, place: &Place<'_>, index: usize) -> Cell<'a> {
    let on_device = place.trace().process(place.track.process).kind == ProcessKind::Device;
    let meaning = recording.known_meaning(place.number);
    let state = meaning.and_then(|meaning| meaning.state_of(place.track.kind_of(index), on_device));
    Cell::Int(match state.map(stepscope_analyze::Category::key) {
        Some("transfer_in") => 1,
        Some("transfer_out") => 2,
        _ => 8,
    })
}

/// A text, and the same as the short name of a kernel behind it.
fn text<'a>(recording: &'a Recording, number: usize, row: usize, name: &str) -> Cell<'a> {
    let Some((loaded, host)) = recording.each_host().nth(number) else { return Cell::Null };
    if name == "id" {
        return (2 * host.first_string + row).into();
    }
    let text = loaded.trace.strings().get(StrId::from_index(row / 2));
    match name {
        "value" if row.is_multiple_of(2) => text.into(),
        "value" => Cell::Text(kernel_short_name(text)),
        _ => Cell::Null,
    }
}

fn gpu<'a>(recording: &'a Recording, number: usize, row: usize, name: &str) -> Cell<'a> {
    let Some((loaded, _)) = recording.each_host().nth(number) else { return Cell::Null };
    let mut gpus = loaded.trace.devices().iter().filter(|it| it.kind == DeviceKind::Gpu);
    let Some(device) = gpus.nth(row) else { return Cell::Null };
    match name {
        "id" | "cuDevice" => device.number.into(),
        "name" => Cell::known(loaded.trace.str(device.name)),
        "totalMemory" => device.memory_bytes.into(),
        "memoryBandwidth" => device.memory_bandwidth.into(),
        "smCount" => device.multiprocessors.into(),
        "clockRate" => device.clock_khz.map(|khz| khz.saturating_mul(1_000)).into(),
        "computeMajor" => device.compute_capability.map(|(major, _)| major).into(),
        "computeMinor" => device.compute_capability.map(|(_, minor)| minor).into(),
        _ => Cell::Null,
    }
}
