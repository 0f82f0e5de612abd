//! `stepscope run` records Python programs without a change to them, and without their noticing: steps, lines and verdict with a
//! framework in a few lines (`support/fake_torch.py`), and everything that a program could notice, compared with a plain run.
//! The last ones run real frameworks if STEPSCOPE_TEST_PYTHON names a Python with them.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::{schema, stepscope};
use tempfile::TempDir;

/// A folder with the fake framework beside a script.
fn workplace(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake_torch.py");
    let library = folder.path().join("site-packages");
    assert!(Command::new("python3").arg("-B").arg(maker).arg(library).status().unwrap().success());
    fs::write(folder.path().join("train.py"), script).unwrap();
    folder
}

struct Ran {
    output: Output,
    run: Value,
    page: String,
    report: Option<Value>,
    /// Logs beside the profiles.
    logs: Vec<Value>,
}

/// What `run` says about a command, and what the recording says.
fn ran(folder: &Path, command: &[&str], more: &[&str]) -> Ran {
    let kept = tempfile::tempdir().unwrap();
    let (save, file) = (kept.path().join("saved"), kept.path().join("run.json"));
    let mut run = stepscope();
    run.current_dir(folder).arg("run").arg("--save").arg(&save).arg("--json").arg(&file).args(more).arg("--");
    run.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", folder.join("site-packages"));
    let output = run.args(command).output().unwrap();
    let page = String::from_utf8_lossy(&output.stderr).into_owned();
    let run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let profile = run["verdict"]["profile"].as_str();
    let report = profile.map(|path| {
        let report = stepscope().args(["report", "--json", path]).output().unwrap();
        serde_json::from_slice(&report.stdout).unwrap()
    });
    let logs = logs_below(&save);
    logs.iter().for_each(schema::fits);
    Ran { output, run, page, report, logs }
}

fn logs_below(folder: &Path) -> Vec<Value> {
    let files = files(folder).into_keys().filter(|path| path.to_string_lossy().ends_with(".host.json"));
    files.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// Steps of 20 ms, most of it Python in `make_batch`.
const LOOP: &str = "
import time, torch
def make_batch():
    until = time.perf_counter() + 0.015
    total = 0
    while time.perf_counter() < until:
        total += 1
    return total
optimizer = torch.optim.SGD()
for step in range(160):
    batch = make_batch()
    torch.work(0.003)
    optimizer.step()
print('trained')
";

#[test]
fn a_loop_that_nobody_changed_is_recorded_with_its_line() {
    let folder = workplace(LOOP);
    let ran = ran(folder.path(), &["python3", "train.py"], &[]);
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "trained\n");
    assert_eq!(
        (&ran.run["steps"]["origin"], ran.output.status.code()),
        (&Value::from("inside"), Some(0)),
        "{}",
        ran.page
    );
    let steps = &ran.run["steps"];
    // All but the last step, whose end no boundary marks.
    let all = steps["count"].as_u64().unwrap() + steps["profiled"].as_u64().unwrap();
    assert_eq!(all, 159, "{}", ran.page);
    let report = ran.report.as_ref().unwrap();
    assert_eq!(report["steps"]["origin"], "marker", "{report}");
    assert!(report["steps"]["count"].as_u64().unwrap() >= 5, "{report}");
    assert_eq!(ran.run["verdict"]["line"], "train.py:3 make_batch", "{}", ran.page);
    assert_eq!(ran.logs.len(), 1, "the log of the steady window replaces that of the early one");
    let first = ran.page.trim_start().lines().next().unwrap();
    assert!(first.starts_with("verdict") && first.contains("train.py:3 make_batch"), "{}", ran.page);
    assert!(ran.page.contains("\ndo ") && ran.page.contains("\nrecording "), "{}", ran.page);
}

