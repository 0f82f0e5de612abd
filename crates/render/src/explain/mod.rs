//! What a finding means, how it is detected, how to fix it and how to check: the documentation of the rules, for the
//! terminal (`stepscope explain`), for programs, and as the page `docs/findings.md`.

mod page;

use std::io::{self, Write};

use serde_json::json;
use stepscope_diagnose::Rule;
use stepscope_diagnose::rule::{Doc, Section, Threshold};
use stepscope_diagnose::rules::RULES;

use crate::report::wrapped;
use crate::style::Style;

pub use page::page;

/// Lines are at most this long, even if the terminal is wider: longer ones read badly.
const WIDEST: usize = 100;

/// All rules in the order of their ids, those about trust first.
pub fn in_order() -> Vec<&'static Rule> {
    let mut rules: Vec<&Rule> = RULES.to_vec();
    rules.sort_by_key(|rule| (!rule.is_about_trust(), rule.id));
    rules
}

/// Lists the findings, one line each.
pub fn write_list(style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    for rule in in_order() {
        writeln!(out, "{}  {}", style.bold(&format!("{:<width$}", rule.id)), rule.doc().line)?;
    }
    Ok(())
}

/// Explains one finding.
pub fn write_text(rule: &Rule, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = style.width.map_or(WIDEST, |width| width.clamp(40, WIDEST));
    let doc = rule.doc();
    writeln!(out, "{}", style.bold(rule.id))?;
    paragraph(&doc.line, width, "", out)?;
    for Section { heading, paragraphs } in &doc.sections {
        writeln!(out, "\n{}", style.bold(heading))?;
        for (place, text) in paragraphs.iter().enumerate() {
            // A blank line between paragraphs of prose; lines for frameworks form a list.
            if place > 0 && heading != Doc::HEADINGS[2] {
                writeln!(out)?;
            }
            paragraph(text, width, "  ", out)?;
        }
    }
    if !rule.thresholds.is_empty() {
        writeln!(out, "\n{}", style.bold("Thresholds"))?;
        for threshold in rule.thresholds {
            paragraph(&threshold_line(threshold), width, "  ", out)?;
        }
    }
    writeln!(out, "\n{}", style.dim(&format!("More: stepscope {} PATH", rule.command())))
}

fn paragraph(text: &str, width: usize, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    wrapped(text, width, indent.len()).iter().try_for_each(|line| writeln!(out, "{indent}{line}"))
}

/// `INPUT = 20 %: Twice what a well-fed loop shows.`
fn threshold_line(threshold: &Threshold) -> String {
    format!("{} = {}: {}", threshold.name, threshold.text(), threshold.reason.trim())
}

/// Findings for programs: `stepscope.explain.v1`, one row per finding.
pub fn write_json(rules: &[&Rule], out: &mut dyn Write) -> io::Result<()> {
    let section = |doc: &Doc, heading: &str| {
        let found = doc.sections.iter().find(|section| section.heading == heading);
        found.map_or(Vec::new(), |section| section.paragraphs.clone())
    };
    let row = |rule: &&Rule| {
        let doc = rule.doc();
        let [means, detected, fix, check] = Doc::HEADINGS.map(|heading| section(&doc, heading));
        let thresholds: Vec<_> = rule
            .thresholds
            .iter()
            .map(|it| json!({"name": it.name, "value": it.value, "text": it.text(), "reason": it.reason.trim()}))
            .collect();
        json!({
            "id": rule.id, "title": rule.title(), "about_trust": rule.is_about_trust(), "view": rule.view,
            "summary": doc.line, "means": means, "detected": detected, "fix": fix, "check": check,
            "thresholds": thresholds,
        })
    };
    let rows: Vec<_> = rules.iter().map(row).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({"schema": "stepscope.explain.v1", "rows": rows}))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use stepscope_diagnose::rules::find;

    use super::*;

    fn text(style: Style) -> String {
        let mut out = Vec::new();
        write_text(find("input-bound").unwrap(), style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_finding_is_explained_under_all_headings() {
        let text = text(Style::PLAIN);
        for heading in Doc::HEADINGS {
            assert!(text.contains(&format!("\n{heading}\n")), "{text}");
        }
        assert!(text.contains("at least 20 % of the step"), "{text}");
        assert!(text.contains("  INPUT = 20 %: Twice"), "{text}");
        assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= WIDEST), "{text}");
    }

    #[test]
    fn the_terminal_decides_width_and_colour() {
        let narrow = text(Style { color: true, width: Some(60) });
        assert!(narrow.starts_with("\x1b[1minput-bound\x1b[0m\n"), "{narrow}");
        let plain: Vec<&str> = narrow.lines().filter(|line| !line.contains('\x1b')).collect();
        assert!(
            plain.iter().all(|line| line.chars().count() <= 60 || !line.trim().contains(' ')),
            "{narrow}"
        );
    }

    #[test]
    fn programs_get_every_finding() {
        let mut out = Vec::new();
        write_json(&in_order(), &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let rows = value["rows"].as_array().unwrap();
        assert_eq!(rows.len(), RULES.len());
        assert!(rows.iter().all(|row| !row["fix"].as_array().unwrap().is_empty()));
    }
}
