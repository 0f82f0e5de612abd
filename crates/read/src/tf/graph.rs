//! GraphDef, binary.

use std::collections::HashSet;
use std::ops::Range;

use stepscope_tfgraph::{Attr, DataType, Graph, NodeDef, Shape};

use super::Found;
use super::message::{Damages, Field, Value, Walk};

/// Reads a GraphDef.
pub(super) fn graph(file: &[u8], damage: Damages) -> Found<Graph> {
    let mut walk = Walk::new(file, damage);
    let mut graph = Graph::default();
    walk.message(0..file.len(), "GraphDef", |walk, field| match field.number {
        1 => field.range().map(|range| graph.nodes.push(node(walk, range))),
        2 | 4 | 5 => field.range().map(|_| ()),
        3 => field.int().map(|_| ()),
        _ => None,
    });
    check(&graph, &mut walk.damage);
    Found { value: graph, damage: walk.damage }
}

/// Notes what no valid graph contains: inputs that name no node, nodes without a name or an operation.
pub(super) fn check(graph: &Graph, damage: &mut Damages) {
    let names: HashSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    for node in &graph.nodes {
        if node.name.is_empty() || node.op.is_empty() {
            damage.add_somewhere(|| format!("node `{}` has no name or no operation", node.name));
        }
        for input in &node.inputs {
            let producer = input_name(input);
            if !names.contains(producer) {
                damage.add_somewhere(|| {
                    format!("node `{}` takes input from `{producer}`, which is not in the graph", node.name)
                });
            }
        }
    }
}

/// The node that an input names: `[^]name[:port]`.
fn input_name(input: &str) -> &str {
    let name = input.split_once(':').map_or(input, |(name, _)| name);
    name.strip_prefix('^').unwrap_or(name)
}

fn node(walk: &mut Walk<'_>, range: Range<usize>) -> NodeDef {
    let mut node = NodeDef::default();
    walk.message(range, "NodeDef", |walk, field| match field.number {
        1 => field.range().map(|range| node.name = walk.text(range, "node name").into_owned()),
        2 => field.range().map(|range| node.op = walk.text(range, "operation").into_owned()),
        3 => field.range().map(|range| node.inputs.push(walk.text(range, "input").into_owned())),
        4 => field.range().map(|range| node.device = walk.text(range, "device").into_owned()),
        5 => field.range().map(|range| {
            let (key, value) = walk.text_entry(range, "attribute");
            let value = value.and_then(|value| value.range()).map_or(Attr::Other, |range| attr(walk, range));
            node.attrs.push((key.into_owned(), value));
        }),
        6 | 7 => field.range().map(|_| ()),
        _ => None,
    });
    node
}

/// The value of an attribute.
pub(super) fn attr(walk: &mut Walk<'_>, range: Range<usize>) -> Attr {
    let mut value = Attr::Other;
    walk.message(range, "AttrValue", |walk, field| {
        value = match field.number {
            1 => list(walk, field.range()?),
            2 => Attr::Bytes(walk.bytes(field.range()?).to_vec()),
            3 => Attr::Int(field.int()?),
            4 => match field.value {
                Value::Fixed(bits) => Attr::Float(f32::from_bits(bits as u32)),
                _ => return None,
            },
            5 => Attr::Bool(field.int()? != 0),
            6 => Attr::Type(DataType(field.int()?)),
            7 => Attr::Shape(shape(walk, field.range()?)),
            8..=10 => field.range().map(|_| Attr::Other)?,
            _ => return None,
        };
        Some(())
    });
    value
}

fn list(walk: &mut Walk<'_>, range: Range<usize>) -> Attr {
    let (mut texts, mut ints, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    walk.message(range, "list", |walk, field: Field| match field.number {
        2 => field.range().map(|range| texts.push(walk.bytes(range).to_vec())),
        3 => walk.ints(&field, &mut ints),
        4..=6 => Some(()),
        7 => field.range().map(|range| shapes.push(shape(walk, range))),
        8 | 9 => field.range().map(|_| ()),
        _ => None,
    });
    match (texts.is_empty(), ints.is_empty(), shapes.is_empty()) {
        (_, _, false) => Attr::Shapes(shapes),
        (_, false, _) => Attr::Ints(ints),
        (false, _, _) => Attr::Texts(texts),
        _ => Attr::List,
    }
}

/// A TensorShapeProto.
pub(super) fn shape(walk: &mut Walk<'_>, range: Range<usize>) -> Shape {
    let mut shape = Shape::default();
    walk.message(range, "shape", |walk, field| match field.number {
        2 => {
            let mut size = 0;
            walk.message(field.range()?, "dimension", |walk, field| match field.number {
                1 => field.int().map(|value| size = value),
                2 => field.range().map(|range| drop(walk.text(range, "dimension"))),
                _ => None,
            });
            shape.dims.push(size);
            Some(())
        }
        3 => field.int().map(|value| shape.unknown_rank = value != 0),
        _ => None,
    });
    shape
}
