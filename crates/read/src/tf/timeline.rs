//! Timelines of classic TensorFlow: the Chrome JSON that `timeline.Timeline(run_metadata.step_stats)` writes.
//!
//! It holds what RunMetadata holds, in another form: a process per device, named `/…/gpu:0/stream:7 Compute`, and an event per
//! op with its node and type as arguments. The Chrome reader reads the text; here its processes become the lanes
//! of a run, so that a timeline is judged like the RunMetadata it was made from. Programs often merge several runs into one
//! file. Each run starts with the node `_SOURCE` on every device.

use std::collections::BTreeMap;

use memchr::memmem;
use stepscope_trace::{Delivers, Form, Format, Time, Trace, Value};

use super::trace::{Recording, Run};
use crate::chrome::ChromeReader;
use crate::{Input, Progress, ReadError, Reader};

/// Timelines of TensorFlow 1, which programs number by step.
static FORMAT: Format = Format {
    endings: &[".json", ".ctf"],
    numbered: &["timeline"],
    ..Format::new("tf-timeline", "TensorFlow timeline", Delivers::Timeline)
};

/// How the process of a device's ops is named, behind the device.
const OPS: &str = " Compute";

/// The process with the memory of all allocators.
const ALLOCATORS: &str = "Allocators";

/// The node with which every run starts.
const FIRST_NODE: &str = "_SOURCE";

/// Reads timelines of TensorFlow 1.
#[derive(Debug)]
pub struct TimelineReader;

impl Reader for TimelineReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        ChromeReader.recognises(head) && names_devices(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let read = ChromeReader.read(input, progress)?;
        let mut trace = recording(&read).trace(&[], true);
        for note in read.notes() {
            trace.note(note.kind, &note.detail, note.count);
        }
        Ok(trace)
    }
}

/// Whether a process is named after the ops of a device.
fn names_devices(head: &[u8]) -> bool {
    /// Longer than any name of a device.
    const LONGEST: usize = 256;
    let is_device = |at: usize| {
        let before = head.get(at.saturating_sub(LONGEST)..at).unwrap_or_default();
        let name = before.rsplit(|byte| *byte == b'"').next().unwrap_or_default().to_ascii_lowercase();
        [b"/cpu:".as_slice(), b"/gpu:", b"/device:"].iter().any(|unit| memmem::find(&name, unit).is_some())
    };
    memmem::find_iter(head, format!("{OPS}\"").as_bytes()).any(is_device)
}

/// The ops, runs and changes of memory of a timeline.
fn recording(read: &Trace) -> Recording {
    let origin = read.clock().wall_ns_at_origin.unwrap_or(0);
    let wall = |at: Time| origin.saturating_add(at.ns());
    let mut recording = Recording::default();
    let mut runs = Runs::default();
    for track in read.tracks() {
        let process = read.str(read.process(track.process).name);
        let Some(device) = process.strip_suffix(OPS) else { continue };
        let thread = u32::try_from(track.number).unwrap_or(0);
        for index in 0..track.len() {
            let kind = track.kind_of(index);
            if read.kind(kind).form != Form::Slice {
                continue;
            }
            let args = read.args_at(track, index);
            let node = args.named("name").map(text);
            let op = read.kind_name(kind);
            let name = node.as_deref().map_or_else(|| op.to_owned(), |node| format!("{node}:{op}"));
            let span = (wall(track.start(index)), wall(track.end(index)));
            recording.add_op(device, thread, &name, span);
            runs.add(device, node.as_deref() == Some(FIRST_NODE), span);
        }
    }
    recording.runs = runs.finish();
    add_memory(read, &mut recording, wall);
    recording
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Str(text) => text.into_owned(),
        other => format!("{other:?}"),
    }
}

/// The counters of allocators, as the changes that they add up to.
fn add_memory(read: &Trace, recording: &mut Recording, wall: impl Fn(Time) -> i64) {
    for track in read.tracks() {
        if read.str(read.process(track.process).name) != ALLOCATORS {
            continue;
        }
        let (allocator, mut held) = (read.str(track.name), 0);
        for (&at, &bytes) in track.samples.times.iter().zip(&track.samples.values) {
            let bytes = bytes as i64;
            recording.add_change(allocator, wall(at), bytes.saturating_sub(held));
            held = bytes;
        }
    }
}

