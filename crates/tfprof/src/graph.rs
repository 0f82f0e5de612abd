//! The graph view: from the nodes that no other node uses down to their inputs. A node is counted once, under
//! the first that reaches it.

use std::collections::HashSet;

use crate::display::hang;
use crate::names::{GRAPH_PARENT, ROOT};
use crate::options::Options;
use crate::profile::Profile;
use crate::rows::{Of, Row};

/// The rows of the view, and the index of the root. A row has its node's index; the root comes last.
pub(crate) fn rows(profile: &Profile, options: &Options) -> (Vec<Row>, usize) {
    let mut rows: Vec<Row> = (0..profile.nodes.len())
        .map(|index| Row::new(profile.nodes[index].name.clone(), Of::Node(index)))
        .collect();
    let root = rows.len();
    rows.push(Row::new(ROOT.to_owned(), Of::Name(GRAPH_PARENT)));
    for (row, node) in rows.iter_mut().zip(&profile.nodes) {
        row.own = node.measures(options.step);
        row.accounted = options.account_type_regexes.is_all()
            || node.types.iter().any(|name| options.account_type_regexes.matches(name));
    }
    let below = account(profile, &mut rows, roots(profile));
    hang(&mut rows, root, below, options);
    (rows, root)
}

/// The producers of a node's inputs.
pub(crate) fn inputs(profile: &Profile, node: usize) -> Vec<usize> {
    let names = profile.nodes[node].inputs.values();
    names.filter_map(|name| profile.index_of(name)).collect()
}

/// Nodes that are no other node's input, sorted by name.
pub(crate) fn roots(profile: &Profile) -> Vec<usize> {
    let used: HashSet<&str> =
        profile.nodes.iter().flat_map(|node| node.inputs.values()).map(String::as_str).collect();
    let order = profile.in_order();
    order.into_iter().filter(|&index| !used.contains(profile.nodes[index].name.as_str())).collect()
}

/// A node whose inputs are being walked.
struct Walking {
    node: usize,
    inputs: Vec<usize>,
    next: usize,
    /// What counts below it so far.
    counted: Vec<usize>,
}

/// Walks from the roots, depth first, and links what counts; returns what counts at the top. Graphs are deep,
/// so the walk uses its own stack.
fn account(profile: &Profile, rows: &mut [Row], roots: Vec<usize>) -> Vec<usize> {
    let mut seen = vec![false; profile.nodes.len()];
    let mut top = Walking { node: usize::MAX, inputs: roots, next: 0, counted: Vec::new() };
    let mut stack: Vec<Walking> = Vec::new();
    loop {
        let current = stack.last_mut().unwrap_or(&mut top);
        if let Some(&next) = current.inputs.get(current.next) {
            current.next += 1;
            if !std::mem::replace(&mut seen[next], true) {
                let inputs = inputs(profile, next);
                stack.push(Walking { node: next, inputs, next: 0, counted: Vec::new() });
            }
            continue;
        }
        let Some(done) = stack.pop() else { return top.counted };
        let above = stack.last_mut().unwrap_or(&mut top);
        if !rows[done.node].accounted {
            // What counts below is handed to the node above.
            above.counted.extend(done.counted);
            continue;
        }
        let mut total = rows[done.node].own.as_total();
        done.counted.iter().for_each(|&child| total += rows[child].total);
        rows[done.node].total = total;
        rows[done.node].below = done.counted;
        above.counted.push(done.node);
    }
}
