//! A loop inside the compiled step: `tf.map_fn`, `tf.scan`, `tf.while_loop`, `jax.lax.scan`. Each round runs the same small
//! ops again, and each of them costs what starting an op costs.

use stepscope_analyze::time::graph_loops::GraphLoops;
use stepscope_analyze::vocabulary::words;
use stepscope_analyze::work::ops::{OpRow, Ops, Where};

/// A loop inside the compiled step.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerLoop {
    /// What it is called: the scope around it (`map`, `scan`, `lstm`), or `while`.
    pub name: String,
    /// Does it do the same to each element, so that it can be written for all of them at once?
    pub maps: bool,
    /// Rounds per step.
    pub rounds: f64,
    /// The share of all executed ops that are inside.
    pub ops: f64,
    /// The share of all ops' time that is inside.
    pub time: f64,
}

/// Fewer rounds are no reason for a slow step.
const LEAST_ROUNDS: f64 = 4.0;

/// Scopes that frameworks put around ops, whatever the program is called.
const AROUND: [&str; 3] = ["gradient_tape", "StatefulPartitionedCall", "PartitionedCall"];

impl InnerLoop {
    /// The loop that runs most ops in the steps; `None` if there is none.
    pub fn of(ops: &Ops, graph: &GraphLoops) -> Option<Self> {
        let rows: Vec<&OpRow> =
            ops.rows.iter().filter(|row| row.key.side == Where::Host && !row.key.input).collect();
        in_graph(&rows, ops).or_else(|| in_program(&rows, ops)).or_else(|| by_rounds(&rows, graph))
    }
}

fn per_step(ops: &Ops, count: u64) -> f64 {
    ops.window.per_step(count as f64).unwrap_or(0.0)
}

/// TensorFlow names the ops of a loop after it.
fn in_graph(rows: &[&OpRow], ops: &Ops) -> Option<InnerLoop> {
    let inside: Vec<(&OpRow, &str)> = rows
        .iter()
        .filter(|row| per_step(ops, row.count) >= LEAST_ROUNDS)
        .filter_map(|row| Some((*row, loop_scope(&row.key.name)?)))
        .collect();
    let costliest = inside.iter().max_by_key(|(row, _)| row.count)?.1;
    let inside: Vec<&OpRow> =
        inside.into_iter().filter(|(_, scope)| *scope == costliest).map(|(row, _)| row).collect();
    let name = if costliest.is_empty() { "while" } else { costliest };
    let maps = costliest == "map" || costliest.starts_with("map_");
    Some(measured(name, maps, &inside, rows, ops))
}

/// The scope around the innermost loop that an op is in; empty for a loop without one. `None` for an op outside of loops.
fn loop_scope(op: &str) -> Option<&str> {
    let is_loop = |part: &str| part == "while" || part.starts_with("while_");
    let parts: Vec<&str> = op.split('/').collect();
    let at = parts.iter().take(parts.len().saturating_sub(1)).position(|part| is_loop(part))?;
    let scope = at.checked_sub(1).and_then(|before| parts.get(before)).copied().unwrap_or("");
    Some(if AROUND.contains(&scope) { "" } else { scope })
}

/// The executor counts rounds, also of ops that are too cheap to be recorded.
fn by_rounds(rows: &[&OpRow], graph: &GraphLoops) -> Option<InnerLoop> {
    let rounds = graph.rounds as f64;
    if rounds < LEAST_ROUNDS {
        return None;
    }
    // What surrounds a loop bears its name.
    let mut parts = rows.iter().flat_map(|row| row.key.name.split('/'));
    let name = parts.find(|part| matches!(*part, "map" | "scan")).unwrap_or("while").to_owned();
    Some(InnerLoop { maps: name == "map", name, rounds, ops: graph.share(), time: graph.share() })
}

/// XLA has an op for the whole loop, with those of its body inside.
fn in_program(rows: &[&OpRow], ops: &Ops) -> Option<InnerLoop> {
    let is_loop = |row: &&&OpRow| words(&row.key.kind) == ["while"];
    let around = rows.iter().filter(is_loop).max_by(|a, b| a.total_ms.total_cmp(&b.total_ms))?;
    let often = (LEAST_ROUNDS * around.count as f64) as u64;
    let inside: Vec<&OpRow> = rows.iter().filter(|row| row.count >= often.max(1)).copied().collect();
    if inside.is_empty() {
        return None;
    }
    let mut found = measured("while", false, &inside, rows, ops);
    found.rounds /= per_step(ops, around.count).max(1.0);
    Some(found)
}

fn measured(name: &str, maps: bool, inside: &[&OpRow], rows: &[&OpRow], ops: &Ops) -> InnerLoop {
    let count = |rows: &[&OpRow]| rows.iter().map(|row| row.count as f64).sum::<f64>();
    let time = |rows: &[&OpRow]| rows.iter().map(|row| row.self_ms).sum::<f64>();
    InnerLoop {
        name: name.to_owned(),
        maps,
        rounds: inside.iter().map(|row| per_step(ops, row.count)).fold(0.0, f64::max),
        ops: count(inside) / count(rows).max(1.0),
        time: time(inside) / time(rows).max(f64::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_a_loop_are_named_after_it() {
        for (op, scope) in [
            ("map/while/body/_1/map/while/MatVec/MatMul", Some("map")),
            ("gradient_tape/map/while/map/while_grad/body/_105/gradient_tape/map/Mul", Some("map")),
            ("StatefulPartitionedCall/sequential_1/lstm_1/while/body/_5/MatMul", Some("lstm_1")),
            ("gradient_tape/while/while_grad/body/_89/x", Some("")),
            ("while/body/_1/while/gru_cell/add", Some("")),
            ("dense/MatMul", None),
            ("map/while", None),
        ] {
            assert_eq!(loop_scope(op), scope, "{op}");
        }
    }
}
