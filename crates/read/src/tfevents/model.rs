//! Graphs in event files: remembered by their place, read when somebody looks. TensorFlow 1, `tf.summary.graph` and PyTorch write a
//! GraphDef; `tf.summary.trace_export` writes the RunMetadata of traced functions; Keras writes the JSON of a model.

use std::path::Path;

use stepscope_tfgraph::{Graph, InputSource, NodeDef, NodeRecord};
use stepscope_trace::series::{BlobPlace, GraphForm, LoggedGraph, LoggedRun};

use super::event::{Field, bytes_of, fields};
use super::keras;
use crate::tf::{self, Damages, Found};

/// Graphs and recorded steps that are remembered per run.
const MOST: usize = 64;
/// Nodes of one graph; larger ones are cut.
const MOST_NODES: usize = 300_000;
/// Functions of one graph.
const MOST_FUNCTIONS: usize = 2_000;

/// Remembers the latest graph of a tag.
pub(super) fn take_graph(graphs: &mut Vec<LoggedGraph>, tag: String, graph: Option<(GraphForm, BlobPlace)>) {
    let Some((form, place)) = graph else { return };
    match graphs.iter().position(|known| known.tag == tag) {
        Some(at) => graphs[at] = LoggedGraph { tag, form, place },
        None if graphs.len() < MOST => graphs.push(LoggedGraph { tag, form, place }),
        None => {}
    }
}

/// Remembers a recorded step; of too many, the first ones.
pub(super) fn take_run(runs: &mut Vec<LoggedRun>, tag: String, place: BlobPlace) {
    if runs.len() < MOST {
        runs.push(LoggedRun { tag, place });
    }
}

/// The graph in these bytes, with the nodes of its functions below their names. `true` if it was cut.
pub fn graph_of(form: GraphForm, bytes: &[u8]) -> Found<(Graph, bool)> {
    let mut damage = Damages::default();
    let mut graph = match form {
        GraphForm::Graph => graph_def(bytes, &mut damage),
        GraphForm::MetaGraph => bytes_of(bytes, 2).map(|def| graph_def(def, &mut damage)).unwrap_or_default(),
        GraphForm::Traced if bytes.trim_ascii_start().starts_with(b"{") => match keras::graph(bytes) {
            Some(graph) => graph,
            None => {
                damage.add(0, || "the JSON of a Keras model cannot be read".to_owned());
                Graph::default()
            }
        },
        GraphForm::Traced => traced(bytes, &mut damage),
    };
    let cut = graph.nodes.len() > MOST_NODES;
    graph.nodes.truncate(MOST_NODES);
    Found { value: (graph, cut), damage }
}

/// What a recorded step says about each node.
pub fn run_of(bytes: &[u8], visit: &mut dyn FnMut(&str, &NodeRecord<'_>)) -> Vec<String> {
    tf::run_of(Path::new(""), bytes, Damages::default(), visit)
        .map_or_else(|_| Vec::new(), |run| run.value.devices)
}

fn graph_def(bytes: &[u8], damage: &mut Damages) -> Graph {
    let read =
        |bytes: &[u8], damage: &mut Damages| match tf::graph_of(Path::new(""), bytes, std::mem::take(damage))
        {
            Ok(found) => {
                *damage = found.damage;
                found.value
            }
            Err(error) => {
                damage.add(0, || error.to_string());
                Graph::default()
            }
        };
    let mut graph = read(bytes, damage);
    let library = bytes_of(bytes, 2).unwrap_or_default();
    for (number, value) in fields(library).take(MOST_FUNCTIONS) {
        let (1, Field::Bytes(function)) = (number, value) else { continue };
        if graph.nodes.len() >= MOST_NODES {
            break;
        }
        add_function(&mut graph, function);
    }
    graph
}

/// Adds the nodes of a `FunctionDef` below its name. Its nodes have the form of those of a graph, under another number.
fn add_function(graph: &mut Graph, function: &[u8]) {
    let Some(name) = bytes_of(function, 1).and_then(|signature| bytes_of(signature, 1)) else { return };
    let name = String::from_utf8_lossy(name).into_owned();
    for (number, value) in fields(function) {
        let (3, Field::Bytes(node)) = (number, value) else { continue };
        let node = plain_node(node);
        let inputs = node.inputs.iter().map(|input| below(&name, input)).collect();
        graph.nodes.push(NodeDef { name: format!("{name}/{}", node.name), inputs, ..node });
    }
}

/// An input within a function, as the graph names it: `node:output:0` becomes `function/node`.
fn below(function: &str, input: &str) -> String {
    let source = InputSource::of(input);
    let mark = if source.port.is_none() { "^" } else { "" };
    format!("{mark}{function}/{}", source.name)
}

/// Name, operation, inputs and device of a node.
fn plain_node(message: &[u8]) -> NodeDef {
    let mut node = NodeDef::default();
    for (number, value) in fields(message) {
        let Field::Bytes(bytes) = value else { continue };
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match number {
            1 => node.name = text(),
            2 => node.op = text(),
            3 => node.inputs.push(text()),
            4 => node.device = text(),
            _ => {}
        }
    }
    node
}

/// The graphs of traced functions, as they were before they were optimised. Several are told apart by a number.
fn traced(bytes: &[u8], damage: &mut Damages) -> Graph {
    let mut graphs = Vec::new();
    for (number, value) in fields(bytes) {
        let Field::Bytes(part) = value else { continue };
        if number == 4 {
            graphs.extend(bytes_of(part, 2).or_else(|| bytes_of(part, 3)).or_else(|| bytes_of(part, 1)));
        }
    }
    if graphs.is_empty() {
        graphs.extend(bytes_of(bytes, 3));
    }
    let several = graphs.len() > 1;
    let mut whole = Graph::default();
    for (place, bytes) in graphs.into_iter().take(MOST_FUNCTIONS).enumerate() {
        let mut graph = graph_def(bytes, damage);
        let prefix = format!("function_{}", place + 1);
        for node in graph.nodes.iter_mut().filter(|_| several) {
            node.inputs = node.inputs.iter().map(|input| below(&prefix, input)).collect();
            node.name = format!("{prefix}/{}", node.name);
        }
        whole.nodes.append(&mut graph.nodes);
        if whole.nodes.len() >= MOST_NODES {
            break;
        }
    }
    whole
}
