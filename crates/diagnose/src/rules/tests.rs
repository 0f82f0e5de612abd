//! Every rule is complete: one id, a view, documentation under the fixed headings with every threshold filled in.

use std::collections::BTreeSet;

use super::RULES;
use crate::rule::Doc;

#[test]
fn every_rule_is_registered_once() {
    let unique: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(unique.len(), RULES.len());
}

#[test]
fn every_rule_is_documented_under_the_fixed_headings() {
    for rule in RULES {
        let doc = rule.doc();
        let id = rule.id;
        let headings: Vec<&str> = doc.sections.iter().map(|section| section.heading.as_str()).collect();
        assert_eq!(headings, Doc::HEADINGS, "{id}");
        assert!(doc.line.ends_with('.') && doc.line.len() <= 100, "{id}: {}", doc.line);
        for section in &doc.sections {
            assert!(!section.paragraphs.is_empty(), "{id}: {}", section.heading);
            for (place, paragraph) in section.paragraphs.iter().enumerate() {
                let list_follows =
                    section.paragraphs.get(place + 1).is_some_and(|next| next.starts_with("- "));
                let end = if list_follows && !paragraph.starts_with("- ") { ':' } else { '.' };
                assert!(paragraph.ends_with(end), "{id}: {paragraph}");
                assert_eq!(paragraph.matches('`').count() % 2, 0, "{id}: {paragraph}");
            }
        }
    }
}

#[test]
fn documentation_cites_every_threshold_by_its_value() {
    for rule in RULES {
        for threshold in rule.thresholds {
            let cited = format!("{{{}}}", threshold.name);
            assert!(rule.source.contains(&cited), "{} does not cite {cited}", rule.id);
        }
        let doc = rule.doc();
        let text: Vec<&String> = doc.sections.iter().flat_map(|section| &section.paragraphs).collect();
        for paragraph in text {
            let left = paragraph.split('{').skip(1).filter_map(|rest| rest.split('}').next());
            let unknown: Vec<&str> =
                left.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')).collect();
            assert!(unknown.is_empty(), "{}: no threshold called {unknown:?}", rule.id);
        }
    }
}

#[test]
fn documentation_is_that_of_the_rule_s_own_file() {
    let sources: BTreeSet<&str> = RULES.iter().map(|rule| rule.source).collect();
    assert_eq!(sources.len(), RULES.len(), "two rules include the same file");
}