#[test]
fn batches_accumulation_and_validation_do_not_count_as_steps() {
    let script = "
import torch
train, validation = list(range(24)), list(range(5))
optimizer = torch.optim.SGD()
for epoch in range(4):
    for place, batch in enumerate(torch.utils.data.DataLoader(train)):
        torch.work(0.002)
        if place % 2 == 1:
            optimizer.step()
    for batch in torch.utils.data.DataLoader(validation):
        torch.work(0.001)
";
    let folder = workplace(script);
    let ran = ran(folder.path(), &["python3", "train.py"], &[]);
    let steps = &ran.run["steps"];
    let all = steps["count"].as_u64().unwrap() + steps["profiled"].as_u64().unwrap();
    // 48 updates; the first ones teach which iterator feeds them.
    assert!((45..=48).contains(&all), "{all}\n{}", ran.page);
}

#[test]
fn a_script_of_ten_steps_and_one_that_raises_leave_what_there_was() {
    let script = LOOP.replace("range(160)", "range(10)");
    let folder = workplace(&script);
    let short = ran(folder.path(), &["python3", "train.py"], &[]);
    let count = short.report.as_ref().unwrap()["steps"]["count"].as_u64().unwrap();
    assert!((4..=8).contains(&count), "{count}\n{}", short.page);
    fs::write(
        folder.path().join("train.py"),
        script.replace("print('trained')", "raise ValueError('ended')"),
    )
    .unwrap();
    let raised = ran(folder.path(), &["python3", "train.py"], &[]);
    assert_eq!(raised.output.status.code(), Some(1));
    assert!(raised.page.contains("ValueError: ended") && raised.report.is_some(), "{}", raised.page);
    fs::write(
        folder.path().join("train.py"),
        script.replace("print('trained')", "import os; os.kill(os.getpid(), 9)"),
    )
    .unwrap();
    let killed = ran(folder.path(), &["python3", "train.py"], &[]);
    assert_eq!(killed.run["signal"], 9, "{}", killed.page);
}

#[test]
fn a_loop_that_is_killed_after_its_window_has_a_verdict() {
    let folder = workplace(&LOOP.replace("print('trained')", "import os; os._exit(3)"));
    let ran = ran(folder.path(), &["python3", "train.py"], &[]);
    assert_eq!(ran.output.status.code(), Some(3));
    assert_eq!(ran.run["verdict"]["line"], "train.py:3 make_batch", "{}", ran.page);
}

/// Pythons on this machine, from 3.8 on: those of `PATH`, and those of pyenv.
fn pythons() -> Vec<(String, PathBuf)> {
    let mut found = BTreeMap::new();
    let pyenv = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    let installed = pyenv.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let named = (8..=15).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let programs = installed.map(|entry| entry.path().join("bin/python")).chain(named);
    for program in programs.chain([PathBuf::from("python3")]) {
        let ask = "import sys; print('%d.%02d' % sys.version_info[:2])";
        let Ok(output) = Command::new(&program).args(["-c", ask]).output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && version.as_str() >= "3.08" {
            found.entry(version).or_insert(program);
        }
    }
    found.into_iter().collect()
}

#[test]
fn every_python_on_this_machine_is_followed_with_its_line() {
    let folder = workplace(LOOP);
    let pythons = pythons();
    assert!(!pythons.is_empty());
    for (version, python) in pythons {
        let ran = ran(folder.path(), &[python.to_str().unwrap(), "train.py"], &[]);
        assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "trained\n", "{version}");
        assert_eq!(ran.run["verdict"]["line"], "train.py:3 make_batch", "{version}: {}", ran.page);
    }
}

