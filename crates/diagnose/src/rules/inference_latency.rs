//! The steps are predictions, so their latency is the answer.
//!
//! # What it means
//! The finding reports percentiles of a prediction, and what owns most of it besides the model. It leads the list in such
//! profiles.
//!
//! # How it is detected
//! By what the steps are called (`predict`, `serve`, `decode`, …). The finding is a `warning` if at least {OVERHEAD} of a
//! prediction is not compute. It names the largest other owner if that takes at least {NOTABLE}. Requests that a server
//! recorded as asynchronous operations, from arrival to answer, come first; they overlap, so that no part of the time
//! belongs to one of them. If the server recorded its queue and requests wait there for at least {NOTABLE} of their time, the
//! finding says so.
//!
//! # How to fix it
//! Put several requests into one batch if latency allows. If they wait in the queue, run more instances of the model.
//!
//! Keras: for single batches, `model(x, training=False)` in a `@tf.function` instead of `model.predict`.
//!
//! TensorFlow: a fixed `input_signature`, called once before traffic arrives.
//!
//! JAX: compile ahead for a few padded sizes.
//!
//! PyTorch: `torch.inference_mode()`, `torch.compile(mode="reduce-overhead")`.
//!
//! # How to check
//! `stepscope inference PATH`, before and after.

use stepscope_analyze::Category;
use stepscope_analyze::steps::StepKind;
use stepscope_analyze::time::requests::Latencies;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, plural, quoted, share};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words;

/// The rule.
pub static RULE: Rule = Rule {
    id: "inference-latency",
    about: About::Goal,
    view: "inference",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("inference_latency.rs"),
};

thresholds! {
    /// With more overhead than this, something other than the model decides the latency.
    OVERHEAD: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    if let Some(requests) = &facts.requests {
        let cause = Served { requests: requests.clone() };
        return Some(Finding::new(&RULE, Severity::Info, cause, facts.framework()).sure(0.9));
    }
    let (moments, host) = (facts.summary.step_ms?, facts.summary.bound()?);
    // One call has no percentiles.
    if host.kind != StepKind::Inference || facts.summary.count < 2 {
        return None;
    }
    let mostly = facts
        .summary
        .breakdown_ms
        .iter()
        .copied()
        .filter(|(category, _)| *category != Category::Compute)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(category, _)| (category, facts.share(category)))
        .filter(|(_, share)| *share >= NOTABLE);
    let overhead = 1.0 - facts.share(Category::Compute);
    let severity = if overhead >= OVERHEAD { Severity::Warning } else { Severity::Info };
    let cause = Latency {
        count: facts.summary.count,
        p50_ms: moments.median,
        p90_ms: moments.p90,
        p99_ms: moments.p99,
        mostly,
    };
    Some(Finding::new(&RULE, severity, cause, facts.framework()).sure(0.9))
}

/// Requests.
#[derive(Copy, Clone, Debug)]
pub struct Latency {
    /// Predictions counted.
    pub count: usize,
    /// The median in milliseconds.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The category other than compute that owns most of a prediction, and its share.
    pub mostly: Option<(Category, f64)>,
}

impl Cause for Latency {
    fn words(&self, finding: &Finding) -> Words {
        let most = self.mostly.map_or(String::new(), |(category, part)| {
            format!("; {} of it is `{}`, not the model", share(part), category.key())
        });
        let calls = plural(self.count as u64, "prediction", "predictions");
        let mut evidence = vec![format!("{calls}: 99th percentile {}.", duration_ms(self.p99_ms))];
        evidence.extend(self.mostly.map(|(category, part)| {
            let (key, what) = (category.key(), words::category(category));
            format!("`{key}`: {} of a prediction ({what}).", share(part))
        }));
        Words {
            summary: format!(
                "Inference latency: a prediction takes {} at the median and {} at the 90th percentile{most}.",
                duration_ms(self.p50_ms),
                duration_ms(self.p90_ms)
            ),
            evidence,
            advice: faster_calls(finding.framework, self.mostly.map(|(category, _)| category)),
        }
    }
}

/// Requests that a server recorded one by one.
#[derive(Clone, Debug)]
pub struct Served {
    /// How long they take.
    pub requests: Latencies,
}

impl Cause for Served {
    fn words(&self, finding: &Finding) -> Words {
        let Latencies { name, count, ms, queue_ms } = &self.requests;
        let queue = queue_ms.map(|queue| (queue, queue / ms.mean)).filter(|(_, part)| *part >= NOTABLE);
        let mut advice =
            vec!["See the slowest request and the distribution: `stepscope inference PATH`.".to_owned()];
        advice.extend(queue.map(|_| {
            "Requests wait for a free model: run more instances of it, or let the server batch them (dynamic batching)."
                .to_owned()
        }));
        advice.extend(faster_calls(finding.framework, None));
        let waiting = queue.map_or(String::new(), |(_, part)| {
            format!("; {} of the mean is waiting in the queue", share(part))
        });
        Words {
            summary: format!(
                "Inference latency: a request takes {} at the median and {} at the 90th percentile{waiting}.",
                duration_ms(ms.median),
                duration_ms(ms.p90)
            ),
            evidence: [
                Some(format!(
                    "{} ({}), from arrival to answer: 99th percentile {}.",
                    plural(*count, "request", "requests"),
                    quoted(name),
                    duration_ms(ms.p99)
                )),
                queue.map(|(queue, _)| {
                    format!("In the queue: {} of {} on average.", duration_ms(queue), duration_ms(ms.mean))
                }),
                Some(
                    "Requests overlap, so the breakdown is of the server and not of one request.".to_owned(),
                ),
            ]
            .into_iter()
            .flatten()
            .collect(),
            advice,
        }
    }
}

fn faster_calls(framework: Framework, mostly: Option<Category>) -> Vec<String> {
    let call = match framework {
        Framework::Keras => Some(
            "For single batches call the model itself, `model(x, training=False)`, inside a `@tf.function`: \
             `model.predict` sets up a dataset and callbacks in every call.",
        ),
        Framework::TensorFlow => Some(
            "Serve one `@tf.function` with a fixed `input_signature`, and call it once before traffic arrives.",
        ),
        Framework::Jax => {
            Some("Compile before traffic arrives, for a few padded sizes: `jax.jit(f).lower(x).compile()`.")
        }
        Framework::PyTorch => Some(
            "Run under `torch.inference_mode()`, compiled: `torch.compile(model, mode=\"reduce-overhead\")`.",
        ),
        Framework::Unknown => None,
    };
    let owner = match mostly {
        Some(Category::TransferIn | Category::TransferOut) => {
            "Copy from pinned memory and send less: smaller types in, only what is needed out."
        }
        Some(Category::Tracing | Category::Compile) => {
            "Pad requests to a few shapes, so that no call builds a program."
        }
        _ => "Put several requests into one batch if latency allows.",
    };
    call.into_iter().chain([owner]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for mostly in [None, Some((Category::Input, 0.6)), Some((Category::Compile, 0.6))] {
            speaks(&RULE, Latency { count: 20, p50_ms: 80.0, p90_ms: 90.0, p99_ms: 99.0, mostly });
        }
        let ms = stepscope_trace::statistics::Moments::of([80.0, 90.0]).unwrap();
        for queue_ms in [None, Some(40.0)] {
            speaks(&RULE, Served { requests: Latencies { name: "request".into(), count: 2, ms, queue_ms } });
        }
    }
}
