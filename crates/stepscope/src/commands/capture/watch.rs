//! Progress during a capture: a status line on a terminal, and a note when something has to be waited for.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stepscope_capture::grpc::record::Watch;
use stepscope_capture::grpc::{Address, Event};
use stepscope_render::format::{bytes, duration_ms};
use stepscope_session::Problem;

use super::words;
use crate::output::Terminal;

const TICK: Duration = Duration::from_millis(100);

/// Who hears of the progress of a capture: the terminal, or the page.
pub(super) trait Listener {
    /// Says something in passing.
    fn remark(&self, text: &str);
    /// Reports what went wrong with a part of it.
    fn report(&self, problem: &Problem);
    /// Hears of what happens in one window, until the first of both is dropped.
    fn watch(&self) -> (Option<Shown>, Watch);
}

impl Listener for Terminal {
    fn remark(&self, text: &str) {
        Terminal::remark(self, text);
    }

    fn report(&self, problem: &Problem) {
        Terminal::report(self, problem);
    }

    fn watch(&self) -> (Option<Shown>, Watch) {
        let (shown, watch) = watch(self);
        (Some(shown), watch)
    }
}

/// The status line; removed when dropped.
pub(super) struct Shown {
    bar: ProgressBar,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What was already reported about each process.
#[derive(Default)]
struct Said {
    reasons: BTreeMap<Address, &'static str>,
    doing: BTreeMap<Address, String>,
}

/// Returns a listener that shows events as they happen.
fn watch(terminal: &Terminal) -> (Shown, Watch) {
    let bar = line();
    let shown = Shown { bar: bar.clone() };
    let terminal = *terminal;
    let said = Mutex::new(Said::default());
    let began = Instant::now();
    let watch = move |address: &Address, event: Event<'_>| {
        let Ok(mut said) = said.lock() else { return };
        if let Event::Retrying { error, left } = &event {
            let reason = words::reason(error);
            // Report each reason once, however often it is retried.
            if said.reasons.insert(address.clone(), reason) != Some(reason) {
                let left = words::spelled(Duration::from_secs(left.as_secs_f64().ceil() as u64));
                bar.suspend(|| terminal.remark(&format!("{address}: {reason}; retrying for {left}")));
            }
        }
        said.doing.insert(address.clone(), doing(&event, began.elapsed()));
        let all: Vec<String> =
            said.doing.iter().map(|(address, doing)| format!("{address} {doing}")).collect();
        bar.set_message(all.join(", "));
    };
    (shown, Arc::new(watch))
}

/// What a process does, in words.
pub(super) fn doing(event: &Event<'_>, elapsed: Duration) -> String {
    match event {
        Event::Retrying { error, .. } => words::reason(error).to_owned(),
        Event::Recording { starts_in, lasts } if starts_in.is_zero() => {
            format!("recording {}", words::spelled(*lasts))
        }
        Event::Recording { starts_in, lasts } => {
            format!("will record {} in {}", words::spelled(*lasts), words::spelled(*starts_in))
        }
        Event::Received { bytes: size } => {
            format!("sent {} after {}", bytes(*size as f64), duration_ms(elapsed.as_secs_f64() * 1e3))
        }
        Event::Failed => "failed".to_owned(),
    }
}

fn line() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(TICK);
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
