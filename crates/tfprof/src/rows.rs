//! Rows of a view before they are shown: each with its own values, its total, and the counted rows below it.

use std::collections::BTreeSet;

use crate::measures::Measures;
use crate::profile::{Node, Profile};

/// What a row stands for.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// A node of the profile.
    Node(usize),
    /// A name without a node: a scope, the root. With its type.
    Name(&'static str),
    /// Several nodes: those of an operation type or a line of code.
    Nodes(Members),
}

/// The nodes behind a row, and their combined values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    /// Nodes that count, in the order of their names.
    pub nodes: Vec<usize>,
    pub types: BTreeSet<String>,
    pub devices: BTreeSet<String>,
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub name: String,
    pub of: Of,
    pub own: Measures,
    pub total: Measures,
    /// Whether it counts itself, or only contains others that do.
    pub accounted: bool,
    /// Rows below it that count.
    pub below: Vec<usize>,
    /// Rows below it that are shown, sorted.
    pub shown: Vec<usize>,
    /// Spaces before its name.
    pub indent: usize,
}

impl Row {
    pub fn new(name: String, of: Of) -> Self {
        Row {
            name,
            of,
            own: Measures::default(),
            total: Measures::default(),
            accounted: false,
            below: Vec::new(),
            shown: Vec::new(),
            indent: 0,
        }
    }

    /// The node, if it stands for one.
    pub fn node<'a>(&self, profile: &'a Profile) -> Option<&'a Node> {
        match self.of {
            Of::Node(index) => profile.nodes.get(index),
            _ => None,
        }
    }
}

/// Adds up what lies below: rows come before those below them.
pub(crate) fn total_upwards(rows: &mut [Row]) {
    for at in (0..rows.len()).rev() {
        let mut total = rows[at].own.as_total();
        for &child in &rows[at].below {
            total += rows[child].total;
        }
        rows[at].total = total;
    }
}
