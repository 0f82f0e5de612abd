//! Waits for a steady state: samples short windows until steps appear, no graph is being built, and the median
//! step matches the one in the previous window. The windows stay in memory and leave nothing on disk.

use std::time::{Duration, Instant};

use stepscope_analyze::Category;
use stepscope_capture::grpc::{CaptureError, SessionFolder};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_render::capture::{self as render, SampledWindow};
use stepscope_results::report::Report;
use stepscope_session::Profile;
use stepscope_session::report::report;

use super::take::Taker;
use super::words;

/// Length of the first window. It grows while it contains too few steps.
const FIRST: Duration = Duration::from_millis(400);
/// Minimum number of steps in a window for a usable median.
const LEAST_STEPS: usize = 3;
/// Two medians that differ by less than this are equal.
const TOLERANCE: f64 = 0.15;
/// Tracing and compiling below this share of a step is noise.
const BUILDING: f64 = 0.01;
/// A loop that builds graphs in every step never stops doing so. After this many equal windows, it counts as
/// steady.
const HABIT: usize = 6;

/// What the waiting came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Record now: the loop is steady, patience ran out, or the recording itself will say what is wrong.
    Record,
    /// The user asked to stop.
    Stopped,
    /// The process answered, and then no longer: it has ended.
    Ended,
}

/// Waits until the loop is steady or patience runs out.
pub(super) fn wait(taker: &Taker<'_>, patience: Duration) -> Waited {
    let until = Instant::now() + patience;
    let place = SessionFolder::below(&taker.logdir);
    let mut length = FIRST.min(taker.duration);
    let mut settling = Settling::default();
    let (mut told, mut answered) = (None, false);
    while !taker.recorder.is_stopped() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            taker.listener.remark(&render::never_steady(patience.as_secs_f64() * 1e3, settling.last()));
            return Waited::Record;
        }
        let window = look(taker, length, left, &place);
        if matches!(window, SampledWindow::Gone) {
            // If it never answered, the capture itself will report the problem.
            return if answered { Waited::Ended } else { Waited::Record };
        }
        answered = true;
        if settling.has_settled(&window) {
            taker.listener.remark(&render::steady(&window));
            return Waited::Record;
        }
        let kind = std::mem::discriminant(&window);
        if told != Some(kind) {
            taker.listener.remark(&render::not_steady(&window));
            told = Some(kind);
        }
        if window.steps() < LEAST_STEPS {
            length = (length * 2).min(taker.duration);
        }
        // The process gets as much time without the profiler as with it.
        taker.recorder.pause(length.min(until.saturating_duration_since(Instant::now())));
    }
    Waited::Stopped
}

/// How the windows compare so far.
#[derive(Default)]
struct Settling {
    median_ms: Option<f64>,
    /// Number of consecutive windows with equal medians.
    equal: usize,
}

impl Settling {
    fn last(&self) -> Option<f64> {
        self.median_ms
    }

    fn has_settled(&mut self, window: &SampledWindow) -> bool {
        let SampledWindow::Steps { median_ms, count, building } = *window else {
            *self = Settling::default();
            return false;
        };
        let same = self.median_ms.is_some_and(|before| (median_ms / before - 1.0).abs() <= TOLERANCE);
        self.equal = if same { self.equal + 1 } else { 1 };
        self.median_ms = Some(median_ms);
        let built = building <= BUILDING || self.equal >= HABIT;
        count >= LEAST_STEPS && self.equal >= 2 && built
    }
}

/// Records one short window and analyses it.
fn look(taker: &Taker<'_>, length: Duration, left: Duration, place: &SessionFolder) -> SampledWindow {
    let recorded = taker.record(length, left, place);
    let mut inputs = Vec::new();
    let mut errors = Vec::new();
    for outcome in recorded.outcomes {
        match outcome.result {
            Ok(recording) => {
                let bytes = Bytes::held(recording.profile.to_vec());
                inputs.push((outcome.address.host, Ok(Input::from_bytes("window.xplane.pb", bytes))));
            }
            Err(CaptureError::Empty) => {}
            Err(error) => errors.push((outcome.address, error)),
        }
    }
    if inputs.is_empty() {
        return if errors.is_empty() { SampledWindow::Nothing } else { SampledWindow::Gone };
    }
    for (address, error) in errors {
        taker.listener.report(&words::problem(&address, &error, taker));
    }
    let name = "window".to_owned();
    let profile = Profile::read(name.clone(), vec![name.clone()], inputs, &Progress::new());
    match profile.and_then(|profile| report(&profile, vec![name])) {
        Ok(report) => seen(&report),
        Err(_) => SampledWindow::Nothing,
    }
}

fn seen(report: &Report) -> SampledWindow {
    let summary = &report.summary;
    match summary.step_ms {
        Some(moments) => SampledWindow::Steps {
            median_ms: moments.median,
            count: summary.count,
            building: summary.fraction(Category::Tracing)
                + summary.fraction(Category::Compile)
                + excluded(report),
        },
        None => SampledWindow::NoSteps,
    }
}

/// The share of excluded warm-up steps: a window that contains one is not steady, although it is not counted.
fn excluded(report: &Report) -> f64 {
    use stepscope_analyze::steps::Exclusion;
    let Some(host) = report.summary.bound() else { return 0.0 };
    let startup = host.steps.iter().filter(|step| step.excluded == Some(Exclusion::Startup)).count();
    startup as f64 / host.steps.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settles(windows: &[(f64, f64)]) -> Option<usize> {
        let mut settling = Settling::default();
        let window =
            |&(median_ms, building): &(f64, f64)| SampledWindow::Steps { median_ms, count: 5, building };
        windows.iter().map(window).position(|window| settling.has_settled(&window))
    }

    #[test]
    fn two_equal_windows_without_building_are_steady() {
        assert_eq!(settles(&[(10.0, 0.0), (10.5, 0.0)]), Some(1));
        assert_eq!(settles(&[(30.0, 0.0), (10.0, 0.0), (10.0, 0.0)]), Some(2));
        assert_eq!(settles(&[(10.0, 0.0), (20.0, 0.0), (10.0, 0.0), (20.0, 0.0)]), None);
    }

    #[test]
    fn a_loop_that_still_builds_is_not_steady_unless_it_always_does() {
        assert_eq!(settles(&[(10.0, 0.4), (10.0, 0.4), (10.0, 0.0)]), Some(2));
        assert_eq!(settles(&[(10.0, 0.4); 5]), None);
        assert_eq!(settles(&[(10.0, 0.4); 6]), Some(5));
    }

    #[test]
    fn a_window_without_steps_begins_anew() {
        let mut settling = Settling::default();
        let steps = SampledWindow::Steps { median_ms: 10.0, count: 5, building: 0.0 };
        assert!(!settling.has_settled(&steps));
        assert!(!settling.has_settled(&SampledWindow::NoSteps));
        assert!(!settling.has_settled(&steps));
        assert!(settling.has_settled(&steps));
    }
}
