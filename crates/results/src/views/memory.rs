//! `stepscope memory`: what was live at each allocator's peak, memory use over time, and whether it grows.

pub mod change;
mod growth;
mod rows;

use std::collections::BTreeMap;

use serde_json::json;
use stepscope_analyze::memory::{
    Allocator, At, HeldAt, Live, Memory, MemoryPartial, OutOfMemory, ProgramAtPeak, RoleSource, held_at,
};
use stepscope_analyze::work::programs::PeakLine;
use stepscope_analyze::{Analysis, Context};
use stepscope_trace::memory::Role;

use self::rows::reserved_label;
use super::hlo_modules::short_program;
use super::{Group, Grouping, Hosts, View, all_hosts, each_host};
use crate::format::{bytes, duration_ms, percent, plural};
use crate::table::{Table, described};

pub use rows::By;

/// Width of the small chart in text.
const CHART: usize = 48;
/// Number of allocators described below the table.
const DESCRIBED: usize = 4;
/// Steady growth below this share of the peak over the capture does not appear in the headline.
const WORTH_TELLING: f64 = 0.001;

/// Without addresses, nobody can tell which block is freed when.
const NO_ADDRESSES: &str = "What was live at the peak is unknown: the profiler recorded no addresses of blocks. Newer versions of \
                            PyTorch record them.";

pub(super) const VIEW: View = View {
    name: "memory",
    title: "Memory",
    group: Group::Hardware,
    question: "What uses the memory?",
    about: "Show memory per allocator: peak, what was live at the peak, growth per step",
    after_help: "Two recordings are compared: what grew, by line (schema stepscope.memory-change.v1).\n\nExamples:\n  \
        stepscope memory logs/                    what fills the memory at the peak\n  \
        stepscope memory snapshot.pickle          the lines of a PyTorch program that hold memory\n  \
        stepscope memory snapshot.pickle --at oom what was live at the out-of-memory error\n  \
        stepscope memory snapshot.pickle --leaks  what is kept from step to step, by line\n  \
        stepscope memory before.prof after.prof   what grew between two JAX memory profiles\n  \
        stepscope memory b16/ b32/ --batch 16,32 --fit 24GB   the largest batch that fits\n  \
        stepscope memory logs/ --json             with the timeline and memory per step",
    record: &[
        "TensorFlow: allocations are recorded by default at host tracer level 2",
        "PyTorch: `torch.cuda.memory._record_memory_history()`, then `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`; or `torch.profiler.profile(profile_memory=True)`",
        "JAX: `jax.profiler.save_device_memory_profile(\"memory.prof\")`; a trace contains allocations on GPUs and TPUs",
    ],
    events: None,
    recording: true,
    sql: Some(("allocation", "What was live at the peak of each allocator.")),
    columns: || described(rows::columns()),
    members: "
        allocators?: [allocator] -- Each allocator over time.
        held?: [held] -- What each allocator held at the moment that was asked for.
        @held
        host: string -- The host.
        allocator: string -- The allocator.
        at_ms: number? -- When.
        in_use_bytes: integer -- Bytes in use.
        @allocator
        host: string -- The host.
        name: string -- The allocator.
        allocations: integer -- Allocations.
        frees: integer -- Frees.
        peak_bytes: integer -- The peak.
        peak_ms: number? -- When it was; null if the recording has no times.
        peak_step: integer? -- The step in which it was.
        capacity_bytes: integer? -- What the allocator can hold.
        reserved_bytes_at_peak: integer? -- What it had reserved at the peak.
        lifetime_peak_bytes: integer? -- The peak since the process started.
        fragmentation_at_peak: number? -- Share of reserved memory that was unusable, 0 to 1.
        pressure: number? -- Peak over capacity, 0 to 1.
        before_capture_bytes: integer -- Allocated before the capture.
        program_reserved_bytes: integer -- Reserved at the peak by loaded programs for their temporaries.
        program: string? -- The program that reserves it.
        programs: [program] -- What compiled programs hold at the peak, largest first.
        roles: [role] -- Bytes at the peak per role, largest first; empty if no role is known.
        roles_from: string? -- Where the roles come from: `file`, or `lifetimes` of blocks.
        out_of_memory: failure? -- The last request that failed.
        growth: growth? -- Growth from step to step.
        kept: [kept] -- What is allocated in every step and never freed.
        steps: [step] -- Each step.
        timeline: [[number?]] -- Pairs of milliseconds and bytes in use.
        @program
        program: string -- Its name.
        bytes: integer -- Bytes at the peak that were allocated for its temporaries.
        matched: string -- How: by `name`, or by the `size` of the allocation, which no other program has.
        values: [value] -- Its temporaries at its own peak by line of source, largest first.
        @value
        what: string -- Scopes of the model and operation of the framework.
        source: string? -- File and line.
        shape: string -- Shape of the largest value.
        bytes: integer -- Bytes of all values of this line.
        @role
        role: string -- What memory is for: parameter, optimizer, input, temporary, activation, gradient, autograd, kept, program or unknown.
        bytes: integer -- Bytes.
        @failure
        at_ms: number? -- When.
        requested_bytes: integer -- What was asked for.
        line: string? -- The line that asked.
        allocated_bytes: integer -- In use then.
        reserved_bytes: integer? -- In segments then.
        device_free_bytes: integer? -- Free on the device, outside of segments.
        free_bytes: integer? -- Free in segments that cannot be given back.
        largest_free_bytes: integer? -- The largest free piece.
        fragmented: boolean -- Whether enough was free, but in pieces that are too small.
        pinned_by: [pin] -- Lines whose blocks keep nearly empty segments.
        @pin
        line: string -- The line.
        free_bytes: integer -- Free bytes in those segments.
        bytes: integer -- Bytes of its blocks in them.
        blocks: integer -- Its blocks in them.
        segments: integer -- Segments.
        @growth
        bytes_per_step: number -- Bytes per step.
        rising_fraction: number -- Share of steps that end with more than the step before.
        steps: integer -- Steps.
        grows: boolean -- Whether it grows for good.
        @kept
        op: string? -- What allocated it: an op or a line.
        shape: string? -- Its shape.
        blocks: integer -- Blocks.
        bytes: integer -- Bytes.
        steps: integer -- Steps.
        bytes_per_step: number? -- Bytes kept per step, if the recording has stacks.
        @step
        index: integer -- Its number.
        allocations: integer -- Allocations.
        frees: integer -- Frees.
        end_bytes: integer? -- In use at its end.
        peak_bytes: integer? -- Its peak.
    ",
    table: |hosts| table(&memory(hosts)),
    groupings: &[
        Grouping { by: "line", table: |hosts| by(hosts, By::Line) },
        Grouping { by: "op", table: |hosts| by(hosts, By::Op) },
        Grouping { by: "role", table: |hosts| by(hosts, By::Role) },
        Grouping { by: "block", table: |hosts| by(hosts, By::Block) },
    ],
};

