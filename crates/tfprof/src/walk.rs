//! The graph node by node: what a node takes and who takes from it.

use regex::Regex;

use crate::graph::roots;
use crate::measures::Measures;
use crate::profile::{Node, Profile};

/// A node and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// The node itself.
    pub node: NodeLine,
    /// All types that it counts as.
    pub types: Vec<String>,
    /// The shape of the parameter that it holds; empty where it holds none.
    pub shape: Vec<i64>,
    /// Its inputs, in order.
    pub inputs: Vec<NodeLink>,
    /// Nodes that it is an input of, in the order of their names.
    pub users: Vec<NodeLink>,
}

/// A node in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine {
    /// Its name.
    pub name: String,
    /// Its operation type.
    pub op: String,
    /// The device that it ran on; empty where it never ran.
    pub device: String,
    /// Its values.
    pub own: Measures,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// The neighbour; `None` where the graph names one that it does not have.
    pub node: Option<NodeLine>,
    /// Its name.
    pub name: String,
    /// Which output is taken; `None` where only the order of execution is meant.
    pub port: Option<i64>,
    /// The shape of what is handed over; empty where that is not known.
    pub shape: Vec<i64>,
}

impl Profile {
    /// The node of this name, with its values in a step or their averages.
    pub fn describe(&self, name: &str, step: i64) -> Option<NodeInfo> {
        let node = self.node(name)?;
        let inputs = edges(node).map(|(producer, port)| {
            let other = self.node(producer);
            self.link(producer, other, producer, port, step)
        });
        let inputs = inputs.collect();
        let mut users: Vec<NodeLink> = Vec::new();
        for user in &self.nodes {
            let taken = edges(user).filter(|(producer, _)| *producer == name);
            users.extend(taken.map(|(_, port)| self.link(&user.name, Some(user), name, port, step)));
        }
        users.sort_by(|a, b| a.name.cmp(&b.name));
        Some(NodeInfo {
            node: line(node, step),
            types: node.types.iter().cloned().collect(),
            shape: node.shape.clone(),
            inputs,
            users,
        })
    }

    /// The unused nodes, where a walk through the graph begins.
    pub fn ends(&self, step: i64) -> Vec<NodeLine> {
        roots(self).into_iter().map(|index| line(&self.nodes[index], step)).collect()
    }

    /// Nodes whose name matches somewhere, in the order of their names: the first of them, and how many there are.
    pub fn find(&self, pattern: &Regex, step: i64, most: usize) -> (Vec<NodeLine>, usize) {
        let matches = |index: &usize| pattern.is_match(&self.nodes[*index].name);
        let found: Vec<usize> = self.in_order().into_iter().filter(matches).collect();
        let lines = found.iter().take(most).map(|&index| line(&self.nodes[index], step));
        (lines.collect(), found.len())
    }

    /// An edge from `producer`, as it is listed at one of its ends.
    fn link(
        &self,
        name: &str,
        node: Option<&Node>,
        producer: &str,
        port: Option<i64>,
        step: i64,
    ) -> NodeLink {
        let shape = port.and_then(|port| self.node(producer)?.output_shapes.get(&port).cloned());
        NodeLink {
            node: node.map(|node| line(node, step)),
            name: name.to_owned(),
            port,
            shape: shape.unwrap_or_default(),
        }
    }
}

/// What a node takes: producers, and which output of each.
fn edges(node: &Node) -> impl Iterator<Item = (&str, Option<i64>)> {
    node.inputs.values().enumerate().map(|(at, producer)| {
        let port = match node.true_ports.get(at) {
            Some(port) => *port,
            None => Some(node.ports.get(producer).copied().unwrap_or(0)),
        };
        (producer.as_str(), port)
    })
}

fn line(node: &Node, step: i64) -> NodeLine {
    NodeLine {
        name: node.name.clone(),
        op: node.op.clone(),
        device: node.device.clone(),
        own: node.measures(step),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_tfgraph::{Attr, Graph, NodeDef, Shape};

    use super::*;

    fn profile() -> Profile {
        let node = |name: &str, inputs: &[&str], outputs: &[i64]| NodeDef {
            name: name.to_owned(),
            op: "Op".to_owned(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            attrs: vec![(
                "_output_shapes".to_owned(),
                Attr::Shapes(
                    outputs.iter().map(|size| Shape { dims: vec![*size], unknown_rank: false }).collect(),
                ),
            )],
            ..NodeDef::default()
        };
        let nodes = vec![
            node("split", &[], &[8, 3]),
            node("loss/use", &["split:1", "gone", "^split"], &[8]),
            node("b", &["loss/use"], &[8]),
            node("a", &["loss/use"], &[8]),
        ];
        let mut profile = Profile::default();
        profile.add_graph(&Graph { nodes });
        profile
    }

    #[test]
    fn a_walk_goes_from_a_node_to_its_inputs_and_back() {
        let profile = profile();
        let ends: Vec<String> = profile.ends(-1).into_iter().map(|line| line.name).collect();
        assert_eq!(ends, ["a", "b"]);
        let info = profile.describe("loss/use", -1).unwrap();
        let inputs: Vec<_> = info
            .inputs
            .iter()
            .map(|it| (it.name.as_str(), it.port, &it.shape[..], it.node.is_some()))
            .collect();
        assert_eq!(
            inputs,
            [
                ("split", Some(1), &[3][..], true),
                ("gone", Some(0), &[][..], false),
                ("split", None, &[][..], true)
            ]
        );
        let users: Vec<&str> = info.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(users, ["a", "b"]);
        assert_eq!(profile.describe("nowhere", -1), None);
    }

    #[test]
    fn names_are_found_by_a_part() {
        let (found, total) = profile().find(&Regex::new("s").unwrap(), -1, 1);
        assert_eq!((found[0].name.as_str(), total), ("loss/use", 2));
    }
}
