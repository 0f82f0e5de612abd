//! Python environments that are made beside the compiler: installing waits for the network and the disk more than for a
//! core. What it prints goes to a file. What fails is tried again, in the open, where it is needed.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::python::Environment;
use crate::run::Outcome;

/// How the file begins that takes what the running command prints.
const LOG: &str = "stepscope-background";
/// How many lines of it are shown if it fails.
const LINES: usize = 20;

/// Environments in the making. Dropping it ends the work.
#[derive(Debug)]
pub(crate) struct Background {
    running: Arc<Mutex<Running>>,
    /// `None` after it was joined.
    thread: Option<JoinHandle<Vec<String>>>,
}

#[derive(Debug)]
enum Running {
    /// Between two commands.
    Nothing,
    Command(Child),
    /// Nothing may start any more.
    Stopped,
}

impl Background {
    /// Makes these environments one after the other, in a thread.
    pub(crate) fn start(environments: Vec<Environment>) -> Self {
        let running = Arc::new(Mutex::new(Running::Nothing));
        let shared = Arc::clone(&running);
        let made = move || environments.iter().map(|one| made(one, &shared)).collect();
        Background { running, thread: Some(std::thread::spawn(made)) }
    }

    /// Waits for all of them, and prints what happened.
    pub(crate) fn finish(mut self) {
        println!("==> environments");
        let told = self.thread.take().map(JoinHandle::join);
        for line in told.and_then(Result::ok).unwrap_or_default() {
            println!("    {line}");
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *locked(&self.running), Running::Stopped);
        if let Running::Command(mut child) = before {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn locked(running: &Mutex<Running>) -> std::sync::MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes one; returns a line about it.
fn made(environment: &Environment, running: &Mutex<Running>) -> String {
    let name = &environment.name;
    if environment.finished().is_some() {
        return format!("{name}: there already");
    }
    let began = Instant::now();
    match environment.made(&|_, command| quiet(command, running)) {
        Ok(_) => format!("{name}: made beside the compiler in {:.0} s", began.elapsed().as_secs_f64()),
        Err(why) => format!("{name}: failed, tried again below: {why}"),
    }
}

/// Runs a command whose output is only shown if it fails.
fn quiet(command: &mut Command, running: &Mutex<Running>) -> Outcome {
    let path = std::env::temp_dir().join(format!("{LOG}-{}.log", std::process::id()));
    let log = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
    let (out, err) = log.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    {
        let mut running = locked(running);
        if matches!(*running, Running::Stopped) {
            return Err("stopped".to_owned());
        }
        *running = Running::Command(command.spawn().map_err(|error| format!("{command:?}: {error}"))?);
    }
    let succeeded = loop {
        std::thread::sleep(Duration::from_millis(50));
        let mut running = locked(running);
        let Running::Command(child) = &mut *running else { return Err("stopped".to_owned()) };
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            *running = Running::Nothing;
            break status.success();
        }
    };
    let said = fs::read_to_string(&path).unwrap_or_default();
    // Nobody looks for it there.
    let _ = fs::remove_file(&path);
    if succeeded { Ok(()) } else { Err(format!("{command:?}\n{}", last_lines(&said))) }
}

/// The last lines of a log, indented.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    last.iter().map(|line| format!("        {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_shown_and_one_that_runs_ends_with_its_owner() {
        let running = Arc::new(Mutex::new(Running::Nothing));
        let script = |text: &str| quiet(Command::new("sh").args(["-c", text]), &running);
        assert_eq!(script("exit 0"), Ok(()));
        let why = script("echo no network >&2; exit 1").unwrap_err();
        assert!(why.ends_with("\n        no network"), "{why}");
        let background = Background { running: Arc::clone(&running), thread: None };
        let owner = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(background);
        });
        assert_eq!(script("exec sleep 60"), Err("stopped".to_owned()));
        assert_eq!(script("exit 0"), Err("stopped".to_owned()), "nothing starts any more");
        owner.join().unwrap();
    }
}
