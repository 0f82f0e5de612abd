//! `stepscope tfprof` and run metadata as a profile, on files that the tests write.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use stepscope_testkit::tfprof;
use support::stepscope;

/// A folder with all files of a small model.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("graph.pb", &tfprof::graph());
    write("graph.pbtxt", tfprof::graph_text().as_bytes());
    write("op_log.pb", &tfprof::op_log());
    write("profile.pb", &tfprof::saved());
    for step in 0..3 {
        write(&format!("run_meta_{step}.pb"), &tfprof::run(step, 40 + step));
    }
    let (index, data) = tfprof::checkpoint();
    write("model.ckpt.index", &index);
    write("model.ckpt.data-00000-of-00001", &data);
    write(
        "events.out.tfevents.1.host",
        &tfprof::events(&tfprof::graph(), &[tfprof::run(0, 40), tfprof::run(1, 41)]),
    );
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    stepscope().current_dir(folder).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What stands behind `Profile:` and before the end.
fn profile(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", error(output));
    let text = text(output);
    let (_, table) = text.split_once("Profile:\n").unwrap();
    table.split("\n=====").next().unwrap().to_owned()
}

const FILES: [&str; 6] = [
    "--graph_path",
    "graph.pb",
    "--op_log_path",
    "op_log.pb",
    "--run_meta_path",
    "run_meta_0.pb,run_meta_1.pb",
];

#[test]
fn scopes_count_what_lies_below_them() {
    let folder = files();
    let shown =
        run(folder.path(), &[&["tfprof", "scope"], &FILES[..], &["--select", "params,micros"]].concat());
    let expected = "\
node name | # parameters | total execution time | accelerator execution time | cpu execution time
_TFProfRoot (--/6 params, --/120us, --/0us, --/120us)
  _retval_y_0_0 (0/0 params, 40us/40us, 0us/0us, 40us/40us)
  dense (0/6 params, 0us/80us, 0us/0us, 0us/80us)
    dense/MatMul (0/0 params, 0us/0us, 0us/0us, 0us/0us)
    dense/Relu (0/0 params, 40us/40us, 0us/0us, 40us/40us)
    dense/kernel (3x2, 6/6 params, 40us/40us, 0us/0us, 40us/40us)
      dense/kernel/read (0/0 params, 0us/0us, 0us/0us, 0us/0us)
  gradients (0/0 params, 0us/0us, 0us/0us, 0us/0us)
    gradients/dense (0/0 params, 0us/0us, 0us/0us, 0us/0us)
      gradients/dense/MatMul_grad (0/0 params, 0us/0us, 0us/0us, 0us/0us)
        gradients/dense/MatMul_grad/MatMul (0/0 params, 0us/0us, 0us/0us, 0us/0us)
  x (0/0 params, 0us/0us, 0us/0us, 0us/0us)
";
    assert_eq!(profile(&shown), expected);
}

#[test]
fn presets_options_and_one_dash_do_the_same() {
    let folder = files();
    let args = ["tfprof", "scope", "--graph_path", "graph.pbtxt", "--op_log_path", "op_log.pb"];
    let preset = run(folder.path(), &[&args[..], &["--preset", "trainable_variables_parameter"]].concat());
    let options = "-max_depth 10000 -account_type_regexes _trainable_variables -account_displayed_op_only \
                   -select params";
    let spelt = run(folder.path(), &[&args[..], &options.split_whitespace().collect::<Vec<_>>()].concat());
    assert_eq!(text(&preset), text(&spelt));
    assert!(profile(&preset).contains("dense/kernel (3x2, 6/6 params)"));
    let changed =
        run(folder.path(), &[&args[..], &["--preset", "float_operation", "--order_by=name"]].concat());
    assert!(profile(&changed).contains("dense/MatMul (60/60 flops)"));
}

#[test]
fn op_and_code_view_and_saved_profiles() {
    let folder = files();
    let op =
        run(folder.path(), &[&["tfprof", "op"], &FILES[..], &["--select", "float_ops,occurrence"]].concat());
    let op = profile(&op);
    assert!(op.contains("MatMul                   120 float_ops (100.00%, 100.00%),        0|2"), "{op}");
    let code = profile(&run(folder.path(), &[&["tfprof", "code"], &FILES[..]].concat()));
    assert!(
        code.contains("  train.py:10:main (0us/80us") && code.contains("model.py:12:a_function_with_a...")
    );
    assert!(code.contains("train.py:10:main (gradient) (0us/0us"));
    let saved = run(folder.path(), &["tfprof", "scope", "--profile_path", "profile.pb"]);
    assert!(profile(&saved).contains("b/c (7us/7us, 0us/0us, 7us/7us)"));
}

