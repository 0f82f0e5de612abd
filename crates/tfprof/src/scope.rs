//! The scope view: names are paths, as in a file system.

use std::collections::{BTreeMap, HashMap};

use crate::display::hang;
use crate::names::{ROOT, SCOPE_PARENT};
use crate::options::Options;
use crate::profile::Profile;
use crate::rows::{Of, Row, total_upwards};

/// Deeper scopes stay one name: no model is that deep, and a name of slashes must not grow without bounds.
const DEEPEST: usize = 200;

/// The rows of the view, and the index of the root.
pub(crate) fn rows(profile: &Profile, options: &Options) -> (Vec<Row>, usize) {
    let (mut rows, parents) = all(profile);
    for row in &mut rows {
        row.accounted = match row.node(profile) {
            Some(node) => options.account_type_regexes.is_all() || matches(options, node.types.iter()),
            None => options.account_type_regexes.matches(SCOPE_PARENT),
        };
        row.own = row.node(profile).map(|node| node.measures(options.step)).unwrap_or_default();
    }
    let root = rows.len();
    rows.push(Row::new(ROOT.to_owned(), Of::Name(SCOPE_PARENT)));
    // Rows below come later, so whether they count is known first; they are pushed in reverse.
    for at in (0..root).rev() {
        if rows[at].accounted || !rows[at].below.is_empty() {
            rows[parents[at].unwrap_or(root)].below.push(at);
            rows[at].below.reverse();
        }
    }
    rows[root].below.reverse();
    total_upwards(&mut rows[..root]);
    let below = std::mem::take(&mut rows[root].below);
    hang(&mut rows, root, below, options);
    (rows, root)
}

fn matches<'a>(options: &Options, mut types: impl Iterator<Item = &'a String>) -> bool {
    types.any(|name| options.account_type_regexes.matches(name))
}

/// One row per node and scope, in byte order of their names, with the row above each.
fn all(profile: &Profile) -> (Vec<Row>, Vec<Option<usize>>) {
    let mut of: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    for (index, node) in profile.nodes.iter().enumerate() {
        of.insert(&node.name, Some(index));
        for (at, _) in node.name.match_indices('/').take(DEEPEST) {
            of.entry(&node.name[..at]).or_insert(None);
        }
    }
    let index: HashMap<&str, usize> = of.keys().copied().zip(0..).collect();
    let mut rows = Vec::with_capacity(of.len() + 1);
    let mut parents = Vec::with_capacity(of.len());
    for (name, node) in &of {
        let of = node.map_or(Of::Name(SCOPE_PARENT), Of::Node);
        rows.push(Row::new((*name).to_owned(), of));
        let mut parent = *name;
        let mut above = None;
        while let Some(at) = parent.rfind('/') {
            parent = &parent[..at];
            above = index.get(parent).copied();
            if above.is_some() {
                break;
            }
        }
        parents.push(above);
    }
    (rows, parents)
}
