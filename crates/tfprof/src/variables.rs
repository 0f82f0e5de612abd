//! The variables of a model: what they are and how large.

use std::collections::BTreeSet;

use stepscope_tfgraph::{Attr, DataType};

use crate::names::TRAINABLE;
use crate::profile::{Node, Profile};

/// Operation types that hold a variable.
const HOLDERS: [&str; 4] = ["VarHandleOp", "VariableV2", "Variable", "AutoReloadVariable"];

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// Its shape; `None` where a size is not known.
    pub shape: Option<Vec<i64>>,
    /// Its element type; `None` where that is not known.
    pub data_type: Option<DataType>,
    /// Its elements; `None` where a size is not known.
    pub parameters: Option<i64>,
    /// The memory that it takes; `None` where that is not known.
    pub bytes: Option<i64>,
    /// Is it trained? `None` without an op log that says it of any.
    pub trainable: Option<bool>,
    /// Is it in the graph, or in the checkpoint alone?
    pub in_graph: bool,
}

impl Profile {
    /// The variables of the graph and of the checkpoint, in the order of their names.
    pub fn variable_rows(&self) -> Vec<VariableRow> {
        let says = self.nodes.iter().any(|node| node.types.contains(TRAINABLE));
        let holds = |node: &&Node| HOLDERS.contains(&node.op.as_str()) || node.types.contains(TRAINABLE);
        let of_graph: Vec<VariableRow> =
            self.nodes.iter().filter(holds).map(|node| self.variable_row(node, says)).collect();
        let known: BTreeSet<&str> = of_graph.iter().map(|row| row.name.as_str()).collect();
        let alone = self.variables.values().filter(|variable| !known.contains(variable.name.as_str()));
        let alone = alone.map(|variable| VariableRow {
            name: variable.name.clone(),
            shape: Some(variable.shape.clone()),
            data_type: Some(variable.data_type),
            parameters: elements(&variable.shape),
            bytes: i64::try_from(variable.bytes).ok(),
            trainable: None,
            in_graph: false,
        });
        let mut rows: Vec<VariableRow> = alone.collect();
        rows.extend(of_graph);
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    fn variable_row(&self, node: &Node, says: bool) -> VariableRow {
        let saved = self.variables.get(&node.name);
        let by_graph = match node.attr("dtype") {
            Some(Attr::Type(data_type)) if data_type.size().is_some() => Some(*data_type),
            _ => None,
        };
        let data_type = by_graph.or(saved.map(|variable| variable.data_type));
        let whole = |dims: &Vec<i64>| dims.iter().all(|size| *size >= 0);
        let by_graph = (!node.shape.is_empty()).then(|| node.shape.clone()).filter(whole);
        let shape = by_graph.or_else(|| saved.map(|variable| variable.shape.clone()));
        let parameters = shape.as_deref().and_then(elements);
        let size = data_type.and_then(DataType::size).and_then(|size| i64::try_from(size).ok());
        let computed = parameters.zip(size).map(|(elements, size)| elements.saturating_mul(size));
        VariableRow {
            name: node.name.clone(),
            shape,
            data_type,
            parameters,
            bytes: computed.or_else(|| saved.and_then(|variable| i64::try_from(variable.bytes).ok())),
            trainable: says.then(|| node.types.contains(TRAINABLE)),
            in_graph: true,
        }
    }
}

fn elements(shape: &[i64]) -> Option<i64> {
    let whole = shape.iter().all(|size| *size >= 0);
    whole.then(|| shape.iter().copied().fold(1, i64::saturating_mul))
}

#[cfg(test)]
mod tests {
    use stepscope_tfgraph::{Graph, NodeDef, OpLog, OpLogEntry, Shape, Variable};

    use super::*;

    #[test]
    fn variables_have_type_and_size_from_graph_or_checkpoint() {
        let node = |name: &str, dims: Vec<i64>, data_type: i64| NodeDef {
            name: name.to_owned(),
            op: "VariableV2".to_owned(),
            attrs: vec![
                ("shape".to_owned(), Attr::Shape(Shape { dims, unknown_rank: false })),
                ("dtype".to_owned(), Attr::Type(DataType(data_type))),
            ],
            ..NodeDef::default()
        };
        let mut profile = Profile::default();
        let nodes = vec![node("w", vec![3, 2], 1), node("open", vec![-1, 2], 14), node("step", vec![], 9)];
        profile.add_graph(&Graph { nodes });
        let entry =
            OpLogEntry { name: "w".to_owned(), types: vec![TRAINABLE.to_owned()], ..OpLogEntry::default() };
        profile.add_op_log(&OpLog { entries: vec![entry], ..OpLog::default() });
        profile.add_variables(vec![Variable {
            name: "saved".to_owned(),
            data_type: DataType(2),
            shape: vec![5],
            bytes: 40,
            values: None,
        }]);
        let rows = profile.variable_rows();
        let told: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.parameters, row.bytes, row.trainable)).collect();
        assert_eq!(
            told,
            [
                ("open", None, None, Some(false)),
                ("saved", Some(5), Some(40), None),
                ("step", Some(1), Some(8), Some(false)),
                ("w", Some(6), Some(24), Some(true)),
            ]
        );
    }
}
