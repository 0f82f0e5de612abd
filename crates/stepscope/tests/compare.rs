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
    assert!(text.starts_with("Not comparable: different programs: 0.0 % of their kinds of ops"), "{text}");
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
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let rest = text.strip_prefix("Slower by 20 % [").and_then(|text| text.split_once("]: "));
    assert!(rest.is_some_and(|(_, rest)| rest.starts_with("10.0 → 12.0 ms. Compute +2.0 ms")), "{text}");
    let markdown = run(&["compare", &pair.base, &pair.slow, "--markdown"]);
    assert!(String::from_utf8_lossy(&markdown.stdout).starts_with("### Slower by 20 %"));
}

#[test]
fn the_page_stands_alone_and_has_both_sides() {
    let pair = pair();
    let file = pair.folder.path().join("change.html").display().to_string();
    let output = run(&["compare", &pair.base, &pair.slow, "--html", &file]);
    assert_eq!((code(&output), String::from_utf8_lossy(&output.stdout).trim()), (0, file.as_str()));
    let page = std::fs::read_to_string(&file).unwrap();
    for wanted in [&pair.base, &pair.slow, "<h1>Slower by 20 %", "<svg", ">MatMul<"] {
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
    let late = ["gate", &pair.base, &pair.slow, "--retries", "sleep 1; false", "--time-budget", "1ms"];
    assert_eq!(code(&run(&late)), 0, "no time for another recording");
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
    assert!(
        text.starts_with("Faster by 40 % [37, 43] (a launch of the profiled kernels): 5.0 → 3.0 ms"),
        "{text}"
    );
    assert_eq!(code(&run(&["gate", &new, &base])), 1, "a regression stops");
    assert_eq!(code(&run(&["gate", &new, &base, "--metric", "op:gemm"])), 1);
    assert_eq!(code(&run(&["gate", &new, &base, "--metric", "op:relu"])), 0);
    let other = counters(folder.path(), "other", &[("conv", 1_000.0)]);
    assert_eq!(json(&run(&["compare", &base, &other, "--json"]))["verdict"], "not-comparable");
}

#[test]
fn what_is_too_noisy_to_decide_is_an_outcome_of_its_own() {
    let (pair, command) = unclear();
    let junit = pair.folder.path().join("gate.xml");
    let summary = pair.folder.path().join("summary.md");
    let summary_flag = format!("--github-summary={}", summary.display());
    let gate = |more: &[&str]| run(&[&["gate", &pair.base, &pair.slow], more].concat());
    let passed = gate(&["--junit", junit.to_str().unwrap(), &summary_flag]);
    let said = String::from_utf8_lossy(&passed.stdout).into_owned();
    assert!(
        code(&passed) == 0 && said.starts_with("gate unclear, passes (limit +5.0 %). Cannot decide"),
        "{said}"
    );
    assert!(said.contains("\n  next: "), "{said}");
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("failures=\"0\" skipped=\"1\"") && junit.contains("<skipped message=\"step.mean"),
        "{junit}"
    );
    let summary = std::fs::read_to_string(summary).unwrap();
    assert!(summary.contains("> [!WARNING]\n> Too noisy to decide. Next: "), "{summary}");
    assert_eq!(json(&gate(&["--json"]))["outcome"], "unclear");
    assert_eq!(code(&gate(&["--on-unclear", "fail"])), 1);
    assert_eq!(code(&gate(&["--strict"])), 1);
    assert_eq!(code(&gate(&["--on-unclear", "retry"])), 2, "nobody says how to record");
    assert_eq!(code(&gate(&["--on-unclear", "pass", "--retries", &command])), 0, "nothing is recorded");
    assert_eq!(code(&gate(&["--on-unclear", "retry", "--retries", &command, "--max-runs", "10"])), 1);
}

/// The steps of a recording in milliseconds.
fn steps_of(folder: &Path) -> Vec<f64> {
    let told = json(&run(&["steps", folder.to_str().unwrap(), "--json"]));
    told["rows"].as_array().unwrap().iter().filter_map(|row| row["duration_ms"].as_f64()).collect()
}

