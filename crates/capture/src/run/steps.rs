//! Chooses the one series of steps that a run is judged by, from everything the program offers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stepscope_read::tfevents::RunReader;
use stepscope_results::run::StepSource;
use stepscope_trace::statistics::{Moments, median};

use super::listen::Listener;
use super::series::{Observation, Series};
use super::steady::{Steady, steady};

/// The steps of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Source of the times.
    pub source: StepSource,
    /// True if these are examples, because the program counts examples and the batch size is unknown.
    pub examples: bool,
    /// All observations in order, without the excluded ones.
    pub observed: Vec<Observation>,
    /// Number of steps excluded because stepscope's own profile slowed them down.
    pub profiled: u64,
    /// Seconds from the start to the first step seen.
    pub first_s: f64,
    /// How often the count restarted.
    pub restarts: u32,
    /// True if many steps arrived at once, so that single ones cannot be timed.
    pub bursty: bool,
    /// The median of the program's own figure, in milliseconds per step.
    pub own_ms: Option<f64>,
    /// Examples per second as reported by the program.
    pub own_examples_per_s: Option<f64>,
    /// Where it is steady, in observations.
    pub steady: Steady,
}

/// Figures over some observations, in milliseconds per step.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Figures {
    /// Number of steps.
    pub steps: u64,
    /// The mean over all of them.
    pub mean: f64,
    /// The median observation.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The standard deviation of the observations.
    pub deviation: f64,
}

impl Steps {
    /// The observations of the steady state; all if there is none.
    pub fn counted(&self) -> &[Observation] {
        self.observed.get(self.steady.from.unwrap_or(0)..).unwrap_or_default()
    }

    /// The steps outside a time window in which the program was being profiled, in seconds since the start. All
    /// of them if there are no others.
    pub(super) fn without(mut self, (from, to): (f64, f64)) -> Self {
        if self.source == StepSource::Reported {
            return self;
        }
        let outside = |one: &&Observation| one.end_s <= from || one.end_s - one.seconds >= to;
        let kept: Vec<Observation> = self.observed.iter().filter(outside).copied().collect();
        if !kept.is_empty() {
            let all = self.count();
            self.observed = kept;
            self.profiled = all - self.count();
            self.steady = steady(&self.observed.iter().map(Observation::ms).collect::<Vec<_>>());
        }
        self
    }

    /// Number of observed steps, without the excluded ones.
    pub fn count(&self) -> u64 {
        self.observed.iter().map(|one| one.steps).sum()
    }

    /// Figures of the steady state, or of all steps; `None` if there are none.
    pub fn figures(&self) -> Option<Figures> {
        figures(self.counted())
    }
}

fn figures(observed: &[Observation]) -> Option<Figures> {
    let each: Vec<f64> = observed.iter().map(Observation::ms).collect();
    let steps = observed.iter().map(|one| one.steps).sum::<u64>();
    let mean = observed.iter().map(|one| one.seconds).sum::<f64>() * 1e3 / steps.max(1) as f64;
    let moments = Moments::of(each)?;
    Some(Figures {
        steps,
        mean,
        median: moments.median,
        p90: moments.p90,
        p99: moments.p99,
        deviation: moments.stddev.unwrap_or(0.0),
    })
}

/// Minimum number of the program's own figures.
const LEAST: usize = 3;
/// Tags whose step counts something else.
const OTHER_TAGS: &[&str] = &["epoch_", "evaluation_", "validation", "val_", "eval"];
/// Maximum number of tags examined.
const MOST_TAGS: usize = 256;

struct Candidate {
    source: StepSource,
    series: Series,
    examples: bool,
}

