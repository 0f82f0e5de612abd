//! The shown rows of a view as a plain list, for those that draw them.

use crate::display::in_order;
use crate::measures::Measures;
use crate::rows::Of;
use crate::view::{Shown, View};

/// A shown row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatRow {
    /// Its name.
    pub name: String,
    /// The place of the row above it in the list; `None` at the top.
    pub above: Option<usize>,
    /// Its own values.
    pub own: Measures,
    /// With all below it.
    pub total: Measures,
    /// Its operation type; empty for names that are no node.
    pub op: String,
    /// The device that it ran on; empty where it never ran, or where there are several.
    pub device: String,
    /// Nodes behind it.
    pub nodes: usize,
}

impl Shown<'_> {
    /// The shown rows, each behind the one above it; the root is not among them. Rows of the op view have their own
    /// values as totals, because those of tfprof are of the list below.
    pub fn flat(&self) -> Vec<FlatRow> {
        let mut places: Vec<Option<usize>> = vec![None; self.rows.len()];
        let mut flat = Vec::new();
        for at in in_order(&self.rows, self.root) {
            let place = (at != self.root).then_some(flat.len());
            if at != self.root {
                let row = &self.rows[at];
                let node = row.node(self.profile);
                let nodes = match &row.of {
                    Of::Nodes(members) => members.nodes.len(),
                    Of::Node(_) => 1,
                    Of::Name(_) => 0,
                };
                flat.push(FlatRow {
                    name: row.name.clone(),
                    above: places[at],
                    own: row.own,
                    total: if self.view == View::Op { row.own } else { row.total },
                    op: node.map(|node| node.op.clone()).unwrap_or_default(),
                    device: node.map(|node| node.device.clone()).unwrap_or_default(),
                    nodes,
                });
            }
            self.rows[at].shown.iter().for_each(|&child| places[child] = place);
        }
        flat
    }

    /// The values of the whole view.
    pub fn total(&self) -> Measures {
        self.rows[self.root].total
    }
}
