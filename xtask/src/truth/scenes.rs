//! The synthetic scenes with a known truth: their test writes one line per report, which is counted here.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::judge::Verdict;
use super::tally::{SCENES, Source};
use crate::run::{run, tests};

/// Where the test writes its lines to.
const ROWS: &str = "STEPSCOPE_SCENE_ROWS";

/// A report on a scene.
#[derive(Deserialize)]
struct Row {
    faults: usize,
    findings: Vec<Told>,
}

/// A finding in it.
#[derive(Deserialize)]
struct Told {
    id: String,
    warns: bool,
    leads: bool,
    /// The judgement of the scene; `None` if there is none.
    right: Option<bool>,
}

/// Runs all scenes and counts. The test itself fails if a scene is judged wrong; the counts are printed anyway.
pub(crate) fn judge() -> Result<Source, String> {
    let file = PathBuf::from("target/scene-rows.jsonl");
    let file = std::path::absolute(file).map_err(|error| error.to_string())?;
    let _ = fs::remove_file(&file);
    if let Err(error) = run("truth: scenes", tests().args(["--test", "scenes"]).env(ROWS, &file)) {
        println!("    {error}");
    }
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("no scene was played: {}: {error}", file.display()))?;
    let _ = fs::remove_file(&file);
    counted(&text)
}

fn counted(lines: &str) -> Result<Source, String> {
    let mut source = Source::new(SCENES);
    for line in lines.lines() {
        let row: Row = serde_json::from_str(line).map_err(|error| format!("scenes: {error}: {line}"))?;
        source.cases += 1;
        source.right += usize::from(row.faults == 0);
        for told in row.findings {
            let verdict = match told.right {
                Some(true) => Verdict::Right,
                Some(false) => Verdict::Wrong,
                None => Verdict::Unjudged,
            };
            source.findings.entry(told.id).or_default().count(told.warns, told.leads, verdict);
        }
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted() {
        let told = r#"{"faults": 0, "findings": [{"id": "input-bound", "warns": true, "leads": true, "right": true}]}
{"faults": 2, "findings": [{"id": "input-bound", "warns": true, "leads": false, "right": null}]}"#;
        let source = counted(told).unwrap();
        assert_eq!((source.cases, source.right), (2, 1));
        let tally = source.findings["input-bound"];
        assert_eq!((tally.fires, tally.leads, tally.right, tally.wrong), (2, 1, 1, 0));
    }
}
