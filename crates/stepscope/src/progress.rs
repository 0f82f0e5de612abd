//! Progress bar for long work, only on a terminal and only after a short delay.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stepscope_read::Progress;
use stepscope_read::files::{self, Moved};

/// Work that finishes before this gets no bar, because a flashing bar is distracting.
const PATIENCE: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` while a bar shows `progress`.
pub(crate) fn with_bar<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    let before = files::moved();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar();
            loop {
                show(&bar, progress, before);
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

/// Shows what is under way: lists and copies of a store first, since reading waits for them.
fn show(bar: &ProgressBar, progress: &Progress, before: Moved) {
    let now = files::moved();
    let (done, total) = (now.done.saturating_sub(before.done), now.total.saturating_sub(before.total));
    let (listed, events) = (now.listed.saturating_sub(before.listed), progress.events());
    let count = |number: u64| stepscope_render::format::thousands(number);
    if total > done {
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message("fetching");
        bar.set_prefix("");
    } else if progress.total() > 0 {
        bar.set_length(progress.total());
        bar.set_position(progress.bytes().min(progress.total()));
        bar.set_message("reading");
        bar.set_prefix(format!(", {} events", count(events)));
    } else {
        bar.set_message("searching");
        bar.set_prefix(if listed > 0 {
            format!(", {} objects listed", count(listed))
        } else {
            String::new()
        });
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}{prefix}");
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
