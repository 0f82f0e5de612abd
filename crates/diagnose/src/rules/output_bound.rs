//! Checkpoints, summaries or results fill the step.
//!
//! # What it means
//! The loop waits while it writes. The Python and the small ops that prepare a checkpoint belong to it: they go away with
//! it.
//!
//! # How it is detected
//! `output` owns at least {OUTPUT} of the step. Eager ops that lead to a write, such as those of `tf.summary` for
//! histograms and images, are output too. So is time in which the loop now and then reads at least four variables into Python
//! one after the other, as `model.save` does for `.keras` and `.h5` files: no op writes those. On the host's processor, ops
//! that format and print text count with their whole time, also while the model's ops run beside them: they take a core
//! away from those, which counts as another {AROUND} of it at most. A fix saves at most {GAIN} of the writing and of the work
//! around it.
//!
//! # How to fix it
//! Write less often, or in the background.
//!
//! Keras: `ModelCheckpoint(save_freq=1000)`, `TensorBoard(update_freq=100)`.
//!
//! TensorFlow: `tf.train.CheckpointOptions(enable_async=True)`, `tf.summary.record_if`.
//!
//! JAX: `orbax.checkpoint.AsyncCheckpointer`.
//!
//! PyTorch: `torch.distributed.checkpoint.async_save`.
//!
//! # How to check
//! `output` drops. The steps that write no longer stand out in `stepscope steps PATH`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::{Framework, is_print_op};
use stepscope_text::{duration_ms, listed, quoted, short};

use super::shared::severity;
use crate::facts::{Facts, OpCost, OutputOps, PythonLine, writing_lines};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "output-bound",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("output_bound.rs"),
};

thresholds! {
    /// What checkpoints, summaries and results may take.
    OUTPUT: Share = 0.10;
    /// What is written in the background costs the step nothing.
    GAIN: Share = 1.0;
    /// What surrounds the printing of text goes away with it, up to this share of its time: the executor's work for it, and
    /// what the model's ops lose to it on a processor that all of them share.
    AROUND: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    let step = facts.summary.length_ms();
    let (written, printed) = (facts.ms(Category::Output), printed(facts));
    if step <= 0.0 || written.max(printed) / step < OUTPUT {
        return None;
    }
    let beside = (printed - written).clamp(0.0, facts.ms(Category::Compute));
    let around = facts.around_output_ms().max(AROUND * printed);
    let python = facts.around_output_ms().min(facts.ms(Category::Python));
    let dispatch = (around - python).min(facts.ms(Category::Dispatch));
    let compute = (AROUND * printed - dispatch).max(0.0).min(facts.ms(Category::Compute) - beside) + beside;
    let ops: Vec<_> = facts.get::<OutputOps>().0.iter().take(3).cloned().collect();
    let lines: Vec<_> = writing_lines(&facts.checkpoint_cost).into_iter().take(3).collect();
    let subject = ops.first().map(|op| op.op_type.clone());
    let subject = subject.or_else(|| lines.first().map(|line| line.place.clone()));
    let line = lines.first().map(|line| line.place.clone());
    let severity = severity((written + beside + python + dispatch) / step);
    let claims = vec![
        (Category::Output, written),
        (Category::Python, python),
        (Category::Dispatch, dispatch),
        (Category::Compute, compute),
    ];
    let variables =
        if ops.is_empty() && lines.is_empty() { facts.checkpoint_cost.variables_per_step() } else { 0.0 };
    let sure = if variables > 0.0 { 0.7 } else { 0.9 };
    let finding = Finding::new(&RULE, severity, Written { ops, lines, variables }, facts.framework())
        .owning(claims, Some(GAIN))
        .sure(sure);
    Some(finding.about(subject).at_line(line))
}

/// Milliseconds per step in ops that format and print text, where these share a processor with the model's ops.
fn printed(facts: &Facts) -> f64 {
    let prints = |op: &&OpCost| !facts.on_device() && is_print_op(&op.op_type);
    facts.get::<OutputOps>().0.iter().filter(prints).map(|op| op.ms_per_step).sum()
}

/// What is written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The ops that write, e.g. `SaveV2`.
    pub ops: Vec<OpCost>,
    /// The lines of Python that write, if a Python tracer saw them.
    pub lines: Vec<PythonLine>,
    /// Variables per step that are read into Python one after the other, if nothing else shows what is written.
    pub variables: f64,
}

