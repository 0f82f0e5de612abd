//! Python in the training loop fills the step.
//!
//! # What it means
//! Logging, metrics, lists and conversions: nothing of the framework runs on any thread, and the device is idle.
//!
//! # How it is detected
//! `python` owns at least {PYTHON} of the step, without what `eager-dispatch` explains. PyTorch calls each op from Python:
//! on a processor, and without Python frames, the usual pauses between ops and a few pauses of up to 500 µs per step (into
//! the model, the loss, `backward()`, the optimizer) do not count either, because every step has them. The finding names lines if a Python tracer saw them, with the library
//! call that takes most of their time, else the user's ranges (`record_function`) that the time lies in. A fix saves at most
//! {GAIN} of this time. Without frames and ranges, Python cannot be distinguished from waiting or from other processes that have the
//! processor, and the finding says so. If calls of the loop end long after their work, they wait for the interpreter lock that
//! other threads hold: then the loop's overhead counts too, because only one thread runs Python at a time. If the loop
//! reads {READS} variables or more per step beside a compiled step, the finding says so: it saves or inspects the model. Without steps, the finding is `info`: it is unknown whether the Python runs once or in every step.
//!
//! # How to fix it
//! Do the work every hundred steps, in another thread, or as ops. Keep metrics as tensors and read them only when you log.
//!
//! To see which lines it is, record with Python frames.
//!
//! TensorFlow and Keras: name the parts of the loop, `with tf.profiler.experimental.Trace("metrics"):`. TensorFlow 2.21 records
//! no Python frames, whatever `python_tracer_level` is; earlier releases do with `python_tracer_level=1`.
//!
//! JAX: `options.python_tracer_level = 1`.
//!
//! PyTorch: `with_stack=True`.
//!
//! # How to check
//! `python` drops.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, number, quoted};

use super::eager_dispatch;
use super::input_bound::{lock_evidence, locked_ms};
use super::shared::{of_step, severity};
use crate::facts::{Facts, PythonLine, PythonLines, python_ranges};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::frameworks::few_reads;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "host-python",
    about: About::Habits,
    view: "scopes",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("host_python.rs"),
};

thresholds! {
    /// Every loop needs some Python of its own.
    PYTHON: Share = 0.20;
    /// What runs elsewhere costs the step nothing.
    GAIN: Share = 1.0;
    /// Fewer variables that are read per step are values that somebody looks at: a learning rate, a metric.
    READS: Number = 4.0;
}

/// Lines kept.
const LINES: usize = 5;

fn check(facts: &Facts) -> Option<Finding> {
    // What is moved takes the ops that it calls along, and the Python between them.
    let eager = eager_dispatch::check(facts).map_or(0.0, |_| eager_dispatch::between(facts));
    let ms = (facts.ms(Category::Python) - eager).max(0.0);
    // Other threads that run Python slow down all that the loop does in between.
    let locked_ms = locked_ms(facts).filter(|_| !facts.callbacks.locked_by_input);
    let dispatch = locked_ms.map_or(0.0, |_| facts.ms(Category::Dispatch));
    let own = (facts.ms(Category::Python) - ordinary(facts)).max(0.0);
    let share = of_step(facts, own + dispatch);
    (share >= PYTHON).then(|| {
        let traced = !facts.get::<PythonLines>().0.is_empty();
        // A tracer sees all of it. Ranges are worth naming only if most of it lies in one.
        // A range of the framework's own is nothing that could be moved.
        let movable = |range: &&PythonLine| !range.place.starts_with("Optimizer.");
        let ranges = python_ranges(&facts.input);
        let in_ranges = ranges.iter().find(movable).is_some_and(|range| range.ms_per_step >= 0.5 * ms);
        let lines = match (traced, in_ranges) {
            (true, _) => costliest(facts),
            (false, true) => ranges.iter().filter(movable).take(LINES).cloned().collect(),
            (false, false) => Vec::new(),
        };
        let place = lines.first().map(|line| line.place.clone());
        let locked_by = locked_ms.and_then(|_| facts.callbacks.locker()).map(str::to_owned);
        let place = locked_by.clone().or(place);
        let traced = traced || locked_by.is_some();
        let cause = LoopPython { lines, traced, locked_ms, locked_by, reads: reads(facts) };
        // Without steps nobody can tell whether it happens once or again and again.
        let whole = facts.summary.bound().is_some_and(|host| host.whole_capture);
        let severity = if whole { Severity::Info } else { severity(share) };
        // A tracer of Python makes it look slower than it is.
        let distorted = super::overhead_distorts::check(facts).is_some();
        let finding = Finding::new(&RULE, severity, cause, facts.framework())
            .owning(vec![(Category::Python, ms), (Category::Dispatch, dispatch)], Some(GAIN))
            .sure(if distorted { 0.6 } else { 0.85 });
        finding.about(place.clone()).at_line(place.filter(|_| traced))
    })
}

