//! `stepscope mcp` with the official Python client, in both eras of the protocol.
//!
//! They run if STEPSCOPE_TEST_CLIENTS names a Python with `mcp`; `cargo xtask live` creates one.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::process::Command;

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::root;

/// What the client heard; `None`, with a word about it, where there is no client.
fn heard(mode: &str) -> Option<Value> {
    let Some(python) = std::env::var_os("STEPSCOPE_TEST_CLIENTS") else {
        skip(Needs::Clients, "STEPSCOPE_TEST_CLIENTS names no Python with mcp");
        return None;
    };
    let output = Command::new(python)
        .arg(root().join("crates/stepscope/tests/support/mcp_client.py"))
        .args([mode, env!("CARGO_BIN_EXE_stepscope")])
        .arg(root().join("fixtures"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[track_caller]
fn is_answered(mode: &str, version: &str) {
    let Some(heard) = heard(mode) else { return };
    assert_eq!(heard["version"], version, "{heard}");
    let tools: Vec<&str> =
        heard["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
    assert_eq!(tools, ["list_profiles", "report", "finding", "view", "program", "compare", "sql", "schema"]);
    let said = |key: &str| heard[key].as_str().unwrap();
    assert!(said("report").contains("Input-bound") && said("finding").contains("AUTOTUNE"), "{heard}");
    assert!(
        heard["median_ms"].as_f64().unwrap() > 30.0 && heard["events"].as_u64().unwrap() > 1_000,
        "{heard}"
    );
    assert_eq!((&heard["ops"], &heard["more"], &heard["compare"]), (&2.into(), &"2".into(), &"same".into()));
    assert_eq!(heard["wrong"], true, "an error of a tool is no error of the protocol");
    assert!(said("resource").contains("How to fix"), "{heard}");
}

#[test]
fn the_client_that_shakes_hands_is_answered() {
    is_answered("session", "2025-11-25");
}

#[test]
fn the_client_that_shakes_no_hands_is_answered() {
    is_answered("2026-07-28", "2026-07-28");
}

#[test]
fn the_client_that_asks_first_finds_the_newest_version() {
    is_answered("auto", "2026-07-28");
}
