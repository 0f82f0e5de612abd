//! stepscope's own names: what `python/stepscope/record.py` writes around the phases of a step with
//! `stepscope.mark("input")`.
//!
//! The user states the purpose of a part of the loop, so these come before every framework's table.

use super::Role;

/// The common prefix.
const PREFIX: &str = "stepscope/";
/// Steps that a log of the program marks, with their number behind it.
const STEP: &str = "step#";

const PHASES: &[(&str, Role)] = &[
    ("input", Role::InputWait),
    ("output", Role::Output),
    ("python", Role::Annotation),
    ("compute", Role::Op),
    ("sync", Role::Sync),
];

pub(super) fn role(name: &str) -> Option<Role> {
    let phase = name.strip_prefix(PREFIX)?;
    if phase.starts_with(STEP) {
        return Some(Role::StepMarker);
    }
    let known = PHASES.iter().find(|(known, _)| *known == phase);
    // A user-defined phase is still an annotation, not an op.
    Some(known.map_or(Role::Annotation, |(_, role)| *role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_that_the_user_names_are_taken_at_their_word() {
        assert_eq!(role("stepscope/input"), Some(Role::InputWait));
        assert_eq!(role("stepscope/output"), Some(Role::Output));
        assert_eq!(role("stepscope/augmentation"), Some(Role::Annotation));
        assert_eq!(role("stepscope/step#12"), Some(Role::StepMarker));
        assert_eq!(role("input"), None);
    }
}