/// The change of the mean step in units of the noise of one run per side: the standard error of the steps, and what equal
/// runs on a shared machine differ by (12 % of the step; see docs/agreement.md).
fn change_per_noise(base: &[f64], new: &[f64]) -> f64 {
    let mean = |steps: &[f64]| steps.iter().sum::<f64>() / steps.len() as f64;
    let error = |steps: &[f64]| {
        let squares: f64 = steps.iter().map(|ms| (ms - mean(steps)).powi(2)).sum();
        (squares / (steps.len() as f64 * (steps.len() as f64 - 1.0))).sqrt() / mean(steps)
    };
    let noise = error(base).hypot(error(new)).hypot(0.12 * std::f64::consts::SQRT_2);
    (mean(new) / mean(base)).ln() / noise
}

/// What the journal says of two recordings, the second compared with the first, whenever they were made.
fn journalled(folder: &Path, base: &str, new: &str) -> String {
    let file = folder.join("pair.journal").display().to_string();
    let _ = std::fs::remove_file(&file);
    let mut lines = Vec::new();
    for (time, path) in [(1, base), (2, new)] {
        let _ = std::fs::remove_file(&file);
        assert_eq!(code(&run(&["journal", "add", path, "--note", "x", "--file", &file])), 0);
        let mut line: Value = serde_json::from_str(std::fs::read_to_string(&file).unwrap().trim()).unwrap();
        line["time_ms"] = time.into();
        lines.push(line.to_string());
    }
    std::fs::write(&file, lines.join("\n")).unwrap();
    let shown = json(&run(&["journal", "show", "--file", &file, "--json"]));
    shown["rows"][1]["compared"].as_str().unwrap().to_owned()
}

#[test]
fn compare_gate_and_journal_decide_labelled_pairs_and_never_contradict_each_other() {
    let Some(corpus) = stepscope_testkit::corpus::corpus("") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let mut decided = 0;
    for group in ["labelled", "labelled-3", "labelled-more"] {
        for entry in std::fs::read_dir(corpus.join(group)).unwrap() {
            let fixed = entry.unwrap().path();
            let name = fixed.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(slow) = name.strip_suffix("_fixed").map(|slow| fixed.with_file_name(slow)) else {
                continue;
            };
            let change = change_per_noise(&steps_of(&slow), &steps_of(&fixed));
            let paths = [slow.to_str().unwrap(), fixed.to_str().unwrap()];
            for (base, new, wanted) in [(paths[0], paths[1], "faster"), (paths[1], paths[0], "slower")] {
                let told = json(&run(&["compare", base, new, "--json"]));
                let verdict = told["verdict"].as_str().unwrap();
                assert_eq!(journalled(temporary.path(), base, new), verdict, "{name}: the journal");
                let gate = code(&run(&["gate", base, new]));
                assert_eq!(gate, i32::from(verdict == "slower"), "{name} {verdict}: the gate");
                if change.abs() <= 3.0 {
                    assert!(verdict == wanted || verdict == "unclear", "{name}: {verdict}");
                    continue;
                }
                assert_eq!(verdict, wanted, "{name}: {change:.1} times the noise");
                let sign = if wanted == "slower" { 1.0 } else { -1.0 };
                let whole = told["mean"]["delta_ms"].as_f64().unwrap();
                let largest = &told["breakdown"][0];
                let category = largest["category"].as_str().unwrap();
                let part = largest["delta_ms"].as_f64().unwrap();
                assert!(part * sign > 0.0 && largest["proven"] == true, "{name}: {largest}");
                let metric = format!("breakdown.{category}");
                let gate = code(&run(&["gate", base, new, "--metric", &metric]));
                assert_eq!(gate, i32::from(wanted == "slower"), "{name}: {metric} {part} of {whole} ms");
                decided += 1;
            }
        }
    }
    assert!(decided >= 30, "{decided} pairs have a change beyond three times the noise");
}

