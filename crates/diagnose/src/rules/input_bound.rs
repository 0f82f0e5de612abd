//! The step waits for its next batch.
//!
//! # What it means
//! The loop is inside its loader while the device, or the host's ops, have nothing left to do. Time in which input threads
//! work in parallel with the step is not waiting and does not count.
//!
//! # How it is detected
//! `input` owns at least {INPUT} of the step. For a tf.data pipeline, the finding names the slowest stage as it was
//! written, with its cost per batch. If the pipeline waits for a tf.data service, the finding names the service's workers, says
//! how many would keep up, and names the slow stage of the service's own pipeline if a worker was recorded. For a DataLoader, it says whether there are worker processes. For a plain loader, it
//! names file and line if Python was traced. A fix saves at most {GAIN} of the wait.
//!
//! Only one thread runs Python at a time. If the threads that prepare batches run Python, calls of the loop end long after
//! their work, because they wait for the interpreter lock. From {LOCKED} of the step on, the finding says so, and counts
//! the loop's own overhead and Python too: all of it is slower while threads take turns.
//!
//! If a few recurring steps wait for at least {CONCENTRATED} of the time, such as the last one of each epoch, the finding says
//! how long and how often, and names the stage of a tf.data pipeline that a single call waits in: usually a shuffle buffer
//! that is filled again.
//!
//! # How to fix it
//! TensorFlow and Keras: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)` and `.prefetch(tf.data.AUTOTUNE)` at the end;
//! `.interleave(..., num_parallel_calls=tf.data.AUTOTUNE)` for reading; `.cache()` for what fits in memory. Replace
//! `tf.py_function` and generators, which run one call at a time, by TensorFlow ops. If a prefetch runs empty, speed up
//! the producer: a larger buffer does not help.
//!
//! PyTorch: `DataLoader(..., num_workers=4, pin_memory=True, persistent_workers=True)`. If there are workers already, use
//! more of them, a larger `prefetch_factor` and a cheaper `__getitem__`.
//!
//! A shuffle buffer that fills again at each epoch: a smaller buffer, `.cache()` before `.shuffle`, or `.shuffle` before what
//! decodes, and one iterator for all epochs with `.repeat()` and `.prefetch`.
//!
//! JAX: a background thread that keeps two batches on the device with `jax.device_put`, or a loader with workers such as
//! Grain.
//!
//! # How to check
//! `input` drops. `stepscope input PATH` shows what the pipeline can deliver.

mod service;
mod tf_data;

use stepscope_analyze::Category;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, quoted};

use super::shared::{of_step, severity};
use crate::facts::{Facts, Loader, PythonLine};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::{in_steps, lines};

/// The rule.
pub static RULE: Rule = Rule {
    id: "input-bound",
    about: About::Cause,
    view: "input",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("input_bound.rs"),
};

thresholds! {
    /// Twice what a well-fed loop shows: fetching a ready batch costs some Python and dispatch, up to a seventh of a step
    /// of a few milliseconds.
    INPUT: Share = 0.20;
    /// A batch that is ready in time costs nothing.
    GAIN: Share = 1.0;
    /// An undisturbed loop waits for the lock for microseconds.
    LOCKED: Share = 0.10;
    /// If a few long steps hold this share of all waiting, they are what has to be explained.
    CONCENTRATED: Share = 0.5;
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let locked_ms = locked_ms(facts).filter(|_| facts.callbacks.locked_by_input);
    let claims = match locked_ms {
        Some(_) => facts.claims(&[Category::Input, Category::Dispatch, Category::Python]),
        None => facts.claims(&[Category::Input]),
    };
    let share = facts.share(Category::Input);
    (share >= INPUT || (locked_ms.is_some() && share > 0.0)).then(|| {
        let (loader, wait_ms) = (Loader::of(&facts.input), facts.ms(Category::Input));
        let line = loader.line().map(|line| line.place.clone());
        let cause = InputWait { loader, wait_ms, locked_ms, long: long_waits(facts, wait_ms) };
        Finding::new(&RULE, severity(share), cause, facts.framework())
            .owning(claims, Some(GAIN))
            .sure(0.95)
            .at_line(line)
    })
}

/// Milliseconds per step in which the loop's calls wait for the interpreter lock, if they are worth mentioning.
pub(super) fn locked_ms(facts: &Facts) -> Option<f64> {
    let ms = facts.callbacks.locked_ms();
    (of_step(facts, ms) >= LOCKED).then_some(ms)
}

