//! JAX's device memory profiles (`jax.profiler.save_device_memory_profile`): pprof's format, usually compressed.
//!
//! ```text
//! message  the fields of the format: samples, places, functions, strings
//! ```
//!
//! A sample is the live buffers of one place of a program on one device: how many, how many bytes, and the calls that led
//! there. A file is the state at one moment; it has no times.

mod message;

use std::collections::BTreeMap;

use stepscope_trace::memory::{
    BEFORE, Block, Frame, MemoryLog, NEVER, Owner, Role, StackId, StackTableBuilder,
};
use stepscope_trace::{Delivers, Format, NoteKind, Trace, TraceBuilder};

use crate::{Input, Progress, ReadError, Reader, memory_tracks};
use message::{Profile, Sample};

/// What JAX saves.
static FORMAT: Format = Format {
    endings: &[".prof"],
    ..Format::new("jax-memory", "JAX device memory profile", Delivers::Memory)
};

/// The owner of compiled programs, which belong to no single device.
const PROGRAMS: &str = "compiled programs";

/// Reads JAX's device memory profiles.
#[derive(Debug)]
pub struct PprofReader;

impl Reader for PprofReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        message::recognises(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let profile = message::read(&bytes);
        if !profile.is_memory() {
            let found = "a pprof profile of another kind".to_owned();
            return Err(ReadError::Foreign { path: input.path().to_owned(), found });
        }
        let mut builder = TraceBuilder::new();
        if let Some((what, at)) = profile.broken {
            builder.note(NoteKind::Damaged, what, 1, Some(at as u64));
        } else if let Some(error) = inflating {
            builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
        }
        let log = memory(&profile, &mut builder);
        progress.advance(bytes.len() as u64, 0);
        Ok(memory_tracks::finish(builder, log).finish())
    }
}

fn memory(profile: &Profile<'_>, builder: &mut TraceBuilder) -> MemoryLog {
    let mut stacks = StackTableBuilder::new();
    let mut owners: BTreeMap<&str, Vec<Block>> = BTreeMap::new();
    let mut missing = 0;
    for sample in &profile.samples {
        let program = profile.label(sample, "kind") == Some("executable");
        let device = profile.label(sample, "device").filter(|device| !device.is_empty());
        let owner = if program { PROGRAMS } else { device.unwrap_or("unknown device") };
        let stack = stack(profile, sample, builder, &mut stacks, &mut missing);
        let bytes = sample.values.get(1).copied().unwrap_or(0).max(0).unsigned_abs();
        if program && bytes == 0 {
            continue;
        }
        owners.entry(owner).or_default().push(Block {
            address: 0,
            size: bytes,
            requested: bytes,
            born: BEFORE,
            dies: NEVER,
            stack,
            count: sample.values.first().map_or(1, |&count| u32::try_from(count.max(0)).unwrap_or(u32::MAX)),
            role: program.then_some(Role::Program),
            pending: false,
        });
    }
    builder.note(NoteKind::DanglingReference, "place of a sample", missing, None);
    let owner =
        |(name, blocks): (&str, Vec<Block>)| Owner { name: name.to_owned(), blocks, ..Owner::default() };
    let owners = owners.into_iter().map(owner).collect();
    MemoryLog { owners, stacks: stacks.finish(), ..MemoryLog::default() }
}

/// The calls of a sample, innermost first, as they are written.
fn stack(
    profile: &Profile<'_>,
    sample: &Sample,
    builder: &mut TraceBuilder,
    stacks: &mut StackTableBuilder,
    missing: &mut u64,
) -> StackId {
    let mut frames = Vec::with_capacity(sample.locations.len());
    for location in &sample.locations {
        let Some(lines) = profile.locations.get(location) else {
            *missing += 1;
            continue;
        };
        for &(function, line) in lines {
            let Some(function) = profile.functions.get(&function) else {
                *missing += 1;
                continue;
            };
            let mut text = |number: i64| builder.strings.intern(&profile.text(number));
            let frame = Frame {
                file: text(function.file),
                function: text(function.name),
                line: u32::try_from(line).unwrap_or(0),
            };
            frames.push(stacks.frame(frame));
        }
    }
    stacks.stack(&frames)
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::damage::{Rng, flip_bits, splice, truncations};
    use stepscope_testkit::pprof::{PprofFile, sample};

    use super::*;
    use crate::{Bytes, open_input};

    fn read(bytes: Vec<u8>) -> Result<Trace, ReadError> {
        open_input(&Input::from_bytes("x.prof", Bytes::held(bytes)), &Progress::new())
            .map(|opened| opened.trace)
    }

    fn profile() -> Vec<u8> {
        let mut file = PprofFile::memory();
        let inner = file.location("device_put", "/site-packages/jax/_src/api.py", 99);
        let train = file.location("train", "/home/u/train.py", 16);
        file.sample(&sample(&[inner, train], 2, 2_048).label("kind", "buffer").label("device", "cpu:0"));
        file.sample(&sample(&[train], 1, 512).label("kind", "buffer").label("device", "cpu:1"));
        file.sample(&sample(&[train], 1, 0).label("kind", "executable"));
        file.bytes()
    }

    #[test]
    fn buffers_belong_to_their_device_and_their_calls_are_kept() {
        let trace = read(profile()).unwrap();
        let log = trace.memory().unwrap();
        let owners: Vec<(&str, u64)> = log
            .owners
            .iter()
            .map(|owner| (owner.name.as_str(), owner.blocks.iter().map(|b| b.size).sum()))
            .collect();
        assert_eq!(owners, [("cpu:0", 2_048), ("cpu:1", 512)]);
        let block = log.owners[0].blocks[0];
        let frames: Vec<(&str, u32)> =
            log.frames(block.stack).map(|frame| (trace.str(frame.function), frame.line)).collect();
        assert_eq!(frames, [("device_put", 99), ("train", 16)]);
        assert_eq!(block.count, 2);
    }

    #[test]
    fn buffers_without_the_name_of_a_device_have_an_owner() {
        let mut file = PprofFile::memory();
        let train = file.location("train", "/home/u/train.py", 16);
        file.sample(&sample(&[train], 1, 512).label("kind", "buffer").label("device", ""));
        file.sample(&sample(&[train], 1, 256).label("kind", "buffer"));
        let trace = read(file.bytes()).unwrap();
        let names: Vec<&str> =
            trace.memory().unwrap().owners.iter().map(|owner| owner.name.as_str()).collect();
        assert_eq!(names, ["unknown device"]);
    }

    #[test]
    fn profiles_of_other_programs_are_named_as_such() {
        let mut file = PprofFile::new([("samples", "count"), ("cpu", "nanoseconds")]);
        let place = file.location("main", "main.go", 1);
        file.sample(&sample(&[place], 1, 10_000));
        assert!(!message::recognises(&file.bytes()));
        let error = PprofReader.read(&Input::from_bytes("x", Bytes::held(file.bytes())), &Progress::new());
        assert!(error.unwrap_err().to_string().contains("a pprof profile of another kind"));
    }

    #[test]
    fn damaged_profiles_end_quietly() {
        let whole = profile();
        truncations(&whole).for_each(|part| drop(read(part.to_vec())));
        let mut rng = Rng::new(7);
        for _ in 0..2_000 {
            drop(read(flip_bits(&whole, &mut rng, 3)));
            drop(read(splice(&whole, &mut rng)));
        }
    }
}
