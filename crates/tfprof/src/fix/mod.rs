//! A profile with tfprof's mistakes corrected: what ran under its own name, the right tensor of each input, shapes that
//! only the run knows, and the float operations that tfprof leaves out.
//!
//! Corrections make a second profile beside the first, so that both can be shown and their difference listed
//! ([`changes`]). Views of a corrected profile are computed like all others.

mod changes;
mod einsum;
mod flops;

use std::collections::{BTreeMap, VecDeque};

use stepscope_tfgraph::Attr;

use crate::options::{Column, Options};
use crate::profile::{Node, Profile};
pub use changes::{Amount, Change, ChangedCell, Changes};
use flops::{Work, float_ops};

/// Nodes that a reason names.
const NAMED: usize = 3;

/// A corrected profile, and what was corrected.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The profile.
    pub profile: Profile,
    /// What was corrected, each with the nodes that it concerns.
    pub reasons: Vec<Reason>,
}

/// One sort of correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which.
    pub kind: ReasonKind,
    /// The nodes, with more where there is more to say.
    pub nodes: Vec<String>,
}

/// Sorts of corrections.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonKind {
    /// What ran was not what the graph says.
    Ran,
    /// An input is another output than the first, or no tensor at all.
    Ports,
    /// A shape was not known before the run.
    Shapes,
    /// Float operations that tfprof leaves out, or counts wrongly.
    FloatOps,
    /// Float operations of nodes that never ran.
    NeverRan,
}

impl ReasonKind {
    /// Its name for programs.
    pub fn key(self) -> &'static str {
        match self {
            ReasonKind::Ran => "ran-as",
            ReasonKind::Ports => "input-port",
            ReasonKind::Shapes => "run-time-shape",
            ReasonKind::FloatOps => "float-ops",
            ReasonKind::NeverRan => "never-ran",
        }
    }

    /// Does it concern what these options show?
    fn concerns(self, options: &Options) -> bool {
        let flops = options.shows(Column::FloatOps);
        match self {
            ReasonKind::Ran => true,
            ReasonKind::Ports | ReasonKind::Shapes => flops || options.shows(Column::InputShapes),
            ReasonKind::FloatOps | ReasonKind::NeverRan => flops,
        }
    }
}

impl Reason {
    /// The reason in words.
    pub fn text(&self) -> String {
        let count = self.nodes.len();
        let (one, many) = match self.kind {
            ReasonKind::Ran => {
                ("node counts as the operation that ran", "nodes count as the operations that ran")
            }
            ReasonKind::Ports => (
                "node takes another output than the first, or only waits for an input",
                "nodes take another output than the first, or only wait for an input",
            ),
            ReasonKind::Shapes => ("node has its shape from the run", "nodes have their shapes from the run"),
            ReasonKind::FloatOps => ("node has other float_ops", "nodes have other float_ops"),
            ReasonKind::NeverRan => {
                ("node never ran and counts no float_ops", "nodes never ran and count no float_ops")
            }
        };
        let words = if count == 1 { one } else { many };
        let named: Vec<&str> = self.nodes.iter().take(NAMED).map(String::as_str).collect();
        let more = if count > NAMED { ", …" } else { "" };
        format!("{count} {words}: {}{more}", named.join(", "))
    }
}

impl Fixed {
    /// The reasons that concern what these options show.
    pub(crate) fn reasons_for(&self, options: &Options) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.kind.concerns(options))
    }
}

impl Profile {
    /// The same, corrected. Only what [`Profile::to_be_fixed`] kept of runs can be.
    pub fn fixed(&self) -> Fixed {
        let mut profile = self.clone();
        profile.is_fixed = true;
        let mut reasons = Reasons::default();
        for index in profile.in_order() {
            let node = &mut profile.nodes[index];
            fill_shapes(node, &mut reasons);
            name_what_ran(node, &mut reasons);
            take_tensors(node, &mut reasons);
        }
        count_float_ops(self, &mut profile, &mut reasons);
        let reasons = reasons.0.into_iter().map(|(kind, nodes)| Reason { kind, nodes: nodes.into() });
        Fixed { profile, reasons: reasons.collect() }
    }
}

#[derive(Default)]
struct Reasons(BTreeMap<ReasonKind, VecDeque<String>>);