impl Cause for Written {
    fn words(&self, finding: &Finding) -> Words {
        let ops = self.ops.iter().map(|op| quoted(&op.op_type));
        let named: Vec<String> = match self.ops.is_empty() {
            true => self.lines.iter().take(1).map(|line| quoted(&line.place)).collect(),
            false => ops.take(2).collect(),
        };
        let by = if named.is_empty() { String::new() } else { format!(" ({})", listed(&named)) };
        let spent = self.ops.iter().map(|op| op.ms_per_step).sum();
        let cost = |op: &OpCost| {
            let (ms, times) = (duration_ms(op.ms_per_step), short(op.count_per_step));
            format!("{}: {ms} per step, {times} times per step.", quoted(&op.op_type))
        };
        let frame = |line: &PythonLine| {
            format!("{}: {} per step.", quoted(&line.place), duration_ms(line.ms_per_step))
        };
        let read = (self.variables > 0.0).then(|| {
            format!(
                "{} variables per step are read into Python one after the other, as `model.save` does. What Python writes \
                 was not recorded.",
                short(self.variables)
            )
        });
        let prints = self.ops.first().is_some_and(|op| is_print_op(&op.op_type));
        let what = match &read {
            _ if prints => "formatting and printing text inside the step, with what it holds up,",
            Some(_) => "reading out the model's variables, as for a checkpoint,",
            None => "writing checkpoints, summaries or results",
        };
        Words {
            summary: format!("Output-bound: {what}{by} takes {}.", finding.owned(spent)),
            evidence: self.ops.iter().map(cost).chain(self.lines.iter().map(frame)).chain(read).collect(),
            advice: if prints {
                print_less(finding.framework)
            } else {
                write_less(finding.framework, self.ops.iter().any(|op| op.op_type.contains("Summary")))
            },
        }
    }
}

fn print_less(framework: Framework) -> Vec<String> {
    match framework {
        Framework::TensorFlow | Framework::Keras => lines([
            "Remove the `tf.print` from the step, or print every hundred steps: `if step % 100 == 0: tf.print(...)`.",
            "Print a figure instead of all values: `tf.print(tf.reduce_mean(x))`, and leave `summarize` at its default of 3.",
        ]),
        _ => lines(["Print less often, and figures instead of all values."]),
    }
}

fn write_less(framework: Framework, summaries: bool) -> Vec<String> {
    match (framework, summaries) {
        (Framework::TensorFlow | Framework::Keras, true) => lines([
            "Write summaries less often: `with tf.summary.record_if(lambda: step % 100 == 0):`.",
            "For the Keras callback: `TensorBoard(update_freq=100, histogram_freq=0)`.",
        ]),
        (Framework::Keras, false) => lines([
            "Save less often: `ModelCheckpoint(..., save_freq=1000)`, or once per epoch with `save_freq=\"epoch\"`.",
            "If the optimizer is not needed, save weights only: `ModelCheckpoint(..., save_weights_only=True)`.",
        ]),
        (Framework::TensorFlow, false) => lines([
            "Save less often: `if step % 1000 == 0: manager.save()`.",
            "Save in the background: `checkpoint.save(path, options=tf.train.CheckpointOptions(enable_async=True))`.",
        ]),
        (Framework::Jax, _) => lines([
            "Save less often and in the background: `orbax.checkpoint.AsyncCheckpointer(...)`.",
            "Copy results to the host only when you need them: `jax.device_get` every hundred steps.",
        ]),
        (Framework::PyTorch, _) => lines([
            "Save less often and in the background: `torch.distributed.checkpoint.async_save(...)`, or `torch.save` of \
             a copy on the CPU in a thread.",
            "Write logs every hundred steps.",
        ]),
        (Framework::Unknown, _) => lines(["Write less often, or in the background."]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::ops::sample;
    use crate::rules::testing::{speaks, words};

    #[test]
    fn it_speaks() {
        speaks(&RULE, Written { ops: vec![sample("SaveV2")], lines: Vec::new(), variables: 0.0 });
        let line = PythonLine::new("train.py:12 save", 12.0);
        speaks(&RULE, Written { ops: Vec::new(), lines: vec![line], variables: 0.0 });
        speaks(&RULE, Written { ops: Vec::new(), lines: Vec::new(), variables: 3.25 });
        speaks(&RULE, Written { ops: vec![sample("WriteSummary")], lines: Vec::new(), variables: 0.0 });
        speaks(&RULE, Written { ops: vec![sample("StringFormat")], lines: Vec::new(), variables: 0.0 });
    }

    #[test]
    fn printing_is_not_a_checkpoint() {
        let cause = Written { ops: vec![sample("StringFormat")], lines: Vec::new(), variables: 0.0 };
        let said = words(&RULE, cause, Framework::TensorFlow);
        assert!(said.summary.contains("printing text") && said.advice[0].contains("tf.print"), "{said:?}");
    }
}
