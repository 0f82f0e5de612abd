//! Names of ranges: which ranges are iterations of one loop, and which are parts of a model.
//!
//! `token_7` and `token_8` are iterations, `conv1` and `conv2` are two layers. Only their words, and how often each of them
//! occurs, distinguish them: the number of an iteration comes once.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_trace::{Form, KindId, Trace};

use super::repetition::has_ranges;
use crate::host_trace::HostTrace;
use crate::vocabulary::{Role, is_dense, words};

/// Prefixes of names that libraries give to ranges around their own parts. A name in braces is a record of a call.
const LIBRARIES: &[&str] = &[
    "aten::",
    "autograd::",
    "torch::",
    "c10",
    "FSDP::",
    "nccl",
    "Torch-Compiled",
    "CompiledFunction",
    "##",
    "[",
    "{",
    "PJRT_",
];
/// Words for parts of a model, of which a pass has many.
const PARTS_OF_MODELS: &[&str] = &[
    "layer",
    "layers",
    "block",
    "blocks",
    "attention",
    "attn",
    "mlp",
    "ffn",
    "norm",
    "softmax",
    "matmul",
    "embedding",
];

/// Words for what programs count.
const COUNTED: &[&str] = &[
    "step",
    "steps",
    "iteration",
    "iter",
    "batch",
    "epoch",
    "token",
    "request",
    "frame",
    "sample",
    "run",
    "round",
    "turn",
    "trial",
    "query",
    "call",
    "episode",
];
/// Fewer names that differ in their numbers only may be anything.
const LEAST_COUNTED: usize = 3;

/// Words that users give to an iteration of their loop …
const STEPS: &[&str] = &["step", "iter", "iteration", "batch"];
/// … and parts of names of what they do in it: `load_batch`, `optimizer step`.
const PARTS: &[&str] = &["optim", "load", "data", "fetch", "next", "read", "copy"];

/// Words for one pass.
const PASSES: &[&str] = &["forward", "step", "iteration", "iter", "batch"];

/// Whether a range of this name is at most one iteration.
pub(super) fn is_pass(name: &str) -> bool {
    super::is_prediction(name) || has(name, PASSES)
}

/// Whether a range of this name is an iteration.
pub(super) fn is_step(name: &str) -> bool {
    ends_in_step(name) && !is_part_of_step(name)
}

/// Whether a range of this name is what a step does once.
pub(super) fn is_part_of_step(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ends_in_step(&name) && PARTS.iter().any(|part| name.contains(part))
}

/// Whether a range of this name is the update at the end of a step.
pub(super) fn is_optimizer_step(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|last| last == "step")
        && words.iter().any(|word| matches!(word.as_str(), "optimizer" | "optimiser" | "optim" | "opt"))
}

fn ends_in_step(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    super::words(&name).next_back().is_some_and(|last| STEPS.contains(&last))
}

/// Whether one of `wanted` is among the words of a name, with or without a number.
pub(super) fn has(name: &str, wanted: &[&str]) -> bool {
    let is_wanted = |word: &str| wanted.contains(&word);
    words(name).iter().any(|word| is_wanted(word.as_str()))
        || super::words(&name.to_ascii_lowercase())
            .any(|word| is_wanted(word.trim_end_matches(|c: char| c.is_ascii_digit())))
}

/// Whether it is a library's range around its own part, or a range around a part of a model.
pub(super) fn is_part(name: &str) -> bool {
    LIBRARIES.iter().any(|library| name.starts_with(library))
        || name.contains(":XLA ")
        || forward_of(name).is_some()
        || has(name, PARTS_OF_MODELS)
}

/// The families of all ranges of a recording.
pub(super) struct Names {
    /// By kind: the family; `None` if it is no range, or a part of a model.
    families: Vec<Option<String>>,
}

impl Names {
    pub(super) fn of(recorded: &HostTrace) -> Self {
        let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
        let differentiated = differentiated(trace);
        let is_range = |kind: KindId| {
            let name = trace.kind_name(kind);
            matches!(vocabulary.role(kind), Role::Annotation | Role::Unknown)
                && trace.kind(kind).form == Form::Slice
                && !name.is_empty()
                && !is_part(name)
                && !differentiated.contains(name)
        };
        let counters = Counters::of(trace, is_range);
        let family = |kind: KindId| is_range(kind).then(|| counters.family(trace.kind_name(kind)));
        let families = (0..trace.kinds().len()).map(|index| family(KindId::from_index(index))).collect();
        Names { families }
    }

    /// The family of a range; `None` of anything else.
    pub(super) fn family(&self, kind: KindId) -> Option<&str> {
        self.families.get(kind.index())?.as_deref().filter(|name| !name.is_empty())
    }
}

/// Functions that have a backward pass of their own: parts of a model, whatever they are called.
fn differentiated(trace: &Trace) -> BTreeSet<&str> {
    let name = |index| trace.kind_name(KindId::from_index(index));
    (0..trace.kinds().len()).map(name).filter_map(forward_of).collect()
}

/// The function whose backward pass it is.
fn forward_of(name: &str) -> Option<&str> {
    name.trim_end_matches('0').strip_suffix("Backward").filter(|function| !function.is_empty())
}

