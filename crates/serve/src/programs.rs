//! The page of compiled programs: one instruction, its neighbours, and a program's memory. `API.md` is the contract.

use serde_json::{Value, json};
use stepscope_analyze::work::programs::{self as analysis, Cost, LiveValue, ProgramKey, space_name};
use stepscope_timeline::model::Model;
use stepscope_trace::Trace;

use crate::error::Refusal;
use crate::query::Query;
use crate::routes::{Answer, Reply};

/// The largest distance of neighbours: no neighbourhood holds more than a few hundred instructions anyway.
const FARTHEST: usize = 8;

/// What the first host that has it says.
fn of_hosts<T>(model: &Model, of: impl Fn(&Trace) -> Option<T>) -> Option<T> {
    (0..model.profile.hosts.len()).find_map(|host| of(model.trace(host)))
}

/// Programs have numbers of 64 bits, which browsers cannot hold: they are text.
fn program(query: &Query) -> Result<u64, Refusal> {
    let text = query.text("program").unwrap_or_default();
    text.parse().map_err(|_| Refusal::Missing("program"))
}

fn key(program: &ProgramKey) -> Value {
    json!({"name": program.name, "id": program.id.map(|id| id.to_string())})
}

/// One instruction.
pub(crate) fn card(model: &Model, query: &Query) -> Answer {
    let (program, op) = (program(query)?, query.text("op").unwrap_or_default());
    let card =
        of_hosts(model, |trace| analysis::card(trace, program, op)).ok_or(Refusal::Missing("instruction"))?;
    Ok(Reply::value(&json!({
        "program": key(&card.program), "op": card.op, "opcode": card.opcode, "category": card.category,
        "what": card.label, "scope": card.scope, "source": card.source, "stack": card.stack, "phase": card.phase,
        "text": card.text, "inside": card.inside, "cost": cost(&card.cost),
        "formula": card.formula.iter().map(|(what, count)| json!({"what": what, "count": count})).collect::<Vec<_>>(),
    })))
}

fn cost(cost: &Cost) -> Value {
    let known = |value: u64, unknown: u64| (unknown == 0).then_some(value);
    json!({
        "flops": known(cost.flops(), cost.unknown_flops), "matrix_flops": known(cost.matrix_flops(), cost.unknown_flops),
        "transcendentals": known(cost.transcendentals, cost.unknown_flops), "bytes": known(cost.bytes, cost.unknown_bytes),
        "type": cost.matrix_type().map(|kind| kind.name()),
    })
}

/// Its neighbours.
pub(crate) fn graph(model: &Model, query: &Query) -> Answer {
    let (program, op) = (program(query)?, query.text("op").unwrap_or_default());
    let radius = query.text("radius").and_then(|text| text.parse().ok()).unwrap_or(2).min(FARTHEST);
    let graph = of_hosts(model, |trace| analysis::graph(trace, program, op, radius));
    let graph = graph.ok_or(Refusal::Missing("instruction"))?;
    let nodes = graph.nodes.iter().zip(&graph.drawing.nodes).map(|(node, place)| {
        json!({
            "op": node.op, "opcode": node.opcode, "shape": node.shape, "what": node.label, "distance": node.distance,
            "cut": node.cut, "x": place.x, "y": place.y, "width": place.width, "height": place.height,
        })
    });
    let edges = graph
        .drawing
        .edges
        .iter()
        .map(|edge| json!({"from": edge.from, "to": edge.to, "points": edge.points}));
    Ok(Reply::value(&json!({
        "program": key(&graph.program), "width": graph.drawing.width, "height": graph.drawing.height,
        "nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>(),
    })))
}

/// What a program keeps in memory.
pub(crate) fn memory(model: &Model, query: &Query) -> Answer {
    let program = program(query)?;
    let space = query.text("space").and_then(|text| text.parse().ok()).unwrap_or(0);
    let picture = of_hosts(model, |trace| analysis::memory_picture(trace, program, space));
    let picture = picture.ok_or(Refusal::Missing("program"))?;
    let figures = &picture.figures;
    let boxes = picture.boxes.iter().map(|piece| {
        json!({
            "op": piece.op, "what": piece.label, "source": piece.source, "offset": piece.offset, "size": piece.size,
            "start": piece.start, "end": piece.end,
        })
    });
    let stacks = picture.stacks.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes}));
    let spaces = picture.spaces.iter().map(|&space| json!({"number": space, "name": space_name(space)}));
    Ok(Reply::value(&json!({
        "program": key(&picture.program), "space": space, "spaces": spaces.collect::<Vec<_>>(),
        "peak_bytes": figures.peak_bytes, "peak_position": figures.peak_position, "static_bytes": figures.static_bytes,
        "argument_bytes": figures.argument_bytes, "output_bytes": figures.output_bytes,
        "alias_bytes": figures.alias_bytes, "temp_bytes": figures.temp_bytes, "constant_bytes": figures.constant_bytes,
        "fragmentation_bytes": figures.fragmentation_bytes, "traced": figures.traced, "length": picture.length,
        "curve": picture.curve, "boxes": boxes.collect::<Vec<_>>(), "more_boxes": picture.more_boxes,
        "stacks": stacks.collect::<Vec<_>>(), "live": picture.live.iter().map(live).collect::<Vec<_>>(),
    })))
}

fn live(value: &LiveValue) -> Value {
    json!({
        "op": value.instruction, "kind": value.kind, "bytes": value.bytes, "shape": value.shape, "what": value.label,
        "source": value.source, "padding": value.unpadded.map(|own| value.bytes.saturating_sub(own)),
    })
}
