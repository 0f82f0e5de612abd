//! Asks PyTorch's own recorder for a window where nothing can be put into the interpreter (`python -S`, `-I`, `-E`).
//!
//! PyTorch looks for a daemon if an environment variable says that there is one, and asks it every few seconds what to record:
//! one datagram with a header (size of the rest, kind) and the process ids. The answer is a list of settings, empty for
//! nothing. This file is that daemon, on a socket in a private folder, so that a real one is not disturbed. It knows nothing
//! about steps: the recorder works by time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stepscope_read::files;

/// The name of the daemon's socket in its folder.
const SOCKET: &str = "dynolog";
/// The question of what to record, and the greeting of some versions.
const REQUEST: &[u8] = b"req";
const GREETING: &[u8] = b"ctxt";
/// Size of the body, kind of the message.
const HEADER: usize = 8 + 32;
/// What is asked for (a bit per kind of setting), the count of processes and the job come before the processes.
const BEFORE_PROCESSES: usize = 4 + 4 + 8;
/// No question is longer.
const LONGEST: usize = 1 << 16;
/// Processes that are recorded.
const MOST_PROCESSES: usize = 64;
/// The bit of what records activities. It is not set while a window is open.
const ACTIVITIES: i32 = 2;
/// How often the end of the run is looked for.
const TICK: Duration = Duration::from_millis(200);
/// The windows of a process, in turn: their lengths, and the names of their files. The first one is short, for programs that
/// end soon; questions come every five seconds, so that the second one is in the steady state.
const WINDOWS: [(Duration, &str); 2] =
    [(Duration::from_millis(500), "early"), (Duration::from_secs(2), "steady")];

/// The daemon. Its folder goes away with it.
#[derive(Debug)]
pub(super) struct OnDemand {
    folder: PathBuf,
    into: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OnDemand {
    /// Starts to answer; recordings go below `into`.
    pub(super) fn start(into: &Path) -> io::Result<OnDemand> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let folder = std::path::absolute(std::env::temp_dir())?.join(format!(
            "stepscope-{}-{:x}-k",
            std::process::id(),
            now & 0xffff_ffff
        ));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let over = Arc::new(AtomicBool::new(false));
        let mut daemon = OnDemand { folder, into: into.to_owned(), over: Arc::clone(&over), thread: None };
        let socket = UnixDatagram::bind(daemon.folder.join(SOCKET))?;
        socket.set_read_timeout(Some(TICK))?;
        let folder = daemon.folder.clone();
        daemon.thread = Some(std::thread::spawn(move || answer(&socket, &folder, &over)));
        Ok(daemon)
    }

    /// The variables that the command gets. The recorder keeps its own messages to itself.
    pub(super) fn environment(&self) -> [(&'static str, OsString); 3] {
        [
            ("KINETO_USE_DAEMON", "1".into()),
            ("KINETO_IPC_SOCKET_DIR", self.folder.clone().into_os_string()),
            ("KINETO_LOG_LEVEL", "99".into()),
        ]
    }

    /// The folder of the recording, if there is one. Of each process the last window counts.
    pub(super) fn finish(mut self) -> Option<PathBuf> {
        self.stop();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let session = self.into.join("plugins/profile").join(format!("on_demand_{millis}"));
        let mut kept: BTreeMap<String, PathBuf> = BTreeMap::new();
        for (_, name) in WINDOWS {
            for entry in fs::read_dir(&self.folder).ok()?.flatten().take(4 * MOST_PROCESSES) {
                let file = entry.file_name().to_string_lossy().into_owned();
                let process = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".json"));
                if let Some(process) = process.filter(|_| is_whole(&entry.path())) {
                    kept.insert(process.to_owned(), entry.path());
                }
            }
        }
        for (process, path) in &kept {
            fs::create_dir_all(&session).ok()?;
            let name = format!("{host}{process}.{millis}.pt.trace.json");
            // The folder may be on another file system.
            fs::copy(path, session.join(name)).ok()?;
        }
        (!kept.is_empty()).then_some(session)
    }

    fn stop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // It ends within a tick.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for OnDemand {
    fn drop(&mut self) {
        self.stop();
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program that was killed may leave half a file.
fn is_whole(path: &Path) -> bool {
    files::read(path).is_ok_and(|bytes| bytes.trim_ascii_end().ends_with(b"}"))
}

/// Answers questions until the run is over.
fn answer(socket: &UnixDatagram, folder: &Path, over: &AtomicBool) {
    let mut asked: BTreeMap<i32, usize> = BTreeMap::new();
    let mut message = vec![0; LONGEST];
    while !over.load(Ordering::Relaxed) {
        let Ok((size, from)) = socket.recv_from(&mut message) else { continue };
        let (Some(from), Some(question)) = (from.as_pathname(), message.get(..size).and_then(Question::of))
        else {
            continue;
        };
        let said = match question {
            Question::Greeting => message_of(GREETING, &1_i32.to_le_bytes()),
            Question::Request { process: Some(process) }
                if asked.len() < MOST_PROCESSES || asked.contains_key(&process) =>
            {
                let given = asked.entry(process).or_insert(0);
                let said = message_of(REQUEST, settings(folder, *given).as_bytes());
                *given += 1;
                said
            }
            Question::Request { .. } => message_of(REQUEST, &[]),
        };
        // Who has ended meanwhile needs no answer.
        let _ = socket.send_to(&said, from);
    }
}

/// What to record in the window of this number.
fn settings(folder: &Path, number: usize) -> String {
    let Some((length, name)) = WINDOWS.get(number) else { return String::new() };
    format!(
        "ACTIVITIES_LOG_FILE={}/{name}.json\nACTIVITIES_DURATION_MSECS={}\nPROFILE_START_TIME=0\n",
        folder.display(),
        length.as_millis()
    )
}

/// What a process says.
#[derive(Debug, PartialEq, Eq)]
enum Question {
    Greeting,
    /// What to record; the process, if it could start a window.
    Request {
        process: Option<i32>,
    },
}

impl Question {
    fn of(message: &[u8]) -> Option<Question> {
        let kind = message.get(8..HEADER)?;
        let kind = kind.split(|byte| *byte == 0).next()?;
        let body = message.get(HEADER..)?;
        match kind {
            GREETING => Some(Question::Greeting),
            REQUEST => {
                let number = |at: usize| {
                    body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes)
                };
                let wants = number(0).is_some_and(|wanted| wanted & ACTIVITIES != 0);
                // The process itself comes before its ancestors.
                Some(Question::Request { process: number(BEFORE_PROCESSES).filter(|_| wants) })
            }
            _ => None,
        }
    }
}