/// Picks the best source.
pub(super) fn pick(
    listener: &Listener,
    event_files: &[PathBuf],
    begun_wall_s: f64,
    batch_size: Option<u64>,
) -> Option<Steps> {
    let (tags, per_second) = event_series(event_files, begun_wall_s);
    let of_events = tags.into_iter().map(|(tag, series)| Candidate {
        source: StepSource::Events(tag),
        series,
        examples: false,
    });
    let of_lines = listener.counted().into_iter().map(|it| Candidate {
        source: StepSource::Lines,
        series: it.series,
        examples: it.examples,
    });
    let candidates: Vec<Candidate> =
        of_lines.chain(of_events).filter(|it| !it.series.observed().is_empty()).collect();
    let own_ms =
        listener.this_ms().settled().or_else(|| listener.mean_ms().settled()).or(median(&per_second));
    let Some(best) = best(candidates) else { return said_only(listener, &per_second) };
    let mut observed = best.series.observed().to_vec();
    let mut examples = best.examples;
    if let Some(batch) = batch_size.filter(|&batch| examples && batch > 0) {
        for one in &mut observed {
            (one.step, one.steps) = (one.step / batch, (one.steps / batch).max(1));
        }
        examples = false;
    }
    let each: Vec<f64> = observed.iter().map(Observation::ms).collect();
    Some(Steps {
        source: best.source,
        examples,
        first_s: best.series.first().unwrap_or(0.0),
        restarts: best.series.restarts(),
        bursty: best.series.is_bursty(),
        own_ms,
        own_examples_per_s: listener.examples_per_s(),
        steady: steady(&each),
        observed,
        profiled: 0,
    })
}

/// Training takes most of the time, so a source that covers little of it is something else: a download, an
/// evaluation. Among those that cover much, the finest wins.
fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    let most = candidates.iter().map(|it| it.series.covered()).fold(0.0, f64::max);
    let enough = candidates.into_iter().filter(|it| it.series.covered() >= most / 2.0);
    enough.max_by_key(|it| (!it.examples, it.series.observed().len(), it.source == StepSource::Lines))
}

/// Nothing to time, but the program reports its speed.
fn said_only(listener: &Listener, per_second: &[f64]) -> Option<Steps> {
    let figures = [listener.this_ms().all(), listener.mean_ms().all(), per_second];
    let enough = figures.into_iter().find(|figures| figures.len() >= LEAST);
    let epochs: Vec<f64> = listener.epochs().iter().map(|(_, ms)| *ms).collect();
    let figures = if epochs.is_empty() { enough? } else { &epochs };
    let steps_of = |place: usize| listener.epochs().get(place).map_or(1, |(steps, _)| *steps);
    let mut step = 0;
    let one = |(place, ms): (usize, &f64)| {
        let steps = steps_of(place);
        step += steps;
        Observation { step, steps, end_s: 0.0, seconds: steps as f64 * ms / 1e3 }
    };
    Some(Steps {
        source: StepSource::Reported,
        examples: false,
        observed: figures.iter().enumerate().map(one).collect(),
        profiled: 0,
        first_s: 0.0,
        restarts: 0,
        bursty: false,
        own_ms: median(figures),
        own_examples_per_s: listener.examples_per_s(),
        steady: steady(figures),
    })
}

