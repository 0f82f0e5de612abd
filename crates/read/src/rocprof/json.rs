//! rocprofv3's JSON: a list of processes, each with its GPUs, names by number, and records.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_trace::StrId;

use super::sink::{Agent, Launch, Place, Record, Sink, Sort, copy_name};
use crate::budget::Budget;
use crate::json::Json;

/// The type of an agent that is a GPU.
const GPU: i64 = 2;

/// What is known about a kernel.
#[derive(Copy, Clone, Debug, Default)]
struct Symbol {
    name: StrId,
    registers: Option<i64>,
    local_bytes: Option<i64>,
}

/// The parts of one process.
#[derive(Default)]
struct Parts<'t> {
    sections: Vec<(Vec<u8>, Json<'t>)>,
}

impl<'t> Parts<'t> {
    fn get(&self, key: &str) -> Option<&Json<'t>> {
        self.sections.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
    }
}

/// Names of operations, by kind and number, and texts of markers by correlation.
#[derive(Default)]
struct Names {
    operations: FxHashMap<(i64, i64), StrId>,
    kernels: FxHashMap<i64, Symbol>,
    markers: FxHashMap<i64, StrId>,
}

/// Reads all processes. Returns where damage ended them.
pub(super) fn read(text: &[u8], sink: &mut Sink, budget: &Arc<Budget>) -> Option<usize> {
    let mut broken = None;
    let outer = Json::root(text).members(|key, value| {
        if !key.starts_with(b"rocprofiler-sdk-") {
            return;
        }
        let mut found = false;
        let ended = value.elements(|process| {
            found = true;
            broken = broken.or(one(&process, sink, budget));
        });
        broken = broken.or(ended);
        if !found {
            // Some versions write the only process without a list around it.
            broken = broken.or(one(&value, sink, budget));
        }
    });
    broken.or(outer)
}

fn one(process: &Json<'_>, sink: &mut Sink, budget: &Arc<Budget>) -> Option<usize> {
    let mut parts = Parts::default();
    let mut broken = process.members(|key, value| parts.sections.push((key.to_owned(), value)));
    let mut pid = 0;
    if let Some(metadata) = parts.get("metadata") {
        pid = metadata.int_at(&["pid"]).unwrap_or(0);
        metadata.members(|key, value| {
            if key == b"command" {
                value.elements(|word| {
                    if sink.process_name == StrId::default() {
                        let word = word.string();
                        sink.process_name = sink.text(word.rsplit('/').next().unwrap_or(&word));
                    }
                });
            } else if key == b"node" {
                value.members(|key, value| {
                    if key == b"hostname" {
                        sink.builder.environment.host = Some(sink.builder.strings.intern(&value.string()));
                    }
                });
            }
        });
    }
    if let Some(agents) = parts.get("agents") {
        agents.elements(|agent| take_agent(&agent, sink));
    }
    let names = names(&parts, sink);
    for part in ["buffer_records", "callback_records"] {
        let Some(records) = parts.get(part) else { continue };
        let ended = records.members(|key, list| {
            let Some(sort) = sort_of(key) else { return };
            let ended = list.elements(|record| {
                if budget.rows(1).is_ok() {
                    take_record(&record, sort, pid, &names, sink);
                }
            });
            broken = broken.or(ended);
        });
        broken = broken.or(ended);
    }
    broken
}

fn sort_of(key: &[u8]) -> Option<Sort> {
    Some(match key {
        b"kernel_dispatch" | b"kernel_dispatches" => Sort::Kernel,
        b"memory_copy" | b"memory_copies" => Sort::Copy,
        b"hip_api" | b"hip_api_traces" => Sort::Hip,
        b"hsa_api" | b"hsa_api_traces" => Sort::Hsa,
        b"marker_api" | b"marker_api_traces" => Sort::Marker,
        b"rccl_api" | b"rccl_api_traces" => Sort::Rccl,
        b"memory_allocation" | b"scratch_memory" | b"rocdecode_api" | b"rocjpeg_api" => Sort::Other,
        _ => return None,
    })
}

fn take_agent(agent: &Json<'_>, sink: &mut Sink) {
    let (mut found, mut id, mut kind, mut plain) = (Agent::default(), None, 0, String::new());
    let mut number = None;
    agent.members(|key, value| match key {
        b"id" => id = value.int_at(&["handle"]),
        b"type" => kind = value.int().unwrap_or(0),
        b"product_name" => found.name = value.string(),
        b"name" => plain = value.string(),
        b"cu_count" => found.units = value.int().and_then(|units| u32::try_from(units).ok()),
        b"max_engine_clk_fcompute" => found.clock_mhz = value.int().and_then(|mhz| u64::try_from(mhz).ok()),
        b"wave_front_size" => found.wave = value.int().and_then(|size| u32::try_from(size).ok()),
        b"max_waves_per_cu" => found.waves_per_unit = value.int().and_then(|count| u32::try_from(count).ok()),
        b"lds_size_in_kb" => {
            found.local_bytes = value.int().and_then(|kb| u64::try_from(kb).ok()).map(|kb| kb << 10);
        }
        b"gpu_index" | b"logical_node_type_id" => number = value.int().filter(|&index| index >= 0).or(number),
        _ => {}
    });
    if let (Some(id), GPU) = (id, kind) {
        found.number = number.unwrap_or(sink.agents.len() as i64);
        if found.name.is_empty() {
            found.name = plain;
        }
        sink.agents.insert(id, found);
    }
}

