//! What the tests of all rules need: a finding made of a cause, and sentences held against the house rules.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;

use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::Rule;

const FRAMEWORKS: [Framework; 5] =
    [Framework::TensorFlow, Framework::Keras, Framework::Jax, Framework::PyTorch, Framework::Unknown];

/// Words that belong to other frameworks.
const FOREIGN: [(Framework, &[&str]); 3] = [
    (Framework::Jax, &["tf.", "torch", "Keras", "model.fit", "DataLoader"]),
    (Framework::PyTorch, &["tf.", "jax", "jnp.", "Keras", "model.fit"]),
    (Framework::TensorFlow, &["torch", "jax", "jnp.", "DataLoader"]),
];

/// Turns of phrase that the style of the project avoids.
const AVOIDED: [&str; 10] = [
    " a step",
    " mend",
    "could win",
    "at the most",
    "bytes a ",
    "results a ",
    "times a ",
    "more a call",
    "own word",
    "it is no ",
];

/// A finding that owns 30 ms of a step of 40 ms.
pub(super) fn finding(rule: &'static Rule, cause: impl Cause, framework: Framework) -> Finding {
    let mut finding = Finding::new(rule, Severity::Critical, cause, framework);
    finding.claims = vec![(Category::Input, 30.0)];
    finding.about_ms = Some(30.0);
    finding.fraction = Some(0.75);
    finding.gain_ms = Some(30.0);
    finding
}

/// All words for a cause in one framework.
pub(super) fn words(rule: &'static Rule, cause: impl Cause, framework: Framework) -> Words {
    finding(rule, cause, framework).words()
}

/// Checks the words for a cause in every framework: whole sentences, the framework's own language, the project's style.
pub(super) fn speaks(rule: &'static Rule, cause: impl Cause) {
    let mut finding = finding(rule, cause, Framework::Unknown);
    for framework in FRAMEWORKS {
        finding.framework = framework;
        let said = finding.words();
        let id = rule.id;
        assert!(said.summary.ends_with('.') && said.summary.contains(": "), "{}", said.summary);
        assert!(!said.evidence.is_empty() && !said.advice.is_empty(), "{id}");
        for sentence in said.evidence.iter().chain(&said.advice).chain([&said.summary]) {
            assert!(sentence.ends_with('.'), "{id}: {sentence}");
            assert!(!sentence.contains("NaN") && !sentence.contains("  "), "{id}: {sentence}");
            assert_eq!(sentence.matches('`').count() % 2, 0, "{id}: {sentence}");
            let prose: String = sentence.split('`').step_by(2).collect();
            for avoided in AVOIDED {
                assert!(!prose.contains(avoided), "{id}: `{avoided}` in: {sentence}");
            }
        }
        let advice = said.advice.join(" ");
        for (_, words) in FOREIGN.iter().filter(|(of, _)| *of == framework) {
            for word in *words {
                assert!(!advice.contains(word), "{framework:?} {id} {word}: {advice}");
            }
        }
    }
}
