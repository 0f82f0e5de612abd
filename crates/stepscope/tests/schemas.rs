//! `docs/schema/` is the truth about every `--json`: real output of every command fits its schema, and every schema that
//! the help names is there. `STEPSCOPE_WRITE_DOCS=1` writes the schemas and the list of views.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use stepscope_results::views::VIEWS;
use stepscope_testkit::corpus::{corpus, files_below};
use support::{generated, root, schema, stepscope};

/// What a command writes to standard output.
fn written<S: AsRef<OsStr>>(args: &[S]) -> Value {
    let output = stepscope().args(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let args: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        panic!("{args:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Every command that reads one recording, on this one.
fn read_with_everything(path: &str) {
    schema::fits(&written(&["report", path, "--json"]));
    schema::fits(&written(&["info", path, "--json"]));
    for view in VIEWS {
        let with = |options: &[&str]| -> Vec<String> {
            view.command().chain([path, "--json"]).chain(options.iter().copied()).map(str::to_owned).collect()
        };
        schema::fits(&written(&with(&[])));
        for grouping in view.groupings {
            schema::fits(&written(&with(&["--by", grouping.by])));
        }
    }
}

fn fixtures() -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(root().join("fixtures"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().join("plugins").is_dir() || entry.file_name() == "torch-train")
        .map(|entry| format!("fixtures/{}", entry.file_name().to_string_lossy()))
        .collect();
    found.sort();
    found
}

#[test]
fn what_is_said_of_fixtures_fits() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 4, "{fixtures:?}");
    for path in &fixtures {
        read_with_everything(path);
    }
    schema::fits(&written(&["report", "fixtures/tf-train", "--json", "--whole"]));
    schema::fits(&written(&["steps", "fixtures/tf-train", "--json", "--steps", "7..9"]));
    schema::fits(&written(&["sql", "fixtures/tf-train", "--json", "SELECT *, 1.5, NULL, x'00' FROM step"]));
    schema::fits(&written(&["demo", "--json"]));
    schema::fits(&written(&["explain", "--json"]));
}

#[test]
fn what_is_said_of_real_profiles_of_every_format_fits() {
    // The smallest few of each folder: all formats and devices, within seconds.
    for folder in ["nsys", "ncu", "nvidia-smi", "pytorch", "labelled", "xplane-public"] {
        let Some(folder) = corpus(folder) else { return };
        let mut files: Vec<(u64, PathBuf)> = files_below(&folder)
            .into_iter()
            .filter_map(|file| Some((fs::metadata(&file).ok()?.len(), file)))
            .filter(|(size, _)| *size > 2_000)
            .collect();
        files.sort();
        let reads =
            |file: &PathBuf| stepscope().arg("info").arg(file).output().unwrap().status.code() == Some(0);
        let readable = files.into_iter().map(|(_, file)| file).filter(reads).take(3);
        for file in readable {
            read_with_everything(file.to_str().unwrap());
        }
    }
}

#[test]
fn comparisons_gates_and_journals_fit() {
    let (one, other) = ("fixtures/tf-input-bound", "fixtures/tf-train");
    schema::fits(&written(&["compare", one, other, "--json"]));
    schema::fits(&written(&["compare", one, one, "--json"]));
    schema::fits(&written(&["gate", one, one, "--json"]));
    schema::fits(&written(&["gate", one, other, "--json", "--metric", "finding:retracing"]));
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal.jsonl");
    let journal = journal.to_str().unwrap();
    for (path, note) in [(one, "before"), (one, "after")] {
        let output =
            stepscope().args(["journal", "add", path, "--note", note, "--file", journal]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    schema::fits(&written(&["journal", "show", "--file", journal, "--json"]));
}

#[test]
fn runs_and_monitors_fit() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("run.json");
    let steps = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo step $i; sleep 0.02; done";
    let run = |script: &str| -> Value {
        let output =
            stepscope().args(["run", "--json"]).arg(&report).args(["--", "sh", "-c", script]).output();
        assert!(output.unwrap().status.success());
        serde_json::from_slice(&fs::read(&report).unwrap()).unwrap()
    };
    let (stepping, silent) = (run(steps), run("true"));
    assert!(stepping["steps"].is_object() && silent["steps"].is_null());
    schema::fits(&stepping);
    schema::fits(&silent);
    schema::fits(&written(&["monitor", "--json", "--duration", "300ms"]));
}

#[test]
fn every_schema_that_is_named_exists_and_every_one_that_exists_is_named() {
    if std::env::var_os("STEPSCOPE_WRITE_DOCS").is_some() {
        generated::write();
    }
    let text = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let named =
        text.split("stepscope.").skip(1).filter_map(|rest| rest.split_once(".v1")).map(|(name, _)| name);
    let mut named: BTreeSet<String> = named.filter(|name| !name.contains(' ')).map(str::to_owned).collect();
    named.extend(VIEWS.iter().map(|view| view.name.to_owned()));
    // One line per recording, where --every asks for it.
    named.insert("capture".to_owned());
    // The log beside a profile.
    named.insert("host".to_owned());
    // What the page asks the server for.
    named.extend(["fleet-page", "fleet-steps"].map(str::to_owned));
    let files = fs::read_dir(schema::folder()).unwrap().flatten().filter(|entry| entry.path().is_file());
    let files =
        files.map(|entry| entry.file_name().to_string_lossy().trim_end_matches(".v1.json").to_owned());
    let files: BTreeSet<String> = files.collect();
    assert_eq!(named, files);
    let page = fs::read_to_string(root().join("docs/json.md")).unwrap();
    for name in &files {
        let title = &schema::read(&format!("{name}.v1.json"))["title"];
        assert_eq!(title, &format!("stepscope.{name}.v1"));
        assert!(page.contains(&format!("schema/{name}.v1.json")), "docs/json.md does not list {name}");
    }
    assert!(page == generated::with_list(&page), "docs/json.md is out of date; run cargo xtask docs --write");
}

#[test]
fn every_schema_is_what_its_declaration_says() {
    for (name, text) in generated::schemas() {
        let written = fs::read_to_string(schema::folder().join(format!("{name}.v1.json"))).unwrap();
        assert!(written == text, "{name}: run cargo xtask docs --write");
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "ms": {"type": ["number", "null"]},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        },
        "required": ["name"],
        "$defs": {"row": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    });
    let wrong = |document: Value| schema::wrong(&schema, &document);
    assert_eq!(wrong(json!({"name": "x", "kind": "a", "ms": null, "rows": [1, null]})), Vec::<String>::new());
    for (document, what) in [
        (json!({}), ": name is missing"),
        (json!({"name": 1}), ".name: 1 is not \"string\""),
        (json!({"name": "x", "more": 1}), ": more is not in the schema"),
        (json!({"name": "x", "kind": "c"}), ".kind: \"c\" is none of [\"a\",\"b\"]"),
        (json!({"name": "x", "rows": [1.5]}), ".rows[0]: 1.5 is not \"integer\""),
    ] {
        assert_eq!(wrong(document), [what]);
    }
    let unknown = json!({"type": "object", "minProperties": 1});
    assert_eq!(schema::wrong(&unknown, &json!({})).len(), 1, "a word that nothing checks");
}