fn names(parts: &Parts<'_>, sink: &mut Sink) -> Names {
    let mut names = Names::default();
    let operations = |value: &Json<'_>, sink: &mut Sink, names: &mut Names| {
        let mut kind = 0;
        value.elements(|entry| {
            entry.members(|key, value| {
                if key == b"operations" {
                    let mut number = 0;
                    value.elements(|name| {
                        let name = sink.text(&name.string());
                        names.operations.insert((kind, number), name);
                        number += 1;
                    });
                }
            });
            kind += 1;
        });
    };
    if let Some(strings) = parts.get("strings") {
        strings.members(|key, value| match key {
            b"buffer_records" => operations(&value, sink, &mut names),
            b"marker_api" => {
                value.elements(|entry| {
                    let (mut id, mut text) = (None, String::new());
                    entry.members(|key, value| match key {
                        b"key" => id = value.int(),
                        b"value" => text = value.string(),
                        _ => {}
                    });
                    if let Some(id) = id {
                        names.markers.insert(id, sink.text(&text));
                    }
                });
            }
            _ => {}
        });
    }
    if let Some(symbols) = parts.get("kernel_symbols") {
        symbols.elements(|entry| {
            let (mut id, mut symbol, mut best) = (None, Symbol::default(), (0, String::new()));
            entry.members(|key, value| match key {
                b"kernel_id" => id = value.int(),
                b"formatted_kernel_name" if best.0 < 3 => best = (3, value.string()),
                b"demangled_kernel_name" if best.0 < 2 => best = (2, value.string()),
                b"kernel_name" if best.0 < 1 => best = (1, value.string()),
                b"arch_vgpr_count" => symbol.registers = value.int(),
                b"group_segment_size" => symbol.local_bytes = value.int(),
                _ => {}
            });
            if let Some(id) = id {
                symbol.name = sink.text(&best.1);
                names.kernels.insert(id, symbol);
            }
        });
    }
    names
}

/// The fields of a record that any sort has.
#[derive(Default)]
struct Fields {
    kind: i64,
    operation: i64,
    thread: i64,
    start: i64,
    end: i64,
    correlation: Option<i64>,
    stream: Option<i64>,
    bytes: Option<i64>,
    agents: [Option<i64>; 2],
    agent: i64,
    queue: i64,
    kernel: i64,
    launch: Launch,
}

fn take_record(record: &Json<'_>, sort: Sort, pid: i64, names: &Names, sink: &mut Sink) {
    let mut found = Fields::default();
    record.members(|key, value| match key {
        b"kind" => found.kind = value.int().unwrap_or(0),
        b"operation" => found.operation = value.int().unwrap_or(0),
        b"thread_id" => found.thread = value.int().unwrap_or(0),
        b"start_timestamp" => found.start = value.int().unwrap_or(0),
        b"end_timestamp" => found.end = value.int().unwrap_or(0),
        b"correlation_id" => found.correlation = value.int_at(&["internal"]).filter(|&id| id > 0),
        b"stream_id" => found.stream = value.int_at(&["handle"]),
        b"bytes" | b"allocation_size" => found.bytes = value.int(),
        b"src_agent_id" => found.agents[0] = value.int_at(&["handle"]),
        b"dst_agent_id" => found.agents[1] = value.int_at(&["handle"]),
        b"dispatch_info" => take_dispatch(&value, &mut found),
        _ => {}
    });
    let operation = names.operations.get(&(found.kind, found.operation)).copied().unwrap_or_default();
    let (place, name, launch) = match sort {
        Sort::Kernel => {
            let symbol = names.kernels.get(&found.kernel).copied().unwrap_or_default();
            let launch =
                Launch { registers: symbol.registers, local_bytes: symbol.local_bytes, ..found.launch };
            (Place::Queue { agent: found.agent, queue: found.queue }, symbol.name, Some(launch))
        }
        Sort::Copy => {
            // The GPU does the copy, whichever side it is on.
            let gpu = found.agents.iter().flatten().find(|agent| sink.agents.contains_key(agent));
            let agent = gpu.or(found.agents[1].as_ref()).copied().unwrap_or(0);
            let name = copy_name(sink.builder.strings.get(operation));
            (Place::Copies { agent }, sink.text(name), None)
        }
        Sort::Marker => {
            let text = found.correlation.and_then(|id| names.markers.get(&id)).copied();
            (Place::Thread { pid, tid: found.thread }, text.unwrap_or(operation), None)
        }
        _ => (Place::Thread { pid, tid: found.thread }, operation, None),
    };
    sink.add(&Record {
        sort,
        place,
        name,
        start: found.start,
        end: found.end,
        correlation: found.correlation,
        stream: found.stream,
        bytes: found.bytes,
        launch,
    });
}

fn take_dispatch(info: &Json<'_>, found: &mut Fields) {
    let sides = |value: &Json<'_>| {
        let mut sides = [1; 3];
        value.members(|key, side| {
            let at = match key {
                b"x" => 0,
                b"y" => 1,
                _ => 2,
            };
            sides[at] = side.int().unwrap_or(1);
        });
        sides
    };
    info.members(|key, value| match key {
        b"agent_id" => found.agent = value.int_at(&["handle"]).unwrap_or(0),
        b"queue_id" => found.queue = value.int_at(&["handle"]).unwrap_or(0),
        b"kernel_id" => found.kernel = value.int().unwrap_or(0),
        b"workgroup_size" => found.launch.group = sides(&value),
        b"grid_size" => found.launch.grid = sides(&value),
        _ => {}
    });
}