/// Series by tag, and milliseconds per step if a tag reports steps per second.
fn event_series(files: &[PathBuf], begun_wall_s: f64) -> (Vec<(String, Series)>, Vec<f64>) {
    let mut series: BTreeMap<(PathBuf, String), Series> = BTreeMap::new();
    let mut per_second = Vec::new();
    for file in files {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let mut reader = RunReader::new(".", vec![file.clone()]);
        // What cannot be read says nothing about steps; the rest does.
        let _ = reader.read();
        for logged in reader.into_log().series {
            let points = logged.steps.iter().zip(&logged.wall_s).zip(&logged.values);
            // Logs that go on where an older run ended hold that run, too.
            let own = points.map(|((step, wall), value)| (*step, wall - begun_wall_s, *value));
            let own = own.filter(|(step, at_s, _)| *at_s >= 0.0 && *step >= 0);
            if logged.tag.ends_with("steps_per_second") {
                per_second.extend(own.filter(|(.., value)| *value > 0.0).map(|(.., value)| 1e3 / value));
            } else if !OTHER_TAGS.iter().any(|other| logged.tag.starts_with(other)) {
                let key = (folder.clone(), logged.tag.clone());
                if series.len() < MOST_TAGS || series.contains_key(&key) {
                    let entry = series.entry(key).or_default();
                    own.for_each(|(step, at_s, _)| entry.push(step.cast_unsigned(), at_s));
                }
            }
        }
    }
    (series.into_iter().map(|((_, tag), series)| (tag, series)).collect(), per_second)
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfevents::{record, scalar};

    use super::super::listen::Stream;
    use super::*;

    fn heard(lines: impl IntoIterator<Item = (f64, String)>) -> Listener {
        let mut listener = Listener::default();
        for (at, line) in lines {
            listener.hear(Stream::Out, format!("{line}\n").as_bytes(), at);
        }
        listener
    }

    #[test]
    fn a_download_is_not_the_training() {
        let download = (0..50).map(|i| (f64::from(i) * 0.01, format!("{}/5000 ━━ 0s 1us/step", i * 100)));
        let training = (0..20).map(|i| (10.0 + f64::from(i), format!("{}/20 ━━ 1s 1s/step", i + 1)));
        let steps = pick(&heard(download.chain(training)), &[], 0.0, None).unwrap();
        assert_eq!((steps.count(), steps.first_s), (19, 10.0));
        let figures = steps.figures().unwrap();
        assert!((figures.median - 1_000.0).abs() < 1e-6 && (figures.mean - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn steps_that_our_own_profile_slowed_are_left_out() {
        let mut at = 0.0;
        let lines: Vec<_> = (0..60)
            .map(|step| {
                at += if (20..30).contains(&step) { 0.3 } else { 0.1 };
                (at, format!("step {step}"))
            })
            .collect();
        let window = (lines[20].0 - 0.2, lines[29].0 - 0.1);
        let steps = pick(&heard(lines), &[], 0.0, None).unwrap();
        assert!(steps.counted().len() < 40, "they break the steady state in two");
        let without = steps.clone().without(window);
        assert_eq!((without.profiled, without.count()), (10, 49));
        assert_eq!(without.counted().len(), 49, "without them all is one");
        assert!(without.figures().unwrap().p99 < 101.0, "{:?}", without.figures());
        assert_eq!(steps.clone().without((0.0, 100.0)), steps, "all of them are better than none");
    }

    #[test]
    fn event_files_tell_steps_and_what_was_before_the_run_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.out.tfevents.1.x");
        let bytes: Vec<u8> =
            (0..20_u8).flat_map(|i| record(&scalar(90.0 + f64::from(i), i, "loss", 0.5))).collect();
        std::fs::write(&file, bytes).unwrap();
        let steps = pick(&Listener::default(), &[file], 100.0, None).unwrap();
        assert_eq!(steps.source, StepSource::Events("loss".to_owned()));
        assert_eq!((steps.count(), steps.first_s), (9, 0.0));
    }

    #[test]
    fn examples_become_steps_once_the_batch_is_known() {
        let lines =
            || (0..10).map(|i| (f64::from(i), format!("Train Epoch: 1 [{}/6000 (1%)] Loss", i * 640)));
        let steps = pick(&heard(lines()), &[], 0.0, Some(64)).unwrap();
        assert_eq!((steps.examples, steps.count()), (false, 90));
        assert!((steps.figures().unwrap().median - 100.0).abs() < 1e-6);
        assert!(pick(&heard(lines()), &[], 0.0, None).unwrap().examples);
    }

    #[test]
    fn a_line_per_epoch_stands_for_all_its_steps() {
        let lines = (1..=3).map(|i| (f64::from(i) * 2.0, "120/120 - 2s - 15ms/step - loss: 0.5".to_owned()));
        let steps = pick(&heard(lines), &[], 0.0, None).unwrap();
        assert_eq!((steps.source.clone(), steps.count()), (StepSource::Reported, 360));
        assert!((steps.figures().unwrap().mean - 15.0).abs() < 1e-9);
    }

    #[test]
    fn figures_alone_are_better_than_nothing() {
        let lines = (0..5).map(|i| (f64::from(i), "INFO:tensorflow:global_step/sec: 12.5".to_owned()));
        let steps = pick(&heard(lines), &[], 0.0, None).unwrap();
        assert_eq!((steps.source, steps.own_ms), (StepSource::Reported, Some(80.0)));
        assert_eq!(pick(&Listener::default(), &[], 0.0, None), None);
    }
}