/// What is asked about the memory of one recording.
#[derive(Copy, Clone, Debug)]
pub struct Question {
    /// How rows are combined; `None` as suits the recording.
    pub by: Option<By>,
    /// The moment.
    pub at: At,
    /// What is kept from step to step, instead of what is held at a moment.
    pub kept: bool,
    /// Say what is left of this capacity, or of the recorded one.
    pub room: Option<Option<u64>>,
}

/// The memory of all hosts.
pub fn memory(hosts: &dyn Hosts) -> Memory {
    all_hosts(hosts, MemoryPartial::of, MemoryPartial::merge).finish()
}

/// The answer.
pub fn answer(hosts: &dyn Hosts, question: Question) -> Table {
    let plain = question.at == At::Peak && question.by.is_none();
    let both = |context: &Context<'_>| {
        let held = if plain || question.kept { Vec::new() } else { held_at(context, question.at) };
        (MemoryPartial::of(context), held)
    };
    let (partials, held): (Vec<MemoryPartial>, Vec<Vec<HeldAt>>) = each_host(hosts, both).into_iter().unzip();
    let merged = partials.into_iter().fold(MemoryPartial::default(), |mut all, one| {
        all.merge(one);
        all
    });
    let memory = merged.finish();
    let mut held: Vec<HeldAt> = held.into_iter().flatten().collect();
    held.sort_by(|a, b| b.in_use.cmp(&a.in_use).then_with(|| (&a.host, &a.name).cmp(&(&b.host, &b.name))));
    let mut table = match question {
        Question { kept: true, .. } => growth::table(&memory),
        _ if plain => table(&memory),
        Question { by, at, .. } => held_table(&memory, &held, by, at),
    };
    if let Some(capacity) = question.room {
        change::add_room(&mut table, &memory, capacity);
    }
    table
}

fn by(hosts: &dyn Hosts, by: By) -> Table {
    answer(hosts, Question { by: Some(by), at: At::Peak, kept: false, room: None })
}

