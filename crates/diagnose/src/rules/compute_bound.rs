//! Ops and kernels at work fill the step.
//!
//! # What it means
//! The step spends its time on the model. This is where tuning everything else ends.
//!
//! # How it is detected
//! `compute` owns at least {COMPUTE} of the step, and the device's side was recorded. The finding is `info` and promises
//! no gain: a profile cannot show what a better algorithm, a lower precision or faster hardware would save.
//!
//! One exception: on the host's processor, the model may run in float64 by accident, because numpy's numbers are of that
//! type. Batches of type `double`, and biases that TensorFlow adds in ops of their own although it fuses them in float32,
//! are signs of it; then the finding is a warning. If dense ops take at least {DENSE} of the op time and nothing shows their
//! type, the finding says so and promises nothing, unless products of TensorFlow stand outside of any layer: these take the
//! type of the data. A fix saves at most {DOUBLE} of the compute with TensorFlow and {DOUBLE_XLA} with JAX: float32 has half the bytes and twice as many numbers per instruction, and XLA has kernels that are for float32 alone.
//! Products in bfloat16 or float16 are slow on a processor without instructions for them; a recording does not name the
//! processor, so the finding asks to try float32, which saves at most {HALF} of the compute.
//!
//! # How to fix it
//! float64 by accident: `np.asarray(x, dtype=np.float32)` before data becomes a tensor; no `jax_enable_x64`.
//!
//! Use a smaller model, a lower precision (see `low-precision-unused`), fusion (`jit_compile=True`, `torch.compile`) or
//! faster hardware.
//!
//! # How to check
//! The step gets shorter: `stepscope compare BEFORE AFTER`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::{Framework, is_callback, is_dense, is_opaque};
use stepscope_text::{duration_ms, listed, quoted, share};

use super::shared::is_jax;
use super::shared::ops::cost;
use crate::facts::{Facts, ModelOps, OpCost, Precision, SourceLine};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "compute-bound",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("compute_bound.rs"),
};

thresholds! {
    /// Below this share, something else is a better answer than the model's own work.
    COMPUTE: Share = 0.50;
    /// With less of them, the model is not made of what a lower precision makes faster.
    DENSE: Share = 0.50;
    /// float32 has half the bytes and twice as many numbers per instruction.
    DOUBLE: Share = 0.50;
    /// XLA also has kernels for float32 alone: up to five times as fast.
    DOUBLE_XLA: Share = 0.80;
    /// A processor without instructions for 16 bits converts every number twice: up to twenty times as slow.
    HALF: Share = 0.95;
}

/// Op types named.
const NAMED: usize = 5;

/// From this share on, nothing but the model is left to tune.
const FULL: f64 = 0.8;

fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Compute);
    // Profiled kernels are nothing but compute.
    let bound = facts.timeline && share >= COMPUTE && !facts.summary.bound()?.device_unseen;
    bound.then(|| {
        let top = facts.get::<ModelOps>().0.iter().take(NAMED).cloned().collect::<Vec<_>>();
        let subject = top.first().map(|op| op.op_type.clone());
        let precision = precision(facts);
        let severity = match precision {
            Some(precision) if precision.is_double() => Severity::Warning,
            _ => Severity::Info,
        };
        // Where nothing speaks for float64, nothing is promised.
        let known = precision.filter(|precision| *precision != Precision::Unrecorded);
        let gain = known.map(|precision| match precision.is_half() {
            true => HALF,
            false if is_jax(facts) => DOUBLE_XLA,
            false => DOUBLE,
        });
        let lines = facts.source_lines();
        let cause = Compute { top, lines, on_device: facts.on_device(), precision };
        let finding = Finding::new(&RULE, severity, cause, facts.framework())
            .owning(facts.claims(&[Category::Compute]), gain)
            .sure(if gain.is_some() { 0.7 } else { 0.9 });
        finding.about(subject)
    })
}

/// The precision, where a lower one may save something: on the host's processor, if it is or may be float64 and the model is
/// made of dense ops.
fn precision(facts: &Facts) -> Option<Precision> {
    let known = match *facts.get::<Precision>() {
        // JAX and PyTorch do not take numpy's float64 unnoticed: only recorded types are a sign.
        Precision::OwnProducts if facts.framework() != Framework::TensorFlow => Precision::Unrecorded,
        precision => precision,
    };
    // XLA's fusions hide the products inside.
    let dense = |op: &&OpCost| is_dense(&op.op_type) || (is_jax(facts) && is_opaque(&op.op_type));
    let share: f64 = facts.get::<ModelOps>().0.iter().filter(dense).map(|op| op.share).sum();
    let may_be = known != Precision::Single && share >= DENSE && facts.framework() != Framework::Unknown;
    (may_be && !facts.on_device()).then_some(known)
}

