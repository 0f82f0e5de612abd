//! The content of a profile as text: a summary line, then one screen of details.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use stepscope_analyze::recording::info::{DeviceInfo, HostInfo, Named, Scalar};
use stepscope_analyze::recording::step_markers::StepMarker;
use stepscope_results::table::{Cell, Column, Format, Select, Table};

use super::{Description, longest};
use crate::format::{self, bytes, decimal, duration_ms, plural, printable, short, thousands, utc};
use crate::style::Style;
use crate::table::write_text as write_table;

/// Number of tracks listed individually; the others are summed up.
const TRACKS: usize = 20;
/// Placeholder for a name that is missing in the file.
const UNNAMED: &str = "(unnamed)";
/// Number of hosts, devices and sessions listed individually.
const LISTED: usize = 12;

/// Writes the description as text.
pub fn write_text(description: &Description<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let hosts = &description.info.hosts;
    writeln!(out, "{}\n", style.bold(&headline(hosts)))?;
    let mut sheet = Sheet { style, out };
    sheet.rows("session", &[description.session.to_owned()])?;
    sheet.rows("source", &hosts.iter().map(source).collect::<Vec<_>>())?;
    sheet.rows("recorded", &recorded(hosts).into_iter().collect::<Vec<_>>())?;
    sheet.rows("versions", &joined(hosts, |host| &host.versions))?;
    sheet.rows("capture", &joined(hosts, |host| &host.capture))?;
    sheet.rows("distributed", &joined(hosts, |host| &host.distributed))?;
    sheet.rows("devices", &devices(hosts))?;
    sheet.rows("steps", &markers(hosts))?;
    sheet.rows("modules", &modules(hosts).into_iter().collect::<Vec<_>>())?;
    if description.sessions.len() > 1 {
        sheet.rows("sessions", description.sessions)?;
    }
    tracks(hosts, style, out)
}

/// Lines with a label before the first of each group.
struct Sheet<'a> {
    style: Style,
    out: &'a mut dyn Write,
}

impl Sheet<'_> {
    fn rows(&mut self, label: &str, rows: &[String]) -> io::Result<()> {
        for (place, row) in rows.iter().take(LISTED).enumerate() {
            let label = format!("{:<11}", if place == 0 { label } else { "" });
            writeln!(self.out, "{} {}", self.style.dim(&label), printable(row))?;
        }
        match rows.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => writeln!(self.out, "{:<11} … and {} more", "", thousands(more as u64)),
        }
    }
}

/// The summary line: `1 host, 12 step markers "train", 309,122 events over 0.90 s; XPlane, CPU only`.
fn headline(hosts: &[HostInfo]) -> String {
    let events = hosts.iter().map(|host| host.events).sum();
    let span = longest(hosts).map_or(String::new(), |ms| format!(" over {}", duration_ms(ms)));
    let marked = match marker_sum(hosts) {
        Some(marker) => {
            format!("{} `{}`", plural(marker.count, "step marker", "step markers"), printable(&marker.name))
        }
        None => "no step markers".to_owned(),
    };
    let mut formats: Vec<&str> = hosts.iter().map(|host| host.format.title).collect();
    formats.dedup();
    let machines = machines(hosts);
    let names: BTreeSet<&str> = machines.iter().map(|host| host.host.as_str()).collect();
    format!(
        "{}, {marked}, {}{span}; {}, {}",
        plural(names.len() as u64, "host", "hosts"),
        plural(events, "event", "events"),
        formats.join(" and "),
        device_sum(&machines)
    )
}

/// Sources that represent machines. Samples beside a timeline belong to a machine that is already listed.
fn machines(hosts: &[HostInfo]) -> Vec<&HostInfo> {
    let timelines: Vec<&HostInfo> = hosts.iter().filter(|host| host.timeline).collect();
    if timelines.is_empty() { hosts.iter().collect() } else { timelines }
}

/// The markers that most likely are the steps, counted on the host that has most.
fn marker_sum(hosts: &[HostInfo]) -> Option<&StepMarker> {
    hosts.iter().filter_map(|host| host.step_markers.first()).max_by_key(|marker| (marker.root, marker.count))
}

