//! What a tag says about the speed of steps, by its name: steps per second, seconds per step, or nothing.
//!
//! Names are those of Keras, TensorFlow's estimators, PyTorch's trainers and common loops. A name without a unit says
//! nothing until the clock confirms one.

/// What a tag's values are.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum TagSpeed {
    /// Steps per second.
    Rate,
    /// Time per step, of which one is so many seconds; `None` if the name has no unit.
    Time(Option<f64>),
}

/// Parts of names of rates.
const RATES: [&str; 9] = [
    "steps_per_sec",
    "step_per_sec",
    "steps/sec",
    "step/sec",
    "steps/s",
    "iterations_per_sec",
    "iter_per_sec",
    "batches_per_sec",
    "it/s",
];
/// Parts of names of times.
const TIMES: [&str; 9] = [
    "step_time",
    "time_per_step",
    "sec_per_step",
    "seconds_per_step",
    "s/step",
    "iter_time",
    "iteration_time",
    "batch_time",
    "time/step",
];

/// What a tag says by its name; `None` if nothing about steps.
pub(crate) fn speed_of_tag(tag: &str) -> Option<TagSpeed> {
    let name = tag.to_ascii_lowercase().replace([' ', '-'], "_");
    if RATES.iter().any(|part| name.contains(part)) {
        return Some(TagSpeed::Rate);
    }
    TIMES.iter().any(|part| name.contains(part)).then(|| TagSpeed::Time(unit(&name)))
}

/// The unit that a name ends in, or counts in.
fn unit(name: &str) -> Option<f64> {
    let name = name.trim_end_matches([')', ']']);
    let ends = |units: &[&str]| {
        units.iter().any(|unit| {
            name.strip_suffix(unit).is_some_and(|rest| rest.ends_with(['_', '(', '[', '/', '.', ':']))
        })
    };
    if ends(&["ms", "msec", "millis", "milliseconds"]) || name.contains("ms/step") || name.contains("ms_per_")
    {
        Some(1e-3)
    } else if ends(&["us", "usec", "micros", "microseconds"]) {
        Some(1e-6)
    } else if ends(&["s", "sec", "secs", "second", "seconds"])
        || ["sec_per_step", "seconds_per_step", "/s/step"].iter().any(|part| name.contains(part))
        || name == "s/step"
    {
        Some(1.0)
    } else {
        None
    }
}

/// Does a tag count epochs instead of steps?
pub(crate) fn counts_epochs(tag: &str) -> bool {
    last_words(tag).next().is_some_and(|word| word == "epoch")
}

/// Is it a loss?
pub fn is_loss(tag: &str) -> bool {
    last_words(tag)
        .any(|word| matches!(word.as_str(), "loss" | "losses" | "nll" | "cost" | "perplexity" | "ppl"))
        || tag
            .to_ascii_lowercase()
            .rsplit('/')
            .nth(1)
            .is_some_and(|above| above == "loss" || above == "losses")
}

/// Is what it names done between training steps, to evaluate the model?
pub fn is_evaluation(name: &str) -> bool {
    words(name)
        .any(|word| matches!(word.as_str(), "val" | "valid" | "validation" | "eval" | "evaluation" | "test"))
}

fn last_words(tag: &str) -> impl Iterator<Item = String> {
    words(tag.rsplit('/').next().unwrap_or(tag))
}

fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_known_by_their_names_and_units() {
        for tag in
            ["batch_steps_per_second", "epoch_steps_per_second", "global_step/sec", "perf/steps_per_sec"]
        {
            assert_eq!(speed_of_tag(tag), Some(TagSpeed::Rate), "{tag}");
        }
        assert_eq!(speed_of_tag("train/train_steps_per_second"), Some(TagSpeed::Rate));
        assert_eq!(speed_of_tag("perf/step_time_sec"), Some(TagSpeed::Time(Some(1.0))));
        assert_eq!(speed_of_tag("Step Time (ms)"), Some(TagSpeed::Time(Some(1e-3))));
        assert_eq!(speed_of_tag("perf/step_time"), Some(TagSpeed::Time(None)), "no unit");
        assert_eq!(speed_of_tag("batch_times"), Some(TagSpeed::Time(None)), "a plural is no unit");
        for tag in ["loss", "examples_per_sec", "tokens/s", "epoch_loss", "lr", "train_samples_per_second"] {
            assert_eq!(speed_of_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn losses_and_evaluations_are_known_by_whole_words() {
        for tag in ["loss", "train/loss", "batch_loss", "Loss/train", "val_loss", "losses/cls"] {
            assert!(is_loss(tag), "{tag}");
        }
        assert!(!is_loss("glossary") && !is_loss("loss_scale_of/lr") && !is_loss("accuracy"));
        assert!(is_evaluation("eval/loss") && is_evaluation("evaluation_loss_vs_iterations"));
        assert!(is_evaluation("a/validation") && !is_evaluation("latest") && !is_evaluation("train"));
        assert!(counts_epochs("epoch_loss") && counts_epochs("train/epoch") && !counts_epochs("loss_epoch"));
    }
}