/// What waiting for the lock shows, for findings about any thread that holds it.
pub(super) fn lock_evidence(ms: f64) -> String {
    format!(
        "For {} per step, calls of the loop have done their work and wait for the interpreter lock: other threads run \
         Python, and only one can at a time.",
        duration_ms(ms)
    )
}

/// The waits of a few steps that hold most of all waiting.
fn long_waits(facts: &Facts, wait_ms: f64) -> Option<LongWaits> {
    let odd = facts.odd.as_ref().filter(|odd| odd.recurrence.recurs() && odd.recurrence.of > 1)?;
    let excess = odd.excess.get(Category::Input).ms();
    let per_step = excess / facts.summary.count.max(1) as f64;
    (per_step >= CONCENTRATED * wait_ms).then(|| LongWaits {
        recurrence: odd.recurrence,
        ms: excess / odd.recurrence.steps.max(1) as f64,
        stage: odd.waits_for.clone(),
    })
}

/// Long waits in a few steps.
#[derive(Clone, Debug)]
pub struct LongWaits {
    /// In which steps.
    pub recurrence: Recurrence,
    /// The mean of them in milliseconds.
    pub ms: f64,
    /// The stage of the pipeline in which a single call lasts as long as the wait, e.g. `Shuffle`.
    pub stage: Option<String>,
}

/// Waiting for data.
#[derive(Clone, Debug)]
pub struct InputWait {
    /// How data is loaded.
    pub loader: Loader,
    /// Milliseconds per step that the step waits.
    pub wait_ms: f64,
    /// Milliseconds per step of it in which the loop waits for the interpreter lock that threads of the loader hold.
    pub locked_ms: Option<f64>,
    /// The waits of a few steps, if those hold most of it.
    pub long: Option<LongWaits>,
}

impl Cause for InputWait {
    fn culprit(&self) -> Option<String> {
        match &self.loader {
            Loader::TfData(pipeline) => tf_data::named(pipeline),
            Loader::TorchLoader { .. } => Some("DataLoader".to_owned()),
            Loader::Python(lines) => lines.first().map(|line| line.place.clone()),
            Loader::Queue | Loader::Unknown => None,
        }
    }

    fn words(&self, finding: &Finding) -> Words {
        let mut said = match &self.loader {
            Loader::TfData(pipeline) => match &pipeline.service {
                Some(found) => service::said(found),
                None => tf_data::said(pipeline, finding.framework),
            },
            Loader::TorchLoader { workers, inside } => torch(*workers, inside.as_ref(), finding.has_device),
            Loader::Queue => queue(),
            Loader::Python(lines) => python(lines, finding),
            Loader::Unknown => unknown(finding),
        };
        let served = matches!(&self.loader, Loader::TfData(pipeline) if pipeline.service.is_some());
        if let Some(long) = self.long.as_ref().filter(|_| !served) {
            long.explain(&self.loader, &mut said);
        }
        let Said { why, mut evidence, mut advice } = said;
        let measured = || vec![format!("The step waits {} for its batch.", duration_ms(self.wait_ms))];
        if let Some(ms) = self.locked_ms {
            evidence.insert(0, lock_evidence(ms));
            advice.insert(0, without_threads(finding.framework).to_owned());
            return Words {
                summary: format!(
                    "Input-bound: the loop takes turns with threads that prepare batches in Python, and waits for batches \
                     and for the interpreter lock; with its own overhead that takes {}.",
                    finding.owned(self.wait_ms)
                ),
                evidence,
                advice,
            };
        }
        Words {
            summary: format!(
                "Input-bound: the step waits {} for its next batch{why}.",
                finding.owned(self.wait_ms)
            ),
            evidence: if evidence.is_empty() { measured() } else { evidence },
            advice,
        }
    }
}

/// How to prepare batches without the loop's interpreter.
fn without_threads(framework: Framework) -> &'static str {
    match framework {
        Framework::Keras => {
            "More threads do not help, processes do: `PyDataset(workers=4, use_multiprocessing=True)`. Or run less Python: \
             `numpy` on whole batches, or TensorFlow ops in a `tf.data` pipeline."
        }
        Framework::TensorFlow => {
            "More threads do not help. Prepare batches in other processes (`multiprocessing`, the `tf.data` service), or \
             run less Python: `numpy` on whole batches, or TensorFlow ops in `ds.map`."
        }
        Framework::Jax => {
            "More threads do not help. Prepare batches in other processes (a loader such as Grain with `worker_count=4`, or \
             `multiprocessing`), or run less Python: `numpy` on whole batches."
        }
        Framework::PyTorch | Framework::Unknown => {
            "More threads do not help. Prepare batches in other processes, or run less Python: `numpy` on whole batches."
        }
    }
}

