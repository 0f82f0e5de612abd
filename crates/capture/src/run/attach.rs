//! Records a Python program that runs already, without a change to it and without a restart.
//!
//! Since version 3.14, an interpreter runs a script that another process of the same version hands to it
//! (`sys.remote_exec`). The script loads the hook that `run` puts into programs, which records one window and takes its
//! patches back. Programs of older versions can be recorded if they have started a profiler server.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stepscope_read::files;

use super::inject::{Following, Injection, Purpose};
use super::profile::{CaptureFailure, ProfileRequest};
use crate::bench::Stop;
use crate::grpc::Address;

/// The first version of Python that lets itself be entered.
pub const FIRST: (u32, u32) = (3, 14);

/// What to record.
#[derive(Clone, Debug)]
pub struct Request {
    /// The process.
    pub pid: u32,
    /// The log directory for the recording.
    pub into: PathBuf,
    /// The interpreter that enters the process; `None` for the one that runs it.
    pub python: Option<PathBuf>,
    /// After so long without steps, time is recorded instead.
    pub patience: Duration,
    /// How long to record then.
    pub duration: Duration,
    /// How long to wait for a window.
    pub limit: Duration,
    /// Ends it early.
    pub stop: Stop,
}

/// Why a process cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no such process, or it belongs to somebody else.
    #[error("no process {0}")]
    NoProcess(u32),
    /// It does not run Python.
    #[error("process {0} does not run Python")]
    NotPython(u32),
    /// Its version cannot be entered, and it has no profiler server.
    #[error("it runs Python {}.{}", .0.0, .0.1)]
    TooOld((u32, u32)),
    /// The system or the interpreter refused.
    #[error("{0}")]
    Refused(String),
    /// The profiler failed inside the process.
    #[error("the profiler failed: {0}")]
    Failed(String),
    /// Nothing was recorded in time.
    #[error("nothing was recorded within {0:?}")]
    Silent(Duration),
    /// It ended before.
    #[error("the process ended before anything was recorded")]
    Ended,
    /// The user ended it.
    #[error("it was ended early")]
    Stopped,
    /// Its profiler server failed.
    #[error(transparent)]
    Server(#[from] CaptureFailure),
    /// The system refused something else.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Hands a script to a process; its arguments are the process and the script.
const HAND_OVER: &str = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
const SCRIPT_FILE: &str = "attach.py";
const TICK: Duration = Duration::from_millis(200);
/// How much of an error is shown.
const SHOWN: usize = 300;

/// The interpreter of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interpreter {
    path: PathBuf,
    version: (u32, u32),
}

/// Records a window of the process; returns the folder of the recording.
pub fn attach(request: &Request, say: &dyn Fn(&Following)) -> Result<PathBuf, AttachError> {
    let interpreter = interpreter_of(request.pid)?;
    if interpreter.version >= FIRST {
        let python = request.python.clone().unwrap_or(interpreter.path);
        match enter(request, &python, say) {
            // Who may not enter may still ask.
            Err(AttachError::Refused(why)) => match by_server(request) {
                Ok(Some(session)) => Ok(session),
                _ => Err(AttachError::Refused(why)),
            },
            entered => entered,
        }
    } else {
        by_server(request)?.ok_or(AttachError::TooOld(interpreter.version))
    }
}

/// The interpreter that a process has mapped.
fn interpreter_of(pid: u32) -> Result<Interpreter, AttachError> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let maps = files::read(&place.join("maps")).map_err(|_| AttachError::NoProcess(pid))?;
    let program = fs::read_link(place.join("exe")).map_err(|_| AttachError::NoProcess(pid))?;
    let maps = String::from_utf8_lossy(&maps);
    let version = maps.lines().find_map(version_in).ok_or(AttachError::NotPython(pid))?;
    Ok(Interpreter { path: program, version })
}

/// The version in a line of a process' map that names `…/python3.14` or `…/libpython3.14.so.1.0`.
fn version_in(line: &str) -> Option<(u32, u32)> {
    let path = line.get(line.find('/')?..)?.trim_end();
    let name = path.rsplit('/').next()?;
    let rest = name.strip_prefix("libpython").or_else(|| name.strip_prefix("python"))?;
    let mut parts = rest.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, minor.parse().ok()?))
}

/// Puts the hook into the process and waits for its window.
fn enter(request: &Request, python: &Path, say: &dyn Fn(&Following)) -> Result<PathBuf, AttachError> {
    let injection = Injection::new(&request.into, Purpose::OneWindow)?;
    let script = injection.folder().join(SCRIPT_FILE);
    fs::write(&script, script_of(request, injection.folder()))?;
    let handed = Command::new(python)
        .args(["-I", "-c", HAND_OVER, &request.pid.to_string()])
        .arg(&script)
        .stdin(Stdio::null())
        .output()?;
    if !handed.status.success() {
        let said = String::from_utf8_lossy(&handed.stderr).into_owned();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(AttachError::Refused(last.chars().take(SHOWN).collect()));
    }
    wait(request, &injection, say)
}

