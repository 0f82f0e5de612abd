//! Every document that the code or another document cites is in the repository, and every page of docs/ is in its index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::run::Outcome;

/// Which files cite.
const CITING: &[&str] = &["*.rs", "*.ts", "*.svelte", "*.py", "*.mjs", "*.toml", "*.md", "*.yml"];

/// Looks at all files under version control.
pub(crate) fn check() -> Outcome {
    let output = Command::new("git").args(["ls-files", "--"]).args(CITING).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    let files: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect();
    // Documents by their names: `docs/run.md`, `[json](json.md)`, `API.md`.
    let cited = Regex::new(r"[A-Za-z0-9_./-]*[A-Za-z0-9_-]\.md\b").map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let prose = file.extension().is_some_and(|ending| ending == "md");
        let lines = text.lines().map(|line| (prose || is_comment(line), line));
        let names =
            lines.flat_map(|(told, line)| cited.find_iter(line).map(move |found| (told, found.as_str())));
        // A name inside of code may be any file's, unless it says that it is one of ours.
        let names = names.filter(|(told, name)| *told || name.starts_with("docs/")).map(|(_, name)| name);
        // A bare name is enough where it is clear from the text which one is meant.
        let by_name = |name: &str| !name.contains('/') && files.iter().any(|file| file.ends_with(name));
        let missing = names.filter(|name| !by_name(name) && !is_there(Path::new("."), file, name));
        wrong.extend(missing.map(|name| format!("{} cites {name}", file.display())));
    }
    wrong.extend(index_faults()?);
    if wrong.is_empty() {
        println!("==> citations\n    citations: every document that is cited is here");
        return Ok(());
    }
    Err(format!("documents are missing: {}", wrong.join(", ")))
}

/// How the index, the site's navigation and the folder differ.
fn index_faults() -> Result<Vec<String>, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"));
    let index = pages(&read("docs/index.md")?, r"\]\(([a-z-]+\.md)\)")?;
    let site = pages(&read("mkdocs.yml")?, r"- ([a-z-]+\.md)\b")?;
    let entries = fs::read_dir("docs").map_err(|error| format!("cannot read docs: {error}"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let missing = names.filter(|name| name.ends_with(".md") && name != "index.md" && !index.contains(name));
    let mut faults: Vec<String> = missing.map(|name| format!("docs/index.md does not list {name}")).collect();
    if site.get(1..) != Some(&index[..]) {
        faults.push("mkdocs.yml and docs/index.md list different pages".to_owned());
    }
    Ok(faults)
}

/// The pages that a text names, in its order.
fn pages(text: &str, pattern: &str) -> Result<Vec<String>, String> {
    let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
    Ok(pattern.captures_iter(text).map(|found| found[1].to_owned()).collect())
}

fn is_comment(line: &str) -> bool {
    ["//", "#", "*", "/*"].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// Is a document that `file` names there: from the root, beside the file, or in the folder of its crate?
fn is_there(root: &Path, file: &Path, name: &str) -> bool {
    if name.contains("://") || name.starts_with("//") {
        return true;
    }
    let name = name.trim_start_matches("./").trim_start_matches('/');
    let above = file.ancestors().skip(1);
    above.chain([Path::new("docs")]).any(|folder| root.join(folder).join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_from_where_they_are_cited() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let is_there = |file: &str, name: &str| is_there(&root, Path::new(file), name);
        assert!(is_there("README.md", "docs/json.md") && is_there("docs/cli.md", "json.md"));
        assert!(is_there("crates/serve/src/lib.rs", "API.md"));
        assert!(!is_there("crates/serve/src/lib.rs", "elsewhere.md"));
    }
}