impl LongWaits {
    /// Puts first what the long waits show.
    fn explain(&self, loader: &Loader, said: &mut Said) {
        let often = match self.recurrence.every.filter(|every| *every > 1) {
            Some(every) => format!("every {every} steps"),
            None => format!("in {}", in_steps(&self.recurrence)),
        };
        let wait = duration_ms(self.ms);
        said.evidence.insert(0, format!("Most of the waiting: {wait} {often}, as at the start of an epoch."));
        match (loader, &self.stage) {
            (Loader::TfData(pipeline), Some(stage)) => {
                let (why, advice) = tf_data::at_epoch_starts(pipeline, stage);
                said.why = format!("; {often}, {wait} {why}");
                said.advice = advice;
            }
            (Loader::TorchLoader { workers: true, .. }, _) => {
                said.why = format!("; {often}, it waits {wait} for the DataLoader's workers");
                let keep = "If these are the starts of epochs, keep the workers: `DataLoader(..., \
                            persistent_workers=True)`. Otherwise each epoch starts new processes.";
                said.advice.insert(0, keep.to_owned());
            }
            _ => {}
        }
    }
}

/// What a kind of loader has to say.
struct Said {
    /// The end of the summary.
    why: String,
    evidence: Vec<String>,
    advice: Vec<String>,
}

fn torch(workers: bool, inside: Option<&PythonLine>, has_device: bool) -> Said {
    let mut said = if workers {
        Said {
            why: "; the DataLoader's workers cannot keep up".to_owned(),
            evidence: lines(["The DataLoader has worker processes."]),
            advice: lines([
                "Use more workers, up to the number of cores, and let each keep more batches ready: raise \
                 `num_workers` and `prefetch_factor`.",
                if has_device {
                    "Make `__getitem__` cheaper: decode to the size you need, do random transforms on the GPU, prepare \
                     the rest offline."
                } else {
                    "Make `__getitem__` cheaper: decode to the size you need, and prepare the rest offline."
                },
            ]),
        }
    } else {
        Said {
            why: "; the DataLoader loads in the training process".to_owned(),
            evidence: lines(["The DataLoader has no worker processes (`num_workers=0`)."]),
            advice: if has_device {
                lines([
                    "Load in other processes: `DataLoader(..., num_workers=4, pin_memory=True, persistent_workers=True)`.",
                    "Then copy without waiting: `x.to(device, non_blocking=True)`.",
                ])
            } else {
                lines(["Load in other processes: `DataLoader(..., num_workers=4, persistent_workers=True)`."])
            },
        }
    };
    said.evidence.extend(inside.map(self::inside));
    said
}

/// The user's code inside a loader.
fn inside(line: &PythonLine) -> String {
    format!("Inside it, {} takes {} per step.", quoted(&line.place), duration_ms(line.ms_per_step))
}

fn python(lines: &[PythonLine], finding: &Finding) -> Said {
    let cost =
        |line: &PythonLine| format!("{}: {} per step.", quoted(&line.place), duration_ms(line.ms_per_step));
    let place = lines.first().map_or_else(|| "the loader".to_owned(), |line| quoted(&line.place));
    Said {
        why: lines.first().map_or(String::new(), |line| format!("; {} loads it", quoted(&line.place))),
        evidence: lines.iter().take(3).map(cost).collect(),
        advice: vec![in_background(&place, finding)],
    }
}

fn queue() -> Said {
    Said {
        why: "; the producer behind its queue cannot keep up".to_owned(),
        evidence: lines(["The loop waits in `get` of a queue that another thread or process fills."]),
        advice: lines([
            "Make the producer faster: fill the queue from several threads or processes, or prepare less per batch.",
            "A longer queue does not help as long as the producer is slower than the step.",
        ]),
    }
}

fn unknown(finding: &Finding) -> Said {
    Said {
        why: String::new(),
        evidence: Vec::new(),
        advice: vec![
            in_background("the loader", finding),
            "Find the slow stage: `stepscope input PATH`.".to_owned(),
        ],
    }
}