/// How many variables the loop reads per step beside a compiled step, if they are as many as a model has: whoever reads them
/// saves or inspects the model.
fn reads(facts: &Facts) -> Option<f64> {
    facts.eager.compiled_step()?;
    let reads = facts.eager.types.get("ReadVariableOp").copied().unwrap_or(0);
    let per_step = reads as f64 / facts.eager.steps.max(1) as f64;
    (per_step >= READS).then_some(per_step)
}

/// Milliseconds per step of Python that is no work of the loop's own: the framework's, around its ops.
pub(crate) fn ordinary(facts: &Facts) -> f64 {
    // Python between eager ops is the cost of starting them.
    let starting = eager_dispatch::check(facts).is_some();
    // PyTorch calls each op from Python, and each step makes the same few calls. A tracer shows whose Python it is, and
    // a device may hide it.
    let eager = facts.recorder() == Framework::PyTorch
        && facts.get::<PythonLines>().0.is_empty()
        && !facts.on_device();
    let around = if eager { facts.eager.around.ms() / facts.eager.steps.max(1) as f64 } else { 0.0 };
    if starting || eager { eager_dispatch::between(facts) + around } else { 0.0 }
}

/// The lines that cost most. While a frame waits for another thread, that thread's work owns the time: all lines
/// together take what Python owns at the most.
fn costliest(facts: &Facts) -> Vec<PythonLine> {
    let lines = facts.get::<PythonLines>();
    let all: f64 = lines.0.iter().map(|line| line.ms_per_step).sum();
    let part = (facts.ms(Category::Python) / all.max(f64::MIN_POSITIVE)).min(1.0);
    let cost = |line: &PythonLine| PythonLine { ms_per_step: line.ms_per_step * part, ..line.clone() };
    lines.0.iter().take(LINES).map(cost).collect()
}

/// Python in the loop.
#[derive(Clone, Debug)]
pub struct LoopPython {
    /// The lines that cost most, if a Python tracer saw them, else the user's ranges.
    pub lines: Vec<PythonLine>,
    /// Whether a tracer saw the lines.
    pub traced: bool,
    /// Milliseconds per step in which the loop waits for the interpreter lock that other threads hold.
    pub locked_ms: Option<f64>,
    /// The code that holds it for most of this time.
    pub locked_by: Option<String>,
    /// How many variables of the model the loop reads per step.
    pub reads: Option<f64>,
}

impl Cause for LoopPython {
    fn words(&self, finding: &Finding) -> Words {
        if let Some(ms) = self.locked_ms {
            return taking_turns(finding, ms, self.locked_by.as_deref());
        }
        let first = self.lines.first().map(|line| quoted(&line.place));
        let half = |line: &&PythonLine| line.ms_per_step >= 0.5 * finding.claimed_ms();
        let most = match self.lines.first().filter(half) {
            Some(PythonLine { place, through: Some(call), .. }) => {
                format!(", most of it in {}, which calls {}", quoted(place), quoted(call))
            }
            Some(line) => format!(", most of it in {}", quoted(&line.place)),
            None => String::new(),
        };
        let mut advice = vec![match &first {
            Some(place) if !self.traced => format!(
                "Move Python out of {place}: log, convert and collect every hundred steps, or in another thread."
            ),
            Some(place) => format!(
                "Move {place} out of the step: do it every hundred steps, in another thread, or as ops of the framework."
            ),
            None => "Move Python out of the loop: log, convert and collect every hundred steps, or in another thread."
                .to_owned(),
        }];
        advice.push(few_reads(finding.framework).to_owned());
        if !self.traced {
            advice.push(frames(finding.framework).to_owned());
        }
        let mut evidence = if self.lines.is_empty() {
            lines([
                "During this time nothing of the framework runs on any thread, and no device works.",
                "No Python frames were recorded: a wait, or other processes on the same processor, look the same.",
            ])
        } else {
            self.lines.iter().take(3).map(|line| cost(line, self.traced)).collect()
        };
        if let Some(reads) = self.reads {
            evidence.insert(0, format!(
                "Between the compiled steps the loop reads {} variables per step one by one, as saving or inspecting a model \
                 does.",
                number(reads)
            ));
            advice.insert(0, SAVES.to_owned());
        }
        Words {
            summary: format!(
                "Host Python: {} takes {}{most}.",
                if self.lines.is_empty() {
                    "Python in the training loop, or what it waits for,"
                } else {
                    "Python in the training loop"
                },
                finding.owned(finding.claimed_ms())
            ),
            evidence,
            advice,
        }
    }
}

/// What to do about a model that is read in every step.
const SAVES: &str = "If the loop saves or inspects the model there (`ModelCheckpoint(save_freq=...)`, `model.save(...)`, \
                     `model.get_weights()`), do it once per epoch.";

