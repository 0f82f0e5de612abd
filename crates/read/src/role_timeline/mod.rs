//! PyTorch's memory timeline exports (`export_memory_timeline`): bytes in use per role over time, as JSON.
//!
//! Two forms. `.json` has the times and, for each, the bytes in use of eight roles: `[[t…],[[0, b0, …, b7]…]]`. `.raw.json` has
//! one change per item: `[[t, action, bytes, role]…]`; what existed before the recording has the time -1. Neither has blocks.

mod numbers;

use stepscope_trace::memory::{MemoryLog, Owner, Role, RoleUse};
use stepscope_trace::{Delivers, Format, NoteKind, Time, Trace, TraceBuilder};

use crate::{Input, Progress, ReadError, Reader, memory_tracks};
use numbers::{Event, Numbers};

/// What PyTorch's memory profiler exports.
static FORMAT: Format = Format {
    endings: &[".json", ".raw"],
    ..Format::new("torch-memory-timeline", "PyTorch memory timeline", Delivers::Memory)
};

/// The export does not name the device.
const OWNER: &str = "device";
/// The roles in the order of the export; the last one is unknown.
const ROLES: [Option<Role>; 8] = [
    Some(Role::Parameter),
    Some(Role::Optimizer),
    Some(Role::Input),
    Some(Role::Temporary),
    Some(Role::Activation),
    Some(Role::Gradient),
    Some(Role::Autograd),
    None,
];

/// Reads PyTorch's memory timelines.
#[derive(Debug)]
pub struct RoleTimelineReader;

impl Reader for RoleTimelineReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        numbers::looks_raw(head) || numbers::looks_summed(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let mut builder = TraceBuilder::new();
        let (points, broken) = if numbers::looks_raw(&bytes) { raw(&bytes) } else { summed(&bytes) };
        if points.is_empty() {
            let what = "it has no point in time".to_owned();
            let offset = broken.unwrap_or(0) as u64;
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset });
        }
        if let Some(at) = broken {
            builder.note(NoteKind::Damaged, "numbers are expected", 1, Some(at as u64));
        } else if let Some(error) = inflating {
            builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
        }
        let origin = points.iter().map(|point| point.0).find(|&time| time >= 0).unwrap_or(0);
        builder.clock.wall_ns_at_origin = Some(origin);
        let roles = points
            .into_iter()
            .map(|(ns, bytes)| (Time::from_ns(ns.max(origin).saturating_sub(origin)), bytes))
            .collect();
        let owner = Owner { name: OWNER.to_owned(), roles, ..Owner::default() };
        let log = MemoryLog { owners: vec![owner], ..MemoryLog::default() };
        progress.advance(bytes.len() as u64, 0);
        Ok(memory_tracks::finish(builder, log).finish())
    }
}

/// The place of an export's role.
fn place(role: i64) -> usize {
    let role = usize::try_from(role).ok().and_then(|at| ROLES.get(at).copied()).flatten();
    role.and_then(|role| Role::ALL.iter().position(|&other| other == role)).unwrap_or(Role::ALL.len())
}

/// Nanoseconds and bytes, and where damage ends them.
type Points = (Vec<(i64, RoleUse)>, Option<usize>);

/// The times of the raw form are nanoseconds.
fn raw(bytes: &[u8]) -> Points {
    let (mut in_use, mut points): (RoleUse, Vec<(i64, RoleUse)>) = (RoleUse::default(), Vec::new());
    let mut row = Vec::with_capacity(4);
    let mut numbers = Numbers::new(bytes);
    while let Some(event) = numbers.next() {
        match event {
            Event::Number(number) => row.push(number),
            Event::Open => row.clear(),
            Event::Close => {
                if let [time, _, change, role] = row[..] {
                    let slot = &mut in_use[place(role)];
                    *slot = slot.saturating_add(change);
                    match points.last_mut() {
                        Some(last) if last.0 == time => last.1 = in_use,
                        _ => points.push((time, in_use)),
                    }
                }
                row.clear();
            }
        }
    }
    (points, numbers.broken())
}

/// The times of this form are microseconds.
fn summed(bytes: &[u8]) -> Points {
    let (mut times, mut points) = (Vec::new(), Vec::new());
    let (mut depth, mut lists, mut row) = (0_usize, 0_usize, Vec::with_capacity(9));
    let mut numbers = Numbers::new(bytes);
    while let Some(event) = numbers.next() {
        match event {
            Event::Open => {
                depth += 1;
                lists += usize::from(depth == 2);
                row.clear();
            }
            Event::Number(number) if lists == 1 && depth == 2 => times.push(number),
            Event::Number(number) => row.push(number),
            Event::Close => {
                if depth == 3
                    && let Some(&time) = times.get(points.len())
                {
                    let mut in_use = RoleUse::default();
                    for (&bytes, role) in row.iter().skip(1).zip(0..) {
                        let slot = &mut in_use[place(role)];
                        *slot = slot.saturating_add(bytes);
                    }
                    points.push((time.saturating_mul(1_000), in_use));
                }
                row.clear();
                depth = depth.saturating_sub(1);
            }
        }
    }
    (points, numbers.broken())
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::damage::{Rng, flip_bits, splice, truncations};

    use super::*;
    use crate::{Bytes, open_input};

    fn read(text: &[u8]) -> Result<Trace, ReadError> {
        open_input(&Input::from_bytes("x", Bytes::held(text.to_vec())), &Progress::new())
            .map(|opened| opened.trace)
    }

    const RAW: &[u8] =
        b"[[-1, 1, 100, 0], [-1, 1, 50, 1], [7000, 2, 30, 4], [7000, 3, -30, 4], [7000, 3, 30, 3], [9000, 4, -30, 3]]";
    const SUMMED: &[u8] = b"[[5, 5, 8], [[0, 100, 50, 0, 0, 0, 0, 0, 0], [0, 100, 50, 0, 0, 30, 0, 0, 0], \
                            [0, 100, 50, 0, 0, 0, 0, 0, 9]]]";

    fn uses(text: &[u8]) -> Vec<(i64, i64)> {
        let trace = read(text).unwrap();
        let log = trace.memory().unwrap();
        log.owners[0].roles.iter().map(|(time, bytes)| (time.ns(), bytes.iter().sum())).collect()
    }

    #[test]
    fn both_forms_sum_to_the_bytes_in_use() {
        assert_eq!(uses(RAW), [(0, 150), (0, 180), (2_000, 150)]);
        assert_eq!(uses(SUMMED), [(0, 150), (0, 180), (3_000, 159)]);
    }

    #[test]
    fn other_lists_of_numbers_are_not_recognised() {
        for text in [
            &b"[]"[..],
            b"[1, 2, 3]",
            b"[[1, 2], [3, 4]]",
            b"[{\"ph\": \"X\"}]",
            b"[[]]",
            b"[[\"a\", 1, 2, 3]]",
        ] {
            assert!(!RoleTimelineReader.recognises(text), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn damaged_timelines_end_quietly() {
        let mut rng = Rng::new(3);
        for whole in [RAW, SUMMED] {
            truncations(whole).for_each(|part| drop(read(part)));
            for _ in 0..500 {
                drop(read(&flip_bits(whole, &mut rng, 2)));
                drop(read(&splice(whole, &mut rng)));
            }
        }
        let trace = read(&RAW[..RAW.len() - 20]).unwrap();
        assert_eq!(trace.memory().unwrap().owners[0].roles.len(), 2);
        assert_eq!(trace.notes()[0].kind, NoteKind::Damaged);
    }
}
