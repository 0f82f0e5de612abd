//! Chrome JSON for Perfetto and chrome://tracing.
//!
//! Viewers require the slices of a thread to nest, and drop those that do not. Therefore each lane of a track
//! becomes a separate thread. A track whose events nest is one thread, as recorded.

use std::io::{self, Write};

use stepscope_trace::{FlowDirection, FlowPoint, Form, Time, Trace, Track, TrackKind};

use super::ExportSource;
use super::args::{push_args, push_text};
use super::time::{Origins, push_decimal};

/// Number of decimal digits of a picosecond in microseconds.
const MICRO: u32 = 6;

/// Writes all hosts to one document.
pub fn write_chrome(sources: &[ExportSource<'_>], out: &mut dyn Write) -> io::Result<()> {
    let origins = Origins::of(sources);
    out.write_all(b"{")?;
    if let Some(wall) = origins.wall_ns {
        write!(out, "\"baseTimeNanoseconds\":{wall},")?;
    }
    out.write_all(b"\"traceEvents\":[")?;
    let mut writer = Writer { out, line: String::new(), first: true };
    let mut next_pid = 1;
    for (host, source) in sources.iter().enumerate() {
        let several = sources.len() > 1;
        HostWriter { trace: source.trace, host, origins: &origins, first_pid: next_pid, threads: Vec::new() }
            .write(&mut writer, several.then_some(source.host))?;
        next_pid += source.trace.processes().len();
    }
    writer.out.write_all(b"\n]}\n")
}

/// Puts commas between events.
struct Writer<'a> {
    out: &'a mut dyn Write,
    line: String,
    first: bool,
}

impl Writer<'_> {
    /// One event, written by `fill` into an empty line.
    fn event(&mut self, fill: impl FnOnce(&mut String)) -> io::Result<()> {
        self.line.clear();
        self.line.push_str(if std::mem::take(&mut self.first) { "\n" } else { ",\n" });
        fill(&mut self.line);
        self.out.write_all(self.line.as_bytes())
    }
}

struct HostWriter<'a> {
    trace: &'a Trace,
    host: usize,
    origins: &'a Origins,
    first_pid: usize,
    /// The thread of each track's first lane; the other lanes follow it.
    threads: Vec<usize>,
}

