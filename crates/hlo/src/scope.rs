//! Where an instruction stands in the user's model: its scopes, the primitive, and the phase of the training step.
//!
//! JAX and TensorFlow name an operation by the path of scopes around it. JAX adds wrappers for its own transformations:
//! `jit(step)/transpose(jvp(mlp))/while/body/dot_general` is the backward pass of the scope `mlp`.

use crate::module::{ComputationId, Instruction, InstructionId, Module};

/// The part of a training step that an instruction belongs to.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Phase {
    /// Computes the model's results, and everything in a program without a backward pass.
    #[default]
    Forward,
    /// Computes gradients.
    Backward,
    /// Computes for the backward pass again what the forward pass did not keep.
    Recompute,
    /// Uses the gradients: the update of parameters, norms, statistics.
    Optimizer,
}

impl Phase {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Recompute => "recompute",
            Phase::Optimizer => "optimizer",
        }
    }
}

/// Parts of a path that come from JAX itself.
const MACHINERY: [&str; 17] = [
    "while",
    "body",
    "cond",
    "scan",
    "closed_call",
    "checkpoint",
    "remat",
    "remat2",
    "rematted_computation",
    "pjit",
    "core_call",
    "xla_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "shard_map",
    "named_call",
];

/// Transformations that are written around a scope; what is inside is kept.
const AROUND_SCOPES: [&str; 6] = ["jvp", "transpose", "vmap", "pmap", "checkpoint", "remat"];

/// The user's scopes in an operation's name, joined by `/`, without the operation itself.
pub fn scope(op_name: &str) -> String {
    let parts = split(first_alternative(op_name));
    let scopes = parts.split_last().map_or(&[][..], |(_, scopes)| scopes);
    let mut kept: Vec<&str> = Vec::new();
    for part in scopes {
        let inner = unwrap(part);
        if !inner.is_empty() && !is_machinery(inner) {
            kept.push(inner);
        }
    }
    kept.join("/")
}

/// The operation itself: the last part of its name.
pub fn primitive(op_name: &str) -> &str {
    split(first_alternative(op_name)).last().map_or("", |part| unwrap(part))
}

/// What people recognise an operation by: its scopes and itself.
pub fn label(op_name: &str) -> String {
    match (scope(op_name), primitive(op_name)) {
        (scope, "") => scope,
        (scope, primitive) if scope.is_empty() => primitive.to_owned(),
        (scope, primitive) => format!("{scope}/{primitive}"),
    }
}

/// Merged operations list their names as `(a:b:c)`; the first stands for all.
fn first_alternative(op_name: &str) -> &str {
    let inside = op_name.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inside.and_then(|inside| inside.split(':').next()).unwrap_or(op_name)
}

