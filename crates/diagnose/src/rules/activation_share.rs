//! What the memory at the peak is used for: activations, weights, gradients or the optimizer's state.
//!
//! # What it means
//! The largest role decides what saves memory: each has another cure.
//!
//! # How it is detected
//! At least {KNOWN} of the bytes at the peak of the largest allocator have a role. PyTorch's memory profiler records roles. Otherwise they follow from
//! when blocks are allocated and freed, and the finding says so: born before the first step and never freed is a weight, born
//! and freed within a step is an activation, born in the backward pass is a gradient.
//!
//! # How to fix it
//! Activations: recompute them in the backward pass, or use a smaller batch.
//!
//! Optimizer state: keep it in 8 bits, or shard it.
//!
//! Gradients: free them with `zero_grad(set_to_none=True)`, or accumulate in place.
//!
//! Weights: load them in 16 bits, or shard them.
//!
//! # How to check
//! `stepscope memory PATH --by role` shows a smaller share.

use stepscope_analyze::memory::RoleSource;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{bytes, quoted, share};
use stepscope_trace::memory::Role;

use crate::facts::{Facts, Memory};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "activation-share",
    about: About::Cause,
    view: "memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("activation_share.rs"),
};

thresholds! {
    /// Of the peak: with less, the largest role may be another one.
    KNOWN: Share = 0.60;
}

fn check(facts: &Facts) -> Option<Finding> {
    // The allocator that holds most: the roles of a small one say nothing about what fills the memory.
    let memory = facts.memory.allocators.iter().map(Memory::of).filter(|memory| memory.peak_bytes.is_some());
    let memory = memory.max_by(|a, b| a.peak_bytes.unwrap_or(0.0).total_cmp(&b.peak_bytes.unwrap_or(0.0)))?;
    let (peak, source) = (memory.peak_bytes?, memory.roles_from?);
    let roles: Vec<(Role, f64)> =
        memory.roles.iter().filter_map(|&(role, bytes)| Some((role?, bytes))).collect();
    let known: f64 = roles.iter().map(|(_, bytes)| bytes).sum();
    // What holds programs and nothing else has that role by definition.
    let only_programs = roles.iter().all(|&(role, bytes)| role == Role::Program || bytes <= 0.0);
    if peak <= 0.0 || known < KNOWN * peak || only_programs {
        return None;
    }
    let cause = Roles { allocator: memory.allocator.clone(), peak, roles, source };
    let finding = Finding::new(&RULE, Severity::Info, cause, facts.framework());
    let sure = if source == RoleSource::File { 0.9 } else { 0.6 };
    Some(finding.about(memory.allocator).sure(sure))
}

/// Memory by role.
#[derive(Clone, Debug)]
pub struct Roles {
    /// The allocator.
    pub allocator: String,
    /// Bytes in use at the peak.
    pub peak: f64,
    /// Bytes per role, the largest first.
    pub roles: Vec<(Role, f64)>,
    /// Where the roles come from.
    pub source: RoleSource,
}

impl Cause for Roles {
    fn words(&self, finding: &Finding) -> Words {
        let (first, most) = self.roles.first().copied().unwrap_or((Role::Activation, 0.0));
        let source = match self.source {
            RoleSource::File => "Roles are as recorded.",
            RoleSource::Lifetimes => "Roles follow from when blocks are allocated and freed.",
        };
        let mut evidence: Vec<String> =
            self.roles.iter().map(|(role, held)| format!("{}: {}.", plural(*role), bytes(*held))).collect();
        evidence.push(source.to_owned());
        Words {
            summary: format!(
                "Memory at the peak: {} take {} of {} on {} ({}).",
                plural(first).to_lowercase(),
                bytes(most),
                bytes(self.peak),
                quoted(&self.allocator),
                share(most / self.peak.max(1.0)),
            ),
            evidence,
            advice: lines([cure(first, finding.framework)]),
        }
    }

    fn verify(&self) -> Option<&'static str> {
        Some("record again, then run `stepscope memory BEFORE AFTER`")
    }
}

fn plural(role: Role) -> &'static str {
    match role {
        Role::Parameter => "Weights",
        Role::Optimizer => "Optimizer states",
        Role::Input => "Batches",
        Role::Temporary => "Temporary blocks",
        Role::Activation => "Activations",
        Role::Gradient => "Gradients",
        Role::Autograd => "Blocks of automatic differentiation",
        Role::Kept => "Blocks kept over several steps",
        Role::Program => "Compiled programs",
    }
}

fn cure(role: Role, framework: Framework) -> &'static str {
    match (role, framework) {
        (Role::Activation | Role::Autograd | Role::Temporary, Framework::Jax) => {
            "Recompute activations in the backward pass: `jax.checkpoint(block)`. Or use a smaller batch."
        }
        (Role::Activation | Role::Autograd | Role::Temporary, Framework::TensorFlow | Framework::Keras) => {
            "Recompute activations in the backward pass: `tf.recompute_grad(block)`. Or use a smaller batch."
        }
        (Role::Activation | Role::Autograd | Role::Temporary, _) => {
            "Recompute activations in the backward pass: `torch.utils.checkpoint.checkpoint(block, x, \
             use_reentrant=False)`. Or use a smaller batch."
        }
        (Role::Optimizer, _) => {
            "Keep the optimizer's state in fewer bytes (8-bit or factored optimizers), or shard it over devices."
        }
        (Role::Gradient, Framework::PyTorch) => {
            "Free gradients between steps: `optimizer.zero_grad(set_to_none=True)`."
        }
        (Role::Gradient, _) => "Accumulate gradients in place, and free them before the next forward pass.",
        (Role::Parameter, _) => "Keep weights in 16 bits, or shard them over devices.",
        (Role::Input, _) => "Use smaller batches, or prefetch fewer of them to the device.",
        (Role::Kept, _) => {
            "Free what is kept from step to step: `stepscope memory PATH --leaks` shows the lines."
        }
        (Role::Program, _) => "Compile fewer variants: use few different shapes.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for role in Role::ALL {
            let roles = vec![(role, 4e9), (Role::Input, 1e8)];
            let source = RoleSource::Lifetimes;
            speaks(&RULE, Roles { allocator: "CUDA:0".into(), peak: 6e9, roles, source });
        }
    }
}