/// How the rows of a recording are combined by themselves: by line or role where there are any.
fn suiting<'a>(mut rows: impl Iterator<Item = &'a Live> + Clone) -> By {
    if rows.clone().any(|live| live.line.is_some()) {
        By::Line
    } else if rows.any(|live| live.role.is_some()) {
        By::Role
    } else {
        By::Recorded
    }
}

fn table(memory: &Memory) -> Table {
    let held: Vec<HeldAt> = memory.allocators.iter().map(HeldAt::at_peak).collect();
    let by = suiting(held.iter().flat_map(|held| &held.rows));
    held_table(memory, &held, Some(by), At::Peak)
}

fn held_table(memory: &Memory, held: &[HeldAt], by: Option<By>, at: At) -> Table {
    let by = by.unwrap_or_else(|| suiting(held.iter().flat_map(|held| &held.rows)));
    let mut table = rows::table(held, by);
    table.member("allocators", memory.allocators.iter().map(member).collect::<Vec<_>>());
    let moment = match at {
        At::Peak => {
            table.headline = Some(headline(memory));
            memory.allocators.iter().take(DESCRIBED).for_each(|allocator| describe(&mut table, allocator));
            return table;
        }
        At::Oom => "the out-of-memory error".to_owned(),
        At::Time(_) => "that time".to_owned(),
        At::Step(number) => format!("the highest point of step {number}"),
    };
    table.headline = Some(headline_at(held, &moment));
    table.entitle("op", "live");
    table.member("held", held.iter().map(held_member).collect::<Vec<_>>());
    table
}

fn headline_at(held: &[HeldAt], moment: &str) -> String {
    let Some(first) = held.iter().max_by_key(|held| held.in_use) else {
        return format!("No allocator has a record of {moment}");
    };
    let time = first.at.map_or(String::new(), |time| format!(", {}", duration_ms(time.ms())));
    format!("{} holds {} at {moment}{time}", first.name, bytes(first.in_use as f64))
}

fn held_member(held: &HeldAt) -> serde_json::Value {
    json!({
        "host": held.host, "allocator": held.name, "at_ms": held.at.map(|time| time.ms()), "in_use_bytes": held.in_use,
    })
}

/// The answer in one line, with the line of the program that holds the most.
pub fn summary(memory: &Memory) -> String {
    let headline = headline(memory);
    let Some(first) = memory.allocators.first().filter(|first| first.peak > 0) else { return headline };
    let mut lines: BTreeMap<&str, i64> = BTreeMap::new();
    for live in &first.at_peak {
        if let Some(line) = &live.line {
            *lines.entry(line).or_default() += live.bytes;
        }
    }
    match lines.into_iter().max_by_key(|(_, held)| *held) {
        Some((line, held)) => {
            let share = percent(held as f64 / first.peak as f64);
            format!("{headline}; the largest part, {} ({share}), is from {line}", bytes(held as f64))
        }
        None => headline,
    }
}

/// The answer in one line.
fn headline(memory: &Memory) -> String {
    let Some(first) = memory.allocators.first() else {
        return "No allocations were recorded; memory is unknown".to_owned();
    };
    let of = first.capacity.zip(first.pressure()).map_or(String::new(), |(capacity, pressure)| {
        format!(" of {} ({})", bytes(capacity as f64), percent(pressure))
    });
    let peaks = if first.history { "peaks at" } else { "holds" };
    let peak = format!("{} {peaks} {}{of}{}", first.name, bytes(first.peak as f64), mostly_programs(first));
    if let Some(failure) = memory.allocators.iter().find_map(|allocator| allocator.out_of_memory.as_ref()) {
        return out_of_memory(failure);
    }
    match memory.allocators.iter().find(|allocator| grows(allocator)) {
        Some(growing) => {
            let rate = growing.growth.map_or(0.0, |growth| growth.bytes_per_step);
            let which = if growing.name == first.name { "and it" } else { &growing.name };
            format!("{peak}, {which} grows by {} per step", bytes(rate))
        }
        None => peak,
    }
}

/// What a failed request met.
fn out_of_memory(failure: &OutOfMemory) -> String {
    let place = failure.line.as_ref().map_or(String::new(), |line| format!(" at {line}"));
    let free = failure.free.as_ref().map_or(String::new(), |free| {
        format!(", {} free in pieces of at most {}", bytes(free.bytes as f64), bytes(free.largest as f64))
    });
    format!(
        "Out of memory: {} asked for{place}; {} in use{free}",
        bytes(failure.requested as f64),
        bytes(failure.allocated as f64)
    )
}

