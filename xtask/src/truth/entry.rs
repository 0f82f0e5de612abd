//! The truth about a recording, as stated in the files beside the recordings. If several keys are given, all of
//! them must hold.

use std::collections::BTreeMap;
use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// What is known about a recording that was examined by hand.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Entry {
    /// Its repository, if the recording is not part of the corpus.
    pub(crate) repository: Option<String>,
    /// Its path in the folder or in that repository.
    pub(crate) path: String,
    /// Bounds of the median step in milliseconds.
    pub(crate) step_ms: Option<Bounds>,
    /// Bounds of the mean step in milliseconds.
    pub(crate) mean_ms: Option<(f64, f64)>,
    /// Finding no steps is also right.
    #[serde(default)]
    pub(crate) no_steps: bool,
    /// Accepted as the first finding that is not about trust.
    pub(crate) first: Option<Vec<String>>,
    /// One of these must be among the leading findings about trust; with `first`, either is enough.
    pub(crate) trust: Option<Vec<String>>,
    /// Neither critical nor a warning; `id!`: must not appear at all.
    #[serde(default)]
    pub(crate) never: Vec<String>,
    /// Must appear, in any place.
    #[serde(default)]
    pub(crate) has: Vec<String>,
    /// The largest gain that any finding may promise.
    pub(crate) max_gain_ms: Option<f64>,
    /// Bounds of shares of the breakdown; `a+b` is their sum.
    #[serde(default)]
    pub(crate) shares: BTreeMap<String, (f64, f64)>,
    /// Bounds of the first finding's `gain_fraction`, in percent.
    pub(crate) cap_pct: Option<(f64, f64)>,
    /// Patterns that the report must contain.
    #[serde(default, deserialize_with = "patterns")]
    pub(crate) says: Vec<Regex>,
    /// Patterns that no finding may contain.
    #[serde(default, deserialize_with = "patterns")]
    pub(crate) not_says: Vec<Regex>,
}

/// One range, or several of which one must hold.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bounds {
    One((f64, f64)),
    Several(Vec<(f64, f64)>),
}

impl Bounds {
    /// Whether one of them holds the value.
    pub(crate) fn contain(&self, value: f64) -> bool {
        self.ranges().iter().any(|(low, high)| (*low..=*high).contains(&value))
    }

    fn ranges(&self) -> &[(f64, f64)] {
        match self {
            Bounds::One(range) => std::slice::from_ref(range),
            Bounds::Several(ranges) => ranges,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.ranges().iter().map(|(low, high)| format!("{low} to {high}"));
        out.write_str(&ranges.collect::<Vec<_>>().join(" or "))
    }
}

/// What is known about a run that was recorded on purpose, with a stopwatch.
#[derive(Debug, Deserialize)]
pub(crate) struct Label {
    /// What was made slow; `any` if only the figures are known.
    pub(crate) bottleneck: String,
    /// Seconds by the stopwatch, one record per step: the step and its parts.
    #[serde(default)]
    pub(crate) stopwatch_seconds: Vec<BTreeMap<String, f64>>,
    /// What the verdict must say.
    #[serde(default, deserialize_with = "pattern")]
    pub(crate) says: Option<Regex>,
    /// What the verdict must not say.
    #[serde(default, deserialize_with = "pattern")]
    pub(crate) says_not: Option<Regex>,
    /// The run that this one fixes: the actual gain is known.
    pub(crate) fixes: Option<String>,
    /// Accepted as the first finding, instead of what `bottleneck` stands for; nothing is asked if it is empty.
    pub(crate) accept: Option<Vec<String>>,
    /// Neither critical nor a warning.
    #[serde(default)]
    pub(crate) never: Vec<String>,
    /// Must appear, in any place.
    #[serde(default)]
    pub(crate) somewhere: Vec<String>,
    /// Nothing may be critical.
    #[serde(default)]
    pub(crate) no_critical: bool,
}

impl Label {
    /// The ids for this bottleneck; empty if an op or nothing is named.
    pub(crate) fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = match &self.accept {
            Some(accept) => accept.iter().map(String::as_str).collect(),
            None => self.ids_of_bottleneck().to_vec(),
        };
        // A label of a parameter server that was written before this finding existed asks for the general one.
        if self.bottleneck.starts_with("parameter") && ids.contains(&"communication-bound") {
            ids.push("parameter-server-bound");
        }
        ids
    }

    /// Whether every first finding is right.
    pub(crate) fn accepts_any(&self) -> bool {
        match &self.accept {
            Some(accept) => accept.is_empty(),
            None => self.bottleneck == "any",
        }
    }

    fn ids_of_bottleneck(&self) -> &'static [&'static str] {
        match self.bottleneck.as_str() {
            "input" => &["input-bound"],
            "compute" | "healthy" => &["compute-bound"],
            "dispatch" => &["eager-dispatch", "dispatch-bound"],
            "compile" => &["recompilation"],
            "retracing" => &["retracing"],
            "host-python" => &["host-python"],
            "inference" => &["inference-latency"],
            "output" => &["output-bound"],
            "communication" => &["communication-bound"],
            "callback" => &["host-callback"],
            "memory" => &["memory-growth"],
            "predict-in-loop" => {
                &["setup-in-loop", "inference-latency", "eager-dispatch", "dispatch-bound", "input-bound"]
            }
            _ => &[],
        }
    }

    /// The steps by stopwatch, in milliseconds.
    pub(crate) fn steps_ms(&self) -> Vec<f64> {
        self.stopwatch_seconds.iter().filter_map(|record| record.get("step")).map(|step| step * 1e3).collect()
    }

    /// The share of a part in the step time, by stopwatch.
    pub(crate) fn share(&self, part: &str) -> Option<f64> {
        let sum = |key: &str| self.stopwatch_seconds.iter().filter_map(|record| record.get(key)).sum::<f64>();
        self.stopwatch_seconds.first()?.get(part)?;
        Some(sum(part) / sum("step"))
    }
}

fn patterns<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Regex>, D::Error> {
    Vec::<String>::deserialize(from)?.iter().map(|pattern| compiled(pattern)).collect()
}

fn pattern<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    Option::<String>::deserialize(from)?.as_deref().map(compiled).transpose()
}

fn compiled<E: serde::de::Error>(pattern: &str) -> Result<Regex, E> {
    // `^` and `$` refer to the lines of a finding.
    RegexBuilder::new(pattern).multi_line(true).build().map_err(E::custom)
}