/// How to move a plain loader out of the loop.
fn in_background(place: &str, finding: &Finding) -> String {
    let pinned = if finding.has_device { " pin_memory=True," } else { "" };
    match finding.framework {
        Framework::PyTorch => format!(
            "Move {place} into a `Dataset` and load it with `DataLoader(..., num_workers=4,{pinned} \
             persistent_workers=True)`."
        ),
        Framework::Jax if !finding.has_device => format!(
            "Run {place} in other processes that keep a few batches ready: a loader with workers such as Grain."
        ),
        Framework::Jax => format!(
            "Run {place} in a background thread that keeps two batches ready on the device: \
             `q = queue.Queue(2)`, `q.put(jax.device_put(batch))`; or use a loader with workers such as Grain."
        ),
        Framework::TensorFlow | Framework::Keras => format!(
            "Build {place} as a tf.data pipeline: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\
             .prefetch(tf.data.AUTOTUNE)`."
        ),
        Framework::Unknown => {
            format!("Run {place} in threads or processes of its own that keep a few batches ready.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Pipeline;
    use crate::rules::testing::{finding, speaks, words};

    fn wait(loader: Loader) -> InputWait {
        InputWait { loader, wait_ms: 30.0, locked_ms: None, long: None }
    }

    fn long_wait(loader: Loader, stage: Option<&str>) -> InputWait {
        let recurrence = Recurrence { steps: 3, of: 24, every: Some(8) };
        let long = LongWaits { recurrence, ms: 240.0, stage: stage.map(str::to_owned) };
        InputWait { long: Some(long), ..wait(loader) }
    }

    #[test]
    fn a_buffer_that_fills_at_each_epoch_is_named_with_its_rhythm() {
        let pipeline = || Loader::TfData(Pipeline::default());
        let said = words(&RULE, long_wait(pipeline(), Some("Shuffle")), Framework::TensorFlow);
        assert!(said.summary.contains("every 8 steps, 240 ms"), "{said:?}");
        assert!(said.summary.contains("`.shuffle(...)`"), "{said:?}");
        assert!(said.advice[0].contains("smaller buffer"), "{said:?}");
        let other = words(&RULE, long_wait(pipeline(), Some("TFRecord")), Framework::TensorFlow);
        assert!(other.advice[0].contains(".repeat()") && !other.summary.contains("shuffle"), "{other:?}");
        let workers = Loader::TorchLoader { workers: true, inside: None };
        let said = words(&RULE, long_wait(workers, None), Framework::PyTorch);
        assert!(said.advice[0].contains("persistent_workers=True"), "{said:?}");
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, wait(Loader::Unknown));
        speaks(&RULE, wait(Loader::Queue));
        speaks(&RULE, InputWait { locked_ms: Some(4.0), ..wait(Loader::Queue) });
        speaks(&RULE, wait(Loader::Python(vec![PythonLine::new("train.py:12 load", 12.0)])));
    }

    #[test]
    fn a_loader_with_workers_is_not_told_to_have_some() {
        let said =
            |workers| words(&RULE, wait(Loader::TorchLoader { workers, inside: None }), Framework::PyTorch);
        assert!(said(false).advice[0].contains("num_workers=4, pin_memory=True, persistent_workers=True"));
        assert!(said(true).advice[0].contains("more workers"));
        for workers in [false, true] {
            let mut finding =
                finding(&RULE, wait(Loader::TorchLoader { workers, inside: None }), Framework::PyTorch);
            finding.has_device = false;
            let advice = finding.words().advice.join(" ");
            let foreign = ["pin_memory", "GPU", "non_blocking"].iter().find(|word| advice.contains(**word));
            assert_eq!(foreign, None, "{advice}");
        }
    }

    #[test]
    fn threads_that_take_turns_are_told_to_be_processes() {
        let cause = InputWait { locked_ms: Some(4.0), ..wait(Loader::Unknown) };
        let said = words(&RULE, cause, Framework::Keras);
        assert!(said.evidence[0].contains("interpreter lock"), "{said:?}");
        assert!(said.advice[0].contains("use_multiprocessing=True"), "{said:?}");
    }

    #[test]
    fn a_gain_is_taken_from_as_many_categories_as_it_needs() {
        let loader = Loader::TorchLoader { workers: false, inside: None };
        let mut finding = finding(&RULE, wait(loader), Framework::PyTorch);
        let verify = |finding: &Finding| finding.words().advice.pop().unwrap_or_default();
        assert!(verify(&finding).contains("Expect `input` to drop by up to 30.0 ms"), "{}", verify(&finding));
        finding.claims =
            vec![(Category::TransferOut, 8.0), (Category::Python, 1.0), (Category::TransferIn, 22.0)];
        let said = verify(&finding);
        assert!(
            said.contains("`transfer_in` and `transfer_out` together to drop by up to 30.0 ms"),
            "{said}"
        );
    }
}
