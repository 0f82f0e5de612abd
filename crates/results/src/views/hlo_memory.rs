//! `stepscope hlo memory`: what compiled programs keep in memory at their peak.

use std::collections::BTreeMap;

use serde_json::json;
use stepscope_analyze::work::programs::{LiveValue, ProgramMemories, ProgramMemory};

use super::hlo_modules::{RECORD, short_program};
use super::{Group, Grouping, Hosts, View, all_hosts};
use crate::format::{bytes, percent};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "hlo_memory",
    title: "Program memory",
    group: Group::Hardware,
    question: "What do compiled programs keep in memory at their peak?",
    about: "Show what is live at the memory peak of each program: arguments, outputs, temporaries, padding",
    after_help: "Examples:\n  \
        stepscope hlo memory logs/                  largest value first\n  \
        stepscope hlo memory logs/ --by source      bytes per line of source\n  \
        stepscope hlo memory logs/ --by kind        arguments, outputs, constants, temporaries",
    record: RECORD,
    events: None,
    recording: false,
    sql: Some(("hlo_buffer", "What is live at the memory peak of each program that ran.")),
    columns: || described(columns()),
    members: "
        peak_bytes?: integer? -- Of the program with the most time: the most that exists at once.
        argument_bytes?: integer? -- Its arguments.
        output_bytes?: integer? -- Its results.
        alias_bytes?: integer? -- Its results in given-away arguments.
        temp_bytes?: integer? -- Allocated for its values on the way.
        modules?: [module] -- The figures of every program that ran, per memory space.
        @module
        module: string -- Name of the program.
        program_id: integer? -- Its number in the profile.
        space: integer -- Memory space; 0 is the device's main memory.
        time_ms: number -- Time in its instructions.
        peak_bytes: integer -- The most that exists at once.
        peak_position: integer -- Event of the compiler's heap trace that fills it most.
        peak_op: string -- Instruction at the peak; empty if unknown.
        argument_bytes: integer -- Arguments.
        output_bytes: integer -- Results.
        alias_bytes: integer -- Results in given-away arguments.
        temp_bytes: integer -- Allocated for values on the way.
        constant_bytes: integer -- Constants.
        total_bytes: integer -- All allocations.
        heap_peak_bytes: integer -- Values on the way that are live at once.
        fragmentation_bytes: integer -- Allocated for values on the way, but never needed at once.
        traced: boolean -- Whether the profile says when values on the way are live.
    ",
    table: |hosts| memory(hosts, By::Buffer),
    groupings: &[
        Grouping { by: "kind", table: |hosts| memory(hosts, By::Kind) },
        Grouping { by: "source", table: |hosts| memory(hosts, By::Source) },
        Grouping { by: "scope", table: |hosts| memory(hosts, By::Scope) },
    ],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        module.known: Name "program", "name of the program" => line.memory.program.name.as_str();
        space.known.hidden: Id "space", "memory space; 0 is the device's main memory" => line.memory.figures.space;
        name: Name "made by", "instruction that makes it, or name of the group" => some(line.name);
        kind: Text "kind", "argument, output, constant or temporary" => line.kind;
        bytes.known: Bytes "bytes", "its size, padding included" => line.bytes;
        fraction: Percent "share", "share of the program's peak" => line.of_peak();
        padding_bytes.optional: Bytes "padding", "padding" => line.padding;
        buffers.known.hidden: Count "buffers", "number of values" => line.buffers;
        shape.optional: Name "shape", "shape and layout" => line.value.and_then(|value| some(&value.shape));
        label.optional: Name "what", "scopes of the model and operation of the framework" => line.value.and_then(|value| some(&value.label));
        source.optional: Name "source", "file and line" => line.value.and_then(|value| some(&value.source));
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// How to sum up what is live.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum By {
    Buffer,
    Kind,
    Source,
    Scope,
}

/// A value, or several summed up.
struct Line<'a> {
    memory: &'a ProgramMemory,
    name: &'a str,
    kind: Option<&'static str>,
    bytes: u64,
    padding: Option<u64>,
    buffers: u64,
    value: Option<&'a LiveValue>,
}

impl Line<'_> {
    fn of_peak(&self) -> Option<f64> {
        let peak = self.memory.figures.peak_bytes;
        (peak > 0).then(|| self.bytes as f64 / peak as f64)
    }
}

