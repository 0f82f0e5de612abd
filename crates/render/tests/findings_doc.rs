//! docs/findings.md matches the code: every threshold with its value, every finding with a section.

#![expect(clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use stepscope_diagnose::FindingId;
use stepscope_diagnose::rules::RULES;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The constants from the source.
fn thresholds() -> BTreeMap<String, f64> {
    let constant = |line: &str| {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(':')?;
        let value = rest.split_once('=')?.1.trim().trim_end_matches(';').replace('_', "");
        Some((name.to_owned(), value.parse().ok()?))
    };
    read("crates/diagnose/src/thresholds.rs").lines().filter_map(constant).collect()
}

/// `20 %` as 0.2, `1.1` as it is.
fn value(text: &str) -> Option<f64> {
    match text.trim().strip_suffix('%') {
        Some(per_cent) => per_cent.trim().parse::<f64>().ok().map(|value| value / 100.0),
        None => text.trim().parse().ok(),
    }
}

fn same(written: Option<f64>, real: f64) -> bool {
    written.is_some_and(|written| (written - real).abs() < 1e-9)
}

#[test]
fn the_table_has_every_threshold_with_its_value() {
    let doc = read("docs/findings.md");
    let rows: BTreeMap<String, String> = doc
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            Some((name.to_owned(), (*cells.get(2)?).to_owned()))
        })
        .collect();
    let real = thresholds();
    assert!(real.len() > 10, "the source reads otherwise than this test thinks: {real:?}");
    assert_eq!(rows.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
    for (name, real) in real {
        assert!(same(value(&rows[&name]), real), "`{name}` is {real}, the table says {}", rows[&name]);
    }
}

#[test]
fn the_text_quotes_thresholds_as_they_are() {
    let (doc, real) = (read("docs/findings.md"), thresholds());
    let mut quotes = 0;
    for (name, real) in real {
        for rest in doc.split(&format!("`{name}` (")).skip(1) {
            let quoted = rest.split(')').next().unwrap_or_default();
            assert!(same(value(quoted), real), "`{name}` is {real}, the text says {quoted}");
            quotes += 1;
        }
    }
    assert!(quotes > 20, "only {quotes} quotes found");
}

#[test]
fn every_finding_has_a_section_with_all_four_parts() {
    let doc = read("docs/findings.md");
    let sections: BTreeMap<&str, &str> =
        doc.split("\n## `").skip(1).filter_map(|section| section.split_once("`\n")).collect();
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).map(FindingId::key).collect();
    for id in &ids {
        let section = sections.get(id).unwrap_or_else(|| panic!("no section for {id}"));
        for part in ["**Means.**", "**Detected.**", "**Fix.**", "**Verify.**"] {
            assert!(section.contains(part), "{id} has no {part}");
        }
    }
    assert!(
        sections.keys().all(|id| ids.contains(id)),
        "a section for what no rule finds: {:?}",
        sections.keys()
    );
}
