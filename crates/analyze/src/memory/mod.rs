//! Memory per allocator: usage over time, what was live at the peak, and whether it grows from step to step.
//!
//! TensorFlow's and XLA's allocators write an event for each block that is allocated or freed, PyTorch's an
//! instant `[memory]`; both with the memory in use. What was allocated before the capture is only known as a
//! sum, and shown as such. One [`MemoryPartial`] per host, merged, then finished into a [`Memory`].

mod blocks;
pub mod fit;
mod growth;
mod held;
mod ledger;
mod log;
mod programs;
mod records;

use rayon::prelude::*;
use stepscope_trace::Time;
use stepscope_trace::memory::Role;

use crate::analysis::Analysis;
use crate::context::Context;
use crate::steps::How;

pub use blocks::{Leak, Live};
pub use growth::{Growth, StepMemory};
pub use held::{At, BlockRow, FreeMemory, HeldAt, OutOfMemory, Pin, RoleSource, held_at};
pub use ledger::Ledger;
pub use log::picture::{
    AddressMap, CallNode, PlacedBlock, PlacedSegment, RoleCurve, address_map, calls_at, role_curve,
};
pub use programs::{JoinedBy, ProgramAtPeak};

/// What one host says.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct MemoryPartial {
    allocators: Vec<Allocator>,
}

/// All allocators.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Highest peak first. Empty if no allocations were recorded.
    pub allocators: Vec<Allocator>,
}

/// One allocator of one host. Sizes are in bytes.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Allocator {
    /// The host.
    pub host: String,
    /// Its name, e.g. `GPU_0_bfc` or `CUDA:0`.
    pub name: String,
    /// Blocks allocated during the capture.
    pub allocations: u64,
    /// Blocks freed during the capture.
    pub frees: u64,
    /// Peak during the capture.
    pub peak: i64,
    /// Time of the peak.
    pub peak_at: Time,
    /// Whether the recording has times.
    #[serde(default = "yes")]
    pub timed: bool,
    /// Whether the recording has a history, and not just the state at one moment.
    #[serde(default = "yes")]
    pub history: bool,
    /// Step number of the peak; `None` between steps.
    pub peak_step: Option<i64>,
    /// Its capacity.
    pub capacity: Option<u64>,
    /// Memory reserved from the system at the peak.
    pub reserved_at_peak: Option<u64>,
    /// Peak in the program's life so far.
    pub lifetime_peak: Option<u64>,
    /// The share of free memory at the peak outside the largest free block.
    pub fragmentation_at_peak: Option<f64>,
    /// Usage over time: at most [`MOST_POINTS`] points, maxima kept.
    pub timeline: Vec<(Time, i64)>,
    /// What was live at the peak, largest first. Empty if blocks have no addresses.
    pub at_peak: Vec<Live>,
    /// Memory in use at the peak that was allocated before the capture.
    pub before_capture: i64,
    /// Memory in use at the peak that loaded programs reserve for their temporaries.
    #[serde(default)]
    pub reserved_by_programs: i64,
    /// The program that ran longest while that much was reserved.
    #[serde(default)]
    pub program: Option<String>,
    /// What compiled programs hold at the peak, as their own plans say; empty if the recording has no programs.
    #[serde(default)]
    pub programs: Vec<ProgramAtPeak>,
    /// Bytes at the peak per role, largest first; empty if no role is known.
    #[serde(default)]
    pub roles: Vec<(Option<Role>, i64)>,
    /// Where those roles come from.
    #[serde(default)]
    pub roles_from: Option<RoleSource>,
    /// The largest block that was asked for.
    #[serde(default)]
    pub largest_request: Option<u64>,
    /// The last request that failed.
    #[serde(default)]
    pub out_of_memory: Option<OutOfMemory>,
    /// Memory per counted step.
    pub steps: Vec<StepMemory>,
    /// How it changes from step to step; `None` with too few steps.
    pub growth: Option<Growth>,
    /// Blocks that were allocated in a step and never freed, largest first.
    pub leaks: Vec<Leak>,
}

impl Allocator {
    /// The peak as a share of its capacity.
    pub fn pressure(&self) -> Option<f64> {
        self.capacity.filter(|&capacity| capacity > 0).map(|capacity| self.peak as f64 / capacity as f64)
    }
}

fn yes() -> bool {
    true
}

/// Maximum number of points in a timeline.
pub const MOST_POINTS: usize = 2_000;

impl Analysis for MemoryPartial {
    type Output = Memory;