/// Scripts without a line about turns: the hook finds their steps.
#[cfg(unix)]
#[test]
fn a_paired_gate_holds_programs_that_report_nothing_at_their_steps() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake_torch.py");
    let library = folder.path().join("site-packages");
    let made = Command::new("python3").arg("-B").arg(maker).arg(&library).status().unwrap();
    assert!(made.success());
    let script = |name: &str, ms: f64| {
        let text = format!(
            "import time, torch\noptimizer = torch.optim.SGD()\nwhile True:\n    \
             end = time.process_time() + {ms} / 1e3\n    while time.process_time() < end: pass\n    optimizer.step()\n"
        );
        std::fs::write(folder.path().join(name), text).unwrap();
        format!("python3 {}", folder.path().join(name).display())
    };
    let (base, slow) = (script("base.py", 5.0), script("slow.py", 8.0));
    let gate = stepscope()
        .args(["gate", "--paired", "--base", &base, "--new", &slow, "--json"])
        .env("PYTHONPATH", &library)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let told = json(&gate);
    assert_eq!((code(&gate), &told["outcome"]), (1, &"failed".into()), "{told}");
    assert_eq!(told["comparison"]["decided_by"], "pairs", "{told}");
    assert!(!String::from_utf8_lossy(&gate.stderr).contains("whole runs"), "{gate:?}");
}

/// A loop that reports its steps to a paired gate; each spins for so many milliseconds of processor time.
fn stepping(folder: &Path, name: &str, ms: f64) -> String {
    let script = folder.join(name);
    let text = format!(
        "import time, stepscope_turns\nwhile True:\n    end = time.process_time() + {ms} / 1e3\n    \
         while time.process_time() < end: pass\n    stepscope_turns.boundary()\n"
    );
    std::fs::write(&script, text).unwrap();
    format!("python3 {}", script.display())
}

#[cfg(unix)]
#[test]
fn a_paired_gate_lets_programs_take_turns_and_finds_more_work_on_any_machine() {
    let folder = tempfile::tempdir().unwrap();
    let (base, slow) = (stepping(folder.path(), "base.py", 5.0), stepping(folder.path(), "slow.py", 8.0));
    let gate = run(&["gate", "--paired", "--base", &base, "--new", &slow, "--json"]);
    let told = json(&gate);
    assert_eq!((code(&gate), &told["outcome"]), (1, &"failed".into()), "{told}");
    let comparison = &told["comparison"];
    assert_eq!((&comparison["decided_by"], comparison["pairs"].as_u64() >= Some(8)), (&"pairs".into(), true));
    let cpu = comparison["work"].as_array().unwrap().iter().find(|work| work["metric"] == "cpu").unwrap();
    assert_eq!(cpu["change"], "more", "{cpu}");
    let faster = run(&["gate", "--paired", "--base", &slow, "--new", &base]);
    assert_eq!(code(&faster), 0, "{}", String::from_utf8_lossy(&faster.stdout));
    // One command in two folders.
    for (name, ms) in [("a", 5.0), ("b", 9.0)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        stepping(&folder.path().join(name), "train.py", ms);
    }
    let dirs = |base: &str, new: &str| {
        stepscope()
            .current_dir(folder.path())
            .args(["gate", "--paired", "--base-dir", base, "--new-dir", new, "--", "python3", "train.py"])
            .output()
            .unwrap()
    };
    assert_eq!((code(&dirs("a", "b")), code(&dirs("b", "a"))), (1, 0));
    // Without steps, whole runs take turns.
    let whole = run(&["gate", "--paired", "--base", "sleep 0.01", "--new", "sleep 0.2"]);
    assert_eq!(code(&whole), 1, "{}", String::from_utf8_lossy(&whole.stdout));
    assert!(String::from_utf8_lossy(&whole.stderr).contains("whole runs take turns instead"));
    assert_eq!(code(&run(&["gate", "--paired", "--base", "true"])), 2);
    assert_eq!(code(&run(&["gate", "--paired"])), 2);
    let broken = run(&["gate", "--paired", "--base", "sh -c 'echo no data >&2; exit 3'", "--new", "true"]);
    assert_eq!(code(&broken), 2);
    assert!(String::from_utf8_lossy(&broken.stderr).contains("no data"));
}
