//! A rule's documentation: the `//!` lines of its file, taken apart into sections.

use super::Threshold;
use crate::thresholds;

/// The documentation of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    /// What it is, in one sentence.
    pub line: String,
    /// The sections, in the order of the file.
    pub sections: Vec<Section>,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its heading, e.g. `How to fix it`.
    pub heading: String,
    /// Its paragraphs and items of lists (`- …`), each in one line.
    pub paragraphs: Vec<String>,
}

impl Doc {
    /// The headings that every finding has, in this order.
    pub const HEADINGS: [&str; 4] = ["What it means", "How it is detected", "How to fix it", "How to check"];

    pub(super) fn parse(source: &str, own: &[Threshold]) -> Self {
        let mut line = Vec::new();
        let mut sections: Vec<Section> = Vec::new();
        let mut open = false;
        for text in source.lines().map(|text| text.trim_start_matches("//!").trim()) {
            if let Some(heading) = text.strip_prefix("# ") {
                sections.push(Section { heading: heading.to_owned(), paragraphs: Vec::new() });
                open = false;
            } else if text.is_empty() {
                open = false;
            } else {
                let paragraphs = sections.last_mut().map_or(&mut line, |section| &mut section.paragraphs);
                let goes_on = open && !text.starts_with("- ");
                match paragraphs.last_mut().filter(|_| goes_on) {
                    Some(paragraph) => {
                        paragraph.push(' ');
                        paragraph.push_str(text);
                    }
                    None => paragraphs.push(text.to_owned()),
                }
                open = true;
            }
        }
        for paragraph in sections.iter_mut().flat_map(|section| &mut section.paragraphs) {
            *paragraph = filled(paragraph, own);
        }
        Doc { line: line.join(" "), sections }
    }
}

/// `at least {INPUT} of the step` as `at least 20 % of the step`; a name that nobody declared stays.
fn filled(text: &str, own: &[Threshold]) -> String {
    let mut text = text.to_owned();
    for threshold in own.iter().chain(thresholds::THRESHOLDS) {
        text = text.replace(&format!("{{{}}}", threshold.name), &threshold.text());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Unit;

    #[test]
    fn comments_become_sections_with_values() {
        let source = "//! A line.\n//!\n//! # What it means\n//! One {A}\n//! more.\n//!\n//! Two {B}.\n//! - An\n//! item.\n//! # Next\n";
        let own = [Threshold { name: "A", value: 0.125, unit: Unit::Share, reason: "" }];
        let doc = Doc::parse(source, &own);
        assert_eq!(doc.line, "A line.");
        assert_eq!(doc.sections[0].paragraphs, ["One 12.5 % more.", "Two {B}.", "- An item."]);
        assert_eq!(doc.sections[1].heading, "Next");
    }

    #[test]
    fn only_the_comment_at_the_top_is_kept() {
        let source = b"//! a\n//! b\n\nuse x;\n//! c\n";
        assert_eq!(crate::rule::head_length(source), 12);
        assert_eq!(crate::rule::head_length(b"//! a"), 5);
        assert_eq!(crate::rule::head_length(b"use x;"), 0);
    }
}
