//! The child's standard output and error: forwarded byte by byte, and parsed on the way.
//!
//! If stepscope's output is a terminal, the child gets a terminal too (a pseudo-terminal), so that progress
//! bars and colours look as usual; otherwise it gets a pipe. If output and error are the same file, they stay
//! one, so that their order is kept.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use super::listen::Stream;

/// How often a quiet stream looks whether it should be left to somebody else, in nanoseconds.
const LOOK_NS: i64 = 200_000_000;

/// A stream that children of the command still write to after its end.
pub(super) struct Rest {
    reader: File,
    target: File,
}

impl Rest {
    /// Leaves it to a process that forwards it when stepscope has ended, and ends when the last child does.
    pub(super) fn leave_behind(self) -> io::Result<()> {
        let mut forwards = Command::new("cat");
        forwards.stdin(self.reader).stdout(self.target).stderr(Stdio::null()).spawn().map(drop)
    }
}

/// The child's end and stepscope's end of a stream.
pub(super) struct Channel {
    stream: Stream,
    reader: File,
    writer: Option<OwnedFd>,
    /// Where it goes.
    target: File,
    /// True if it is a terminal whose size follows stepscope's.
    terminal: bool,
}

/// Both streams of a child; standard error may share the channel of standard output.
pub(super) struct Channels {
    out: Channel,
    err: Option<Channel>,
}

impl Channels {
    pub(super) fn open() -> io::Result<Self> {
        let same = |a: rustix::fs::Stat, b: rustix::fs::Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
        let together = match (fstat(io::stdout()), fstat(io::stderr())) {
            (Ok(out), Ok(err)) => same(out, err),
            _ => false,
        };
        let stdout = io::stdout();
        let out = Channel::open(Stream::Out, stdout.is_terminal(), stdout.as_fd().try_clone_to_owned()?)?;
        let stderr = io::stderr();
        let err = match together {
            true => None,
            false => {
                Some(Channel::open(Stream::Err, stderr.is_terminal(), stderr.as_fd().try_clone_to_owned()?)?)
            }
        };
        Ok(Channels { out, err })
    }

    /// The child's ends.
    pub(super) fn stdio(&mut self) -> io::Result<(Stdio, Stdio)> {
        let gone = || io::Error::other("the child's end was given away before");
        let out = self.out.writer.take().ok_or_else(gone)?;
        let err = match &mut self.err {
            Some(err) => err.writer.take().ok_or_else(gone)?,
            None => out.try_clone()?,
        };
        Ok((out.into(), err.into()))
    }

    /// The children's terminals, which are resized when stepscope's terminal is.
    pub(super) fn terminals(&self) -> Vec<File> {
        let all = [Some(&self.out), self.err.as_ref()].into_iter().flatten();
        all.filter(|channel| channel.terminal).filter_map(|channel| channel.reader.try_clone().ok()).collect()
    }

    /// Forwards until the end, or until `leave` is set. `heard` receives the bytes; `done` is notified at the end of each,
    /// with what is left of it.
    pub(super) fn pump(
        self,
        heard: &(impl Fn(Stream, &[u8]) + Clone + Send + 'static),
        leave: &Arc<AtomicBool>,
        done: &Sender<Option<Rest>>,
    ) {
        for channel in [Some(self.out), self.err].into_iter().flatten() {
            let (heard, leave, done) = (heard.clone(), leave.clone(), done.clone());
            let _: io::Result<JoinHandle<()>> =
                std::thread::Builder::new().name("passes-on".to_owned()).spawn(move || {
                    let rest = channel.pass_on(&heard, &leave);
                    // Nobody is waiting any more: the run already gave up.
                    let _ = done.send(rest);
                });
        }
    }

    pub(super) fn count(&self) -> usize {
        1 + usize::from(self.err.is_some())
    }
}

impl Channel {
    fn open(stream: Stream, terminal: bool, target: OwnedFd) -> io::Result<Self> {
        let (reader, writer) = match terminal {
            true => pseudo_terminal(&target)?,
            false => {
                let (reader, writer) = io::pipe()?;
                (OwnedFd::from(reader), OwnedFd::from(writer))
            }
        };
        Ok(Channel { stream, reader: reader.into(), writer: Some(writer), target: target.into(), terminal })
    }

    /// Forwards; returns what is left of the stream if it has not ended.
    fn pass_on(mut self, heard: &impl Fn(Stream, &[u8]), leave: &AtomicBool) -> Option<Rest> {
        let mut buffer = vec![0_u8; 64 << 10];
        loop {
            if leave.load(Ordering::Relaxed) {
                return Some(Rest { reader: self.reader, target: self.target });
            }
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
            // Where it cannot be waited for, reading waits.
            if poll(&mut [PollFd::new(&self.reader, PollFlags::IN)], Some(&wait)) == Ok(0) {
                continue;
            }
            let bytes = match self.reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => buffer.get(..read).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A terminal whose last writer is gone reports an error.
                Err(_) => break,
            };
            // If nobody reads the forwarded output, leaving lets the child notice, as it would without
            // stepscope.
            if self.target.write_all(bytes).is_err() {
                break;
            }
            heard(self.stream, bytes);
        }
        None
    }
}

/// A transparent pseudo-terminal with the size of `like`: stepscope's end, the child's end.
fn pseudo_terminal(like: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    // Only Linux can set this while opening.
    fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty())?;
    let mut modes = tcgetattr(&theirs)?;
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    follow_size(like, &ours);
    Ok((ours, theirs))
}

/// Gives a terminal the size of another. A terminal without a size stays without.
pub(super) fn follow_size(from: impl AsFd, to: impl AsFd) {
    if let Ok(size) = tcgetwinsize(from) {
        let _ = tcsetwinsize(to, size);
    }
}