#[test]
fn a_virtual_environment_and_a_launcher_are_followed() {
    let folder = workplace(LOOP);
    let place = folder.path().join("venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&place).status();
    if made.is_ok_and(|made| made.success()) {
        let python = place.join("bin/python");
        let ran = ran(folder.path(), &[python.to_str().unwrap(), "train.py"], &[]);
        assert_eq!(ran.run["verdict"]["line"], "train.py:3 make_batch", "{}", ran.page);
    }
    let mpi = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "python3", "train.py"];
    if Command::new(mpi[0]).arg("--version").output().is_ok() {
        let ran = ran(folder.path(), &mpi, &[]);
        let ranks: Vec<&Value> = ran.logs.iter().map(|log| &log["rank"]).collect();
        assert_eq!(ranks, [&Value::from(0), &Value::from(1)], "{}", ran.page);
        assert_eq!(ran.logs[0]["window"]["first_step"], ran.logs[1]["window"]["first_step"]);
    }
}

#[test]
fn waits_for_the_interpreter_lock_are_told_with_who_holds_it() {
    let script = "
import threading, torch
def collect():
    total = 0
    while True:
        total += 1
threading.Thread(target=collect, daemon=True).start()
optimizer = torch.optim.SGD()
for step in range(120):
    total = 0
    for number in range(60_000):
        total += number
    optimizer.step()
";
    let folder = workplace(script);
    let ran = ran(folder.path(), &["python3", "train.py"], &[]);
    let log = ran.logs.first().unwrap();
    let waits = log["lock_waits"].as_array().unwrap();
    assert!(!waits.is_empty(), "{}", ran.page);
    let window = log["steps"]["times"].as_array().unwrap();
    let lasted = window.last().unwrap().as_f64().unwrap() - window[0].as_f64().unwrap();
    let waited: f64 = waits.iter().map(|wait| wait[1].as_f64().unwrap()).sum();
    assert!(waited < 0.9 * lasted, "{waited} of {lasted}");
    let at = |list: &str, place: &Value| log[list][place.as_u64().unwrap() as usize].clone();
    let holder = at("sites", at("stacks", &waits[0][2]).as_array().unwrap().last().unwrap());
    assert_eq!(holder["function"], "collect", "{holder}");
    // On a busy machine, both threads mostly wait for a processor.
    if waited > 0.3 * lasted {
        assert_eq!(ran.run["verdict"]["line"], "train.py:3 collect", "{}", ran.page);
        assert!(ran.page.contains("interpreter lock"), "{}", ran.page);
    }
    // A thread that sleeps holds nothing.
    let asleep = script.replace("        total += 1", "        __import__('time').sleep(0.002)");
    fs::write(folder.path().join("train.py"), asleep).unwrap();
    let calm = self::ran(folder.path(), &["python3", "train.py"], &[]);
    let waits = calm.logs.first().unwrap()["lock_waits"].as_array().unwrap();
    let waited: f64 = waits.iter().map(|wait| wait[1].as_f64().unwrap()).sum();
    assert!(waited < 0.1 * lasted, "{waited}");
}

