//! Measures an input pipeline, batch by batch.
//!
//! The program reports each batch with a line: on standard output, or in the pipe named in `STEPSCOPE_BATCHES`
//! if standard output is used for something else. A line may contain the number of examples in the batch. Lines
//! are timed as they arrive; printing a line takes the program a few microseconds.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use wait4::Wait4 as _;

use super::command::{End, pid};
use super::{BenchError, Stop};

/// The variable that names the pipe.
pub(crate) const PIPE: &str = "STEPSCOPE_BATCHES";
/// Written to the pipe by stepscope when the program has ended.
const END: &[u8] = b"\x04\n";
/// Longer lines are not batches.
const LONGEST_LINE: usize = 64 << 10;
/// Maximum number of recorded batches.
const MOST_BATCHES: usize = 10_000_000;
/// If a program does not end within this time after being asked to, it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ends the program after this many batches.
    pub batches: Option<u64>,
    /// Ends the program after this time.
    pub duration: Option<Duration>,
}

/// The content of a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Number of examples in the batch; `None` if the line does not say.
    pub examples: Option<u64>,
}

/// One batch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Time since the start of the program.
    pub at: Duration,
    /// Number of examples, if known.
    pub examples: Option<u64>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In order of time.
    pub batches: Vec<Batch>,
    /// True if they came through the pipe instead of standard output.
    pub by_pipe: bool,
    /// Number of lines that arrived together with the previous one: many mean that the program buffers its
    /// output.
    pub bunched: u64,
    /// Lines on standard output that are not batches.
    pub other_lines: u64,
    /// From start to end.
    pub wall: Duration,
    /// Processor time of the program and the children that it waited for.
    pub cpu: Duration,
    /// How it ended; `None` if stepscope ended it.
    pub end: Option<End>,
    /// True if the user ended it early.
    pub stopped: bool,
}

enum Event {
    Line {
        at: Instant,
        text: String,
        bunched: bool,
        by_pipe: bool,
    },
    /// One of the two sources has ended.
    Closed,
}

/// Runs the program to its end, or to the end of the plan. `read` decides whether a line on standard output is
/// a batch.
pub fn measure(plan: &Plan, read: &dyn Fn(&str) -> Option<Line>, stop: &Stop) -> Result<Outcome, BenchError> {
    let pipe = NamedPipe::new()?;
    let begun = Instant::now();
    let mut child = start(plan, &pipe.path)?;
    stop.set_child(pid(&child));
    let (to, events) = mpsc::sync_channel(4096);
    if let Some(stdout) = child.stdout.take() {
        let to = to.clone();
        thread::spawn(move || lines(stdout, false, &to));
    }
    let from_pipe = pipe.open.try_clone()?;
    thread::spawn(move || lines(from_pipe, true, &to));
    let mut taken = Taken { begun, read, batches: Vec::new(), by_pipe: false, bunched: 0, other_lines: 0 };
    let ended_by_us = collect(plan, &events, &child, &mut taken, stop);
    if ended_by_us {
        end(&child, &events);
    }
    drop(events);
    let used = child.wait4();
    stop.set_child(None);
    let used = used?;
    Ok(Outcome {
        batches: taken.batches,
        by_pipe: taken.by_pipe,
        bunched: taken.bunched,
        other_lines: taken.other_lines,
        wall: begun.elapsed(),
        cpu: used.rusage.utime + used.rusage.stime,
        end: (!ended_by_us && !stop.is_wished()).then(|| End::of(used.status)),
        stopped: stop.is_wished(),
    })
}

fn start(plan: &Plan, pipe: &Path) -> Result<Child, BenchError> {
    let (program, args) = plan.command.split_first().unwrap_or((&EMPTY, &[]));
    let mut command = Command::new(program);
    // Python buffers its output if it is not a terminal; the times of lines would be lost.
    command.args(args).env(PIPE, pipe).env("PYTHONUNBUFFERED", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
        .spawn()
        .map_err(|source| BenchError::Start { program: program.to_string_lossy().into_owned(), source })
}

static EMPTY: OsString = OsString::new();

struct Taken<'a> {
    begun: Instant,
    read: &'a dyn Fn(&str) -> Option<Line>,
    batches: Vec<Batch>,
    by_pipe: bool,
    bunched: u64,
    other_lines: u64,
}

impl Taken<'_> {
    fn line(&mut self, at: Instant, text: &str, bunched: bool, by_pipe: bool) {
        if by_pipe && !self.by_pipe {
            // A program that uses the pipe means batches with it, and something else with standard output.
            self.by_pipe = true;
            self.other_lines += self.batches.len() as u64;
            (self.batches, self.bunched) = (Vec::new(), 0);
        }
        let line = match (by_pipe, self.by_pipe) {
            (true, _) => Some(Line { examples: leading_number(text) }),
            (false, true) => None,
            (false, false) => (self.read)(text),
        };
        let Some(line) = line.filter(|_| self.batches.len() < MOST_BATCHES) else {
            self.other_lines += 1;
            return;
        };
        self.bunched += u64::from(bunched);
        self.batches.push(Batch { at: at.saturating_duration_since(self.begun), examples: line.examples });
    }
}

