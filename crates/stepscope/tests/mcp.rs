//! `stepscope mcp` as an assistant starts it: a process with two pipes.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use support::{code, stepscope};

/// Sends lines, ends the input, and waits for all answers.
fn conversation(folders: &[&str], lines: &[Value]) -> (Output, Vec<Value>) {
    let mut command = stepscope();
    command.arg("mcp").args(folders).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    for line in lines {
        // Where the program has ended already, its output says why.
        let _ = writeln!(input, "{line}");
    }
    drop(input);
    let output = process.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout.clone()).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output, answers)
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn an_assistant_asks_and_is_answered_in_order() {
    let (output, answers) = conversation(
        &["fixtures"],
        &[
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                   "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            call(1, "report", &json!({"path": "tf-input-bound"})),
            call(2, "view", &json!({"path": "tf-input-bound", "name": "ops", "top": 3})),
            call(3, "report", &json!({"path": "/etc"})),
        ],
    );
    assert_eq!((code(&output), answers.len()), (0, 4), "{}", String::from_utf8_lossy(&output.stderr));
    let ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "stepscope");
    let said = answers[1]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("Input-bound"), "{said}");
    assert_eq!(answers[2]["result"]["structuredContent"]["rows"].as_array().unwrap().len(), 3);
    assert_eq!(answers[3]["result"]["isError"], true);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn its_figures_are_those_of_the_terminal() {
    let path = "fixtures/tf-train";
    let (_, answers) = conversation(&["."], &[call(1, "report", &json!({"path": path}))]);
    let report = support::json("report", path.as_ref());
    let brief = &answers[0]["result"]["structuredContent"];
    assert_eq!(brief["steps"]["median_ms"], report["steps"]["median_ms"]);
    assert_eq!(brief["breakdown"], report["breakdown"]);
    let ids: Vec<&str> = support::ids(&report);
    let told: Vec<&str> =
        brief["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    assert_eq!(told, ids);
}

#[test]
fn a_folder_that_is_none_is_wrong_usage() {
    let (output, answers) = conversation(&["Cargo.toml"], &[]);
    assert_eq!((code(&output), answers.len()), (2, 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a folder"));
}

#[test]
fn a_program_is_read_page_by_page_and_what_is_missing_is_named() {
    let path = "crates/stepscope/tests/recordings/version";
    let (_, answers) = conversation(
        &["."],
        &[
            call(1, "program", &json!({"path": path})),
            call(2, "program", &json!({"path": path, "program": "jit_step", "op": "no_such_op"})),
            call(3, "program", &json!({"path": path, "radius": 9})),
            call(4, "view", &json!({"path": path, "name": "hlo_ops", "by": "source"})),
        ],
    );
    let text = |at: usize| answers[at]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text(0).contains("HloModule jit_step"), "{}", text(0));
    let first = &answers[0]["result"];
    assert!(
        first.to_string().len() <= 8_200 && first["structuredContent"]["next_cursor"].is_string(),
        "{first}"
    );
    assert!(answers[1]["result"]["isError"] == true && text(1).contains("has no instruction"), "{}", text(1));
    assert_eq!(answers[2]["result"]["isError"], true, "a distance is bounded");
    assert!(text(3).contains("train.py:"), "{}", text(3));
}