#[test]
fn a_program_that_runs_already_is_recorded_and_left_as_it_was_or_a_sentence_says_why_not() {
    let endless = LOOP.replace("range(160)", "range(3000)");
    let folder = workplace(&endless.replace("print('trained')", "print(len(torch.optim.optimizer._hooks))"));
    for (version, python) in pythons() {
        let mut program = Command::new(&python);
        program.arg("train.py").current_dir(folder.path()).stdout(Stdio::piped());
        program.env("PYTHONPATH", folder.path().join("site-packages"));
        let mut child = program.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let logs = folder.path().join(format!("logs-{version}"));
        let mut attach = stepscope();
        attach.arg("attach").arg(child.id().to_string()).arg("--logdir").arg(&logs).arg("--json");
        let output = attach.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if version.as_str() >= "3.14" && output.status.success() {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["steps"]["origin"], "marker", "{said}");
            logs_below(&logs).iter().for_each(schema::fits);
        } else if version.as_str() >= "3.14" {
            // Containers may forbid it.
            assert!(said.contains("cannot be entered"), "{said}");
        } else {
            let expected = format!("it runs Python {}, which cannot be entered", version.replace(".0", "."));
            assert_eq!(output.status.code(), Some(3), "{said}");
            assert!(said.contains(&expected) && said.contains("stepscope run"), "{said}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let none = stepscope().args(["attach", "4194304"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn without_injection_and_where_python_is_closed_nothing_is_recorded() {
    let folder = workplace("print('step 1')");
    let plain = ran(folder.path(), &["python3", "train.py"], &["--no-inject"]);
    assert!(plain.run["verdict"].is_null() && !plain.page.contains("not recorded"), "{}", plain.page);
    for option in ["-S", "-I", "-E"] {
        let closed = ran(folder.path(), &["python3", option, "train.py"], &[]);
        assert_eq!(closed.output.status.code(), Some(0));
        assert!(closed.page.contains(&format!("option {option} keeps stepscope out")), "{}", closed.page);
    }
    let other = ran(folder.path(), &["sh", "-c", "echo step 1"], &[]);
    assert!(!other.page.contains("not recorded") && !other.page.contains("recording"), "{}", other.page);
}

// --- What a program could notice ------------------------------------------------------------------------------------

/// Everything that a program can see of where it runs, and what it leaves behind.
const LOOK: &str = "
import json, multiprocessing, os, subprocess, sys, threading
def child():
    pass
def main():
    listed = lambda text: sorted(line for line in text.splitlines() if not line.startswith(('_=', 'SHLVL=')))
    python = [sys.executable, '-c', 'import os, sys; print(sorted(os.environ.items()), sys.path)']
    seen = {
        'argv': sys.argv, 'path': sys.path, 'environment': sorted(os.environ.items()),
        'python child': subprocess.run(python, capture_output=True, text=True).stdout,
        'python child with its own environment': subprocess.run(python, env=dict(os.environ, A='1'), capture_output=True, text=True).stdout,
        'other child': listed(subprocess.run(['env'], capture_output=True, text=True).stdout),
        'shell': listed(subprocess.run('env', shell=True, capture_output=True, text=True).stdout),
        'sitecustomize': getattr(sys.modules.get('sitecustomize'), '__file__', None),
        'own': getattr(sys, 'own_sitecustomize', None),
        'threads': threading.active_count(), 'flags': str(sys.flags), 'interval': sys.getswitchinterval(),
    }
    worker = multiprocessing.get_context('spawn').Process(target=child)
    worker.start(); worker.join()
    seen['worker'] = worker.exitcode
    print(json.dumps(seen, indent=1))
    sys.stderr.write('to standard error\\n')
    open('written.txt', 'w').write('x')
    sys.exit(7)
if __name__ == '__main__':
    main()
";

/// Files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut all = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(place) = todo.pop() {
        for entry in fs::read_dir(place).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => todo.push(entry.path()),
                false => drop(all.insert(entry.path(), entry.metadata().unwrap().len())),
            }
        }
    }
    all
}

/// Output, exit code and files of a command in a folder, with or without `run` around it.
fn seen(
    folder: &Path,
    command: &[&str],
    stdin: &str,
    followed: bool,
    environment: &[(&str, &str)],
) -> (String, String, Option<i32>, usize) {
    let mut start = if followed { stepscope() } else { Command::new(command[0]) };
    if followed {
        start.args(["run", "--"]).args(command);
    } else {
        start.args(&command[1..]);
    }
    start.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH").envs(environment.iter().copied());
    // What the test harness sets would be the same for both; the page's own variables are not of interest.
    start.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = err.split("\n\nrun  ").next().unwrap_or_default().trim_end().to_owned();
    (String::from_utf8_lossy(&output.stdout).into_owned(), own, output.status.code(), files(folder).len())
}