/// The number at the start of a line: `64`, `64 examples`.
pub fn leading_number(line: &str) -> Option<u64> {
    let digits = line.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// Collects lines until the program or the plan ends; returns `true` if the program must still be ended.
fn collect(
    plan: &Plan,
    events: &mpsc::Receiver<Event>,
    child: &Child,
    taken: &mut Taken<'_>,
    stop: &Stop,
) -> bool {
    loop {
        let enough = plan.batches.is_some_and(|most| taken.batches.len() as u64 >= most);
        let over = plan.duration.is_some_and(|longest| taken.begun.elapsed() >= longest);
        if enough || over || stop.is_wished() {
            return true;
        }
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok(Event::Line { at, text, bunched, by_pipe }) => taken.line(at, &text, bunched, by_pipe),
            // A program may close its standard output and continue with the pipe, and a child may hold standard
            // output open after it has ended: only the program's own end counts, and then what is left in both
            // sources.
            Ok(Event::Closed) | Err(RecvTimeoutError::Timeout) if has_ended(child) => {
                while let Ok(Event::Line { at, text, bunched, by_pipe }) =
                    events.recv_timeout(Duration::from_millis(20))
                {
                    taken.line(at, &text, bunched, by_pipe);
                }
                return false;
            }
            Ok(Event::Closed) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

/// Does not consume the status, which is needed with the resource usage at the very end.
fn has_ended(child: &Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

/// Asks the program to end, and kills it if it does not. Lines that still arrive are read and ignored, so that
/// a full pipe does not block the program.
fn end(child: &Child, events: &mpsc::Receiver<Event>) {
    let Some(pid) = pid(child) else { return };
    let _ = kill_process(pid, Signal::TERM);
    let asked = Instant::now();
    while !has_ended(child) {
        if asked.elapsed() > GRACE {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = events.recv_timeout(Duration::from_millis(5));
    }
}

/// Times lines as they arrive.
fn lines(mut from: impl Read, by_pipe: bool, to: &mpsc::SyncSender<Event>) {
    let (mut line, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read) = from.read(&mut chunk) {
        let at = Instant::now();
        let mut bunched = false;
        for byte in chunk.get(..read).unwrap_or_default() {
            match byte {
                b'\n' => {
                    if by_pipe && line == END.trim_ascii_end() {
                        let _ = to.send(Event::Closed);
                        return;
                    }
                    let text = String::from_utf8_lossy(&line).into_owned();
                    line.clear();
                    if to.send(Event::Line { at, text, bunched, by_pipe }).is_err() {
                        return;
                    }
                    bunched = true;
                }
                byte if line.len() < LONGEST_LINE => line.push(*byte),
                _ => {}
            }
        }
        if read == 0 {
            break;
        }
    }
    let _ = to.send(Event::Closed);
}

/// A named pipe in its own folder, which is removed with it.
struct NamedPipe {
    path: PathBuf,
    folder: PathBuf,
    /// Opened for reading and writing: opening never blocks, and the pipe never ends by itself.
    open: File,
}

impl NamedPipe {
    fn new() -> io::Result<NamedPipe> {
        let folder = new_folder()?;
        let path = folder.join("batches");
        make_pipe(&path)?;
        let open = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(NamedPipe { path, folder, open })
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Apple's systems have no such call; their own tool makes pipes.
#[cfg(target_vendor = "apple")]
fn make_pipe(path: &Path) -> io::Result<()> {
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other("mkfifo failed")) }
}

fn new_folder() -> io::Result<PathBuf> {
    let base = std::env::temp_dir();
    for attempt in 0..100 {
        let folder = base.join(format!("stepscope-{}-{attempt}", std::process::id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Drop for NamedPipe {
    fn drop(&mut self) {
        // Lets the reading thread end; what cannot be removed stays in the folder for temporary files.
        let _ = (&self.open).write_all(END);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(script: &str, plan: impl FnOnce(Plan) -> Plan) -> Outcome {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        let every = |line: &str| Some(Line { examples: leading_number(line) });
        measure(&plan(Plan { command, batches: None, duration: None }), &every, &Stop::default()).unwrap()
    }

    #[test]
    fn lines_are_batches_and_numbers_are_examples() {
        let outcome = measured("for i in 1 2 3; do echo $((i * 10)); done; exit 3", |plan| plan);
        let examples: Vec<_> = outcome.batches.iter().map(|batch| batch.examples).collect();
        assert_eq!(examples, [Some(10), Some(20), Some(30)]);
        assert_eq!(outcome.end, Some(End::Code(3)));
        assert!(!outcome.by_pipe);
        assert_eq!(leading_number(" 64 examples"), Some(64));
        assert_eq!(leading_number("batch 64"), None);
    }

    #[test]
    fn the_pipe_goes_before_standard_output() {
        let outcome = measured(
            "echo hello; for i in 1 2 3 4; do echo 8; done > $STEPSCOPE_BATCHES; echo bye",
            |plan| plan,
        );
        assert_eq!(outcome.batches.len(), 4);
        assert!(outcome.by_pipe);
        assert_eq!(outcome.other_lines, 2);
        assert_eq!(outcome.end, Some(End::Code(0)));
    }

    #[test]
    fn a_pipeline_without_end_is_ended() {
        let outcome = measured("while true; do echo 1; done", |plan| Plan { batches: Some(50), ..plan });
        assert_eq!((outcome.batches.len(), outcome.end), (50, None));
        // One that does not want to.
        let stubborn = "trap '' TERM; while true; do sleep 0.01; echo 1; done";
        let outcome = measured(stubborn, |plan| Plan { duration: Some(Duration::from_millis(200)), ..plan });
        assert!(!outcome.batches.is_empty() && outcome.end.is_none());
    }

    #[test]
    fn lines_in_one_piece_are_noticed() {
        let outcome = measured("printf '1\\n1\\n1\\n1\\n'", |plan| plan);
        assert_eq!((outcome.batches.len(), outcome.bunched), (4, 3));
    }

    #[test]
    fn the_folder_of_the_pipe_is_gone_afterwards() {
        let pipe = NamedPipe::new().unwrap();
        let folder = pipe.folder.clone();
        assert!(folder.exists());
        drop(pipe);
        assert!(!folder.exists());
    }
}
