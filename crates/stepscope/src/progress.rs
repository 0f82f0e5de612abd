//! Progress bar for long work, only on a terminal and only after a short delay.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stepscope_read::Progress;

/// Work that finishes before this gets no bar, because a flashing bar is distracting.
const PATIENCE: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` while a bar shows `progress`.
pub(crate) fn with_bar<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar();
            loop {
                bar.set_length(progress.total());
                bar.set_position(progress.bytes().min(progress.total()));
                bar.set_message(stepscope_render::format::thousands(progress.events()));
                if waiting.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes}, {msg} events");
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
