//! Runs commands repeatedly, and alternates two of them if they are to be compared.
//!
//! The order is A B, B A, A B, …, so that drift of the machine affects both equally.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Pid;
use wait4::Wait4 as _;

use super::{BenchError, Stop};

/// How much of a command's standard error is kept, from its end.
const KEPT: usize = 2 << 10;
/// A child of the command may hold standard error open after the command has ended; it is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// How a command ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// With this exit code; 0 means success.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl End {
    pub(super) fn of(status: ExitStatus) -> End {
        status.code().map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Code)
    }
}

/// One run of a command.
#[derive(Clone, Debug)]
pub struct TimedRun {
    /// From start to end.
    pub wall: Duration,
    /// User processor time, including children that were waited for.
    pub user: Duration,
    /// System processor time on its behalf.
    pub system: Duration,
    /// Peak memory of its largest process, in bytes; `None` if stepscope itself, which the system counts for
    /// the moment before the start, used as much.
    pub max_rss: Option<u64>,
    /// How it ended.
    pub end: End,
    /// The end of its standard error, if it failed.
    pub said: String,
}

/// What to run, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The commands; each is a program and its arguments.
    pub commands: Vec<Vec<OsString>>,
    /// Counted runs of each command.
    pub runs: usize,
    /// Warm-up runs of each command.
    pub warmup: usize,
    /// Shows the output of the commands.
    pub show: bool,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counted runs, by command, in the order in which they ran.
    pub runs: Vec<Vec<TimedRun>>,
    /// True if the user ended it early.
    pub stopped: bool,
}

/// Runs all commands. `told` is called before each run with the number of completed runs.
pub fn measure(plan: &Plan, stop: &Stop, told: &dyn Fn(usize)) -> Result<Outcome, BenchError> {
    let mut runs: Vec<Vec<TimedRun>> = plan.commands.iter().map(|_| Vec::new()).collect();
    let mut done = 0;
    for round in 0..plan.warmup + plan.runs {
        let mut turn: Vec<usize> = (0..plan.commands.len()).collect();
        if round % 2 == 1 {
            turn.reverse();
        }
        for which in turn {
            told(done);
            let Some(command) = plan.commands.get(which) else { continue };
            let run = run_once(command, plan.show, stop)?;
            // A run that was ended early says nothing.
            if stop.is_wished() {
                return Ok(Outcome { runs, stopped: true });
            }
            done += 1;
            if let Some(runs) = runs.get_mut(which).filter(|_| round >= plan.warmup) {
                runs.push(run);
            }
        }
    }
    Ok(Outcome { runs, stopped: false })
}

fn run_once(command: &[OsString], show: bool, stop: &Stop) -> Result<TimedRun, BenchError> {
    let (program, args) =
        command.split_first().ok_or_else(|| start_error("", std::io::ErrorKind::NotFound))?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    if !show {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
    }
    let floor = own_peak();
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|source| BenchError::Start { program: program.to_string_lossy().into_owned(), source })?;
    stop.set_child(pid(&child));
    let errors = child.stderr.take().map(keep_end);
    let used = child.wait4();
    let wall = begun.elapsed();
    stop.set_child(None);
    let used = used?;
    let end = End::of(used.status);
    let said = match errors {
        Some(errors) if end != End::Code(0) => errors.recv_timeout(PATIENCE).unwrap_or_default(),
        _ => String::new(),
    };
    let max_rss = Some(used.rusage.maxrss).filter(|rss| floor.is_none_or(|floor| *rss > floor));
    Ok(TimedRun { wall, user: used.rusage.utime, system: used.rusage.stime, max_rss, end, said })
}

fn start_error(program: &str, kind: std::io::ErrorKind) -> BenchError {
    BenchError::Start { program: program.to_owned(), source: kind.into() }
}

pub(super) fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Reads to the end, however much comes, and keeps the last part.
fn keep_end(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (to, end) = mpsc::channel();
    thread::spawn(move || {
        let (mut kept, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(read) = from.read(&mut chunk) {
            if read == 0 {
                break;
            }
            kept.extend_from_slice(chunk.get(..read).unwrap_or_default());
            kept.drain(..kept.len().saturating_sub(KEPT));
        }
        // If the command succeeded, nobody is listening.
        let _ = to.send(String::from_utf8_lossy(&kept).trim().to_owned());
    });
    end
}

/// Peak memory of this process: a child that was just started counts as using it too.
fn own_peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].map(OsString::from).to_vec()
    }

    fn plan(commands: Vec<Vec<OsString>>) -> Plan {
        Plan { commands, runs: 3, warmup: 1, show: false }
    }

    #[test]
    fn runs_take_turns_and_warm_runs_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let say = |name: &str| shell(&format!("echo {name} >> {}", log.display()));
        let outcome = measure(&plan(vec![say("a"), say("b")]), &Stop::default(), &|_| {}).unwrap();
        assert_eq!(outcome.runs.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        let order = fs::read_to_string(log).unwrap().replace('\n', "");
        assert_eq!(order, "abbaabba");
    }

    #[test]
    fn processor_time_memory_and_failure_are_seen() {
        // Counts for a while, then holds more memory than this process, then fails.
        let held = own_peak().unwrap() + 64_000_000;
        let script = format!(
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo first >&2; \
             head -c {held} /dev/zero | tail -c {held} > /dev/null; echo broken >&2; exit 7"
        );
        let outcome = measure(&plan(vec![shell(&script)]), &Stop::default(), &|_| {}).unwrap();
        for run in &outcome.runs[0] {
            assert_eq!(run.end, End::Code(7));
            assert_eq!(run.said, "first\nbroken");
            assert!(run.user > Duration::from_millis(5) && run.user <= run.wall + run.wall / 2, "{run:?}");
            assert!(run.max_rss.unwrap() > held - 4_000_000, "{run:?}");
        }
        let killed = measure(&plan(vec![shell("kill -9 $$")]), &Stop::default(), &|_| {}).unwrap();
        assert_eq!(killed.runs[0][0].end, End::Signal(9));
    }

    #[test]
    fn a_small_program_has_no_memory_of_its_own() {
        let own = own_peak().unwrap();
        let outcome = measure(&plan(vec![shell("exit 0")]), &Stop::default(), &|_| {}).unwrap();
        assert!(outcome.runs[0].iter().all(|run| run.max_rss.is_none_or(|rss| rss > own)));
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let wrong = measure(&plan(vec![vec!["/no/such/program".into()]]), &Stop::default(), &|_| {});
        assert!(matches!(wrong, Err(BenchError::Start { program, .. }) if program == "/no/such/program"));
    }

    #[test]
    fn a_wish_for_the_end_ends_the_child_as_well() {
        let stop = Stop::default();
        let wish = stop.clone();
        let begun = Instant::now();
        let told = |done: usize| {
            if done == 2 {
                wish.now();
            }
        };
        let outcome =
            measure(&plan(vec![shell("if [ -e /nowhere ]; then sleep 60; fi")]), &stop, &told).unwrap();
        assert!(outcome.stopped);
        assert_eq!(outcome.runs[0].len(), 1);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
