//! The JSON of a Keras model as a graph: a node per layer, layers of nested models below the model's name.

use std::collections::HashSet;

use serde_json::Value;
use stepscope_tfgraph::{Graph, NodeDef};

/// Models inside models.
const DEEPEST: usize = 32;
/// Layers of a model and of all inside it.
const MOST_LAYERS: usize = 100_000;
/// Layers that one layer takes its input from.
const MOST_INPUTS: usize = 1_000;

/// The graph of a model; `None` if the text is none.
pub(super) fn graph(json: &[u8]) -> Option<Graph> {
    let model: Value = serde_json::from_slice(json).ok()?;
    let mut graph = Graph::default();
    add(&mut graph, &model, "", DEEPEST);
    (!graph.nodes.is_empty()).then_some(graph)
}

/// The layers of a model, if it is one.
fn layers(model: &Value) -> Option<&Vec<Value>> {
    let config = model.get("config")?;
    // Keras 1 and the first versions of Keras 2 write the layers of a chain without anything around them.
    config.get("layers").or(Some(config))?.as_array()
}

/// The name of a layer.
fn name_of(layer: &Value) -> Option<&str> {
    layer.get("name").or_else(|| layer.get("config")?.get("name"))?.as_str()
}

fn add(graph: &mut Graph, model: &Value, above: &str, depth: usize) {
    let Some(layers) = layers(model).filter(|_| depth > 0) else { return };
    let known: HashSet<&str> = layers.iter().filter_map(name_of).collect();
    let is_chain = layers.iter().all(|layer| layer.get("inbound_nodes").is_none());
    let whole = |name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
    let mut before: Option<String> = None;
    for layer in layers {
        let Some(name) = name_of(layer).filter(|_| graph.nodes.len() < MOST_LAYERS) else { continue };
        let mut inputs = Vec::new();
        match layer.get("inbound_nodes") {
            Some(nodes) => sources(nodes, &known, DEEPEST, &mut inputs),
            None if is_chain => inputs.extend(before.clone()),
            None => {}
        }
        let op = layer.get("class_name").and_then(Value::as_str).unwrap_or("Layer").to_owned();
        let inputs = inputs.iter().map(|input| whole(input)).collect();
        graph.nodes.push(NodeDef { name: whole(name), op, inputs, ..NodeDef::default() });
        add(graph, layer, &whole(name), depth - 1);
        before = Some(name.to_owned());
    }
}

/// The layers that inputs come from: all lists that begin with the name of one and a number, as every version of Keras writes them.
fn sources(nodes: &Value, known: &HashSet<&str>, depth: usize, into: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match nodes {
        Value::Array(parts) => match &parts[..] {
            [Value::String(name), Value::Number(_), ..] if known.contains(name.as_str()) => {
                if into.len() < MOST_INPUTS && !into.contains(name) {
                    into.push(name.clone());
                }
            }
            _ => parts.iter().for_each(|part| sources(part, known, depth - 1, into)),
        },
        Value::Object(members) => members.values().for_each(|part| sources(part, known, depth - 1, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(json: &str) -> Vec<(String, String, Vec<String>)> {
        let nodes = graph(json.as_bytes()).unwrap_or_default().nodes;
        nodes.into_iter().map(|node| (node.name, node.op, node.inputs)).collect()
    }

    fn node(name: &str, op: &str, inputs: &[&str]) -> (String, String, Vec<String>) {
        (name.to_owned(), op.to_owned(), inputs.iter().map(|&input| input.to_owned()).collect())
    }

    #[test]
    fn a_chain_takes_its_input_from_the_layer_before() {
        let json = r#"{"class_name": "Sequential", "config": {"name": "net", "layers": [
            {"class_name": "InputLayer", "config": {"name": "in"}},
            {"class_name": "Dense", "config": {"name": "out"}}]}}"#;
        assert_eq!(names(json), [node("in", "InputLayer", &[]), node("out", "Dense", &["in"])]);
    }

    #[test]
    fn inputs_of_both_generations_of_keras_and_models_inside_models_are_read() {
        let json = r#"{"class_name": "Functional", "config": {"layers": [
            {"class_name": "InputLayer", "name": "x", "config": {"name": "x"}, "inbound_nodes": []},
            {"class_name": "Dense", "name": "a", "config": {}, "inbound_nodes": [[["x", 0, 0, {}]]]},
            {"class_name": "Add", "name": "sum", "config": {}, "inbound_nodes": [{"args": [[
                {"class_name": "__keras_tensor__", "config": {"keras_history": ["a", 0, 0]}},
                {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}]], "kwargs": {}}]},
            {"class_name": "Sequential", "name": "inner", "inbound_nodes": [[["sum", 0, 0, {}]]],
             "config": {"name": "inner", "layers": [{"class_name": "Dense", "config": {"name": "d"}}]}}]}}"#;
        let expected = [
            node("x", "InputLayer", &[]),
            node("a", "Dense", &["x"]),
            node("sum", "Add", &["a", "x"]),
            node("inner", "Sequential", &["sum"]),
            node("inner/d", "Dense", &[]),
        ];
        assert_eq!(names(json), expected);
    }

    #[test]
    fn what_is_no_model_is_none_and_depth_is_bounded() {
        for text in ["", "{", "[]", "{\"config\": 3}", "{\"config\": {\"layers\": [1, {}]}}"] {
            assert_eq!(graph(text.as_bytes()), None, "{text}");
        }
        let mut deep = r#"{"class_name": "Dense", "name": "d", "config": {}}"#.to_owned();
        for _ in 0..60 {
            deep = format!(r#"{{"name": "m", "config": {{"layers": [{deep}]}}}}"#);
        }
        assert!(names(&deep).len() <= DEEPEST);
    }
}