/// What is live at the peak of each program, in the order of time spent in them.
fn memory(hosts: &dyn Hosts, by: By) -> Table {
    let memories = all_hosts(hosts, ProgramMemories::of, ProgramMemories::merge);
    let lines: Vec<Line<'_>> = memories.programs.iter().flat_map(|memory| lines(memory, by)).collect();
    let mut table = Table::of("hlo_memory", &columns(), &lines);
    table.top = Some(25);
    if by != By::Buffer {
        table.hide(&["shape", "label", "source", "kind"]);
        table.entitle("name", "group");
    }
    describe(&mut table, &memories);
    table
}

fn lines(memory: &ProgramMemory, by: By) -> Vec<Line<'_>> {
    let padding = |value: &LiveValue| value.unpadded.map(|unpadded| value.bytes.saturating_sub(unpadded));
    let single = |value| Line {
        memory,
        name: LiveValue::made_by(value),
        kind: Some(value.kind),
        bytes: value.bytes,
        padding: padding(value),
        buffers: 1,
        value: Some(value),
    };
    if by == By::Buffer {
        return memory.live.iter().map(single).collect();
    }
    let mut groups: BTreeMap<&str, Line<'_>> = BTreeMap::new();
    for value in &memory.live {
        let name = match by {
            By::Kind | By::Buffer => value.kind,
            By::Source => &value.source,
            By::Scope => &value.scope,
        };
        let name = if name.is_empty() { "(none)" } else { name };
        let kind = (by == By::Kind).then_some(value.kind);
        let empty = Line { memory, name, kind, bytes: 0, padding: None, buffers: 0, value: None };
        let line = groups.entry(name).or_insert(empty);
        line.bytes = line.bytes.saturating_add(value.bytes);
        line.padding = match (line.padding, padding(value)) {
            (Some(all), Some(one)) => Some(all.saturating_add(one)),
            (all, one) => all.or(one),
        };
        line.buffers += 1;
    }
    let mut lines: Vec<Line<'_>> = groups.into_values().collect();
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(b.name)));
    lines
}

/// Headline, notes, and the figures of the first program beside those of all.
fn describe(table: &mut Table, memories: &ProgramMemories) {
    let first = memories.programs.first();
    let own = first.map(|memory| &memory.figures);
    for (key, value) in [
        ("peak_bytes", own.map(|own| own.peak_bytes)),
        ("argument_bytes", own.map(|own| own.argument_bytes)),
        ("output_bytes", own.map(|own| own.output_bytes)),
        ("alias_bytes", own.map(|own| own.alias_bytes)),
        ("temp_bytes", own.map(|own| own.temp_bytes)),
    ] {
        table.member(key, value);
    }
    table.member("modules", memories.programs.iter().map(figures).collect::<Vec<_>>());
    let Some((first, own)) = first.zip(own) else {
        table.headline = Some("The profile holds no program with its buffers".to_owned());
        return;
    };
    let largest = first.live.first().filter(|_| own.peak_bytes > 0);
    let largest = largest.map_or(String::new(), |value| {
        let name = some(&value.label).unwrap_or(&value.instruction);
        format!("; the largest value, `{name}`, is {}", percent(value.bytes as f64 / own.peak_bytes as f64))
    });
    let peak = bytes(own.peak_bytes as f64);
    table.headline =
        Some(format!("`{}` keeps at most {peak} in memory{largest}", short_program(&first.program.name)));
    table.note(format!(
        "Arguments {}, outputs {} ({} of them in given-away arguments), temporaries {} of which {} are live at once.",
        bytes(own.argument_bytes as f64),
        bytes(own.output_bytes as f64),
        bytes(own.alias_bytes as f64),
        bytes(own.temp_bytes as f64),
        bytes(own.heap_peak_bytes as f64),
    ));
    if !own.traced && own.temp_bytes > 0 {
        table.note("The profile does not say when temporaries are live, so all of them count.");
    }
}

fn figures(memory: &ProgramMemory) -> serde_json::Value {
    let figures = &memory.figures;
    json!({
        "module": memory.program.name,
        "program_id": memory.program.id,
        "space": figures.space,
        "time_ms": memory.time.ms(),
        "peak_bytes": figures.peak_bytes,
        "peak_position": figures.peak_position,
        "peak_op": memory.peak_at.0,
        "argument_bytes": figures.argument_bytes,
        "output_bytes": figures.output_bytes,
        "alias_bytes": figures.alias_bytes,
        "temp_bytes": figures.temp_bytes,
        "constant_bytes": figures.constant_bytes,
        "total_bytes": figures.total_bytes,
        "heap_peak_bytes": figures.heap_peak_bytes,
        "fragmentation_bytes": figures.fragmentation_bytes,
        "traced": figures.traced,
    })
}
