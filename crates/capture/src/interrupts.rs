//! Ctrl-C as an event, on every system.

use std::{io, thread};

#[cfg(unix)]
fn listener() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn listener() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Does something whenever the user presses Ctrl-C. From now on, the signal does not end the program.
pub fn at_interrupts(act: impl Fn() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut listener = {
        let _inside = runtime.enter();
        listener()?
    };
    thread::spawn(move || {
        while runtime.block_on(listener.recv()).is_some() {
            act();
        }
    });
    Ok(())
}
