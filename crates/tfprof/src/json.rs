//! The tree that tfprof's Python functions return, with the names of its fields, as JSON.

use serde_json::{Map, Value, json};

use crate::measures::Measures;
use crate::options::Options;
use crate::profile::{Node, Profile};
use crate::rows::{Of, Row};
use crate::view::View;

/// What comes next in the text.
enum Next {
    /// A row; not the first of its neighbours?
    Row(usize, bool),
    /// What ends one.
    End,
}

/// The tree below the root. Trees can be as deep as a graph is long, so the text is written without recursion.
pub(crate) fn tree(profile: &Profile, options: &Options, view: View, rows: &[Row], root: usize) -> String {
    let mut out = String::new();
    let mut open = vec![Next::Row(root, false)];
    // The op view is a list in which each row is the only child of the one before.
    let mut chain = if view == View::Op { rows[root].shown.iter() } else { [].iter() };
    while let Some(next) = open.pop() {
        let Next::Row(at, comma) = next else {
            out.push_str("]}");
            continue;
        };
        let row = &rows[at];
        out.push_str(if comma { "," } else { "" });
        let fields = Value::Object(fields(profile, options, view, row)).to_string();
        out.push_str(fields.strip_suffix('}').unwrap_or(&fields));
        out.push_str(",\"children\":[");
        open.push(Next::End);
        if view == View::Op {
            open.extend(chain.next().map(|&child| Next::Row(child, false)));
        } else {
            let below = row.shown.iter().enumerate().rev();
            open.extend(below.map(|(place, &child)| Next::Row(child, place > 0)));
        }
    }
    out
}

/// A row without those below it.
fn fields(profile: &Profile, options: &Options, view: View, row: &Row) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("name".to_owned(), row.name.clone().into());
    measures(&mut map, &row.own, &row.total, view.is_single());
    match &row.of {
        Of::Node(index) => node(&mut map, profile, &profile.nodes[*index]),
        Of::Nodes(members) => {
            let graph_nodes: Vec<Value> =
                members.nodes.iter().map(|&index| graph_node(profile, options, index)).collect();
            map.insert("graph_nodes".to_owned(), graph_nodes.into());
        }
        Of::Name(_) => {}
    }
    map
}

/// A node inside a row of several.
fn graph_node(profile: &Profile, options: &Options, index: usize) -> Value {
    let inner = &profile.nodes[index];
    let own = inner.measures(options.step);
    let mut map = Map::new();
    map.insert("name".to_owned(), inner.name.clone().into());
    measures(&mut map, &own, &own.as_total(), true);
    node(&mut map, profile, inner);
    Value::Object(map)
}

fn node(map: &mut Map<String, Value>, profile: &Profile, node: &Node) {
    if !node.device.is_empty() {
        map.insert("devices".to_owned(), json!([node.device]));
    }
    let shapes = profile.input_shapes(node);
    if shapes.is_empty() {
        return;
    }
    let shape = |dims: &Vec<i64>| match dims.is_empty() {
        true => json!({ "unknown_rank": true }),
        false => json!({ "dim": dims.iter().map(|size| json!({ "size": size })).collect::<Vec<_>>() }),
    };
    let shapes: Map<String, Value> = shapes.iter().map(|(at, dims)| (at.to_string(), shape(dims))).collect();
    map.insert("input_shapes".to_owned(), shapes.into());
}

fn measures(map: &mut Map<String, Value>, own: &Measures, total: &Measures, counts: bool) {
    let values = [
        ("exec_micros", own.exec_micros, total.exec_micros),
        ("accelerator_exec_micros", own.accelerator_micros, total.accelerator_micros),
        ("cpu_exec_micros", own.cpu_micros, total.cpu_micros),
        ("requested_bytes", own.requested_bytes, total.requested_bytes),
        ("peak_bytes", own.peak_bytes, total.peak_bytes),
        ("residual_bytes", own.residual_bytes, total.residual_bytes),
        ("output_bytes", own.output_bytes, total.output_bytes),
        ("parameters", own.parameters, total.parameters),
        ("float_ops", own.float_ops, total.float_ops),
    ];
    for (name, own, total) in values {
        map.insert(name.to_owned(), own.into());
        map.insert(format!("total_{name}"), total.into());
    }
    if counts {
        map.insert("run_count".to_owned(), own.runs.into());
        map.insert("total_run_count".to_owned(), total.runs.into());
        map.insert("total_definition_count".to_owned(), total.definitions.into());
    }
}
