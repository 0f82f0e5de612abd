//! The output of the binary for the project's own small real profiles: each snapshot contains exit code,
//! standard error and standard output.

mod support;

use support::run;

const FIXTURES: [&str; 8] = [
    "tf-train",
    "tf-input-bound",
    "keras-fit",
    "keras-plain",
    "jax-train",
    "jax-plain",
    "torch-train",
    "torch-plain",
];

#[test]
fn info_as_text() {
    for fixture in FIXTURES {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("info_{fixture}"), run(&["info", &path]));
    }
}

#[test]
fn info_as_json() {
    for fixture in ["tf-train", "torch-train"] {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("info_json_{fixture}"), run(&["info", &path, "--json"]));
    }
}

#[test]
fn health_as_text() {
    for fixture in FIXTURES {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("health_{fixture}"), run(&["health", &path]));
    }
}

#[test]
fn health_for_programs() {
    insta::assert_snapshot!("health_json", run(&["health", "fixtures/jax-train", "--json"]));
    insta::assert_snapshot!("health_csv", run(&["health", "fixtures/jax-train", "--csv"]));
}

#[test]
fn several_named_files_are_one_profile() {
    let files = ["info", "fixtures/torch-train", "fixtures/torch-plain"];
    insta::assert_snapshot!("info_two_hosts", run(&files));
}

#[test]
fn one_process_has_no_ranks_to_compare() {
    let said = run(&["ranks", "fixtures/tf-train"]);
    assert!(said.contains("one process without ranks to compare"), "{said}");
    let said = run(&["ranks", "fixtures/tf-train", "--json"]);
    assert!(said.contains("\"recorded\": 0") || said.contains("\"recorded\":0"), "{said}");
}