#[test]
fn values_of_variables_come_from_the_checkpoint() {
    let folder = files();
    let args = ["--checkpoint_path", "model.ckpt", "--select", "tensor_value", "--account_type_regexes"];
    let args = [&["tfprof", "scope"], &FILES[..2], &args[..], &["_checkpoint_variables"]].concat();
    let shown = profile(&run(folder.path(), &args));
    assert!(
        shown.contains("dense/kernel ()\n[[0.50 -1.25 ],\n[2.00 0.00 ],\n[1.00 3.50 ],\n],\n"),
        "{shown}"
    );
}

#[test]
fn trees_for_programs_have_the_names_of_tfprof() {
    let folder = files();
    let shown = run(folder.path(), &[&["tfprof", "scope", "--json"], &FILES[..]].concat());
    let tree: Value = serde_json::from_str(&text(&shown)).unwrap();
    support::schema::fits(&tree);
    assert_eq!((&tree["schema"], &tree["view"]), (&"stepscope.tfprof.v1".into(), &"scope".into()));
    assert_eq!((&tree["total_exec_micros"], &tree["total_parameters"]), (&120.into(), &6.into()));
    assert_eq!(tree["children"][1]["children"][2]["name"], "dense/kernel");
    let advice = run(folder.path(), &[&["tfprof", "advise", "--json"], &FILES[..]].concat());
    let advice: Value = serde_json::from_str(&text(&advice)).unwrap();
    support::schema::fits(&advice);
    assert!(advice["checkers"]["ExpensiveOperationChecker"]["reports"].is_array());
}

