//! `compare`, `gate` and `journal` as a user runs them, on profiles written byte by byte and on the fixtures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_testkit::ncu::Report;
use stepscope_testkit::xspace::{XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};

/// Forty marked steps of about `step_us`, each with one MatMul that fills most of it.
fn profile(folder: &Path, name: &str, step_us: i64) -> PathBuf {
    // A repeatable scatter of a few per cent.
    profile_of(folder, name, step_us, |step| 98 + (step * 7) % 5)
}

/// The same with a length per step, in per cent of `step_us`.
fn profile_of(folder: &Path, name: &str, step_us: i64, percent: impl Fn(i64) -> i64) -> PathBuf {
    program(folder, name, "model/dense/MatMul:MatMul", step_us, percent)
}

/// The same with another op.
fn program(folder: &Path, name: &str, op: &str, step_us: i64, percent: impl Fn(i64) -> i64) -> PathBuf {
    let mut host = XPlane::named("/host:CPU");
    host.stat_metadata = vec![(1, "step_num".to_owned()), (2, "_r".to_owned())];
    host.event_metadata = vec![(1, XEventMetadata::named("train")), (2, XEventMetadata::named(op))];
    let mut events = Vec::new();
    let mut at = 0;
    for step in 0..40 {
        let length = (step_us * 1_000_000) / 100 * percent(step);
        let mut marker = XEvent::at(at, length, 1);
        marker.stats = vec![XStat::new(1, XValue::Int64(step)), XStat::new(2, XValue::Int64(1))];
        events.push(marker);
        events.push(XEvent::at(at + 1_000_000, length - 2_000_000, 2));
        at += length;
    }
    host.lines =
        vec![XLine { id: 1, name: "python".to_owned(), timestamp_ns: 1_000, events, ..XLine::default() }];
    let path = folder.join(format!("{name}.xplane.pb"));
    let space = XSpace { planes: vec![host], ..XSpace::default() };
    std::fs::write(&path, space.encode()).unwrap();
    path
}