/// The share of programs, where it is most of the peak.
fn mostly_programs(allocator: &Allocator) -> String {
    let reserved = allocator.reserved_by_programs;
    if reserved.saturating_mul(2) <= allocator.peak {
        return String::new();
    }
    let rest = bytes(allocator.peak.saturating_sub(reserved) as f64);
    format!(
        "; {} of it is {}, arrays hold {rest}",
        bytes(reserved as f64),
        reserved_label(allocator.program.as_deref())
    )
}

fn grows(allocator: &Allocator) -> bool {
    allocator.growth.is_some_and(|growth| {
        growth.grows && growth.bytes_per_step * growth.steps as f64 >= WORTH_TELLING * allocator.peak as f64
    })
}

fn member(allocator: &Allocator) -> serde_json::Value {
    let growth = allocator.growth.map(|growth| {
        json!({"bytes_per_step": growth.bytes_per_step, "rising_fraction": growth.rising, "steps": growth.steps,
               "grows": growth.grows})
    });
    let timeline: Vec<_> = allocator.timeline.iter().map(|(at, in_use)| json!([at.ms(), in_use])).collect();
    let steps: Vec<_> = allocator
        .steps
        .iter()
        .map(|step| {
            json!({"index": step.number, "allocations": step.allocations, "frees": step.frees,
                   "end_bytes": step.end, "peak_bytes": step.peak})
        })
        .collect();
    let leaks: Vec<_> = allocator
        .leaks
        .iter()
        .map(|leak| {
            json!({"op": leak.op, "shape": leak.shape, "blocks": leak.blocks, "bytes": leak.bytes,
                       "steps": leak.steps, "bytes_per_step": leak.per_step})
        })
        .collect();
    json!({
        "host": allocator.host, "name": allocator.name,
        "allocations": allocator.allocations, "frees": allocator.frees,
        "peak_bytes": allocator.peak, "peak_ms": allocator.timed.then(|| allocator.peak_at.ms()),
        "peak_step": allocator.peak_step,
        "capacity_bytes": allocator.capacity, "reserved_bytes_at_peak": allocator.reserved_at_peak,
        "lifetime_peak_bytes": allocator.lifetime_peak,
        "fragmentation_at_peak": allocator.fragmentation_at_peak, "pressure": allocator.pressure(),
        "before_capture_bytes": allocator.before_capture,
        "program_reserved_bytes": allocator.reserved_by_programs, "program": allocator.program,
        "programs": allocator.programs.iter().map(program_member).collect::<Vec<_>>(),
        "roles": roles_member(allocator), "roles_from": allocator.roles_from,
        "out_of_memory": allocator.out_of_memory.as_ref().map(failure_member),
        "growth": growth, "kept": leaks, "steps": steps, "timeline": timeline,
    })
}

fn program_member(program: &ProgramAtPeak) -> serde_json::Value {
    let value = |line: &PeakLine| {
        let source = Some(&line.source).filter(|source| !source.is_empty());
        json!({"what": line.label, "source": source, "shape": line.shape, "bytes": line.bytes})
    };
    json!({"program": program.program, "bytes": program.bytes, "matched": program.by.key(),
           "values": program.values.iter().map(value).collect::<Vec<_>>()})
}

fn roles_member(allocator: &Allocator) -> serde_json::Value {
    let roles = allocator.roles.iter().filter(|_| allocator.roles_from.is_some());
    let row = |(role, bytes): &(Option<Role>, i64)| json!({"role": role.map_or("unknown", |role| role.key()), "bytes": bytes});
    roles.map(row).collect()
}

fn failure_member(failure: &OutOfMemory) -> serde_json::Value {
    let free = failure.free.as_ref();
    let pins = free.map_or(&[][..], |free| free.pins.as_slice());
    let pins: Vec<_> = pins
        .iter()
        .map(|pin| {
            json!({"line": pin.line, "free_bytes": pin.free_bytes, "bytes": pin.bytes, "blocks": pin.blocks,
                   "segments": pin.segments})
        })
        .collect();
    json!({
        "at_ms": failure.at.map(|time| time.ms()), "requested_bytes": failure.requested, "line": failure.line,
        "allocated_bytes": failure.allocated, "reserved_bytes": failure.reserved,
        "device_free_bytes": failure.device_free, "free_bytes": free.map(|free| free.bytes),
        "largest_free_bytes": free.map(|free| free.largest), "fragmented": failure.is_fragmentation(), "pinned_by": pins,
    })
}