#[test]
fn outputs_go_where_they_are_sent() {
    let folder = files();
    let shown = |view: &str, output: &str| {
        run(folder.path(), &[&["tfprof", view], &FILES[..], &["--output", output]].concat())
    };
    assert!(text(&shown("scope", "file:outfile=scope.txt")).is_empty());
    let written = fs::read_to_string(folder.path().join("scope.txt")).unwrap();
    assert!(written.starts_with("\nDoc:\n") && written.contains("\nProfile:\nnode name"));
    assert!(text(&shown("graph", "timeline:outfile=trace")).contains("Timeline file is written to trace_1."));
    let trace: Value = serde_json::from_slice(&fs::read(folder.path().join("trace_0")).unwrap()).unwrap();
    assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 4);
    assert_eq!(shown("code", "pprof:outfile=code.pb.gz").status.code(), Some(0));
    assert!(fs::read(folder.path().join("code.pb.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    assert!(text(&shown("op", "none")).is_empty());
    let wrong = shown("op", "timeline:outfile=trace");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("this view has no timeline output"));
}

#[test]
fn wrong_usage_is_named() {
    let folder = files();
    let wrong = |args: &[&str]| {
        let output = run(folder.path(), &[&["tfprof", "scope"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        error(&output)
    };
    assert!(wrong(&[]).contains("no files given"));
    assert!(wrong(&["--graph_path", "graph.pb", "--step", "7"]).contains("step 7 is not in the profile"));
    assert!(wrong(&["--graph_path", "graph.pb", "--select", "time"]).contains("Invalid option '-select'"));
    assert!(wrong(&["--graph_path", "graph.pb", "--show_name_regexes", "("]).contains("regular expression"));
    assert!(
        wrong(&["--profile_path", "profile.pb", "--graph_path", "graph.pb"]).contains("cannot be used with")
    );
}

#[test]
fn damage_is_named_and_the_rest_is_shown() {
    let folder = files();
    let graph = tfprof::graph();
    fs::write(folder.path().join("half.pb"), &graph[..graph.len() / 2]).unwrap();
    let half = run(folder.path(), &["tfprof", "scope", "--graph_path", "half.pb"]);
    assert_eq!(half.status.code(), Some(4));
    assert!(error(&half).contains("half.pb is damaged: GraphDef: field 1: length runs past the end at byte"));
    assert!(text(&half).contains("dense/kernel"));
    let kind = run(folder.path(), &["tfprof", "scope", "--graph_path", "run_meta_0.pb"]);
    assert_eq!(kind.status.code(), Some(3));
    assert!(
        error(&kind)
            .contains("is run metadata (RunMetadata), not a graph (GraphDef); pass it with --run_meta_path")
    );
    let mut index = fs::read(folder.path().join("model.ckpt.index")).unwrap();
    index[3] ^= 1;
    fs::write(folder.path().join("bad.ckpt.index"), index).unwrap();
    let checkpoint = ["tfprof", "scope", "--graph_path", "graph.pb", "--checkpoint_path", "bad.ckpt"];
    let checkpoint = run(folder.path(), &checkpoint);
    assert_eq!(checkpoint.status.code(), Some(4));
    assert!(error(&checkpoint).contains("checksum") && text(&checkpoint).contains("dense/kernel"));
}

#[test]
fn a_fix_corrects_and_lists_what_it_changes() {
    let folder = files();
    let args = [&["tfprof", "op"], &FILES[..], &["--select", "micros,float_ops", "--fix"]].concat();
    let shown = run(folder.path(), &args);
    let table = profile(&shown);
    // 2·5·2·3 of the product, 5·2 of the activation; the op log counts the product although it never ran alone.
    let fused = table.lines().find(|line| line.starts_with("_FusedMatMul")).unwrap();
    assert!(fused.contains("40us (") && fused.contains("70 float_ops"), "{fused}");
    let text = text(&shown);
    let (_, changes) = text.split_once("Changed by --fix:\n").unwrap();
    assert!(changes.contains("  _FusedMatMul: "), "{changes}");
    assert!(changes.contains("dense/Relu ran _FusedMatMul"), "{changes}");
    let json = run(folder.path(), &[&args[..], &["--json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let changed = json["fix"]["changed"].as_array().unwrap();
    let row =
        |name: &str, column: &str| changed.iter().find(|it| it["name"] == name && it["column"] == column);
    assert_eq!(row("_FusedMatMul", "float_ops").unwrap()["after"], 70);
    assert_eq!(row("Relu", "micros").unwrap()["before"], 40);
    assert!(json["fix"]["reasons"].as_array().unwrap().iter().any(|it| it["reason"] == "ran-as"));
    // Without it everything is as tfprof prints it.
    let plain = run(folder.path(), &args[..args.len() - 1]);
    assert!(!self::text(&plain).contains("--fix") && !self::text(&plain).contains("_FusedMatMul"));
}

#[test]
fn a_fix_corrects_advice_and_lines_of_the_prompt() {
    let folder = files();
    let advice = run(folder.path(), &[&["tfprof", "advise"], &FILES[..], &["--fix"]].concat());
    assert!(text(&advice).contains("Changed by --fix"), "{}", text(&advice));
    let mut child = stepscope()
        .current_dir(folder.path())
        .args([&["tfprof"], &FILES[..], &["--fix"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"op -select float_ops\n").unwrap();
    assert!(text(&child.wait_with_output().unwrap()).contains("_FusedMatMul: float_ops"));
}

#[test]
fn event_files_deliver_graph_and_runs() {
    let folder = files();
    let events = "events.out.tfevents.1.host";
    let shown = run(folder.path(), &["tfprof", "scope", "--graph_path", events, "--run_meta_path", events]);
    assert!(profile(&shown).contains("dense/Relu (40us/40us"));
    let report = run(folder.path(), &["steps", events, "--json"]);
    let steps: Value = serde_json::from_str(&text(&report)).unwrap();
    assert_eq!(steps["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn the_prompt_keeps_options_that_are_set() {
    let folder = files();
    let mut child = stepscope()
        .current_dir(folder.path())
        .args([&["tfprof"], &FILES[..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "set -max_depth 2 -select params\n\nscope\nop -select float_ops\nhelp\nquit\nscope\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(text.matches("Profile:").count(), 2);
    assert!(text.starts_with("-max_depth                  2\n"));
    assert!(text.contains("  dense (0/6 params)\n  gradients") && text.contains("120 float_ops"));
}

#[test]
fn runs_are_steps_of_one_profile() {
    let folder = files();
    let paths = ["run_meta_0.pb", "run_meta_1.pb", "run_meta_2.pb"];
    let report = run(folder.path(), &[&["report"], &paths[..], &["--json"]].concat());
    assert_eq!(report.status.code(), Some(0), "{}", error(&report));
    let report: Value = serde_json::from_str(&text(&report)).unwrap();
    assert_eq!((&report["steps"]["count"], &report["steps"]["origin"]), (&3.into(), &"marker".into()));
    // Each run: scheduled 2 µs before its start, three nodes of 40, 41 or 42 µs, 1 µs behind the last.
    assert_eq!(report["steps"]["median_ms"], 0.126);
    let ops = report["ops"].as_array().unwrap();
    let fused = ops.iter().find(|op| op["type"] == "_FusedMatMul").unwrap();
    assert_eq!((&fused["name"], &fused["count"]), (&"dense/Relu".into(), &3.into()));
    let folder_report = run(folder.path(), &["report", ".", "--json"]);
    assert_eq!(folder_report.status.code(), Some(0), "{}", error(&folder_report));
    let memory = run(folder.path(), &[&["memory"], &paths[..], &["--json"]].concat());
    assert_eq!(memory.status.code(), Some(0), "{}", error(&memory));
    let compare = run(folder.path(), &["compare", "run_meta_0.pb", "run_meta_2.pb", "--json"]);
    assert_eq!(compare.status.code(), Some(0), "{}", error(&compare));
}