fn device_sum(hosts: &[&HostInfo]) -> String {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for device in hosts.iter().flat_map(|host| &host.devices) {
        let count = counts.entry(device.kind).or_default();
        count.0 += 1;
        count.1 += u64::from(device.events.is_some_and(|events| events > 0));
    }
    counts.remove("cpu");
    if counts.is_empty() {
        return "CPU only".to_owned();
    }
    let named = counts.into_iter().map(|(kind, (all, active))| {
        let (one, many) = match kind {
            "gpu" => ("GPU", "GPUs"),
            "tpu" => ("TPU core", "TPU cores"),
            _ => ("accelerator", "accelerators"),
        };
        if active == all {
            plural(all, one, many)
        } else {
            format!("{} ({} with events)", plural(all, one, many), thousands(active))
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

fn source(host: &HostInfo) -> String {
    let (size, events) = (bytes(host.bytes as f64), plural(host.events, "event", "events"));
    format!("{}: {} ({}, {size}, {events})", host.host, host.path, host.format)
}

fn recorded(hosts: &[HostInfo]) -> Option<String> {
    let began = hosts.iter().filter_map(|host| host.began_unix_ns).min()?;
    Some(utc(began))
}

/// Named values on one line, from the first host that has any.
fn joined(hosts: &[HostInfo], of: impl Fn(&HostInfo) -> &Vec<Named>) -> Vec<String> {
    let Some(values) = hosts.iter().map(&of).find(|values| !values.is_empty()) else { return Vec::new() };
    let shown: Vec<String> = values
        .iter()
        .filter_map(|named| Some(format!("{} {}", named.key, scalar(&named.value)?)))
        .map(|text| format::middle_cut(&text, 60))
        .collect();
    shown.chunks(3).map(|chunk| chunk.join(", ")).collect()
}

/// A value as text; `None` if it is empty.
fn scalar(value: &Scalar) -> Option<String> {
    match value {
        Scalar::Null => None,
        Scalar::Int(value) => Some(value.to_string()),
        Scalar::UInt(value) => Some(value.to_string()),
        Scalar::Float(value) => Some(value.to_string()),
        Scalar::Bool(value) => Some(if *value { "yes" } else { "no" }.to_owned()),
        Scalar::Text(text) if text.is_empty() => None,
        Scalar::Text(text) => Some(text.clone()),
    }
}

/// One line per device; devices that differ only in their number share a line.
fn devices(hosts: &[HostInfo]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<i64>, String)> = Vec::new();
    for host in hosts {
        let prefix = if hosts.len() > 1 { format!("{}: ", host.host) } else { String::new() };
        for device in &host.devices {
            let (prefix, facts) = (format!("{prefix}{}", device_name(device.kind)), describe(device));
            match lines.iter_mut().rev().take(LISTED).find(|line| line.0 == prefix && line.2 == facts) {
                Some(line) => line.1.push(device.number),
                None => lines.push((prefix, vec![device.number], facts)),
            }
        }
    }
    let numbers = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    lines.iter().map(|(prefix, all, facts)| format!("{prefix} {} · {facts}", numbers(all))).collect()
}

fn device_name(kind: &str) -> &str {
    match kind {
        "cpu" => "CPU",
        "gpu" => "GPU",
        "tpu" => "TPU core",
        _ => "accelerator",
    }
}

fn describe(device: &DeviceInfo) -> String {
    let mut facts: Vec<String> = device.name.clone().or_else(|| device.vendor.clone()).into_iter().collect();
    facts.extend(device.multiprocessors.map(|count| format!("{count} multiprocessors")));
    facts.extend(device.clock_khz.map(|khz| format!("{} GHz", decimal(khz as f64 / 1e6, 2))));
    facts.extend(device.memory_bytes.map(|size| bytes(size as f64)));
    facts.extend(device.memory_bandwidth.map(|rate| format!("{} GB/s", short(rate as f64 / 1e9))));
    facts.extend(device.compute_capability.as_ref().map(|version| format!("compute capability {version}")));
    facts.push(
        device.events.map_or("listed without events".to_owned(), |events| plural(events, "event", "events")),
    );
    facts.join(" · ")
}

fn markers(hosts: &[HostInfo]) -> Vec<String> {
    let several = hosts.len() > 1;
    let line = |host: &HostInfo, marker: &StepMarker| {
        let host = if several { format!("{}: ", host.host) } else { String::new() };
        let range = match (marker.first_step, marker.last_step) {
            (Some(first), Some(last)) if first != last => format!(", numbers {first} to {last}"),
            (Some(first), _) => format!(", number {first}"),
            _ => String::new(),
        };
        format!("{host}{} `{}`{range}", plural(marker.count, "marker", "markers"), marker.name)
    };
    hosts.iter().flat_map(|host| host.step_markers.iter().map(move |marker| line(host, marker))).collect()
}

fn modules(hosts: &[HostInfo]) -> Option<String> {
    let count: usize = hosts.iter().map(|host| host.attachments).sum();
    (count > 0).then(|| plural(count as u64, "compiled module (HLO)", "compiled modules (HLO)"))
}

/// Totals of tracks with the same name.
#[derive(Default)]
struct TrackSum {
    events: usize,
    samples: usize,
    kinds: usize,
    span_ms: Option<f64>,
    tracks: u64,
}

/// Process, track, kind and number: tracks with the same key share a line.
type TrackKey<'h> = (&'h str, &'h str, &'h str, i64);

/// The tracks of all hosts, busiest first.
fn track_sums(hosts: &[HostInfo]) -> Vec<(TrackKey<'_>, TrackSum)> {
    let mut sums: BTreeMap<TrackKey, TrackSum> = BTreeMap::new();
    let several = machines(hosts).len() > 1;
    for process in hosts.iter().flat_map(|host| &host.processes) {
        for track in &process.tracks {
            // Thread ids differ between hosts. They only distinguish threads if there is a single host.
            let number = if several { 0 } else { track.number };
            let sum = sums.entry((&process.name, &track.name, track.kind, number)).or_default();
            sum.events += track.events;
            sum.samples += track.samples;
            sum.kinds = sum.kinds.max(track.kinds);
            sum.span_ms = sum.span_ms.into_iter().chain(track.span_ms).reduce(f64::max);
            sum.tracks += 1;
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.events.max(sum.samples)));
    rows
}

fn tracks(hosts: &[HostInfo], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let rows = track_sums(hosts);
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(
        "tracks",
        vec![
            Column::new("process", "process", Format::Name),
            Column::new("track", "track", Format::Name),
            Column::new("kind", "kind", Format::Text),
            Column::new("events", "events", Format::Count),
            Column::new("kinds", "kinds", Format::Count),
            Column::new("span_ms", "span", Format::Ms).optional(),
        ],
    );
    for ((process, name, kind, _), sum) in rows.iter().take(TRACKS) {
        let name = if name.is_empty() { UNNAMED } else { name };
        let process = if process.is_empty() { UNNAMED } else { process };
        let name = if sum.tracks > 1 { format!("{name} (×{})", sum.tracks) } else { name.to_owned() };
        let count = if *kind == "counter" { sum.samples.max(sum.events) } else { sum.events };
        table.push([
            process.into(),
            name.into(),
            (*kind).into(),
            count.into(),
            sum.kinds.into(),
            Cell::from(sum.span_ms),
        ]);
    }
    let rest = &rows[rows.len().min(TRACKS)..];
    if let Some(events) = rest.iter().map(|(_, sum)| sum.events as u64).reduce(|a, b| a + b) {
        let tracks = plural(rest.len() as u64, "more track", "more tracks");
        table.note(format!("… and {tracks} with {}; --json lists all", plural(events, "event", "events")));
    }
    writeln!(out)?;
    match table.pick(&Select::default(), None) {
        Ok(picked) => write_table(&table, &picked, style, out),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_analyze::recording::info::{SourceFile, info};
    use stepscope_trace::{Device, DeviceKind, Dur, Kind, ProcessKind, Time, Trace, TraceBuilder, TrackKind};

    /// One GPU, and kernels or samples of it.
    fn gpu(kind: TrackKind) -> Trace {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("GPU 0");
        let process = builder.process(name, ProcessKind::Device, 0);
        let device = Device { process: Some(process), ..Device::new(DeviceKind::Gpu, 0) };
        let listed = builder.device(device);
        builder.process_mut(process).device = Some(listed);
        let track = builder.track(process, name, kind, 0, TraceBuilder::ARENA);
        if kind == TrackKind::Counter {
            builder.sample(track, Time::ZERO, 1.0);
        } else {
            let kernel = builder.kind(Kind::slice(name));
            builder.event(track, Time::ZERO, Dur::from_us(5), kernel, None);
        }
        builder.finish()
    }

    fn first_line(sources: &[(&str, &str, &Trace)]) -> String {
        let source = |&(host, format, trace)| {
            let format = crate::format_named(format);
            SourceFile { path: host, format, bytes: 1, host, trace }
        };
        headline(&info(&sources.iter().map(source).collect::<Vec<_>>()).hosts)
    }

    #[test]
    fn samples_beside_a_timeline_are_no_host_and_no_device_more() {
        let (profile, samples) = (gpu(TrackKind::Stream), gpu(TrackKind::Counter));
        let both = first_line(&[("trainer", "nsys", &profile), ("log", "nvidia-smi", &samples)]);
        assert!(both.starts_with("1 host,"), "{both}");
        assert!(both.ends_with("nsys and nvidia-smi, 1 GPU"), "{both}");
        let two = first_line(&[("a", "nsys", &profile), ("b", "nsys", &profile)]);
        assert!(two.starts_with("2 hosts,"), "{two}");
        let alone = first_line(&[("log", "nvidia-smi", &samples)]);
        assert!(alone.starts_with("1 host,"), "{alone}");
    }
}
