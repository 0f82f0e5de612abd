//! The direction of the data: read → trace → analyse → diagnose → results → render. A crate knows the ones before it and
//! nothing about those after it; this check fails if a dependency points the other way.

use serde_json::Value;

use crate::run::{Outcome, metadata};

/// The workspace crates that each crate may depend on. An unlisted crate may depend on none.
const ALLOWED: &[(&str, &[&str])] = &[
    ("stepscope-text", &[]),
    ("stepscope-trace", &[]),
    ("stepscope-tfgraph", &[]),
    ("stepscope-wire", &[]),
    ("stepscope-storage", &[]),
    ("stepscope-sqlite", &[]),
    (
        "stepscope-read",
        &["stepscope-trace", "stepscope-tfgraph", "stepscope-wire", "stepscope-storage", "stepscope-sqlite"],
    ),
    ("stepscope-hlo", &["stepscope-wire"]),
    ("stepscope-remote", &[]),
    ("stepscope-export", &["stepscope-text", "stepscope-trace", "stepscope-read"]),
    ("stepscope-tfprof", &["stepscope-tfgraph"]),
    ("stepscope-analyze", &["stepscope-trace", "stepscope-hlo"]),
    ("stepscope-diagnose", &["stepscope-text", "stepscope-trace", "stepscope-analyze"]),
    ("stepscope-results", &["stepscope-text", "stepscope-trace", "stepscope-analyze", "stepscope-diagnose"]),
    (
        "stepscope-render",
        &[
            "stepscope-text",
            "stepscope-trace",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-results",
        ],
    ),
    (
        "stepscope-fleet",
        &[
            "stepscope-text",
            "stepscope-trace",
            "stepscope-storage",
            "stepscope-read",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-results",
        ],
    ),
    (
        "stepscope-session",
        &[
            "stepscope-text",
            "stepscope-trace",
            "stepscope-read",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-results",
            "stepscope-tfgraph",
            "stepscope-tfprof",
        ],
    ),
    (
        "stepscope-query",
        &[
            "stepscope-trace",
            "stepscope-sqlite",
            "stepscope-read",
            "stepscope-export",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-results",
            "stepscope-session",
            "stepscope-tfprof",
        ],
    ),
    (
        "stepscope-timeline",
        &["stepscope-trace", "stepscope-analyze", "stepscope-results", "stepscope-session"],
    ),
    (
        "stepscope-serve",
        &[
            "stepscope-timeline",
            "stepscope-trace",
            "stepscope-storage",
            "stepscope-read",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-render",
            "stepscope-results",
            "stepscope-fleet",
            "stepscope-session",
            "stepscope-query",
            "stepscope-tfgraph",
            "stepscope-tfprof",
        ],
    ),
    ("stepscope-frame", &["stepscope-trace", "stepscope-export", "stepscope-results", "stepscope-session"]),
    (
        "stepscope-agents",
        &[
            "stepscope-read",
            "stepscope-diagnose",
            "stepscope-render",
            "stepscope-results",
            "stepscope-session",
            "stepscope-query",
        ],
    ),
    ("stepscope-capture", &["stepscope-trace", "stepscope-read", "stepscope-results"]),
    (
        "stepscope",
        &[
            "stepscope-trace",
            "stepscope-storage",
            "stepscope-read",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-export",
            "stepscope-fleet",
            "stepscope-remote",
            "stepscope-render",
            "stepscope-results",
            "stepscope-session",
            "stepscope-query",
            "stepscope-serve",
            "stepscope-agents",
            "stepscope-capture",
            "stepscope-tfprof",
        ],
    ),
    (
        "stepscope-python",
        &[
            "stepscope",
            "stepscope-trace",
            "stepscope-read",
            "stepscope-analyze",
            "stepscope-diagnose",
            "stepscope-render",
            "stepscope-results",
            "stepscope-session",
            "stepscope-fleet",
            "stepscope-query",
            "stepscope-frame",
        ],
    ),
];

/// Only tests may use it.
const TESTKIT: &str = "stepscope-testkit";
/// A test in the form of a program: it may use everything.
const FUZZ: &str = "stepscope-fuzz";

/// Examines the manifests of the workspace.
pub(crate) fn check() -> Outcome {
    let wrong = wrong_arrows(&metadata()?);
    if wrong.is_empty() {
        println!("==> arrows\n    arrows: all dependencies point the right way");
        return Ok(());
    }
    Err(format!("dependencies point the wrong way: {}; see ARCHITECTURE.md", wrong.join(", ")))
}

fn wrong_arrows(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let from = package["name"].as_str().unwrap_or_default();
        let allowed = ALLOWED.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, allowed)| allowed);
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            let to = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"] == "dev" || from == FUZZ;
            let fine = if in_tests { to != "stepscope" } else { allowed.contains(&to) && to != TESTKIT };
            if ours.contains(&to) && !fine {
                wrong.push(format!("{from} → {to}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last stage. Only what shows something to people may use it; all others take results as they are.
    const LAST: &str = "stepscope-render";
    const FRONT_ENDS: [&str; 4] = ["stepscope", "stepscope-agents", "stepscope-python", "stepscope-serve"];

    #[test]
    fn only_front_ends_may_show_something() {
        for (from, allowed) in ALLOWED {
            assert!(!allowed.contains(&LAST) || FRONT_ENDS.contains(from), "{from} → {LAST}");
        }
    }

    fn workspace(from: &str, to: &str, kind: Option<&str>) -> Value {
        let package =
            |name: &str, dependencies: Value| serde_json::json!({"name": name, "dependencies": dependencies});
        serde_json::json!({"packages": [
            package(from, serde_json::json!([{"name": to, "kind": kind}, {"name": "serde", "kind": null}])),
            package(to, serde_json::json!([])),
        ]})
    }

    #[test]
    fn arrows_against_the_data_are_found() {
        let wrong = |from, to, kind| wrong_arrows(&workspace(from, to, kind)).len();
        assert_eq!(wrong("stepscope-read", "stepscope-trace", None), 0);
        assert_eq!(wrong("stepscope-trace", "stepscope-read", None), 1);
        assert_eq!(wrong("stepscope-analyze", "stepscope-read", None), 1);
        assert_eq!(wrong("stepscope-analyze", "stepscope-read", Some("dev")), 0);
        assert_eq!(wrong("stepscope-read", "stepscope-testkit", None), 1);
        assert_eq!(wrong("stepscope-render", "stepscope", Some("dev")), 1);
        assert_eq!(
            wrong("stepscope-new", "stepscope-trace", None),
            1,
            "unlisted crates must be listed first"
        );
    }
}
