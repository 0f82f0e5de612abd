//! Our own names: what `python/stepscope.py` writes around the phases of a step with `stepscope.mark("input")`.
//!
//! The user says outright what a stretch of the loop is for, so these come before every framework's table.

use super::Role;

/// What all of them begin with.
const PREFIX: &str = "stepscope/";

const PHASES: &[(&str, Role)] = &[
    ("input", Role::InputWait),
    ("output", Role::Output),
    ("python", Role::Annotation),
    ("compute", Role::Op),
    ("sync", Role::Sync),
];

pub(super) fn role(name: &str) -> Option<Role> {
    let phase = name.strip_prefix(PREFIX)?;
    let known = PHASES.iter().find(|(known, _)| *known == phase);
    // A phase of the user's own making is still an annotation, and no op.
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
        assert_eq!(role("input"), None);
    }
}