fn describe(table: &mut Table, allocator: &Allocator) {
    if !allocator.history {
        table.note(format!(
            "{}: {} live when the file was written, {}.",
            allocator.name,
            plural(allocator.allocations, "block", "blocks"),
            bytes(allocator.peak as f64),
        ));
        return;
    }
    let (taken, given) = (
        plural(allocator.allocations, "allocation", "allocations"),
        plural(allocator.frees, "free", "frees"),
    );
    let time =
        if allocator.timed { format!(" at {}", duration_ms(allocator.peak_at.ms())) } else { String::new() };
    let within = allocator.peak_step.map_or(String::new(), |step| format!(", in step {step}"));
    let fragmented = allocator
        .fragmentation_at_peak
        .map_or(String::new(), |share| format!(", {} of free memory fragmented at the peak", percent(share)));
    table.note(format!(
        "{}: {taken}, {given}; peak {}{time}{within}{fragmented}.",
        allocator.name,
        bytes(allocator.peak as f64),
    ));
    if let Some(chart) = chart(allocator) {
        table.note(format!("  in use  {chart}"));
    }
    let explained = allocator.before_capture > 0 || allocator.reserved_by_programs > 0;
    if allocator.peak > 0 && allocator.at_peak.is_empty() && !explained {
        table.note(format!("  {NO_ADDRESSES}"));
    }
    describe_roles(table, allocator);
    allocator.programs.iter().take(DESCRIBED).for_each(|program| describe_program(table, program));
    if let Some(growth) = allocator.growth.filter(|growth| growth.grows) {
        let kept = allocator.leaks.first().map_or(String::new(), |leak| {
            let shape = leak.shape.as_ref().map_or(String::new(), |shape| format!(" {shape}"));
            format!(
                "; never freed: {} of {}{shape} from {}",
                plural(leak.blocks, "block", "blocks"),
                if leak.op.is_empty() { "an unknown op" } else { &leak.op },
                plural(leak.steps, "step", "steps"),
            )
        });
        table.note(format!(
            "  grows by {} per step, in {} of the steps{kept}.",
            bytes(growth.bytes_per_step),
            percent(growth.rising),
        ));
    }
}

/// What a program keeps in the blocks that were allocated for it.
fn describe_program(table: &mut Table, program: &ProgramAtPeak) {
    let named = |line: &PeakLine| {
        let place = if line.source.is_empty() { String::new() } else { format!(" at {}", line.source) };
        format!("{} {}{place}", bytes(line.bytes as f64), line.label)
    };
    let values: Vec<String> = program.values.iter().map(named).collect();
    let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    let held = bytes(program.bytes as f64);
    table.note(format!(
        "  {held} at the peak are temporaries of `{}`{values}.",
        short_program(&program.program)
    ));
}

/// Roles at the peak, and where they come from.
fn describe_roles(table: &mut Table, allocator: &Allocator) {
    let Some(source) = allocator.roles_from else { return };
    let part = |(role, bytes_held): &(Option<Role>, i64)| {
        format!("{} {}", role.map_or("unknown", |role| role.key()), bytes(*bytes_held as f64))
    };
    let parts: Vec<String> = allocator.roles.iter().map(part).collect();
    let source = match source {
        RoleSource::File => "as recorded",
        RoleSource::Lifetimes => "by lifetime",
    };
    table.note(format!("  roles {source}: {}.", parts.join(", ")));
}

/// Memory use over time as a small chart.
fn chart(allocator: &Allocator) -> Option<String> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (first, last) = (allocator.timeline.first()?.0, allocator.timeline.last()?.0);
    let whole = (last - first).ps();
    if whole <= 0 || allocator.peak <= 0 {
        return None;
    }
    let mut most: Vec<Option<i64>> = vec![None; CHART];
    for &(at, in_use) in &allocator.timeline {
        let place = ((at - first).ps() as f64 / whole as f64 * (CHART - 1) as f64) as usize;
        let slot = &mut most[place.min(CHART - 1)];
        *slot = (*slot).max(Some(in_use));
    }
    let mut current = 0;
    let chart = most.into_iter().map(|level| {
        current = level.unwrap_or(current);
        let height = (current.max(0) as f64 / allocator.peak as f64 * 7.0).round() as usize;
        LEVELS[height.min(7)]
    });
    Some(chart.collect())
}