/// Splits at `/` outside of parentheses.
fn split(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (index, byte) in path.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'/' if depth == 0 => {
                parts.push(&path[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&path[start..]);
    parts
}

/// Removes transformations from around a scope; `jit(f)` disappears, because it names a function and not a scope.
fn unwrap(part: &str) -> &str {
    let mut part = part;
    while let Some((name, rest)) = part.split_once('(')
        && let Some(inside) = rest.strip_suffix(')')
    {
        if !AROUND_SCOPES.contains(&name) {
            return if matches!(name, "jit" | "pjit") { "" } else { part };
        }
        part = inside;
    }
    part
}

fn is_machinery(part: &str) -> bool {
    MACHINERY.contains(&part) || (part.starts_with("branch_") && part.ends_with("_fun"))
}

/// What the name alone says; `None` if it says nothing.
fn named_phase(op_name: &str) -> Option<Phase> {
    if op_name.contains("rematted_computation") {
        Some(Phase::Recompute)
    } else if op_name.contains("transpose(")
        || op_name.contains("gradient_tape/")
        || op_name.contains("gradients/")
    {
        Some(Phase::Backward)
    } else if op_name.contains("jvp(") {
        Some(Phase::Forward)
    } else {
        None
    }
}

/// The phase of every instruction of a module.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    instructions: Vec<Phase>,
    /// Whether the program has a backward pass.
    pub trains: bool,
}

impl Phases {
    /// Finds the phases. What uses gradients without computing any is the optimizer; what has no name takes the phase of
    /// what it uses; a called computation starts from the phase of its caller.
    pub fn of(module: &Module<'_>) -> Self {
        let named: Vec<Option<Phase>> =
            module.instructions.iter().map(|instruction| named_phase(instruction.op_name)).collect();
        let backward = |phase: &Option<Phase>| matches!(phase, Some(Phase::Backward | Phase::Recompute));
        let mut found = Phases {
            instructions: vec![Phase::Forward; module.instructions.len()],
            trains: named.iter().any(backward),
        };
        if !found.trains {
            return found;
        }
        let mut callers: Vec<Phase> = vec![Phase::Forward; module.computations.len()];
        // Callers come after their callees.
        for number in (0..module.computations.len()).rev() {
            found.enter(module, number as ComputationId, &named, &mut callers);
        }
        found
    }

    fn enter(
        &mut self,
        module: &Module<'_>,
        number: ComputationId,
        named: &[Option<Phase>],
        callers: &mut [Phase],
    ) {
        let Some(computation) = module.computation(number) else { return };
        let start = callers.get(number as usize).copied().unwrap_or_default();
        for (id, instruction) in module.instructions_of(computation) {
            let phase = match named.get(id as usize).copied().flatten() {
                Some(phase) => phase,
                None => self.inherited(instruction, start),
            };
            if let Some(place) = self.instructions.get_mut(id as usize) {
                *place = phase;
            }
            for &callee in instruction.called.iter().filter(|&&callee| callee < number) {
                if let Some(place) = callers.get_mut(callee as usize) {
                    *place = phase;
                }
            }
        }
    }

    /// The phase of an instruction whose name says nothing.
    fn inherited(&self, instruction: &Instruction<'_>, start: Phase) -> Phase {
        let used = instruction.operands.iter().map(|&operand| self.of_instruction(operand));
        let latest = used.max().unwrap_or_default().max(start);
        match latest {
            // Named, but neither forward nor backward, and it takes gradients.
            Phase::Backward | Phase::Recompute
                if !instruction.op_name.is_empty() && start == Phase::Forward =>
            {
                Phase::Optimizer
            }
            phase => phase,
        }
    }

    /// The phase of an instruction.
    pub fn of_instruction(&self, id: InstructionId) -> Phase {
        self.instructions.get(id as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_freed_of_transformations_and_machinery() {
        let name = "jit(train_step)/transpose(jvp(mlp))/while/body/closed_call/attention/dot_general";
        assert_eq!(scope(name), "mlp/attention");
        assert_eq!(primitive(name), "dot_general");
        assert_eq!(label("jit(f)/jvp()/add"), "add");
        assert_eq!(label("jit(f)/vmap(jvp(block))/cond/branch_1_fun/tanh"), "block/tanh");
        assert_eq!(label("(a/b:c/d)"), "a/b");
        assert_eq!(label("sequential/dense/MatMul"), "sequential/dense/MatMul");
        assert_eq!(label(""), "");
        assert_eq!(label("f(a/b)/((c"), "f(a/b)/((c");
    }

    #[test]
    fn a_recomputation_is_not_the_backward_pass() {
        let name = "jit(step)/transpose(jvp())/while/body/rematted_computation/mlp/dot_general";
        assert_eq!(named_phase(name), Some(Phase::Recompute));
        assert_eq!(named_phase("jit(step)/transpose(jvp(mlp))/dot_general"), Some(Phase::Backward));
        assert_eq!(named_phase("jit(step)/jvp(mlp)/dot_general"), Some(Phase::Forward));
        assert_eq!(named_phase("jit(step)/mul"), None);
    }
}