fn stepscope() -> Command {
    Command::new(env!("CARGO_BIN_EXE_stepscope"))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn run(args: &[&str]) -> Output {
    stepscope().args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

struct Pair {
    folder: tempfile::TempDir,
    base: String,
    slow: String,
}

fn pair() -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let base = profile(folder.path(), "base", 10_000).display().to_string();
    let slow = profile(folder.path(), "slow", 12_000).display().to_string();
    Pair { folder, base, slow }
}

#[test]
fn a_profile_is_the_same_as_itself_and_a_slower_one_is_slower() {
    let pair = pair();
    let same = json(&run(&["compare", &pair.base, &pair.base, "--json"]));
    assert_eq!(same["schema"], "stepscope.compare.v1");
    assert_eq!((&same["verdict"], &same["ratio"]["median"]), (&"same".into(), &1.0.into()));
    let slower = json(&run(&["compare", &pair.base, &pair.slow, "--json"]));
    assert_eq!(slower["verdict"], "slower");
    let ratio = &slower["ratio"];
    let (low, high) = (ratio["low"].as_f64().unwrap(), ratio["high"].as_f64().unwrap());
    assert!((ratio["median"].as_f64().unwrap() - 1.2).abs() < 0.001 && low < 1.2 && 1.2 < high, "{ratio}");
    assert_eq!(slower["breakdown"][0]["category"], "compute");
    assert_eq!(slower["ops"][0]["type"], "MatMul");
    let faster =
        json(&run(&["compare", "--base", &pair.slow, "--new", &pair.base, "--new", &pair.base, "--json"]));
    assert_eq!(faster["verdict"], "faster");
    assert_eq!(faster["new"]["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn another_program_is_refused_with_what_differs() {
    let pair = pair();
    let other = program(pair.folder.path(), "other", "net/block/Conv2D:Conv2D", 5_000, |_| 100);
    let other = other.display().to_string();
    let refused = json(&run(&["compare", &pair.base, &other, "--json"]));
    assert_eq!(
        (&refused["verdict"], &refused["verdict_by_steps"]),
        (&"not-comparable".into(), &"faster".into())
    );
    let text = run(&["compare", &pair.base, &other]);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.starts_with("not comparable: different programs: 0.0 % of their kinds of ops"), "{text}");
    assert!(
        text.contains("only BASE has MatMul 100.0 %") && text.contains("only NEW has Conv2D 100.0 %"),
        "{text}"
    );
    assert!(!text.contains("solved"), "{text}");
    let gate = run(&["gate", &pair.base, &other]);
    assert_eq!(code(&gate), 1, "{}", String::from_utf8_lossy(&gate.stdout));
    assert_eq!(code(&run(&["gate", &pair.base, &other, "--allow-incomparable"])), 0);
}

#[test]
fn text_and_markdown_begin_with_the_answer() {
    let pair = pair();
    let text = run(&["compare", &pair.base, &pair.slow]);
    assert!(
        String::from_utf8_lossy(&text.stdout)
            .starts_with("slower: the mean step takes 20.0 % longer (10.0 ms → 12.0 ms); compute +2.00 ms")
    );
    let markdown = run(&["compare", &pair.base, &pair.slow, "--markdown"]);
    assert!(String::from_utf8_lossy(&markdown.stdout).starts_with("### slower"));
}

#[test]
fn the_page_stands_alone_and_has_both_sides() {
    let pair = pair();
    let file = pair.folder.path().join("change.html").display().to_string();
    let output = run(&["compare", &pair.base, &pair.slow, "--html", &file]);
    assert_eq!((code(&output), String::from_utf8_lossy(&output.stdout).trim()), (0, file.as_str()));
    let page = std::fs::read_to_string(&file).unwrap();
    for wanted in
        [&pair.base, &pair.slow, "<h1>Slower: the mean step takes 20.0 % longer", "<svg", ">MatMul<"]
    {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    assert!(!page.contains("http://") && !page.contains("https://"));
    let told = json(&run(&["compare", &pair.base, &pair.slow, "--html", &file, "--json"]));
    assert_eq!(told["verdict"], "slower");
    let nowhere = pair.folder.path().join("no/such/change.html").display().to_string();
    let failed = run(&["compare", &pair.base, &pair.slow, "--html", &nowhere]);
    assert_eq!(code(&failed), 3);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot write"));
}

#[test]
fn the_gate_stops_what_is_slower_and_nothing_else() {
    let pair = pair();
    let exit = |args: &[&str]| code(&run(&[&["gate"], args].concat()));
    assert_eq!(exit(&[&pair.base, &pair.base]), 0);
    assert_eq!(exit(&[&pair.slow, &pair.base]), 0);
    assert_eq!(exit(&[&pair.base, &pair.slow]), 1);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--max-regression", "30%"]), 0);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--max-ms", "0.5"]), 1);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--max-ms", "5"]), 0);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--metric", "op:MatMul"]), 1);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--metric", "finding:retracing"]), 0);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--metric", "op:NoSuchOp"]), 2);
    assert_eq!(exit(&[&pair.base, &pair.slow, "--metric", "nonsense"]), 2);
    assert_eq!(exit(&[&pair.base]), 2);
    let misspelt = run(&["gate", &pair.base, &pair.slow, "--metric", "finding:retrace"]);
    assert_eq!(code(&misspelt), 2);
    let said = String::from_utf8_lossy(&misspelt.stderr);
    assert!(said.contains("did you mean retracing?"), "{said}");
}

/// Two recordings that scatter so much that a gate cannot decide, and a command that records good ones.
fn unclear() -> (Pair, String) {
    let quiet = pair();
    let noisy = |name: &str, us| {
        profile_of(quiet.folder.path(), name, us, |step| 60 + (step * 37) % 80).display().to_string()
    };
    let (base, slow) = (noisy("noisy-base", 10_000), noisy("noisy-slow", 12_000));
    let command = format!(
        "echo chatter; case $STEPSCOPE_SIDE in base) cp {} $STEPSCOPE_OUT;; new) cp {} $STEPSCOPE_OUT;; esac",
        quiet.base, quiet.slow
    );
    (Pair { folder: quiet.folder, base, slow }, command)
}

