//! Are the crates fit for crates.io? Everything that a crate compiles lies in its own folder, and cargo accepts each.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::run::{Outcome, run, the_cargo};

/// Only used inside the repository, or published as a wheel.
const OWN: &[&str] = &["xtask", "stepscope-fuzz", "stepscope-testkit", "stepscope-frame", "stepscope-python"];

/// Looks at the files that sources include, then lets cargo pack every crate.
pub(crate) fn check() -> Outcome {
    let escaping = escaping()?;
    if !escaping.is_empty() {
        return Err(format!(
            "a published crate has nothing from outside its folder: {}; copy it in",
            escaping.join(", ")
        ));
    }
    pack(&["--no-verify", "--quiet"])
}

/// Builds the page into the crate that carries it, then packs every crate and compiles it from the package.
pub(crate) fn whole() -> Outcome {
    let page = std::path::absolute("crates/serve/page").map_err(|error| error.to_string())?;
    let mut build = Command::new("npm");
    build.args(["run", "build", "--", "--emptyOutDir", "--outDir"]).arg(page).current_dir("ui");
    run("package: page", &mut build)?;
    pack(&[])
}

fn pack(how: &[&str]) -> Outcome {
    let mut command = the_cargo();
    // The built page is not in version control, and work in progress may be packed as well.
    command.args(["package", "--workspace", "--allow-dirty"]).args(how);
    OWN.iter().for_each(|name| {
        command.args(["--exclude", name]);
    });
    run("package", &mut command)
}

/// Files that a crate's sources include from outside its folder.
fn escaping() -> Result<Vec<String>, String> {
    let included =
        Regex::new(r#"include(?:_str|_bytes)?!\(\s*"([^"]+)"\s*\)"#).map_err(|error| error.to_string())?;
    let crates = fs::read_dir("crates").map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for folder in crates.flatten().map(|entry| entry.path().join("src")) {
        for file in sources(&folder) {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let paths = included.captures_iter(&text).filter_map(|found| found.get(1));
            let outside = paths.filter(|path| leaves(&folder, &file, path.as_str()));
            wrong.extend(outside.map(|path| format!("{} includes {}", file.display(), path.as_str())));
        }
    }
    wrong.sort();
    Ok(wrong)
}

/// Does a path that `file` includes lead out of the crate whose sources lie in `folder`?
fn leaves(folder: &Path, file: &Path, path: &str) -> bool {
    let (Some(root), Some(from)) = (folder.parent(), file.parent()) else { return true };
    let mut whole = PathBuf::new();
    for part in from.join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    !whole.starts_with(root)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let nested = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_out_of_the_crate_is_found() {
        let leaves = |path| leaves(Path::new("crates/a/src"), Path::new("crates/a/src/deep/file.rs"), path);
        assert!(!leaves("page.css") && !leaves("../../sample/x.pb"));
        assert!(leaves("../../../fixtures/x.pb") && leaves("../../../../README"));
    }
}
