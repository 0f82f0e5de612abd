//! Request to end a measurement early, so that Ctrl-C shows the results so far.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::at_interrupts;

/// Shared between a measurement and the code that may end it.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wished: AtomicBool,
    told: watch::Sender<bool>,
    child: Mutex<Option<Pid>>,
}

impl Default for Stop {
    fn default() -> Self {
        let (told, _) = watch::channel(false);
        Stop(Arc::new(Inner { wished: AtomicBool::new(false), told, child: Mutex::new(None) }))
    }
}

impl Stop {
    /// Requests the end when the user presses Ctrl-C. From now on, the signal does not end the program.
    pub fn on_interrupt() -> io::Result<Stop> {
        let stop = Stop::default();
        let wish = stop.clone();
        at_interrupts(move || wish.now())?;
        Ok(stop)
    }

    /// Requests the end.
    pub fn now(&self) {
        self.0.wished.store(true, Ordering::Relaxed);
        self.0.told.send_replace(true);
        self.end_child();
    }

    /// Whether the end is requested.
    pub fn is_wished(&self) -> bool {
        self.0.wished.load(Ordering::Relaxed)
    }

    /// Changes to `true` when the end is requested.
    pub(super) fn watch(&self) -> watch::Receiver<bool> {
        self.0.told.subscribe()
    }

    /// Sets the process that ends with the measurement.
    pub(super) fn set_child(&self, child: Option<Pid>) {
        *self.0.child.lock().unwrap_or_else(PoisonError::into_inner) = child;
        if self.is_wished() {
            self.end_child();
        }
    }

    fn end_child(&self) {
        if let Some(child) = *self.0.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended in the meantime.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}
