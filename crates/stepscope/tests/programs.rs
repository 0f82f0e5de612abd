//! Compiled programs as a user asks about them, on small real recordings. `tools/record_programs.py` made them: two versions of
//! a JAX program and one that runs slower (`version*`), and TensorFlow's automatic clusters around an op that XLA does not
//! compile (`clusters`).
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::{ids, root, stepscope};

fn recording(name: &str) -> String {
    root().join("crates/stepscope/tests/recordings").join(name).display().to_string()
}

fn text(args: &[&str]) -> String {
    let output = stepscope().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn answer(args: &[&str]) -> Value {
    let text = text(&[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text:.200}"))
}

fn rows<'v>(table: &'v Value, key: &str) -> &'v [Value] {
    table[key].as_array().unwrap()
}

/// The parts of the program that differ between two recordings.
fn parts(base: &str, new: &str) -> Vec<Value> {
    rows(&answer(&["compare", &recording(base), &recording(new)]), "programs").to_vec()
}

#[test]
fn a_wider_layer_is_more_work_and_the_rest_of_the_program_is_not() {
    let found = parts("version", "version_wider");
    let of = |scope: &str| {
        found.iter().filter(|part| part["name"].as_str().unwrap().starts_with(scope)).collect::<Vec<_>>()
    };
    let products = |parts: Vec<&Value>| {
        parts
            .into_iter()
            .filter(|part| part["name"].as_str().unwrap().ends_with("dot_general"))
            .cloned()
            .collect::<Vec<_>>()
    };
    let wider = products(of("mlp/"));
    assert!(!wider.is_empty(), "{found:#?}");
    for part in wider {
        assert!(part["why"].as_str().unwrap().ends_with("more work"), "{part}");
        let ratio = part["new_flops"].as_f64().unwrap() / part["base_flops"].as_f64().unwrap();
        assert!((ratio - 2.0).abs() < 0.05, "twice as many products: {part}");
    }
    for part in products(of("embed/")) {
        assert!(part["why"].as_str().unwrap().starts_with("same work"), "{part}");
    }
}

#[test]
fn the_same_program_on_one_thread_does_the_same_work_more_slowly() {
    let found = parts("version", "version_slower");
    assert!(!found.is_empty());
    for part in &found {
        assert!(part["why"].as_str().unwrap().starts_with("same work"), "{part}");
    }
    let slower = |part: &&Value| part["why"].as_str().unwrap().ends_with("slower");
    let products = found.iter().filter(|part| part["name"].as_str().unwrap().ends_with("dot_general"));
    assert!(products.clone().any(|part| slower(&part)), "{found:#?}");
}

#[test]
fn every_output_of_a_comparison_says_why_parts_of_a_program_differ() {
    let (base, new) = (recording("version"), recording("version_wider"));
    let folder = tempfile::tempdir().unwrap();
    let page: PathBuf = folder.path().join("page.html");
    text(&["compare", &base, &new, "--html", page.to_str().unwrap()]);
    let markdown = text(&["compare", &base, &new, "--markdown"]);
    for (what, said) in [
        ("text", text(&["compare", &base, &new])),
        ("markdown", markdown),
        ("html", std::fs::read_to_string(&page).unwrap()),
    ] {
        assert!(said.contains("more work"), "{what}: {said:.2000}");
    }
}

#[test]
fn clusters_show_the_views_of_other_programs() {
    let path = recording("clusters");
    let modules = answer(&["hlo", "modules", &path]);
    assert_eq!(rows(&modules, "rows").len(), 2);
    for row in rows(&modules, "rows") {
        assert_eq!(row["runs"], 8, "runs that TensorFlow does not number are counted by executions: {row}");
        assert!(row["flops"].as_u64().unwrap() > 8 * 2 * 256 * 512 * 1024, "{row}");
    }
    let ops = answer(&["hlo", "ops", &path]);
    let first = &rows(&ops, "rows")[0];
    assert_eq!(first["category"], "matmul", "{first}");
    assert_eq!(
        first["source"],
        Value::Null,
        "a placeholder of TensorFlow is no line of anybody's program: {first}"
    );
}

#[test]
fn ops_outside_of_clusters_are_named_with_the_reason_and_borders_with_their_cost() {
    let table = answer(&["hlo", "outside", &recording("clusters")]);
    let outside: Vec<&Value> = rows(&table, "rows").iter().filter(|row| row["place"] == "outside").collect();
    let unique = outside.iter().find(|row| row["op"] == "lookup/Unique").unwrap();
    assert_eq!(unique["why"], "the size of its result depends on values");
    let passed = |way: &str| {
        let border =
            |row: &&Value| row["op_type"] == way && row["op"].as_str().unwrap().contains("cluster_0");
        rows(&table, "rows").iter().find(border).unwrap().clone()
    };
    assert_eq!(passed("values in")["count"], 8);
    assert!(passed("values out")["values"].as_u64().unwrap() >= 8);
    let jax = answer(&["hlo", "outside", &recording("version")]);
    assert_eq!(rows(&jax, "rows").len(), 0, "all of JAX is compiled");
}

#[test]
fn an_allocator_s_peak_is_explained_by_the_plan_of_the_program() {
    let memory = answer(&["memory", &recording("clusters")]);
    let allocator = &rows(&memory, "allocators")[0];
    let programs = rows(allocator, "programs");
    assert!(!programs.is_empty(), "{allocator}");
    for program in programs {
        assert_eq!(program["matched"], "name", "{program}");
        let values: u64 = rows(program, "values").iter().map(|value| value["bytes"].as_u64().unwrap()).sum();
        assert!(values > 0 && values <= program["bytes"].as_u64().unwrap(), "{program}");
    }
}

#[test]
fn peaks_that_the_user_states_make_usage_and_findings_about_it() {
    let path = recording("version_wider");
    assert_eq!(
        answer(&["report", &path])["utilisation"],
        Value::Null,
        "nobody knows the peak of a processor"
    );
    let stated = answer(&["report", &path, "--peak", "100T,1T"]);
    assert_eq!(stated["utilisation"]["source"], "given by --peak");
    let mfu = stated["utilisation"]["mfu"].as_f64().unwrap();
    assert!(mfu > 0.0 && mfu < 0.3, "{mfu}");
    let modest = answer(&["report", &path, "--peak", "1T"])["utilisation"]["mfu"].as_f64().unwrap();
    assert!((modest / mfu - 100.0).abs() < 0.5, "a hundredth of the peak is a hundred times the share");
    assert!(
        ids(&stated).contains(&"low-mfu") || !ids(&stated).contains(&"compute-bound"),
        "{:?}",
        ids(&stated)
    );
}
