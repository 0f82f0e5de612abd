//! Names in a file are chosen by strangers: nothing in them may steer a terminal, whatever command shows them.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::path::Path;

use stepscope_results::views::VIEWS;
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use support::stepscope;

/// Clears the screen, sets the title, and turns text around.
const NASTY: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}evil";

/// A loop in which every name is hostile.
fn profile(folder: &Path) -> String {
    let name = |what: &str| format!("{what}{NASTY}");
    let mut trace = ChromeTrace::new();
    for (kind, args) in [("process_name", name("python")), ("thread_name", name("main"))] {
        trace = trace.raw(&format!(
            r#"{{"ph": "M", "name": "{kind}", "pid": 1, "tid": 1, "args": {{"name": {}}}}}"#,
            serde_json::to_string(&args).unwrap()
        ));
    }
    for step in 0..12 {
        let at = |offset: u32| (step * 10_000 + offset).to_string();
        let mark =
            ChromeEvent::slice(&format!("ProfilerStep#{step}"), "user_annotation", 1, 1, &at(0), "10000");
        trace = trace.event(&mark);
        for (place, (what, category, pid, tid, length)) in [
            ("enumerate(DataLoader)#_SingleProcess", "user_annotation", 1, 1, "4000"),
            ("aten::mm", "cpu_op", 1, 1, "700"),
            ("train.py(7): step", "python_function", 1, 1, "900"),
            ("cudaLaunchKernel", "cuda_runtime", 1, 1, "20"),
            ("gemm", "kernel", 0, 7, "800"),
            ("ncclKernel_AllReduce", "kernel", 0, 7, "800"),
        ]
        .into_iter()
        .enumerate()
        {
            let start = at(100 + 1_200 * u32::try_from(place).unwrap());
            trace = trace.event(&ChromeEvent::slice(&name(what), category, pid, tid, &start, length));
        }
    }
    trace = trace.raw(r#"{"ph": "§\u001b[31m", "name": "x", "pid": 1, "tid": 1, "ts": 1}"#);
    let path = folder.join("trace.json");
    fs::write(&path, trace.text()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Control characters other than the end of a line, and marks that turn text around.
fn steers(text: &str) -> Option<char> {
    let odd =
        |c: &char| (c.is_control() && *c != '\n' && *c != '\r') || ('\u{202a}'..='\u{202e}').contains(c);
    text.chars().find(odd)
}

/// The same names in files that are written, and a file that is itself called like that.
#[cfg(unix)]
#[test]
fn no_file_that_is_written_carries_names_raw() {
    let folder = tempfile::tempdir().unwrap();
    let path = profile(folder.path());
    let nasty = folder.path().join(format!("=tr{NASTY}.json"));
    fs::copy(&path, &nasty).unwrap();
    let nasty = nasty.to_str().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (csv, page, change, junit, journal, note) =
        (file("e.csv"), file("r.html"), file("c.html"), file("g.xml"), file("j"), format!("=note{NASTY}"));
    let commands: [&[&str]; 12] = [
        &["report", nasty],
        &["info", nasty],
        &["ops", nasty, "--csv"],
        &["export", nasty, "--to", "csv", "-o", &csv],
        &["report", nasty, "--html", &page],
        &["compare", nasty, nasty, "--html", &change],
        &["compare", nasty, nasty, "--markdown"],
        &["gate", nasty, nasty, "--junit", &junit, "--metric", "op:MatMul"],
        &["journal", "add", nasty, "--note", &note, "--file", &journal],
        &["journal", "show", "--file", &journal],
        &["journal", "show", "--file", &journal, "--csv"],
        &["run", "--", "true", nasty],
    ];
    for command in commands {
        let output = stepscope().args(command).output().unwrap();
        for bytes in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(steers(&text), None, "{command:?}: {text:?}");
        }
    }
    for written in [&csv, &page, &change, &junit] {
        let text = fs::read_to_string(written).unwrap();
        assert_eq!(steers(&text), None, "{written}");
    }
    let rows = fs::read_to_string(&csv).unwrap();
    assert!(rows.lines().skip(1).all(|row| !row.starts_with(['=', '+', '@'])), "a host is a formula");
}

#[test]
fn no_command_lets_names_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = profile(folder.path());
    let mut commands: Vec<Vec<&str>> = vec![vec!["report", &path], vec!["info", &path]];
    for view in VIEWS {
        commands.push(view.command().chain([path.as_str()]).collect());
        commands.push(view.command().chain([path.as_str(), "--csv"]).collect());
    }
    commands.push(vec!["report", &path, "--markdown"]);
    commands.push(vec!["compare", &path, &path]);
    commands.push(vec!["gate", &path, &path]);
    commands.push(vec!["report", "no such \u{1b}[31mfile"]);
    for command in commands {
        let output = stepscope().args(&command).output().unwrap();
        for bytes in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(bytes);
            let silent = output.stdout.is_empty() && output.stderr.is_empty();
            assert!(!silent, "{command:?} says nothing");
            assert_eq!(steers(&text), None, "{command:?}: {text:?}");
        }
    }
}
