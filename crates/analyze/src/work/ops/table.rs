//! Which kinds of host events are ops, and which: decided once per kind, so that the pass over the events only
//! looks up a number.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Form, Kind, KindId, Trace};

use super::COLLECTIVE;
use super::node_types::node_types;
use crate::vocabulary::names::{concrete_function, framework_op, hlo_opcode};
use crate::vocabulary::{Keys, Role, Vocabulary, names_torch_op, node_name, op_type};

/// What a kind of event means to this analysis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing.
    Other,
    /// The op with this number.
    Op(u32),
    /// The op with this number, run eagerly; the time around its kernel is framework overhead.
    EagerOp(u32),
    /// The part of an eager op that runs its kernel.
    EagerKernel,
}

/// The host ops of a trace.
#[derive(Debug)]
pub(crate) struct OpTable {
    meanings: Vec<Meaning>,
    /// Name and type of each op.
    pub(crate) ops: Vec<(String, String)>,
    /// Kinds that are ranges around ops instead of ops.
    ranges: Vec<bool>,
}

impl OpTable {
    /// Examines every kind once.
    pub(crate) fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let mut table = OpTable {
            meanings: Vec::with_capacity(trace.kinds().len()),
            ops: Vec::new(),
            ranges: trace.kinds().iter().map(|kind| is_range(trace, kind)).collect(),
        };
        let nodes = node_types(trace, vocabulary);
        let mut known = HashMap::default();
        for index in 0..trace.kinds().len() {
            let id = KindId::from_index(index);
            let node = nodes.get(&id).map(String::as_str);
            let meaning = table.meaning_of(trace, vocabulary, id, node, &mut known);
            table.meanings.push(meaning);
        }
        table
    }

    #[inline]
    pub(crate) fn meaning(&self, kind: KindId) -> Meaning {
        self.meanings[kind.index()]
    }

    /// The op of a kind that may have launched something itself. For a range around ops this is unknown.
    #[inline]
    pub(crate) fn launcher(&self, kind: KindId) -> Option<u32> {
        match self.meaning(kind) {
            Meaning::Op(op) | Meaning::EagerOp(op) if !self.ranges[kind.index()] => Some(op),
            _ => None,
        }
    }

    fn meaning_of<'t>(
        &mut self,
        trace: &'t Trace,
        vocabulary: &Vocabulary,
        id: KindId,
        node: Option<&'t str>,
        known: &mut HashMap<(&'t str, &'t str), u32, FxBuildHasher>,
    ) -> Meaning {
        let kind = trace.kind(id);
        let name = trace.str(kind.name);
        if kind.form != Form::Slice {
            return Meaning::Other;
        }
        let mut op = |name: &'t str, kind: &'t str| {
            *known.entry((name, kind)).or_insert_with(|| {
                self.ops.push((name.to_owned(), kind.to_owned()));
                (self.ops.len() - 1) as u32
            })
        };
        if let Some(eager) = name.strip_prefix("EagerLocalExecute: ") {
            // A whole function is not an op; its own ops are recorded inside.
            return match concrete_function(eager) {
                None => Meaning::EagerOp(op(eager, eager)),
                Some(_) => Meaning::Other,
            };
        }
        if let Some(kind) = node {
            return Meaning::Op(op(node_name(name), kind));
        }
        let keys = vocabulary.signatures.keys(id);
        match vocabulary.role(id) {
            Role::EagerKernel => Meaning::EagerKernel,
            Role::Op | Role::InputWait | Role::Output if op_type(name).is_some() => {
                let (name, kind) = framework_op(name);
                Meaning::Op(op(name, kind))
            }
            Role::HostCollective => Meaning::Op(op(name, COLLECTIVE)),
            Role::Op if keys.has(Keys::HloOp) => Meaning::Op(op(name, hlo_opcode(name))),
            // Kineto's categories distinguish ops from events that only have their names. PyTorch's first profiler wrote none.
            Role::Op if !trace.str(kind.category).is_empty() || name.starts_with("aten::") => {
                Meaning::Op(op(name, name))
            }
            _ => Meaning::Other,
        }
    }
}

/// Kineto writes ranges under the category of ops: compiled regions, nodes of the backward graph, user ranges.
fn is_range(trace: &Trace, kind: &Kind) -> bool {
    let (name, category) = (trace.str(kind.name), trace.str(kind.category));
    let records = name == "record_param_comms" || name.starts_with("nccl:");
    matches!(category, "cpu_op" | "Operator") && !names_torch_op(name) && !records
}
