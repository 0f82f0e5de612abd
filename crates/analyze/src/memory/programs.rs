//! Compiled programs and the memory that they hold: the one that reserves memory on an accelerator, and what a program's own
//! plan says about the blocks that were allocated for it.

use std::collections::BTreeMap;

use stepscope_trace::{DeviceKind, Dur, Time, Track};

use super::records::Record;
use super::{Allocator, Live};
use crate::context::Context;
use crate::work::programs::{PeakLine, ProgramKey, ProgramPeak, program_peaks};

/// Tracks of whole programs begin with this name.
const PROGRAMS: &str = "XLA Modules";

/// The name of the program that ran longest on the accelerator of this number while this much was reserved.
///
/// Memory is reserved when a program is loaded, which may be long before it runs: what runs at one moment of that time may
/// be another program that needs less.
pub(super) fn reserving(context: &Context, chip: i64, records: &[Record], peak: usize) -> Option<String> {
    let trace = context.trace;
    let level = records.get(peak)?.reserved;
    let holds = |record: &&Record| record.reserved == level;
    let begin = records.get(..=peak)?.iter().rev().take_while(holds).last()?.time;
    let end = records
        .get(peak..)?
        .iter()
        .find(|record| record.reserved != level)
        .map_or(Time::MAX, |record| record.time);
    let device =
        trace.devices().iter().find(|device| device.number == chip && device.kind != DeviceKind::Cpu)?;
    let is_programs =
        |track: &&Track| Some(track.process) == device.process && trace.str(track.name).starts_with(PROGRAMS);
    let mut ran: BTreeMap<&str, Dur> = BTreeMap::new();
    for track in trace.tracks().iter().filter(is_programs) {
        for index in 0..track.len() {
            let span = track.span_of(index);
            let inside = span.end.min(end) - span.start.max(begin);
            if inside > Dur::ZERO {
                *ran.entry(bare(trace.kind_name(track.kind_of(index)))).or_default() += inside;
            }
        }
    }
    ran.into_iter().max_by_key(|(_, time)| *time).map(|(name, _)| name.to_owned())
}

/// What a program holds at an allocator's peak.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProgramAtPeak {
    /// The program.
    pub program: String,
    /// Bytes at the peak that were allocated for its temporary values.
    pub bytes: i64,
    /// How the bytes were joined with it.
    pub by: JoinedBy,
    /// Its temporary values at its own peak by line of source, the largest first.
    pub values: Vec<PeakLine>,
}

/// How bytes of an allocator were joined with a program.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum JoinedBy {
    /// The recording names the program.
    #[default]
    Name,
    /// No other program allocates exactly as much for its temporary values.
    Size,
}

impl JoinedBy {
    /// For JSON.
    pub fn key(self) -> &'static str {
        match self {
            JoinedBy::Name => "name",
            JoinedBy::Size => "size",
        }
    }
}

/// Values that are kept of each program.
const MOST_VALUES: usize = 4;
/// Blocks that are smaller say nothing by their size: many programs allocate as much.
const TELLING: i64 = 64 << 10;
/// The op that runs a cluster of TensorFlow.
const RUNS_CLUSTER: &str = "xla_run";

/// Explains the peaks of allocators by the programs in the trace.
pub(super) fn explain(context: &Context, allocators: &mut [Allocator]) {
    let may_be = |live: &Live| live.op.is_empty() || cluster_of(&live.op).is_some();
    let asks = |allocator: &&mut Allocator| {
        allocator.reserved_by_programs > 0 || allocator.at_peak.iter().any(may_be)
    };
    let mut asking = allocators.iter_mut().filter(asks).peekable();
    if asking.peek().is_none() {
        return;
    }
    let peaks = program_peaks(context.trace);
    for allocator in asking {
        allocator.programs = at_peak(allocator, &peaks);
    }
}