    /// One pass over the tracks, then one over each allocator's records.
    fn of(context: &Context) -> Self {
        if let Some(recorded) = context.trace.memory() {
            return MemoryPartial { allocators: log::allocators(context, recorded) };
        }
        let groups = records::collect(context);
        let mut allocators: Vec<Allocator> =
            groups.into_par_iter().filter_map(|group| allocator(context, group)).collect();
        programs::explain(context, &mut allocators);
        MemoryPartial { allocators }
    }

    /// Adds another host.
    fn merge(&mut self, other: MemoryPartial) {
        self.allocators.extend(other.allocators);
    }

    /// Keeps what findings need: the peak, its largest owners and the growth, but few points in time.
    fn bound(&mut self) {
        const POINTS: usize = 64;
        const ROWS: usize = 32;
        for allocator in &mut self.allocators {
            crate::stored::thin(&mut allocator.timeline, POINTS);
            crate::stored::thin(&mut allocator.steps, POINTS);
            allocator.at_peak.truncate(ROWS);
            allocator.leaks.truncate(ROWS);
            if let Some(failure) = &mut allocator.out_of_memory {
                failure.holders.truncate(ROWS);
            }
        }
    }

    /// The result.
    fn finish(self) -> Memory {
        let mut allocators = self.allocators;
        allocators
            .sort_by(|a, b| b.peak.cmp(&a.peak).then_with(|| (&a.host, &a.name).cmp(&(&b.host, &b.name))));
        Memory { allocators }
    }
}

fn allocator(context: &Context, group: records::Group) -> Option<Allocator> {
    let records::Group { name, chip, records } = group;
    let peak_place = (0..records.len()).max_by_key(|&at| (records[at].in_use, std::cmp::Reverse(at)))?;
    let peak = records[peak_place];
    let details = records::details(context, peak.event);
    let steps: Vec<_> = context.breakdown().counted().map(|(step, _)| (step.number, step.span)).collect();
    // A step needs what a layer keeps: only known steps can leak.
    let layers = matches!(context.steps().how, How::Period(_));
    let steps = if context.breakdown().steps.whole_capture || layers { Vec::new() } else { steps };
    let freed = blocks::pair(&records);
    let at_peak = blocks::alive(context, &records, &freed, peak_place);
    let known = at_peak.iter().map(|live| live.bytes).fold(0, i64::saturating_add);
    let addressed = records.iter().any(|record| record.address != blocks::UNKNOWN);
    let by_step = growth::by_step(&records, &steps);
    let lifetime = records.last().and_then(|last| records::details(context, last.event).lifetime_peak);
    Some(Allocator {
        host: context.host.clone(),
        allocations: records.iter().filter(|record| record.change >= 0).count() as u64,
        frees: records.iter().filter(|record| record.change < 0).count() as u64,
        peak: peak.in_use,
        peak_at: peak.time,
        timed: true,
        history: true,
        roles: Vec::new(),
        roles_from: None,
        largest_request: records
            .iter()
            .map(|record| record.change)
            .max()
            .and_then(|most| u64::try_from(most).ok()),
        out_of_memory: None,
        peak_step: steps.iter().find(|(_, span)| span.contains(peak.time)).map(|&(number, _)| number),
        capacity: details.capacity(),
        reserved_at_peak: details.reserved,
        lifetime_peak: lifetime,
        fragmentation_at_peak: details.fragmentation,
        timeline: timeline(&records),
        before_capture: if addressed { peak.heap().saturating_sub(known).max(0) } else { 0 },
        reserved_by_programs: peak.reserved,
        program: chip
            .filter(|_| peak.reserved > 0)
            .and_then(|chip| programs::reserving(context, chip, &records, peak_place)),
        programs: Vec::new(),
        at_peak,
        growth: growth::growth(&by_step),
        leaks: blocks::leaks(context, &records, &freed, &steps),
        steps: by_step,
        name,
    })
}