#[test]
fn a_program_cannot_tell_that_it_is_followed() {
    let ways: &[(&[&str], &str)] = &[
        (&["python3", "look.py", "--option", "a b"], ""),
        (&["python3", "-m", "look"], ""),
        (&["python3", "-O", "look.py"], ""),
        (&["python3", "-s", "look.py"], ""),
        (&["python3", "-u", "look.py"], ""),
        (&["python3", "-c", "import look; look.main()"], ""),
        (&["python3", "-"], "import look\nlook.main()\n"),
        (&["python3", "-S", "look.py"], ""),
        (&["python3", "-E", "look.py"], ""),
        (&["sh", "-c", "python3 look.py"], ""),
    ];
    for (command, stdin) in ways {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("look.py"), LOOK).unwrap();
        let plain = seen(folder.path(), command, stdin, false, &[]);
        let followed = seen(folder.path(), command, stdin, true, &[]);
        let closed = command.contains(&"-S") || command.contains(&"-E");
        if closed {
            // Nothing of it runs there that could take the variables away again.
            assert_eq!((plain.2, plain.3), (followed.2, followed.3), "{command:?}");
        } else {
            assert_eq!(plain, followed, "{command:?}");
        }
        assert_eq!(plain.2, Some(7), "{plain:?}");
    }
}

#[test]
fn a_sitecustomize_of_the_users_own_runs_as_without() {
    for (text, says) in [
        ("import sys; sys.own_sitecustomize = __name__", "sitecustomize"),
        ("raise RuntimeError('broken')", "null"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("sitecustomize.py"), text).unwrap();
        fs::write(folder.path().join("look.py"), LOOK).unwrap();
        let environment = [("PYTHONPATH", own.to_str().unwrap())];
        let plain = seen(folder.path(), &["python3", "look.py"], "", false, &environment);
        let followed = seen(folder.path(), &["python3", "look.py"], "", true, &environment);
        assert_eq!(plain, followed);
        assert!(plain.0.contains(says), "{plain:?}");
    }
}

#[test]
fn ranks_of_a_launcher_record_the_same_steps_and_workers_record_nothing() {
    let script = "
import multiprocessing, os, subprocess, sys
def idle():
    import torch
if __name__ == '__main__':
    if 'RANK' not in os.environ:
        worker = multiprocessing.get_context('spawn').Process(target=idle)
        worker.start(); worker.join()
        ranks = [subprocess.Popen([sys.executable, __file__], env=dict(os.environ, RANK=str(rank), WORLD_SIZE='2')) for rank in (0, 1)]
        sys.exit(max(rank.wait() for rank in ranks))
    import torch
    optimizer = torch.optim.SGD()
    for step in range(60):
        torch.work(0.004)
        optimizer.step()
";
    let folder = workplace(script);
    let kept = tempfile::tempdir().unwrap();
    let save = kept.path().join("saved");
    let mut run = stepscope();
    run.current_dir(folder.path()).args(["run", "--save"]).arg(&save).args(["--", "python3", "train.py"]);
    run.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", folder.path().join("site-packages"));
    let output = run.output().unwrap();
    let page = String::from_utf8_lossy(&output.stderr);
    let logs = logs_below(&save);
    assert_eq!(logs.len(), 2, "{page}");
    assert_eq!(logs[0]["window"]["first_step"], logs[1]["window"]["first_step"], "{page}");
    assert_eq!(logs[0]["window"]["steps"], logs[1]["window"]["steps"], "{page}");
    assert_eq!(logs[0]["rank"].as_i64().unwrap() + logs[1]["rank"].as_i64().unwrap(), 1);
}