fn at_peak(allocator: &Allocator, peaks: &[(ProgramKey, ProgramPeak)]) -> Vec<ProgramAtPeak> {
    let mut found: Vec<ProgramAtPeak> = Vec::new();
    let mut add = |bytes: i64, by: JoinedBy, (key, peak): &(ProgramKey, ProgramPeak)| {
        let temporary = peak.lines.iter().filter(|line| line.kind == "temporary");
        let values: Vec<PeakLine> = temporary.take(MOST_VALUES).cloned().collect();
        match found.iter_mut().find(|known| known.program == key.name) {
            Some(known) => known.bytes = known.bytes.saturating_add(bytes),
            None => found.push(ProgramAtPeak { program: key.name.clone(), bytes, by, values }),
        }
    };
    let named = allocator.program.as_ref().filter(|_| allocator.reserved_by_programs > 0);
    if let Some(program) = named.and_then(|name| peaks.iter().find(|(key, _)| key.name == *name)) {
        add(allocator.reserved_by_programs, JoinedBy::Name, program);
    }
    for live in &allocator.at_peak {
        match cluster_of(&live.op) {
            Some(cluster) => {
                let begins = |name: &str| {
                    name.strip_prefix(cluster).is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
                };
                if let Some(program) = only(peaks.iter().filter(|(key, _)| begins(&key.name))) {
                    add(live.bytes, JoinedBy::Name, program);
                }
            }
            None if live.op.is_empty() => {
                let each = live.requested.unwrap_or(live.bytes) / (live.blocks.max(1) as i64);
                let fits = |peak: &ProgramPeak| i64::try_from(peak.temporary_allocation) == Ok(each);
                let fitting = peaks.iter().filter(|(_, peak)| each >= TELLING && fits(peak));
                if let Some(program) = only(fitting) {
                    add(live.bytes, JoinedBy::Size, program);
                }
            }
            None => {}
        }
    }
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.program.cmp(&b.program)));
    found
}

/// The only one, if there is one and no other.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// The cluster that an op of TensorFlow runs: `cluster_0` of `cluster_0_1/xla_run`, whose last number tells copies of the op apart.
fn cluster_of(op: &str) -> Option<&str> {
    let (path, run) = op.rsplit_once('/')?;
    let cluster = path.rsplit('/').next().filter(|name| name.starts_with("cluster_"))?;
    let (name, copy) = cluster.rsplit_once('_')?;
    let numbered = !copy.is_empty() && copy.bytes().all(|digit| digit.is_ascii_digit());
    run.starts_with(RUNS_CLUSTER).then_some(if numbered && name != "cluster" { name } else { cluster })
}

/// The name without the number behind it: `jit_f(123)`.
fn bare(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, temporary_allocation: u64) -> (ProgramKey, ProgramPeak) {
        let line = |kind: &str| PeakLine { kind: kind.to_owned(), bytes: 9, ..PeakLine::default() };
        let lines = vec![line("argument"), line("temporary")];
        let peak = ProgramPeak { temporary_allocation, lines, ..ProgramPeak::default() };
        (ProgramKey { name: name.to_owned(), id: None }, peak)
    }

    fn live(op: &str, bytes: i64) -> Live {
        Live { op: op.to_owned(), bytes, blocks: 1, ..Live::default() }
    }

    #[test]
    fn a_cluster_is_named_by_the_op_that_runs_it() {
        assert_eq!(cluster_of("cluster_0_1/xla_run"), Some("cluster_0"));
        assert_eq!(cluster_of("outer/cluster_12/xla_run"), Some("cluster_12"));
        assert_eq!(cluster_of("cluster_0_1/xla_compile"), None);
        assert_eq!(cluster_of("dense/MatMul"), None);
        let peaks = [program("cluster_0__XlaCompiled.1", 5), program("cluster_01__XlaCompiled.2", 5)];
        let allocator = Allocator { at_peak: vec![live("cluster_0_1/xla_run", 70)], ..Allocator::default() };
        let found = at_peak(&allocator, &peaks);
        assert_eq!((found[0].program.as_str(), found[0].bytes), ("cluster_0__XlaCompiled.1", 70));
        assert_eq!((found[0].by, found[0].values.len()), (JoinedBy::Name, 1), "arguments are not its own");
    }

    #[test]
    fn a_nameless_block_belongs_to_the_only_program_that_allocates_as_much() {
        let allocator = Allocator { at_peak: vec![live("", TELLING)], ..Allocator::default() };
        let size = TELLING as u64;
        let one = [program("a", size), program("b", size + 1)];
        assert_eq!(at_peak(&allocator, &one)[0].by, JoinedBy::Size);
        assert_eq!(at_peak(&allocator, &[program("a", size), program("b", size)]), [], "two would fit");
        let small = Allocator { at_peak: vec![live("", 64)], ..Allocator::default() };
        assert_eq!(at_peak(&small, &[program("a", 64)]), [], "a size that many have");
    }

    #[test]
    fn what_an_accelerator_reserves_belongs_to_the_program_that_ran() {
        let allocator = Allocator {
            reserved_by_programs: 500,
            program: Some("jit_step".to_owned()),
            ..Allocator::default()
        };
        let found = at_peak(&allocator, &[program("jit_other", 1), program("jit_step", 400)]);
        assert_eq!((found[0].program.as_str(), found[0].bytes), ("jit_step", 500));
    }

    #[test]
    fn the_number_of_a_program_is_not_part_of_its_name() {
        assert_eq!((bare("jit_f(4467238)"), bare("jit_f")), ("jit_f", "jit_f"));
    }
}
