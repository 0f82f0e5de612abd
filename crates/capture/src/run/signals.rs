//! Signals: those meant for the command are forwarded; a monitor ends with those that ask it to stop.

use std::io;
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use wait4::ResUse;

use super::pipes::follow_size;

/// Signals meant for the child.
pub(super) struct Signals {
    streams: Vec<(tokio::signal::unix::Signal, Signal)>,
    resized: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let kinds = [
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::hangup(), Signal::HUP),
            (SignalKind::quit(), Signal::QUIT),
            (SignalKind::user_defined1(), Signal::USR1),
            (SignalKind::user_defined2(), Signal::USR2),
        ];
        let streams = kinds.into_iter().map(|(kind, number)| Ok((signal(kind)?, number)));
        Ok(Signals {
            streams: streams.collect::<io::Result<_>>()?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    /// Forwards signals until the child has ended.
    pub(super) async fn forward_until(
        mut self,
        pid: u32,
        terminals: &[std::fs::File],
        mut exited: tokio::sync::oneshot::Receiver<io::Result<ResUse>>,
    ) -> io::Result<ResUse> {
        let child = i32::try_from(pid).ok().and_then(Pid::from_raw);
        loop {
            let next = async {
                let waits = self.streams.iter_mut().map(|(stream, number)| {
                    Box::pin(async move {
                        stream.recv().await;
                        *number
                    })
                });
                first_of(waits.collect()).await
            };
            tokio::select! {
                biased;
                waited = &mut exited => return waited.map_err(io::Error::other)?,
                _ = self.resized.recv() => terminals.iter().for_each(|to| follow_size(io::stdout(), to)),
                number = next => {
                    // The terminal sends the signal to the child as well; forwarding it would deliver it twice.
                    if let Some(child) = child && !(from_keyboard(number) && in_foreground()) {
                        // It may have ended just now.
                        let _ = kill_process(child, number);
                    }
                }
            }
        }
    }
}

/// The first of several futures to be ready.
async fn first_of<F: Future + Unpin>(mut futures: Vec<F>) -> F::Output {
    std::future::poll_fn(|context| {
        for future in &mut futures {
            if let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(context) {
                return std::task::Poll::Ready(output);
            }
        }
        std::task::Poll::Pending
    })
    .await
}

fn from_keyboard(number: Signal) -> bool {
    number == Signal::INT || number == Signal::QUIT
}

/// Whether this process is in the group that the terminal's keys reach.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Sends a message once the process is asked to stop, by Ctrl-C or a signal, instead of ending at once.
pub fn until_asked_to_stop() -> io::Result<mpsc::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut streams =
        runtime.block_on(async { kinds.into_iter().map(signal).collect::<io::Result<Vec<_>>>() })?;
    let (asked, hears) = mpsc::channel();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(first_of(streams.iter_mut().map(|stream| Box::pin(stream.recv())).collect()));
        // If nobody is listening, it has already ended.
        let _ = asked.send(());
    })?;
    Ok(hears)
}

/// Asks a process to end.
pub fn ask_to_end(pid: u32) {
    if let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = kill_process(process, Signal::TERM);
    }
}
