//! The code view: the call stacks that created the nodes, as a tree. Nodes of the backward pass are in a
//! parallel tree of their forward nodes' stacks.

use std::collections::{BTreeMap, HashMap};

use stepscope_tfgraph::Frame;

use crate::display::{Style, display, start};
use crate::names::{GRAPH_PARENT, ROOT};
use crate::op::snapshot;
use crate::options::Options;
use crate::profile::Profile;
use crate::rows::{Of, Row};

/// Suffix of every frame of the backward pass.
pub(crate) const GRADIENT: &str = " (gradient)";

/// The tree of frames.
pub(crate) struct Tree {
    /// The frames, each after its caller. The root is the first.
    pub frames: Vec<TreeFrame>,
    /// Number of unknown forward operations whose gradients had to be excluded.
    pub lost: usize,
}

/// A frame of the tree.
pub(crate) struct TreeFrame {
    pub label: String,
    /// What was called; `None` for the root.
    pub frame: Option<Frame>,
    pub gradient: bool,
    pub children: Vec<usize>,
    by_label: HashMap<String, usize>,
    /// Nodes created there.
    nodes: Vec<usize>,
}

impl TreeFrame {
    fn new(label: String, frame: Option<Frame>, gradient: bool) -> Self {
        TreeFrame {
            label,
            frame,
            gradient,
            children: Vec::new(),
            by_label: HashMap::new(),
            nodes: Vec::new(),
        }
    }
}

impl Tree {
    pub fn new(profile: &Profile) -> Self {
        let mut tree = Tree { frames: vec![TreeFrame::new(ROOT.to_owned(), None, false)], lost: 0 };
        let mut forward: HashMap<&str, usize> = HashMap::new();
        let mut backward: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for index in profile.in_order() {
            let node = &profile.nodes[index];
            let stack = node.stack.as_deref().unwrap_or_default();
            if stack.is_empty() {
                continue;
            }
            match forward_of(&node.name) {
                Some(name) => backward.entry(name).or_default().push(index),
                None => {
                    forward.insert(&node.name, index);
                    let leaf = tree.path(profile, stack, false);
                    tree.frames[leaf].nodes.push(index);
                }
            }
        }
        for (name, nodes) in backward {
            let Some(&forward) = forward.get(name) else {
                tree.lost += 1;
                continue;
            };
            let stack = profile.nodes[forward].stack.as_deref().unwrap_or_default();
            let leaf = tree.path(profile, stack, true);
            tree.frames[leaf].nodes.extend(nodes);
        }
        tree
    }

    /// The frame at the end of a stack.
    fn path(&mut self, profile: &Profile, stack: &[Frame], gradient: bool) -> usize {
        let mut at = 0;
        for frame in stack {
            let label = label(profile, frame, gradient);
            at = match self.frames[at].by_label.get(&label) {
                Some(&child) => child,
                None => {
                    let child = self.frames.len();
                    self.frames.push(TreeFrame::new(label.clone(), Some(*frame), gradient));
                    self.frames[at].children.push(child);
                    self.frames[at].by_label.insert(label, child);
                    child
                }
            };
        }
        at
    }
}

/// `file.py:12:function`, long functions cut.
fn label(profile: &Profile, frame: &Frame, gradient: bool) -> String {
    let file = text(profile, frame.file);
    let base = file.rsplit('/').next().unwrap_or_default();
    let function = text(profile, frame.function);
    let function = match function.len() < 20 {
        true => function.to_owned(),
        false => {
            let end = (0..=17).rev().find(|end| function.is_char_boundary(*end)).unwrap_or(0);
            format!("{}...", &function[..end])
        }
    };
    let suffix = if gradient { GRADIENT } else { "" };
    format!("{base}:{}:{function}{suffix}", frame.line)
}

/// The text that a frame names.
pub(crate) fn text(profile: &Profile, id: i64) -> &str {
    profile.strings.get(&id).map_or("", String::as_str)
}

/// The forward operation of a node of the backward pass: `…gradients/NAME_grad/…`.
fn forward_of(name: &str) -> Option<&str> {
    const PREFIX: &str = "gradients/";
    let start = name.find(PREFIX)? + PREFIX.len();
    let end = name.find("_grad/")?;
    match end {
        _ if end == start => None,
        // The suffix comes first: tfprof then uses everything after the prefix.
        _ if end < start => Some(&name[start..]),
        _ => Some(&name[start..end]),
    }
}

/// The rows of the view, at the indices of the tree's frames; the root is the first.
pub(crate) fn rows(profile: &Profile, options: &Options, tree: &Tree) -> (Vec<Row>, usize) {
    let mut rows: Vec<Row> = Vec::with_capacity(tree.frames.len());
    for frame in &tree.frames {
        let mut nodes = frame.nodes.clone();
        nodes.sort_by(|a, b| profile.nodes[*a].name.cmp(&profile.nodes[*b].name));
        let (members, own, accounted) = snapshot(profile, options, &nodes);
        let mut row = Row::new(frame.label.clone(), Of::Nodes(members));
        (row.own, row.accounted) = (own, accounted);
        rows.push(row);
    }
    for at in (0..rows.len()).rev() {
        let counts = |child: &&usize| rows[**child].accounted || !rows[**child].below.is_empty();
        let below: Vec<usize> = tree.frames[at].children.iter().filter(counts).copied().collect();
        let mut total = rows[at].own;
        below.iter().for_each(|&child| total += rows[child].total);
        (rows[at].below, rows[at].total) = (below, total);
    }
    rows[0].accounted = false;
    rows[0].of = Of::Name(GRAPH_PARENT);
    let below = std::mem::take(&mut rows[0].below);
    rows[0].below = start(&rows, below, &options.start_name_regexes);
    display(&mut rows, 0, options, Style::Multiple);
    (rows, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forward_operation_is_named_inside_the_gradient() {
        assert_eq!(forward_of("gradients/dense/MatMul_grad/MatMul_1"), Some("dense/MatMul"));
        assert_eq!(forward_of("train/gradients/a_grad/b_grad/x"), Some("a"));
        assert_eq!(forward_of("gradients/_grad/x"), None);
        assert_eq!(forward_of("a_grad/gradients/x"), Some("x"));
        assert_eq!(forward_of("gradients/Fill"), None);
    }
}
