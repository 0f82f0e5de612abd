//! ProfileProto: graph, runs and log of several steps in one file, as saved by tfprof.

use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_tfgraph::{SavedExec, SavedMemory, SavedNode, SavedProfile};

use super::Found;
use super::graph::attr;
use super::message::{Damages, Walk};
use super::op_log::{stack, text_of_id};
use super::run::change;

/// Reads a saved profile.
pub(super) fn saved(file: &[u8], damage: Damages) -> Found<SavedProfile> {
    let mut walk = Walk::new(file, damage);
    let mut profile = SavedProfile::default();
    walk.message(0..file.len(), "ProfileProto", |walk, field| match field.number {
        1 => {
            let (id, value) = walk.entry(field.range()?, "node table");
            let mut node = node(walk, value?.range()?);
            node.id = id;
            profile.nodes.push(node);
            Some(())
        }
        2 => field.int().map(|value| profile.has_trace = value != 0),
        3 => walk.ints(&field, &mut profile.steps),
        4 => field.range().map(|range| {
            let (id, text) = text_of_id(walk, range);
            profile.strings.insert(id, text);
        }),
        5 => field.int().map(|value| profile.misses_streams = value != 0),
        _ => None,
    });
    let mut damage = walk.damage;
    for node in profile.nodes.iter().filter(|node| node.name.is_empty()) {
        damage.add_somewhere(|| format!("node {} has no name", node.id));
    }
    Found { value: profile, damage }
}

fn node(walk: &mut Walk<'_>, range: Range<usize>) -> SavedNode {
    let mut node = SavedNode::default();
    walk.message(range, "ProfileNode", |walk, field| match field.number {
        1 => field.range().map(|range| node.name = walk.text(range, "node name").into_owned()),
        2 => field.range().map(|range| number_entry(walk, range, &mut node.inputs)),
        3 => field.range().map(|_| ()),
        4 => walk.ints(&field, &mut node.shape),
        5 => field.range().map(|range| node.types.push(walk.text(range, "type").into_owned())),
        6 => field.range().map(|range| node.device = walk.text(range, "device").into_owned()),
        7 => field.range().map(|range| node.host_device = walk.text(range, "device").into_owned()),
        8 => field.int().map(|value| node.float_ops = value),
        9 => field.range().map(|range| node.op = walk.text(range, "operation").into_owned()),
        10 => field.range().map(|range| node.stack = stack(walk, range)),
        11 => {
            let (key, value) = walk.text_entry(field.range()?, "attribute");
            let value = attr(walk, value?.range()?);
            node.attrs.push((key.into_owned(), value));
            Some(())
        }
        12 => {
            let (step, value) = walk.entry(field.range()?, "executions");
            let exec = exec(walk, value?.range()?);
            node.execs.insert(step, exec);
            Some(())
        }
        13 => field.int().map(|value| node.id = value),
        14 => field.range().map(|range| number_entry(walk, range, &mut node.ports)),
        15 => {
            let (slot, value) = walk.entry(field.range()?, "output shapes");
            let dims = tuple(walk, value?.range()?);
            node.output_shapes.insert(slot, dims);
            Some(())
        }
        16 => field.range().map(|_| ()),
        _ => None,
    });
    node
}

fn number_entry(walk: &mut Walk<'_>, range: Range<usize>, into: &mut BTreeMap<i64, i64>) {
    let (key, value) = walk.entry(range, "table");
    into.insert(key, value.and_then(|value| value.int()).unwrap_or(0));
}

fn tuple(walk: &mut Walk<'_>, range: Range<usize>) -> Vec<i64> {
    let mut values = Vec::new();
    walk.message(range, "Tuple", |walk, field| match field.number {
        1 => walk.ints(&field, &mut values),
        _ => None,
    });
    values
}

fn exec(walk: &mut Walk<'_>, range: Range<usize>) -> SavedExec {
    let mut exec = SavedExec::default();
    walk.message(range, "ExecProfile", |walk, field| match field.number {
        1 => field.int().map(|value| exec.run_count = value),
        2 => field.int().map(|value| exec.start_micros = value),
        3 => field.int().map(|value| exec.end_micros = value),
        4 => times(walk, field.range()?, &mut exec.accelerator),
        5 => times(walk, field.range()?, &mut exec.cpu),
        6 => field.range().map(|range| exec.devices.push(walk.text(range, "device").into_owned())),
        7 => field.range().map(|range| exec.memory.push(memory(walk, range))),
        11 => field.range().map(|range| exec.allocations.push(change(walk, range))),
        _ => None,
    });
    exec
}

/// Start and duration of each execution on a device.
fn times(
    walk: &mut Walk<'_>,
    range: Range<usize>,
    into: &mut BTreeMap<String, Vec<(i64, i64)>>,
) -> Option<()> {
    let (device, value) = walk.text_entry(range, "times of a device");
    let pairs = into.entry(device.into_owned()).or_default();
    walk.message(value?.range()?, "ExecTime", |walk, field| match field.number {
        1 => {
            let values = tuple(walk, field.range()?);
            let [start, duration] = values[..] else { return None };
            pairs.push((start, duration));
            Some(())
        }
        _ => None,
    });
    Some(())
}

fn memory(walk: &mut Walk<'_>, range: Range<usize>) -> SavedMemory {
    let mut memory = SavedMemory::default();
    walk.message(range, "ExecMemory", |_, field| match field.number {
        1 => field.int().map(|value| memory.micros = value),
        2 => field.int().map(|value| memory.host_temp = value),
        3 => field.int().map(|value| memory.host_persistent = value),
        4 => field.int().map(|value| memory.accelerator_temp = value),
        5 => field.int().map(|value| memory.accelerator_persistent = value),
        6 => field.int().map(|value| memory.requested = value),
        7 => field.int().map(|value| memory.peak = value),
        8 => field.int().map(|value| memory.residual = value),
        9 => field.int().map(|value| memory.output = value),
        10 => field.int().map(|value| memory.in_use = value),
        11 => field.range().map(|_| ()),
        _ => None,
    });
    memory
}