/// Names that differ in numbers only, by their name without numbers: which of the numbers differ, if they count.
struct Counters {
    groups: BTreeMap<String, Vec<bool>>,
}

impl Counters {
    fn of(trace: &Trace, is_range: impl Fn(KindId) -> bool) -> Self {
        let numbered = trace.kinds_where(|kind| {
            trace.kind_name(kind).bytes().any(|byte| byte.is_ascii_digit()) && is_range(kind)
        });
        let mut often: BTreeMap<KindId, usize> = BTreeMap::new();
        if !numbered.is_empty() {
            for track in trace.tracks().iter().filter(|track| has_ranges(trace, track)) {
                track.events_of(&numbered).for_each(|(_, kind)| *often.entry(kind).or_default() += 1);
            }
        }
        let mut members: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
        for (kind, count) in often {
            let name = trace.kind_name(kind);
            members.entry(without_numbers(name)).or_default().push((name, count));
        }
        members.retain(|stem, names| is_counter(stem, names));
        let groups = members.into_iter().map(|(stem, names)| (stem, differing(&names))).collect();
        Counters { groups }
    }

    /// A name without the numbers that count.
    fn family(&self, name: &str) -> String {
        if !name.bytes().any(|byte| byte.is_ascii_digit()) {
            return name.to_owned();
        }
        let Some(counts) = self.groups.get(&without_numbers(name)) else { return name.to_owned() };
        let mut counts = counts.iter();
        let mut family = String::with_capacity(name.len());
        for (is_number, part) in runs(name) {
            let counted = is_number && counts.next().copied().unwrap_or(true);
            family.push_str(if counted { "#" } else { part });
        }
        trimmed(&family).to_owned()
    }
}

/// Whether the numbers of these names count iterations: by a word for what is counted, or because each of several comes once.
fn is_counter(stem: &str, names: &[(&str, usize)]) -> bool {
    let once = names.len() >= LEAST_COUNTED && names.iter().all(|(_, count)| *count == 1);
    has(stem, COUNTED) || once && !is_dense(stem)
}

/// Which of the numbers in these names differ; all of them in a single one.
fn differing(names: &[(&str, usize)]) -> Vec<bool> {
    let numbers = |name| runs(name).filter(|(is_number, _)| *is_number).map(|(_, part)| part);
    let Some(((first, _), others)) = names.split_first() else { return Vec::new() };
    let mut differ: Vec<bool> = numbers(first).map(|_| others.is_empty()).collect();
    for (name, _) in others {
        for ((differs, own), other) in differ.iter_mut().zip(numbers(first)).zip(numbers(name)) {
            *differs |= own != other;
        }
    }
    differ
}

/// The parts of a name in turn: whether it is a number, and its text.
fn runs(name: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let is_number = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some((is_number, part))
    })
}

fn without_numbers(name: &str) -> String {
    let joined: String = runs(name).map(|(is_number, part)| if is_number { "#" } else { part }).collect();
    trimmed(&joined).to_owned()
}

fn trimmed(name: &str) -> &str {
    name.trim_end_matches([' ', '_', '#', ':', '-', '='])
}

/// A name as it is shown: without the number at its end.
pub(super) fn shown(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() < name.len() && !trimmed(stem).is_empty() { trimmed(stem) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::sketch::Sketch;

    /// The families of ranges that follow one another.
    fn families(names: &[&str]) -> Vec<String> {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for (at, name) in names.iter().enumerate() {
            sketch.event_of(thread, "user_annotation", name, at as i64 * 10, 9, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let found = Names::of(&context);
        let kinds = (0..trace.kinds().len()).map(KindId::from_index);
        let mut all: Vec<String> = kinds.filter_map(|kind| found.family(kind)).map(str::to_owned).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn numbers_that_count_are_no_part_of_a_name_and_others_are() {
        assert_eq!(families(&["token_7_processing", "token_8_processing"]), ["token_#_processing"]);
        assert_eq!(families(&["gpt2 step 5", "gpt2 step 6"]), ["gpt2 step"]);
        assert_eq!(families(&["work 1", "work 2", "work 3"]), ["work"], "each once");
        assert_eq!(families(&["stage1", "stage2", "stage1", "stage2"]), ["stage1", "stage2"], "in turn");
        assert_eq!(families(&["conv1", "conv2", "conv3", "fc1"]), ["conv1", "conv2", "conv3", "fc1"]);
        assert_eq!(families(&["f.py:40", "f.py:41"]), ["f.py:40", "f.py:41"], "two are no count");
    }

    #[test]
    fn parts_of_models_are_known_by_words_and_by_their_backward_pass() {
        assert!(families(&["FlashAttnFunc", "layer_3", "{'op': 'conv2d'}", "aten::mm"]).is_empty());
        assert_eq!(families(&["SelectiveScan", "turn", "SelectiveScanBackward"]), ["turn"]);
    }

    #[test]
    fn updates_and_loads_are_parts_of_steps() {
        assert!(is_step("train_step") && is_step("Iteration"));
        assert!(
            !is_step("optimizer_step") && is_part_of_step("optimizer_step") && is_part_of_step("load_batch")
        );
        assert!(is_optimizer_step("Optimizer.step") && is_optimizer_step("opt_step"));
        assert!(!is_optimizer_step("step") && !is_optimizer_step("optimize"));
    }
}