/// The script that the process runs between two of its own instructions.
fn script_of(request: &Request, folder: &Path) -> String {
    // JSON's strings are Python's, too.
    let folder = serde_json::Value::from(folder.to_string_lossy()).to_string();
    format!(
        "def attach(folder):\n    import importlib.util, os, sys\n    for part in ('record', 'hook'):\n        \
         name = '_stepscope_' + part\n        module = sys.modules.get(name)\n        if module is None:\n            \
         spec = importlib.util.spec_from_file_location(name, os.path.join(folder, part + '.py'))\n            \
         module = importlib.util.module_from_spec(spec)\n            sys.modules[name] = module\n            \
         spec.loader.exec_module(module)\n    module.attach(folder, {}, {})\n\
         try:\n    attach({folder})\nexcept Exception:\n    pass\n",
        request.patience.as_secs_f64(),
        request.duration.as_secs_f64()
    )
}

/// Waits until the window is complete.
fn wait(request: &Request, injection: &Injection, say: &dyn Fn(&Following)) -> Result<PathBuf, AttachError> {
    let until = Instant::now() + request.limit;
    loop {
        std::thread::sleep(TICK);
        let following = injection.following();
        say(&following);
        let program = following.programs.iter().find(|program| program.pid == request.pid);
        let session = program.and_then(|program| program.session.clone());
        let problem = program.and_then(|program| program.problems.last().cloned());
        let is_over = program.is_some_and(|program| matches!(program.state.as_str(), "done" | "failed"));
        let is_gone = !Path::new(&format!("/proc/{}", request.pid)).exists();
        let too_late = Instant::now() > until;
        if !(is_over || is_gone || too_late || request.stop.is_wished()) {
            continue;
        }
        return match (session, problem) {
            (Some(session), _) => Ok(session),
            (None, Some(problem)) => Err(AttachError::Failed(problem)),
            _ if is_gone => Err(AttachError::Ended),
            _ if request.stop.is_wished() => Err(AttachError::Stopped),
            _ => Err(AttachError::Silent(request.limit)),
        };
    }
}

/// A recording by the profiler server of the process; `None` if it has none.
fn by_server(request: &Request) -> Result<Option<PathBuf>, AttachError> {
    for port in listening(request.pid) {
        let profile = ProfileRequest {
            address: Address { host: "localhost".to_owned(), port, name: None },
            duration: request.duration,
            into: request.into.clone(),
        };
        // Something else may listen there: the next port.
        if let Ok(session) = profile.take(&mut None) {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

/// A process may listen on many ports; servers of profilers are among the first.
const MOST_PORTS: usize = 16;
/// The state of a socket that listens, in the kernel's tables.
const LISTENS: &str = "0A";

/// The ports that a process listens on.
fn listening(pid: u32) -> BTreeSet<u16> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let own: BTreeSet<String> = fs::read_dir(place.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let text = String::from_utf8_lossy(link.as_os_str().as_bytes()).into_owned();
            text.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).map(str::to_owned)
        })
        .collect();
    let table = |name: &str| files::read(&place.join("net").join(name)).unwrap_or_default();
    let tables = [table("tcp"), table("tcp6")].concat();
    let text = String::from_utf8_lossy(&tables).into_owned();
    text.lines().filter_map(|line| listening_port(line, &own)).take(MOST_PORTS).collect()
}

/// The port in a line of the kernel's table, if it is of one of these sockets, and listens.
fn listening_port(line: &str, own: &BTreeSet<String>) -> Option<u16> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
    (*state == LISTENS && own.contains(*inode)).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_names_of_files() {
        let line = |path: &str| format!("55d0-55d1 r-xp 00000000 08:01 42      {path}");
        assert_eq!(version_in(&line("/usr/bin/python3.14")), Some((3, 14)));
        assert_eq!(version_in(&line("/opt/lib/libpython3.11.so.1.0")), Some((3, 11)));
        assert_eq!(version_in(&line("/usr/lib/python3/dist-packages/x.so")), None);
        assert_eq!(version_in("55d0-55d1 r-xp 00000000 00:00 0"), None);
        assert_eq!(version_in(&line("/usr/bin/pythonista")), None);
    }

    #[test]
    fn ports_are_those_of_the_process_that_listen() {
        let own = BTreeSet::from(["77".to_owned()]);
        let line = |state: &str, inode: &str| {
            format!(
                "  0: 0100007F:1779 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1"
            )
        };
        assert_eq!(listening_port(&line("0A", "77"), &own), Some(6009));
        assert_eq!(listening_port(&line("01", "77"), &own), None);
        assert_eq!(listening_port(&line("0A", "78"), &own), None);
        assert_eq!(listening_port("  sl  local_address", &own), None);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening(std::process::id()).contains(&port));
    }

    #[test]
    fn what_is_no_python_is_said_so() {
        let request = |pid| Request {
            pid,
            into: std::env::temp_dir().join("stepscope-attach-test"),
            python: None,
            patience: Duration::from_secs(1),
            duration: Duration::from_secs(1),
            limit: Duration::from_secs(1),
            stop: Stop::default(),
        };
        let own = attach(&request(std::process::id()), &|_| {});
        assert!(matches!(own, Err(AttachError::NotPython(_))), "{own:?}");
        let none = attach(&request(u32::MAX), &|_| {});
        assert!(matches!(none, Err(AttachError::NoProcess(_))), "{none:?}");
    }
}
