//! Words for what does not belong inside the step: `host-callback`, `setup-in-loop`.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;

use super::{Words, lines, number, owned, quoted};
use crate::format::duration_ms;

pub(super) fn callback(
    finding: &Finding,
    op: &str,
    function: Option<&str>,
    calls_per_step: f64,
    ms: f64,
) -> Words {
    let what = function.map_or(String::new(), |function| format!(" {}", quoted(function)));
    let advice = match finding.framework {
        Framework::Jax => lines([
            "Write the function in `jax.numpy`, so that it is compiled with the step.",
            "If it has to stay in Python, call it outside the jitted step and pass its result in, or call it every \
             hundred steps. To log, return the value and print it outside; `jax.debug.print` is a callback too.",
        ]),
        Framework::TensorFlow | Framework::Keras => lines([
            "Write the function in TensorFlow ops: `tf.py_function` and `tf.numpy_function` leave the graph for the \
             interpreter, one call at a time.",
            "If it has to stay in Python, do it in the input pipeline, beside the step, or outside the \
             `@tf.function` every hundred steps.",
        ]),
        Framework::PyTorch | Framework::Unknown => {
            lines(["Write the function in ops of the framework, or call it outside the compiled step."])
        }
    };
    Words {
        summary: format!(
            "Host callback: the compiled step calls Python{what} through {}, which takes {}.",
            quoted(op),
            owned(finding, ms)
        ),
        evidence: vec![format!("{} per step: {} per step inside.", calls(calls_per_step), duration_ms(ms))],
        advice,
    }
}

fn calls(per_step: f64) -> String {
    let many = number(per_step);
    if many == "1" { "1 call".to_owned() } else { format!("{many} calls") }
}

pub(super) fn set_up(finding: &Finding, iterators_per_step: f64, ms: f64) -> Words {
    let advice = match finding.framework {
        Framework::Keras => lines([
            "Call the model directly: `model(x, training=False)` in a `@tf.function`, or `model.predict_on_batch(x)`. \
             `model.predict`, `model.evaluate` and `model.fit` set up a new pipeline and iterator at every call.",
            "To train, call `model.fit` once for all batches, or `model.train_on_batch(x, y)` for each.",
            "Of a dataset, make the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)`.",
        ]),
        Framework::Jax | Framework::PyTorch | Framework::Unknown => lines([
            "Make the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)` in each step.",
        ]),
        Framework::TensorFlow => lines([
            "Make the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)` in each step.",
            "Of Keras, `model.predict`, `model.evaluate` and `model.fit` set up a new iterator at every call: call the \
             model directly, or `model.predict_on_batch(x)` and `model.train_on_batch(x, y)`.",
        ]),
    };
    let made = number(iterators_per_step);
    let made = if made == "1" { "1 iterator is".to_owned() } else { format!("{made} iterators are") };
    Words {
        summary: format!(
            "Set-up in the loop: the step sets up a new input pipeline and iterator, which takes {}.",
            owned(finding, ms)
        ),
        evidence: vec![format!("{made} made ready per step (`MakeIterator`).")],
        advice,
    }
}
