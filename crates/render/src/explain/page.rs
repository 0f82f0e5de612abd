//! `docs/findings.md`, made of the rules' own documentation.

use std::fmt::Write as _;

use stepscope_diagnose::Rule;
use stepscope_diagnose::rule::Doc;
use stepscope_diagnose::thresholds::THRESHOLDS;

/// What stands above the findings.
const PREFACE: &str = include_str!("preface.md");

/// The page.
pub fn page() -> String {
    let mut page = PREFACE.trim_end().to_owned();
    for threshold in THRESHOLDS {
        page = page.replace(&format!("{{{}}}", threshold.name), &threshold.text());
    }
    page.push_str("\n\n| name | value | reason |\n|:--|--:|:--|\n");
    for threshold in THRESHOLDS {
        let (value, reason) = (threshold.text(), threshold.reason.trim());
        let _ = writeln!(page, "| `{}` | {value} | {reason} |", threshold.name);
    }
    let rules = super::in_order();
    for group in Group::ALL {
        let of_group = rules.iter().filter(|rule| Group::of(rule) == group);
        let _ = write!(page, "\n# {}\n", group.title());
        for rule in of_group {
            section(rule, &mut page);
        }
    }
    page
}

fn section(rule: &Rule, page: &mut String) {
    let doc = rule.doc();
    let _ = write!(page, "\n## `{}`\n\n{}\n", rule.id, doc.line);
    for section in &doc.sections {
        let _ = write!(page, "\n### {}\n", section.heading);
        for paragraph in &section.paragraphs {
            let _ = write!(page, "\n{paragraph}\n");
        }
        let detected = section.heading == Doc::HEADINGS[1];
        if detected && !rule.thresholds.is_empty() {
            page.push('\n');
            for threshold in rule.thresholds {
                let (value, reason) = (threshold.text(), threshold.reason.trim());
                let _ = writeln!(page, "- `{}` = {value}: {reason}", threshold.name);
            }
        }
    }
}

/// The parts of the page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Group {
    Trust,
    Step,
    Kernels,
    Programs,
    Memory,
    Steps,
    Runs,
}

impl Group {
    const ALL: [Group; 7] = [
        Group::Trust,
        Group::Step,
        Group::Kernels,
        Group::Programs,
        Group::Memory,
        Group::Steps,
        Group::Runs,
    ];

    /// A finding stands with others that the same view shows.
    fn of(rule: &Rule) -> Group {
        match rule.view {
            _ if rule.is_about_trust() => Group::Trust,
            "kernels" => Group::Kernels,
            view if view.starts_with("hlo_") => Group::Programs,
            "memory" => Group::Memory,
            "steps" | "inference" => Group::Steps,
            "scalars" => Group::Runs,
            _ => Group::Step,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Group::Trust => "Can the recording be trusted?",
            Group::Step => "Where the step's time goes",
            Group::Kernels => "How kernels use the device",
            Group::Programs => "What compiled programs do",
            Group::Memory => "Memory",
            Group::Steps => "Steps and requests",
            Group::Runs => "What the curves of a run show",
        }
    }
}
