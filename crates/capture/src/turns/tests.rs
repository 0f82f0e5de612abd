//! Turns of small programs that report their steps.

use super::*;

/// A Python loop that reports its steps; each spins for so many milliseconds of processor time.
fn looping(ms: f64, steps: usize, before: &str) -> Side {
    let script = format!(
        "import time\n{before}\nimport stepscope_turns\nfor i in range({steps}):\n    \
         end = time.process_time() + {ms} / 1e3\n    while time.process_time() < end: pass\n    \
         stepscope_turns.boundary()\n"
    );
    Side { command: ["python3", "-c", &script].map(OsString::from).to_vec(), folder: None }
}

fn plan(base: Side, new: Side) -> Plan {
    Plan { sides: [base, new], warm_up: 3, patience: Duration::from_secs(60), stop: Stop::default() }
}

fn mean(steps: &[Step], of: fn(&Step) -> f64) -> f64 {
    steps.iter().map(of).sum::<f64>() / steps.len() as f64
}

#[test]
fn two_programs_take_turns_and_say_what_their_steps_took() {
    let mut turns = Turns::start(&plan(looping(4.0, 100_000, ""), looping(8.0, 100_000, ""))).unwrap();
    assert!((LEAST_STEPS..=MOST_STEPS).contains(&turns.steps()));
    for first in [0, 1, 1, 0] {
        let [base, new] = turns.pair(first).unwrap().unwrap();
        assert_eq!((base.len(), new.len()), (turns.steps(), turns.steps()));
        let (base, new) = (mean(&base, |step| step.cpu_ms), mean(&new, |step| step.cpu_ms));
        assert!((3.9..7.0).contains(&base) && (7.9..12.0).contains(&new), "{base} {new}");
    }
}

#[test]
fn who_waits_is_stopped_with_all_of_its_threads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busy");
    // A thread beside the loop counts as fast as it can.
    let threaded = format!(
        "import threading\ndef count():\n    n = 0\n    while True:\n        n += 1\n        \
         time.sleep(0.001)\n        open({:?}, 'w').write(str(n))\n\
         threading.Thread(target=count, daemon=True).start()",
        file.display().to_string()
    );
    let mut turns = Turns::start(&plan(looping(4.0, 100_000, &threaded), looping(4.0, 100_000, ""))).unwrap();
    turns.pair(1).unwrap().unwrap();
    let count = || std::fs::read_to_string(&file).unwrap_or_default();
    std::thread::sleep(Duration::from_millis(50));
    let before = count();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(count(), before);
    turns.pair(0).unwrap().unwrap();
    assert_ne!(count(), before, "in its turn, it goes on");
}

#[test]
fn a_program_that_ends_starts_again_and_one_that_fails_is_named() {
    let mut turns = Turns::start(&plan(looping(2.0, 40, ""), looping(2.0, 100_000, ""))).unwrap();
    // On a busy machine a turn has few steps.
    let mut pairs = Vec::new();
    while pairs.len() < 40 && !(pairs.contains(&true) && pairs.contains(&false)) {
        pairs.push(turns.pair(0).unwrap().is_some());
    }
    assert!(pairs.contains(&true) && pairs.contains(&false), "{pairs:?}");
    turns.restart().unwrap();
    assert!((0..4).any(|_| turns.pair(1).unwrap().is_some()), "new processes take turns, too");
    let silent = Side { command: ["true"].map(OsString::from).to_vec(), folder: None };
    let error = Turns::start(&plan(looping(2.0, 1000, ""), silent)).unwrap_err();
    assert!(matches!(error, (1, TurnsError::NoSteps)), "{error:?}");
    let broken = looping(2.0, 1000, "raise SystemExit('no data')");
    let error = Turns::start(&plan(broken, looping(2.0, 1000, ""))).unwrap_err();
    assert!(matches!(&error, (0, TurnsError::Failed(said)) if said == "no data"), "{error:?}");
    let missing = Side { command: vec!["no-such-program-here".into()], folder: None };
    assert!(matches!(
        Turns::start(&plan(missing, looping(2.0, 9, ""))).unwrap_err(),
        (0, TurnsError::Start { .. })
    ));
}

#[test]
fn the_python_package_has_the_same_module() {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/stepscope/turns.py");
    assert_eq!(std::fs::read_to_string(package).unwrap(), MODULE.1);
}