/// The model's own work.
#[derive(Clone, Debug)]
pub struct Compute {
    /// The op types that cost most.
    pub top: Vec<OpCost>,
    /// The lines of source that compiled programs spend most time in; empty if unknown.
    pub lines: Vec<SourceLine>,
    /// On a device, rather than on the host's processor?
    pub on_device: bool,
    /// The precision, if it is or may be float64.
    pub precision: Option<Precision>,
}

impl Cause for Compute {
    fn words(&self, finding: &Finding) -> Words {
        let most = match (self.lines.first(), self.top.first()) {
            (Some(line), _) if line.label.is_empty() => format!("; {} costs most", quoted(&line.place)),
            (Some(line), _) => format!("; {} ({}) costs most", quoted(&line.place), quoted(&line.label)),
            (None, Some(op)) => format!("; {} costs most", quoted(&op.op_type)),
            (None, None) => String::new(),
        };
        let place = if self.on_device { "the device" } else { "the processor" };
        let double = match self.precision {
            Some(Precision::Unfused) => ", as it seems in float64,",
            Some(precision) if precision.is_double() => " in float64",
            Some(precision) if precision.is_half() => " in 16 bits",
            _ => "",
        };
        let mut evidence: Vec<String> = self.lines.iter().map(of_line).collect();
        // Where lines are known, types of instructions say little more.
        evidence.extend(self.top.iter().take(if self.lines.is_empty() { 3 } else { 1 }).map(cost));
        evidence.extend(self.precision.map(|precision| sign(precision, finding.framework).to_owned()));
        let view = match (self.lines.is_empty(), self.on_device) {
            (false, _) => "hlo ops",
            (true, true) => "kernels",
            (true, false) => "ops",
        };
        let mut advice = faster_model(finding, self.on_device, view);
        if let Some(precision) = self.precision {
            let unknown = matches!(precision, Precision::Unrecorded | Precision::OwnProducts);
            let first = if unknown { 1 } else { 0 };
            advice.insert(first, in_single(precision, finding.framework));
        }
        // A callback runs Python, not the model.
        let model = finding.framework != Framework::Unknown
            && !self.top.first().is_some_and(|op| is_callback(&op.op_type));
        Words {
            summary: format!(
                "Compute-bound: {place} {}{double} for {}{most}.",
                if model { "works on the model" } else { "computes" },
                finding.owned(finding.claimed_ms())
            ),
            evidence,
            advice,
        }
    }

    fn verify(&self) -> Option<&'static str> {
        None
    }
}

/// `model.py:32` (`mlp`): 4.21 ms per step, 41 % of compute.
fn of_line(line: &SourceLine) -> String {
    let label = if line.label.is_empty() { String::new() } else { format!(" ({})", quoted(&line.label)) };
    format!(
        "{}{label}: {} per step, {} of compute.",
        quoted(&line.place),
        duration_ms(line.ms),
        share(line.share)
    )
}

/// What the recording shows of the precision.
fn sign(precision: Precision, framework: Framework) -> &'static str {
    match precision {
        Precision::DoubleProducts if framework == Framework::PyTorch => {
            "The inputs of products are of type `double` (float64)."
        }
        Precision::HalfProducts if framework == Framework::PyTorch => {
            "The inputs of products are of 16 bits (`BFloat16` or `Half`)."
        }
        Precision::DoubleBatches => {
            "Batches are of type `double` (float64), so the model computes in float64."
        }
        Precision::Unfused => {
            "`BiasAdd` runs apart from its `MatMul`. On a processor, TensorFlow fuses both in float32; in float64 it does \
             not, nor in 16 bits where the processor has no instructions for them."
        }
        Precision::DoubleProducts => "The products of the compiled programs are of type `f64` (float64).",
        Precision::HalfProducts => "The compiled programs work on arrays of 16 bits (`bf16` or `f16`).",
        Precision::Mixed => "Variables are cast in each step before they are used, as mixed precision does.",
        Precision::OwnProducts => {
            "The types of these ops were not recorded. Products outside of layers take the types of the data, and numpy's \
             default is float64. The saving applies only if they are float64."
        }
        Precision::Single | Precision::Unrecorded => {
            "The types of these ops were not recorded: whether they are float64 is unknown."
        }
    }
}

/// How to compute in float32.
fn in_single(precision: Precision, framework: Framework) -> String {
    let change = match framework {
        Framework::Jax => "leave `jax_enable_x64` off, and create arrays with `dtype=jnp.float32`",
        Framework::TensorFlow | Framework::Keras => {
            "convert data before it becomes a tensor (`np.asarray(x, dtype=np.float32)`, `tf.cast(x, tf.float32)`), and \
             keep `tf.keras.backend.floatx()` at `float32`"
        }
        Framework::PyTorch => {
            "convert data (`x.float()`) and parameters (`model.float()`), and keep the default type at `torch.float32`"
        }
        Framework::Unknown => "convert data and parameters",
    };
    if precision.is_half() {
        return "Try float32 on this processor: without instructions for 16 bits (AMX, AVX512-BF16) it converts every number \
                first, and float32 is many times as fast. With them, keep the 16 bits."
            .to_owned();
    }
    if precision.is_double() {
        return format!("Compute in float32: {change}.");
    }
    if framework == Framework::PyTorch {
        return "To see the types, record with `torch.profiler.profile(record_shapes=True)`; float64 takes about twice as long \
                as float32."
            .to_owned();
    }
    format!(
        "Check the types (`x.dtype`): numpy's default is float64, which takes about twice as long. If it is float64, \
         compute in float32: {change}."
    )
}

