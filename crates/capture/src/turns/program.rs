//! One of two programs that take turns: its process group, its socket, and what it says there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use stepscope_read::files;

use super::{Plan, Side, Step, TurnsError};
use crate::run::inject::{Injection, python_path};

/// How often something that takes a while is looked at.
const PAUSE: Duration = Duration::from_millis(5);
/// How often a wait looks whether the user has ended it.
const LOOK: Duration = Duration::from_millis(200);
/// The longest line that a program may say.
const LONGEST_LINE: usize = 1 << 20;
/// How much of what a failed program wrote is shown.
const SHOWN: usize = 400;

/// A running program.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    group: Option<Pid>,
    listener: UnixListener,
    stream: Option<UnixStream>,
    /// What was read and is no whole line yet.
    read: Vec<u8>,
    /// What it writes to standard error.
    errors: PathBuf,
}

impl Program {
    /// Starts a program in a process group of its own.
    pub(super) fn start(
        side: &Side,
        place: usize,
        (folder, injection): (&Path, Option<&Injection>),
        warm_up: usize,
    ) -> Result<Program, TurnsError> {
        let (program, args) = side.command.split_first().ok_or_else(|| TurnsError::Start {
            program: String::new(),
            source: io::ErrorKind::NotFound.into(),
        })?;
        let (socket, errors) = (folder.join(format!("{place}.sock")), folder.join(format!("{place}.err")));
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env("STEPSCOPE_TURNS", &socket)
            .env("STEPSCOPE_TURNS_WARMUP", warm_up.to_string())
            .envs(injection.into_iter().flat_map(Injection::environment))
            .env("PYTHONPATH", python_path(&folders(folder, injection)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&errors)?)
            .process_group(0);
        if let Some(folder) = &side.folder {
            command.current_dir(folder);
        }
        let child = command.spawn().map_err(|source| TurnsError::Start {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Program { child, group, listener, stream: None, read: Vec::new(), errors })
    }

    /// Waits until it has warmed up, and stops it there.
    pub(super) fn ready(&mut self, plan: &Plan) -> Result<(), TurnsError> {
        let until = Instant::now() + plan.patience;
        while self.stream.is_none() {
            if plan.stop.is_wished() {
                return Err(TurnsError::Stopped);
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.stream = Some(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // It may have connected just before its end.
                    if let Some(status) = self.child.try_wait()? {
                        let failed = !status.success();
                        return Err(if failed { self.failure() } else { TurnsError::NoSteps });
                    }
                    if Instant::now() > until {
                        return Err(TurnsError::Late(plan.patience));
                    }
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match self.line(plan)? {
            Some(line) if line == "ready" => {
                self.signal(Signal::STOP);
                Ok(())
            }
            Some(_) => Err(TurnsError::Failed("it does not speak the language of turns".to_owned())),
            None => Err(self.failure()),
        }
    }

    /// Lets it run so many steps, and stops it again; `None` if it ended meanwhile, having run all of its steps.
    pub(super) fn turn(&mut self, steps: usize, plan: &Plan) -> Result<Option<Vec<Step>>, TurnsError> {
        if self.listener.accept().is_ok() {
            return Err(TurnsError::SeveralRanks);
        }
        self.signal(Signal::CONT);
        if let Some(stream) = &mut self.stream
            && stream.write_all(format!("go {steps}\n").as_bytes()).is_err()
        {
            return self.ended();
        }
        match self.line(plan)? {
            Some(line) => {
                self.signal(Signal::STOP);
                let told = line.strip_prefix("done ").and_then(steps_of);
                let told = told.ok_or_else(|| {
                    TurnsError::Failed("it does not speak the language of turns".to_owned())
                })?;
                Ok(Some(told))
            }
            None => self.ended(),
        }
    }

    /// What its end means: nothing if it succeeded.
    fn ended(&mut self) -> Result<Option<Vec<Step>>, TurnsError> {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(None),
                Some(_) => return Err(self.failure()),
                None if Instant::now() > until => {
                    return Err(TurnsError::Failed("it no longer reports its steps".to_owned()));
                }
                None => thread::sleep(PAUSE),
            }
        }
    }

    /// The next line; `None` at the end.
    fn line(&mut self, plan: &Plan) -> Result<Option<String>, TurnsError> {
        let until = Instant::now() + plan.patience;
        loop {
            if plan.stop.is_wished() {
                return Err(TurnsError::Stopped);
            }
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            if self.read.len() > LONGEST_LINE {
                return Err(TurnsError::Failed("it does not speak the language of turns".to_owned()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TurnsError::Late(plan.patience));
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            stream.set_read_timeout(Some(left.min(LOOK)))?;
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(read) => self.read.extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    fn failure(&self) -> TurnsError {
        let said = files::read(&self.errors).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        TurnsError::Failed(last.chars().take(SHOWN).collect())
    }

    fn signal(&self, signal: Signal) {
        // It may be gone already.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        let until = Instant::now() + Duration::from_secs(2);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The hook comes first: it hides the user's own `sitecustomize`, and runs it. The module is for scripts with a line of their own.
fn folders<'f>(folder: &'f Path, injection: Option<&'f Injection>) -> Vec<&'f Path> {
    injection.map(Injection::folder).into_iter().chain([folder]).collect()
}

/// `1200000:900000:,…`: nanoseconds of wall and processor time, and instructions where they are known.
fn steps_of(text: &str) -> Option<Vec<Step>> {
    let step = |text: &str| {
        let mut numbers = text.split(':');
        let mut next = || numbers.next();
        let (wall, cpu, instructions) = (next()?, next()?, next()?);
        let ms = |text: &str| text.parse::<f64>().ok().filter(|ns| ns.is_finite()).map(|ns| ns / 1e6);
        let instructions =
            if instructions.is_empty() { None } else { Some(instructions.parse::<f64>().ok()?) };
        Some(Step { wall_ms: ms(wall)?, cpu_ms: ms(cpu)?, instructions })
    };
    text.split(',').map(step).collect()
}