#[test]
fn an_unclear_gate_records_again_until_it_is_decided() {
    let (pair, command) = unclear();
    assert_eq!(code(&run(&["gate", &pair.base, &pair.slow])), 0, "unclear passes");
    let again = run(&["gate", &pair.base, &pair.slow, "--json", "--retries", &command, "--max-runs", "10"]);
    let told = json(&again);
    assert_eq!(code(&again), 1, "{told}");
    assert_eq!(told["checks"][0]["outcome"], "failed");
    let runs = |side: &str| told["comparison"][side]["runs"].as_array().unwrap().len();
    assert!(
        runs("base") == runs("new") && (2..=10).contains(&runs("new")),
        "{} {}",
        runs("base"),
        runs("new")
    );
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("recording base, round 1") && said.contains("chatter"), "{said}");
    // Nothing is recorded where the answer is clear.
    let kept = pair.folder.path().join("kept").display().to_string();
    let quiet = self::pair();
    let clear = run(&["gate", &quiet.base, &quiet.slow, "--retries", &command, "--keep", &kept]);
    assert_eq!((code(&clear), Path::new(&kept).exists()), (1, false));
}

#[test]
fn recording_again_ends_with_the_budget_and_with_a_failing_command() {
    let (pair, command) = unclear();
    let kept = pair.folder.path().join("kept").display().to_string();
    let two =
        run(&["gate", &pair.base, &pair.slow, "--retries", &command, "--max-runs", "2", "--keep", &kept]);
    assert!([0, 1].contains(&code(&two)));
    let recorded = std::fs::read_dir(&kept).unwrap().count();
    assert_eq!(recorded, 2, "one per side");
    let broken = run(&["gate", &pair.base, &pair.slow, "--retries", "exit 7"]);
    let said = String::from_utf8_lossy(&broken.stderr);
    assert!(code(&broken) == 2 && said.contains("it exited with 7"), "{said}");
    let nothing = run(&["gate", &pair.base, &pair.slow, "--retries", "true"]);
    assert_eq!(code(&nothing), 3, "{}", String::from_utf8_lossy(&nothing.stderr));
    assert_eq!(code(&run(&["gate", &pair.base, &pair.slow, "--max-runs", "3"])), 2, "without --retries");
}

#[test]
fn the_journal_names_recordings_from_where_it_lies() {
    let pair = pair();
    let folder = pair.folder.path().join("notes");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("tried.journal").display().to_string();
    assert_eq!(code(&run(&["journal", "add", &pair.base, "--note", "start", "--file", &file])), 0);
    let shown = json(&run(&["journal", "show", "--file", &file, "--json"]));
    assert_eq!(shown["rows"][0]["path"], "../base.xplane.pb");
}

/// Whoever reads the first line must not read "passed" where the exit code says otherwise.
#[test]
fn a_gate_says_passed_only_if_it_exits_with_0() {
    let pair = pair();
    let whole = std::fs::read(&pair.base).unwrap();
    let damaged = pair.folder.path().join("damaged.xplane.pb");
    std::fs::write(&damaged, &whole[..whole.len() - 40]).unwrap();
    let damaged = damaged.to_str().unwrap();
    let nowhere = pair.folder.path().join("no/such/folder/gate.xml");
    let cases: [&[&str]; 4] = [
        &[&pair.base, damaged],
        &[&pair.base, damaged, "--json"],
        &[&pair.base, &pair.base, "--junit", nowhere.to_str().unwrap()],
        &[&pair.base, &pair.base, "--metric", "op:nothing"],
    ];
    for case in cases {
        let output = run(&[&["gate"], case].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_ne!(output.status.code(), Some(0), "{case:?}: {said}");
        assert!(!said.contains("passed") || said.contains("\"passed\": false"), "{case:?}: {said}");
    }
    let output = run(&["gate", &pair.base, &pair.base]);
    assert_eq!(code(&output), 0);
    assert!(output.stdout.starts_with(b"gate passed"));
}

#[test]
fn the_gate_writes_reports_for_servers() {
    let pair = pair();
    let (junit, summary) = (pair.folder.path().join("gate.xml"), pair.folder.path().join("summary.md"));
    let output = stepscope()
        .args(["gate", &pair.base, &pair.slow, "--json", "--github-summary", "--junit"])
        .arg(&junit)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert_eq!(code(&output), 1);
    let told = json(&output);
    assert_eq!((&told["passed"], &told["checks"][0]["outcome"]), (&false.into(), &"failed".into()));
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"1\"") && junit.contains("<failure message=\"step.mean"), "{junit}");
    assert!(std::fs::read_to_string(summary).unwrap().starts_with("## stepscope gate failed"));
}

