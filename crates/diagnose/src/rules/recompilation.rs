//! Programs are compiled repeatedly.
//!
//! # What it means
//! A jitted function is compiled for each new shape, type or static argument.
//!
//! # How it is detected
//! As `retracing`, for programs that are compiled while no `tf.function` is traced: `tracing` and `compile` own at least
//! {REBUILDING} of the step, in two steps or more. Where fewer than two steps were recorded, a function that is compiled
//! twice or more shows it; otherwise everything may be compiled for the first time. Code that is loaded onto a device at
//! the first launch of a kernel is not compiled. Frames of `jax.jit` in the loop show that the function is recreated.
//! Without a Python trace, the finding leaves open whether that or varying shapes are the reason. A fix saves at most
//! {GAIN} of tracing and compiling.
//!
//! # How to fix it
//! JAX: pad shapes to buckets; mark only static values as static; call `jax.jit` once, outside the loop.
//! `jax.config.update("jax_explain_cache_misses", True)` reports what differs.
//!
//! PyTorch: `torch.compile(model, dynamic=True)`, `torch._dynamo.mark_dynamic(x, 0)`. `TORCH_LOGS=recompiles` reports what
//! differs.
//!
//! TensorFlow with `jit_compile=True`: use fixed shapes.
//!
//! # How to check
//! `stepscope functions PATH` shows one compilation per function.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;

use super::shared::building::{self, BUILDING, Saying};
use super::shared::{is_jax, steps_with};
use crate::facts::{Facts, RebuiltFunction};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "recompilation",
    about: About::Cause,
    view: "functions",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("recompilation.rs"),
};

thresholds! {
    /// Steady steps neither trace nor compile. A tenth of the step means that it keeps happening.
    REBUILDING: Share = 0.10;
    /// A program that is compiled once costs nothing later.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.shares(&BUILDING);
    let compiles = facts.share(Category::Compile) > 0.0;
    // Where tf.functions are traced anew, that is the cause, and compiling follows from it.
    let traced = !is_jax(facts) && facts.share(Category::Tracing) > 0.0;
    let recurrence = steps_with(facts, &BUILDING, REBUILDING);
    let again = |function: &RebuiltFunction| function.compiles.max(function.traces) >= 2;
    let recurs =
        recurrence.steps >= 2 || (recurrence.recurs() && RebuiltFunction::all(facts).iter().any(again));
    if !compiles || traced || share < REBUILDING || !recurs {
        return None;
    }
    Some(building::found(facts, &RULE, recurrence, GAIN, |functions, steps| Recompiled { functions, steps }))
}

/// Functions that are compiled repeatedly.
#[derive(Clone, Debug)]
pub struct Recompiled {
    /// Which, the worst first.
    pub functions: Vec<RebuiltFunction>,
    /// Steps in which a function was built.
    pub steps: usize,
}

impl Cause for Recompiled {
    fn words(&self, finding: &Finding) -> Words {
        let times = |function: &RebuiltFunction| function.compiles.max(function.traces);
        let saying = Saying { title: "Recompilation", verb: "compiled", times };
        let words = building::words(finding, &self.functions, self.steps, saying);
        match finding.framework {
            // Nothing is traced here: XLA compiles what was traced once for every new shape.
            Framework::TensorFlow | Framework::Keras => Words { advice: lines([PAD, WITHOUT_XLA]), ..words },
            _ => words,
        }
    }
}

const PAD: &str = "Use few different shapes, because XLA compiles each one separately: pad to buckets (for example powers of \
    two), and drop or pad the last batch, `ds.batch(n, drop_remainder=True)`.";
const WITHOUT_XLA: &str = "If shapes have to vary, do without XLA for this function: \
    `@tf.function(jit_compile=False, reduce_retracing=True)`.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Rebuilding;
    use crate::rules::testing::{speaks, words};

    fn recompiled(why: Rebuilding) -> Recompiled {
        let name = "train_step".to_owned();
        let function = RebuiltFunction { name, calls: 12, traces: 12, compiles: 3, ms_per_step: 25.0, why };
        Recompiled { functions: vec![function], steps: 12 }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, recompiled(Rebuilding::Unknown));
        speaks(&RULE, Recompiled { functions: Vec::new(), steps: 3 });
    }

    #[test]
    fn varying_shapes_are_padded() {
        let said = words(&RULE, recompiled(Rebuilding::ArgumentsVary), Framework::Jax).advice.join(" ");
        assert!(said.contains("pad to buckets") && said.contains("static_argnums"), "{said}");
        let said = words(&RULE, recompiled(Rebuilding::Unknown), Framework::TensorFlow).advice.join(" ");
        assert!(said.contains("pad to buckets") && !said.contains("new Python value"), "{said}");
    }
}
