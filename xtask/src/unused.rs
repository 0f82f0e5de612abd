//! Dependencies that no source file of their crate names. They cost build time, and say something wrong about the crate.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::{Outcome, metadata, rust_files};

/// Dependencies that are there for their features alone, which another dependency needs.
const FOR_FEATURES: [(&str, &str); 1] = [("stepscope-remote", "reqwest")];

/// Examines the manifests and sources of the workspace.
pub(crate) fn check() -> Outcome {
    let mut unused = Vec::new();
    for package in metadata()?["packages"].as_array().map_or(&[][..], Vec::as_slice) {
        let code = Code::read(package["manifest_path"].as_str().unwrap_or_default())?;
        unused.extend(unused_in(package, &code));
    }
    if unused.is_empty() {
        println!("==> unused dependencies\n    unused dependencies: none");
        return Ok(());
    }
    Err(format!("no source file names these dependencies of its crate: {}", unused.join(", ")))
}

/// The sources of a crate without comments, by what may use which kind of dependency.
struct Code {
    /// `src/` and, for fuzzing, `fuzz_targets/`.
    product: String,
    /// `build.rs`.
    build: String,
    /// Everything, with tests and benches.
    all: String,
}

impl Code {
    fn read(manifest: &str) -> Result<Self, String> {
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
        let read = |path: &Path| {
            let text = fs::read_to_string(path);
            text.map(|text| without_comments(&text))
                .map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let mut code = Self { product: String::new(), build: String::new(), all: String::new() };
        for file in rust_files(folder)? {
            let text = read(&file)?;
            let inside = file.strip_prefix(folder).unwrap_or(&file);
            code.all.push_str(&text);
            if inside == Path::new("build.rs") {
                code.build.push_str(&text);
            } else if inside.starts_with("src") || inside.starts_with("fuzz_targets") {
                code.product.push_str(&text);
            }
        }
        Ok(code)
    }
}

fn without_comments(text: &str) -> String {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| [line, "\n"]).collect()
}

fn unused_in(package: &Value, code: &Code) -> Vec<String> {
    let crate_name = package["name"].as_str().unwrap_or_default();
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    let names = dependencies.iter().filter_map(|dependency| {
        let name = dependency["rename"].as_str().or(dependency["name"].as_str())?;
        let code = match dependency["kind"].as_str() {
            Some("dev") => &code.all,
            Some("build") => &code.build,
            _ => &code.product,
        };
        let needed = FOR_FEATURES.contains(&(crate_name, name)) || names_crate(code, &name.replace('-', "_"));
        (!needed).then(|| format!("{crate_name} → {name}"))
    });
    names.collect()
}

/// Whether the code has `name` as a word of its own.
fn names_crate(code: &str, name: &str) -> bool {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        !code[..at].ends_with(part_of_word) && !code[at + name.len()..].starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(kind: Option<&str>, product: &str, tests: &str) -> Vec<String> {
        let code = Code {
            product: without_comments(product),
            build: String::new(),
            all: without_comments(&format!("{product}{tests}")),
        };
        let dependency = serde_json::json!({"name": "rustc-hash", "kind": kind});
        unused_in(&serde_json::json!({"name": "stepscope-new", "dependencies": [dependency]}), &code)
    }

    #[test]
    fn a_dependency_that_nothing_names_is_found() {
        assert_eq!(unused(None, "use rustc_hash::FxHashMap;\n", ""), [""; 0]);
        assert_eq!(unused(None, "use std::fs;\n", ""), ["stepscope-new → rustc-hash"]);
        assert_eq!(unused(None, "// rustc_hash would be faster.\n", ""), ["stepscope-new → rustc-hash"]);
        assert_eq!(unused(None, "use my_rustc_hash::A;\n", ""), ["stepscope-new → rustc-hash"]);
        assert_eq!(unused(None, "", "use rustc_hash::FxHashMap;\n"), ["stepscope-new → rustc-hash"]);
        assert_eq!(unused(Some("dev"), "", "use rustc_hash::FxHashMap;\n"), [""; 0]);
        assert_eq!(unused(Some("build"), "use rustc_hash::A;\n", ""), ["stepscope-new → rustc-hash"]);
    }
}
