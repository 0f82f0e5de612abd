//! The optimizer's update of the parameters: what the steps spend inside the ranges that PyTorch writes around
//! `optimizer.step()`. Its ops are elementwise work on every parameter, whatever the batch used, so the update is judged
//! as a whole and not op by op.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindSet, ProcessId, ProcessKind, Span, Track, TrackKind};

use crate::analysis::Analysis;
use crate::breakdown::Shares;
use crate::context::Context;
use crate::states::timeline::united;

/// The range around an update: `Optimizer.step#Adam.step`.
const UPDATE: &str = "Optimizer.step#";
/// Makes the gradient of an embedding with a row for every row of its table, used or not.
const DENSE_GRADIENT: &str = "aten::embedding_dense_backward";

/// How an optimizer goes through its parameters.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Updating {
    /// One parameter after the other, several ops each.
    #[default]
    OneByOne,
    /// Each op on a list of parameters.
    Foreach,
    /// One op for all of it.
    Fused,
}

/// Partial result: updates in the counted steps.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Updates {
    /// Time by the optimizer's name, e.g. `Adam`.
    names: BTreeMap<String, Dur>,
    /// The breakdown of the updates.
    pub shares: Shares,
    /// The breakdown of making dense gradients of embeddings.
    pub dense_gradients: Shares,
    /// How it goes through the parameters.
    pub updating: Updating,
    /// Number of steps analysed.
    pub steps: u64,
}

impl Analysis for Updates {
    type Output = Self;

    /// Looks for the ranges on the bottleneck device, else on the host's threads; empty if there are none.
    fn of(context: &Context) -> Self {
        let (trace, breakdown) = (context.trace, context.breakdown());
        let mut all = Updates { steps: breakdown.counted().count() as u64, ..Updates::default() };
        let updates = trace.kinds_where(|kind| trace.kind_name(kind).starts_with(UPDATE));
        if updates.is_empty() {
            return all;
        }
        let device = breakdown.bound().and_then(|bound| bound.process);
        let spans = spans_of(context, &updates, device, |name, time| {
            let class = name.strip_prefix(UPDATE).unwrap_or(name);
            let class = class.strip_suffix(".step").unwrap_or(class);
            *all.names.entry(class.to_owned()).or_default() += time;
        });
        all.shares = breakdown.owned_within(context, &spans);
        all.updating = updating(context);
        let gradients = trace.kinds_where(|kind| trace.kind_name(kind) == DENSE_GRADIENT);
        if device.is_none() && !gradients.is_empty() {
            let spans = spans_of(context, &gradients, None, |_, _| {});
            all.dense_gradients = breakdown.owned_within(context, &spans);
        }
        all
    }

    /// Adds another host.
    fn merge(&mut self, other: Updates) {
        other.names.into_iter().for_each(|(name, time)| *self.names.entry(name).or_default() += time);
        self.shares.add_all(&other.shares);
        self.dense_gradients.add_all(&other.dense_gradients);
        self.updating = self.updating.max(other.updating);
        self.steps += other.steps;
    }

    fn finish(self) -> Self {
        self
    }
}

impl Updates {
    /// The class of the optimizer that takes longest, e.g. `Adam`.
    pub fn name(&self) -> Option<&str> {
        self.names.iter().max_by_key(|(_, time)| **time).map(|(name, _)| name.as_str())
    }
}

/// The spans of events of some kinds: on a device's tracks, or on the host's threads.
fn spans_of(
    context: &Context,
    kinds: &KindSet,
    device: Option<ProcessId>,
    mut seen: impl FnMut(&str, Dur),
) -> Vec<Span> {
    let trace = context.trace;
    let own = |track: &&Track| match device {
        Some(process) => track.process == process,
        None => track.kind == TrackKind::Thread && trace.process(track.process).kind != ProcessKind::Device,
    };
    let mut spans = Vec::new();
    for track in trace.tracks().iter().filter(own) {
        for (index, kind) in track.events_of(kinds) {
            let span = track.span_of(index);
            seen(trace.kind_name(kind), span.dur());
            spans.push(span);
        }
    }
    united(spans)
}

/// By the names of the ops that only such an update calls.
fn updating(context: &Context) -> Updating {
    let trace = context.trace;
    let has = |start: &str| !trace.kinds_where(|kind| trace.kind_name(kind).starts_with(start)).is_empty();
    if has("aten::_fused_") {
        Updating::Fused
    } else if has("aten::_foreach_") {
        Updating::Foreach
    } else {
        Updating::OneByOne
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::sketch::Sketch;

    /// Four marked steps of 100 µs: a product, the gradient of an embedding, and an update with one op.
    fn updates(update: &str, op: &str) -> Updates {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for step in 0..4 {
            let at = step * 100;
            sketch.event_of(thread, "user_annotation", &format!("ProfilerStep#{step}"), at, 100, &[]);
            sketch.event_of(thread, "cpu_op", "aten::mm", at, 20, &[]);
            sketch.event_of(thread, "cpu_op", DENSE_GRADIENT, at + 20, 10, &[]);
            sketch.event_of(thread, "user_annotation", update, at + 40, 60, &[]);
            sketch.event_of(thread, "cpu_op", op, at + 50, 40, &[]);
        }
        let trace = sketch.finish();
        Updates::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn what_the_update_costs_is_known_with_its_optimizer() {
        let found = updates("Optimizer.step#Adam.step", "aten::sqrt");
        assert_eq!((found.name(), found.steps), (Some("Adam"), 4));
        assert_eq!(found.shares.get(Category::Compute), Dur::from_us(4 * 40));
        assert_eq!(found.shares.get(Category::Python), Dur::from_us(4 * 20));
        assert_eq!(found.dense_gradients.get(Category::Compute), Dur::from_us(4 * 10));
        assert_eq!(found.updating, Updating::OneByOne);
        assert_eq!(updates("Optimizer.step#Adam.step", "aten::_fused_adam_").updating, Updating::Fused);
        let none = updates("Optimizer.zero_grad#Adam.zero_grad", "aten::zero_");
        assert_eq!((none.name(), none.shares.total()), (None, Dur::ZERO));
    }
}