/// Several threads run Python.
fn taking_turns(finding: &Finding, ms: f64, holder: Option<&str>) -> Words {
    let others = holder.map_or_else(
        || "other threads that run Python".to_owned(),
        |place| format!("{} in another thread", quoted(place)),
    );
    let mut evidence = vec![lock_evidence(ms)];
    evidence.extend(holder.map(|place| format!("Most of this time, {} holds the lock.", quoted(place))));
    let what =
        holder.map_or_else(|| "the Python of other threads (a loader, logging, metrics)".to_owned(), quoted);
    Words {
        summary: format!(
            "Host Python: the loop takes turns with {others}, and waits for the interpreter lock; with its own overhead that \
             takes {}.",
            finding.owned(finding.claimed_ms())
        ),
        evidence,
        advice: vec![
            format!("Run {what} in processes of its own (`multiprocessing`): more threads do not help."),
            "Or run less Python there: `numpy` on whole batches instead of loops.".to_owned(),
        ],
    }
}

fn cost(line: &PythonLine, traced: bool) -> String {
    let (place, ms) = (quoted(&line.place), duration_ms(line.ms_per_step));
    match &line.through {
        Some(call) => format!("{place}: {ms} per step, most of it in its call of {}.", quoted(call)),
        None if traced => format!("{place}: {ms} per step."),
        None => format!("Python in the range {place}: {ms} per step."),
    }
}

/// How to see which Python it is. TensorFlow 2.21 comes without the tracer of Python: it records no frame at any level.
fn frames(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "To see which part it is, name the parts of the loop: `with tf.profiler.experimental.Trace(\"metrics\"):`. \
             `python_tracer_level=1` shows the lines in earlier releases; TensorFlow 2.21 records none."
        }
        Framework::Jax => {
            "To see which lines it is, record with Python frames: `options = jax.profiler.ProfileOptions()`, \
             `options.python_tracer_level = 1`."
        }
        Framework::PyTorch => {
            "To see which lines it is, record with Python frames: `torch.profiler.profile(with_stack=True)`."
        }
        Framework::Unknown => "To see which lines it is, switch on the profiler's Python tracer.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{speaks, words};

    #[test]
    fn it_speaks() {
        speaks(
            &RULE,
            LoopPython { lines: Vec::new(), traced: false, locked_ms: None, locked_by: None, reads: None },
        );
        speaks(
            &RULE,
            LoopPython {
                lines: Vec::new(),
                traced: false,
                locked_ms: Some(4.0),
                locked_by: None,
                reads: None,
            },
        );
        let line = PythonLine::new("train.py:12 log", 12.0);
        speaks(
            &RULE,
            LoopPython {
                lines: vec![line.clone()],
                traced: true,
                locked_ms: None,
                locked_by: None,
                reads: None,
            },
        );
        let call = PythonLine { through: Some("queue.py:154 get".into()), ..line };
        speaks(
            &RULE,
            LoopPython { lines: vec![call], traced: true, locked_ms: None, locked_by: None, reads: None },
        );
        speaks(
            &RULE,
            LoopPython {
                lines: vec![PythonLine::new("metrics", 12.0)],
                traced: false,
                locked_ms: None,
                locked_by: None,
                reads: None,
            },
        );
    }

    #[test]
    fn without_frames_python_is_not_blamed_alone() {
        let said = words(
            &RULE,
            LoopPython { lines: Vec::new(), traced: false, locked_ms: None, locked_by: None, reads: None },
            Framework::PyTorch,
        );
        assert!(said.summary.contains("or what it waits for"), "{}", said.summary);
        assert!(said.evidence.iter().any(|line| line.contains("other processes")), "{:?}", said.evidence);
        let line = PythonLine::new("train.py:12 log", 29.0);
        let said = words(
            &RULE,
            LoopPython { lines: vec![line], traced: true, locked_ms: None, locked_by: None, reads: None },
            Framework::PyTorch,
        );
        assert!(!said.summary.contains("or what it waits for"), "{}", said.summary);
    }

    #[test]
    fn the_advice_for_tensorflow_does_not_rely_on_a_tracer_that_records_nothing() {
        let cause =
            LoopPython { lines: Vec::new(), traced: false, locked_ms: None, locked_by: None, reads: None };
        let advice = words(&RULE, cause, Framework::TensorFlow).advice.join(" ");
        assert!(advice.contains("tf.profiler.experimental.Trace"), "{advice}");
    }

    #[test]
    fn a_place_is_most_of_it_only_with_half_of_the_time() {
        let said = |ms| {
            let cause = LoopPython {
                lines: vec![PythonLine::new("train.py:12 log", ms)],
                traced: true,
                locked_ms: None,
                locked_by: None,
                reads: None,
            };
            words(&RULE, cause, Framework::PyTorch).summary
        };
        assert!(said(29.0).contains("most of it in `train.py:12 log`"), "{}", said(29.0));
        assert!(!said(2.0).contains("most of it"), "{}", said(2.0));
    }

    #[test]
    fn variables_that_are_read_in_every_step_point_at_a_saved_model() {
        let cause = LoopPython {
            lines: Vec::new(),
            traced: false,
            locked_ms: None,
            locked_by: None,
            reads: Some(11.0),
        };
        let said = words(&RULE, cause, Framework::Keras);
        assert!(said.evidence[0].contains("reads 11 variables per step"), "{:?}", said.evidence);
        assert!(said.advice[0].contains("ModelCheckpoint"), "{:?}", said.advice);
    }
}