fn faster_model(finding: &Finding, on_device: bool, view: &str) -> Vec<String> {
    let framework = finding.framework;
    let full = finding.fraction.is_some_and(|fraction| fraction >= FULL);
    let mut advice = vec![
        match (framework, finding.shares_with_others(), full) {
            (Framework::Unknown, true, _) => {
                "Most of the time is compute, and part of it can be saved: see the other findings."
            }
            (Framework::Unknown, false, true) => {
                "Nothing else was found: what remains is the kernels themselves, their precision and the hardware."
            }
            (Framework::Unknown, false, false) => {
                "Most of the time is compute. More work per call shrinks the share of everything else."
            }
            (_, true, _) => {
                "Most of the step is the model's own work, and part of it can be saved: see the other findings."
            }
            (_, false, true) => {
                "Nothing else was found: what remains is the model itself, its precision and the hardware."
            }
            (_, false, false) => {
                "Most of the step is the model's own work. Larger batches shrink the share of everything else."
            }
        }
        .to_owned(),
    ];
    let precision = match (framework, on_device) {
        (_, false) | (Framework::Unknown, true) => None,
        (Framework::TensorFlow | Framework::Keras, true) => {
            Some("`tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`")
        }
        (Framework::PyTorch, true) => Some("`torch.autocast(\"cuda\", dtype=torch.bfloat16)`"),
        (Framework::Jax, true) => Some("parameters and activations in `jnp.bfloat16`"),
    };
    let fusing = match framework {
        Framework::Keras => Some("`model.compile(..., jit_compile=True)`"),
        Framework::TensorFlow => Some("`@tf.function(jit_compile=True)`"),
        Framework::PyTorch => Some("`torch.compile(model)`"),
        Framework::Jax | Framework::Unknown => None,
    };
    let tries: Vec<String> = precision.into_iter().chain(fusing).map(str::to_owned).collect();
    if !tries.is_empty() {
        advice.push(format!("Worth trying, if not in use yet: {}.", listed(&tries)));
    }
    advice.push(format!("See what costs most: `stepscope {view} PATH`."));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::ops::sample;
    use crate::rules::testing::{speaks, words};

    fn compute(precision: Option<Precision>) -> Compute {
        Compute { top: vec![sample("MatMul")], lines: Vec::new(), on_device: precision.is_none(), precision }
    }

    #[test]
    fn what_is_not_found_is_not_called_healthy() {
        let finding = Finding::new(&RULE, Severity::Info, compute(None), Framework::PyTorch);
        let finding = Finding { fraction: Some(0.95), ..finding };
        let advice = faster_model(&finding, true, "kernels");
        assert!(advice[0].contains("Nothing else was found") && !advice.join(" ").contains("healthy"));
    }

    #[test]
    fn float64_is_named_where_the_recording_shows_it_and_asked_for_where_it_does_not() {
        let said = |precision| words(&RULE, compute(Some(precision)), Framework::TensorFlow);
        let double = said(Precision::DoubleBatches);
        assert!(double.summary.contains("in float64") && double.advice[0].contains("float32"), "{double:?}");
        let unknown = said(Precision::Unrecorded);
        assert!(!unknown.summary.contains("float64") && unknown.advice[1].contains("x.dtype"), "{unknown:?}");
    }

    #[test]
    fn pytorch_shows_its_types_on_request() {
        let unknown = words(&RULE, compute(Some(Precision::Unrecorded)), Framework::PyTorch);
        assert!(unknown.advice[1].contains("record_shapes=True"), "{unknown:?}");
    }

    #[test]
    fn a_callback_is_not_work_on_the_model() {
        let cause =
            Compute { top: vec![sample("PyFunc")], lines: Vec::new(), on_device: false, precision: None };
        assert!(!words(&RULE, cause, Framework::TensorFlow).summary.contains("on the model"));
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, compute(None));
        let line = SourceLine { place: "model.py:32".into(), label: "mlp".into(), share: 0.4, ms: 4.0 };
        let named = Compute { lines: vec![line], ..compute(None) };
        assert!(
            words(&RULE, named.clone(), Framework::Jax).summary.contains("`model.py:32` (`mlp`) costs most")
        );
        speaks(&RULE, named);
        for precision in [
            Precision::DoubleBatches,
            Precision::Unfused,
            Precision::DoubleProducts,
            Precision::HalfProducts,
            Precision::Mixed,
            Precision::OwnProducts,
            Precision::Unrecorded,
        ] {
            speaks(&RULE, compute(Some(precision)));
        }
    }
}