fn message_of(kind: &[u8], body: &[u8]) -> Vec<u8> {
    let mut message = (body.len() as u64).to_le_bytes().to_vec();
    message.extend_from_slice(kind);
    message.resize(HEADER, 0);
    message.extend_from_slice(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(wanted: i32, process: i32) -> Vec<u8> {
        let mut body = wanted.to_le_bytes().to_vec();
        body.extend(1_i32.to_le_bytes());
        body.extend(0_i64.to_le_bytes());
        body.extend(process.to_le_bytes());
        message_of(REQUEST, &body)
    }

    #[test]
    fn questions_are_understood_and_damage_is_not() {
        assert_eq!(Question::of(&request(2, 7)), Some(Question::Request { process: Some(7) }));
        assert_eq!(Question::of(&request(0, 7)), Some(Question::Request { process: None }), "it records");
        assert_eq!(Question::of(&message_of(GREETING, &[0; 16])), Some(Question::Greeting));
        assert_eq!(Question::of(&message_of(REQUEST, &[1, 2])), Some(Question::Request { process: None }));
        assert_eq!(Question::of(&message_of(b"other", &[])), None);
        assert_eq!(Question::of(&[1; 20]), None);
    }

    #[test]
    fn a_program_gets_two_windows_and_the_whole_last_one_counts() {
        let into = tempfile::tempdir().unwrap();
        let daemon = OnDemand::start(into.path()).unwrap();
        let folder = daemon.folder.clone();
        let asks = UnixDatagram::bind(folder.join("client")).unwrap();
        asks.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut told = Vec::new();
        for wanted in [2, 0, 3, 2] {
            asks.send_to(b"no message", folder.join(SOCKET)).unwrap();
            asks.send_to(&request(wanted, 7), folder.join(SOCKET)).unwrap();
            let mut answer = [0; 1024];
            let size = asks.recv(&mut answer).unwrap();
            told.push(String::from_utf8_lossy(&answer[HEADER..size]).into_owned());
        }
        assert!(told[0].contains("early.json") && told[2].contains("DURATION_MSECS=2000"), "{told:?}");
        assert!(told[1].is_empty() && told[3].is_empty(), "{told:?}");
        fs::write(folder.join("early_7.json"), "{\"traceEvents\": []}\n").unwrap();
        fs::write(folder.join("steady_7.json"), "{\"traceEvents\": [").unwrap();
        let session = daemon.finish().unwrap();
        let files: Vec<PathBuf> =
            fs::read_dir(&session).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(fs::read_to_string(&files[0]).unwrap().ends_with("}\n"), "half a file does not count");
        assert!(!folder.exists());
    }
}