impl Reasons {
    /// Puts it before what was added: what people ask for comes first.
    fn add_first(&mut self, kind: ReasonKind, what: String) {
        self.0.entry(kind).or_default().push_front(what);
    }

    fn add(&mut self, kind: ReasonKind, what: String) {
        self.0.entry(kind).or_default().push_back(what);
    }
}

/// Shapes that the graph leaves open are those of the run.
fn fill_shapes(node: &mut Node, reasons: &mut Reasons) {
    let Some(ran) = &node.ran else { return };
    let mut filled = false;
    for (slot, shape) in &ran.shapes {
        let known = node.output_shapes.get(slot);
        let whole = known.is_some_and(|dims| !dims.is_empty() && dims.iter().all(|size| *size >= 0));
        if !whole {
            filled |= known.is_some();
            node.output_shapes.insert(*slot, shape.clone());
        }
    }
    if filled {
        reasons.add(ReasonKind::Shapes, node.name.clone());
    }
}

/// A kernel counts as what it is: a fused one is not the last operation that was fused into it.
fn name_what_ran(node: &mut Node, reasons: &mut Reasons) {
    let Some(ran) = &node.ran else { return };
    if ran.op == node.op {
        return;
    }
    let what = format!("{} ran {}", node.name, ran.op);
    if node.op == node.name {
        // A node that only the run knows had no type but its name.
        node.types.remove(&node.name);
        reasons.add(ReasonKind::Ran, what);
    } else {
        reasons.add_first(ReasonKind::Ran, what);
    }
    node.types.insert(ran.op.clone());
    node.graph_op = Some(std::mem::replace(&mut node.op, ran.op.clone()));
}

/// The tensors that went in: as the run says, else as the graph does.
fn take_tensors(node: &mut Node, reasons: &mut Reasons) {
    let by_graph: Vec<(String, i64)> = if node.true_ports.is_empty() {
        node.inputs.values().map(|name| (name.clone(), node.ports.get(name).copied().unwrap_or(0))).collect()
    } else {
        let ports = node.inputs.values().zip(&node.true_ports);
        ports.filter_map(|(name, port)| Some((name.clone(), (*port)?))).collect()
    };
    if node.true_ports.iter().any(|port| *port != Some(0)) {
        reasons.add(ReasonKind::Ports, node.name.clone());
    }
    node.tensors = Some(match &node.ran {
        Some(ran) if !ran.tensors.is_empty() => ran.tensors.clone(),
        _ => by_graph,
    });
}

/// Counts again where tfprof counts nothing, or another operation than the one that ran.
fn count_float_ops(before: &Profile, profile: &mut Profile, reasons: &mut Reasons) {
    let some_ran = !profile.steps.is_empty();
    // Nodes inside a compiled cluster run without a record of their own.
    let clustered =
        profile.nodes.iter().any(|node| node.op.starts_with("_Xla") || node.op.starts_with("XlaLaunch"));
    for index in profile.in_order() {
        let node = &profile.nodes[index];
        let was = before.nodes[index].float_ops;
        let counted = if some_ran && !clustered && node.execs.is_empty() {
            Some(0)
        } else if was > 0 && node.graph_op.is_none() && !is_miscounted(node) {
            None
        } else {
            count(profile, node).or(node.graph_op.is_some().then_some(0))
        };
        let Some(counted) = counted.filter(|counted| *counted != was) else { continue };
        let kind =
            if node.execs.is_empty() && some_ran { ReasonKind::NeverRan } else { ReasonKind::FloatOps };
        reasons.add(kind, node.name.clone());
        profile.nodes[index].float_ops = counted;
    }
}

/// tfprof does not know how batched products name their transposition.
fn is_miscounted(node: &Node) -> bool {
    node.op.starts_with("BatchMatMul") && node.attr("adj_x").and_then(Attr::as_bool) == Some(true)
}

fn count(profile: &Profile, node: &Node) -> Option<i64> {
    let inputs: Vec<Vec<i64>> = profile.input_shapes(node).into_values().collect();
    float_ops(&Work {
        op: &node.op,
        graph_op: node.graph_op.as_deref().unwrap_or(&node.op),
        attrs: if node.graph_op.is_none() { &node.attrs } else { &[] },
        inputs: &inputs,
        outputs: &node.output_shapes,
    })
}

#[cfg(test)]
mod tests;