#[test]
fn workers_that_are_run_one_by_one_record_the_same_steps_under_their_names() {
    let folder = workplace(
        "
import torch
optimizer = torch.optim.SGD()
for step in range(30):
    torch.work(0.004)
    optimizer.step()
",
    );
    let kept = tempfile::tempdir().unwrap();
    let runs: Vec<_> = (0..2)
        .map(|index| {
            let config = format!(
                r#"{{"cluster": {{"chief": ["a:1"], "worker": ["b:1"]}}, "task": {{"type": "{}", "index": 0}}}}"#,
                ["chief", "worker"][index]
            );
            let mut run = stepscope();
            run.current_dir(folder.path()).args(["run", "--save"]).arg(kept.path().join(index.to_string()));
            run.args(["--", "python3", "train.py"]).env("TF_CONFIG", config).stderr(Stdio::null());
            run.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", folder.path().join("site-packages"));
            run.spawn().unwrap()
        })
        .collect();
    runs.into_iter().for_each(|mut run| assert!(run.wait().unwrap().success()));
    let logs: BTreeMap<String, Value> = files(kept.path())
        .keys()
        .filter(|path| path.to_string_lossy().ends_with(".host.json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        })
        .collect();
    let (chief, worker) = (&logs["chief0.host.json"], &logs["worker0.host.json"]);
    assert_eq!((&chief["rank"], &worker["rank"], &worker["world"]), (&0.into(), &1.into(), &2.into()));
    assert_eq!(chief["window"]["first_step"], worker["window"]["first_step"], "{logs:?}");
    assert_eq!(chief["window"]["steps"], worker["window"]["steps"], "{logs:?}");
}

// --- Real frameworks --------------------------------------------------------------------------------------------------

fn frameworks() -> Option<String> {
    let python = std::env::var("STEPSCOPE_TEST_PYTHON").ok();
    if python.is_none() {
        skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with TensorFlow and JAX");
    }
    python
}

/// The verdict and the line of a script; its steps are markers.
fn verdict_of(python: &str, script: &str) -> (String, String, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), script).unwrap();
    let ran = ran(folder.path(), &[python, "train.py"], &[]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(report) = &ran.report {
        assert_eq!(report["steps"]["origin"], "marker", "{}", ran.page);
    }
    (text(&ran.run["verdict"]["id"]), text(&ran.run["verdict"]["line"]), ran.page)
}

#[test]
fn a_jax_loop_that_feeds_itself_is_named_by_its_function() {
    let Some(python) = frameworks() else { return };
    let script = "
import jax, jax.numpy as jnp, numpy as np
def make_batch(step):
    total = 0.0
    for number in range(300_000):
        total += number * 0.5
    return np.full((64,), total % 7, np.float32)
@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.sum((x @ w) ** 2))(w)
w = jnp.ones((64, 8))
for number in range(60):
    w = step(w, make_batch(number))
    w.block_until_ready()
";
    let (id, line, page) = verdict_of(&python, script);
    assert!(id == "input-bound" || id == "host-python", "{page}");
    // On a busy machine few samples fall into the function; then the loop's own line, which calls it, is named.
    assert!(["train.py:3 make_batch", "train.py:13 <module>"].contains(&line.as_str()), "{page}");
}

#[test]
fn a_keras_dataset_in_python_is_named_by_its_function() {
    let Some(python) = frameworks() else { return };
    let script = "
import numpy as np, keras
class Data(keras.utils.PyDataset):
    def __len__(self):
        return 60
    def __getitem__(self, index):
        total = 0.0
        for number in range(600_000):
            total += number * 0.5
        return np.ones((16, 32), 'float32') * (total % 3), np.zeros((16, 1), 'float32')
model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile('sgd', 'mse')
model.fit(Data(), epochs=1, verbose=0)
";
    let (id, line, page) = verdict_of(&python, script);
    assert_eq!((id.as_str(), line.as_str()), ("input-bound", "train.py:6 __getitem__"), "{page}");
}

#[test]
fn a_tensorflow_loop_with_python_metrics_is_named_by_its_function() {
    let Some(python) = frameworks() else { return };
    let script = "
import tensorflow as tf
@tf.function
def train_step(x):
    return tf.reduce_sum(tf.matmul(x, x))
def log_metrics(loss):
    total = float(loss)
    for number in range(300_000):
        total += number * 0.5
    return total
for x in tf.data.Dataset.from_tensors(tf.ones((32, 32))).repeat(60):
    log_metrics(train_step(x))
";
    let (id, line, page) = verdict_of(&python, script);
    assert_eq!((id.as_str(), line.as_str()), ("host-python", "train.py:6 log_metrics"), "{page}");
}