#[test]
fn the_journal_keeps_what_was_tried() {
    let pair = pair();
    let file = pair.folder.path().join("tried.journal").display().to_string();
    for (path, note) in [(&pair.base, "start"), (&pair.slow, "bigger model")] {
        assert_eq!(code(&run(&["journal", "add", path, "--note", note, "--file", &file])), 0);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 2);
    // Another branch added the same first line and one of its own: a union merge keeps all.
    std::fs::write(&file, format!("{text}{}\n", text.lines().next().unwrap())).unwrap();
    let shown = json(&run(&["journal", "show", "--file", &file, "--json"]));
    let rows = shown["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{shown}");
    let compared: Vec<&Value> = rows.iter().map(|row| &row["compared"]).collect();
    assert!(compared.contains(&&Value::Null), "{shown}");
    assert!(compared.iter().any(|it| **it == "slower" || **it == "faster"), "{shown}");
    assert_eq!(code(&run(&["journal", "show", "--file", "no/such.journal"])), 3);
}

/// A report of Nsight Compute with one launch of each kernel, in microseconds.
fn counters(folder: &Path, name: &str, kernels: &[(&str, f64)]) -> String {
    let mut report = Report::new();
    report.session(1_757_321_390, "GTX 1660 SUPER", &[]);
    for (kernel, us) in kernels {
        report.launch(kernel, [32, 32, 1], [32, 32, 1], &[("gpu__time_duration.sum", us * 1e3)]);
    }
    let path = folder.join(format!("{name}.ncu-rep"));
    std::fs::write(&path, report.bytes()).unwrap();
    path.display().to_string()
}

#[test]
fn kernels_that_were_profiled_one_by_one_are_compared_per_launch() {
    let folder = tempfile::tempdir().unwrap();
    let base = counters(folder.path(), "base", &[("gemm", 4_000.0), ("relu", 1_000.0)]);
    let new = counters(folder.path(), "new", &[("gemm", 2_000.0), ("relu", 1_000.0)]);
    let told = json(&run(&["compare", &base, &new, "--json"]));
    assert_eq!((told["verdict"].as_str(), told["unit"].as_str()), (Some("faster"), Some("launch")));
    assert!((told["ratio"]["median"].as_f64().unwrap() - 0.6).abs() < 1e-9, "{}", told["ratio"]);
    assert_eq!(told["ops"][0]["name"], "gemm");
    let text = String::from_utf8(run(&["compare", &base, &new]).stdout).unwrap();
    assert!(text.starts_with("faster: a launch of the profiled kernels takes 40.0 % less time"), "{text}");
    assert_eq!(code(&run(&["gate", &new, &base])), 1, "a regression stops");
    assert_eq!(code(&run(&["gate", &new, &base, "--metric", "op:gemm"])), 1);
    assert_eq!(code(&run(&["gate", &new, &base, "--metric", "op:relu"])), 0);
    let other = counters(folder.path(), "other", &[("conv", 1_000.0)]);
    assert_eq!(json(&run(&["compare", &base, &other, "--json"]))["verdict"], "not-comparable");
}