/// The amounts of the records, thinned so that each piece keeps its maximum.
fn timeline(records: &[records::Record]) -> Vec<(Time, i64)> {
    let piece = records.len().div_ceil(MOST_POINTS).max(1);
    records
        .chunks(piece)
        .filter_map(|piece| piece.iter().max_by_key(|record| record.in_use))
        .map(|record| (record.time, record.in_use))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Datum, Dur, Form, Kind, ProcessKind, TraceBuilder, TrackKind};

    struct Program {
        builder: TraceBuilder,
        track: stepscope_trace::TrackId,
        in_use: i64,
    }

    impl Program {
        fn new() -> Self {
            let mut builder = TraceBuilder::new();
            let name = builder.strings.intern("python");
            let process = builder.process(name, ProcessKind::Host, 1);
            let track = builder.track(process, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
            Program { builder, track, in_use: 1_000 }
        }

        fn step(&mut self, number: i64, at: i64, len: i64) {
            let key = self.builder.strings.intern("step_num");
            let args = self.builder.arena.push(&[(key, Datum::Int(number))], &[]);
            let name = self.builder.strings.intern("train");
            let kind = self.builder.kind(Kind::slice(name));
            self.builder.event(self.track, Time::from_ns(at), Dur::from_ns(len), kind, args);
        }

        fn block(&mut self, at: i64, addr: u64, bytes: i64, op: &str) {
            self.in_use += bytes;
            let strings = &mut self.builder.strings;
            let mut args = vec![
                (strings.intern("allocator_name"), Datum::Str(strings.intern("GPU_0_bfc"))),
                (strings.intern("bytes_allocated"), Datum::Int(self.in_use)),
                (strings.intern("bytes_reserved"), Datum::Int(0)),
                (strings.intern("bytes_available"), Datum::Int(10_000 - self.in_use)),
                (strings.intern("allocation_bytes"), Datum::Int(bytes.abs())),
                (strings.intern("peak_bytes_in_use"), Datum::Int(9_000)),
                (strings.intern("addr"), Datum::UInt(addr)),
            ];
            let name = strings.intern(if bytes > 0 { "MemoryAllocation" } else { "MemoryDeallocation" });
            if bytes > 0 {
                args.push((strings.intern("tf_op"), Datum::Str(strings.intern(op))));
                args.push((strings.intern("data_type"), Datum::Int(1)));
                args.push((strings.intern("shape"), Datum::Str(strings.intern("[2,3]"))));
            }
            let args = self.builder.arena.push(&args, &[]);
            let kind = self.builder.kind(Kind { form: Form::Slice, ..Kind::slice(name) });
            self.builder.event(self.track, Time::from_ns(at), Dur::ZERO, kind, args);
        }

        fn memory(self) -> Memory {
            let trace = self.builder.finish();
            MemoryPartial::of(&Context::new(&trace, "host")).finish()
        }
    }

    #[test]
    fn the_peak_names_what_was_alive_and_what_is_older_than_the_capture() {
        let mut program = Program::new();
        program.block(10, 1, 500, "dense/MatMul");
        program.block(20, 2, 300, "dense/MatMul");
        program.block(30, 1, -500, "");
        program.block(40, 1, 100, "loss/Sum");
        let memory = program.memory();
        let [gpu] = &memory.allocators[..] else { panic!("one allocator, not {}", memory.allocators.len()) };
        assert_eq!((gpu.name.as_str(), gpu.allocations, gpu.frees), ("GPU_0_bfc", 3, 1));
        assert_eq!((gpu.peak, gpu.peak_at, gpu.capacity), (1_800, Time::from_ns(20), Some(10_000)));
        assert_eq!((gpu.before_capture, gpu.lifetime_peak), (1_000, Some(9_000)));
        let [live] = &gpu.at_peak[..] else { panic!("equal blocks are one row") };
        assert_eq!((live.op.as_str(), live.blocks, live.bytes), ("dense/MatMul", 2, 800));
        assert_eq!((live.data_type.as_deref(), live.shape.as_deref()), (Some("float"), Some("[2,3]")));
        assert!(gpu.growth.is_none() && gpu.leaks.is_empty(), "no steps, no growth");
    }

    #[test]
    fn a_block_kept_each_step_is_growth_and_one_kept_at_the_start_is_not() {
        let run = |keeps: fn(i64) -> bool| {
            let mut program = Program::new();
            for step in 0..10 {
                let at = step * 1_000;
                program.step(step, at, 995);
                program.block(at + 10, 7, 400, "scratch");
                if keeps(step) {
                    program.block(at + 20, 100 + step as u64, 64, "kept");
                }
                program.block(at + 30, 7, -400, "");
            }
            program.memory().allocators.remove(0)
        };
        let grows = run(|_| true);
        let growth = grows.growth.unwrap();
        assert!(growth.grows);
        assert_eq!(growth.bytes_per_step, 64.0);
        let leak = &grows.leaks[0];
        assert_eq!(
            (leak.op.as_str(), leak.blocks, leak.steps),
            ("kept", 9, 9),
            "the last step may still free its own"
        );
        assert_eq!((grows.steps[3].allocations, grows.steps[3].frees), (2, 1));
        let settles = run(|step| step == 0);
        assert!(!settles.growth.unwrap().grows);
    }
}