impl HostWriter<'_> {
    fn write(mut self, writer: &mut Writer<'_>, host: Option<&str>) -> io::Result<()> {
        self.processes(writer, host)?;
        self.threads(writer)?;
        for track in self.trace.tracks() {
            self.events(writer, track)?;
            self.samples(writer, track)?;
        }
        self.trace.flows().iter().try_for_each(|flow| self.flow(writer, flow))
    }

    fn pid(&self, track: &Track) -> usize {
        self.first_pid + track.process.index()
    }

    fn tid(&self, track: &Track, lane: usize) -> usize {
        self.threads.get(track.id.index()).copied().unwrap_or(0) + lane
    }

    fn processes(&self, writer: &mut Writer<'_>, host: Option<&str>) -> io::Result<()> {
        for (number, process) in self.trace.processes().iter().enumerate() {
            let name = self.trace.str(process.name);
            let name = host.map_or(name.to_owned(), |host| format!("{host} {name}"));
            let pid = self.first_pid + number;
            metadata(writer, "process_name", pid, 0, &name)?;
            sort_index(writer, "process_sort_index", pid, 0, pid)?;
        }
        Ok(())
    }

    /// Names a thread for each lane, and remembers where the threads of each track start.
    fn threads(&mut self, writer: &mut Writer<'_>) -> io::Result<()> {
        let mut next = 1;
        for track in self.trace.tracks() {
            self.threads.push(next);
            let name = self.trace.str(track.name);
            for lane in 0..track.nesting().lanes() {
                let name = if lane == 0 { name.to_owned() } else { format!("{name} (overlapping {lane})") };
                metadata(writer, "thread_name", self.pid(track), next, &name)?;
                sort_index(writer, "thread_sort_index", self.pid(track), next, next)?;
                next += 1;
            }
        }
        Ok(())
    }

    fn events(&self, writer: &mut Writer<'_>, track: &Track) -> io::Result<()> {
        let nesting = track.nesting();
        for index in 0..track.len() {
            let kind = self.trace.kind(track.kind_of(index));
            let form = kind.form;
            writer.event(|line| {
                line.push_str(if form == Form::Instant {
                    "{\"ph\":\"i\",\"s\":\"t\""
                } else {
                    "{\"ph\":\"X\""
                });
                line.push_str(",\"name\":");
                push_text(line, self.trace.str(kind.name));
                let category = self.trace.str(kind.category);
                if !category.is_empty() {
                    line.push_str(",\"cat\":");
                    push_text(line, category);
                }
                self.place(line, track, nesting.lane(index), track.start(index));
                if form != Form::Instant {
                    line.push_str(",\"dur\":");
                    push_decimal(line, i128::from(track.dur(index).ps()), MICRO);
                }
                let before = line.len();
                line.push_str(",\"args\":");
                let empty = line.len() + 2;
                push_args(line, self.trace, self.trace.args_at(track, index));
                if line.len() == empty {
                    line.truncate(before);
                }
                line.push('}');
            })?;
        }
        Ok(())
    }

    fn samples(&self, writer: &mut Writer<'_>, track: &Track) -> io::Result<()> {
        if track.kind != TrackKind::Counter {
            return Ok(());
        }
        for (&time, value) in track.samples.times.iter().zip(&track.samples.values) {
            writer.event(|line| {
                line.push_str("{\"ph\":\"C\",\"name\":");
                push_text(line, self.trace.str(track.name));
                self.place(line, track, 0, time);
                line.push_str(&format!(",\"args\":{{\"value\":{value:?}}}}}"));
            })?;
        }
        Ok(())
    }

    fn flow(&self, writer: &mut Writer<'_>, flow: &FlowPoint) -> io::Result<()> {
        let track = self.trace.track(flow.track);
        writer.event(|line| {
            line.push_str(match flow.direction {
                FlowDirection::Out => "{\"ph\":\"s\"",
                FlowDirection::Step => "{\"ph\":\"t\"",
                FlowDirection::In => "{\"ph\":\"f\",\"bp\":\"e\"",
            });
            line.push_str(&format!(",\"id\":{}", flow.id));
            for key in ["name", "cat"] {
                line.push_str(&format!(",\"{key}\":"));
                push_text(line, self.trace.str(flow.category));
            }
            self.place(line, track, lane_at(track, flow.time), flow.time);
            line.push('}');
        })
    }

    fn place(&self, line: &mut String, track: &Track, lane: usize, time: Time) {
        line.push_str(&format!(",\"pid\":{},\"tid\":{},\"ts\":", self.pid(track), self.tid(track, lane)));
        push_decimal(line, self.origins.ps(self.host, time), MICRO);
    }
}

/// Maximum number of events to search for the one where an arrow ends.
const LOOK_BACK: usize = 64;

/// The lane of the innermost event around `time`.
fn lane_at(track: &Track, time: Time) -> usize {
    let after = track.starts().partition_point(|&start| start <= time);
    let around = (after.saturating_sub(LOOK_BACK)..after).rev().find(|&index| track.end(index) >= time);
    around.map_or(0, |index| track.nesting().lane(index))
}

fn metadata(writer: &mut Writer<'_>, what: &str, pid: usize, tid: usize, name: &str) -> io::Result<()> {
    writer.event(|line| {
        line.push_str(&format!(
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        ));
        push_text(line, name);
        line.push_str("}}");
    })
}

fn sort_index(writer: &mut Writer<'_>, what: &str, pid: usize, tid: usize, index: usize) -> io::Result<()> {
    writer.event(|line| {
        let place = format!("\"pid\":{pid},\"tid\":{tid}");
        line.push_str(&format!(
            "{{\"ph\":\"M\",\"name\":\"{what}\",{place},\"args\":{{\"sort_index\":{index}}}}}"
        ));
    })
}