/// Where runs start and end.
#[derive(Default)]
struct Runs {
    /// When each device started a run.
    starts: BTreeMap<String, Vec<i64>>,
    spans: Vec<(i64, i64)>,
}

impl Runs {
    fn add(&mut self, device: &str, starts: bool, span: (i64, i64)) {
        if starts {
            self.starts.entry(device.to_owned()).or_default().push(span.0);
        }
        self.spans.push(span);
    }

    /// The runs by time. Not every run uses every device: those that start most often were part of all of them.
    fn finish(mut self) -> Vec<Run> {
        self.spans.sort_unstable();
        self.starts.values_mut().for_each(|starts| starts.sort_unstable());
        let most = self.starts.values().map(Vec::len).max().unwrap_or(0);
        let in_all = || self.starts.values().filter(|starts| starts.len() == most);
        let starts: Vec<i64> =
            (0..most).filter_map(|run| in_all().filter_map(|of| of.get(run)).min().copied()).collect();
        let mut runs: Vec<Run> = Vec::new();
        for &(start, end) in &self.spans {
            // What comes before the first start belongs to the first run.
            let number = starts.partition_point(|from| *from <= start).max(1) as i64 - 1;
            match runs.last_mut() {
                Some(run) if run.step == number => run.end = run.end.max(end),
                _ => runs.push(Run { step: number, start, end }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfprof::timeline;

    use super::*;

    const TASK: &str = "/job:localhost/replica:0/task:0";

    fn read(text: &str) -> Trace {
        let input = Input::from_bytes("timeline.json", crate::Bytes::held(text.as_bytes().to_vec()));
        TimelineReader.read(&input, &Progress::default()).expect("a timeline")
    }

    #[test]
    fn a_timeline_is_recognised_by_its_devices() {
        let text = timeline(&[&format!("{TASK}/cpu:0")], &[(0, "_SOURCE", "NoOp", 0, 5)]);
        assert!(TimelineReader.recognises(text.as_bytes()));
        let other = text.replace("/cpu:0 Compute", "/Compute");
        assert!(!TimelineReader.recognises(other.as_bytes()));
        assert!(!TimelineReader.recognises(b"/cpu:0 Compute\""));
    }

    #[test]
    fn merged_runs_are_steps_and_devices_are_placed_as_in_run_metadata() {
        let cpu = format!("{TASK}/device:CPU:0");
        let gpu = format!("{TASK}/device:GPU:0");
        let stream = "/device:GPU:0/stream:14";
        let run = |at: i64| {
            [
                (0, "_SOURCE", "NoOp", at, 2),
                (1, "_SOURCE", "NoOp", at + 1, 2),
                (1, "dense/MatMul", "MatMul", at + 5, 10),
                (2, "dense/MatMul", "MatMul", at + 20, 70),
            ]
        };
        let trace = read(&timeline(&[&cpu, &gpu, stream], &[run(0), run(5_000)].concat()));
        let names = |wanted: &str| {
            let of = |track: &stepscope_trace::Track| {
                track.kinds().iter().filter(|kind| trace.kind_name(**kind) == wanted).count()
            };
            trace.tracks().iter().map(of).sum::<usize>()
        };
        assert_eq!((names("train"), names("SessionRun"), names("dense/MatMul:MatMul")), (2, 2, 4));
        assert_eq!(trace.devices().len(), 1);
        let span = trace.span().expect("events");
        assert_eq!(
            span.dur(),
            stepscope_trace::Dur::from_ns(180_000),
            "the time between runs was not recorded"
        );
    }

    #[test]
    fn counters_of_allocators_become_changes() {
        let mut text = timeline(&[&format!("{TASK}/cpu:0"), ""], &[(0, "_SOURCE", "NoOp", 0, 5)]);
        text = text.replace("\" Compute\"", "\"Allocators\"");
        let counter = |at: i64, bytes: i64| {
            format!(
                r#",{{"ph":"C","cat":"Memory","name":"cpu","pid":1,"ts":{},"args":{{"cpu":{bytes}}}}}"#,
                1_500_000_000_000_000 + at
            )
        };
        text = text.replace("]}", &format!("{}{}]}}", counter(1, 100), counter(3, 40)));
        let trace = read(&text);
        let held = |name: &str| {
            trace.tracks().iter().any(|track| track.kinds().iter().any(|kind| trace.kind_name(*kind) == name))
        };
        assert!(held("MemoryAllocation") && held("MemoryDeallocation"));
    }
}
